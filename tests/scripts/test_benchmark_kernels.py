"""What the benchmarks run on a GPU, as far as it can be tested without one."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))  # as when a script of that folder runs

bench_limits, generations = import_module("bench_limits"), import_module("generations")
bench_reduction, bench_som, edge_sweeps = map(import_module, ("bench_reduction", "bench_som", "edge_sweeps"))
bench = import_module("bench")
check_closed = import_module("benchmarking").check_closed
ring_of_vertices = import_module("bench_fw_table").ring_of_vertices

PROGRAMS = [
    *generations.PROGRAMS.values(),
    *bench_limits.PROGRAMS.values(),
    *edge_sweeps.PROGRAMS.values(),
    bench_reduction.PROGRAM,
    bench_som.NODE_BY_NODE,
    bench_som.PARTIAL_MINIMA,
]


def compile_log(program, architecture):
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

    def checked(answer):
        status, *values = answer
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
        return values[0] if values else None

    options = [f"-arch={architecture}", "-ftz=true", "--ptxas-options=-v", *program.options]
    compiled = checked(nvrtc.nvrtcCreateProgram(program.source().encode(), b"kernel.cu", 0, [], []))
    status, *_ = nvrtc.nvrtcCompileProgram(compiled, len(options), [option.encode() for option in options])
    log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(compiled))
    checked(nvrtc.nvrtcGetProgramLog(compiled, log))
    nvrtc.nvrtcDestroyProgram(compiled)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    return log.decode()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: "-".join((p.file, *p.macros)))
def test_compiles_without_spilling_registers(program):
    log = compile_log(program, "sm_90")
    assert "warning" not in log, log
    spills = re.findall(r"entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads", log, re.S)
    assert sorted(spills) == sorted((entry, "0", "0") for entry in program.entries), log


def test_every_kernel_file_is_declared():
    assert {path.name for path in generations.KERNELS.glob("*.cu")} == {program.file for program in PROGRAMS}


def test_every_suite_explains_itself(monkeypatch, capsys):
    for suite in [], *([name] for name in bench.SUITES):
        monkeypatch.setattr(sys, "argv", ["bench.py", *suite, "--help"])
        with pytest.raises(SystemExit) as done:
            bench.main()
        assert done.value.code == 0
        assert "usage: bench.py" in capsys.readouterr().out


def test_the_script_starts():
    done = subprocess.run([sys.executable, SCRIPTS / "bench.py", "--help"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def closed(weights):
    result = weights.copy()
    generations.CPU.close(result)
    return result


def test_weights_of_the_table_are_exact_in_float32():
    weights = ring_of_vertices(np, 256)
    assert (weights == weights.astype(int)).all()
    np.testing.assert_array_equal(closed(weights), closed(weights.astype(float)))
    largest = 65536 // 2 * 500  # an arc across the largest ring of the table
    assert np.float32(largest) == largest < 2**24


@pytest.mark.parametrize("change", [-1, 1])
def test_one_wrong_distance_in_a_checked_row_is_found(change):
    weights = ring_of_vertices(np, 256)
    distances = closed(weights)
    check_closed(np, weights, distances, exact=True)
    distances[1, 99] += change
    with pytest.raises(AssertionError, match="not closed"):
        check_closed(np, weights, distances, exact=True)

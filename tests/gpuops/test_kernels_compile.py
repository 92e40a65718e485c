"""Every kernel that an operation may launch, compiled for every architecture, on a machine without a GPU."""

import re

import pytest

from gpuops._cuda import GPUOPS
from gpuops.warming import all_programs

nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

ARCHITECTURES = ["sm_90", "sm_80", "sm_100"]
PROGRAMS = all_programs()


def checked(answer):
    status, *values = answer
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, status
    return values[0] if values else None


def compile_log(source, architecture, options):
    """What nvrtc and ptxas say; the options CuPy adds come with ours."""
    options = [f"-arch={architecture}", "-ftz=true", "--ptxas-options=-v", *options]
    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    status, *_ = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = b" " * checked(nvrtc.nvrtcGetProgramLogSize(program))
    checked(nvrtc.nvrtcGetProgramLog(program, log))
    nvrtc.nvrtcDestroyProgram(program)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    return log.decode()


def programs_and_architectures():
    """All programs for the first architecture; for the others the first of each file, the rest being slow."""
    for architecture in ARCHITECTURES:
        files = set()
        for program in PROGRAMS:
            rest = architecture != ARCHITECTURES[0] and program.file in files
            files.add(program.file)
            name = "-".join((program.file, *program.macros, architecture))
            yield pytest.param(program, architecture, id=name, marks=[pytest.mark.slow] if rest else [])


@pytest.mark.parametrize(("program", "architecture"), list(programs_and_architectures()))
def test_compiles_without_spilling_registers(program, architecture):
    log = compile_log(program.source(), architecture, program.options)
    assert "warning" not in log, log
    for entry in program.entries:
        report = re.search(rf"entry function '{entry}'.*?(\d+) bytes spill stores, (\d+) bytes spill loads", log, re.S)
        assert report, f"no entry {entry} in\n{log}"
        assert report.groups() == ("0", "0"), log


def test_every_kernel_file_is_declared():
    kernels = {str(path.relative_to(GPUOPS)) for path in GPUOPS.rglob("*.cu")}
    assert kernels == {program.file for program in PROGRAMS}


def test_loops_that_wait_load_by_volatile_ptx():
    """ptxas takes `while (!__ldcg(p));` to have ended and removes it: ld.global.cg may be left out, a wait may not."""
    waits = re.compile(r"while \(.*__ld(g|cg|ca|cs|lu|cv)\(")
    for path in [*GPUOPS.rglob("*.cu*"), *(GPUOPS.parent / "benchmarks").rglob("*.cu*")]:
        for line, text in enumerate(path.read_text().splitlines(), 1):
            assert not waits.search(text), f"{path.name}:{line} waits with a load that a compiler may remove"


def test_messages_point_into_the_file_at_fault():
    program = next(program for program in PROGRAMS if program.file == "minplus/product.cu")
    lines = program.source().splitlines()
    text = (GPUOPS / "minplus/product.cu").read_text().splitlines()
    mark = max(i for i, line in enumerate(lines) if line.startswith("#line"))
    number = int(lines[mark].split()[1])
    assert lines[mark + 1 :] == text[number - 1 :]
    assert not any(line.startswith("#include") for line in lines)

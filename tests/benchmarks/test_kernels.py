"""What the benchmarks run on a GPU, as far as it can be tested without one."""

import re

import numpy as np
import pytest
from compiling import compile_log
from families import SLOW, one_in

from benchmarks.harness import KERNELS, check_closed
from benchmarks.kernels import edge_sweeps, generations, sequences  # noqa: F401  declare programs, as suites do
from benchmarks.suites import limits, reduction, som  # noqa: F401
from benchmarks.suites.fw_table import ring_of_vertices
from gpuops._cuda import declared

PROGRAMS = declared(KERNELS)


PARAMETERS = [pytest.param(program, id="-".join((program.file, *program.macros))) for program in PROGRAMS]


@pytest.mark.parametrize("architecture", ["sm_90", *(pytest.param(each, marks=SLOW) for each in ("sm_80", "sm_100"))])
@pytest.mark.parametrize("program", one_in(len(PROGRAMS), PARAMETERS))
def test_compiles_without_spilling_registers(program, architecture):
    log = compile_log(program, architecture)
    assert "warning" not in log, log
    spills = re.findall(r"entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads", log, re.S)
    assert sorted(spills) == sorted((entry, "0", "0") for entry in program.entries), log


def test_every_kernel_file_is_declared():
    assert {path.name for path in KERNELS.glob("*.cu")} == {program.file for program in PROGRAMS}


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

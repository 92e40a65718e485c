"""The memory that making a hierarchy takes, compared with the resident memory of a new process."""

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes
import numpy as np
from gpuops import close_hierarchy, hierarchy_order, hierarchy_structure
from gpuops.hierarchy.memory import closing_bytes, order_bytes, structure_bytes
from road_graphs import made

def peak(run):
    ctypes.CDLL(None).malloc_trim(0)
    before = int(open("/proc/self/statm").read().split()[1]) * 4096
    open("/proc/self/clear_refs", "w").write("5")
    result = run()
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return result, int(line.split()[1]) * 1024 - before

def grid(side):
    v = np.arange(side * (side - 1))
    arcs = np.concatenate([np.stack([v, v + side], 1), np.stack([v, v + 1], 1)])
    return made(side * side, arcs).rows("int32")

for side in 10, 300:
    indptr, indices, weights = grid(side)
    n, m = side * side, len(indices)
    order, first = peak(lambda: hierarchy_order(indptr, indices))
    (structure, cost), second = peak(lambda: hierarchy_structure(indptr, indices, order))
    hierarchy, third = peak(lambda: close_hierarchy(structure, indptr, indices, weights))
stated = order_bytes(n, m), structure_bytes(n, m, cost), closing_bytes(structure, cost, m, "int32", True)
for most, taken in zip(stated, (first, second, third), strict=True):
    print(f"{taken:,} of {most:,}")
    assert 0.3 * most < taken <= most
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and trims the heap of glibc")
def test_making_a_hierarchy_takes_the_memory_that_is_stated():
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd="tests")
    assert found.returncode == 0, found.stdout + found.stderr

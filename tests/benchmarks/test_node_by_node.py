"""The article's kernels for best matching units, with the host shim, against the serial loop and the operation."""

import numpy as np
import pytest

from benchmarks.kernels import node_by_node
from gpuops import best_matching_units
from gpuops._cuda import Program


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start(1)
    return host_shim


def workload(units, dimensions=12, samples=4):
    """With units that are equal, in one block and in two."""
    rng = np.random.default_rng(units)
    codebook = rng.integers(0, 3, (units, dimensions)).astype("float64")
    codebook[:2] = codebook[units // 2] = codebook[-1]
    x = rng.integers(0, 3, (samples, dimensions)).astype("float64")
    x[0] = codebook[-1]
    return x, codebook


def check(cupy, variant, units, dimensions=12):
    samples, codebook = workload(units, dimensions)
    search = node_by_node.Search(cupy, cupy.asarray(samples), cupy.asarray(codebook))
    found = search.run(variant)
    np.testing.assert_array_equal(np.asarray(found), node_by_node.one_by_one(samples, codebook))


def test_the_serial_loop():
    samples, codebook = workload(300)
    np.testing.assert_array_equal(node_by_node.one_by_one(samples, codebook), best_matching_units(samples, codebook)[0])


def test_blocks_are_those_of_the_article(cupy):
    search = node_by_node.Search(cupy, cupy.asarray(np.ones((1, 12))), cupy.asarray(np.ones((40_000, 12))))
    assert (search.threads, search.blocks) == (252, 1905)


@pytest.mark.parametrize("variant", node_by_node.VARIANTS, ids=lambda variant: variant.title)
def test_variants(cupy, variant):
    for units, dimensions in (1, 12), (21, 12), (22, 12), (90, 12), (50, 7):
        check(cupy, variant, units, dimensions)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "text", "broken"),
    [
        ("node_by_node", "sum < best", "sum <= best"),
        (
            "node_by_node",
            "    __syncthreads();\n    if (threadIdx.x != 0) return;",
            "    if (threadIdx.x != 0) return;",
        ),
        ("node_by_node_optimized", "atomicMin(best, mine);", "*best = mine;"),  # the published race
        ("node_by_node_optimized", "mine == __ldcg(best)", "true"),
        ("node_by_node", "other_unit < unit", "other_unit > unit"),
    ],
)
def test_what_is_broken_is_caught(cupy, monkeypatch, entry, text, broken):
    source = Program.source
    assert text in source(node_by_node.PROGRAM)
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(text, broken))
    cupy.start(2)
    variant = next(variant for variant in node_by_node.VARIANTS[1::2] if variant.entry == entry)
    with pytest.raises(AssertionError):
        check(cupy, variant, 300)

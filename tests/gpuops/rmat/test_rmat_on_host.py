"""The kernels that draw R-MAT graphs, on a machine without a GPU (host_shim/): the bits of the generator on a CPU."""

import numpy as np
import pytest

from gpuops.rmat import rmat_edges, rmat_rows
from pipelines.generators import RMat, csr


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start(0, 2)
    return host_shim


GRAPHS = [
    RMat(0, edge_factor=3),
    RMat(1),
    RMat(7, seed=5),
    RMat(9, edge_factor=3, seed=2**63 + 11, dtype="float64"),
    RMat(8, weights="integers", directed=True),
    RMat(5, weights="integers", dtype="int64", scrambled=False),
    RMat(6, a=0.25, b=0.25, c=0.5),
]


def sorted_arcs(indptr, indices, weights):
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((weights, indices, tails))
    return tails[order], indices[order], weights[order]


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_edges_have_the_bits_of_the_generator(graph):
    start, stop = graph.ids // 5, graph.ids - 1
    found, expected = rmat_edges(graph.drawing(), start, stop), graph.arcs(start, stop)
    assert [part.dtype for part in found] == ["int32", "int32", graph.dtype]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_ranges_make_up_the_graph(graph):
    """Whatever the ranges, and each as the whole graph has it."""
    whole = csr(graph)
    for first, last in [(0, graph.n), (0, graph.n // 3), (graph.n // 3, graph.n), (graph.n, graph.n)]:
        indptr, indices, weights = (part.get() for part in rmat_rows(graph.drawing(), first, last))
        arcs = slice(int(whole[0][first]), int(whole[0][last]))
        expected = whole[0][first : last + 1] - whole[0][first], whole[1][arcs], whole[2][arcs]
        np.testing.assert_array_equal(indptr, expected[0])
        assert (indptr.dtype, indices.dtype, weights.dtype) == (np.int64, np.int32, whole[2].dtype)
        for ours, theirs in zip(sorted_arcs(indptr, indices, weights), sorted_arcs(*expected), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_what_is_not_there_is_refused():
    drawing = RMat(4).drawing()
    with pytest.raises(ValueError, match="edges 0 to 257 were asked for; there are 0 to 256"):
        rmat_edges(drawing, 0, 257)
    with pytest.raises(ValueError, match="vertices -1 to 4 were asked for; there are 0 to 16"):
        rmat_rows(drawing, -1, 4)
    assert RMat(4, shift=1.0).drawing() is None
    assert RMat(32).drawing() is None

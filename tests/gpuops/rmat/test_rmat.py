"""R-MAT graphs drawn on a GPU: the bits of the generator on a CPU."""

import numpy as np
import pytest

from gpuops.rmat import rmat_edges, rmat_rows
from pipelines.generators import RMat, csr

pytestmark = pytest.mark.gpu
pytest.importorskip("cupy")


@pytest.mark.parametrize(
    "graph", [RMat(14, seed=3), RMat(13, weights="integers", directed=True), RMat(12, dtype="float64")], ids=str
)
def test_edges_and_rows(graph):
    for ours, theirs in zip(rmat_edges(graph.drawing(), 5, graph.ids), graph.arcs(5), strict=True):
        np.testing.assert_array_equal(ours.get(), theirs)
    whole = csr(graph)
    first, last = graph.n // 3, graph.n
    indptr, indices, weights = (part.get() for part in rmat_rows(graph.drawing(), first, last))
    np.testing.assert_array_equal(indptr, whole[0][first:] - whole[0][first])
    tails, arcs = np.repeat(np.arange(last - first), np.diff(indptr)), slice(int(whole[0][first]), None)
    mine, theirs = np.lexsort((weights, indices, tails)), np.lexsort((whole[2][arcs], whole[1][arcs], tails))
    np.testing.assert_array_equal(indices[mine], whole[1][arcs][theirs])
    np.testing.assert_array_equal(weights[mine], whole[2][arcs][theirs])

"""Closures of batches of graphs beside SciPy's search of each graph."""

import numpy as np
import pytest
from families import usual
from oracles import random_arcs, scipy_graph
from scipy.sparse.csgraph import bellman_ford

from gpuops import NegativeCycleError, batch_closures, csr
from gpuops.arrays import on_host

SIZES = [7, 0, 1, 70, 3, 12]


def batch(sizes, seed, *, negative=False):
    """Graphs of these sizes: the arrays of all, and the arcs of each."""
    parts, starts = [], np.concatenate([[0], np.cumsum(sizes)])
    for number, n in enumerate(sizes):
        tails, heads, weights = random_arcs(max(n, 1), 3 * n * (n > 0), seed=seed + number)
        if negative:
            shift = np.random.default_rng(number).integers(0, 30, max(n, 1))
            weights = weights + shift[tails] - shift[heads]
        parts.append((tails, heads, weights))
    tails = np.concatenate([part[0] + start for part, start in zip(parts, starts, strict=False)])
    heads, weights = (
        np.concatenate([part[i] + (start if i == 1 else 0) for part, start in zip(parts, starts, strict=False)])
        for i in (1, 2)
    )
    order = tails.argsort(kind="stable")
    return (csr.row_starts(tails, starts[-1]), heads[order], weights[order], starts), parts


@pytest.mark.parametrize("dtype", [*usual(["float32", "float64", "int32"], {"float64"}), None])
@pytest.mark.parametrize("negative", [False, True])
def test_every_graph_has_its_distances(xp, dtype, negative):
    (indptr, indices, weights, starts), parts = batch(SIZES, seed=1, negative=negative)
    given = None if dtype is None else xp.asarray(weights.astype(dtype))
    found = on_host(batch_closures(xp.asarray(indptr), xp.asarray(indices), given, starts))
    assert found.dtype == (dtype or np.int16)
    assert found.shape == (len(SIZES), 70, 70)
    unreachable = np.inf if found.dtype.kind == "f" else np.iinfo(found.dtype).max
    for matrix, n, (tails, heads, lengths) in zip(found, SIZES, parts, strict=True):
        expected = np.full((70, 70), np.inf)
        if n:
            lengths = np.ones(len(tails)) if dtype is None else lengths
            expected[:n, :n] = bellman_ford(scipy_graph(n, tails, heads, lengths))
        np.testing.assert_array_equal(matrix, np.where(np.isinf(expected), unreachable, expected))


def test_a_larger_size_pads_more_and_no_graph_is_a_batch_too():
    (indptr, indices, weights, starts), _ = batch([3, 2], seed=5)
    found = batch_closures(indptr, indices, weights.astype(float), starts, size=9)
    np.testing.assert_array_equal(found[:, :3, :3], batch_closures(indptr, indices, weights.astype(float), starts))
    assert np.isinf(found[:, 3:]).all()
    none, no_arcs = np.zeros(1, np.int64), np.zeros(0, np.int32)
    assert batch_closures(none, no_arcs, no_arcs.astype(float), [0]).shape == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"starts": [0, 1, 3]}, ValueError, "the arc from 0 to 1 leads to another graph of the batch"),
        ({"starts": [0, 2]}, ValueError, "starts must rise from 0 to the number of vertices, 3"),
        ({"starts": [0, 3, 2, 3]}, ValueError, "starts must rise"),
        ({"starts": [[0, 3]]}, ValueError, "starts must rise"),
        ({"size": 2}, ValueError, "size is 2, but a graph has 3 vertices"),
        ({"weights": np.array([1, 1], np.int16)}, TypeError, "weights are int16; convert them to"),
        ({"weights": np.array([1, 2**28])}, TypeError, "weights are int64"),
        ({"weights": np.array([1, 2**28], np.int32)}, OverflowError, "distances may exceed int32; pass weights of"),
        ({"weights": np.array([1, np.nan])}, ValueError, "NaN"),
        ({"weights": np.array([1.0])}, ValueError, "2 indices and 1 weights"),
    ],
)
def test_what_is_refused(arguments, error, says):
    whole = {"indptr": np.array([0, 1, 2, 2]), "indices": np.array([1, 2]), "weights": np.ones(2), "starts": [0, 3]}
    with pytest.raises(error, match=says):
        batch_closures(**(whole | arguments))


def test_a_negative_cycle_names_its_graph():
    indptr, indices = np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2])
    with pytest.raises(NegativeCycleError, match="of matrix 1 reaches itself at distance -1"):
        batch_closures(indptr, indices, np.array([1.0, 1, 1, -2]), [0, 2, 4])

"""Encodings of batches of graphs beside NetworkX: numbers of arcs, and arcs that form a path of this length."""

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuops import csr, path_encodings


@given(st.data())
def test_any_batch(data):
    sizes = data.draw(st.lists(st.integers(0, 6), max_size=4))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    arcs = [
        (start + a, start + b)
        for start, n in zip(starts, sizes, strict=False)
        if n
        for a, b in data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14))
    ]
    longest = data.draw(st.none() | st.integers(0, 4))
    tails, heads = np.array(sorted(arcs), int).reshape(-1, 2).T
    found = path_encodings(csr.row_starts(tails, starts[-1]), heads, starts, longest=longest)
    size = max(sizes, default=0)
    assert (found.hops.dtype, found.arcs.dtype) == (np.int16, np.int32)
    assert found.hops.shape == (len(sizes), size, size)
    kept = max(0, found.hops.max(initial=0)) if longest is None else longest
    assert found.arcs.shape == (len(sizes), size, size, kept)
    graph = nx.DiGraph(zip(tails.tolist(), heads.tolist(), strict=True))
    graph.add_nodes_from(range(starts[-1]))
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for (b, i, j), hops in np.ndenumerate(found.hops):
        inside = i < sizes[b] and j < sizes[b]
        source, target = int(starts[b] + i), int(starts[b] + j)
        assert hops == (lengths[source].get(target, -1) if inside else -1)
        path = found.arcs[b, i, j].tolist()
        steps = [arc for arc in path if arc >= 0]
        assert path == steps + [-1] * (len(path) - len(steps))
        assert len(steps) == min(max(hops, 0), kept)
        at = source
        for arc in steps:
            assert tails[arc] == at
            at = heads[arc]
        assert at == target or not inside or len(steps) < hops or hops < 0


def test_threads_and_tasks_change_nothing_and_padding_goes_beyond(monkeypatch):
    rng = np.random.default_rng(0)
    starts = np.arange(0, 101, 10)
    tails = np.sort(rng.integers(0, 100, 300))
    arrays = csr.row_starts(tails, 100), tails // 10 * 10 + rng.integers(0, 10, 300)
    found = path_encodings(*arrays, starts, size=12)  # in one task
    assert (found.hops[:, 10:] == -1).all()
    assert (found.arcs[:, :, 10:] == -1).all()
    monkeypatch.setattr("gpuops._threads._SERIAL_RELAXATIONS", 1)
    monkeypatch.setattr("gpuops.hops.encodings_numba._TASK", 1)
    for threads in 1, 3:
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        for one, other in zip(found, path_encodings(*arrays, starts, size=12), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"starts": [0, 1, 3]}, "the arc from 0 to 1 leads to another graph of the batch"),
        ({"starts": [0, 2]}, "starts must rise from 0 to the number of vertices, 3"),
        ({"size": 2}, "a graph has 3 vertices, more than size"),
        ({"longest": -1}, "longest is -1; give a number of arcs"),
        ({"indices": np.array([1, 3])}, "they must be vertices, 0 to 2"),
    ],
)
def test_what_is_refused(arguments, says):
    whole = {"indptr": np.array([0, 1, 2, 2]), "indices": np.array([1, 2]), "starts": [0, 3]}
    with pytest.raises(ValueError, match=says):
        path_encodings(**(whole | arguments))


def test_graphs_that_are_too_large_are_refused():
    n = 2**15
    with pytest.raises(ValueError, match="a graph has 32768 vertices, more than 32,767"):
        path_encodings(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), [0, n])

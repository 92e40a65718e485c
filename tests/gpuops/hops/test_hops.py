"""Searches that share machine words beside breadth-first search as it is written down everywhere."""

from collections import deque
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparse_rows import rows

import gpuops
from gpuops import csr, hop_distances

UNREACHABLE = 2**31 - 1


def rows_of(arcs, n):
    return rows(n, *np.array(arcs, np.int64).reshape(-1, 2).T)


def plain_search(indptr, indices, source):
    found, queue = {source: 0}, deque([source])
    while queue:
        tail = queue.popleft()
        for head in indices[indptr[tail] : indptr[tail + 1]].tolist():
            if head not in found:
                found[head] = found[tail] + 1
                queue.append(head)
    return [found.get(vertex, UNREACHABLE) for vertex in range(len(indptr) - 1)]


def check(indptr, indices, sources):
    expected = np.array([plain_search(indptr, indices, source) for source in sources], np.int32)
    expected = expected.reshape(len(sources), len(indptr) - 1)
    found = hop_distances(indptr, indices, sources)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int32
    floats = hop_distances(indptr, indices, sources, dtype=float)
    assert floats.dtype == np.float64
    np.testing.assert_array_equal(floats, np.where(expected == UNREACHABLE, np.inf, expected))


@given(st.data())
def test_any_graph(data):
    n = data.draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    arcs = data.draw(st.lists(st.tuples(vertex, vertex), max_size=30))
    check(*rows_of(arcs, n), data.draw(st.lists(vertex, max_size=5)))


@pytest.mark.parametrize("sources", [1, 63, 64, 65, 128, 300])
def test_sources_fill_one_word_or_several_and_the_last_one_in_part(sources):
    rng = np.random.default_rng(sources)
    n = 150
    arcs = rng.integers(0, n, (400, 2))
    check(*rows_of(arcs, n), rng.integers(0, n, sources).tolist())  # some of them twice


LENGTH = 200
NAMES = np.random.default_rng(0).permutation(LENGTH)
GRAPHS = {
    "no arcs": ([], 3),
    "loops and parallel arcs": ([(0, 0), (0, 1), (0, 1), (1, 1)], 3),
    "path": (list(pairwise(NAMES)), LENGTH),
    "ring": (list(zip(NAMES, np.roll(NAMES, 1), strict=True)), LENGTH),
    "star": ([(0, v) for v in range(1, LENGTH)], LENGTH),
    "two parts": ([(0, 1), (1, 2), (3, 4)], 5),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("dtypes", [("int64", "int32"), ("int32", "int64")])
def test_graphs_of_every_kind(name, dtypes):
    arcs, n = GRAPHS[name]
    indptr, indices = (array.astype(dtype) for array, dtype in zip(rows_of(arcs, n), dtypes, strict=True))
    check(indptr, indices, range(n))


def test_no_vertex_and_no_source():
    assert hop_distances(np.zeros(1, np.int64), np.zeros(0, np.int32), []).shape == (0, 0)
    assert hop_distances(np.zeros(3, np.int64), np.zeros(0, np.int32), []).shape == (0, 2)


def test_arrays_that_are_not_contiguous():
    indptr, indices = rows_of([(0, 1), (1, 2), (2, 0)], 3)
    strided = np.repeat(indptr, 2)[::2], np.repeat(indices, 2)[::2]
    np.testing.assert_array_equal(hop_distances(*strided, [0]), [[0, 1, 2]])


def test_searches_by_weights_of_one_agree():
    rng = np.random.default_rng(1)
    indptr, indices = rows_of(rng.integers(0, 3000, (9000, 2)), 3000)
    graph = gpuops.search_graph(indptr, indices, np.ones(len(indices)))
    sources = rng.integers(0, 3000, 200)
    expected = gpuops.batched_shortest_distances(graph, sources)
    np.testing.assert_array_equal(hop_distances(indptr, indices, sources, dtype="float64"), expected)


LENGTHS = st.sampled_from([0, 1, 7, 2**29, 2**30, 2**31 - 2, 2**31 - 1, 0.1, 1 / 3, 1e-300, 1e38, 1e308])
LIMITS = st.sampled_from([np.inf, 0, 0.3, 2, 14, 2**30, 1e38, np.nan])


@given(st.data())
def test_equal_lengths_have_the_bits_of_a_search(data):
    n = data.draw(st.integers(1, 9))
    vertex = st.integers(0, n - 1)
    indptr, indices = rows_of(data.draw(st.lists(st.tuples(vertex, vertex), max_size=24)), n)
    sources = data.draw(st.lists(vertex, min_size=1, max_size=4))
    dtype = np.dtype(data.draw(st.sampled_from(["int32", "float32", "float64"])))
    whole = dtype.kind == "i"
    most = np.iinfo(dtype).max if whole else float(np.finfo(dtype).max)
    length = dtype.type(data.draw(LENGTHS.filter(lambda length: length <= most and not (whole and length % 1))))
    limit = data.draw(LIMITS)
    compare_with_heaps(indptr, indices, sources, dtype, length, limit)


@pytest.mark.parametrize("vertices", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("dtype", "length", "limit"),
    [
        ("int32", 2**30, np.inf),
        ("int32", 2**31 - 2, np.inf),
        ("int32", 2**31 - 1, np.inf),
        ("int32", 2**30, 2**40),
        ("float32", 0.1, 0.2),
        ("float32", 2e38, np.inf),
        ("float64", 1e308, np.inf),
    ],
)
def test_paths_as_long_as_the_dtype_allows(dtype, length, limit, vertices):
    arrays = rows_of([(v, v + 1) for v in range(vertices - 1)], vertices + 1)
    compare_with_heaps(*arrays, [0, vertices - 1], np.dtype(dtype), np.dtype(dtype).type(length), limit)


def compare_with_heaps(indptr, indices, sources, dtype, length, limit):
    options = {"limit": limit, "predecessors": True}
    try:
        expected, _ = gpuops.dijkstra_rows(indptr, indices, np.full(len(indices), length), sources, **options)
    except OverflowError:
        with pytest.raises(OverflowError, match="distances exceed int32; use float64"):
            hop_distances(indptr, indices, sources, length=length.item(), dtype=dtype, **options)
        return
    found, trees = hop_distances(indptr, indices, sources, length=length.item(), dtype=dtype, **options)
    assert found.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(
        hop_distances(indptr, indices, sources, length=length.item(), dtype=dtype, limit=limit), found
    )
    check_trees(indptr, indices, sources, found, trees)


def check_trees(indptr, indices, sources, found, trees):
    """Predecessors lead along arcs and by the fewest arcs."""
    hops = hop_distances(indptr, indices, sources)
    unreachable = np.inf if found.dtype.kind == "f" else UNREACHABLE
    arcs = set(zip(csr.tails(indptr, len(indices), np.int64).tolist(), indices.tolist(), strict=True))
    for source, row, tree, levels in zip(sources, found, trees, hops, strict=True):
        for vertex, tail in enumerate(tree.tolist()):
            assert (tail < 0) == (vertex == source or row[vertex] == unreachable)
            if tail >= 0:
                on_paths = [u for u, v in arcs if v == vertex and levels[u] == levels[vertex] - 1]
                assert tail == min(on_paths)


@given(st.data())
def test_closed_vertices(data):
    n = data.draw(st.integers(1, 9))
    vertex = st.integers(0, n - 1)
    indptr, indices = rows_of(data.draw(st.lists(st.tuples(vertex, vertex), max_size=24)), n)
    through = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    sources = data.draw(st.lists(vertex, max_size=4))
    graph = gpuops.search_graph(indptr, indices, np.ones(len(indices)), through=through)
    expected = gpuops.batched_shortest_distances(graph, sources)
    found, trees = hop_distances(indptr, indices, sources, dtype=float, through=through, predecessors=True)
    np.testing.assert_array_equal(found, expected)
    for source, row, tree in zip(sources, found, trees, strict=True):
        np.testing.assert_array_equal(tree >= 0, np.isfinite(row) & (np.arange(n) != source))
        for head in np.flatnonzero(tree >= 0).tolist():
            assert row[tree[head]] + 1 == row[head]
            assert through[tree[head]] or tree[head] == source


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"sources": [3]}, ValueError, "source 3 is not a vertex; vertices are 0 to 2"),
        ({"sources": [0, -1]}, ValueError, "source -1 is not a vertex"),
        ({"sources": [0.5]}, ValueError, "sources are float64"),
        ({"sources": [[0, 1]]}, ValueError, r"of shape \(1, 2\); pass a sequence"),
        ({"dtype": "int16"}, TypeError, "dtype is int16; numbers of arcs are int32, float32, float64"),
        ({"length": -1}, ValueError, "length is -1; give a finite length of 0 or more"),
        ({"length": np.nan, "dtype": float}, ValueError, "length is nan; give a finite"),
        ({"length": np.inf}, ValueError, "length is inf; give a finite"),
        ({"length": 0.5}, ValueError, "length is 0.5, a fraction, which int32 distances cannot have; use float64"),
        ({"through": np.array([True])}, ValueError, "through is bool of length 1; give a bool for each of 3 vertices"),
        ({"indices": np.array([1, 3])}, ValueError, "they must be vertices, 0 to 2"),
        ({"indptr": np.array([0, 1, 1])}, ValueError, "indptr must rise"),
        ({"indices": np.array([0.0, 1.0])}, TypeError, "indices is float64"),
    ],
)
def test_what_is_refused(arguments, error, says):
    whole = {"indptr": np.array([0, 1, 2, 2]), "indices": np.array([1, 2]), "sources": [0], **arguments}
    with pytest.raises(error, match=says):
        hop_distances(**whole)


def skewed(n, m, seed):
    """Some vertices with thousands of arcs, many with few or none."""
    return rows_of((n * np.random.default_rng(seed).random((m, 2)) ** 4).astype(np.int64), n)


@pytest.mark.gpu
@pytest.mark.parametrize("sources", [1, 31, 32, 33, 64, 700, 1024, 2100])
@pytest.mark.parametrize("name", ["skewed", "sparse", "path", "star"])
def test_a_gpu_returns_the_bits_of_a_cpu(gpu, name, sources):
    rng = np.random.default_rng(sources)
    graph = {
        "skewed": lambda: skewed(5000, 60_000, 1),
        "sparse": lambda: skewed(20_000, 30_000, 2),
        "path": lambda: rows_of(list(pairwise(rng.permutation(3000))), 3000),
        "star": lambda: rows_of([(v, 7) for v in range(4000)] + [(7, v) for v in range(4000)], 4000),
    }[name]()
    n = len(graph[0]) - 1
    on_device = list(map(gpu.asarray, graph))
    starts, through = rng.integers(0, n, sources), rng.random(n) < 0.9
    for options in (
        {},
        {"length": 0.1, "dtype": "float32", "limit": 0.5},
        {"length": 1 / 3, "dtype": "float64", "through": through},
        {"length": 5, "through": through},
    ):
        given = {key: gpu.asarray(x) if isinstance(x, np.ndarray) else x for key, x in options.items()}
        for predecessors in False, True:
            expected = hop_distances(*graph, starts, predecessors=predecessors, **options)
            found = hop_distances(*on_device, starts, predecessors=predecessors, **given)
            for ours, cpus in zip(*((x if predecessors else [x]) for x in (found, expected)), strict=True):
                assert isinstance(ours, gpu.ndarray)
                assert ours.dtype == cpus.dtype
                assert ours.get().tobytes() == cpus.tobytes()


@pytest.mark.gpu
def test_symmetric_graphs_and_graphs_that_are_transposed_beforehand(gpu):
    indptr, indices = map(gpu.asarray, skewed(3000, 20_000, 3))
    expected = hop_distances(indptr, indices, range(1000))
    transposed = csr.transpose(indptr, indices)[:2]
    np.testing.assert_array_equal(
        hop_distances(indptr, indices, range(1000), transposed=transposed).get(), expected.get()
    )
    tails = csr.tails(indptr, len(indices), np.int64).get()
    arcs = np.stack((tails, indices.get()))
    both = [gpu.asarray(x) for x in rows_of(np.concatenate((arcs, arcs[::-1]), axis=1).T, 3000)]
    expected = hop_distances(*both, range(1000))
    np.testing.assert_array_equal(hop_distances(*both, range(1000), transposed=tuple(both)).get(), expected.get())


@pytest.mark.gpu
def test_distances_beyond_int32_are_refused_on_a_gpu(gpu):
    indptr, indices = map(gpu.asarray, rows_of([(0, 1), (1, 2)], 3))
    with pytest.raises(OverflowError, match="distances exceed int32; use float64"):
        hop_distances(indptr, indices, [0], length=2**30)
    assert hop_distances(indptr, indices, [1], length=2**30).get().tolist() == [[UNREACHABLE, 0, 2**30]]


@pytest.mark.gpu
def test_arrays_of_two_libraries_are_refused(gpu):
    with pytest.raises(TypeError, match="indptr and indices are arrays of NumPy and of CuPy"):
        hop_distances(gpu.zeros(2, np.int64), np.zeros(0, np.int32), [0])

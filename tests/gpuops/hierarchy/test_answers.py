"""Rows and blocks of distances from a hierarchy, compared with Floyd-Warshall and SciPy."""

from dataclasses import replace
from itertools import pairwise

import numba
import numpy as np
import pytest
from families import diagonals
from hypothesis import given
from hypothesis import strategies as st
from road_graphs import DTYPES, ROME, SmallGraph, as_floats, hierarchy_of, made, random_graph
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gpuops import _threads, distance_block, distance_rows, one_to_all
from gpuops.hierarchy import blocks, destinations
from gpuops.hierarchy.memory import kept_most

dtypes = pytest.mark.parametrize("dtype", DTYPES)


def check(graph, dtype, brick, rng, order=None):
    expected, hierarchy = graph.distances(), hierarchy_of(graph, dtype, brick=brick, order=order)
    rows = distance_rows(hierarchy, np.arange(graph.n))
    assert rows.dtype == dtype
    np.testing.assert_array_equal(as_floats(rows), expected)
    origins, ends = (rng.integers(0, graph.n, rng.integers(0, 9)) if graph.n else [] for _ in range(2))
    block = distance_block(hierarchy, origins, ends)
    np.testing.assert_array_equal(block, rows[origins][:, ends] if graph.n else rows)
    for source in range(0, graph.n, 7):
        np.testing.assert_array_equal(as_floats(one_to_all(hierarchy, source)), expected[source])
    return hierarchy


GRID = [(8 * i + j, 8 * i + j + step) for i in range(8) for j in range(8) for step in (1, 8) if step == 8 or j < 7]
FAMILIES = {
    "empty": (0, []),
    "one": (1, [(0, 0)]),
    "no arcs": (5, []),
    "path": (40, list(pairwise(range(40)))),
    "cycle": (33, [(i, (i + 1) % 33) for i in range(33)]),
    "star": (30, [(7, i) for i in range(30)]),
    "tree": (50, [(i, (i - 1) // 3) for i in range(1, 50)]),
    "clique": (20, [(i, j) for i in range(20) for j in range(i)]),
    "cliques": (24, [(i, j) for i in range(24) for j in range(i) if i % 2 == j % 2]),
    "grid": (64, [(i, j) for i, j in GRID if j < 64]),
}
BRICKS = 1, 12, 1024


@dtypes
@pytest.mark.parametrize(("family", "brick", "undirected"), diagonals(list(FAMILIES), BRICKS, [True, False]))
def test_families(dtype, family, brick, undirected):
    graph = made(*FAMILIES[family], undirected=undirected)
    hierarchy = check(graph, dtype, brick, np.random.default_rng(0))
    assert (hierarchy.into is None) == (undirected or graph.n < 6)  # without arcs, or with loops alone


@dtypes
@given(
    seed=st.integers(0, 2**32),
    brick=st.sampled_from(BRICKS),
    closed=st.booleans(),
    negative=st.booleans(),
    undirected=st.booleans(),
)
def test_any_graph(dtype, seed, brick, closed, negative, undirected):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, closed=closed, negative=negative, undirected=undirected)
    check(graph, dtype, brick, rng, rng.permutation(graph.n) if rng.random() < 0.3 else None)


@dtypes
def test_closed_vertices_next_to_each_other(dtype):
    """Vertices 0 to 3 are closed: 0 -> 1 is a path, 0 -> 1 -> 4 is none, and no path passes through 3."""
    graph = made(7, [(0, 1), (1, 4), (0, 2), (2, 3), (4, 5), (5, 3), (3, 6)], undirected=False)
    graph = graph._replace(through=np.arange(7) > 3, weights=np.array([5, 7, 3, 2, 1, 4, 9]))
    hierarchy = check(graph, dtype, 1024, np.random.default_rng(0))
    found = as_floats(distance_rows(hierarchy, [0, 1]))
    assert found[0].tolist() == [0, 5, 3, *[np.inf] * 4]
    assert found[1].tolist() == [np.inf, 0, np.inf, 12, 7, 8, np.inf]


@pytest.mark.parametrize("brick", [12, 1024])
def test_closed_vertices_with_many_arcs(brick):
    """Two closed vertices have arcs to or from most others; in the tree, they would join them all to one clique."""
    roads = [(i, j) for i, j in GRID if j < 64]
    arcs = roads + [(hub, i) for hub in (64, 65) for i in range(0, 64, 3)] + [(64, 65), (65, 64)]
    graph = made(66, arcs + [(j, i) for i, j in roads] + [(i, 64) for i in range(1, 64, 2)], undirected=False)
    graph = graph._replace(through=np.arange(66) < 64)
    hierarchy = check(graph, "int32", brick, np.random.default_rng(0))
    without = hierarchy_of(made(64, roads), "int32", brick=brick)
    assert len(hierarchy.structure.front) <= len(without.structure.front)


def test_rome():
    table = np.loadtxt(ROME, comments=["c", "p"], usecols=(1, 2, 3), dtype=int)
    tails, heads, weights = table.T
    n = max(tails.max(), heads.max())
    order = np.lexsort((weights, heads, tails))
    tails, heads, weights = tails[order] - 1, heads[order] - 1, weights[order]
    hierarchy = hierarchy_of(SmallGraph(n, tails, heads, weights, np.ones(n, bool)), "int32")
    first = np.flatnonzero(np.diff(tails * n + heads, prepend=-1))
    scipy = csr_array((weights[first].astype(float), (tails[first], heads[first])), shape=(n, n))
    sources, ends = np.random.default_rng(0).integers(0, n, (2, 200))
    expected = dijkstra(scipy, indices=sources)
    np.testing.assert_array_equal(as_floats(distance_rows(hierarchy, sources)), expected)
    np.testing.assert_array_equal(as_floats(distance_block(hierarchy, sources, ends)), expected[:, ends])
    np.testing.assert_array_equal(as_floats(one_to_all(hierarchy, sources[0])), expected[0])


# --- Bits -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=DTYPES[:3])
def rounded(request):
    """A hierarchy with small bricks of a 30 x 30 grid with closed vertices and random weights; and all distances."""
    side = 30
    arcs = [(v, v + step) for v in range(side * side - side) for step in (1, side) if step > 1 or v % side < side - 1]
    graph = made(side * side, arcs, through=np.random.default_rng(1).random(side * side) < 0.95)
    weights = np.random.default_rng(2).random(2 * len(arcs))
    graph = graph._replace(weights=np.ceil(1000 * weights) if request.param == "int32" else weights)
    hierarchy = hierarchy_of(graph, request.param, brick=50)
    rows = distance_rows(hierarchy, np.arange(graph.n))
    np.testing.assert_allclose(as_floats(rows), graph.distances(), rtol=1e-5)
    return hierarchy, rows


def test_bits_do_not_depend_on_what_else_is_asked(rounded):
    hierarchy, rows = rounded
    n, rng = len(rows), np.random.default_rng(3)
    many = rng.permutation(n)[:70], rng.permutation(n)[:400]
    for origins, ends in (([5], [800]), ([5, 5, 6], [800, 1, 800]), many):
        np.testing.assert_array_equal(distance_block(hierarchy, origins, ends), rows[np.ix_(origins, ends)])
    np.testing.assert_array_equal(distance_rows(hierarchy, np.arange(n)[::-1]), rows[::-1])
    np.testing.assert_array_equal(distance_rows(hierarchy, [17]), rows[[17]])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_do_not_depend_on_threads_or_memory(rounded, monkeypatch, threads):
    hierarchy, rows = rounded
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
    monkeypatch.setattr(_threads, "_SERIAL_RELAXATIONS", 1)
    monkeypatch.setattr(destinations, "TABLES", 2000)
    monkeypatch.setattr(blocks, "ROUND", 2000)
    monkeypatch.setattr(blocks, "BATCH", 30)
    ends = np.arange(0, len(rows), 2)
    assert len(destinations.Destinations.of(hierarchy, ends).window_starts) > 2
    np.testing.assert_array_equal(distance_block(hierarchy, np.arange(len(rows)), ends), rows[:, ends])


@pytest.mark.parametrize(("available", "times"), [(0, 2), (2**40, 1)])
def test_rows_keep_the_tables_of_all_bricks_if_memory_allows(rounded, monkeypatch, available, times):
    hierarchy, rows = rounded
    windows, right = [], blocks._Plan._made
    monkeypatch.setattr(destinations, "TABLES", 2000)
    monkeypatch.setattr(blocks, "available_memory", lambda: available)
    monkeypatch.setattr(blocks._Plan, "_made", lambda plan, window: windows.append(window) or right(plan, window))
    anew = replace(hierarchy)  # of which nothing is kept yet
    for sources in ([0, 17], [899]):
        np.testing.assert_array_equal(distance_rows(anew, sources), rows[sources])
    assert max(windows) > 1
    assert windows == times * list(range(max(windows) + 1))


def test_a_process_keeps_a_part_for_its_threads(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_DEFAULT_NUM_THREADS", 8)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    assert kept_most(1600) == kept_most(1600, 1 / 4) == 100
    assert kept_most(1600, 1) == 400


def test_one_source_alone_has_the_bits_of_its_row(rounded):
    hierarchy, rows = rounded
    for source in 0, 17, int(np.flatnonzero(hierarchy.structure.place >= hierarchy.structure.open)[0]):
        np.testing.assert_array_equal(one_to_all(hierarchy, source), rows[source])


# --- Arguments --------------------------------------------------------------------------------------------------------


def test_out_is_filled_where_it_lies(rounded):
    hierarchy, rows = rounded
    around = np.zeros((5, 9), rows.dtype)
    window = around[1:4, 2:5]
    assert distance_block(hierarchy, [3, 1, 7], [0, 2, 2], out=window) is window
    np.testing.assert_array_equal(window, rows[np.ix_([3, 1, 7], [0, 2, 2])])
    window[:] = 0
    assert not around.any()


def test_nothing_asked(rounded):
    hierarchy, rows = rounded
    assert distance_rows(hierarchy, []).shape == (0, len(rows))
    assert distance_block(hierarchy, [1, 2], []).shape == (2, 0)


def test_wrong_arguments(rounded):
    hierarchy, rows = rounded
    for ask in distance_rows, one_to_all:
        with pytest.raises(ValueError, match="source 900 is not a vertex; vertices are 0 to 899"):
            ask(hierarchy, [900] if ask is distance_rows else 900)
    with pytest.raises(ValueError, match="destination -1 is not a vertex"):
        distance_block(hierarchy, [0], [-1])
    dtype = rows.dtype
    for out in np.empty((1, 2), "int8"), np.empty((2, 1), dtype), np.empty((1, 4), dtype)[:, ::2]:
        with pytest.raises(ValueError, match=rf"out must be a NumPy array of {dtype}, of shape \(1, 2\)"):
            distance_block(hierarchy, [0], [1, 2], out=out)

"""The kernels of gpuops/sssp on a machine without a GPU: all blocks at once, threads as fibers (host_shim/).

Distances are compared bit for bit with a Bellman-Ford in NumPy, over a layout of the graph written down here.
"""

import re
import weakref
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from families import diagonals, every_kernel, not_launched, usual

from gpuops import (
    NegativeCycleError,
    SearchGraph,
    _cuda,
    arrays,
    batched_shortest_distances,
    search_graph,
    shortest_distances,
    shortest_path_tree,
)
from gpuops._cuda import Program
from gpuops.sssp import batched_cuda, cycle_cuda, launch_cuda, memory_cuda, search_cuda, sssp_cuda, tree_cuda

# Of threads and blocks. 0: in order; else shuffled, and taking turns at atomics. It is the seed of graphs, too.
SEEDS = [0, 1, 2]
DTYPES = ["float32", "float64", "int32"]
KINDS = ["undirected", "directed", "directed, no transpose"]

dtypes = pytest.mark.parametrize("dtype", usual(DTYPES))
seeds = pytest.mark.parametrize("seed", SEEDS)
kinds = pytest.mark.parametrize("kind", KINDS)

# Blocks so small that the grid is a crowd of them, rows cut into pieces, piles that overflow.
SMALL = {"threads": 64, "PIECE": 32}


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    with pytest.MonkeyPatch.context() as patch:
        # There are fifteen programs, and little for each to do.
        patch.setattr(host_shim, "FLAGS", ("-O0", *host_shim.FLAGS[1:]))
        for programs, macros in (
            (memory_cuda.PROGRAMS, {"THIN": 256}),
            (tree_cuda.PROGRAMS, {}),
            (batched_cuda.PROGRAMS, {"THIN": 256, "PULL": 0.5}),  # so small a graph would not be pulled over often
        ):
            for key, program in programs.items():
                patch.setitem(programs, key, program.variant(**SMALL, **macros))
        patch.setattr(memory_cuda, "LEAST_PILE", 8)
        patch.setattr(batched_cuda, "HUB", 3)
        host_shim.start(0, 2)
        yield host_shim


# --- Graphs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Layout(SearchGraph):
    """A graph on the shim, and its arcs in NumPy."""

    tails: np.ndarray = None
    heads: np.ndarray = None
    lengths: np.ndarray = None


def rows(n, tails, heads, weights):
    order = np.lexsort((heads, weights, tails))
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=n)))).astype(np.int64)
    return indptr, heads[order].astype(np.int32), weights[order]


def lay_out(cupy, n, tails, heads, weights, *, through=None, symmetric=False, reverse=True):
    """Without loops and parallel arcs, vertices by falling out-degree."""
    weights = np.asarray(weights)
    order = np.lexsort((weights, heads, tails))
    tails, heads, weights = (np.asarray(x)[order] for x in (tails, heads, weights))
    keep = np.ones(len(tails), bool)
    keep[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    keep &= tails != heads
    rank = np.empty(n, np.int64)
    by_degree = np.argsort(-np.bincount(tails[keep], minlength=n), kind="stable")
    rank[by_degree] = np.arange(n)
    tails, heads, weights = rank[tails[keep]], rank[heads[keep]], weights[keep]
    out = [cupy.asarray(x) for x in rows(n, tails, heads, weights)]
    into = out if symmetric else [cupy.asarray(x) for x in rows(n, heads, tails, weights)]
    if not symmetric and not reverse:
        into = [None] * 3
    if through is not None:
        through = cupy.asarray(np.asarray(through)[by_degree])
    negative = bool((weights < 0).any())
    numbers = cupy.asarray(by_degree.astype(np.int32)), cupy.asarray(rank.astype(np.int32))
    return Layout(*out, *into, through, *numbers, negative, None, tails, heads, weights), rank


def both_ways(tails, heads, weights):
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    _, first = np.unique(low * (high.max() + 1) + high, return_index=True)
    low, high, weights = low[first], high[first], weights[first]
    return np.concatenate((low, high)), np.concatenate((high, low)), np.concatenate((weights, weights))


def random_weights(rng, size, dtype):
    return rng.integers(1, 256, size, dtype="int32") if dtype == "int32" else (1 - rng.random(size)).astype(dtype)


def skewed(cupy, seed, dtype, kind, n=150, m=1200, **options):
    """Few vertices with many arcs, many with few; some with none."""
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random((2, m)) ** 3).astype(np.int64)
    arcs = tails, heads, random_weights(rng, m, dtype)
    if kind == "undirected":
        return lay_out(cupy, n, *both_ways(*arcs), symmetric=True, **options)[0]
    return lay_out(cupy, n, *arcs, reverse=kind == "directed", **options)[0]


def grid(cupy, side, weights, dtype):
    vertices = np.arange(side * side).reshape(side, side)
    tails = np.concatenate((vertices[:, :-1].ravel(), vertices[:-1].ravel()))
    heads = np.concatenate((vertices[:, 1:].ravel(), vertices[1:].ravel()))
    return lay_out(cupy, side * side, *both_ways(tails, heads, weights(len(tails)).astype(dtype)), symmetric=True)


# --- References -----------------------------------------------------------------------------------------------------


def unreachable(dtype):
    return np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max


def start_from(graph, sources, starts=0):
    distances = np.full(graph.n, unreachable(graph.dtype), graph.dtype)
    distances[sources] = starts
    return distances


def bellman_ford_in_numpy(graph, starts):
    """Sums of the dtype; int32 in 64 bits. Closed vertices push what they started with."""
    wide = graph.dtype if graph.dtype.kind == "f" else np.int64
    infinity = unreachable(graph.dtype)
    through = np.ones(graph.n, bool) if graph.through is None else graph.through.get()
    distances, pushing, may_push = starts.astype(wide), starts.astype(wide), np.ones(graph.n, bool)
    for _ in range(graph.n + 2):
        arcs = (pushing < infinity)[graph.tails] & may_push[graph.tails]
        before = distances.copy()
        np.minimum.at(distances, graph.heads[arcs], pushing[graph.tails[arcs]] + graph.lengths[arcs])
        if (before == distances).all() and pushing is not starts and may_push is through:
            return distances.astype(graph.dtype)
        pushing, may_push = distances, through
    raise AssertionError("a negative cycle")


def assert_same_bits(result, expected):
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.get().view(f"i{expected.itemsize}"), expected.view(f"i{expected.itemsize}"))


def solve(cupy, graph, starts, pending=None):
    """Distances on the shim, and what the search did."""
    distances = cupy.asarray(starts)
    search = search_cuda.Search(graph, distances, graph.negative)
    assert search.run(pending)
    return distances, search.statistics


def check(cupy, graph, starts):
    distances, statistics = solve(cupy, graph, starts)
    assert_same_bits(distances, bellman_ford_in_numpy(graph, starts))
    check_tree(cupy, graph, distances, distances.get() == starts)
    return statistics


def check_tree(cupy, graph, distances, is_start):
    d = distances.get()
    reached = d < unreachable(graph.dtype)
    roots = is_start & reached
    predecessors = sssp_cuda.tree(graph, distances, cupy.asarray(roots))
    assert predecessors.dtype == np.int32
    p = predecessors.get()
    np.testing.assert_array_equal(p >= 0, reached & ~roots)
    weight_of = dict(zip(zip(graph.tails.tolist(), graph.heads.tolist(), strict=True), graph.lengths, strict=True))
    children = np.flatnonzero(p >= 0)
    for v in children:
        assert d[p[v]] + weight_of[p[v], v] == d[v]
        assert graph.through is None or graph.through[p[v]] or roots[p[v]]
    ancestors = np.where(p >= 0, p, np.arange(graph.n))
    for _ in range(graph.n.bit_length()):
        ancestors = ancestors[ancestors]
    assert roots[ancestors[children]].all(), "not a forest"
    return p


# --- Weights that are not negative ------------------------------------------------------------------------------------


@dtypes
@kinds
def test_distances_and_tree(cupy, dtype, kind):
    seed = 1 + DTYPES.index(dtype) + KINDS.index(kind)
    cupy.start(seed, 3)
    graph = skewed(cupy, seed, dtype, kind)
    check(cupy, graph, start_from(graph, [30]))


def test_pulls_and_pieces_take_place(cupy):
    """Less is read than with arcs relaxed once each, and rows are cut."""
    cupy.start(1, 2)
    graph = skewed(cupy, 5, "float32", "undirected", n=300, m=4000)
    assert np.diff(graph.indptr.get()).max() > 4 * SMALL["PIECE"]
    statistics = check(cupy, graph, start_from(graph, [0]))
    assert statistics.pulls > 0
    assert statistics.touched < 1.2 * graph.m


@seeds
def test_grid(cupy, seed):
    cupy.start(seed, 3)
    rng = np.random.default_rng(seed)
    graph, _ = grid(cupy, 12, lambda size: random_weights(rng, size, DTYPES[seed]), DTYPES[seed])
    check(cupy, graph, start_from(graph, [17]))


@dtypes
def test_warps_go_ahead_along_short_rows(cupy, dtype):
    """On a path, several vertices a round; and what a warp cannot take along goes to the queue."""
    cupy.start(2, 3)
    n = 300
    tails = np.arange(n - 1)
    graph, rank = lay_out(cupy, n, tails, tails + 1, np.ones(n - 1, dtype))
    assert check(cupy, graph, start_from(graph, rank[[0]])).rounds < n / 4
    # Vertices with long rows on the way, and heavy arcs that wait for a later window.
    rng = np.random.default_rng(1)
    tails, heads = np.append(tails, np.full(60, 50)), np.append(tails + 1, rng.integers(0, n, 60))
    weights = np.where(rng.random(len(tails)) < 0.2, 1000, 1).astype(dtype)
    graph, rank = lay_out(cupy, n, *both_ways(tails, heads, weights), symmetric=True)
    for ahead in memory_cuda.AHEAD, 0:
        search = search_cuda.Search(graph, cupy.asarray(start_from(graph, rank[[0]])), signed=False)
        search.memory.given["ahead"] = ahead
        assert search.run()
        assert_same_bits(search.distances, bellman_ford_in_numpy(graph, start_from(graph, rank[[0]])))


def test_several_sources_with_starts(cupy):
    cupy.start(1, 3)
    graph = skewed(cupy, 3, "float32", "directed")
    check(cupy, graph, start_from(graph, [5, 60, 149], np.array([0.25, 0, 3], "float32")))


def test_nothing_to_do(cupy):
    none = np.empty(0, np.int64)
    empty, _ = lay_out(cupy, 3, none, none, none.astype("float32"), symmetric=True)
    assert check(cupy, empty, start_from(empty, [1])).rounds == 0
    graph = skewed(cupy, 3, "float32", "undirected")
    assert check(cupy, graph, start_from(graph, [])).rounds == 0


@kinds
def test_closed_vertices_push_only_where_they_are_sources(cupy, kind):
    seed = KINDS.index(kind)
    cupy.start(seed, 3)
    through = np.random.default_rng(seed).random(150) < 0.6
    graph = skewed(cupy, seed, "int32", kind, through=through)
    closed, open_ = (np.flatnonzero(graph.through.get() == x)[:20] for x in (False, True))
    for sources in closed[:1], np.concatenate((closed, open_)):
        check(cupy, graph, start_from(graph, sources))


def test_a_closed_source_pushes_its_start(cupy):
    """0 -> 1 -> 2 with 1 closed: through 1 it would be 2, from the start of 1 it is 6."""
    for seed in SEEDS:
        cupy.start(seed, 3)
        graph, rank = lay_out(cupy, 3, [0, 1], [1, 2], np.array([1, 1], "int32"), through=[True, False, True])
        distances, _ = solve(cupy, graph, start_from(graph, rank[[0, 1]], [0, 5]))
        assert distances.get()[rank].tolist() == [0, 1, 6]


def test_only_pending_vertices_push(cupy):
    cupy.start(1, 3)
    graph = skewed(cupy, 3, "float64", "directed")
    final = bellman_ford_in_numpy(graph, start_from(graph, [2]))
    nobody = cupy.asarray(np.zeros(graph.n, bool))
    rough = np.where(np.arange(graph.n) % 3, final + 1, final)
    distances, statistics = solve(cupy, graph, rough, nobody)
    assert_same_bits(distances, rough)
    assert (statistics.rounds, statistics.touched) == (0, 0)
    # A vertex came nearer: it alone is pending, as after news from another worker.
    nearer = final.copy()
    nearer[7] = final[7] / 2
    pending = np.zeros(graph.n, bool)
    pending[7] = True
    distances, statistics = solve(cupy, graph, nearer, cupy.asarray(pending))
    assert_same_bits(distances, bellman_ford_in_numpy(graph, nearer))
    assert statistics.touched < graph.m


@pytest.mark.parametrize("pending", [False, True])
def test_no_cursor_is_what_memory_held_before(cupy, pending):
    """A warp may read the cursor of a vertex that another one is about to store."""
    graph = skewed(cupy, 3, "float32", "directed")
    search = search_cuda.Search(graph, cupy.asarray(start_from(graph, [2])), signed=False)
    assert search.run(cupy.asarray(np.arange(graph.n) == 2) if pending else None)
    assert (search.memory.arrays["states"].get().view(np.int32).reshape(graph.n, 4)[:, 2] >= 0).all()  # cursors


@pytest.mark.parametrize(("dtype", "kind"), diagonals(DTYPES, KINDS))
def test_ties_make_a_forest(cupy, dtype, kind):
    """Zero weights; and in floats, weights too small to show in a sum."""
    seed = DTYPES.index(dtype)
    cupy.start(seed, 3)
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, 120, (2, 600))
    weights = np.where(rng.random(600) < 0.7, 0, rng.integers(1, 4, 600)).astype(dtype)
    if weights.dtype.kind == "f":
        weights[rng.random(600) < 0.3] = 1e-30
    arcs = both_ways(tails, heads, weights) if kind == "undirected" else (tails, heads, weights)
    graph, _ = lay_out(cupy, 120, *arcs, symmetric=kind == "undirected", reverse=kind == "directed")
    check(cupy, graph, start_from(graph, [3, 70, 80]))


@dtypes
@pytest.mark.parametrize("reverse", [True, False])
def test_ties_beside_negative_weights_make_a_forest(cupy, dtype, reverse):
    """Many cycles of length 0: tight arcs that are taken as they come do not lead to the root."""
    cupy.start(2, 3)
    rng = np.random.default_rng(4)
    tails, heads = (100 * rng.random((2, 300)) ** 2).astype(np.int64)
    tails, heads = np.concatenate((tails, heads)), np.concatenate((heads, tails))
    potential = rng.integers(0, 100, 100)
    weights = np.tile(rng.integers(0, 2, 300), 2) + potential[tails] - potential[heads]
    graph, _ = lay_out(cupy, 100, tails, heads, weights.astype(dtype), reverse=reverse)
    assert graph.negative
    check(cupy, graph, start_from(graph, [3]))


def test_the_first_tight_arc_of_a_row_is_taken(cupy):
    cupy.start(1, 3)
    # The last vertex has 99 arcs from vertices at falling distances and of rising weights, all of them tight.
    hub = 100
    tails = np.concatenate((np.zeros(99, int), np.arange(1, 100)))
    heads = np.concatenate((np.arange(1, 100), np.full(99, hub)))
    weights = np.concatenate((np.arange(100, 1, -1), np.arange(2, 101))).astype("int32")
    weights[99:] = 102 - weights[:99]
    graph, rank = lay_out(cupy, 101, tails, heads, weights)
    starts = start_from(graph, rank[[0]])
    distances, _ = solve(cupy, graph, starts)
    assert distances.get()[rank[hub]] == 102
    p = check_tree(cupy, graph, distances, starts == 0)
    assert p[rank[hub]] == rank[1]  # at 100, by the arc of weight 2


# --- Overflow ---------------------------------------------------------------------------------------------------------


def test_int32_sums_that_do_not_fit_are_an_error(cupy):
    far = 2**30
    path = np.array([0, 1, 2]), np.array([1, 2, 3]), np.full(3, far, "int32")
    graph, rank = lay_out(cupy, 4, *path)
    with pytest.raises(OverflowError, match="float64"):
        sssp_cuda.improve(graph, cupy.asarray(start_from(graph, rank[[0]])))
    with pytest.raises(OverflowError, match="float64"):
        batched_cuda.improve_columns(graph, cupy.asarray(start_from(graph, rank[[0]])[:, None]))


def test_int32_sums_of_a_closed_vertex_count_only_where_it_is_a_source(cupy):
    """0 -> 1 -> 2 with 1 closed and at 2^30; the arc 0 -> 3 has another sum that does not fit."""
    arcs = np.array([0, 1, 0]), np.array([1, 2, 3]), np.array([2**30, 2**30, 2**31 - 2], "int32")
    graph, rank = lay_out(cupy, 4, *arcs, through=[True, False, True, True])
    starts = start_from(graph, rank[[0, 1, 3]], [5, 2**30, 7])
    with pytest.raises(OverflowError, match="float64"):
        solve(cupy, graph, starts)
    pending = np.zeros(graph.n, bool)
    pending[rank[0]] = True
    distances, _ = solve(cupy, graph, starts, cupy.asarray(pending))
    assert distances.get()[rank].tolist() == [5, 2**30, unreachable(graph.dtype), 7]


def test_int32_sums_that_do_not_matter_may_not_fit(cupy):
    far = 2**30
    arcs = np.array([0, 1, 0, 2]), np.array([1, 2, 2, 0]), np.array([far, far, 5, 2**31 - 2], "int32")
    graph, rank = lay_out(cupy, 3, *arcs)
    starts = start_from(graph, rank[[0]])
    distances, _ = solve(cupy, graph, starts)
    assert distances.get()[rank].tolist() == [0, far, 5]
    columns = cupy.asarray(starts[:, None])
    batched_cuda.improve_columns(graph, columns)
    assert columns.get()[rank, 0].tolist() == [0, far, 5]


# --- Negative weights -------------------------------------------------------------------------------------------------


def shifted(cupy, seed, dtype, n=150, m=1200, **options):
    """Weights shifted by potentials, exact in float32: no cycle becomes negative."""
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random((2, m)) ** 2).astype(np.int64)
    potential = rng.integers(0, 1000, n)
    weights = rng.integers(1, 1000, m) + potential[tails] - potential[heads]
    scale = 1 if dtype == "int32" else 2.0**-10
    return lay_out(cupy, n, tails, heads, (weights * scale).astype(dtype), **options)


@dtypes
def test_negative_weights(cupy, dtype):
    seed = DTYPES.index(dtype)
    cupy.start(seed, 3)
    for reverse in True, False:
        graph, _ = shifted(cupy, seed, dtype, reverse=reverse)
        assert graph.negative
        assert check(cupy, graph, start_from(graph, [0])).windows > 1
    through = np.random.default_rng(seed).random(150) < 0.7
    graph, _ = shifted(cupy, seed, dtype, through=through)
    check(cupy, graph, start_from(graph, [int(np.flatnonzero(~graph.through.get())[0])]))


@pytest.mark.parametrize(("dtype", "closed"), diagonals(DTYPES, [False, True]))
def test_later_searches_go_by_the_distances_of_an_earlier_one(cupy, dtype, closed, monkeypatch):
    """Then fewer arcs are read again, once the width of windows suits; also where the first search came nowhere."""
    seed = DTYPES.index(dtype)
    cupy.start(seed, 3)
    monkeypatch.setattr(memory_cuda, "AGAIN", 1)
    indptr, *arcs = arcs_outside(seed, dtype, n=400, m=6000, negative=20)
    through = np.random.default_rng(seed).random(401) < 0.9 if closed else None
    host, device = on_both(cupy, (np.append(indptr, indptr[-1]), *arcs), through)
    nowhere, read = 400, {}
    for source in nowhere, 0, 1, 2, nowhere, 3, 4, 5, 6:
        assert_same_bits(shortest_distances(device, [source]), shortest_distances(host, [source]))
        (memory,) = memory_cuda.idle(device)[True]
        read[source] = memory.control.get()[0].touched
    assert read[nowhere] == 0
    assert memory.learned >= read[0]
    assert min(read[4], read[5], read[6]) < 0.85 * read[0]


@dtypes
def test_a_search_that_is_interrupted_goes_on(cupy, dtype, monkeypatch):
    monkeypatch.setattr(search_cuda, "FIRST_LOOK", 1)
    seed = 1 + DTYPES.index(dtype)
    cupy.start(seed, 3)
    graph, _ = shifted(cupy, seed, dtype)
    starts = start_from(graph, [0])
    distances = cupy.asarray(starts)
    assert sssp_cuda.improve(graph, distances) > 3
    assert_same_bits(distances, bellman_ford_in_numpy(graph, starts))


def test_a_look_for_a_negative_cycle_is_one_launch(cupy, monkeypatch):
    """Where there is none: no arrays of CuPy's, no arithmetic with them."""
    cupy.start(3, 3)
    graph, _ = shifted(cupy, 3, "float32")
    search = search_cuda.Search(graph, cupy.asarray(start_from(graph, [0])), signed=True)
    assert not search.run(most_rounds=2)
    before = cupy.launches
    monkeypatch.setattr(cupy, "arange", None)
    search.refuse_negative_cycle()
    assert cupy.launches == before + 1
    assert search.run()
    assert_same_bits(search.distances, bellman_ford_in_numpy(graph, start_from(graph, [0])))


@dtypes
@pytest.mark.parametrize("first_look", [1, 64])
def test_a_negative_cycle_is_returned(cupy, dtype, first_look, monkeypatch):
    seed = DTYPES.index(dtype)
    monkeypatch.setattr(search_cuda, "FIRST_LOOK", first_look)
    cupy.start(seed, 3)
    graph, rank = shifted(cupy, seed, dtype)
    unit = 1 if dtype == "int32" else 2.0**-10
    cycle = np.arange(10, 15)
    # The five arcs of the cycle weigh -1 together; the arcs to it are there or, unreachable, are not.
    extra = np.array([3, -7, 2, 4, -3]) * unit
    others = ~np.isin(graph.heads, rank[cycle]) & ~np.isin(graph.tails, rank[cycle])
    back = np.argsort(rank)
    tails, heads, weights = back[graph.tails[others]], back[graph.heads[others]], graph.lengths[others]
    tails, heads = np.concatenate((tails, cycle)), np.concatenate((heads, np.roll(cycle, -1)))
    weights = np.concatenate((weights, extra.astype(dtype)))
    apart, apart_rank = lay_out(cupy, 150, tails, heads, weights)
    check(cupy, apart, start_from(apart, apart_rank[[0]]))
    joined, joined_rank = lay_out(
        cupy, 150, np.append(tails, 0), np.append(heads, 12), np.append(weights, np.array(5, dtype))
    )
    with pytest.raises(NegativeCycleError) as caught:
        sssp_cuda.improve(joined, cupy.asarray(start_from(joined, joined_rank[[0]])))
    found = [int(np.flatnonzero(joined_rank == v)[0]) for v in caught.value.vertices]
    assert found == np.roll(cycle, -(found[0] - 10)).tolist()
    assert caught.value.weight == -unit


def test_a_cycle_that_falls_by_rounding_ends_with_an_error(cupy, monkeypatch):
    """Its weights add up to 0, but beside 1023 the small ones, less than half of 2^-14, are lost."""
    monkeypatch.setattr(search_cuda, "FIRST_LOOK", 4)
    cupy.start(1, 2)
    small = 7 * 2.0**-18
    weights = np.array([0, 1023, small, small, -1023, -2 * small], "float32")
    graph, rank = lay_out(cupy, 6, [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 1], weights)
    with pytest.raises(NegativeCycleError, match="rounds to less than 0") as caught:
        sssp_cuda.improve(graph, cupy.asarray(start_from(graph, rank[[0]])))
    assert caught.value.vertices == ()


# --- Many searches at once --------------------------------------------------------------------------------------------


def check_batch(cupy, graph, columns):
    distances = cupy.asarray(columns)
    statistics = batched_cuda.improve_columns(graph, distances)
    expected = np.stack([bellman_ford_in_numpy(graph, column) for column in columns.T], axis=1)
    assert_same_bits(distances, expected)
    return statistics


def columns_from(graph, sources):
    return np.stack([start_from(graph, [source]) for source in sources], axis=1)


@pytest.mark.parametrize(("dtype", "searches"), [("float32", 37), ("float64", 5), ("int32", 32)])
@kinds
def test_many_searches_at_once(cupy, dtype, searches, kind):
    seed = DTYPES.index(dtype) + KINDS.index(kind)
    cupy.start(seed, 2)
    graph = skewed(cupy, seed, dtype, kind, n=80, m=700)
    assert graph.indptr[1] > 3 * graph.m / 80
    assert graph.indptr[1] > SMALL["PIECE"]
    sources = np.random.default_rng(seed).integers(0, graph.n, searches)
    statistics = check_batch(cupy, graph, columns_from(graph, sources))
    if kind == "directed, no transpose":
        assert (statistics.pulls, statistics.windows) == (0, -(-searches // 32))
    else:
        assert statistics.pulls > 0


def test_long_rows_are_pulled_to_their_end(cupy):
    """From 0 to 120 vertices, from these to 10, and on to 10 others: any of the 120 may be on the way."""
    cupy.start(1, 2)
    rng = np.random.default_rng(1)
    middle, last = np.arange(1, 121), np.arange(121, 131)
    tails = np.concatenate((np.zeros(120, int), np.repeat(middle, 10), last))
    heads = np.concatenate((middle, np.tile(last, 120), last + 10))
    # The 120 are near: in the first window they hold back the other arcs.
    weights = np.where(tails == 0, rng.integers(1, 10, len(tails)), rng.integers(100, 200, len(tails)))
    graph, rank = lay_out(cupy, 141, tails, heads, weights.astype("int32"))
    assert check_batch(cupy, graph, columns_from(graph, rank[[0, 0, 7, 130]])).pulls > 0


@seeds
def test_many_searches_on_a_grid(cupy, seed):
    cupy.start(seed, 2)
    rng = np.random.default_rng(seed)
    graph, _ = grid(cupy, 9, lambda size: random_weights(rng, size, DTYPES[seed]), DTYPES[seed])
    assert check_batch(cupy, graph, columns_from(graph, [0, 80, 40])).windows > 1


@kinds
def test_many_searches_from_closed_vertices(cupy, kind):
    cupy.start(1, 2)
    graph = skewed(cupy, 4, "float32", kind, n=100, m=900, through=np.arange(100) % 3 > 0)
    statistics = check_batch(cupy, graph, columns_from(graph, range(20)))
    assert statistics.pulls > 0 or kind != "undirected"


def test_many_searches_from_many_vertices_each(cupy):
    """Some from everywhere, one from nowhere; zero weights; vertices that others do not reach."""
    cupy.start(2, 2)
    rng = np.random.default_rng(3)
    tails, heads = (90 * rng.random((2, 400)) ** 2).astype(np.int64)
    weights = rng.integers(0, 5, 400).astype("int32")
    graph, _ = lay_out(cupy, 100, *both_ways(tails, heads, weights), symmetric=True)
    columns = columns_from(graph, range(7))
    columns[rng.random(columns.shape) < 0.1] = 9
    columns[:, 3] = unreachable("int32")
    columns[:, 4] = np.arange(100)
    check_batch(cupy, graph, columns)
    weights[...] = 0
    graph, _ = lay_out(cupy, 100, *both_ways(tails, heads, weights), symmetric=True)
    check_batch(cupy, graph, columns)


# --- In the numbering outside -----------------------------------------------------------------------------------------


def arcs_outside(seed, dtype, n=150, m=1200, negative=0):
    """Rows with loops and parallel arcs; some vertices have no arc."""
    rng = np.random.default_rng(seed)
    tails, heads = np.sort((n * rng.random(m) ** 3).astype(np.int64)), (n * rng.random(m) ** 3).astype(np.int64)
    weights = rng.integers(1, 256, m)
    if negative:
        potential = rng.integers(0, 300 * negative, n)
        weights = np.where(tails == heads, 1, weights + potential[tails] - potential[heads])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=n))))
    return indptr, heads, weights.astype(dtype)


def on_both(cupy, arrays, through=None, **options):
    host = search_graph(*arrays, through=through, **options)
    mask = None if through is None else cupy.asarray(through)
    return host, search_graph(*map(cupy.asarray, arrays), through=mask, **options)


@pytest.mark.parametrize(("dtype", "reverse"), diagonals(DTYPES, [True, False]))
@pytest.mark.parametrize(("closed", "negative"), [(False, False), (True, False), (True, True)])
def test_searches_have_the_bits_of_the_cpu(cupy, dtype, reverse, closed, negative):
    seed = DTYPES.index(dtype)
    cupy.start(seed, 3)
    through = np.random.default_rng(seed).random(150) < 0.8 if closed else None
    if closed:
        through[0] = False  # the only source of the first searches
    host, device = on_both(cupy, arcs_outside(seed, dtype, negative=negative), through, reverse=reverse)
    asked = [{}] if negative else [{}, {"cutoff": 150}, {"targets": [3, 149]}, {"targets": [9], "cutoff": 30.5}]
    for sources, starts in ([0], None), ([5, 0, 149, 5, 70], [3, 1, 0, 2, 40]):
        for options in asked:
            expected = shortest_distances(host, sources, starts=starts, **options)
            found = shortest_distances(device, sources, starts=starts, **options)
            assert_same_bits(found, expected)
            for begins in [] if options else [None, starts]:
                tree = shortest_path_tree(device, found, sources, starts=begins)
                internal, roots = found[device.order], cupy.zeros((150,), bool)
                at = np.array(sources)
                reached = np.asarray(found)[at] < unreachable(dtype)
                if begins is not None:
                    least = [min(b for s, b in zip(sources, starts, strict=True) if s == v) for v in sources]
                    reached &= np.asarray(found)[at] == least
                roots[np.asarray(device.rank)[at[reached]]] = True
                inside = np.asarray(sssp_cuda.tree(device, cupy.asarray(internal), roots))
                order = np.asarray(device.order)
                expected_tree = np.where(inside < 0, -1, order[inside])[np.asarray(device.rank)]
                if not closed or begins is None:
                    np.testing.assert_array_equal(tree, expected_tree)


def test_starts_below_zero_have_the_bits_of_the_cpu(cupy):
    cupy.start(1, 2)
    host, device = on_both(cupy, arcs_outside(4, "float32"))
    for cutoff in None, 20, -1:
        expected = shortest_distances(host, [3, 80], starts=[-5, 2], cutoff=cutoff)
        found = shortest_distances(device, [3, 80], starts=[-5, 2], cutoff=cutoff)
        assert_same_bits(found, expected)
        tree = shortest_path_tree(device, found, [3, 80], starts=[-5, 2])
        assert (np.asarray(tree) >= 0).sum() == np.isfinite(expected).sum() - (expected[[3, 80]] < [0, 2.5]).sum()


@pytest.mark.parametrize("seed", range(3))
def test_a_cutoff_is_one_of_distances_whatever_was_searched_for_before(cupy, seed):
    """A start below zero, and distances of searches before, from elsewhere, that might pass for potentials."""
    cupy.start(1, 2)
    host, device = on_both(cupy, arcs_outside(seed, "float32"))
    for source, start, cutoff in (3, -500, None), (80, -5, 150), (0, -1, 60), (9, -300, -100):
        asked = {"starts": [start], "cutoff": cutoff}
        found = shortest_distances(device, [source], **asked)
        assert_same_bits(found, shortest_distances(host, [source], **asked))


def test_searches_that_reach_nothing(cupy):
    host, device = on_both(cupy, (np.zeros(4, int), np.zeros(0, int), np.zeros(0, "float32")))
    for sources in [], [1], [0, 2]:
        found = shortest_distances(device, sources)
        assert_same_bits(found, shortest_distances(host, sources))
        assert shortest_path_tree(device, found, sources).tolist() == [-1, -1, -1]
    assert_same_bits(batched_shortest_distances(device, [1, 2]), batched_shortest_distances(host, [1, 2]))
    assert batched_shortest_distances(device, []).shape == (0, 3)
    nothing = search_graph(*(cupy.asarray(x) for x in (np.zeros(1, int), np.zeros(0, int), np.zeros(0, "int32"))))
    assert shortest_distances(nothing, []).shape == (0,)
    assert sssp_cuda.improve(nothing, cupy.empty((0,), np.int32)) == 0


@pytest.mark.parametrize(("dtype", "searches"), [("float32", 37), ("float64", 3), ("int32", 64)])
def test_rows_of_many_searches_have_the_bits_of_the_cpu(cupy, dtype, searches):
    cupy.start(1, 2)
    host, device = on_both(cupy, arcs_outside(2, dtype, n=80, m=500))
    sources = np.random.default_rng(5).integers(0, 80, searches)
    assert_same_bits(batched_shortest_distances(device, sources), batched_shortest_distances(host, sources))


@pytest.mark.parametrize("options", [{"limit": np.float32(3)}, {"targets": np.array([1])}])
def test_a_search_ends_where_nothing_more_is_asked_for(cupy, options, monkeypatch):
    """On a long path, near its beginning; and the next search takes the memory of the last."""
    monkeypatch.setattr(memory_cuda, "AHEAD", 0)
    cupy.start(1, 2)
    n = 400
    arrays = np.append(np.arange(n), n - 1), np.arange(1, n), np.ones(n - 1, "float32")
    device = search_graph(*map(cupy.asarray, arrays))
    rounds = []
    for asked in {}, options:
        result = cupy.empty((n,), np.float32)
        begin = {"targets": None, "limit": None} | asked
        begin = search_cuda.Beginning(np.array([0]), np.zeros(1, "float32"), result=result, **begin)
        search = search_cuda.Search(device, None, signed=False, begin=begin)
        search.run_to_the_end()
        rounds.append(search.memory.control.get()[0].rounds)
        last = search.memory
    assert rounds[0] >= n - 1 > 20 > rounds[1]
    assert np.isfinite(np.asarray(result)).sum() < 5
    assert search_cuda.Search(device, None, signed=False).memory is last


def test_a_search_and_a_tree_make_no_arrays_but_their_results(cupy, monkeypatch):
    """What else they need stays with the graph, and what goes to the device goes in one copy."""
    device = on_both(cupy, arcs_outside(1, "float32"))[1]
    shortest_path_tree(device, shortest_distances(device, [0]), [0])
    made, empty = [], cupy.empty
    monkeypatch.setattr(cupy, "empty", lambda *shape: made.append(shape) or empty(*shape))
    distances = shortest_distances(device, [7])
    assert len(made) == 1
    shortest_path_tree(device, distances, [7])
    assert len(made) == 2


@pytest.mark.parametrize("reverse", [True, False])
def test_memory_of_searches_is_freed_with_the_graph(cupy, reverse):
    """At once, without a pass of the garbage collector."""
    device = on_both(cupy, arcs_outside(1, "float32"), reverse=reverse)[1]
    shortest_path_tree(device, shortest_distances(device, [0]), [0])
    batched_shortest_distances(device, [0, 1])
    memory = weakref.ref(memory_cuda.idle(device)[False][0])
    del device
    assert memory() is None


@pytest.mark.parametrize(("dtype", "negative", "waiting"), [("float32", 0, 0), ("int32", 0, 1), ("float32", 1, 1)])
def test_a_search_is_one_launch_and_waits_only_if_it_may_fail(cupy, monkeypatch, dtype, negative, waiting):
    device = on_both(cupy, arcs_outside(1, dtype, negative=negative))[1]
    shortest_distances(device, [0])
    waits, orders = [], []
    get = cupy.ndarray.get
    monkeypatch.setattr(cupy.ndarray, "get", lambda array, **options: waits.append(1) or get(array, **options))
    stream = SimpleNamespace(synchronize=lambda: waits.append(1), wait_event=orders.append)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: stream)
    memory, copies = memory_cuda.idle(device)[bool(negative)][0], []
    copied = SimpleNamespace(record=lambda: None, synchronize=lambda: copies.append(1))
    monkeypatch.setattr(memory.control, "copied", copied)
    before = cupy.launches
    distances = shortest_distances(device, [7])
    assert (cupy.launches - before, len(waits)) == (1, waiting)
    assert waits or copies  # else the tree would change what the search has not read yet
    shortest_path_tree(device, distances, [7])
    assert (cupy.launches - before, len(waits)) == (2, waiting + 1)
    assert orders == [memory.done] * 2  # both use the memory of the first search


def test_a_search_looks_at_what_stays_as_it_is_once(cupy, monkeypatch):
    """The fields of its graph, the grid of its launch, and where arrays of the host lie beside the control block."""
    device = on_both(cupy, arcs_outside(1, "float32"))[1]
    shortest_path_tree(device, shortest_distances(device, [0], targets=[3]), [0])
    looks = []
    for module, name in (
        (arrays.dataclasses, "fields"),
        (_cuda, "multiprocessors"),
        (launch_cuda.itertools, "accumulate"),
    ):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, original=original: looks.append(1) or original(*given))
    shortest_path_tree(device, shortest_distances(device, [7], targets=[5]), [7])
    assert not looks


# --- All of them ------------------------------------------------------------------------------------------------------


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start(0, 2)
    for dtype in DTYPES if variants else ["int32"]:
        for graph in skewed(cupy, 1, dtype, "directed", n=50, m=200), shifted(cupy, 1, dtype, n=50, m=200)[0]:
            check(cupy, graph, start_from(graph, [0]))
        search = search_cuda.Search(graph, cupy.asarray(start_from(graph, [0])), signed=True)
        search.run(most_rounds=1)
        search.refuse_negative_cycle()
        graph = skewed(cupy, 1, dtype, "directed", n=50, m=200)
        batched_cuda.improve_columns(graph, cupy.asarray(start_from(graph, [0])[:, None]))
        batched_shortest_distances(on_both(cupy, arcs_outside(1, dtype))[1], [0])
    modules = memory_cuda, tree_cuda, batched_cuda
    programs = [cycle_cuda.PROGRAM, *(program for module in modules for program in module.PROGRAMS.values())]
    assert not not_launched(programs, cupy.launched, variants=variants)


# --- Broken on purpose ------------------------------------------------------------------------------------------------


def run_where_barriers_matter(cupy):
    for seed in 1, 2:
        cupy.start(seed, 2)
        graph = skewed(cupy, seed, "int32", "undirected")
        check(cupy, graph, start_from(graph, [0]))


def edit(monkeypatch, pattern, replacement):
    """Let gpuops launch kernels of another text."""
    source = Program.source

    def edited(program):
        text, count = re.subn(pattern, replacement, source(program), flags=re.S)
        assert count == ("arrive_and_wait" in text)  # not in what lays graphs out
        return text

    monkeypatch.setattr(Program, "source", edited)


def test_a_grid_that_does_not_arrive_is_named(cupy, monkeypatch):
    edit(monkeypatch, r'asm volatile\("red\.release.*?"memory"\);', "")
    with pytest.raises(cupy.KernelError, match="all blocks wait for each other"):
        run_where_barriers_matter(cupy)


def test_without_a_mutation_nothing_is_caught(cupy):
    run_where_barriers_matter(cupy)

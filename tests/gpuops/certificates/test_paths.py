"""The certificate of paths: right results pass, and each rule catches the damage that is its own."""

import heapq
import re

import numpy as np
import pytest
from families import usual
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import bellman_ford, dijkstra, johnson

from gpuops.certificates import verify_paths
from gpuops.errors import NegativeCycleError, VerificationError
from gpuops.numbers import outside_infinity
from pipelines.generators import Dag, Grid, NegativeCycle, RMat, Road, UniformRandom, csr

DTYPES = ["float32", "float64", "int32", "int16"]


def from_arcs(n, *arcs, dtype="float64"):
    """A graph in CSR from arcs (tail, head, weight)."""
    tails, heads, weights = zip(*arcs, strict=True)
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return indptr, np.array(heads, dtype=np.int32)[order], np.array(weights, dtype=dtype)[order]


def solve(graph, sources, dtype, starts=0, through=None, cutoff=None):
    """Dijkstra with a heap, sums rounded to the dtype, straight from the definition: distances, predecessors."""
    indptr, indices, weights = graph
    n, kind = len(indptr) - 1, np.dtype(dtype).type
    weights = weights.astype(dtype)
    unreachable = outside_infinity(dtype)
    distances, predecessors = np.full(n, unreachable, dtype=dtype), np.full(n, -1)
    heap = []
    for s, start in zip(sources, np.broadcast_to(starts, len(sources)), strict=True):
        heap.append((kind(start), s, -1))
    heapq.heapify(heap)
    begun = set()
    while heap:
        d, v, u = heapq.heappop(heap)
        if cutoff is not None and d > cutoff:
            break
        settles = d < distances[v]
        if settles:
            distances[v], predecessors[v] = d, u
        begins = u < 0 and v not in begun
        begun |= {v} if begins else set()
        if begins and not settles and (through is None or through[v]):
            continue
        if (settles and (through is None or through[v])) or begins:
            for arc in range(indptr[v], indptr[v + 1]):
                heapq.heappush(heap, (kind(d + weights[arc]), int(indices[arc]), v))
    return distances, predecessors


DAMAGED = from_arcs(
    8, (0, 1, 2), (0, 2, 5), (1, 2, 2), (2, 3, 1), (3, 1, 4), (1, 4, 7), (4, 5, 0), (5, 4, 0), (6, 0, 1)
)
#    0 -2-> 1 -2-> 2 -1-> 3; 1 -7-> 4 <-0-> 5; 6 leads to 0, and 7 is alone
DISTANCES = [0, 2, 4, 5, 9, 9, None, None]
PREDECESSORS = [-1, 0, 1, 2, 1, 4, -1, -1]


def row(dtype):
    unreachable = outside_infinity(dtype)
    return np.array([unreachable if d is None else d for d in DISTANCES], dtype=dtype), np.array(PREDECESSORS)


@pytest.mark.parametrize("dtype", usual(DTYPES, {"float64", "int32"}))
@pytest.mark.parametrize("exact", [True, False])
def test_a_right_row_passes(dtype, exact):
    certificate = verify_paths(*DAMAGED, *row(dtype), 0, exact=exact)
    assert (certificate.rows, certificate.arcs, certificate.hops, certificate.slack) == (1, 8, 3, 0)
    assert (certificate.relative > 0) is (not exact and dtype.startswith("f"))


DAMAGES = {
    # rule 1
    "source off": (
        {0: -1},
        {},
        "source 0 is at the distance -1(.0)? without a predecessor, but paths begin there at 0",
    ),
    "source above": ({0: 1}, {}, "source 0 is at the distance 1(.0)?, but paths begin there at 0"),
    "source lost": ({0: None}, {}, "predecessor|source 0 is unreachable|leads on from vertex 0"),
    # rule 2
    "too far": ({3: 6}, {}, r"vertex 3 is at the distance 6(.0)?, but the arc 2 -> 3 of weight 1.* 4(.0)? \+ 1.* = 5"),
    "too far, another arc tight": ({2: 5, 3: 6}, {2: 0}, r"vertex 2 .* arc 1 -> 2 of weight 2.* = 4"),
    "not reached": ({3: None}, {3: -1}, r"vertex 3 is unreachable, but the arc 2 -> 3 of weight 1.* = 5"),
    # rule 3
    "too near": ({3: 4}, {}, r"vertex 3 is at the distance 4.* predecessor 2, but the arc 2 -> 3 of weight 1.* = 5"),
    "an arc that is not tight": ({}, {2: 0}, r"vertex 2 .* predecessor 0, but the arc 0 -> 2 of weight 5.* = 5"),
    "no such arc": ({}, {3: 1}, "vertex 3 is at the distance 5.* predecessor 1, but there is no arc 1 -> 3"),
    "an arc the wrong way": ({}, {1: 3, 2: -1}, "vertex 2 is at the distance 4.* without a predecessor, and is not"),
    "a root that is no source": ({}, {3: -1}, "vertex 3 is at the distance 5.* without a predecessor, and is not"),
    "reached from nowhere": ({7: 3}, {}, "vertex 7 is at the distance 3.* without a predecessor, and is not"),
    "reached backwards": ({6: 1}, {6: 0}, "vertex 6 .* there is no arc 0 -> 6|vertex 0 .* the arc 6 -> 0"),
    "an unreachable predecessor": ({7: 3}, {7: 6}, "predecessor 6, but there is no arc 6 -> 7"),
    "a predecessor of the unreachable": ({}, {7: 6}, "vertex 7 is unreachable, but has the predecessor 6"),
    "no vertex": ({}, {3: 8}, "the predecessor of vertex 3 is 8; vertices are 0..7"),
    "no mark": ({}, {7: -9999}, "the predecessor of vertex 7 is -9999"),
    # rule 4
    "a tight cycle": ({}, {4: 5}, "the predecessors form a cycle, [45] -> [45] -> [45]"),
    "its own predecessor": ({}, {0: 0}, "the predecessors form a cycle, 0 -> 0"),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("dtype", usual(DTYPES, {"float64", "int32"}))
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_is_found(damage, dtype, exact):
    wrong_distances, wrong_predecessors, message = DAMAGES[damage]
    distances, predecessors = row(dtype)
    for v, d in wrong_distances.items():
        distances[v] = outside_infinity(dtype) if d is None else d
    for v, u in wrong_predecessors.items():
        predecessors[v] = u
    with pytest.raises(VerificationError, match=message):
        verify_paths(*DAMAGED, distances, predecessors, 0, exact=exact)


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_message_names_vertices_by_label(damage):
    distances, predecessors = row("float32")
    for values, wrong in ((distances, DAMAGES[damage][0]), (predecessors, DAMAGES[damage][1])):
        for v, value in wrong.items():
            values[v] = np.inf if value is None else value
    messages = []
    for label in (str, "<{}>".format):
        with pytest.raises(VerificationError) as caught:
            verify_paths(*DAMAGED, distances, predecessors, 0, label=label)
        messages.append(str(caught.value))
    assert re.search("(vertex|source|cycle,) <", messages[1])
    assert re.search(r"\d -> |(vertex|source|predecessor) \d", messages[1]) is None
    assert re.sub(r"<(\d+)>", r"\1", messages[1]) == messages[0]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_what_is_no_distance(value):
    distances, predecessors = row("float32")
    distances[5] = value
    with pytest.raises(VerificationError, match="the distance of vertex 5 is (nan|-inf)"):
        verify_paths(*DAMAGED, distances, predecessors, 0)


def test_a_closed_cycle_of_ties_apart_from_the_tree():
    """Rules 1 to 3 hold around 1 <-> 2, and yet nothing leads there."""
    graph = from_arcs(3, (1, 2, 0), (2, 1, 0))
    with pytest.raises(VerificationError, match="the predecessors form a cycle"):
        verify_paths(*graph, np.array([0.0, 7, 7]), np.array([-1, 2, 1]), 0)


def test_one_step_of_a_float_is_found():
    """Exact means the last bit; a tolerance as wide as the rounding does not see it."""
    graph = csr(UniformRandom(500, seed=1))
    for dtype in ("float32", "float64"):
        distances, predecessors = solve(graph, [7], dtype)
        verify_paths(*graph, distances, predecessors, 7)
        v = int(np.flatnonzero(predecessors >= 0)[50])
        distances[v] = np.nextafter(distances[v], 0)
        with pytest.raises(VerificationError, match=rf"vertex {v} "):
            verify_paths(*graph, distances, predecessors, 7)
        assert verify_paths(*graph, distances, predecessors, 7, exact=False).relative < 1e3 * np.finfo(dtype).eps


# Other solvers


GRAPHS = {
    "rmat": RMat(9, seed=1),
    "rmat, integers": RMat(9, seed=2, weights="integers", directed=True),
    "grid": Grid(20, 30, weights="integers"),
    "road": Road(25, 25),
    "sparse": UniformRandom(400, edge_factor=1, directed=True),
}


def lightest(graph):
    """As a SciPy matrix: the lightest of parallel arcs (which SciPy would add up)."""
    indptr, indices, weights = graph
    n = len(indptr) - 1
    tails = np.repeat(np.arange(n), np.diff(indptr))
    order = np.lexsort((weights, indices, tails))
    tails, heads, weights = tails[order], indices[order], weights[order].astype(np.float64)
    first = np.concatenate([[True], (np.diff(tails) != 0) | (np.diff(heads) != 0)])
    first &= tails != heads
    return csr_array((weights[first], (tails[first], heads[first])), shape=(n, n))


@pytest.mark.parametrize("name", GRAPHS)
def test_scipys_dijkstra_passes(name):
    graph = csr(GRAPHS[name])
    matrix = lightest(graph)
    rows, predecessors = dijkstra(matrix, indices=[0, 5, 99], return_predecessors=True)
    for source, distances, tree in zip([0, 5, 99], rows, predecessors, strict=True):
        certificate = verify_paths(*graph, distances, np.where(tree < 0, -1, tree), source)
        assert certificate.relative == certificate.absolute == certificate.slack == 0
        if GRAPHS[name].weights == "integers":
            narrow = np.where(np.isinf(distances), 2**31 - 1, distances).astype(np.int32)
            verify_paths(*graph, narrow, np.where(tree < 0, -1, tree).astype(np.int32), source)


@pytest.mark.parametrize("name", GRAPHS)
def test_several_sources_and_a_cutoff_of_scipy_pass(name):
    graph = csr(GRAPHS[name])
    matrix, sources = lightest(graph), [3, 77, 200]
    full = dijkstra(matrix, indices=sources, min_only=True)
    cutoff = float(np.median(full[np.isfinite(full)]))
    for limit in (None, cutoff):
        options = {"indices": sources, "min_only": True, "return_predecessors": True}
        distances, tree, _ = dijkstra(matrix, limit=np.inf if limit is None else limit, **options)
        verify_paths(*graph, distances, np.where(tree < 0, -1, tree), sources, cutoff=limit)
    with pytest.raises(VerificationError, match="is unreachable, but the arc"):
        verify_paths(*graph, distances, np.where(tree < 0, -1, tree), sources)


def test_scipys_bellman_ford_passes_with_negative_weights():
    for made in (Dag(200, seed=3, edge_factor=4), RMat(7, shift=3.0), NegativeCycle(200, edge_factor=3, length=4)):
        indptr, indices, weights = csr(made)
        source = 0
        if isinstance(made, Dag):
            source = int(made.topological_order(0, 1)[0])
        if isinstance(made, NegativeCycle):
            with pytest.raises(NegativeCycleError):
                verify_paths(indptr, indices, weights, np.zeros(200), np.r_[-1, np.zeros(199, int)], 0, exact=False)
            continue
        distances, tree = bellman_ford(lightest((indptr, indices, weights)), indices=source, return_predecessors=True)
        assert distances.min() < 0
        predecessors = np.where(tree < 0, -1, tree)
        verify_paths(indptr, indices, weights, distances, predecessors, source)
        with pytest.raises(ValueError, match="a path may leave the cutoff and come back"):
            verify_paths(indptr, indices, weights, distances, predecessors, source, cutoff=1.0)


def test_results_of_another_arithmetic_need_a_tolerance():
    """Johnson's distances are sums with potentials added and taken away."""
    rng = np.random.default_rng(0)
    plain = csr(UniformRandom(200, seed=4, directed=True, dtype="float64"))
    potential = rng.uniform(0, 5, 200)
    tails = np.repeat(np.arange(200), np.diff(plain[0]))
    graph = plain[0], plain[1], plain[2] + 0.01 + potential[tails] - potential[plain[1]]
    rows, trees = johnson(lightest(graph), return_predecessors=True)
    refused = 0
    for source in range(0, 200, 10):
        distances, predecessors = rows[source], np.where(trees[source] < 0, -1, trees[source])
        certificate = verify_paths(*graph, distances, predecessors, source, exact=False)
        assert 0 < certificate.absolute < 1e-12
        try:
            verify_paths(*graph, distances, predecessors, source)
        except VerificationError:
            refused += 1
        distances[5] += 1e-9
        with pytest.raises(VerificationError):
            verify_paths(*graph, distances, predecessors, source, exact=False)
    assert refused


def test_rounding_of_sums_in_the_other_order():
    """A chain of a thousand, added from its end: the error of that is within what its length grants."""
    weights = np.random.default_rng(1).random(1000).astype(np.float32)
    graph = np.append(np.arange(1001), 1000), np.arange(1, 1001, dtype=np.int32), weights
    distances = np.concatenate([[0], np.cumsum(weights.astype(np.float64))]).astype(np.float32)
    predecessors = np.arange(-1, 1000)
    certificate = verify_paths(*graph, distances, predecessors, 0, exact=False)
    assert certificate.hops == 1000
    with pytest.raises(VerificationError):
        verify_paths(*graph, distances, predecessors, 0)


# Starts, closed vertices, cutoffs


CHAIN = from_arcs(4, (0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 3, 9), dtype="int32")


def verify_chain(distances, predecessors, sources, **options):
    distances = np.array([2**31 - 1 if d is None else d for d in distances], dtype=np.int32)
    return verify_paths(*CHAIN, distances, np.array(predecessors, dtype=np.int32), sources, **options)


def test_starts():
    verify_chain([4, 5, 5, 6], [-1, 0, -1, 2], [0, 2], starts=[4, 5])
    verify_chain([4, 5, 6, 7], [-1, 0, 1, 2], [0, 2], starts=[4, 6])  # a tie, and the source has a predecessor
    verify_chain([4, 5, 6, 7], [-1, 0, -1, 2], [0, 2], starts=[4, 6])
    verify_chain([4, 5, 6, 7], [-1, 0, 1, 2], [0, 2, 2], starts=[4, 9, 8])
    verify_chain([-3, -2, -1, 0], [-1, 0, 1, 2], 0, starts=-3)
    for distances, predecessors in (([4, 5, 6, 7], [-1, 0, 1, 2]), ([4, 5, 5, 6], [-1, 0, 1, 2])):
        with pytest.raises(VerificationError, match="2"):
            verify_chain(distances, predecessors, [0, 2], starts=[4, 5])
    with pytest.raises(VerificationError, match="source 2 is at the distance 6 without a predecessor"):
        verify_chain([4, 5, 6, 7], [-1, 0, -1, 2], [0, 2], starts=[4, 8])


def test_closed_vertices():
    through = np.array([True, True, False, True])
    verify_chain([0, 1, 2, 9], [-1, 0, 1, 0], 0, through=through)
    with pytest.raises(VerificationError, match="no path leads on from vertex 2, which is closed"):
        verify_chain([0, 1, 2, 3], [-1, 0, 1, 2], 0, through=through)
    with pytest.raises(VerificationError, match="vertex 3 is at the distance 9, but the arc 2 -> 3 of weight 1"):
        verify_chain([0, 1, 2, 9], [-1, 0, 1, 0], 0)
    verify_chain([None, None, 0, 1], [-1, -1, -1, 2], 2, through=through)  # paths begin at a closed source
    # a closed source that is nearer from elsewhere: paths that begin there begin at its start
    verify_chain([0, 1, 2, 6], [-1, 0, 1, 2], [0, 2], starts=[0, 5], through=through)
    with pytest.raises(VerificationError, match=r"2 -> 3 of weight 1 makes it 5 \+ 1 = 6"):
        verify_chain([0, 1, 2, 3], [-1, 0, 1, 2], [0, 2], starts=[0, 5], through=through)


def test_cutoff():
    for cutoff in (2, 2.9):
        verify_chain([0, 1, 2, None], [-1, 0, 1, -1], 0, cutoff=cutoff)
        with pytest.raises(VerificationError, match="the distance of vertex 3 is 3, beyond the cutoff 2"):
            verify_chain([0, 1, 2, 3], [-1, 0, 1, 2], 0, cutoff=cutoff)
        with pytest.raises(VerificationError, match="vertex 2 is unreachable, but the arc 1 -> 2 .* = 2 at most"):
            verify_chain([0, 1, None, None], [-1, 0, -1, -1], 0, cutoff=cutoff)
    verify_chain([0, 1, 2, 3], [-1, 0, 1, 2], 0, cutoff=np.inf)
    verify_chain([None] * 4, [-1] * 4, 0, starts=5, cutoff=4)
    with pytest.raises(VerificationError, match="source 0 is unreachable, but paths begin there at 5"):
        verify_chain([None] * 4, [-1] * 4, 0, starts=5, cutoff=5)


def test_sums_beyond_the_dtype():
    """Integers: out of reach is not unreachable. Floats: an infinite sum is."""
    heavy = from_arcs(3, (0, 1, 2**31 - 2), (1, 2, 5), dtype="int32")
    top = 2**31 - 1
    with pytest.raises(VerificationError, match="= 2147483651 at most"):
        verify_paths(*heavy, np.array([0, top - 1, top], dtype=np.int32), np.array([-1, 0, -1]), 0)
    heavy = from_arcs(3, (0, 1, 3e38), (1, 2, 3e38))
    verify_paths(*heavy, np.array([0, 3e38, np.inf], dtype=np.float32), np.array([-1, 0, -1]), 0)
    with pytest.raises(VerificationError, match="vertex 2 is unreachable"):
        verify_paths(*heavy, np.array([0, 3e38, np.inf]), np.array([-1, 0, -1]), 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distances": np.zeros(3, np.int32)}, "distances have the shape \\(3,\\); the graph has 4 vertices"),
        ({"predecessors": np.full(5, -1)}, "predecessors have the shape"),
        ({"predecessors": np.zeros(4)}, "predecessors are float64"),
        ({"through": np.ones(3, bool)}, "through have the shape"),
        ({"sources": []}, "name at least one source"),
        ({"sources": [0, 4]}, "outside the vertices 0..3"),
        ({"sources": 0.5}, "name at least one source"),
        ({"starts": 0.5}, "must be finite int32 numbers"),
        ({"starts": np.nan}, "must be finite int32 numbers"),
        ({"cutoff": np.nan}, "cutoff is NaN"),
        ({"weights": np.array([0.5, 1, 1, 9])}, "fractional weights"),
    ],
)
def test_arguments_that_do_not_belong_together(changes, message):
    arguments = dict(zip(("indptr", "indices", "weights"), CHAIN, strict=True))
    arguments |= {"distances": np.zeros(4, np.int32), "predecessors": np.full(4, -1), "sources": 0}
    with pytest.raises(ValueError, match=message):
        verify_paths(**(arguments | changes))


@settings(max_examples=50)
@given(data=st.data())
def test_any_graph_and_any_damage(data):
    """The definition's own distances pass; change one number and they do not."""
    n = data.draw(st.integers(1, 7))
    arc = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 4))
    graph = from_arcs(n, *data.draw(st.lists(arc, min_size=1, max_size=20)), dtype="int32")
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    starts = [data.draw(st.integers(0, 3)) for _ in sources]
    through = np.array([data.draw(st.booleans()) for _ in range(n)])
    cutoff = data.draw(st.none() | st.integers(0, 9))
    dtype = data.draw(st.sampled_from(DTYPES))
    options = {"starts": starts, "through": through, "cutoff": cutoff}
    distances, predecessors = solve(graph, sources, dtype, starts, through, cutoff)
    verify_paths(*graph, distances, predecessors, sources, **options)
    v, change = data.draw(st.integers(0, n - 1)), data.draw(st.integers(-3, 3).filter(bool))
    unreachable = outside_infinity(dtype)
    distances[v] = abs(change) if distances[v] == unreachable else distances[v] + change
    with pytest.raises(VerificationError):
        verify_paths(*graph, distances, predecessors, sources, **options)

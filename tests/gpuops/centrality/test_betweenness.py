"""Betweenness beside its definition: path counts as Python's integers, and shares as ratios of these counts."""

import contextlib
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparse_rows import rows_of

import gpuops
from gpuops import betweenness, csr, verify_betweenness
from gpuops.centrality import GROUP, Summation, centrality_numba
from gpuops.centrality.pairwise_sums import PairwiseSums


def counted(arcs, n, source, passes):
    """Distances from `source` by Bellman and Ford's algorithm, and the numbers of shortest paths."""
    lightest = {}
    for tail, head, weight in arcs:
        if tail != head and (tail == source or passes[tail]):
            lightest[tail, head] = min(weight, lightest.get((tail, head), math.inf))
    distance = [math.inf] * n
    distance[source] = 0
    for _ in range(n):
        for (tail, head), weight in lightest.items():
            distance[head] = min(distance[head], distance[tail] + weight)
    paths = [0] * n
    paths[source] = 1
    for vertex in sorted(range(n), key=distance.__getitem__):
        for (tail, head), weight in lightest.items():
            if head == vertex != source and distance[tail] + weight == distance[head] < math.inf:
                paths[head] += paths[tail]
    return distance, paths


def defined(arcs, n, sources, passes, endpoints):
    """Betweenness of vertices and of pairs (tail, head), as fractions, by the definition."""
    found = [counted(arcs, n, source, passes) for source in range(n)]
    vertices, between = [Fraction(0)] * n, {}
    for s in sources:
        for t in set(range(n)) - {s}:
            if found[s][1][t] == 0:
                continue
            for v in range(n):
                through = passes[v] and v not in (s, t) and found[s][0][v] + found[v][0][t] == found[s][0][t]
                if through:
                    vertices[v] += Fraction(found[s][1][v] * found[v][1][t], found[s][1][t])
                elif v in (s, t):
                    vertices[v] += endpoints
            for tail, head in {arc[:2] for arc in arcs}:
                weight = min(arc[2] for arc in arcs if arc[:2] == (tail, head))
                # A path begins at `tail` or passes through it, and ends at `head` or passes through it.
                leaves = tail != head and tail != t and head != s and (tail == s or passes[tail])
                if leaves and (head == t or passes[head]):
                    ahead = found[head][0][t] if head != t else 0
                    if found[s][0][tail] + weight + ahead == found[s][0][t]:
                        share = Fraction(found[s][1][tail] * found[head][1][t], found[s][1][t])
                        between[tail, head] = between.get((tail, head), 0) + share
    return vertices, between


@given(st.data())
def test_any_graph(data):
    n = data.draw(st.integers(1, 7))
    vertex = st.integers(0, n - 1)
    arcs = data.draw(st.lists(st.tuples(vertex, vertex, st.integers(1, 3)), max_size=18))
    weighted, symmetric, endpoints = (data.draw(st.booleans()) for _ in range(3))
    if not weighted:
        arcs = [(tail, head, 1) for tail, head, _ in arcs]
    if symmetric:
        arcs += [(head, tail, weight) for tail, head, weight in arcs]
    through = data.draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
    sources = data.draw(st.none() | st.lists(vertex, max_size=5))
    indptr, indices, weights = rows_of(arcs, n)
    found = betweenness(
        indptr,
        indices,
        weights if weighted else None,
        sources,
        through=None if through is None else np.array(through),
        symmetric=symmetric,
        endpoints=endpoints,
        arcs=True,
    )
    chosen = range(n) if sources is None else sources
    vertices, between = defined(arcs, n, chosen, through or [True] * n, endpoints)
    np.testing.assert_allclose(found.vertices, np.array(vertices, float), rtol=1e-13)
    tails = csr.tails(indptr, len(indices), np.int64).tolist()
    for arc, (tail, head) in enumerate(zip(tails, indices.tolist(), strict=True)):
        parallel = weights[indptr[tail] : indptr[tail + 1]][indices[indptr[tail] : indptr[tail + 1]] == head]
        expected = between.get((tail, head), 0) + (between.get((head, tail), 0) if symmetric else 0)
        if weights[arc] == parallel.min():
            expected /= Fraction(int((parallel == parallel.min()).sum()))
        else:
            expected = 0
        assert found.arcs[arc] == pytest.approx(float(expected), rel=1e-13)
    kind = {"symmetric": symmetric, "endpoints": endpoints}
    verify_betweenness(found, sources=len(chosen), arcs=len(arcs), **kind)


def random_graph(n=300, m=1200, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, (2, m))
    lengths = rng.integers(1, 4, m) if weights is None else weights
    return rows_of(list(zip(tails, heads, lengths, strict=True)), n)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_and_parts_change_no_bit(monkeypatch, weighted):
    indptr, indices, weights = random_graph(n=9 * GROUP + 3)
    arrays = indptr, indices, weights / 3 if weighted else None
    monkeypatch.setattr("gpuops._threads._SERIAL_RELAXATIONS", 1)
    found = []
    for threads in 1, 3:
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found.append(betweenness(*arrays, arcs=True))
    summation = Summation(*arrays, arcs=True)
    for size in GROUP, 4 * GROUP:
        parts = range(0, summation.n, size)
        tree = PairwiseSums(len(parts))
        for number in np.random.default_rng(size).permutation(len(parts)).tolist():
            tree.add(number, summation.over(np.arange(summation.n)[parts[number] : parts[number] + size]))
        found.append(summation.result(tree.total()))
    for other in found[1:]:
        assert [x.tobytes() for x in found[0][:2]] == [x.tobytes() for x in other[:2]]
        assert found[0][2:] == other[2:]


def test_counts_with_exponents_have_the_bits_of_counts_without(monkeypatch):
    arrays = random_graph(n=200, m=900)[:2]
    plain = betweenness(*arrays, arcs=True)
    monkeypatch.setattr(centrality_numba.sums, "__defaults__", (0.0,))
    wide = betweenness(*arrays, arcs=True)
    assert [x.tobytes() for x in plain[:2]] == [x.tobytes() for x in wide[:2]]


def layers(count, width, seed):
    """A graph of `count` layers, all arcs leading to the next layer, with width^count paths; a few are left out."""
    rng = np.random.default_rng(seed)
    arcs = [(0, 1 + head, 1) for head in range(width)]
    for layer in range(count - 1):
        first = 1 + layer * width
        arcs += [
            (first + a, first + width + b, 1 + layer % 2)
            for a in range(width)
            for b in range(width)
            if a == b or rng.random() < (0.1 if b == 0 else 0.9)
        ]
    return arcs, 1 + count * width


def test_numbers_of_paths_far_beyond_float64():
    arcs, n = layers(500, 9, seed=0)
    indptr, indices, weights = rows_of(arcs, n)
    heads = [indices[a:b].tolist() for a, b in pairwise(indptr)]
    paths = [1] + [0] * (n - 1)
    for tail in range(n):
        for head in heads[tail]:
            paths[head] += paths[tail]
    assert max(paths) > 2**1200  # and few paths lead to the first vertex of a layer
    expected = np.zeros(n)
    for tail in reversed(range(n)):
        expected[tail] = sum(paths[tail] / paths[head] * (1 + expected[head]) for head in heads[tail])
    expected[0] = 0
    for lengths in None, weights:
        found = betweenness(indptr, indices, lengths, [0], arcs=True)
        np.testing.assert_allclose(found.vertices, expected, rtol=1e-12)
        verify_betweenness(found, sources=1, arcs=len(arcs), symmetric=False, endpoints=False)


def test_a_chain_of_diamonds_halves_exactly():
    count = 2000  # 2^2000 paths
    arcs = [(3 * i + a, 3 * i + b, 1) for i in range(count) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
    found = betweenness(*rows_of(arcs, 3 * count + 1)[:2], sources=[0])
    beyond = 3 * (count - np.arange(1, count + 1))
    np.testing.assert_array_equal(found.vertices[3::3], beyond)
    np.testing.assert_array_equal(found.vertices[1::3], (beyond + 1) / 2)


@given(st.integers(1, 40), st.randoms(use_true_random=False))
def test_pairwise_sums_do_not_depend_on_the_order_of_arrival(count, random):
    parts = np.random.default_rng(count).random((count, 3)) ** 9

    def total(first, size):
        if size == 1:
            return parts[first].copy() if first < count else None
        left, right = total(first, size // 2), total(first + size // 2, size // 2)
        return left if right is None else left + right

    sums, order = PairwiseSums(count), list(range(count))
    random.shuffle(order)
    for number in order:
        sums.add(number, [parts[number].copy()])
    np.testing.assert_array_equal(sums.total()[0], total(0, 64))


class Meeting(dict):
    """A dictionary that lets two threads look for each other's part at the same time, if nothing keeps them apart."""

    def __init__(self):
        super().__init__()
        self.both = threading.Barrier(2)

    def pop(self, *arguments):
        found = super().pop(*arguments)
        with contextlib.suppress(threading.BrokenBarrierError):
            self.both.wait(0.1)
        return found


def test_partners_that_arrive_at_the_same_time_meet():
    sums = PairwiseSums(2)
    sums._waiting = Meeting()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: sums.add(number, [np.ones(1)]), range(2)))
    assert sums.total()[0].tolist() == [2]


def test_no_vertex_no_arc_and_no_source():
    none, no_arcs = np.zeros(1, np.int64), np.zeros(0, np.int32)
    assert betweenness(none, no_arcs, arcs=True)[1:] == (pytest.approx(np.zeros(0)), 0, 0.0)
    assert betweenness(np.zeros(3, np.int64), no_arcs).vertices.tolist() == [0, 0]
    found = betweenness(np.array([0, 1, 2, 2]), np.array([1, 2]), sources=[], arcs=True)
    assert [found.vertices.tolist(), found.arcs.tolist()] == [[0, 0, 0], [0, 0]]
    missing = betweenness(np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([1.0, np.inf]), arcs=True)
    assert [missing.vertices.tolist(), missing.arcs.tolist(), missing.pairs] == [[0, 0, 0], [1, 0], 1]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (
            {"weights": np.array([1.0, 0.0])},
            ValueError,
            "from vertex 1 to vertex 2 is 0; weights must be above 0",
        ),
        ({"weights": np.array([-1.0, 1.0])}, ValueError, "from vertex 0 to vertex 1 is -1; weights must be"),
        ({"weights": np.array([np.nan, 1.0])}, ValueError, "from vertex 0 to vertex 1 is nan; weights must be"),
        (
            {"weights": np.array([1.0, 1e-20])},
            ValueError,
            "the weight 1e-20 of the arc from vertex 1 to vertex 2 is lost",
        ),
        ({"weights": np.array([1.0])}, ValueError, "2 indices and 1 weights"),
        ({"sources": [3]}, ValueError, "source 3 is not a vertex; vertices are 0 to 2"),
        ({"through": np.array([True])}, ValueError, "through is bool of length 1; give a bool for each of 3 vertices"),
        ({"symmetric": True, "arcs": True}, ValueError, "an arc has no opposite arc; pass symmetric=False"),
        ({"indices": np.array([1, 3])}, ValueError, "they must be vertices, 0 to 2"),
    ],
)
def test_what_is_refused(arguments, error, says):
    whole = {"indptr": np.array([0, 1, 2, 2]), "indices": np.array([1, 2]), **arguments}
    with pytest.raises(error, match=says):
        betweenness(**whole)


@pytest.mark.parametrize("place", ["vertices", "arcs"])
def test_the_certificate_notices_a_wrong_value(place):
    indptr, indices, _ = random_graph()
    found = betweenness(indptr, indices, arcs=True)
    kind = {"sources": 300, "arcs": len(indices), "symmetric": False, "endpoints": False}
    verify_betweenness(found, **kind)
    wrong = getattr(found, place).copy()
    wrong[wrong.argmax()] *= 1 + 1e-6
    with pytest.raises(gpuops.VerificationError, match=f"the betweenness of all {place} adds up to"):
        verify_betweenness(found._replace(**{place: wrong}), **kind)


GRAPHS_OF_A_GPU = {
    "random": lambda: random_graph(n=2000, m=9000, weights=np.random.default_rng(1).random(9000) + 1e-3),
    "few lengths": lambda: random_graph(n=3000, m=12_000, seed=2),
    "hubs": lambda: rows_of(
        [(0, v, 1 + v % 3) for v in range(1, 2000)]
        + [(v, 1 + v * 7 % 1999, 2) for v in range(1, 2000)]
        + [(v, 0, 1 + v % 2) for v in range(1, 2000)],
        2000,
    ),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", GRAPHS_OF_A_GPU)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_gpu_returns_the_bits_of_a_cpu(gpu, name, weighted):
    """Numbers of paths are below 2^53 here."""
    indptr, indices, weights = GRAPHS_OF_A_GPU[name]()
    n = len(indptr) - 1
    arrays = indptr, indices, weights if weighted else None
    on_device = [None if x is None else gpu.asarray(x) for x in arrays]
    through = np.random.default_rng(3).random(n) < 0.9
    for sources, options in (
        (None, {}),
        (range(5 * GROUP + 3), {"arcs": True, "endpoints": True}),
        ([0, n - 1, 0], {"arcs": True, "through": through}),
        ([], {"arcs": True}),
    ):
        given = {key: gpu.asarray(x) if isinstance(x, np.ndarray) else x for key, x in options.items()}
        expected = betweenness(*arrays, sources, **options)
        found = betweenness(*on_device, sources, **given)
        assert found.vertices.get().tobytes() == expected.vertices.tobytes()
        if "arcs" in options:
            assert found.arcs.get().tobytes() == expected.arcs.tobytes()
        assert found.pairs == expected.pairs
        assert found.inner == pytest.approx(expected.inner, rel=1e-12)


@pytest.mark.gpu
def test_numbers_of_paths_far_beyond_float64_on_a_gpu(gpu):
    arcs, n = layers(500, 9, seed=0)
    arrays = rows_of(arcs, n)
    on_device = list(map(gpu.asarray, arrays))
    for count in 2, 3:
        expected = betweenness(*arrays[:count], sources=range(40), arcs=True)
        found = betweenness(*on_device[:count], sources=range(40), arcs=True)
        again = betweenness(*on_device[:count], sources=range(40), arcs=True)
        for ours, same, cpus in zip(found[:2], again[:2], expected[:2], strict=True):
            np.testing.assert_allclose(ours.get(), cpus, rtol=1e-11)
            assert ours.get().tobytes() == same.get().tobytes()
        verify_betweenness(found, sources=40, arcs=len(arcs), symmetric=False, endpoints=False)


@pytest.mark.gpu
def test_a_weight_that_is_lost_on_a_gpu(gpu):
    arrays = map(gpu.asarray, (np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([1.0, 1e-20])))
    with pytest.raises(ValueError, match="the weight 1e-20 of the arc from vertex 1 to vertex 2 is lost"):
        betweenness(*arrays)

"""Operations on whole graphs against SciPy, NetworkX and a few lines of NumPy."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from sparse_rows import rows

from gpuops import degrees, edge_expansion, reverse, spanning_forest, weak_components
from gpuops.arrays import on_host
from gpuops.csr import csr_numba, equal_ranges, row_starts

DTYPES = ["int32", "int64"]


def csr(tails, heads, n, offset="int64", vertex="int32"):
    return rows(n, tails, heads, offset=offset, vertex=vertex)


def random_graph(seed, n, m, offset="int64", vertex="int32", skew=1):
    rng = np.random.default_rng(seed)
    return csr(*(n * rng.random((2, m)) ** skew).astype(np.int64), n, offset, vertex)


def forest_in_plain_python(indptr, indices):
    """Kruskal by arc number with sets that are renamed, and parents by depth-first search."""
    n = len(indptr) - 1
    labels, chosen, neighbours = list(range(n)), [], [[] for _ in range(n)]
    members = [[v] for v in range(n)]
    for tail in range(n):
        for head in indices[indptr[tail] : indptr[tail + 1]].tolist():
            a, b = sorted((labels[tail], labels[head]))
            chosen.append(a != b)
            if a != b:
                for v in members[b]:
                    labels[v] = a
                members[a] += members[b]
                neighbours[tail].append(head)
                neighbours[head].append(tail)
    parents = [-1] * n
    for root in sorted(set(labels)):
        stack = [root]
        while stack:
            v = stack.pop()
            for w in neighbours[v]:
                if w != parents[v]:
                    parents[w] = v
                    stack.append(w)
    return chosen, labels, parents


def check(xp, indptr, indices):
    """All operations on one graph, against definitions."""
    n, m, arrays = len(indptr) - 1, len(indices), (xp.asarray(indptr), xp.asarray(indices))
    tails = np.repeat(np.arange(n), np.diff(indptr))

    found = edge_expansion(*arrays)
    assert isinstance(found, xp.ndarray)
    assert found.dtype == indices.dtype
    np.testing.assert_array_equal(on_host(found), tails)

    counted = degrees(*arrays)
    assert counted.outgoing.dtype == counted.incoming.dtype == indptr.dtype
    out, into = np.diff(indptr), np.bincount(indices, minlength=n)
    np.testing.assert_array_equal(on_host(counted.outgoing), out)
    np.testing.assert_array_equal(on_host(counted.incoming), into)
    np.testing.assert_array_equal(on_host(counted.sources), np.flatnonzero((into == 0) & (out > 0)))
    np.testing.assert_array_equal(on_host(counted.sinks), np.flatnonzero((out == 0) & (into > 0)))
    np.testing.assert_array_equal(on_host(counted.isolated), np.flatnonzero(out + into == 0))
    assert counted.balanced == np.array_equal(out, into)

    weights = np.arange(m)[::-1] * 0.5
    turned = reverse(*arrays, xp.asarray(weights))
    order = np.argsort(indices, kind="stable")
    assert [x.dtype for x in turned] == [indptr.dtype, indices.dtype, weights.dtype, indptr.dtype]
    np.testing.assert_array_equal(on_host(turned.indptr), np.searchsorted(indices[order], np.arange(n + 1)))
    np.testing.assert_array_equal(on_host(turned.indices), tails[order])
    np.testing.assert_array_equal(on_host(turned.weights), weights[order])
    np.testing.assert_array_equal(on_host(turned.arcs), order)

    chosen, labels, parents = forest_in_plain_python(indptr, indices)
    forest = spanning_forest(*arrays)
    assert (forest.arcs.dtype, forest.components.dtype, forest.parents.dtype) == (bool, indices.dtype, indices.dtype)
    np.testing.assert_array_equal(on_host(forest.arcs), chosen)
    np.testing.assert_array_equal(on_host(forest.components), labels)
    np.testing.assert_array_equal(on_host(forest.parents), parents)
    assert int(forest.arcs.sum()) == n - len(set(labels))
    np.testing.assert_array_equal(on_host(weak_components(*arrays)), labels)
    numbered = weak_components(*arrays, compact=True)
    assert numbered.dtype == indices.dtype
    np.testing.assert_array_equal(on_host(numbered), np.unique(labels, return_inverse=True)[1] if n else [])


LENGTH = 3000
NAMES = np.random.default_rng(0).permutation(LENGTH)
GRAPHS = {
    "no vertex": csr([], [], 0),
    "one vertex": csr([], [], 1),
    "one loop": csr([0], [0], 1),
    "three loops, one vertex": csr([0, 0, 0], [0, 0, 0], 1),
    "no arcs": csr([], [], 50),
    "two arcs back and forth": csr([0, 1], [1, 0], 2),
    "parallel arcs": csr([0, 0, 0, 2, 2], [1, 1, 1, 1, 1], 4),
    "path": csr(np.arange(LENGTH - 1), np.arange(1, LENGTH), LENGTH),
    "path backwards": csr(np.arange(1, LENGTH), np.arange(LENGTH - 1), LENGTH),
    "path in any order": csr(NAMES[:-1], NAMES[1:], LENGTH),
    "ring": csr(NAMES, np.roll(NAMES, 1), LENGTH),
    "star outward": csr(np.zeros(999, int), np.arange(1, 1000), 1000),
    "star inward, the last": csr(np.arange(999), np.full(999, 999), 1000),
    "isolated first and last": csr([500, 501], [501, 700], 1200),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_every_kind(xp, name):
    check(xp, *GRAPHS[name])


@pytest.mark.parametrize("offset", DTYPES)
@pytest.mark.parametrize("vertex", DTYPES)
def test_random_graphs_of_all_dtypes(xp, offset, vertex):
    for seed, (n, m, skew) in enumerate([(1000, 300, 1), (1000, 1200, 1), (300, 4000, 3), (3000, 2500, 2)]):
        check(xp, *random_graph(seed, n, m, offset, vertex, skew))


@given(st.data())
def test_any_graph(data):
    n = data.draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    arcs = data.draw(st.lists(st.tuples(vertex, vertex), max_size=30))
    tails, heads = np.array(arcs, int).reshape(-1, 2).T
    check(np, *csr(tails, heads, n, data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))))


def test_larger_graphs_agree_with_scipy(xp):
    for seed, (n, m) in enumerate([(200_000, 150_000), (200_000, 600_000)]):
        indptr, indices = random_graph(seed, n, m)
        matrix = sp.csr_array((np.arange(1, m + 1, dtype=np.float64), indices, indptr), shape=(n, n))
        arrays = xp.asarray(indptr), xp.asarray(indices)

        count, labels = connected_components(matrix, directed=False)
        least = np.full(count, n)
        np.minimum.at(least, labels, np.arange(n))
        np.testing.assert_array_equal(on_host(weak_components(*arrays)), least[labels])

        forest = spanning_forest(*arrays)
        assert int(forest.arcs.sum()) == n - count
        # Of parallel arcs, and of arcs back and forth, SciPy would add the numbers: only the least is left.
        tails = np.repeat(np.arange(n), np.diff(indptr))
        pairs = np.minimum(tails, indices) * np.int64(n) + np.maximum(tails, indices)
        _, first = np.unique(pairs, return_index=True)
        simple = sp.coo_array((first + 1.0, (tails[first], indices[first])), shape=(n, n)).tocsr()
        tree = minimum_spanning_tree(simple)
        np.testing.assert_array_equal(np.flatnonzero(on_host(forest.arcs)), np.sort(tree.data.astype(int) - 1))

        parents = on_host(forest.parents)
        ancestors = np.where(parents < 0, np.arange(n), parents)
        for _ in range(20):
            ancestors = ancestors[ancestors]
        np.testing.assert_array_equal(ancestors, least[labels])
        child = np.flatnonzero(parents >= 0)
        edges = np.sort(np.minimum(child, parents[child]) * np.int64(n) + np.maximum(child, parents[child]))
        np.testing.assert_array_equal(edges, np.sort(pairs[on_host(forest.arcs)]))

        turned, transposed = reverse(*arrays), matrix.tocsc()
        np.testing.assert_array_equal(on_host(turned.indptr), transposed.indptr)
        np.testing.assert_array_equal(on_host(turned.indices), transposed.indices)
        np.testing.assert_array_equal(on_host(turned.arcs), transposed.data.astype(int) - 1)


def test_networkx_agrees(xp):
    indptr, indices = random_graph(7, 400, 380)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(400))
    graph.add_edges_from(zip(np.repeat(np.arange(400), np.diff(indptr)).tolist(), indices.tolist(), strict=True))
    arrays = xp.asarray(indptr), xp.asarray(indices)
    labels = on_host(weak_components(*arrays)).tolist()
    assert {(labels[min(c)], *sorted(c)) for c in nx.weakly_connected_components(graph)} == {
        (min(c), *sorted(c)) for c in nx.weakly_connected_components(graph)
    }
    assert degrees(*arrays).balanced == all(graph.in_degree(v) == graph.out_degree(v) for v in graph)
    parents = on_host(spanning_forest(*arrays).parents).tolist()
    forest = nx.Graph((v, p) for v, p in enumerate(parents) if p >= 0)
    forest.add_nodes_from(range(400))
    assert nx.is_forest(forest)
    assert nx.number_connected_components(forest) == len(set(labels))


def test_long_paths_do_not_take_long(xp):
    """A walk along each path from each vertex would take hours."""
    n = 300_000
    names = np.random.default_rng(3).permutation(n)
    for order in np.arange(n), np.arange(n)[::-1], names:
        arrays = [xp.asarray(x) for x in csr(order[:-1], order[1:], n)]
        forest = spanning_forest(*arrays)
        assert bool(forest.arcs.all())
        assert not bool(forest.components.any())
        place = np.argsort(order)
        toward = np.sign(place[0] - place)
        expected = np.where(toward == 0, -1, order[place + toward])
        np.testing.assert_array_equal(on_host(forest.parents), expected)
        assert not bool(weak_components(*arrays).any())


def test_two_passes_and_one_give_the_same_reverse(monkeypatch):
    for seed, skew in (0, 1), (1, 4):
        indptr, indices = random_graph(seed, 70_000, 200_000, skew=skew)
        results = []
        for scattered in True, False:
            monkeypatch.setattr(csr_numba, "_scattered", lambda _, scattered=scattered: scattered)
            results.append(reverse(indptr, indices))
        order = np.argsort(indices, kind="stable")
        for result in results:
            np.testing.assert_array_equal(result.arcs, order)
            np.testing.assert_array_equal(result.indptr, np.searchsorted(indices[order], np.arange(70_001)))


def test_views_of_any_strides(xp):
    indptr, indices = (xp.asarray(x) for x in random_graph(5, 90, 400))
    apart = xp.repeat(indptr, 2)[::2], xp.repeat(indices, 3)[1::3]
    for operation in edge_expansion, reverse, weak_components, spanning_forest:
        found, expected = operation(*apart), operation(indptr, indices)
        for x, y in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
            assert (x is None and y is None) or bool((x == y).all())


@pytest.mark.parametrize("operation", [degrees, edge_expansion, reverse, weak_components, spanning_forest])
def test_misuse_is_named(xp, operation):
    indptr, indices = xp.asarray([0, 1, 2, 2]), xp.asarray([1, 2])
    with pytest.raises(TypeError, match="indptr is a list; pass a NumPy or a CuPy array"):
        operation([0, 1, 2, 2], indices)
    with pytest.raises(TypeError, match="indices is float64; graphs are int32 or int64"):
        operation(indptr, indices * 1.0)
    with pytest.raises(TypeError, match="indptr is uint32; graphs are int32 or int64"):
        operation(indptr.astype("uint32"), indices)
    with pytest.raises(ValueError, match="indices has 2 dimensions"):
        operation(indptr, indices[None])
    with pytest.raises(ValueError, match="indptr is empty"):
        operation(indptr[:0], indices[:0])
    for wrong in [0, 2, 1, 2], [0, 1, 2, 3], [1, 1, 2, 2]:
        with pytest.raises(ValueError, match="indptr must rise from 0 to the number of arcs, 2"):
            operation(xp.asarray(wrong), indices)
    for head in -1, 3:
        with pytest.raises(ValueError, match="they must be vertices, 0 to 2"):
            operation(indptr, xp.asarray([1, head]))


def test_weights_are_one_for_each_arc(xp):
    with pytest.raises(ValueError, match="there are 2 indices and 3 weights; give one weight for each"):
        reverse(xp.asarray([0, 1, 2, 2]), xp.asarray([1, 2]), xp.ones(3))


def test_without_a_check_the_result_is_the_same(xp):
    arrays = [xp.asarray(x) for x in random_graph(9, 200, 300)]
    assert bool((edge_expansion(*arrays, check=False) == edge_expansion(*arrays)).all())
    assert bool((spanning_forest(*arrays, check=False).parents == spanning_forest(*arrays).parents).all())


def test_starts_of_rows_and_ranges_of_equal_size(xp):
    vertices = xp.asarray([3, 1, 1, 3, 3])
    assert on_host(row_starts(vertices, 5)).tolist() == [0, 0, 2, 2, 5, 5]
    assert equal_ranges(np.array([0, 10, 10, 20, 30, 40]), 2) == [(0, 3), (3, 5)]
    assert equal_ranges(np.array([0]), 2) == [(0, 0), (0, 0)]
    assert equal_ranges(np.array([0, 0, 100, 100, 101]), 4) == [(0, 2), (2, 2), (2, 2), (2, 4)]

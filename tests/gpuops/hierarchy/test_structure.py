"""Order and structure of a hierarchy, compared with textbook elimination on sets of neighbours."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from road_graphs import DTYPES, made, random_graph

from gpuops import close_hierarchy, hierarchy_order, hierarchy_structure
from gpuops.hierarchy import structure_numba
from gpuops.hierarchy.dissection_numba import dissect
from gpuops.hierarchy.order import _pattern
from pipelines.generators import RMat


def neighbours_when_eliminated(graph, structure):
    """Return the higher neighbours of each place when it is eliminated."""
    place, found = structure.place, [set() for _ in range(structure.open)]
    for a, b in zip(place[graph.tails].tolist(), place[graph.heads].tolist(), strict=True):
        if a != b and max(a, b) < structure.open:
            found[min(a, b)].add(max(a, b))
    for v in range(structure.open):
        if found[v]:
            found[min(found[v])] |= found[v] - {min(found[v])}
    return found


@given(seed=st.integers(0, 2**32), closed=st.booleans(), brick=st.sampled_from([1, 20, 1024]))
def test_nodes_and_fronts(seed, closed, brick):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, closed=closed)
    indptr, indices, _ = graph.rows("int32")
    structure, cost = hierarchy_structure(indptr, indices, rng.permutation(graph.n), graph.through, brick=brick)
    assert sorted(structure.order) == list(range(graph.n))
    assert graph.through[structure.order].tolist() == [True] * structure.open + [False] * (graph.n - structure.open)
    higher = neighbours_when_eliminated(graph, structure)
    for node in range(cost.nodes):
        first, last = structure.starts[node : node + 2]
        front = structure.front[slice(*structure.front_starts[node : node + 2])]
        assert set().union(*higher[first:last]) - set(range(first, last)) == set(front.tolist())
        assert list(front) == sorted(front)
    widths, fronts = np.diff(structure.starts), np.diff(structure.front_starts)
    assert (cost.nodes, cost.front) == (len(widths), len(structure.front))
    assert cost.relaxations == sum(w * (w + r) ** 2 for w, r in zip(widths.tolist(), fronts.tolist(), strict=True))
    assert cost.widest == max(widths + fronts, default=0)


@given(seed=st.integers(0, 2**32), brick=st.sampled_from([1, 9, 30]))
def test_bricks_are_the_largest_subtrees_that_are_small(seed, brick):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    structure, _ = hierarchy_structure(*graph.rows("int32")[:2], rng.permutation(graph.n), brick=brick)
    parent, sizes = structure.parent, np.diff(structure.starts).copy()
    for node, above in enumerate(parent):
        if above >= 0:
            sizes[above] += sizes[node]
    expected = [v for v in range(len(parent)) if sizes[v] <= brick and (parent[v] < 0 or sizes[parent[v]] > brick)]
    assert structure.roots.tolist() == expected
    bricks = structure.bricks
    assert bricks.sizes.tolist() == sizes[expected].tolist()
    assert bricks.upper == graph.n - bricks.sizes.sum()
    for k, root in enumerate(expected):
        first = structure.starts[root + 1] - sizes[root]
        assert first == bricks.first_place[k]
        inside = np.unique(structure.node_of[first : structure.starts[root + 1]])
        assert bricks.nodes[slice(*bricks.node_starts[k : k + 2])].tolist() == inside.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("undirected", [True, False])
def test_the_cost_is_what_is_allocated(dtype, undirected):
    graph = made(400, np.random.default_rng(0).integers(0, 400, (700, 2)), undirected=undirected)
    indptr, indices, weights = graph.rows(dtype)
    structure, cost = hierarchy_structure(indptr, indices, hierarchy_order(indptr, indices))
    hierarchy = close_hierarchy(structure, indptr, indices, weights)
    into = 0 if undirected else hierarchy.into.nbytes
    assert cost.table_bytes(dtype, undirected) == hierarchy.out.nbytes + into + structure.front.nbytes
    assert (cost.out, cost.into) == (len(hierarchy.out), structure.into_starts[-1])


def test_what_is_dense_is_refused_before_it_is_allocated(monkeypatch):
    """The first arrays of the size of the hierarchy are the fronts, so a refused graph must not reach `fronts`."""
    tails, heads, _ = RMat(10, seed=1, edge_factor=8).arcs()
    indptr, indices, _ = made(1024, np.stack([tails, heads], 1)).rows("int32")
    order = hierarchy_order(indptr, indices)
    _, cost = hierarchy_structure(indptr, indices, order, limit=1e9)
    monkeypatch.setattr(structure_numba, "fronts", None)
    with pytest.raises(ValueError, match=rf"takes 7e\+06 relaxations, with {cost.widest} vertices at once"):
        hierarchy_structure(indptr, indices, order, limit=cost.relaxations - 1)


# --- Order ------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), closed=st.booleans(), thorough=st.booleans())
def test_an_order_is_a_permutation_with_closed_vertices_last(seed, closed, thorough):
    graph = random_graph(np.random.default_rng(seed), closed=closed)
    order = hierarchy_order(*graph.rows("int32")[:2], graph.through, thorough=thorough)
    assert sorted(order) == list(range(graph.n))
    assert graph.through[order].tolist() == sorted(graph.through, reverse=True)


def test_a_long_road_becomes_a_tree_of_logarithmic_height():
    n = 10_000
    indptr, indices, _ = made(n, np.stack([np.arange(n - 1), np.arange(1, n)], 1)).rows("int32")
    structure, cost = hierarchy_structure(indptr, indices, hierarchy_order(indptr, indices))
    height = np.zeros(cost.nodes, int)
    for node, above in enumerate(structure.parent):
        if above >= 0:
            height[above] = max(height[above], height[node] + 1)
    assert height.max() < 30
    assert cost.widest < 20


def test_metis_finds_the_separators_of_a_grid():
    side = 40
    arcs = [(v, v + step) for v in range(side * side - side) for step in (1, side) if step > 1 or v % side < side - 1]
    indptr, indices, _ = made(side * side, arcs).rows("int32")
    costs = [
        hierarchy_structure(indptr, indices, order)[1]
        for order in (hierarchy_order(indptr, indices), np.arange(side * side))
    ]
    assert costs[0].relaxations < costs[1].relaxations / 3
    assert costs[0].widest < 3 * side


def test_without_pymetis(monkeypatch):
    """Levels find the separators of a grid, whether or not the grid has other components."""
    side = 40
    arcs = [(v, v + step) for v in range(side * side - side) for step in (1, side) if step > 1 or v % side < side - 1]
    clique = [(side * side + i, side * side + j) for i in range(12) for j in range(i)]
    graph = made(side * side + 13, arcs + clique).rows("int32")[:2]
    of_metis = hierarchy_structure(*graph, hierarchy_order(*graph))[1]
    monkeypatch.setitem(sys.modules, "pymetis", None)  # makes the import fail
    order = hierarchy_order(*graph)
    assert np.array_equal(np.sort(order), np.arange(len(order)))
    assert hierarchy_structure(*graph, order)[1].relaxations < 1.5 * of_metis.relaxations
    with pytest.raises(ImportError, match=r"a thorough order needs pymetis: pip install -e .*\[hierarchy\]"):
        hierarchy_order(*graph, thorough=True)


@pytest.mark.parametrize("seed", range(40))
def test_dissections_of_random_graphs_are_permutations(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    tails, heads = np.concatenate([rng.integers(0, n, (2, int(rng.integers(0, 4 * n)))), [[0] * n, range(n)]], axis=1)
    kept = tails != heads
    if seed % 2:  # without the star
        kept[-n:] = False
    graph = made(n, list(zip(tails[kept].tolist(), heads[kept].tolist(), strict=True))).rows("int32")
    starts, neighbours = _pattern(*graph[:2], np.ones(n, bool), n)
    assert np.array_equal(np.sort(dissect(starts, neighbours)), np.arange(n))


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0.0, 1.0, 2.0]])
def test_wrong_orders(order):
    with pytest.raises(ValueError, match="pass a permutation of the 3 vertices"):
        hierarchy_structure(*made(3, [(0, 1)]).rows("int32")[:2], order)


def test_wrong_masks():
    arcs = made(3, [(0, 1)]).rows("int32")[:2]
    for through in np.ones(2, bool), np.ones(3):
        with pytest.raises(ValueError, match="give a bool for each of 3 vertices"):
            hierarchy_order(*arcs, through)

"""Routes from a hierarchy store: few are found without a row of distances, and they are those that rows give."""

import numpy as np
import pytest
from families import SLOW
from path_rows import rounding_arcs

from gpuops import close_hierarchy, hierarchy_order, hierarchy_structure
from gpuops.certificates import find_potentials
from pipelines import VerificationError, WeightRangeError, paths_of_pairs, positions, shortest_path
from pipelines.routes import paths
from pipelines.routes.paths import NoPathError, PathFinder
from pipelines.stores import hierarchy as hierarchy_module
from pipelines.stores.hierarchy import create_hierarchy, open_hierarchy


@pytest.fixture
def solved(solve, tmp_path):
    """``solved(n, arcs, dtype)``: the distances store and the hierarchy store of a graph."""

    def write(n, arcs, dtype, **facts):
        distances, graph = solve(n, arcs, dtype, **facts)
        indptr, indices, weights = graph.rows()
        weights, through = weights.astype(dtype), graph.through()
        structure, cost = hierarchy_structure(indptr, indices, hierarchy_order(indptr, indices, through), through)
        potentials = find_potentials(indptr, indices, weights, through) if (weights < 0).any() else None
        run = create_hierarchy(tmp_path / "h", graph, dtype=np.dtype(dtype), options={})
        run.commit_order(structure.order, None)
        run.commit_structure(structure, cost)
        run.complete(close_hierarchy(structure, indptr, indices, weights, potentials=potentials))
        return distances, open_hierarchy(tmp_path / "h")

    return write


@pytest.fixture
def no_rows(monkeypatch):
    monkeypatch.setattr(hierarchy_module, "distance_rows", None)


@pytest.mark.parametrize("dtype", ["int32", pytest.param("float32", marks=SLOW), pytest.param("int16", marks=SLOW)])
def test_few_routes_are_those_of_rows(solved, graphs, case, dtype, monkeypatch):
    n, arcs, facts = graphs[case]
    distances, store = solved(n, arcs, dtype, **facts)
    pairs = positions(np.random.default_rng(0).permutation(np.argwhere(np.ones((n, n))))[: n * n // 2])
    expected = paths_of_pairs(distances, pairs)
    for few in (False, True):
        monkeypatch.setattr(paths, "_few", lambda *asked, few=few: few)
        assert paths_of_pairs(store, pairs).equals(expected)
        monkeypatch.setattr(hierarchy_module, "distance_rows", None)


def test_one_route_needs_no_row(solved, graphs, no_rows):
    n, arcs, facts = graphs["closed"]
    distances, store = solved(n, arcs, "int32", **facts)
    matrix, finder = distances[:], PathFinder(store)
    closed = np.flatnonzero(~facts["through"])
    for s, t in [
        (0, 0),
        (closed[0], closed[0]),
        (closed[1], closed[2]),
        (closed[1], 7),
        (7, closed[1]),
        (0, 39),
        (0, 5),
    ]:
        if matrix[s, t] == np.iinfo("int32").max:
            with pytest.raises(NoPathError, match=f"vertex {s} to vertex {t}"):
                finder.path(positions(s), positions(t))
        else:
            path = finder.path(positions(s), positions(t))
            assert (path.vertices[0], path.vertices[-1]) == (s, t)
            assert sum(path.weights) == path.total == path.distance == matrix[s, t]


@pytest.mark.parametrize("signed", [False, pytest.param(True, marks=SLOW)])
def test_rounded_distances(solved, no_rows, signed):
    """The distance of a route has the bits of `distances_between`; the sum of its weights differs by rounding alone."""
    n, arcs = rounding_arcs(signed)
    _, store = solved(n, arcs, "float32")
    block, finder = store.between(np.arange(0, n, 7), np.arange(n - 1)), PathFinder(store)
    spread = np.ptp(block[np.isfinite(block)])
    for row, s in zip(block, range(0, n, 7), strict=True):
        for t in np.flatnonzero(np.isfinite(row)):
            path = finder.path(positions(s), positions(int(t)))
            assert path.distance == row[t]
            # Each arc fits within the tolerance of at most 64 arcs: 64 eps of the distance, or of the spread.
            scale = spread if signed else row[t]
            assert abs(path.total - row[t]) <= 64 * np.finfo("float32").eps * scale * max(1, len(path.weights))


def test_tables_of_another_graph_are_no_path(solved):
    _, store = solved(4, ([0, 1, 2], [1, 2, 3], [5, 5, 5]), "int32")
    tables = store.hierarchy.out
    tables[(0 < tables) & (tables < 100)] += 1  # in this process alone
    with pytest.raises(VerificationError, match="no path from vertex 0 to vertex 3 has length 16"):
        shortest_path(store, 0, 3)


def test_a_distance_beyond_the_dtype_is_an_error(solved):
    n, weights = 60, np.full(59, 9_200_000)
    _, store = solved(n, (np.arange(59), np.arange(1, 60), weights), "int32")
    assert len(shortest_path(store, 0, 20).weights) == 20
    with pytest.raises(WeightRangeError, match="h: a distance is 542,800,000, .*; make the store again with .*--dtype"):
        shortest_path(store, 0, 59)


def test_rows_are_computed_where_many_routes_are_asked_for():
    assert paths._few(1, 1, 10**6)
    assert paths._few(100, 100, 115_600)
    assert paths._few(1000, 1000, 10**6)
    assert not paths._few(1000, 1000, 115_600)
    assert not paths._few(1000, 10, 10**6)

"""Measures against NetworkX."""

import math
from dataclasses import astuple

import networkx as nx
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from gpuops.numbers import outside_infinity
from pipelines.analysis.measures import measures


def network(n, arcs):
    """The digraph of the lightest arcs."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    for u, v, w in zip(*(np.asarray(a).tolist() for a in arcs), strict=True):
        if u != v and w <= graph.get_edge_data(u, v, {"weight": w})["weight"]:
            graph.add_edge(u, v, weight=w)
    return graph


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@pytest.mark.parametrize("kind", ["random", "sparse", "undirected", "parallel", "plateaus", "no arcs", "one vertex"])
def test_networkx_agrees(solve, graphs, kind, dtype):
    n, arcs, facts = graphs[kind]
    found = measures(solve(n, arcs, dtype, chunk=7, **facts)[0])
    graph = network(n, arcs)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    assert found.eccentricity.tolist() == [max(lengths[v].values()) for v in range(n)]
    assert found.reached.tolist() == [len(lengths[v]) for v in range(n)]
    # NetworkX measures the distances towards a vertex, we those from it.
    closeness = nx.closeness_centrality(graph.reverse(), distance="weight")
    np.testing.assert_allclose(found.closeness, [closeness[v] for v in range(n)], rtol=1e-13)
    finite = [d for v in range(n) for u, d in lengths[v].items() if u != v]
    assert found.unreachable_pairs == n * (n - 1) - len(finite)
    assert found.diameter == max(finite, default=0)
    assert lengths[found.diameter_pair[0]][found.diameter_pair[1]] == found.diameter
    assert found.all_sources
    if nx.is_strongly_connected(graph):
        assert found.radius == nx.radius(graph, weight="weight")
        assert found.diameter == nx.diameter(graph, weight="weight")
        if n > 1:
            assert math.isclose(found.mean_distance, nx.average_shortest_path_length(graph, weight="weight"))
    elif finite:
        assert math.isclose(found.mean_distance, sum(finite) / len(finite))


def test_radius_is_of_vertices_that_reach_all(solve):
    """0 -> 1 -> 2: only 0 reaches all; 2 reaches none, and is no centre for it."""
    found = measures(solve(3, ([0, 1], [1, 2], [3, 4]), "int32")[0])
    assert (found.radius, found.diameter, found.diameter_pair, found.unreachable_pairs) == (7, 7, (0, 2), 3)
    found = measures(solve(3, ([0], [1], [3]), "int32")[0])
    assert math.isnan(found.radius)
    assert found.mean_distance == 3


def test_nothing_reached(solve):
    found = measures(solve(3, (np.empty(0, int), np.empty(0, int), np.empty(0)), "float32")[0])
    assert math.isnan(found.mean_distance)
    assert (found.diameter, found.diameter_pair, found.unreachable_pairs) == (0, (0, 0), 6)
    assert found.closeness.tolist() == [0, 0, 0]


def test_signed_distances(solve, graphs):
    n, arcs, facts = graphs["signed"]
    distances, _ = solve(n, arcs, "int32", **facts)
    found, matrix = measures(distances), distances[:].astype(float)
    matrix[matrix == outside_infinity("int32")] = np.nan
    assert np.nanmin(matrix) < 0
    assert found.eccentricity.tolist() == np.nanmax(matrix, axis=1).tolist()
    assert math.isclose(found.mean_distance, np.nansum(matrix) / (np.isfinite(matrix).sum() - n))


def test_stores_of_some_sources(solve, graphs):
    n, arcs, _ = graphs["sparse"]
    sources = [11, 2, 30, 5, 8]
    every, some = measures(solve(n, arcs, "int32")[0]), measures(solve(n, arcs, "int32", sources=sources, chunk=2)[0])
    assert not some.all_sources
    assert some.sources.tolist() == sources
    assert some.eccentricity.tolist() == every.eccentricity[sources].tolist()
    assert some.closeness.tolist() == every.closeness[sources].tolist()
    assert some.diameter == every.eccentricity[sources].max()
    assert some.diameter_pair[0] in sources
    assert some.unreachable_pairs == 5 * n - every.reached[sources].sum()


def test_a_path_will_do(solve, graphs):
    n, arcs, _ = graphs["random"]
    distances, _ = solve(n, arcs, "int32")
    for one, two in zip(astuple(measures(distances.path)), astuple(measures(distances)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_tables(solve, tmp_path):
    found = measures(solve(3, ([0, 1], [1, 2], [3, 4]), "int32", sources=[1, 0])[0])
    found.write(tmp_path / "out.parquet")
    expected = {"vertex": [1, 0], "eccentricity": [4, 7], "closeness": [0.125, 0.2], "reached": [2, 3]}
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict() == expected
    found.write(tmp_path / "out.csv", names=["a", "b", "c"])
    assert pyarrow.csv.read_csv(tmp_path / "out.csv").to_pydict() == {**expected, "vertex": ["b", "a"]}
    with pytest.raises(ValueError, match=r"out.xls: tables are .csv, .tsv"):
        found.write(tmp_path / "out.xls")

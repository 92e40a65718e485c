"""Degrees, components and balance, the reverse graph and the spanning forest as stores and tables."""

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.analysis import derived_graphs
from pipelines.analysis.derived_graphs import write_forest, write_forest_table, write_reverse
from pipelines.analysis.structure import (
    degree_histogram,
    graph_storage,
    graph_structure,
    write_components,
    write_degrees,
)
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.capacity import DoesNotFitError


def written(path, n, arcs, **facts):
    arcs = np.array(arcs, np.int64).reshape(-1, 2)
    tails, heads = arcs[np.argsort(arcs[:, 0], kind="stable")].T
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    weights = np.arange(len(arcs), dtype="float32")
    return write_graph(path, indptr, heads.astype("int32"), weights, overwrite=True, **facts)


def both_ways(arcs):
    return [end for u, v in arcs for end in ((u, v), (v, u))]


@pytest.mark.parametrize("seed", range(6))
def test_structure_of_random_graphs(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    arcs = rng.integers(0, n, (int(rng.integers(0, 40)), 2)).tolist()
    found = graph_structure(written(tmp_path / "g", n, arcs).path)
    other = nx.MultiDiGraph()
    other.add_nodes_from(range(n))
    other.add_edges_from(arcs)
    outgoing, incoming = (np.array([d for _, d in degree]) for degree in (other.out_degree, other.in_degree))
    assert found.outgoing == (outgoing.min(), pytest.approx(outgoing.mean()), outgoing.max())
    assert found.incoming == (incoming.min(), pytest.approx(incoming.mean()), incoming.max())
    assert found.sources == ((incoming == 0) & (outgoing > 0)).sum()
    assert found.sinks == ((outgoing == 0) & (incoming > 0)).sum()
    assert found.isolated == nx.number_of_isolates(other)
    assert found.components == nx.number_weakly_connected_components(other)
    assert found.unbalanced == (outgoing != incoming).sum()
    core = other.subgraph([v for v in other if other.degree(v)])
    if core:
        assert (found.balanced and found.walks == 1) == nx.is_eulerian(core)
        assert (found.path and found.walks == 1) == (nx.has_eulerian_path(core) and not nx.is_eulerian(core))


def test_balance_of_undirected_graphs_is_even_degrees(tmp_path):
    lane = graph_structure(written(tmp_path / "g", 4, both_ways([(0, 1), (1, 2), (2, 2)]), directed=False))
    assert (lane.unbalanced, lane.path, lane.isolated, lane.walks) == (2, True, 1, 1)
    ring = graph_structure(written(tmp_path / "g", 3, both_ways([(0, 1), (1, 2), (2, 0)]), directed=False))
    assert (ring.balanced, ring.path, ring.outgoing) == (True, False, (2, 2.0, 2))


def test_no_vertices(tmp_path):
    found = graph_structure(written(tmp_path / "g", 0, []))
    assert (found.outgoing, found.components, found.balanced, found.walks) == ((0, 0.0, 0), 0, True, 0)


def test_sparse_rows_pay_off_by_the_published_criterion(tmp_path):
    """m n > 2 e + m + 1, with as many rows and columns as vertices."""
    storage = graph_storage(written(tmp_path / "g", 3, [(0, 1), (1, 2)]))
    assert storage == (2 * 2 + 3 + 1, 9, 8 * 4 + 2 * (4 + 4), 9 * 4)
    assert storage.sparse_pays
    assert not graph_storage(written(tmp_path / "g", 3, [(0, 1), (1, 2), (2, 0)])).sparse_pays
    assert not graph_storage(written(tmp_path / "g", 1, [(0, 0)])).sparse_pays


def test_sparse_rows_of_an_unweighted_graph_have_no_values(tmp_path):
    """n n > e + n + 1; the published v e > e + v + 1 would say no for two arcs, and yes for six."""
    found = []
    for arcs in 2, 5, 6:
        graph = write_graph(tmp_path / str(arcs), np.array([0, arcs, arcs, arcs]), np.arange(arcs) % 3)
        found.append(graph_storage(graph))
    assert found[0] == (2 + 3 + 1, 9, 8 * 4 + 2 * 4, 9)
    assert [storage.sparse_pays for storage in found] == [True, False, False]


def test_a_histogram_has_a_line_for_each_degree_or_ranges_that_double():
    outgoing, incoming = np.array([0, 0, 2, 5]), np.array([2, 2, 2, 1])
    assert degree_histogram(outgoing, incoming) == [(0, 0, 2, 0), (1, 1, 0, 1), (2, 2, 1, 3), (5, 5, 1, 0)]
    degrees = np.arange(101)
    lines = degree_histogram(degrees, degrees)
    assert lines[:5] == [(0, 0, 1, 1), (1, 1, 1, 1), (2, 2, 1, 1), (3, 4, 2, 2), (5, 8, 4, 4)]
    assert lines[-1] == (65, 128, 36, 36)
    assert sum(leaving for _, _, leaving, _ in lines) == 101


def test_tables_by_label(tmp_path):
    graph = written(tmp_path / "g", 4, [(3, 1), (1, 1)], labels=np.array(["x", "y", "z", "w"]))
    assert write_degrees(graph, tmp_path / "d.parquet") == 4
    assert pq.read_table(tmp_path / "d.parquet").to_pydict() == {
        "vertex": ["x", "y", "z", "w"], "out": [0, 1, 0, 1], "in": [0, 2, 0, 0]
    }  # fmt: skip
    assert write_components(graph, tmp_path / "c.parquet") == 4
    assert pq.read_table(tmp_path / "c.parquet")["component"].to_pylist() == [0, 1, 2, 1]
    assert write_forest_table(graph, tmp_path / "t.parquet") == 4
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {
        "vertex": ["x", "y", "z", "w"], "parent": [None, None, None, "y"], "root": ["x", "y", "z", "y"]
    }  # fmt: skip
    for write in (write_degrees, write_components, write_forest_table):
        with pytest.raises(FileExistsError):
            write(graph, tmp_path / "d.parquet")
        with pytest.raises(ValueError, match="tables are"):
            write(graph, tmp_path / "d.xyz")


@pytest.mark.parametrize("sorted_rows", [True, False])
def test_the_reverse_as_a_store(tmp_path, monkeypatch, sorted_rows):
    monkeypatch.setattr(derived_graphs, "PIECE", 3)
    rng = np.random.default_rng(4)
    facts = {
        "labels": np.arange(9).astype(str),
        "coordinates": rng.random((9, 2)),
        "through": rng.random(9) < 0.5,
        "weight_unit": "km",
    }
    graph = written(tmp_path / "g", 9, rng.integers(0, 9, (30, 2)), sorted_rows=sorted_rows, **facts)
    turned = write_reverse(graph, tmp_path / "r")
    turned.verify()
    assert turned.sorted_rows
    assert (turned.n, turned.m, turned.weight_unit, turned.source) == (9, 30, "km", "reverse of g")
    np.testing.assert_array_equal(turned.weights(), graph.weights()[graph.reverse.arcs])
    assert list(turned) == list(graph.reverse)
    for name in ("labels", "coordinates", "through"):
        np.testing.assert_array_equal(getattr(turned, name)(), getattr(graph, name)())
    assert sorted(arcs_of(write_reverse(turned, tmp_path / "again"))) == sorted(arcs_of(graph))


def arcs_of(graph):
    indptr, indices, weights = graph.rows()
    return list(zip(np.repeat(np.arange(graph.n), np.diff(indptr)), indices, weights, strict=True))


@pytest.mark.parametrize("directed", [True, False])
def test_the_forest_as_a_store(tmp_path, directed):
    rng = np.random.default_rng(5)
    arcs = rng.integers(0, 12, (20, 2)).tolist()
    graph = written(tmp_path / "g", 12, arcs if directed else both_ways(arcs), directed=directed, sorted_rows=False)
    tree = write_forest(graph, tmp_path / "t")
    tree.verify()
    components = graph_structure(graph).components
    assert graph_structure(tree).components == components
    assert tree.m == (12 - components) * (1 if directed else 2)
    assert (tree.directed, tree.sorted_rows) == (directed, not directed)
    if tree.sorted_rows:
        assert all((np.diff(tree.indices(*tree.indptr(v, v + 1))) >= 0).all() for v in range(tree.n))
    assert set(zip(*ends(tree), strict=True)) <= set(zip(*ends(graph), strict=True))
    if not directed:
        assert set(zip(*ends(tree), strict=True)) == set(zip(*reversed(ends(tree)), strict=True))


def ends(graph):
    return np.repeat(np.arange(graph.n), np.diff(graph.indptr())).tolist(), graph.indices().tolist()


def test_nothing_is_overwritten_or_begun_that_cannot_fit(tmp_path, monkeypatch):
    graph = written(tmp_path / "g", 3, [(0, 1)])
    for write in (write_reverse, write_forest):
        with pytest.raises(StoreError, match="exists already"):
            write(graph, tmp_path / "g")
        with pytest.raises(StoreError, match="is the input"):
            write(graph, tmp_path / "g", overwrite=True)
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.workers.capacity.available_memory", lambda: 10)
            with pytest.raises(DoesNotFitError, match=r"arcs need .* has 10 B free\. Use a machine"):
                write(graph, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["g"]

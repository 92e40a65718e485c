"""Betweenness of stores beside NetworkX, and beside one worker."""

import os
import signal
from dataclasses import replace

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from oracles import random_arcs, store_arcs

import gpuops
from gpuops import VerificationError
from gpuops.centrality.pairwise_sums import PairwiseSums
from pipelines import DoesNotFitError, betweenness, link_flows, open_graph, planned
from pipelines.centrality import sums_on_workers
from pipelines.workers.capacity import measure_workers
from pipelines.workers.row_chunks import DealtRows

N = 120


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Graph stores by name, each with a graph of NetworkX; parallel arcs and loops among the arcs."""
    folder, found = tmp_path_factory.mktemp("graphs"), {}
    for directed in True, False:
        tails, heads, weights = random_arcs(N, 3 * N, low=1, high=4, seed=directed, undirected=not directed)
        name = "directed" if directed else "undirected"
        store = store_arcs(folder / name, N, tails, heads, weights, np.float32, directed=directed)
        graph = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(N))
        for tail, head, weight in zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True):
            lighter = min(weight, graph.get_edge_data(tail, head, {"weight": weight})["weight"])
            graph.add_edge(tail, head, weight=lighter)
        found[name] = store, graph
    return found


@pytest.mark.parametrize("name", ["directed", "undirected"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hops": True, "endpoints": True},
        {"normalized": False},
        {"sample": 30, "seed": 5},
        {"sample": 40, "seed": 1, "normalized": False, "endpoints": True},
        {"sample": N, "hops": True},
    ],
)
def test_values_are_those_of_networkx(graphs, two, name, options):
    store, graph = graphs[name]
    table = betweenness(two, store, **options)
    wanted = {key: options[key] for key in ("endpoints", "normalized", "seed") if key in options}
    weight = None if options.get("hops") else "weight"
    expected = nx.betweenness_centrality(graph, k=options.get("sample"), weight=weight, **wanted)
    assert table["vertex"].to_pylist() == list(range(N))
    np.testing.assert_allclose(table["betweenness"], [expected[v] for v in range(N)], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["directed", "undirected"])
@pytest.mark.parametrize("options", [{}, {"hops": True, "sample": 30, "seed": 2, "normalized": False}])
def test_edges(graphs, client, tmp_path, name, options):
    store, graph = graphs[name]
    table = betweenness(client, store, tmp_path / "edges.csv", edges=True, **options)
    sums = {}
    for source, target, value in zip(*(table[column].to_pylist() for column in table.column_names), strict=True):
        assert name == "directed" or int(source) <= int(target)
        pair = int(source), int(target)
        sums[pair] = sums.get(pair, 0.0) + value  # parallel edges share the value of their pair
    wanted = {key: options[key] for key in ("normalized", "seed") if key in options}
    weight = None if options.get("hops") else "weight"
    expected = nx.edge_betweenness_centrality(graph, k=options.get("sample"), weight=weight, **wanted)
    expected = {pair if name == "directed" else tuple(sorted(pair)): value for pair, value in expected.items()}
    assert sums == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert table.num_rows == (store.m if name == "directed" else (store.m + loops(store)) // 2)
    written = pyarrow.csv.read_csv(tmp_path / "edges.csv")
    assert written.column_names == ["source", "target", "betweenness"]
    np.testing.assert_array_equal(written["betweenness"], table["betweenness"])


def loops(store):
    indptr, indices, _ = store.rows()
    return int((np.repeat(np.arange(store.n), np.diff(indptr)) == indices).sum())


def test_closed_vertices_and_labels(tmp_path, client):
    arcs = np.array([[0, 1, 0, 3, 1, 2, 3, 2], [1, 2, 3, 2, 0, 1, 0, 3], np.ones(8)])
    through = np.array([True, False, True, True])  # of two ways from 0 to 2, one is closed
    tails, heads = arcs[:2].astype(int)
    store = store_arcs(
        tmp_path / "g",
        4,
        tails,
        heads,
        arcs[2],
        np.int32,
        directed=False,
        through=through,
        labels=np.array(list("abcd")),
    )
    table = betweenness(client, store, normalized=False)
    assert dict(zip(*(table[name].to_pylist() for name in table.column_names), strict=True)) == {
        "a": 0.5, "b": 0, "c": 0.5, "d": 1,
    }  # fmt: skip


def test_the_number_of_workers_changes_no_bit(graphs, client, two, monkeypatch):
    store, _ = graphs["undirected"]
    monkeypatch.setattr(sums_on_workers, "TASKS", 1)
    assert sums_on_workers.sources_of_task(store, N, 1) != sums_on_workers.sources_of_task(store, N, 2)
    one, both = (bits(betweenness(workers, store, edges=True)) for workers in (client, two))
    assert one == both


@pytest.mark.slow
def test_a_lost_worker_changes_no_bit(graphs, client, two_processes, monkeypatch):
    store, _ = graphs["undirected"]
    monkeypatch.setattr(sums_on_workers, "TASKS", 1)
    expected = bits(betweenness(client, store, edges=True))
    assert bits(betweenness(two_processes, store, edges=True)) == expected
    add, workers, attempts = PairwiseSums.add, [*two_processes.run(os.getpid).values()], []

    def kill_once(sums, number, found):
        if workers:
            os.kill(workers[0], signal.SIGKILL)
            workers.clear()
        add(sums, number, found)

    class Noted(DealtRows):
        def __init__(self, *arguments):
            attempts.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(PairwiseSums, "add", kill_once)
    monkeypatch.setattr(sums_on_workers, "DealtRows", Noted)
    assert bits(betweenness(two_processes, store, edges=True)) == expected
    assert len(attempts) > 1


def bits(table):
    return table["betweenness"].to_numpy().tobytes()


def test_the_plan(graphs, client):
    store, _ = graphs["directed"]
    plan = planned(betweenness, client, store, hops=True, sample=7)
    assert plan.method == "hops"
    assert "7 sources, 1 worker on CPU, by hops: memory" in plan.text
    assert planned(betweenness, client, store, edges=True).memory_bytes > plan.memory_bytes


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sample": 0}, "sample is 0; choose 1 to 120 sources"),
        ({"sample": N + 1}, "sample is 121; choose"),
        ({"seed": 1}, r"seed \(--seed\) chooses the sources of a sample; give its size"),
        ({"edges": True, "endpoints": True}, "edges are no ends of paths; leave out endpoints"),
        ({"out": "table.txt"}, "tables are .csv"),
    ],
)
def test_options_that_are_refused(graphs, client, options, says):
    with pytest.raises(ValueError, match=says):
        betweenness(client, graphs["directed"][0], **options)


def test_a_generated_graph(client):
    table = betweenness(client, "rmat:5", hops=True, normalized=False)
    indptr, indices, _ = open_graph("rmat:5").rows()
    assert table["betweenness"].to_pylist() == (gpuops.betweenness(indptr, indices).vertices / 2).tolist()


def test_a_weighted_graph_without_arcs(tmp_path, client):
    none = np.array([], np.int64)
    store = store_arcs(tmp_path / "g", 3, none, none, np.array([], np.float64), np.float64, directed=True)
    assert betweenness(client, store)["betweenness"].to_pylist() == [0, 0, 0]
    nobody = pa.table({column: pa.array([], pa.float64()) for column in ("origin", "destination", "amount")})
    assert len(link_flows(client, store, nobody)) == 0


def test_graphs_that_are_refused(tmp_path, client):
    for weight, says in (
        (0, "has a weight of 0, and paths .* count arcs with hops=True"),
        (1e-20, "g: the weight 1e-20 of"),
    ):
        store = store_arcs(
            tmp_path / f"{weight}g",
            3,
            np.array([0, 1]),
            np.array([1, 2]),
            np.array([1.0, weight]),
            np.float64,
            directed=True,
        )
        with pytest.raises(ValueError, match=says):
            betweenness(client, store)
        assert betweenness(client, store, hops=True)["betweenness"].to_pylist() == [0, 0.5, 0]


def test_workers_that_are_refused(graphs, client, monkeypatch):
    store, facts = graphs["directed"][0], measure_workers(client, None)
    small = [replace(fact, free_memory=10**4, host_memory=10**4) for fact in facts]
    monkeypatch.setattr(sums_on_workers, "measure_workers", lambda *_: small)
    with pytest.raises(DoesNotFitError, match=r"120 vertices and 360 arcs need .*leave out edges \(--edges\)") as said:
        betweenness(client, store, edges=True)
    assert said.value.plan.method == "weights"


def test_a_wrong_sum_is_noticed(graphs, client, monkeypatch):
    right = sums_on_workers.Betweenness
    monkeypatch.setattr(sums_on_workers, "Betweenness", lambda vertices, *rest: right(vertices * 1.01, *rest))
    with pytest.raises(VerificationError, match="the betweenness of all vertices adds up to"):
        betweenness(client, graphs["directed"][0])


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["directed", "undirected"])
@pytest.mark.parametrize("options", [{}, {"edges": True}, {"hops": True, "endpoints": True}, {"sample": 50, "seed": 1}])
def test_a_gpu_returns_the_bits_of_a_cpu(graphs, client, gpu_client, name, options):
    store, _ = graphs[name]
    assert betweenness(gpu_client, store, **options).equals(betweenness(client, store, **options))

"""Flows of stores beside those of arrays, the forms of a demand, and the command."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
import scipy.sparse
from commands import run_command
from oracles import random_arcs, store_arcs

import gpuops
from gpuops import VerificationError
from pipelines import DoesNotFitError, link_flows, planned
from pipelines.centrality import flows, sums_on_workers
from pipelines.workers.capacity import measure_workers

N = 100


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A strongly connected directed graph with labels, and a demand as arrays of positions."""
    tails, heads, weights = random_arcs(N, 3 * N, low=1, high=4, seed=1)
    ring = np.arange(N)
    tails, heads, weights = (
        np.append(*each) for each in ((tails, ring), (heads, (ring + 1) % N), (weights, np.full(N, 9)))
    )
    store = store_arcs(
        tmp_path_factory.mktemp("town") / "g", N, tails, heads, weights, np.int32, directed=True,
        labels=np.array([f"v{i}" for i in range(N)]), weight_unit="s",
    )  # fmt: skip
    rng = np.random.default_rng(3)
    return store, (*rng.integers(0, N, (2, 300)), rng.random(300))


def table_of(demand):
    origins, destinations, amounts = demand
    names = [[f"v{i}" for i in ends] for ends in (origins, destinations)]
    return pa.table({"origin": names[0], "destination": names[1], "amount": amounts})


def test_every_form_of_a_demand_has_the_flows_of_arrays(town, two, tmp_path):
    store, demand = town
    expected = gpuops.link_flows(*store.rows(), *demand)
    table = table_of(demand)
    found = link_flows(two, store, table, tmp_path / "flows.csv")
    assert found["flow"].to_numpy().tobytes() == expected.arcs.tobytes()
    assert float(found.schema.metadata[b"cost"]) == expected.cost
    indptr, indices, _ = store.rows()
    assert found["target"].to_pylist() == [f"v{i}" for i in indices]
    assert found["source"].to_pylist() == [f"v{i}" for i in np.repeat(np.arange(N), np.diff(indptr))]
    np.testing.assert_array_equal(pyarrow.csv.read_csv(tmp_path / "flows.csv")["flow"], found["flow"])
    pyarrow.csv.write_csv(table.rename_columns(["source", "target", "amount"]), tmp_path / "trips.csv")
    matrix = scipy.sparse.coo_array((demand[2], demand[:2]), (N, N))
    for form in (table.to_pandas(), tmp_path / "trips.csv", matrix.tocsr(), matrix):
        again = link_flows(two, store.path, form)
        np.testing.assert_allclose(again["flow"], expected.arcs, rtol=1e-12)
    assert not link_flows(two, store, table[:0])["flow"].to_numpy().any()


def test_the_number_of_workers_changes_no_bit(town, client, two, monkeypatch):
    store, demand = town
    monkeypatch.setattr(sums_on_workers, "TASKS", 1)
    one, both = (link_flows(workers, store, table_of(demand))["flow"].to_numpy() for workers in (client, two))
    assert one.tobytes() == both.tobytes()


def test_closed_vertices_and_both_directions_of_edges(tmp_path, client):
    tails, heads = np.array([[0, 1, 0, 3, 1, 2, 3, 2], [1, 2, 3, 2, 0, 1, 0, 3]])
    through = np.array([True, False, True, True])  # of two ways from 0 to 2, one is closed
    store = store_arcs(tmp_path / "g", 4, tails, heads, np.ones(8), np.float32, directed=False, through=through)
    table = link_flows(client, store, pd.DataFrame({"origin": [0, 2], "destination": [2, 0], "amount": [5, 1]}))
    flow = {(a, b): f for a, b, f in zip(*(table[name].to_pylist() for name in table.column_names), strict=True) if f}
    assert flow == {(0, 3): 5, (3, 2): 5, (2, 3): 1, (3, 0): 1}


@pytest.mark.parametrize(
    ("demand", "says"),
    [
        ({"origin": ["v1"], "destination": ["v2"], "amount": [-1]}, "demand, row 1: `amount` is -1; give 0 or more"),
        ({"origin": ["v1"], "destination": ["w"], "amount": [1]}, "demand, row 1: .*there is no vertex 'w'"),
        ({"origin": ["v1"], "destination": ["v2"]}, "demand: no column `amount`"),
        (scipy.sparse.coo_array((3, 3)), r"shape \(3, 3\); give a matrix of 100 x 100 amounts"),
    ],
)
def test_demands_that_are_refused(town, client, demand, says):
    with pytest.raises(ValueError, match=says):
        link_flows(client, town[0], demand if hasattr(demand, "tocoo") else pa.table(demand))


def test_graphs_and_workers_that_are_refused(town, client, tmp_path, monkeypatch):
    trip = pa.table({"origin": ["a"], "destination": ["b"], "amount": [2]})
    labels, arcs = np.array(["a", "b"]), (np.array([1]), np.array([0]), np.array([1.0]))
    one_way = store_arcs(tmp_path / "g", 2, *arcs, np.float64, directed=True, labels=labels)
    with pytest.raises(ValueError, match="no path leads from vertex a to vertex b, so the amount 2 cannot travel"):
        link_flows(client, one_way, trip)
    free = store_arcs(tmp_path / "f", 2, *arcs[:2], np.zeros(1), np.float64, directed=True, labels=labels)
    with pytest.raises(ValueError, match="has a weight of 0, and paths along weights of 0 or less"):
        link_flows(client, free, trip)
    store, facts = town[0], measure_workers(client, None)
    trip = pa.table({"origin": ["v1"], "destination": ["v2"], "amount": [2]})
    text = planned(link_flows, client, store, trip).text
    assert "1 pair from 1 origin, 1 worker on CPU: memory" in text
    monkeypatch.setattr(sums_on_workers, "measure_workers", lambda *_: [replace(fact, gpu=True) for fact in facts])
    with pytest.raises(ValueError, match=r"computed on CPUs; start workers with device='cpu' \(--device cpu\)"):
        link_flows(client, store, trip)
    few = [replace(fact, free_memory=10**4, host_memory=10**4) for fact in facts]
    monkeypatch.setattr(sums_on_workers, "measure_workers", lambda *_: few)
    with pytest.raises(DoesNotFitError, match="100 vertices and 400 arcs need") as refused:
        link_flows(client, store, trip)
    assert refused.value.plan.text == text


def test_a_wrong_flow_is_noticed(town, client, monkeypatch):
    right = flows.FlowSummation.result
    monkeypatch.setattr(
        flows.FlowSummation, "result", lambda *given: right(*given)._replace(arcs=right(*given).arcs * 1.01)
    )
    with pytest.raises(VerificationError, match="at vertex"):
        link_flows(client, town[0], table_of(town[1]))


def test_the_command(town, tmp_path, client, monkeypatch):
    monkeypatch.setattr("tilepath.cli.cluster._open_client", lambda *_: nullcontext(client))
    trips, out = tmp_path / "trips.csv", tmp_path / "flows.csv"
    trips.write_text("origin,destination,amount\nv0,v1,2\n")
    done = run_command("flows", town[0].path, trips, out)
    distance = gpuops.dijkstra(*town[0].rows(), 0)[0][1]
    assert done.stdout == f"{out}: flows of 400 arcs; amounts times distances add up to {2 * distance} s\n"
    assert out.read_text().splitlines()[0] == '"source","target","flow"'

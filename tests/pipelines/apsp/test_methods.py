"""A method of all pairs joins by being added to the tuple that the driver chooses from."""

from dataclasses import replace

import numpy as np
import pytest

from pipelines import all_pairs_shortest_paths
from pipelines.apsp.batched import BATCHED
from pipelines.apsp.methods import Job, Obstacle, Request, choose
from pipelines.apsp.solve import METHODS
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.workers.capacity import WorkerFacts


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "g", np.arange(6), np.array([1, 2, 3, 4, 0]), np.ones(5, "int32"))


def third(**changes):
    return replace(BATCHED, name="third", title="A third", short="a third", **changes)


def request(graph):
    job = Job(graph, np.dtype("int32"), np.ones(graph.n, bool), None, True)
    return Request(job, None, None, 60.0, [WorkerFacts("w", "host", "CPU", False, 10**9, 1e9)], None)


def test_a_third_method_joins_without_a_branch_in_the_driver(client, graph, tmp_path, monkeypatch, capfd):
    at_once = third(estimate=lambda request: replace(BATCHED.estimate(request), seconds=0.0))
    monkeypatch.setattr("pipelines.apsp.solve.METHODS", (*METHODS, at_once))
    names = "'auto', 'floyd-warshall', 'batched', 'hierarchy', 'out-of-core', 'third'"
    with pytest.raises(ValueError, match=f"pass one of {names}"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d", method="fourth")
    found = all_pairs_shortest_paths(client, graph, tmp_path / "d", progress=True)
    assert "A third: Floyd-Warshall would take " in capfd.readouterr().err
    assert found.row(0).tolist() == [0, 1, 2, 3, 4]
    assert DistancesWriter.resume(found.path, open_graph(graph.path)).begun_with()["method"] == "third"
    written = (tmp_path / "d" / "zarr.json").stat().st_mtime_ns
    all_pairs_shortest_paths(client, graph, tmp_path / "d", method="third", resume=True)
    assert (tmp_path / "d" / "zarr.json").stat().st_mtime_ns == written  # nothing is computed again


def test_a_store_that_was_begun_with_an_unknown_method_is_not_resumed(client, graph, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.apsp.solve.METHODS", (third(execute=lambda *_: 1 / 0),))
        with pytest.raises(ZeroDivisionError):
            all_pairs_shortest_paths(client, graph, tmp_path / "d", method="third")
    with pytest.raises(StoreError, match=r"d: was begun with method third, which is unknown; begin .*--overwrite"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True)


def test_a_method_that_cannot_or_does_not_fit_is_passed_over(graph):
    def cannot(request):
        raise Obstacle("thirds are closed")

    how, _, reason = choose((third(estimate=cannot), *METHODS), "auto", request(graph))
    assert how in METHODS
    assert reason.startswith(f"{how.title}: thirds are closed; Floyd-Warshall would take ")
    with pytest.raises(ValueError, match="thirds are closed; leave that option out, or use .*--method floyd-warshall"):
        choose((*METHODS, third(estimate=cannot)), "third", request(graph))

    def large(request):
        return replace(BATCHED.estimate(request), seconds=0.0, too_large="thirds are too large")

    how, _, reason = choose((*METHODS, third(estimate=large)), "auto", request(graph))
    assert how in METHODS
    assert "thirds are too large; Floyd-Warshall would take " in reason

"""All pairs by a hierarchy: against Floyd and Warshall, resumed, and when the method is chosen."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from road_graphs import as_floats, made

from pipelines import (
    DoesNotFitError,
    StoreError,
    all_pairs_shortest_paths,
    generate,
    open_distances,
    synthetic_graph,
    write_graph,
)
from pipelines.apsp import hierarchy
from pipelines.apsp.methods import Job, Request, choose
from pipelines.apsp.solve import METHODS
from pipelines.hierarchy import building
from pipelines.stores import durable
from pipelines.workers.capacity import WorkerFacts


@pytest.fixture(scope="module")
def network():
    """A grid of 400 vertices with negative weights, closed vertices and missing arcs."""
    rng = np.random.default_rng(3)
    grid = np.arange(400).reshape(20, 20)
    ends = [(grid[:, :-1], grid[:, 1:]), (grid[:-1], grid[1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in ends])
    graph = made(400, pairs, through=rng.random(400) < 0.9)
    kept = rng.random(len(graph.tails)) < 0.8
    tails, heads, height = graph.tails[kept], graph.heads[kept], rng.integers(0, 30, 400)
    weights = rng.integers(0, 40, len(tails)) + height[tails] - height[heads]
    return graph._replace(tails=tails, heads=heads, weights=weights)


@pytest.fixture(scope="module")
def graph(network, tmp_path_factory):
    return write_graph(tmp_path_factory.mktemp("network") / "g", *network.rows("int32"), through=network.through)


@pytest.mark.parametrize(("workers", "dtype"), [("client", "int32"), ("two", "float32")])
def test_distances_are_those_of_floyd_and_warshall(request, network, graph, tmp_path, monkeypatch, workers, dtype):
    monkeypatch.setattr(hierarchy, "EDGE", 64)
    monkeypatch.setattr(hierarchy, "LEAST_EDGE", 1)
    client, expected = request.getfixturevalue(workers), network.distances()
    found = all_pairs_shortest_paths(client, graph, tmp_path / "d", method="hierarchy", dtype=dtype, verify=True)
    np.testing.assert_array_equal(as_floats(found[:]), expected)
    assert not (tmp_path / "d" / hierarchy.TABLES).exists()
    some = all_pairs_shortest_paths(client, graph, tmp_path / "s", method="hierarchy", sources=[7, 399, 3], dtype=dtype)
    np.testing.assert_array_equal(as_floats(some[:]), expected[[7, 399, 3]])


def test_a_stopped_run_goes_on_with_its_hierarchy(client, network, graph, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise RuntimeError("stopped")

    for module, name, left in (
        (building, "close_hierarchy", 2),  # the order and the structure are committed
        (hierarchy.HierarchyStore, "whole_rows", 3),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, stop)
            with pytest.raises(RuntimeError, match="stopped"):
                all_pairs_shortest_paths(client, graph, tmp_path / "d", method="hierarchy", resume=True)
        monkeypatch.setattr(hierarchy, "order_vertices", None)  # not ordered again
        assert hierarchy.HierarchyWriter.begun(tmp_path / "d" / hierarchy.TABLES).done() == left
    with monkeypatch.context() as patched:
        patched.setattr(building, "close_hierarchy", None)
        found = all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True)
    np.testing.assert_array_equal(as_floats(found[:]), network.distances())


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 rows, each a task that is recorded when it ends."""
    monkeypatch.setattr(hierarchy, "EDGE", 64)
    monkeypatch.setattr(hierarchy, "LEAST_EDGE", 64)
    monkeypatch.setattr(hierarchy, "TASK_BYTES", 1)
    monkeypatch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)


@pytest.mark.usefixtures("small_chunks")
def test_rows_that_are_written_are_not_computed_again(client, network, graph, tmp_path, monkeypatch):
    out, wrote = tmp_path / "d", []
    open_result = hierarchy.DistancesWriter.writer

    def stop_later(writer):
        put = open_result(writer)

        def write(row, column, block):
            if row >= 3 * 64:
                raise RuntimeError("stopped")
            wrote.append(row)
            put(row, column, block)

        return write

    with monkeypatch.context() as patched:
        patched.setattr(hierarchy.DistancesWriter, "writer", stop_later)
        with pytest.raises(RuntimeError, match="stopped"):
            all_pairs_shortest_paths(client, graph, out, method="hierarchy")
    assert sorted(wrote) == sorted(7 * [0, 64, 128])
    with pytest.raises(StoreError, match="unfinished"):
        open_distances(out)
    with pytest.raises(StoreError, match="was begun with method hierarchy, not batched"):
        all_pairs_shortest_paths(client, graph, out, method="batched", resume=True)
    done = json.loads((out / "zarr.json").read_text())["attributes"]["done"]
    assert sum(stop - start for start, stop in done) > 0
    whole_rows, asked = hierarchy.HierarchyStore.whole_rows, []

    def note(self, sources, **options):
        asked.extend(sources.tolist())
        return whole_rows(self, sources, **options)

    monkeypatch.setattr(hierarchy.HierarchyStore, "whole_rows", note)
    found = all_pairs_shortest_paths(client, graph, out, resume=True)
    assert sorted(asked) == sorted({*range(400)} - {row for rows in done for row in range(*rows)})
    np.testing.assert_array_equal(as_floats(found[:]), network.distances())


def test_a_run_killed_while_it_removes_its_tables_ends_when_it_goes_on(client, network, graph, tmp_path, monkeypatch):
    def killed(folder, **_):
        for file in list(Path(folder).glob("*.json")):  # as far as it got
            file.unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(durable, "delete_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            all_pairs_shortest_paths(client, graph, tmp_path / "d", method="hierarchy")
    monkeypatch.setattr(building, "close_hierarchy", None)
    found = all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True)
    np.testing.assert_array_equal(as_floats(found[:]), network.distances())
    assert not list((tmp_path / "d").glob(f"{hierarchy.TABLES}*"))


def test_rows_that_are_all_written_need_no_tables(client, network, graph, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(hierarchy.DistancesWriter, "commit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            all_pairs_shortest_paths(client, graph, tmp_path / "d", method="hierarchy")
    monkeypatch.setattr(building, "close_hierarchy", None)
    found = all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True)
    np.testing.assert_array_equal(as_floats(found[:]), network.distances())


@pytest.mark.gpu
@pytest.mark.usefixtures("small_chunks")
def test_rows_on_a_cluster_with_a_gpu_are_those_of_floyd_and_warshall(gpu_client, network, graph, tmp_path):
    found = all_pairs_shortest_paths(gpu_client, graph, tmp_path / "d", method="hierarchy", verify=True)
    np.testing.assert_array_equal(as_floats(found[:]), network.distances())
    some = all_pairs_shortest_paths(gpu_client, graph, tmp_path / "s", method="hierarchy", sources=[7, 399, 3])
    np.testing.assert_array_equal(as_floats(some[:]), network.distances()[[7, 399, 3]])


def chosen(graph, method="auto", *, gpu=False, memory=10**10, **options):
    facts = [WorkerFacts("w", "host", "GPU" if gpu else "CPU", gpu, memory, 1e10, 2, memory)]
    job = Job(graph, np.dtype("int32"), np.ones(graph.n, bool), None, True)
    request = Request(job, options.get("sources"), options.get("block"), 60.0, facts, None)
    how, estimate, reason = choose(METHODS, method, request)
    estimate.refuse("/tmp/none")
    return how.name, reason


def test_the_method_is_tried_only_where_metis_is_quick_against_the_others(tmp_path, monkeypatch):
    roads = generate(synthetic_graph("road", rows=160, columns=160, missing=0.95), tmp_path / "roads")
    name, reason = chosen(roads)
    assert name == "hierarchy"
    assert reason.startswith("the hierarchy: Floyd-Warshall would take ")
    assert all(f"{what} " in reason.splitlines()[1] for what in ("nodes", "memory", "disk", "time"))
    assert chosen(roads, "hierarchy", gpu=True)[1].startswith("the hierarchy, as asked for: ")
    with pytest.raises(DoesNotFitError, match="the hierarchy and its rows need .* on host"):
        chosen(roads, "hierarchy", memory=10**6)
    monkeypatch.setattr(hierarchy, "order_vertices", None)  # cannot be called
    assert "hierarchy" not in chosen(roads, sources=(1, 2))[1]
    monkeypatch.setattr(hierarchy, "ORDERING", 1e-3)
    assert "hierarchy" not in chosen(roads)[1]


def test_what_stands_in_its_way_is_said(tmp_path, monkeypatch):
    roads = generate(synthetic_graph("road", rows=120, columns=120, missing=0.95), tmp_path / "roads")
    with pytest.raises(ValueError, match="block is 64, but the hierarchy has no blocks; leave that option out"):
        chosen(roads, "hierarchy", block=64)
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.hierarchy.plan.ARC_WORK", 1e-6)
        with pytest.raises(DoesNotFitError, match=r"relaxations.*Searches suit such a graph.*--method batched"):
            chosen(roads, "hierarchy")
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert "the hierarchy" in chosen(roads, "hierarchy")[1]
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.hierarchy.plan.ARC_WORK", 1e-6)
        with pytest.raises(DoesNotFitError, match=r"relaxations.*Install pymetis.*--method batched"):
            chosen(roads, "hierarchy")

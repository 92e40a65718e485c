"""All pairs by the boundary method: against the other methods, resumed, and when it is chosen."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines import StoreError, all_pairs_shortest_paths, generate, open_distances, synthetic_graph, write_graph
from pipelines.apsp import boundary
from pipelines.apsp.methods import Job, Request, choose
from pipelines.apsp.solve import METHODS
from pipelines.workers.capacity import WorkerFacts


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    """400 vertices with negative weights, closed vertices and no way between some."""
    rng = np.random.default_rng(3)
    grid = np.arange(400).reshape(20, 20)
    a = np.concatenate([grid[:, :-1].ravel(), grid[:-1].ravel()])
    b = np.concatenate([grid[:, 1:].ravel(), grid[1:].ravel()])
    tails, heads = np.concatenate([a, b]), np.concatenate([b, a])
    kept = rng.random(len(tails)) < 0.8
    tails, heads = tails[kept], heads[kept]
    height = rng.integers(0, 30, 400)
    weights = rng.integers(0, 40, len(tails)) + height[tails] - height[heads]
    order = np.argsort(tails, kind="stable")
    starts = np.searchsorted(tails[order], np.arange(401))
    place = tmp_path_factory.mktemp("roads") / "g"
    return write_graph(place, starts, heads[order], weights[order].astype("int32"), through=rng.random(400) < 0.9)


@pytest.fixture(scope="module")
def expected(client, roads, tmp_path_factory):
    return all_pairs_shortest_paths(client, roads, tmp_path_factory.mktemp("fw") / "d", method="floyd-warshall")[:]


@pytest.mark.parametrize(("workers", "dtype"), [("client", "float32"), ("two", "int32"), ("client", "float64")])
def test_distances_are_those_of_floyd_and_warshall(request, roads, expected, tmp_path, workers, dtype):
    client = request.getfixturevalue(workers)
    found = all_pairs_shortest_paths(client, roads, tmp_path / "d", method="boundary", dtype=dtype, verify=True)
    far = np.inf if dtype[0] == "f" else np.iinfo(dtype).max
    np.testing.assert_array_equal(found[:], np.where(expected == np.iinfo("int32").max, far, expected))
    assert not (tmp_path / "d" / boundary.TABLES).exists()
    some = all_pairs_shortest_paths(client, roads, tmp_path / "s", method="boundary", sources=[7, 399, 3])
    np.testing.assert_array_equal(some[:], expected[[7, 399, 3]])


def test_a_stopped_run_goes_on_with_its_cut(client, roads, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(boundary, "EDGE", 64)
    monkeypatch.setattr(boundary, "TASK_BYTES", 1)
    monkeypatch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)
    wrote = []

    def stop_later(writer):
        def write(row, column, block):
            if row >= 3 * 64:
                raise RuntimeError("stopped")
            wrote.append(row)
            put(row, column, block)

        put = open_slot(writer)
        return write

    open_slot = boundary.DistancesWriter.writer
    with monkeypatch.context() as patched:
        patched.setattr(boundary.DistancesWriter, "writer", stop_later)
        with pytest.raises(RuntimeError, match="stopped"):
            all_pairs_shortest_paths(client, roads, tmp_path / "d", method="boundary")
    with pytest.raises(StoreError, match="unfinished"):
        open_distances(tmp_path / "d")
    assert (tmp_path / "d" / boundary.TABLES).is_dir()
    assert sorted(wrote) == sorted(7 * [0, 64, 128])
    with monkeypatch.context() as patched:
        patched.setattr(boundary, "cut_graph", None)  # neither cut nor closed again
        patched.setattr(boundary, "close_parts", None)
        found = all_pairs_shortest_paths(client, roads, tmp_path / "d", resume=True)
    np.testing.assert_array_equal(found[:], expected)
    with pytest.raises(StoreError, match="was begun with method boundary, not batched"):
        all_pairs_shortest_paths(client, roads, tmp_path / "d", method="batched", resume=True)


@pytest.mark.gpu
def test_rows_made_on_a_gpu_are_those_of_the_cpu(gpu_client, roads, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(boundary, "EDGE", 64)
    found = all_pairs_shortest_paths(gpu_client, roads, tmp_path / "d", method="boundary", verify=True)
    np.testing.assert_array_equal(found[:], expected)
    some = all_pairs_shortest_paths(gpu_client, roads, tmp_path / "s", method="boundary", sources=[7, 399, 3])
    np.testing.assert_array_equal(some[:], expected[[7, 399, 3]])


def test_a_run_killed_while_it_removes_its_tables_ends_when_it_goes_on(client, roads, expected, tmp_path, monkeypatch):
    def killed(folder, **_):
        for file in list(Path(folder).glob("*.json")):  # as far as it got
            file.unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(boundary.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            all_pairs_shortest_paths(client, roads, tmp_path / "d", method="boundary")
    monkeypatch.setattr(boundary, "close_parts", None)
    np.testing.assert_array_equal(all_pairs_shortest_paths(client, roads, tmp_path / "d", resume=True)[:], expected)
    assert not list((tmp_path / "d").glob(f"{boundary.TABLES}*"))


def test_rows_that_are_all_written_need_no_tables(client, roads, expected, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(boundary.DistancesWriter, "commit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            all_pairs_shortest_paths(client, roads, tmp_path / "d", method="boundary")
    monkeypatch.setattr(boundary, "close_parts", None)
    np.testing.assert_array_equal(all_pairs_shortest_paths(client, roads, tmp_path / "d", resume=True)[:], expected)


def chosen(graph, method="auto", sources=None, block=None):
    facts = [WorkerFacts("w", "host", "CPU", False, 10**10, 1e10, 2)]
    job = Job(graph, np.dtype("float32"), np.ones(graph.n, bool), None, True)
    others = [each for each in METHODS if each.name != "hierarchy"]  # which takes less time
    how, _, reason = choose(others, method, Request(job, sources, block, 60.0, facts, None))
    return how.name, reason


def test_the_method_is_chosen_for_road_networks_and_tried_only_where_that_is_cheap(tmp_path, monkeypatch):
    roads = generate(synthetic_graph("road", rows=120, columns=120, missing=0.95), tmp_path / "roads")
    social = generate(synthetic_graph("rmat", scale=10), tmp_path / "social")
    name, reason = chosen(roads)
    assert name == "boundary"
    assert reason.startswith("the boundary method: Floyd-Warshall would take about")
    assert ", the boundary method " in reason
    assert all(f"{what} " in reason.splitlines()[1] for what in ("parts", "needs", "disk", "about"))
    assert chosen(roads, sources=(1, 2))[0] == "batched"
    assert chosen(social, "boundary")[1].startswith("the boundary method, as asked for: ")
    monkeypatch.setattr(boundary, "cut_graph", None)  # cannot be called
    name, reason = chosen(social)
    assert name != "boundary"
    assert "boundary" not in reason


def test_a_gpu_makes_rows_so_roads_are_its_too(tmp_path):
    """A GPU of 16 T relaxations/s: searches take milliseconds a batch, rows that follow from tables next to nothing."""
    roads = generate(synthetic_graph("road", rows=200, columns=200, missing=0.95), tmp_path / "roads")
    gpu = WorkerFacts("w", "host", "H100", True, 8 * 10**10, 16e12, 1, 10**11)
    job = Job(roads, np.dtype("float32"), np.ones(roads.n, bool), None, True)
    how, estimate, _ = choose(METHODS, "auto", Request(job, None, None, 60.0, [gpu], None))
    assert how.name == "boundary"
    write = roads.n**2 * 4 / boundary.WRITE_RATE
    assert write < estimate.seconds < 1.1 * write


def test_without_metis_it_is_passed_over_and_said(tmp_path, monkeypatch):
    roads = generate(synthetic_graph("road", rows=120, columns=120, missing=0.95), tmp_path / "roads")
    monkeypatch.setitem(sys.modules, "pymetis", None)
    name, reason = chosen(roads)
    assert name == "batched"
    assert "the boundary method needs pymetis; Floyd-Warshall would take" in reason
    with pytest.raises(ImportError, match="cutting a graph needs pymetis"):
        chosen(roads, "boundary")
    with pytest.raises(ValueError, match="the boundary method has no blocks; leave that option out"):
        chosen(roads, "boundary", block=64)

"""Floyd-Warshall against SciPy and against a Dijkstra that honours closed vertices; workers killed on the way."""

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands import invoke
from families import ALL, diagonals, usual
from oracles import as_stored, dijkstra, random_arcs, scipy_graph, shifted, store_arcs
from pipeline_fixtures import kill_at, peak_memory, two_pids
from ring_memory import nothing_is_mapped
from scipy.sparse.csgraph import floyd_warshall as scipy_floyd_warshall

from clusters import start
from gpuops import NegativeCycleError
from gpuops.errors import WeightRangeError
from pipelines import all_pairs_shortest_paths as by_any_method
from pipelines.apsp.in_memory.resident_rows import ResidentRows
from pipelines.stores.distances import DistancesWriter, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.place import growing_place, growing_store
from pipelines.validation.bounds import distances_fit
from pipelines.workers.capacity import DoesNotFitError, refuse_disk
from pipelines.workers.saving import Savers

all_pairs_shortest_paths = functools.partial(by_any_method, method="floyd-warshall")


def expected(*graph):
    """SciPy's answer in float64."""
    return scipy_floyd_warshall(scipy_graph(*graph))


@pytest.mark.parametrize(
    ("n", "dtype"),
    diagonals([1, 2, 31, 32, 33, 127, 129], ["float32", "int32", "int16", "float64"], count=2, always=ALL),
)
def test_equals_scipy(client, tmp_path, n, dtype):
    arcs = random_arcs(n, 4 * n, seed=n)
    graph = store_arcs(tmp_path / "g.zarr", n, *arcs, "float64" if dtype.startswith("f") else "int32")
    result = all_pairs_shortest_paths(client, graph, tmp_path / "d.zarr", dtype=dtype, verify=True)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result[:], as_stored(expected(n, *arcs), dtype))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    diagonals(
        ["directed", "undirected", "disconnected", "zero weights", "zero cycles", "negative arcs", "no arcs"],
        ["int16", "float32", "int32"],
    ),
)
def test_kinds_of_graphs_on_three_workers(three, tmp_path, kind, dtype):
    n = 20 if (kind, dtype) == ("negative arcs", "int16") else 300  # int16 holds signed distances below 2,048
    m = {"disconnected": 210, "no arcs": 0}.get(kind, 1500)
    high = 1 if kind == "zero weights" else 50
    tails, heads, weights = random_arcs(n, m, high=high, undirected=kind == "undirected")
    if kind == "zero cycles":
        weights[: m // 2] = 0
        tails[1 : m // 2 : 2], heads[1 : m // 2 : 2] = heads[: m // 2 : 2].copy(), tails[: m // 2 : 2].copy()
    if kind == "negative arcs":
        weights = shifted(n, tails, heads, weights)
        assert weights.min() < 0
    graph = store_arcs(tmp_path / "g.zarr", n, tails, heads, weights, "float32" if dtype == "float32" else "int16")
    result = all_pairs_shortest_paths(three, graph, tmp_path / "d.zarr", dtype=dtype, verify=True)
    np.testing.assert_array_equal(result[:], as_stored(expected(n, tails, heads, weights), dtype))


@pytest.mark.parametrize("block", [3, 7, 64, 100, 150, 1000])
def test_blocks_and_workers_give_one_answer(client, three, tmp_path, block):
    n = 150
    arcs = random_arcs(n, 800)
    graph = store_arcs(tmp_path / "g.zarr", n, *arcs, "float32")
    want = as_stored(expected(n, *arcs), "float32")
    for name, users in (("one", client), ("three", three)):
        got = all_pairs_shortest_paths(users, graph, tmp_path / name, block=block)
        np.testing.assert_array_equal(got[:], want)


def test_float_bits_do_not_depend_on_the_number_of_workers(client, three, tmp_path):
    n = 700
    tails, heads, _ = random_arcs(n, 3500)
    weights = np.random.default_rng(5).random(3500)
    graph = store_arcs(tmp_path / "g.zarr", n, tails, heads, weights, "float64")
    one = all_pairs_shortest_paths(client, graph, tmp_path / "one")[:]
    np.testing.assert_array_equal(one, all_pairs_shortest_paths(three, graph, tmp_path / "three")[:])
    np.testing.assert_allclose(one, expected(n, tails, heads, weights), rtol=1e-5)


def test_float_zero_cycles_of_signed_weights_are_no_negative_cycles(client, tmp_path):
    """0.1 + 0.2 - 0.3 is not 0 in floating point; the cycle is a zero cycle all the same."""
    tails, heads = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = store_arcs(tmp_path / "g.zarr", 3, tails, heads, np.array([0.1, 0.2, -0.3]), "float64")
    result = all_pairs_shortest_paths(client, graph, tmp_path / "d.zarr", verify=True)
    np.testing.assert_allclose(result[:], [[0, 0.1, 0.3], [0.2 - 0.3, 0, 0.2], [-0.3, -0.2, 0]], atol=1e-7)


@pytest.mark.parametrize("dtype", usual(["float32", "float64"]))
@pytest.mark.parametrize("seed", range(4))
def test_many_zero_cycles_that_rounding_makes_negative(client, tmp_path, seed, dtype):
    """Potential differences, plus something for half of the arcs: zero cycles everywhere, none exactly zero.

    Plain Floyd-Warshall repeats the walks around them exponentially often and is off by up to 100 here.
    """
    rng = np.random.default_rng(seed)
    n, m = 60, 400
    tails, heads = rng.integers(0, n, m), rng.integers(0, n, m)
    potential, through = rng.random(n) * 10, rng.random(n) < (2 if seed % 2 else 0.8)
    extra = np.where(rng.random(m) < 0.5, 0, rng.random(m))
    weights = extra + potential[heads] - potential[tails]
    weights[tails == heads] = 0.5
    graph = store_arcs(tmp_path / "g.zarr", n, tails, heads, weights, "float64", through=through)
    got = all_pairs_shortest_paths(client, graph, tmp_path / "d.zarr", dtype=dtype, verify=True)[:]
    want = np.array([dijkstra(n, tails, heads, extra, through, s) for s in range(n)])
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    finite = np.isfinite(want)
    want = want + potential - potential[:, None]
    # Distances within 20, at most some 10 additions each; the error seen is below 1e-6.
    np.testing.assert_allclose(got[finite], want[finite], atol=20 * 10 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("closed", "users"), diagonals(["first", "scattered", "all"], ["client", "three"]))
def test_closed_vertices_are_never_inside_a_path(request, tmp_path, users, closed):
    n = 200
    arcs = random_arcs(n, 1000, seed=3)
    through = np.ones(n, dtype=bool)
    through[{"first": slice(0, 70), "scattered": slice(0, None, 3), "all": slice(None)}[closed]] = False
    graph = store_arcs(tmp_path / "g.zarr", n, *arcs, "int32", through=through)
    result = all_pairs_shortest_paths(request.getfixturevalue(users), graph, tmp_path / "d.zarr", block=32, verify=True)
    want = np.array([dijkstra(n, *arcs, through, s) for s in range(n)])
    np.testing.assert_array_equal(result[:], as_stored(want, "int32"))


def test_bands_are_written_while_the_last_stage_goes_on(client, tmp_path, monkeypatch):
    """The result of a band is on its way before the next band is updated."""
    n, events = 3000, []  # three bands on one worker
    update, save = ResidentRows._update, Savers.save
    monkeypatch.setattr(ResidentRows, "_update", lambda *args: events.append("update") or update(*args))
    monkeypatch.setattr(Savers, "save", lambda *args: events.append(args[3].args[0]) or save(*args))
    arcs = random_arcs(n, 6000)
    graph = store_arcs(tmp_path / "g.zarr", n, *arcs, "int32")
    all_pairs_shortest_paths(client, graph, tmp_path / "d.zarr", verify=True)
    bands = [event for event in events if event != "update"]
    assert len(bands) == 3
    assert "update" in events[events.index(bands[0]) : events.index(bands[-1])]


def test_rows_of_sources(three, tmp_path):
    n = 500
    arcs = random_arcs(n, 2500)
    graph = store_arcs(tmp_path / "g.zarr", n, *arcs, "int32")
    sources = [499, 3, 250, 4, 77]
    result = all_pairs_shortest_paths(three, graph, tmp_path / "d.zarr", sources=sources, verify=True)
    assert result.shape == (5, n)
    np.testing.assert_array_equal(result[:], as_stored(expected(n, *arcs), "int32")[sources])
    np.testing.assert_array_equal(result.row(250), result[2])
    with pytest.raises(StoreError, match="vertex 5 is not among them"):
        result.row(5)


def test_a_negative_cycle_is_named_and_leaves_nothing(client, tmp_path):
    n = 60
    tails, heads, weights = random_arcs(n, 200, low=20)
    tails, heads = np.append(tails, [7, 12, 30]), np.append(heads, [12, 30, 7])
    weights = np.append(weights, [4, -9, 3])
    graph = store_arcs(tmp_path / "g.zarr", n, tails, heads, weights, "int32")
    with pytest.raises(NegativeCycleError, match="weighs -2") as caught:
        all_pairs_shortest_paths(client, graph, tmp_path / "d.zarr")
    assert set(caught.value.vertices) == {7, 12, 30}
    assert caught.value.weight == -2
    assert not (tmp_path / "d.zarr").exists()


@pytest.mark.parametrize(
    ("weight", "dtype", "cure"),
    [(2**29, "int32", "float64"), (9000, "int16", "int32"), (3e38, "float32", "float64")],
)
def test_distances_that_may_not_fit_are_refused(client, tmp_path, weight, dtype, cure):
    tails, heads = np.arange(9), np.arange(1, 10)
    weights = np.full(9, weight)
    graph = store_arcs(tmp_path / "g.zarr", 10, tails, heads, weights, "float64" if dtype == "float32" else "int64")
    with pytest.raises(WeightRangeError, match=f"--dtype {cure}"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d.zarr", dtype=dtype)


def test_integer_distances_are_checked_in_the_run_where_no_bound_proves_them(client, tmp_path):
    """A star of long arcs: the bound on a path is far beyond int16, its distances are not. A chain's are."""
    n, heavy = 20, 3000
    tails = np.concatenate([np.zeros(n - 1, dtype=int), np.arange(1, n)])
    heads = np.concatenate([np.arange(1, n), np.zeros(n - 1, dtype=int)])
    star = store_arcs(tmp_path / "star", n, tails, heads, np.full(2 * n - 2, heavy), "int32")
    result = all_pairs_shortest_paths(client, star, tmp_path / "d.zarr", dtype="int16")
    assert result[1, 2] == 2 * heavy
    chain = store_arcs(tmp_path / "chain", n, np.arange(n - 1), np.arange(1, n), np.full(n - 1, heavy), "int32")
    with pytest.raises(WeightRangeError, match="exceeds"):
        all_pairs_shortest_paths(client, chain, tmp_path / "e.zarr", dtype="int16")
    with pytest.raises(StoreError, match="unfinished"):
        open_distances(tmp_path / "e.zarr")


@pytest.mark.parametrize("users", ["client", pytest.param("gpu_client", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("dtype", "proven"), diagonals(["int16", "int32"], [True, False]))
def test_integer_distances_are_right_up_to_the_limit(request, tmp_path, users, dtype, proven):
    """0 -> 1 -> 2, and where the fit is not to be proven beforehand, a heavy arc elsewhere."""
    limit = {"int16": 2**13, "int32": 2**29}[dtype]
    users, heads = request.getfixturevalue(users), np.array([1, 2] + [4] * (not proven))
    indptr = np.array([0, 1, 2, 2, len(heads), len(heads)])
    for pair in (0, limit - 1), (limit - 1, 0), (limit // 2, limit // 2 - 1), (1, limit - 3):
        weights = np.array([*pair, *[limit - 1] * (not proven)])
        graph = write_graph(tmp_path / "g", indptr, heads, weights, overwrite=True)
        assert distances_fit(graph, np.dtype(dtype)) == proven
        unreachable = [np.iinfo(dtype).max] * 2
        for sources in (None, [0]) if pair[0] == 0 else [None]:
            found = all_pairs_shortest_paths(
                users, graph, tmp_path / "d", dtype=dtype, sources=sources, verify=True, overwrite=True
            )
            assert found[0].tolist() == [0, pair[0], sum(pair), *unreachable]


@pytest.mark.parametrize("users", ["client", pytest.param("gpu_client", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("dtype", "limit"), [("int16", 2**13), ("int32", 2**29)])
def test_integer_distances_are_refused_from_the_limit_to_infinity(request, tmp_path, users, dtype, limit):
    users, last = request.getfixturevalue(users), limit - 1
    for pair in (1, last), (last, 1), (limit // 2, limit // 2), (2, last), (last - 1, last), (last, last):
        graph = write_graph(tmp_path / "g", np.array([0, 1, 2, 2]), np.array([1, 2]), np.array(pair), overwrite=True)
        for sources in (None, [0]) if pair[0] == 1 else [None]:
            with pytest.raises(WeightRangeError, match=f"exceeds {last:,}, .*--dtype"):
                all_pairs_shortest_paths(users, graph, tmp_path / "d", dtype=dtype, sources=sources, overwrite=True)


def test_fractions_are_refused_for_integer_distances(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 3, np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.5]), "float64")
    with pytest.raises(WeightRangeError, match=r"1 -> 2 weighs 2\.5"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d", dtype="int32")


def test_what_does_not_fit_is_refused_before_anything_is_written(client, tmp_path, monkeypatch):
    graph = store_arcs(tmp_path / "g", 100, *random_arcs(100, 300), "int32")
    monkeypatch.setattr("pipelines.workers.capacity.available_memory", lambda: 10_000)
    with pytest.raises(DoesNotFitError, match="100 vertices need .* has 9.8 KiB free"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d")
    monkeypatch.undo()
    monkeypatch.setattr("pipelines.workers.capacity.shutil.disk_usage", lambda folder: _Usage(1000))
    with pytest.raises(DoesNotFitError, match="the disk has 1000 B free"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_the_disk_has_room_beside_the_store_that_is_replaced(client, tmp_path, monkeypatch):
    graph = store_arcs(tmp_path / "g", 100, *random_arcs(100, 300), "int32")
    all_pairs_shortest_paths(client, graph, tmp_path / "d")
    monkeypatch.setattr("pipelines.workers.capacity.shutil.disk_usage", lambda folder: _Usage(100 * 100 * 4 - 1))
    for out in "d", "e":
        with pytest.raises(DoesNotFitError):
            all_pairs_shortest_paths(client, graph, tmp_path / out, overwrite=True)
    with growing_store(tmp_path / "begun", "distances/2"):
        pass
    assert growing_place(tmp_path / "begun", None) == str(tmp_path / "begun.new")  # beside what it replaces
    with pytest.raises(DoesNotFitError):
        refuse_disk(100 * 100 * 4 + 1000, tmp_path / "begun", "")
    Path(tmp_path / "begun", "chunk").write_bytes(bytes(1001))
    refuse_disk(100 * 100 * 4 + 1000, tmp_path / "begun", "")


def test_a_disk_too_small_for_commits_is_refused_with_what_would_do(client, tmp_path, monkeypatch):
    graph = store_arcs(tmp_path / "g", 100, *random_arcs(100, 300), "int32")
    solve = functools.partial(all_pairs_shortest_paths, client, graph, method="floyd-warshall", sources=[0])
    monkeypatch.setattr("pipelines.workers.capacity.shutil.disk_usage", lambda folder: _Usage(2 * 100 * 100 * 4 - 1))
    with pytest.raises(DoesNotFitError, match=r"or do without commits \(commit_seconds=None, --commit-seconds none\)$"):
        solve(tmp_path / "d", commit_seconds=0)
    solve(tmp_path / "d", commit_seconds=None)


class _Usage:
    def __init__(self, free):
        self.free = free


def test_an_existing_output_is_not_touched_unasked(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 50, *random_arcs(50, 300), "int32")
    all_pairs_shortest_paths(client, graph, tmp_path / "d")
    with pytest.raises(StoreError, match="exists already"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d")
    before = open_distances(tmp_path / "d")[:]
    again = all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True)  # finished: returned as it is
    np.testing.assert_array_equal(again[:], before)
    (tmp_path / "precious").mkdir()
    with pytest.raises(StoreError, match="not a Zarr 3 group"):
        all_pairs_shortest_paths(client, graph, tmp_path / "precious", overwrite=True)
    assert (tmp_path / "precious").exists()


def test_a_resumed_run_must_ask_for_the_same(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 50, *random_arcs(50, 300), "int32")
    other = store_arcs(tmp_path / "other", 50, *random_arcs(50, 300, seed=9), "int32")
    all_pairs_shortest_paths(client, graph, tmp_path / "d")
    with pytest.raises(StoreError, match="begun with dtype int32, not int16"):
        all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True, dtype="int16")
    with pytest.raises(StoreError, match="another graph"):
        all_pairs_shortest_paths(client, other, tmp_path / "d", resume=True)
    options = {"sources": [3, 7], "dtype": "float64"}
    all_pairs_shortest_paths(client, graph, tmp_path / "some", **options)
    for left_out, message in (
        (
            "sources",
            r"begun with sources 3, 7, not all; repeat its options, or begin again with overwrite \(--overwrite",
        ),
        ("dtype", "begun with dtype float64, not int32"),
    ):
        kept = {name: value for name, value in options.items() if name != left_out}
        with pytest.raises(StoreError, match=message):
            all_pairs_shortest_paths(client, graph, tmp_path / "some", resume=True, **kept)
    assert all_pairs_shortest_paths(client, graph, tmp_path / "some", resume=True, **options).shape == (2, 50)


def test_python_and_the_command_line_choose_the_same_method(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 3000, *random_arcs(3000, 3000), "int32")
    by_any_method(client, graph, tmp_path / "python", sources=[7])  # three thousand searches are not needed for a row
    command = ["apsp", graph.path, str(tmp_path / "command"), "--device", "cpu", "--source", "7"]
    assert invoke(*command, catch_exceptions=False).exit_code == 0
    plans = [
        json.loads((tmp_path / out / "zarr.json").read_text())["attributes"]["plan"] for out in ("python", "command")
    ]
    assert plans == [{"method": "batched", "block": None}] * 2


def test_a_method_that_does_not_exist_is_refused(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 50, *random_arcs(50, 300), "int32")
    methods = "one of 'auto', 'floyd-warshall', 'batched', 'hierarchy', 'out-of-core'"
    for method in ("dijkstra", None):
        with pytest.raises(ValueError, match=f"method is {method!r}; pass {methods}"):
            by_any_method(client, graph, tmp_path / "d", method=method)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(("name", "values"), [("commit_seconds", (-1, math.nan, "60")), ("host_memory", ("4GiB", -5))])
def test_amounts_are_checked(client, tmp_path, name, values):
    graph = store_arcs(tmp_path / "g", 5, *random_arcs(5, 10), "int32")
    for value in values:
        with pytest.raises(ValueError, match=f"{name} is {value!r}; give a number from 0"):
            by_any_method(client, graph, tmp_path / "d", **{name: value})
    assert not (tmp_path / "d").exists()


def test_block_is_checked(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 50, *random_arcs(50, 300), "int32")
    for block in (0, -1, 2.5, 64.0, "64", True):
        with pytest.raises(ValueError, match=f"block is {block!r}; give a whole number from 1"):
            by_any_method(client, graph, tmp_path / "d", block=block)
    with pytest.raises(ValueError, match="block is 16, but searches have no blocks"):
        by_any_method(client, graph, tmp_path / "d", block=16, method="batched")
    assert not (tmp_path / "d").exists()
    want = all_pairs_shortest_paths(client, graph, tmp_path / "whole")[:]
    got = by_any_method(client, graph, tmp_path / "d", block=np.int64(16))
    np.testing.assert_array_equal(got[:], want)
    assert json.loads((tmp_path / "d" / "zarr.json").read_text())["attributes"]["plan"]["block"] == 16


def float_graph(tmp_path, n=400):
    tails, heads, _ = random_arcs(n, 3000)
    weights = np.random.default_rng(8).random(3000)
    return store_arcs(tmp_path / "g.zarr", n, tails, heads, weights, "float64")


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(client, two_processes, tmp_path, monkeypatch, kill_when):
    """kill -9 of one of two worker processes: the bits of an undisturbed run come out, and no memory is left mapped."""
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))  # commit at every stage
    graph = float_graph(tmp_path)
    want = all_pairs_shortest_paths(client, graph, tmp_path / "calm.zarr", block=16)[:]
    out = tmp_path / "killed.zarr"
    killed = kill_when(DistancesWriter.begun, out, {4: two_pids(two_processes)[0]})  # of 25 stages
    result = all_pairs_shortest_paths(two_processes, graph, out, block=16, commit_seconds=0)
    assert 4 <= killed[0] < 25
    np.testing.assert_array_equal(result[:], want)
    assert nothing_is_mapped(two_processes)


RUN = """
import sys
import pipelines.apsp.commits
from clusters import start
from pipelines import all_pairs_shortest_paths
pipelines.apsp.commits.COMMIT_SHARE = float("inf")  # commit at every stage
if __name__ == "__main__":
    with start(device="cpu") as client:
        options = {"method": "floyd-warshall", "block": 8, "commit_seconds": 0}
        all_pairs_shortest_paths(client, sys.argv[1], sys.argv[2], **options)
"""


def test_a_killed_run_resumes_with_the_same_bits(client, tmp_path):
    """kill -9 of everything half-way, then --resume, on another number of workers."""
    graph = float_graph(tmp_path)
    want = all_pairs_shortest_paths(client, graph, tmp_path / "calm.zarr", block=8)[:]
    out = tmp_path / "killed.zarr"
    kill_at(10, DistancesWriter.begun, RUN, graph.path, out)
    with pytest.raises(StoreError, match="--resume"):
        open_distances(out)
    with start(device="cpu", workers=2, processes=False) as users:
        result = all_pairs_shortest_paths(users, graph, out, resume=True)
    np.testing.assert_array_equal(result[:], want)


@pytest.mark.slow
def test_peak_memory_is_three_times_the_matrix_at_most(tmp_path):
    small = store_arcs(tmp_path / "small.zarr", 300, *random_arcs(300, 900), "float32")
    n = 1900  # about 8 MB are taken beside the matrices, whatever n is
    graph = store_arcs(tmp_path / "g.zarr", n, *random_arcs(n, 4 * n), "float32")
    assert peak_memory(small, graph, tmp_path, method="floyd-warshall")[0] < 3 * 4 * n * n

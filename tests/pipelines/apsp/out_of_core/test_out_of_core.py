"""Out of core the bits are those of a run in memory; what is committed survives; budgets are kept."""

import functools
import gc
import json
import math
import re
import shutil
import subprocess
import sys
import time
import weakref
from contextlib import nullcontext
from dataclasses import replace
from itertools import count, product
from types import SimpleNamespace

import numpy as np
import pytest
from commands import invoke, run_command
from families import ALL, diagonals, one_in
from oracles import random_arcs, shifted, store_arcs
from pipeline_fixtures import peak_memory, two_pids

from gpuops.errors import WeightRangeError
from pipelines import all_pairs_shortest_paths
from pipelines.apsp.in_memory.plan import estimate
from pipelines.apsp.layout import Windows, widest
from pipelines.apsp.methods import Job, Request
from pipelines.apsp.out_of_core import passing_rows
from pipelines.apsp.out_of_core.plan import commits_of
from pipelines.apsp.out_of_core.super_stages import SuperStages
from pipelines.apsp.solve import _job
from pipelines.stores.distances import DistancesWriter, create_distances, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.row_files import RowFiles
from pipelines.validation.bounds import distance_dtype
from pipelines.workers import mapped_memory, rings
from pipelines.workers.attempts import Run, workers_of
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts
from pipelines.workers.conveyor import Conveyor
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import keep_state
from pipelines.workers.transfers import CpuTransfers

in_core = functools.partial(all_pairs_shortest_paths, method="floyd-warshall")
out_of_core = functools.partial(all_pairs_shortest_paths, method="out-of-core")

N, BLOCK = 130, 16


def float_graph(path, n=N, **facts):
    tails, heads, _ = random_arcs(n, 5 * n)
    return store_arcs(path, n, tails, heads, np.random.default_rng(8).random(5 * n), "float64", **facts)


def run(client, graph, out, windows, dtype=None, sources=None, commit_seconds=math.inf, shown=None):
    """A run with these windows."""
    job = _job(graph, distance_dtype(graph, dtype))
    writer = create_distances(
        out,
        graph,
        dtype=job.dtype,
        chunk=windows.chunk,
        stages=len(job.stages(windows.layout)) + 1,
        options={"method": "out-of-core", "block": windows.block},
        sources=sources,
    )
    shown = shown or Progress(1, "relaxations", False)
    request = Request(job, sources, None, commit_seconds, [], None)
    Run(client, workers_of(client), writer, shown).attempts(SuperStages, request, windows)
    return open_distances(out)


@pytest.mark.parametrize(
    ("kind", "dtype", "resident"),
    diagonals(
        ["plain", "closed", "negative", "rows of sources"],
        ["float32", "float64", "int32", "int16"],
        [False, True],
        count=2,
        always=ALL,
    ),
)
def test_the_bits_are_those_of_a_run_in_memory(client, tmp_path, kind, dtype, resident):
    n = 20 if (kind, dtype) == ("negative", "int16") else N  # int16 holds signed distances below 2,048
    tails, heads, weights = random_arcs(n, 5 * n, high=30)
    weights = weights.astype("float64") * (0.37 if dtype.startswith("f") else 1)
    if kind == "negative":
        weights = shifted(n, tails, heads, weights)
        assert weights.min() < 0
    through = np.random.default_rng(2).random(n) < (0.7 if kind == "closed" else 2)
    through[32:48] &= kind != "closed"  # a block without pivots
    exact = "float64" if dtype.startswith("f") else "int32"
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, exact, through=through)
    sources = [n - 1, 3, 7, 70, 4] if kind == "rows of sources" else None
    want = in_core(client, graph, tmp_path / "core", dtype=dtype, block=BLOCK, sources=sources)[:]
    got = run(client, graph, tmp_path / "out", Windows(n, BLOCK, 32, 64, resident), dtype, sources)[:]
    np.testing.assert_array_equal(got.view(f"i{got.itemsize}"), want.view(f"i{want.itemsize}"))


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize(("chunk", "width"), [(16, 16), (8, 48), (48, 192)])
def test_any_cut_gives_the_same_bits(client, tmp_path, chunk, width, resident):
    through = np.random.default_rng(2).random(N) < 0.7
    graph = float_graph(tmp_path / "g", through=through)
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    got = run(client, graph, tmp_path / "out", Windows(N, BLOCK, chunk, width, resident))
    np.testing.assert_array_equal(got[:], want)


@pytest.mark.parametrize(
    ("n", "block", "share"),
    [(448, 16, 3), *(pytest.param(128 * share, 8, share, marks=pytest.mark.slow) for share in (8, 16))],
)
def test_budgets(client, tmp_path, n, block, share):
    """Beside that of a half, which is tested below."""
    graph = float_graph(tmp_path / "g", n)
    want = in_core(client, graph, tmp_path / "core", block=block)[:]
    budget = n * n * 4 // share
    got = out_of_core(client, graph, tmp_path / "out", block=block, host_memory=budget, verify=True)
    np.testing.assert_array_equal(got[:], want)


def test_several_workers_give_the_bits_of_one(client, three, tmp_path):
    graph = float_graph(tmp_path / "g")
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    rows = [N - 1, *range(80, 120), 3, 128]  # of the last window, and of others
    for resident, sharers, sources in product((False, True), (1, 3), (None, rows)):
        if resident or sharers == 1:
            out = tmp_path / f"{resident}-{sharers}-{sources is None}"
            got = run(three, graph, out, Windows(N, BLOCK, 16, 48, resident, sharers=sharers), sources=sources)
            np.testing.assert_array_equal(got[:], want if sources is None else want[sources])
    got = out_of_core(three, graph, tmp_path / "call", block=BLOCK)
    np.testing.assert_array_equal(got[:], want)


@pytest.mark.parametrize(("sharers", "closed"), one_in(3, [(3, False), (1, False), (2, True)]))
def test_processes_of_a_host_share_a_matrix_in_its_memory(client, two_processes, tmp_path, sharers, closed):
    through = np.random.default_rng(2).random(N) < (0.7 if closed else 2)
    graph = float_graph(tmp_path / "g", through=through)
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    for chunk, width in (16, 32), (8, 80), (16, 144):
        windows = Windows(N, BLOCK, chunk, width, True, sharers=sharers)
        got = run(two_processes, graph, tmp_path / f"{width}", windows, commit_seconds=0)
        np.testing.assert_array_equal(got[:], want)


def test_workers_of_two_kinds_are_refused(three, tmp_path, monkeypatch):
    """They would cut the columns of a slab differently."""
    results = SuperStages.results

    def the_others_as_gpus(attempt, futures, *limit):
        begun = results(attempt, futures, *limit)
        return [(place, replace(address, gpu=len(begun) > 1)) for place, address in begun]

    monkeypatch.setattr(SuperStages, "results", the_others_as_gpus)
    with pytest.raises(
        ConnectionError, match="workers of different kinds cannot share the work; run again with resume"
    ):
        run(three, float_graph(tmp_path / "g"), tmp_path / "d", Windows(N, BLOCK, 16, 32, True, sharers=3))


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("closed", [False, True])
def test_more_workers_than_panels_share_a_slab(client, three, tmp_path, n, closed):
    graph = float_graph(tmp_path / "g", n, through=np.full(n, not closed))
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    got = run(three, graph, tmp_path / "out", Windows(n, BLOCK, 16, 16, True, sharers=3))
    np.testing.assert_array_equal(got[:], want)


def refuse_shared_memory(refuse):
    def refused(_count):
        raise mapped_memory.CannotMap("for a test")

    rings.HostMemory = refused if refuse else mapped_memory.HostMemory


@pytest.mark.parametrize("refusing", [0, 1, 2])
def test_parts_of_panels_go_straight_or_through_dask(client, two_processes, tmp_path, capsys, refusing):
    graph = float_graph(tmp_path / "g")
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    two_processes.run(refuse_shared_memory, True, workers=workers_of(two_processes)[:refusing])
    try:
        shown = Progress(1, "relaxations", True)
        got = run(two_processes, graph, tmp_path / "out", Windows(N, BLOCK, 16, 32, True, sharers=2), shown=shown)
    finally:
        two_processes.run(refuse_shared_memory, False)
    np.testing.assert_array_equal(got[:], want)
    some = "some " if refusing == 1 else ""
    said = "go straight from worker to worker, in shared memory"
    if refusing:
        said = "travel through Dask and host memory (for a test)"
    assert f"{some}parts of row panels {said}" in capsys.readouterr().err


def test_a_matrix_that_cannot_be_shared_is_no_lost_worker(three, tmp_path, monkeypatch):
    def refused(count, **_options):
        raise mapped_memory.CannotMap(f"no {count:,} bytes of shared memory: for a test")

    monkeypatch.setattr("pipelines.workers.host_matrix.HostMemory", refused)
    with pytest.raises(OSError, match="cannot be shared: no 67,600 bytes of shared memory: for a test"):
        run(three, float_graph(tmp_path / "g"), tmp_path / "out", Windows(N, BLOCK, 16, 32, True, sharers=3))


@pytest.mark.parametrize("n", [1, 2, 17])
def test_small_and_all_closed(client, tmp_path, n):
    tails, heads, weights = random_arcs(n, 3 * n)
    for name, through in ("open", np.ones(n, bool)), ("closed", np.zeros(n, bool)):
        graph = store_arcs(tmp_path / f"g-{name}", n, tails, heads, weights, "int32", through=through)
        want = in_core(client, graph, tmp_path / f"core-{name}")[:]
        np.testing.assert_array_equal(out_of_core(client, graph, tmp_path / f"out-{name}", verify=True)[:], want)


class Stop(Exception):
    pass


class Stopping(Progress):
    """Ends a run after so many super-stages."""

    def __init__(self, after):
        super().__init__(1, "relaxations", False)
        self.left = after

    def advance(self, units):
        self.left -= 1
        if not self.left:
            raise Stop


@pytest.mark.parametrize("resident", [False, True])
def test_a_run_that_stopped_resumes_with_other_windows(client, three, tmp_path, monkeypatch, resident):
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
    graph, out = float_graph(tmp_path / "g"), tmp_path / "out"
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    with pytest.raises(Stop):
        run(client, graph, out, Windows(N, BLOCK, 32, 32, resident), commit_seconds=0, shown=Stopping(after=4))
    assert DistancesWriter.begun(out).progress() == (6, 10)  # the fourth of two stages each was not committed
    with pytest.raises(StoreError, match="--resume"):
        open_distances(out)
    with pytest.raises(StoreError, match="begun with method out-of-core, not floyd-warshall"):
        in_core(client, graph, out, resume=True)
    got = all_pairs_shortest_paths(three if resident else client, graph, out, resume=True)
    np.testing.assert_array_equal(got[:], want)


@pytest.mark.parametrize(("workers", "sharers", "chunk"), [(1, 1, 48), (3, 3, 16), (3, 1, 16)])
def test_nobody_reads_a_band_before_it_is_stored(client, three, tmp_path, monkeypatch, workers, sharers, chunk):
    """Bands may be stored while the next super-stage begins: here they take long."""
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
    store, settle, tails = CpuTransfers.store, Conveyor.settle, []

    def slowly(*arguments, **options):
        time.sleep(0.01)
        store(*arguments, **options)

    def noted(conveyor, but=0):
        tails.append(but)
        settle(conveyor, but)

    monkeypatch.setattr(CpuTransfers, "store", slowly)
    monkeypatch.setattr(Conveyor, "settle", noted)
    graph, users = float_graph(tmp_path / "g"), three if workers > 1 else client
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    windows, some = Windows(N, BLOCK, chunk, 48, True, sharers=sharers), [*range(0, N, 9)]
    np.testing.assert_array_equal(run(users, graph, tmp_path / "all", windows)[:], want)
    np.testing.assert_array_equal(run(users, graph, tmp_path / "some", windows, sources=some)[:], want[some])
    with pytest.raises(Stop):
        run(users, graph, tmp_path / "stopped", windows, commit_seconds=0, shown=Stopping(after=3))
    got = all_pairs_shortest_paths(client, graph, tmp_path / "stopped", resume=True)
    np.testing.assert_array_equal(got[:], want)
    assert (max(tails) == 1) == (workers == sharers)  # of workers that do not share others may read it


@pytest.fixture
def states(monkeypatch):
    """Weak references to what the workers keep in attempts, without a garbage collector."""
    states = []

    def noted(attempt, state):
        states.append([weakref.ref(state), weakref.ref(state.conveyor), weakref.ref(state.slab.rows)])
        keep_state(attempt, state)

    monkeypatch.setattr("pipelines.apsp.out_of_core.passing_rows.keep_state", noted)
    gc.disable()
    yield states
    gc.enable()


def alive(states):
    return [reference() is not None for references in states for reference in references]


@pytest.mark.parametrize(("fails", "sharers"), diagonals([None, "load", "every store", "store"], [1, 3]))
def test_nothing_is_left_to_the_garbage_collector(client, three, tmp_path, monkeypatch, states, sharers, fails):
    """Buffers that it alone would find are not free when the next run needs its memory."""
    graph, calls = float_graph(tmp_path / "g"), count(1)  # by which threads do not skip a number

    def full(transfers, *arguments, **options):
        call = next(calls)
        if call == 20 or (call > 20 and fails.startswith("every")):
            raise OSError(28, "No space left on device")

    if fails:
        monkeypatch.setattr(CpuTransfers, fails.split()[-1], full)
    with pytest.raises(OSError, match="No space left") if fails else nullcontext():
        windows = Windows(N, BLOCK, 16, 32, True, sharers=sharers)
        run(three if sharers > 1 else client, graph, tmp_path / "d", windows)
    end = time.monotonic() + 60
    while any(alive(states)) and time.monotonic() < end:
        time.sleep(0.01)  # threads and Dask let go
    assert len(states) == sharers
    assert not any(alive(states))


def test_the_last_band_of_a_lost_attempt_is_stored_before_the_next_begins(client, tmp_path, monkeypatch, states):
    """As long as it is stored, all the memory of that attempt is taken."""
    graph, seen, store, clear = float_graph(tmp_path / "g"), [], CpuTransfers.store, passing_rows.clear_states

    def slowly(*arguments, **options):
        time.sleep(0.2)
        store(*arguments, **options)

    def cleared():
        clear()
        seen.append(any(alive(states)))

    monkeypatch.setattr(CpuTransfers, "store", slowly)
    monkeypatch.setattr(passing_rows, "clear_states", cleared)
    for _ in range(2):
        with pytest.raises(Stop):
            run(client, graph, tmp_path / "d", Windows(N, BLOCK, 48, 48, True), shown=Stopping(after=1))
        shutil.rmtree(tmp_path / "d")
    assert seen == [False, False]


def test_no_commits_in_memory_before_the_end_unless_asked_for(client, tmp_path):
    graph = float_graph(tmp_path / "g")
    with pytest.raises(Stop):
        run(client, graph, tmp_path / "out", Windows(N, BLOCK, 32, 32, True), shown=Stopping(after=4))
    assert DistancesWriter.begun(tmp_path / "out").progress() == (0, 10)
    assert not list((tmp_path / "out").glob("checkpoint-*"))


def test_without_commits_the_store_holds_one_matrix(client, tmp_path, monkeypatch):
    graph, out = float_graph(tmp_path / "g"), tmp_path / "out"
    want = in_core(client, graph, tmp_path / "core", block=BLOCK)[:]
    asks = iter([False, False, True])
    monkeypatch.setattr("pipelines.apsp.out_of_core.super_stages.asked", lambda: next(asks, False))
    windows = Windows(N, BLOCK, 16, 16, False)
    with pytest.raises(Stop):
        run(client, graph, out, windows, shown=Stopping(after=3))
    assert DistancesWriter.begun(out).progress() == (0, 10)  # the third was not committed yet
    assert len(list(out.glob("checkpoint-*"))) == 1
    asks = iter([False, False, True])
    with pytest.raises(Stop):
        run(client, graph, tmp_path / "asked", windows, shown=Stopping(after=4))
    assert DistancesWriter.begun(tmp_path / "asked").progress() == (3, 10)
    for again in out, tmp_path / "asked":  # from the weights, and from a commit, which stays
        got = out_of_core(client, graph, again, resume=True, host_memory=150_000, commit_seconds=None)
        np.testing.assert_array_equal(got[:], want)
    with pytest.raises(Stop):
        run(client, graph, tmp_path / "last", windows, shown=Stopping(after=9))
    assert DistancesWriter.begun(tmp_path / "last").progress() == (8, 10)  # before the result is written


def test_each_row_is_read_once_a_super_stage_and_those_of_a_window_never(client, tmp_path, monkeypatch):
    graph, read, rows = float_graph(tmp_path / "g", 128), RowFiles.read, []

    def counted(files, part, out):
        rows.extend(range(part.start, part.stop))
        read(files, part, out)

    monkeypatch.setattr(RowFiles, "read", counted)
    run(client, graph, tmp_path / "out", Windows(128, BLOCK, 16, 32, False))
    assert len(rows) == 3 * (128 - 32)  # none before the first of four super-stages


def test_a_budget_below_one_band_is_refused_with_the_least_that_works(client, tmp_path):
    graph = float_graph(tmp_path / "g", 100)
    with pytest.raises(ValueError, match=r"device_memory \(--device-memory\) limits .* GPUs, and .* CPUs"):
        out_of_core(client, graph, tmp_path / "out", device_memory=10_000_000)
    for method in "out-of-core", "auto":
        limit = r"where the limit of host_memory \(--host-memory\) is 9\.8 KiB\. Set host_memory \(--host-memory\)"
        with pytest.raises(DoesNotFitError, match=f"100 vertices need .* on this machine, {limit}") as refused:
            all_pairs_shortest_paths(
                client, graph, tmp_path / "out", dtype="float64", block=BLOCK, host_memory=10_000, method=method
            )
    assert not (tmp_path / "out").exists()
    least = 1024 * int(re.search(r"--host-memory\) to (\d+)KiB", str(refused.value))[1])
    with pytest.raises(DoesNotFitError):
        out_of_core(client, graph, tmp_path / "out", dtype="float64", block=BLOCK, host_memory=least - 1024)
    got = out_of_core(client, graph, tmp_path / "out", dtype="float64", block=BLOCK, host_memory=least)
    want = in_core(client, graph, tmp_path / "core", dtype="float64", block=BLOCK)
    np.testing.assert_array_equal(got[:], want[:])


def test_the_plan_of_a_run_in_memory_honours_commits():
    facts = [WorkerFacts("w", "host", "CPU", False, 10**12, 1e9)]
    graph = SimpleNamespace(n=10_000, directed=True)
    job = Job(graph, np.dtype("float32"), np.ones(10_000, bool), None, True)
    disk = [estimate(Request(job, range(5), None, s, facts, None)).needs.disk for s in (60.0, math.inf)]
    assert disk == [2 * (8 * 1280) ** 2 * 4, 5 * 10_000 * 4]  # whole chunks


def test_a_small_disk_is_refused_with_what_would_do(client, tmp_path, monkeypatch):
    graph = float_graph(tmp_path / "g", 400)
    matrix = 400 * 400 * 4

    class Usage:
        free = 2 * matrix - 1

    monkeypatch.setattr("pipelines.workers.capacity.shutil.disk_usage", lambda folder: Usage)
    small = functools.partial(out_of_core, client, graph, block=BLOCK, host_memory=400_000)
    cure = r"the disk has .*, or keep the rows of some sources only \(sources, --source\), or do without commits"
    with pytest.raises(DoesNotFitError, match=cure):
        small(tmp_path / "out", sources=range(10))  # two checkpoints
    with pytest.raises(DoesNotFitError, match=r"some sources only \(sources, --source\)$"):
        small(tmp_path / "out", commit_seconds=None)  # one, and the result
    small(tmp_path / "one", commit_seconds=None, sources=range(10))
    out_of_core(client, graph, tmp_path / "out", block=BLOCK)  # one pass: the result only


def planned(commit_seconds, writer=None, resident=False):
    """Commits and disk, in bytes, of four passes of 10 s of 100 x 100 float32."""
    job = Job(SimpleNamespace(n=100), np.dtype("float32"), np.ones(100, bool), None, True)
    request = Request(job, range(10), 10, commit_seconds, [], writer)
    return commits_of(request, Windows(100, 10, 10, 25, resident), 4, 10.0)


def test_the_plan_honours_commits():
    begun, matrix, result = SimpleNamespace(slot="checkpoint-0"), 40_000, 4_000
    assert planned(60.0) == (3, 2 * matrix)
    assert planned(math.inf) == (1, matrix + result)
    assert planned(math.inf, begun) == (1, 2 * matrix)
    assert planned(60.0, resident=True) == planned(math.inf, resident=True) == (0, result)
    assert planned(60.0, begun, resident=True) == (0, matrix + result)
    assert planned(4.0, resident=True) == (2, 2 * matrix)


def test_windows_of_several_workers():
    """At most a 24th of the matrix where each does the slab; where they share it, squares are a 64th of the work.

    On GPUs they are 4,096 pivots wide in any case, if that is an eighth of the matrix at most, and they fit.
    """

    def width(n, workers, sharers, gpu=True, most=10**9):
        cut = Windows(n, 1024, 1024, 1024, True, sharers=sharers)
        return widest(cut, workers, gpu, lambda windows: windows.width <= most).width

    sizes = 8192, 16384, 65536, 98304, 147456
    assert [width(n, 2, 2) for n in sizes] == [1024, 2048, 5120, 8192, 12288]
    assert [width(n, 8, 8) for n in sizes] == [1024, 2048, 4096, 4096, 6144]
    assert [width(n, 2, 1) for n in sizes] == [1024, 2048, 4096, 4096, 6144]
    assert [width(n, 2, 1, gpu=False) for n in sizes] == [1024, 1024, 2048, 4096, 6144]
    assert width(65536, 2, 2, most=3000) == 2048
    assert width(65536, 1, 1) == 65536


def test_distances_beyond_an_integer_are_refused(client, tmp_path):
    n, heavy = 20, 3000
    chain = store_arcs(tmp_path / "chain", n, np.arange(n - 1), np.arange(1, n), np.full(n - 1, heavy), "int32")
    with pytest.raises(WeightRangeError, match="exceeds"):
        out_of_core(client, chain, tmp_path / "e", dtype="int16")


def test_auto_goes_out_of_core_where_memory_is_short_and_says_so(client, tmp_path, capfd, monkeypatch):
    n, shown = 400, []
    monkeypatch.setattr(Progress, "stage", lambda _, name: shown.append(name))
    arcs = random_arcs(n, 40 * n)
    graph = store_arcs(tmp_path / "g", n, *arcs, "int16")
    got = all_pairs_shortest_paths(
        client, graph, tmp_path / "d", dtype="int16", block=16, host_memory=300_000, progress=True, verify=True
    )
    said = capfd.readouterr().err
    assert "Floyd-Warshall out of core: " in said
    assert "the matrix does not fit in memory" in said
    for what in "rows from the store; memory", "of the host, disk", "traffic", "time ":
        assert what in said
    recorded = json.loads((tmp_path / "d" / "zarr.json").read_text())["attributes"]
    assert recorded["plan"]["method"] == "out-of-core"
    assert shown[-2].endswith(" to {0} of {0}".format(recorded["stages"]))  # as `tilepath info` counts
    np.testing.assert_array_equal(got[:], in_core(client, graph, tmp_path / "core", dtype="int16")[:])


def test_options_of_the_command_line(tmp_path):
    graph = float_graph(tmp_path / "g")
    command = ["apsp", graph.path, str(tmp_path / "d"), "--device", "cpu", "--block", "16"]
    options = ["--method", "out-of-core", "--host-memory", "200 kB", "--commit-seconds", "none"]
    done = run_command(*command, *options)
    assert "out of core, 1 worker" in done.output
    refused = invoke(*command, "--host-memory", "a lot")
    assert "'a lot' is not a size; write it as 16GiB, 500MB or a number of bytes" in refused.output
    for text in "soon", "nan", "-1":
        refused = invoke(*command, f"--commit-seconds={text}")
        assert f"'{text}' is not a number of seconds, 0 or more; write it as 60, or as none" in refused.output


RUN = """
import sys
from clusters import start
from pipelines import all_pairs_shortest_paths
if __name__ == "__main__":
    with start(device="cpu") as client:
        print("begins", flush=True)
        options = {"method": "out-of-core", "block": 16, "host_memory": 400_000, "resume": True}
        all_pairs_shortest_paths(client, sys.argv[1], sys.argv[2], **options)
"""


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kills", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_runs_give_the_bits_of_undisturbed_ones(client, tmp_path, kills):
    """kill -9 of everything, between and within super-stages, one run after another until one comes through."""
    graph, out = float_graph(tmp_path / "g", 400), tmp_path / "out"
    want = in_core(client, graph, tmp_path / "core", block=16)[:]
    rng, stages = np.random.default_rng(kills), []
    for _ in range(kills):
        victim = subprocess.Popen([sys.executable, "-c", RUN, graph.path, out], stdout=subprocess.PIPE)
        assert victim.stdout.readline() == b"begins\n"
        while victim.poll() is None and not (out.exists() and DistancesWriter.begun(out).progress()[0] > len(stages)):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        victim.kill()
        victim.communicate()
        stages.append(DistancesWriter.begun(out).progress()[0])
        if DistancesWriter.begun(out).finished:
            break
    got = out_of_core(client, graph, out, block=16, resume=True)
    np.testing.assert_array_equal(got[:], want)
    print(f"\nkilled at stages {stages} of {DistancesWriter.begun(out).progress()[1]}, then the same bits")


@pytest.mark.parametrize("resident", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_killed_worker_costs_nothing_but_time(client, two_processes, tmp_path, monkeypatch, kill_when, resident):
    """kill -9 of one of two worker processes, and then of the other: a matrix in the host's memory is gone with one."""
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))  # commit after every super-stage
    graph, out = float_graph(tmp_path / "g", 256), tmp_path / "out"
    want = in_core(client, graph, tmp_path / "core", block=16)[:]
    killed = kill_when(DistancesWriter.begun, out, dict(zip((3, 8), two_pids(two_processes), strict=True)))  # of 17
    windows = Windows(256, 16, 32, 32, resident, sharers=2 if resident else 1)
    got = run(two_processes, graph, out, windows, commit_seconds=0)
    assert len(killed) == 2
    np.testing.assert_array_equal(got[:], want)


def test_a_budget_of_a_half_keeps_the_bits_and_is_kept(client, tmp_path):
    small, n = float_graph(tmp_path / "small", 300), 2000
    graph, budget = store_arcs(tmp_path / "g", n, *random_arcs(n, 5 * n), "int32"), 4 * n * n // 2
    peak, said = peak_memory(small, graph, tmp_path, method="out-of-core", host_memory=budget, progress=True)
    stated = float(re.search(rf"n = {n:,} .* memory ([\d.]+) MiB of the host", said)[1]) * 2**20
    # Beside the matrix: what allocators of threads keep, and what is loaded late; 2 MiB by Python 3.11, 6 by 3.12.
    assert peak < stated + (8 << 20)
    assert stated < budget
    some = [*range(0, n, 40)]
    want = all_pairs_shortest_paths(client, graph, tmp_path / "searches", method="batched", sources=some)[:]
    np.testing.assert_array_equal(open_distances(tmp_path / "out")[:][some], want)

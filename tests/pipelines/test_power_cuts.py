"""Power cuts at any moment of a run: the bits of an undisturbed run come out, and no damaged store passes for whole.

The runs are recorded and played back by `power_cuts`. A few cuts of each run by default; thousands with
``pytest -m slow -s`` and this file, which prints what the cuts left.
"""

import errno
import os
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from families import diagonals, one_in
from pipeline_fixtures import let_tasks_end
from power_cuts import WAYS, Promise, Recording, Sync, by_chance, recorded

from pipelines import (
    all_pairs_shortest_paths,
    build_hierarchy,
    euler_circuits,
    export_store,
    generate,
    import_graph,
    import_samples,
    map_samples,
    open_graph,
    single_source_shortest_paths,
    synthetic_graph,
    train_som,
)
from pipelines.apsp.layout import Windows
from pipelines.apsp.methods import Request
from pipelines.apsp.out_of_core.super_stages import SuperStages
from pipelines.apsp.solve import _job
from pipelines.files.output_file import GrowingFile, is_growing
from pipelines.od_tables.write import write_od_table
from pipelines.places.points import points_from
from pipelines.stores.distances import create_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.place import clear_leftovers, growing_beside
from pipelines.stores.samples import write_samples
from pipelines.stores.schema import kind_of, open_store
from pipelines.validation.bounds import distance_dtype
from pipelines.workers.attempts import Run, workers_of
from pipelines.workers.progress import Progress

N = 48
JOINED = "replace(joined if joined.exists() else partial, path)"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(11)
    indptr = np.arange(N + 1) * 4
    graph = write_graph(folder / "g", indptr, rng.integers(0, N, 4 * N), rng.random(4 * N))
    ring = write_graph(folder / "ring", np.arange(N + 1), np.roll(np.arange(N), -1), np.ones(N))
    samples = write_samples(folder / "s", rng.normal(size=(300, 3)))
    roads = generate(synthetic_graph("road", rows=8, columns=8), folder / "r")
    rows = "".join(f"{i},{j},{i + j}\n" for i, j in rng.integers(0, 30, (60, 2)).tolist())
    (folder / "arcs.csv").write_text("source,target,weight\n" + rows)
    (folder / "samples.csv").write_text("x,y\n" + "".join(f"{x},{x * x}\n" for x in range(40)))
    return Inputs(folder, graph.path, ring.path, samples.path, roads.path)


@dataclass
class Inputs:
    folder: Path
    graph: str
    ring: str
    samples: str
    roads: str


@pytest.fixture(scope="module")
def often():
    """Commit as often as a run can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
        patch.setattr("pipelines.stores.commit_clock.COMMIT_SHARE", float("inf"))
        patch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)
        patch.setattr("pipelines.sssp.plan.CHUNK_BYTES", 1)
        patch.setattr("pipelines.sssp.plan.BATCH", 4)
        patch.setattr("pipelines.apsp.hierarchy.TASK_BYTES", 1)
        patch.setattr("pipelines.apsp.hierarchy.EDGE", 32)
        patch.setattr("pipelines.apsp.hierarchy.LEAST_EDGE", 32)
        patch.setattr("pipelines.som.training.MOST_EPOCHS", 2)
        patch.setattr("pipelines.stores.mapping.LEAST_ROWS", 64)
        patch.setattr("pipelines.od_tables.plan.CHUNK_ROWS", 16)
        patch.setattr("pipelines.od_tables.plan.BLOCK_BYTES", 8 * N * 16)
        yield


# The runs: each writes its result to `out`, with resume=True and overwrite=False, or the other way round.


def apsp(client, given, out, **options):
    how = {"method": "floyd-warshall", "block": 16, "commit_seconds": 0}
    all_pairs_shortest_paths(client, given.graph, out, **how, **options)


def out_of_core(client, given, out, **options):
    if os.path.exists(out):
        all_pairs_shortest_paths(client, given.graph, out, **options)
        return
    graph, windows = open_graph(given.graph), Windows(N, 8, 16, 16, False)
    job = _job(graph, distance_dtype(graph, None))
    stages = len(job.stages(windows.layout)) + 1
    facts = {"dtype": job.dtype, "chunk": windows.chunk, "stages": stages}
    writer = create_distances(out, graph, **facts, options={"method": "out-of-core", "block": windows.block})
    run = Run(client, workers_of(client), writer, Progress(1, "relaxations", False))
    run.attempts(SuperStages, Request(job, None, None, 0, [], None), windows)


def by_rows(client, given, out, **options):
    all_pairs_shortest_paths(client, given.roads, out, method="hierarchy", **options)


def sssp(client, given, out, **options):
    single_source_shortest_paths(client, given.graph, out, range(12), **options)


def hierarchy(client, given, out, **options):
    build_hierarchy(client, given.roads, out, **options)


def som(client, given, out, **options):
    train_som(client, given.samples, out, 4, 4, epochs=6, **options)


def last_maps(client, given, out, **options):
    train_som(client, given.samples, out, 4, 4, epochs=6, keep_codebooks=2, **options)


def mapping(client, given, out, **options):
    map_samples(client, f"{given.folder}/map", given.samples, out, **options)


def od(client, given, out, **options):
    graph = open_graph(given.graph)
    points = points_from(range(N), graph, "vertex")
    write_od_table(graph, points, points, out, **options)


def graph_import(client, given, out, *, resume, overwrite):
    import_graph(given.folder / "arcs.csv", out, overwrite=overwrite)


def samples_import(client, given, out, *, resume, overwrite):
    import_samples(given.folder / "samples.csv", out, scaling="zscore", overwrite=overwrite)


def circuits(client, given, out, *, resume, overwrite):
    euler_circuits(client, given.ring, out, overwrite=overwrite)


def export(client, given, out, *, resume, overwrite):
    export_store(given.graph, out, overwrite=overwrite)


STORES = {
    "apsp": apsp,
    "apsp out of core": out_of_core,
    "apsp by rows": by_rows,
    "sssp": sssp,
    "som": som,
    "hierarchy": hierarchy,
    "circuits": circuits,
    "last maps": last_maps,
    "matrix.zarr": od,
    "mapping": mapping,
    "samples": samples_import,
    "graph": graph_import,
}
FILES = {"table.csv": od, "table.parquet": od, "matrix.npy": od, "arcs.csv": export}
RUNS = STORES | FILES
# How a run starts: in an empty folder; over an old result of the same kind; or again, after a cut of its power.
OVER = ("sssp", "apsp", "graph", "table.csv", "arcs.csv")
AGAIN = ("apsp", "hierarchy", "som", "table.csv")
STARTS = [*product(RUNS, ["fresh"]), *product(OVER, ["over"]), *product(AGAIN, ["again"])]


@dataclass
class Played:
    """A run that was recorded, how it started, its result, and the old result that it replaced, if any."""

    name: str
    start: str
    recording: Recording
    out: str
    result: object
    old: object

    def look(self):
        """Return "new" or "old" if that result is there and whole, "unfinished" or "absent"; else raise an error."""
        if not os.path.lexists(self.out):
            return "absent"
        if self.name in STORES:
            kind = kind_of(self.out)
            (kind.begun(self.out) if kind.writer else kind.open(self.out)).verify()
            if not kind.progress(self.out).finished:
                return "unfinished"
        found = result(self.name, self.out)
        assert found in (self.result, self.old), "other bits than those of an undisturbed run"
        return "new" if found == self.result else "old"

    def cut(self, at, keeps):
        """Cut the power after `at` operations, and return what is left; raise an error if a promise is broken."""
        self.recording.after_cut(at, keeps)
        clear_leftovers(self.out)  # as the next run does: restores a store that was moved away
        left = self.look()
        if self.old is not None:
            assert left in ("old", "new"), "neither the old result nor the new one is there"
        if self.start == "again" and self.name in STORES:
            assert left != "absent", "a store that was begun is lost"
        promised = [one.what for one in self.recording.log[:at] if isinstance(one, Promise)]
        if promised and left != "new":
            assert pieces(self.out) >= promised[-1], "pieces of a table are lost"
        if at == len(self.recording.log):
            assert left == "new", "the result of a run that ended is not durable"
        return left

    def again(self, client, given):
        """Run again, as a user would after a power cut: the result must be that of the undisturbed run."""
        growing = is_growing(self.out) or growing_beside(self.out) or not self.old
        RUNS[self.name](client, given, self.out, resume=bool(growing), overwrite=not growing)
        assert self.look() == "new"


def result(name, out):
    """All bits of a result: the bytes of a file, or the record of all chunks of a store, which was verified."""
    if name in FILES:
        return Path(out).read_bytes()
    kind_of(out).open(out)
    return dict(open_store(out).attrs["contents"])


def pieces(out):
    """The number of pieces that the journal of a file records."""
    journal = Path(out).with_name(f".{Path(out).name}.pieces")
    return journal.read_text().count("\n") - 1 if journal.exists() else 0


@pytest.fixture(scope="module")
def played(client, inputs, often, tmp_path_factory):
    """Function of the name and the start of a run that returns the run, recorded."""
    train_som(client, inputs.samples, inputs.folder / "map", 3, 3, epochs=2)
    kept = {}

    def play(name, start="fresh"):
        if (name, start) not in kept:
            kept[name, start] = record(name, start)
        return kept[name, start]

    def record(name, start):
        over = start == "over"
        folder = tmp_path_factory.mktemp("cuts")
        out, old = str(folder / name.replace(" ", "-")), None
        if name == "samples":  # in folders that the run makes
            out = str(folder / "new" / "folder" / name)
        if over:
            other = Inputs(inputs.folder, inputs.ring, inputs.ring, inputs.samples, inputs.roads)
            RUNS[name](client, other, out, resume=True, overwrite=False)
            if name == "graph":
                shutil.rmtree(out)
                import_graph({"source": [0], "target": [1]}, out)
            old = result(name, out)
        elif start == "again":
            before = play(name)
            folder, out = before.recording.folder, before.out
            before.recording.after_cut(3 * len(before.recording.log) // 4, WAYS["nothing"])
        with recorded(folder) as recording, pytest.MonkeyPatch.context() as patch:
            commit = GrowingFile.record

            def noted(file):
                commit(file)
                recording.log.append(Promise(len(file.ends)))

            patch.setattr(GrowingFile, "record", noted)
            RUNS[name](client, inputs, out, resume=not over, overwrite=over)
        found = Played(name, start, recording, out, result(name, out), old)
        assert found.result != old
        return found

    return play


@pytest.fixture(autouse=True)
def after_a_reboot(monkeypatch):
    """The process that wrote is gone."""
    monkeypatch.setattr("pipelines.stores.place._alive", lambda *_: False)


def cuts(run, rng, count):
    """Yield cuts: after how many operations, and what survives of those that are not durable."""
    total = len(run.recording.log)
    yield total, WAYS["nothing"]
    for number in range(count):
        way = by_chance(rng) if number % 2 else WAYS[list(WAYS)[(total + number // 2) % len(WAYS)]]
        yield (number * total) // count + int(rng.integers(1 + total // count)), way


@pytest.mark.parametrize(
    ("count", "each"), [(8, 13), pytest.param(150, 5, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
)
@pytest.mark.parametrize(("name", "start"), one_in(2, STARTS))  # by default apsp, sssp, som, circuits, hierarchy and od
def test_a_power_cut_costs_nothing_but_time(client, inputs, played, name, start, count, each):
    """Each of `count` cuts is checked, and the run is repeated after one of `each` cuts that left it unfinished."""
    run, rng, runs, found = played(name, start), np.random.default_rng(count), 0, Counter()
    due = 2 * count // 3 % each  # a cut behind the middle, if there are few
    for number, (at, keeps) in enumerate(cuts(run, rng, count)):
        left = run.cut(at, keeps)
        found[left] += 1
        if left != "new" and number >= due:
            runs, due = runs + 1, due + each
            run.again(client, inputs)
    print(f"\n{name}, {start}: {len(run.recording.log)} operations, cuts left {dict(found)}; {runs} further runs")


# Every line that makes something durable, with a run that needs this line, how it starts, and whether only
# a further run shows why.
LINES = {
    "sync_file < whole_chunks: sync_file(file)": ("apsp", "fresh", False),
    "sync_file < row_files: sync_file(file)": ("apsp out of core", "fresh", False),
    "sync_file < write < threads": ("som", "fresh", False),
    "sync_names < <lambda> < threads": ("som", "fresh", False),
    "sync_names < contents: sync_names(path)": ("apsp", "fresh", False),
    "sync_file < sync_bytes < threads": ("graph", "fresh", False),
    "sync_names < threads": ("graph", "fresh", False),
    "sync_names < place: sync_names(os.path.dirname(place))": ("graph", "over", False),
    "sync_names < make_folders < place: make_folders(os.path.dirname(partial))": ("samples", "fresh", False),
    "sync_names < remove_folder < hierarchy: remove_folder(place)": ("apsp by rows", "fresh", True),
    "sync_file < sync_bytes < replace < output_file: replace(partial, place)": ("arcs.csv", "over", False),
    "sync_names < replace < output_file: replace(partial, place)": ("arcs.csv", "fresh", False),
    f"sync_file < sync_bytes < replace < output_file: {JOINED}": ("table.parquet", "fresh", False),
    f"sync_names < replace < output_file: {JOINED}": ("table.csv", "fresh", False),
    "sync_file < output_file: sync_file(file)": ("table.csv", "fresh", True),
    "sync_file < output_file: sync_file(self.journal)": ("table.csv", "fresh", False),
    "sync_names < output_file: sync_names(self.path.parent)": ("table.csv", "fresh", False),
}


@pytest.mark.parametrize("line", LINES)
def test_every_fsync_is_needed(client, inputs, played, line):
    name, start, further = LINES[line]
    run = played(name, start)
    lacking = replace(run, recording=run.recording.without(line))
    assert lacking.recording.log != run.recording.log
    calls = [at for at, one in enumerate(run.recording.log) if isinstance(one, Sync) and one.by == line]
    assert broken(lacking, calls, client if further else None, inputs)


def broken(run, calls, client, given):
    """Return whether a power cut after one of the calls breaks a promise; with a `client`, also run again."""
    total = len(run.recording.log)
    places = {total, *(min(total, at + more) for at in (calls[0], calls[-1]) for more in range(0, 12, 1))}
    for at, way in product(sorted(places, reverse=True), ("nothing", "deletions", "zeros")):
        try:
            left = run.cut(at, WAYS[way])
            if client is not None and left != "new":
                run.again(client, given)
        except (StoreError, AssertionError):
            return True
    return False


def test_every_fsync_was_tried(played):
    """The runs that were played call `fsync` from the lines that `LINES` lists, and from no others."""
    called = set().union(*(played(name, start).recording.callers() for name, start, _ in LINES.values()))
    assert called == set(LINES)


FAULTS = {errno.ESTALE: 0.1, errno.EIO: 0.5, errno.ENOSPC: 0.9}  # with the share of the calls before


@pytest.mark.parametrize(
    ("name", "fault"), diagonals(["apsp", "sssp", "som", "graph", "matrix.zarr", "table.csv"], list(FAULTS))
)
def test_a_disk_that_fails_commits_nothing(client, inputs, played, name, fault):
    run = played(name)
    fail(run, client, inputs, int(FAULTS[fault] * calls_of(run)), fault)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("name", "start"), STARTS)
def test_any_fsync_may_fail(client, inputs, played, name, start):
    run = played(name, start)
    for before in range(calls_of(run)):
        fail(run, client, inputs, before, list(FAULTS)[before % len(FAULTS)])


def calls_of(run):
    return sum(isinstance(one, Sync) for one in run.recording.log)


def fail(run, client, given, before, fault):
    """Let `fsync` fail after some calls: an error with its cure ends the run, which then continues."""
    run.recording.after_cut(0, WAYS["nothing"])
    calls = count()  # by which threads do not skip a number

    def fsync(_file):
        if next(calls) == before:
            raise OSError(fault, os.strerror(fault))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StoreError, match=r"(the disk failed|the disk is full).*run again"):
            RUNS[run.name](client, given, run.out, resume=run.start != "over", overwrite=run.start == "over")
        let_tasks_end(client)  # which write other chunks
    if run.look() != "new":  # "new" if the last call failed, behind the last operation
        run.again(client, given)

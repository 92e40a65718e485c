"""Stores are read while another process commits to them or replaces them, at each file that the reader looks at.

The other process is played by its changes of files: what a commit adds, then the attributes, then what it removes.
"""

import builtins
import io
import json
import os
import shutil
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from path_rows import write_rows

from gpuops.hierarchy import close_hierarchy
from pipelines.stores.circuits import open_circuits
from pipelines.stores.codebook import CodebookWriter, open_codebook
from pipelines.stores.distances import DistancesWriter, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.hierarchy import HierarchyWriter
from pipelines.stores.mapping import open_mapping
from pipelines.stores.matrix import open_matrix
from pipelines.stores.paths import PathsWriter, open_paths
from pipelines.stores.samples import open_samples
from tilepath.cli.describe import store_facts


class Meanwhile:
    """Calls ``change()`` once, just before the n-th look at a file of a folder; `n` is None while nothing counts.

    Zarr reads chunks in threads: none of them looks at a file while another is in the middle of the change.
    """

    def __init__(self, monkeypatch, folder):
        self.folder, self.n, self.change, self.alone = str(folder), None, None, threading.RLock()
        for module, name in (builtins, "open"), (io, "open"), (os, "stat"):
            monkeypatch.setattr(module, name, self.counted(getattr(module, name)))

    def counted(self, look):
        def counted(path, *arguments, **options):
            if isinstance(path, int) or not os.fspath(path).startswith(self.folder):
                return look(path, *arguments, **options)
            with self.alone:
                if self.n is not None:
                    self.n -= 1
                    if self.n == 0:
                        self.n = None
                        self.change()
                return look(path, *arguments, **options)

        return counted

    def at(self, n, change, read):
        """The result of ``read()``, and whether the change was made before it ended."""
        self.n, self.change = n, change
        try:
            return read(), self.n is None
        finally:
            self.n = None


def next_checkpoint(out, given):
    run = DistancesWriter.resume(out, open_graph(given / "graph"))
    run.make_checkpoint()
    for start in range(0, 5, 2):
        run.write_rows(start, np.ones((min(2, 5 - start), 5), "float32"), result=False)
    run.commit(2).make_checkpoint()  # which removes the one before


def result(out, given):
    run = DistancesWriter.resume(out, open_graph(given / "graph"))
    run.make_result()
    run.write_rows(0, np.ones((2, 5), "float32"))
    run.commit(3)


def last_rows(out, given):
    run = PathsWriter.resume(out, open_graph(given / "graph"))
    write_rows(run, 1, np.zeros((1, 5), "int32"), np.full((1, 5), -1))
    run.record(np.ones(3, bool))


def tables(out, given):
    graph = open_graph(given / "graph")
    run = HierarchyWriter.resume(out, graph)
    indptr, indices, weights = graph.rows()
    run.complete(close_hierarchy(run.structure(), indptr, indices, weights.astype("float32")))


def last_codebooks(out, given):
    run = CodebookWriter.resume(out, open_samples(given / "samples"), {"metric": "euclidean", "epochs": 3})
    run = replace(run, keep=1)
    for epoch in 2, 3:
        run.write(epoch, np.ones((1, 6, 2)))
        run.commit(epoch, [1.0] * epoch)
    run.finish(3, [1.0] * 4, 0.0, np.ones(6, int))


COMMITS = {
    "part-distances": [next_checkpoint, result],
    "part-paths": [last_rows],
    "part-hierarchy": [tables],
    "part-codebook": [last_codebooks],
}


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def play_commit(out, before, after):
    """Change the files of the store `out` from those of one state to those of another."""
    for name, content in sorted(after.items(), key=lambda file: file[0] == "zarr.json"):  # which comes last
        if before.get(name) != content:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / "new").write_bytes(content)
            (out / "new").rename(out / name)
    for name in before.keys() - after.keys():
        (out / name).unlink()


def play_replacement(out, new, aside):
    out.rename(aside)
    new.rename(out)


def facts(path):
    found = store_facts(path, verify=True)
    return {name: found[name] for name in ("complete", "done", "attributes", "total")}


def looks(meanwhile, path):
    """How many times `facts` looks at a file."""
    meanwhile.n = 1 << 30
    facts(path)
    count, meanwhile.n = (1 << 30) - meanwhile.n, None
    return count


def some(count):
    """A few places of `count`, spread evenly."""
    return range(count // 10, count + 1, max(1, count // 5))


def every(count):
    return range(1, count + 1)


CASES = [(name, commit) for name, those in COMMITS.items() for commit in those]
FEW_AND_ALL = pytest.mark.parametrize("places", [some, pytest.param(every, marks=pytest.mark.slow)])


@FEW_AND_ALL
@pytest.mark.parametrize(("name", "commit"), CASES)
def test_a_reader_sees_the_store_before_or_after_a_commit(name, commit, places, tiny_stores, tmp_path, monkeypatch):
    out, meanwhile = tmp_path / "out", Meanwhile(monkeypatch, tmp_path)
    shutil.copytree(tiny_stores, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).rename(out)
    old, old_files = facts(out), files(out)
    commit(out, tmp_path)
    new, new_files = facts(out), files(out)
    assert old != new
    for n in places(looks(meanwhile, out)):
        shutil.rmtree(out)
        play_commit(out, {}, old_files)
        found, changed = meanwhile.at(n, lambda: play_commit(out, old_files, new_files), lambda: facts(out))
        assert found in ((old, new) if changed else (old,)), n


@FEW_AND_ALL
@pytest.mark.parametrize("name", ["graph", "distances"])
def test_a_reader_sees_the_store_before_or_after_its_replacement(name, places, tiny_stores, tmp_path, monkeypatch):
    out, meanwhile = tmp_path / "out", Meanwhile(monkeypatch, tmp_path)
    other, aside = {"graph": "unweighted", "distances": "rows"}[name], tmp_path / ".out.host.1.replaced"
    old, new = facts(tiny_stores / name), facts(tiny_stores / other)
    shutil.copytree(tiny_stores / name, out)
    for n in places(looks(meanwhile, out)):
        for path, content in (out, name), (tmp_path / "new", other):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(tiny_stores / content, path)
        shutil.rmtree(aside, ignore_errors=True)

        def replace(n=n):
            """Rename the old store, and at the next look at a file the new one."""
            out.rename(aside)
            meanwhile.n, meanwhile.change = 1, lambda: (tmp_path / "new").rename(out)

        found, _ = meanwhile.at(n, replace, lambda: facts(out))
        assert found in (old, new), n


def test_a_store_whose_replacement_was_killed_is_found(tiny_stores, tmp_path):
    shutil.copytree(tiny_stores / "graph", tmp_path / ".out.host.1.replaced")
    with pytest.raises(StoreError, match=r"out: was moved to \.out\.host\.1\.replaced by a run .*; repeat"):
        open_graph(tmp_path / "out")


def test_a_store_that_changes_all_the_time_is_refused(tiny_stores, tmp_path, monkeypatch):
    out, meanwhile = tmp_path / "out", Meanwhile(monkeypatch, tmp_path)
    shutil.copytree(tiny_stores / "part-paths", out)

    (out / "distances" / "zarr.json").unlink()

    def change():
        with open(out / "zarr.json", "a") as file:
            file.write(" ")
        meanwhile.n = 1

    with pytest.raises(StoreError, match="out: another run changes it all the time; read it when that run has ended"):
        meanwhile.at(1, change, lambda: facts(out))


# A store that was opened, and then replaced, is not read: rows of both stores would be taken for rows of one.

READS = {
    "graph": (open_graph, lambda store: store.weights(), lambda store: store.coordinates()),
    "distances": (open_distances, lambda store: store[1:3], lambda store: next(store.blocks())),
    "paths": (open_paths, lambda store: store.predecessors(), lambda store: [*store.blocks()]),
    "matrix": (open_matrix, lambda store: store.to_numpy(), lambda store: store.names()),
    "circuits": (open_circuits, lambda store: store.arcs(), lambda store: store.offsets()),
    "samples": (open_samples, lambda store: store.values(1, 2), lambda store: store.label_names()),
    "codebook": (open_codebook, lambda store: store.units(), lambda store: store.hits()),
    "mapping": (open_mapping, lambda store: store.units(), lambda store: store.distances()),
}
REPLACED = "the store was replaced after it was opened; open it again"
REMOVED = "the store was moved or removed after it was opened"


@pytest.mark.parametrize("name", READS)
def test_an_opened_store_that_was_replaced_is_refused(tiny_stores, tmp_path, name):
    begin, *reads = READS[name]
    path = shutil.copytree(tiny_stores / name, tmp_path / name)
    store = begin(path)
    for read in reads:
        read(store)
    file = path / "zarr.json"
    record = json.loads(file.read_bytes())
    record["attributes"]["seal"] = "of another store"
    file.write_text(json.dumps(record))
    for read in reads:
        with pytest.raises(StoreError, match=REPLACED):
            read(store)
    shutil.rmtree(path)
    for read in reads:
        with pytest.raises(StoreError, match=REMOVED):
            read(store)


def matrix_in(store):
    """The matrix of an opened store; None if the store was replaced."""
    try:
        return store[:]
    except StoreError as error:
        if REPLACED not in str(error):
            raise


def test_a_read_sees_no_mixture_of_a_store_and_its_replacement(tiny_stores, tmp_path, monkeypatch):
    place = tmp_path / "stores"
    out, other, meanwhile = place / "d", place / "new", Meanwhile(monkeypatch, place)
    for n in range(1, 1 << 10):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tiny_stores / "distances", out)
        shutil.copytree(tiny_stores / "rows", other)  # a chunk has the same name, and other values
        store = open_distances(out)
        want = store[:]
        found, changed = meanwhile.at(n, lambda: play_replacement(out, other, place / "old"), partial(matrix_in, store))
        assert found is None or np.array_equal(found, want)
        if not changed:
            break
    assert n > 5

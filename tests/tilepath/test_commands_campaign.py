"""Random sequences of commands over a few small stores, with a model of what each store may hold.

Commands import, reverse and replace graphs, solve them, resume, overwrite, rename and damage stores. A kill is played:
while a command runs, the folder is copied at its k-th rename, and afterwards takes the place of the folder. After any
of this, ``info --verify`` must pass for stores that nothing happened to, and what passes must hold an answer that the
model allows; every error must be one that the command line shows as one line. The reference is Floyd and Warshall's
algorithm. The long campaign: ``pytest -m slow -s tests/tilepath/test_commands_campaign.py``
"""

import contextlib
import csv
import json
import os
import shutil
import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
from campaigns import campaign, pick, play, random_arcs, without_negative_cycle
from click.testing import CliRunner

from clusters import ClusterError
from gpuops.numbers import outside_infinity
from tilepath import cli

SHOWN = (ValueError, OSError, ImportError, ClusterError, click.ClickException)  # by `main`, as one line

OFTEN = {  # several chunks and commits, even in small stores
    "pipelines.apsp.hierarchy.EDGE": 2,
    "pipelines.apsp.hierarchy.LEAST_EDGE": 2,
    "pipelines.apsp.hierarchy.TASK_BYTES": 1,
    "pipelines.apsp.commits.COMMIT_SHARE": float("inf"),
    "pipelines.sssp.plan.CHUNK_BYTES": 1,
    "pipelines.sssp.plan.LANES": 1,
    "pipelines.workers.row_chunks.RECORD_SECONDS": 0.0,
}
RESULTS = {"apsp": ["d1", "d2"], "sssp": ["p1", "p2"], "hierarchy": ["h1", "h2"]}
GRAPHS = ["g1", "g2", "g3"]


def closure(n, arcs):
    matrix = np.full((n, n), np.inf)
    for tail, head, weight in arcs:
        matrix[tail, head] = min(matrix[tail, head], weight)
    np.fill_diagonal(matrix, 0)
    for k in range(n):
        np.minimum(matrix, matrix[:, k, None] + matrix[k], out=matrix)
    return matrix


@dataclass
class Store:
    """What a store may hold: sorted arcs of a graph, or the rows of `sources` of distances.

    `sound` is False if it may be unfinished or damaged, so that reading may fail; `ours` is False if its attributes are
    damaged, so that it may not even be overwritten.
    """

    allowed: list
    sound: bool = True
    ours: bool = True
    arcs: list = field(default_factory=list)
    sources: list = field(default_factory=list)


class Kills:
    """A copy of the folder is made at a rename that is yet `left` away; no other rename happens meanwhile."""

    def __init__(self, monkeypatch, folder, copy):
        self.folder, self.copy, self.left, self.lock = folder, copy, 0, threading.Lock()
        for name in ("replace", "rename"):
            monkeypatch.setattr(os, name, self.counting(getattr(os, name)))

    def counting(self, rename):
        def counted(*arguments, **options):
            with self.lock:
                self.left -= 1
                if self.left == 0:
                    with contextlib.suppress(shutil.Error):  # a file that was removed meanwhile
                        shutil.copytree(self.folder, self.copy, symlinks=True)
                return rename(*arguments, **options)

        return counted

    def return_to_copy(self):
        """Whether there is a copy; it is the folder then, and partial files are those of a process that is gone."""
        self.left = 0
        if not self.copy.exists():
            return False
        shutil.rmtree(self.folder)
        self.copy.rename(self.folder)
        os.chdir(self.folder)
        for path in sorted(self.folder.rglob(f"*.{os.getpid()}.*"), reverse=True):
            path.rename(path.with_name(path.name.replace(f".{os.getpid()}.", ".99999999.")))
        return True


class Sequence:
    def __init__(self, rng, folder, kills, counts):
        self.rng, self.folder, self.kills, self.counts = rng, folder, kills, counts
        self.stores, self.log = {}, []

    def play(self):
        steps = [self.make_graph, self.solve, self.solve, self.solve, self.look, self.look, self.ask, self.ask]
        steps += [self.reverse, self.damage, self.rename]
        self.make_graph()
        for _ in range(self.rng.integers(3, 9)):
            pick(self.rng, steps)()
        for name in list(self.stores):
            self.look(name)

    def run(self, *arguments):
        """Output of a command, None if it ends with an error."""
        arguments = list(map(str, arguments))
        self.log.append(" ".join(arguments))
        done = CliRunner().invoke(cli.tilepath, arguments)
        self.error = done.exception
        self.counts["commands"] += 1
        if isinstance(done.exception, SystemExit):  # a usage error, shown by click
            self.error = done.stderr
        elif done.exception is not None:
            self.must(isinstance(done.exception, SHOWN), "a traceback")
            self.log[-1] += f"  # {done.exception}"
        return done.stdout if done.exception is None else None

    def must(self, holds, what):
        assert holds, f"{what}: {self.error!r}; after\n" + "\n".join(self.log)

    def sound(self, names):
        return [name for name in names if name in self.stores and self.stores[name].sound]

    def change(self, name, new, *arguments, retry):
        """Run a command that makes `new` of the store `name`, perhaps killed; the model of the store afterwards."""
        old, exists = self.stores.get(name), Path(name).exists()
        mode = pick(self.rng, ["", "--overwrite", *retry])
        killed = self.rng.random() < 0.4
        if killed:
            self.kills.left = int(self.rng.integers(1, 15))
        made = self.run(*arguments, *[mode] * bool(mode))
        if killed and self.kills.return_to_copy():
            self.log[-1] += "  # killed"
            self.counts["kills"] += 1
            if old is None or mode == "--resume":
                allowed, sound, told = (old.allowed if old else []) + new.allowed, False, new
            else:  # it stays until the new one is whole; between two renames neither is there
                there = Path(name).exists()
                self.must(there or not old.sound or [*Path().glob(f".{name}.*.replaced")], f"{name} is lost")
                allowed, sound, told = old.allowed + new.allowed, old.sound and there, old
            ours = old is None or old.ours
            self.stores[name] = Store(allowed, sound, ours, told.arcs, told.sources)
            if ours and self.rng.random() < 0.5:
                again = "--overwrite" if exists or not retry else "--resume"
                self.must(self.run(*arguments, again) is not None, f"{again} after a kill")
                self.stores[name] = new
        elif made is not None:
            self.must(mode or not exists, "the store was overwritten")
            if mode == "--resume" and exists:
                self.must(old is None or not old.sound or old.arcs == new.arcs, "a run of another graph was resumed")
                new.allowed = new.allowed + (old.allowed if old else [])
            self.stores[name] = new
        else:
            self.must(exists and (mode != "--overwrite" or (old and not old.ours)), "refused")

    def make_graph(self):
        n = int(pick(self.rng, [1, 2, 5, 9, 14]))
        tails, heads = random_arcs(self.rng, n, int(pick(self.rng, [1, n, 3 * n])))
        weights = self.rng.integers(1, 9, len(tails))
        kind = pick(self.rng, ["whole", "eighths", "signed"])
        if kind == "signed":
            weights = without_negative_cycle(self.rng, tails, heads, weights)
        weights = weights / 8 if kind == "eighths" else weights
        arcs = sorted(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
        lines = ["source,target,weight", *(f"{tail},{head},{weight}" for tail, head, weight in arcs)]
        Path(f"{n}.csv").write_text("\n".join(lines) + "\n")
        name = pick(self.rng, GRAPHS)
        self.change(name, Store([(n, arcs)], arcs=(n, arcs)), "import", f"{n}.csv", name, "--vertices", n, retry=[])

    def reverse(self):
        source, name = pick(self.rng, self.sound(GRAPHS) or [None]), pick(self.rng, GRAPHS)
        if source in (None, name):
            return
        n, arcs = self.stores[source].arcs
        turned = n, sorted((head, tail, weight) for tail, head, weight in arcs)
        self.change(name, Store([turned], arcs=turned), "graph", "reverse", source, name, retry=[])

    def solve(self):
        graph, command = pick(self.rng, self.sound(GRAPHS) or [None]), pick(self.rng, [*RESULTS])
        if graph is None:
            return
        rng, (n, arcs) = self.rng, self.stores[graph].arcs
        options, rows, matrix = [], list(range(n)), closure(n, arcs)
        if command == "apsp":
            options += ["--method", pick(rng, ["auto", "floyd-warshall", "batched", "hierarchy", "out-of-core"])]
            if options[-1] in ("floyd-warshall", "out-of-core"):
                options += ["--commit-seconds", "0", "--block", pick(rng, [2, 32])]
        if command == "hierarchy" and rng.random() < 0.3:
            options += ["--thorough"]
        if command == "sssp" or (command == "apsp" and rng.random() < 0.3):
            rows = rng.permutation(n)[: rng.integers(1, 4)].tolist()
            options += [word for row in rows for word in ("--source", row)]
        matrix = matrix[rows]
        if command == "sssp" and rng.random() < 0.3:
            options, matrix = [*options, "--together"], matrix.min(axis=0, keepdims=True)
        if rng.random() < 0.3:
            options += ["--dtype", pick(rng, ["float32", "float64"])]
        name = pick(rng, RESULTS[command])
        new = Store([matrix], arcs=(n, arcs), sources=rows)
        self.change(name, new, command, graph, name, *options, retry=["--resume"])

    def look(self, name=None):
        """Verify a store and read it."""
        name = name or pick(self.rng, [*self.stores])
        store = self.stores[name]
        verified = self.run("info", name, "--verify", "--json")
        self.must(verified is not None or not store.sound, f"{name} does not verify")
        if verified is None or not json.loads(verified).get("complete", True):
            self.must(not store.sound, f"{name} is unfinished")
            return
        found = self.arcs_of(name) if name in GRAPHS else self.distances_of(name)
        if found is not None:
            right = [allowed for allowed in store.allowed if same(found, allowed)]
            self.must(right, f"{name} holds {found}, and not one of {store.allowed}")

    def arcs_of(self, name):
        self.must(self.run("export", name, "x.csv", "--overwrite") is not None, f"{name} was verified")
        n = json.loads(self.run("info", name, "--json"))["attributes"]["n"]
        with open("x.csv") as file:
            rows = list(csv.reader(file))[1:]
        return n, sorted((int(tail), int(head), float(weight)) for tail, head, weight in rows)

    def distances_of(self, name):
        if name in RESULTS["hierarchy"]:
            n = len(self.stores[name].allowed[0])
            Path("all.csv").write_text("vertex\n" + "".join(f"{v}\n" for v in range(n)))
            if self.run("od", name, "x.npy", "--origins", "all.csv", "--overwrite") is None:
                return None  # another number of vertices
        else:
            self.must(self.run("export", name, "x.npy", "--overwrite") is not None, f"{name} was verified")
        found = np.load("x.npy")
        return np.where(found == outside_infinity(found.dtype), np.inf, found)

    def ask(self):
        """A path of a store: as long as the arcs of it, and as a distance that is allowed."""
        name = pick(self.rng, self.sound([name for names in RESULTS.values() for name in names]) or [None])
        if name is None:
            return
        store = self.stores[name]
        (n, arcs), source = store.arcs, pick(self.rng, store.sources)
        target = int(self.rng.integers(n))
        told = self.run("path", name, source, target, "--json")
        if told is None:
            return  # no path, or the graph is another one by now
        found = json.loads(told)
        lengths = [found["distance"]]
        if len(store.allowed) == 1:
            lengths.append(closure(n, arcs)[int(found["path"][0]), target])
            weights = {}
            for tail, head, weight in arcs:
                weights[tail, head] = min(weight, weights.get((tail, head), np.inf))
            lengths.append(sum(weights[hop] for hop in pairwise(map(int, found["path"]))))
        self.must(len(set(lengths)) == 1, f"{told}: {lengths}")

    def damage(self):
        name = pick(self.rng, [*self.stores])
        files = sorted(path for path in Path(name).rglob("*") if path.is_file()) if Path(name).exists() else []
        if not files:
            return
        file, how = pick(self.rng, files), pick(self.rng, ["delete", "truncate", "flip", "copy"])
        content = bytearray(file.read_bytes())
        self.log.append(f"{how} {file}")
        self.stores[name].sound = False
        self.stores[name].ours &= file.name != "zarr.json"
        if how == "flip" and content:
            content[self.rng.integers(len(content))] ^= 1 << self.rng.integers(8)
        if how == "copy" and file.name != "zarr.json":  # of a chunk whose checksum is right
            content = pick(self.rng, [path for path in files if path.name != "zarr.json"]).read_bytes()
        file.unlink()
        if how != "delete":
            file.write_bytes(content[: len(content) // 2] if how == "truncate" else content)

    def rename(self):
        name = pick(self.rng, [*self.stores])
        kin = next(names for names in (GRAPHS, *RESULTS.values()) if name in names)
        other = pick(self.rng, [each for each in kin if each != name])
        if not Path(name).exists():
            return
        self.log.append(f"rm -r {other}; mv {name} {other}")
        shutil.rmtree(other, ignore_errors=True)
        Path(name).rename(other)
        self.stores[other] = self.stores.pop(name)


def same(found, allowed):
    if isinstance(found, tuple):
        return found == allowed
    return found.shape == allowed.shape and np.array_equal(found, allowed)


@campaign(few=2, many=1_200)
def test_stores_hold_what_the_commands_say(client, tmp_path, monkeypatch, seeds):
    monkeypatch.setattr("tilepath.cli.cluster._open_client", lambda options: contextlib.nullcontext(client))
    for name, value in OFTEN.items():
        monkeypatch.setattr(name, value)
    folder, counts = tmp_path / "here", Counter()
    kills = Kills(monkeypatch, folder, tmp_path / "copy")

    def trial(rng):
        for path in (folder, tmp_path / "copy"):
            shutil.rmtree(path, ignore_errors=True)
        folder.mkdir()
        monkeypatch.chdir(folder)
        Sequence(rng, folder, kills, counts).play()

    try:
        play(seeds, trial)
    finally:
        print(", ".join(f"{count:,} {what}" for what, count in counts.items()))

"""Random commands over a few small stores, as a state machine of Hypothesis (`store_model` has the model).

Commands import, generate, reverse and replace graphs, solve them, walk along them, train maps, resume and overwrite;
some are killed, interrupted or meet a failing disk. Stores are damaged, renamed and moved. Whatever happens, an answer
must be right, or an error must name what is wrong and the cure.

``pytest -m slow -s tests/tilepath/test_commands_campaign.py`` plays TRIALS sequences, drawn from SEED. A failure prints
a short sequence that fails, as steps and as commands.
"""

import contextlib
import functools
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from campaigns import campaign
from damage import changed_attribute, damaged
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from stops import STOPS, Stops
from store_contents import Arcs, Map, Samples, Units, Walks, write_arcs
from store_model import ANY, NAMES, Run, Store, StoreModel

from pipelines.generators import csr, synthetic_graph
from tilepath.sklearn import SelfOrganizingMap

OFTEN = {  # several chunks and commits, even in small stores
    "pipelines.apsp.hierarchy.EDGE": 2,
    "pipelines.apsp.hierarchy.LEAST_EDGE": 2,
    "pipelines.apsp.hierarchy.TASK_BYTES": 1,
    "pipelines.apsp.commits.COMMIT_SHARE": float("inf"),
    "pipelines.sssp.plan.CHUNK_BYTES": 1,
    "pipelines.sssp.plan.BATCH": 1,
    "pipelines.workers.row_chunks.RECORD_SECONDS": 0.0,
}

FEW = 2  # sequences of each run of the tests, of 8 steps

GENERATED = {
    "grid": {"rows": 2, "weights": "integers"},
    "road": {"rows": 3, "weights": "integers"},
    "random": {"n": 7, "edge_factor": 2, "weights": "integers"},
    "rmat": {"scale": 3, "edge_factor": 1, "weights": "integers"},
    "dag": {"n": 6, "edge_factor": 2, "weights": "integers"},
    "negative-cycle": {"n": 9, "length": 3, "edge_factor": 1, "weights": "integers"},
    "euler": {"n": 6},
}


METHODS = (
    "auto",
    "batched",
    "hierarchy",
    *(f"{way} --commit-seconds=0 --block={block}" for way in ("floyd-warshall", "out-of-core") for block in (2, 32)),
)


# Runs that grow a store, from the stores of the model that are made in one go.
MADE = (
    ("train", {"samples": "s1", "out": "w1", "rows": 2, "epochs": 3}),
    ("place", {"codebook": "w1", "samples": "s1", "out": "u1"}),
    ("all_pairs", {"graph": "g1", "out": "d1", "method": METHODS[3], "rows": []}),
    ("all_pairs", {"graph": "g2", "out": "d2", "method": METHODS[2], "rows": []}),
    ("search", {"graph": "g1", "out": "p1", "rows": [1, 4, 5], "spread": "sources"}),
    ("search", {"graph": "g2", "out": "p2", "rows": [2, 4, 5], "spread": "sources"}),
    ("hierarchy", {"graph": "g1", "out": "h1", "options": []}),
    ("matrix", {"store": "h1", "out": "m1.zarr", "rows": [0, 1], "columns": [2, 3, 4]}),
)
# What must not be accepted when a run of `MADE` is resumed: another option, or another input of the same kind.
OTHERWISE = {
    "train": ({"epochs": 4}, {"samples": "s2"}),
    "place": ({"samples": "s2"},),
    "all_pairs": ({"rows": [1]}, {"method": METHODS[4]}, {"graph": "g1"}, {"graph": "g2"}),
    "search": ({"rows": [1]}, {"cutoff": 8}, {"graph": "g1"}, {"graph": "g2"}),
    "hierarchy": ({"options": ["--thorough"]}, {"graph": "g2"}),
    "matrix": ({"rows": [2]}, {"columns": [1]}),
}
# Runs of `MADE`, by their numbers, that are also killed at the beginning, some renames before their last commit: a
# training between its last two records, too.
EARLY_KILLS = (0, 5), (0, 0), (2, 3), (4, 4)


def runs(resume=True):
    """Two of three runs are stopped, unless they rename less often."""
    modes = st.sampled_from(["", "--overwrite", "--resume" if resume else "--overwrite"])
    stopped = st.builds(Run, modes, st.sampled_from(STOPS), st.integers(1, 16), st.booleans())
    return st.one_of(st.builds(Run, modes), stopped, stopped)


number = st.integers(0, 1 << 20)  # an index modulo a length: what is drawn does not depend on what a stop left


def standing(kinds):
    """The name of a store of these kinds that the model knows, "" if there is none."""

    def chosen(machine_and_index):
        machine, index = machine_and_index
        names = machine.known(kinds) or [""]
        return names[index % len(names)]

    return st.tuples(st.runner(), number).map(chosen)


def new(kind):
    """A name for a store to be written, which may exist."""
    return st.sampled_from(NAMES[kind])


def step(**arguments):
    """A rule, which does nothing if a store that it needs is not there."""

    def decorate(method):
        @functools.wraps(method)
        def taken(self, **given):
            if "" not in [each for each in given.values() if isinstance(each, str)]:
                self.tried[method.__name__] += 1
                method(self, **given)

        return rule(**arguments)(taken)

    return decorate


@st.composite
def graphs(draw):
    """A graph with loops and parallel arcs, at times a closed walk, with negative weights or with a negative cycle."""
    n = draw(st.integers(1, 9))
    vertex = st.integers(0, n - 1)
    ends = draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=20))
    kind = draw(st.sampled_from(["whole", "eighths", "signed", "walk", "any"]))
    if kind == "walk":
        stops = [tail for tail, _ in ends]
        ends = [*zip(stops, stops[1:] + stops[:1], strict=True)]
    weights = draw(st.lists(st.integers(-2 if kind == "any" else 0, 9), min_size=len(ends), max_size=len(ends)))
    heights = draw(st.lists(st.integers(0, 20 if kind == "signed" else 0), min_size=n, max_size=n))
    arcs = [
        (a, b, (w + heights[a] - heights[b]) / (8 if kind == "eighths" else 1))
        for (a, b), w in zip(ends, weights, strict=True)
    ]
    return Arcs(n, tuple(sorted(arcs)))


tables = st.integers(1, 3).flatmap(
    lambda d: st.lists(st.lists(st.integers(-9, 9), min_size=d, max_size=d), min_size=1, max_size=12)
)
some = st.lists(st.integers(0, 11), min_size=1, max_size=3)


class Commands(StoreModel):
    """Random commands; `ready` is set by the test: a folder with a store of every kind, and the model of these."""

    # Commands that make stores

    @initialize(graph=st.none() | graphs())
    def begin(self, graph):
        """With a store of every kind, perhaps of a graph that is another one by now."""
        self.counts["examples"] += 1
        if not self.ready.stores:
            self.make_ready()
        else:
            self.log.append("(stores of make_ready)")
            shutil.copytree(self.ready.folder, self.stops.folder, dirs_exist_ok=True)
            self.stores = dict(self.ready.stores)
        if graph is not None:
            self.import_graph(out="g1", graph=graph, suffix="csv", how=Run("--overwrite"))

    def make_ready(self):
        """Make a store of every kind, and keep a copy."""
        once = Run()
        for place, last in (1, 3), (2, 4):
            table = [[4, 1], [2, 2], [0, 7], [9, 9], [5, last]]
            self.import_samples(out=f"s{place}", table=table, how=once)
        for place, drawn in (1, 6), (2, 2):  # graphs whose distances are wrong if a stage is left out
            self.generate(out=f"g{place}", kind="euler", seed=drawn, how=once)
            self.euler(graph=f"g{place}", out=f"c{place}", method="stages", how=once)
        for number, (make, arguments) in enumerate(MADE):
            getattr(self, make)(**arguments, how=once)
            self.ready.renames.append(self.stops.renames)
            for before in (before for killed, before in EARLY_KILLS if killed == number):
                self.kill_late(number=number, before=before)
        for choice in 0, 3:  # with another source, or another graph
            self.resume_otherwise(number=4, before=2, choice=choice)
        shutil.copytree(self.stops.folder, self.ready.folder)
        self.ready.stores |= self.stores

    @step(out=new("g"), graph=graphs(), suffix=st.sampled_from(["csv", "parquet", "gr", "mtx"]), how=runs(resume=False))
    def import_graph(self, out, graph, suffix, how):
        if suffix == "gr" and not graph.whole:
            suffix = "mtx"
        file = f"arcs.{suffix}"
        graph = write_arcs(graph, file)
        options = [] if graph.first else ["--vertices", graph.n]
        self.write(out, lambda: graph, [], how, "import", file, out, *options)

    @step(out=new("g"), kind=st.sampled_from([*GENERATED]), seed=st.integers(0, 3), how=runs(resume=False))
    def generate(self, out, kind, seed, how):
        indptr, heads, weights = csr(synthetic_graph(kind, seed=seed, **GENERATED[kind]))
        tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        arcs = sorted(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
        options = [f"--{word.replace('_', '-')}={value}" for word, value in GENERATED[kind].items()]
        options = [option.replace("--n=", "--vertices=") for option in options]
        graph = Arcs(len(indptr) - 1, tuple(arcs))
        self.write(out, lambda: graph, [], how, "generate", kind, out, "--seed", seed, *options)

    @step(graph=standing("g"), out=new("g"), how=runs(resume=False))
    def reverse(self, graph, out, how):
        if out != graph:
            self.write(out, Arcs.reversed, [graph], how, "graph", "reverse", graph, out)

    @step(graph=standing("g"), out=new("d"), method=st.sampled_from(METHODS), rows=st.just([]) | some, how=runs())
    def all_pairs(self, graph, out, method, rows, how):
        options = [*method.split(), *self.named(graph, rows, "source")]
        make = lambda g: g.rows(g.vertices(rows) or range(g.n))  # noqa: E731
        self.write(out, make, [graph], how, "apsp", graph, out, "--method", *options)

    @step(
        graph=standing("g"),
        out=new("p"),
        rows=some,
        spread=st.sampled_from(["sources", "vertices"]),
        together=st.booleans(),
        cutoff=st.none() | st.integers(0, 30),
        how=runs(),
    )
    def search(self, graph, out, rows, spread, how, together=False, cutoff=None):
        options = [*self.named(graph, rows, "source"), "--spread", spread, *["--together"] * together]
        options += [] if cutoff is None else ["--cutoff", cutoff]
        make = lambda g: g.rows(g.vertices(rows), together, cutoff)  # noqa: E731
        if all(g.matrix is not None for g in self.stores[graph].allowed or ()):  # else it depends on the sources
            self.write(out, make, [graph], how, "sssp", graph, out, *options)

    @step(graph=standing("g"), out=new("h"), options=st.sampled_from([[], ["--thorough"]]), how=runs())
    def hierarchy(self, graph, out, options, how):
        self.write(out, lambda g: g.rows(range(g.n)), [graph], how, "hierarchy", graph, out, *options)

    @step(graph=standing("g"), like=standing("h"), out=new("h"), how=runs())
    def hierarchy_like(self, graph, like, out, how):
        """Other weights or fewer arcs on the same vertices must be taken, and other arcs may be refused."""
        fits = all(
            g.n == h.graph.n and {arc[:2] for arc in g.arcs} <= {arc[:2] for arc in h.graph.arcs}
            for g in self.stores[graph].allowed or ()
            for h in self.stores[like].allowed or ()
        )
        if like != out:
            make = lambda g, _: g.rows(range(g.n))  # noqa: E731
            command = ("hierarchy", graph, out, "--like", like)
            self.write(out, make, [graph, like], how, *command, may_refuse=not fits)

    @step(store=standing("gh"), out=new("m"), rows=some, columns=some, how=runs())
    def matrix(self, store, out, rows, columns, how):
        options = self.points(store, rows, columns)
        make = lambda content: block(content, rows, columns)  # noqa: E731
        self.write(out, make, [store], how, "od", store, out, *options, may_refuse=not self.backed(store))

    @step(graph=standing("g"), out=new("c"), method=st.sampled_from(["stages", "hierholzer"]), how=runs(resume=False))
    def euler(self, graph, out, method, how):
        make = lambda g: Walks(g) if g.balanced() else None  # noqa: E731
        self.write(out, make, [graph], how, "euler", graph, out, "--method", method)

    @step(out=new("s"), table=tables, how=runs(resume=False))
    def import_samples(self, out, table, how):
        pd.DataFrame(table, columns=[*"abc"[: len(table[0])]]).to_csv("table.csv", index=False)
        values = np.array(table, "float32")
        self.write(out, lambda: Samples(values), [], how, "som", "import", "table.csv", out)

    @step(samples=standing("s"), out=new("w"), rows=st.integers(1, 2), epochs=st.integers(1, 4), how=runs())
    def train(self, samples, out, rows, epochs, how):
        """The estimator, which knows neither stores nor workers, trains the same map, bit by bit."""
        options = {"rows": rows, "columns": 2, "epochs": epochs}

        def make(samples):
            try:
                fitted = SelfOrganizingMap(**options, random_state=0).fit(samples.values)
            except ValueError:  # samples that are all equal, or fewer than units
                return None
            return Map(fitted.codebook_, fitted.quantization_errors_)

        words = [f"--{word}={value}" for word, value in options.items()]
        self.write(out, make, [samples], how, "som", "train", samples, out, *words)

    @step(codebook=standing("w"), samples=standing("s"), out=new("u"), how=runs())
    def place(self, codebook, samples, out, how):
        def make(codebook, samples):
            fits = codebook.values.shape[1] == samples.values.shape[1]
            return Units(samples.values, codebook.values) if fits else None

        self.write(out, make, [codebook, samples], how, "som", "map", codebook, samples, out)

    def named(self, graph, numbers, option):
        """Options that name vertices of a graph."""
        content = (self.stores[graph].allowed or [Arcs(1, ())])[0]
        return [f"--{option}=#{vertex}" for vertex in content.vertices(numbers)]

    def points(self, store, rows, columns):
        content = (self.stores[store].allowed or [Arcs(1, ())])[0]
        for file, numbers in ("rows.csv", rows), ("columns.csv", columns):
            chosen = graph_of(content).vertices(numbers)
            Path(file).write_text("vertex\n" + "".join(f"#{vertex}\n" for vertex in chosen))
        return ["--origins", "rows.csv", "--destinations", "columns.csv"]

    @step(number=st.sampled_from(range(len(MADE))), before=st.integers(-2, 12))
    def kill_late(self, number, before):
        """A run is killed at its last renames, when it has made commits, and resumed."""
        make, arguments = MADE[number]
        if all(name in self.stores and self.stores[name].sound for name in inputs_of(arguments)):
            at = max(1, self.ready.renames[number] - before)
            getattr(self, make)(**arguments, how=Run("--overwrite", "kill", at, True))
            if arguments["out"] in self.stores:  # else it was renamed, and the command was refused
                self.look(arguments["out"])

    @step(number=st.sampled_from(range(len(MADE))), before=st.integers(-2, 12), choice=number)
    def resume_otherwise(self, number, before, choice):
        """A run is killed, and resumed with another input or option, which must be refused, and then as it began."""
        make, arguments = MADE[number]
        out, others = arguments["out"], OTHERWISE[make]
        changed = arguments | others[choice % len(others)]
        names = inputs_of(arguments) | inputs_of(changed)
        if changed == arguments or not all(name in self.stores and self.stores[name].certain for name in names):
            return
        if len({str(self.stores[name].allowed) for name in names}) < len(names):
            return  # one input is like the other
        way, former = getattr(self, make), self.growing(out)
        way(**arguments, how=Run("--overwrite", "kill", max(1, self.ready.renames[number] - before)))
        growing = self.growing(out)
        if growing != former if growing else not self.stores.get(out, Store([])).finished:
            self.told, self.possible = "", None
            way(**changed, how=Run("--resume"))
            if self.possible is not None:  # else the rule left the run out
                refused = "was begun" in self.told if self.possible else self.told
                self.must(refused, "a run was resumed otherwise than it was begun")
            way(**arguments, how=Run("--resume"))
        if out in self.stores:  # else it was renamed, and the run was killed before it began
            self.look(out)

    # What befalls stores

    @step(name=standing(ANY), how=st.sampled_from(["delete", "cut", "flip"]), file=number, bit=number)
    def damage(self, name, how, file, bit):
        """A file is deleted, cut in half, or has a bit flipped."""
        self.spoil(name, "**/*", file, how, lambda path: damaged(path, how, bit))

    @step(name=standing(ANY), file=number, other=number)
    def mix_up(self, name, file, other):
        """A chunk is replaced by a chunk of the same array, perhaps of another store."""

        def content(path):
            kin = sorted(each for store in NAMES[name[0]] for each in Path(store, path.parts[1]).glob("c/**/*"))
            chunks = [each for each in kin if each.is_file()]
            return chunks[other % len(chunks)].read_bytes()

        self.spoil(name, "*/c/**/*", file, "mix up", content)

    @step(name=standing(ANY), file=number, place=number, value=number)
    def change_attribute(self, name, file, place, value):
        self.spoil(name, "**/zarr.json", file, "change", lambda path: changed_attribute(path, place, value))

    def spoil(self, name, pattern, file, how, content):
        """Write ``content(path)`` to a file of a store, or delete the file if that is None."""
        files = sorted(path for path in Path(name).glob(pattern) if path.is_file())
        if not files:
            return
        path = files[file % len(files)]
        self.log.append(f"{how} {path}")
        written, attributes, found = content(path), path.name == "zarr.json", self.stores[name]
        if how == "change" and path.parent == Path(name) and found.recorded is None:
            with contextlib.suppress(ValueError):  # damaged before
                found = replace(found, recorded=json.loads(path.read_bytes())["attributes"])
        path.unlink()
        if written is not None:
            path.write_bytes(written)
        honest, ours = found.honest and how != "mix up" and not attributes, found.ours and not attributes
        self.stores[name] = replace(found, whole=False, honest=honest, ours=ours)
        self.changed.add(name)

    @step(name=standing(ANY))
    def rename(self, name):
        """A store takes the place of the other one of its kind, or goes there."""
        other = next(other for other in NAMES[name[0]] if other != name)
        if Path(name).exists():
            self.log.append(f"rm -r {other}; mv {name} {other}")
            shutil.rmtree(other, ignore_errors=True)
            Path(name).rename(other)
            self.stores[other] = self.stores.pop(name)
            self.changed.add(other)

    @step()
    def move(self):
        """All stores move together."""
        self.stops.move()
        self.log.append(f"mv ../* {self.stops.folder}")

    # What stores answer

    @step(name=standing(ANY))
    def verify(self, name):
        self.look(name)

    @step(name=standing("dph"))
    def certify(self, name):
        """Prove all rows of a store."""
        self.must(self.run("verify", name, "--rows", "all") or not self.backed(name), f"{name} is not proved")

    @step(name=standing("gdph"), start=st.integers(0, 11), end=st.integers(0, 11))
    def ask(self, name, start, end):
        """A path from a store."""
        found = self.stores[name]
        if found.allowed is None or not found.honest:
            return
        contents = found.allowed
        content = contents[0] if contents else Arcs(1, ())
        n = min(graph_of(each).n for each in contents or [content])
        start, end = start % n, end % n
        together = getattr(content, "together", False)
        told = self.run("path", name, *[f"#{start}"] * (not together), f"#{end}", "--json")
        lengths = [each.distance(start, end) for each in contents]
        if told is None:
            expected = self.backed(name) or "no path leads" in self.told
            return self.must(not expected or not np.isfinite(lengths).all() or not lengths, "there is a path")
        answer = json.loads(told)
        self.must(answer["distance"] in lengths, f"{told} instead of {lengths}")
        if len(lengths) == 1:
            graph = graph_of(content)
            path = [int(vertex) - graph.first for vertex in answer["path"]]
            self.must(graph.length(path) == answer["distance"] and path[-1] == end, f"{told} is no path")
            self.must(path[0] in (content.sources if together else [start]), f"{told} begins elsewhere")
        return None

    @step(store=standing("gh"), rows=some, columns=some, reduce=st.sampled_from(["count", "min", None]))
    def table(self, store, rows, columns, reduce):
        """A table of distances, or one that is reduced to a value for each row."""
        found = self.stores[store]
        if found.allowed is None or not found.honest:
            return
        options = self.points(store, rows, columns) + ["--overwrite"] + ["--reduce", reduce] * (reduce is not None)
        told = self.run("od", store, "table.csv", *options)
        blocks = [block(content, rows, columns) for content in found.allowed]
        if told is None:
            return self.must(not self.backed(store) or None in blocks, "a table was refused")
        values = pd.read_csv("table.csv")[reduce or "distance"].fillna(np.inf).to_numpy()
        expected = [reduced(each.matrix, reduce).ravel() for each in blocks if each is not None]
        self.must(any(np.array_equal(values, each) for each in expected), f"{values} instead of {expected}")
        return None


def inputs_of(arguments):
    """The names of stores among the arguments of a rule, without `out`."""
    names = {name for pair in NAMES.values() for name in pair}
    return names & {value for value in arguments.values() if isinstance(value, str)} - {arguments["out"]}


def graph_of(content):
    return getattr(content, "graph", content)


def block(content, rows, columns):
    """Distances from some vertices to others, None if they must be refused."""
    graph = graph_of(content)
    if graph is content and graph.signed:
        return None  # searches from a graph
    found = graph.rows(graph.vertices(rows))
    return found and found.columns(graph.vertices(columns))


def reduced(matrix, how):
    if how is None:
        return matrix
    return np.isfinite(matrix).sum(axis=1) if how == "count" else matrix.min(axis=1)


@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("answers_ctrl_c")
@campaign(few=FEW, many=2_000)
def test_stores_hold_what_the_commands_say(client, tmp_path, monkeypatch, seeds):
    monkeypatch.setattr("tilepath.cli.cluster._open_client", lambda *_: contextlib.nullcontext(client))
    for name, value in OFTEN.items():
        monkeypatch.setattr(name, value)
    monkeypatch.chdir(tmp_path)
    stops, counts, tried = Stops(monkeypatch, tmp_path / "stores"), Counter(), Counter()
    ready = SimpleNamespace(folder=tmp_path / "ready", stores={}, renames=[])
    machine = type("Commands", (Commands,), {"stops": stops, "counts": counts, "tried": tried, "ready": ready})
    steps = 8 if len(seeds) == FEW else 15
    chosen = settings(
        max_examples=len(seeds),
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(seed(seeds[0])(machine), settings=chosen)
    finally:
        for counted in counts, tried:
            print(", ".join(f"{count:,} {what}" for what, count in counted.most_common()))

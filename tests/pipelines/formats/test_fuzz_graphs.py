"""Mutated files of all formats of graphs end in the graph that a plain reader gives, or in one clear error.

An error where the plain reader finds a graph is allowed, a graph where it finds none is not. SciPy, NetworkX and
pandas read the same files. The compiled functions check every index.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from contextlib import contextmanager

import numba
import numpy as np
import plain_readers
import pyarrow.parquet as pq
import pytest
from campaigns import campaign, pick, play
from graph_files import CORPUS, MAKERS, make_parquet, make_positions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import BYTES, drawn, refused

from pipelines.formats.graphs import FormatError, import_graph
from pipelines.formats.graphs.positions import read_positions

COMPILED = {
    "pipelines.formats.graphs.text": ("_scan",),
    "pipelines.formats.arc_spool": ("_count", "_deal_out", "_place"),
    "pipelines.stores.row_order": ("_insert", "_distribute_rows"),
}


@pytest.fixture(scope="module", autouse=True)
def bounds_checked(request):
    """The compiled functions, compiled again so that an index outside an array is an IndexError.

    Numba's cache does not tell the two apart, so these are cached in a folder of their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "CACHE_DIR", str(request.config.cache.mkdir("bounds_checked")))
        for module, names in COMPILED.items():
            for name in names:
                function = getattr(importlib.import_module(module), name).py_func
                patch.setattr(f"{module}.{name}", numba.njit(boundscheck=True, nogil=True, cache=True)(function))
        yield


class Kept:
    """A graph in memory in the place of a store, which would take most of the time."""

    def __init__(self, n, m, facts):
        self.n, self.m, self.directed, self.weight_dtype = n, m, facts["directed"], facts["weight_dtype"]
        self._degrees, self._heads, self._weights = np.zeros(n, np.int64), [], []
        self._labels = self.coordinates = self.through = None

    def append_rows(self, first, degrees, heads, weights):
        assert heads.size == degrees.sum()
        self._degrees[first : first + len(degrees)] += degrees
        self._heads.append(heads)
        self._weights.append(np.ones(len(heads), np.int32) if weights is None else weights)

    def annotate(self, labels, integer_labels, coordinates, through, lines, classes, crs, attribution):
        assert lines is None
        assert (classes, crs, attribution) == (None, "", "")
        self._labels = labels if labels is None else [*map(str, labels)]
        self.coordinates, self.through = coordinates, through
        assert labels is None or len(labels) == self.n

    def labels(self):
        return self._labels

    def arcs(self):
        """(tail, head, weight) of each arc, in order."""
        tails = np.repeat(np.arange(self.n), self._degrees)
        heads, weights = (np.concatenate([np.zeros(0, int), *each]) for each in (self._heads, self._weights))
        assert len(tails) == self.m
        return list(zip(tails.tolist(), heads.astype(int).tolist(), weights.tolist(), strict=True))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """outcome(name, content, **options): the graph and what was said of it, or None and "refused"."""
    folder, kept = tmp_path_factory.mktemp("fuzz"), []

    @contextmanager
    def new_graph(path, n, m, overwrite, **facts):
        kept[:] = [Kept(n, m, facts)]
        yield kept[0]

    def outcome(name, content, **options):
        file, said = folder / name, []
        file.write_bytes(content)
        try:
            graph = import_graph(file, folder / "store", report=said.append, **options)
        except FormatError as error:
            return None, refused(error, file)
        return graph, "\n".join(said)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.formats.arc_sort.new_graph", new_graph)
        patch.setattr("pipelines.formats.arc_sort.open_graph", lambda path: kept[0])
        yield outcome


def compare(kind, content, graph, said, options):
    """The graph with that of the plain reader, and with that of a library where there is one."""
    labels, n, arcs = getattr(plain_readers, f"plain_{PLAIN.get(kind, kind)}")(content, said, options)
    assert (graph.n, graph.labels()) == (n, labels)
    check_arcs(graph, arcs)
    if kind in plain_readers.LIBRARIES:
        try:
            theirs = plain_readers.LIBRARIES[kind](content, said, options)
        except Exception:  # libraries raise errors of many types
            return "equal, refused by a library"
        if theirs is None:
            return "equal to the plain reader alone"
        if options.get("directed") is False:
            theirs = theirs + [(h, t, w) for t, h, w in theirs]
        names = labels or [str(v + (options.get("base") or 0)) for v in range(n)]
        if labels is None or labels == [str(v + options.get("base", 0)) for v in range(n)]:
            theirs = [(str(int(t)), str(int(h)), w) for t, h, w in theirs]
        assert Counter(theirs) == Counter((names[t], names[h], float(w)) for t, h, w in graph.arcs())
    return None


def check_arcs(graph, arcs):
    exact = np.dtype(graph.weight_dtype or int).kind == "i"
    expected = [(t, h, int(w) if exact else float(w)) for t, h, w in sorted(arcs, key=lambda arc: arc[:2])]
    assert graph.arcs() == expected
    for _, _, weight in arcs:
        if re.fullmatch(r"[+-]?\d+", weight) and not exact:
            assert int(float(weight)) == int(weight)  # no integer was rounded


PLAIN = {"csv": "edges"}
OPTIONS = {"csv": {"delimiter": ","}}


def options_of(rng, kind):
    """Options of an edge list, in half of the files."""
    given = OPTIONS.get(kind, {})
    if kind not in ("edges", "csv") or rng.random() < 0.5:
        return given
    options = {
        "base": pick(rng, [None, 0, 1, 2]),
        "vertices": pick(rng, [None, None, 5, 9]),
        "labels": pick(rng, [None, None, True, False]),
        "header": pick(rng, [None, None, True, False]),
        "directed": pick(rng, [None, False]),
    }
    return given | {name: value for name, value in options.items() if value is not None}


@campaign(few=60, many=2000)
@pytest.mark.parametrize("kind", MAKERS)
def test_mutated_text_gives_the_graph_of_a_plain_reader_or_one_error(kind, seeds, outcome):
    name, make = MAKERS[kind]

    def trial(rng):
        content, options = drawn(rng, make), options_of(rng, kind)
        return judge(kind, name, content, options, outcome)

    counts = play(seeds, trial)
    assert len(seeds) < 20 or counts["refused"] < 0.9 * len(seeds)  # else nothing was compared


def judge(kind, name, content, options, outcome):
    graph, said = outcome(name, content, **options)
    if graph is None:
        return said
    try:
        return compare(kind, content, graph, said, options)
    except Exception as error:
        raise AssertionError(
            f"{options}: {content!r} gave {graph.labels()} {graph.arcs()}; {said}; {error!r:.200}"
        ) from error


@pytest.mark.parametrize("kind", MAKERS)
def test_kept_contents(kind, outcome):
    for read, content in CORPUS[kind]:
        judged = judge(kind, MAKERS[kind][0], content.encode(), OPTIONS.get(kind, {}), outcome)
        assert (judged != "refused") == read, content


@campaign(few=60, many=2000)
@pytest.mark.parametrize("name", ["x.co", "x_node.tntp"])
def test_mutated_positions_are_those_of_a_plain_reader_or_one_error(name, seeds, tmp_path):
    file, lead = tmp_path / name, "v" * (name == "x.co")

    def trial(rng):
        content = drawn(rng, lambda rng: make_positions(rng, lead))
        file.write_bytes(content)
        try:
            found = read_positions(file, 5)
        except FormatError as error:
            return refused(error, file)
        np.testing.assert_array_equal(found, plain_readers.plain_positions(content, 5, lead), repr(content))
        return None

    play(seeds, trial)


BITS = st.one_of(st.binary(max_size=6), st.sampled_from(BYTES))


@pytest.mark.parametrize("examples", [20, pytest.param(5000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
@pytest.mark.parametrize("kind", MAKERS)
def test_bytes_without_form(kind, examples, outcome):
    """Any bytes; Hypothesis finds the shortest that are read wrongly. Half of them begin as a file does."""
    name = MAKERS[kind][0]
    first = {"gr": b"p sp 2 1\n", "mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"}.get(kind, b"")

    @settings(max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(BITS, max_size=20), st.booleans())
    def any_bytes(bits, begun):
        judge(kind, name, first * begun + b"".join(bits), OPTIONS.get(kind, {}), outcome)

    any_bytes()


def naive_parquet(file, said):
    """The table read in one go, cell by cell; the columns are those that were said."""
    columns = [int(c) for c in re.findall(r"from column (\d+)", said)]
    with pq.ParquetFile(file) as opened:
        names = [opened.schema_arrow.names[c] for c in columns]
        assert all(opened.schema_arrow.names.count(name) == 1 for name in names)
        table = opened.read(columns=names)
    cells = [table.column(name).to_pylist() for name in names]
    if not any(isinstance(cell, str) for column in cells[:2] for cell in column):
        return None, [(t, h, w) for t, h, w in zip(*cells[:2], [*cells, [1] * len(table)][2], strict=True)]
    names = {}
    return names, [
        (names.setdefault(str(t), len(names)), names.setdefault(str(h), len(names)), w)
        for t, h, w in zip(*cells[:2], [*cells, [1] * len(table)][2], strict=True)
    ]


@campaign(few=60, many=2000)
def test_mutated_parquet_gives_its_table_or_one_error(seeds, outcome, tmp_path):
    def trial(rng):
        content = drawn(rng, make_parquet, 0.5)  # few changes of bytes leave it readable
        graph, said = outcome("x.parquet", content)
        if graph is None:
            return said
        (tmp_path / "x.parquet").write_bytes(content)
        names, arcs = naive_parquet(tmp_path / "x.parquet", said)
        assert graph.arcs() == sorted(arcs, key=lambda arc: arc[:2])
        assert graph.labels() == (None if names is None else [*names])
        return None

    counts = play(seeds, trial)
    assert len(seeds) < 20 or counts["equal"] > len(seeds) / 10

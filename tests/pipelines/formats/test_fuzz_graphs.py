"""Mutated files of all formats of graphs end in the graph that a plain reader gives, or in one clear error.

An error where the plain reader finds a graph is allowed, a graph where it finds none is not. SciPy, NetworkX and
pandas read the same files. The compiled functions check every index. `CORPUS` has contents that once were read wrongly,
or that are rarely drawn.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from contextlib import contextmanager

import numba
import numpy as np
import plain_readers
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaigns import campaign, pick, play
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import BYTES, drawn, refused

from pipelines.formats.graphs import FormatError, import_graph
from pipelines.formats.graphs.positions import read_positions

COMPILED = {
    "pipelines.formats.graphs.text": ("_scan",),
    "pipelines.formats.arc_sort": ("_count", "_deal_out", "_place"),
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

    def annotate(self, labels, coordinates, through):
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


# Files as people have them ------------------------------------------------------------------------------------------


def some_weight(rng):
    return rng.choice([str(rng.randint(0, 99)), f"{rng.random():.4f}", str(rng.randint(-5, 10**6)), "1e3"])


def some_arcs(rng, n, weight):
    return [(rng.randint(1, n), rng.randint(1, n), weight(rng)) for _ in range(rng.randint(1, 8))]


def integer_or_decimal(rng):
    return rng.choice([lambda rng: str(rng.randint(1, 900)), some_weight])


def make_gr(rng):
    n, weight = rng.randint(2, 9), integer_or_decimal(rng)
    arcs = some_arcs(rng, n, weight)
    return "".join(
        ["c a road network\n", f"p sp {n} {len(arcs)}\n", *(f"a {t} {h} {w}\n" for t, h, w in arcs)]
    ).encode()


def make_mtx(rng):
    n, arcs = rng.randint(2, 9), some_arcs(rng, 2, integer_or_decimal(rng))
    field, symmetry = rng.choice(["real", "real", "integer", "pattern"]), rng.choice(["general", "symmetric"])
    rows = (f"{t} {h}\n" if field == "pattern" else f"{t} {h} {w}\n" for t, h, w in arcs)
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% a comment\n{n} {n} {len(arcs)}\n"
    return (head + "".join(rows)).encode()


def make_tntp(rng):
    n, arcs = rng.randint(2, 9), some_arcs(rng, 2, some_weight)
    names = ["init_node", "term_node", "capacity", "length", "free_flow_time"]
    if rng.random() < 0.4:
        rng.shuffle(names)
    head = f"<NUMBER OF NODES> {n}\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> {len(arcs)}\n<END OF METADATA>\n\n"
    lines = [head, "~\t" + "\t".join(names) + "\t;\n"]
    for t, h, w in arcs:
        fields = {"init_node": t, "term_node": h, "capacity": 900, "length": rng.randint(1, 99), "free_flow_time": w}
        lines.append("\t" + "\t".join(str(fields[name]) for name in names) + "\t;\n")
    return "".join(lines).encode()


def make_edges(rng, delimiter=""):
    names = rng.choice([["Paris", "Lyon", "New-York", "Zürich"], ["a", "b", "INF", "1E5"], ["0", "1", "2", "3", "4"]])
    quote = '"' if delimiter and rng.random() < 0.2 else ""
    weighted = rng.random() < 0.7
    rows = [[f"{quote}{rng.choice(names)}{quote}" for _ in range(2)] for _ in range(rng.randint(1, 8))]
    weight = integer_or_decimal(rng)
    header = rng.choice([[], [], ["source", "target"], ["from", "to"], ["u", "v"], ["x", "y"]])
    if weighted:
        header = header and [*header, "weight"]
        rows = [[*row, weight(rng)] for row in rows]
    if header and rng.random() < 0.3:
        header, rows = ["id", *header], [[str(i), *row] for i, row in enumerate(rows)]
    lines = [(delimiter or " ").join(row) + "\n" for row in [header] * bool(header) + rows]
    return "".join(["# edges\n"] * (rng.random() < 0.3) + lines).encode()


def make_adjacency(rng):
    lines = [
        "a -> b, c",
        '"x, y" -> a',
        "# c",
        "",
        "d",
        'e -> "->", a',
        "a -> a\r",
        "é -> b",
        "a ->",
        'f -> "say ""a"""',
    ]
    return "\n".join([*rng.choices(lines, k=rng.randint(1, 6)), ""]).encode()


def make_graphml(rng):
    """As NetworkX, igraph and yEd write it; a few with what they do not write."""
    n, weighted = rng.randint(1, 6), rng.random() < 0.7
    kind, default = rng.choice(["double", "int", "long", "float"]), rng.choice(["directed", "undirected"])
    names = rng.choice([[*map(str, range(n))], [f"n{v}" for v in range(n)], [*map(str, range(n))][::-1]])
    space = rng.choice(['xmlns="http://graphml.graphdrawing.org/xmlns"'] * 4 + [""])
    lines = ["<?xml version='1.0' encoding='utf-8'?>", f"<graphml {space}>"]
    if weighted:
        given = f"<default>{rng.randint(0, 9)}</default>" * (rng.random() < 0.3)
        lines += [f'<key id="d0" for="edge" attr.name="weight" attr.type="{kind}">{given}</key>']
    lines += ['<key id="d1" for="node" attr.name="x" attr.type="double"/>', f'<graph edgedefault="{default}">']
    lines += [f'<node id="{name}"><data key="d1">{rng.random():.2f}</data></node>' for name in names]
    for _ in range(rng.randint(0, 6)):
        weight = str(rng.randint(0, 99)) if kind in ("int", "long") else f"{rng.random():.3f}"
        data = f'<data key="d0">{weight}</data>' * weighted
        lines.append(f'<edge source="{rng.choice(names)}" target="{rng.choice(names)}">{data}</edge>')
    if rng.random() < 0.2:
        lines.insert(
            rng.randrange(len(lines)), rng.choice(["<!-- c -->", "<![CDATA[x]]>", "<!DOCTYPE graphml>", "<?x?>"])
        )
    return "\n".join([*lines, "</graph></graphml>", ""]).encode()


def make_positions(rng, lead):
    n = 5
    rows = [f"{rng.randint(1, n)} {rng.choice([-1, 1]) * rng.random():.3f} {rng.randint(-99, 99)}" for _ in range(n)]
    if lead:
        return "".join(["c x\n", f"p aux sp co {n}\n", *(f"{lead} {row}\n" for row in rows)]).encode()
    header = rng.choice([["node X Y ;\n"], []])
    return "".join([*header, *(f"{row} ;\n".replace(" ", "\t") for row in rows)]).encode()


MAKERS = {
    "gr": ("x.gr", make_gr),
    "mtx": ("x.mtx", make_mtx),
    "tntp": ("x.tntp", make_tntp),
    "edges": ("x.txt", make_edges),
    "csv": ("x.csv", lambda rng: make_edges(rng, ",")),
    "adjacency": ("x.adj", make_adjacency),
    "graphml": ("x.graphml", make_graphml),
}
PLAIN = {"csv": "edges"}
OPTIONS = {"csv": {"delimiter": ","}}
XML = '<graphml><key id="d" for="edge" attr.name="weight" attr.type="int"/>{}</graphml>'
EDGE = '<edge source="0" target="0"><data key="d">7</data></edge>'
GRAPH = f'<graph edgedefault="directed"><node id="0"/>{EDGE}</graph>'
READ, REFUSED = True, False
CORPUS = {
    "gr": [(READ, "p sp 1 0\n"), (REFUSED, "p sp 2 1\na 1 2 1e400\n"), (READ, "\r\np sp 1 1\r\na 1 1 0")],
    "mtx": [
        (read, f"%%MatrixMarket matrix coordinate {rest}\n")
        for read, rest in (
            (REFUSED, "integer general\n2 2 1\n1 2 0.5"),  # SciPy reads 0
            (REFUSED, "integer general\n2 2 1\n1 2 9223372036854775808"),
            (READ, "integer general\n2 2 1\n1 2 9223372036854775807"),
            (READ, "real symmetric\n2 2 2\n1 1 1\n2 1 2"),
            (REFUSED, "real general\n2 2 1\n1 2 3abc"),  # SciPy reads 3
            (REFUSED, "real general\n2 2 1\n1 2 1e400"),
        )
    ],
    "tntp": [(READ, "<NUMBER OF NODES> 2\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> 0\n<END OF METADATA>\n")],
    "edges": [
        (READ, "\ufeff0 1\n"),
        (REFUSED, "0 1 9007199254740993\n1 0 0.5\n"),
        (REFUSED, "0 1\n1 0 5\n"),
        (REFUSED, "\x1c 0\n0 0\n"),
        (READ, "a#b %c\n"),
    ],
    "csv": [
        (READ, '"a""b",c,1\n'),
        (READ, '"a,b" ,c,1\n'),
        (READ, '" a ",c,1\n'),
        (REFUSED, 'a,"b\nc",1\n'),
        (REFUSED, "0,0,\n"),
    ],
    "adjacency": [
        (REFUSED, '"a'),
        (REFUSED, "a -> b -> c"),
        (REFUSED, "a -> ,"),
        (REFUSED, "-> a"),
        (READ, '"" -> a'),
        (READ, 'a -> "->", "b""c"'),
    ],
    "graphml": [
        (READ, XML.format(GRAPH)),
        (READ, XML.format(GRAPH.replace("directed", "undirected"))),
        (REFUSED, XML.format(EDGE + GRAPH)),  # once read beyond the weights
        (REFUSED, XML.format(GRAPH + EDGE)),
        (REFUSED, XML.format(GRAPH).replace(' id="d"', "")),
        (REFUSED, XML.format(GRAPH).replace(' key="d"', "")),
        (REFUSED, XML.format(GRAPH).replace('for="edge"', 'for="eddy"')),
        (REFUSED, XML.format(GRAPH).replace(' edgedefault="directed"', "")),
        (REFUSED, f"<graphml>{GRAPH}{XML[9:].format('')}"),  # once read without weights
        (REFUSED, XML.format(GRAPH.replace('<node id="0"/>', ""))),
        (REFUSED, '<?xml version="1.0" encoding="utf-80"?><graphml/>'),
    ],
}


def options_of(rng, kind):
    """Options of an edge list, in half of the files."""
    given = OPTIONS.get(kind, {})
    if kind not in ("edges", "csv") or rng.random() < 0.5:
        return given
    drawn = {
        "base": pick(rng, [None, 0, 1, 2]),
        "vertices": pick(rng, [None, None, 5, 9]),
        "labels": pick(rng, [None, None, True, False]),
        "header": pick(rng, [None, None, True, False]),
        "directed": pick(rng, [None, False]),
    }
    return given | {name: value for name, value in drawn.items() if value is not None}


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


@pytest.mark.parametrize("examples", [60, pytest.param(5000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])])
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


def make_parquet(rng):
    """Tables of edges, of ordinary and of odd types."""
    size = rng.randint(1, 6)
    ends = rng.choice([lambda: rng.randint(0, 5), lambda: f"v{rng.randint(0, 5)}"])
    columns = {"source": pa.array([ends() for _ in range(size)]), "target": pa.array([ends() for _ in range(size)])}
    numbers = [rng.randint(0, 100) for _ in range(size)]
    if rng.random() < 0.7:
        columns["weight"] = rng.choice(
            [
                lambda: pa.array(numbers),
                lambda: pa.array([x / 8 for x in numbers]),
                lambda: pa.array([x / 8 for x in numbers], pa.float32()),
                lambda: pa.array(np.array(numbers, np.float16)),
                lambda: pa.array(numbers, pa.int8()),
                lambda: pa.array([x % 2 == 0 for x in numbers]),
                lambda: pa.array(numbers, pa.uint64()),
            ]
        )()
    for name in list(columns):
        if rng.random() < 0.1:
            columns[name] = rng.choice(
                [
                    lambda: pa.array([str(x) for x in numbers]).dictionary_encode(),
                    lambda: pa.array([{"a": x} for x in numbers]),
                    lambda: pa.array(numbers, pa.time32("s")),
                    lambda: pa.array(numbers, pa.timestamp("ms")),
                    lambda: pa.array(numbers).cast(pa.decimal128(22, 2)),
                    lambda: pa.array([[x] for x in numbers]),
                    lambda: pa.nulls(size),
                    lambda: pa.array([None, *numbers[1:]], pa.int64()),
                    lambda: pa.array([float("nan"), *numbers[1:]]),
                    lambda: pa.array([2**63 + x for x in numbers], pa.uint64()),
                    lambda: pa.array([-(2**63) + x for x in numbers]),
                    lambda: pa.array([b"\xed\xa0\x80"] * size).view(pa.string()),
                    lambda: pa.array([str(x) for x in numbers], pa.large_string()),
                ]
            )()
    names = list(columns)
    if rng.random() < 0.1:
        names[rng.randrange(len(names))] = rng.choice(["source", "id", "", "a.b", "weight"])
    arrays = list(columns.values())
    if rng.random() < 0.2:
        names, arrays = ["id", *names], [pa.array(numbers), *arrays]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, names=names), sink, compression=rng.choice(["none", "snappy"]), row_group_size=4)
    return sink.getvalue().to_pybytes()


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

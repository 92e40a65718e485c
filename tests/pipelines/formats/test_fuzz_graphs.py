"""Mutated files of all formats of graphs end in the graph that a naive parse gives, or in one clear error.

The naive parses know nothing of blocks, scans or pyarrow: lines, `re.split` and Python's numbers. An error where they
find a graph is allowed, a graph where they find none is not. Point C4 of the hostile trials.
"""

from __future__ import annotations

import gzip
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.formats.graphs import FormatError, import_graph
from pipelines.formats.graphs.columns import well_known_pairs

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
COUNT = re.compile(r"\d{1,18}", re.ASCII)


# Naive parses: content -> (labels or None, n or None, [(tail, head, weight as written)]) ----------------------------


def lines_of(content):
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    # Bytes that are not UTF-8 may stand in comments only: a field with one of them is no number and no name.
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    assert not re.search(r"\0|\r(?![\r\n]|\Z)", text)
    return [line.strip(" \t\r") for line in text.split("\n")]


def number(word):
    assert DECIMAL.fullmatch(word), word
    return word


def vertex(word, first, n=None):
    assert WHOLE.fullmatch(word), word
    assert first <= int(word) < (first + n if n is not None else 10**18)
    return int(word) - first


def counted(word):
    assert COUNT.fullmatch(word), word
    return int(word)


def naive_gr(content):
    lines = [line for line in lines_of(content) if line and line[0] != "c"]
    p, sp, n, m = lines[0].split()
    assert (p, sp) == ("p", "sp")
    n, m = counted(n), counted(m)
    rows = [re.split(r"[ \t\r]+", line) for line in lines[1:]]
    assert all(len(row) == 4 and row[0] == "a" for row in rows)
    assert len(rows) == m
    return [str(v + 1) for v in range(n)], n, [(vertex(t, 1, n), vertex(h, 1, n), number(w)) for _, t, h, w in rows]


def naive_mtx(content):
    banner, *lines = lines_of(content)
    mm, matrix, coordinate, field, symmetry = banner.lower().split()
    assert (mm, matrix, coordinate) == ("%%matrixmarket", "matrix", "coordinate")
    lines = [line for line in lines if line and line[0] != "%"]
    n, columns, m = map(counted, lines[0].split())
    rows = [re.split(r"[ \t\r]+", line) for line in lines[1:]]
    assert n == columns
    assert len(rows) == m
    assert field in ("real", "double", "integer", "pattern")
    assert all(len(row) == (2 if field == "pattern" else 3) for row in rows)
    arcs = [(vertex(row[0], 1, n), vertex(row[1], 1, n), number([*row, "1"][2])) for row in rows]
    if symmetry == "symmetric":
        arcs = [arc for t, h, w in arcs for arc in ((t, h, w), (h, t, w))]
    else:
        assert symmetry == "general"
    return [str(v + 1) for v in range(n)], n, arcs


def naive_tntp(content):
    lines = lines_of(content)
    end = next(i for i, line in enumerate(lines) if re.match(r"\s*<\s*END OF METADATA\s*>", line, re.I))
    facts = {}
    for line in lines[:end]:
        if match := re.match(r"\s*<([^>]*)>([^;~]*)", line):
            facts[match[1].strip().upper()] = match[2].strip()
        else:
            assert not line.strip() or line.strip()[0] == "~"
    n, m = counted(facts["NUMBER OF NODES"]), counted(facts["NUMBER OF LINKS"])
    rows = [re.split(r"[ \t\r;]+", line.strip(" \t\r;")) for line in lines[end + 1 :] if line and line[0] != "~"]
    rows = [row for row in rows if row != [""]]
    assert len(rows) == m
    width = len(rows[0])
    assert all(len(row) == width for row in rows)
    first = next(i for i in range(end + 1, len(lines)) if lines[i].strip() and lines[i].strip()[0] != "~")
    names = "init_node term_node capacity length free_flow_time b power speed toll link_type".split()
    for line in lines[:first]:
        words = line.replace("~", " ").replace(";", " ").strip()
        words = re.split(r"[ \r]*\t[ \r]*", words) if "\t" in words else words.split()
        words = [word.lower().replace(" ", "_") for word in words if word.strip()]
        if line.strip()[:1] == "~" and len(words) == width:
            names = words
    plain = [re.sub(r"[\W_]", "", name) for name in names]
    both = "initnode" in plain and "termnode" in plain
    where = {f"{end}_node": plain.index(f"{end}node") if both else i for i, end in enumerate(("init", "term"))}
    assert names.count("free_flow_time") == 1
    columns = where["init_node"], where["term_node"], names.index("free_flow_time")
    arcs = [(vertex(row[columns[0]], 1, n), vertex(row[columns[1]], 1, n), number(row[columns[2]])) for row in rows]
    return [str(v + 1) for v in range(n)], n, arcs


def naive_edges(content, delimiter, said):
    """The edges as `said` has it: which line is a header, and which columns were taken."""
    header = re.search(r"line (\d+) is a header", said)
    columns = [int(c) for c in re.findall(r"from column (\d+)", said)]
    lines = [(i, line) for i, line in enumerate(lines_of(content), 1) if line and line[0] not in "#%"]
    rows = [split_fields(line, delimiter) for _, line in lines]
    if header:
        assert int(header[1]) == lines[0][0]
        names = rows.pop(0)
        check_header(names, rows, columns)
    width = len(rows[0])
    assert all(len(row) == width for row in rows)
    if not header:
        assert columns == [0, 1, 2][: len(columns)]
        assert width == len(columns)
    edges = [(row[columns[0]], row[columns[1]], number([*(row[c] for c in columns), "1"][2])) for row in rows]
    assert all(t and h for t, h, _ in edges)
    "".join(t + h for t, h, _ in edges).encode()  # fails where a name is not UTF-8
    if all(re.fullmatch(r"[+-]?[0-9]+", end) for end in edges[0][:2]):
        return None, None, [(vertex(t, 0), vertex(h, 0), w) for t, h, w in edges]
    names = {}
    arcs = [(names.setdefault(t, len(names)), names.setdefault(h, len(names)), w) for t, h, w in edges]
    return [*names], len(names), arcs


def split_fields(line, delimiter):
    if not delimiter:
        return re.split(r"[ \t\r]+", line)
    fields, at = [""], 0
    while at < len(line):  # a quotation mark counts at the beginning of a field
        if line[at] == '"' and not fields[-1].strip():
            stop = at + 1
            while line[stop] != '"' or line[stop + 1 : stop + 2] == '"':
                stop += 2 if line[stop] == '"' else 1
            fields[-1] = "\0" + line[at + 1 : stop].replace('""', '"')
            at = stop + 1
            while line[at : at + 1] and line[at] in " \t\r":
                at += 1
            assert line[at : at + 1] in ("", delimiter)
        elif line[at] == delimiter:
            fields.append("")
            at += 1
        else:
            fields[-1] += line[at]
            at += 1
    return [field[1:] if field[:1] == "\0" else field.strip(" \t\r") for field in fields]


def check_header(names, rows, columns):
    """A line is taken for a header only if it cannot be an edge: by its names, or by words above numbers."""
    assert not any(map(DECIMAL.fullmatch, names))
    if not well_known_pairs(names):
        assert columns == [0, 1, 2][: len(columns)]
        assert all(DECIMAL.fullmatch(row[c]) for row in rows for c in columns)
    else:
        roles = "".join(names[c].strip().lower()[:1] for c in columns)
        assert re.match("st|ft|uv", roles), names  # the pairs that the files have


def check_arcs(graph, labels, n, arcs):
    graph.verify()
    assert n is None or graph.n == n
    found = graph.labels()
    assert (None if found is None else found.tolist()) == labels
    indptr, heads, weights = graph.rows()
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    exact = graph.weight_dtype.kind == "i"
    expected = [(t, h, int(w) if exact else float(w)) for t, h, w in sorted(arcs, key=lambda arc: arc[:2])]
    assert list(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True)) == expected
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
    field, symmetry = rng.choice(["real", "integer", "pattern"]), rng.choice(["general", "symmetric"])
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


def make_edges(rng, delimiter):
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


@pytest.fixture
def outcome(tmp_path):
    """outcome(name, content, **options): the graph and what was said of it, or the error, which must be clear."""

    def outcome(name, content, **options):
        file, said = tmp_path / name, []
        file.write_bytes(content)
        try:
            graph = import_graph(file, tmp_path / "store", overwrite=True, report=said.append, **options)
        except FormatError as error:
            message = str(error)
            assert str(file) in message
            assert "\n" not in message
            assert len(message) < 1000
            assert not re.search(r"Traceback|Error\(|codec can't|site-packages", message), message
            return None, message
        return graph, "\n".join(said)

    return outcome


TEXT = {
    "gr": ("x.gr", make_gr, lambda content, said: naive_gr(content)),
    "mtx": ("x.mtx", make_mtx, lambda content, said: naive_mtx(content)),
    "tntp": ("x.tntp", make_tntp, lambda content, said: naive_tntp(content)),
    "edges": ("x.txt", lambda rng: make_edges(rng, ""), lambda content, said: naive_edges(content, "", said)),
    "csv": ("x.csv", lambda rng: make_edges(rng, ","), lambda content, said: naive_edges(content, ",", said)),
}


@pytest.mark.parametrize("kind", TEXT)
def test_mutated_text_gives_the_graph_of_a_naive_parse_or_one_error(kind, campaign, mutations, outcome):
    name, make, naive = TEXT[kind]
    graphs = 0
    for case, content in mutations(campaign, make):
        graph, said = outcome(name, content)
        if graph is not None:
            graphs += 1
            try:
                check_arcs(graph, *naive(content, said))
            except Exception as error:
                raise AssertionError(f"case {case}: {content!r} gave a wrong graph; {said}") from error
    assert graphs >= campaign[1] / 10  # else nothing was compared


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


def test_mutated_parquet_gives_its_table_or_one_error(campaign, mutations, outcome, tmp_path):
    graphs = 0
    for case, content in mutations(campaign, make_parquet, 0.5):  # few changes of bytes leave it readable
        graph, said = outcome("x.parquet", content)
        if graph is None:
            continue
        graphs += 1
        names, arcs = naive_parquet(tmp_path / "x.parquet", said)
        indptr, heads, weights = graph.rows()
        tails = np.repeat(np.arange(graph.n), np.diff(indptr))
        found = list(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
        assert found == sorted(arcs, key=lambda arc: arc[:2]), case
        labels = graph.labels()
        assert (None if labels is None else labels.tolist()) == (None if names is None else [*names]), case
    assert graphs >= campaign[1] / 10

"""Plain readers of the formats of graphs, which the readers of tilepath are compared with.

They know nothing of blocks, scans or pyarrow: lines, `re.split` and Python's numbers. Each takes the content, what the
import said, and its options, and returns (labels or None, n or None, [(tail, head, weight as written)]), or raises an
error. `LIBRARIES` read the same files by SciPy, NetworkX and pandas.
"""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import scipy.io
from mutations import unzipped

from pipelines.formats.graphs.columns import well_known_pairs

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
COUNT = re.compile(r"\d{1,18}", re.ASCII)


def lines_of(content):
    # Bytes that are not UTF-8 may stand in comments only: a field with one of them is no number and no name.
    text = unzipped(content).removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
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


def from_one(n):
    return [str(v + 1) for v in range(n)]


def plain_gr(content, said, options):
    lines = [line for line in lines_of(content) if line and line[0] != "c"]
    p, sp, n, m = lines[0].split()
    assert (p, sp) == ("p", "sp")
    n, m = counted(n), counted(m)
    rows = [re.split(r"[ \t\r]+", line) for line in lines[1:]]
    assert all(len(row) == 4 and row[0] == "a" for row in rows)
    assert len(rows) == m
    return from_one(n), n, [(vertex(t, 1, n), vertex(h, 1, n), number(w)) for _, t, h, w in rows]


def plain_mtx(content, said, options):
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
    assert field != "integer" or all(re.fullmatch(r"[+-]?\d+", w) for _, _, w in arcs)
    if symmetry == "symmetric":
        arcs = [arc for t, h, w in arcs for arc in ((t, h, w), (h, t, w))]
    else:
        assert symmetry == "general"
    return from_one(n), n, arcs


def plain_tntp(content, said, options):
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
    width = len(rows[0]) if rows else 10
    assert all(len(row) == width for row in rows)
    first = next((i for i in range(end + 1, len(lines)) if lines[i].strip() and lines[i].strip()[0] != "~"), -1)
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
    return from_one(n), n, arcs


def plain_edges(content, said, options):
    """The edges as `said` has it: which line is a header, and which columns were taken."""
    rows, columns = edge_rows(content, said, options)
    edges = [(row[columns[0]], row[columns[1]], number([*(row[c] for c in columns), "1"][2])) for row in rows]
    assert all(t and h for t, h, _ in edges)
    "".join(t + h for t, h, _ in edges).encode()  # fails where a name is not UTF-8
    numbered = options.get("labels")
    if numbered is None:
        numbered = not edges or all(re.fullmatch(r"[+-]?[0-9]+", end) for end in edges[0][:2])
    else:
        numbered = not numbered
    if numbered:
        base, n = options.get("base") or 0, options.get("vertices")
        arcs = [(vertex(t, base, n), vertex(h, base, n), w) for t, h, w in edges]
        n = n or 1 + max(max(arc[:2]) for arc in arcs)
        labels = [str(v + base) for v in range(n)] if base and "labels" not in options else None
    else:
        names = {}
        arcs = [(names.setdefault(t, len(names)), names.setdefault(h, len(names)), w) for t, h, w in edges]
        labels, n = [*names], len(names)
    if options.get("directed") is False:
        arcs = [arc for t, h, w in arcs for arc in ((t, h, w), (h, t, w))]
    return labels, n, arcs


def edge_rows(content, said, options):
    delimiter = options.get("delimiter", "").replace(" ", "")
    header = re.search(r"line (\d+) is a header", said)
    columns = [int(c) for c in re.findall(r"from column (\d+)", said)]
    lines = [(i, line) for i, line in enumerate(lines_of(content), 1) if line and line[0] not in "#%"]
    if header:
        assert int(header[1]) == lines[0][0]
        first = lines.pop(0)[1]
    rows = [split_fields(line, delimiter) for _, line in lines]
    if header and not options.get("header"):
        check_header(split_fields(first, delimiter), rows, columns)
    if not rows:
        assert "vertices" in options
        return [], columns
    width = len(rows[0])
    assert all(len(row) == width for row in rows)
    if not header:
        assert columns == [0, 1, 2][: len(columns)]
        assert width == len(columns)
    return rows, columns


def split_fields(line, delimiter):
    if not delimiter:
        return re.split(r"[ \t\r]+", line)
    blanks = " \t\r".replace(delimiter, "")
    fields, at = [""], 0
    while at < len(line):  # a quotation mark counts at the beginning of a field
        if line[at] == '"' and not fields[-1].strip():
            stop = at + 1
            while line[stop] != '"' or line[stop + 1 : stop + 2] == '"':
                stop += 2 if line[stop] == '"' else 1
            fields[-1] = "\0" + line[at + 1 : stop].replace('""', '"')
            at = stop + 1
            while line[at : at + 1] and line[at] in blanks:
                at += 1
            assert line[at : at + 1] in ("", delimiter)
        elif line[at] == delimiter:
            fields.append("")
            at += 1
        else:
            fields[-1] += line[at]
            at += 1
    return [field[1:] if field[:1] == "\0" else field.strip(blanks) for field in fields]


def check_header(names, rows, columns):
    """A line is taken for a header only if it cannot be an edge, unless the user said so."""
    assert not any(map(DECIMAL.fullmatch, names))
    if not well_known_pairs(names):
        assert columns == [0, 1, 2][: len(columns)]
        assert all(DECIMAL.fullmatch(row[c]) for row in rows for c in columns)
    else:
        roles = "".join(re.sub(r"[\W_]", "", names[c]).lower()[:1] for c in columns)
        assert re.match("st|ft|uv", roles), names  # the pairs that the files have


def plain_adjacency(content, said, options):
    """The arcs, by a scan of characters."""
    names, arcs = {}, []
    for line in lines_of(content):
        line.encode()
        if not line or line[0] == "#":
            continue
        kinds, fields, at, quoted = [], [""], 0, False
        while at < len(line):
            if line[at] == '"':
                assert not fields[-1].strip(" \t\r")
                assert not quoted
                quoted, fields[-1], at = True, "", at + 1
                while line[at : at + 1] != '"' or line[at : at + 2] == '""':
                    assert at < len(line)
                    fields[-1] += line[at]
                    at += 2 if line[at] == '"' else 1
                at += 1
                while at < len(line) and line[at] in " \t\r":
                    at += 1
                assert at == len(line) or line[at] == "," or line[at : at + 2] == "->"
            elif line[at] == "," or line[at : at + 2] == "->":
                kinds.append((line[at], fields[-1] if quoted else fields[-1].strip(" \t\r"), quoted))
                at += 1 if line[at] == "," else 2
                fields.append("")
                quoted = False
            else:
                assert line[at] != "#"
                fields[-1] += line[at]
                at += 1
        kinds.append(("", fields[-1] if quoted else fields[-1].strip(" \t\r"), quoted))
        assert [kind for kind, _, _ in kinds[:-1]] == ["-", *[","] * (len(kinds) - 2)][: len(kinds) - 1]
        if len(kinds) == 2 and kinds[1][1:] == ("", False):
            kinds.pop()
        assert all(name or mark for _, name, mark in kinds)
        tail, *heads = [names.setdefault(name, len(names)) for _, name, _ in kinds]
        arcs += [(tail, head, "1") for head in heads]
    return [*names], len(names), arcs


def plain_graphml(content, said, options):
    """The graph of the tree of elements, in the order of the file."""
    events = [
        (event, element, element.tag.rpartition("}")[2].rpartition(":")[2])
        for event, element in ElementTree.iterparse(io.BytesIO(unzipped(content)), ("start", "end"))
    ]
    ended = [(element, kind) for event, element, kind in events if event == "end"]
    within = {*map(id, next(element for element, kind in ended if kind == "graph").iter())}
    assert all(id(element) in within for element, kind in ended if kind in ("node", "edge"))
    (graph,) = [element for element, kind in ended if kind == "graph"]
    keys = {element.attrib["id"]: element for element, kind in ended if kind == "key"}
    weights = [
        key
        for key, element in keys.items()
        if element.get("attr.name", key) == "weight" and element.get("for", "all") in ("edge", "all")
    ]
    names, nodes, arcs = {}, [], []
    for event, element, kind in events:
        if kind == "node" and event == "start":
            nodes.append(element.attrib["id"])
            names.setdefault(element.attrib["id"], len(names))
        elif kind == "edge" and event == "end":
            data = {each.get("key"): "".join(each.itertext()).strip() for each in element}
            key = next((key for key in weights if key in data), [*weights, None][0])
            default = None if key is None else keys[key].find("{*}default")
            text = "1" if key is None else data.get(key, None if default is None else default.text.strip())
            ends = [names.setdefault(element.attrib[end], len(names)) for end in ("source", "target")]
            whole = key is None or keys[key].get("attr.type") not in ("float", "double")
            arcs.append((*ends, number(text) if whole else repr(float(number(text)))))
    assert sorted(nodes) == sorted(names)
    assert graph.get("edgedefault") in ("directed", "undirected")
    if graph.get("edgedefault") == "undirected":
        arcs = [arc for t, h, w in arcs for arc in ((t, h, w), (h, t, w))]
    return None if [*names] == [*map(str, range(len(names)))] else [*names], len(names), arcs


def plain_positions(content, n, lead):
    """Positions of n vertices by lines ``lead VERTEX X Y``, or without `lead` those of TNTP."""
    lines = lines_of(content)
    if lead:
        lines = [line for line in lines if line and line[0] != "c"]
        assert lines.pop(0).split() == ["p", "aux", "sp", "co", str(n)]
    elif lines and not re.match(r"\s*\d", lines[0]):
        lines.pop(0)
    found = np.full((n, 2), np.nan)
    for line in lines:
        line = line.strip(" \t\r" if lead else " \t\r;")
        if line and line[0] != "~":
            *led, v, x, y = re.split(r"[ \t\r]+" if lead else r"[ \t\r;]+", line)
            assert led == [lead] * bool(lead)
            found[vertex(v, 1, n)] = float(number(x)), float(number(y))
    return found


# Readers of libraries: (tail, head, weight) by names, or None where the library has rules of its own -----------------


def by_scipy(content, said, options):
    """`scipy.io.mmread`, which skips no byte order mark, and reads beyond a last line without a line break."""
    matrix = scipy.io.mmread(io.BytesIO(unzipped(content).removeprefix(b"\xef\xbb\xbf") + b"\n"), spmatrix=False)
    assert matrix.shape[0] == matrix.shape[1]
    arcs = [(str(t + 1), str(h + 1), float(w)) for t, h, w in zip(*matrix.coords, matrix.data, strict=True)]
    undirected = b"symmetric" in unzipped(content).split(b"\n")[0].lower()
    return arcs + [arc for arc in arcs if arc[0] == arc[1]] * undirected  # a loop has two directions, too


def by_networkx(content, said, options):
    """`networkx.parse_edgelist`, which parts fields at any white space of Unicode, and knows no header."""
    _, columns = edge_rows(content, said, options)
    text = "\n".join(lines_of(content))
    if re.search(r"[^\S \t\r\n]", text) or columns != [0, 1, 2] or "is a header" in said:
        return None
    lines = [line for line in text.split("\n") if line and line[0] not in "#%"]
    graph = nx.parse_edgelist(lines, None, create_using=nx.MultiDiGraph, data=(("weight", float),))
    return list(graph.edges(data="weight"))


def by_pandas(content, said, options):
    """`pandas.read_csv`; blanks around fields are no part of them, as they are not in quotation marks either here."""
    rows, columns = edge_rows(content, said, options)
    if any(field != field.strip() for row in rows for field in row) or len(columns) < 3:
        return None
    lines = [line for line in lines_of(content) if line and line[0] not in "#%"]
    table = pd.read_csv(
        io.StringIO("\n".join(lines)), sep=options.get("delimiter", ","), header=None, dtype=str, na_filter=False
    )
    table = table.iloc[int("is a header" in said) :, columns].apply(lambda column: column.str.strip(" \t\r"))
    return [(t, h, float(w)) for t, h, w in table.itertuples(index=False)]


def by_networkx_graphml(content, said, options):
    """`networkx.read_graphml`, which wants a namespace, and keeps one of the edges of an id."""
    content = unzipped(content)
    if b"http://graphml.graphdrawing.org/xmlns" not in content or b'attr.name="weight"' not in content:
        return None
    graph = nx.read_graphml(io.BytesIO(content), force_multigraph=True)
    arcs = [(t, h, float(w)) for t, h, w in graph.edges(data="weight")]
    return arcs if graph.is_directed() else arcs + [(h, t, w) for t, h, w in arcs]


LIBRARIES = {"mtx": by_scipy, "edges": by_networkx, "csv": by_pandas, "graphml": by_networkx_graphml}

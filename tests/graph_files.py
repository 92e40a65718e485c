"""Files of graphs as people have them, by their formats, for tests that spoil them.

`CORPUS` has contents that once were read wrongly, or that are rarely drawn, and whether they are read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


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
READ, REFUSED = True, False
XML = '<graphml><key id="d" for="edge" attr.name="weight" attr.type="int"/>{}</graphml>'
EDGE = '<edge source="0" target="0"><data key="d">7</data></edge>'
GRAPH = f'<graph edgedefault="directed"><node id="0"/>{EDGE}</graph>'
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

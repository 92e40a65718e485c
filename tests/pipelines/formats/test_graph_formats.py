"""Every format: arcs written to a file come back from the store, and what is wrong is named with its line."""

from __future__ import annotations

import gzip
import tempfile
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings

from pipelines.formats import text_file
from pipelines.formats.graphs import FormatError, import_graph
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph

ROME = Path(__file__).parents[3] / "scripts" / "data" / "rome99.gr"

GR = "c Two roads\np sp 3 2\na 1 2 5\na 3 1 7\n"
MTX = "%%MatrixMarket matrix coordinate integer general\n% c\n3 3 2\n1 2 5\n3 1 7\n"
TNTP = (
    "<NUMBER OF ZONES> 2\n<NUMBER OF NODES> 4\t\n<FIRST THRU NODE> 3\n<NUMBER OF LINKS> 3\n"
    "<ORIGINAL HEADER>~ \tInit node \tTerm node ;\n<END OF METADATA>\t\n\n"
    "~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;\n"
    "\t1\t3\t900\t528\t1.25\t0.15\t4\t48\t0\t1\t;\n"
    "~ a remark\n"
    "\t3\t4\t900\t100\t0\t0.15\t4\t48\t0\t1\t;\n"
    "\t4\t2\t900\t200\t2.5\t0.15\t4\t48\t0\t1;\n"
)


@pytest.fixture
def load(tmp_path):
    """load(text, name, **options): write a file and import it."""

    def load(content: str | bytes, name: str, **options) -> Graph:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return import_graph(file, tmp_path / "store", **{"overwrite": True, **options})

    return load


def arcs_of(graph: Graph) -> list[tuple]:
    """(tail, head, weight) in the order of the store, which must verify."""
    graph.verify()
    indptr, indices, weights = graph.rows()
    return list(
        zip(np.repeat(np.arange(graph.n), np.diff(indptr)).tolist(), indices.tolist(), weights.tolist(), strict=True)
    )


def fails(match: str):
    return pytest.raises(FormatError, match=match)


# Round trips: any arcs, any format ------------------------------------------------------------------------------

N = 9
INTEGERS = st.integers(-(2**31), 2**31 - 1)
DECIMALS = st.floats(allow_nan=False, allow_infinity=False)
vertex = st.integers(0, N - 1)


def some_arcs(weights):
    return st.lists(st.tuples(vertex, vertex, weights), min_size=1, max_size=40)


@pytest.fixture(params=[64, text_file.BLOCK_BYTES], ids=["small-blocks", "one-block"], scope="module")
def _block_bytes(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "BLOCK_BYTES", request.param)
        yield


def there_and_back(content, name, arcs, expected_dtype, **options):
    """Import `content` in a scratch folder; arcs must come back sorted by (tail, head), parallel ones in order."""
    with tempfile.TemporaryDirectory() as folder:
        source = content
        if isinstance(content, str | bytes):
            source = Path(folder, name)
            source.write_bytes(content.encode() if isinstance(content, str) else content)
        graph = import_graph(source, Path(folder, "store"), **options)
        assert arcs_of(graph) == sorted(arcs, key=lambda arc: arc[:2])
        assert graph.weight_dtype == expected_dtype
        return graph.n, graph.directed, graph.labels()


@pytest.mark.usefixtures("_block_bytes")
@settings(max_examples=12, deadline=None)
@given(some_arcs(INTEGERS))
def test_dimacs_there_and_back(arcs):
    lines = [f"a {t + 1} {h + 1} {w}" for t, h, w in arcs]
    content = "\n".join(["c x", f"p sp {N} {len(arcs)}", *lines[:3], "c between", "", *lines[3:]])
    n, directed, labels = there_and_back(content, "x.gr", arcs, "int32")
    assert (n, directed) == (N, True)
    assert labels.tolist() == [str(v + 1) for v in range(N)]


@pytest.mark.usefixtures("_block_bytes")
@settings(max_examples=12, deadline=None)
@given(some_arcs(DECIMALS))
def test_tntp_there_and_back(arcs):
    lines = [f"\t{t + 1}\t{h + 1}\t{w!r}\t1\t;" for t, h, w in arcs]
    head = f"<NUMBER OF NODES> {N}\n<FIRST THRU NODE> 1\n<NUMBER OF LINKS> {len(arcs)}\n<END OF METADATA>\n"
    content = head + "~ \tinit_node\tterm_node\tfree_flow_time\tlength\t;\n" + "\n".join(lines)
    there_and_back(content, "x.tntp", arcs, "float64" if any("." in x or "e" in x for x in lines) else "int32")


@pytest.mark.usefixtures("_block_bytes")
@settings(max_examples=12, deadline=None)
@given(some_arcs(DECIMALS), st.sampled_from([" ", "\t", "  ", ",", ";"]))
def test_edge_list_there_and_back(arcs, separator):
    content = "# x\n" + "".join(f"{t}{separator}{h}{separator}{w!r}\r\n" for t, h, w in arcs)
    delimiter = separator if separator in ",;" else None
    there_and_back(content, "x.txt", arcs, "float64", delimiter=delimiter, base=0)


@settings(max_examples=8, deadline=None)
@given(some_arcs(INTEGERS), st.sampled_from(["int64", "int32", "float64"]))
def test_matrix_market_there_and_back(arcs, dtype):
    tails, heads, weights = (np.array(column) for column in zip(*arcs, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.mtx")  # SciPy writes a coordinate matrix as it is, parallel entries included
        scipy.io.mmwrite(file, scipy.sparse.coo_array((weights.astype(dtype), (tails, heads)), shape=(N, N)),
                         symmetry="general", precision=17)  # fmt: skip
        content = file.read_bytes()
    there_and_back(content, "x.mtx", arcs, "float64" if dtype == "float64" else "int32")


@pytest.mark.usefixtures("_block_bytes")
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["pattern", "integer", "real"])
@pytest.mark.parametrize("break_", ["\n", "\r\n"])
def test_matrix_market_of_every_kind_across_blocks(load, field, symmetry, break_):
    """Comments, blank lines, exponents, integers above 2^53 and no line break at the end; blocks end within lines."""
    rng = np.random.default_rng(3)
    words = {"pattern": [""], "integer": ["7", "-0", "+12", str(2**53 + 1)], "real": ["2.5e-3", "1E5", "-.5", "3"]}[
        field
    ]
    rows = [(t, h, words[i % len(words)]) for i, (t, h) in enumerate(rng.integers(0, N, (60, 2)).tolist())]
    lines = [f"{t + 1} \t{h + 1} {word}" for t, h, word in rows]
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}", "% x", f"{N} {N} {len(rows)}", *lines]
    lines[20:20], lines[40:40] = ["", "% between", "  "], ["%"]
    graph = load(break_.join(lines), "x.mtx")
    arcs = [(t, h, float(word) if field == "real" else int(word or 1)) for t, h, word in rows]
    if symmetry == "symmetric":
        arcs = [arc for t, h, w in arcs for arc in ((t, h, w), (h, t, w))]
    assert arcs_of(graph) == sorted(arcs, key=lambda arc: arc[:2])
    assert graph.weight_dtype == {"pattern": "int32", "integer": "int64", "real": "float64"}[field]
    assert (graph.directed, graph.label(N - 1)) == (symmetry == "general", str(N))


@settings(max_examples=8, deadline=None)
@given(some_arcs(st.integers(-1000, 1000)), st.sampled_from(["int8", "int16", "int64", "float32", "float64"]))
def test_parquet_and_scipy_there_and_back(arcs, dtype):
    tails, heads, weights = (np.array(column) for column in zip(*arcs, strict=True))
    weights = weights.astype(dtype)
    expected = list(zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"w": weights, "t": tails, "h": heads.astype(np.int16)}), sink, row_group_size=7)
    there_and_back(sink.getvalue().to_pybytes(), "x.parquet", expected, dtype, columns=("t", "h"), weight="w", base=0)
    there_and_back(scipy.sparse.coo_matrix((weights, (tails, heads)), shape=(N, N)), "", expected, dtype)


@settings(max_examples=8, deadline=None)
@given(some_arcs(st.integers(0, 2**40)), st.booleans())
def test_networkx_there_and_back(arcs, directed):
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(range(N))
    graph.add_weighted_edges_from(arcs)
    expected = arcs if directed else [arc for t, h, w in arcs for arc in ((t, h, w), (h, t, w))]
    with tempfile.TemporaryDirectory() as folder:
        store = import_graph(graph, Path(folder, "store"))
        assert Counter(arcs_of(store)) == Counter(expected)
        assert (store.n, store.directed, store.input_edges) == (N, directed, len(arcs))
        assert store.labels() is None


# What the formats say -------------------------------------------------------------------------------------------


def test_rome(tmp_path):
    graph = import_graph(ROME, tmp_path / "rome")
    assert (graph.n, graph.m, graph.weight_dtype) == (3353, 8870, np.int32)
    table = np.loadtxt(ROME, comments=["c", "p"], usecols=(1, 2, 3), dtype=int)
    assert Counter(arcs_of(graph)) == Counter((t - 1, h - 1, w) for t, h, w in table.tolist())
    assert graph.vertex("1") == 0
    shortest: dict[tuple[int, int], int] = {}
    for t, h, w in table.tolist():
        shortest[t - 1, h - 1] = min(w, shortest.get((t - 1, h - 1), w))
    simple = import_graph(ROME, tmp_path / "simple", simplify=True)
    assert arcs_of(simple) == sorted((t, h, w) for (t, h), w in shortest.items() if t != h)
    assert (simple.m, simple.input_edges, simple.simplified) == (8859, 8870, True)


def test_tntp_closes_its_zones(load):
    graph = load(TNTP, "x_net.tntp")
    assert arcs_of(graph) == [(0, 2, 1.25), (2, 3, 0), (3, 1, 2.5)]
    assert graph.through().tolist() == [False, False, True, True]
    assert graph.weight_unit == "free_flow_time"
    length = load(TNTP, "x_net.tntp", weight="length")
    assert [w for *_, w in arcs_of(length)] == [528, 100, 200]
    assert length.weight_dtype == np.int32
    opened = load(TNTP.replace("THRU NODE> 3", "THRU NODE> 1"), "x_net.tntp")
    assert "through" not in opened.optional
    unnamed = load(TNTP.replace("~\tinit_node", "\n~\tnonsense\n~ x "), "x_net.tntp")
    assert arcs_of(unnamed) == arcs_of(graph)


def test_matrix_market_kinds(load):
    banner = "%%MatrixMarket matrix coordinate {} {}\n"
    symmetric = load(banner.format("real", "symmetric") + "3 3 2\n2 1 0.5\n3 3 2\n", "x.mtx")
    assert arcs_of(symmetric) == [(0, 1, 0.5), (1, 0, 0.5), (2, 2, 2), (2, 2, 2)]
    assert (symmetric.directed, symmetric.input_edges) == (False, 2)
    pattern = load(banner.format("pattern", "general") + "3 3 1\n1 2\n", "x.mtx")
    assert arcs_of(pattern) == [(0, 1, 1)]
    assert pattern.n == 3
    assert load(banner.format("real", "general") + "1 1 1\n1 1 3\n", "x.mtx").weight_dtype == np.float64
    with fails("line 1.*skew-symmetric.*save it as general"):
        load(banner.format("real", "skew-symmetric") + "1 1 0\n", "x.mtx")
    with fails("line 1.*dense.*coordinate"):
        load("%%MatrixMarket matrix array real general\n1 1\n0\n", "x.mtx")
    with fails("line 1.*complex"):
        load(banner.format("complex", "general"), "x.mtx")
    with fails("line 2.*2 x 3.*square"):
        load(banner.format("real", "general") + "2 3 1\n1 1 1\n", "x.mtx")


def test_edge_list_columns_header_and_names(load):
    named = 'from,km,to\nParis,400,Lyon\n"St. John\'s, NL",1.5,Paris\nZürich,2,Paris\n'
    graph = load(named, "x.csv", columns=("from", "to"), weight="km")
    assert graph.labels().tolist() == ["Paris", "Lyon", "St. John's, NL", "Zürich"]
    assert arcs_of(graph) == [(0, 1, 400), (2, 0, 1.5), (3, 0, 2)]
    assert graph.weight_unit == "km"
    by_position = load(named, "x.csv", columns=("0", 2, 1), header=True)
    assert arcs_of(by_position) == arcs_of(graph)
    assert arcs_of(load("source,target\n0,2\n", "x.csv")) == [(0, 2, 1)]
    assert arcs_of(load("7 9\n9 7\n", "x.txt", labels=True)) == [(0, 1, 1), (1, 0, 1)]
    assert load('a,"say ""hi"""\n', "x.csv").labels().tolist() == ["a", 'say "hi"']


def test_edge_list_base_direction_and_dtypes(load):
    graph = load("1 3\n3 3\n", "x.txt", base=1, directed=False)
    assert arcs_of(graph) == [(0, 2, 1), (2, 0, 1), (2, 2, 1), (2, 2, 1)]
    assert graph.labels().tolist() == ["1", "2", "3"]
    assert graph.input_edges == 2
    assert graph.weight_dtype == np.int32
    assert load("0 1 -5000000000\n", "x.txt").weight_dtype == np.int64
    assert arcs_of(load("0 1 9223372036854775807\n", "x.txt")) == [(0, 1, 2**63 - 1)]
    assert arcs_of(load("0 1 +5\n0 1 .5\n1 0 -1e-3", "x.txt")) == [(0, 1, 5.0), (0, 1, 0.5), (1, 0, -0.001)]
    assert load("1 3\n", "x.txt", base=1, labels=False).labels() is None


def test_parallel_undirected_edges_keep_their_order(load):
    assert arcs_of(load("0 1 5\n1 0 7\n0 1 9\n", "x.txt", directed=False))[:3] == [(0, 1, 5), (0, 1, 7), (0, 1, 9)]


def test_gzip_and_byte_order_mark(load):
    assert arcs_of(load(gzip.compress(GR.encode()), "x.gr.gz")) == [(0, 1, 5), (2, 0, 7)]
    assert arcs_of(load(b"\xef\xbb\xbf0 1 2\n", "x.txt")) == [(0, 1, 2)]
    with fails("x.gr.gz: the gzip file is truncated"):
        load(gzip.compress(GR.encode())[:-9], "x.gr.gz")


def test_parquet_names_nulls_and_types(tmp_path):
    file = tmp_path / "x.parquet"

    def load(**options):
        return import_graph(file, tmp_path / "store", overwrite=True, **options)

    pq.write_table(pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": ["y", "x"]}), file)
    assert load().labels().tolist() == ["x", "y"]
    pq.write_table(pa.table({"a": [0, 1, None], "b": [1, 2, 3]}), file)
    with fails(r"row 2 \(from 0\): 'a' is null"):
        load()
    pq.write_table(pa.table({"a": [0, 1], "b": [1, 0], "w": [1.0, np.nan]}), file)
    with fails(r"row 1 \(from 0\): arc 1 -> 0, weight nan"):
        load()
    with fails(r"row 0 \(from 0\): arc 0 -> 1"):
        load(columns=("a", "b"), base=1)
    with fails("no column 'z'; columns are a, b, w"):
        load(weight="z")
    pq.write_table(pa.table({"a": [0.5], "b": [1]}), file)
    with fails("tails and heads are double"):
        load()
    file.write_bytes(b"PAR1 not")
    with fails("cannot be read as Parquet"):
        load()


def test_objects(tmp_path):
    graph = nx.Graph([("b", "a", {"km": 2.5})])
    store = import_graph(graph, tmp_path / "nx", weight="km", unit="km")
    assert store.labels().tolist() == ["b", "a"]
    assert (arcs_of(store), store.weight_unit) == ([(0, 1, 2.5), (1, 0, 2.5)], "km")
    graph.add_edge("a", "c")
    with pytest.warns(UserWarning, match="the edges have km: choose one"):
        assert import_graph(graph, tmp_path / "plain").weight_dtype == np.int32
    with fails("'a' - 'c' has 'km' = None"):
        import_graph(graph, tmp_path / "bad", weight="km")
    with fails("2 x 3; the matrix of a graph must be square"):
        import_graph(scipy.sparse.csr_array((2, 3)), tmp_path / "bad")
    with fails(r"entry 0 \(from 0\): arc 0 -> 1, weight inf"):
        import_graph(scipy.sparse.coo_array(([np.inf], ([0], [1])), shape=(2, 2)), tmp_path / "bad")
    with fails("complex"):
        import_graph(scipy.sparse.csr_array((2, 2), dtype=complex), tmp_path / "bad")
    with fails("an object of type set is not a graph"):
        import_graph({1}, tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


def test_coordinates(load, tmp_path):
    co = tmp_path / "x.co"
    co.write_text("c x\np aux sp co 3\nv 3 -73 41\nv 1 5 6.5\n")
    assert np.array_equal(
        load(GR, "x.gr", coordinates=co).coordinates(), [[5, 6.5], [np.nan] * 2, [-73, 41]], equal_nan=True
    )
    assert load("a b\n", "x.txt", coordinates={"b": (1, 2), "a": (0, 0)}).coordinates().tolist() == [[0, 0], [1, 2]]
    with fails(r"coordinates have the shape .*; give \("):
        load(GR, "x.gr", coordinates=np.zeros((2, 2)))
    expected = [[5, 6.5], [np.nan] * 2, [-73, 41]]
    for name, text in (
        ("x_node.tntp", "Node\tX\tY\t;\n1\t5\t6.5\t;\n3 -73 41 ;\n"),
        ("nodes.csv", "node,x,y\n1,5,6.5\n3,-73,41\n9,1,1\n"),
        ("places.csv", "ID;Longitude;Latitude\n1;5;6.5\n2;;\n3;-73;41\n"),
    ):
        (tmp_path / name).write_text(text)
        found = load(GR, "x.gr", coordinates=tmp_path / name).coordinates()
        np.testing.assert_array_equal(found, expected)
    for name, text, fault in (
        ("x_node.tntp", "Node X Y ;\n4 0 0 ;\n", "x_node.tntp, line 2"),
        (
            "nodes.csv",
            "node,x,y\n7,5,6.5\n",
            "none of its nodes, such as '7', is a vertex of the graph, such as",
        ),
        ("nodes.csv", "node,x,y\n1,5,a\n", "nodes.csv, row 1: `y` is 'a', not a number"),
        (
            "nodes.csv",
            "node,x\n1,5\n",
            "positions are in columns x and y or lon and lat, .* columns are node, x; rename",
        ),
    ):
        (tmp_path / name).write_text(text)
        with fails(fault):
            load(GR, "x.gr", coordinates=tmp_path / name)
    co.write_text("p aux sp co 4\n")
    with fails("x.co, line 1: announces 4 vertices, but the graph has 3"):
        load(GR, "x.gr", coordinates=co)


# What is wrong is named -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("x.gr", "", "x.gr: has no problem line"),
        ("x.gr", "c only\n", "x.gr: has no problem line"),
        ("x.gr", "c\na 1 2 3\n", "x.gr, line 2: .*problem line `p sp VERTICES ARCS`"),
        ("x.gr", "p sp 3 x\n", "line 1: .*problem line"),
        ("x.gr", GR.replace("a 3 1 7\n", ""), "line 2: announces 2 arcs, but 1 follow.*truncated"),
        ("x.gr", GR + "a 1 2 9\n", "line 2: announces 2 arcs, but 3 follow.*header"),
        ("x.gr", GR.replace("3 1 7", "3 1"), "line 4: .*`a TAIL HEAD WEIGHT`"),
        ("x.gr", GR.replace("a 3 1 7", "3 1 7 1"), "line 4: .*begin with 'a'"),
        ("x.gr", GR.replace("a 3 1 7", "a 3 1 7 7"), "line 4: .*fields"),
        ("x.gr", GR.replace("a 3", "a 4"), r"line 4: .*outside 1\.\.3"),
        ("x.gr", GR.replace("a 3", "a 0"), r"line 4: .*outside 1\.\.3"),
        ("x.gr", GR.replace("3 1 7", "3 1.5 7"), "line 4: .*whole numbers"),
        ("x.gr", GR.replace("7", "seven"), "line 4: .*not a finite"),
        ("x.gr", GR.replace("7", "nan"), "line 4: .*not a finite"),
        ("x.gr", GR.replace("7", "1e400"), "line 4: .*not a finite"),
        ("x.gr", "p sp 0 0\n", "no vertices"),
        ("x.mtx", "", "x.mtx: is empty"),
        ("x.mtx", "1 2 3\n", "line 1: .*banner"),
        ("x.mtx", MTX.replace("1 2 5", "1 2 0.5"), "line 4: .*not a 64-bit integer, as the header announces; .*real"),
        ("x.mtx", MTX.replace("1 7", f"1 {2**63}"), "line 5: .*not a 64-bit integer"),
        ("x.mtx", MTX[: MTX.index("3 3 2")], "line 2: the size line .* missing"),
        ("x.mtx", MTX.replace("3 3 2", "3 3"), "line 3: .*size line"),
        ("x.mtx", MTX.replace("3 1 7\n", ""), "line 3: announces 2 arcs, but 1"),
        ("x.mtx", MTX.replace("3 1 7", "3 4 7"), r"line 5: .*outside 1\.\.3"),
        ("x.mtx", MTX.replace("3 1 7", "3 1"), "line 5: .*fields"),
        ("x.tntp", "", "END OF METADATA"),
        ("x.tntp", TNTP.replace("<FIRST THRU NODE> 3\n", ""), "`<FIRST THRU NODE>` is missing"),
        ("x.tntp", TNTP.replace("NODES> 4", "NODES> four"), "line 2: `<NUMBER OF NODES>` is 'four'"),
        ("x.tntp", TNTP.replace("\t3\t4\t900", "\t3\t5\t900"), r"line 11: .*outside 1\.\.4"),
        ("x.tntp", TNTP.replace("\t4\t2\t900\t200", "\t4\t2\t200"), "line 12: .*fields"),
        ("x.tntp", TNTP.replace("2.5", "inf"), "line 12: .*not a finite"),
        ("x.tntp", TNTP[: TNTP.index("\t4\t2\t900")], "line 4: announces 3 arcs, but 2"),
        ("x.tntp", TNTP.replace("<END", "1 2 3\n<END"), "line 6: .*END OF METADATA"),
        ("x.txt", "", "x.txt: holds no edge"),
        ("x.txt", "# only\n\n", "x.txt: holds no edge"),
        ("x.txt", "# x\n0 1\n\n0 1 2\n", "x.txt, line 4: .*2 fields"),
        ("x.txt", "0 1\nA B\n", r"line 2: .*labels=True \(--labels\)"),
        ("x.txt", "0 1\n-1 0\n", "line 2: .*outside 0 and up.*--base"),
        ("x.txt", "0 1 2 3\n", "has 4 columns .*--columns"),
        ("x.txt", "0,1\n", "has 1 column .*--delimiter"),
        ("x.txt", "0 99999999999999\n", r"implies 100000000000000 vertices.*--labels"),
        ("x.csv", 'a,b\nc,"d\n', "line 2: .*quotation mark"),
        ("x.csv", "a,b\nc,\n", "line 2: .*empty field"),
        ("x.csv", b"a,b\nc,\xff\n", "line 2: .*UTF-8"),
        ("x.csv", "0,1,\n", "line 1: .*empty field"),
        ("x.xyz", "0 1\n", "unknown format '.xyz'.*--format gr|mtx"),
    ],
)  # fmt: skip
def test_faults_are_named(load, name, content, match):
    with fails(match):
        load(content, name)


@pytest.mark.usefixtures("_block_bytes")
def test_a_fault_far_into_the_file_has_its_line(tmp_path):
    lines = [f"{i} {i + 1} 0.5" if i % 3 else "# x" for i in range(1, 2000)]
    for bad in ("1 2 x", "1 2", "1 x 2"):
        lines[1500] = bad
        (tmp_path / "x.txt").write_text("\n".join(lines))
        with fails(f"line 1501: '{bad}'"):
            import_graph(tmp_path / "x.txt", tmp_path / "store")
    assert [item.name for item in tmp_path.iterdir()] == ["x.txt"]


def test_options_that_mean_nothing_are_refused(load, tmp_path):
    with fails("delimiter=',' has no meaning for read_dimacs"):
        load(GR, "x.gr", delimiter=",")
    with fails("this format has no option for labels"):
        load(GR, "x.gr", labels=True)
    with fails("no column 'tolls'.*--weight.*free_flow_time"):
        load(TNTP, "x.tntp", weight="tolls")
    with fails("there is no column '5'; columns are 0 to 2"):
        load("0 1 2\n", "x.txt", columns=("0", "5"))
    with fails("not distinct"):
        load("0 1 2\n", "x.txt", columns=(0, 0))
    with fails("missing.gr: cannot be read"):
        import_graph(tmp_path / "missing.gr", tmp_path / "s")
    assert arcs_of(load(GR, "road", format="gr", labels=False)) == [(0, 1, 5), (2, 0, 7)]


def test_an_existing_store_is_refused_before_the_file_is_read(load, tmp_path):
    load(GR, "x.gr")
    with pytest.raises(StoreError, match="exists already.*--overwrite"):
        load("p sp 1 9\n", "x.gr", overwrite=False)

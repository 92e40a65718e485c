"""Numbers are read exactly, or refused (point A9 of the hostile trials); without numbers a graph is unweighted."""

from __future__ import annotations

from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from pipelines.formats import text_file
from pipelines.formats.graphs import FormatError, import_graph


@pytest.fixture
def weights(tmp_path):
    """weights(source, name, **options): the weights of what is imported, in the order of the store."""

    def weights(source, name="x.txt", **options):
        if isinstance(source, str):
            (tmp_path / name).write_text(source)
            source = tmp_path / name
        return import_graph(source, tmp_path / "store", overwrite=True, **options).rows()[2].tolist()

    return weights


ODD = [
    "0xFFFFFFFFFFFFFFFF",
    "0x1F",
    "0X1p3",
    "1_000",
    "٣",
    "nan",
    "inf",
    "-Infinity",
    "1e",
    "1d5",
    "--1",
    "5,5",
    "1e400",
]


@pytest.mark.parametrize("word", ODD)
def test_weights_are_plain_decimal_literals(weights, word):
    for name, text in (
        ("x.txt", f"0 1 2\n1 0 {word}\n"),
        ("x.txt", f"0 1 2.5\n1 0 {word}\n"),
        ("x.gr", f"p sp 2 2\na 1 2 .5\na 2 1 {word}\n"),
        ("x.mtx", f"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n2 1 {word}\n"),
    ):
        with pytest.raises(FormatError, match=r"x\.\w+, line \d: .*not a finite float64 number"):
            weights(text, name)
    assert weights("0 1 +5\n1 0 -.5e-1\n2 0 7.\n") == [5, -0.05, 7]


@pytest.mark.parametrize("large", [2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**64 - 1, 10**30 + 1])
@pytest.mark.parametrize("blocks", ["one", "several"])
def test_integers_are_not_rounded_beside_decimals(weights, monkeypatch, large, blocks):
    if blocks == "several":
        monkeypatch.setattr(text_file, "BLOCK_BYTES", 16)
    with pytest.raises(FormatError, match=r"x\.txt.*(does not hold exactly|is not exact)"):
        weights(f"0 1 {large}\n1 0 1\n2 0 0.5\n3 0 0.5\n4 0 0.5\n")
    assert weights("0 1 9007199254740992\n1 0 0.5\n2 0 1000000000000000000\n") == [2**53, 0.5, 10**18]
    assert weights("0 1 9007199254740993\n1 0 1\n") == [2**53 + 1, 1]
    with pytest.raises(FormatError, match=r"x\.mtx.*exact"):
        weights(f"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {large}\n", "x.mtx")


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([2**63 + 5], "'weight' = 9223372036854775813; integers have at most 64 bits"),
        ([2**63, -1], "64 bits"),
        ([2**70], "64 bits"),
        ([10**400, 1], "64 bits"),
        ([10**400, 0.5], "finite"),
        ([2**53 + 1, 0.5], "not hold this integer exactly"),
        ([np.uint64(2**63), 1], "64 bits"),
        ([np.int64(2**53 + 1), 0.5], "not hold this integer exactly"),
        ([1j], "finite number"),
        ([np.complex128(1)], "finite number"),
        (["5"], "finite number"),
    ],
)
def test_weights_of_networkx_do_not_wrap(weights, values, fault):
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((i, i + 1, value) for i, value in enumerate(values))
    with pytest.raises(FormatError, match=f"the edge . - . has .*{fault}"):
        weights(graph)


def test_weights_of_networkx_are_exact(weights):
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, 2**63 - 1), (1, 2, -(2**63)), (2, 3, True), (3, 4, np.uint8(7))])
    assert weights(graph) == [2**63 - 1, -(2**63), 1, 7]
    graph.add_weighted_edges_from([(0, 1, 2**60), (1, 2, 0.5)])
    assert weights(graph) == [2**60, 0.5, 1, 7]


def test_typed_weights_above_int64_are_refused(weights, tmp_path):
    pq.write_table(pa.table({"a": [0, 1], "b": [1, 2], "w": pa.array([1, 2**63], pa.uint64())}), tmp_path / "x.parquet")
    with pytest.raises(FormatError, match=r"x\.parquet, row 1 \(from 0\): arc 1 -> 2, weight 9223372036854775808"):
        weights(tmp_path / "x.parquet")
    matrix = scipy.sparse.coo_array((np.array([2**63], np.uint64), ([0], [1])), shape=(2, 2))
    with pytest.raises(FormatError, match="entry 0"):
        weights(matrix)


@pytest.mark.parametrize("name", ["x.txt", "x.parquet"])
def test_a_list_that_never_uses_0_is_asked_about(tmp_path, name):
    def hints(tails, heads, **options):
        file, said = tmp_path / name, []
        if name == "x.txt":
            file.write_text("".join(f"{t} {h}\n" for t, h in zip(tails, heads, strict=True)))
        else:
            pq.write_table(pa.table({"source": tails, "target": heads}), file)
        import_graph(file, tmp_path / "s", overwrite=True, report=said.append, **options)
        return [line for line in said if "--base" in line]

    for least in 1, 5:
        ways = rf"pass base={least} \(--base {least}\) if .*base=0 \(--base 0\) if .*, or labels=True \(--labels\)"
        with pytest.raises(FormatError, match=rf"{name}: the smallest number of a vertex is {least}; {ways}"):
            hints([least, 8], [9, 7])
    (hint,) = hints([1, 3], [2, 1], vertices=4)
    assert hint.endswith("so vertex 0 has no edge; pass base=1 (--base 1) if vertices are counted from 1")
    assert hints([1, 3], [2, 0]) == hints([1], [2], base=1) == hints([1], [2], base=0) == []
    assert hints([1], [2], labels=True) == []


MARKET = "%%MatrixMarket matrix coordinate {} general\n3 3 3\n1 2{}\n2 3{}\n3 1{}\n"
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{}<graph edgedefault="directed">
<edge source="0" target="1">{}</edge><edge source="1" target="2">{}</edge><edge source="2" target="0">{}</edge>
<node id="0"/><node id="1"/><node id="2"/></graph></graphml>"""
KEY, ONE = '<key id="k" for="edge" attr.name="weight" attr.type="int"/>', '<data key="k">1</data>'
FRAME = pa.table({"u": [0, 1, 2], "v": [1, 2, 0], "w": pa.array([1, 1, 1], pa.int32())})


def ring_of(library, weighted):
    if library == "networkx":
        graph = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
        nx.set_edge_attributes(graph, 1, "weight" if weighted else "osmid")
        return graph
    graph = igraph.Graph([(0, 1), (1, 2), (2, 0)], directed=True)
    if weighted:
        graph.es["weight"] = [1] * 3
    return graph


@pytest.mark.parametrize(
    ("name", "without", "ones"),
    [
        ("x.txt", "0 1\n1 2\n2 0\n", "0 1 1\n1 2 1\n2 0 1\n"),
        ("x.mtx", MARKET.format("pattern", "", "", ""), MARKET.format("integer", " 1", " 1", " 1")),
        ("x.graphml", GRAPHML.format("", "", "", ""), GRAPHML.format(KEY, ONE, ONE, ONE)),
        ("x.adj", "0 -> 1\n1 -> 2\n2 -> 0\n", None),
        ("x.parquet", FRAME.select(["u", "v"]), FRAME),
        ("", FRAME.select(["u", "v"]), FRAME),
        ("", ring_of("networkx", False), ring_of("networkx", True)),
        ("", ring_of("igraph", False), ring_of("igraph", True)),
        ("", np.array([1, 2, 0]), None),
    ],
    ids=["edges", "mtx", "graphml", "adj", "parquet", "frame", "networkx", "igraph", "successors"],
)
@pytest.mark.parametrize("simplify", [False, True])
def test_a_source_without_weights_is_an_unweighted_graph(tmp_path, name, without, ones, simplify):
    found = []
    for source in without, ones or scipy.sparse.csr_array(np.roll(np.eye(3, dtype="int32"), 1, axis=1)):
        place = tmp_path / name if name and isinstance(source, str | pa.Table) else source
        if isinstance(place, Path):
            place.write_text(source) if isinstance(source, str) else pq.write_table(source, place)
        found.append(import_graph(place, tmp_path / str(len(found)), simplify=simplify))
    assert [graph.weighted for graph in found] == [False, True]
    assert not (tmp_path / "0" / "weights").exists()
    assert found[0].digest == found[1].digest
    assert found[0].rows()[2].tolist() == [1, 1, 1]

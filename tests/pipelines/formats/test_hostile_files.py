"""Files that ended in tracebacks, or took minutes, end in one clear error. Points C4 and C5 of the hostile trials."""

from __future__ import annotations

import os
import time

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import invoke

from pipelines.formats.graphs import FormatError, import_graph
from pipelines.formats.samples import import_samples
from pipelines.od_tables.frames import od

DIGITS = "9" * 5000
REAL = "%%MatrixMarket matrix coordinate real general\n"
METADATA = (
    "<NUMBER OF NODES> {}\n<FIRST THRU NODE> {}\n<NUMBER OF LINKS> {}\n<END OF METADATA>\n"
    "~ init_node term_node length ;\n1 2 3 ;\n"
)


@pytest.fixture
def refused(tmp_path):
    """refused(content, name, **options): the message of the FormatError, which names the file in one line."""

    def refused(content, name, **options):
        file = tmp_path / name
        if isinstance(content, pa.Table):
            pq.write_table(content, file)
        else:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(FormatError) as caught:
            import_graph(file, tmp_path / "store", **options)
        message = str(caught.value)
        assert str(file) in message
        assert "\n" not in message
        assert len(message) < 600
        assert not (tmp_path / "store").exists()
        return message

    return refused


TYPES = {
    "dictionary": pa.array(["1", "2"]).dictionary_encode(),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "time32": pa.array([1, 2], pa.time32("s")),
    "timestamp": pa.array([1, 2], pa.timestamp("us")),
    "duration": pa.array([1, 2], pa.duration("us")),
    "decimal128": pa.array([1, 2]).cast(pa.decimal128(22, 2)),
    "list": pa.array([[1], [2]]),
    "null": pa.nulls(2),
    "binary": pa.array([b"1", b"2"]),
    "string": pa.array(["1", "2"]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_of_parquet_that_are_no_weights(refused, kind):
    table = pa.table({"source": [0, 1], "target": [1, 0], "weight": TYPES[kind]})
    assert f"column 'weight' holds {kind}" in refused(table, "x.parquet")
    if kind not in ("dictionary", "string"):  # which are names
        table = pa.table({"source": [0, 1], "target": TYPES[kind]})
        assert f"tails and heads are int64 and {kind}" in refused(table, "x.parquet")


def test_float16_weights_are_read(tmp_path):
    table = pa.table({"source": [0, 1], "target": [1, 0], "weight": np.array([0.5, 2], np.float16)})
    pq.write_table(table, tmp_path / "x.parquet")
    graph = import_graph(tmp_path / "x.parquet", tmp_path / "s")
    assert (graph.rows()[2].tolist(), graph.weight_dtype) == ([0.5, 2], np.float32)
    graph.verify()


def test_names_of_parquet_columns_and_vertices(refused):
    twice = pa.table([pa.array([0]), pa.array([1]), pa.array([2])], names=["a", "a", "w"])
    assert "several columns are called 'a'" in refused(twice, "x.parquet")
    assert "several columns are called 'a'" in refused(twice, "x.parquet", columns=(0, 2))
    large = pa.table({"a": pa.array([1, 2**63], pa.uint64()), "b": [0, 0]})
    assert "row 1 (from 0): arc 9223372036854775808 -> 0" in refused(large, "x.parquet")
    surrogate = pa.array([b"a", b"\xed\xa0\x80"]).view(pa.string())
    assert "row 1 (from 0): a name is not UTF-8" in refused(pa.table({"a": surrogate, "b": ["x", "y"]}), "x.parquet")
    assert "row 1 (from 0)" in refused(pa.table({"a": [0, 5], "b": [1, 1]}), "x.parquet", vertices=5)


@pytest.mark.parametrize("name", ["x.gr", "x.mtx", "x.tntp", "x.txt", "x.csv"])
def test_line_breaks_of_cr_alone(refused, name):
    text = {
        "x.gr": "c x\np sp 2 1\na 1 2 3\n",
        "x.mtx": REAL + "2 2 1\n1 2 3\n",
        "x.tntp": METADATA.format(2, 1, 1),
        "x.txt": "0 1 5\n1 0 5\n",
        "x.csv": "source,target\n0,1\n",
    }[name]
    assert f"{name}, line 1: a carriage return without a line feed" in refused(text.replace("\n", "\r"), name)
    last = text[:-1].rindex("\n")
    line = text[:last].count("\n") + 1
    assert f"{name}, line {line}: a carriage return" in refused(text[:last] + "\r" + text[last + 1 :], name)
    assert f"{name}, line {line}: holds a zero byte" in refused(text[:last] + "\0" + text[last:], name)


def test_line_breaks_of_cr_lf_are_read(tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_bytes(b"0 1 5\r\n1 2 6\r\r\n2 0 7\r")
    for size in (1, 2, 3, 6, 7, 8 << 20):
        monkeypatch.setattr("pipelines.formats.text_file.BLOCK_BYTES", size)
        assert import_graph(tmp_path / "x.txt", tmp_path / "s", overwrite=True).rows()[2].tolist() == [5, 6, 7]
    (tmp_path / "x.txt").write_bytes(b"0 1 5\r\n1 2 6\r7 8 9\r\n")
    for size in range(1, 20):
        monkeypatch.setattr("pipelines.formats.text_file.BLOCK_BYTES", size)
        with pytest.raises(FormatError, match="line 2: a carriage return"):
            import_graph(tmp_path / "x.txt", tmp_path / "s", overwrite=True)


def test_pipes_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in ("edges.csv", "a,b,3"), ("origins.csv", "vertex\na"):
        os.mkfifo(name)
        with open(os.open(name, os.O_RDWR), "w") as pipe:
            print(text, file=pipe, flush=True)
            with pytest.raises(ValueError, match=f"{name}: is a pipe, which cannot be read twice; save it as a file"):
                _ = import_graph(name, "s") if name == "edges.csv" else od(import_graph([("a", "b", 3)], "s"), name)


@pytest.mark.parametrize("number", [DIGITS, "٣", "1_0", "+3", "1e3"])
def test_counts_are_plain_and_short(refused, number):
    assert "line 1: " in refused(f"p sp {number} 1\na 1 2 3\n", "x.gr")
    assert "line 1: " in refused(f"p sp 3 {number}\na 1 2 3\n", "x.gr")
    assert "line 2: " in refused(f"{REAL}{number} {number} 1\n1 2 3\n", "x.mtx")
    for facts in ((number, 1, 1), (3, number, 1), (3, 1, number)):
        assert "x.tntp, line " in refused(METADATA.format(*facts), "x.tntp")
    assert "there is no column" in refused("0 1 2\n", "x.txt", columns=(number, "1"))
    assert "x.txt, line 1: " in refused(f"0 1 {number}.{number}e\n", "x.txt")


@pytest.mark.parametrize("part", ["coordinate", "real", "general"])
def test_words_of_any_length_are_shortened(refused, part):
    assert "9" * 20 in refused(REAL.replace(part, part + DIGITS), "x.mtx")


def test_faults_of_samples_are_shortened(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n" + f"x{DIGITS},{DIGITS}y\n")
    with pytest.raises(FormatError, match="column 'a' is 'x9+ and column 'b' is '9+, not a number") as caught:
        import_samples(tmp_path / "x.csv", tmp_path / "s")
    assert len(str(caught.value)) < 1000


def test_lone_surrogates(refused, tmp_path):
    assert "line 1: " in refused(b"a \xed\xa0\x80\n", "x.txt")
    graph = nx.Graph([("\ud800", "b")])
    with pytest.raises(FormatError, match=r"Graph: the text '\\ud800' is not valid Unicode"):
        import_graph(graph, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_too_little_memory_is_one_line(tmp_path, monkeypatch):
    def nothing_left(*_args, **_options):
        raise MemoryError("Unable to allocate 7.28 TiB")

    (tmp_path / "x.txt").write_text("0 1\n")
    (tmp_path / "x.csv").write_text("0,1\n")
    monkeypatch.setattr("pipelines.formats.graphs.write_sorted", nothing_left)
    monkeypatch.setattr("pipelines.formats.samples.tables._rows", nothing_left)
    for call, name in ((import_graph, "x.txt"), (import_samples, "x.csv")):
        with pytest.raises(FormatError, match=rf"{name}: .*memory.*7\.28 TiB"):
            call(tmp_path / name, tmp_path / "store")


def test_counts_of_headers_are_compared_with_memory_before_the_work(refused):
    n = 10**14
    for text, name in (
        (f"p sp {n} 1\na 1 2 3\n", "x.gr"),
        (f"{REAL}{n} {n} 1\n1 2 3\n", "x.mtx"),
        (METADATA.format(n, 2, 1), "x.tntp"),
        ("0 1\n", "x.txt"),
    ):
        options = {"x.txt": {"vertices": n}, "x.tntp": {"weight": "length"}}.get(name, {})
        assert "100,000,000,000,000 vertices need" in refused(text, name, **options)


def test_one_line_of_a_large_number_is_asked_about(tmp_path):
    file = tmp_path / "x.txt"
    file.write_text("100000000 1 5\n")

    def call(*options):
        return invoke("import", file, tmp_path / "s", "--overwrite", *options)

    begin = time.monotonic()
    result = call()
    assert isinstance(result.exception, FormatError)
    assert "x.txt: the largest number implies 100,000,001 vertices" in str(result.exception)
    assert "--labels" in str(result.exception)
    assert "--vertices 100000001" in str(result.exception)
    assert time.monotonic() - begin < 10
    assert "2 vertices, 1 arc" in call("--labels").output
    file.write_text("1 0 5\n")
    assert "7 vertices, 1 arc" in call("--vertices", "7").output
    for options, match in (
        (["--vertices", "1"], r"line 1: .*outside 0\.\.0"),
        (["--labels", "--vertices", "3"], "names"),
    ):
        assert match.split(".*")[0] in str(call(*options).exception)

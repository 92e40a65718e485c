"""Files of samples, each against the same samples written another way, and files that cannot be read."""

import csv
import gzip
import io
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import fcs, labels_of

from pipelines.formats.errors import FormatError
from pipelines.formats.samples import FORMATS, import_samples
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.samples import write_samples
from pipelines.stores.samples_writer import ABSENT, SamplesWriter

ROWS = np.array([[1.5, -2.0], [4.0, 1e-3], [7.25, 1e5]])
NAN = np.nan


# Text


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x,y\n1.5,-2\n4,1e-3\n7.25,1E5\n", {}),
        ("1.5,-2\n4,0.001\n7.25,100000", {}),  # no names, no line break at the end
        ("\ufeffx,y\n1.5,-2\n4,1e-3\n7.25,1e5\n", {}),
        ("\ufeff1.5,-2\n4,1e-3\n7.25,1e5\n", {}),
        ("x,y\r\n1.5,-2\r\n4,1e-3\r\n7.25,1e5\r\n", {}),
        ("\n\nx,y\n1.5,-2\n\n4,1e-3\n7.25,1e5\n\n", {}),  # blank lines
        ('"x","y"\n"1.5","-2"\n4, 1e-3 \n 7.25,1e5\n', {}),
        ("x;y\n1.5;-2\n4;1e-3\n7.25;1e5\n", {"delimiter": ";"}),
        ("1.5 -2\n4 1e-3\n7.25 1e5\n", {"delimiter": " "}),
        ("x\ty\n1.5\t-2\n4\t1e-3\n7.25\t1e5\n", {"name": "t.tsv"}),
        ("2019,2020\n1.5,-2\n4,1e-3\n7.25,1e5\n", {"header": True}),
        ('"two\nlines",y\n1.5,-2\n4,1e-3\n7.25,1e5\n', {}),
    ],
)
def test_text_is_read(read, text, options):
    np.testing.assert_array_equal(read(text, **options).values(), ROWS)


def test_names_of_columns(read):
    assert read(' height ,"width, cm"\n1,2\n').columns == ("height", "width, cm")
    assert read("1,2\n3,4\n").columns == ("0", "1")
    assert read("2019,2020\n1,2\n", header=True).columns == ("2019", "2020")
    assert read("2019,2020\n1,2\n").n == 2


def test_columns_are_chosen_by_name_or_number(read):
    text = "a,b,c,d\n1,2,3,4\n5,6,7,8\n"
    assert read(text, columns=["d", "b"]).values().tolist() == [[4, 2], [8, 6]]
    assert read(text, columns=[2, "0"]).columns == ("c", "a")
    samples = read(text, weight="b", label=2)
    assert (samples.columns, samples.weights().tolist(), labels_of(samples)) == (("a", "d"), [2, 6], ["3", "7"])
    named_by_numbers = read("3,2,1\n1,2,3\n", header=True, columns=["1"])  # a name comes before a position
    assert named_by_numbers.values().tolist() == [[3]]


def test_labels_stay_what_they_are(read):
    samples = read(
        'x,kind\n1,01\n2,1\n3,\n4,"a, b"\n5,""\n6,"say ""so"""\n7,Na\n8,Zürich\n9,"two\nlines"\n', label="kind"
    )
    assert labels_of(samples) == ["01", "1", None, "a, b", None, 'say "so"', "Na", "Zürich", "two\nlines"]


def test_a_first_line_of_values_with_its_label_is_no_header(read):
    """As in the iris data set of the UCI repository."""
    text = "5.1,3.5,setosa\n7.0,3.2,versicolor\n"
    samples = read(text, label=2)
    assert (samples.n, samples.columns, labels_of(samples)) == (2, ("0", "1"), ["setosa", "versicolor"])
    with pytest.raises(FormatError, match=r"line 1: has numbers and words such as 'setosa'; .*--no-header.*--label"):
        read(text)
    with pytest.raises(FormatError, match="line 1.*'setosa', not a number; .*--label"):
        read(text, header=False)
    with pytest.raises(FormatError, match="line 2.*'versicolor', not a number"):
        read(text, header=True)
    with pytest.raises(FormatError, match="'species'; columns are '5.1', '3.5', 'setosa'"):
        read(text, label="species")


def test_all_columns_at_fault_are_named_at_once(read, tmp_path):
    text = "id,x,y,kind\na,1,2,u\nb,,2,v\n"
    faults = "column 'id' is 'a' and column 'kind' is 'u', not a number; .*--exclude.*--label"
    with pytest.raises(FormatError, match=f"line 2: {faults}.*column 'x' has no value in line 3; .*--missing"):
        read(text)
    with pytest.raises(FormatError, match=f"line 2: {faults}") as told:
        read(text, missing=True)
    assert "no value" not in str(told.value)
    pq.write_table(pa.table({"id": ["a"], "x": [1.0], "kind": ["u"]}), tmp_path / "t.parquet")
    with pytest.raises(FormatError, match="column 'id' holds string and column 'kind' holds string; "):
        import_samples(tmp_path / "t.parquet", tmp_path / "t")


def test_missing_values(read):
    text = "x,y\n1,\n,2\nNA,3\nnan,4\nNULL,5\n6,7\n"
    samples = read(text, missing=True)
    np.testing.assert_array_equal(samples.values(), [[1, NAN], [NAN, 2], [NAN, 3], [NAN, 4], [NAN, 5], [6, 7]])
    with pytest.raises(ValueError, match=r"t\.csv, line 2, column 'y' has no value; declare .*--missing"):
        read(text)
    np.testing.assert_array_equal(read("NA,1\n2,3\n", missing=True).values(), [[NAN, 1], [2, 3]])  # no header
    with pytest.raises(ValueError, match=r"t\.csv, line 3 has the weight nan"):
        read("x,w\n1,1\n2,\n", weight="w")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv"])
def test_gzip_is_known_by_its_content(read, name):
    text = b"x,y\n1.5,-2\n4,1e-3\n7.25,1e5\n"
    np.testing.assert_array_equal(read(gzip.compress(text), name).values(), ROWS)
    two = gzip.compress(text[:10]) + gzip.compress(text[10:])
    np.testing.assert_array_equal(read(two, name).values(), ROWS)


@pytest.mark.parametrize("change", ["cut", "damage"])
def test_damaged_gzip(read, change):
    text = gzip.compress(b"x,y\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(9000)))
    text = text[:-2000] if change == "cut" else text[:-6] + b"\0\0\0\0\0\0"
    with pytest.raises(FormatError, match=r"t\.csv\.gz.*get a new copy"):
        read(text, "t.csv.gz")


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        ("", {}, "is empty"),
        ("\n\n", {}, "is empty"),
        ("x,y\n", {}, "no rows"),
        ("x,y", {}, "no rows"),
        ("x,y\n1,2\n3\n", {}, "line 3: has 1 fields, expected 2; .* ','"),
        ("x,y\n1,2\n\n3,4,5\n", {}, "line 4: has 3 fields"),
        ('x,y\n"1",2\n3,four\n', {}, "line 3: column 'y' is 'four', not a number; .*--columns.*--label"),
        ('k,y\n"a\nb",2\nc,d\n', {"label": "k"}, "line 4: column 'y' is 'd'"),
        ("x,y\n1,2\n3,1_000\n", {}, "line 3: column 'y' is '1_000'"),
        ("x,w\n1,2\n3,heavy\n", {"weight": "w"}, "line 3: column 'w' is 'heavy'"),
        ("1 2\n3 4\n", {}, "line 2: column '1 2' is '3 4', not a number; .* ',' separates the fields"),
        ("x,y\n1,2\n3,inf\n", {}, "line 3, column 'y' is inf"),
        ("x,x\n1,2\n", {}, "two columns are called 'x'"),
        ("x,y\n1,2\n", {"columns": ["z"]}, "no column 'z'; columns are 'x', 'y'"),
        ("x,y\n1,2\n", {"columns": [2]}, "no column 2"),
        ("x,y\n1,2\n", {"columns": [-1]}, "no column -1"),
        ("x,y\n1,2\n", {"columns": ["x", 0]}, "column 'x' was chosen twice"),
        ("x,y\n1,2\n", {"columns": ["x"], "label": "x"}, "column 'x' was chosen twice"),
        ("x\n1\n", {"label": "x"}, "no column of values"),
        ("x,y\n1,2\n", {"delimiter": "\\t"}, "the delimiter is"),
        (b"x,y\n1,2\n3,\xfc\n", {}, "line 3: column 'y' is"),
        (b"x,k\n1,a\n3,\xfc\n", {"label": "k"}, "line 3: is not text encoded in UTF-8"),
        (b"x,\xfc\n1,2\n", {}, "line 1: is not text encoded in UTF-8"),
        ("x,y\n1,2\n".encode("utf-16"), {}, "line 1: is not text encoded in UTF-8"),
        ("x,y\n1,2\n3," + "4" * 200_000 + "\n", {}, "line 3"),
    ],
)
def test_faults_in_text_are_named(read, tmp_path, text, options, fault):
    with pytest.raises(ValueError, match=rf"t\.csv.*({fault})") as caught:
        read(text, **options)
    assert isinstance(caught.value, FormatError) or fault == "no rows"
    assert not (tmp_path / "s").exists()


def test_a_text_file_is_read_in_pieces(read, tmp_path, monkeypatch):
    values = np.random.default_rng(0).normal(size=(5000, 3))
    lines = [f'{a!r},{b!r},{c!r},"kind\n{i % 7}"' for i, (a, b, c) in enumerate(values.tolist())]
    sizes, original = [], SamplesWriter.append

    def note(writer, *table):
        sizes.append(len(table[0]))
        original(writer, *table)

    monkeypatch.setattr(SamplesWriter, "append", note)
    samples = read("\n".join(["a,b,c,k", *lines]), label="k", piece_bytes=1 << 14)
    np.testing.assert_array_equal(samples.values(), values)
    assert labels_of(samples) == [f"kind\n{i % 7}" for i in range(5000)]
    assert max(sizes) < 200  # a field that is cut by the end of a block stays whole
    lines[4321] = "1,2,3"
    with pytest.raises(FormatError, match="line 8644: has 3 fields, expected 4"):
        read("\n".join(["a,b,c,k", *lines]), label="k")
    lines[4321] = "1,2,three,k"
    with pytest.raises(FormatError, match="line 8644: column 'c' is 'three'"):
        read("\n".join(["a,b,c,k", *lines]), label="k")


@settings(max_examples=20)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e30, 1e30),
            st.one_of(st.none(), st.floats(-1e30, 1e30)),
            # Words such as NaN say that there is no label.
            st.text(st.characters(codec="utf-8", exclude_characters="\0\r\ufffd"), min_size=1).filter(
                lambda word: word not in ABSENT
            ),
        ),
        min_size=1,
        max_size=20,
    ),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    named=st.booleans(),
)
def test_what_python_writes_is_read(tmp_path_factory, rows, delimiter, quoting, named):
    path = tmp_path_factory.mktemp("text")
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerows([("a", "b", "kind")] * named)
    writer.writerows([(x, 0.0 if i == 0 else y, k) for i, (x, y, k) in enumerate(rows)])
    (path / "t.csv").write_text(text.getvalue(), newline="")
    samples = import_samples(
        path / "t.csv", path / "s", dtype="float64", delimiter=delimiter, label="kind" if named else 2, missing=True
    )
    want = [(x, 0.0 if i == 0 else NAN if y is None else y) for i, (x, y, _) in enumerate(rows)]
    np.testing.assert_array_equal(samples.values(), want)
    assert labels_of(samples) == [label for _, _, label in rows]


# Parquet


def test_parquet_is_read_with_its_types(tmp_path):
    table = pa.table(
        {
            "i": pa.array([1, None, 2**53 + 1], pa.int64()),
            "h": pa.array(np.array([0.5, 1.5, 2.5], np.float16)),
            "b": [True, False, None],
            "d": pa.array([1, 2, 3]).cast(pa.decimal128(22, 2)),
            "k": pa.array(["u", None, ""]).dictionary_encode(),
            "n": [3, 12345678, None],
            "w": pa.array([1, 0, 2], pa.uint8()),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    samples = import_samples(
        tmp_path / "t.parquet", tmp_path / "s", columns="ihbd", label="k", weight="w", missing=True, dtype="float64"
    )
    want = [[1, 0.5, 1, 1], [NAN, 1.5, 0, 2], [2.0**53, 2.5, NAN, 3]]
    np.testing.assert_array_equal(samples.values(), want)
    assert (samples.columns, labels_of(samples), samples.weights().tolist()) == (
        ("i", "h", "b", "d"), ["u", None, None], [1, 0, 2],
    )  # fmt: skip
    numbered = import_samples(tmp_path / "t.parquet", tmp_path / "n", columns=["h"], label="n")
    assert labels_of(numbered) == ["3", "12345678", None]
    with pytest.raises(FormatError, match=r"t\.parquet: column 'k' holds dictionary.*; values are numbers.*--label"):
        import_samples(tmp_path / "t.parquet", tmp_path / "u")
    with pytest.raises(FormatError, match=r"header \(--header\) is for text files; leave it out"):
        import_samples(tmp_path / "t.parquet", tmp_path / "u", header=True)


def test_parquet_is_read_in_pieces(tmp_path):
    values = np.random.default_rng(0).normal(size=(3000, 2))
    pq.write_table(pa.table({"x": values[:, 0], "y": values[:, 1]}), tmp_path / "t.pq", row_group_size=700)
    samples = import_samples(tmp_path / "t.pq", tmp_path / "s", dtype="float64", piece_bytes=1 << 10)
    np.testing.assert_array_equal(samples.values(), values)


def test_damaged_parquet(tmp_path):
    pq.write_table(pa.table({"x": np.arange(999.0), "l": [[1]] * 999}), tmp_path / "t.parquet")
    with pytest.raises(FormatError, match="column 'l' holds lists"):
        import_samples(tmp_path / "t.parquet", tmp_path / "s", label="l")
    whole = (tmp_path / "t.parquet").read_bytes()
    for content in (b"", whole[:-100], whole[:10] + bytes(200) + whole[210:]):
        (tmp_path / "t.parquet").write_bytes(content)
        with pytest.raises(FormatError, match=r"t\.parquet: cannot be read"):
            import_samples(tmp_path / "t.parquet", tmp_path / "s", columns=["x"])


# NumPy


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8", "int16", "uint8", "bool", "float16"])
@pytest.mark.parametrize("name", ["npy", "npz", "packed npz"])
def test_numpy_is_read_in_any_layout(tmp_path, order, dtype, name):
    values = np.random.default_rng(1).integers(0, 100, (77, 3)).astype(dtype, order=order)
    path = tmp_path / f"t.{name.split()[-1]}"
    if name == "npy":
        np.save(path, values)
    else:
        (np.savez_compressed if "packed" in name else np.savez)(path, anything=values)
    samples = import_samples(path, tmp_path / "s", dtype="float64", piece_bytes=300)
    np.testing.assert_array_equal(samples.values(), values.astype("float64"))
    assert samples.columns == ("0", "1", "2")


def test_columns_of_a_matrix(tmp_path):
    values = np.array([[1, 12345678, 0.5], [2, 12345679, 2], [3, NAN, 1]])
    np.save(tmp_path / "t.npy", values)
    samples = import_samples(tmp_path / "t.npy", tmp_path / "s", label=1, weight=2)
    assert (labels_of(samples), samples.weights().tolist()) == (["12345678", "12345679", None], [0.5, 2, 1])
    assert (samples.values().tolist(), samples.columns) == ([[1], [2], [3]], ("0",))


@pytest.mark.parametrize("labels", [["u", "v", "u"], [b"u", b"v", b"u"], [7, 12345678, 7], [0.5, 2.0, 0.5]])
def test_labels_and_weights_beside_a_matrix(tmp_path, labels):
    arrays = {"values": ROWS, "other": ROWS * 2, "k": np.array(labels), "w": np.array([[1], [2], [3]])}
    np.savez(tmp_path / "t.npz", **arrays)
    samples = import_samples(tmp_path / "t.npz", tmp_path / "s", label="k", weight="w", dtype="float64")
    np.testing.assert_array_equal(samples.values(), ROWS)
    want = {b"u": "u", b"v": "v", 2.0: "2"}
    assert labels_of(samples) == [str(want.get(label, label)) for label in labels]
    assert samples.weights().tolist() == [1, 2, 3]
    for change, fault in (
        ({"label": "kind"}, "no array 'kind'; there are 'values', 'other', 'k', 'w'"),
        ({"label": "other"}, r"'other' holds float64 of shape \(3, 2\) for 3 samples; give one"),
        ({"columns": [0, 0]}, "chosen twice"),
    ):
        with pytest.raises(FormatError, match=fault):
            import_samples(tmp_path / "t.npz", tmp_path / "t", **change)


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        (
            np.ones(3),
            r"holds float64 of shape \(3,\); give a matrix of numbers, .*\(one column: reshape",
        ),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array([["a", "b"]]), "holds <U1"),
        (np.array([[1j]]), "holds complex128"),
        (np.array([(1.0, 2)], [("x", "f8"), ("y", "i4")]), "give a matrix"),
        (np.array([[None]]), "holds object"),
        (np.empty((0, 3)), "there are no rows"),
        (np.empty((3, 0)), "no column of values"),
        (np.array([[1, np.inf]]), "column '1' is inf"),
    ],
)
def test_arrays_that_are_no_samples(tmp_path, array, fault):
    np.save(tmp_path / "t.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match=rf"t\.npy.*{fault}"):
        import_samples(tmp_path / "t.npy", tmp_path / "s")
    assert os.listdir(tmp_path) == ["t.npy"]


def test_archives_that_hold_no_samples(tmp_path):
    for arrays, fault in (
        ({"a": ROWS, "b": ROWS}, "has 2 matrices, but only one can be the samples; call that one `values`"),
        ({"a": np.ones(3)}, r"has 0 matrices, .*\(there are 'a'\)"),
        ({}, "there are none"),
        ({"values": np.array([["a", "b"]])}, "holds <U1"),
    ):
        np.savez(tmp_path / "t.npz", **arrays)
        with pytest.raises(FormatError, match=fault):
            import_samples(tmp_path / "t.npz", tmp_path / "s")


@pytest.mark.parametrize("name", ["npy", "npz", "packed.npz"])
def test_damaged_arrays(tmp_path, name):
    values = np.random.default_rng(0).normal(size=(5000, 3))
    path = tmp_path / f"t.{name}"
    (np.save if name == "npy" else np.savez if name == "npz" else np.savez_compressed)(path, values)
    whole = path.read_bytes()
    broken = [b"", b"not an array", whole[:40], whole[:50_000]]
    if "npz" in name:
        broken.append(whole[:60_000] + bytes(2000) + whole[62_000:])
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(FormatError, match=rf"t\.{name}"):
            import_samples(path, tmp_path / "s")


# Cytometry


def test_fcs_is_read_by_the_labels_of_its_channels(tmp_path):
    events = np.random.default_rng(0).normal(size=(500, 4)).astype("float32") * 1000
    fcs(tmp_path / "t.fcs", events, ["FSC-A", "FL1-A", "FL2-A", "FL3-A"], ["", " CD3 ", "CD4", "CD4"])
    samples = import_samples(tmp_path / "t.fcs", tmp_path / "s")
    assert samples.columns == ("FSC-A", "CD3", "FL2-A", "FL3-A")  # a label that two share tells nothing
    np.testing.assert_array_equal(samples.values(), events)
    chosen = import_samples(tmp_path / "t.fcs", tmp_path / "c", columns=["CD3", 0], scaling="arcsinh", cofactor=150)
    np.testing.assert_allclose(chosen.values(), np.arcsinh(events[:, [1, 0]] / 150), rtol=1e-6)
    fcs(tmp_path / "u.fcs", events, ["a", "b", "c", "d"])
    assert import_samples(tmp_path / "u.fcs", tmp_path / "u").columns == ("a", "b", "c", "d")


def test_fcs_values_are_on_a_linear_scale(tmp_path):
    fcs(tmp_path / "t.fcs", [[2.0, 3.0], [4.0, 5.0]], ["a", "b"], p1g="2.0")
    assert import_samples(tmp_path / "t.fcs", tmp_path / "s").values().tolist() == [[1, 3], [2, 5]]


def test_damaged_fcs(tmp_path):
    fcs(tmp_path / "t.fcs", np.ones((50, 2)), ["a", "b"])
    whole = (tmp_path / "t.fcs").read_bytes()
    for content in (b"", b"x,y\n1,2\n", whole[:3], whole[:30], whole[:300], whole[:-30], whole[:-1]):
        (tmp_path / "t.fcs").write_bytes(content)
        with pytest.raises(FormatError, match=r"t\.fcs: .*(export it as CSV|of a cytometer)"):
            import_samples(tmp_path / "t.fcs", tmp_path / "s")
    assert os.listdir(tmp_path) == ["t.fcs"]


def test_fcs_without_flowio(tmp_path, monkeypatch):
    fcs(tmp_path / "t.fcs", np.ones((5, 2)), ["a", "b"])
    monkeypatch.setitem(sys.modules, "flowio", None)
    with pytest.raises(ImportError, match=r"pip install -e .*\[cytometry\]"):
        import_samples(tmp_path / "t.fcs", tmp_path / "s")


# Any format


def test_a_format_is_named_or_known_by_the_suffix(tmp_path):
    (tmp_path / "t.data").write_text("1.5,-2\n4,1e-3\n7.25,1e5\n")
    with pytest.raises(FormatError, match=r"t\.data: unknown format '\.data'; .*--format csv\|parquet\|.*\|fcs"):
        import_samples(tmp_path / "t.data", tmp_path / "s")
    with pytest.raises(FormatError, match="unknown format 'arff'"):
        import_samples(tmp_path / "t.data", tmp_path / "s", format="arff")
    samples = import_samples(str(tmp_path / "t.data"), tmp_path / "s", format="csv", dtype="float64")
    assert (samples.digest, samples.source) == (write_samples(tmp_path / "w", ROWS).digest, str(tmp_path / "t.data"))
    with open(tmp_path / "T.NPY", "wb") as file:
        np.save(file, ROWS)
    assert import_samples(tmp_path / "T.NPY", tmp_path / "n", dtype="float64").digest == samples.digest


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_is_not_there(tmp_path, format):
    with pytest.raises(FormatError, match=r"nothing: cannot be read \([Nn]o such file.*check the name"):
        import_samples(tmp_path / "nothing", tmp_path / "s", format=format)
    with pytest.raises(FormatError, match=r"cannot be read"):  # a folder
        import_samples(tmp_path, tmp_path / "s", format=format)


def test_a_store_that_exists_is_not_lost(tmp_path):
    write_graph(tmp_path / "g", np.array([0, 1]), np.array([0]), np.ones(1))
    np.save(tmp_path / "t.npy", ROWS)
    with pytest.raises(StoreError, match="g exists already"):
        import_samples(tmp_path / "t.npy", tmp_path / "g")
    with pytest.raises(StoreError, match="is a file, not a store"):
        import_samples(tmp_path / "t.npy", tmp_path / "t.npy", overwrite=True)
    assert np.load(tmp_path / "t.npy").tolist() == ROWS.tolist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_blanks_around_names_count_neither_in_files_nor_in_options(tmp_path, suffix):
    table = pa.table(
        {" lead": [1.0, 2.0], "zinc ": [3.0, 4.0], " kind ": ["a", "b"], " id": [7, 8], "note": [0.0, 1.0]}
    )
    source = tmp_path / f"t{suffix}"
    (pa.csv.write_csv if suffix == ".csv" else pq.write_table)(table, source)
    for blank in "", " ":
        names = {"label": f"{blank}kind", "ids": f"{blank}id", "exclude": [f"note{blank}"]}
        transforms = {f"{blank}lead": "log"}
        found = import_samples(source, tmp_path / "s", transforms=transforms, overwrite=True, **names)
        assert (found.columns, found.scaling.transforms[0][:3]) == (("lead", "zinc"), "log")
        assert import_samples(source, tmp_path / "s", columns=[f"{blank}zinc"], overwrite=True).columns == ("zinc",)

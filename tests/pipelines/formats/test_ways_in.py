"""Ways in: what a file or an object says about samples is kept, or it is said that it cannot be."""

import lzma
import re
import shutil
import struct
import sys
import warnings

import flowutils
import numpy as np
import polars
import pyarrow as pa
import pyarrow.feather
import pytest
import zarr
from commands import invoke, run_command
from damage import flip
from sample_files import fcs, labels_of

from pipelines.formats.errors import FormatError
from pipelines.formats.samples import import_samples
from pipelines.stores.errors import StoreError
from pipelines.stores.samples import open_samples, write_samples

NAN = np.nan
JULIAN = 2459000.5 + np.arange(1000) / 1000


# Types, masks, labels, frames, distinct values


def test_big_endian_doubles_stay_doubles(tmp_path):
    values = np.array([[1.1, 2.2], [3.3, 4.4]])
    samples = write_samples(tmp_path / "s", values.astype(">f8"))
    assert samples.dtype == np.float64
    np.testing.assert_array_equal(samples.values(), values)


def test_a_masked_value_is_missing(tmp_path):
    values = np.ma.masked_array([[1.0, -999.0], [3.0, 4.0]], [[0, 1], [0, 0]])
    samples = write_samples(tmp_path / "s", values, missing=True)
    np.testing.assert_array_equal(samples.values(), [[1, NAN], [3, 4]])
    integers = np.ma.masked_array([[1, -999], [3, 4]], [[0, 1], [0, 0]])
    np.testing.assert_array_equal(write_samples(tmp_path / "i", integers, missing=True).values(), [[1, NAN], [3, 4]])
    with pytest.raises(ValueError, match=r"row 0 \(from 0\), column '1' has no value; declare"):
        write_samples(tmp_path / "t", values)
    weights = np.ma.masked_array([1.0, 5.0], [0, 1])
    with pytest.raises(ValueError, match="row 1 .* has the weight nan"):
        write_samples(tmp_path / "t", np.ones((2, 1)), weights=weights)


def test_a_label_that_is_missing_is_no_class(tmp_path, read):
    import pandas as pd

    labels = ["a", None, NAN, np.float32(NAN), pd.NA, pd.NaT, "NA", "nan", "", b"", 3.0, np.int64(7)]
    samples = write_samples(tmp_path / "w", np.arange(12.0)[:, None], labels=labels)
    assert labels_of(samples) == ["a", *[None] * 9, "3", "7"]
    masked = np.ma.masked_array(["a", "b", "b"], [0, 1, 0])
    assert labels_of(write_samples(tmp_path / "m", np.ones((3, 1)), labels=masked)) == ["a", None, "b"]
    text = read("x,k\n1,a\n2,NA\n3,NaN\n4,null\n5,\n6,N/A\n7,Na\n", label="k")
    assert labels_of(text) == ["a", None, None, None, None, None, "Na"]
    np.savez(tmp_path / "t.npz", values=np.ones((3, 1)), k=np.array(["a", NAN, "b"]))
    assert labels_of(import_samples(tmp_path / "t.npz", tmp_path / "n", label="k")) == ["a", None, "b"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_data_frame_keeps_its_columns_and_nulls(tmp_path, library):
    columns = {"height": [1, None, 3], "width": [0.5, 1.5, None], "tall": [True, False, None]}
    if library == "pandas":
        import pandas as pd

        kinds = {"height": "Int64", "width": "Float64", "tall": "boolean"}
        frame = pd.DataFrame({name: pd.array(column, kinds[name]) for name, column in columns.items()}, index=[7, 5, 9])
    else:
        frame = polars.DataFrame(columns) if library == "polars" else pa.table(columns)
    samples = write_samples(tmp_path / "s", frame, missing=True)
    assert samples.columns == ("height", "width", "tall")
    assert samples.dtype == np.float64
    np.testing.assert_array_equal(samples.values(), [[1, 0.5, 1], [NAN, 1.5, 0], [3, NAN, NAN]])
    assert write_samples(tmp_path / "r", frame, missing=True, columns=["a", "b", "c"]).columns == ("a", "b", "c")
    words = pa.table({"x": [1.0], "k": ["word"]})
    with pytest.raises(ValueError, match="column 'k' of the data frame holds string; keep the columns of numbers"):
        write_samples(tmp_path / "w", words)


def test_values_that_float32_merges_are_said(tmp_path):
    np.save(tmp_path / "t.npy", np.stack([JULIAN, np.arange(1000.0)], axis=1))
    with pytest.warns(
        UserWarning, match=r"t\.npy: float32 merges distinct values of column '0' .*--dtype float64"
    ) as w:
        samples = import_samples(tmp_path / "t.npy", tmp_path / "s")
    assert len(w) == 1
    assert len(np.unique(samples.values()[:, 0])) == 5
    kept = import_samples(tmp_path / "t.npy", tmp_path / "d", dtype="float64")
    assert len(np.unique(kept.values()[:, 0])) == 1000
    scaled = import_samples(tmp_path / "t.npy", tmp_path / "z", scaling="zscore")  # float64 until the offset is gone
    assert len(np.unique(scaled.values()[:, 0])) == 1000
    with pytest.warns(UserWarning, match="float32 merges"):
        write_samples(tmp_path / "i", 2**40 + np.arange(50)[:, None])
    run_command("som", "import", tmp_path / "t.npy", tmp_path / "c", "--dtype", "float64")


def test_rounding_of_ordinary_values_is_no_news(tmp_path):
    rng = np.random.default_rng(0)
    noisy = np.round(rng.normal(size=(5000, 2)), 1) + rng.random((5000, 2)) * 1e-15  # sums of float64 in another order
    for number, values in enumerate((rng.normal(size=(20_000, 3)), np.exp(5 * rng.normal(size=(9000, 2))), noisy)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_samples(tmp_path / f"{number}", values, dtype="float32")


# Damaged files


def test_objects_in_an_archive_are_named_with_their_cure(tmp_path):
    arrays = {"values": np.ones((2, 1)), "k": np.array(["a", None], object), "w": np.array([1, 2], object)}
    np.savez(tmp_path / "t.npz", **arrays)
    for options in ({"label": "k"}, {"weight": "w"}, {"ids": "k"}):
        (name,) = options.values()
        with pytest.raises(FormatError, match=rf"t\.npz: the array '{name}' cannot be read .*not as objects"):
            import_samples(tmp_path / "t.npz", tmp_path / "s", **options)


@pytest.mark.parametrize(
    "error", [struct.error("short"), lzma.LZMAError("corrupt"), AttributeError("none"), AssertionError()]
)
def test_whatever_a_library_raises_is_one_line(tmp_path, monkeypatch, error):
    np.save(tmp_path / "t.npy", np.ones((2, 2)))

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr("numpy.lib.format.read_magic", fail)
    with pytest.raises(FormatError, match=r"t\.npy: .*get a new copy"):
        import_samples(tmp_path / "t.npy", tmp_path / "s")


def test_every_byte_of_a_header_may_be_damaged(tmp_path):
    """Values, or a ValueError that names the file."""
    np.save(tmp_path / "t.npy", np.ones((4, 3)))
    np.savez_compressed(tmp_path / "t.npz", values=np.ones((4, 3)))
    rng, refused = np.random.default_rng(0), []
    for name in ("t.npy", "t.npz"):
        whole = (tmp_path / name).read_bytes()
        for place in range(0, min(len(whole), 400), 3):
            content = bytearray(whole)
            content[place] = rng.integers(256)
            (tmp_path / name).write_bytes(content)
            try:
                import_samples(tmp_path / name, tmp_path / "s", dtype="float64", overwrite=True)
            except ValueError as error:
                refused.append((name, str(error)))
    assert len(refused) > 20
    assert [message for name, message in refused if name not in message] == []


# Text, columns, lines, channels


def test_columns_are_excluded(read):
    text = "a,b,c,d\n1,2,3,x\n5,6,7,y\n"
    samples = read(text, exclude=["b"], label="d")
    assert (samples.columns, samples.values().tolist()) == (("a", "c"), [[1, 3], [5, 7]])
    assert read(text, exclude=[3, "0"]).columns == ("b", "c")
    with pytest.raises(FormatError, match="no column 'z'"):
        read(text, exclude=["z"])
    with pytest.raises(FormatError, match="column 'a' was chosen twice"):
        read(text, exclude=["a"], columns=["a"])


def test_decimal_commas(read):
    text = "x;y;k\n1,5;2;a\n-2,25e3;,5;b\n"
    assert read(text, decimal=",", label="k").values().tolist() == [[1.5, 2], [-2250, 0.5]]
    assert read("1,5\t2\n3,5\t4\n", decimal=",", delimiter="\t").values().tolist() == [[1.5, 2], [3.5, 4]]
    assert read("1,5 2\n3,5  4\n", decimal=",", delimiter="whitespace").values().tolist() == [[1.5, 2], [3.5, 4]]
    with pytest.raises(FormatError, match=r"line 3: column 'x' is '1\.5', not a number"):
        read("x;y\n1,5;2\n1.5;2\n", decimal=",")
    with pytest.raises(FormatError, match="',' cannot be both delimiter and decimal mark"):
        read(text, decimal=",", delimiter=",")
    with pytest.raises(FormatError, match="the decimal mark is '·'"):
        read(text, decimal="·")


def test_tables_parted_by_blanks(read, monkeypatch):
    text = '  x   y\t k\n 1.5  2  "a  b"\n\n2.5\t\t3 b  \r\n3.5 4 c'
    samples = read(text, delimiter="whitespace", label="k")
    assert (samples.columns, samples.values().tolist()) == (("x", "y"), [[1.5, 2], [2.5, 3], [3.5, 4]])
    assert labels_of(samples) == ["a  b", "b", "c"]
    with pytest.raises(FormatError, match="line 3: has 3 fields, expected 2; .* whitespace separates the fields"):
        read("1 2\n3  4\n 5 6 7\n", delimiter="whitespace")
    with pytest.raises(FormatError, match="line 2, column 'y' has no value"):
        read("x y\n 1   NA\n", delimiter="whitespace")
    monkeypatch.setattr("pipelines.formats.text_file.BLOCK_BYTES", 64)
    values = np.random.default_rng(0).normal(size=(200, 3))
    lines = [f" {a!r}  {b!r}\t {c!r} " for a, b, c in values.tolist()]
    np.testing.assert_array_equal(read("\n".join(lines), delimiter="whitespace").values(), values)


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        ("x,y\n1,2\n\n3,\n", {}, "line 4, column 'y' has no value; declare"),
        ('"x\n",y\n1,2\n"3",-inf\n', {}, "line 4, column 'y' is -inf"),
        ("1,2\n3,1e200\n", {"dtype": "float32"}, r"line 2, column '1' is 1e\+200"),
        ("x,w\n1,1\n2,-3\n", {"weight": "w"}, r"line 3 has the weight -3\.0"),
        ("x,y\n1,2\n,\n", {"missing": True}, "line 3 has no value at all"),
        ("x,y\n1,2\n3,0\n", {"transforms": {"y": "log"}}, r"line 3, column 'y' is 0\.0, which has no log"),
    ],
)
@pytest.mark.parametrize("rows_before", [0, 3000])
def test_faults_of_values_are_named_by_line(read, text, options, fault, rows_before):
    if rows_before:
        head, rest = text.split("\n1,", 1) if not text.startswith("1,") else ("", text[2:])
        text = f"{head}\n" * bool(head) + "1,1\n" * rows_before + "1," + rest
        line = int(re.search(r"line (\d+)", fault)[1])
        fault = fault.replace(f"line {line}", f"line {line + rows_before}")
    with pytest.raises(FormatError, match=rf"t\.csv, {fault}"):
        read(text, piece_bytes=1 << 14, **options)


def test_a_value_beyond_the_scale_of_a_map_is_named_by_line(read, tmp_path):
    first = read("x,y\n1,2\n2,3\n", scaling="zscore", dtype="float32")
    shutil.move(first.path, tmp_path / "like")
    with pytest.raises(FormatError, match=r"t\.csv, line 3, column 'y' is 2e\+99 once it is scaled"):
        read("x,y\n1,2\n1,1e99\n", like=tmp_path / "like", dtype=None)


def test_channels_are_named_by_detector_or_marker(tmp_path):
    events = np.arange(20.0).reshape(5, 4)
    fcs(tmp_path / "t.fcs", events, ["FSC-A", "FL1-A", "FL2-A", "FL3-A"], ["", "CD3", "CD4", "CD4"])
    by_detector = import_samples(tmp_path / "t.fcs", tmp_path / "a", columns=["FL1-A", "FL3-A"])
    assert (by_detector.columns, by_detector.values().tolist()) == (("FL1-A", "FL3-A"), events[:, [1, 3]].tolist())
    by_marker = import_samples(tmp_path / "t.fcs", tmp_path / "b", columns=["CD3", "FSC-A"], weight="FL2-A")
    assert (by_marker.columns, by_marker.weights().tolist()) == (("CD3", "FSC-A"), events[:, 2].tolist())
    assert import_samples(tmp_path / "t.fcs", tmp_path / "c", exclude=["FL1-A"]).columns == ("FSC-A", "FL2-A", "FL3-A")
    with pytest.raises(FormatError, match="several columns are called 'CD4'; name one of 'FL2-A', 'FL3-A'"):
        import_samples(tmp_path / "t.fcs", tmp_path / "d", columns=["CD4"])


# Add 2: several files, compensation, transforms, other formats; ids


def test_several_files_become_one_store(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("y,x\n6,5\n")
    np.save(tmp_path / "c.npy", np.array([[7.0, 8.0]]))
    samples = import_samples([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "s")
    assert samples.values().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert samples.origins == ((str(tmp_path / "a.csv"), 0), (str(tmp_path / "b.csv"), 2))
    assert samples.origin_codes().tolist() == [0, 0, 1]
    assert samples.origin_codes(1, 3).tolist() == [0, 1]
    samples.verify()
    (tmp_path / "b.csv").write_text("y,x\n6,5\n\n7,inf\n")
    with pytest.raises(FormatError, match=r"b\.csv, line 4, column 'x' is inf"):
        import_samples([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "t")
    with pytest.raises(FormatError, match=r"c\.npy: lacks the column 'x', which .*a\.csv has; .*--columns"):
        import_samples([tmp_path / "a.csv", tmp_path / "c.npy"], tmp_path / "t")
    with pytest.raises(ValueError, match="there is no source"):
        import_samples([], tmp_path / "t")
    assert import_samples([tmp_path / "c.npy", tmp_path / "c.npy"], tmp_path / "n", scaling="none").n == 2
    result = invoke("som", "import", *(str(tmp_path / name) for name in ("a.csv", "a.csv", "cli")))
    assert "4 x 2 float32 samples; from 2 files" in result.output


def test_a_file_of_a_cytometer_is_compensated_by_its_matrix(tmp_path):
    true = np.random.default_rng(0).random((200, 2)) * 1000
    spill = np.array([[1.0, 0.25], [0.1, 1.0]])  # dye 0 shines into detector 1 with a quarter of its light
    measured = np.column_stack([np.arange(200.0), true @ spill])
    matrix = "2,FL2-A,FL1-A,1.0,0.1,0.25,1.0"  # in an order of its own
    fcs(tmp_path / "t.fcs", measured, ["FSC-A", "FL1-A", "FL2-A"], ["", "CD3", "CD4"], spillover=matrix)
    raw = import_samples(tmp_path / "t.fcs", tmp_path / "r")
    np.testing.assert_allclose(raw.values(), measured, rtol=1e-6)
    assert not raw.compensated
    # By hand, entry by entry: spill[i, j] is the part of dye i in detector j.
    a, b = measured[:, 2], measured[:, 1]  # FL2-A, FL1-A
    determinant = 1.0 * 1.0 - 0.1 * 0.25
    by_hand = np.column_stack([(b * 1.0 - a * 0.1) / determinant, (a * 1.0 - b * 0.25) / determinant])
    found = import_samples(tmp_path / "t.fcs", tmp_path / "s", compensate=True)
    np.testing.assert_allclose(found.values()[:, 1:], by_hand, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(found.values()[:, 0], np.arange(200))
    assert found.compensated
    assert import_samples(tmp_path / "t.fcs", tmp_path / "l", like=found).digest == found.digest
    for text, fault in (
        (None, "has no spillover matrix"),
        ("2,FL1-A,FL9-A,1,0,0,1", "cannot be used"),
        ("2,FL1-A,FL2-A,1,0,0", "cannot be used"),
        ("2,FL1-A,FL2-A,1,1,1,1", "cannot be used"),
        ("x", "cannot be used"),
    ):
        facts = {} if text is None else {"spill": text}
        fcs(tmp_path / "u.fcs", measured, ["FSC-A", "FL1-A", "FL2-A"], **facts)
        with pytest.raises(FormatError, match=rf"u\.fcs: .*{fault}"):
            import_samples(tmp_path / "u.fcs", tmp_path / "u", compensate=True)


def test_spill_of_a_hand_made_case_is_undone_exactly(tmp_path):
    """One cell of 100 units of dye A alone, one of 200 of dye B: as measured, and as they are."""
    fcs(tmp_path / "t.fcs", [[100, 20], [10, 200]], ["A", "B"], spillover="2,A,B,1,0.2,0.05,1")
    found = import_samples(tmp_path / "t.fcs", tmp_path / "s", compensate=True, dtype="float64")
    np.testing.assert_allclose(found.values(), [[100, 0], [0, 200]], atol=1e-4)


@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax"])
def test_columns_are_transformed_each_in_its_way(tmp_path, scaling):
    values = np.random.default_rng(1).random((300, 4)) * [1e3, 1e4, 1e4, 1e5] + 1
    values[5, 1] = np.nan
    names, transforms = ["FSC", "FL1", "FL2", "FL3"], {"FL*": "arcsinh:150", "FL2": "log", "FL3": "logicle"}
    options = {"columns": names, "scaling": scaling, "missing": True}
    samples = write_samples(tmp_path / "s", values, transforms=transforms, **options)
    logicle = flowutils.transforms.logicle(values, [3])[:, 3]
    want = np.column_stack([values[:, 0], np.arcsinh(values[:, 1] / 150), np.log10(values[:, 2]), logicle])
    plain = write_samples(tmp_path / "p", want, **options)
    np.testing.assert_allclose(samples.values(), plain.values(), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(samples.scaling.undo(samples.values()), values, rtol=1e-9)
    assert samples.scaling.transforms == ("", "arcsinh:150", "log", "logicle")
    np.save(tmp_path / "t.npy", values)
    assert open_samples(samples.path).scaling == samples.scaling
    samples.verify()
    again = write_samples(tmp_path / "a", values, columns=names, scaling=samples.scaling, missing=True)
    assert again.digest == samples.digest
    unscaled = write_samples(tmp_path / "u", values, columns=names, missing=True)
    np.testing.assert_allclose(unscaled.in_scaling(samples.scaling).values(), samples.values(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("transforms", "fault"),
    [
        ({"x": "sqrt"}, "there is no transform 'sqrt'; choose arcsinh:COFACTOR"),
        ({"z": "log"}, "there is no column 'z' to transform; columns are 'x'"),
        ({"x": "arcsinh:0"}, "has invalid parameters"),
        ({"x": "arcsinh:five"}, "has invalid parameters"),
        ({"x": "arcsinh:1:2"}, "has invalid parameters"),
        ({"x": "logicle:262144:9"}, "has invalid parameters"),
    ],
)
def test_transforms_that_cannot_be_are_named(tmp_path, transforms, fault):
    with pytest.raises(ValueError, match=fault):
        write_samples(tmp_path / "s", np.ones((2, 1)), columns=["x"], transforms=transforms)
    with pytest.raises(ValueError, match="give one or the other"):
        write_samples(tmp_path / "s", np.ones((2, 1)), transforms={"0": "log"}, scaling="arcsinh")


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated")  # anndata asks pandas 3 for it
@pytest.mark.parametrize("dense", [True, False])
def test_h5ad_is_read_with_its_observations(tmp_path, dense):
    anndata, pandas, sparse = (pytest.importorskip(name) for name in ("anndata", "pandas", "scipy.sparse"))
    values = np.random.default_rng(0).normal(size=(50, 3)).astype("f4")
    values *= values > 0
    obs = pandas.DataFrame(
        {"kind": pandas.Categorical(["a", "b", None, "a", "b"] * 10), "w": np.arange(50.0) + 1},
        index=[f"cell {i}" for i in range(50)],
    )
    matrix = values if dense else sparse.csr_matrix(values)
    data = anndata.AnnData(matrix, obs=obs, var=pandas.DataFrame(index=["g1", "g2", "g3"]))
    data.write_h5ad(tmp_path / "t.h5ad")
    samples = import_samples(tmp_path / "t.h5ad", tmp_path / "s", label="kind", weight="w")
    assert samples.columns == ("g1", "g2", "g3")
    np.testing.assert_array_equal(samples.values(), values)
    assert labels_of(samples) == ["a", "b", None, "a", "b"] * 10
    assert (samples.ids(7, 9), samples.weights(0, 2).tolist()) == (["cell 7", "cell 8"], [1, 2])
    assert import_samples(tmp_path / "t.h5ad", tmp_path / "c", columns=["g3"]).columns == ("g3",)
    with pytest.raises(FormatError, match=r"t\.h5ad: the observations have no column 'x'; columns are 'kind', 'w'"):
        import_samples(tmp_path / "t.h5ad", tmp_path / "u", label="x")
    (tmp_path / "t.h5ad").write_bytes((tmp_path / "t.h5ad").read_bytes()[:3000])
    with pytest.raises(FormatError, match=r"t\.h5ad: cannot be read"):
        import_samples(tmp_path / "t.h5ad", tmp_path / "u")


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated")
def test_layers_of_h5ad(tmp_path):
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    layers = {"counts": np.arange(30.0).reshape(10, 3), "scaled": sparse.csr_matrix(np.eye(10, 3))}
    for matrix in ({"X": np.zeros((10, 3))}, {"shape": (10, 3)}):
        anndata.AnnData(**matrix, layers=dict(layers)).write_h5ad(tmp_path / "t.h5ad")
        for name, layer in layers.items():
            samples = import_samples(tmp_path / "t.h5ad", tmp_path / "s", layer=name, piece_bytes=100, overwrite=True)
            np.testing.assert_array_equal(samples.values(), layer if name == "counts" else layer.toarray())
    with pytest.raises(
        FormatError, match=r"t\.h5ad: has no matrix X; name a layer \(layer, --layer\): 'counts', 'scaled'"
    ):
        import_samples(tmp_path / "t.h5ad", tmp_path / "u")
    with pytest.raises(FormatError, match=r"t\.h5ad: there is no layer 'raw'; layers are 'counts', 'scaled'"):
        import_samples(tmp_path / "t.h5ad", tmp_path / "u", layer="raw")
    (tmp_path / "t.csv").write_text("1,2\n")
    with pytest.raises(FormatError, match=r"t\.csv: layer \(--layer\) is for \.h5ad files; leave it out"):
        import_samples(tmp_path / "t.csv", tmp_path / "u", layer="raw")
    command = ["som", "import", *(str(tmp_path / name) for name in ("t.h5ad", "cli")), "--layer", "counts"]
    assert "10 x 3 float32 samples" in invoke(*command).output


def test_h5ad_without_anndata(tmp_path, monkeypatch):
    (tmp_path / "t.h5ad").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r"pip install -e .*\[anndata\]"):
        import_samples(tmp_path / "t.h5ad", tmp_path / "s")


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_of_others_is_read(tmp_path, version):
    values = np.random.default_rng(0).normal(size=(70, 3))
    group = zarr.open_group(tmp_path / "t.zarr", mode="w", zarr_format=version)
    for name in ("first", "X"):
        group.create_array(name, data=values, chunks=(16, 2))
    group.create_array("kinds", data=np.arange(70))
    samples = import_samples(tmp_path / "t.zarr", tmp_path / "s", dtype="float64")
    np.testing.assert_array_equal(samples.values(), values)
    one = import_samples(tmp_path / "t.zarr" / "first", tmp_path / "o", format="zarr", columns=[2, 0], dtype="float64")
    np.testing.assert_array_equal(one.values(), values[:, [2, 0]])
    group.create_array("values", data=values)
    del group["X"], group["values"]
    group.create_array("second", data=values)
    with pytest.raises(FormatError, match=r"t\.zarr: a group of 2 matrices"):
        import_samples(tmp_path / "t.zarr", tmp_path / "u")
    with pytest.raises(FormatError, match=r"kinds: holds int64 of shape \(70,\)"):
        import_samples(tmp_path / "t.zarr" / "kinds", tmp_path / "u", format="zarr")


@pytest.mark.parametrize("kind", ["feather", "file", "stream"])
def test_arrow_is_read(tmp_path, kind):
    table = pa.table({"x": [1.0, None, 3.0], "n": pa.array([1, 2, 3], pa.uint8()), "k": ["u", None, "NA"]})
    if kind == "feather":
        pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(tmp_path / "t.arrow", table.schema) as sink:
            sink.write_table(table, max_chunksize=2)
    samples = import_samples(tmp_path / "t.arrow", tmp_path / "s", label="k", missing=True, dtype="float64")
    np.testing.assert_array_equal(samples.values(), [[1, 1], [NAN, 2], [3, 3]])
    assert (samples.columns, labels_of(samples)) == (("x", "n"), ["u", None, None])
    (tmp_path / "t.arrow").write_bytes((tmp_path / "t.arrow").read_bytes()[:60])
    with pytest.raises(FormatError, match=r"t\.arrow: cannot be read"):
        import_samples(tmp_path / "t.arrow", tmp_path / "s", label="k", overwrite=True)


def test_ids_of_samples_are_kept(tmp_path, read):
    text = "id,x,k\nu 1,1,a\nü,2,b\n,3,a\n007,4,b\n"
    samples = read(text, ids="id", label="k")
    assert (samples.columns, samples.ids(), samples.identified) == (("x",), ["u 1", "ü", "", "007"], True)
    assert samples.ids(1, 3) == ["ü", ""]
    assert "every chunk of values, labels, label_names and ids" in samples.verify().checked[0]
    with pytest.raises(StoreError, match=r"no ids; .*--id"):
        read(text, columns=["x"]).ids()
    np.savez(tmp_path / "t.npz", values=np.ones((2, 1)), names=np.array(["p", "q"]))
    assert import_samples(tmp_path / "t.npz", tmp_path / "n", ids="names").ids() == ["p", "q"]
    many = write_samples(tmp_path / "m", np.ones((10, 1)), ids=np.arange(10) * 5, chunk_rows=3)
    assert many.ids() == [str(5 * i) for i in range(10)]
    many.verify()
    flip(tmp_path / "m" / "ids" / "c" / "1")
    with pytest.raises(StoreError, match="damaged"):
        many.verify()

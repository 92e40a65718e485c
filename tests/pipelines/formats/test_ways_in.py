"""Ways in: what a file or an object says about samples is kept, or it is said that it cannot be."""

import warnings

import numpy as np
import polars
import pyarrow as pa
import pyarrow.feather
import pytest
from click.testing import CliRunner

from pipelines.formats.samples import import_samples
from pipelines.stores.samples import write_samples
from tilepath import cli

NAN = np.nan
JULIAN = 2459000.5 + np.arange(1000) / 1000


def labels_of(samples):
    names = [*samples.label_names(), None]
    return [names[code] for code in samples.labels()]


@pytest.fixture
def read(tmp_path):
    """``read(text, **options)``: the samples store imported from a text file of that content."""

    def write(content, name="t.csv", **options):
        (tmp_path / name).write_text(content)
        return import_samples(tmp_path / name, tmp_path / "s", overwrite=True, **({"dtype": "float64"} | options))

    return write


# Mend 1: types, masks, labels, frames, distinct values


def test_m1_big_endian_doubles_stay_doubles(tmp_path):
    values = np.array([[1.1, 2.2], [3.3, 4.4]])
    samples = write_samples(tmp_path / "s", values.astype(">f8"))
    assert samples.dtype == np.float64
    np.testing.assert_array_equal(samples.values(), values)


def test_m1_a_masked_value_is_missing(tmp_path):
    values = np.ma.masked_array([[1.0, -999.0], [3.0, 4.0]], [[0, 1], [0, 0]])
    samples = write_samples(tmp_path / "s", values, missing=True)
    np.testing.assert_array_equal(samples.values(), [[1, NAN], [3, 4]])
    integers = np.ma.masked_array([[1, -999], [3, 4]], [[0, 1], [0, 0]])
    np.testing.assert_array_equal(write_samples(tmp_path / "i", integers, missing=True).values(), [[1, NAN], [3, 4]])
    with pytest.raises(ValueError, match=r"row 0 \(from 0\), column '1' is nan; declare"):
        write_samples(tmp_path / "t", values)
    weights = np.ma.masked_array([1.0, 5.0], [0, 1])
    with pytest.raises(ValueError, match="row 1 .* has the weight nan"):
        write_samples(tmp_path / "t", np.ones((2, 1)), weights=weights)


def test_m1_a_label_that_is_missing_is_no_class(tmp_path, read):
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
def test_m1_a_data_frame_keeps_its_columns_and_nulls(tmp_path, library):
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


def test_m1_values_that_float32_merges_are_said(tmp_path):
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
    result = CliRunner().invoke(
        cli.command.tilepath, ["som", "import", str(tmp_path / "t.npy"), str(tmp_path / "c"), "--dtype", "float64"]
    )
    assert result.exit_code == 0, result.output


def test_m1_rounding_of_ordinary_values_is_no_news(tmp_path):
    rng = np.random.default_rng(0)
    noisy = np.round(rng.normal(size=(5000, 2)), 1) + rng.random((5000, 2)) * 1e-15  # sums of float64 in another order
    for number, values in enumerate((rng.normal(size=(20_000, 3)), np.exp(5 * rng.normal(size=(9000, 2))), noisy)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_samples(tmp_path / f"{number}", values, dtype="float32")

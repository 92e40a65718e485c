"""What goes out of maps, read back by the libraries of others."""

import os
import shutil

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from commands import invoke

from pipelines import export_map, map_samples, train_som
from pipelines.formats.samples import import_samples
from pipelines.som.heights import u_matrix
from pipelines.stores.errors import StoreError
from pipelines.stores.mapping import open_mapping
from pipelines.stores.samples import write_samples


@pytest.fixture(scope="module")
def placed(client, tmp_path_factory):
    """A folder with samples of two files, a map of 3 x 4 units and a mapping; ids and labels, one of them missing."""
    folder = tmp_path_factory.mktemp("placed")
    rng = np.random.default_rng(0)
    for name, first, n in (("a", 0, 5000), ("b", 5000, 300)):
        rows = [
            f"c {i},{x!r},{y!r},{'' if i == 7 else 'even' if i % 2 == 0 else 'odd'}"
            for i, (x, y) in enumerate(rng.normal(size=(n, 2)).tolist(), first)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["id,x,y,kind", *rows]))
    options = {"ids": "id", "label": "kind", "scaling": "zscore", "dtype": "float64"}
    samples = import_samples([folder / "a.csv", folder / "b.csv"], folder / "s", **options)
    found = train_som(client, samples, folder / "m", 3, 4, epochs=3)
    map_samples(client, found, samples, folder / "p")
    return folder


def table(path):
    found = pq.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    return found.to_pydict()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz", "tsv.gz"])
def test_units_of_samples_are_a_table(placed, tmp_path, suffix):
    mapping, out = open_mapping(placed / "p"), tmp_path / f"u.{suffix}"
    assert len(list(mapping.ranges())) > 1
    export_map(mapping, out)
    if suffix == "tsv.gz":
        found = pyarrow.csv.read_csv(out, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")).to_pydict()
    else:
        found = table(out)
    assert list(found) == [
        *("row", "id", "origin", "unit", "unit_row", "unit_column"),
        *("distance", "second_unit", "second_distance", "label"),
    ]
    assert found["row"] == list(range(5300))
    assert found["id"] == [f"c {i}" for i in range(5300)]
    assert found["origin"] == [str(placed / "a.csv")] * 5000 + [str(placed / "b.csv")] * 300
    absent = None if suffix == "parquet" else ""
    assert found["label"] == [absent if i == 7 else "even" if i % 2 == 0 else "odd" for i in range(5300)]
    units, distances = mapping.units(), mapping.distances()
    assert np.array_equal(np.column_stack([found["unit"], found["second_unit"]]), units)
    assert np.array_equal(np.column_stack([found["distance"], found["second_distance"]]), distances)
    assert [4 * r + c for r, c in zip(found["unit_row"], found["unit_column"], strict=True)] == found["unit"]


def test_the_map_is_tables_and_arrays(placed, tmp_path):
    found, mapping = train(placed), open_mapping(placed / "p")
    raw = np.genfromtxt(placed / "a.csv", delimiter=",", skip_header=1)[:, 1:3]
    values = found.scaling.undo(found.units())
    assert raw.min() < values.min() < values.max() < raw.max()
    for what, array, names in (
        ("codebook", values, ["x", "y"]),
        ("hits", found.hits(), ["hits"]),
        ("u-matrix", u_matrix(found.units(), found.grid), ["u_matrix"]),
    ):
        for suffix in ("csv", "parquet"):
            export_map(placed / "m", tmp_path / f"{what}.{suffix}", what)
            columns = table(tmp_path / f"{what}.{suffix}")
            assert list(columns) == ["unit", "unit_row", "unit_column", *names]
            assert columns["unit"] == list(range(12))
            np.testing.assert_array_equal(np.array([columns[name] for name in names]).T.reshape(array.shape), array)
        export_map(placed / "m", tmp_path / f"{what}.npy", what)
        by_grid = np.load(tmp_path / f"{what}.npy")
        assert by_grid.shape == (3, 4, *array.shape[1:])
        np.testing.assert_array_equal(by_grid[2, 1], array[9])
    export_map(placed / "m", tmp_path / "scaled.npy", scaled=True)
    np.testing.assert_array_equal(np.load(tmp_path / "scaled.npy").reshape(12, 2), found.units())
    export_map(mapping, tmp_path / "hits.npy", "hits", overwrite=True)
    np.testing.assert_array_equal(np.load(tmp_path / "hits.npy").ravel(), found.hits())


def train(placed):
    from pipelines.stores.codebook import open_codebook

    return open_codebook(placed / "m")


@pytest.mark.parametrize(
    ("store", "name", "what", "fault"),
    [
        ("m", "x.csv", "units", "is a map; name a mapping"),
        ("p", "x.csv", "codebook", "is a mapping, which has units and hits"),
        ("p", "x.npy", "units", "units of samples are a table"),
        ("m", "x.txt", "hits", r"tables are \.csv"),
        ("m", "x.csv", "labels", "there is no 'labels' to export"),
        ("s", "x.csv", None, "name a map or a mapping"),
    ],
)
def test_what_cannot_be_exported_is_named(placed, tmp_path, store, name, what, fault):
    with pytest.raises(ValueError, match=fault):
        export_map(placed / store, tmp_path / name, what)
    assert os.listdir(tmp_path) == []


def test_a_file_is_replaced_when_told_and_whole(placed, tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("mine")
    with pytest.raises(FileExistsError, match=r"x\.csv exists already; .*--overwrite"):
        export_map(placed / "m", tmp_path / "x.csv")
    monkeypatch.setattr("pipelines.som.tables._units_of", fail_at(5000))
    with pytest.raises(RuntimeError, match="the plug"):
        export_map(placed / "p", tmp_path / "x.csv", overwrite=True)
    assert os.listdir(tmp_path) == ["x.csv"]
    assert (tmp_path / "x.csv").read_text() == "mine"


def fail_at(row):
    from pipelines.som.tables import _units_of as original

    def made(mapping, samples, start, stop, *others):
        if stop >= row:
            raise RuntimeError("the plug is pulled")
        return original(mapping, samples, start, stop, *others)

    return made


def test_samples_that_were_moved_are_named(client, tmp_path):
    samples = write_samples(tmp_path / "s", np.random.default_rng(0).normal(size=(30, 2)), columns=["unit", "y"])
    map_samples(client, train_som(client, samples, tmp_path / "m", 1, 1, epochs=1), samples, tmp_path / "p")
    shutil.move(tmp_path / "s", tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no longer at .*--samples"):
        export_map(tmp_path / "p", tmp_path / "u.csv")
    export_map(tmp_path / "p", tmp_path / "u.csv", samples=tmp_path / "elsewhere")
    assert list(table(tmp_path / "u.csv")) == ["row", "unit", "unit_row", "unit_column", "distance"]  # one unit
    with pytest.raises(ValueError, match="the map and the table both have a column 'unit'"):
        export_map(tmp_path / "m", tmp_path / "c.csv")
    write_samples(tmp_path / "s", np.ones((30, 2)))
    with pytest.raises(StoreError, match="maps other samples"):
        export_map(tmp_path / "p", tmp_path / "v.csv")


def test_commands_write_tables(placed, tmp_path):
    def som(*arguments):
        result = invoke("som", *arguments)
        return result.output + repr(result.exception)

    options = ("--device", "cpu", "--workers", 1)
    assert "units are a table" not in som(
        "map", placed / "m", placed / "s", tmp_path / "q", "--out", tmp_path / "u.csv", *options
    )
    assert len(table(tmp_path / "u.csv")["row"]) == 5300
    refused = som("map", placed / "m", placed / "s", tmp_path / "r", "--out", tmp_path / "u.csv", *options)
    assert "u.csv exists already" in refused
    assert not (tmp_path / "r").exists()  # found before the work
    som("export", placed / "m", tmp_path / "c.npy", "--what", "u-matrix")
    assert np.load(tmp_path / "c.npy").shape == (3, 4)

"""Matrices in other libraries, and by names, beside plain Zarr and positions."""

import pickle
import shutil

import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from tiny_stores import RING

from gpuops import memory
from pipelines import all_pairs_shortest_paths, import_graph, positions
from pipelines.stores.codebook import open_codebook
from pipelines.stores.distances import open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.mapping import open_mapping
from pipelines.stores.matrix import open_matrix
from pipelines.stores.paths import open_paths
from pipelines.stores.samples import open_samples, write_samples

NAMES = ["a", "b", "č", "d d", "e"]


@pytest.mark.parametrize(
    ("opened", "name", "rows", "columns"),
    [
        (open_distances, "distances", NAMES, NAMES),
        (open_distances, "rows", ["e", "b"], NAMES),
        (open_paths, "one", ["a"], NAMES),
        (open_paths, "nearest", ["nearest source"], NAMES),
        (open_matrix, "matrix", None, None),
    ],
)
def test_every_library_gets_the_stored_matrix_and_its_names(tiny_stores, opened, name, rows, columns):
    store, plain = opened(tiny_stores / name), zarr.open_array(tiny_stores / name / "distances", mode="r")[:]
    if rows is None:
        rows, columns = (zarr.open_array(tiny_stores / name / axis)[:].tolist() for axis in ("origin", "destination"))
    np.testing.assert_array_equal(store.to_numpy(), plain)
    np.testing.assert_array_equal(np.asarray(store), plain)
    assert np.asarray(store, dtype="float64").dtype == np.float64
    lazy = store.to_dask()
    assert lazy.chunks == dask.array.from_zarr(str(tiny_stores / name), component="distances").chunks
    np.testing.assert_array_equal(lazy.compute(), plain)
    frame = store.to_pandas()
    assert (frame.index.tolist(), frame.columns.tolist()) == (rows, columns)
    assert (frame.index.name, frame.columns.name) == store.dimensions
    np.testing.assert_array_equal(frame.fillna(2**31 - 1).to_numpy(plain.dtype), plain)
    array = store.to_xarray()
    assert dask.is_dask_collection(array.data)
    assert array.attrs == {"unit": "m", "unreachable": np.inf if plain.dtype.kind == "f" else 2**31 - 1}
    pd.testing.assert_frame_equal(array.to_pandas(), frame.fillna(2**31 - 1).astype(plain.dtype))
    opened_plainly = xr.open_zarr(tiny_stores / name, consolidated=False)["distances"]
    np.testing.assert_array_equal(opened_plainly, array)
    known = dict(zip(store.dimensions, (rows, columns), strict=True))
    if rows == ["nearest source"]:
        del known["source"]
    assert {axis: names.values.tolist() for axis, names in opened_plainly.coords.items()} == known
    shown = store.__repr__() + store._repr_html_()
    assert all(str(each) in shown for each in (store.path, *rows[:5], *columns[:5]))


def test_integers_that_stand_for_unreachable_are_missing_in_a_data_frame(client, tmp_path):
    graph = import_graph([("a", "b", 3), ("b", "a", 4), ("b", "c", 5)], tmp_path / "g")
    store = all_pairs_shortest_paths(client, graph, tmp_path / "d")
    frame = store.to_pandas()
    assert frame.loc["a"].tolist() == [0, 3, 8]
    assert frame.isna().to_numpy().tolist() == [[False] * 3, [False] * 3, [True, True, False]]
    assert frame.max().tolist() == [4, 3, 8]
    assert store.at["c", "a"] == 2**31 - 1
    for names in ("a", ("a", "c")):
        with pytest.raises(IndexError, match=r"for names write \.at"):
            store[names]


def test_distances_by_names(tiny_stores):
    store = open_distances(tiny_stores / "distances")
    assert store.at["b", "e"] == 3
    assert store.at["b", positions(4)] == store.at["#1", "e"] == 3
    np.testing.assert_array_equal(store.at["b"], RING[1])
    np.testing.assert_array_equal(store.at[["e", "b", "e"], ["d d", "a"]], RING[np.ix_([4, 1, 4], [3, 0])])
    np.testing.assert_array_equal(store.at["e", pd.Series(["b", "č"])], RING[4, [1, 2]])
    np.testing.assert_array_equal(store.at[positions([2, 0]), "a"], RING[[2, 0], 0])
    some = open_distances(tiny_stores / "rows")
    np.testing.assert_array_equal(some.at[["b", "e"], ["č"]], RING[[1, 4]][:, [2]])
    with pytest.raises(StoreError, match="holds the rows of 2 sources only; vertex 0 is not among them"):
        some.at["a", "b"]
    with pytest.raises(StoreError, match="there is no vertex 'f'; give a label, such as 'a', or a position"):
        store.at["a", "f"]
    with pytest.raises(IndexError, match="3 parts; give the names of rows, or of rows and columns"):
        store.at["a", "b", "č"]


def test_a_matrix_of_origins_and_destinations_by_names(tiny_stores):
    store = open_matrix(tiny_stores / "matrix")
    origins, destinations = store.names()
    for i, origin in enumerate(origins):
        np.testing.assert_array_equal(store.at[origin], store[i])
        assert store.at[origin, destinations[-1]] == store[i, -1]
    with pytest.raises(StoreError, match="there is no vertex 'nowhere'"):
        store.at["nowhere"]


def test_the_nearest_source_has_one_row(tiny_stores):
    store = open_paths(tiny_stores / "nearest")
    first = store.named.names(store.sources[:1])[0]
    np.testing.assert_array_equal(store.at[first], store.distances(0))


def test_a_matrix_beyond_memory_is_refused_but_read_by_chunks(tiny_stores, monkeypatch):
    store = open_distances(tiny_stores / "distances")
    monkeypatch.setattr(memory, "_SMALL", 10)
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    for convert in store.to_numpy, store.to_pandas, lambda: np.asarray(store):
        with pytest.raises(ValueError, match=r"its 5 x 5 matrix takes 200 B.*read some rows.*to_dask\(\)"):
            convert()
    assert store.to_dask()[1, 4].compute() == 3


def test_a_missing_chunk_is_damage_in_every_library(tiny_stores, tmp_path):
    shutil.copytree(tiny_stores, tmp_path / "stores")
    store = open_distances(tmp_path / "stores" / "distances")
    (tmp_path / "stores" / "distances" / "distances" / "c" / "1" / "0").unlink()
    lazy = store.to_dask()
    for read in store.to_numpy, lazy.compute, store.to_pandas, lambda: store.at["č"]:
        with pytest.raises(StoreError, match="the chunk c/1/0 is missing"):
            read()
    assert "values cannot be read" in repr(store)


def test_a_store_without_its_graph_shows_why(tiny_stores, tmp_path):
    shutil.copytree(tiny_stores / "distances", tmp_path / "distances")
    store = open_distances(tmp_path / "distances")
    moved = pickle.loads(pickle.dumps(store))
    assert "named" not in vars(moved)
    np.testing.assert_array_equal(moved.to_numpy(), RING)


def test_samples_maps_and_mappings_as_frames(tiny_stores):
    samples = open_samples(tiny_stores / "samples")
    frame = samples.to_pandas()
    assert list(frame) == ["x", "y", "label", "weight"]
    np.testing.assert_array_equal(frame[["x", "y"]], samples.values())
    assert frame["label"].fillna("-").tolist() == ["setosa", "-", "virginica", "setosa"]  # pandas 3 has NaN for None
    codebook = open_codebook(tiny_stores / "codebook")
    frame, array = codebook.to_pandas(), codebook.to_xarray()
    np.testing.assert_array_equal(frame[["x", "y"]], codebook.units())
    assert array.dims == ("row", "column", "feature")
    for row, column, x in zip(frame["row"], frame["column"], frame["x"], strict=True):
        assert array.sel(feature="x")[row, column] == x
    assert frame["hits"].tolist() == codebook.hits().tolist()
    mapping = open_mapping(tiny_stores / "mapping")
    frame = mapping.to_pandas()
    assert list(frame) == ["sample", "unit", "distance", "unit2", "distance2"][: 1 + 2 * mapping.top]
    np.testing.assert_array_equal(frame["unit"], mapping.units()[:, 0])


def test_samples_maps_and_mappings_as_arrays_and_as_text(tiny_stores, monkeypatch):
    samples, codebook = open_samples(tiny_stores / "samples"), open_codebook(tiny_stores / "codebook")
    mapping = open_mapping(tiny_stores / "mapping")
    np.testing.assert_array_equal(np.asarray(samples), samples.values())
    assert np.asarray(samples, "f8").dtype == "f8"
    np.testing.assert_array_equal(np.asarray(codebook), codebook.units())
    np.testing.assert_array_equal(np.asarray(mapping), mapping.units())
    with pytest.raises(ValueError, match="cannot be an array without a copy"):
        np.asarray(samples, copy=False)
    title, head, first, *_ = repr(samples).splitlines()
    assert title == f"<{samples.describe()}>"
    assert head.split() == ["x", "y", "label", "weight"]
    assert first.split() == [*(f"{value:.6g}" for value in samples.values()[0]), "setosa", "1"]
    assert f"<td>{samples.values()[1, 1]:.6g}</td>" in samples._repr_html_()
    for store in codebook, mapping:
        assert repr(store).startswith(f"<{store.describe()}>")
        assert "<table>" in store._repr_html_()
    monkeypatch.setattr(memory, "_SMALL", 10)
    monkeypatch.setattr(memory, "available_memory", lambda: 20)
    with pytest.raises(ValueError, match=r"its values take 64 B.*read some rows \(samples.values\(0, 1000\)\)"):
        np.asarray(samples)


def test_the_text_of_a_table_is_short_and_says_what_is_wrong(tmp_path):
    values = np.arange(7.0 * 20).reshape(7, 20)
    columns = [f"a <column>\n{number:030}" for number in range(20)]
    samples = write_samples(tmp_path / "s", values, columns=columns)
    lines = repr(samples).splitlines()
    assert len(lines) == 8
    assert lines[-1] == "and 2 more"
    assert lines[2].split() == [*map(str, range(12)), "..."]
    assert all(len(word) < 40 for word in lines[1].split("  "))
    assert "a &lt;column&gt; 0" in samples._repr_html_()
    (tmp_path / "s" / "values" / "c" / "0" / "0").unlink()
    assert "rows cannot be read: " in repr(samples)
    assert samples._repr_html_().startswith("<pre>&lt;")

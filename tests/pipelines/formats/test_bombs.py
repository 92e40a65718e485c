"""Files that expand to gigabytes or claim them, that lead to other files, or that hold pickles, are refused.

The tests lower the limits or the free memory that is told, so that small files are too large.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from contextlib import contextmanager

import anndata
import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.lib import format as npy

from pipelines.files.listed_vertices import vertices_in_file
from pipelines.formats.graphs import FormatError, import_graph
from pipelines.formats.samples import import_samples
from pipelines.stores.graph_writer import write_graph

MIB = 1 << 20


@contextmanager
def little_memory(most=10 * MIB):
    """No more than `most` bytes of memory may be taken in the block."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@pytest.fixture
def planted(tmp_path):
    """An object whose pickle makes a folder; none may be there at the end."""

    class Planted:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "planted"),)

    yield Planted()
    assert not (tmp_path / "planted").exists()


# Pickles ------------------------------------------------------------------------------------------------------------


def test_no_pickle_is_loaded_from_numpy_files(tmp_path, planted):
    objects = np.array([[planted]], object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", values=objects)
    np.savez(tmp_path / "y.npz", values=np.ones((1, 1)), kind=objects[0])
    for name, options in (("x.npy", {}), ("x.npz", {}), ("y.npz", {"label": "kind"})):
        with pytest.raises(FormatError, match=rf"{name}: .*(holds object|a pickle)"):
            import_samples(tmp_path / name, tmp_path / "s", **options)


@pytest.mark.parametrize(
    ("dtype", "filters", "compressor"),
    [
        ("|O", [{"id": "pickle", "protocol": 5}], None),
        ("<f8", None, {"id": "pickle"}),
        ("<f8", [{"id": "vlen-utf8"}], {"id": "pickle"}),
        ("|O", [{"id": "vlen-utf8"}], {"id": "pickle"}),
    ],
)
def test_no_pickle_is_loaded_from_zarr_of_version_2(tmp_path, planted, dtype, filters, compressor):
    about = {"zarr_format": 2, "shape": [1, 1], "chunks": [1, 1], "order": "C", "fill_value": None}
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / ".zarray").write_text(
        json.dumps(about | {"dtype": dtype, "filters": filters, "compressor": compressor})
    )
    (tmp_path / "x.zarr" / "0.0").write_bytes(pickle.dumps(np.array([[planted]], object)))
    with pytest.raises(FormatError, match=r"x\.zarr: (cannot be read|holds)"):
        import_samples(tmp_path / "x.zarr", tmp_path / "s")


def test_no_pickle_is_loaded_from_zarr_of_version_3(tmp_path, planted):
    about = {"zarr_format": 3, "node_type": "array", "shape": [1, 1], "data_type": "float64", "fill_value": 0.0}
    about["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}
    about["chunk_key_encoding"] = {"name": "default"}
    about["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "numcodecs.pickle"}]
    (tmp_path / "x.zarr" / "c" / "0").mkdir(parents=True)
    (tmp_path / "x.zarr" / "zarr.json").write_text(json.dumps(about))
    (tmp_path / "x.zarr" / "c" / "0" / "0").write_bytes(pickle.dumps(planted))
    with pytest.raises(FormatError, match=r"x\.zarr: cannot be read"):
        import_samples(tmp_path / "x.zarr", tmp_path / "s")
    assert numcodecs.Pickle.codec_id == "pickle"  # the codec is there, and might be called


# Other files --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["external link", "soft link", "external storage", "virtual", "column"])
def test_h5ad_that_leads_to_another_file(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(16))
    anndata.AnnData(np.ones((2, 1))).write_h5ad(tmp_path / "other.h5ad")
    anndata.AnnData(np.ones((2, 1)), {"kind": [1, 2]}).write_h5ad(tmp_path / "x.h5ad")
    with h5py.File(tmp_path / "x.h5ad", "r+") as file:
        name = "obs/kind" if kind == "column" else "X"
        about = dict(file[name].attrs)
        del file[name]
        if kind in ("external link", "column"):
            file[name] = h5py.ExternalLink(tmp_path / "other.h5ad", "X")
        elif kind == "soft link":
            file[name] = h5py.SoftLink("/obs")
        elif kind == "external storage":
            file.create_dataset(name, (2, 1), "f8", external=[(str(secret), 0, 16)]).attrs.update(about)
        else:
            layout = h5py.VirtualLayout((2, 1), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5ad", "X", (2, 1))
            file.create_virtual_dataset(name, layout).attrs.update(about)
    with pytest.raises(FormatError, match=rf"x\.h5ad: /{name} is a link or lies in another file"):
        import_samples(tmp_path / "x.h5ad", tmp_path / "s")


# Claims and bombs ---------------------------------------------------------------------------------------------------


def header(shape, dtype="<f8", fortran=False):
    """The beginning of a .npy file of this shape."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return file.getvalue()


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def test_numpy_files_that_claim_more_than_they_have(tmp_path):
    (tmp_path / "x.npy").write_bytes(header((2**60, 1)))
    zipped(tmp_path / "rows.npz", values=header((2**60, 1)))
    zipped(tmp_path / "columns.npz", values=header((2**60, 2), fortran=True))
    zipped(tmp_path / "labels.npz", values=header((1, 1)) + bytes(8), kind=header((2**60,)))
    with little_memory():
        for name, options, fault in (
            ("x.npy", {}, "cannot be read"),
            ("rows.npz", {}, "ends before row"),
            ("columns.npz", {}, r"takes 16\.0 EiB of memory, but .* are free; save it by rows"),
            ("labels.npz", {"label": "kind"}, "'kind' holds float64 .* for 1 samples"),
        ):
            with pytest.raises(FormatError, match=f"{name}: .*{fault}"):
                import_samples(tmp_path / name, tmp_path / "s", piece_bytes=MIB, **options)


def test_a_header_of_numpy_that_expands(tmp_path):
    size = 12 * MIB
    zipped(tmp_path / "x.npz", values=b"\x93NUMPY\x02\x00" + struct.pack("<I", size) + b" " * size)
    with little_memory(), pytest.raises(FormatError, match=r"x\.npz.*a header of more than 1,048,576 bytes"):
        import_samples(tmp_path / "x.npz", tmp_path / "s")


@pytest.mark.parametrize("begin", ["<!--", '<a b="', '<key id="d" for="edge"><default>', "<x>" * 201])
def test_graphml_that_expands(tmp_path, monkeypatch, begin):
    monkeypatch.setattr("pipelines.formats.graphs.graphml.MOST_BYTES", 1 << 16)
    (tmp_path / "x.graphml").write_bytes(gzip.compress(b"<graphml>" + begin.encode() + b"x" * 12 * MIB, 1))
    with little_memory(), pytest.raises(FormatError, match=r"x\.graphml, line 1: (an element of more|elements within)"):
        import_graph(tmp_path / "x.graphml", tmp_path / "g")


@pytest.mark.parametrize("name", ["x.gr", "x.mtx", "x.tntp", "x.csv", "x.adj"])
def test_a_line_that_expands(tmp_path, monkeypatch, name):
    monkeypatch.setattr("pipelines.formats.text_file.BLOCK_BYTES", 1 << 14)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(b"x" * 12 * MIB, 1))
    with little_memory(), pytest.raises(FormatError, match=rf"{name}\.gz, line 1: no line break in \d+ bytes"):
        import_graph(tmp_path / f"{name}.gz", tmp_path / "g")


def test_tables_that_expand(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.files.tables.available_memory", lambda: 2 * MIB)
    graph = write_graph(tmp_path / "g", np.arange(3), np.array([1, 0]), np.array([2, 3]))
    rows = b"0\n" * 2 * MIB
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(rows, 1))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"vertex\n" + rows, 1))
    pq.write_table(pa.table({"vertex": np.zeros(MIB // 4, np.int64)}), tmp_path / "x.parquet")
    with little_memory():
        for name in ("x.txt.gz", "x.csv.gz", "x.parquet"):
            with pytest.raises(ValueError, match=rf"{name}: takes more than 1\.0 MiB of memory"):
                vertices_in_file(graph, "source", tmp_path / name)
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"vertex\n" + rows[: MIB // 2]))
    assert len(vertices_in_file(graph, "source", tmp_path / "y.csv.gz")) == MIB // 4

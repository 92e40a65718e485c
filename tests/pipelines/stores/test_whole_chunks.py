"""Chunks written directly have the bytes that Zarr writes."""

import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

from pipelines.stores import whole_chunks
from pipelines.stores.contents import StoredArray
from pipelines.stores.schema import checkpoint_codecs, result_codecs, text_codecs
from pipelines.stores.whole_chunks import WholeChunks, write_text

SHAPES = [
    ((10,), (4,)),
    ((8, 8), (4, 4)),
    ((10, 7), (4, 3)),
    ((5, 6, 4), (2, 6, 4)),
    ((3, 3), (5, 5)),
    ((0, 4), (2, 2)),
]


def array_at(path, shape, chunks, dtype, codecs, fill=7):
    settings = {"shape": shape, "chunks": chunks, "dtype": dtype, "compressors": codecs, "fill_value": fill}
    return zarr.create_array(str(path), **settings, config={"write_empty_chunks": True})


def files(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32", "float64"])
@pytest.mark.parametrize(("shape", "chunks"), SHAPES)
@pytest.mark.parametrize("kind", ["result", "checkpoint"])
def test_the_bytes_are_those_of_zarr(tmp_path, dtype, shape, chunks, kind):
    codecs = result_codecs(np.dtype(dtype)) if kind == "result" else checkpoint_codecs()
    values = np.random.default_rng(1).integers(0, 90, shape).astype(dtype)
    for name in "zarr", "whole":
        array_at(tmp_path / name, shape, chunks, dtype, codecs)
    zarr.open_array(str(tmp_path / "zarr")).with_config({"write_empty_chunks": True})[...] = values
    array = WholeChunks(str(tmp_path), "whole")
    array[tuple(slice(0, size) for size in shape)] = values
    assert files(tmp_path / "whole") == files(tmp_path / "zarr")
    np.testing.assert_array_equal(StoredArray(str(tmp_path), "whole")[...], values)


@pytest.mark.parametrize(
    ("texts", "chunks"),
    [
        (range(1, 1234), (77, 500)),
        (range(1), (1, 7)),
        (range(7, 7), (1, 7)),
        (range(99_998, 100_003), (1, 7)),
        (range(-12, 25), (1, 7, 500)),
        (["", "a", "Zürich", "\U0001f5fa"] * 9, (1, 7, 500)),
    ],
)
def test_text_has_the_bytes_of_zarr(tmp_path, texts, chunks):
    """Numbers of several widths, within a chunk and across, and an end within a chunk."""
    strings = [str(text) for text in texts]
    for rows in chunks:
        group = zarr.open_group(str(tmp_path / str(rows)), mode="w")
        settings = {"shape": (len(texts),), "chunks": (rows,), "dtype": str, "compressors": text_codecs()}
        array = group.create_array("zarr", **settings, config={"write_empty_chunks": True})
        if strings:
            array[:] = np.array(strings, dtype=object)
        write_text(group, "numbers", texts, rows)
        write_text(group, "strings", strings, rows)
        for name in "numbers", "strings":
            assert files(tmp_path / str(rows) / name) == files(tmp_path / str(rows) / "zarr")
            assert StoredArray(str(tmp_path / str(rows)), name)[:].tolist() == strings


def test_blocks_of_chunks_at_any_place(tmp_path):
    values = np.random.default_rng(2).random((10, 14), dtype="float32")
    array_at(tmp_path / "a", (10, 14), (4, 4), "float32", result_codecs(values.dtype))
    array = WholeChunks(str(tmp_path), "a")
    array[4:10, 8:14] = values[4:10, 8:]  # strided, of several chunks, to both ends
    array[0:4, 0:14] = values[:4]
    array[4:] = np.pad(values[4:], 1)[1:-1, 1:-1]
    np.testing.assert_array_equal(StoredArray(str(tmp_path), "a")[...], values)
    for selection, block in ((np.s_[1:5, 0:4], (4, 4)), (np.s_[0:3, 0:4], (3, 4)), (np.s_[0:4, 12:16], (4, 4))):
        with pytest.raises(ValueError, match="are not whole chunks of"):
            array[selection] = np.zeros(block, "float32")


def test_other_codecs_are_left_to_zarr(tmp_path):
    values = np.arange(12, dtype="int32").reshape(3, 4)
    array_at(tmp_path / "a", (3, 4), (2, 2), "int32", [ZstdCodec()])
    WholeChunks(str(tmp_path), "a")[0:3, 0:4] = values
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a"))[...], values)


def test_an_array_without_a_checksum_is_written_by_zarr(tmp_path):
    zarr.create_array(str(tmp_path / "a"), shape=(4, 4), chunks=(2, 2), dtype="int32", compressors=None)
    values = np.arange(16, dtype="int32").reshape(4, 4)
    WholeChunks(str(tmp_path), "a")[0:4, 0:4] = values
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a"))[:], values)


def test_a_chunk_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    array_at(tmp_path / "a", (4, 4), (2, 2), "int32", checkpoint_codecs())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole_chunks.google_crc32c, "value", full)
    before = files(tmp_path)
    with pytest.raises(OSError, match="No space left"):
        WholeChunks(str(tmp_path), "a")[0:4, 0:4] = np.ones((4, 4), "int32")
    assert files(tmp_path) == before

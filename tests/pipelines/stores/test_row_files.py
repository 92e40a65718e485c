"""Checkpoints of whole rows: what Zarr reads, past the page cache where that is possible, in place, and checked."""

import errno
import os

import numpy as np
import pytest
from oracles import random_arcs, store_arcs

from pipelines.stores.distances import create_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.row_files import PAGE, page_aligned


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A function that writes a matrix by bands of `chunk` rows; returns the writer, and the matrix."""
    monkeypatch.setattr("pipelines.stores.row_files.PART_BYTES", 2 * PAGE)

    def write(n, chunk, dtype="float32"):
        matrix = page_aligned((n, n), dtype)
        matrix[...] = np.random.default_rng(n).integers(0, 1000, (n, n))
        graph = store_arcs(tmp_path / "g", n, *random_arcs(n, n), "int32")
        writer = create_distances(tmp_path / "d", graph, dtype=dtype, chunk=chunk, stages=3, options={})
        writer.make_row_checkpoint()
        files = writer.row_files(writer.other_slot)
        for start in range(0, n, files.piece):
            files.write(start, matrix[start : start + files.piece])
        return writer.commit(1), matrix

    return write


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize(("n", "chunk"), [(64, 32), (130, 32), (101, 7), (5, 8), (1, 1)])
def test_zarr_reads_what_was_written_and_so_do_we(rows, n, chunk, dtype):
    writer, matrix = rows(n, chunk, dtype)
    np.testing.assert_array_equal(writer.read_rows(0, len(matrix)), matrix)
    writer.verify()
    files = writer.row_files(writer.slot)
    for shift in 0, 1:  # memory that begins on a page, and memory that does not
        memory = page_aligned((n * n + 1,), dtype)
        out = memory[shift : shift + n * n].reshape(n, n)
        files.read(slice(0, n), out)
        np.testing.assert_array_equal(out, matrix)
    some = np.random.default_rng(1).integers(0, n, 3 * chunk)
    out = np.empty((len(some), n), dtype)
    files.read(some, out)
    np.testing.assert_array_equal(out, matrix[some])


def open_like(monkeypatch, refuse):
    """Note whether files are opened past the page cache; returns the list, which grows."""
    opened, open_file = [], os.open

    def noted(path, flags, *mode, **folder):
        opened.append(bool(flags & os.O_DIRECT))
        if refuse and opened[-1]:
            raise OSError(errno.EINVAL, "Invalid argument")
        return open_file(path, flags, *mode, **folder)

    monkeypatch.setattr(os, "open", noted)
    return opened


@pytest.mark.parametrize("refuse", [False, True])
def test_files_are_opened_past_the_page_cache_where_the_file_system_does_it(rows, monkeypatch, refuse):
    opened = open_like(monkeypatch, refuse)
    writer, matrix = rows(64, 32)
    assert any(opened)
    out = page_aligned((64, 64), "float32")
    writer.row_files(writer.slot).read(slice(0, 64), out)
    np.testing.assert_array_equal(out, matrix)


def test_a_disk_that_wants_more_than_pages_is_read_by_way_of_the_cache(rows, monkeypatch):
    writer, matrix = rows(64, 32)
    calls, read = [], os.preadv

    def refusing(file, buffers, at):
        calls.append(file)
        if len(calls) % 2:
            raise OSError(errno.EINVAL, "Invalid argument")
        return read(file, buffers, at)

    monkeypatch.setattr(os, "preadv", refusing)
    out = page_aligned((64, 64), "float32")
    monkeypatch.setattr("pipelines.stores.row_files.MOVERS", 1)
    writer.row_files(writer.slot).read(slice(0, 64), out)
    np.testing.assert_array_equal(out, matrix)
    assert len(calls) == 4  # a part of each of two chunks


def test_a_slot_is_written_over_in_place(rows):
    writer, matrix = rows(130, 32)
    with open(os.path.join(writer.path, writer.slot, "c", "1", "0"), "rb") as first:
        for stage in 2, 3:
            writer.make_row_checkpoint()
            files = writer.row_files(writer.other_slot)
            for start in range(0, 130, 32):
                files.write(start, matrix[start : start + 32] + np.float32(stage))
            if stage == 2:
                writer = writer.commit(2)
        np.testing.assert_array_equal(np.frombuffer(first.read(32 * 130 * 4), "float32"), matrix[32:64].ravel() + 3)
    writer.verify()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "the chunk is missing; the store is damaged; recreate it"),
        (lambda file: os.truncate(file, 5000), "the chunk is cut short; recreate the store"),
        (lambda file: os.truncate(file, 32 * 130 * 4 + 2), "the chunk is damaged .*; recreate the store"),
        (
            lambda file: file.write_bytes(b"\x01" + file.read_bytes()[1:]),
            r"the chunk is damaged \(its checksum is wrong\); recreate the store",
        ),
    ],
)
def test_damage_is_named(rows, tmp_path, damage, said):
    writer, _ = rows(130, 32)
    damage(tmp_path / "d" / writer.slot / "c" / "2" / "0")
    with pytest.raises(StoreError, match=rf"{writer.slot}/c/2/0: {said}"):
        writer.row_files(writer.slot).read(slice(64, 96), page_aligned((32, 130), "float32"))


def test_checkpoints_of_another_form_are_refused_and_replaced(rows, tmp_path):
    writer, matrix = rows(64, 32)
    writer.make_checkpoint()
    writer.write_rows(0, matrix, result=False)
    writer = writer.commit(2)
    with pytest.raises(StoreError, match="does not hold whole rows; compute the store again with overwrite"):
        writer.row_files(writer.slot)
    (tmp_path / "d" / writer.other_slot / "zarr.json").write_text("{")
    writer.make_row_checkpoint()
    writer.row_files(writer.other_slot).write(0, matrix[:32])

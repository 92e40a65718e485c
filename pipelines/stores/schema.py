"""What every store has in common: a Zarr 3 group on disk with a `schema` attribute, checked when it is opened.

A store that is written in one go is written beside its place and renamed into it (`new_store`), so it is either
whole or absent. A store that grows over hours stays in place and records its progress as an attribute written last
(`distances`). Chunk writes are atomic with Zarr's default pipeline from 3.1.3 on, one writer per chunk.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarr.errors
from zarr.buffer.cpu import NDBuffer
from zarr.codecs import BloscCodec, Crc32cCodec

CHUNK_BYTES = 4 << 20


class StoreError(ValueError):
    """A store is missing, foreign, damaged, in the way or cannot be written; the message names it and the cure."""


def result_codecs(dtype: np.dtype) -> tuple[Any, ...]:
    """Compressors of arrays that are kept: fast, and damage is noticed when a chunk is read."""
    return (
        BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle", typesize=dtype.itemsize),
        Crc32cCodec(),
    )


def store_schema(path: str | os.PathLike[str]) -> str:
    """The schema a store declares, such as ``"graph/1"``; raises StoreError for anything that is no store of ours."""
    return str(open_store(path).attrs["schema"])


def open_store(path: str | os.PathLike[str], schema: str | None = None, mode: str = "r") -> zarr.Group:
    """Open the group at `path` and check that it declares `schema` (any of ours if None)."""
    if not Path(path).exists():
        raise StoreError(f"{path}: no such store")
    try:
        group = zarr.open_group(os.fspath(path), mode=mode, use_consolidated=False)
        found = group.attrs.get("schema")
    except (OSError, ValueError, KeyError, zarr.errors.BaseZarrError) as error:
        raise StoreError(f"{path}: not a Zarr 3 group ({error}); was it made by tilepath?") from error
    if not isinstance(found, str):
        raise StoreError(f"{path}: a Zarr group without a `schema` attribute; it was not made by tilepath")
    if schema is not None and found != schema:
        raise StoreError(f"{path}: expected a store of schema {schema}, found {found}{_cure(schema)}")
    return group


def _cure(schema: str) -> str:
    made_by = {
        "graph/1": "tilepath import FILE STORE",
        "distances/1": "tilepath apsp GRAPH STORE",
        "paths/1": "tilepath sssp GRAPH STORE --source VERTEX",
        "samples/1": "tilepath som import FILE STORE",
        "codebook/1": "tilepath som train SAMPLES STORE",
        "mapping/1": "tilepath som map CODEBOOK SAMPLES STORE",
        "circuits/1": "tilepath euler GRAPH STORE",
    }.get(schema)
    return f"; make one with `{made_by}`" if made_by else ""


def check_array(
    path: Any, group: zarr.Group, name: str, shape: tuple[int, ...], dtypes: tuple[Any, ...]
) -> zarr.Array[Any]:
    """The array `name` of `group`, which must have `shape` and one of `dtypes`."""
    array = group.get(name)
    if not isinstance(array, zarr.Array):
        raise StoreError(f"{path}: the array `{name}` is missing; the store is damaged, make it anew")
    if array.shape != shape or not any(array.dtype == np.dtype(d) for d in dtypes):
        expected = " or ".join(str(np.dtype(d)) for d in dtypes)
        raise StoreError(
            f"{path}: array `{name}` is {array.dtype} {array.shape}, expected {expected} {shape}; "
            "the store is damaged or foreign, make it anew"
        )
    return array


def attribute(path: Any, group: zarr.Group, name: str) -> Any:
    """An attribute that every store of the schema has."""
    if name not in group.attrs:
        raise StoreError(f"{path}: the attribute `{name}` is missing; the store is damaged, compute it anew")
    return group.attrs[name]


def open_array(path: str, name: str, mode: str = "r") -> zarr.Array[Any]:
    """An array of the store at `path`, which was checked when the store was opened.

    Zarr does not keep `write_empty_chunks` with an array; without it, a chunk that equals the fill value is left out.
    """
    return zarr.open_array(os.path.join(path, name), mode=mode).with_config({"write_empty_chunks": True})


def read_rows(array: zarr.Array[Any], start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
    """The rows from `start` to `stop` (excluded); into `out`, such as page-locked memory, without another copy."""
    if out is None:
        return np.asarray(array[start:stop])
    array.get_basic_selection(slice(start, stop), out=NDBuffer.from_numpy_array(out))
    return out


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Turn a chunk that does not decode into a StoreError."""
    try:
        yield
    except StoreError:
        raise
    except (RuntimeError, ValueError) as error:
        raise StoreError(f"{path}: a chunk is damaged ({error}); compute the store anew") from error


def verify_chunks(path: str, array: zarr.Array[Any]) -> None:
    """Make sure that no chunk is missing: all are stored, also those that equal the fill value."""
    if array.nchunks_initialized != array.nchunks:
        missing = array.nchunks - array.nchunks_initialized
        raise StoreError(f"{path}: {missing} of {array.nchunks} chunks are missing; compute it anew")


def row_ranges(done: np.ndarray) -> list[list[int]]:
    """Which rows, bool (S), as JSON: the [start, stop] of those in a row.

    >>> row_ranges(np.array([True, True, False, True]))
    [[0, 2], [3, 4]]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], done, [False]])))
    return edges.reshape(-1, 2).tolist()


def row_mask(ranges: list[list[int]], rows: int) -> np.ndarray:
    """Undo `row_ranges`."""
    done = np.zeros(rows, dtype=bool)
    for start, stop in ranges:
        done[start:stop] = True
    return done


def take_over(path: str | os.PathLike[str], group: zarr.Group) -> str:
    """Make an unfinished store another run's: its name. Who had it before may no longer change it (`owned`)."""
    run_id = uuid.uuid4().hex
    group.update_attributes({"run_id": run_id})
    remove_leftovers(path)
    return run_id


def owned(path: str, schema: str, run_id: str) -> zarr.Group:
    """The group of an unfinished store, to be changed by the run that has it; StoreError if that is another."""
    group = open_store(path, schema, "r+")
    if group.attrs.get("run_id") != run_id:
        raise StoreError(f"{path}: another run took this store over; stop one of the two")
    return group


def record_rows(path: str, group: zarr.Group, done: np.ndarray) -> None:
    """Record which rows, bool, of a store that is made row by row are whole; once all are, it is complete."""
    if done.all():
        remove_leftovers(path)
    group.update_attributes({"done": row_ranges(done), "complete": bool(done.all())})


def refuse_existing(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse what stands at `path`; with `overwrite` what is no store of ours, which nothing may delete."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise StoreError(f"{path} exists already; choose another name or pass overwrite (--overwrite)")
    store_schema(path)


@contextmanager
def new_store(path: str | os.PathLike[str], overwrite: bool = False) -> Iterator[zarr.Group]:
    """A group to fill that appears at `path` only when the block ends without an error."""
    refuse_existing(path, overwrite)
    place = Path(path)
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        with disk_errors(path):
            partial.parent.mkdir(parents=True, exist_ok=True)
            yield zarr.open_group(os.fspath(partial), mode="w")
            refuse_existing(path, overwrite)
            if os.path.lexists(path):
                shutil.rmtree(path)
            os.rename(partial, place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def disk_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn "no space left" and "permission denied" into a StoreError that names the store and the cure."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            cure = "free some space and run again (with --resume where the run had begun), or write elsewhere"
            raise StoreError(f"{path}: the disk is full; {cure}") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
        raise


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Delete the partial chunk files that killed writers left in the store; no writer may be active."""
    for leftover in Path(path).rglob("*.partial"):
        leftover.unlink(missing_ok=True)


def store_bytes(path: str | os.PathLike[str]) -> int:
    """Bytes the store takes on disk."""
    return sum(f.stat().st_size for f in Path(path).rglob("*") if f.is_file())

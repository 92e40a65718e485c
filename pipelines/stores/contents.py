"""What a store holds: reads that notice missing chunks, and the record by which chunks and attributes are checked.

Every chunk of a store is written, even one that equals the fill value. Zarr would read a missing chunk as that value,
which in results means "unreachable"; here it is damage, and reading raises.

Every chunk ends with its CRC-32C, which a codec put there. With each commit a store records in its attributes

* `contents`: for each array the sum, modulo 2^64, of a hash of place and checksum of every chunk complete by then.
  Workers write chunks in any order, which does not change a sum. A commit reads four bytes of each new chunk;
* `seal`: a hash of all other attributes, and of the metadata of those arrays (except the shape, which follows from the
  attributes).

Stores of earlier versions have neither; `Verified.unchecked` says what that leaves open.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.buffer.cpu import NDBuffer
from zarr.storage import LocalStore

from pipelines.stores.schema import (
    StoreError,
    brief,
    checkpoint_codecs,
    damaged_attributes,
    no_array,
    result_codecs,
    text_codecs,
)

CHECKSUM_BYTES = 4
READERS = 16  # files open at a time: on a network, opening one takes as long as reading it


class _EveryChunk(LocalStore):
    """The files of an array; a missing chunk is an error."""

    async def get(self, key: str, *arguments: Any, **options: Any) -> Any:
        found = await super().get(key, *arguments, **options)
        if found is None and key.startswith("c/"):
            raise missing_chunk(self.root, key)
        return found


def missing_chunk(place: str | os.PathLike[str], key: str) -> StoreError:
    """The error of an array at `place` that lacks a chunk."""
    return StoreError(f"{place}: the chunk {key} is missing; the store is damaged; recreate it")


class StoredArray:
    """An array of a store, opened for reading; anything wrong with a chunk is a StoreError.

    Earlier versions left out chunks of some small arrays that equal the fill value: those are opened as `sparse`.
    """

    def __init__(self, path: str | os.PathLike[str], name: str, sparse: bool = False):
        self._place, self._sparse = os.path.join(path, name), sparse
        if not os.path.isfile(os.path.join(self._place, "zarr.json")):
            raise no_array(path, name)
        with self._damage("the array is"):
            files = (LocalStore if sparse else _EveryChunk)(self._place, read_only=True)
            self._array = zarr.open_array(files, mode="r")
            self.shape: tuple[int, ...] = self._array.shape
            self.chunks: tuple[int, ...] = self._array.chunks
            self.dtype: np.dtype = self._array.dtype
            self.raw: bool = self._array.compressors == checkpoint_codecs()  # a chunk is its values and a checksum
            if min(self.chunks, default=1) < 1:
                raise ValueError(f"its chunks have the shape {self.chunks}")

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Any Zarr selection, as NumPy."""
        with self._damage("a chunk is"):
            return np.asarray(self._array[selection])

    def rows(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """The rows from `start` to `stop` (excluded); into `out`, for example page-locked memory, without a copy."""
        if out is None:
            return self[start:stop]
        with self._damage("a chunk is"):
            self._array.get_basic_selection(slice(start, stop), out=NDBuffer.from_numpy_array(out))
        return out

    def places(self, rows: np.ndarray | None = None) -> list[str]:
        """The keys of the chunks; with `rows`, bool, only of those whose first row is selected."""
        counts = [-(-size // chunk) for size, chunk in zip(self.shape, self.chunks, strict=True)]
        first: Iterable[int] = range(counts[0]) if rows is None else np.flatnonzero(rows[:: self.chunks[0]]).tolist()
        keys = ["/".join(["c", *map(str, place)]) for place in product(first, *map(range, counts[1:]))]
        return [key for key in keys if os.path.exists(os.path.join(self._place, key))] if self._sparse else keys

    @contextmanager
    def _damage(self, what: str) -> Iterator[None]:
        """Turn whatever decoders raise on broken bytes into a StoreError."""
        try:
            yield
        except (StoreError, IndexError, OSError):  # known damage, or a fault of the caller or the machine
            raise
        except MemoryError as error:
            raise StoreError(
                f"{self._place}: does not fit into the free memory ({brief(error)}); read less at a time, or recreate "
                "the store if it is damaged"
            ) from error
        except Exception as error:
            raise StoreError(f"{self._place}: {what} damaged ({brief(error)}); recreate the store") from error


def small_array(path: str | os.PathLike[str], group: zarr.Group, name: str) -> StoredArray:
    """An array that earlier versions wrote as Zarr does by default, without chunks that equal the fill value."""
    with damaged_attributes(path):
        return StoredArray(path, name, sparse=name not in dict(group.attrs.get("contents", {})))


def write_small_array(
    group: zarr.Group, name: str, values: np.ndarray, dtype: Any, dimensions: Sequence[str] | None = None
) -> None:
    """Write an array in one go, with every chunk; its dimensions may have names."""
    codecs = text_codecs() if dtype is str else result_codecs(np.dtype(dtype))
    every = {"write_empty_chunks": True}
    group.create_array(
        name, shape=values.shape, dtype=dtype, compressors=codecs, dimension_names=dimensions, config=every
    )[:] = values


def writable_array(path: str, name: str) -> zarr.Array[Any]:
    """An array of the store at `path`, opened for writing.

    Zarr does not keep `write_empty_chunks` with an array; without it, a chunk that equals the fill value is left out.
    """
    try:
        return zarr.open_array(os.path.join(path, name), mode="r+").with_config({"write_empty_chunks": True})
    except OSError:
        raise
    except Exception as error:  # whatever Zarr raises on metadata that are not what they should be
        raise StoreError(f"{path}: the array `{name}` is damaged ({brief(error)}); recreate the store") from error


def record(
    path: str,
    group: zarr.Group,
    attributes: dict[str, Any],
    added: Mapping[str, Sequence[str]] | None = None,
    *,
    begun: bool = False,
    dropped: Sequence[str | None] = (),
    removed: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write attributes of a store in one go, together with the record of its chunks.

    Parameters
    ----------
    added : for each array the keys of the chunks completed since
    begun : whether other chunks of these arrays were recorded before
    dropped : arrays that are no longer part of the record
    removed : for each array the keys of recorded chunks that are about to be deleted
    """
    kept = dict(group.attrs.asdict())
    contents = {name: value for name, value in kept.get("contents", {}).items() if name not in dropped}
    for name, keys in (added or {}).items():
        if name in contents or not begun:  # else an older version has begun the array, and its chunks are not known
            before = int(contents[name], 16) if begun else 0
            contents[name] = f"{(before + _chunk_sum(path, name, keys)) % 2**64:016x}"
    for name, keys in (removed or {}).items():
        if name in contents:
            contents[name] = f"{(int(contents[name], 16) - _chunk_sum(path, name, keys)) % 2**64:016x}"
    changes = attributes | {"contents": contents}
    group.update_attributes(changes | {"seal": _seal(path, kept | changes)})


def record_everything(path: str, group: zarr.Group) -> None:
    """Record all chunks of a store that has just been written."""
    added = {}
    for name, array in group.arrays():
        folder = os.path.join(path, name)
        keys = StoredArray(path, name).places()
        there = [key for key in keys if os.path.isfile(os.path.join(folder, key))]
        added[name] = there if array.size else []
    record(path, group, {}, added)


class Verified(NamedTuple):
    """What was found correct, and what could not be checked."""

    checked: tuple[str, ...]
    unchecked: tuple[str, ...]


def refuse_missing(path: str, chunks: Mapping[str, Sequence[str]]) -> None:
    """Make sure that no chunk is missing, array by array."""
    for name, keys in chunks.items():
        missing = sum(not os.path.isfile(os.path.join(path, name, key)) for key in keys)
        if missing:
            raise StoreError(f"{path}: {missing} of {len(keys)} chunks are missing in `{name}`; recreate the store")


def compare_contents(
    path: str, group: zarr.Group, chunks: Mapping[str, Sequence[str]], *also: str, digested: Sequence[str] = ()
) -> Verified:
    """Compare chunks, and all attributes, with what was recorded.

    `also` names what was checked before; the arrays `digested` had a digest of their values checked.
    """
    checked, unchecked = ["nothing but the attributes is committed yet"], []
    if chunks:
        checked = [f"every chunk of {names(chunks)} ({sum(map(len, chunks.values())):,} in all)", *also]
    attributes = dict(group.attrs.asdict())
    if known := refuse_misplaced(path, group, chunks):
        checked.append("that each chunk is the one written there")
    if unknown := [name for name in chunks if name not in known and name not in digested]:
        unchecked.append(f"whether each chunk of {names(unknown)} is the one written there")
    if not attributes.keys() & {"contents", "seal"}:
        unchecked.append("the attributes, except those that the arrays confirm")
    elif attributes.get("seal") != _seal(path, attributes):
        raise StoreError(f"{path}: the attributes differ from those recorded; recreate the store")
    else:
        checked.append("the attributes")
    return Verified(tuple(checked), tuple(unchecked))


def refuse_misplaced(path: str, group: zarr.Group, chunks: Mapping[str, Sequence[str]]) -> list[str]:
    """Make sure that the chunks are those recorded; returns the arrays that have a record."""
    with damaged_attributes(path):
        contents = {name: int(value, 16) for name, value in group.attrs.get("contents", {}).items()}
    for name, keys in chunks.items():
        if contents.get(name) not in (None, _chunk_sum(path, name, keys)):
            raise StoreError(f"{path}: a chunk of `{name}` is not the one written there; recreate the store")
    return [name for name in chunks if name in contents]


def names(found: Iterable[str]) -> str:
    """Names as part of a sentence.

    >>> names(["indptr", "indices", "weights"])
    'indptr, indices and weights'
    """
    *most, last = found
    return f"{', '.join(most)} and {last}" if most else last


def _chunk_sum(path: str, name: str, keys: Sequence[str]) -> int:
    """The sum, modulo 2^64, of a hash of the place and the checksum of each chunk."""

    def hashed(key: str) -> int:
        try:
            with open(os.path.join(path, name, key), "rb", buffering=0) as file:
                file.seek(-CHECKSUM_BYTES, os.SEEK_END)
                check = file.read(CHECKSUM_BYTES)
        except OSError as error:
            raise StoreError(f"{path}: the chunk {name}/{key} is missing or cut short; recreate the store") from error
        return int.from_bytes(hashlib.blake2b(key.encode() + check, digest_size=8).digest())

    if len(keys) < READERS:
        return sum(map(hashed, keys)) % 2**64
    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(hashed, keys)) % 2**64


def _seal(path: str, attributes: dict[str, Any]) -> str:
    """A hash of the attributes, and of the metadata of the arrays that they record."""
    arrays = {}
    for name in attributes.get("contents", {}):
        with damaged_attributes(path), open(os.path.join(path, name, "zarr.json"), encoding="utf-8") as file:
            arrays[name] = {key: value for key, value in json.load(file).items() if key != "shape"}
    sealed = [{key: value for key, value in attributes.items() if key != "seal"}, arrays]
    return hashlib.blake2b(json.dumps(sealed, sort_keys=True).encode(), digest_size=16).hexdigest()

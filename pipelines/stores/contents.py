"""Read the arrays of stores, and record and check their chunks and attributes.

Every chunk of a store is written, even a chunk that equals the fill value. Zarr would read a missing chunk as the fill
value, which means "unreachable" in results. Here a missing chunk is damage, and reading it raises StoreError.

Every chunk ends with its CRC-32C, appended by a codec. Each commit of a store writes two attributes:

* `contents`: for each array, the sum modulo 2^64 of one hash per complete chunk, a hash of the key of the chunk and
  its checksum. A sum does not depend on the order in which workers write chunks. A commit reads only the four bytes of
  the checksum of each new chunk.
* `seal`: a hash of all other attributes, and of the metadata of the arrays in `contents`. The shapes of the arrays are
  left out, because they follow from the attributes.
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

from pipelines.stores.chunk_limits import HEADER_BYTES, ChunkLimits
from pipelines.stores.durable import DurableStore, sync_names, sync_names_above
from pipelines.stores.errors import StoreError, raise_if_of_system, read_errors
from pipelines.stores.schema import brief, checkpoint_codecs, damaged_attributes, missing_chunk, no_array, refuse_lost

CHECKSUM_BYTES = 4
READERS = 16  # files open at a time; on a network file system, opening a file takes as long as reading it


class _EveryChunk(LocalStore):
    """The files of an array; a missing chunk is an error, and so is one that expands to more than `limits` allow."""

    limits: ChunkLimits | None = None

    async def get(self, key: str, *arguments: Any, **options: Any) -> Any:
        place = self.root / key
        if self.limits is not None and key.startswith("c/"):
            self.limits.check_file(place)
        found = await super().get(key, *arguments, **options)
        if found is None and key.startswith("c/"):
            raise missing_chunk(self.root, key)
        if self.limits is not None and key.startswith("c/"):
            self.limits.check_header(place, found.as_numpy_array()[:HEADER_BYTES].tobytes())
        return found


_DAMAGED = "the store is damaged, perhaps by a chunk of another store; recreate it"


class StoredArray:
    """An array of a store, opened for reading; reading a missing or damaged chunk raises StoreError.

    Parameters
    ----------
    path, name : path of the store, name of the array
    within : the least and the greatest value that the array may hold. Every read checks the values, so that no index
        points outside the memory of another array. Checksums do not ensure this: a chunk that was copied from another
        store passes its checksum
    seal : the attribute `seal` that the store must have after each read (`refuse_replaced`); "" for any
    """

    def __init__(
        self, path: str | os.PathLike[str], name: str, within: tuple[float, float] | None = None, *, seal: str = ""
    ):
        self._store, self._place, self._within, self._seal = path, os.path.join(path, name), within, seal
        with self._damage("the array is"):
            if not os.path.isfile(os.path.join(self._place, "zarr.json")):
                raise no_array(path, name)
            files = _EveryChunk(self._place, read_only=True)
            self._array = zarr.open_array(files, mode="r")
            self.shape: tuple[int, ...] = self._array.shape
            self.chunks: tuple[int, ...] = self._array.chunks
            self.dtype: np.dtype = self._array.dtype
            self.ndim = len(self.shape)
            self.raw: bool = self._array.compressors == checkpoint_codecs()  # chunks hold plain values and a checksum
            if min(self.chunks, default=1) < 1:
                raise ValueError(f"its chunks have the shape {self.chunks}")
            files.limits = ChunkLimits(self._array)

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Return any Zarr selection as a NumPy array."""
        with self._damage("a chunk is"):
            return self._checked(np.asarray(self._array[selection]))

    def block(self, *selections: Any) -> np.ndarray:
        """Return the entries where the selected rows and columns meet, each by a slice or by numbers (`numpy.ix_`)."""
        with self._damage("a chunk is"):
            return self._checked(np.asarray(self._array.oindex[selections]))

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the array, such as its unit."""
        return dict(self._array.attrs)

    def rows(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """Return the rows from `start` to `stop` (excluded); read without a copy into `out`, if it is given."""
        if out is None:
            return self[start:stop]
        with self._damage("a chunk is"):
            self._array.get_basic_selection(slice(start, stop), out=NDBuffer.from_numpy_array(out))
        return self._checked(out)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Iterate over the chunks of rows: yields the first row of each chunk, and the row after its last."""
        for start in range(0, self.shape[0], self.chunks[0]):
            yield start, min(start + self.chunks[0], self.shape[0])

    def offsets(self, start: int, stop: int) -> np.ndarray:
        """Return the entries from `start` to `stop` (excluded) of an array of offsets.

        Raises StoreError if offsets decrease, or if the array does not begin and end with the limits `within`.
        """
        assert self._within is not None
        found, (first, last) = self.rows(start, stop), self._within
        wrong_end = (start == 0 and found[0] != first) or (stop == self.shape[0] and found[-1] != last)
        if wrong_end or (found[1:] < found[:-1]).any():
            raise StoreError(f"{self._place}: does not rise from {first:,} to {last:,}; {_DAMAGED}")
        return found

    def _checked(self, values: np.ndarray) -> np.ndarray:
        """Return `values`; raises StoreError if a value is NaN or outside the limits."""
        if self._within is None or not values.size:
            return values
        least, most = self._within
        if least == 0 and values.dtype.kind == "i":  # one pass is enough: negative values are huge as unsigned integers
            if values.view(f"u{values.itemsize}").max() <= most:
                return values
        elif least <= values.min() and values.max() <= most:
            return values
        wrong = values[~((values >= least) & (values <= most))].flat[0]
        raise StoreError(f"{self._place}: holds {wrong:,}, but its values run from {least:,} to {most:,}; {_DAMAGED}")

    def places(self, rows: np.ndarray | None = None) -> list[str]:
        """Return the keys of the chunks; with `rows`, bool, only the keys of chunks whose first row is selected."""
        counts = [-(-size // chunk) for size, chunk in zip(self.shape, self.chunks, strict=True)]
        first: Iterable[int] = range(counts[0]) if rows is None else np.flatnonzero(rows[:: self.chunks[0]]).tolist()
        return ["/".join(["c", *map(str, place)]) for place in product(first, *map(range, counts[1:]))]

    @contextmanager
    def _damage(self, what: str) -> Iterator[None]:
        """Turn any error that a decoder raises on damaged bytes into a StoreError; refuse a store that was replaced."""
        try:
            yield
        except OSError as error:
            raise_if_of_system(error, self._place)
            raise
        except (StoreError, IndexError):  # known damage, or a fault of the caller
            raise
        except MemoryError as error:
            raise StoreError(
                f"{self._place}: does not fit into the free memory ({brief(error)}); read less at a time, or recreate "
                "the store if it is damaged"
            ) from error
        except Exception as error:
            raise StoreError(f"{self._place}: {what} damaged ({brief(error)}); recreate the store") from error
        finally:  # a store that was replaced meanwhile looks damaged
            if self._seal:
                refuse_replaced(self._store, self._seal)


def writable_array(path: str, name: str, *, durable: bool = True) -> zarr.Array[Any]:
    """Open an array of the store at `path` for writing; with `durable`, the bytes of every file become durable.

    The option `write_empty_chunks` is set again, because Zarr does not store it with an array. Without this option,
    Zarr would leave out chunks that equal the fill value.
    """
    try:
        store = (DurableStore if durable else LocalStore)(os.path.join(path, name))
        return zarr.open_array(store, mode="r+").with_config({"write_empty_chunks": True})
    except Exception as error:  # Zarr raises errors of many types on invalid metadata
        raise_if_of_system(error, os.path.join(path, name))
        raise StoreError(f"{path}: the array `{name}` is damaged ({brief(error)}); recreate the store") from error


def record(
    path: str,
    group: zarr.Group,
    attributes: dict[str, Any],
    added: Mapping[str, Sequence[str]] | None = None,
    *,
    dropped: Sequence[str | None] = (),
    removed: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Commit: write attributes of a store in one go, together with the record of its chunks.

    The commit is durable on return. The bytes of the chunks must be durable before the call.

    Parameters
    ----------
    added : for each array, the keys of the chunks completed since the last record
    dropped : arrays that are no longer part of the record
    removed : for each array, the keys of recorded chunks that are about to be deleted

    Raises
    ------
    StoreError
        Another run took the store over after `group` was opened.
    """
    keys = [f"{name}/{key}" for name, chunks in (added or {}).items() for key in ("zarr.json", *chunks)]
    sync_names_above(path, keys)
    recorded = _recorded(path, group, attributes, added, dropped, removed)
    if "run_id" in group.attrs and "run_id" not in attributes:
        refuse_lost(path, str(group.attrs["run_id"]))  # all attributes are written: the store would be ours again
    group.update_attributes(recorded)
    sync_names(path)


def _recorded(
    path: str,
    group: zarr.Group,
    attributes: dict[str, Any],
    added: Mapping[str, Sequence[str]] | None = None,
    dropped: Sequence[str | None] = (),
    removed: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the attributes that `record` writes."""
    kept = dict(group.attrs.asdict())
    contents = {name: value for name, value in kept.get("contents", {}).items() if name not in dropped}
    for name, keys in (added or {}).items():
        contents[name] = f"{(int(contents.get(name, '0'), 16) + _chunk_sum(path, name, keys)) % 2**64:016x}"
    for name, keys in (removed or {}).items():
        contents[name] = f"{(int(contents[name], 16) - _chunk_sum(path, name, keys)) % 2**64:016x}"
    changes = attributes | {"contents": contents}
    return changes | {"seal": _seal(path, kept | changes)}


def record_everything(path: str, group: zarr.Group) -> None:
    """Record all chunks of a store that has just been written, and is made durable as a whole later."""
    added = {}
    for name, array in group.arrays():
        folder = os.path.join(path, name)
        keys = StoredArray(path, name).places()
        there = [key for key in keys if os.path.isfile(os.path.join(folder, key))]
        added[name] = there if array.size else []
    group.update_attributes(_recorded(path, group, {}, added))


class Verified(NamedTuple):
    """The result of a verification: the checks that passed."""

    checked: tuple[str, ...]


def refuse_missing(path: str, chunks: Mapping[str, Sequence[str]]) -> None:
    """Raise StoreError if a chunk is missing; `chunks` maps arrays to the keys of their chunks."""
    for name, keys in chunks.items():
        missing = sum(not os.path.isfile(os.path.join(path, name, key)) for key in keys)
        if missing:
            raise StoreError(f"{path}: {missing} of {len(keys)} chunks are missing in `{name}`; recreate the store")


def compare_contents(path: str, group: zarr.Group, chunks: Mapping[str, Sequence[str]], *also: str) -> Verified:
    """Compare chunks and all attributes with the record; raises StoreError if they differ.

    `also` names further checks that the caller made.
    """
    checked = ["no chunk, because none is committed yet"]
    if chunks:
        every = f"every chunk of {names(chunks)} ({sum(map(len, chunks.values())):,} in all)"
        checked = [every, *also, "that each chunk is the one written there"]
    refuse_misplaced(path, group, chunks)
    refuse_changed(path, group)
    return Verified((*checked, "the attributes"))


def refuse_changed(path: str, group: zarr.Group) -> None:
    """Raise StoreError if the attributes differ from the record."""
    attributes = dict(group.attrs.asdict())
    if attributes.get("seal") != _seal(path, attributes):
        raise StoreError(f"{path}: the attributes differ from those recorded; recreate the store")


def refuse_replaced(path: str | os.PathLike[str], seal: str) -> None:
    """Raise StoreError if the store at `path` has another seal than it had when it was opened.

    This reads one small file. If the seal is the same after a read, the read saw no replacement.
    """
    place = os.path.join(path, "zarr.json")
    try:
        with damaged_attributes(path), read_errors(place), open(place, encoding="utf-8") as file:
            found = json.load(file)["attributes"].get("seal")
    except FileNotFoundError:
        raise StoreError(f"{path}: the store was moved or removed after it was opened; open it where it is") from None
    if found != seal:
        raise StoreError(f"{path}: the store was replaced after it was opened; open it again")


def refuse_misplaced(path: str, group: zarr.Group, chunks: Mapping[str, Sequence[str]]) -> None:
    """Raise StoreError if the chunks differ from the record."""
    with damaged_attributes(path):
        contents = {name: int(value, 16) for name, value in group.attrs.get("contents", {}).items()}
    for name, keys in chunks.items():
        if contents.get(name, 0) != _chunk_sum(path, name, keys):
            raise StoreError(f"{path}: a chunk of `{name}` is not the one written there; recreate the store")


def names(found: Iterable[str]) -> str:
    """Join names for a sentence.

    >>> names(["indptr", "indices", "weights"])
    'indptr, indices and weights'
    """
    *most, last = found
    return f"{', '.join(most)} and {last}" if most else last


def _chunk_sum(path: str, name: str, keys: Sequence[str]) -> int:
    """Return the sum modulo 2^64 of one hash per chunk, a hash of the key of the chunk and its checksum."""

    def hashed(key: str) -> int:
        try:
            with open(os.path.join(path, name, key), "rb", buffering=0) as file:
                file.seek(-CHECKSUM_BYTES, os.SEEK_END)
                check = file.read(CHECKSUM_BYTES)
        except OSError as error:
            raise_if_of_system(error, os.path.join(path, name, key))
            raise StoreError(f"{path}: the chunk {name}/{key} is missing or cut short; recreate the store") from error
        return int.from_bytes(hashlib.blake2b(key.encode() + check, digest_size=8).digest())

    if len(keys) < READERS:
        return sum(map(hashed, keys)) % 2**64
    with ThreadPoolExecutor(READERS) as pool:
        return sum(pool.map(hashed, keys)) % 2**64


def _seal(path: str, attributes: dict[str, Any]) -> str:
    """Return a hash of the attributes, and of the metadata of the arrays in the attribute `contents`."""
    arrays = {}
    for name in attributes.get("contents", {}):
        place = os.path.join(path, name, "zarr.json")
        with damaged_attributes(path), read_errors(place), open(place, encoding="utf-8") as file:
            arrays[name] = {key: value for key, value in json.load(file).items() if key != "shape"}
    sealed = [{key: value for key, value in attributes.items() if key != "seal"}, arrays]
    return hashlib.blake2b(json.dumps(sealed, sort_keys=True).encode(), digest_size=16).hexdigest()


def row_blocks(arrays: Sequence[StoredArray], done: np.ndarray | None = None) -> Iterator[tuple[Any, ...]]:
    """Iterate over arrays in order, by the rows of whole chunks of the first: yields (first row, block of each array).

    With `done`, bool (rows), chunks whose first row is not done are skipped.
    """
    for start, stop in arrays[0].ranges():
        if done is None or done[start]:
            yield start, *(array[start:stop] for array in arrays)

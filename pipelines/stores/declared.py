"""Schemas as data: the arrays and attributes of a store, and the commit that writes each of them.

A `Schema` creates, writes, reads and verifies the stores that it describes. Each array is a single plain chunk, so that
all processes of a host that read it map the same memory: the file, in the page cache of the system.

Reading an array checks every byte. The checksum of the chunk shows whether the chunk is damaged, and the record of the
store (`pipelines.stores.contents`) whether it is the chunk that was written there. So the values need no check: they
are the values that the writer computed.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import zarr

from pipelines.stores.contents import (
    CHECKSUM_BYTES,
    StoredArray,
    Verified,
    compare_contents,
    missing_chunk,
    record,
    refuse_missing,
)
from pipelines.stores.schema import (
    StoreError,
    attribute,
    check_array,
    checkpoint_codecs,
    damaged_attributes,
    disk_errors,
    no_array,
    open_store,
    recorded_dtype,
)
from pipelines.stores.whole_chunks import WholeChunks


@dataclass(frozen=True)
class Array:
    """An array of a schema.

    Attributes
    ----------
    name : str
    commit : the commit that writes the array
    dtypes : the dtypes that the array may have; DISTANCE is the dtype of the distances of the store
    lengths : for each dimension, the name of its length. Lengths of the same name are equal; "nodes + 1" is one more
        than "nodes", and a number is itself
    optional : whether a store may lack the array
    until : the commit from which on the array is no longer part of the store; "" for never
    """

    name: str
    commit: str
    dtypes: tuple[str, ...]
    lengths: tuple[str, ...]
    optional: bool = False
    until: str = ""


DISTANCE = ("distance",)


@dataclass(frozen=True)
class Attribute:
    """An attribute of a schema: its name, the commit that writes it, and its type in JSON."""

    name: str
    commit: str
    type: type


@dataclass(frozen=True)
class Schema:
    """A schema.

    Attributes
    ----------
    name : such as "hierarchy/1"
    commits : names of the commits, in their order; the first creates the store, and the last completes it
    attributes, arrays : the contents. The attribute `done` is the number of commits after the first.
    """

    name: str
    commits: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    arrays: tuple[Array, ...]

    def read(self, path: str | os.PathLike[str], group: zarr.Group) -> dict[str, Any]:
        """Return the attributes that are written so far, `done` included, after a check of the attributes and arrays.

        Raises StoreError if an attribute or array is missing, or has another type or shape.
        """
        done = attribute(path, group, "done")
        if type(done) is not int or not 0 <= done < len(self.commits):
            raise StoreError(f"{path}: the attribute `done` is damaged ({done!r}); recreate the store")
        found: dict[str, Any] = {"done": done}
        for each in self.attributes:
            if each.commit in self.commits[: done + 1]:
                value = attribute(path, group, each.name)
                if type(value) is not each.type:
                    raise StoreError(f"{path}: the attribute `{each.name}` is damaged ({value!r}); recreate the store")
                found[each.name] = value
        self._check_arrays(path, group, found)
        return found

    def _check_arrays(self, path: str | os.PathLike[str], group: zarr.Group, attributes: dict[str, Any]) -> None:
        with damaged_attributes(path):
            there = dict(group.attrs["contents"])
            distance = recorded_dtype(attributes["dtype"])
        known = {name: value for name, value in attributes.items() if type(value) is int}
        done = self.commits[: attributes["done"] + 1]
        for each in self.arrays:
            if each.commit not in done or each.until in done:
                continue
            if each.name not in there:
                if each.optional:
                    continue
                raise no_array(path, each.name)
            names, more = zip(*(_length(text) for text in each.lengths), strict=True)
            shape = [int(name) if name.isdecimal() else known.get(name) for name in names]
            shape = [None if length is None else length + extra for length, extra in zip(shape, more, strict=True)]
            check_array(path, group, each.name, shape, (distance,) if each.dtypes == DISTANCE else each.dtypes)
            for name, extra, length in zip(names, more, StoredArray(path, each.name).shape, strict=True):
                known.setdefault(name, length - extra)

    def write(self, path: str, group: zarr.Group, commit: str, values: Mapping[str, np.ndarray | None]) -> None:
        """Create and write the arrays of a commit; arrays that are None are left out. `finish` commits them."""
        with disk_errors(path):
            for each in self.arrays:
                if each.commit != commit or values[each.name] is None:
                    continue
                value = np.ascontiguousarray(values[each.name])
                group.create_array(
                    each.name,
                    shape=value.shape,
                    chunks=tuple(max(1, length) for length in value.shape),
                    dtype=value.dtype,
                    compressors=checkpoint_codecs(),
                    dimension_names=[None if text.isdecimal() else _length(text)[0] for text in each.lengths],
                    overwrite=True,
                )
                if value.size:
                    WholeChunks(path, each.name)[tuple(slice(0, length) for length in value.shape)] = value

    def finish(self, path: str, group: zarr.Group, commit: str, attributes: dict[str, Any]) -> None:
        """Commit the arrays that `write` wrote, together with the attributes of the commit."""
        written = [each.name for each in self.arrays if each.commit == commit and each.name in group]
        added = {name: StoredArray(path, name).places() for name in written}
        dropped = [each.name for each in self.arrays if each.until == commit]
        with disk_errors(path):
            record(path, group, attributes | {"done": self.commits.index(commit)}, added, dropped=dropped)

    def obsolete(self, path: str) -> list[Path]:
        """Return the folders of arrays that are no longer part of the store."""
        group = open_store(path, self.name)
        done = self.commits[: attribute(path, group, "done") + 1]
        return [Path(path, each.name) for each in self.arrays if each.until in done and each.name in group]

    def chunks(self, path: str, group: zarr.Group) -> dict[str, list[str]]:
        """Return the keys of all committed chunks, by array."""
        there = group.attrs.get("contents", {})
        return {each.name: StoredArray(path, each.name).places() for each in self.arrays if each.name in there}

    def load(self, path: str, group: zarr.Group) -> dict[str, np.ndarray]:
        """Map all committed arrays; raises StoreError unless every byte is as it was written."""
        chunks = self.chunks(path, group)
        arrays = {name: _mapped(path, name) for name in chunks}
        compare_contents(path, group, chunks)
        return arrays

    def verify(self, path: str, group: zarr.Group) -> Verified:
        """Reread all committed arrays and compare them with the record; raises StoreError at the first difference."""
        chunks = self.chunks(path, group)
        refuse_missing(path, chunks)
        for name in chunks:
            values = _mapped(path, name)
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise StoreError(f"{path}: `{name}` holds NaN; recreate the store")
        return compare_contents(path, group, chunks, "that no number is NaN")


def _length(text: str) -> tuple[str, int]:
    """Return the name of a length, and what is added to it.

    >>> _length("nodes + 1"), _length("n")
    (('nodes', 1), ('n', 0))
    """
    name, _, more = text.partition(" + ")
    return name, int(more or 0)


def _mapped(path: str, name: str) -> np.ndarray:
    """Map an array of one plain chunk, after a check of its checksum.

    The array can be written to, but other processes do not see the changes, and the file stays as it is: compiled
    functions take arrays that can be written to.
    """
    array = StoredArray(path, name)
    places, expected = array.places(), int(np.prod(array.shape)) * array.dtype.itemsize
    if not array.raw or len(places) > 1:
        raise StoreError(f"{path}: the array `{name}` is not one plain chunk; recreate the store")
    if not places:
        return np.empty(array.shape, array.dtype)
    place = os.path.join(path, name, places[0])
    try:
        with open(place, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    except (FileNotFoundError, IsADirectoryError):
        raise missing_chunk(os.path.join(path, name), places[0]) from None
    found = np.frombuffer(memory, np.uint8)
    data, checksum = found[:expected], found[expected:].tobytes()
    if len(checksum) != CHECKSUM_BYTES or google_crc32c.value(data).to_bytes(CHECKSUM_BYTES, "little") != checksum:
        raise StoreError(f"{place}: the chunk is damaged (its checksum is wrong); recreate the store")
    return data.view(array.dtype).reshape(array.shape)

"""Schemas as data: the attributes and arrays of a store, and how a store is read and checked by its schema.

The module of a schema declares a `Schema` and typed views: a class for finished stores and, if stores of the schema
grow, a `pipelines.stores.resuming.StoreWriter`. `Schema.read` checks a store and returns all that it records, and
`view` fills the fields of a typed view with the entries of the same names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import zarr

from pipelines.stores.schema import attribute, check_array, create_array, damaged_attributes, open_store, recorded_dtype
from pipelines.stores.settled import settled

T = TypeVar("T")


@dataclass(frozen=True)
class Attribute:
    """An attribute of a schema.

    Attributes
    ----------
    name : str
    type : its type in JSON, or a function that returns its value in Python and raises an error if it is damaged
    field : the name of the value in typed views; by default the name of the attribute
    commit : the commit that writes the attribute; "" for the first
    """

    name: str
    type: Callable[[Any], Any]
    field: str = ""
    commit: str = ""

    def read(self, path: str | os.PathLike[str], group: zarr.Group) -> Any:
        """Return the value of the attribute in Python; raises StoreError if it is missing or damaged."""
        value = attribute(path, group, self.name)
        with damaged_attributes(path, f"the attribute `{self.name}` is"):
            if isinstance(self.type, type) and type(value) is not self.type:
                raise TypeError(value)
            return self.type(value)


@dataclass(frozen=True)
class Array:
    """An array of a schema.

    Attributes
    ----------
    name : str
    dtypes : the dtypes that the array may have; text that is the field of an attribute means the dtype recorded there
    lengths : for each dimension, its name, which names its length. Lengths of the same name are equal; "nodes + 1" is
        one more than "nodes", and a number is itself. The name of an attribute is the length that the attribute has or
        is
    optional : whether a store may lack the array; or the field of an attribute that is None or False if the store lacks
        the array
    commit : the commit that writes the array; "" for the first
    until : the commit from which on the array is no longer part of the store; "" for never
    grows : whether the array grows by rows (`pipelines.stores.resuming.RowsWriter`)
    """

    name: str
    dtypes: tuple[Any, ...]
    lengths: tuple[str, ...]
    optional: bool | str = False
    commit: str = ""
    until: str = ""
    grows: bool = False


@dataclass(frozen=True)
class Schema:
    """A schema.

    Attributes
    ----------
    name : such as "hierarchy/1"
    attributes, arrays : the contents
    source : the attribute that records what the store was computed from, "graph" or "samples"; "" for none
    grows : whether the store grows; its attribute `complete` then says whether it is finished
    commits : names of the commits after the first, in their order, if they write different arrays. The attribute `done`
        is then the number of commits, without the first
    derive : function of the path of a store, its group, and the entries found so far, that returns further entries for
        typed views, and raises an error if entries contradict each other
    """

    name: str
    attributes: tuple[Attribute, ...]
    arrays: tuple[Array, ...]
    source: str = ""
    grows: bool = True
    commits: tuple[str, ...] = ()
    derive: Callable[[str, zarr.Group, dict[str, Any]], dict[str, Any]] = lambda _path, _group, _found: {}

    def open(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return all that the store at `path` records, as `read` does, between two commits of other processes."""
        return settled(path, lambda: self.read(path, open_store(path, self.name)))

    def read(self, path: str | os.PathLike[str], group: zarr.Group) -> dict[str, Any]:
        """Return all that a store records: its attributes, lengths of its arrays, and where its source is.

        The entry `arrays` has the names of the arrays that the store has.

        Raises
        ------
        StoreError
            An attribute or array is missing, or has another type or shape.
        """
        path = os.fspath(path)
        found: dict[str, Any] = {"path": os.path.abspath(path), "run_id": "", "seal": group.attrs.get("seal", "")}
        if self.grows:
            found["finished"] = Attribute("complete", bool).read(path, group)
        written = self._written(path, group)
        for each in self.attributes:
            if each.commit in written:
                found[each.field or each.name] = each.read(path, group)
        if self.source:
            found[self.source] = recorded_origin(path, group, self.source)
            found[f"{self.source}_path"] = origin_path(path, found[self.source])
            found[f"{self.source}_digest"] = found[self.source]["digest"]
        there = [each for each in self.arrays if each.commit in written and each.until not in written[1:]]
        there = [each for each in there if not self._left_out(each, group, found)]
        found["arrays"] = tuple(each.name for each in there)
        with damaged_attributes(path):
            found |= self.derive(path, group, found)
        for array in there:
            _check(path, group, array, found)
        return found

    def _left_out(self, array: Array, group: zarr.Group, found: dict[str, Any]) -> bool:
        """Return whether a store lacks an array that is optional."""
        if isinstance(array.optional, str):
            return found[array.optional] is None or found[array.optional] is False
        return array.optional and array.name not in group.attrs.get("contents", {}) and array.name not in group

    def create(self, group: zarr.Group, name: str, *arguments: Any, **options: Any) -> zarr.Array[Any]:
        """Create an array as `pipelines.stores.schema.create_array` does, and name its dimensions."""
        (lengths,) = (each.lengths for each in self.arrays if each.name == name)
        return create_array(group, name, *arguments, dimension_names=lengths, **options)

    def write(self, group: zarr.Group, name: str, values: np.ndarray) -> None:
        """Create a small array, and write it in one go, with every chunk."""
        dtype = str if values.dtype.kind in "OUT" else values.dtype
        self.create(group, name, values.shape, "auto", dtype)[:] = values

    def _written(self, path: str, group: zarr.Group) -> tuple[str, ...]:
        """Return the names of the commits of a store, from "", the first commit, on."""
        if not self.commits:
            return ("",)
        done = attribute(path, group, "done")
        with damaged_attributes(path, "the attribute `done` is"):
            if type(done) is not int or not 0 <= done <= len(self.commits):
                raise ValueError(done)
        return ("", *self.commits[:done])


def view(cls: type[T], found: dict[str, Any]) -> T:
    """Return an object of a dataclass whose fields have the entries of the same names."""
    names = (each.name for each in fields(cls))  # type: ignore[arg-type]
    return cls(**{name: found[name] for name in names if name in found})


def _check(path: str, group: zarr.Group, array: Array, found: dict[str, Any]) -> None:
    """Check an array, and enter its lengths in `found`."""
    names, more = zip(*map(_length, array.lengths), strict=True)
    known = [int(name) if name.isdecimal() else found.get(name) for name in names]
    known = [len(length) if isinstance(length, tuple) else length for length in known]
    shape = [None if length is None else length + extra for length, extra in zip(known, more, strict=True)]
    dtypes = [found.get(each, each) if isinstance(each, str) else each for each in array.dtypes]
    lengths = check_array(path, group, array.name, shape, dtypes, whole=found.get("finished", True))
    for name, extra, length in zip(names, more, lengths, strict=True):
        if not name.isdecimal():
            found.setdefault(name, length - extra)


def _length(text: str) -> tuple[str, int]:
    """Return the name of a length, and the number that is added to the length.

    >>> _length("nodes + 1"), _length("n")
    (('nodes', 1), ('n', 0))
    """
    name, _, more = text.partition(" + ")
    return name, int(more or 0)


# Types of attributes


def dtype_of(dtypes: Sequence[np.dtype]) -> Callable[[Any], np.dtype]:
    """Return a function that returns the dtype of this name; it raises ValueError unless it is one of `dtypes`."""
    return lambda name: dtypes[dtypes.index(recorded_dtype(name))]


def real(value: Any) -> float:
    """Return a number as a float; raises TypeError for text and booleans."""
    if type(value) not in (int, float):
        raise TypeError(value)
    return float(value)


def tuple_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns a tuple of the values of a list, each as `read` returns it."""
    return lambda values: tuple(map(read, values))


def optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that returns None for None, and for other values what `read` returns."""
    return lambda value: None if value is None else read(value)


# The source of a store


def recorded_origin(path: str | os.PathLike[str], group: zarr.Group, name: str) -> dict[str, Any]:
    """Return the record of the "graph", "samples" or "codebook", by `name`, that a store was computed from."""
    found = attribute(path, group, name)
    with damaged_attributes(path, f"the attributes of its {name} are"):
        for key in ("path", "relative", "digest") if name != "codebook" else ("path",):
            if not isinstance(found[key], str):
                raise TypeError(f"{key} is {found[key]!r}")
    return dict(found)


def origin_path(path: str | os.PathLike[str], recorded: dict[str, str]) -> str:
    """Return the path of the source store, "" if the source was in no store.

    It is the recorded relative path, seen from the store at `path`, if a folder exists there, as after both stores were
    moved together. Otherwise it is the recorded path.
    """
    if not recorded["path"]:
        return ""
    beside = os.path.normpath(os.path.join(os.path.abspath(path), recorded["relative"]))
    return beside if os.path.isdir(beside) else recorded["path"]

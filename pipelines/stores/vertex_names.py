"""The vertex that a name means: one set of rules for the command line, tables and Python.

* In a graph with labels, text is a label, or ``#17`` for the vertex at position 17; digits alone are no position.
* In a graph without labels, text is a position as `str(int)` writes it or ``#17``; "01", "+1" and "1_0" mean no vertex.
* An int means the same as its digits as text: 17 is the label "17", or position 17 in a graph without labels.
* `positions` marks ints as positions: ``positions([3, 2])`` are the vertices #3 and #2 of any graph.
* In tables, names are int64 if the source named the vertices by integers or the graph has no labels, else text.
* Blanks around the text are ignored, unless the text with its blanks is a label.
* A label such as ``#17`` takes precedence over position 17, if the text is exactly this label.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuops.arrays import is_cupy, on_host
from pipelines.stores.errors import StoreError
from pipelines.stores.schema import brief

UNKNOWN, SEVERAL = -1, -2

_MARKED = re.compile(r"#(0|[1-9][0-9]{0,18})")
_PLAIN = re.compile(r"#?(0|[1-9][0-9]{0,18})")
_PLAIN_INTEGER = re.compile(r"-?[0-9]{1,19}")
_MASK = "the {}s are a mask; give the rows that it selects, as frame[mask], or positions(np.flatnonzero(mask))"
_NAME = "give a label, or a position if there are no labels, as text or int; or a position as '#17' or positions(17)"


@dataclass(frozen=True, eq=False)
class Positions:
    """Vertices given by their positions, regardless of their labels; created by `positions`.

    An item, a slice and an element of an iteration are `Positions`, too. NumPy takes them as the array `indices`, and
    ``int(found)`` is a single position.
    """

    indices: Any

    def __repr__(self) -> str:
        return f"positions({np.array2string(np.asarray(self), separator=', ', threshold=12)})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = np.asarray(on_host(self.indices))
        return found.astype(dtype or found.dtype, copy=bool(copy))

    def __len__(self) -> int:
        if not self.indices.ndim:
            raise TypeError("one position has no length")
        return len(self.indices)

    def __getitem__(self, key: Any) -> Positions:
        return positions(self.indices[key])

    def __iter__(self) -> Iterator[Positions]:
        return (self[i] for i in range(len(self)))

    def __int__(self) -> int:
        return int(self.indices)


VertexName: TypeAlias = "str | int | Positions"
VertexNameList: TypeAlias = "Iterable[str | int] | np.ndarray | Positions"


def positions(indices: Any) -> Positions:
    """Mark ints as positions of vertices in the store, for arguments that name vertices.

    If the graph has labels, such arguments take an int for a label. `positions` marks ints as positions, as "#3" does
    in text. Arrays that are read from stores (rows, predecessors, `Path.vertices`) hold positions.

    Parameters
    ----------
    indices : int, or array-like of ints of any shape; NumPy, CuPy, pandas or Arrow
        Positions from 0: an int for one vertex, an array (k,) for a list of vertices, an array (P, 2) for pairs.

    Returns
    -------
    Positions
        A value for arguments that name vertices.

    Raises
    ------
    ValueError
        An entry is not an integer.

    Examples
    --------
    >>> tilepath.distances_between(graph, tilepath.positions([0]), ["Pisa"]).tolist()
    [[350]]
    """
    if is_cupy(indices) and indices.dtype.kind in "iu":
        return Positions(indices)
    array = np.asarray(on_host(indices))
    if array.dtype.kind not in "iu" and array.size:
        array = np.asarray(_entries("position", array.reshape(-1))).reshape(array.shape)
        if array.dtype.kind not in "iu":
            raise ValueError(f"positions are {array.dtype}; give ints")
    return Positions(array.astype(np.int64))


class VertexNames:
    """The names of the vertices of a graph, kept in memory for repeated lookups.

    Parameters
    ----------
    n : number of vertices
    read : function that reads the labels, str (n), or returns None if there are no labels
    where : name of the graph in messages
    """

    def __init__(self, n: int, read: Callable[[], np.ndarray | None], where: str):
        self.n, self._read, self._where = n, read, where

    def find(self, names: pa.Array | Sequence[str]) -> np.ndarray:
        """Return the vertices that `names` mean.

        Parameters
        ----------
        names : text (k); null means no vertex

        Returns
        -------
        int64 (k): `UNKNOWN` for a name that means no vertex, `SEVERAL` for a label of more than one vertex.
        """
        if not isinstance(names, pa.Array):
            names = pa.array(map(_encodable, names), pa.large_string())
        found = self._exactly(names)
        rest = np.flatnonzero(found == UNKNOWN)
        if rest.size:
            found[rest] = self._exactly(pc.utf8_trim_whitespace(names.take(pa.array(rest))))
        return found

    def vertices(self, given: VertexNameList, what: str) -> np.ndarray:
        """Return the vertices that a list names, int64 (k).

        Parameters
        ----------
        given : one-dimensional sequence or array of text, ints, or both; or `positions`
        what : word for a vertex of the list in messages, such as "source"

        Raises
        ------
        ValueError
            `given` is not such a list, or an entry is neither text nor an integer.
        StoreError
            An entry means no vertex, or several vertices.
        """
        entries: Any
        if isinstance(given, Positions):
            entries = on_host(given.indices)
            if entries.ndim != 1:
                raise ValueError(f"the {what}s have the shape {entries.shape}; give a list of vertices")
            found = np.where((entries >= 0) & (entries < self.n), entries, UNKNOWN)
        elif isinstance(given, list | tuple) and given and all(isinstance(each, Positions) for each in given):
            return self.vertices(positions([int(each) for each in given]), what)
        else:
            entries = _entries(what, given)
            found = self._named(entries)
        for i in np.flatnonzero(found < 0)[:1]:
            name = f"#{entries[i]}" if isinstance(given, Positions) else entries[i]
            place = f"{what} {i + 1} of the list: " if len(found) > 1 else ""
            raise StoreError(f"{self._where}: {place}{self.why_none(name)}")
        return found

    def vertex(self, name: VertexName, what: str) -> int:
        """Return the vertex that `name` means; raises the errors of `vertices`."""
        if isinstance(name, Positions):
            if not name.indices.ndim:
                return int(self.vertices(Positions(name.indices.reshape(1)), what)[0])
        elif _is_name(name):
            return int(self.vertices([name], what)[0])
        place = isinstance(name, tuple) and len(name) == 2
        cure = "tilepath.vertices_at(network, place).vertices is the vertex nearest to a place" if place else _NAME
        raise ValueError(f"the {what} is {brief(repr(name))}; {cure}")

    def why_none(self, name: str | int) -> str:
        """Return the reason why a name does not mean a vertex, and the cure, as text."""
        labels = self._labels
        name = name if isinstance(name, str) else int(name)
        if self.n == 0:
            return f"there is no vertex {name!r}; the graph has no vertices"
        if labels is None:
            return f"there is no vertex {name!r}; give a position from 0 to {self.n - 1}"
        if _encodable(str(name)) is not None:
            bearers = np.flatnonzero((labels == str(name)) | (labels == str(name).strip()))
            if bearers.size:
                return (
                    f"{bearers.size} vertices are labelled {str(name)!r}; name one by position, such as #{bearers[0]}"
                )
        cure = f"give a label, such as {str(labels[0])!r}, or"
        if isinstance(name, int):
            return f"there is no vertex labelled {name}; {cure} a position, as '#{name}' or positions([{name}])"
        return f"there is no vertex {name!r}; {cure} a position from #0 to #{self.n - 1}"

    @cached_property
    def _labels(self) -> np.ndarray | None:
        return self._read()

    @cached_property
    def _texts(self) -> pa.Array | None:
        return None if self._labels is None else pa.array(self._labels.tolist(), pa.large_string())

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The sorted labels, int64, and their vertices; None unless all are distinct integers in `str(int)` form."""
        labels = self._labels
        assert labels is not None
        values = integers_of(labels)
        if values is None:
            return None
        order = np.argsort(values, kind="stable")
        rising = values[order]
        return (rising, order) if (rising[1:] > rising[:-1]).all() else None

    def _named(self, entries: np.ndarray | list[str | int]) -> np.ndarray:
        """Return the vertices that text and ints mean; negative if an entry means no vertex, or several vertices."""
        if not isinstance(entries, np.ndarray):
            return self.find([str(entry) for entry in entries])
        if self._labels is None:
            return np.where((entries >= 0) & (entries < self.n), entries, UNKNOWN).astype(np.int64)
        if self._numbers is None or entries.dtype == np.uint64:
            return self.find(pa.array(entries).cast(pa.large_string()))
        rising, vertices = self._numbers
        if not len(rising):
            return np.full(len(entries), UNKNOWN)
        places = np.searchsorted(rising, entries).clip(0, len(rising) - 1)
        return np.where(rising[places] == entries, vertices[places], UNKNOWN)

    def _exactly(self, names: pa.Array) -> np.ndarray:
        """Return the result of `find` for names whose blanks are not ignored."""
        coded = names.dictionary_encode()
        asked = coded.dictionary
        found = np.full(len(asked) + 1, UNKNOWN, np.int64)  # the last entry is for nulls
        if self._texts is not None:
            named = pc.index_in(self._texts, value_set=asked)  # for each vertex, the position of its label in `asked`
            vertices = np.flatnonzero(named.is_valid())
            which = named.drop_null().to_numpy()
            found[which] = vertices
            found[np.flatnonzero(np.bincount(which) > 1)] = SEVERAL
        form = _PLAIN if self._texts is None else _MARKED
        for i in np.flatnonzero(found[:-1] == UNKNOWN):
            match = form.fullmatch(asked[i].as_py())
            if match is not None and int(match[1]) < self.n:
                found[i] = int(match[1])
        return found[pc.fill_null(coded.indices, len(asked)).to_numpy()]


def integers_of(labels: Sequence[str] | np.ndarray) -> np.ndarray | None:
    """Return labels as int64; None unless each is written as `str(int)` writes a number that fits in int64.

    >>> integers_of(["17", "-3"]).tolist(), integers_of(["17", "007"])
    ([17, -3], None)
    """
    if len(labels) and not _PLAIN_INTEGER.fullmatch(str(labels[0])):
        return None  # most labels of text end here, so that the others are not read
    try:
        texts = pa.array(labels.tolist() if isinstance(labels, np.ndarray) else labels, pa.large_string())
        values = texts.cast(pa.int64())
    except ValueError:
        return None
    return values.to_numpy() if values.cast(texts.type).equals(texts) else None


def _entries(what: str, given: Any) -> np.ndarray | list[str | int]:
    """Return the entries of a list of vertices, as an array if all are integers; raises ValueError if it is no list."""
    if isinstance(given, str | bytes | dict) or not (hasattr(given, "__iter__") or hasattr(given, "__array__")):
        raise ValueError(f"the {what}s are not a list but {given!r}; give a list of vertices, such as [{given!r}]")
    if is_cupy(given):
        given = given.get()
    if hasattr(given, "__array__"):
        array = np.asarray(given)
        if array.ndim != 1:
            raise ValueError(f"the {what}s are not a list but have the shape {array.shape}; give a list of vertices")
        if array.dtype.kind in "iu":
            return array
        if array.dtype.kind == "b":
            raise ValueError(_MASK.format(what))
        given = array.tolist()
    entries = list(given)
    kinds = set(map(type, entries))
    if kinds <= {int}:
        try:
            return np.array(entries, np.int64)
        except OverflowError:
            return entries
    if kinds == {str}:
        return entries
    if kinds in ({bool}, {np.bool_}):
        raise ValueError(_MASK.format(what))
    wrong = [i for i, entry in enumerate(entries) if not _is_name(entry)]
    if wrong:
        i = next((i for i in wrong if _is_missing(entries[i])), wrong[0])  # a missing entry turned ints into floats
        raise ValueError(f"{what} {i + 1} of the list is {entries[i]!r}; {_cure(entries[i])}")
    return [entry if isinstance(entry, str) else operator.index(entry) for entry in entries]


def _is_name(entry: Any) -> bool:
    """Return whether an entry is text, or an integer of any library."""
    if isinstance(entry, str):
        return True
    try:
        operator.index(entry)
    except TypeError:
        return False
    return not isinstance(entry, bool)


def _is_missing(entry: Any) -> bool:
    number = isinstance(entry, float | np.floating)
    return entry is None or type(entry).__name__ == "NAType" or (number and bool(np.isnan(entry)))


def _cure(entry: Any) -> str:
    if _is_missing(entry):
        return "fill in the vertex that is missing, or leave it out"
    if isinstance(entry, tuple) or hasattr(entry, "geom_type"):
        return "tilepath.vertices_at(network, places).vertices are the vertices nearest to places"
    if isinstance(entry, float | np.floating) and entry.is_integer():
        return 'floats do not name vertices; convert them to ints, such as by .astype("int64")'
    return _NAME


def _encodable(name: str) -> str | None:
    """Return `name`, or None if it has bytes of a command line that are not UTF-8: labels do not hold such bytes."""
    return name if name.encode(errors="ignore").decode() == name else None

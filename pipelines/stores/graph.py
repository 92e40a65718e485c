"""The graph store (schema `graph/1`): a weighted directed multigraph in compressed sparse rows.

========== ============== =================================================================================
array      dtype, shape   meaning
========== ============== =================================================================================
indptr     int64 (n + 1)  arcs leaving u are indptr[u] : indptr[u + 1]
indices    int32/64 (m)   heads; sorted within a row, equal heads in the order of the source; or rows as given
weights    number (m)     in the natural dtype of the source
labels     str (n)        optional: the names of the vertices in the source
coordinates float64 (n,2) optional: x, y or longitude, latitude
through    bool (n)       optional: whether the vertex may lie inside a path; absent: every vertex may
========== ============== =================================================================================

Vertices are 0-based in file order. An undirected edge is stored twice, once in each direction, loops included.
Parallel arcs and loops are kept. The `digest` attribute covers everything an answer depends on: n, the direction,
the four arrays indptr, indices, weights and through; and that the rows are as given, where they are.

Most rows are sorted by head. A store may instead keep them in the order of the source (`sorted_rows` is false; older
stores lack the attribute and are sorted), for Euler circuits, whose arcs are numbered by their places in the store.
Everything else asks for `Graph.rows`, which hands out sorted rows of either store.
"""

from __future__ import annotations

import hashlib
import operator
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import zarr

from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing
from pipelines.stores.neighbours import NamedRows, ReversedGraph
from pipelines.stores.place import new_store
from pipelines.stores.schema import (
    CHUNK_BYTES,
    TEXT,
    StoreError,
    check_array,
    counted,
    damaged_attributes,
    flag,
    number,
    open_store,
    recorded_dtype,
    result_codecs,
)
from pipelines.stores.vertex_names import UNKNOWN, find_vertices, why_no_vertex

SCHEMA = "graph/1"


@dataclass(frozen=True, repr=False)
class Graph(NamedRows):
    """A graph store, opened by `open_graph`: attributes in memory, arrays read on demand. It pickles as its path.

    ``graph["a"]`` are the neighbours of a vertex by name, ``for name, neighbours in graph`` those of all.
    """

    path: str
    n: int
    m: int
    input_edges: int
    directed: bool
    simplified: bool
    weight_dtype: np.dtype
    weight_min: float
    weight_max: float
    weight_unit: str
    source: str
    digest: str
    optional: frozenset[str]
    sorted_rows: bool

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"<{kind} graph {os.path.basename(self.path)}: {self._counts()}>"

    def _counts(self) -> str:
        return f"{counted(self.n, 'vertex', 'vertices')}, {counted(self.m, 'arc')}"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "reverse"}

    @cached_property
    def reverse(self) -> ReversedGraph:
        """The graph with all arcs turned around, made when it is first asked for; all arcs are then in memory."""
        return ReversedGraph(self)

    def indptr(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """int64 offsets of rows `start` to `stop` (excluded), one more than the number of rows."""
        stop = self.n if stop is None else stop
        return self._array("indptr")[start : stop + 1]

    def rows(self, start: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arcs leaving vertices `start` to `stop` (excluded) as CSR: indptr (from 0), indices, weights.

        Heads are sorted within a row, whether or not they are in the store; equal ones keep their order.
        """
        indptr = self.indptr(start, stop)
        arcs = slice(int(indptr[0]), int(indptr[-1]))
        indptr -= indptr[0]
        indices, weights = self._array("indices")[arcs], self._array("weights")[arcs]
        if not self.sorted_rows:
            from pipelines.stores.row_order import sort_rows  # Numba, which most reading does without

            sort_rows(indptr, indices, weights.view(f"u{weights.itemsize}"))
        return indptr, indices, weights

    def ranges(self, count: int, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
        """Cut the vertices `start` to `stop` (excluded) into ranges that as many arcs leave, or nearly."""
        indptr = self.indptr(start, stop)
        return [(start + a, start + b) for a, b in equal_ranges(indptr - indptr[0], count)]

    def rows_in(self, library: Any, dtype: Any, start: int, stop: int) -> tuple[Any, Any, Any]:
        """The arcs leaving vertices `start` to `stop` (excluded) as CSR, in new arrays of NumPy or CuPy.

        `library` is numpy or cupy, `dtype` that of the weights.
        """
        indptr, indices, weights = self.rows(start, stop)
        return tuple(map(library.asarray, (indptr, indices, weights.astype(dtype, copy=False))))

    def indices(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """int32 or int64: the heads of the arcs at the places `start` to `stop` (excluded), as they are stored."""
        return self._array("indices")[start : self.m if stop is None else stop]

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """The weights of the same arcs."""
        return self._array("weights")[start : self.m if stop is None else stop]

    def labels(self) -> np.ndarray | None:
        """The names of the vertices in the source, str (n), or None."""
        return self._optional("labels")

    def coordinates(self) -> np.ndarray | None:
        """Positions, float64 (n, 2), or None."""
        return self._optional("coordinates")

    def through(self) -> np.ndarray:
        """bool (n): whether the vertex may lie inside a path; all true where the store does not say."""
        mask = self._optional("through")
        return np.ones(self.n, dtype=bool) if mask is None else mask

    def find(self, names: Sequence[str] | pa.Array) -> np.ndarray:
        """The vertices that names mean (`pipelines.stores.vertex_names`), int64; negative where there is none."""
        return find_vertices(names, self.n, self.labels())

    def vertex(self, name: str | int) -> int:
        """The index of a vertex given by name (`pipelines.stores.vertex_names`) or by index, an int.

        Raises
        ------
        StoreError
            There is no such vertex, or several have the label.
        """
        if isinstance(name, str):
            vertex = int(self.find([name])[0])
        else:
            name = operator.index(name)
            vertex = name if name < self.n else UNKNOWN
        if vertex >= 0:
            return vertex
        raise StoreError(f"{self.path}: {why_no_vertex(name, self.n, self.labels())}")

    def label(self, vertex: int) -> str:
        """The label of a vertex, or its index as text; of several, `names` reads them at once."""
        return self.names([vertex])[0]

    def names(self, vertices: Sequence[int] | np.ndarray) -> list[str]:
        """The labels of vertices, or their indices as text. Reads only the chunks of labels that they stand in."""
        places = np.asarray(vertices, dtype=np.int64)
        found = self._array("labels")[places] if "labels" in self.optional and places.size else places
        return [str(name) for name in found]

    def describe(self) -> str:
        """One line for people about what the store holds."""
        kind = "directed" if self.directed else "undirected"
        unit = f" {self.weight_unit}" if self.weight_unit else ""
        closed = int((~self.through()).sum())
        parts = [
            f"{self.path}: {kind} graph, {self._counts()}",
            f"weights {self.weight_dtype} from {number(self.weight_min)} to {number(self.weight_max)}{unit}",
        ]
        if closed:
            parts.append(f"{counted(closed, 'vertex', 'vertices')} closed to through traffic")
        if not self.sorted_rows:
            parts.append("rows as given")
        extras = sorted(self.optional - {"through"})
        if extras:
            parts.append(f"with {' and '.join(extras)}")
        if self.source:
            parts.append(f"from {self.source}")
        return "; ".join(parts)

    def verify(self) -> Verified:
        """Reread everything and compare it with what was recorded; StoreError names what differs."""
        arrays = {name: self._array(name) for name in ("indptr", "indices", "weights", *sorted(self.optional))}
        chunks = {name: array.places() for name, array in arrays.items()}
        refuse_missing(self.path, chunks)
        digest = _Digest(self.n, self.directed, self.sorted_rows)
        indptr = self.indptr()
        if indptr[0] != 0 or indptr[-1] != self.m or np.any(np.diff(indptr) < 0):
            raise StoreError(
                f"{self.path}: `indptr` is not a non-decreasing sequence from 0 to {self.m}; import the graph again"
            )
        digest.add("indptr", indptr)
        low, high = np.inf, -np.inf
        for name in ("indices", "weights"):
            array = arrays[name]
            for start in range(0, self.m, array.chunks[0]):
                piece = array[start : start + array.chunks[0]]
                if name == "indices" and not 0 <= piece.min() <= piece.max() < self.n:
                    raise StoreError(f"{self.path}: `indices` points outside 0..{self.n - 1}; import the graph again")
                if name == "weights":
                    low, high = min(low, float(piece.min())), max(high, float(piece.max()))
                digest.add(name, piece)
        if "through" in self.optional:
            digest.add("through", self.through())
        if digest.value() != self.digest:
            raise StoreError(f"{self.path}: contents do not match the recorded digest; import the graph again")
        if self.m and (low, high) != (self.weight_min, self.weight_max):
            raise StoreError(
                f"{self.path}: weights range from {low} to {high}, but {self.weight_min} to {self.weight_max} was "
                "recorded; import the graph again"
            )
        for name in self.optional - {"through"}:
            arrays[name][:]
        group, digested = open_store(self.path, SCHEMA), ("indptr", "indices", "weights", "through")
        return compare_contents(self.path, group, chunks, "the digest of the graph", digested=digested)

    def _array(self, name: str) -> StoredArray:
        return StoredArray(self.path, name)

    def _optional(self, name: str) -> np.ndarray | None:
        return self._array(name)[:] if name in self.optional else None


def equal_ranges(indptr: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Cut the vertices into `count` ranges that as many arcs leave, as nearly as whole vertices allow.

    >>> equal_ranges(np.array([0, 4, 5, 6, 8]), 2)
    [(0, 1), (1, 4)]
    """
    n = len(indptr) - 1
    goals = np.arange(1, count) * (int(indptr[-1]) / count)
    inner = np.searchsorted(indptr, goals, side="left").clip(0, n)
    edges = [0, *inner.tolist(), n]
    return list(pairwise(edges))


def names_generated(path: str | os.PathLike[str]) -> bool:
    """Is this the name of a graph that is generated instead of stored, such as ``rmat:28``?"""
    return re.match(r"rmat:\d+(:|$)", os.fspath(path)) is not None and not os.path.exists(path)


def open_graph(path: str | os.PathLike[str]) -> Graph:
    """Open a graph store and check its schema, shapes and dtypes.

    A name such as ``rmat:28`` stands for a graph that is not stored (`pipelines.generators.generated_graph`).

    Raises
    ------
    StoreError
        The message names the store, what is wrong with it and the cure.
    """
    if names_generated(path):
        from pipelines.generators.generated_graph import generated_graph  # Numba, which stores do without

        return generated_graph(os.fspath(path))
    group = open_store(path, SCHEMA)
    attrs = dict(group.attrs)
    with damaged_attributes(path, "the attributes of the graph"):
        n, m = int(attrs["n"]), int(attrs["m"])
        facts = Graph(
            path=os.path.abspath(path),
            n=n,
            m=m,
            input_edges=int(attrs["input_edges"]),
            directed=flag(path, group, "directed"),
            simplified=flag(path, group, "simplified"),
            weight_dtype=recorded_dtype(attrs["weight_dtype"]),
            weight_min=float(attrs["weight_min"]),
            weight_max=float(attrs["weight_max"]),
            weight_unit=str(attrs["weight_unit"]),
            source=str(attrs["source"]),
            digest=str(attrs["digest"]),
            optional=frozenset(name for name in ("labels", "coordinates", "through") if name in group),
            sorted_rows="sorted_rows" not in attrs or flag(path, group, "sorted_rows"),
        )
    check_array(path, group, "indptr", (n + 1,), ("int64",))
    check_array(path, group, "indices", (m,), ("int32", "int64"))
    check_array(path, group, "weights", (m,), (facts.weight_dtype,))
    if "labels" in facts.optional:
        check_array(path, group, "labels", (n,), (TEXT,))
    if "coordinates" in facts.optional:
        check_array(path, group, "coordinates", (n, 2), ("float64",))
    if "through" in facts.optional:
        check_array(path, group, "through", (n,), ("bool",))
    return facts


@contextmanager
def new_graph(
    path: str | os.PathLike[str],
    *,
    n: int,
    m: int,
    weight_dtype: Any,
    directed: bool = True,
    input_edges: int | None = None,
    simplified: bool = False,
    sorted_rows: bool = True,
    weight_unit: str = "",
    source: str = "",
    overwrite: bool = False,
) -> Iterator[GraphWriter]:
    """Write a graph store from arcs that arrive sorted by tail; it appears when the block ends without an error.

    ``with new_graph(path, n=..., m=..., weight_dtype=...) as writer:`` then `writer.append` until m arcs are
    written, and `writer.annotate` for labels, coordinates and the through mask.

    Parameters
    ----------
    path : path of the new store
    n, m : number of vertices and of arcs (an undirected edge counts as two arcs)
    weight_dtype : dtype of `weights`
    directed : False promises that every edge is appended in both directions
    input_edges : edges or arcs the source listed; default m
    simplified : whether parallel arcs and loops were removed
    sorted_rows : whether the arcs of a vertex are appended in the order of their heads; True promises it
    weight_unit, source : text for `tilepath info`
    overwrite : replace an existing graph store at `path`

    Raises
    ------
    StoreError
        The path exists, or the disk is full.
    ValueError
        An arc is out of range, a weight is NaN or infinite, or there are not m arcs: a bug in the caller, or input
        that a reader should have refused.
    """
    attrs: dict[str, Any] = {
        "n": n,
        "m": m,
        "input_edges": m if input_edges is None else input_edges,
        "directed": directed,
        "simplified": simplified,
        "sorted_rows": sorted_rows,
        "weight_dtype": str(np.dtype(weight_dtype)),
        "weight_unit": weight_unit,
        "source": source,
    }
    with new_store(path, SCHEMA, overwrite) as group:
        writer = GraphWriter(group, attrs)
        yield writer
        writer._finish()


class GraphWriter:
    """Accepts the arcs of a new graph store in pieces of any size; created by `new_graph`."""

    def __init__(self, group: zarr.Group, attrs: dict[str, Any]):
        self.n, self.m = attrs["n"], attrs["m"]
        self._group, self._attrs = group, attrs
        self._weight_dtype = np.dtype(attrs["weight_dtype"])
        index_dtype = np.dtype("int32" if self.n <= 2**31 else "int64")
        self._indices = _Appender(group, "indices", self.m, index_dtype)
        self._weights = _Appender(group, "weights", self.m, self._weight_dtype)
        self._degrees = np.zeros(self.n, dtype=np.int64)
        self._weight_min, self._weight_max = np.inf, -np.inf
        self._last_tail = 0
        self._through: np.ndarray | None = None

    def append(self, tails: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
        """Append arcs (three 1-d arrays of equal length) whose tails do not decrease."""
        if tails.size == 0:
            return
        if (tails[1:] < tails[:-1]).any():
            raise ValueError("arcs must be appended in the order of their tails")
        self._check_vertices(tails[[0, -1]])
        first = int(tails[0])
        self.append_rows(first, np.bincount(tails - first), indices, weights)

    def append_rows(self, first: int, degrees: np.ndarray, indices: np.ndarray, weights: np.ndarray) -> None:
        """Append the arcs of vertices from `first` on, by how many each has; no arc of a vertex before the last one."""
        if indices.size == 0:
            return
        left = first + np.flatnonzero(degrees)
        if left[0] < self._last_tail:
            raise ValueError("arcs must be appended in the order of their tails")
        self._check_vertices(indices)
        if self._weight_dtype.kind == "f" and not np.isfinite(weights).all():
            raise ValueError("a weight is NaN or infinite; leave out arcs that do not exist")
        self._last_tail = int(left[-1])
        self._degrees[first : first + degrees.size] += degrees
        self._weight_min = min(self._weight_min, weights.min().item())
        self._weight_max = max(self._weight_max, weights.max().item())
        with ThreadPoolExecutor(1) as other:  # digests and compression let go of the GIL
            appended = other.submit(self._indices.append, indices)
            self._weights.append(weights)
            appended.result()

    def _check_vertices(self, vertices: np.ndarray) -> None:
        if vertices.min() < 0 or vertices.max() >= self.n:
            raise ValueError(f"an arc has a vertex outside 0..{self.n - 1}")

    def annotate(
        self,
        *,
        labels: Sequence[str] | np.ndarray | range | None = None,
        coordinates: np.ndarray | None = None,
        through: np.ndarray | None = None,
    ) -> None:
        """Add data of the vertices: labels (n), text or a range of numbers; coordinates (n, 2); through (n)."""
        from pipelines.stores.text_chunks import write_text  # Dask, which reading does without

        self._through = through
        if labels is not None:
            self._check_count("labels", len(labels))
            write_text(self._group, "labels", labels, self._chunk_rows(len(labels), 1))
        if coordinates is not None:
            self._whole("coordinates", np.asarray(coordinates, dtype=np.float64), np.float64)
        if through is not None:
            self._whole("through", np.asarray(through, dtype=bool), bool)

    def _finish(self) -> None:
        self._indices.finish()
        self._weights.finish()
        indptr = np.zeros(self.n + 1, np.int64)
        np.cumsum(self._degrees, out=indptr[1:])
        self._whole("indptr", indptr, np.int64)
        digest = _Digest(self.n, self._attrs["directed"], self._attrs["sorted_rows"])
        digest.add("indptr", indptr)
        digest.join("indices", self._indices.digest)
        digest.join("weights", self._weights.digest)
        if self._through is not None:
            digest.add("through", np.asarray(self._through, dtype=bool))
        empty = self.m == 0
        self._group.update_attributes(
            {
                **self._attrs,
                "weight_min": 0.0 if empty else self._weight_min,
                "weight_max": 0.0 if empty else self._weight_max,
                "digest": digest.value(),
                "schema": SCHEMA,
            }
        )

    def _whole(self, name: str, values: np.ndarray, dtype: Any) -> None:
        self._check_count(name, len(values))
        self._group.create_array(
            name,
            shape=values.shape,
            chunks=(self._chunk_rows(len(values), max(1, values[:1].size)), *values.shape[1:]),
            dtype=dtype,
            compressors=result_codecs(np.dtype(dtype)),
            config={"write_empty_chunks": True},
        )
        if values.size:
            _whole_chunks(self._group, name)[:] = values

    def _check_count(self, name: str, count: int) -> None:
        if count not in (self.n, self.n + 1):
            raise ValueError(f"{name} has {count} entries for {self.n} vertices")

    @staticmethod
    def _chunk_rows(rows: int, width: int) -> int:
        return max(1, min(rows, CHUNK_BYTES // (8 * width)))


def write_graph(
    path: str | os.PathLike[str],
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    coordinates: np.ndarray | None = None,
    through: np.ndarray | None = None,
    sorted_rows: bool = True,
    **keywords: Any,
) -> Graph:
    """Write a graph held in memory as CSR; `keywords` are those of `new_graph`. Returns it opened.

    Rows need not be sorted; they are stored sorted by head, or, with ``sorted_rows=False``, as given.

    Raises
    ------
    StoreError
        The path exists, or the disk is full.
    TypeError, ValueError
        The arrays do not make up a graph (`gpuops.csr.check_csr`), or a weight is NaN or infinite.
    """
    from gpuops import csr  # Numba, which reading does without

    indptr, indices, weights = np.asarray(indptr), np.asarray(indices), np.asarray(weights)
    csr.check_csr(indptr, indices, weights=weights)
    n = len(indptr) - 1
    tails = csr.tails(indptr.astype(np.int64, copy=False), len(indices), np.int64)
    if sorted_rows:
        order = np.lexsort((indices, tails))
        indices, weights = indices[order], weights[order]
    keywords |= {"weight_dtype": weights.dtype, "sorted_rows": sorted_rows}
    with new_graph(path, n=n, m=len(indices), **keywords) as writer:
        writer.append(tails, indices, weights)
        writer.annotate(labels=labels, coordinates=coordinates, through=through)
    return open_graph(path)


class _Appender:
    """A 1-d array written by whole chunks: no chunk is ever read back or written twice."""

    def __init__(self, group: zarr.Group, name: str, size: int, dtype: np.dtype):
        chunk = max(1, min(size, CHUNK_BYTES // dtype.itemsize))
        group.create_array(
            name,
            shape=(size,),
            chunks=(chunk,),
            dtype=dtype,
            compressors=result_codecs(dtype),
            config={"write_empty_chunks": True},
        )
        self._chunks = _whole_chunks(group, name)
        self._chunk, self._dtype = chunk, dtype
        self._pending: list[np.ndarray] = []
        self._held = self._written = 0
        self.digest = hashlib.blake2b(digest_size=16)

    def append(self, values: np.ndarray) -> None:
        values = np.ascontiguousarray(values, dtype=self._dtype)
        self.digest.update(values.view(np.uint8).data)
        self._pending.append(values)
        self._held += values.size
        if self._held >= self._chunk:
            self._flush(self._held // self._chunk * self._chunk)

    def finish(self) -> None:
        appended, announced = self._written + self._held, self._chunks.shape[0]
        if appended < announced:
            raise ValueError(f"{appended} arcs were appended, but {announced} were announced")
        if self._held:
            self._flush(self._held)

    def _flush(self, count: int) -> None:
        values = np.concatenate(self._pending)
        if self._written + count > self._chunks.shape[0]:
            raise ValueError("more arcs were appended than announced")
        self._chunks[self._written : self._written + count] = values[:count]
        self._pending = [values[count:]]
        self._written += count
        self._held -= count


def _whole_chunks(group: zarr.Group, name: str) -> Any:
    from pipelines.stores.whole_chunks import WholeChunks  # Dask, which reading does without

    return WholeChunks(str(group.store.root), name)


class _Digest:
    """blake2b over the arrays of a graph, each fed in pieces of any size."""

    def __init__(self, n: int, directed: bool, sorted_rows: bool):
        self._head = f"{SCHEMA} n={n} directed={directed}" + ("" if sorted_rows else " rows=as given")
        self._parts: dict[str, Any] = {}

    def add(self, name: str, values: np.ndarray) -> None:
        part = self._parts.setdefault(name, hashlib.blake2b(digest_size=16))
        part.update(np.ascontiguousarray(values).view(np.uint8).data)

    def join(self, name: str, part: Any) -> None:
        self._parts[name] = part

    def value(self) -> str:
        parts = {name: part.hexdigest() for name, part in self._parts.items()}
        for name in ("indices", "weights"):  # absent when there is no arc
            parts.setdefault(name, hashlib.blake2b(digest_size=16).hexdigest())
        text = self._head + "".join(f" {name}={parts[name]}" for name in sorted(parts))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

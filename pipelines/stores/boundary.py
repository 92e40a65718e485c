"""The boundary store (schema `boundary/1`): a graph cut into parts, and tables that determine all its distances.

=============== ================= ===========================================================================
array           dtype, shape      meaning
=============== ================= ===========================================================================
part            int32 (n)         the part of each vertex
place           int32 (n)         the position of each vertex in its part; boundary vertices come first
boundary_sizes  int64 (K)         the number of boundary vertices of each part
to_boundary     number (K, p, b)  distances within a part, from all its vertices to its boundary vertices
from_boundary   number (K, b, p)  distances within a part, from its boundary vertices to all its vertices
inner           number (K, p, p)  distances within a part, between all its vertices
among           number (S, S)     distances between the boundary vertices of all parts
=============== ================= ===========================================================================

p is the greatest number of vertices of a part, and b the greatest number of boundary vertices. The tables of smaller
parts are padded with infinite distances. An unreachable distance is +inf, or the integer dtype's maximum.
`pipelines.boundary` explains how any distance is computed from the tables. A part is closed when all distances within
it are known. The arrays `part`, `place` and `boundary_sizes` are written when the graph is cut, the tables
`to_boundary`, `from_boundary` and `inner` when their part is closed, and `among` last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import zarr

from gpuops.boundary import ClosedParts, boundary_distances
from gpuops.numbers import DISTANCE_DTYPES, outside_infinity, to_inside, to_outside
from pipelines.stores.contents import (
    READERS,
    StoredArray,
    Verified,
    compare_contents,
    names,
    record,
    refuse_missing,
    write_small_array,
)
from pipelines.stores.graph import Graph
from pipelines.stores.on_demand import Division, OnDemand
from pipelines.stores.origin import origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, recorded_rows, take_place, unfinished
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.schema import (
    StoreError,
    attribute,
    check_array,
    counted,
    damaged_attributes,
    disk_errors,
    flag,
    open_store,
    owned,
    recorded_dtype,
    remove_leftovers,
    result_codecs,
    row_ranges,
)
from pipelines.stores.whole_chunks import ReadChunks, WholeChunks

SCHEMA = "boundary/1"
TABLES = ("to_boundary", "from_boundary", "inner")  # written part by part
EDGE = 1024  # rows and columns of a chunk of `among`
CHUNK_BYTES = 1 << 20  # most bytes of a chunk of `inner`, unless one part needs more; its parts are closed together


@dataclass(frozen=True)
class Cut:
    """A graph cut into parts.

    Attributes
    ----------
    part : (n,) int32
        The part of each vertex, from 0.
    boundary : (n,) bool
        Whether the vertex has an arc to or from another part.
    """

    part: np.ndarray
    boundary: np.ndarray

    @property
    def parts(self) -> int:
        return int(self.part.max()) + 1 if len(self.part) else 0

    @cached_property
    def order(self) -> np.ndarray:
        """The vertices by part, within a part boundary vertices first, and then by index; int64 (n)."""
        return np.lexsort((~self.boundary, self.part))

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of vertices of each part, int64 (K)."""
        return np.bincount(self.part, minlength=self.parts)

    @cached_property
    def boundary_sizes(self) -> np.ndarray:
        """The number of boundary vertices of each part, int64 (K)."""
        return np.bincount(self.part[self.boundary], minlength=self.parts)

    @cached_property
    def place(self) -> np.ndarray:
        """The position of each vertex in its part, int64 (n)."""
        place = np.empty(len(self.part), np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        place[self.order] = np.arange(len(place)) - np.repeat(starts, self.sizes)
        return place

    def vertices(self, part: int) -> np.ndarray:
        """Return the vertices of a part in the order of their positions."""
        start = int(self.sizes[:part].sum())
        return self.order[start : start + int(self.sizes[part])]


@dataclass(frozen=True, eq=False)
class Boundary(OnDemand):
    """A finished boundary store, opened by `open_boundary`.

    Attributes
    ----------
    parts, boundary : numbers of parts and of boundary vertices
    """

    parts: int
    boundary: int
    answers_on_gpu: ClassVar[bool] = True

    @cached_property
    def _held(self) -> tuple[ClosedParts, np.ndarray]:
        """The tables, and for which parts `inner` is read, bool (K).

        `inner` takes most of the store, and a query needs only the parts of its sources.
        """
        part, place, sizes = _layout(self.path, self.boundary)
        to, back, among = (self._table(name) for name in ("to_boundary", "from_boundary", "among"))
        inner = np.empty(StoredArray(self.path, "inner").shape, self.dtype)
        return ClosedParts(part, place, sizes, to, back, inner, among), np.zeros(self.parts, bool)

    def _table(self, name: str) -> np.ndarray:
        """Read a whole table, in inside form."""
        array = ReadChunks(self.path, name)
        table = np.empty(array.shape, self.dtype)
        _each(lambda row: to_inside(array.band(row, table[row : row + array.chunks[0]])), array.bands)
        return table

    def tables(self, sources: np.ndarray | None = None) -> ClosedParts:
        """Return the tables in memory, in inside form, with `inner` for the parts of `sources` (None: for all parts).

        For other parts, the entries of `inner` may be uninitialized.
        """
        tables, there = self._held
        wanted = np.ones_like(there)
        if sources is not None:
            wanted[:] = False
            wanted[tables.part[sources]] = True
        array = ReadChunks(self.path, "inner")
        step = array.chunks[0]

        def read(first: int) -> None:
            some = slice(first, first + step)
            to_inside(array.band(first, tables.inner[some]))
            there[some] = True

        _each(read, np.unique(np.flatnonzero(wanted & ~there) // step * step).tolist())
        return tables

    @cached_property
    def tables_on_gpu(self) -> ClosedParts:
        """All tables on the GPU that was current at the first access; `inner` is not kept in host memory."""
        import cupy

        tables, _ = self._held
        inner, array = cupy.empty(tables.inner.shape, self.dtype), ReadChunks(self.path, "inner")

        def read(first: int) -> None:
            with inner.device:
                inner[first : first + array.chunks[0]].set(to_inside(array.band(first)))

        _each(read, array.bands)
        return replace(tables, inner=inner).on_gpu()

    def between(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the distances (k, l) from k sources to l targets; raises IndexError if a vertex does not exist."""
        sources, targets = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
        return to_outside(boundary_distances(self.tables(sources), sources, targets))

    def between_on_gpu(self, sources: np.ndarray, targets: np.ndarray) -> Any:
        return to_outside(boundary_distances(self.tables_on_gpu, sources, targets))

    def cut(self) -> Cut:
        """Return the cut of the graph."""
        return _cut(self.path)

    def division(self) -> Division:
        cut = self.cut()
        counts = f"{counted(cut.parts, 'part')}, {counted(int(cut.boundary.sum()), 'vertex', 'vertices')} on boundaries"
        return Division(cut.part, cut.boundary, cut.parts, ("boundary", counts))

    def describe(self) -> str:
        return (
            f"{self.path}: {self.dtype} distances of {self.graph_path}, {counted(self.n, 'vertex', 'vertices')} in "
            f"{counted(self.parts, 'part')}, {self.boundary:,} of them on boundaries"
        )

    def verify(self) -> Verified:
        return _verify(self.path, np.ones(self.parts, bool), whole=True)


@dataclass(frozen=True, eq=False)
class BoundaryWriter(StoreWriter):
    """A boundary store that is being written. Each part counts as a row; a chunk holds one part or several."""

    n: int
    dtype: np.dtype
    rows: int
    chunk: int
    options: dict[str, Any]

    def cut(self) -> Cut:
        """Return the cut of the graph."""
        return _cut(self.path)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk of `inner`."""
        return int(np.prod(StoredArray(self.path, "inner").chunks)) * self.dtype.itemsize

    def writer(self) -> Callable[[int, Sequence[dict[str, np.ndarray]]], None]:
        """Open the tables for writing, and return a function that writes the tables of the parts of a chunk.

        The function takes the number of the first part, and for each part its tables in inside form. It pads each
        table to the size of the largest part.
        """
        arrays = {name: WholeChunks(self.path, name) for name in TABLES}

        def write(first: int, tables: Sequence[dict[str, np.ndarray]]) -> None:
            for name, array in arrays.items():
                filled = np.full((len(tables), *array.shape[1:]), outside_infinity(self.dtype))
                for place, of_part in zip(filled, tables, strict=True):
                    table = of_part[name]
                    place[: table.shape[0], : table.shape[1]] = to_outside(table.copy())
                with disk_errors(self.path):
                    array[first : first + len(tables)] = filled

        return write

    def inners(self) -> Iterator[np.ndarray]:
        """Iterate over the distances within each part, in inside form, padded to the size of the largest part.

        All parts must be written already.
        """
        array = ReadChunks(self.path, "inner")
        for first in array.bands:
            yield from to_inside(array.band(first))

    def within_boundaries(self, through: np.ndarray) -> Iterator[np.ndarray]:
        """Iterate over the (b, b) distances between the boundary vertices of each part, in inside form.

        All parts must be written already. `to_boundary`, which is small, holds these distances, except the distances
        to closed vertices, where `through`, bool (n), is false. Chunks with such boundary vertices are read from
        `inner` instead.
        """
        cut, arrays = self.cut(), {name: ReadChunks(self.path, name) for name in TABLES}
        sizes, closed = cut.boundary_sizes.tolist(), np.unique(cut.part[cut.boundary & ~through])

        def read(first: int) -> list[np.ndarray]:
            stop = min(first + self.chunk, cut.parts)
            name = "inner" if ((closed >= first) & (closed < stop)).any() else "to_boundary"
            tables = arrays[name].band(first)
            return [to_inside(table[:b, :b].copy()) for table, b in zip(tables, sizes[first:stop], strict=True)]

        with ThreadPoolExecutor(READERS) as pool:
            for blocks in pool.map(read, range(0, cut.parts, self.chunk)):
                yield from blocks

    def rows_done(self) -> np.ndarray:
        """Return which parts are recorded as closed, bool (K)."""
        return recorded_rows(self.path, open_store(self.path, SCHEMA), self.rows)

    def progress(self) -> tuple[int, int]:
        """Return the number of closed parts and the number of parts."""
        return int(self.rows_done().sum()), self.rows

    def verify(self) -> Verified:
        """Verify the parts that are recorded as closed, as `Boundary.verify` does."""
        return _verify(self.path, self.rows_done(), whole=False)

    def record(self, done: np.ndarray) -> None:
        """Record which parts are closed, bool (K)."""
        before = self.rows_done()
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            added = {name: StoredArray(self.path, name).places(done & ~before) for name in TABLES}
            record(self.path, group, {"done": row_ranges(done)}, added)

    def make_among(self, boundary: int) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Create the array `among`, for `boundary` boundary vertices in all.

        Returns the number of rows and columns of a chunk, and a function that writes whole chunks, in outside form, at
        a row and a column.
        """
        edge = max(1, min(EDGE, boundary))
        with disk_errors(self.path):
            owned(self.path, SCHEMA, self.run_id).create_array(
                "among",
                shape=(boundary, boundary),
                chunks=(edge, edge),
                dtype=self.dtype,
                compressors=result_codecs(self.dtype),
                overwrite=True,
                config={"write_empty_chunks": True},
            )
        array = WholeChunks(self.path, "among")

        def write(row: int, column: int, block: np.ndarray) -> None:
            with disk_errors(self.path):
                array[row : row + block.shape[0], column : column + block.shape[1]] = block

        return edge, write

    def complete(self) -> None:
        """Record that `among` is written, too, and that the store is complete."""
        with disk_errors(self.path):
            group, among = owned(self.path, SCHEMA, self.run_id), StoredArray(self.path, "among")
            remove_leftovers(self.leftovers())
            record(self.path, group, {"complete": True, "boundary": among.shape[0]}, {"among": among.places()})
            take_place(self.path)

    def chunks_committed(self) -> dict[str, list[str]]:
        done = self.rows_done()
        return {name: StoredArray(self.path, name).places(done) for name in TABLES}


def create_boundary(
    path: str | os.PathLike[str],
    graph: Graph,
    cut: Cut,
    *,
    dtype: Any,
    options: dict[str, Any],
    overwrite: bool = False,
) -> BoundaryWriter:
    """Create a boundary store in which no part is closed yet. A resumed run must repeat the `options` (JSON)."""
    dtype = np.dtype(dtype)
    size, boundary = (max(1, int(sizes.max(initial=0))) for sizes in (cut.sizes, cut.boundary_sizes))
    shapes = {"to_boundary": (size, boundary), "from_boundary": (boundary, size), "inner": (size, size)}
    chunk = max(1, min(cut.parts, CHUNK_BYTES // (size * size * dtype.itemsize)))
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        write_small_array(group, "part", cut.part, "int32")
        write_small_array(group, "place", cut.place, "int32")
        write_small_array(group, "boundary_sizes", cut.boundary_sizes, "int64")
        for name, shape in shapes.items():
            group.create_array(
                name,
                shape=(cut.parts, *shape),
                chunks=(chunk, *shape),
                dtype=dtype,
                fill_value=outside_infinity(dtype).item(),
                compressors=result_codecs(dtype),
                config={"write_empty_chunks": True},
            )
        group.update_attributes(
            {"n": graph.n, "dtype": str(dtype), "graph": origin_of(path, graph), "plan": options, "done": []}
        )
    return replace(begun_boundary(place), run_id=run_id)


def resume_boundary(
    path: str | os.PathLike[str],
    graph: Graph,
    options: dict[str, Any],
    describe: Callable[[str, Any], Any] = lambda name, value: value,
) -> BoundaryWriter:
    """Take over an unfinished store to resume it; a finished store is returned as it is.

    Raises
    ------
    StoreError
        The store was begun from another graph or with other options.
    """

    def refuse(begun: BoundaryWriter) -> None:
        refuse_other_options(path, {"dtype": str(begun.dtype), **begun.options}, options, describe)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def begun_boundary(path: str | os.PathLike[str]) -> BoundaryWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def open_boundary(path: str | os.PathLike[str]) -> Boundary:
    """Open a finished boundary store and check its schema, shapes and dtypes; raises StoreError on a fault."""
    group = open_store(path, SCHEMA)
    writer, origin = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        raise unfinished(path, f"partition {origin['path']}")
    with damaged_attributes(path):
        boundary = int(attribute(path, group, "boundary"))
    check_array(path, group, "among", (boundary, boundary), (writer.dtype,))
    facts = writer.n, writer.dtype, origin_path(path, origin), origin["digest"], writer.rows, boundary
    return Boundary(os.path.abspath(path), *facts)


def _each(read: Callable[[int], object], rows: Iterable[int]) -> None:
    """Call `read` for each of `rows`, on several threads."""
    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(read, rows):
            pass


def _cut(path: str) -> Cut:
    part, place, sizes = _layout(path)
    return Cut(part, place < sizes[part])


def _layout(path: str, boundary: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays `part`, `place` and `boundary_sizes`; raises StoreError if they do not fit the tables.

    `boundary` is the number of boundary vertices, or None if it is not known yet.
    """
    parts, p, b = StoredArray(path, "to_boundary").shape
    most = {"part": parts - 1, "place": p - 1, "boundary_sizes": b}
    part, place, sizes = (StoredArray(path, name, within=(0, last))[:] for name, last in most.items())
    ends = np.bincount(part[place < sizes[part]], minlength=parts)
    if (ends != sizes).any() or np.bincount(part).max(initial=0) > p or boundary not in (None, sizes.sum()):
        raise StoreError(f"{path}: {names(most)} do not belong together; cut the graph again (tilepath partition)")
    return part, place, sizes


def _verify(path: str, done: np.ndarray, *, whole: bool) -> Verified:
    small = {name: StoredArray(path, name).places() for name in ("part", "place", "boundary_sizes")}
    chunks = small | {name: StoredArray(path, name).places(done) for name in TABLES}
    boundary = StoredArray(path, "among").shape[0] if whole else None
    if boundary:
        chunks["among"] = StoredArray(path, "among").places()
    refuse_missing(path, chunks)
    _layout(path, boundary)
    for name in chunks.keys() - small.keys():
        array = StoredArray(path, name)
        rows = np.flatnonzero(done) if name in TABLES else np.arange(array.shape[0])
        for row in rows[:: array.chunks[0]].tolist():
            block = array[row : row + array.chunks[0]]
            if block.dtype.kind == "f" and np.isnan(block).any():
                raise StoreError(f"{path}: `{name}` holds NaN; cut the graph again (tilepath partition)")
    return compare_contents(path, open_store(path, SCHEMA), chunks, "that no distance is NaN")


def _read(path: str | os.PathLike[str], group: zarr.Group) -> BoundaryWriter:
    with damaged_attributes(path):
        n, dtype = int(attribute(path, group, "n")), recorded_dtype(attribute(path, group, "dtype"))
        options = dict(attribute(path, group, "plan"))
        if dtype not in DISTANCE_DTYPES:
            raise ValueError(f"{dtype} distances")
    for name in "part", "place":
        check_array(path, group, name, (n,), ("int32",))
    check_array(path, group, "boundary_sizes", (None,), ("int64",))
    parts = StoredArray(path, "boundary_sizes").shape[0]
    for name in TABLES:
        check_array(path, group, name, (parts, None, None), (dtype,))
    chunk = StoredArray(path, "inner").chunks[0]
    return BoundaryWriter(os.path.abspath(path), "", flag(path, group, "complete"), n, dtype, parts, chunk, options)

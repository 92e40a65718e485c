"""The boundary store (schema `boundary/1`): a graph cut into closed parts, from which any distance follows.

=============== ================= ===========================================================================
array           dtype, shape      meaning
=============== ================= ===========================================================================
part            int32 (n)         the part of each vertex
place           int32 (n)         where it stands in its part; boundary vertices come first
boundary_sizes  int64 (K)         boundary vertices of each part
to_boundary     number (K, p, b)  distances within a part, from each place to its boundary
from_boundary   number (K, b, p)  and from there
inner           number (K, p, p)  distances within a part
among           number (S, S)     distances between the boundary vertices of all parts
=============== ================= ===========================================================================

p and b are those of the largest part; what is beyond the size of a part is infinite. Unreachable is +inf, or the
integer dtype's maximum. `pipelines.boundary` says how distances follow. The first four are written when the cut is
known, the tables part by part, and `among` last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import zarr

from gpuops.boundary import ClosedParts, boundary_distances
from gpuops.numbers import DISTANCE_DTYPES, outside_infinity, to_inside, to_outside
from pipelines.stores.contents import (
    READERS,
    StoredArray,
    Verified,
    compare_contents,
    record,
    refuse_missing,
    write_small_array,
)
from pipelines.stores.graph import Graph
from pipelines.stores.origin import open_origin, origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, place_of, recorded_rows, take_place
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.schema import (
    StoreError,
    attribute,
    check_array,
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
EDGE = 1024  # of a chunk of `among`
CHUNK_BYTES = 1 << 20  # of distances within parts that are closed and written together, or those of one part
BATCH_BYTES = 64 << 20  # of rows that are computed at a time


@dataclass(frozen=True)
class Cut:
    """A graph cut into parts.

    Attributes
    ----------
    part : (n,) int32
        The part of each vertex, from 0.
    boundary : (n,) bool
        Vertices with an arc to or from another part.
    """

    part: np.ndarray
    boundary: np.ndarray

    @property
    def parts(self) -> int:
        return int(self.part.max()) + 1 if len(self.part) else 0

    @cached_property
    def order(self) -> np.ndarray:
        """(n,) int64: the vertices by part, the boundary of a part before the others, else rising."""
        return np.lexsort((~self.boundary, self.part))

    @cached_property
    def sizes(self) -> np.ndarray:
        """(K,) int64: vertices of each part."""
        return np.bincount(self.part, minlength=self.parts)

    @cached_property
    def boundary_sizes(self) -> np.ndarray:
        """(K,) int64: boundary vertices of each part."""
        return np.bincount(self.part[self.boundary], minlength=self.parts)

    @cached_property
    def place(self) -> np.ndarray:
        """(n,) int64: where a vertex stands in its part."""
        place = np.empty(len(self.part), np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        place[self.order] = np.arange(len(place)) - np.repeat(starts, self.sizes)
        return place

    def vertices(self, part: int) -> np.ndarray:
        """The vertices of a part in their order."""
        start = int(self.sizes[:part].sum())
        return self.order[start : start + int(self.sizes[part])]


@dataclass(frozen=True, eq=False)
class Boundary:
    """A finished boundary store, opened by `open_boundary`. It pickles as its path.

    Its tables are read when distances are first asked for, and kept. It has the rows of a store of distances
    (`pipelines.stores.distances.Distances`), computed when they are asked for.

    Attributes
    ----------
    n, parts, boundary : numbers of vertices, of parts and of boundary vertices
    dtype : of the distances
    """

    path: str
    n: int
    parts: int
    boundary: int
    dtype: np.dtype
    graph_path: str
    graph_digest: str

    def __reduce__(self) -> tuple[Any, ...]:
        return open_boundary, (self.path,)

    @cached_property
    def _held(self) -> tuple[ClosedParts, np.ndarray]:
        """The tables, and of which parts the distances within are there: most of the store, and only few are needed."""
        part, place, sizes = (StoredArray(self.path, name)[:] for name in ("part", "place", "boundary_sizes"))
        to, back, among = (self._table(name) for name in ("to_boundary", "from_boundary", "among"))
        inner = np.empty(StoredArray(self.path, "inner").shape, self.dtype)
        return ClosedParts(part, place, sizes, to, back, inner, among), np.zeros(self.parts, bool)

    def _table(self, name: str) -> np.ndarray:
        """A whole table."""
        array = ReadChunks(self.path, name)
        table = np.empty(array.shape, self.dtype)
        _each(lambda row: to_inside(array.band(row, table[row : row + array.chunks[0]])), array.bands)
        return table

    def tables(self, sources: np.ndarray | None = None) -> ClosedParts:
        """The tables in memory, integers with the inside infinity; distances within the parts of `sources`, or of all.

        What is not asked for is not set.
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
        """All tables on the GPU that was current when they were first asked for; those within parts only there."""
        import cupy

        tables, _ = self._held
        inner, array = cupy.empty(tables.inner.shape, self.dtype), ReadChunks(self.path, "inner")

        def read(first: int) -> None:
            with inner.device:
                inner[first : first + array.chunks[0]].set(to_inside(array.band(first)))

        _each(read, array.bands)
        return replace(tables, inner=inner).on_gpu()

    def between(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Distances from each of (k) vertices to each of (l), (k, l); IndexError if there is no such vertex."""
        sources, targets = np.asarray(sources, np.int64), np.asarray(targets, np.int64)
        return to_outside(boundary_distances(self.tables(sources), sources, targets))

    def between_on_gpu(self, sources: np.ndarray, targets: np.ndarray) -> Any:
        """The same as `between`, computed and left on the GPU."""
        return to_outside(boundary_distances(self.tables_on_gpu, sources, targets))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns: (n, n)."""
        return self.n, self.n

    def row_vertices(self) -> np.ndarray:
        """The vertex of each row, int64 (n)."""
        return np.arange(self.n)

    def row(self, source: int) -> np.ndarray:
        """The distances from vertex `source` to every vertex, (n)."""
        return self.between(np.array([source]), np.arange(self.n))[0]

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Some rows, int (k), in batches: (position in `rows`, block)."""
        batch = max(1, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self.between(rows[start : start + batch], np.arange(self.n))

    @property
    def digest(self) -> str:
        """The same for the same tables."""
        group = open_store(self.path, SCHEMA)
        return str(attribute(self.path, group, "seal"))

    def cut(self) -> Cut:
        """How the graph is cut."""
        return _cut(self.path)

    def graph(self, moved_to: str | os.PathLike[str] | None = None) -> Graph:
        """The graph that was cut; StoreError if it is gone, or another one."""
        return open_origin(self.path, self.graph_path, self.graph_digest, moved_to)

    def describe(self) -> str:
        """One line for people about what the store holds."""
        return (
            f"{self.path}: {self.dtype} distances of {self.graph_path}, {self.n:,} vertices in {self.parts:,} parts,"
            f" {self.boundary:,} of them on boundaries"
        )

    def verify(self) -> Verified:
        """Reread everything and compare it with what was recorded; StoreError names what differs."""
        return _verify(self.path, np.ones(self.parts, bool), whole=True)


@dataclass(frozen=True, eq=False)
class BoundaryWriter(StoreWriter):
    """A boundary store that is being written. Its rows are the parts, some to a chunk."""

    n: int
    dtype: np.dtype
    rows: int
    chunk: int
    options: dict[str, Any]

    def cut(self) -> Cut:
        """How the graph is cut."""
        return _cut(self.path)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the distances within the parts of a chunk."""
        return int(np.prod(StoredArray(self.path, "inner").chunks)) * self.dtype.itemsize

    def writer(self) -> Callable[[int, Sequence[dict[str, np.ndarray]]], None]:
        """Open the tables; the function returned writes those of a chunk of parts, by the number of the first.

        They are in inside form; each is filled up to the size of the largest.
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
        """The distances within each part, in inside form; filled up to the size of the largest. All are written."""
        array = ReadChunks(self.path, "inner")
        for first in array.bands:
            yield from to_inside(array.band(first))

    def within_boundaries(self, through: np.ndarray) -> Iterator[np.ndarray]:
        """The (b, b) distances between the boundary vertices of each part, in inside form. All parts are written.

        `to_boundary`, which is small, has them but for those to closed vertices, where `through`, bool (n), is not set.
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
        """bool (K): which parts are recorded as closed."""
        return recorded_rows(self.path, open_store(self.path, SCHEMA), self.rows)

    def progress(self) -> tuple[int, int]:
        """Parts closed and the number of parts."""
        return int(self.rows_done().sum()), self.rows

    def verify(self) -> Verified:
        """Reread the parts that are recorded as closed, as `Boundary.verify`."""
        return _verify(self.path, self.rows_done(), whole=False)

    def record(self, done: np.ndarray) -> None:
        """Record which parts, bool (K), are closed."""
        before = self.rows_done()
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            added = {name: StoredArray(self.path, name).places(done & ~before) for name in TABLES}
            record(self.path, group, {"done": row_ranges(done)}, added, begun=bool(before.any()))

    def make_among(self, boundary: int) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Create the array of the distances between all boundary vertices, so many.

        Returns the edge of a chunk, and a function that writes whole chunks at a row and a column, in outside form.
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
        """The distances between all boundary vertices are written, too: the store is complete."""
        with disk_errors(self.path):
            group, among = owned(self.path, SCHEMA, self.run_id), StoredArray(self.path, "among")
            remove_leftovers(self.path)
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
    """Begin a boundary store; no part is closed yet. `options` are what a resumed run must repeat (JSON)."""
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
    """Take over an unfinished store to resume it; a finished one is returned as it is.

    Raises
    ------
    StoreError
        It was begun from another graph or with other options.
    """

    def refuse(begun: BoundaryWriter) -> None:
        refuse_other_options(path, {"dtype": str(begun.dtype), **begun.options}, options, describe)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def begun_boundary(path: str | os.PathLike[str]) -> BoundaryWriter:
    """How far the store at `path` is: a writer that belongs to no run."""
    return _read(path, open_store(path, SCHEMA))


def open_boundary(path: str | os.PathLike[str]) -> Boundary:
    """Open a finished boundary store and check its schema, shapes and dtypes; raises StoreError."""
    group = open_store(path, SCHEMA)
    writer, origin = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        raise StoreError(
            f"{path}: unfinished; resume with `tilepath partition {origin['path']} {place_of(path)} --resume`"
        )
    with damaged_attributes(path):
        boundary = int(attribute(path, group, "boundary"))
    check_array(path, group, "among", (boundary, boundary), (writer.dtype,))
    facts = writer.n, writer.rows, boundary, writer.dtype, origin_path(path, origin), origin["digest"]
    return Boundary(os.path.abspath(path), *facts)


def _each(read: Callable[[int], object], rows: Iterable[int]) -> None:
    """Read bands of chunks, several at a time."""
    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(read, rows):
            pass


def _cut(path: str) -> Cut:
    part, place, sizes = (StoredArray(path, name)[:] for name in ("part", "place", "boundary_sizes"))
    return Cut(part, place < sizes[part])


def _verify(path: str, done: np.ndarray, *, whole: bool) -> Verified:
    small = {name: StoredArray(path, name).places() for name in ("part", "place", "boundary_sizes")}
    chunks = small | {name: StoredArray(path, name).places(done) for name in TABLES}
    if whole and StoredArray(path, "among").shape[0]:
        chunks["among"] = StoredArray(path, "among").places()
    refuse_missing(path, chunks)
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

"""The paths store (schema `paths/1`): shortest distances and predecessors, a row per source, that grows by rows.

============ ================= ============================================================================
array        dtype, shape      meaning
============ ================= ============================================================================
distances    distance (S, n)   unreachable is +inf, or the integer dtype's maximum
predecessors int32 (S, n)      optional: the preceding vertex on a shortest path from the source of the row;
                               -1 at the sources and at unreachable vertices
sources      int64 (S)         the source vertices in the order of the rows, all different
============ ================= ============================================================================

If the attribute `together` is true, all sources count as one. The only row holds the paths from the nearest source, and
following the predecessors leads to this source. If the attribute `cutoff` is set, vertices farther than the cutoff are
marked as unreachable. If `targets` is set, so are vertices farther than the farthest target that is reached (within the
cutoff, if any).

Rows are written by whole chunks. The attribute `done` lists the complete rows and is written after them, so that a run
resumed after a kill computes only the missing rows. Every chunk is stored, even a chunk that equals the fill value: a
missing chunk is damage, not infinity.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import outside_infinity
from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing, write_small_array
from pipelines.stores.graph import Graph
from pipelines.stores.origin import open_origin, origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, recorded_rows, unfinished
from pipelines.stores.resuming import RowsWriter, refuse_other_options, resume_store
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    counted,
    create_array,
    damaged_attributes,
    flag,
    number,
    open_store,
    recorded_dtype,
    recorded_vertices,
)
from pipelines.stores.whole_chunks import block_writer

SCHEMA = "paths/1"
PATH_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32")))


@dataclass(frozen=True, eq=False)
class Paths:
    """A finished paths store, opened by `open_paths`: rows are read on demand. Pickles leave out the rows.

    Columns, `sources`, `targets` and predecessors are positions of vertices. ``graph().names`` turns positions into
    names, and ``graph().vertices`` turns names into positions.
    """

    path: str
    n: int
    dtype: np.dtype
    sources: np.ndarray
    together: bool
    cutoff: float | None
    targets: tuple[int, ...] | None
    has_predecessors: bool
    graph_path: str
    graph_digest: str

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns: (S, n), or (1, n) if the sources count as one."""
        return (1 if self.together else len(self.sources), self.n)

    def distances(self, selection: Any = slice(None)) -> np.ndarray:
        """Return any Zarr selection of the distances as a NumPy array."""
        return StoredArray(self.path, "distances")[selection]

    def predecessors(self, selection: Any = slice(None)) -> np.ndarray:
        """Return any Zarr selection of the predecessors as a NumPy array of positions.

        Raises StoreError if predecessors were not kept.
        """
        if not self.has_predecessors:
            raise StoreError(f"{self.path}: holds no predecessors; compute it again without --no-predecessors")
        return StoredArray(self.path, "predecessors", within=(-1, self.n - 1))[selection]

    def row_of(self, source: int) -> int:
        """Return the row of the vertex at the position `source`; raises StoreError if it is not one of the sources."""
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(f"{self.path}: vertex {source} is not one of its {counted(len(self.sources), 'source')}")
        return 0 if self.together else int(found[0])

    def row_sources(self, row: int) -> np.ndarray:
        """Return the vertices where the paths of a row begin, int64."""
        return self.sources if self.together else self.sources[row : row + 1]

    def blocks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Iterate over the store in order, by the rows of whole chunks.

        Yields (first row, block of distances, block of predecessors or None).
        """
        step = StoredArray(self.path, "distances").chunks[0]
        for start in range(0, self.shape[0], step):
            rows = slice(start, start + step)
            yield start, self.distances(rows), self.predecessors(rows) if self.has_predecessors else None

    def graph(self, path: str | os.PathLike[str] | None = None) -> Graph:
        """Open the graph that the paths were computed from; pass `path` if it was moved."""
        return open_origin(self.path, self.graph_path, self.graph_digest, path)

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        rows, columns = self.shape
        kept = " distances and predecessors" if self.has_predecessors else " distances"
        parts = [f"{self.path}: {rows:,} x {columns:,} {self.dtype}{kept} of {self.graph_path}"]
        if self.together:
            parts.append(f"from the nearest of {counted(len(self.sources), 'source')}")
        if self.cutoff is not None:
            parts.append(f"up to a distance of {number(self.cutoff)}")
        if self.targets is not None:
            parts.append(f"as far as {counted(len(self.targets), 'target')}")
        return ", ".join(parts)

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        return _verify(self, np.ones(self.shape[0], bool))


@dataclass(frozen=True, eq=False)
class PathsWriter(RowsWriter):
    """A paths store that is being computed."""

    schema = SCHEMA
    n: int
    dtype: np.dtype
    sources: tuple[int, ...]
    together: bool
    cutoff: float | None
    targets: tuple[int, ...] | None
    has_predecessors: bool
    chunk: int  # rows of a chunk, which are written together

    @property
    def rows(self) -> int:  # type: ignore[override]
        return 1 if self.together else len(self.sources)

    @property
    def arrays(self) -> list[str]:  # type: ignore[override]
        return _arrays(self)

    def row_sources(self, row: int) -> tuple[int, ...]:
        """Return the vertices where the paths of a row begin."""
        return self.sources if self.together else self.sources[row : row + 1]

    def for_tasks(self) -> PathsWriter:
        """Return the writer without its sources, for the tasks that write rows: there may be millions of sources."""
        return replace(self, sources=())

    def opened(self, name: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Return the width of the chunks of an array, and a function that writes whole chunks at a row and a column."""
        return block_writer(self.path, name)

    def chunks_committed(self) -> dict[str, list[str]]:
        return _places(self, self.rows_done())

    def verify(self) -> Verified:
        """Verify the rows that are recorded as complete, as `Paths.verify` does."""
        return _verify(self, self.rows_done())

    def begun_with(self) -> dict[str, Any]:
        """Return the options that a run must repeat to resume this store."""
        names = ("dtype", "sources", "together", "cutoff", "targets")
        return {name: getattr(self, name) for name in names} | {"predecessors": self.has_predecessors}

    def discard(self) -> None:
        """Remove the store if it has no complete row."""
        if not self.rows_done().any():
            shutil.rmtree(self.path, ignore_errors=True)


def create_paths(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    dtype: Any,
    sources: Sequence[int],
    chunk: int,
    together: bool = False,
    predecessors: bool = True,
    cutoff: float | None = None,
    targets: Sequence[int] | None = None,
    overwrite: bool = False,
) -> PathsWriter:
    """Create a paths store for `graph` in which no row is done yet.

    Parameters
    ----------
    chunk : rows of a chunk, which are written together
    predecessors : whether to store predecessors
    others : as in `pipelines.single_source_shortest_paths`
    """
    dtype, n = np.dtype(dtype), graph.n
    rows = 1 if together else len(sources)
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        write_small_array(group, "sources", np.asarray(sources), "int64")
        arrays = {"distances": (dtype, outside_infinity(dtype).item())}
        if predecessors:
            arrays["predecessors"] = (np.dtype(np.int32), -1)
        for name, (kind, fill) in arrays.items():
            # A chunk holds only a part of a long row, so that one vertex can be read without the whole row.
            columns = max(1, min(n, CHUNK_BYTES // kind.itemsize))
            create_array(group, name, (rows, n), (max(1, min(chunk, rows)), columns), kind, fill_value=fill)
        group.update_attributes(
            {
                "n": n,
                "dtype": str(dtype),
                "chunk": chunk,
                "graph": origin_of(path, graph),
                "predecessors": predecessors,
                "together": together,
                "cutoff": cutoff,
                "targets": None if targets is None else list(map(int, targets)),
                "done": [],
            }
        )
    return replace(begun_paths(place), run_id=run_id)


def resume_paths(
    path: str | os.PathLike[str],
    graph: Graph,
    options: Mapping[str, Any] | None = None,
    describe: Callable[[str, Any], Any] = lambda name, value: value,
) -> PathsWriter:
    """Take over an unfinished store to compute its missing rows; a finished store is returned as it is.

    Parameters
    ----------
    options : options that the store must have been begun with
    describe : as in `pipelines.stores.resuming.refuse_other_options`

    Raises
    ------
    StoreError
        The store was begun from another graph or with other options.
    """

    def refuse(begun: PathsWriter) -> None:
        refuse_other_options(path, begun.begun_with(), options or {}, describe)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def open_paths(path: str | os.PathLike[str]) -> Paths:
    """Open a finished paths store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        The store is missing, damaged, unfinished or of another schema; the message names the cure.
    """
    group = open_store(path, SCHEMA)
    writer, recorded = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        done = recorded_rows(path, group, writer.rows).sum()
        raise unfinished(path, f"sssp {recorded['path']}", f"{done:,} of {counted(writer.rows, 'row')}")
    others = ("run_id", "finished", "chunk", "path", "sources")
    facts = {name: value for name, value in vars(writer).items() if name not in others}
    return Paths(
        path=os.path.abspath(path),
        sources=np.asarray(writer.sources, dtype=np.int64),
        graph_path=origin_path(path, recorded),
        graph_digest=recorded["digest"],
        **facts,
    )


def begun_paths(path: str | os.PathLike[str]) -> PathsWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def _arrays(store: Paths | PathsWriter) -> list[str]:
    """Return the names of the arrays that grow by rows."""
    return ["distances", "predecessors"] if store.has_predecessors else ["distances"]


def _places(store: Paths | PathsWriter, done: np.ndarray) -> dict[str, list[str]]:
    """Return the keys of the chunks that exist when the rows `done`, bool, are complete."""
    grown = {name: StoredArray(store.path, name).places(done) for name in _arrays(store)}
    return grown | {"sources": StoredArray(store.path, "sources").places()}


def _verify(store: Paths | PathsWriter, done: np.ndarray) -> Verified:
    path, chunks, n = store.path, _places(store, done), store.n
    refuse_missing(path, chunks)
    within = {"distances": None, "predecessors": (-1, n - 1)}
    arrays = {name: StoredArray(path, name, within=within[name]) for name in _arrays(store)}
    step = arrays["distances"].chunks[0]
    for start in range(0, len(done), step):
        if not done[start]:
            continue
        distances, *kept = (arrays[name][start : start + step] for name in _arrays(store))
        reached = distances != outside_infinity(store.dtype)
        if store.dtype.kind == "f" and np.isnan(distances).any():
            raise StoreError(f"{path}: holds NaN; compute it again")
        if store.cutoff is not None and (distances[reached] > store.cutoff).any():
            raise StoreError(f"{path}: a distance exceeds the cutoff at or after row {start}; compute it again")
        for predecessors in kept:
            if (predecessors[~reached] >= 0).any():
                raise StoreError(
                    f"{path}: an unreachable vertex has a predecessor at or after row {start}; compute it again"
                )
    return compare_contents(path, open_store(path, SCHEMA), chunks, "that every entry is valid")


def _read(path: str | os.PathLike[str], group: zarr.Group) -> PathsWriter:
    with damaged_attributes(path):
        n, dtype = int(attribute(path, group, "n")), recorded_dtype(attribute(path, group, "dtype"))
        check_array(path, group, "sources", (None,), ("int64",))
        sources = recorded_vertices(path, "sources", StoredArray(path, "sources")[:], n)
        targets, cutoff = attribute(path, group, "targets"), attribute(path, group, "cutoff")
        writer = PathsWriter(
            path=os.path.abspath(path),
            run_id="",
            finished=flag(path, group, "complete"),
            n=n,
            dtype=dtype,
            sources=tuple(sources.tolist()),
            together=flag(path, group, "together"),
            cutoff=cutoff,
            targets=None if targets is None else tuple(recorded_vertices(path, "targets", targets, n).tolist()),
            has_predecessors=flag(path, group, "predecessors"),
            chunk=int(attribute(path, group, "chunk")),
        )
        if cutoff is not None and not (isinstance(cutoff, int | float) and cutoff >= 0):
            raise ValueError(f"the cutoff is {cutoff!r}")
        if writer.chunk < 1:
            raise ValueError(f"chunks of {writer.chunk} rows")
    check_array(path, group, "distances", (writer.rows, n), PATH_DTYPES)
    check_array(path, group, "distances", (writer.rows, n), (dtype,))
    if writer.has_predecessors:
        check_array(path, group, "predecessors", (writer.rows, n), ("int32",))
    return writer

"""The paths store (schema `paths/1`): shortest distances and predecessors, a row per source, that grows by rows.

============ ================= ============================================================================
array        dtype, shape      meaning
============ ================= ============================================================================
distances    distance (S, n)   unreachable is +inf, or the integer dtype's maximum
predecessors int32 (S, n)      optional: the vertex before, on a shortest path from the source of the row;
                               -1 at the sources and where no path leads
sources      int64 (S)         the vertices of the rows, each once
============ ================= ============================================================================

With the attribute `together` all sources count as one: there is one row, of the paths from the nearest of them, and
following the predecessors tells which one that is. With the attribute `cutoff` vertices farther than that are marked as
unreachable; with `targets`, those farther than the farthest of these vertices that is reached, within the cutoff if
there is one.

Rows are written by whole chunks. The attribute `done` names the rows that are whole and is written after them; what
kills a run, it goes on with the others. Every chunk is stored, also one that equals the fill value: a missing chunk is
damage, not infinity.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuops.numbers import outside_infinity
from pipelines.stores.graph import Graph
from pipelines.stores.origin import check_origin, open_origin, origin_of, origin_path
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    damage,
    disk_errors,
    new_store,
    open_array,
    open_store,
    owned,
    record_rows,
    result_codecs,
    row_mask,
    take_over,
    verify_chunks,
)

SCHEMA = "paths/1"
PATH_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32")))


@dataclass(frozen=True, eq=False)
class Paths:
    """A finished paths store, opened by `open_paths`: facts at hand, rows read on demand. It pickles as its path."""

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
        """Rows and columns: (S, n), or (1, n) where the sources count as one."""
        return (1 if self.together else len(self.sources), self.n)

    def distances(self, selection: Any = slice(None)) -> np.ndarray:
        """Any Zarr selection of the distances, as NumPy."""
        with damage(self.path):
            return np.asarray(open_array(self.path, "distances")[selection])

    def predecessors(self, selection: Any = slice(None)) -> np.ndarray:
        """Any Zarr selection of the predecessors, as NumPy; StoreError where they were not kept."""
        if not self.has_predecessors:
            raise StoreError(f"{self.path}: holds no predecessors; compute it anew without --no-predecessors")
        with damage(self.path):
            return np.asarray(open_array(self.path, "predecessors")[selection])

    def row_of(self, source: int) -> int:
        """Which row holds the paths from vertex `source`; StoreError if none does."""
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(f"{self.path}: vertex {source} is none of its {len(self.sources)} sources")
        return 0 if self.together else int(found[0])

    def row_sources(self, row: int) -> np.ndarray:
        """The vertices that the paths of a row begin at, int64."""
        return self.sources if self.together else self.sources[row : row + 1]

    def blocks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """The store by whole chunk rows: (first row, distances, predecessors or None), in order."""
        step = open_array(self.path, "distances").chunks[0]
        for start in range(0, self.shape[0], step):
            rows = slice(start, start + step)
            yield start, self.distances(rows), self.predecessors(rows) if self.has_predecessors else None

    def graph(self, path: str | os.PathLike[str] | None = None) -> Graph:
        """The graph the paths were computed from; `path` says where it is now, if it was moved."""
        return open_origin(self.path, self.graph_path, self.graph_digest, path)

    def verify(self) -> None:
        """Reread every chunk (its checksum is tested), make sure none is missing and every entry is possible."""
        for name in ("distances", "predecessors")[: 1 + self.has_predecessors]:
            verify_chunks(self.path, open_array(self.path, name))
        for start, distances, predecessors in self.blocks():
            if self.dtype.kind == "f" and np.isnan(distances).any():
                raise StoreError(f"{self.path}: holds NaN; compute it anew")
            if predecessors is not None and predecessors.size:
                if not -1 <= predecessors.min() <= predecessors.max() < self.n:
                    raise StoreError(f"{self.path}: a predecessor is no vertex; compute it anew")
                if (predecessors[distances == outside_infinity(self.dtype)] >= 0).any():
                    raise StoreError(
                        f"{self.path}: an unreachable vertex has a predecessor in rows {start} and after; "
                        "compute it anew"
                    )


@dataclass(frozen=True, eq=False)
class PathsRun:
    """A paths store that is being computed: what the driver records and the workers write. Picklable."""

    path: str
    run_id: str
    n: int
    dtype: np.dtype
    sources: tuple[int, ...]
    together: bool
    cutoff: float | None
    targets: tuple[int, ...] | None
    has_predecessors: bool
    chunk: int  # rows of a chunk: what is written at a time

    @property
    def rows(self) -> int:
        return 1 if self.together else len(self.sources)

    def row_sources(self, row: int) -> tuple[int, ...]:
        """The vertices that the paths of a row begin at."""
        return self.sources if self.together else self.sources[row : row + 1]

    def writer(self) -> PathsRun:
        """The run without its sources, of which there may be millions, for the tasks that write rows."""
        return replace(self, sources=())

    def write_rows(self, start: int, distances: np.ndarray, predecessors: np.ndarray | None) -> None:
        """Write whole chunk rows, from row `start`."""
        with disk_errors(self.path):
            open_array(self.path, "distances", "r+")[start : start + len(distances)] = distances
            if self.has_predecessors:
                open_array(self.path, "predecessors", "r+")[start : start + len(distances)] = predecessors

    def rows_done(self) -> np.ndarray:
        """bool (S): which rows are recorded as whole."""
        return row_mask(attribute(self.path, open_store(self.path, SCHEMA), "done"), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows, bool (S), are whole; once all are, the store is complete."""
        with disk_errors(self.path):
            record_rows(self.path, owned(self.path, SCHEMA, self.run_id), done)

    def discard(self) -> None:
        """Remove the store if no row of it is whole."""
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
) -> PathsRun:
    """Begin a paths store for `graph`; no row is done yet.

    Parameters
    ----------
    chunk : rows that are written together
    predecessors : is there to be that array?
    others : as in `pipelines.single_source_shortest_paths`
    """
    dtype, n = np.dtype(dtype), graph.n
    rows = 1 if together else len(sources)
    with new_store(path, overwrite) as group:
        group.create_array("sources", shape=(len(sources),), dtype="int64")[:] = np.asarray(sources, dtype=np.int64)
        arrays = {"distances": (dtype, outside_infinity(dtype).item())}
        if predecessors:
            arrays["predecessors"] = (np.dtype(np.int32), -1)
        for name, (kind, fill) in arrays.items():
            # A row that is longer than a chunk should be is cut, so that one vertex can be read without all others.
            columns = max(1, min(n, CHUNK_BYTES // kind.itemsize))
            group.create_array(
                name,
                shape=(rows, n),
                chunks=(max(1, min(chunk, rows)), columns),
                dtype=kind,
                fill_value=fill,
                compressors=result_codecs(kind),
                config={"write_empty_chunks": True},
            )
        group.update_attributes(
            {
                "schema": SCHEMA,
                "n": n,
                "dtype": str(dtype),
                "chunk": chunk,
                "graph": origin_of(path, graph),
                "predecessors": predecessors,
                "together": together,
                "cutoff": cutoff,
                "targets": None if targets is None else list(map(int, targets)),
                "done": [],
                "complete": False,
                "run_id": (run_id := uuid.uuid4().hex),
            }
        )
    return _run(path, run_id)


def resume_paths(path: str | os.PathLike[str], graph: Graph) -> PathsRun:
    """Take over an unfinished store to go on with the rows that are not done; StoreError if it is not of this graph.

    A finished store is returned as it is.
    """
    group = open_store(path, SCHEMA, "r+")
    check_origin(path, attribute(path, group, "graph"), graph)
    return _run(path, "" if group.attrs.get("complete") else take_over(path, group))


def open_paths(path: str | os.PathLike[str]) -> Paths:
    """Open a finished paths store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        It is missing, foreign, damaged or unfinished; the message says how to go on.
    """
    group = open_store(path, SCHEMA)
    recorded = attribute(path, group, "graph")
    if not attribute(path, group, "complete"):
        done, total = progress_of_paths(path)
        raise StoreError(
            f"{path}: unfinished, {done} of {total} rows are done; go on with --resume and the command "
            f"`tilepath sssp {recorded['path']} {path}` it was begun with"
        )
    run = _run(path, "")
    facts = {name: value for name, value in vars(run).items() if name not in ("run_id", "chunk", "path", "sources")}
    return Paths(
        path=os.path.abspath(path),
        sources=np.asarray(run.sources, dtype=np.int64),
        graph_path=origin_path(path, recorded),
        graph_digest=recorded["digest"],
        **facts,
    )


def progress_of_paths(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Rows done and rows in all."""
    run = _run(path, "")
    return int(run.rows_done().sum()), run.rows


def _run(path: str | os.PathLike[str], run_id: str) -> PathsRun:
    group = open_store(path, SCHEMA)
    n, dtype = int(attribute(path, group, "n")), np.dtype(attribute(path, group, "dtype"))
    if "sources" not in group:
        raise StoreError(f"{path}: the array `sources` is missing; the store is damaged, make it anew")
    sources = tuple(np.asarray(group["sources"][:]).tolist())
    together, targets = bool(attribute(path, group, "together")), attribute(path, group, "targets")
    run = PathsRun(
        path=os.path.abspath(path),
        run_id=run_id,
        n=n,
        dtype=dtype,
        sources=sources,
        together=together,
        cutoff=attribute(path, group, "cutoff"),
        targets=None if targets is None else tuple(targets),
        has_predecessors=bool(attribute(path, group, "predecessors")),
        chunk=int(attribute(path, group, "chunk")),
    )
    check_array(path, group, "sources", (len(sources),), ("int64",))
    check_array(path, group, "distances", (run.rows, n), PATH_DTYPES)
    check_array(path, group, "distances", (run.rows, n), (dtype,))
    if run.has_predecessors:
        check_array(path, group, "predecessors", (run.rows, n), ("int32",))
    return run

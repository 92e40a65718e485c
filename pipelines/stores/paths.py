"""The paths store (schema `paths/1`): shortest distances and predecessors, a row per source, that grows by rows.

============ ================= ============================================================================
array        dtype, shape      meaning
============ ================= ============================================================================
distances    distance (S, n)   unreachable is +inf, or the integer dtype's maximum
predecessors int32 (S, n)      optional: the preceding vertex on a shortest path from the source of the row;
                               -1 at the sources and where no path leads
sources      int64 (S)         the vertices of the rows, each once
============ ================= ============================================================================

With the attribute `together` all sources count as one: there is one row, of the paths from the nearest source, and
following the predecessors leads to it. With the attribute `cutoff`, vertices farther than that are marked as
unreachable. With `targets`, vertices farther than the farthest target that is reached (within the cutoff, if any) are.

Rows are written by whole chunks. The attribute `done` names the rows that are complete and is written after them, so a
run that is killed resumes with the others. Every chunk is stored, even one that equals the fill value: a missing chunk
is damage, not infinity.
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
from pipelines.stores.contents import (
    StoredArray,
    Verified,
    compare_contents,
    refuse_missing,
    small_array,
    write_small_array,
)
from pipelines.stores.graph import Graph
from pipelines.stores.origin import open_origin, origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, place_of, record_rows, recorded_rows
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    damaged_attributes,
    disk_errors,
    flag,
    number,
    open_store,
    owned,
    recorded_dtype,
    recorded_vertices,
    result_codecs,
)
from pipelines.stores.whole_chunks import block_writer

SCHEMA = "paths/1"
PATH_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32")))


@dataclass(frozen=True, eq=False)
class Paths:
    """A finished paths store, opened by `open_paths`: rows are read on demand. It pickles as its path."""

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
        return StoredArray(self.path, "distances")[selection]

    def predecessors(self, selection: Any = slice(None)) -> np.ndarray:
        """Any Zarr selection of the predecessors, as NumPy; StoreError where they were not kept."""
        if not self.has_predecessors:
            raise StoreError(f"{self.path}: holds no predecessors; compute it again without --no-predecessors")
        return StoredArray(self.path, "predecessors")[selection]

    def row_of(self, source: int) -> int:
        """Which row holds the paths from vertex `source`; StoreError if none does."""
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(f"{self.path}: vertex {source} is not one of its {len(self.sources)} sources")
        return 0 if self.together else int(found[0])

    def row_sources(self, row: int) -> np.ndarray:
        """The vertices that the paths of a row begin at, int64."""
        return self.sources if self.together else self.sources[row : row + 1]

    def blocks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Iterate over the store by whole chunk rows: (first row, distances, predecessors or None), in order."""
        step = StoredArray(self.path, "distances").chunks[0]
        for start in range(0, self.shape[0], step):
            rows = slice(start, start + step)
            yield start, self.distances(rows), self.predecessors(rows) if self.has_predecessors else None

    def graph(self, path: str | os.PathLike[str] | None = None) -> Graph:
        """The graph the paths were computed from; pass `path` if it was moved."""
        return open_origin(self.path, self.graph_path, self.graph_digest, path)

    def describe(self) -> str:
        """One line for people about what the store holds."""
        rows, columns = self.shape
        kept = " distances and predecessors" if self.has_predecessors else " distances"
        parts = [f"{self.path}: {rows:,} x {columns:,} {self.dtype}{kept} of {self.graph_path}"]
        if self.together:
            parts.append(f"from the nearest of {len(self.sources):,} sources")
        if self.cutoff is not None:
            parts.append(f"up to a distance of {number(self.cutoff)}")
        if self.targets is not None:
            parts.append(f"as far as {len(self.targets):,} target{'s' if len(self.targets) > 1 else ''}")
        return ", ".join(parts)

    def verify(self) -> Verified:
        """Reread everything and compare it with what was recorded; StoreError names what differs."""
        return _verify(self, np.ones(self.shape[0], bool))


@dataclass(frozen=True, eq=False)
class PathsWriter(StoreWriter):
    """A paths store that is being computed."""

    n: int
    dtype: np.dtype
    sources: tuple[int, ...]
    together: bool
    cutoff: float | None
    targets: tuple[int, ...] | None
    has_predecessors: bool
    chunk: int  # rows of a chunk: as many as are written at a time

    @property
    def rows(self) -> int:
        return 1 if self.together else len(self.sources)

    def row_sources(self, row: int) -> tuple[int, ...]:
        """The vertices that the paths of a row begin at."""
        return self.sources if self.together else self.sources[row : row + 1]

    def writer(self) -> PathsWriter:
        """The writer without its sources, of which there may be millions, for the tasks that write rows."""
        return replace(self, sources=())

    def opened(self, name: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """The width of a chunk of an array, and a function that writes whole chunks of it at a row and a column."""
        return block_writer(self.path, name)

    def rows_done(self) -> np.ndarray:
        """bool (S): which rows are recorded as complete."""
        return recorded_rows(self.path, open_store(self.path, SCHEMA), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows, bool (S), are done; once all are, the store is complete."""
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            record_rows(self.path, group, _arrays(self), done)

    def progress(self) -> tuple[int, int]:
        """Rows done and the total number of rows."""
        return int(self.rows_done().sum()), self.rows

    def chunks_committed(self) -> dict[str, list[str]]:
        return _places(self, self.rows_done())

    def verify(self) -> Verified:
        """Reread what is recorded as done, as `Paths.verify`."""
        return _verify(self, self.rows_done())

    def begun_with(self) -> dict[str, Any]:
        """The options that a run must agree with to go on with this store."""
        names = ("dtype", "sources", "together", "cutoff", "targets")
        return {name: getattr(self, name) for name in names} | {"predecessors": self.has_predecessors}

    def discard(self) -> None:
        """Remove the store if none of its rows is complete."""
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
    """Begin a paths store for `graph`; no row is done yet.

    Parameters
    ----------
    chunk : rows that are written together
    predecessors : whether to store that array
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
            # A row longer than a chunk should be is cut: one vertex can then be read without all the others.
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
    """Take over an unfinished store to resume its missing rows; a finished one is returned as it is.

    Parameters
    ----------
    options, describe : what the store must have been begun with, as `pipelines.stores.resuming.refuse_other_options`

    Raises
    ------
    StoreError
        It was begun from another graph or with other options.
    """

    def refuse(begun: PathsWriter) -> None:
        refuse_other_options(path, begun.begun_with(), options or {}, describe)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def open_paths(path: str | os.PathLike[str]) -> Paths:
    """Open a finished paths store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        It is missing, foreign, damaged or unfinished; the message names the cure.
    """
    group = open_store(path, SCHEMA)
    writer, recorded = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        done = recorded_rows(path, group, writer.rows).sum()
        raise StoreError(
            f"{path}: unfinished, {done} of {writer.rows} rows are done; go on with --resume and "
            f"the command `tilepath sssp {recorded['path']} {place_of(path)}` it was begun with"
        )
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
    """How far the store at `path` is: a writer that belongs to no run."""
    return _read(path, open_store(path, SCHEMA))


def _arrays(store: Paths | PathsWriter) -> list[str]:
    """The arrays that grow by rows."""
    return ["distances", "predecessors"] if store.has_predecessors else ["distances"]


def _places(store: Paths | PathsWriter, done: np.ndarray) -> dict[str, list[str]]:
    """The keys of the chunks that exist when these rows, bool, are done."""
    grown = {name: StoredArray(store.path, name).places(done) for name in _arrays(store)}
    return grown | {"sources": small_array(store.path, open_store(store.path, SCHEMA), "sources").places()}


def _verify(store: Paths | PathsWriter, done: np.ndarray) -> Verified:
    path, chunks, n = store.path, _places(store, done), store.n
    refuse_missing(path, chunks)
    arrays = {name: StoredArray(path, name) for name in _arrays(store)}
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
            if predecessors.size and not -1 <= predecessors.min() <= predecessors.max() < n:
                raise StoreError(f"{path}: a predecessor is not a vertex; compute it again")
            if (predecessors[~reached] >= 0).any():
                raise StoreError(
                    f"{path}: an unreachable vertex has a predecessor at or after row {start}; compute it again"
                )
    return compare_contents(path, open_store(path, SCHEMA), chunks, "that every entry is valid")


def _read(path: str | os.PathLike[str], group: zarr.Group) -> PathsWriter:
    with damaged_attributes(path):
        n, dtype = int(attribute(path, group, "n")), recorded_dtype(attribute(path, group, "dtype"))
        check_array(path, group, "sources", (None,), ("int64",))
        sources = recorded_vertices(path, "sources", small_array(path, group, "sources")[:], n)
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

"""The distances store (schema `distances/1`): a matrix of shortest distances that grows in two slots.

A run writes its state, chunk by chunk, to the slot that is not committed. It commits by writing the attribute
`committed`, which names this slot and the stage. If the run is killed, the committed slot is intact, and the next run
resumes from it. The last commit writes the result, compressed and checksummed, and removes the other slot.

========== =================== ==========================================================================
array      dtype, shape        meaning
========== =================== ==========================================================================
slot-0/1   distance (n, n)     checkpoint in raw chunks, in inside form (`gpuops.numbers`)
slot-0/1   distance (S, n)     result: S = n, or the rows of `sources`; unreachable is +inf, or the integer
                               dtype's maximum
sources    int64 (S)           optional: the vertices of the rows; absent: row i is vertex i
========== =================== ==========================================================================

Every chunk is stored, even a chunk that equals the fill value: a missing chunk is damage, not infinity.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import DISTANCE_DTYPES, outside_infinity
from pipelines.stores.contents import StoredArray, Verified, compare_contents, record, refuse_missing, write_small_array
from pipelines.stores.graph import Graph
from pipelines.stores.origin import open_origin, origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, take_place, unfinished
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.row_files import RowFiles
from pipelines.stores.schema import (
    StoreError,
    attribute,
    check_array,
    checkpoint_codecs,
    counted,
    create_array,
    damaged_attributes,
    disk_errors,
    flag,
    open_store,
    owned,
    recorded_dtype,
    recorded_vertices,
    remove_leftovers,
    result_codecs,
    row_mask,
    row_ranges,
)
from pipelines.stores.whole_chunks import block_writer

SCHEMA = "distances/1"
BATCH_BYTES = 64 << 20  # bytes of rows read at a time
BY_ROWS = ("batched", "hierarchy")  # methods whose results are computed row by row


@dataclass(frozen=True)
class Distances:
    """A finished distances store, opened by `open_distances`. Pickles leave out the matrix.

    ``store[i, j]`` is the distance in row i and column j. Column j belongs to the vertex at position j. Row i belongs
    to the vertex at position ``sources[i]``, or at position i if `sources` is None. ``graph().names`` turns positions
    into names, and ``graph().vertices`` turns names into positions.
    """

    path: str
    n: int
    dtype: np.dtype
    slot: str
    graph_path: str
    graph_digest: str
    sources: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns: (n, n), or (S, n) if only the rows of S sources are kept."""
        return (self.n if self.sources is None else len(self.sources), self.n)

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Return any Zarr selection of the matrix as a NumPy array."""
        return StoredArray(self.path, self.slot)[selection]

    def row(self, source: int) -> np.ndarray:
        """Return the distances from the vertex at the position `source` to every vertex, (n)."""
        return self[self.row_of(source)]

    def row_of(self, source: int) -> int:
        """Return the row of the vertex at the position `source`; raises StoreError if the store lacks this row."""
        if not 0 <= source < self.n:
            raise StoreError(f"{self.path}: there is no vertex {source}; choose one from 0 to {self.n - 1}")
        if self.sources is None:
            return source
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(
                f"{self.path}: holds the rows of {counted(len(self.sources), 'source')} only; vertex {source} is "
                "not among them"
            )
        return int(found[0])

    def row_vertices(self) -> np.ndarray:
        """Return the vertex of each row, int64 (S)."""
        return np.arange(self.n) if self.sources is None else self.sources

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the matrix in order, by the rows of whole chunks: yields (first row, block of rows)."""
        return _blocks(StoredArray(self.path, self.slot))

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the given rows, int (k) and rising, in batches: yields (position in `rows`, block of rows).

        Each batch decodes a chunk only once.
        """
        batch = max(1, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self[rows[start : start + batch], :]

    def graph(self, path: str | os.PathLike[str] | None = None) -> Graph:
        """Open the graph that the distances were computed from; pass `path` if it was moved."""
        return open_origin(self.path, self.graph_path, self.graph_digest, path)

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        rows, columns = self.shape
        return f"{self.path}: {rows:,} x {columns:,} {self.dtype} distances of {self.graph_path}"

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        return _verify(self.path, self.slot, None, self.sources)


@dataclass(frozen=True, eq=False)
class DistancesWriter(StoreWriter):
    """A distances store that is being computed."""

    n: int
    dtype: np.dtype
    chunk: int
    options: dict[str, Any]
    sources: tuple[int, ...] | None
    stages: int
    stage: int  # stage of the last commit; 0 before the first commit
    slot: str | None  # committed slot

    @property
    def other_slot(self) -> str:
        return "slot-0" if self.slot == "slot-1" else "slot-1"

    def make_slot(self, *, result: bool) -> None:
        """Create the slot that the next commit will name, in square chunks, for the result or for a checkpoint."""
        self._create_slot(result, self.rows if result else self.n, self.chunk)

    def make_row_slot(self) -> None:
        """Create the slot that the next commit will name, in chunks of whole rows, for a checkpoint by `row_files`.

        If the other slot is already in such chunks, it is reused and overwritten, so that its disk space stays
        reserved.
        """
        with suppress(StoreError):
            found = RowFiles(self.path, self.other_slot)
            if (found.shape, found.dtype, found.piece) == (
                (self.n, self.n),
                self.dtype,
                self._chunks(self.n, self.n)[0],
            ):
                return
        self._create_slot(False, self.n, self.n)

    def _create_slot(self, result: bool, rows: int, columns: int) -> None:
        with disk_errors(self.path):
            group = open_store(self.path, SCHEMA, "r+")
            create_array(
                group,
                self.other_slot,
                (rows, self.n),
                self._chunks(rows, columns),
                self.dtype,
                fill_value=outside_infinity(self.dtype).item(),
                compressors=result_codecs(self.dtype) if result else checkpoint_codecs(),
                overwrite=True,
            )

    def _chunks(self, rows: int, columns: int) -> tuple[int, int]:
        return max(1, min(self.chunk, rows)), max(1, min(columns, self.n))

    def row_files(self, slot: str) -> RowFiles:
        """Open the files of a slot that `make_row_slot` made."""
        return RowFiles(self.path, slot)

    def writer(self) -> Callable[[int, int, np.ndarray], None]:
        """Open the slot being written; return a function that writes a block of whole chunks at a row and a column."""
        return block_writer(self.path, self.other_slot)[1]

    def opened(self, _name: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Return the width of the chunks, and the function of `writer`; paths stores have several arrays."""
        return self.chunk, self.writer()

    def for_tasks(self) -> DistancesWriter:
        """Return the writer without its sources, for the tasks that write rows: there may be millions of sources."""
        return replace(self, sources=None)

    def row_sources(self, row: int) -> tuple[int, ...]:
        """Return the vertex where the paths of a row begin."""
        return (row if self.sources is None else self.sources[row],)

    def write_rows(self, start: int, values: np.ndarray) -> None:
        """Write rows, in whole chunks, to the slot being written, from row `start` on."""
        self.writer()(start, 0, values)

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the committed checkpoint."""
        assert self.slot is not None
        return StoredArray(self.path, self.slot)[start:stop]

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        return self.n if self.sources is None else len(self.sources)

    def rows_done(self) -> np.ndarray:
        """Return which rows of the slot being written are complete, bool (S), for a result computed row by row."""
        return self._done(open_store(self.path, SCHEMA))

    def _done(self, group: zarr.Group) -> np.ndarray:
        return row_mask(self.path, group.attrs.get("done", []), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows of the slot being written are complete, bool (S)."""
        array = StoredArray(self.path, self.other_slot)
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            before = self._done(group)
            added = {self.other_slot: array.places(done & ~before)}
            record(self.path, group, {"done": row_ranges(done)}, added)

    def commit(self, stage: int) -> DistancesWriter:
        """Commit the slot just written and return a new writer. The commit of the last stage removes the other slot."""
        done, array = stage == self.stages, StoredArray(self.path, self.other_slot)
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            before = self._done(group)
            committed = {"committed": {"slot": self.other_slot, "stage": stage}, "complete": done}
            added = {self.other_slot: array.places(None if not before.any() else ~before)}
            record(self.path, group, committed, added, dropped=[self.slot])
            new = replace(self, stage=stage, slot=self.other_slot)
            if done:
                remove_leftovers(new.leftovers())
                take_place(self.path)
        return new

    def leftovers(self) -> list[Path]:
        """Return the leftovers of any store and, once the store is complete, the slot that is not its result."""
        slot = Path(self.path, self.other_slot)
        return super().leftovers() + [slot] * (self.stage == self.stages and slot.exists())

    @property
    def unit(self) -> str:
        """The unit of `progress`: "rows" for methods that compute the result row by row, "stages" for other methods."""
        return "rows" if self.options.get("method") in BY_ROWS else "stages"

    def progress(self) -> tuple[int, int]:
        """Return the number of stages committed, or of rows recorded, and the total number."""
        if self.unit == "stages":
            return self.stage, self.stages
        return self.rows if self.finished else int(self.rows_done().sum()), self.rows

    def verify(self) -> Verified:
        """Verify the committed data, as `Distances.verify` does."""
        return _verify(self.path, *self._committed(), self._sources())

    def chunks_committed(self) -> dict[str, list[str]]:
        slot, rows = self._committed()
        return {} if slot is None else {slot: StoredArray(self.path, slot).places(rows)}

    def _committed(self) -> tuple[str | None, np.ndarray | None]:
        """Return the slot that holds committed data, or None, and its committed rows, bool, or None for all rows."""
        if self.slot is not None:
            return self.slot, None
        done = self.rows_done()
        return (self.other_slot, done) if done.any() else (None, None)

    def begun_with(self) -> dict[str, Any]:
        """Return the options that a run must repeat to resume this store."""
        return {"dtype": str(self.dtype), "sources": self.sources, "method": "floyd-warshall", **self.options}

    def _sources(self) -> np.ndarray | None:
        return None if self.sources is None else np.array(self.sources)


def create_distances(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    dtype: Any,
    chunk: int,
    stages: int,
    options: dict[str, Any],
    sources: Sequence[int] | None = None,
    overwrite: bool = False,
) -> DistancesWriter:
    """Create a distances store for `graph`, without a commit yet.

    Parameters
    ----------
    chunk : rows and columns of a square chunk
    stages : number of the last stage, whose commit completes the result
    options : options that a resumed run must repeat (JSON), compared by `resume_distances`
    sources : vertices whose rows the result keeps, None for all vertices
    """
    dtype = np.dtype(dtype)
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        if sources is not None:
            write_small_array(group, "sources", np.asarray(sources), "int64")
        group.update_attributes(
            {
                "n": graph.n,
                "dtype": str(dtype),
                "chunk": chunk,
                "graph": origin_of(path, graph),
                "plan": options,
                "stages": stages,
                "committed": None,
            }
        )
    return replace(begun_distances(place), run_id=run_id)


def resume_distances(
    path: str | os.PathLike[str],
    graph: Graph,
    options: Mapping[str, Any] | None = None,
    describe: Callable[[str, Any], Any] = lambda name, value: value,
) -> DistancesWriter:
    """Take over an unfinished store to resume it from its last commit; a finished store is returned as it is.

    Parameters
    ----------
    options : options that the store must have been begun with
    describe : as in `pipelines.stores.resuming.refuse_other_options`

    Raises
    ------
    StoreError
        The store was begun from another graph or with other options.
    """

    def refuse(begun: DistancesWriter) -> None:
        refuse_other_options(path, begun.begun_with(), options or {}, describe)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def open_distances(path: str | os.PathLike[str]) -> Distances:
    """Open a finished distances store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        The store is missing, damaged, unfinished or of another schema; the message names the cure.
    """
    group = open_store(path, SCHEMA)
    writer, recorded = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        done, total = writer.progress()
        raise unfinished(
            path, f"apsp {recorded['path']}", f"{done:,} of {counted(total, writer.unit.removesuffix('s'))}"
        )
    if writer.slot is None:
        raise StoreError(f"{path}: the attributes are damaged (complete, but nothing is committed); compute it again")
    check_array(path, group, writer.slot, (writer.rows, writer.n), DISTANCE_DTYPES)
    check_array(path, group, writer.slot, (writer.rows, writer.n), (writer.dtype,))
    facts = writer.n, writer.dtype, writer.slot, origin_path(path, recorded), recorded["digest"], writer._sources()
    return Distances(os.path.abspath(path), *facts)


def begun_distances(path: str | os.PathLike[str]) -> DistancesWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def _verify(path: str, slot: str | None, rows: np.ndarray | None, sources: np.ndarray | None) -> Verified:
    """Reread `slot`, or only its `rows`, bool, and compare it with the record; `slot` is None before any commit."""
    group, chunks = open_store(path, SCHEMA), {}
    if slot is not None:
        chunks[slot] = StoredArray(path, slot).places(rows)
    if sources is not None:
        chunks["sources"] = StoredArray(path, "sources").places()
    refuse_missing(path, chunks)
    for start, block in _blocks(StoredArray(path, slot), rows) if slot else ():
        if block.dtype.kind == "f" and np.isnan(block).any():
            raise StoreError(f"{path}: holds NaN at or after row {start}; compute it again")
    return compare_contents(path, group, chunks, *(["that no distance is NaN"] if slot else []))


def _blocks(array: StoredArray, rows: np.ndarray | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Iterate over an array by the rows of whole chunks; skip chunks whose first row is not in `rows`, bool."""
    for start in range(0, array.shape[0], array.chunks[0]):
        if rows is None or rows[start]:
            yield start, array[start : start + array.chunks[0]]


def _read(path: str | os.PathLike[str], group: zarr.Group) -> DistancesWriter:
    with damaged_attributes(path):
        n, committed = int(attribute(path, group, "n")), attribute(path, group, "committed")
        sources = None
        if "sources" in group:
            check_array(path, group, "sources", (None,), ("int64",))
            sources = tuple(recorded_vertices(path, "sources", StoredArray(path, "sources")[:], n).tolist())
        writer = DistancesWriter(
            path=os.path.abspath(path),
            run_id="",
            finished=flag(path, group, "complete"),
            n=n,
            dtype=recorded_dtype(attribute(path, group, "dtype")),
            chunk=int(attribute(path, group, "chunk")),
            options=dict(attribute(path, group, "plan")),
            sources=sources,
            stages=int(attribute(path, group, "stages")),
            stage=0 if committed is None else int(committed["stage"]),
            slot=None if committed is None else committed["slot"],
        )
        if writer.dtype not in DISTANCE_DTYPES or writer.slot not in (None, "slot-0", "slot-1"):
            raise ValueError(f"{writer.dtype} distances, {writer.slot} committed")
        if not 0 <= writer.stage <= writer.stages or min(writer.n, writer.chunk) < 0:
            raise ValueError(f"stage {writer.stage} of {writer.stages}, {writer.n} vertices, chunks of {writer.chunk}")
        slot = writer.slot or ("done" in group.attrs and writer.other_slot)
        if slot:
            check_array(
                path, group, slot, (writer.rows if writer.finished or writer.slot is None else n, n), (writer.dtype,)
            )
    return writer

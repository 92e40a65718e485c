"""The distances store (schema `distances/1`): a matrix of shortest distances that grows in two slots.

A run writes its state to the slot that is not committed, chunk by chunk, and names that slot and the stage in the
attribute `committed`, written last: that is the commit. If the run is killed, the committed slot stays intact and the
run resumes from there. The last commit writes the result, compressed and checksummed, and removes the other slot.

========== =================== ==========================================================================
array      dtype, shape        meaning
========== =================== ==========================================================================
slot-0/1   distance (n, n)     checkpoint: unreachable as inside `gpuops` (`gpuops.numbers`), raw chunks
slot-0/1   distance (S, n)     result: S = n, or the rows of `sources`; unreachable is +inf, or the integer
                               dtype's maximum
sources    int64 (S)           optional: the vertices of the rows; absent: row i is vertex i
========== =================== ==========================================================================

Every chunk is stored, even one that equals the fill value: a missing chunk is damage, not infinity.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import DISTANCE_DTYPES, outside_infinity
from pipelines.stores.contents import (
    StoredArray,
    Verified,
    compare_contents,
    record,
    refuse_missing,
    small_array,
    write_small_array,
)
from pipelines.stores.graph import Graph
from pipelines.stores.origin import open_origin, origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, place_of, take_place
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.row_files import RowFiles
from pipelines.stores.schema import (
    StoreError,
    attribute,
    check_array,
    checkpoint_codecs,
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
BATCH_BYTES = 64 << 20  # of rows that are read at a time


@dataclass(frozen=True)
class Distances:
    """A finished distances store, opened by `open_distances`. It pickles as its path."""

    path: str
    n: int
    dtype: np.dtype
    slot: str
    graph_path: str
    graph_digest: str
    sources: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns: (n, n), or (S, n) where only the rows of some sources are kept."""
        return (self.n if self.sources is None else len(self.sources), self.n)

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Any Zarr selection of the matrix, as NumPy."""
        return StoredArray(self.path, self.slot)[selection]

    def row(self, source: int) -> np.ndarray:
        """The distances from vertex `source` to every vertex, (n)."""
        return self[self.row_of(source)]

    def row_of(self, source: int) -> int:
        """Which row holds the distances from vertex `source`; StoreError if none does."""
        if not 0 <= source < self.n:
            raise StoreError(f"{self.path}: there is no vertex {source}; choose one from 0 to {self.n - 1}")
        if self.sources is None:
            return source
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(
                f"{self.path}: holds the rows of {len(self.sources)} sources only; vertex {source} is not among them"
            )
        return int(found[0])

    def row_vertices(self) -> np.ndarray:
        """The vertex of each row, int64 (S)."""
        return np.arange(self.n) if self.sources is None else self.sources

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the matrix by whole chunk rows: (first row, block of rows), in order."""
        return _blocks(StoredArray(self.path, self.slot))

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Some rows, int (k) and rising, in batches: (position in `rows`, block); a chunk is decoded once a batch."""
        batch = max(1, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self[rows[start : start + batch], :]

    def graph(self, path: str | os.PathLike[str] | None = None) -> Graph:
        """The graph the distances were computed from; pass `path` if it was moved."""
        return open_origin(self.path, self.graph_path, self.graph_digest, path)

    def describe(self) -> str:
        """One line for people about what the store holds."""
        rows, columns = self.shape
        return f"{self.path}: {rows:,} x {columns:,} {self.dtype} distances of {self.graph_path}"

    def verify(self) -> Verified:
        """Reread everything and compare it with what was recorded; StoreError names what differs."""
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
    stage: int  # of the last commit; 0 when nothing is committed yet
    slot: str | None  # the committed one

    @property
    def other_slot(self) -> str:
        return "slot-0" if self.slot == "slot-1" else "slot-1"

    def make_slot(self, *, result: bool) -> None:
        """Create the slot that the next commit will name, of square chunks: a checkpoint, or the result."""
        self._create_slot(result, self.rows if result else self.n, self.chunk)

    def make_row_slot(self) -> None:
        """The slot that the next commit will name: a checkpoint of whole rows, for `row_files`.

        The one of the commit before the last is written over: its disk stays taken.
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
            group.create_array(
                self.other_slot,
                shape=(rows, self.n),
                chunks=self._chunks(rows, columns),
                dtype=self.dtype,
                fill_value=outside_infinity(self.dtype).item(),
                compressors=result_codecs(self.dtype) if result else checkpoint_codecs(),
                overwrite=True,
                config={"write_empty_chunks": True},
            )

    def _chunks(self, rows: int, columns: int) -> tuple[int, int]:
        return max(1, min(self.chunk, rows)), max(1, min(columns, self.n))

    def row_files(self, slot: str) -> RowFiles:
        """The files of a slot that `make_row_slot` made."""
        return RowFiles(self.path, slot)

    def writer(self) -> Callable[[int, int, np.ndarray], None]:
        """Open the slot being written; the function returned writes a block of whole chunks at a row and a column."""
        return block_writer(self.path, self.other_slot)[1]

    def write_rows(self, start: int, values: np.ndarray) -> None:
        """Write whole chunk rows of the slot being written, from row `start`."""
        self.writer()(start, 0, values)

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Rows of the committed checkpoint."""
        assert self.slot is not None
        return StoredArray(self.path, self.slot)[start:stop]

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.n if self.sources is None else len(self.sources)

    def rows_done(self) -> np.ndarray:
        """bool (S): complete rows of the slot being written, where a result is computed row by row."""
        return self._done(open_store(self.path, SCHEMA))

    def _done(self, group: zarr.Group) -> np.ndarray:
        return row_mask(self.path, group.attrs.get("done", []), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows, bool (S), of the slot being written are complete."""
        array = StoredArray(self.path, self.other_slot)
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            before = self._done(group)
            added = {self.other_slot: array.places(done & ~before)}
            record(self.path, group, {"done": row_ranges(done)}, added, begun=bool(before.any()))

    def commit(self, stage: int) -> DistancesWriter:
        """Commit the slot just written; at the last stage also drop the other one. Returns a new writer."""
        done, array = stage == self.stages, StoredArray(self.path, self.other_slot)
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            before = self._done(group)
            committed = {"committed": {"slot": self.other_slot, "stage": stage}, "complete": done}
            added = {self.other_slot: array.places(None if not before.any() else ~before)}
            record(self.path, group, committed, added, begun=bool(before.any()), dropped=[self.slot])
            if done and self.slot is not None:
                del group[self.slot]
            if done:
                remove_leftovers(self.path)
                take_place(self.path)
        return replace(self, stage=stage, slot=self.other_slot)

    def progress(self) -> tuple[int, int]:
        """Stages committed and the total number of stages."""
        return self.stage, self.stages

    def verify(self) -> Verified:
        """Reread what is committed, as `Distances.verify`."""
        return _verify(self.path, *self._committed(), self._sources())

    def chunks_committed(self) -> dict[str, list[str]]:
        slot, rows = self._committed()
        return {} if slot is None else {slot: StoredArray(self.path, slot).places(rows)}

    def _committed(self) -> tuple[str | None, np.ndarray | None]:
        """The slot that holds what is committed, None if nothing is, and which of its rows do, None for all."""
        if self.slot is not None:
            return self.slot, None
        done = self.rows_done()
        return (self.other_slot, done) if done.any() else (None, None)

    def begun_with(self) -> dict[str, Any]:
        """The options that a run must agree with to go on with this store."""
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
    """Begin a distances store for `graph`; nothing is committed yet.

    Parameters
    ----------
    chunk : edge of the square chunks
    stages : the number of the stage whose commit completes the result
    options : what a resumed run must repeat (JSON), compared by `resume_distances`
    sources : vertices whose rows the result keeps, None for all
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
    """Take over an unfinished store to resume it from its last commit; a finished one is returned as it is.

    Parameters
    ----------
    options, describe : what the store must have been begun with, as `pipelines.stores.resuming.refuse_other_options`

    Raises
    ------
    StoreError
        It was begun from another graph or with other options.
    """

    def refuse(begun: DistancesWriter) -> None:
        refuse_other_options(path, begun.begun_with(), options or {}, describe)

    return resume_store(path, SCHEMA, graph, _read, refuse)


def open_distances(path: str | os.PathLike[str]) -> Distances:
    """Open a finished distances store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        It is missing, foreign, damaged or unfinished; the message names the cure.
    """
    group = open_store(path, SCHEMA)
    writer, recorded = _read(path, group), recorded_origin(path, group, "graph")
    if not writer.finished:
        raise StoreError(
            f"{path}: unfinished, committed at stage {writer.stage} of {writer.stages}; "
            f"go on with `tilepath apsp {recorded['path']} {place_of(path)} --resume`"
        )
    if writer.slot is None:
        raise StoreError(f"{path}: the attributes are damaged (complete, but nothing is committed); compute it again")
    check_array(path, group, writer.slot, (writer.rows, writer.n), DISTANCE_DTYPES)
    check_array(path, group, writer.slot, (writer.rows, writer.n), (writer.dtype,))
    facts = writer.n, writer.dtype, writer.slot, origin_path(path, recorded), recorded["digest"], writer._sources()
    return Distances(os.path.abspath(path), *facts)


def begun_distances(path: str | os.PathLike[str]) -> DistancesWriter:
    """How far the store at `path` is: a writer that belongs to no run."""
    return _read(path, open_store(path, SCHEMA))


def _verify(path: str, slot: str | None, rows: np.ndarray | None, sources: np.ndarray | None) -> Verified:
    """Reread a slot (None: nothing is committed), or only the `rows`, bool, of it."""
    group, chunks = open_store(path, SCHEMA), {}
    if slot is not None:
        chunks[slot] = StoredArray(path, slot).places(rows)
    if sources is not None:
        chunks["sources"] = small_array(path, group, "sources").places()
    refuse_missing(path, chunks)
    for start, block in _blocks(StoredArray(path, slot), rows) if slot else ():
        if block.dtype.kind == "f" and np.isnan(block).any():
            raise StoreError(f"{path}: holds NaN at or after row {start}; compute it again")
    return compare_contents(path, group, chunks, *(["that no distance is NaN"] if slot else []))


def _blocks(array: StoredArray, rows: np.ndarray | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Chunk rows of an array whose first row is one of `rows`: (first row, block of rows), in order."""
    for start in range(0, array.shape[0], array.chunks[0]):
        if rows is None or rows[start]:
            yield start, array[start : start + array.chunks[0]]


def _read(path: str | os.PathLike[str], group: zarr.Group) -> DistancesWriter:
    with damaged_attributes(path):
        n, committed = int(attribute(path, group, "n")), attribute(path, group, "committed")
        sources = None
        if "sources" in group:
            check_array(path, group, "sources", (None,), ("int64",))
            sources = tuple(recorded_vertices(path, "sources", small_array(path, group, "sources")[:], n).tolist())
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

"""The distances store (schema `distances/2`): a matrix of shortest distances, and checkpoints while it is computed.

============== =================== ======================================================================
array          dtype, shape        meaning
============== =================== ======================================================================
distances      distance (S, n)     the result: S = n, or the rows of `sources`; unreachable is +inf, or
                                   the integer dtype's maximum
sources        int64 (S)           optional: the vertices of the rows; absent: row i is vertex i
source         text or int64 (S)   optional: names of the rows, for xarray (`named_matrix.coordinates`)
target         text (n)            optional: names of the columns
checkpoint-0/1 distance (n, n)     only while Floyd-Warshall runs: a state of the matrix in raw chunks,
                                   in inside form (`gpuops.numbers`)
============== =================== ======================================================================

Floyd-Warshall writes a state, chunk by chunk, to the slot that is not committed: one of the two checkpoints. It commits
by writing the attribute `committed`, which names this slot and the stage. If the run is killed, the committed slot is
intact, and the next run resumes from it. The last commit names the array `distances`, which was written before, and
removes the checkpoints. Methods that compute the result row by row write to `distances` from the start; the attribute
`done` lists the rows that are complete.

Every chunk is stored, even a chunk that equals the fill value: a missing chunk is damage, not infinity.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import DISTANCE_DTYPES
from pipelines.stores.contents import StoredArray, record, row_blocks
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, optional, view
from pipelines.stores.durable import delete_tree
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.graph import Graph
from pipelines.stores.named_matrix import COORDINATES, VertexMatrix, coordinates
from pipelines.stores.origin import OfGraph
from pipelines.stores.place import take_place
from pipelines.stores.resuming import FinishedStore, StoreWriter
from pipelines.stores.row_files import RowFiles
from pipelines.stores.schema import (
    check_array,
    checkpoint_codecs,
    counted,
    create_array,
    distance_options,
    recorded_vertices,
    remove_leftovers,
    result_codecs,
    row_mask,
    row_ranges,
)
from pipelines.stores.whole_chunks import block_writer

BATCH_BYTES = 64 << 20  # bytes of rows read at a time
BY_ROWS = ("batched", "hierarchy")  # methods whose results are computed row by row
RESULT = "distances"
SLOTS = ("checkpoint-0", "checkpoint-1")


def _derived(path: str, group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    n, stages, sources = found["n"], found["stages"], None
    if "sources" in found["arrays"]:
        sources = tuple(recorded_vertices(path, "sources", StoredArray(path, "sources")[:], n).tolist())
    committed = found["committed"] or {"stage": 0, "slot": None}
    stage, slot = int(committed["stage"]), committed["slot"]
    if slot not in (None, RESULT, *SLOTS) or not 0 <= stage <= stages or min(n, found["chunk"]) < 0:
        raise ValueError(f"slot {slot}, stage {stage} of {stages}, {n} vertices, chunks of {found['chunk']}")
    if found["finished"] != (slot == RESULT):
        raise ValueError(f"complete is {found['finished']}, but {slot} is committed")
    rows = n if sources is None else len(sources)
    if slot in SLOTS:
        check_array(path, group, slot, (n, n), (found["dtype"],))
    if slot == RESULT or "done" in group.attrs:
        check_array(path, group, RESULT, (rows, n), (found["dtype"],))
    return {"sources": sources, "stage": stage, "slot": slot, "rows": rows, "source": rows, "target": n}


DECLARED = Schema(
    "distances/2",
    source="graph",
    attributes=(
        Attribute("n", int),
        Attribute("dtype", dtype_of(DISTANCE_DTYPES)),
        Attribute("chunk", int),
        Attribute("plan", dict, field="options"),
        Attribute("stages", int),
        Attribute("committed", optional(dict)),
    ),
    arrays=(Array("sources", ("int64",), ("sources",), optional=True), *COORDINATES),  # the writer creates the matrices
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, eq=False, repr=False)
class Distances(VertexMatrix, FinishedStore, OfGraph):
    """A finished distances store, opened by `open_distances`. Pickles leave out the matrix.

    ``store[i, j]`` is the distance in row i and column j. Column j belongs to the vertex at position j. Row i belongs
    to the vertex at position ``sources[i]``, or at position i if `sources` is None. ``store.at["Rome", "Milan"]`` is
    the distance between named vertices. ``graph().names`` turns positions into names, and ``graph().vertices`` turns
    names into positions.
    """

    path: str
    n: int
    dtype: np.dtype
    graph_path: str
    graph_digest: str
    sources: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns: (n, n), or (S, n) if only the rows of S sources are kept."""
        return (self.n if self.sources is None else len(self.sources), self.n)

    def __getitem__(self, selection: Any) -> np.ndarray:
        """Return any Zarr selection of the matrix as a NumPy array; names of vertices go to `at`."""
        if any(isinstance(each, str) for each in (selection if isinstance(selection, tuple) else (selection,))):
            raise IndexError(f"[...] takes positions of rows and columns; for names write .at[...]: got {selection!r}")
        return self.stored(RESULT)[selection]

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
        return row_blocks([self.stored(RESULT)])

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the given rows, int (k) and ascending, in batches: yields (position in `rows`, block of rows).

        Each batch decodes a chunk only once.
        """
        batch = max(1, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self[rows[start : start + batch], :]

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        rows, columns = self.shape
        return f"{self.path}: {rows:,} x {columns:,} {self.dtype} distances of {self.graph_path}"


@dataclass(frozen=True, eq=False)
class DistancesWriter(StoreWriter):
    """A distances store that is being computed; `rows` is the number of rows of the result."""

    declared, command = DECLARED, "apsp {graph[path]}"

    n: int
    dtype: np.dtype
    chunk: int
    options: dict[str, Any]
    sources: tuple[int, ...] | None
    rows: int
    arrays: tuple[str, ...]  # arrays beside the matrices
    stages: int
    stage: int  # stage of the last commit; 0 before the first commit
    slot: str | None  # committed slot; `RESULT` if the store is finished, None before the first commit

    @property
    def other_slot(self) -> str:
        """The slot for the next checkpoint."""
        return "checkpoint-0" if self.slot == "checkpoint-1" else "checkpoint-1"

    def make_result(self) -> None:
        """Create the array of the result, in square chunks."""
        self._create(RESULT, self.rows, self.chunk)

    def make_checkpoint(self) -> None:
        """Create the slot of the next checkpoint, in square chunks."""
        self._create(self.other_slot, self.n, self.chunk)

    def make_row_checkpoint(self) -> None:
        """Create the slot of the next checkpoint, in chunks of whole rows, for `row_files`.

        If the slot is already in such chunks, it is reused and overwritten, so that its disk space stays reserved.
        """
        self.owned()
        with suppress(StoreError):
            found = RowFiles(self.path, self.other_slot)
            if (found.shape, found.dtype, found.piece) == (
                (self.n, self.n),
                self.dtype,
                self._chunks(self.n, self.n)[0],
            ):
                return
        self._create(self.other_slot, self.n, self.n)

    def _create(self, name: str, rows: int, columns: int) -> None:
        """Create the result or a checkpoint; first remove matrices that are not committed, to free their disk space."""
        result = name == RESULT
        with disk_errors(self.path):
            group = self.owned()  # else a slot that another run has committed would be removed
            for other in {RESULT, *SLOTS} - {self.slot, name}:
                delete_tree(os.path.join(self.path, other), ignore_errors=True)
            options = distance_options(self.dtype, group.attrs.get("unit", ""))
            if not result:
                del options["attributes"]  # checkpoints are in inside form
            create_array(
                group,
                name,
                (rows, self.n),
                self._chunks(rows, columns),
                self.dtype,
                compressors=result_codecs(self.dtype) if result else checkpoint_codecs(),
                dimension_names=VertexMatrix.dimensions if result else ("rows", "target"),
                overwrite=True,
                **options,
            )

    def _chunks(self, rows: int, columns: int) -> tuple[int, int]:
        return max(1, min(self.chunk, rows)), max(1, min(columns, self.n))

    def row_files(self, slot: str) -> RowFiles:
        """Open the files of a slot that `make_row_checkpoint` made."""
        return RowFiles(self.path, slot, self.run_id)

    def writer(self, *, result: bool = True) -> Callable[[int, int, np.ndarray], None]:
        """Open the result, or the next checkpoint.

        Returns a function that writes a block of whole chunks at a row and a column.
        """
        return block_writer(self.path, RESULT if result else self.other_slot, self.run_id)[1]

    def opened(self, _name: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Return the width of the chunks, and the function of `writer`; paths stores have several arrays."""
        return self.chunk, self.writer()

    def for_tasks(self) -> DistancesWriter:
        """Return the writer without its sources, for the tasks that write rows: there may be millions of sources."""
        return replace(self, sources=None)

    def row_sources(self, row: int) -> tuple[int, ...]:
        """Return the vertex where the paths of a row begin."""
        return (row if self.sources is None else self.sources[row],)

    def write_rows(self, start: int, values: np.ndarray, *, result: bool = True) -> None:
        """Write rows, in whole chunks, to the result or to the next checkpoint, from row `start` on."""
        self.writer(result=result)(start, 0, values)

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the committed checkpoint."""
        assert self.slot is not None
        return StoredArray(self.path, self.slot)[start:stop]

    def rows_done(self) -> np.ndarray:
        """Return which rows of the result are recorded as complete, bool (S), for a result computed row by row."""
        return self._done(self.group())

    def _done(self, group: zarr.Group) -> np.ndarray:
        return row_mask(self.path, group.attrs.get("done", []), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows of the result are complete, bool (S)."""
        array = StoredArray(self.path, RESULT)
        with disk_errors(self.path):
            group = self.owned()
            added = {RESULT: array.places(done & ~self._done(group))}
            record(self.path, group, {"done": row_ranges(done)}, added)

    def commit(self, stage: int) -> DistancesWriter:
        """Commit the checkpoint just written or, as the last stage, the result; return a new writer.

        The commit of the result removes the checkpoints.
        """
        done = stage == self.stages
        name = RESULT if done else self.other_slot
        array = StoredArray(self.path, name)
        with disk_errors(self.path):
            group = self.owned()
            before = self._done(group)
            committed = {"committed": {"slot": name, "stage": stage}, "complete": done}
            added = {name: array.places(None if not before.any() else ~before)}
            record(self.path, group, committed, added, dropped=[self.slot])
            new = replace(self, stage=stage, slot=name)
            if done:
                remove_leftovers(new.leftovers())
                take_place(self.path)
        return new

    def leftovers(self) -> list[Path]:
        slots = [Path(self.path, slot) for slot in SLOTS] if self.slot == RESULT else []
        return super().leftovers() + [slot for slot in slots if slot.exists()]

    @property
    def unit(self) -> str:
        """The unit of `progress`: "rows" for methods that compute the result row by row, "stages" for other methods."""
        return "rows" if self.options.get("method") in BY_ROWS else "stages"

    def progress(self) -> tuple[int, int]:
        """Return the number of stages committed, or of rows recorded, and the total number."""
        if self.unit == "stages":
            return self.stage, self.stages
        return self.rows if self.finished else int(self.rows_done().sum()), self.rows

    def check_values(self) -> tuple[str, ...]:
        slot, rows = self._committed()
        if slot is None:
            return ()
        for start, block in row_blocks([StoredArray(self.path, slot)], rows):
            if block.dtype.kind == "f" and np.isnan(block).any():
                raise StoreError(f"{self.path}: holds NaN at or after row {start}; compute it again")
        return ("that no distance is NaN",)

    def chunks_committed(self) -> dict[str, list[str]]:
        slot, rows = self._committed()
        chunks = {} if slot is None else {slot: StoredArray(self.path, slot).places(rows)}
        return chunks | {name: StoredArray(self.path, name).places() for name in self.arrays}

    def _committed(self) -> tuple[str | None, np.ndarray | None]:
        """Return the array that holds committed data, or None, and its committed rows, bool, or None for all rows."""
        if self.slot is not None:
            return self.slot, None
        done = self.rows_done()
        return (RESULT, done) if done.any() else (None, None)

    def begun_with(self) -> dict[str, Any]:
        return {"dtype": str(self.dtype), "sources": self.sources, "method": "floyd-warshall", **self.options}


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
    options : options that a resumed run must repeat (JSON)
    sources : vertices whose rows the result keeps, None for all vertices
    """
    attributes = {
        "n": graph.n,
        "dtype": str(np.dtype(dtype)),
        "chunk": chunk,
        "plan": options,
        "stages": stages,
        "committed": None,
    }
    if graph.weight_unit:
        attributes["unit"] = graph.weight_unit
    arrays = {} if sources is None else {"sources": np.asarray(sources, np.int64)}
    arrays |= coordinates(graph, sources)
    return DistancesWriter.create(path, graph, attributes, arrays, overwrite=overwrite)


def open_distances(store: Distances | str | os.PathLike[str]) -> Distances:
    """Open a finished distances store and check its schema, shapes and dtypes, or return an opened one.

    Raises
    ------
    StoreError
        The store is missing, damaged, unfinished or of another schema; the message names the cure.

    Examples
    --------
    >>> tilepath.open_distances("distances.zarr").shape
    (4, 4)
    """
    if isinstance(store, Distances):
        return store
    found = DistancesWriter.read_finished(store)
    sources = found["sources"]
    return view(Distances, found | {"sources": None if sources is None else np.array(sources)})

"""The distances store (schema `distances/1`): a matrix of shortest distances that grows in two slots.

A run writes its state to the slot that is not committed, chunk by chunk, and names that slot and the stage in the
attribute `committed`, written last: that is the commit. Whatever kills the run, the committed slot stays whole and
the run goes on from there. The last commit writes the result, compressed and checksummed, and the other slot goes.

========== =================== ==========================================================================
array      dtype, shape        meaning
========== =================== ==========================================================================
slot-0/1   distance (n, n)     checkpoint: unreachable as inside `gpuops` (`gpuops.numbers`), raw chunks
slot-0/1   distance (S, n)     result: S = n, or the rows of `sources`; unreachable is +inf, or the integer
                               dtype's maximum
sources    int64 (S)           optional: the vertices of the rows; absent: row i is vertex i
========== =================== ==========================================================================

Every chunk is stored, also one that equals the fill value: a missing chunk is damage, not infinity.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.numbers import DISTANCE_DTYPES, outside_infinity
from pipelines.stores.graph import Graph
from pipelines.stores.origin import check_origin, open_origin, origin_of, origin_path
from pipelines.stores.schema import (
    StoreError,
    attribute,
    check_array,
    damage,
    disk_errors,
    new_store,
    open_array,
    open_store,
    owned,
    remove_leftovers,
    result_codecs,
    row_mask,
    row_ranges,
    take_over,
    verify_chunks,
)

SCHEMA = "distances/1"


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
        with damage(self.path):
            return np.asarray(open_array(self.path, self.slot)[selection])

    def row(self, source: int) -> np.ndarray:
        """The distances from vertex `source` to every vertex, (n)."""
        return self[self.row_of(source)]

    def row_of(self, source: int) -> int:
        """Which row holds the distances from vertex `source`; StoreError if none does."""
        if not 0 <= source < self.n:
            raise StoreError(f"{self.path}: no vertex {source}; there are 0 to {self.n - 1}")
        if self.sources is None:
            return source
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(
                f"{self.path}: holds the rows of {len(self.sources)} sources only, vertex {source} is not among them"
            )
        return int(found[0])

    def row_vertices(self) -> np.ndarray:
        """The vertex of each row, int64 (S)."""
        return np.arange(self.n) if self.sources is None else self.sources

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """The matrix by whole chunk rows: (first row, block of rows), in order."""
        array = open_array(self.path, self.slot)
        for start in range(0, self.shape[0], array.chunks[0]):
            with damage(self.path):
                yield start, np.asarray(array[start : start + array.chunks[0]])

    def graph(self, path: str | os.PathLike[str] | None = None) -> Graph:
        """The graph the distances were computed from; `path` says where it is now, if it was moved."""
        return open_origin(self.path, self.graph_path, self.graph_digest, path)

    def verify(self) -> None:
        """Reread every chunk (its checksum is tested) and make sure none is missing."""
        array = open_array(self.path, self.slot)
        verify_chunks(self.path, array)
        for _start, block in self.blocks():
            if self.dtype.kind == "f" and np.isnan(block).any():
                raise StoreError(f"{self.path}: holds NaN; compute it anew")


@dataclass(frozen=True)
class Run:
    """A distances store that is being computed: what the driver records and the workers write. Picklable."""

    path: str
    run_id: str
    n: int
    dtype: np.dtype
    chunk: int
    plan: dict[str, Any]
    sources: tuple[int, ...] | None
    stages: int
    stage: int  # of the last commit; 0 when nothing is committed yet
    slot: str | None  # the committed one

    @property
    def other_slot(self) -> str:
        return "slot-0" if self.slot == "slot-1" else "slot-1"

    def make_slot(self, *, result: bool) -> None:
        """Create the slot that the next commit will name: a checkpoint, or the result."""
        rows = self.rows if result else self.n
        with disk_errors(self.path):
            group = open_store(self.path, SCHEMA, "r+")
            group.create_array(
                self.other_slot,
                shape=(rows, self.n),
                chunks=(max(1, min(self.chunk, rows)), max(1, min(self.chunk, self.n))),
                dtype=self.dtype,
                fill_value=outside_infinity(self.dtype).item(),
                compressors=result_codecs(self.dtype) if result else None,
                overwrite=True,
                config={"write_empty_chunks": True},
            )

    def writer(self) -> Callable[[int, int, np.ndarray], None]:
        """Open the slot in the making; the function returned writes a block of whole chunks at a row and a column."""
        array = open_array(self.path, self.other_slot, "r+")

        def write(row: int, column: int, block: np.ndarray) -> None:
            with disk_errors(self.path):
                array[row : row + block.shape[0], column : column + block.shape[1]] = block

        return write

    def write_rows(self, start: int, values: np.ndarray) -> None:
        """Write whole chunk rows of the slot in the making, from row `start`."""
        self.writer()(start, 0, values)

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Rows of the committed checkpoint."""
        assert self.slot is not None
        with damage(self.path):
            return np.asarray(open_array(self.path, self.slot)[start:stop])

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.n if self.sources is None else len(self.sources)

    def rows_done(self) -> np.ndarray:
        """bool (S): rows of the slot in the making that are whole, where a result is made row by row."""
        return row_mask(open_store(self.path, SCHEMA).attrs.get("done", []), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows, bool (S), of the slot in the making are whole."""
        with disk_errors(self.path):
            owned(self.path, SCHEMA, self.run_id).update_attributes({"done": row_ranges(done)})

    def commit(self, stage: int) -> Run:
        """Make the slot just written the committed one; at the last stage also drop the other. Returns the new run."""
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            done = stage == self.stages
            group.update_attributes({"committed": {"slot": self.other_slot, "stage": stage}, "complete": done})
            if done and self.slot is not None:
                del group[self.slot]
            if done:
                remove_leftovers(self.path)
        return _with(self, stage=stage, slot=self.other_slot)


def create_distances(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    dtype: Any,
    chunk: int,
    stages: int,
    plan: dict[str, Any],
    sources: Sequence[int] | None = None,
    overwrite: bool = False,
) -> Run:
    """Begin a distances store for `graph`; nothing is committed yet.

    Parameters
    ----------
    chunk : edge of the square chunks
    stages : the number of the stage whose commit completes the result
    plan : what a resumed run must repeat (JSON), compared by `resume_distances`
    sources : vertices whose rows the result keeps, None for all
    """
    dtype = np.dtype(dtype)
    run_id = uuid.uuid4().hex
    with new_store(path, overwrite) as group:
        if sources is not None:
            array = group.create_array("sources", shape=(len(sources),), dtype="int64")
            array[:] = np.asarray(sources, dtype=np.int64)
        group.update_attributes(
            {
                "schema": SCHEMA,
                "n": graph.n,
                "dtype": str(dtype),
                "chunk": chunk,
                "graph": origin_of(path, graph),
                "plan": plan,
                "stages": stages,
                "committed": None,
                "complete": False,
                "run_id": run_id,
            }
        )
    return _run(path, run_id)


def resume_distances(path: str | os.PathLike[str], graph: Graph) -> Run:
    """Take over an unfinished store to go on from its last commit; StoreError if it is not of this graph.

    A finished store is returned as it is (``stage == stages``).
    """
    group = open_store(path, SCHEMA, "r+")
    check_origin(path, attribute(path, group, "graph"), graph)
    return _run(path, "" if group.attrs.get("complete") else take_over(path, group))


def open_distances(path: str | os.PathLike[str]) -> Distances:
    """Open a finished distances store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        It is missing, foreign, damaged or unfinished; the message says how to go on.
    """
    group = open_store(path, SCHEMA)
    if not attribute(path, group, "complete"):
        done, total = progress(path)
        recorded = attribute(path, group, "graph")["path"]
        raise StoreError(
            f"{path}: unfinished, committed at stage {done} of {total}; "
            f"go on with `tilepath apsp {recorded} {path} --resume`"
        )
    n, dtype = int(attribute(path, group, "n")), np.dtype(attribute(path, group, "dtype"))
    slot, recorded = attribute(path, group, "committed")["slot"], attribute(path, group, "graph")
    sources = np.asarray(group["sources"][:]) if "sources" in group else None
    rows = n if sources is None else len(sources)
    check_array(path, group, slot, (rows, n), DISTANCE_DTYPES)
    check_array(path, group, slot, (rows, n), (dtype,))
    return Distances(os.path.abspath(path), n, dtype, slot, origin_path(path, recorded), recorded["digest"], sources)


def progress(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Stages committed and stages in all."""
    group = open_store(path, SCHEMA)
    committed = attribute(path, group, "committed")
    return (committed["stage"] if committed else 0), int(attribute(path, group, "stages"))


def _run(path: str | os.PathLike[str], run_id: str) -> Run:
    group = open_store(path, SCHEMA)
    committed = attribute(path, group, "committed")
    sources = tuple(group["sources"][:].tolist()) if "sources" in group else None
    return Run(
        path=os.path.abspath(path),
        run_id=run_id,
        n=int(attribute(path, group, "n")),
        dtype=np.dtype(attribute(path, group, "dtype")),
        chunk=int(attribute(path, group, "chunk")),
        plan=attribute(path, group, "plan"),
        sources=sources,
        stages=int(attribute(path, group, "stages")),
        stage=committed["stage"] if committed else 0,
        slot=committed["slot"] if committed else None,
    )


def _with(run: Run, **changes: Any) -> Run:
    return Run(**{**run.__dict__, **changes})

"""The paths store (schema `paths/1`): shortest distances and predecessors, a row per source, that grows by rows.

============ ================= ============================================================================
array        dtype, shape      meaning
============ ================= ============================================================================
distances    distance (S, n)   unreachable is +inf, or the integer dtype's maximum
predecessors int32 (S, n)      optional: the preceding vertex on a shortest path from the source of the row;
                               -1 at the sources and at unreachable vertices
sources      int64 (S)         the source vertices in the order of the rows, all different
source       text or int64 (S) optional: names of the rows, for xarray (`named_matrix.coordinates`)
target       text (n)          optional: names of the columns
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr

from gpuops.numbers import outside_infinity
from pipelines.stores.contents import StoredArray, row_blocks
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, optional, view
from pipelines.stores.durable import delete_tree
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.named_matrix import COORDINATES, VertexMatrix, coordinates
from pipelines.stores.origin import OfGraph
from pipelines.stores.resuming import FinishedStore, NewArray, RowsWriter
from pipelines.stores.schema import CHUNK_BYTES, counted, distance_options, number, recorded_vertices
from pipelines.stores.whole_chunks import block_writer

NAMED = 1 << 17  # most vertices whose names are stored: writing a million names takes longer than many a search
PATH_DTYPES = tuple(map(np.dtype, ("float32", "float64", "int32")))


def _cutoff(value: Any) -> Any:
    if not (isinstance(value, int | float) and value >= 0):
        raise ValueError(value)
    return value


def _derived(path: str, _group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    sources = recorded_vertices(path, "sources", StoredArray(path, "sources")[:], found["n"])
    targets = found["targets"]
    if found["chunk"] < 1:
        raise ValueError(f"chunks of {found['chunk']} rows")
    rows = 1 if found["together"] else len(sources)
    return {
        "sources": tuple(sources.tolist()),
        "rows": rows,
        "source": rows,
        "target": found["n"],
        "targets": None if targets is None else tuple(recorded_vertices(path, "targets", targets, found["n"]).tolist()),
    }


DECLARED = Schema(
    "paths/1",
    source="graph",
    attributes=(
        Attribute("n", int),
        Attribute("dtype", dtype_of(PATH_DTYPES)),
        Attribute("chunk", int),
        Attribute("together", bool),
        Attribute("predecessors", bool, field="has_predecessors"),
        Attribute("cutoff", optional(_cutoff)),
        Attribute("targets", optional(list)),
    ),
    arrays=(
        Array("sources", ("int64",), ("sources",)),
        Array("distances", ("dtype",), VertexMatrix.dimensions, grows=True),
        Array("predecessors", ("int32",), VertexMatrix.dimensions, grows=True, optional="has_predecessors"),
        *COORDINATES,
    ),
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, eq=False, repr=False)
class Paths(VertexMatrix, FinishedStore, OfGraph):
    """A finished paths store, opened by `open_paths`: rows are read on demand. Pickles leave out the rows.

    Columns, `sources`, `targets` and predecessors are positions of vertices. ``store.at["Rome", "Milan"]`` is a
    distance by names. ``graph().names`` turns positions into names, and ``graph().vertices`` turns names into
    positions.
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
        return self.stored("distances")[selection]

    def predecessors(self, selection: Any = slice(None)) -> np.ndarray:
        """Return any Zarr selection of the predecessors as a NumPy array of positions.

        Raises StoreError if predecessors were not kept.
        """
        if not self.has_predecessors:
            raise StoreError(
                f"{self.path}: holds no predecessors; compute it again; pass predecessors=True (leave out "
                "--no-predecessors)"
            )
        return self.stored("predecessors", within=(-1, self.n - 1))[selection]

    def row_of(self, source: int) -> int:
        """Return the row of the vertex at the position `source`; raises StoreError if it is not one of the sources."""
        found = np.flatnonzero(self.sources == source)
        if found.size == 0:
            raise StoreError(
                f"{self.path}: vertex {source} is not one of its {counted(len(self.sources), 'source')}; "
                "name one of them, or search again with this source (tilepath sssp)"
            )
        return 0 if self.together else int(found[0])

    def row_sources(self, row: int) -> np.ndarray:
        """Return the vertices where the paths of a row begin, int64."""
        return self.sources if self.together else self.sources[row : row + 1]

    def row_vertices(self) -> np.ndarray | None:
        """Return the vertex of each row, int64 (S); None if the only row begins at the nearest of several sources."""
        return None if self.together else self.sources

    def blocks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Iterate over the store in order, by the rows of whole chunks.

        Yields (first row, block of distances, block of predecessors or None).
        """
        for start, *blocks in row_blocks(_arrays(self)):
            yield start, *blocks, *[None] * (2 - len(blocks))

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


@dataclass(frozen=True, eq=False)
class PathsWriter(RowsWriter):
    """A paths store that is being computed."""

    declared, command = DECLARED, "sssp {graph[path]}"

    n: int
    dtype: np.dtype
    sources: tuple[int, ...]
    together: bool
    cutoff: float | None
    targets: tuple[int, ...] | None
    has_predecessors: bool

    def row_sources(self, row: int) -> tuple[int, ...]:
        """Return the vertices where the paths of a row begin."""
        return self.sources if self.together else self.sources[row : row + 1]

    def for_tasks(self) -> PathsWriter:
        """Return the writer without its sources, for the tasks that write rows: there may be millions of sources."""
        return replace(self, sources=())

    def opened(self, name: str) -> tuple[int, Callable[[int, int, np.ndarray], None]]:
        """Return the width of the chunks of an array, and a function that writes whole chunks at a row and a column."""
        return block_writer(self.path, name, self.run_id)

    def begun_with(self) -> dict[str, Any]:
        names = ("dtype", "sources", "together", "cutoff", "targets")
        return {name: getattr(self, name) for name in names} | {"predecessors": self.has_predecessors}

    def discard(self) -> None:
        """Remove the store if it has no complete row."""
        self.owned()
        if not self.rows_done().any():
            delete_tree(self.path, ignore_errors=True)

    def check_values(self) -> tuple[str, ...]:
        for start, distances, *kept in row_blocks(_arrays(self), self.rows_done()):
            reached = distances != outside_infinity(self.dtype)
            if self.dtype.kind == "f" and np.isnan(distances).any():
                raise StoreError(f"{self.path}: holds NaN; compute it again")
            if self.cutoff is not None and (distances[reached] > self.cutoff).any():
                raise StoreError(
                    f"{self.path}: a distance exceeds the cutoff at or after row {start}; compute it again"
                )
            if any((predecessors[~reached] >= 0).any() for predecessors in kept):
                raise StoreError(
                    f"{self.path}: an unreachable vertex has a predecessor at or after row {start}; compute it again"
                )
        return ("that every entry is valid",)


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
    others : as in `tilepath.single_source_shortest_paths`
    """
    dtype, n = np.dtype(dtype), graph.n
    rows = 1 if together else len(sources)

    def new(kind: np.dtype, options: dict[str, Any]) -> NewArray:
        # A chunk holds only a part of a long row, so that one vertex can be read without the whole row.
        columns = max(1, min(n, CHUNK_BYTES // kind.itemsize))
        return NewArray((rows, n), (max(1, min(chunk, rows)), columns), kind, options)

    distances = new(dtype, distance_options(dtype, graph.weight_unit))
    arrays = {"sources": np.asarray(sources, np.int64), "distances": distances}
    if n <= NAMED:
        arrays |= coordinates(graph, sources)
    if together:
        arrays.pop("source", None)  # the only row has no single source
    if predecessors:
        arrays["predecessors"] = new(np.dtype(np.int32), {"fill_value": -1})
    attributes = {
        "n": n,
        "dtype": str(dtype),
        "chunk": chunk,
        "predecessors": predecessors,
        "together": together,
        "cutoff": cutoff,
        "targets": None if targets is None else list(map(int, targets)),
        "done": [],
    }
    return PathsWriter.create(path, graph, attributes, arrays, overwrite=overwrite)


def open_paths(store: Paths | str | os.PathLike[str]) -> Paths:
    """Open a finished paths store and check its schema, shapes and dtypes, or return an opened one.

    Raises
    ------
    StoreError
        The store is missing, damaged, unfinished or of another schema; the message names the cure.

    Examples
    --------
    >>> tilepath.open_paths("trees.zarr").distances(0).tolist()
    [0, 350, 515, 570]
    """
    if isinstance(store, Paths):
        return store
    found = PathsWriter.read_finished(store)
    return view(Paths, found | {"sources": np.array(found["sources"])})


def _arrays(store: Paths | PathsWriter) -> list[StoredArray]:
    """Open the arrays that grow by rows."""
    within = {"distances": None, "predecessors": (-1, store.n - 1)}
    seal = store.seal if isinstance(store, Paths) else ""
    return [StoredArray(store.path, name, within[name], seal=seal) for name in [*within][: 1 + store.has_predecessors]]

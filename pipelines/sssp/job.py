"""The problem of a run of searches: its graph, and the options of its searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuops import NegativeCycleError, csr
from gpuops.certificates import nonnegative_weights
from gpuops.numbers import outside_infinity
from pipelines.stores.graph import Graph
from pipelines.validation.bounds import arc_pieces, row_limit

BATCH = 32  # number of sources whose searches share the reads of arcs


@dataclass(frozen=True, eq=False)
class SearchJob:
    """The problem, for the tasks."""

    graph: Graph
    dtype: np.dtype
    batched: bool = True  # whether searches may share the reads of arcs: not with negative weights or a cutoff
    predecessors: bool = True
    cutoff: float | None = None
    targets: tuple[int, ...] | None = None
    potentials: tuple[np.ndarray, np.ndarray] | None = None  # make weights non-negative; only without predecessors
    loops: tuple[np.ndarray, np.ndarray] | None = None  # vertices with loops of negative weight, and the weights
    hops: bool = False  # whether arcs are counted: they have equal weights, and searches may share reads

    @cached_property
    def through(self) -> np.ndarray | None:
        """The vertices that may lie inside a path, bool (n); None if all may. Read once in a process."""
        mask = self.graph.through()
        return None if mask.all() else mask

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "through"}

    def arcs(self, first: int, last: int, library: Any = np) -> tuple[Any, Any, Any]:
        """Return the arcs that leave the vertices `first` to `last` (excluded), in CSR, with weights for searches.

        The arrays are new, of `library` (numpy or cupy).
        """
        loops = self.loops is not None and len(self.loops[0]) > 0
        if self.potentials is None and not loops:
            return self.graph.rows_in(library, self.dtype, first, last)
        indptr, indices, weights = self.graph.rows(first, last)
        if self.potentials is not None:
            weights = nonnegative_weights(self.potentials, first, indptr, indices, weights)
        if loops:  # loops of negative weight are left to `refuse_loops`, as searches may never reach them
            rows = csr.tails(indptr, len(indices), np.int64)
            kept = indices != first + rows
            indptr, indices, weights = csr.row_starts(rows[kept], len(indptr) - 1), indices[kept], weights[kept]
        return tuple(map(library.asarray, (indptr, indices, weights.astype(self.dtype, copy=False))))

    def refuse_loops(self, distances: Any, sources: tuple[int, ...]) -> None:
        """Raise NegativeCycleError if a search can go around a loop of negative weight; `distances` is (n)."""
        if self.loops is None:
            return
        for vertex, weight in zip(*(part.tolist() for part in self.loops), strict=True):
            passes = self.through is None or self.through[vertex] or vertex in sources
            if passes and bool(distances[vertex] != outside_infinity(self.dtype)):
                raise NegativeCycleError(f"a loop of weight {weight:g} at vertex {vertex}", (vertex,), weight)

    def cut(self, distances: Any) -> None:
        """Mark the vertices beyond the limit of a row as unreachable, in place."""
        limit = row_limit(distances, self.cutoff, self.targets)
        if limit is not None:
            distances[distances > limit] = outside_infinity(self.dtype)

    def shift_back(self, distances: np.ndarray, column: int, sources: Sequence[tuple[int, ...]]) -> None:
        """Turn distances by non-negative weights into distances by the weights of the graph, in place.

        `distances` is (k, c), from k sources to the c vertices from `column` on.
        """
        if self.potentials is None:
            return
        out, into = self.potentials
        end = column + distances.shape[1]
        for row, (source,) in zip(distances, sources, strict=True):
            reached = row != outside_infinity(self.dtype)
            row[reached] = (row + (into[column:end] - out[source]))[reached]
            if column <= source < end:
                row[source - column] = 0


def have_equal_weights(graph: Graph) -> bool:
    """Return whether all arcs have the same weight, which is not negative: a search then counts arcs."""
    return graph.m > 0 and 0 <= graph.weight_min == graph.weight_max


def negative_loops(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the vertices with loops of negative weight, and their least weights; None if no weight is negative."""
    if graph.weight_min >= 0:
        return None
    lightest: dict[int, Any] = {}
    for first, indptr, indices, weights in arc_pieces(graph):
        tails = first + csr.tails(indptr, len(indices), np.int64)
        for arc in np.flatnonzero((tails == indices) & (weights < 0)):
            vertex, weight = int(tails[arc]), weights[arc].item()
            lightest[vertex] = min(weight, lightest.get(vertex, weight))
    return np.array(list(lightest), dtype=np.int64), np.array(list(lightest.values()))

"""Stores that compute any row or block of distances when it is asked for, instead of holding a matrix.

A *solution* is such a store, or a store that holds the matrix (`pipelines.stores.distances`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipelines.stores.distances import Distances, open_distances
from pipelines.stores.graph import Graph
from pipelines.stores.kinds import KINDS
from pipelines.stores.origin import OfGraph
from pipelines.stores.schema import StoreError, attribute, kind_of, open_store

BATCH_BYTES = 64 << 20  # bytes of rows computed at a time


class Division(NamedTuple):
    """How a store divides its graph, for a picture.

    Attributes
    ----------
    part : (n,) integers
        The part of each vertex, from 0.
    separates : (n,) bool
        Whether the vertex separates parts.
    parts : int
        Number of parts.
    names : pair of str
        The name of a vertex that separates parts, and a line on the whole division.
    """

    part: np.ndarray
    separates: np.ndarray
    parts: int
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class OnDemand(OfGraph):
    """A finished store that computes distances. It pickles as its path, and reads its tables when they are first used.

    Rows are read by the same methods as from a `pipelines.stores.distances.Distances`, but each call computes them. The
    methods take and return positions of vertices; `pipelines.distances_between` takes names.

    Attributes
    ----------
    n : number of vertices
    dtype : dtype of the distances
    """

    path: str
    n: int
    dtype: np.dtype
    graph_path: str
    graph_digest: str

    def __reduce__(self) -> tuple[Any, ...]:
        return open_on_demand, (self.path,)

    def between(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the distances (k, l) from k sources to l targets, in outside form."""
        raise NotImplementedError

    def between_on_gpu(self, sources: Any, targets: Any) -> Any:
        """Return the distances of `between`, computed on the GPU and left there; vertices may be in CuPy arrays."""
        raise NotImplementedError

    def division(self) -> Division:
        """Return how the store divides its graph."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns: (n, n)."""
        return self.n, self.n

    def row_vertices(self) -> np.ndarray:
        """Return the vertex of each row, int64 (n)."""
        return np.arange(self.n)

    def row(self, source: int) -> np.ndarray:
        """Return the distances from the vertex at the position `source` to every vertex, (n)."""
        return self.between(np.array([source]), np.arange(self.n))[0]

    def rows(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Iterate over the given rows, int (k), in batches: yields (position in `rows`, block of rows)."""
        batch = max(1, BATCH_BYTES // max(1, self.n * self.dtype.itemsize))
        for start in range(0, len(rows), batch):
            yield start, self.between(rows[start : start + batch], np.arange(self.n))

    @property
    def digest(self) -> str:
        """The attribute `seal`, a hash that changes with the tables and attributes (`pipelines.stores.contents`)."""
        return str(attribute(self.path, open_store(self.path), "seal"))

    @cached_property
    def named(self) -> Graph:
        """The graph of the store, opened once, to look up names of vertices."""
        return self.graph()


Solution: TypeAlias = Distances | OnDemand
SolutionLike: TypeAlias = Solution | str | os.PathLike[str]


def open_on_demand(path: str | os.PathLike[str]) -> OnDemand:
    """Open a store that computes distances; raises StoreError if the store at `path` is of another kind, or damaged."""
    kind = kind_of(path)
    if not kind.on_demand:
        raise StoreError(
            f"{path}: is a {kind.name} store ({kind.schema}), but a store that computes distances is needed, made by "
            f"`{KINDS['hierarchy/1'].made_by}`"
        )
    found = kind.open(path)
    assert isinstance(found, OnDemand)
    return found


def open_solution(
    solution: SolutionLike, graph: Graph | str | os.PathLike[str] | None = None
) -> tuple[Solution, Graph]:
    """Open a store of distances, held or computed, and the graph of the store (None: the graph that it records)."""
    if isinstance(solution, str | os.PathLike):
        solution = open_on_demand(solution) if kind_of(solution).on_demand else open_distances(solution)
    return solution, solution.graph(graph.path if isinstance(graph, Graph) else graph)

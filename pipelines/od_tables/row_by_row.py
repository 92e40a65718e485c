"""Distances and paths of pairs of an origin and a destination, row by row.

Rows with the same origin are answered together. A hierarchy store computes a block of distances for some origins and
all of their destinations, and each row takes one distance of the block. The blocks have more distances than there are
rows, but far fewer than all origins and all destinations would have. A distance in a block takes less time than a
single distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipelines.od_tables.forms import Found
from pipelines.od_tables.given import Given
from pipelines.routes.along import Along, sums_along
from pipelines.routes.distances import BATCH, SearchedDistances
from pipelines.routes.paths import PathFinder, Walker, walks_of_pairs
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore

PAIRS = 1 << 18  # rows that are answered at a time
TOGETHER = 256  # origins of a block of a hierarchy store
WASTE = 64  # distances that may be computed for each row


class RowByRow:
    """Distances of pairs, and their paths if `walks`; origin i goes to destination i.

    Attributes
    ----------
    dtype : dtype of the distances
    """

    def __init__(self, given: Given, *, walks: bool):
        source, self._ends = given.source, tuple(points.vertices for points in given.points)
        self._source = source
        graph = given.graph if isinstance(source, HierarchyStore) else None
        self._finder = PathFinder(source, graph) if walks else None
        self._searched = SearchedDistances(source) if isinstance(source, Graph) and not walks else None
        found = self._finder.distances if self._finder else self._searched or source
        self.dtype: np.dtype = found.dtype  # type: ignore[union-attr]

    @property
    def walker(self) -> Walker:
        """Finds the paths."""
        assert self._finder is not None
        return self._finder

    def compute(self, rows: slice) -> Found:
        """Return the distances, and the paths, of some rows."""
        origins, destinations = (vertices[rows] for vertices in self._ends)
        numbers = np.arange(rows.start, rows.start + len(origins))
        if self._finder is None:
            return Found(numbers, numbers, self._distances(origins, destinations))
        walks = walks_of_pairs(self._finder, origins, destinations)
        return Found(numbers, numbers, walks.distances, (walks.hops, walks.paths.flatten().to_numpy()))

    def sums(self, along: Sequence[Along]) -> list[np.ndarray]:
        """Return the sum of each of some weights along the path of each row, (k,) float64, NaN without a path."""
        found: list[list[np.ndarray]] = [[np.empty(0)] for _ in along]
        for start in range(0, len(self._ends[0]), PAIRS):
            walks = self.compute(slice(start, start + PAIRS)).walks
            assert walks is not None
            arcs = self.walker.arcs(*walks)
            for sums, each in zip(found, along, strict=True):
                sums.append(np.where(walks[0] < 0, np.nan, sums_along(arcs, walks[0], each.weights)))
        return [np.concatenate(sums) for sums in found]

    def _distances(self, origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        found = np.empty(len(origins), self.dtype)
        for some in self._groups(origins, destinations):
            starts, row = np.unique(origins[some], return_inverse=True)
            if self._searched is not None:
                found[some] = self._searched.search(starts)[row, destinations[some]]
                continue
            assert isinstance(self._source, HierarchyStore)
            ends, column = np.unique(destinations[some], return_inverse=True)
            found[some] = self._source.between(starts, ends)[row, column]
        return found

    def _groups(self, origins: np.ndarray, destinations: np.ndarray) -> Iterator[np.ndarray]:
        """Yield numbers of rows in groups with few origins each."""
        different, number = np.unique(origins, return_inverse=True)
        most = BATCH if self._searched is not None else TOGETHER
        if self._searched is None and len(different) * len(np.unique(destinations)) <= WASTE * len(origins):
            most = max(len(different), 1)
        order = np.argsort(number, kind="stable")
        cuts = np.searchsorted(number[order], np.arange(0, len(different), most))
        yield from np.split(order, cuts[1:])

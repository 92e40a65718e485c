"""Tables of near destinations, by searches that end early: the k nearest of every vertex, or all within a limit.

The time of a search that ends at the limit of `within` depends on the vertices that it reaches, not on the number of
destinations. One search finds the k nearest destinations of every vertex. For sums of every vertex, searches start at
the destinations and go against the arcs, if the destinations are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpuops import csr, distances_within, k_nearest
from gpuops.errors import WeightRangeError
from gpuops.numbers import outside_infinity
from pipelines.od_tables.blocks import Reduction
from pipelines.od_tables.forms import Found
from pipelines.places.points import Points
from pipelines.routes.distances import AS_FLOATS
from pipelines.stores.graph import Graph

PROBES = 16  # trial searches that estimate how many vertices a search reaches
FEW = 100  # fewest destinations for which searches are tried
SEARCHES = 16  # fewest searches from destinations at a time
END_BYTES = 128 << 20  # bytes of the vertices and distances of these searches, if each reaches every vertex
REACHED_WORK = 10  # time to reach a vertex, in distances that a hierarchy store computes and reduces


@dataclass(frozen=True, eq=False)
class Near:
    """Searches for destinations in one graph.

    Attributes
    ----------
    dtype : dtype of the distances in the table
    within : destinations farther away do not count; None for any distance
    """

    graph: Graph
    dtype: np.dtype
    origins: Points
    destinations: Points
    within: float | None

    @cached_property
    def arcs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The graph, with weights of a dtype that can be searched."""
        return self._searchable(self.graph.rows())

    @cached_property
    def reverse_arcs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same graph with every arc reversed."""
        return self._searchable(self.graph.reverse.rows())

    def _searchable(self, rows: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        indptr, indices, weights = rows
        wide = np.dtype(np.int32) if self.dtype.kind == "i" else self.dtype
        if wide.kind == "i" and len(weights) and int(weights.max()) >= outside_infinity(wide):
            raise WeightRangeError(f"{self.graph.path}: a weight does not fit int32; {AS_FLOATS}")
        return indptr, indices, weights.astype(wide, copy=False)

    @cached_property
    def limit(self) -> float:
        """The greatest distance that counts, in the dtype of the distances."""
        return self._limit_of(self.within)

    def _limit_of(self, within: float | None) -> float:
        if within is None:
            return np.inf
        return within if self.dtype.kind == "i" else float(self.dtype.type(within))

    @cached_property
    def at(self) -> tuple[np.ndarray, np.ndarray]:
        """The destinations, sorted by vertex; and where the destinations at each vertex begin, int64 (n + 1)."""
        vertices = self.destinations.vertices
        return np.argsort(vertices, kind="stable"), csr.row_starts(vertices, self.graph.n)

    @cached_property
    def from_ends(self) -> bool:
        """Whether fewer searches start at the destinations than at the origins, which are all vertices."""
        return self.origins.everywhere and len(np.unique(self.destinations.vertices)) < len(self.origins.vertices)

    def is_faster_than_tables(self, *, reduces: bool) -> bool:
        """Return whether the searches would take less time than a hierarchy; tries some searches.

        With few destinations, a hierarchy is so fast that even to read the graph for these searches would take longer.
        """
        origins, ends = self.origins.vertices, self.destinations.vertices
        if len(ends) < FEW:
            return False
        backwards = reduces and self.from_ends
        starts = np.unique(ends) if backwards else origins
        probes = starts[:: max(1, len(starts) // PROBES)]
        reached = len(self._reached(probes, backwards=backwards)[1]) / len(probes)
        return reached * len(starts) * REACHED_WORK < len(origins) * len(ends)

    def pairs(self, rows: slice) -> Found:
        """Return the destinations within the limit of some origins, in the order of the destinations."""
        starts, vertices, distances = self._reached(self.origins.vertices[rows])
        order, first = self.at
        there = first[vertices + 1] - first[vertices]
        owners = np.repeat(np.arange(rows.start, rows.start + len(starts) - 1), np.diff(starts))
        i, values = np.repeat(owners, there), np.repeat(distances, there)
        j = order[csr.in_ranges(first[vertices], first[vertices + 1])]
        rank = np.lexsort((j, i))
        return Found(i[rank], j[rank], values[rank].astype(self.dtype))

    def reduced(self, reductions: Sequence[Reduction], values: Sequence[np.ndarray], rows: slice) -> np.ndarray:
        """Return a row for each origin, with a column for each reduction, as `pipelines.od_tables.blocks.reduced`."""
        found = self._reached(self.origins.vertices[rows])
        columns = [self._reduced(each, of, *found) for each, of in zip(reductions, values, strict=True)]
        return np.stack(columns, axis=1)

    def _reduced(
        self, reduction: Reduction, values: np.ndarray, starts: np.ndarray, vertices: np.ndarray, distances: np.ndarray
    ) -> np.ndarray:
        counted = distances <= self._limit_of(reduction.within)
        n, ends = self.graph.n, self.destinations.vertices
        counts, sums = np.bincount(ends, minlength=n), np.bincount(ends, values, minlength=n)
        if reduction.name == "min":
            lengths = np.where(counted & (counts[vertices] > 0), distances, np.inf)
            return np.minimum.reduceat(lengths, starts[:-1]) if len(starts) > 1 else lengths
        weights = np.where(counted, reduction.weights(distances), 0.0)

        def total(of: np.ndarray) -> np.ndarray:  # an origin is within every limit, so that no row is empty
            return np.add.reduceat(of[vertices] * weights, starts[:-1])

        if reduction.name != "mean":
            return total(sums)
        with np.errstate(invalid="ignore"):  # NaN where no destination counts
            return total(sums) / total(counts.astype(float))

    def reduced_from_ends(self, reductions: Sequence[Reduction], values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the rows of `reduced` for all vertices, by searches from the destinations against the arcs."""
        n = self.graph.n
        ends, at = np.unique(self.destinations.vertices, return_inverse=True)
        counts, sums = np.bincount(at), [np.bincount(at, of) for of in values]
        totals = [np.full(n, np.inf if each.name == "min" else 0.0) for each in reductions]
        divisors = [np.zeros(n) for _ in reductions]
        step = max(SEARCHES, END_BYTES // (12 * max(1, n)))
        for first in range(0, len(ends), step):
            starts, vertices, distances = self._reached(ends[first : first + step], backwards=True)
            owners = np.repeat(np.arange(first, first + len(starts) - 1), np.diff(starts))
            for each, of, total, divisor in zip(reductions, sums, totals, divisors, strict=True):
                if each.name == "min":  # its limit is that of the searches
                    np.minimum.at(total, vertices, distances.astype(np.float64))
                    continue
                weights = np.where(distances <= self._limit_of(each.within), each.weights(distances), 0.0)
                np.add.at(total, vertices, of[owners] * weights)
                if each.name == "mean":
                    np.add.at(divisor, vertices, counts[owners] * weights)
        with np.errstate(invalid="ignore"):  # NaN where no destination counts
            columns = [
                total / divisor if each.name == "mean" else total
                for each, total, divisor in zip(reductions, totals, divisors, strict=True)
            ]
        return np.stack(columns, axis=1)[: len(self.origins.vertices)]

    def nearest(self, k: int) -> Found:
        """Return the k nearest destinations of every vertex, which are the origins.

        Floats are added up in float64, from the destination back, and rounded once to the dtype of the table.
        """
        indptr, indices, weights = self.arcs if self.graph.weight_dtype.kind in "iu" else self.graph.rows()
        limit = self.limit * (1 + 1e-6)  # some distances are rounded down to the limit; others are removed below
        places = self.destinations.vertices
        found, lengths = k_nearest(indptr, indices, weights, places, k, limit=limit, through=self.graph.through())
        i, column = np.nonzero(found >= 0)
        j, values = found[i, column].astype(np.int64), lengths[i, column]
        if self.dtype.kind == "i" and len(values) and int(values.max()) >= outside_infinity(self.dtype):
            raise WeightRangeError(f"{self.graph.path}: distances do not fit {self.dtype}; {AS_FLOATS}")
        values = values.astype(self.dtype)
        near = values <= self.limit
        return Found(i[near], j[near], values[near])

    def _reached(self, sources: np.ndarray, *, backwards: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        arcs = self.reverse_arcs if backwards else self.arcs
        try:
            return distances_within(*arcs, sources, self.limit, through=self.graph.through())
        except OverflowError:
            raise WeightRangeError(f"{self.graph.path}: distances do not fit {self.dtype}; {AS_FLOATS}") from None

"""Measures of a graph from its distances: diameter, radius, eccentricity, closeness, mean distance.

The measures take one pass over the rows of chunks of the store; the matrix is never in memory as a whole. All measures
use the distances *from* the vertices of the rows. (On a directed graph, NetworkX's closeness uses the distances *to* a
vertex: this is the closeness of the reversed graph here.)

- eccentricity of s: the largest finite distance from s.
- diameter: the largest eccentricity over all rows. Unreachable pairs do not make it infinite; they are counted.
- radius: the smallest eccentricity of a vertex that reaches all vertices; NaN if no vertex does, as in a graph of
  several weak components. Each component has a diameter and a radius of its own (`Measures.of_components`).
- closeness of s: (r - 1) / d * (r - 1) / (n - 1), if s reaches r - 1 other vertices and the distances to them sum to d;
  0 if d is not positive. The second factor corrects for vertices that do not reach all (Wasserman and Faust, Social
  Network Analysis, 1994, eq. 5.22).
- mean distance: the mean over ordered pairs of different vertices where the first vertex reaches the second.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, NamedTuple, no_type_check

import numpy as np
import pyarrow as pa
from numba import njit

from gpuops.numbers import outside_infinity
from pipelines.files.tables import write_table
from pipelines.stores.distances import Distances, open_distances
from pipelines.stores.graph import Graph


class OfComponent(NamedTuple):
    """The diameter and the radius of a weak component, and the number of its vertices."""

    vertices: int
    diameter: float
    radius: float  # NaN if no vertex reaches all vertices of the component


@dataclass(frozen=True, eq=False)
class Measures:
    """The measures of a distances store; of its rows only, if it holds only the rows of some sources.

    All measures are of the distances *from* the vertices of the rows.

    Attributes
    ----------
    n : int
        Number of vertices of the graph.
    sources : numpy.ndarray of int64 (S)
        The vertex of each row; S = n for a whole matrix.
    eccentricity : numpy.ndarray of float64 (S)
        The largest finite distance.
    reached : numpy.ndarray of int64 (S)
        Number of vertices that the source reaches, itself included.
    closeness : numpy.ndarray of float64 (S)
        ``(r / d) * (r / (n - 1))`` for a source that reaches r other vertices at distances that sum to d, as
        `networkx.closeness_centrality` of the reversed graph; 0 if it reaches none.
    diameter : float
        The largest eccentricity.
    diameter_pair : tuple of int
        A source and a target whose distance is the diameter.
    radius : float
        The least eccentricity of a vertex that reaches all vertices; NaN if no vertex does.
    mean_distance : float
        The mean over pairs of different vertices that a path joins; NaN if there is no such pair.
    unreachable_pairs : int
        Number of pairs of a source and a vertex that no path joins.
    """

    n: int
    sources: np.ndarray
    eccentricity: np.ndarray
    reached: np.ndarray
    closeness: np.ndarray
    diameter: float
    diameter_pair: tuple[int, int]
    radius: float
    mean_distance: float
    unreachable_pairs: int

    @property
    def all_sources(self) -> bool:
        """Whether the measures refer to all vertices of the graph."""
        return len(self.sources) == self.n

    def of_components(self, component: np.ndarray) -> list[OfComponent]:
        """Return the measures of each weak component that has rows, the largest component first.

        Parameters
        ----------
        component : int (n), the component of each vertex, numbered from 0
        """
        vertices, of_row = np.bincount(component), component[self.sources]
        diameter, radius = np.zeros(len(vertices)), np.full(len(vertices), np.inf)
        np.maximum.at(diameter, of_row, self.eccentricity)
        central = self.reached == vertices[of_row]
        np.minimum.at(radius, of_row[central], self.eccentricity[central])
        radius[np.isinf(radius)] = np.nan
        found = [OfComponent(int(vertices[c]), float(diameter[c]), float(radius[c])) for c in np.unique(of_row)]
        return sorted(found, key=lambda each: -each.vertices)

    def write(
        self,
        out: str | os.PathLike[str],
        names: Any = None,
        *,
        component: np.ndarray | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the columns vertex, eccentricity, closeness and reached to a table.

        Parameters
        ----------
        out : path of the new table (.csv, .tsv, .csv.gz, .tsv.gz, .parquet)
        names : (n) names of the vertices, such as `Graph.labels`; by default their positions
        component : int (n), the component of each vertex, for the column component; by default there is no such column
        overwrite : replace an existing file at `out`
        """
        vertex = self.sources if names is None else np.asarray(names, dtype=object)[self.sources].tolist()
        columns = {"eccentricity": self.eccentricity, "closeness": self.closeness, "reached": self.reached}
        if component is not None:
            columns["component"] = component[self.sources]
        write_table(pa.table({"vertex": vertex, **columns}), out, overwrite)


def measures(
    distances: Distances | str | os.PathLike[str], graph: Graph | str | os.PathLike[str] | None = None
) -> Measures:
    """Reduce a distances store to the measures that `Measures` defines, in float64.

    Vertices that were added for turns do not count.

    Parameters
    ----------
    distances : the store or its path
    graph : the graph or its path, if it was moved

    Examples
    --------
    >>> found = tilepath.measures(distances)
    >>> found.diameter, found.radius
    (570.0, 350.0)
    """
    distances = open_distances(distances)
    n, sources = distances.graph(graph).road_vertices, distances.row_vertices()
    unreachable = outside_infinity(distances.dtype)
    parts = []
    for start, block in distances.blocks():
        own = sources[start : start + len(block)]
        counted = np.flatnonzero(own < n)
        parts.append(_reduce_rows(block, counted, own[counted], n, unreachable))
    eccentricity, farthest, reached, total = (np.concatenate(part) for part in zip(*parts, strict=True))
    sources = sources[sources < n]

    others = reached - 1
    positive = (total > 0) & (others > 0)
    closeness = np.zeros(len(sources))
    closeness[positive] = others[positive] / total[positive] * (others[positive] / (n - 1))
    whole, pairs, far = reached == n, int(others.sum()), int(np.argmax(eccentricity))
    return Measures(
        n=n,
        sources=sources,
        eccentricity=eccentricity,
        reached=reached,
        closeness=closeness,
        diameter=float(eccentricity[far]),
        diameter_pair=(int(sources[far]), int(farthest[far])),
        radius=float(eccentricity[whole].min()) if whole.any() else math.nan,
        mean_distance=math.fsum(total) / pairs if pairs else math.nan,
        unreachable_pairs=len(sources) * n - int(reached.sum()),
    )


@njit(nogil=True, cache=True)
@no_type_check
def _reduce_rows(block, counted, sources, n, unreachable):
    """Return for each counted row the largest finite distance, its column, how many are finite, and their sum.

    `sources` are those of the counted rows. Columns from n on are left out.
    """
    rows = len(counted)
    eccentricity, total = np.zeros(rows), np.zeros(rows)
    farthest, reached = np.empty(rows, np.int64), np.zeros(rows, np.int64)
    for i in range(rows):
        farthest[i] = sources[i]  # at distance 0; it stays if no distance is positive, as with negative arcs
        for j in range(n):
            distance = block[counted[i], j]
            if distance == unreachable:
                continue
            reached[i] += 1
            total[i] += distance
            if distance > eccentricity[i]:
                eccentricity[i], farthest[i] = distance, j
    return eccentricity, farthest, reached, total

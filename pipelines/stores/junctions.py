"""Junctions: vertices where turns are forbidden or cost something, in a graph that `pipelines.turns` made.

A junction v is a closed vertex. Each arc into v ends at an added vertex, an *arrival*, and each arc out of v begins at
another added vertex, a *departure*. A *turn* is an arc from an arrival to a departure: its weight is the cost of the
turn, and a forbidden turn has no arc. Arcs of weight 0 from v to its departures let paths begin at v, and arcs of
weight 0 from its arrivals to v let paths end there; they count as turns, too. All other arcs are *roads*.

The array `junctions`, int64 (n), of a graph store says what each vertex is:

============ ==========================================================================
entry        the vertex is
============ ==========================================================================
its position a vertex of the road network; those come first, in their own order
v >= 0       an arrival at the junction v
-1 - v       a departure from the junction v
============ ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Junctions:
    """What each vertex of a graph with turns is.

    Attributes
    ----------
    codes : (n,) int64
        The array `junctions` of the store.
    """

    codes: np.ndarray

    @property
    def n(self) -> int:
        """The number of vertices of the road network, which come first."""
        return int(np.count_nonzero(self.codes == np.arange(len(self.codes))))

    @property
    def count(self) -> int:
        """The number of junctions."""
        return len(np.unique(self.codes[self.codes < 0]))

    def of(self, vertices: np.ndarray) -> np.ndarray:
        """Return the vertex of the road network at which each of some vertices lies."""
        codes = self.codes[vertices]
        return np.where(codes < 0, -1 - codes, codes)

    def reversed(self) -> Junctions:
        """Return the same of the graph with all arcs reversed: arrivals are departures, and departures arrivals."""
        added = self.codes != np.arange(len(self.codes))
        return Junctions(np.where(added, -1 - self.codes, self.codes))

    def are_turns(self, tails: np.ndarray, heads: np.ndarray) -> np.ndarray:
        """Return which arcs are turns, bool; `tails` and `heads` are their ends."""
        return (self.codes[tails] == self.of(heads)) & (tails != heads)

    def road_rows(self, indptr: np.ndarray, heads: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Return the road network in compressed sparse rows, and the number of each of its arcs in the whole graph.

        Rows are sorted by head, and parallel arcs have the order that they had before the turns were added.
        """
        tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        arcs = np.flatnonzero(~self.are_turns(tails, heads))
        tails, ends = self.of(tails[arcs]), self.of(heads[arcs])
        order = np.lexsort((ends, tails))
        starts = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=self.n))])
        return (starts, ends[order].astype(heads.dtype)), arcs[order]

    def roads_of(self, hops: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return paths as paths of the road network, where a junction is one vertex.

        Parameters
        ----------
        hops : (k,) int64
            The number of arcs of each path, negative where there is no path.
        vertices : the vertices of all paths, one path after the other

        Returns
        -------
        hops, vertices
            The same of the road network.
        roads : bool
            Which arcs are roads, of all arcs of the given paths, one path after the other.
        """
        sizes = np.where(hops < 0, 0, hops + 1)
        ends = np.cumsum(sizes)[sizes > 0]
        first = np.zeros(len(vertices), bool)
        first[ends - sizes[sizes > 0]] = True
        roads = np.ones(len(vertices), bool)  # whether a road leads to the vertex; the first vertex counts, too
        roads[1:] = ~self.are_turns(vertices[:-1], vertices[1:]) | first[1:]
        before = np.concatenate([[0], np.cumsum(roads)])
        places = np.concatenate([[0], np.cumsum(sizes)])
        kept = before[places[1:]] - before[places[:-1]]
        return np.where(hops < 0, hops, kept - 1), self.of(vertices[roads]), roads[~first]

    @staticmethod
    def weights_of(roads: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the weight of each road of one path, with the cost of the turn before it.

        Parameters
        ----------
        roads : which arcs of the path are roads, from `roads_of`
        weights : the weights of all arcs of the path
        """
        places = np.flatnonzero(roads)
        return np.add.reduceat(weights, np.concatenate([[0], places[:-1] + 1])) if len(places) else weights[:0]


def check_junctions(codes: np.ndarray) -> None:
    """Raise ValueError if entries do not follow the table at the top."""
    n = int(np.count_nonzero(codes == np.arange(len(codes))))
    network, added = codes[:n], codes[n:]
    if (network != np.arange(n)).any() or ((added < -n) | (added >= n)).any():
        raise ValueError("the junctions of vertices are damaged")

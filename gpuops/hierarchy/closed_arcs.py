"""The arcs of closed vertices. Paths begin and end at a closed vertex, but do not pass through it, so that it is not in
the elimination tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops import csr


@dataclass(frozen=True, eq=False)
class Links:
    """Arcs of each of C closed vertices, in CSR.

    Attributes
    ----------
    starts : (C + 1,) int64
        Where the arcs of each closed vertex begin in `ends` and `lengths`, then their number m.
    ends : (m,) int32
        The other end of each arc: the place of an open vertex, or the number of a closed vertex.
    lengths : (m,) array of the distance dtype
    """

    starts: np.ndarray
    ends: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, owners: np.ndarray, ends: np.ndarray, lengths: np.ndarray, count: int) -> Links:
        """Keep the shortest arc between each owner and each end. Owners are numbers below `count`."""
        order = np.lexsort((lengths, ends, owners))
        owners, ends, lengths = owners[order], ends[order], lengths[order]
        new = np.ones(len(owners), bool)
        new[1:] = (np.diff(owners) != 0) | (np.diff(ends) != 0)
        return cls(csr.row_starts(owners[new], count), ends[new].astype(np.int32), lengths[new])

    def rows(self, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arcs of closed vertices: the position in `owners`, the end and the length of each arc."""
        first, last = self.starts[owners], self.starts[owners + 1]
        positions, arcs = np.repeat(np.arange(len(owners)), last - first), csr.in_ranges(first, last)
        return positions, self.ends[arcs], self.lengths[arcs]


@dataclass(frozen=True, eq=False)
class ClosedArcs:
    """The arcs of closed vertices. The number of a closed vertex is its place less the number of open vertices.

    Attributes
    ----------
    leaving : Links
        Arcs to open vertices, whose places are the ends.
    entering : Links
        Arcs from open vertices, whose places are the ends.
    beside : Links
        Arcs to closed vertices, whose numbers are the ends.
    """

    leaving: Links
    entering: Links
    beside: Links

    @classmethod
    def of(cls, tails: np.ndarray, heads: np.ndarray, lengths: np.ndarray, open_: int, n: int) -> ClosedArcs:
        """Select the arcs of closed vertices among arcs given by the places of their ends.

        The open vertices have the places below `open_`.
        """
        ends, from_closed, to_closed = (tails, heads), tails >= open_, heads >= open_

        def links(chosen: np.ndarray, owner: int, other_closed: bool) -> Links:
            arcs = np.flatnonzero(chosen)
            others = ends[1 - owner][arcs] - (open_ if other_closed else 0)
            return Links.of(ends[owner][arcs] - open_, others, lengths[arcs], n - open_)

        return cls(
            links(from_closed & ~to_closed, 0, False),
            links(~from_closed & to_closed, 1, False),
            links(from_closed & to_closed, 0, True),
        )

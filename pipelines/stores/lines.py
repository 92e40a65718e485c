"""The lines along which the arcs of a map lead: the bends of roads between their ends.

Lines are stored once, however many arcs lead along them: the two directions of a road share a line. An arc has the
number of its line, counted from 1; the number is negative if the arc leads against the line, and 0 if the arc has no
line and leads straight from tail to head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops import csr


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of the arcs of a graph.

    Attributes
    ----------
    of_arcs : (m,) int64
        Number of the line of each arc, from 1; negative: the arc leads against the line; 0: no line.
    offsets : (l + 1,) int64
        The points of line k are ``points[offsets[k - 1] : offsets[k]]``, both ends included.
    points : (p, 2) float64
    """

    of_arcs: np.ndarray
    offsets: np.ndarray
    points: np.ndarray

    def taken(self, arcs: np.ndarray, turned: bool | np.ndarray = False) -> Lines:
        """Return the lines of some arcs, in the order of `arcs`; `turned` says which of the arcs are reversed."""
        of_arcs = self.of_arcs[arcs]
        return Lines(np.where(turned, -of_arcs, of_arcs), self.offsets, self.points)


def points_along(
    lines: Lines | None, coordinates: np.ndarray, arcs: np.ndarray, tails: np.ndarray, heads: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that arcs lead through, from tail to head.

    Parameters
    ----------
    lines : the lines of the graph; None: all arcs are straight
    coordinates : (n, 2) float64
    arcs, tails, heads : (k,) arcs by their positions in the store, and their ends

    Returns
    -------
    (k + 1,) int64 and (q, 2) float64
        The points of the i-th arc are ``points[offsets[i] : offsets[i + 1]]``.
    """
    numbers = np.zeros(len(arcs), np.int64) if lines is None else lines.of_arcs[arcs]
    bent = np.flatnonzero(numbers)
    counts = np.full(len(arcs), 2, np.int64)
    if lines is not None:
        counts[bent] = np.diff(lines.offsets)[np.abs(numbers[bent]) - 1]
    offsets = np.zeros(len(arcs) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    points = np.empty((offsets[-1], 2))
    straight = np.flatnonzero(numbers == 0)
    points[offsets[straight]] = coordinates[tails[straight]]
    points[offsets[straight] + 1] = coordinates[heads[straight]]
    if lines is not None and len(bent):
        sizes = counts[bent]
        within = csr.in_ranges(0, sizes)
        against = np.repeat(numbers[bent] < 0, sizes)
        first = np.repeat(lines.offsets[np.abs(numbers[bent]) - 1], sizes)
        taken = first + np.where(against, np.repeat(sizes, sizes) - 1 - within, within)
        points[np.repeat(offsets[bent], sizes) + within] = lines.points[taken]
    return offsets, points


def check_lines(of_arcs: np.ndarray, offsets: np.ndarray, points: int) -> None:
    """Raise ValueError if numbers or offsets of lines are out of range."""
    count = len(offsets) - 1
    if count < 0 or offsets[0] != 0 or offsets[-1] != points or (np.diff(offsets) < 2).any():
        raise ValueError("the offsets of lines do not fit their points")
    if of_arcs.size and np.abs(of_arcs).max() > count:
        raise ValueError("an arc has a line that does not exist")

"""Draw over the cells of a map: outlines of clusters, trajectories of samples, text, and pies of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.answers.figures import shortened

MOST_TEXT = 900  # most cells with text; in more cells there is no room for letters


def cell_corners(grid: Grid) -> np.ndarray:
    """Return the corners of the cell of every unit, (M, 4, 2), or (M, 6, 2) if hexagonal; cells touch without gaps."""
    if grid.hexagonal:
        angles = np.pi / 6 + np.arange(6) * np.pi / 3
        corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(3)
    else:
        corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return grid.positions()[:, None] + corners


def outlines(grid: Grid, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sides of cells between two clusters, and sides at the edge of the grid.

    Each is (k, 2, 2): sides, their two ends, x and y. `clusters` (M) has the cluster of every unit.
    """
    corners = cell_corners(grid)
    sides = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 2, 2)
    of_cell = np.repeat(np.arange(grid.units), corners.shape[1])
    places = np.rint(sides.mean(axis=1) * 1e6).astype(np.int64)  # equal sides have equal middles
    _, first, number, counts = np.unique(places, axis=0, return_index=True, return_inverse=True, return_counts=True)
    last = np.empty(len(first), np.int64)
    last[number.ravel()] = np.arange(len(sides))  # if two cells share a side: the side of the second cell
    inner = (counts == 2) & (clusters[of_cell[first]] != clusters[of_cell[last]])
    return sides[first[inner]], sides[first[counts == 1]]


def draw_outlines(axes: Any, grid: Grid, clusters: np.ndarray | None = None) -> None:
    """Draw a thin frame around the grid, and a thick light line with a dark core between `clusters` (M)."""
    from matplotlib.collections import LineCollection

    between, frame = outlines(grid, np.zeros(grid.units, int) if clusters is None else clusters)
    axes.add_collection(LineCollection(list(frame), colors="0.35", linewidths=0.8, capstyle="round", clip_on=False))
    for colour, width in (("white", 3.2), ("black", 1.6)):
        axes.add_collection(LineCollection(list(between), colors=colour, linewidths=width, capstyle="round", zorder=3))


def draw_ways(axes: Any, grid: Grid, ways: Sequence[np.ndarray]) -> None:
    """Draw trajectories of samples, each an int array of the units passed, from a dot to a square.

    On a torus a step takes the shortest way, which may leave the map over one edge and come back over the opposite one.
    """
    from matplotlib import colormaps

    ends = {"solid_capstyle": "round", "solid_joinstyle": "round"}
    for number, units in enumerate(ways):
        colour = colormaps["Set1"](number % 9)
        kept = units[np.concatenate([[True], units[1:] != units[:-1]])]
        line = way_line(grid, kept)
        axes.plot(*line.T, color="white", lw=3.4, zorder=4, **ends)
        axes.plot(*line.T, color=colour, lw=1.8, zorder=5, **ends)
        axes.plot(*line[0], "o", color=colour, mec="white", ms=7, zorder=6)
        axes.plot(*line[-1], "s", color=colour, mec="white", ms=7, zorder=6)


def way_line(grid: Grid, units: np.ndarray) -> np.ndarray:
    """Return the points (n, 2) of the line through `units` (k).

    Where the line leaves the map over an edge and comes back over the opposite edge, a point of NaN interrupts it.
    """
    points = grid.positions()[units]
    if not grid.toroidal:
        return points
    down, twice = grid.offsets(units[1:], units[:-1])
    steps = np.stack([twice / 2, down * grid.row_height], axis=1)
    line = [points[:1]]
    for start, step, stop in zip(points[:-1], steps, points[1:], strict=True):
        if np.hypot(*(stop - start)) > np.hypot(*step) + 1e-9:
            line.append(np.array([start + step, [np.nan, np.nan], stop - step]))
        line.append(stop[None])
    return np.concatenate(line)


def draw_text(axes: Any, grid: Grid, texts: Sequence[str], backs: np.ndarray | None = None) -> None:
    """Write a text into every cell, as large as cells allow.

    `backs` (M, 4) are the colours of the cells; on dark cells letters are white, else black.
    """
    if grid.units > MOST_TEXT:
        raise ValueError(f"the map has {grid.units:,} units; up to {MOST_TEXT} have room for text in their cells")
    longest = max((len(text) for text in texts), default=0)
    if not longest:
        return
    place = axes.get_position()
    width = place.width * axes.figure.get_figwidth() * 72 / np.ptp(axes.get_xlim())  # width of a cell, in points
    size = min(10.0, 0.9 * width / (0.6 * min(longest, 12)), 0.6 * width)
    for unit, ((x, y), text) in enumerate(zip(grid.positions(), texts, strict=True)):
        dark = backs is not None and backs[unit, :3] @ (0.299, 0.587, 0.114) < 0.5
        ink = "white" if dark else "black"
        axes.text(x, y, shortened(text, 12), size=size, ha="center", va="center", color=ink, zorder=7)


def draw_pies(
    axes: Any,
    places: np.ndarray,
    shares: np.ndarray,
    radii: np.ndarray,
    palette: Sequence[Any],
    edge: str = "white",
) -> None:
    """Draw a pie at each of `places` (M, 2), with the counts `shares` (M, L) and the radii `radii` (M)."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Wedge

    wedges, colours = [], []
    for (x, y), counts, radius in zip(places, shares, radii, strict=True):
        if not counts.sum():
            continue
        ends = np.concatenate([[0], np.cumsum(counts)]) / counts.sum() * 360 - 90
        for label in np.flatnonzero(counts).tolist():
            wedges.append(Wedge((x, y), radius, ends[label], ends[label + 1]))
            colours.append(palette[label])
    axes.add_collection(PatchCollection(wedges, facecolors=colours, edgecolors=edge, linewidths=0.3, zorder=2))

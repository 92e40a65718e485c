"""Draw the cells of a map: their colours, and a colour bar or a legend.

Outlines of clusters, trajectories of samples, pies of labels and text (`cell_texts`) are drawn over the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuops.som.grid import Grid

MOST_LABELS = 60  # labels with different colours
LEGEND_ROWS = 20  # entries in a column of a legend
LOWEST_BAR = 1.0  # least height of a vertical colour bar, in inches
EMPTY, OTHER = "0.92", "0.5"  # greys of units without samples, and of labels beyond the first `MOST_LABELS`


def cell_corners(grid: Grid) -> np.ndarray:
    """Return the corners of the cell of every unit, (M, 4, 2), or (M, 6, 2) if hexagonal; cells touch without gaps."""
    if grid.hexagonal:
        angles = np.pi / 6 + np.arange(6) * np.pi / 3
        corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(3)
    else:
        corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return grid.positions()[:, None] + corners


def draw_cells(
    axes: Any, grid: Grid, values: np.ndarray, colours: Any, *, divided: bool = False, **options: Any
) -> Any:
    """Fill the cells with the colours of `values` (M); NaN is pale grey. Row 0 of the grid is on top.

    `divided` draws lines between cells, if the cells are large enough.
    """
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import ListedColormap

    corners, longer = cell_corners(grid), max(grid.rows, grid.columns)
    if isinstance(colours, str):
        colours = colormaps[colours]
        if colours.name == "bone_r":  # begin with pale blue, as the page is white
            colours = ListedColormap(colours(np.linspace(0.08, 1, 256)))
    cells = PolyCollection(
        list(corners), array=np.ma.masked_invalid(values), cmap=colours.with_extremes(bad=EMPTY), **options
    )
    # Edges in the colour of their cell: without them the background shines through between two cells.
    lines = divided and longer <= 60
    cells.set(edgecolor="white" if lines else "face", linewidth=min(0.6, (15 if lines else 60) / longer))
    axes.add_collection(cells)
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), xticks=[], yticks=[])
    axes.set_axis_off()  # no rectangle around the cells
    return cells


def draw_colours(axes: Any, grid: Grid, colours: np.ndarray) -> Any:
    """Fill the cells with `colours` (M, 4)."""
    from matplotlib.colors import ListedColormap

    return draw_cells(
        axes,
        grid,
        np.arange(grid.units, dtype=float),
        ListedColormap(colours),
        clim=(-0.5, grid.units - 0.5),
        divided=True,
    )


def colours_of(count: int) -> list[Any]:
    """Return `count` colours, which differ up to `MOST_LABELS`; then the same colours repeat."""
    from matplotlib import colormaps

    if count <= 10:
        return [colormaps["tab10"](i) for i in range(count)]
    # Neighbours in the table are shades of one hue: the strong shades come first.
    table = [colormaps["tab20"](i) for i in (*range(0, 20, 2), *range(1, 20, 2))]
    table += [colormaps[name](i) for first in range(4) for name in ("tab20b", "tab20c") for i in range(first, 20, 4)]
    return [table[i % len(table)] for i in range(count)]


def cluster_colours(count: int) -> list[Any]:
    """Return the colours of `count` clusters: pale ones, so that none is taken for a label, repeated after 26."""
    from matplotlib import colormaps

    # The part of white that is added to each table, and the place of its grey, the colour of units without samples.
    pale = [("Set3", 12, 8, 0.35), ("Pastel1", 9, 8, 0.0), ("Pastel2", 8, 7, 0.0)]
    table = [
        tuple(white + (1 - white) * part for part in colormaps[name](i))
        for name, size, grey, white in pale
        for i in range(size)
        if i != grey
    ]
    return [table[i % len(table)] for i in range(count)]


def colours_of_clusters(clusters: np.ndarray) -> tuple[list[Any], np.ndarray, list[tuple[Any, str]]]:
    """Return colours, the place among them of the colour of each unit, and the entries of a legend.

    The last colour is the grey of units in no cluster, whose number in `clusters` (M) is -1.
    """
    numbers = np.unique(clusters[clusters >= 0])
    palette = [*cluster_colours(len(numbers)), rgba(EMPTY)]
    place = np.where(clusters >= 0, np.searchsorted(numbers, clusters), len(numbers))
    return palette, place, [(palette[i], f"cluster {number}") for i, number in enumerate(numbers.tolist())]


def rgba(colour: Any) -> Any:
    """Return a colour of Matplotlib as four numbers."""
    from matplotlib.colors import to_rgba

    return to_rgba(colour)


def cell_colours(axes: Any) -> np.ndarray:
    """Return the colour of every cell, (M, 4)."""
    cells = axes.collections[0]
    return cells.to_rgba(cells.get_array())


def draw_legend(axes: Any, entries: list[tuple[Any, str]]) -> None:
    """Draw a legend of coloured fields to the right of the axes."""
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=colour, edgecolor="0.6", lw=0.4, label=name) for colour, name in entries]
    axes.legend(
        handles=patches,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        fontsize=8,
        frameon=False,
        ncols=-(-len(patches) // LEGEND_ROWS),
    )


def picture_size(grid: Grid, width: float, height: float) -> tuple[float, float]:
    """Return the size of the largest picture of the grid within `width` x `height`, all in inches.

    A side is at least 0.15 inches, so that a very flat grid stays visible.
    """
    sides = np.ptp(cell_corners(grid), axis=(0, 1))
    scale = min(width / sides[0], height / sides[1])
    return max(scale * sides[0], 0.15), max(scale * sides[1], 0.15)


def colour_bar(axes: Any, cells: Any, **options: Any) -> Any:
    """Draw a colour bar to the right of the grid and as high; below the grid if that is too flat for the numbers."""
    place, figure = axes.get_position(), axes.figure
    width, height = place.width * figure.get_figwidth(), place.height * figure.get_figheight()
    if height < LOWEST_BAR:
        bar = axes.inset_axes((0, -0.25 / height, 1, 0.13 / height))
        return figure.colorbar(cells, cax=bar, orientation="horizontal", **options)
    return figure.colorbar(cells, cax=axes.inset_axes((1 + 0.12 / width, 0, 0.13 / width, 1)), **options)


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
        colour = colormaps["Dark2"](number % 8)
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

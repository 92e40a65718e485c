"""Draw the cells of a map, their colours, and a colour bar or a legend next to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.som.overlays import cell_corners

MOST_LABELS = 60  # labels with different colours
LEGEND_ROWS = 20  # entries in a column of a legend
LOWEST_BAR = 1.0  # least height of a vertical colour bar, in inches
EMPTY, OTHER = "0.92", "0.5"  # greys of units without samples, and of labels beyond the first `MOST_LABELS`


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

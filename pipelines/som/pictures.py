"""Pictures of self-organizing maps, drawn with matplotlib (the `plot` extra): every unit is a cell of the grid.

========= ==================================================================================================
kind      what a cell shows
========= ==================================================================================================
umatrix   mean distance of the unit to its neighbours (A. Ultsch, H. P. Siemon, 1990): walls between clusters
hits      how many samples have the unit as their best matching one
planes    the unit's value in a column, a picture for each, in units of the source
labels    the label most of its samples have
curve     no cells: quantization error and reach of the neighbourhood from epoch to epoch
========= ==================================================================================================

Row 0 of the grid is at the top. In pictures of samples, a unit that has none is pale grey.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.stores.codebook import Codebook
from pipelines.stores.mapping import Mapping
from pipelines.stores.samples import Samples
from pipelines.stores.schema import StoreError

KINDS = ("umatrix", "hits", "planes", "labels", "curve")
MOST_PLANES = 64
MOST_LABELS = 20  # with colours of their own; those of most units
MOST_LETTERS = 36  # of the name of a plane
LOWEST_BAR = 1.0  # inches
EMPTY, OTHER = "0.92", "0.5"  # greys of units without samples, and of labels without a colour of their own


def picture_map(
    codebook: Codebook,
    path: str | os.PathLike[str],
    kind: str = "umatrix",
    *,
    columns: Sequence[str] | None = None,
    mapping: Mapping | None = None,
    samples: Samples | None = None,
) -> None:
    """Draw a map to the image file `path`; its suffix names the format (.png, .pdf, .svg).

    Parameters
    ----------
    kind : of `KINDS`
    columns : names of those to show (planes); all by default
    mapping : where samples lie, for their hits (by default of those the map was trained with) and labels
    samples : those of the mapping, for their labels

    Raises
    ------
    ImportError
        Matplotlib is missing; the message says how to install it.
    pipelines.stores.StoreError
        `mapping` is to another map, or of other samples.
    ValueError
        An option is missing or names something that is not there.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'tilepath[plot]'") from error

    if kind not in KINDS:
        raise ValueError(f"there is no picture {kind!r}; choose {', '.join(KINDS)}")
    if columns and kind != "planes":
        raise ValueError(f"columns are for planes, not for {kind}; leave them out")
    if mapping is not None:
        mapping.check_codebook(codebook)
    grid = codebook.grid
    figure = Figure(dpi=150)
    known = FigureCanvasAgg(figure).get_supported_filetypes()
    if Path(path).suffix.lower().removeprefix(".") not in known:
        raise ValueError(f"{path}: pictures end in one of {', '.join('.' + suffix for suffix in known)}; say which")
    joined = ", edges joined" if grid.toroidal else ""
    name = f"{Path(codebook.path).name}: {grid.rows:,} x {grid.columns:,} units{joined}"
    if kind == "planes":
        _draw_planes(figure, codebook, _chosen(codebook, columns), name)
    elif kind == "curve":
        _draw_curve(figure, codebook, name)
    else:
        width, height = _size(grid, 6.2, 9)
        figure.set_size_inches(width, height)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_title(name, fontsize=10)
        if kind == "labels":
            _draw_labels(axes, grid, *_majority(grid, mapping, samples))
        elif kind == "hits":
            hits = (codebook if mapping is None else mapping).hits()
            cells = draw_cells(
                axes, grid, np.where(hits > 0, hits, np.nan), "viridis", clim=(1, max(hits.max(), 2)), divided=True
            )
            _colour_bar(axes, cells, label="samples", ticks=MaxNLocator(6, integer=True))
        else:
            cells = draw_cells(axes, grid, u_matrix(codebook.units(), grid, codebook.metric), "bone_r")
            _colour_bar(axes, cells, label=f"mean {codebook.metric} distance to the neighbours")
    figure.savefig(path, bbox_inches="tight", pad_inches=0.1)


def u_matrix(units: np.ndarray, grid: Grid, metric: str = "euclidean") -> np.ndarray:
    """Mean distance of each unit to its neighbours on the grid, float64 (M); 0 where it has none."""
    units = units.astype(np.float64)
    if metric == "cosine":
        lengths = np.sqrt((units * units).sum(axis=1, keepdims=True))
        units = np.divide(units, lengths, out=np.zeros_like(units), where=lengths > 0)
    around = grid.neighbours()
    sums, counts = np.zeros(grid.units), np.zeros(grid.units, np.int64)
    for beside in around.T:
        there = beside >= 0
        a, b = units[there], units[beside[there]]
        if metric == "euclidean":
            distances = np.sqrt(((a - b) ** 2).sum(axis=1))
        elif metric == "taxicab":
            distances = abs(a - b).sum(axis=1)
        else:
            distances = np.maximum(1 - (a * b).sum(axis=1), 0)
        sums[there] += distances
        counts[there] += 1
    return sums / np.maximum(counts, 1)


def cell_corners(grid: Grid) -> np.ndarray:
    """Corners of every unit's cell, (M, 4, 2) or hexagonal (M, 6, 2): cells fill the plane without a gap."""
    if grid.hexagonal:
        angles = np.pi / 6 + np.arange(6) * np.pi / 3
        corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(3)
    else:
        corners = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return grid.positions()[:, None] + corners


def draw_cells(
    axes: Any, grid: Grid, values: np.ndarray, colours: Any, *, divided: bool = False, **options: Any
) -> Any:
    """Fill the cells by `values` (M), NaN being pale grey, and frame the grid; row 0 is on top.

    `divided` draws lines between cells, where these are large enough.
    """
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection

    corners, longer = cell_corners(grid), max(grid.rows, grid.columns)
    colours = colormaps[colours] if isinstance(colours, str) else colours
    cells = PolyCollection(
        list(corners), array=np.ma.masked_invalid(values), cmap=colours.with_extremes(bad=EMPTY), **options
    )
    # Edges in the colour of their cell: without them the background shines through between two cells.
    cells.set(edgecolor="white" if divided and longer <= 60 else "face", linewidth=min(0.6, 60 / longer))
    axes.add_collection(cells)
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), xticks=[], yticks=[])
    if grid.hexagonal:
        axes.set_axis_off()
    return cells


def _size(grid: Grid, width: float, height: float) -> tuple[float, float]:
    """Inches of the largest picture of the grid within these bounds; a bit more where a strip would vanish."""
    sides = np.ptp(cell_corners(grid), axis=(0, 1))
    scale = min(width / sides[0], height / sides[1])
    return max(scale * sides[0], 0.15), max(scale * sides[1], 0.15)


def _colour_bar(axes: Any, cells: Any, **options: Any) -> Any:
    """A bar beside the grid and as high, or below one that is too flat for the numbers of a bar."""
    place, figure = axes.get_position(), axes.figure
    width, height = place.width * figure.get_figwidth(), place.height * figure.get_figheight()
    if height < LOWEST_BAR:
        bar = axes.inset_axes((0, -0.25 / height, 1, 0.13 / height))
        return figure.colorbar(cells, cax=bar, orientation="horizontal", **options)
    return figure.colorbar(cells, cax=axes.inset_axes((1 + 0.12 / width, 0, 0.13 / width, 1)), **options)


def _draw_planes(figure: Any, codebook: Codebook, chosen: list[int], name: str) -> None:
    across = len(chosen) if len(chosen) <= 3 else math.ceil(math.sqrt(len(chosen)))
    down = -(-len(chosen) // across)
    grid, units = codebook.grid, codebook.scaling.undo(codebook.units())
    width, height = _size(grid, *((5.0, 7.0) if len(chosen) == 1 else (2.2, 3.2)))
    # Inches from one plane to the next: its bar stands beside it, or lies below it, and its name is above.
    step_x = max(width, MOST_LETTERS * 0.06) + (0.2 if height < LOWEST_BAR else 0.75)
    step_y = height + (0.75 if height < LOWEST_BAR else 0.4)
    whole_x, whole_y = step_x * (across - 1) + width, step_y * (down - 1) + height
    figure.set_size_inches(whole_x, whole_y)
    figure.suptitle(name, fontsize=10, y=1 + 0.35 / whole_y, va="bottom")
    for place, column in enumerate(chosen):
        row, left = place // across, place % across * step_x
        axes = figure.add_axes(
            (left / whole_x, (whole_y - row * step_y - height) / whole_y, width / whole_x, height / whole_y)
        )
        title = codebook.columns[column]
        axes.set_title(title if len(title) <= MOST_LETTERS else f"{title[: MOST_LETTERS - 1]}…", fontsize=8)
        cells = draw_cells(axes, grid, units[:, column], "viridis")
        bar = _colour_bar(axes, cells).ax
        bar.tick_params(labelsize=6)
        for axis in (bar.xaxis, bar.yaxis):
            axis.get_offset_text().set_fontsize(6)


def _draw_curve(figure: Any, codebook: Codebook, name: str) -> None:
    from matplotlib.ticker import MaxNLocator

    figure.set_size_inches(7.2, 5)
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    epochs = np.arange(codebook.epochs + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    (errors,) = axes.plot(epochs, codebook.quantization_errors, "o-", ms=3, label="quantization error")
    axes.set(xlabel="epochs done", ylabel="quantization error", ylim=(0, None))
    axes.set_title(name, fontsize=10)
    reach = axes.twinx()
    (sigmas,) = reach.step(
        epochs, [*codebook.sigmas, codebook.sigmas[-1]], where="post", color="0.6", label="reach of the neighbourhood"
    )
    reach.set(ylabel="sigma [units of the grid]", ylim=(0, None))
    axes.set_zorder(reach.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.legend(handles=[errors, sigmas], fontsize=8)


def _draw_labels(axes: Any, grid: Grid, winners: np.ndarray, names: list[str]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    units = np.bincount(winners[winners >= 0], minlength=len(names))
    frequent = np.argsort(-units, kind="stable")[: np.count_nonzero(units)]
    shown = sorted(frequent[:MOST_LABELS].tolist(), key=lambda label: names[label])
    table = colormaps["tab10" if len(shown) <= 10 else "tab20"]
    palette: list[Any] = [table(i) for i in range(len(shown))]
    place = np.full(len(names) + 1, float(len(shown)))  # of labels without a colour of their own
    place[shown] = np.arange(len(shown))
    place[-1] = np.nan  # units without labelled samples
    draw_cells(
        axes, grid, place[winners], ListedColormap([*palette, OTHER]), clim=(-0.5, len(shown) + 0.5), divided=True
    )
    patches = [Patch(color=colour, label=names[i]) for colour, i in zip(palette, shown, strict=True)]
    if len(frequent) > len(shown):
        patches.append(Patch(color=OTHER, label=f"{len(frequent) - len(shown)} others"))
    if (winners < 0).any():
        patches.append(Patch(color=EMPTY, label="no sample"))
    axes.legend(handles=patches, loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)


def _majority(grid: Grid, mapping: Mapping | None, samples: Samples | None) -> tuple[np.ndarray, list[str]]:
    """The most frequent label of each unit's samples, the first of equals, -1 for none, and the names of the labels."""
    if mapping is None or samples is None:
        raise ValueError("the labels of units are those of their samples; name their mapping store (--mapping)")
    if mapping.samples_digest != samples.digest:
        raise StoreError(f"{mapping.path} does not map {samples.path}; name the right stores")
    names = samples.label_names()
    # Pairs of unit and label that occur, as there may be far more that do not.
    pairs, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for rows in mapping.ranges():
        labels, units = samples.labels(*rows), mapping.units(*rows)[:, 0].astype(np.int64)
        found, times = np.unique(units[labels >= 0] * len(names) + labels[labels >= 0], return_counts=True)
        pairs, at = np.unique(np.concatenate([pairs, found]), return_inverse=True)
        sums = np.zeros(len(pairs), np.int64)
        np.add.at(sums, at, np.concatenate([counts, times]))
        counts = sums
    winners = np.full(grid.units, -1)
    order = np.lexsort((-pairs, counts))  # the winner of a unit comes last
    for pair in pairs[order].tolist():
        winners[pair // len(names)] = pair % len(names)
    return winners, names


def _chosen(codebook: Codebook, columns: Sequence[str] | None) -> list[int]:
    if columns:
        for name in columns:
            if name not in codebook.columns:
                raise ValueError(f"{codebook.path}: there is no column {name!r}; it has {', '.join(codebook.columns)}")
        return [codebook.columns.index(name) for name in columns]
    if codebook.d > MOST_PLANES:
        raise ValueError(f"{codebook.path} has {codebook.d} columns; name up to {MOST_PLANES} of them (--column)")
    return list(range(codebook.d))

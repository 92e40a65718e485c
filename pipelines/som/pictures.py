"""Pictures of self-organizing maps, drawn with matplotlib (the `plot` extra). Every unit is a cell of the grid.

========= ==================================================================================================
kind      what a cell shows
========= ==================================================================================================
umatrix   mean distance of the unit to its neighbours (A. Ultsch, H. P. Siemon, 1990): walls between clusters
pmatrix   number of samples within the Pareto radius of the unit (`pipelines.som.heights`): density
ustar     the U*-matrix: walls where samples are not dense
hits      number of samples whose best matching unit is the unit
planes    the unit's value in a column, in units of the source or as trained; each column is a picture
clusters  the cluster of the unit
labels    the label that most samples of the unit have
pies      the labels of the samples of the unit; the area of a pie grows with the number of samples
tree      no cells: the minimum spanning tree of the units, as FlowSOM draws it, with hits, clusters or pies
curve     no cells: quantization error and radius of the neighbourhood from epoch to epoch
========= ==================================================================================================

Row 0 of the grid is on top. Where samples are shown, a unit without samples is pale grey. Outlines of clusters, text
and trajectories of samples may be drawn over the cells (`pipelines.som.cells`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops.som import metrics
from gpuops.som.grid import Grid
from pipelines.files.figures import figure_file, shortened
from pipelines.som import cells
from pipelines.som.cell_texts import draw_text
from pipelines.som.classes import vote_of_mapping
from pipelines.som.heights import p_matrix, samples_of_density, u_matrix, u_star
from pipelines.som.labelled_pictures import NamedVote, draw_labels, draw_tree

if TYPE_CHECKING:  # the estimator draws without stores
    from matplotlib.figure import Figure

    from pipelines.stores.codebook import Codebook
    from pipelines.stores.mapping import Mapping
    from pipelines.stores.samples import Samples

TITLES = {
    "umatrix": "U-matrix",
    "pmatrix": "P-matrix",
    "ustar": "U*-matrix",
    "hits": "hits",
    "planes": "component planes",
    "clusters": "clusters",
    "labels": "labels",
    "pies": "classes",
    "tree": "minimum spanning tree",
    "curve": "training",
}
KINDS = tuple(TITLES)
OF_LABELS = ("labels", "pies")
OF_SAMPLES = ("pmatrix", "ustar")
WITH_SAMPLES = (*OF_LABELS, *OF_SAMPLES, "tree")
OF_HITS = ("hits", "tree")
OF_NUMBERS = ("umatrix", *OF_SAMPLES, "hits", "plane", "planes")
WITHOUT_CELLS = ("tree", "curve")
MOST_PLANES = 64  # most planes drawn unless the user names the columns
MOST_LETTERS = 36  # most letters of the name of a plane


def picture_map(
    codebook: Codebook | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    kind: str = "umatrix",
    *,
    columns: Sequence[str] | None = None,
    scaled: bool = False,
    mapping: Mapping | str | os.PathLike[str] | None = None,
    samples: Samples | str | os.PathLike[str] | None = None,
    clusters: np.ndarray | None = None,
    text: bool = False,
    ways: Sequence[tuple[int, int]] = (),
    title: str | None = None,
    size: tuple[float, float] | None = None,
    dpi: int | None = None,
    cmap: str | None = None,
    overwrite: bool = False,
) -> Figure:
    """Draw a map; return the figure, and write it to the image file `path`, in the format of its suffix.

    Parameters
    ----------
    codebook : the map, or the path of its store
    path : path of the new file (.png, .pdf, .svg); by default no file is written
    kind : {"umatrix", "pmatrix", "ustar", "hits", "planes", "clusters", "labels", "pies", "tree", "curve"}
    columns : names of the columns to show (planes); all by default
    scaled : show values as they were trained, on a scale that the colour bars name (planes)
    mapping : mapping of samples, for labels, trajectories and hits (by default, hits of the training)
    samples : samples or the path of their store, for labels and densities; by default the samples of the mapping. A
        density without a mapping shows the samples of the training.
    clusters : (M) int array, the cluster of every unit, -1 for none; outlined in every picture with cells
    text : write labels into the cells (labels, pies), or else the numbers of clusters; on large maps, once into each
        patch of equal cells
    ways : for each trajectory to draw, the first and the last row (excluded) of samples of the mapping
    title : line above the picture; by default the name of the store, the kind of picture and the size of the map
    size : width and height in inches that the cells of the map, each plane, or the picture without cells has to fit in
    dpi : pixels per inch, by default 150
    cmap : name of a colour map of matplotlib, such as "cividis", for pictures of numbers
    overwrite : replace `path` if it exists

    Raises
    ------
    ImportError
        Matplotlib is missing; the message says how to install it.
    StoreError
        `mapping` belongs to another map or to other samples.
    ValueError
        An option is missing, does not go with `kind`, or names an unknown column, row or kind.
    FileExistsError
        `path` exists.

    Examples
    --------
    >>> figure = tilepath.picture_map(book, "map.png")
    """
    from pipelines.stores.codebook import open_codebook
    from pipelines.stores.mapping import open_mapping
    from pipelines.stores.samples import open_samples

    if kind not in KINDS:
        raise ValueError(f"there is no picture {kind!r}; choose {', '.join(KINDS)}")
    if columns and kind != "planes":
        raise ValueError(f"columns (--column) are for planes, not for {kind}; leave them out")
    check_style(kind, scaled, size, cmap)
    codebook = open_codebook(codebook)
    mapping = None if mapping is None else open_mapping(mapping)
    samples = None if samples is None else open_samples(samples)
    grid = codebook.grid
    if clusters is not None and (clusters.shape != (grid.units,) or clusters.dtype.kind != "i"):
        raise ValueError(f"clusters are {clusters.dtype} {clusters.shape}; give an integer for each of the units")
    if clusters is None and (kind == "clusters" or (text and kind not in OF_LABELS)):
        raise ValueError("name the clusters of the units (clusters, --clusters); `tilepath som cluster` makes them")
    if kind in WITHOUT_CELLS and (text or ways):
        raise ValueError(
            f"text and trajectories are drawn over cells, and {kind} has no cells; leave out text (--text) and ways "
            "(--way)"
        )
    if ways and mapping is None:
        raise ValueError("trajectories are of the samples of a mapping store; name it (mapping, --mapping)")
    if mapping is not None:
        mapping.check_codebook(codebook)
        samples = mapping.samples() if samples is None and kind in WITH_SAMPLES else samples
    if title is None:
        joined = ", edges joined" if grid.toroidal else ""
        title = f"{Path(codebook.path).name}: {TITLES[kind]}, {grid.rows:,} x {grid.columns:,} units{joined}"
    labelled = kind in OF_LABELS or (kind == "tree" and samples is not None and samples.labelled)
    shown = MapView(
        grid=grid,
        metric=codebook.metric,
        units=codebook.units(),
        columns=codebook.columns,
        values=codebook.units() if scaled else codebook.scaling.undo(codebook.units()),
        scales=[codebook.scaling.words(column) for column in range(codebook.d)] if scaled else (),
        hits=(codebook if mapping is None else mapping).hits() if kind in OF_HITS else None,
        errors=codebook.quantization_errors,
        sigmas=codebook.sigmas,
        voted=NamedVote(*vote_of_mapping(mapping, samples)) if labelled else None,
        samples=samples_of_density(codebook, samples) if kind in OF_SAMPLES else None,
        clusters=clusters,
        ways=[] if mapping is None else [_way(mapping, *rows) for rows in ways],
        name=codebook.path,
        size=size,
        cmap=cmap,
    )
    with figure_file(path, overwrite, tight=True, dpi=dpi) as figure:
        draw_map(figure, shown, kind, title, [_number(codebook, name) for name in columns or ()], text)
    return figure


def check_style(kind: str, scaled: bool, size: tuple[float, float] | None, cmap: str | None) -> None:
    """Raise ValueError if an option of style does not go with a kind of picture."""
    if scaled and kind not in ("plane", "planes"):
        raise ValueError(f"scaled (--scaled) is for planes, not for {kind}; leave it out")
    if size is not None and not all(0.5 <= side <= 100 for side in size):
        raise ValueError(f"size (--size) is {size[0]:g} x {size[1]:g}; give 0.5 to 100 inches for each side")
    if cmap is None:
        return
    if kind not in OF_NUMBERS:
        raise ValueError(f"a colour map (cmap, --cmap) is for pictures of numbers, not for {kind}; leave it out")
    from matplotlib import colormaps

    if cmap not in colormaps:
        raise ValueError(f"matplotlib has no colour map {cmap!r}; choose viridis, cividis, magma or another")


@dataclass(frozen=True)
class MapView:
    """The contents of pictures of a map.

    Attributes
    ----------
    grid : Grid of M units
    metric : {"euclidean", "taxicab", "cosine"}
    units : (M, d) array, as they were trained
    columns : names of the d columns
    values : (M, d) array, the units on the scale that planes show
    scales : the name of this scale for each column; empty for the scale of the source
    hits : (M,) int array, or None
    errors : quantization errors, of the first codebook and after each epoch
    sigmas : radius of the neighbourhood in each epoch
    voted : labels of the samples of each unit, or None
    samples : (N, d) array of samples on the scale of the units, for densities, or None
    clusters : (M,) int array, or None
    ways : the units of each trajectory
    name : name of the map, for messages
    size : width and height in inches that the cells, or a picture without cells, have to fit in; None for the default
    cmap : name of the colour map for numbers, or None
    """

    grid: Grid
    metric: str
    units: np.ndarray
    columns: Sequence[str]
    values: np.ndarray
    hits: np.ndarray | None
    errors: Sequence[float]
    sigmas: Sequence[float]
    voted: NamedVote | None = None
    samples: np.ndarray | None = None
    clusters: np.ndarray | None = None
    ways: Sequence[np.ndarray] = ()
    name: str = "the map"
    scales: Sequence[str] = ()
    size: tuple[float, float] | None = None
    cmap: str | None = None


def draw_map(
    figure: Any, shown: MapView, kind: str, title: str, columns: Sequence[int] = (), text: bool = False
) -> None:
    """Draw a map on an empty figure of matplotlib; `columns` are the planes to draw, by default all."""
    if kind == "planes":
        _draw_planes(figure, shown, columns or _all_columns(shown), title)
    elif kind == "curve":
        _draw_curve(figure, shown, title)
    elif kind == "tree":
        draw_tree(figure, shown, title)
    else:
        figure.set_size_inches(*cells.picture_size(shown.grid, *(shown.size or (6.2, 9))))
        axes = figure.add_axes((0, 0, 1, 1))
        draw_cells_of(axes, shown, kind, title, text)
    plain_text(figure)


def draw_cells_of(axes: Any, shown: MapView, kind: str, title: str, text: bool = False) -> None:
    """Draw a picture whose units are cells, on axes of matplotlib."""
    grid, clusters = shown.grid, shown.clusters
    axes.set_title(title, fontsize=10)
    if kind in OF_LABELS:
        assert shown.voted is not None
        draw_labels(axes, grid, shown.voted, pies=kind == "pies", text=text)
    elif kind == "clusters" and clusters is not None:
        palette, place, entries = cells.colours_of_clusters(clusters)
        cells.draw_colours(axes, grid, np.array(palette)[place])
        cells.draw_legend(axes, entries)
    else:
        _draw_heights(axes, shown, kind)
    if text and kind not in OF_LABELS and clusters is not None:
        numbers = ["" if number < 0 else str(number) for number in clusters]
        draw_text(axes, grid, numbers, cells.cell_colours(axes))
    _draw_over(axes, shown)


def draw_plane(axes: Any, shown: MapView, column: int, title: str, fontsize: int = 10) -> Any:
    """Draw the values of the units in one column; return the axes of the colour bar, which names their scale."""
    axes.set_title(title, fontsize=fontsize)
    drawn = cells.draw_cells(axes, shown.grid, shown.values[:, column], shown.cmap or "viridis")
    _draw_over(axes, shown)
    return cells.colour_bar(axes, drawn, label=shown.scales[column] if shown.scales else "").ax


def _draw_over(axes: Any, shown: MapView) -> None:
    cells.draw_outlines(axes, shown.grid, shown.clusters)
    cells.draw_ways(axes, shown.grid, list(shown.ways))


def plain_text(figure: Any) -> None:
    """Show dollar signs in names as they are."""
    for words in figure.findobj(lambda artist: hasattr(artist, "set_parse_math")):
        words.set_parse_math(False)


def _draw_heights(axes: Any, shown: MapView, kind: str) -> None:
    """Draw cells coloured by a number each, with a colour bar."""
    from matplotlib.ticker import MaxNLocator

    grid, units, metric = shown.grid, shown.units, shown.metric
    if kind == "hits":
        hits = shown.hits
        assert hits is not None
        counts, limits = np.where(hits > 0, hits, np.nan), (1, max(hits.max(), 2))
        drawn = cells.draw_cells(axes, grid, counts, shown.cmap or "viridis", clim=limits, divided=True)
        cells.colour_bar(axes, drawn, label="samples", ticks=MaxNLocator(6, integer=True))
    else:
        walls = u_matrix(units, grid, metric)
        values, colours, what = walls, "bone_r", f"mean {metrics.TITLES[metric]} distance to the neighbours"
        if kind in OF_SAMPLES:
            assert shown.samples is not None
            values = p_matrix(units, shown.samples, metric)
            colours, what = "viridis", "samples within the Pareto radius"
        if kind == "ustar":
            values, colours, what = u_star(walls, values), "bone_r", "U*: distance to the neighbours, less where dense"
        cells.colour_bar(axes, cells.draw_cells(axes, grid, values, shown.cmap or colours), label=what)


def _way(mapping: Mapping, start: int, stop: int) -> np.ndarray:
    if not 0 <= start < stop <= mapping.n:
        raise ValueError(
            f"{mapping.path} has rows 0 to {mapping.n - 1}; a trajectory cannot lead from row {start} to row {stop - 1}"
        )
    return mapping.units(start, stop)[:, 0]


def _draw_planes(figure: Any, shown: MapView, chosen: Sequence[int], name: str) -> None:
    across = len(chosen) if len(chosen) <= 3 else math.ceil(math.sqrt(len(chosen)))
    down = -(-len(chosen) // across)
    grid = shown.grid
    width, height = cells.picture_size(grid, *(shown.size or ((5.0, 7.0) if len(chosen) == 1 else (2.2, 3.2))))
    # Inches from one plane to the next, with room for the colour bar (at the right or below) and the name (above).
    below = height < cells.LOWEST_BAR
    of_scale = 0.15 if any(shown.scales) else 0
    step_x = max(width, MOST_LETTERS * 0.06) + (0.2 if below else 0.75 + of_scale)
    step_y = height + (0.75 + of_scale if below else 0.4)
    whole_x, whole_y = step_x * (across - 1) + width, step_y * (down - 1) + height
    figure.set_size_inches(whole_x, whole_y)
    figure.suptitle(name, fontsize=10, y=1 + 0.35 / whole_y, va="bottom")
    for place, column in enumerate(chosen):
        row, left = place // across, place % across * step_x
        axes = figure.add_axes(
            (left / whole_x, (whole_y - row * step_y - height) / whole_y, width / whole_x, height / whole_y)
        )
        bar = draw_plane(axes, shown, column, shortened(shown.columns[column], MOST_LETTERS), fontsize=8)
        bar.tick_params(labelsize=6)
        for axis in (bar.xaxis, bar.yaxis):
            axis.get_offset_text().set_fontsize(6)
            axis.label.set_fontsize(6)


def _draw_curve(figure: Any, shown: MapView, name: str) -> None:
    from matplotlib.ticker import MaxNLocator

    figure.set_size_inches(*(shown.size or (7.2, 5)))
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    epochs = np.arange(len(shown.errors))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    (errors,) = axes.plot(epochs, shown.errors, "o-", ms=3, label="quantization error")
    axes.set(xlabel="epochs done", ylabel="quantization error", ylim=(0, None))
    axes.set_title(name, fontsize=10)
    radius = axes.twinx()
    (sigmas,) = radius.step(
        epochs, [*shown.sigmas, shown.sigmas[-1]], where="post", color="0.6", label="radius of the neighbourhood"
    )
    radius.set(ylabel="sigma [units of the grid]", ylim=(0, None))
    axes.set_zorder(radius.get_zorder() + 1)
    axes.patch.set_visible(False)
    axes.legend(handles=[errors, sigmas], fontsize=8)


def _number(codebook: Codebook, column: str) -> int:
    if column not in codebook.columns:
        raise ValueError(f"{codebook.path}: there is no column {column!r}; it has {', '.join(codebook.columns)}")
    return codebook.columns.index(column)


def _all_columns(shown: MapView) -> Sequence[int]:
    if len(shown.columns) > MOST_PLANES:
        raise ValueError(
            f"{shown.name} has {len(shown.columns)} columns; name up to {MOST_PLANES} of them (columns, --column)"
        )
    return range(len(shown.columns))

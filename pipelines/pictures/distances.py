"""Pictures of distances stores, drawn with matplotlib (the `plot` extra)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops.numbers import outside_infinity
from pipelines.files.figures import figure_file, shortened, title_of_distances
from pipelines.pictures.drawing import GREY
from pipelines.stores.distances import Distances, open_distances
from pipelines.stores.graph import Graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PIXELS = 1000  # most pixels along an edge of the picture of a matrix
TICKS = 8  # most labels along an edge


def picture_distances(
    distances: Distances | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    graph: Graph | str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    dpi: int = 150,
    overwrite: bool = False,
) -> Figure:
    """Draw the distance matrix; return the figure, and write it to the image file `path`, in the format of its suffix.

    A pixel shows the mean of the finite distances that it covers; it is white if all pairs are unreachable. Some
    vertices are labelled along the axes.

    Parameters
    ----------
    distances : the store or its path
    path : path of the new file (.png, .pdf, .svg); by default no file is written
    graph : the graph or its path; by default the graph recorded in the store
    title : line above the picture; by default the name of the store and its shape
    dpi : pixels of an inch
    overwrite : replace `path` if it exists

    Raises
    ------
    ImportError
        Matplotlib is missing; the message says how to install it.
    ValueError
        The suffix of `path` is not a format of pictures, or `dpi` is not from 10 to 1200.
    FileExistsError
        `path` exists.

    Examples
    --------
    >>> figure = tilepath.picture_distances(distances, "distances.png")
    """
    distances = open_distances(distances)
    graph = distances.graph(graph)
    rows, columns = distances.shape
    title = f"{Path(distances.path).name}: {rows:,} x {columns:,}" if title is None else title
    with figure_file(path, overwrite, dpi=dpi, figsize=(7.2, 6), layout="constrained") as figure:
        axes = figure.add_subplot()
        axes.set_title(title, fontsize=10, parse_math=False)
        figure.text(0.995, 0.005, graph.attribution, size=6, color=GREY, ha="right", va="bottom", parse_math=False)
        _draw_matrix(axes, distances, graph)
    return figure


def _draw_matrix(axes: Any, distances: Distances, graph: Graph) -> None:
    rows, columns = distances.shape
    image = axes.imshow(
        _shrink(distances), extent=(0, columns, rows, 0), cmap="viridis", interpolation="nearest", aspect="auto"
    )
    axes.figure.colorbar(image, ax=axes, label=f"shortest {title_of_distances(graph.weight_unit)}")
    axes.set(xlabel="to vertex", ylabel="from vertex" if distances.sources is None else "from source")
    for axis, vertices in ((axes.xaxis, np.arange(columns)), (axes.yaxis, distances.row_vertices())):
        ticks = _ticks(len(vertices))
        labels = [shortened(name, 12) or '""' for name in graph.names(vertices[ticks])]
        axis.set_ticks(ticks + 0.5, labels, parse_math=False)
    if "labels" in graph.optional:
        axes.tick_params(axis="x", rotation=45)


def _ticks(count: int) -> np.ndarray:
    """Return which of `count` rows or columns are labelled: every 1st, 2nd, 5th, 10th, 20th and so on."""
    least = max(1, -(-count // TICKS))
    power = 10 ** (len(str(least)) - 1)
    return np.arange(0, count, power * min(step for step in (1, 2, 5, 10) if step * power >= least))


def _shrink(distances: Distances) -> np.ndarray:
    """Return means over cells of the matrix, at most PIXELS along an edge; NaN for a cell without finite distances."""
    rows, columns = distances.shape
    step = max(1, -(-max(rows, columns) // PIXELS))
    shape = (-(-rows // step), -(-columns // step))
    sums, counts = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    cells = np.arange(0, columns, step)
    for start, block in distances.blocks():
        finite = block != outside_infinity(block.dtype)
        by_cell = np.add.reduceat(np.where(finite, block, 0).astype(np.float64), cells, axis=1)
        finite_by_cell = np.add.reduceat(finite.astype(np.int64), cells, axis=1)
        at = (start + np.arange(len(block))) // step
        np.add.at(sums, at, by_cell)
        np.add.at(counts, at, finite_by_cell)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

"""Pictures of distances stores, drawn with matplotlib (the `plot` extra)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gpuops.numbers import outside_infinity
from pipelines.answers.figures import new_figure, save_figure
from pipelines.stores import Distances, Graph

PIXELS = 1000  # along an edge of the picture of a matrix
TICKS = 8  # at most, along an edge


def picture_distances(
    distances: Distances, path: str | os.PathLike[str], graph: Graph | str | os.PathLike[str] | None = None
) -> None:
    """Draw the distance matrix to the image file `path`; its suffix names the format (.png, .pdf, .svg).

    A pixel shows the mean of the distances it covers; white means that none of its vertices is reachable. Some vertices
    are labelled along the axes.

    Parameters
    ----------
    distances, path : the store, and where the image goes
    graph : the graph or its path; None: the one recorded in the store

    Raises
    ------
    ImportError
        Matplotlib is missing; the message says how to install it.
    ValueError
        The suffix of `path` is not that of a picture.
    """
    figure = new_figure(path, figsize=(7.2, 6), layout="constrained")
    rows, columns = distances.shape
    graph = distances.graph(graph.path if isinstance(graph, Graph) else graph)
    unit = f" [{graph.weight_unit}]" if graph.weight_unit else ""
    axes = figure.add_subplot()
    image = axes.imshow(
        _shrink(distances), extent=(0, columns, rows, 0), cmap="viridis", interpolation="nearest", aspect="auto"
    )
    figure.colorbar(image, label=f"shortest distance{unit}")
    axes.set(xlabel="to vertex", ylabel="from vertex" if distances.sources is None else "from source")
    for axis, vertices in ((axes.xaxis, np.arange(columns)), (axes.yaxis, distances.row_vertices())):
        ticks = _ticks(len(vertices))
        names = graph.names(vertices[ticks])
        labels = [name if len(name) <= 12 else name[:11] + "\u2026" for name in names]
        axis.set_ticks(ticks + 0.5, labels, parse_math=False)
    if "labels" in graph.optional:
        axes.tick_params(axis="x", rotation=45)
    axes.set_title(f"{Path(distances.path).name}: {rows:,} x {columns:,}", fontsize=10)
    save_figure(figure, path)


def _ticks(count: int) -> np.ndarray:
    """The rows or columns, of `count`, that are labelled: every 1, 2, 5, 10, 20, ... of them."""
    least = max(1, -(-count // TICKS))
    power = 10 ** (len(str(least)) - 1)
    return np.arange(0, count, power * min(step for step in (1, 2, 5, 10) if step * power >= least))


def _shrink(distances: Distances) -> np.ndarray:
    """Means over cells of the matrix, at most PIXELS along an edge; NaN where a cell holds no finite distance."""
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

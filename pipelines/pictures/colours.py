"""Colours of nodes and arcs by their values: smooth, or in bands, and visible on white paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pipelines.pictures.drawing import Drawing

MOST_BANDS = 24  # most bands of colours
LEAST_CONTRAST = 1.7  # least contrast to white of the ends of a colour map, as WCAG 2 defines contrast


def node_colours(drawing: Drawing) -> tuple[list[Any], Any]:
    """Return the fill of every node, and the mapping of values to colours, None if nodes have no values."""
    if drawing.values is None:
        return list(drawing.fills), None
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, Normalize, to_rgba

    known = drawing.values[np.isfinite(drawing.values)]
    bounds = Normalize(*((known.min(), max(known.max(), known.min() + 1e-9)) if known.size else (0.0, 1.0)))
    if drawing.every is not None:
        bounds = BoundaryNorm(_bands(known, drawing.every), 256)
    if drawing.cmap not in colormaps:
        raise ValueError(
            f"cmap (--cmap) is {drawing.cmap!r}; choose a colour map of matplotlib, such as magma or cividis"
        )
    table = _on_white(colormaps[drawing.cmap])
    colours: list[Any] = [
        table(bounds(value)) if np.isfinite(value) else to_rgba("#dadce0") for value in drawing.values.tolist()
    ]
    return colours, ScalarMappable(bounds, table)


def _on_white(table: Any) -> Any:
    """Return a colour map of matplotlib without its ends that are too light for thin lines on white paper."""
    from matplotlib.colors import ListedColormap

    shares = np.linspace(0, 1, 256)
    colours = table(shares)[:, :3]
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)  # of sRGB
    contrast = 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    dark = shares[contrast >= LEAST_CONTRAST]
    return ListedColormap(table(np.linspace(dark[0], dark[-1], 256))) if len(dark) > 1 else table


def _bands(known: np.ndarray, every: float) -> np.ndarray:
    """Return the limits of the bands of the width `every`."""
    first, last = (math.floor(known.min() / every), math.floor(known.max() / every) + 1) if known.size else (0, 1)
    if last - first > MOST_BANDS:
        raise ValueError(
            f"there would be {last - first:,} bands of {every:g}; up to {MOST_BANDS} can be told apart: widen them"
        )
    return np.arange(first, last + 1) * every


def arc_colours(drawing: Drawing, bar: Any) -> list[Any]:
    """Return the colour of each arc: the colour of its farther end, grey if an end is not reached.

    Lifted arcs, such as a route, keep their colour.
    """
    assert drawing.values is not None
    assert drawing.lifted is not None
    ends = np.maximum(drawing.values[drawing.tails], drawing.values[drawing.heads])
    colours = bar.to_rgba(np.where(np.isfinite(ends), ends, 0.0))
    there, lifted, own = np.isfinite(ends).tolist(), drawing.lifted.tolist(), drawing.colours
    return [own[arc] if lifted[arc] else colour if there[arc] else "#dadce0" for arc, colour in enumerate(colours)]

"""Draws a `Drawing` with matplotlib (the `plot` extra): one unit of the axes is a point of the page.

The same drawing gives the same bytes: no dates, no random numbers but those of the seed.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from pipelines.answers.figures import new_figure, save_figure
from pipelines.answers.graph_pictures.arrows import Curve, label_places, route_arcs
from pipelines.answers.graph_pictures.drawing import GREY, INK, PAPER, Drawing
from pipelines.answers.graph_pictures.layout import place_nodes

NAME_SIZE, TEXT_SIZE, TITLE_SIZE = 9.0, 7.0, 8.0  # points
LONGEST_NAME = 18
MARGIN = 14.0
ROW = 15.0  # of the legend
MOST_BANDS = 24


def draw(drawing: Drawing, path: str | os.PathLike[str], seed: int = 0) -> None:
    """Lay a drawing out and write it to an image file, whose suffix names the format."""
    figure = new_figure(path)
    names = [name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}\u2026" for name in drawing.names]
    detailed = drawing.detailed
    colours, bar = _node_colours(drawing)
    if bar is not None and drawing.every is not None:
        drawing.colours = _arc_colours(drawing, bar)
    if detailed:
        widths = np.array([_text_width(name, NAME_SIZE) for name in names])
        sizes = np.stack([np.maximum(widths / 2 + 4.5, 10.0), np.full(drawing.n, 10.0)], axis=1)
    else:
        sizes = np.full((drawing.n, 2), 3.0 if drawing.n <= 500 else 1.6)
    sizes = sizes.reshape(drawing.n, 2)
    numbered = drawing.texts is not None
    step = 26.0 if drawing.n <= 500 else 15.0
    if detailed:
        step = (76.0 if numbered else 54.0) + 2 * float(sizes[:, 0].mean()) if drawing.n else 0.0
    centres = place_nodes(drawing, sizes, step, seed)

    low, high = _extent(centres, sizes)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_aspect("equal")
    if detailed:
        curves = route_arcs(drawing.tails, drawing.heads, centres, sizes, drawing.directed, 20.0 if numbered else 13.0)
        _draw_curves(axes, drawing, curves)
        bounds = np.array([_bounds(curve) for curve in curves]).reshape(-1, 2, 2)
        low, high = (
            np.minimum(low, bounds[:, 0].min(0, initial=np.inf)),
            np.maximum(high, bounds[:, 1].max(0, initial=-np.inf)),
        )
        if drawing.texts is not None:
            _draw_texts(axes, drawing, drawing.texts, curves, centres, sizes)
    else:
        _draw_lines(axes, drawing, centres)
    for name, group in drawing.frames:
        within = np.stack([centres[group] - sizes[group], centres[group] + sizes[group]], axis=1)
        if detailed:
            within = np.concatenate([within, bounds[np.isin(drawing.tails, group)]])
        corners = _draw_frame(axes, name, within[:, 0].min(axis=0), within[:, 1].max(axis=0))
        low, high = np.minimum(low, corners[0]), np.maximum(high, corners[1])
    _draw_nodes(axes, drawing, centres, sizes, colours, names if detailed else None)
    _finish(figure, axes, drawing, low, high, bar)
    save_figure(figure, path)


def _finish(figure: Any, axes: Any, drawing: Drawing, low: np.ndarray, high: np.ndarray, bar: Any) -> None:
    """Title, legend and scale around the graph, and the size of the page."""
    low, high = low - MARGIN, high + MARGIN
    wide = _text_width(drawing.title, TITLE_SIZE) + 2 * MARGIN
    keys = [12 + _text_width(text, TITLE_SIZE) + 16 for _, text in drawing.legend]
    rows: list[list[int]] = []
    page = max(high[0] - low[0], wide, max(keys, default=0) + 2 * MARGIN, 220.0 if bar is not None else 0)
    for i, key in enumerate(keys):
        if not rows or sum(keys[j] for j in rows[-1]) + key > page - 2 * MARGIN:
            rows.append([])
        rows[-1].append(i)
    spare = (page - (high[0] - low[0])) / 2
    low[0], high[0] = low[0] - spare, high[0] + spare
    if drawing.title:
        high[1] += 8
        axes.text(
            low[0] + MARGIN, high[1] - 9, drawing.title, size=TITLE_SIZE, color=GREY, va="center", parse_math=False
        )
    for row in rows:
        x = low[0] + MARGIN
        for i in row:
            colour, text = drawing.legend[i]
            axes.scatter([x + 4], [low[1]], s=48, color=colour, edgecolor=INK, linewidth=0.6, zorder=6)
            axes.text(x + 12, low[1], text, size=TITLE_SIZE, color=INK, va="center_baseline", parse_math=False)
            x += keys[i]
        low[1] -= ROW
    if bar is not None:
        low[1] -= 26
    figure.set_size_inches(*((high - low) / 72))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    if bar is not None:
        width, height = high - low
        inner = figure.add_axes((MARGIN / width, 22 / height, 1 - 2 * MARGIN / width, 7 / height))
        figure.colorbar(bar, cax=inner, orientation="horizontal")
        inner.tick_params(labelsize=6, length=2, pad=1.5)
        inner.set_xlabel(drawing.scale, fontsize=7, labelpad=1)


def _extent(centres: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not len(centres):
        return np.zeros(2), np.array([120.0, 20.0])
    return (centres - sizes).min(axis=0), (centres + sizes).max(axis=0)


def _draw_curves(axes: Any, drawing: Drawing, curves: list[Curve]) -> None:
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.path import Path

    codes = {3: [Path.MOVETO, *[Path.CURVE3] * 2], 4: [Path.MOVETO, *[Path.CURVE4] * 3]}
    for lifted in (False, True):
        arcs = np.flatnonzero(drawing.lifted == lifted).tolist()
        if not arcs:
            continue
        colours = [drawing.colours[i] for i in arcs]
        paths = [Path(curves[i].points, codes[len(curves[i].points)]) for i in arcs]
        axes.add_collection(
            PathCollection(
                paths,
                facecolors="none",
                edgecolors=colours,
                linewidths=[drawing.widths[i] for i in arcs],
                zorder=2 + lifted,
            )
        )
        shapes = [head for i in arcs if (head := curves[i].head) is not None]
        if shapes:
            tips = [drawing.colours[i] for i in arcs if curves[i].head is not None]
            axes.add_collection(
                PolyCollection(shapes, facecolors=tips, edgecolors=tips, linewidths=0.4, zorder=2 + lifted)
            )


def _draw_texts(
    axes: Any, drawing: Drawing, texts: list[str], curves: list[Curve], centres: np.ndarray, sizes: np.ndarray
) -> None:
    paper = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"}
    boxes = np.array([[_text_width(text, TEXT_SIZE) / 2 + 1, TEXT_SIZE * 0.45] for text in texts]).reshape(-1, 2)
    for i, (x, y) in enumerate(label_places(curves, boxes, centres, sizes).tolist()):
        style = {"color": drawing.colours[i], "bbox": paper, "zorder": 3.5}
        axes.text(x, y, texts[i], size=TEXT_SIZE, ha="center", va="center_baseline", parse_math=False, **style)


def _draw_lines(axes: Any, drawing: Drawing, centres: np.ndarray) -> None:
    """Arcs as straight lines without heads, where there are very many."""
    from matplotlib.collections import LineCollection

    segments = np.stack([centres[drawing.tails], centres[drawing.heads]], axis=1)
    for lifted in (False, True):
        arcs = np.flatnonzero(drawing.lifted == lifted)
        if len(arcs):
            colours = [drawing.colours[i] for i in arcs]
            widths = [0.55 * drawing.widths[i] if not lifted else drawing.widths[i] for i in arcs]
            lines = LineCollection(list(segments[arcs]), colors=colours, linewidths=widths, zorder=2 + 2 * lifted)
            lines.set_capstyle("round")
            axes.add_collection(lines)


def _node_colours(drawing: Drawing) -> tuple[list[Any], Any]:
    """The fill of every node, and what a scale of colours is made of."""
    if drawing.values is None:
        return list(drawing.fills), None
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, Normalize, to_rgba

    known = drawing.values[np.isfinite(drawing.values)]
    bounds = Normalize(*((known.min(), max(known.max(), known.min() + 1e-9)) if known.size else (0.0, 1.0)))
    if drawing.every is not None:
        bounds = BoundaryNorm(_bands(known, drawing.every), 256)
    table = colormaps["viridis_r"]
    colours: list[Any] = [
        table(bounds(value)) if np.isfinite(value) else to_rgba("#dadce0") for value in drawing.values.tolist()
    ]
    return colours, ScalarMappable(bounds, table)


def _bands(known: np.ndarray, every: float) -> np.ndarray:
    """Where bands of the width `every` begin and end."""
    first, last = (math.floor(known.min() / every), math.floor(known.max() / every) + 1) if known.size else (0, 1)
    if last - first > MOST_BANDS:
        raise ValueError(
            f"bands of {every:g} would be {last - first:,}; up to {MOST_BANDS} can be told apart: widen them"
        )
    return np.arange(first, last + 1) * every


def _arc_colours(drawing: Drawing, bar: Any) -> list[Any]:
    """The band of the farther end of each arc; grey where an end is not reached."""
    assert drawing.values is not None
    ends = np.maximum(drawing.values[drawing.tails], drawing.values[drawing.heads])
    colours = bar.to_rgba(np.where(np.isfinite(ends), ends, 0.0))
    return [colour if there else "#dadce0" for colour, there in zip(colours, np.isfinite(ends).tolist(), strict=True)]


def _draw_nodes(
    axes: Any, drawing: Drawing, centres: np.ndarray, sizes: np.ndarray, colours: list[Any], names: list[str] | None
) -> None:
    from matplotlib.colors import to_rgb

    if not drawing.n:
        return
    if names is None:
        dots = np.pi * (sizes[:, 0] ** 2)
        edges = colours if drawing.values is not None or not drawing.rims else [GREY] * drawing.n
        axes.scatter(*centres.T, s=dots, c=colours, edgecolors=edges, linewidths=0.5, zorder=3)
        return
    from matplotlib.collections import PathCollection

    shapes = [_rounded(place, size, size.min()) for place, size in zip(centres, sizes, strict=True)]
    axes.add_collection(PathCollection(shapes, facecolors=colours, edgecolors=INK, linewidths=0.9, zorder=4))
    for place, colour, name in zip(centres, colours, names, strict=True):
        red, green, blue = to_rgb(colour)
        ink = INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else PAPER
        axes.text(
            *place, name, size=NAME_SIZE, color=ink, ha="center", va="center_baseline", zorder=5, parse_math=False
        )


def _rounded(centre: np.ndarray, size: np.ndarray, radius: float) -> Any:
    """The outline of a box with round corners, a circle if they meet."""
    from matplotlib.path import Path

    bent = radius * (1 - 0.5523)  # how far control points of a quarter of a circle are from the corner
    points: list[tuple[float, float]] = []
    for x, y, first in ((1, 1, "y"), (-1, 1, "x"), (-1, -1, "y"), (1, -1, "x")):  # corners anticlockwise
        corner = centre + np.array([x, y]) * size
        along_x, along_y = np.array([-x, 0]), np.array([0, -y])
        before, after = (along_y, along_x) if first == "y" else (along_x, along_y)
        points += [corner + radius * before, corner + bent * before, corner + bent * after, corner + radius * after]
    codes = [Path.MOVETO, *([Path.CURVE4] * 3), *([Path.LINETO, *([Path.CURVE4] * 3)] * 3), Path.CLOSEPOLY]
    return Path([*points, points[0]], codes)


def _bounds(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    points = curve.at(np.linspace(0, 1, 17))
    return points.min(axis=0), points.max(axis=0)


def _draw_frame(axes: Any, name: str, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw a frame around what lies between two corners, its name above; returns its own corners."""
    from matplotlib.patches import PathPatch

    low, high = low - 9, high + 9
    outline = _rounded((low + high) / 2, (high - low) / 2, 6.0)
    axes.add_patch(PathPatch(outline, facecolor="#f1f3f4", edgecolor="#9aa0a6", linewidth=0.8, zorder=1))
    axes.text(low[0] + 3, high[1] + 6, name, size=TEXT_SIZE, color=GREY, va="center", zorder=5, parse_math=False)
    wide = np.array([low[0] + _text_width(name, TEXT_SIZE) + 6, high[1] + 12])
    return low, np.maximum(high, wide)


def _text_width(text: str, size: float) -> float:
    """Width of a line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])

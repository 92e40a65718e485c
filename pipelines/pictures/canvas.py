"""Draw a `Drawing` with matplotlib (the `plot` extra). One unit of the axes is a point of the page.

Axes of a user's figure then get the coordinates of the network (`pipelines.pictures.network_axes`).

Equal drawings with equal seeds give equal bytes: the file has no dates, and all random numbers come from the seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.files.figures import figure_file, shortened
from pipelines.pictures.arrows import Curve, label_places, route_arcs
from pipelines.pictures.colours import arc_colours, node_colours
from pipelines.pictures.drawing import CLOSED, GREY, INK, PALE, PAPER, Drawing
from pipelines.pictures.layout import TALLEST, map_frame, place_nodes
from pipelines.pictures.marks import NAMED_MARKS, label_box, lifted_lines, ring_size
from pipelines.pictures.network_axes import use_coordinates
from pipelines.pictures.streets import BAR_ROOM, draw_scale_bar, draw_streets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME_SIZE, TEXT_SIZE, TITLE_SIZE, SMALL_SIZE = 9.0, 7.0, 8.0, 6.0  # sizes of letters in points
LONGEST_NAME = 18  # most letters of a name
MARGIN = 14.0  # margin of the page in points
ABOVE_AND_BELOW = 75.0  # about the height of title, scale bar and scale of colours in points
ROW = 15.0  # height of a row of the legend in points
DASHES = (0, (2, 1))  # of closed roads: lengths of dashes and gaps, in widths of the line
TITLE_SHARE, LARGEST_TITLE = 0.025, 24.0  # letters of the title of a map: share of the width of the page; most points


def draw(drawing: Drawing, path: str | os.PathLike[str] | None, seed: int = 0, overwrite: bool = False) -> Figure:
    """Lay out a drawing, and write it to an image file in the format of its suffix if there is a path."""
    with figure_file(path, overwrite, dpi=drawing.dpi) as figure:
        _draw_page(figure, drawing, seed)
    return figure


def _draw_page(figure: Any, drawing: Drawing, seed: int) -> None:
    """Draw a whole figure, and set its size."""
    low, high, bar = _draw_on(figure.add_axes((0, 0, 1, 1)), drawing, seed)
    figure.set_size_inches(*((high - low) / 72))
    if bar is not None:
        _draw_scale(figure, figure.add_axes(_place_of_scale(high - low)), drawing, bar)


def draw_in(axes: Any, drawing: Drawing, seed: int = 0) -> Figure:
    """Lay out a drawing in axes of a user's figure, which keep their place.

    A map is as large as the axes allow, and the axes have the coordinates of its network.
    """
    if drawing.coordinates is not None and drawing.inches is None:
        box, extent = axes.get_window_extent(), np.ptp(drawing.coordinates, axis=0)
        room = np.array([box.width, box.height]) * 72 / axes.figure.dpi - [2 * MARGIN, 2 * MARGIN + ABOVE_AND_BELOW]
        tall = extent[1] / extent[0] if extent[0] else np.inf
        drawing.inches = max(72.0, min(room[0], room[1] / min(tall, TALLEST))) / 72
    before = {*axes.get_children()}
    low, high, bar = _draw_on(axes, drawing, seed)
    if drawing.coordinates is not None and drawing.n:
        use_coordinates(axes, [each for each in axes.get_children() if each not in before], drawing)
    if bar is not None:
        _draw_scale(axes.figure, axes.inset_axes(_place_of_scale(high - low)), drawing, bar)
    return axes.figure


def _draw_on(axes: Any, drawing: Drawing, seed: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Draw everything but the scale of colours; return the corners of the page and what the scale shows."""
    names = [shortened(name, LONGEST_NAME) or '""' for name in drawing.names]
    detailed = drawing.detailed
    colours, bar = node_colours(drawing)
    banded = drawing.streets and bar is not None and drawing.every is not None
    if bar is not None and (drawing.streets or drawing.every is not None):
        drawing.colours = arc_colours(drawing, bar)
    if detailed:
        widths = np.array([_text_width(name, NAME_SIZE) for name in names])
        sizes = np.stack([np.maximum(widths / 2 + 4.5, 10.0), np.full(drawing.n, 10.0)], axis=1)
    else:
        dots = np.full(drawing.n, 3.0 if drawing.few else 1.6) if drawing.radii is None else drawing.radii
        sizes = np.stack([dots, dots], axis=1)
    sizes = sizes.reshape(drawing.n, 2)
    numbered = drawing.texts is not None
    step = 26.0 if drawing.few else 15.0
    if detailed:
        step = (76.0 if numbered else 54.0) + 2 * float(sizes[:, 0].mean()) if drawing.n else 0.0
    centres = place_nodes(drawing, sizes, step, seed)

    low, high = _extent(centres, sizes)
    axes.set_axis_off()
    axes.set_aspect("equal")
    if drawing.areas:
        box = _draw_areas(axes, drawing)
        low, high = np.minimum(low, box[0]), np.maximum(high, box[1])
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
    elif drawing.streets:
        box = draw_streets(axes, drawing, centres, banded)
        low, high = np.minimum(low, box[0]), np.maximum(high, box[1])
    else:
        _draw_lines(axes, drawing, centres)
    _draw_closed(axes, drawing)
    for name, group in drawing.frames:
        within = np.stack([centres[group] - sizes[group], centres[group] + sizes[group]], axis=1)
        if detailed:
            within = np.concatenate([within, bounds[np.isin(drawing.tails, group)]])
        corners = _draw_frame(axes, name, within[:, 0].min(axis=0), within[:, 1].max(axis=0))
        low, high = np.minimum(low, corners[0]), np.maximum(high, corners[1])
    _draw_nodes(axes, drawing, centres, sizes, colours, names if detailed else None)
    if drawing.captions:
        high = np.maximum(high, _draw_captions(axes, drawing, centres, sizes, names))
    for label in list(_draw_marks(axes, drawing, centres, sizes, names, np.array([low, high]))):
        low, high = np.minimum(low, label[0]), np.maximum(high, label[1])
    return (*_finish(axes, drawing, low, high, bar is not None), bar)


def _finish(
    axes: Any, drawing: Drawing, low: np.ndarray, high: np.ndarray, scaled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Draw title and legend around the graph, leave room for a scale of colours, and return the corners of the page."""
    low, high = low - MARGIN, high + MARGIN
    wide = max(_text_width(drawing.title, TITLE_SIZE), _text_width(drawing.attribution, SMALL_SIZE)) + 2 * MARGIN
    keys = [12 + _text_width(text, TITLE_SIZE) + 16 for _, text in drawing.legend]
    rows: list[list[int]] = []
    page = max(high[0] - low[0], wide, max(keys, default=0) + 2 * MARGIN, 220.0 if scaled else 0)
    for i, key in enumerate(keys):
        if not rows or sum(keys[j] for j in rows[-1]) + key > page - 2 * MARGIN:
            rows.append([])
        rows[-1].append(i)
    spare = (page - (high[0] - low[0])) / 2
    low[0], high[0] = low[0] - spare, high[0] + spare
    if drawing.title:
        size = _title_size(drawing, page)
        high[1] += size
        y = high[1] - size / 2 - 5
        axes.text(low[0] + MARGIN, y, drawing.title, size=size, color=INK, va="center", parse_math=False)
    for row in rows:
        x = low[0] + MARGIN
        for i in row:
            colour, text = drawing.legend[i]
            _draw_key(axes, drawing, colour, x, low[1])
            axes.text(x + 12, low[1], text, size=TITLE_SIZE, color=INK, va="center_baseline", parse_math=False)
            x += keys[i]
        low[1] -= ROW
    if drawing.coordinates is not None and drawing.metres and drawing.n > 1:
        low[1] -= BAR_ROOM
        draw_scale_bar(axes, drawing, low[0] + MARGIN, low[1], high[0] - low[0] - 2 * MARGIN)
    if drawing.attribution:
        low[1] -= 10
        style = {"size": SMALL_SIZE, "color": GREY, "ha": "right", "va": "center_baseline", "parse_math": False}
        axes.text(high[0] - MARGIN, low[1] + 3, drawing.attribution, **style)
    if scaled:
        low[1] -= 40 if drawing.attribution else 30
    if drawing.streets:  # so that differences to the rounded points of streets have few digits
        low, high = np.floor(low), np.ceil(high)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return low, high


def _place_of_scale(page: np.ndarray) -> tuple[float, float, float, float]:
    """Return the place of the scale of colours, in shares of the width and the height of a page."""
    width, height = page.tolist()
    return MARGIN / width, 26 / height, 1 - 2 * MARGIN / width, 7 / height


def _draw_scale(figure: Any, inner: Any, drawing: Drawing, bar: Any) -> None:
    figure.colorbar(bar, cax=inner, orientation="horizontal")
    inner.tick_params(labelsize=7, length=2, pad=1.5)
    inner.set_xlabel(drawing.scale, fontsize=TITLE_SIZE, labelpad=1)


def _draw_key(axes: Any, drawing: Drawing, colour: str, x: float, y: float) -> None:
    """Draw what stands for a colour in the legend: a line for arcs, else a dot."""
    if colour == CLOSED or (colour in drawing.colours and colour not in drawing.fills):
        style = DASHES if colour == CLOSED else "-"
        axes.plot([x - 1, x + 9], [y, y], color=colour, linewidth=2.0, linestyle=style, zorder=6)
    else:
        axes.scatter([x + 4], [y], s=48, color=colour, edgecolor=INK, linewidth=0.6, zorder=6)


def _title_size(drawing: Drawing, page: float) -> float:
    """Return the size of the letters of the title; on a map it follows the width of the page, as far as there is room.

    On a slide, a map is enlarged or reduced to the width of the slide.
    """
    if drawing.coordinates is None:
        return TITLE_SIZE
    widest = TITLE_SIZE * (page - 2 * MARGIN) / _text_width(drawing.title, TITLE_SIZE)
    return max(min(TITLE_SHARE * page, LARGEST_TITLE, widest), TITLE_SIZE)


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
    half = TEXT_SIZE * 0.8  # of the height of the paper, which has room for letters below the line
    boxes = np.array([[_text_width(text, TEXT_SIZE) / 2 + 1, half] for text in texts]).reshape(-1, 2)
    for i, (x, y) in enumerate(label_places(curves, boxes, centres, sizes).tolist()):
        style = {"color": drawing.colours[i], "bbox": paper, "zorder": 3.5}
        axes.text(x, y, texts[i], size=TEXT_SIZE, ha="center", va="center_baseline", parse_math=False, **style)


def _draw_areas(axes: Any, drawing: Drawing) -> np.ndarray:
    """Fill areas; returns the corners (2, 2) of all areas."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    assert drawing.coordinates is not None
    low, scale = map_frame(drawing.coordinates, drawing.inches)
    corners = np.array([[np.inf, np.inf], [-np.inf, -np.inf]])
    for area in drawing.areas:
        rings = [np.round((ring - low) * scale, 2) for polygon in area.polygons for ring in polygon]
        if rings:
            shape = Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))
            axes.add_patch(PathPatch(shape, facecolor=area.colour, edgecolor="none", zorder=1))
            points = np.concatenate(rings)
            corners[0] = np.minimum(corners[0], points.min(axis=0))
            corners[1] = np.maximum(corners[1], points.max(axis=0))
    return corners


def _draw_closed(axes: Any, drawing: Drawing) -> None:
    """Draw closed roads as dashes on white, over all other streets."""
    from matplotlib.collections import LineCollection

    if drawing.closed and drawing.coordinates is not None:
        low, scale = map_frame(drawing.coordinates, drawing.inches)
        lines = [np.round((line - low) * scale, 2) for line in drawing.closed]
        axes.add_collection(LineCollection(lines, colors=PAPER, linewidths=3.6, zorder=5))
        axes.add_collection(LineCollection(lines, colors=CLOSED, linewidths=2.0, linestyles=[DASHES], zorder=6))


def _draw_lines(axes: Any, drawing: Drawing, centres: np.ndarray) -> None:
    """Draw arcs as straight lines without heads, for large graphs."""
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


def _draw_nodes(
    axes: Any, drawing: Drawing, centres: np.ndarray, sizes: np.ndarray, colours: list[Any], names: list[str] | None
) -> None:
    if not drawing.n:
        return
    if names is None:
        dots = dots_of(drawing)
        dots = dots[np.argsort(sizes[dots, 0], kind="stable")]  # large dots over small ones
        fills = [colours[v] for v in dots.tolist()]
        edges = fills if drawing.values is not None or not drawing.rims else GREY
        areas = np.pi * (sizes[dots, 0] ** 2)
        axes.scatter(*centres[dots].T, s=areas, c=fills, edgecolors=edges, linewidths=0.5, zorder=3)
        return
    from matplotlib.collections import PathCollection

    shapes = [_rounded(place, size, size.min()) for place, size in zip(centres, sizes, strict=True)]
    axes.add_collection(PathCollection(shapes, facecolors=colours, edgecolors=INK, linewidths=0.9, zorder=4))
    for place, colour, name in zip(centres, colours, names, strict=True):
        style = {"color": _ink_on(colour), "ha": "center", "va": "center_baseline", "zorder": 5}
        axes.text(*place, name, size=NAME_SIZE, parse_math=False, **style)


def _ink_on(colour: Any) -> str:
    """Return the colour of letters that are legible on `colour`."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else PAPER


def _draw_captions(axes: Any, drawing: Drawing, centres: np.ndarray, sizes: np.ndarray, names: list[str]) -> np.ndarray:
    """Write names in their dots, or to the right of dots where no dot and no name is hidden, large dots first.

    Returns the upper right corner of all dots and names. Pale dots, such as leaves, get no name outside.
    """
    from matplotlib.patheffects import withStroke

    lows, highs = centres - sizes, centres + sizes
    for v in np.argsort(-sizes[:, 0], kind="stable").tolist():
        half = np.array([_text_width(names[v], TEXT_SIZE) / 2 + 1, TEXT_SIZE / 2])
        style = {"size": TEXT_SIZE, "ha": "center", "va": "center_baseline", "zorder": 5, "parse_math": False}
        if (half < sizes[v]).all():
            axes.text(*centres[v], names[v], color=_ink_on(drawing.fills[v]), **style)
            continue
        place = centres[v] + [sizes[v, 0] + 1 + half[0], 0]
        if drawing.fills[v] != PALE and not ((lows < place + half) & (place - half < highs)).all(axis=1).any():
            axes.text(*place, names[v], color=INK, path_effects=[withStroke(linewidth=2, foreground=PAPER)], **style)
            lows, highs = np.vstack([lows, place - half]), np.vstack([highs, place + half])
    return highs.max(axis=0)


def dots_of(drawing: Drawing) -> np.ndarray:
    """Return the nodes that are drawn as dots: on a map of streets, only filled nodes and nodes without arcs."""
    if not drawing.streets:
        return np.arange(drawing.n)
    alone = np.bincount(np.concatenate([drawing.tails, drawing.heads]), minlength=drawing.n) == 0
    return np.flatnonzero(alone | np.array([fill != PAPER for fill in drawing.fills]))


def _draw_marks(
    axes: Any, drawing: Drawing, centres: np.ndarray, sizes: np.ndarray, names: list[str], box: np.ndarray
) -> Iterator[np.ndarray]:
    """Draw a ring around each marked node; also its name, if nodes have no names and few nodes are marked.

    `box` has the corners (2, 2) of the picture. Yields the corners of the names.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.patheffects import withStroke

    share = 1.0 if drawing.detailed else ring_size(drawing)
    around = 2.5 if drawing.detailed else 5.1 * share - 1.6 if drawing.streets else 3.5 * share
    rings = [_rounded(centres[v], sizes[v] + around, sizes[v].min() + around) for v in drawing.marks]
    axes.add_collection(PathCollection(rings, facecolors="none", edgecolors=PAPER, linewidths=3.6 * share, zorder=7))
    inner = PAPER if drawing.streets else "none"
    axes.add_collection(PathCollection(rings, facecolors=inner, edgecolors=INK, linewidths=1.8 * share, zorder=8))
    if drawing.detailed or len(drawing.marks) > NAMED_MARKS:
        return
    middle, lifted = centres.mean(axis=0), lifted_lines(drawing, centres)
    taken = [np.array([centres[v] - sizes[v] - around, centres[v] + sizes[v] + around]) for v in drawing.marks]
    for v in filter(lambda v: drawing.names[v], drawing.marks):
        half = np.array([_text_width(names[v], NAME_SIZE) / 2, NAME_SIZE / 2])
        rightwards = centres[v, 0] >= middle[0]  # outwards: a route seldom leads there
        page = box if drawing.streets else None  # within a page with dots, a name may hide dots
        label = label_box(centres[v], sizes[v] + around, half, rightwards, lifted, taken, page)
        place = label.mean(axis=0)
        taken.append(label)
        effects = [withStroke(linewidth=3, foreground=PAPER)]
        style = {"color": INK, "ha": "center", "va": "center_baseline", "zorder": 9, "path_effects": effects}
        axes.text(*place, names[v], size=NAME_SIZE, parse_math=False, **style)
        yield label


def _rounded(centre: np.ndarray, size: np.ndarray, radius: float) -> Any:
    """Return the outline of a box with round corners, which is a circle if the corners meet."""
    from matplotlib.path import Path

    bent = radius * (1 - 0.5523)  # distance from the corner to the control points of a quarter of a circle
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
    """Draw a frame around the box from `low` to `high`, and its name above; returns the corners of frame and name."""
    from matplotlib.patches import PathPatch

    low, high = low - 9, high + 9
    outline = _rounded((low + high) / 2, (high - low) / 2, 6.0)
    axes.add_patch(PathPatch(outline, facecolor="#f1f3f4", edgecolor="#9aa0a6", linewidth=0.8, zorder=1))
    axes.text(low[0] + 3, high[1] + 6, name, size=TEXT_SIZE, color=GREY, va="center", zorder=5, parse_math=False)
    wide = np.array([low[0] + _text_width(name, TEXT_SIZE) + 6, high[1] + 12])
    return low, np.maximum(high, wide)


def _text_width(text: str, size: float) -> float:
    """Return the width of a line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])

"""Maps of many vertices as maps of streets: lines with their bends instead of dots, filled bands, and a scale bar.

Lines of one colour and width are one path, so that a vector file of a city stays below a megabyte. If there are more
than `MOST_POINTS` points, lines are drawn as pixels, also in a vector file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.pictures.drawing import INK, PAPER, Drawing
from pipelines.pictures.layout import map_frame

MOST_POINTS = 60_000  # most points of lines in a vector file
PATH_POINTS = 5_000  # most points of a path, which matplotlib can stroke
STREET, STREET_WIDTH, STREET_SHARE = "#3c4043", 0.5, 0.6  # colour, width and opacity of streets over filled bands
# Lines become thinner if the mean length of streets is below this number of points; the second number is the least
# width, as a share of the usual width.
DENSE = 5.0, 0.35
# Coloured lines become thicker if the mean length of streets is above this number of points; the second number is the
# greatest width, as a share of the usual width.
SPARSE = 10.0, 2.0
BAND_SHARE = 0.85  # the quantile of the lengths of streets that determines the width of a filled band
BAND_WIDTHS = 4.0, 40.0  # least and greatest width of a filled band in points
BAR_SHARE = 0.22  # the scale bar is at most this share of the width of the map
BAR_ROOM = 20.0  # height of a scale bar and its text in points


def street_points(drawing: Drawing, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `offsets` and `points`: arc i is drawn through ``points[offsets[i] : offsets[i + 1]]`` of the page.

    Coordinates are rounded to hundredths of a point, since each digit is a byte of a vector file.
    """
    if drawing.bends is None:
        both = np.stack([centres[drawing.tails], centres[drawing.heads]], axis=1)
        return 2 * np.arange(drawing.m + 1), np.round(both.reshape(-1, 2), 2)
    assert drawing.coordinates is not None
    low, scale = map_frame(drawing.coordinates, drawing.inches)
    return drawing.bends[0], np.round((drawing.bends[1] - low) * scale, 2)


def draw_streets(axes: Any, drawing: Drawing, centres: np.ndarray, banded: bool) -> np.ndarray:
    """Draw the arcs as lines; returns the corners (2, 2) of all lines and bands.

    With `banded`, the colours of the arcs fill bands, and the arcs are grey.
    """
    from matplotlib.colors import to_hex

    if not drawing.m:
        return np.array([[np.inf, np.inf], [-np.inf, -np.inf]])
    offsets, points = street_points(drawing, centres)
    lifted, colours = np.asarray(drawing.lifted), np.array([to_hex(colour) for colour in drawing.colours])
    pen = _Pen(axes, offsets, points)
    mean = _lengths(offsets, points).mean()
    fine, bold = float(np.clip(mean / DENSE[0], DENSE[1], 1)), float(np.clip(mean / SPARSE[0], 1, SPARSE[1]))
    once = one_of_each_street(drawing, offsets, points)
    flat, room = once & ~lifted, 0.0
    if banded:
        width = band_width(offsets, points)
        room = width / 2
        for level, (colour, which) in enumerate(bands(drawing, colours)):
            pen.draw(flat & which, colour, width, 1 + 0.01 * level)
        for width in np.unique(drawing.widths[flat]).tolist():
            pen.draw(flat & (drawing.widths == width), STREET, fine * STREET_WIDTH * width, 2, alpha=STREET_SHARE)
    else:
        fine *= bold if drawing.values is not None else 1
        for colour in np.unique(colours[flat]).tolist():
            for width in np.unique(drawing.widths[flat & (colours == colour)]).tolist():
                pen.draw(flat & (colours == colour) & (drawing.widths == width), colour, fine * 0.55 * width, 2)
    for colour in np.unique(colours[lifted]).tolist():
        over = lifted & (colours == colour)
        pen.draw(over, PAPER, 1.8 * float(drawing.widths[over].max()), 3.9)
        pen.draw(over, colour, float(drawing.widths[over].max()), 4)
    return np.array([points.min(axis=0) - room, points.max(axis=0) + room])


def bands(drawing: Drawing, colours: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Return the colours of filled bands and masks (m) of their arcs, the farthest first; `colours` (m) are of arcs."""
    assert drawing.values is not None
    ends = np.maximum(drawing.values[drawing.tails], drawing.values[drawing.heads])
    known = np.isfinite(ends)
    far = {colour: ends[colours == colour].max() for colour in np.unique(colours[known]).tolist()}
    return [(colour, known & (colours == colour)) for colour in sorted(far, key=lambda colour: -far[colour])]


class _Pen:
    """Draws some of the lines, in one colour and width."""

    def __init__(self, axes: Any, offsets: np.ndarray, points: np.ndarray):
        self.axes, self.offsets, self.points = axes, offsets, points
        self.pixels = len(points) > MOST_POINTS

    def draw(self, which: np.ndarray, colour: str, width: float, zorder: float, alpha: float = 1.0) -> None:
        from matplotlib.collections import PathCollection
        from matplotlib.path import Path

        counts = np.diff(self.offsets)
        points = self.points[np.repeat(which, counts)]
        codes = np.full(len(points), Path.LINETO, Path.code_type)
        ends = np.cumsum(counts[which])
        codes[ends - counts[which]] = Path.MOVETO
        cuts = np.unique(ends[np.searchsorted(ends, np.arange(PATH_POINTS, len(points), PATH_POINTS))])
        pieces = zip(np.split(points, cuts), np.split(codes, cuts), strict=True)
        paths = [Path(*piece) for piece in pieces if len(piece[0])]
        lines = PathCollection(paths, facecolors="none", edgecolors=colour, linewidths=width, alpha=alpha)
        lines.set(capstyle="round", joinstyle="round", zorder=zorder)
        lines.set_rasterized(self.pixels)
        self.axes.add_collection(lines)


def one_of_each_street(drawing: Drawing, offsets: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return a mask of the arcs to draw: of arcs that look the same, such as both directions of a street, only one."""
    middle = (points[offsets[:-1]] + points[offsets[1:] - 1]) / 2
    if drawing.bends is not None:
        sums = np.add.reduceat(points, offsets[:-1])
        middle = sums / np.diff(offsets)[:, None]
    ends = np.sort([drawing.tails, drawing.heads], axis=0)
    _, first = np.unique(np.round(np.vstack([ends, middle.T]), 3), axis=1, return_index=True)
    found = np.zeros(drawing.m, bool)
    found[first] = True
    return found


def band_width(offsets: np.ndarray, points: np.ndarray) -> float:
    """Return the width of lines that fill a band. They must reach across a block, about the length of a street."""
    return float(np.clip(1.5 * np.quantile(_lengths(offsets, points), BAND_SHARE), *BAND_WIDTHS))


def _lengths(offsets: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the lengths of streets as the crow flies."""
    return np.linalg.norm(points[offsets[1:] - 1] - points[offsets[:-1]], axis=1)


def draw_scale_bar(axes: Any, drawing: Drawing, x: float, bottom: float, width: float) -> None:
    """Draw a scale bar to the right of `x` and above `bottom`, on a map of this width, in points."""
    assert drawing.coordinates is not None
    metres = drawing.metres / map_frame(drawing.coordinates, drawing.inches)[1]  # of a point
    length = _round_length(BAR_SHARE * width * metres)
    y, long = bottom + 11, length / metres
    axes.plot([x, x, x + long, x + long], [y + 3, y, y, y + 3], color=INK, linewidth=1.0, zorder=6, clip_on=False)
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    axes.text(x + long + 4, y, text, size=7.0, color=INK, va="center_baseline", parse_math=False)


def _round_length(most: float) -> float:
    """Return the greatest of the numbers 1, 2, 5, 10, 20 and so on, or 0.5, 0.2 and so on, that is at most `most`.

    >>> _round_length(730), _round_length(0.3)
    (500.0, 0.2)
    """
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(step for step in (1, 2, 5) if step * power <= most * (1 + 1e-9)) * power)

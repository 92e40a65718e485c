"""One style for all charts, and their files: names at the ends of lines, colours for tilepath, greys for others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT
from gpuops.extras import install

GALLERY = ROOT / "docs" / "gallery"
OURS = ("#2b6cb0", "#2f855a", "#c05621", "#6b46c1", "#b83280")
OTHERS = ("#4a5568", "#718096", "#8a7f72", "#1a202c", "#7d8ca3", "#5f6b7a")  # greys, told apart by markers and names
SIZE = 7.5  # of the names, in points


def read_records(result: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the device and the records of a file of results."""
    try:
        found = json.loads(result.read_text())
        return found["device"], found["records"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{result}: is not a file of results of scripts/bench.py ({error!r})") from error


def nothing_to_draw(chart: str, results: Sequence[Path], suite: str) -> ValueError:
    """Return the error for files of results that have no records of a chart."""
    files = ", ".join(map(str, results)) or "benchmarks/results"
    return ValueError(f"{files}: nothing to draw for {chart}; run scripts/bench.py {suite}")


def new_figure() -> tuple[Any, Any]:
    """Return a figure and its axes."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"charts need matplotlib: {install('plot')}") from error

    figure = Figure(figsize=(7.2, 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def saved(figure: Any, out: Path) -> Path:
    """Write a figure to an image without a date and random names, so that the same records give the same file."""
    from matplotlib import rc_context

    out.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "tilepath"}):
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)
    return out


def colour_of(way: str, taken: dict[str, str], ours: bool) -> str:
    """Return the colour of a method, the same for all devices; `taken` has the colours given so far."""
    if way not in taken:
        palette = OURS if ours else OTHERS
        taken[way] = palette[sum(colour in palette for colour in taken.values()) % len(palette)]
    return taken[way]


def name_ends(axes: Any, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Write names to the right of the axes, at the heights of the ends of their lines or as near as they have room.

    Parameters
    ----------
    axes : Axes, with its final limits
    ends : name, x, y and colour of each line
    """
    figure = axes.figure
    axes.autoscale_view()  # which is done late otherwise
    room = 1.35 * SIZE / (0.8 * 72 * figure.get_figheight())  # the height of a name, as a fraction of the axes
    heights = [axes.transLimits.transform(axes.transScale.transform((x, y)))[1] for _, x, y, _ in ends]
    order = sorted(range(len(ends)), key=heights.__getitem__)
    for place, height in zip(order, spread([heights[place] for place in order], room), strict=True):
        name, x, y, colour = ends[place]
        axes.annotate(
            *(name, (x, y)),
            xytext=(1.03, height),
            textcoords="axes fraction",
            **{"va": "center", "fontsize": SIZE, "color": colour, "annotation_clip": False},
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6, "shrinkB": 3},
        )


def spread(heights: Sequence[float], room: float) -> list[float]:
    """Return ascending heights that are `room` apart, near the given ones, which ascend.

    Names that would overlap form a group, which stands around the mean of its heights.
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _top(groups[-2], room) + room > _bottom(groups[-1], room):
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_bottom(group, room) + place * room for group in groups for place in range(len(group))]


def _bottom(group: list[float], room: float) -> float:
    return sum(group) / len(group) - room * (len(group) - 1) / 2


def _top(group: list[float], room: float) -> float:
    return _bottom(group, room) + room * (len(group) - 1)

"""A chart of measured values over a size, with a line for each method, and published values as hollow points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.chart_style import (
    GALLERY,
    OTHERS,
    colour_of,
    name_ends,
    new_figure,
    nothing_to_draw,
    read_records,
    saved,
)

Point = tuple[float, float, float]  # x, y, and the deviation of y; 0 draws no deviation
Series = dict[str, list[Point]]
Records = list[dict[str, Any]]

STYLES = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"), ("-", "v"), ("--", "P"))  # of lines and of their markers


@dataclass(frozen=True)
class Chart:
    """One chart of a suite: its records, its title and its axes.

    Attributes
    ----------
    suite : str
        The suite whose results are drawn.
    series : callable
        Returns the lines of the records of one device, by name.
    published : dict
        The published points by name, drawn in grey.
    ours : tuple of str
        How the names of tilepath's own methods begin. Their lines are coloured; lines of other methods are grey.
    fits : callable or None
        Returns curves that were fitted to the lines, drawn thin in black.
    apart : bool
        Whether lines that nearly coincide are told apart: each has its own marker and line style, and the markers of a
        second device are hollow.
    bars : str
        What the error bars are. If lines are told apart, the points of each line are also moved a
        little sideways, so that bars do not cover each other.
    """

    suite: str
    title: str
    x: str
    y: str
    series: Callable[[Records], Series]
    published: Series = field(default_factory=dict)
    ours: tuple[str, ...] = ("tilepath",)
    x_log: bool = False
    y_log: bool = True
    fits: Callable[[Records], Series] | None = None
    apart: bool = False
    bars: str = ""

    def draw(self, name: str, results: Sequence[Path], out: Path | None = None) -> Path:
        """Draw files of results, one of each device, to an image, by default docs/gallery/NAME.svg. Returns its path.

        Raises
        ------
        ImportError
            Matplotlib is missing; the message says how to install it.
        ValueError
            A file is not a file of results, or no file has records for this chart.
        """
        figure, axes = new_figure()
        read = [read_records(result) for result in results]
        ends: list[tuple[str, float, float, str]] = []
        if not self._draw_lines(axes, read, ends):
            raise nothing_to_draw(name, results, self.suite)
        for (label, points), marker in zip(self.published.items(), "s^vDP*X" * 2, strict=False):
            x, y, _ = zip(*sorted(points), strict=True)
            size = 9 if len(points) < 3 else 4
            style = {"color": OTHERS[1], "markerfacecolor": "none", "markersize": size, "linewidth": 0.6}
            axes.plot(x, y, marker=marker, linestyle=":", **style)
            ends.append((f"published: {label}", x[-1], y[-1], OTHERS[1]))
        axes.set_title(
            "\n".join([self.title, *(device for device, _ in read if len(read) == 1)]), fontsize=10, loc="left"
        )
        self._draw_axes(axes)
        figure.set_size_inches(9, 4.8)
        if self.bars:
            axes.text(0.02, 0.97, self.bars, transform=axes.transAxes, va="top", fontsize=7, color=OTHERS[1])
        name_ends(axes, ends)
        return saved(figure, out or GALLERY / f"{name}.svg")

    def _draw_lines(
        self, axes: Any, read: list[tuple[str, Records]], ends: list[tuple[str, float, float, str]]
    ) -> bool:
        """Draw the lines of each device and their fits, and add their names and ends. Returns whether there are any."""
        colours: dict[str, str] = {}  # by method, for all devices; a device has its line style and marker
        for number, (device, records) in enumerate(read):
            for place, (way, points) in enumerate(self.series(records).items()):
                if not points:
                    continue
                x, y, deviation = zip(*sorted(points), strict=True)
                line, marker = STYLES[(place if self.apart else number) % len(STYLES)]
                if self.apart and self.bars:
                    x = tuple(n * 2 ** (0.05 * (place - 2)) for n in x)
                colour = colour_of(way, colours, way.startswith(self.ours))
                style = {"linestyle": line, "marker": marker, "color": colour}
                if self.apart and number:
                    style["markerfacecolor"] = "none"
                label = f"{device}: {way}" if len(read) > 1 else way
                bars = deviation if any(deviation) else None
                axes.errorbar(x, y, bars, markersize=4, capsize=2, **style)
                ends.append((label, x[-1], y[-1], colour))
            fits = self.fits(records) if self.fits else {}
            for (label, points), line in zip(fits.items(), ("-", ":"), strict=False):
                x, y, _ = zip(*points, strict=True)
                axes.plot(x, y, line, color="black", linewidth=0.8)
                ends.append((label, x[-1], y[-1], "black"))
        return bool(colours)

    def _draw_axes(self, axes: Any) -> None:
        axes.set(xlabel=self.x, ylabel=self.y)
        axes.grid(which="major", alpha=0.3)
        if self.x_log:
            axes.set_xscale("log", base=2)
        if self.y_log:
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            if low >= 0.01 and high <= 1000:  # plain numbers; others are powers of ten
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(lambda y, _: f"{y:g}" if f"{y:g}".strip("0.") in "235" else "")

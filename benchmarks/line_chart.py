"""A chart of measured values over a size, with a line for each method, and published values as black points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.charts import GALLERY, _figure, _read

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
        The published points by name, drawn in black.
    fits : callable or None
        Returns curves that were fitted to the lines, drawn thin in black.
    apart : bool
        Whether lines that nearly coincide are told apart: each has its own marker and line style, and the markers of a
        second device are hollow.
    bars : str
        What the error bars are, for the legend. If lines are told apart, the points of each line are also moved a
        little sideways, so that bars do not cover each other.
    """

    suite: str
    title: str
    x: str
    y: str
    series: Callable[[Records], Series]
    published: Series = field(default_factory=dict)
    x_log: bool = False
    y_log: bool = True
    fits: Callable[[Records], Series] | None = None
    apart: bool = False
    bars: str = ""

    def draw(self, name: str, results: Sequence[Path], out: Path | None = None) -> Path:
        """Draw the chart to an image, by default docs/gallery/NAME.svg. Returns the path of the image.

        Raises
        ------
        ImportError
            Matplotlib is missing; the message says how to install it.
        ValueError
            A file is not a file of results, or no file has records for this chart.
        """
        figure, axes, settings = _figure()
        read = [_read(result) for result in results]
        if not self._draw_lines(axes, read):
            raise ValueError(
                f"{', '.join(map(str, results)) or 'benchmarks/results'}: nothing to draw for {name}; "
                f"run scripts/bench.py {self.suite}"
            )
        for (label, points), marker in zip(self.published.items(), "s^vDP*X" * 2, strict=False):
            x, y, _ = zip(*sorted(points), strict=True)
            size = 9 if len(points) < 3 else 4
            style = {"color": "black", "markerfacecolor": "none", "markersize": size, "linewidth": 0.6}
            axes.plot(x, y, marker=marker, linestyle=":", label=f"published: {label}", **style)
        axes.set_title("\n".join([self.title, *(device for device, _ in read if len(read) == 1)]), fontsize=10)
        self._draw_axes(axes)
        figure.set_size_inches(9, 4.8)
        # The legend stands to the right of the axes, not over the lines.
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), title=self.bars or None, title_fontsize=7)
        out = GALLERY / f"{name}.svg" if out is None else out
        out.parent.mkdir(parents=True, exist_ok=True)
        # Leave out the date and random names, so that the same times give the same file.
        with settings({"svg.hashsalt": "tilepath"}):
            figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)
        return out

    def _draw_lines(self, axes: Any, read: list[tuple[str, Records]]) -> bool:
        """Draw the lines of each device and their fits. Returns whether there are any."""
        colours: dict[str, str] = {}  # by method, for all devices; a device has its line style and marker
        for number, (device, records) in enumerate(read):
            for place, (way, points) in enumerate(self.series(records).items()):
                if not points:
                    continue
                x, y, deviation = zip(*sorted(points), strict=True)
                line, marker = STYLES[(place if self.apart else number) % len(STYLES)]
                if self.apart and self.bars:
                    x = tuple(n * 2 ** (0.05 * (place - 2)) for n in x)
                style = {"linestyle": line, "marker": marker, "color": colours.setdefault(way, f"C{len(colours)}")}
                if self.apart and number:
                    style["markerfacecolor"] = "none"
                label = f"{device}: {way}" if len(read) > 1 else way
                bars = deviation if any(deviation) else None
                axes.errorbar(x, y, bars, markersize=4, capsize=2, label=label, **style)
            fits = self.fits(records) if self.fits else {}
            for (label, points), line in zip(fits.items(), ("-", ":"), strict=False):
                x, y, _ = zip(*points, strict=True)
                axes.plot(x, y, line, color="black", linewidth=0.8, label=label)
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

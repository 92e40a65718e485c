"""Charts of series: measured values over a size, with a line for each method, and published values as points.

`CHARTS` has a `Chart` for each name that `scripts/bench.py chart` takes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.charts import GALLERY, _figure, _read
from benchmarks.kernels.generations import GENERATIONS
from benchmarks.suites import distinct, sequences, sssp_table

Point = tuple[float, float, float]  # x, y, and the deviation of y; 0 draws no deviation
Series = dict[str, list[Point]]
Records = list[dict[str, Any]]


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
    """

    suite: str
    title: str
    x: str
    y: str
    series: Callable[[Records], Series]
    published: Series = field(default_factory=dict)
    x_log: bool = False
    y_log: bool = True

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
        colours: dict[str, str] = {}  # by method, for all devices; a device has its line style and marker
        for result, (line, marker) in zip(results, cycle((("-", "o"), ("--", "s"), ("-.", "^"))), strict=False):
            device, records = _read(result)
            for way, points in self.series(records).items():
                if points:
                    x, y, deviation = zip(*sorted(points), strict=True)
                    bars = deviation if any(deviation) else None
                    label = f"{device}: {way}" if len(results) > 1 else way
                    style = {"linestyle": line, "marker": marker, "color": colours.setdefault(way, f"C{len(colours)}")}
                    axes.errorbar(x, y, bars, markersize=4, capsize=2, label=label, **style)
            if len(results) == 1:
                axes.set_title(f"{self.title}\n{device}", fontsize=10)
        if not colours:
            raise ValueError(
                f"{', '.join(map(str, results)) or 'benchmarks/results'}: nothing to draw for {name}; "
                f"run scripts/bench.py {self.suite}"
            )
        for (label, points), marker in zip(self.published.items(), "s^vDP*X" * 2, strict=False):
            x, y, _ = zip(*sorted(points), strict=True)
            style = {"color": "black", "markerfacecolor": "none", "markersize": 4, "linewidth": 0.6}
            axes.plot(x, y, marker=marker, linestyle=":", label=f"published: {label}", **style)
        axes.set(xlabel=self.x, ylabel=self.y)
        if len(results) != 1:
            axes.set_title(self.title, fontsize=10)
        if self.x_log:
            axes.set_xscale("log", base=2)
        if self.y_log:
            axes.set_yscale("log")
        axes.grid(which="major", alpha=0.3)
        figure.set_size_inches(9, 4.8)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))  # to the right of the axes, not over the lines
        out = GALLERY / f"{name}.svg" if out is None else out
        out.parent.mkdir(parents=True, exist_ok=True)
        # Leave out the date and random names, so that the same times give the same file.
        with settings({"svg.hashsalt": "tilepath"}):
            figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)
        return out


def _seconds(record: dict[str, Any]) -> float:
    return float(record["seconds"]["median"])


def _by(records: Iterable[dict[str, Any]], name: str, x: str, scale: float = 1) -> Series:
    """Return a line for each value of the key `name` in the records: median seconds times `scale` over the size `x`."""
    series: Series = {}
    for record in records:
        if name in record and x in record.get("sizes", {}):
            series.setdefault(record[name], []).append((record["sizes"][x], _seconds(record) * scale, 0))
    return series


def _distinct(records: Records) -> Series:
    end = f" of 0..{distinct.RANGE - 1}, "
    named = [record | {"way": record["case"].split(end)[0]} for record in records if end in record["case"]]
    return _by(named, "way", "n")


def _ways(records: Records, what: str, x: str, left_out: tuple[str, ...] = (), scale: float = 1) -> Series:
    kept = [record for record in records if record["case"].startswith(f"{what}, ")]
    series = _by(kept, "way", x, scale)
    return {way: points for way, points in series.items() if not any(part in way for part in left_out)}


def _floyd_warshall(records: Records, rate: bool) -> Series:
    titles = {generation.name: generation.title for generation in GENERATIONS}
    series = _by([r for r in records if r.get("generation") in titles], "generation", "n")
    return {titles[name]: [(n, n**3 / s if rate else s, 0) for n, s, _ in points] for name, points in series.items()}


def _published_floyd_warshall(rate: bool) -> Series:
    return {
        generation.title.removesuffix(" (Numba)"): [
            (n, n**3 / s if rate else s, 0) for n, s in generation.published.items()
        ]
        for generation in GENERATIONS
        if generation.published
    }


def _rates(records: Records) -> Series:
    series: Series = {}
    for record in records:
        if "way" in record and record.get("dtype", "float32") == "float32":
            deviation = record.get("arcs_per_second_stdev", 0) / 1e6
            rate = record["arcs_per_second"] / 1e6
            series.setdefault(record["way"], []).append((record["sizes"]["n"], rate, deviation))
    return series


def _speedups(records: Records) -> Series:
    series: Series = {}
    for record in records:
        if "speedup_over_heap" in record and record["dtype"] == "float32":
            found = record["speedup_over_heap"]
            series.setdefault(record["way"], []).append((record["sizes"]["n"], found["mean"], found["stdev"]))
    return series


_SLOW = ("host", "serial", "alone")
_PUBLISHED_DISTINCT: Series = {
    name: [(n, seconds[column], 0) for n, seconds in distinct.PUBLISHED.items()]
    for column, name in enumerate(("CPU, 2016", "GPU, 2016"))
}
_TITAN: Series = {"GTX Titan, both": [(2 ** max(sssp_table.PUBLISHED), max(sssp_table.PUBLISHED.values()) / 1e6, 0)]}
_TIMES: Series = {"about 40": [(2**20, sssp_table.PUBLISHED_SPEEDUP, 0), (2**22, sssp_table.PUBLISHED_SPEEDUP, 0)]}
_LOOK_AND_SAY = f"Look and say from {sequences.SEED_DIGITS}"

_CHARTS = {
    "distinct": Chart(
        "distinct", "Distinct values of 0..999", "elements", "seconds", _distinct, _PUBLISHED_DISTINCT, True
    ),
    "looksay": Chart(
        "sequences",
        _LOOK_AND_SAY,
        "steps",
        "milliseconds",
        lambda r: _ways(r, "look-and-say", "steps", ("alone",), 1e3),
    ),
    "looksay-fast": Chart(
        *("sequences", f"{_LOOK_AND_SAY}, all on the device", "steps", "milliseconds"),
        lambda r: _ways(r, "look-and-say", "steps", _SLOW, 1e3),
        y_log=False,
    ),
    "cyc": Chart("sequences", "Cyclic spectra", "masses", "seconds", lambda r: _ways(r, "cyclic spectrum", "n")),
    "cyc-nonlog": Chart(
        *("sequences", "Cyclic spectra, without the O(n^3) ways", "masses", "seconds"),
        lambda r: _ways(r, "cyclic spectrum", "n", ("brute", "grid", "counts")),
        y_log=False,
    ),
    "fw-time": Chart(
        *("fw-table", "Floyd-Warshall by generations", "vertices", "seconds"),
        lambda r: _floyd_warshall(r, False),
        _published_floyd_warshall(False),
        True,
    ),
    "fw-rate": Chart(
        *("fw-table", "Floyd-Warshall by generations", "vertices", "tasks per second"),
        lambda r: _floyd_warshall(r, True),
        _published_floyd_warshall(True),
        True,
    ),
    "sssp-rates": Chart(
        *("sssp-table", "Shortest paths from one source, R-MAT, float32", "vertices", "million arcs per second"),
        *(_rates, _TITAN, True),
    ),
    "sssp-speedups": Chart(
        *("sssp-table", "Times as fast as Dijkstra by heap on one core, R-MAT, float32", "vertices", "times"),
        _speedups,
        _TIMES,
        True,
    ),
}
CHARTS = {name: functools.partial(chart.draw, name) for name, chart in _CHARTS.items()}
SUITE_OF = {name: chart.suite for name, chart in _CHARTS.items()}

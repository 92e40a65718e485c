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
from benchmarks.orders import ORDERS, spectra
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
    apart : bool
        Whether lines that nearly coincide are told apart: each has its own marker and line style, and a small offset.
    bars : str
        What the error bars are, for the legend.
    """

    suite: str
    title: str
    x: str
    y: str
    series: Callable[[Records], Series]
    published: Series = field(default_factory=dict)
    x_log: bool = False
    y_log: bool = True
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
        colours: dict[str, str] = {}  # by method, for all devices; a device has its line style and marker
        for result, (line, marker) in zip(results, cycle((("-", "o"), ("--", "s"), ("-.", "^"))), strict=False):
            device, records = _read(result)
            for number, (way, points) in enumerate(self.series(records).items()):
                if points:
                    x, y, deviation = zip(*sorted(points), strict=True)
                    if self.apart:
                        line, marker = _STYLES[number % len(_STYLES)]
                        x = tuple(n * 2 ** (0.05 * (number - 2)) for n in x)
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
            size = 9 if len(points) < 3 else 4
            style = {"color": "black", "markerfacecolor": "none", "markersize": size, "linewidth": 0.6}
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
        # The legend stands to the right of the axes, not over the lines.
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), title=self.bars or None, title_fontsize=7)
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


def _spectra(records: Records) -> Series:
    """Return the measured series, and for each way on a GPU the fit of its order at the same sizes."""
    series = _ways(records, "cyclic spectrum", "n")
    for way, (coefficients, _) in spectra(records).items():
        if way in ("published, grid", "published, streamed"):
            terms = list(zip(coefficients, ORDERS[way], strict=True))
            fitted = [(n, sum(c * n**p for c, p in terms), 0.0) for n, _, _ in series[way]]
            series[f"{way}: fit of powers {', '.join(map(str, ORDERS[way]))}"] = fitted
    return series


# The article's names are in brackets: cache is the segment sort, restrict the read-only path.
_AS_PUBLISHED = {
    "both": "segment sort and read-only path (cache && restrict on)",
    "read-only path": "read-only path (cache off)",
    "segment sort": "segment sort (restrict off)",
    "plain": "neither (cache && restrict off)",
    sssp_table.HEAP: "CPU: Dijkstra by heap, one core",
}
_AGAINST_TILEPATH = {way: way for way in ("both", "plain", "both, atomic", sssp_table.OURS, sssp_table.HEAP)}
_STYLES = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"), ("-", "v"))


def _rates(records: Records, names: dict[str, str] = _AS_PUBLISHED) -> Series:
    series: Series = {name: [] for name in names.values()}
    for record in records:
        if record.get("way") in names and record["dtype"] == "float64":
            deviation = record.get("arcs_per_second_stdev", 0) / 1e6
            rate = record["arcs_per_second"] / 1e6
            series[names[record["way"]]].append((record["sizes"]["n"], rate, deviation))
    return series


def _speedups(records: Records) -> Series:
    series: Series = {name: [] for way, name in _AS_PUBLISHED.items() if way != sssp_table.HEAP}
    for record in records:
        if record.get("way") in _AS_PUBLISHED and "speedup_over_heap" in record and record["dtype"] == "float64":
            found = record["speedup_over_heap"]
            series[_AS_PUBLISHED[record["way"]]].append((record["sizes"]["n"], found["mean"], found["stdev"]))
    return series


_SLOW = ("host", "serial", "alone")
_PUBLISHED_DISTINCT: Series = {
    name: [(n, seconds[column], 0) for n, seconds in distinct.PUBLISHED.items()]
    for column, name in enumerate(("CPU, 2016", "GPU, 2016"))
}
_TITAN: Series = {"GTX Titan, both": [(2 ** max(sssp_table.PUBLISHED), max(sssp_table.PUBLISHED.values()) / 1e6, 0)]}
_TIMES: Series = {"about 40": [(2**20, sssp_table.PUBLISHED_SPEEDUP, 0), (2**22, sssp_table.PUBLISHED_SPEEDUP, 0)]}
_DEVIATION = "bars: standard deviation over the sources"
_LIKE_THE_ARTICLE: dict[str, Any] = {"x_log": True, "y_log": False, "apart": True}  # sizes are powers of two there
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
    "cyc": Chart("sequences", "Cyclic spectra", "masses", "seconds", _spectra),
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
        apart=True,
    ),
    "fw-rate": Chart(
        *("fw-table", "Floyd-Warshall by generations", "vertices", "tasks per second"),
        lambda r: _floyd_warshall(r, True),
        _published_floyd_warshall(True),
        True,
        apart=True,
    ),
    "sssp-rates": Chart(
        *("sssp-table", "Bellman-Ford by sweeps, R-MAT, float64", "vertices", "million arcs per second", _rates),
        **({"published": _TITAN, "bars": _DEVIATION} | _LIKE_THE_ARTICLE),
    ),
    "sssp-speedups": Chart(
        *("sssp-table", "Times as fast as Dijkstra by heap on one core, R-MAT, float64", "vertices", "times"),
        **({"series": _speedups, "published": _TIMES, "bars": _DEVIATION} | _LIKE_THE_ARTICLE),
    ),
    "sssp-searches": Chart(
        *("sssp-table", "Sweeps and tilepath, R-MAT, float64", "vertices", "million arcs per second"),
        **{"series": lambda r: _rates(r, _AGAINST_TILEPATH), "x_log": True, "bars": _DEVIATION},
    ),
}
CHARTS = {name: functools.partial(chart.draw, name) for name, chart in _CHARTS.items()}
SUITE_OF = {name: chart.suite for name, chart in _CHARTS.items()}

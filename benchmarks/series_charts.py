"""Charts of series: measured values over a size, with a line for each method, and published values as points.

`CHARTS` has a `Chart` for each name that `scripts/bench.py chart` takes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.growth import ORDERS, formula, spectra
from benchmarks.kernels.generations import GENERATIONS
from benchmarks.line_chart import Chart, Records, Series
from benchmarks.suites import distinct, sequences, sssp_table


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


def _fits(records: Records) -> Series:
    """Return the fit of the order of each published way on a GPU, at 50 sizes between those that were measured."""
    found, measured = spectra(records), _ways(records, "cyclic spectrum", "n")
    series: Series = {}
    for way in ("published, grid", "published, streamed"):
        if way in found:
            coefficients, powers = found[way][0], ORDERS[way]
            sizes = np.geomspace(min(measured[way])[0], max(measured[way])[0], 50)
            seconds = sum(c * sizes**p for c, p in zip(coefficients, powers, strict=True))
            series[f"{way}, fitted: {formula(coefficients, powers)}"] = [
                (*point, 0) for point in zip(sizes, seconds, strict=True)
            ]
    return series


# The article's names are in brackets: cache is the segment sort, restrict the read-only path.
_AS_PUBLISHED = {
    "both": "segment sort and read-only path (cache && restrict on)",
    "read-only path": "read-only path (cache off)",
    "segment sort": "segment sort (restrict off)",
    "plain": "neither (cache && restrict off)",
    sssp_table.HEAP: "CPU: Dijkstra by heap, one core",
}
_AGAINST_TILEPATH = {
    "plain": "sweeps in a race, neither optimization",
    "both": "sweeps in a race, both optimizations",
    "plain, atomic": "sweeps by atomicMin, neither",
    "both, atomic": "sweeps by atomicMin, both",
    sssp_table.OURS: f"tilepath: {sssp_table.OURS}",
    sssp_table.HEAP: _AS_PUBLISHED[sssp_table.HEAP],
}


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
        *("distinct", "Distinct values of 0..999", "elements", "seconds", _distinct, _PUBLISHED_DISTINCT),
        **{"ours": ("distinct",), "x_log": True},
    ),
    "looksay": Chart(
        "sequences",
        _LOOK_AND_SAY,
        "steps",
        "milliseconds",
        lambda r: _ways(r, "look-and-say", "steps", ("alone",), 1e3),
        ours=("look-and-say",),
    ),
    "looksay-fast": Chart(
        *("sequences", f"{_LOOK_AND_SAY}, all on the device", "steps", "milliseconds"),
        lambda r: _ways(r, "look-and-say", "steps", _SLOW, 1e3),
        ours=("look-and-say",),
        y_log=False,
    ),
    "cyc": Chart(
        *("sequences", "Cyclic spectra", "masses", "seconds"),
        lambda r: _ways(r, "cyclic spectrum", "n"),
        ours=("cyclic_spectrum",),
        fits=_fits,
    ),
    "cyc-nonlog": Chart(
        *("sequences", "Cyclic spectra, without the O(n^3) ways", "masses", "seconds"),
        lambda r: _ways(r, "cyclic spectrum", "n", ("brute", "grid", "counts")),
        ours=("cyclic_spectrum",),
        y_log=False,
    ),
    "fw-time": Chart(
        *("fw-table", "Floyd-Warshall by generations", "vertices", "seconds"),
        lambda r: _floyd_warshall(r, False),
        _published_floyd_warshall(False),
        x_log=True,
        apart=True,
    ),
    "fw-rate": Chart(
        *("fw-table", "Floyd-Warshall by generations", "vertices", "tasks per second"),
        lambda r: _floyd_warshall(r, True),
        _published_floyd_warshall(True),
        x_log=True,
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
        *("sssp-table", "Sweeps and tilepath's search, R-MAT, float64", "vertices", "million arcs per second"),
        **{"series": lambda r: _rates(r, _AGAINST_TILEPATH), "x_log": True, "bars": _DEVIATION},
    ),
}
CHARTS = {name: functools.partial(chart.draw, name) for name, chart in _CHARTS.items()}
SUITE_OF = {name: chart.suite for name, chart in _CHARTS.items()}

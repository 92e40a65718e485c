"""The chart of Euler circuits: seconds over vertices and the published times, from the records of the suite `euler`."""

from __future__ import annotations

from collections.abc import Sequence
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
from benchmarks.suites.euler import DEEP, MILLION, SERIES_K

Points = list[tuple[float, float]]
# The published deep graph: most arcs out of a vertex; number of vertices, in units of 2^20.
DEEP_K, PUBLISHED_AT = 7, 10


def draw(results: Sequence[Path], out: Path | None = None) -> Path:
    """Draw seconds over vertices of deep graphs of k = 5, with the published times of a graph of k = 7 and our times.

    A deep graph has at most k arcs out of a vertex.

    `benchmarks.line_chart.Chart.draw` describes the parameters. Each file becomes a line for every method it timed.
    """
    figure, axes = new_figure()
    from matplotlib.ticker import MultipleLocator

    drawn = False
    colours: dict[str, str] = {}
    ends: list[tuple[str, float, float, str]] = []
    for result in results:
        device, records = read_records(result)
        for what in ("in all", "Hierholzer, one core"):
            points = _series(records, what, SERIES_K)
            drawn = drawn or bool(points)
            # Also draw our times of the published graph: some devices have no other times of a method.
            alike = [point for point in _series(records, what, DEEP_K) if point[0] == PUBLISHED_AT]
            name = f"{device}: {what}" if what == "in all" or not _on_gpu(records) else f"host of {device}: {what}"
            color = colour_of(what, colours, True)
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=color)
                ends.append((name, *points[-1], color))
            if alike:
                axes.plot(*zip(*alike, strict=True), "D", color=color, markerfacecolor="none")
                ends.append((f"{name}, k = {DEEP_K}", *alike[-1], color))
    if not drawn:
        raise nothing_to_draw(f"the series k = {SERIES_K}", results, "euler --only series")
    for name, seconds, marker in (("GPU", DEEP.total, "s"), ("CPU, Hierholzer", DEEP.hierholzer, "^")):
        label = f"published 2016: {name}, {seconds:.1f} s, k = {DEEP_K}"
        axes.plot([PUBLISHED_AT], [seconds], marker, color=OTHERS[1], markerfacecolor="none")
        ends.append((label, PUBLISHED_AT, seconds, OTHERS[1]))
    axes.set(xlabel="vertices, in units of 2²⁰", ylabel="seconds", yscale="log")
    axes.set_title(f"Euler circuits of deep graphs, up to k = {SERIES_K} arcs out of a vertex", fontsize=10, loc="left")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MultipleLocator(5))
    axes.grid(which="major", alpha=0.3)
    figure.set_size_inches(9, 4.8)
    name_ends(axes, ends)
    return saved(figure, out or GALLERY / "eulergpu.svg")


def _series(records: list[dict[str, Any]], what: str, k: int) -> Points:
    """Return vertices, in units of 2^20, and median seconds of the deep graphs of k, sorted by size."""
    return sorted(
        (record["sizes"]["n"] / MILLION, record["seconds"]["median"])
        for record in records
        if record["case"].startswith("deep, ") and record["case"].endswith(f", k = {k}: {what}")
    )


def _on_gpu(records: list[dict[str, Any]]) -> bool:
    """Return whether the records are of a GPU. Only these have its clock."""
    return any("sm_clock_mhz" in record for record in records)

"""The chart of best matching units: bars of the article's workload by device, from the records of the suite `som`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.chart_style import GALLERY, OTHERS, OURS, new_figure, nothing_to_draw, read_records, saved

UNITS = "40000 units"
WAYS = ("serial loop", "article, ", "matrix product")


def draw(results: Sequence[Path], out: Path | None = None) -> Path:
    """Draw a bar for each method: microseconds for each sample. Bars are grouped by device, the best first.

    `benchmarks.line_chart.Chart.draw` describes the parameters.
    """
    figure, axes = new_figure()
    groups: dict[str, list[tuple[float, str]]] = {}
    for result in results:
        device, records = read_records(result)
        for record in records:
            way, _, rest = record["case"].rpartition(f", {UNITS}")[0].rpartition(", ")
            if record["case"].startswith(WAYS) and rest.endswith(" x 12"):
                samples = int(rest.split(" x ")[0])
                way = (
                    way.removeprefix("article, ") if "minima" in way else way.replace("article", "best_matching_units")
                )
                host = "host of " if "one core" in way and "sm_clock_mhz" in record else ""
                groups.setdefault(host + device, []).append((record["seconds"]["median"] / samples * 1e6, way))
    if not groups:
        raise nothing_to_draw("bmu", results, "som")
    place = 0.0  # from the top downwards
    ticks = []
    for device, bars in sorted(groups.items(), key=lambda group: min(group[1])):
        axes.text(0, place, device, transform=axes.get_yaxis_transform(), va="bottom", fontsize=8, fontweight="bold")
        for value, way in sorted(bars):
            place -= 1
            axes.barh(place, value, color=OURS[0] if way.startswith("best_matching_units") else OTHERS[4])
            axes.text(value, place, f" {value:,.0f}" if value >= 1000 else f" {value:.3g}", va="center", fontsize=7)
            ticks.append((place, way))
        place -= 1.6
    figure.set_size_inches(7.2, 1 + 0.26 * -place)
    axes.set_yticks([at for at, _ in ticks], [way for _, way in ticks], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.2)
    axes.set_ylim(place + 0.8, 0.9)
    axes.set(xscale="log", xlabel="microseconds a sample, lower is better")
    axes.set_title("Best matching units, 12 dimensions, 40,000 units", fontsize=10, loc="left")
    return saved(figure, out or GALLERY / "bmu.svg")

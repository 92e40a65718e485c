"""The chart of best matching units: bars of the article's workload, from the records of the suite `som`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.charts import GALLERY, _figure, _read

UNITS = "40000 units"
WAYS = ("serial loop", "article, ", "matrix product", "thread per unit", "shared-memory minima")


def draw(results: Sequence[Path], out: Path | None = None) -> Path:
    """Draw a bar for each method: microseconds for each sample.

    Parameters
    ----------
    results : files of the suite `som`, one a device
    out : path of the image; default docs/gallery/bmu.svg

    Returns
    -------
    Path
        The path of the image.

    Raises
    ------
    ImportError
        Matplotlib is missing.
    ValueError
        A file is not a file of results, or no file has the workload of the article.
    """
    figure, axes, settings = _figure()
    bars: list[tuple[str, float]] = []
    for result in results:
        device, records = _read(result)
        for record in records:
            way, _, rest = record["case"].rpartition(f", {UNITS}")[0].rpartition(", ")
            if record["case"].startswith(WAYS) and rest.endswith(" x 12"):
                samples = int(rest.split(" x ")[0])
                way = (
                    way.removeprefix("article, ") if "minima" in way else way.replace("article", "best_matching_units")
                )
                host = "host of " if "one core" in way and "sm_clock_mhz" in record else ""
                bars.append((f"{way}\n{host}{device}", record["seconds"]["median"] / samples * 1e6))
    if not bars:
        raise ValueError(
            f"{', '.join(map(str, results)) or 'benchmarks/results'}: nothing to draw for bmu; run scripts/bench.py som"
        )
    bars.sort(key=lambda bar: -bar[1])
    figure.set_size_inches(7.2, 1 + 0.45 * len(bars))
    axes.barh([label for label, _ in bars], [value for _, value in bars], color="#2b6cb0")
    for place, (_, value) in enumerate(bars):
        axes.text(value, place, f" {value:,.0f}" if value >= 1000 else f" {value:.3g}", va="center", fontsize=7)
    axes.tick_params(axis="y", labelsize=7)
    axes.margins(x=0.2)
    axes.set(xscale="log", xlabel="microseconds a sample", title="Best matching units, 12 dimensions, 40,000 units")
    out = GALLERY / "bmu.svg" if out is None else out
    out.parent.mkdir(parents=True, exist_ok=True)
    with settings({"svg.hashsalt": "tilepath"}):
        figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)
    return out

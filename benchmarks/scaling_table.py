"""The tables of docs/scaling.md: what the model of `pipelines.apsp.scaling` says, and what the suite measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT
from pipelines.apsp.layout import make_layout
from pipelines.apsp.scaling import stage_seconds

PAGE = ROOT / "docs" / "scaling.md"
RATE = 16.9e12  # relaxations/s of one H100, float32: n = 65,536 in benchmarks/results/scaling-h100-80gb-hbm3.json
SIZES = (8192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576, 4_194_304)
GPUS = (2, 4, 8, 64, 1024)


def draw(results: list[Path], out: Path | None) -> Path:
    """Put both tables in their places in the page."""
    page = out or PAGE
    text = (page if page.exists() else PAGE).read_text()
    text = filled(text, "model", model())
    if results:
        text = filled(text, "measured", measured(results))
    page.write_text(text)
    return page


def filled(text: str, name: str, table: str) -> str:
    """`text` with `table` between the comments of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{PAGE} has no place for the table {name!r}; put {begin.strip()} and {end} there")
    return before + begin + table + end + after


def seconds(n: int, gpus: int) -> float:
    """Seconds of all stages by the model."""
    layout = make_layout(n, gpus, 4)
    return len(layout.blocks()) * stage_seconds(layout, 4, RATE)


def model() -> str:
    """How many times as fast as one GPU, or where one cannot hold the matrix, as n^3 at its rate."""
    lines = [
        "| n | one GPU | " + " | ".join(f"{gpus:,} GPUs" for gpus in GPUS) + " | panel | bytes a GPU holds, at 1,024 |",
        "|---:|" + "---:|" * (len(GPUS) + 3),
    ]
    for n in SIZES:
        alone = seconds(n, 1)
        cells = [f"{alone / seconds(n, gpus):,.1f}" for gpus in GPUS]
        panel = 4 * make_layout(n, 1, 4).block * n
        held = 4 * n * n / 1024 + 4 * panel  # its rows; one slot, two buffers, one packed
        lines.append(f"| {n:,} | {_time(alone)} | {' | '.join(cells)} | {_bytes(panel)} | {_bytes(held)} |")
    return "\n".join(lines) + "\n"


def measured(results: list[Path]) -> str:
    """Runs of the suite, each beside the model."""
    lines = [
        "| device | n | dtype | GPUs | arithmetic | speed-up | model | store to store | pivot rows |",
        "|---|---:|---|---:|---:|---:|---:|---:|---|",
    ]
    for path in results:
        found = json.loads(path.read_text())
        for record in found["records"]:
            if "speedup" in record:  # None: one worker cannot hold the matrix
                lines.append(_row(found["device"], record))
    return "\n".join(lines) + "\n"


def _row(device: str, record: dict[str, Any]) -> str:
    n, gpus = record["sizes"]["n"], record["sizes"]["workers"]
    speedup = "" if record["speedup"] is None else f"{record['speedup']:.2f}"
    return (
        f"| {device} | {n:,} | {record['case'].split(', ')[2]} | {gpus} | {record['seconds']['median']:.3f} s "
        f"| {speedup} | {seconds(n, 1) / seconds(n, gpus):.2f} | {record['whole_seconds']:.2f} s "
        f"| {record['exchange']} |"
    )


def _time(value: float) -> str:
    return f"{value:.2f} s" if value < 100 else f"{value / 3600:,.1f} h" if value > 3600 else f"{value:,.0f} s"


def _bytes(value: float) -> str:
    return f"{value / 1e9:,.2f} GB" if value < 1e10 else f"{value / 1e9:,.0f} GB"

"""The tables of docs/scaling.md: predictions of `pipelines.apsp.in_memory.plan`, and measured values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipelines.apsp.in_memory import plan as scaling
from pipelines.apsp.in_memory.plan import arithmetic_seconds
from pipelines.apsp.layout import make_layout

Records = list[dict[str, Any]]  # each with its device and its file
TIMES = ("CLOSE", "SIGNAL", "HOP", "GAP")  # constants that are times
RATE = 16.9e12  # relaxations/s of one H100, float32: n = 65,536 in scaling-h100-80gb-hbm3-by-dask.json
SIZES = (8192, 16_384, 32_768, 65_536, 131_072, 262_144, 1_048_576, 4_194_304)
GPUS = (2, 4, 8, 64, 1024)


def seconds(n: int, gpus: int) -> float:
    """Return the seconds of all stages that the model predicts."""
    return arithmetic_seconds(make_layout(n, gpus, 4), 4, RATE)


def model(_: Records) -> str:
    """Return a table of the seconds of one GPU, and of the speed-ups of several GPUs, by the model.

    If one GPU cannot hold the matrix, its seconds count n^3 relaxations at its rate.
    """
    lines = [
        "| n | one GPU | " + " | ".join(f"{gpus:,} GPUs" for gpus in GPUS) + " | panel | bytes a GPU holds, at 1,024 |",
        "|---:|" + "---:|" * (len(GPUS) + 3),
    ]
    for n in SIZES:
        alone = seconds(n, 1)
        cells = [f"{alone / seconds(n, gpus):,.1f}" for gpus in GPUS]
        panel = 4 * make_layout(n, 1, 4).block * n
        held = 4 * n * n / 1024 + 4 * panel  # the GPU's rows; four panels: one slot, two buffers, one packed panel
        lines.append(f"| {n:,} | {_time(alone)} | {' | '.join(cells)} | {_bytes(panel)} | {_bytes(held)} |")
    return "\n".join(lines) + "\n"


def constants(records: Records) -> str:
    """Return a table of the constants of the model and their measured values."""
    given = {
        "R": f"{RATE / 1e12:.1f}e12",
        "PULL": f"{scaling.PULL / 1e9:.0f}e9",
        **{name: _short(getattr(scaling, name)) for name in TIMES},
        "DASK": f"{scaling.DASK / 1e9:.2g}e9",
    }
    what = {
        "R": "relaxations per second of a GPU, float32",
        "PULL": "bytes per second between GPUs",
        "CLOSE": "for each row of a block that is closed",
        "SIGNAL": "from the writing of a panel to its pull by another worker",
        "HOP": "from the end of a task to the start of a task on another worker that waits for it",
        "GAP": "the same on one worker; a GPU computes meanwhile",
        "DASK": "bytes per second through Dask and host memory",
    }
    found: dict[str, dict[str, list[float]]] = {name: {} for name in given}
    for record in records:
        for name, size, value in _constant(record):
            found[name].setdefault(size, []).append(value)
    lines = ["| constant | value | measured | what |", "|---|---:|---|---|"]
    for name, value in given.items():
        seen = "; ".join(size + _range(values, name) for size, values in found[name].items())
        lines.append(f"| {name} | {value} | {seen or 'not yet'} | {what[name]} |")
    return "\n".join(lines) + "\n"


def _constant(record: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Return the constant that a record measured: its name, the case, and the value."""
    case, median = record["case"], record["seconds"]["median"]
    if found := re.fullmatch(r"all pairs, n = (\d+), float32, workers 1", case):
        if "speedup" in record and int(found[1]) >= 65_536:
            yield "R", f"n = {int(found[1]):,}: ", record["relaxations_per_second"]
    elif found := re.fullmatch(r"pull of (\d+) MiB", case):
        yield "PULL", f"{int(found[1]):,} MiB: ", record["bytes_per_second"]
    elif found := re.fullmatch(r"closing a block of (\d+)", case):
        yield "CLOSE", f"{int(found[1]):,} rows: ", median / int(found[1])
    elif found := re.fullmatch(r"(\d+) MiB through Dask", case):
        yield "DASK", f"{int(found[1]):,} MiB: ", record["bytes_per_second"]
    elif case.startswith(("signal: ", "hop: ", "gap: ")):
        yield case.split(":")[0].upper(), "", median


def _range(values: list[float], name: str) -> str:
    if name in TIMES:
        low, high, unit = _short(min(values)), _short(max(values)), ""
    else:
        power = 12 if name == "R" else 9
        low, high, unit = (*(f"{value / 10**power:.3g}" for value in (min(values), max(values))), f"e{power}")
    return low + unit if low == high else f"{low} to {high}{unit}"


def _short(value: float) -> str:
    return f"{value * 1e3:.2g} ms" if value > 1e-4 else f"{value * 1e6:.2g} us"


def measured(records: Records) -> str:
    """Return a table of the runs of the suite `scaling`, a row for each. Of equal cases it has the fastest."""
    rows: dict[tuple[str, str, int, int], tuple[float, str]] = {}
    for record in records:
        sizes = record.get("sizes", {})
        n, gpus = sizes.get("n"), sizes.get("workers")
        if "speedup" in record:  # None: one worker cannot hold the matrix
            dtype = record["case"].split(", ")[2]
            times, model = record["speedup"], seconds(n, 1) / seconds(n, gpus)
        elif share := record.get("share_of_directed"):
            dtype, times, model = "int32, undirected", 1 / share, 2.0
        else:
            continue
        taken, whole, written = record["seconds"]["median"], record["whole_seconds"], record["rows_written"]
        compared = f"{times:.2f} | {model:.2f}" if times not in (None, 1) else " | "
        cells = f"{taken:#.3g} s | {whole:#.3g} s | {written:,} | {compared} | {_coordination(record)}"
        run = (_name(record["device"]), dtype, n, gpus)
        rows[run] = min(rows.get(run, (taken, cells)), (taken, cells))
    lines = [
        "| device | dtype | n | GPUs | stages | store to store | rows | speed-up | model | executor |",
        "|---|---|" + "---:|" * 7 + "---|",
    ]
    for (device, dtype, n, gpus), (_, cells) in sorted(rows.items()):
        lines.append(f"| {device} | {dtype} | {n:,} | {gpus} | {cells} |")
    return "\n".join(lines) + "\n"


def _coordination(record: dict[str, Any]) -> str:
    """Return who coordinated a run. Older records say so only if the stages went through Dask."""
    if record["sizes"]["workers"] == 1:
        return ""
    if "coordination" in record:
        return str(record["coordination"] or "chosen")
    return "scheduler" if "Dask" in record["exchange"] else "signals"


def _name(device: str) -> str:
    """Return the name of a device without its maker and its memory."""
    return device.removeprefix("NVIDIA ").removesuffix(" 80GB HBM3")


def epochs(records: Records) -> str:
    """Return a table of epochs on several workers, compared with one worker of the same file."""
    lines = ["| device | what | GPUs | seconds | speed-up | store to store |", "|---|---|---:|---:|---:|---:|"]
    alone: dict[tuple[str, str], float] = {}
    several: list[tuple[str, str, dict[str, Any]]] = []
    for record in records:
        if found := re.fullmatch(r"(.*), workers (\d+)", record["case"]):
            if found[2] == "1":
                alone[record["file"], found[1]] = record["seconds"]["median"]
            else:
                several.append((found[1], found[2], record))
    for case, gpus, record in several:
        if one := alone.get((record["file"], case)):
            seconds, whole = record["seconds"]["median"], record["whole_seconds"]
            total = f"{whole['median']:.2f} s, {whole['epochs']} epochs"
            speedup = f"{one / seconds:.2f}"
            lines.append(f"| {_name(record['device'])} | {case} | {gpus} | {seconds:.3f} s | {speedup} | {total} |")
    return "\n".join(lines) + "\n"


def _time(value: float) -> str:
    if value > 100 * 3600:
        return f"{value / 86400:.0f} days"
    return f"{value:.2f} s" if value < 100 else f"{value / 3600:.0f} h" if value > 3600 else f"{value:,.0f} s"


def _bytes(value: float) -> str:
    return f"{value / 1e9:,.2f} GB" if value < 1e10 else f"{value / 1e9:,.0f} GB"

"""The suite `som-commands`: cells of a cytometer from FCS files to clusters, each step a command of tilepath.

The steps are those of FlowSOM: import the files with a transform, train a map of 10 x 10 units by ten epochs, find the
unit of each cell, merge the units by average linkage, and write the cluster of each cell to a table. As the radius of
FlowSOM falls to 0, the radius of the map falls to 0.5. The cells are a mixture of 15 populations of equal size
(`PointCloud`, blobs of 30 markers, seed 1). The files are written before the first step: the hyperbolic sine of each
value, which the transform undoes. The steps are first run on a few cells, which compiles.

With `--flowsom`, FlowSOM finds the clusters of the same cells instead, in memory and without reading files. FlowSOM
(``pip install flowsom``) has many requirements, so it belongs into an environment of its own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.commands import TILEPATH, measured
from benchmarks.harness import Bench, taken
from pipelines import PointCloud

CONVENTION = (
    "wall seconds of a command, one run, the start of Python and of the workers included; cpu_seconds of all its "
    "processes; peak_bytes: the most memory of all its processes, shared memory once, and of a GPU the memory in use, "
    "sampled; files in the page cache. FlowSOM: one call, compiled, of cells in memory, and the memory of its process"
)
AS_FLOWSOM = "train, map and clusters"  # the steps that FlowSOM takes
SIDE, EPOCHS, MARKERS, POPULATIONS, COFACTOR = 10, 10, 30, 15, 5
FEW, TABLE = 20_000, "cells.parquet"
IN_FILE = 1_000_000  # most cells of a file
DRAWN = 200_000  # cells that are drawn at a time
JUDGED = 1_000_000  # cells whose clusters are compared with their populations


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cells", type=int, default=10_000_000, help="default: 10,000,000")
    parser.add_argument("--folder", type=Path, help="where the files and stores are for the time of the run")
    parser.add_argument("--flowsom", action="store_true", help="clusters of the same cells by FlowSOM")
    parser.set_defaults(repeats=1)


def run(bench: Bench, args: argparse.Namespace) -> None:
    cells = PointCloud(kind="blobs", n=args.cells, d=MARKERS, clusters=POPULATIONS, seed=1)
    if args.flowsom:
        _by_flowsom(bench, cells)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as temporary:
        _by_commands(bench, cells, Path(temporary))


def _by_commands(bench: Bench, cells: PointCloud, folder: Path) -> None:
    few = folder / "few"
    few.mkdir()
    for command in _steps(replace(cells, n=FEW), few, bench.gpu).values():
        measured(command, bench.gpu)
    taken = {step: measured(command, bench.gpu) for step, command in _steps(cells, folder, bench.gpu).items()}
    names = parquet.read_table(folder / TABLE, columns=["cluster"]).column(0).to_numpy()
    assert len(names) == cells.n, "the table lacks cells"
    judged = adjusted_rand_index(cells, names)
    after_import = _together([taken[step] for step in ("train", "map", "clusters")])
    sums = {AS_FLOWSOM: after_import, "all steps": _together([taken["import"], after_import])}
    for step, facts in (taken | sums).items():
        _record(bench, cells, f"{step}: tilepath", facts, judged)


def _together(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the facts of several steps: the sums of seconds, and the highest peaks of memory."""
    return {key: (sum if "seconds" in key else max)(step.get(key, 0) for step in steps) for key in steps[-1]}


def _steps(cells: PointCloud, folder: Path, gpu: bool) -> dict[str, list[Any]]:
    """Write the files of the cells, and return the command of each step."""
    files = write_files(cells, folder)
    samples, book, units = (folder / name for name in ("samples.zarr", "map.zarr", "units.zarr"))
    device = ["--device", "gpu" if gpu else "cpu"]
    sides = ["--rows", SIDE, "--columns", SIDE, "--epochs", EPOCHS, "--sigma-end", "0.5"]
    found = ["--mapping", units, "--clusters", POPULATIONS, "--linkage", "average"]
    steps: dict[str, list[Any]] = {
        "import": ["import", *files, samples, "--transform", f"*=arcsinh:{COFACTOR}"],
        "train": ["train", samples, book, *sides, *device],
        "map": ["map", book, samples, units, *device],
        "clusters": ["cluster", book, folder / TABLE, *found],
    }
    return {step: [*TILEPATH, "som", *command] for step, command in steps.items()}


def _by_flowsom(bench: Bench, cells: PointCloud) -> None:
    from flowsom.models import FlowSOMEstimator

    values = np.concatenate([values for _, values in _drawn(cells)])
    small = values[:1000].astype(np.float64)
    options: dict[str, Any] = {"xdim": SIDE, "ydim": SIDE, "rlen": EPOCHS, "n_clusters": POPULATIONS, "seed": 0}
    FlowSOMEstimator(**options).fit_predict(small)  # compiles
    names, seconds, cpu_seconds = taken(lambda: FlowSOMEstimator(**options).fit_predict(values))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    facts = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak}
    program = f"FlowSOM {importlib.metadata.version('flowsom')}"
    _record(bench, cells, f"{AS_FLOWSOM}: {program}", facts, adjusted_rand_index(cells, names))


def _record(bench: Bench, cells: PointCloud, case: str, facts: dict[str, Any], judged: float) -> None:
    seconds, others = facts["seconds"], {key: value for key, value in facts.items() if key != "seconds"}
    bench.record(
        f"{cells.n:,} x {cells.d} cells, {SIDE} x {SIDE} units, {EPOCHS} epochs, {case}",
        [seconds],
        work=(cells.n, "cells"),
        verified=f"the adjusted Rand index of the clusters and the populations of {min(JUDGED, cells.n):,} cells",
        sizes={"samples": cells.n, "dimensions": cells.d, "units": SIDE**2, "passes": EPOCHS},
        adjusted_rand_index=judged,
        **others,
    )


def adjusted_rand_index(cells: PointCloud, names: np.ndarray) -> float:
    """Return the agreement of clusters and populations: 1 is perfect, 0 is chance."""
    from sklearn.metrics import adjusted_rand_score

    _, labels = cells.points(0, min(JUDGED, cells.n))
    return float(adjusted_rand_score(labels, names[: len(labels)]))


def _drawn(cells: PointCloud) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of the first cell and the values, float32, of `DRAWN` cells at a time."""
    for first in range(0, cells.n, DRAWN):
        yield first, cells.points(first, min(first + DRAWN, cells.n))[0].astype(np.float32)


def write_files(cells: PointCloud, folder: Path) -> list[Path]:
    """Write the cells to FCS files of at most `IN_FILE` cells each, as a cytometer would, and return their paths."""
    files = []
    for first, values in _drawn(cells):
        if first % IN_FILE == 0:
            files.append(folder / f"sample-{len(files):03}.fcs")
            files[-1].write_bytes(fcs_header(min(IN_FILE, cells.n - first), cells.d))
        with files[-1].open("ab") as file:
            file.write((COFACTOR * np.sinh(values)).astype("<f4").data)
    return files


def fcs_header(cells: int, markers: int) -> bytes:
    """Return all that precedes the values, float32, in a file of FCS 3.1."""
    texts = {"MODE": "L", "DATATYPE": "F", "BYTEORD": "1,2,3,4", "PAR": markers, "TOT": cells, "NEXTDATA": 0}
    texts |= dict.fromkeys(("BEGINANALYSIS", "ENDANALYSIS", "BEGINSTEXT", "ENDSTEXT"), 0)
    for marker in range(1, markers + 1):
        channel = {"N": f"M{marker}", "S": f"marker {marker}", "B": 32, "E": "0,0", "R": 262144}
        texts |= {f"P{marker}{key}": value for key, value in channel.items()}
    begin = 4096 + 256 * markers  # the text is shorter, and blanks follow it
    end = begin + 4 * markers * cells - 1
    texts |= {"BEGINDATA": begin, "ENDDATA": end}
    text = "/" + "".join(f"${key}/{value}/" for key, value in texts.items())
    data = (begin, end) if end < 10**8 else (0, 0)  # a greater place has no room, and stands in the text alone
    header = "FCS3.1    " + "".join(f"{place:>8}" for place in (58, 57 + len(text), *data, 0, 0))
    return (header + text).ljust(begin).encode()

"""The suite `preparation`: the town of the tutorial and a larger one, from a GeoPackage to what answers questions.

tilepath imports the layer and makes its hierarchy; OSMnx makes its graph, and pandana its network and the ranges of its
sums. The programs run by turns. The distances from one crossing to all others are compared with SciPy's. The command
`tilepath hierarchy` is also timed on an empty cache of compiled code and again, with the start of Python.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from benchmarks.commands import TILEPATH, measured
from benchmarks.harness import ROOT, Bench, scipy_matrix, taken
from clusters import start
from pipelines import build_hierarchy, import_graph, open_graph
from pipelines.stores.graph import Graph

CONVENTION = (
    "seconds: wall time of one call in Python, after a first call; cpu_seconds: median of the seconds in which a core "
    "worked for the program, which depends less on other programs of the machine"
)
TOWNS = {"town": (3000, 2500.0), "larger": (16_000, 5774.0)}  # crossings, and radius in metres: equally dense
WITHIN = 180.0  # seconds, as in the sum of docs/coming-from/osmnx-pandana.md
MIDDLE = 13.38, 52.515
ROUNDING = 1e-3  # relative; pandana cuts the seconds of each arc to thousandths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=TOWNS, action="append", help="default: both towns")
    parser.add_argument("--peers", metavar="PYTHON", help="the Python of an environment with pandana and OSMnx")


def run(bench: Bench, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, start(device="cpu", workers=1) as client:
        for name in args.only or TOWNS:
            town = Path(folder) / name
            town.mkdir()
            crossings, radius = TOWNS[name]
            runpy.run_path(str(ROOT / "docs/tutorials/town.py"))["main"](town, crossings, radius)
            _prepare(bench, client, town, args.peers)
            if name == "town":
                _compile(bench, town)


def _prepare(bench: Bench, client: Any, town: Path, peers: str | None) -> None:
    """Time all programs by turns; the first turn warms up."""
    layer, answers = town / "town.gpkg", town / "answers.json"
    times: dict[str, list[tuple[float, float]]] = {}
    for turn in range(1 + bench.repeats):
        found: dict[str, Any] = {}
        graph, *found["import"] = taken(
            lambda: import_graph(layer, town / "town.zarr", weight="seconds", unit="s", overwrite=True)
        )
        store, *found["hierarchy"] = taken(
            lambda graph=graph: build_hierarchy(client, graph, town / "hierarchy.zarr", overwrite=True, progress=False)
        )
        total = _checked_sum(graph, store.row(_middle(graph)))
        if peers is not None:
            script = ROOT / "benchmarks" / "preparation_peers.py"
            subprocess.run([peers, script, layer, str(WITHIN), answers], check=True, stdout=subprocess.DEVNULL)
            told = json.loads(answers.read_text())
            found |= told["seconds"]
            assert told["sizes"] == [graph.n, graph.m], (told["sizes"], graph.n, graph.m)
            for name, theirs in told["sums"].items():
                assert abs(theirs - total) <= ROUNDING * total, f"{name}: {theirs} instead of {total}"
        for case, seconds in found.items() if turn else ():
            times.setdefault(case, []).append(tuple(seconds))
    for case, seconds in times.items():
        wall, cpu = ([each[k] for each in seconds] for k in (0, 1))
        bench.record(
            f"{graph.n} vertices, {case}",
            wall,
            work=(graph.n, "vertices"),
            cpu_seconds=statistics.median(cpu),
            verified="distances from one vertex to all, by SciPy's Dijkstra",
            sizes={"n": graph.n, "m": graph.m},
        )


def _compile(bench: Bench, town: Path) -> None:
    """Time the command that makes a hierarchy, at its first call on this machine and at the second one."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(town / "cache")}
    made = [*TILEPATH, "hierarchy", town / "town.zarr"]
    n = open_graph(town / "town.zarr").n
    for call in ("first", "second"):
        facts = measured([*made, town / f"{call}.zarr", "--verify"], env=environment)
        bench.record(
            f"{n} vertices, tilepath hierarchy --verify, {call} call",
            [facts["seconds"]],
            work=(n, "vertices"),
            cpu_seconds=facts["cpu_seconds"],
            verified="sampled rows proved by certificates",
            sizes={"n": n},
        )


def _middle(graph: Graph) -> int:
    where = graph.coordinates()
    assert where is not None
    return int(np.abs(where - MIDDLE).sum(axis=1).argmin())


def _checked_sum(graph: Graph, row: np.ndarray) -> float:
    """Return the sum of the distances from the middle, after a comparison with SciPy's Dijkstra."""
    np.testing.assert_allclose(row, dijkstra(scipy_matrix(graph), indices=_middle(graph)), rtol=1e-5)
    return float(row[np.isfinite(row)].sum(dtype=np.float64))

"""The suite `hierarchy-commands`: a road network from a file to tables of distances, each step a command of tilepath.

The steps are: import the arcs (CSV) and the coordinates (Parquet), make the hierarchy and prove sampled rows, compute
one row to all vertices, write a table from 10,000 places to 10,000 places, and reduce a table on 1 and on 4 workers.
Places have coordinates and are snapped. The peak of memory is that of all processes of a command together, and memory
that processes share counts once. Rows of the table are compared with searches of the graph.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.commands import TILEPATH, measured
from benchmarks.harness import Bench
from benchmarks.suites.hierarchy import NETWORKS
from pipelines import generate

CONVENTION = (
    "wall seconds of a command, one run, the start of Python included; cpu_seconds and peak_bytes of all its processes"
)
PLACES, COMPARED = 10_000, 3
ROW = "import sys; from pipelines import open_hierarchy; open_hierarchy(sys.argv[1]).row(0)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=NETWORKS, action="append", help="default: the roads of 24 million vertices")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4], help="numbers of workers; default 1 4")
    parser.add_argument("--folder", type=Path, help="keep files and stores here; steps whose store exists are left out")


def run(bench: Bench, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.only or ["road-4900-0.95", "road-4900-0.7"]:
            folder = (args.folder or Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            Commands(bench, name, folder).run(args.workers)


class Commands:
    """The commands of one network, and its files in `folder`."""

    def __init__(self, bench: Bench, name: str, folder: Path):
        self.bench, self.name, self.folder = bench, name, folder
        self.graph, self.hierarchy = folder / "graph.zarr", folder / "hierarchy.zarr"

    def run(self, workers: list[int]) -> None:
        places = self._write_places()
        if not self.graph.exists():
            arcs, nodes = self._write_arcs()
            coordinates = ["--vertices", str(NETWORKS[self.name].n), "--coordinates", nodes]
            self.measure("import", [*TILEPATH, "import", arcs, self.graph, *coordinates], "arcs of the generator")
            arcs.unlink()
        if not self.hierarchy.exists():
            made = [*TILEPATH, "hierarchy", self.graph, self.hierarchy, "--verify"]
            self.measure("hierarchy --verify", made, "sampled rows proven by certificates")
        self.measure("one row", [sys.executable, "-c", ROW, self.hierarchy], "rows proven by hierarchy --verify")
        self._table(places)
        for count in workers:
            reduced = ["--reduce", "count", "--within", "1000", "--workers", str(count), "--processes", "--overwrite"]
            self.measure(
                f"od --reduce, workers {count}", self._od(self.hierarchy, "reduced.csv", places, *reduced), "see od"
            )

    def _table(self, places: Path) -> None:
        table = self._od(self.hierarchy, "table.npy", places, "--overwrite")
        facts = measured(table)
        few = self.folder / "few.parquet"
        parquet.write_table(parquet.read_table(places).slice(0, COMPARED), few)
        measured([*self._od(self.graph, "few.npy", few, "--overwrite"), "--destinations", places])
        found, searched = (np.load(self.folder / file, mmap_mode="r") for file in ("table.npy", "few.npy"))
        assert np.array_equal(found[:COMPARED], searched), "the table is wrong"
        self.record(f"od {PLACES:,} x {PLACES:,}", facts, f"{COMPARED} rows equal searches of the graph")

    def measure(self, case: str, command: list, verified: str) -> None:
        self.record(case, measured(command), verified)

    def record(self, case: str, facts: dict[str, Any], verified: str) -> None:
        seconds, n = [facts.pop("seconds")], NETWORKS[self.name].n
        case = f"{self.name}: {case}"
        self.bench.record(case, seconds, work=(n, "vertices"), verified=verified, sizes={"n": n}, **facts)

    def _od(self, store: Path, out: str, origins: Path, *options: str) -> list:
        return [*TILEPATH, "od", store, self.folder / out, "--origins", origins, *options]

    def _write_places(self) -> Path:
        """Write random places on the map, whose blocks have the length 1."""
        network, path, rng = NETWORKS[self.name], self.folder / "places.parquet", np.random.default_rng(1)
        x, y = rng.random((2, PLACES)) * [[network.columns - 1], [network.rows - 1]]
        parquet.write_table(pa.table({"x": x, "y": y}), path)
        return path

    def _write_arcs(self) -> tuple[Path, Path]:
        graph = generate(NETWORKS[self.name], self.folder / "made.zarr", progress=False)
        indptr, heads, weights = graph.rows()
        tails = np.repeat(np.arange(graph.n, dtype=np.int32), np.diff(indptr))
        arcs, nodes = self.folder / "arcs.csv", self.folder / "nodes.parquet"
        csv.write_csv(pa.table({"source": tails, "target": heads, "weight": weights}), arcs)
        x, y = np.asarray(graph.coordinates()).T
        parquet.write_table(pa.table({"node": np.arange(graph.n), "x": x, "y": y}), nodes)
        return arcs, nodes

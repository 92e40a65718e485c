"""The suite `large-tables`: tables of the sizes at which users of r5py, OSRM and Valhalla report trouble.

Issues of these tools state the sizes: r5py 358 (a car's 2,300 x 2,800 table did not end overnight), OSRM 2956 (1,000 x
1,000 took 3 s) and Valhalla 2604 (3,855 x 3,855 took 10 minutes, and 12,425 x 12,425 was stopped after 4.5 hours). The
networks of the issues are not at hand: the suite generates a road network, of SIDE x SIDE crossings with a tenth of the
streets missing. A table is a data frame of `tilepath.od`, the largest one the matrix of `tilepath.distances_between`.
Some rows are compared with SciPy's Dijkstra.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import Bench, scipy_matrix
from clusters import start
from pipelines import build_hierarchy, distances_between, generate, od, positions
from pipelines.generators import Road

CONVENTION = "seconds of the call in Python, for a hierarchy that is open; hierarchy: seconds to make its store"
SIDE, MISSING, COMPARED = 500, 0.1, 5
SIZES = {"OSRM 2956": (1000, 1000), "r5py 358": (2300, 2800), "Valhalla 2604": (3855, 3855)}
LARGEST = {"Valhalla 2604": (12425, 12425)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--side", type=int, default=SIDE, help=f"of the road network; default {SIDE}")


def run(bench: Bench, args: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory() as folder:
        graph = generate(Road(args.side, missing=MISSING, seed=2), Path(folder) / "road.zarr", progress=False)
        matrix = scipy_matrix(graph)
        made: list[Any] = []
        with start(device="cpu", workers=1) as client:
            path = Path(folder) / "hierarchy.zarr"
            seconds = bench.seconds(lambda: made.append(build_hierarchy(client, graph, path, progress=False)))
        sizes = {"n": graph.n, "m": graph.m}
        work = graph.n, "vertices"
        bench.record("hierarchy", [seconds], work=work, verified="by the tables below", sizes=sizes)
        (store,), rng = made, np.random.default_rng(4)
        for kind, cases in (("table", SIZES), ("matrix", LARGEST)):
            for issue, (rows, columns) in cases.items():
                ends = rng.integers(0, graph.n, rows), rng.integers(0, graph.n, columns)
                origins, destinations = map(positions, ends)

                def ask(kind: str = kind, origins: Any = origins, destinations: Any = destinations) -> np.ndarray:
                    if kind == "matrix":
                        return distances_between(store, origins, destinations)
                    return od(store, origins, destinations, progress=False)["distance"].to_numpy()

                found = ask().reshape(rows, columns)
                expected = dijkstra(matrix, indices=ends[0][:COMPARED])[:, ends[1]]
                np.testing.assert_allclose(found[:COMPARED], expected, rtol=1e-5)
                del found
                bench.time(
                    f"{kind} {rows:,} x {columns:,} ({issue})",
                    ask,
                    work=(rows * columns, "pairs"),
                    verified=f"{COMPARED} origins by SciPy's Dijkstra",
                    sizes=sizes | {"origins": rows, "destinations": columns},
                )
    return ""

"""The tables of an analyst: part of the suite `od-tables`, with pandana and OSMnx in the same run.

The code of docs/coming-from/osmnx-pandana.md runs on the town of that page, with 500 homes and 40 schools. The programs
run by turns; the first turn warms up. tilepath runs each task twice: with the path of the hierarchy, as on the page,
and with an opened hierarchy. Two tasks on generated road networks follow: a table of the size that r5py's users gave up
on, 2,300 x 2,800, and the nearest places of every vertex of a network of a million.
"""

from __future__ import annotations

import json
import runpy
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import shapely
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import ROOT, Bench, scipy_matrix
from clusters import start
from pipelines import build_hierarchy, criticality, generate, import_graph, isochrones, od, open_hierarchy, positions
from pipelines.generators import Road
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore

MIDDLE, LIMITS = (13.38, 52.515), (60, 120, 180, 240)  # the place and the seconds of the isochrones
CENTIMETRE = 1e-7  # in degrees, about
NEAR: dict[str, Any] = {"reduce": "sum:seats", "within": 180, "decay": "linear"}
LARGE, ROWS, COLUMNS = 316, 2300, 2800
LARGEST, PLACES, K = 1000, 1000, 5
ROADS, COMPARED = 20, 5


def measure(bench: Bench, folder: Path, peers: str | None) -> None:
    """Time the tables; `peers` is the Python of an environment with pandana and OSMnx."""
    Town(bench, folder).measure(peers)
    _large(bench, folder)
    _largest(bench, folder)


class Town:
    """The town, its hierarchy, and places."""

    def __init__(self, bench: Bench, folder: Path):
        self.bench, self.folder = bench, folder
        runpy.run_path(str(ROOT / "docs/tutorials/town.py"))["main"](folder)
        self.graph = import_graph(folder / "town.osm", folder / "town.zarr")
        self.path = folder / "town.hierarchy.zarr"
        with start(device="cpu", workers=1) as client:
            build_hierarchy(client, self.graph, self.path, progress=False)
        self.store = open_hierarchy(self.path)
        self.homes, self.schools = (pd.read_csv(folder / f"{name}s.csv") for name in ("home", "school"))
        self.distances = _all_distances(self.graph, None)
        self.ends = _snapped(self.store, self.homes), _snapped(self.store, self.schools)
        self.sizes = {"n": self.graph.n, "m": self.graph.m, "homes": len(self.homes), "schools": len(self.schools)}

    def measure(self, peers: str | None) -> None:
        """Time the tasks of all programs by turns, after a comparison with Dijkstra's algorithm of other programs."""
        pairs = positions(np.random.default_rng(2).integers(0, self.graph.n, (10_000, 2)))
        table = f"table {len(self.homes)} x {len(self.schools)}"
        opened = {
            f"{table} with paths": lambda: od(self.store, self.homes, self.schools, paths=True),
            "10,000 pairs row by row": lambda: od(self.store, pairs=pairs),
        }
        single = od(self.store, pairs=pairs)["travel_time"].to_numpy()
        np.testing.assert_allclose(single, self.distances[tuple(pairs.indices.T)], rtol=1e-6)
        counts = {table: 20_000, "nearest 3": 3 * self.graph.n, "sum": self.graph.n, "isochrones": len(LIMITS)}
        counts |= {case: len(run()) for case, run in opened.items()}
        turns: dict[str, Callable[[], float]] = {}
        for how, network in (("path", self.path), ("opened", self.store)):
            for case, run in self._tasks(network, table).items():
                turns[f"{case}, {how}"] = lambda run=run: self.bench.seconds(run)
        for case, run in opened.items():
            turns[f"{case}, opened"] = lambda run=run: self.bench.seconds(run)
        tasks = {"table": table, "nearest": "nearest 3", "sum": "sum"}
        with Peers(peers, self.folder) if peers else nullcontext() as others:
            for peer, task in others.cases if others else ():
                turns[f"{tasks[task]}, {peer}"] = lambda peer=peer, task=task: others.seconds(peer, task)
            taken: dict[str, list[float]] = {case: [] for case in turns}
            for turn in range(1 + self.bench.repeats):
                for case, run_once in turns.items():
                    seconds = run_once()
                    if turn:
                        taken[case].append(seconds)
        for case, each in taken.items():
            name, how = case.rsplit(", ", 1)
            ours = how in ("path", "opened")
            facts: dict[str, Any] = {} if ours else {"peer": how}
            self.bench.record(
                case,
                each,
                work=(counts[name], "rows"),
                verified="SciPy's Dijkstra from every vertex" if ours else "NetworkX's Dijkstra from every school",
                sizes=self.sizes,
                **facts,
            )
        self._criticality()

    def _tasks(self, network: Any, table: str) -> dict[str, Callable[[], Any]]:
        """Return the tasks of tilepath, after a comparison of their answers with SciPy's distances."""
        where = self.graph.coordinates()
        assert where is not None
        tasks: dict[str, Callable[[], Any]] = {
            table: lambda: od(network, self.homes, self.schools),
            "nearest 3": lambda: od(network, None, self.schools, nearest=3),
            "sum": lambda: od(network, None, self.schools, **NEAR),
            "isochrones": lambda: isochrones(network, MIDDLE, LIMITS),
        }
        found, nearest, sums, areas = (run() for run in tasks.values())
        homes, schools = self.ends
        to_schools = self.distances[:, schools]
        np.testing.assert_allclose(found["travel_time"], to_schools[homes].ravel(), rtol=1e-6)
        np.testing.assert_allclose(nearest["travel_time"], np.sort(to_schools, axis=1)[:, :3].ravel(), rtol=1e-6)
        weights = np.maximum(0, 1 - to_schools / NEAR["within"])
        np.testing.assert_allclose(sums["sum_seats"], weights @ self.schools["seats"], rtol=1e-4, atol=1e-3)
        (middle,) = _snapped(self.store, np.array([MIDDLE]))
        for limit, area in zip(areas["limit"], areas.geometry, strict=True):
            reached = self.distances[middle] <= limit * (1 - 1e-6)
            assert shapely.covers(area.buffer(CENTIMETRE), shapely.points(where[reached])).all(), limit
        return tasks

    def _criticality(self) -> None:
        tails = np.repeat(np.arange(self.graph.n), np.diff(self.graph.indptr()))
        arcs = np.random.default_rng(3).integers(0, self.graph.m, ROADS)
        roads = np.stack([tails[arcs], self.graph.indices()[arcs]], axis=1)

        def run() -> pd.DataFrame:
            return criticality(self.store, positions(roads), self.homes, self.schools, progress=False)

        found = run()
        homes, schools = self.ends
        for row in range(COMPARED):
            closed = self.graph.with_weights(closed=positions(roads[[row]]))
            growths = (_all_distances(closed, homes) - self.distances[homes])[:, schools]
            growths = growths[np.isfinite(growths) & (growths > 1e-3)]
            np.testing.assert_allclose(found["total"][row], growths.sum(), rtol=1e-3, atol=0.1)
        self.bench.time(
            f"criticality of {ROADS} roads for {len(self.homes)} x {len(self.schools)}",
            run,
            work=(ROADS, "roads"),
            verified=f"{COMPARED} roads closed in the graph, SciPy's Dijkstra",
            sizes=self.sizes,
        )


class Peers:
    """pandana and OSMnx in a process of another environment, which runs a task when it is asked to."""

    def __init__(self, python: str, folder: Path):
        command: list[str | Path] = [python, ROOT / "benchmarks" / "road_peers.py", folder]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.cases = [(peer, task) for peer, task in self._answer()]  # program with its version, and task

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def seconds(self, peer: str, task: str) -> float:
        """Let `peer` run `task` once."""
        print(json.dumps([peer, task]), file=self.process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> Any:
        """Return the next answer; pandana also prints lines of its own."""
        for line in self.process.stdout or ():
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        raise ChildProcessError("benchmarks/road_peers.py ended early")


def _network(folder: Path, name: str, side: int) -> tuple[Graph, HierarchyStore]:
    graph = generate(Road(side, missing=0.1, seed=2), folder / f"{name}.zarr", progress=False)
    with start(device="cpu", workers=1) as client:
        return graph, build_hierarchy(client, graph, folder / f"{name}.hierarchy.zarr", progress=False)


def _all_distances(graph: Graph, sources: np.ndarray | None) -> np.ndarray:
    return dijkstra(scipy_matrix(graph), indices=sources)


def _snapped(store: HierarchyStore, places: Any) -> np.ndarray:
    """Return the vertices that places are snapped to."""
    from pipelines.places.networks import open_network
    from pipelines.places.points import points_from

    network = open_network(store)
    return points_from(places, network.graph, "origin", snapping=network.snapping).vertices


def _large(bench: Bench, folder: Path) -> None:
    graph, store = _network(folder, "large", LARGE)
    rng = np.random.default_rng(4)
    origins, destinations = rng.integers(0, graph.n, ROWS), rng.integers(0, graph.n, COLUMNS)

    def run() -> np.ndarray:
        return od(store, positions(origins), positions(destinations), progress=False)["distance"].to_numpy()

    found = run().reshape(ROWS, COLUMNS)
    expected = _all_distances(graph, origins[:COMPARED])[:, destinations]
    np.testing.assert_allclose(found[:COMPARED], expected, rtol=1e-5)
    bench.time(
        f"table {ROWS:,} x {COLUMNS:,}, a generated road network of {LARGE} x {LARGE} crossings",
        run,
        work=(ROWS * COLUMNS, "rows"),
        verified=f"{COMPARED} origins by SciPy's Dijkstra",
        sizes={"n": graph.n, "m": graph.m, "origins": ROWS, "destinations": COLUMNS},
    )


def _largest(bench: Bench, folder: Path) -> None:
    graph = generate(Road(LARGEST, missing=0.1, seed=2), folder / "largest.zarr", progress=False)
    places = np.random.default_rng(5).integers(0, graph.n, PLACES)
    found: list[pd.DataFrame] = []

    def run() -> None:
        found[:] = [od(graph, None, positions(places), nearest=K, progress=False)]

    run()
    distances = found[0]["distance"].to_numpy().reshape(graph.n, K)
    some = np.linspace(0, graph.n - 1, COMPARED, dtype=int)
    expected = np.sort(_all_distances(graph, some)[:, places], axis=1)[:, :K]
    np.testing.assert_allclose(distances[some], expected, rtol=1e-5)
    seconds = [bench.seconds(run) for _ in range(min(2, bench.repeats))]
    bench.record(
        f"nearest {K} of {PLACES:,} for every vertex, a generated graph of {LARGEST:,} x {LARGEST:,} crossings",
        seconds,
        work=(graph.n, "vertices"),
        verified=f"{COMPARED} vertices by SciPy's Dijkstra",
        sizes={"n": graph.n, "m": graph.m, "places": PLACES},
    )

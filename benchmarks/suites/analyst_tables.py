"""The tables of an analyst: part of the suite `od-tables`, with pandana and OSMnx in the same run.

A city of some thousand vertices, 500 homes and 40 schools; all times are those of an opened network, places are snapped
in each call, and the first call of each case is not counted. A table of the size that r5py's users gave up on, 2,300 x
2,800, and the nearest places of every vertex of a network of a million, follow.
"""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from benchmarks.harness import ROOT, Bench
from clusters import start
from pipelines import build_hierarchy, criticality, generate, od, positions
from pipelines.generators import Road
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore

SIDE, HOMES, SCHOOLS, WITHIN = 66, 500, 40, 20.0
LARGE, ROWS, COLUMNS = 316, 2300, 2800
LARGEST, PLACES, K = 1000, 1000, 5
ROADS, COMPARED = 20, 5
PEERS_ROUNDING = 0.25  # pandana cuts the length of each arc to thousandths, and a path has some hundred arcs


def measure(bench: Bench, folder: Path, peers: str | None) -> None:
    """Time the tables; `peers` is the Python of an environment with pandana and OSMnx."""
    city = City(bench, folder)
    city.measure()
    if peers is not None:
        city.measure_peers(peers)
    _large(bench, folder)
    _largest(bench, folder)


class City:
    """The city, its hierarchy, and places."""

    def __init__(self, bench: Bench, folder: Path):
        self.bench, self.folder = bench, folder
        self.graph, self.store = _network(folder, "city", SIDE)
        rng, where = np.random.default_rng(1), self.graph.coordinates()
        assert where is not None
        self.homes, self.schools = (rng.uniform(where.min(axis=0), where.max(axis=0), (n, 2)) for n in (HOMES, SCHOOLS))
        self.seats = rng.integers(1, 100, SCHOOLS).astype(float)
        self.distances = _all_distances(self.graph, None)
        self.found: dict[str, np.ndarray] = {}

    def measure(self) -> None:
        """Time tilepath, and compare with SciPy."""
        sizes = {"n": self.graph.n, "m": self.graph.m, "homes": HOMES, "schools": SCHOOLS}
        schools = pd.DataFrame({"x": self.schools[:, 0], "y": self.schools[:, 1], "seats": self.seats})
        pairs = positions(np.random.default_rng(2).integers(0, self.graph.n, (10_000, 2)))
        every: Any = {"reduce": "sum:seats", "within": WITHIN, "decay": "linear"}
        begins, ends = _snapped(self.store, self.homes), _snapped(self.store, self.schools)
        to_schools = self.distances[:, ends]
        self.found["table"] = od(self.store, self.homes, schools)["distance"].to_numpy().reshape(HOMES, SCHOOLS)
        np.testing.assert_allclose(self.found["table"], to_schools[begins], rtol=1e-6)
        nearest = od(self.store, None, schools, nearest=3)["distance"].to_numpy().reshape(-1, 3)
        self.found["nearest"] = nearest
        np.testing.assert_allclose(nearest, np.sort(to_schools, axis=1)[:, :3], rtol=1e-6)
        weights = np.maximum(0, 1 - to_schools / WITHIN)
        self.found["aggregate"] = od(self.store, None, schools, **every)["sum_seats"].to_numpy()
        np.testing.assert_allclose(self.found["aggregate"], weights @ self.seats, rtol=1e-4)
        single = od(self.store, pairs=pairs)["distance"].to_numpy()
        np.testing.assert_allclose(single, self.distances[tuple(pairs.indices.T)], rtol=1e-6)
        scipys = {"verified": "SciPy's Dijkstra from every vertex", "sizes": sizes}
        cases = {
            f"table {HOMES} x {SCHOOLS}": lambda: od(self.store, self.homes, schools),
            f"nearest 3 of {SCHOOLS} for every vertex": lambda: od(self.store, None, schools, nearest=3),
            "sum with linear decay for every vertex": lambda: od(self.store, None, schools, **every),
            "10,000 pairs row by row": lambda: od(self.store, pairs=pairs),
            f"table {HOMES} x {SCHOOLS} with paths": lambda: od(self.store, self.homes, schools, paths=True),
        }
        counts = (HOMES * SCHOOLS, self.graph.n * 3, self.graph.n, 10_000, HOMES * SCHOOLS)
        for (case, run), rows in zip(cases.items(), counts, strict=True):
            run()
            seconds = [self.bench.seconds(run) for _ in range(self.bench.repeats)]
            self.bench.record(case, seconds, rate_of=(rows / statistics.median(seconds), "rows"), **scipys)
        self._criticality(schools, sizes)

    def _criticality(self, schools: pd.DataFrame, sizes: dict[str, int]) -> None:
        tails = np.repeat(np.arange(self.graph.n), np.diff(self.graph.indptr()))
        arcs = np.random.default_rng(3).integers(0, self.graph.m, ROADS)
        ends = np.stack([tails[arcs], self.graph.indices()[arcs]], axis=1)

        def run() -> pd.DataFrame:
            return criticality(self.store, positions(ends), self.homes, schools, progress=False)

        found = run()
        for row in range(COMPARED):
            closed = self.graph.with_weights(closed=positions(ends[[row]]))
            vertices = _snapped(self.store, self.homes), _snapped(self.store, self.schools)
            after = _all_distances(closed, vertices[0])[:, vertices[1]]
            growths = after - self.distances[np.ix_(*vertices)]
            np.testing.assert_allclose(found["total"][row], growths[growths > 1e-3].sum(), rtol=1e-3, atol=0.01)
        seconds = [self.bench.seconds(run) for _ in range(self.bench.repeats)]
        self.bench.record(
            f"criticality of {ROADS} roads for {HOMES} x {SCHOOLS}",
            seconds,
            rate_of=(ROADS / statistics.median(seconds), "roads"),
            verified=f"{COMPARED} roads closed in the graph, SciPy's Dijkstra",
            sizes=sizes,
        )

    def measure_peers(self, python: str) -> None:
        """Time pandana and OSMnx in another environment, and compare their distances with ours."""
        given, answers = self.folder / "city.npz", self.folder / "answers.npz"
        indptr, heads, weights = self.graph.rows()
        tails = np.repeat(np.arange(self.graph.n), np.diff(indptr))
        np.savez(
            given, tails=tails, heads=heads, weights=weights, coordinates=self.graph.coordinates(), homes=self.homes,
            schools=self.schools, seats=self.seats, within=WITHIN,
        )  # fmt: skip
        script = ROOT / "benchmarks" / "road_peers.py"
        subprocess.run([python, script, given, answers, str(self.bench.repeats)], check=True)
        with np.load(answers) as found:
            for name in (name for name in found.files if not name.startswith(("seconds", "versions"))):
                ours = self.found[name.split()[1]]
                theirs = found[name]
                rounding = ours.max() * 0.01 if name.endswith("aggregate") else PEERS_ROUNDING
                apart = float(np.abs(theirs - ours).max())
                assert apart <= rounding, f"{name} differs from tilepath by {apart:g}"
                seconds = found[f"seconds {name}"].tolist()
                version = next(v for v in found["versions"].tolist() if v.startswith(name.split()[0]))
                self.bench.record(
                    f"{version}: {name.split()[1]}",
                    seconds,
                    rate_of=(ours.size / statistics.median(seconds), "rows"),
                    verified=f"within {rounding:.2g} of tilepath",
                    sizes={"n": self.graph.n, "m": self.graph.m, "homes": HOMES, "schools": SCHOOLS},
                    peer=version,
                )


def _network(folder: Path, name: str, side: int) -> tuple[Graph, HierarchyStore]:
    graph = generate(Road(side, missing=0.1, seed=2), folder / f"{name}.zarr", progress=False)
    with start(device="cpu", workers=1) as client:
        return graph, build_hierarchy(client, graph, folder / f"{name}.hierarchy.zarr", progress=False)


def _all_distances(graph: Graph, sources: np.ndarray | None) -> np.ndarray:
    indptr, heads, weights = graph.rows()
    return dijkstra(csr_array((weights.astype(float), heads, indptr), shape=(graph.n, graph.n)), indices=sources)


def _snapped(store: HierarchyStore, places: np.ndarray) -> np.ndarray:
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
    seconds = [bench.seconds(run) for _ in range(bench.repeats)]
    bench.record(
        f"table {ROWS} x {COLUMNS}",
        seconds,
        rate_of=(ROWS * COLUMNS / statistics.median(seconds), "rows"),
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
        f"nearest {K} of {PLACES} for every vertex, from the graph",
        seconds,
        rate_of=(graph.n / statistics.median(seconds), "vertices"),
        verified=f"{COMPARED} vertices by SciPy's Dijkstra",
        sizes={"n": graph.n, "m": graph.m, "places": PLACES},
    )

"""The suite `euler`: Euler circuits, stage by stage and in all, compared with the published times.

Deep graphs have few circuits before they are joined, shallow graphs have very many. Both kinds are from the article
(2016) and made by `pipelines.generators`. In bidirected graphs, each arc has an arc back; they split into circuits of
all lengths. The published times are times of the article's stages, all on a GPU except the partition. The article's
circuit graph includes the spanning tree, and its last stage is the swaps: it does not put the walk in order. The time
to make a graph is recorded too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from gpuops import (
    circuit_graph,
    cycle_labels,
    euler_circuit,
    join_circuits,
    pair_arcs,
    spanning_links,
    verify_circuit,
    walk_circuits,
)
from pipelines.generators import EulerGraph, ShallowEulerGraph, UniformRandom, csr

CONVENTION = (
    "arcs per second of wall time, device synchronized, graph resident in CSR. In all: from CSR to the arcs in walking "
    "order, with the checks of its arguments. The certificate accepted the result in the same run"
)
SEED = 1
GROUPS = ("deep", "shallow", "series", "large", "bidirected")
MILLION = 1 << 20
SERIES_K = 5


@dataclass(frozen=True)
class Published:
    """Published seconds: pairs, partition, circuit graph with spanning tree, swaps; their total; generator; CPU."""

    pair: float
    label: float
    circuit_graph: float
    join: float
    total: float
    generate: float | None = None
    hierholzer: float | None = None


DEEP = Published(3.215, 6.448, 31.466, 0.219, 41.347, generate=19.752, hierholzer=62.902)
SHALLOW = Published(0.348, 168.366, 34.163, 0.171, 203.051)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=GROUPS, action="append")
    parser.add_argument("--full", action="store_true", help="the published sizes without a GPU too, not a sixteenth")


def run(bench: Bench, args: argparse.Namespace) -> None:
    groups = args.only or [group for group in GROUPS if bench.gpu or args.full or group != "large"]
    full = bench.gpu or args.full
    share = 1 if full else 16
    if "deep" in groups:
        deep(bench, 10 * MILLION // share, 7, DEEP if full else None).all_and_stages()
    if "shallow" in groups:
        begin = time.perf_counter()
        made = ShallowEulerGraph(MILLION // share, 3 * MILLION // share, seed=SEED)
        indptr, indices, _ = csr(made)
        seconds = time.perf_counter() - begin
        tails = np.repeat(np.arange(made.n), np.diff(indptr))
        for order, heads in (("random", indices), ("sorted", indices[np.lexsort((indices, tails))])):
            case = Case(bench, f"shallow, {made.n:,}, rows {order}", indptr, heads, seconds)
            case.published = SHALLOW if full and order == "random" else None
            case.all_and_stages()
    if "series" in groups:
        for millions in (1, 5, 10, 15, 20):
            case = deep(bench, millions * MILLION // share, SERIES_K)
            case.all()
            if bench.gpu:
                case.hierholzer()  # the published chart also has the times of a CPU
    if "large" in groups:
        deep(bench, 75_000_000, 7).all_and_stages()
    if "bidirected" in groups:
        n = 4 * MILLION // share
        made = UniformRandom(n, edge_factor=4, seed=SEED)
        Case(bench, f"bidirected, {n:,}", *csr(made)[:2]).all_and_stages()
        Case(bench, f"undirected, {n:,}", *_without_odd_degrees(*csr(made)[:2]), directed=False).all()
        Case(bench, f"star, {n:,} leaves", *_star(n)).all_and_stages()
        Case(bench, f"ring, {n:,}", *_ring(n)).all_and_stages()


def deep(bench: Bench, n: int, k: int, published: Published | None = None) -> Case:
    begin = time.perf_counter()
    made = EulerGraph(n, k, seed=SEED)
    indptr, indices = made.rows
    return Case(bench, f"deep, {n:,}, k = {k}", indptr, indices, time.perf_counter() - begin, published)


@dataclass
class Case:
    """A graph in host memory, which is copied to the device when its circuits are computed."""

    bench: Bench
    name: str
    indptr: np.ndarray
    indices: np.ndarray
    generate_seconds: float | None = None
    published: Published | None = None
    directed: bool = True
    facts: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.facts = {"sizes": {"n": len(self.indptr) - 1, "arcs": len(self.indices)}}
        if self.generate_seconds is not None:
            self.facts["generate_seconds"] = self.generate_seconds
        if self.published is not None:
            self.facts["published_generate_seconds"] = self.published.generate

    def all(self) -> None:
        """Time all stages together, and Hierholzer's algorithm if there is no GPU or there are published times."""
        graph = self._on_device()
        found = euler_circuit(*graph, directed=self.directed)
        verify_circuit(*graph, *found, directed=self.directed)
        self.facts["components"] = len(found.offsets) - 1
        if self.directed:
            labels = cycle_labels(pair_arcs(*graph))
            self.facts["circuits_before"] = int((labels == self.bench.xp.arange(len(labels))).sum())
            del labels
        del found
        self._time("in all", lambda: euler_circuit(*graph, directed=self.directed), "total")
        if not self.bench.gpu or self.published is not None:
            self.hierholzer()

    def hierholzer(self) -> None:
        def walk() -> Any:
            return euler_circuit(self.indptr, self.indices, method="hierholzer", directed=self.directed)

        verify_circuit(self.indptr, self.indices, *walk(), directed=self.directed)
        self._time("Hierholzer, one core", walk, "hierholzer")

    def all_and_stages(self) -> None:
        self.all()
        graph = self._on_device()
        indptr = graph[0]
        predecessors = pair_arcs(*graph)
        labels = cycle_labels(predecessors)
        forest = spanning_links(indptr, labels)
        joined = join_circuits(predecessors, forest.slots)
        components = forest.components[labels]
        starts = forest.starts
        verify_circuit(*graph, *walk_circuits(joined, components, starts))
        self._time("1 pair arcs", lambda: pair_arcs(*graph), "pair")
        self._time("2 label circuits", lambda: cycle_labels(predecessors), "label")
        self._time("3 circuit graph (not needed)", lambda: circuit_graph(indptr, labels))
        self._time("4 spanning forest", lambda: spanning_links(indptr, labels), "circuit_graph")
        self._time("5 join", lambda: join_circuits(predecessors, forest.slots), "join")
        self._time("6 walk in order", lambda: walk_circuits(joined, components, starts))

    def _time(self, what: str, run: Callable[[], Any], published: str | None = None) -> None:
        beside = None if self.published is None or published is None else getattr(self.published, published)
        self.bench.time(
            f"{self.name}: {what}",
            run,
            verified="certificate: every arc once, in a closed walk a component",
            work=(len(self.indices), "arcs"),
            **({} if beside is None else {"published_seconds": beside}),
            **self.facts,
        )

    def _on_device(self) -> tuple[Any, Any]:
        return self.bench.xp.asarray(self.indptr), self.bench.xp.asarray(self.indices)


def _without_odd_degrees(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an undirected graph with additional edges between pairs of its vertices of odd degree."""
    n = len(indptr) - 1
    odd = np.flatnonzero(np.diff(indptr) % 2)
    tails = np.concatenate([np.repeat(np.arange(n), np.diff(indptr)), odd])
    heads = np.concatenate([indices, odd.reshape(-1, 2)[:, ::-1].ravel()])
    return _csr(n, tails, heads)


def _star(leaves: int) -> tuple[np.ndarray, np.ndarray]:
    """Return arcs from a hub to each leaf and back, which form one circuit for each leaf."""
    hub, others = np.zeros(leaves, np.int64), np.arange(1, leaves + 1)
    return _csr(leaves + 1, np.concatenate([hub, others]), np.concatenate([others, hub]))


def _ring(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return arcs to both neighbours on a ring of randomly numbered vertices, which form two or a few circuits."""
    vertices = np.random.default_rng(SEED).permutation(n)
    return _csr(n, np.concatenate([vertices, np.roll(vertices, -1)]), np.concatenate([np.roll(vertices, -1), vertices]))


def _csr(n: int, tails: np.ndarray, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return indptr, heads[np.argsort(tails, kind="stable")].astype(np.int32)

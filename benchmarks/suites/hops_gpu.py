"""The suite `hops-gpu`: distances by numbers of arcs and betweenness on a GPU, compared with the CPU half to the bit.

The graphs are an undirected R-MAT graph with 16 edges for each vertex, a random graph as in the suite `hops`, and a
road network whose streets have lengths. They lie in the memory of the GPU before the clock starts, the R-MAT graph with
its transpose, which is the same graph.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import gpuops
from benchmarks.harness import Bench
from gpuops.rmat import rmat_rows
from pipelines.generators import Grid, RMat, UniformRandom, csr

CONVENTION = (
    "wall seconds of one call until the device is done, graph and results in its memory; `arcs` is sources times arcs. "
    "Betweenness: the pass over the arcs on the host that drops loops and parallel arcs is included"
)
SEED = 1
COMPARED = 64  # sources of rows that are compared with the CPU half
CASES = ("rmat", "random", "road")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--scale", type=int, default=20, help="of R-MAT")
    parser.add_argument("--sources", type=int, nargs="+", default=[1, 32, 1024], help="of distances")
    parser.add_argument("--vertices", type=int, default=10_000, help="of the random graph, with 4 edges each")
    parser.add_argument("--side", type=int, default=340, help="of the road network")
    parser.add_argument("--samples", type=int, default=1024, help="sources of its betweenness")


def run(bench: Bench, args: argparse.Namespace) -> None:
    cases = args.only or CASES
    if "rmat" in cases:
        _rmat(bench, RMat(args.scale, seed=SEED), args.sources)
    if "random" in cases:
        graph = csr(UniformRandom(args.vertices, edge_factor=4, seed=SEED))
        _betweenness(bench, f"random graph, {args.vertices:,} vertices", graph[:2], None, np.arange(args.vertices))
    if "road" in cases:
        *graph, weights = csr(Grid(args.side, missing=0.7, jitter=0.4, weights="lengths", dtype="float64", seed=SEED))
        sources = np.random.default_rng(SEED).permutation(args.side**2)
        name = f"road network, {args.side**2:,} vertices, by length"
        _betweenness(bench, name, tuple(graph), weights, sources[: args.samples])


def _rmat(bench: Bench, made: RMat, counts: list[int]) -> None:
    indptr, indices, _ = rmat_rows(made.drawing(), 0, made.n)
    options: dict[str, Any] = {"transposed": (indptr, indices), "check": False}
    on_host = indptr.get(), indices.get()
    roots = np.random.default_rng(SEED).permutation(np.flatnonzero(np.diff(on_host[0])))
    expected = gpuops.hop_distances(*on_host, roots[:COMPARED], check=False)
    for predecessors in False, True:
        for count in counts:
            if predecessors and count > COMPARED:
                continue
            sources, compared = roots[:count], min(count, COMPARED)

            def call(sources: np.ndarray = sources, predecessors: bool = predecessors) -> Any:
                return gpuops.hop_distances(indptr, indices, sources, predecessors=predecessors, **options)

            found = call()[0] if predecessors else call()
            np.testing.assert_array_equal(found[:compared].get(), expected[:compared])
            del found
            bench.time(
                f"R-MAT {made.scale} by hops, {count:,} sources" + ", predecessors" * predecessors,
                call,
                work=(count * len(indices), "arcs"),
                verified=f"{compared} rows equal those of the CPU",
                sizes={"n": made.n, "m": len(indices), "sources": count},
            )


def _betweenness(
    bench: Bench, name: str, rows: tuple[np.ndarray, ...], weights: np.ndarray | None, sources: np.ndarray
) -> None:
    arrays = (*rows, weights)
    on_device = [None if x is None else bench.xp.asarray(x) for x in arrays]
    part = sources[: 16 * COMPARED]
    for arcs in False, True:
        options: dict[str, Any] = {"symmetric": True, "arcs": arcs, "check": False}
        expected = gpuops.betweenness(*arrays, part, **options)
        found = gpuops.betweenness(*on_device, part, **options)
        for ours, cpus in zip(found[: 1 + arcs], expected[: 1 + arcs], strict=True):
            np.testing.assert_allclose(ours.get(), cpus, rtol=1e-12)
        same = all(
            x.get().tobytes() == y.tobytes() for x, y in zip(found[: 1 + arcs], expected[: 1 + arcs], strict=True)
        )

        def call(options: dict[str, Any] = options) -> gpuops.Betweenness:
            return gpuops.betweenness(*on_device, sources, **options)

        sizes = {"sources": len(sources), "arcs": len(rows[1]), "symmetric": True, "endpoints": False}
        gpuops.verify_betweenness(call(), **sizes)
        bench.time(
            f"betweenness, {name}" + ", of edges too" * arcs,
            call,
            work=(len(sources) * len(rows[1]), "arcs"),
            verified=f"{len(part)} sources {'have the bits of' if same else 'are close to'} the CPU's; certificate",
            sizes={"n": len(rows[0]) - 1, "m": len(rows[1]), "sources": len(sources)},
        )

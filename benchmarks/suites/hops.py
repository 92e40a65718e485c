"""The suite `hops`: betweenness, and distances by numbers of arcs, beside igraph, SciPy and NetworkX.

The graphs are random, without weights. Both libraries get the same graph, and results are compared before a record is
made. Their calls alternate, so that a busy machine slows both. igraph and NetworkX use one core.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import igraph
import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph as scipys

import gpuops
from benchmarks.harness import Bench
from tilepath import csgraph
from tilepath.networkx import backend

CONVENTION = (
    "wall seconds of one call; `arcs` is sources times arcs. csgraph: float64 output included. NetworkX: conversion of "
    "the graph and the dictionary of the result included, as NetworkX calls the backend"
)
SEED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vertices", type=int, default=10_000, help="of the graphs that igraph and SciPy get")
    parser.add_argument("--edges", type=int, default=40_000)
    parser.add_argument("--sources", type=int, default=600, help="of distances")
    parser.add_argument("--nodes", type=int, default=1000, help="of the graph that NetworkX gets")


def run(bench: Bench, args: argparse.Namespace) -> None:
    _betweenness(bench, args)
    _distances(bench, args)
    _networkx(bench, args)


def _betweenness(bench: Bench, args: argparse.Namespace) -> None:
    graph = nx.gnm_random_graph(args.vertices, args.edges, seed=SEED)
    theirs = igraph.Graph(args.vertices, list(graph.edges))
    rows = nx.to_scipy_sparse_array(graph, format="csr", weight=None)
    arrays = rows.indptr.astype(np.int64), rows.indices
    ours = gpuops.betweenness(*arrays, symmetric=True)
    gpuops.verify_betweenness(ours, sources=len(graph), arcs=rows.nnz, symmetric=True, endpoints=False)
    np.testing.assert_allclose(ours.vertices / 2, theirs.betweenness(), rtol=1e-9)
    sizes = {"n": args.vertices, "m": int(rows.nnz), "sources": args.vertices}
    calls = {"igraph": theirs.betweenness, "tilepath": lambda: gpuops.betweenness(*arrays, symmetric=True)}
    _compared(bench, "betweenness", calls, sizes, "equal to igraph's up to rounding")


def _distances(bench: Bench, args: argparse.Namespace) -> None:
    rng = np.random.default_rng(SEED)
    ends = rng.integers(0, args.vertices, (2, args.edges))
    graph = sp.csr_array((np.ones(args.edges), tuple(ends)), shape=(args.vertices, args.vertices))
    options = {"indices": rng.integers(0, args.vertices, args.sources), "unweighted": True}
    calls = {
        "SciPy": lambda: scipys.dijkstra(graph, **options),
        "tilepath": lambda: csgraph.dijkstra(graph, **options, device="cpu"),
    }
    np.testing.assert_array_equal(calls["tilepath"](), calls["SciPy"]())
    sizes = {"n": args.vertices, "m": int(graph.nnz), "sources": args.sources}
    _compared(bench, "csgraph.dijkstra, unweighted", calls, sizes, "equals SciPy's")


def _networkx(bench: Bench, args: argparse.Namespace) -> None:
    graph = nx.gnm_random_graph(args.nodes, 4 * args.nodes, seed=SEED)
    calls = {
        "NetworkX": lambda: nx.betweenness_centrality(graph),
        "tilepath": lambda: backend.betweenness_centrality(backend.convert_from_nx(graph)),
    }
    ours, theirs = calls["tilepath"](), calls["NetworkX"]()
    assert all(math.isclose(ours[node], theirs[node], rel_tol=1e-9, abs_tol=1e-15) for node in graph)
    sizes = {"n": args.nodes, "m": 8 * args.nodes, "sources": args.nodes}
    _compared(bench, "networkx.betweenness_centrality", calls, sizes, "equal to NetworkX's up to rounding")


def _compared(
    bench: Bench, case: str, calls: dict[str, Callable[[], Any]], sizes: dict[str, int], verified: str
) -> None:
    """Time both calls in turns, and record them."""
    seconds: dict[str, list[float]] = {who: [] for who in calls}
    for _ in range(bench.repeats):
        for who, call in calls.items():
            seconds[who].append(bench.seconds(call))
    for who, taken in seconds.items():
        work = sizes["sources"] * sizes["m"], "arcs"
        bench.record(f"{case}: {who}", taken, work=work, verified=verified, sizes=sizes)

"""The suite `reduction`: minima and sums found one by one and by butterfly, and Dijkstra's algorithm with each method.

"One by one" is a loop over the elements, on one core, and on a GPU also by one of its threads. The textbook's Dijkstra
settles one vertex at a time, n times: it searches all n vertices for the nearest vertex, one by one or by butterfly.
gpuops.dijkstra settles all vertices with final distances at once. On a GPU, the exchange within blocks of 256 and of
1,024 threads is also timed by itself: as published with two barriers a step, and with shuffles and one barrier. Graphs
are R-MAT, undirected, with 16 edges drawn for each vertex and weights from (0, 1].
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from benchmarks.harness import KERNELS, Bench
from gpuops import butterfly_reduction
from gpuops._cuda import Program
from gpuops.label_setting import solve
from pipelines.generators import RMat, csr

CONVENTION = (
    "elements per second of a reduction; searches per second, distances and for gpuops.dijkstra predecessors, from one "
    "source. Wall seconds with launches, device synchronized, arrays resident"
)
PROGRAM = Program(
    "textbook_dijkstra.cu", ("minimum_serial", "dijkstra_serial", "dijkstra_parallel"), threads=1024, folder=KERNELS
)
IN_BLOCKS = {
    threads: Program("block_reductions.cu", ("two_barriers", "one_barrier"), threads=threads, folder=KERNELS)
    for threads in (256, 1024)
}
SEED = 1

BY_ONE_THREAD = 20  # one thread of a GPU reduces arrays of at most 2^20 numbers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="N", help="arrays of 2^N; default 10 .. 28, CPU 10 .. 24"
    )
    parser.add_argument("--scales", type=int, nargs="+", metavar="N", help="textbook graphs of 2^N; default 10 12 13")


def run(bench: Bench, args: argparse.Namespace) -> None:
    for size in args.sizes or (range(10, 29, 3) if bench.gpu else range(10, 25, 7)):
        _time_reductions(bench, size)
        if bench.gpu:
            for threads in IN_BLOCKS:
                _time_blocks(bench, size, threads)
    textbook = args.scales or [10, 12, 13]
    for scale in sorted({*textbook, *([16, 18, 20] if bench.gpu else [16])}):
        _time_dijkstra(bench, scale, scale in textbook)


def _time_reductions(bench: Bench, size: int) -> None:
    n = 1 << size
    host = (1 - np.random.default_rng(size).random(n)).astype("float32")
    x = bench.xp.asarray(host)
    least = host.min()

    def case(title: str, run: Callable[[], Any], expected: Any, verified: str) -> None:
        assert float(run()) == expected, f"{title} of 2^{size} numbers is wrong"
        bench.time(f"{title}, 2^{size} float32", run, work=(n, "elements"), verified=verified, sizes={"n": n})

    case("minimum one by one, one core", lambda: _minimum_one_by_one(host), least, "equals NumPy's")
    if bench.gpu and size <= BY_ONE_THREAD:
        case("minimum one by one, one GPU thread", lambda: _minimum_by_one_thread(bench, x), least, "equals NumPy's")
    case("minimum by butterfly", lambda: butterfly_reduction(x, "minimum"), least, "equals NumPy's")
    case("argmin by butterfly", lambda: butterfly_reduction(x, "argmin"), host.argmin(), "equals NumPy's")
    case(f"minimum by {bench.xp.__name__}", lambda: x.min(), least, "equals NumPy's")
    total = float(butterfly_reduction(host, "sum"))
    assert abs(total / host.sum(dtype="f8") - 1) < 1e-5
    case("sum by butterfly", lambda: butterfly_reduction(x, "sum"), total, "equals the CPU half, bit for bit")


def _time_blocks(bench: Bench, size: int, threads: int) -> None:
    n = 1 << size
    host = np.random.default_rng(size).integers(0, 1000, n, np.int32)
    x, expected = bench.xp.asarray(host), bench.xp.asarray(sums_of_blocks(host, threads))
    for entry, title in ("two_barriers", "two barriers a step"), ("one_barrier", "shuffles and one barrier"):
        run = functools.partial(in_blocks, bench.xp, x, entry, threads)
        assert bool((run() == expected).all()), f"{title} is wrong for 2^{size} numbers"
        case = f"sums of blocks of {threads:,} by butterfly, {title}, 2^{size} int32"
        bench.time(case, run, work=(n, "elements"), verified="equals NumPy's", sizes={"n": n})


def in_blocks(xp: Any, x: Any, entry: str, threads: int) -> Any:
    """Return `x`, (n,) int32, CuPy, with every element replaced by the sum of its block of `threads` elements."""
    sums = xp.empty(x.shape, np.int32)
    IN_BLOCKS[threads].launch(entry, len(x) // threads, (x, sums))
    return sums


def sums_of_blocks(x: np.ndarray, threads: int) -> np.ndarray:
    """Return the same as `in_blocks` by NumPy."""
    return np.repeat(x.reshape(-1, threads).sum(axis=1, dtype=np.int32), threads)


@njit(nogil=True, cache=True)
def _minimum_one_by_one(x):
    least = x[0]
    for i in range(1, x.size):
        if x[i] < least:
            least = x[i]
    return least


def _minimum_by_one_thread(bench: Bench, x: Any) -> Any:
    result = bench.xp.empty((1,), np.float32)
    PROGRAM.launch("minimum_serial", 1, (x, np.int64(len(x)), result), threads=1)
    return result[0]


def _time_dijkstra(bench: Bench, scale: int, textbook: bool) -> None:
    made = RMat(scale, seed=SEED)
    graph = csr(made)
    source = int(np.argmax(np.diff(graph[0])))
    expected, _, settled = solve(*graph, source, "heap")
    on_device = [bench.xp.asarray(x) for x in graph]

    def case(title: str, run: Callable[[], Any], **facts: Any) -> None:
        found = run()
        assert bool((bench.xp.asarray(found) == bench.xp.asarray(expected)).all()), f"{title} at scale {scale} is wrong"
        sizes = {"n": made.n, "arcs": len(graph[1])}
        bench.time(f"{title}, {made}", run, work=(1, "searches"), verified="equals the heap", sizes=sizes, **facts)

    case("gpuops.dijkstra by heap, one core", lambda: solve(*graph, source, "heap")[0], settled=settled)
    rounds = solve(*on_device, source, "rounds")[2]
    case("gpuops.dijkstra by rounds", lambda: solve(*on_device, source, "rounds")[0], rounds=rounds)
    if textbook:
        case("textbook, minimum one by one, one core", lambda: textbook_on_cpu(graph, source, False))
        if bench.gpu:
            case(
                "textbook, minimum one by one", lambda: textbook_on_gpu(bench.xp, on_device, source, "dijkstra_serial")
            )
            case(
                "textbook, minimum by butterfly",
                lambda: textbook_on_gpu(bench.xp, on_device, source, "dijkstra_parallel"),
            )
        else:
            case("textbook, minimum by butterfly", lambda: textbook_on_cpu(graph, source, True))


def textbook_on_gpu(xp: Any, graph: Any, source: int, entry: str) -> Any:
    """Return distances computed by one block of a GPU; `graph` is in float32."""
    n = len(graph[0]) - 1
    distances, settled = xp.empty((n,), np.float32), xp.empty((n,), np.int32)
    distances[...], settled[...] = np.inf, 0
    distances[source] = 0
    PROGRAM.launch(entry, 1, (*graph, np.int32(n), distances, settled))
    return distances


def textbook_on_cpu(graph: Any, source: int, by_butterfly: bool) -> np.ndarray:
    """Return distances computed on one core, except for the minimum by butterfly."""
    indptr, indices, weights = graph
    distances = np.full(len(indptr) - 1, np.inf, weights.dtype)
    distances[source] = 0
    still_open = distances.copy()  # +inf where settled
    if not by_butterfly:
        _settle_one_by_one(indptr, indices, weights, distances, still_open)
        return distances
    while True:
        tail = int(butterfly_reduction(still_open, "argmin"))
        if still_open[tail] == np.inf:
            return distances
        _settle(indptr, indices, weights, distances, still_open, tail)


@njit(nogil=True, cache=True)
def _settle(indptr, indices, weights, distances, still_open, tail):
    still_open[tail] = np.inf
    for arc in range(indptr[tail], indptr[tail + 1]):
        head, length = indices[arc], distances[tail] + weights[arc]
        if length < distances[head]:
            distances[head] = still_open[head] = length


@njit(nogil=True, cache=True)
def _settle_one_by_one(indptr, indices, weights, distances, still_open):
    while True:
        tail = 0
        for vertex in range(1, still_open.size):
            if still_open[vertex] < still_open[tail]:
                tail = vertex
        if still_open[tail] == np.inf:
            return
        _settle(indptr, indices, weights, distances, still_open, tail)

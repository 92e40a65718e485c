#!/usr/bin/env python3
"""Launch every kernel of gpuops on the smallest inputs that reach its branches; scripts/sanitize.py runs this script.

    scripts/kernel_tour.py OPERATION [FILE]    run OPERATION, and write the kernels that it launched to FILE as JSON

CuPy's memory pool is off, so each array is a separate allocation, and compute-sanitizer sees accesses beyond its end
and reads of elements that were never written. Constants that reserve branches for large inputs (long rows, large tiles,
pivot blocks) are made small.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import gpuops
from gpuops import _cuda
from gpuops.hierarchy.totals import row_minima, row_totals
from gpuops.minplus import middle_closure, pack, relax_packed
from gpuops.minplus.super_stage import pass_rows, pass_slab
from gpuops.numbers import DISTANCE_DTYPES, infinity
from gpuops.rmat import rmat_edges, rmat_rows
from gpuops.som.grid import NEIGHBOURHOODS
from pipelines.generators import RMat

SEARCHED = ("float32", "float64", "int32")
Kernel = tuple[str, str]  # file, and name of the kernel in it


class Operation(NamedTuple):
    """`run` is called with the module cupy and launches kernels of the .cu files `files`."""

    run: Callable[[Any], None]
    files: tuple[str, ...]


OPERATIONS: dict[str, Operation] = {}


def operation(*files: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def add(run: Callable[[Any], None]) -> Callable[[Any], None]:
        OPERATIONS[run.__name__.replace("_", "-")] = Operation(run, files)
        return run

    return add


def lengths(rng: Any, shape: Any, dtype: Any, lowest: int = 0) -> np.ndarray:
    values = rng.integers(lowest, 200, shape).astype(dtype)
    values[rng.random(shape) < 0.3] = infinity(values.dtype)
    return values


def rows(n: int, tails: Any, heads: Any, *of_arcs: Any, kind: Any = np.int64, head: Any = np.int32) -> list[np.ndarray]:
    order = np.argsort(tails, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))]).astype(kind)
    return [indptr, np.asarray(heads)[order].astype(head), *(np.asarray(x)[order] for x in of_arcs)]


def random_arcs(rng: Any, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tails and heads of random arcs; a quarter of the arcs leave vertex 0."""
    tails, heads = rng.integers(0, n, m), rng.integers(0, n, m)
    tails[: m // 4] = 0
    return tails, heads


# --- All pairs ------------------------------------------------------------------------------------------------------


def multiply(xp: Any, lowest: int) -> None:
    rng = np.random.default_rng(1)
    for dtype in DISTANCE_DTYPES:
        # A product of depth above 64 fills C first and then relaxes it; a depth up to `shallow.DEPTH` goes by strips.
        for m, p, n in (1, 1, 1), (70, 8, 131), (130, 33, 257), (65, 70, 129):
            a, b, c = (xp.asarray(lengths(rng, shape, dtype, lowest)) for shape in ((m, p), (p, n), (m, n)))
            gpuops.minplus_product(a, b, nonnegative=lowest == 0)
            gpuops.minplus_update(c, a, b, nonnegative=lowest == 0)
            relax_packed(c, a, pack(b, lowest == 0, met_by=m))


@contextlib.contextmanager
def of_multiprocessors(count: int) -> Iterator[None]:
    """Plan products as for a GPU of `count` multiprocessors: with few, large tiles are used; with many, small tiles."""
    product = importlib.import_module("gpuops.minplus.product_cuda")
    with mock.patch.object(product, "multiprocessors", return_value=count):
        product._tiling.cache_clear()
        yield
    product._tiling.cache_clear()


def products(xp: Any, count: int) -> None:
    with of_multiprocessors(count):
        multiply(xp, 0)
        multiply(xp, -50)


for tiles, count in ("large", 1), ("middle", 2), ("small", 10**6):
    files = ("minplus/product.cu", "minplus/shallow.cu")
    OPERATIONS[f"products-by-{tiles}-tiles"] = Operation(functools.partial(products, count=count), files)


@operation("minplus/small_closure.cu", "minplus/lengths.cu", "minplus/product.cu")
def small_closures(xp: Any) -> None:
    rng = np.random.default_rng(2)
    for dtype in DISTANCE_DTYPES:
        for n in 1, 65, 130:
            d = xp.asarray(lengths(rng, (n, n), dtype))
            gpuops.floyd_warshall(d)
            gpuops.floyd_warshall(d, nonnegative=False)
            gpuops.floyd_warshall(d, pivots=n // 2)


@operation("minplus/middle_closure.cu", "minplus/small_closure.cu", "minplus/product.cu")
def middle_closures(xp: Any) -> None:
    """In one launch if the device has enough multiprocessors, else by stages."""
    rng = np.random.default_rng(9)
    for dtype in "float32", "int32":
        for n in 130, 400:
            for nonnegative in False, True:
                middle_closure.close(xp.asarray(lengths(rng, (n, n), dtype)), 0.0, nonnegative)


@operation("minplus/tile_closures.cu", "minplus/batched_closures.cu", "minplus/lengths.cu")
def batched_closures(xp: Any) -> None:
    rng = np.random.default_rng(3)
    for dtype in DISTANCE_DTYPES:
        for n, sizes in (30, [3, 30, 1]), (130, [1, 130, 65]):
            batch = xp.asarray(lengths(rng, (3, n, n), dtype))
            gpuops.floyd_warshall(batch)
            gpuops.floyd_warshall(batch, sizes=np.array(sizes), pivots=np.minimum(sizes, 64))


@operation("minplus/small_closure.cu", "minplus/product.cu", "minplus/lengths.cu")
def blocked_floyd_warshall(xp: Any) -> None:
    rng = np.random.default_rng(4)
    blocks = {dtype: (64,) for dtype in DISTANCE_DTYPES}
    module = importlib.import_module("gpuops.minplus.floyd_warshall")
    with mock.patch.multiple(module, _CUDA_BLOCKS=blocks, _CUDA_BATCHED=64):
        for dtype in DISTANCE_DTYPES:
            gpuops.floyd_warshall(xp.asarray(lengths(rng, (150, 150), dtype)))
            d = xp.asarray(lengths(rng, (150, 150), dtype))
            gpuops.floyd_warshall(d, out=d, nonnegative=False, pivots=100)
        gpuops.floyd_warshall(xp.asarray(lengths(rng, (2, 70, 70), "float32")), sizes=np.array([70, 66]))


@operation("minplus/small_closure.cu", "minplus/product.cu")
def super_stages(xp: Any) -> None:
    rng = np.random.default_rng(5)
    for dtype in DISTANCE_DTYPES:
        n, width = 150, 48
        d = xp.asarray(lengths(rng, (n, n), dtype))
        for start in range(0, n, width):
            stop = min(start + width, n)
            stages = [slice(i, min(i + 16, stop)) for i in range(start, stop, 16)]
            panels = pass_slab(d[start:stop], start, stages)
            for others in d[:start], d[stop:]:
                if len(others):
                    pass_rows(others, panels)


@operation("hierarchy/blocks.cu", "hierarchy/closing.cu", "hierarchy/columns.cu", "hierarchy/sweeps.cu")
def hierarchies(xp: Any) -> None:
    """A strip of a grid with small bricks, closed vertices, and origins for each way through the upper tree."""
    n, rng = 120, np.random.default_rng(8)
    tails = np.repeat(np.arange(n), 3)
    heads = np.clip(tails + np.tile([-1, 1, 10], n), 0, n - 1)
    through = rng.random(n) < 0.9
    for dtype in DISTANCE_DTYPES:
        arcs = rows(n, tails, heads, rng.integers(0, 9, 3 * n).astype(dtype))
        order = np.arange(n)
        structure, _ = gpuops.hierarchy_structure(*arcs[:2], order, through, brick=12)
        hierarchy = gpuops.close_hierarchy(structure, *arcs[:2], xp.asarray(arcs[2]))
        for count in 1, 9, 50, 600:
            gpuops.distance_block(hierarchy, rng.integers(0, n, count), order[::-1])


@operation("hierarchy/totals.cu")
def totals_of_rows(xp: Any) -> None:
    rng = np.random.default_rng(7)
    for dtype in DISTANCE_DTYPES:
        for width in 1, 255, 700:
            found, values = xp.asarray(lengths(rng, (3, width), dtype)), xp.asarray(rng.random(width))
            row_totals(found, values, 90.0)
            row_totals(found, values, 90.0, 20.0)
            row_minima(found, 90.0)


# --- Searches -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_searches() -> Iterator[None]:
    """Let small graphs reach all branches: rows of over 32 arcs are cut, piles overflow, windows and pulls occur."""
    memory, tree, batched = (
        importlib.import_module(f"gpuops.sssp.{name}") for name in ("memory_cuda", "tree_cuda", "batched_cuda")
    )
    macros: dict[Any, dict[str, Any]] = {memory: {"THIN": 256}, tree: {}, batched: {"THIN": 256, "PULL": 0.5}}
    with contextlib.ExitStack() as stack:
        for module, values in macros.items():
            programs = {key: program.variant(PIECE=32, **values) for key, program in module.PROGRAMS.items()}
            stack.enter_context(mock.patch.object(module, "PROGRAMS", programs))
        stack.enter_context(mock.patch.object(memory, "LEAST_PILE", 8))
        stack.enter_context(mock.patch.object(batched, "HUB", 3))
        yield


def searched_graph(xp: Any, dtype: str, n: int, m: int, negative: bool = False, **options: Any) -> Any:
    rng = np.random.default_rng(n)
    tails, heads = random_arcs(rng, n, m)
    potentials = rng.integers(0, 900, n) if negative else np.zeros(n, int)
    weights = (rng.integers(1, 256, m) + potentials[tails] - potentials[heads]).astype(dtype)
    return gpuops.search_graph(*map(xp.asarray, rows(n, tails, heads, weights)), **options)


def path_graph(xp: Any, n: int, dtype: str) -> Any:
    k = np.arange(n)
    arcs = rows(n, np.r_[k[:-1], k[1:]], np.r_[k[1:], k[:-1]], np.ones(2 * n - 2, dtype))
    return gpuops.search_graph(*map(xp.asarray, arcs), symmetric=True)


@operation("csr/csr.cu", "sssp/graph_layout.cu")
def layouts(xp: Any) -> None:
    for dtype in SEARCHED:
        for n, m in (1, 0), (5, 9), (300, 1500):
            searched_graph(xp, dtype, n, m)
            searched_graph(xp, dtype, n, m, negative=True, through=xp.asarray(np.arange(n) % 3 > 0), reverse=False)


@operation("csr/csr.cu", "sssp/graph_layout.cu", "sssp/search.cu")
def searches(xp: Any) -> None:
    with small_searches():
        for dtype in SEARCHED:
            for n, m in (5, 9), (300, 3000):
                graph = searched_graph(xp, dtype, n, m)
                gpuops.shortest_distances(graph, [1])
                gpuops.shortest_distances(graph, [1, 2, 3], starts=[3, 5, 9])
                gpuops.shortest_distances(graph, [0], cutoff=120.0)
                gpuops.shortest_distances(graph, [0], targets=[1, 2])
                closed = searched_graph(xp, dtype, n, m, through=xp.asarray(np.arange(n) % 3 > 0))
                gpuops.shortest_distances(closed, [0, 1])
                distances = gpuops.shortest_distances(graph, [1])[graph.order].copy()
                gpuops.improve_distances(graph, distances, xp.asarray(np.arange(n) % 2 > 0))
            gpuops.shortest_distances(path_graph(xp, 300, dtype), [3])


@operation("csr/csr.cu", "sssp/graph_layout.cu", "sssp/search.cu", "sssp/cycle.cu")
def searches_with_negative_weights(xp: Any) -> None:
    search = importlib.import_module("gpuops.sssp.search_cuda")
    with small_searches(), mock.patch.multiple(search, FIRST_LOOK=2, FIRST_LOOK_LATER=2):
        for dtype in SEARCHED:
            graph = searched_graph(xp, dtype, 300, 3000, negative=True)
            gpuops.shortest_distances(graph, [1])
            gpuops.shortest_distances(
                graph, [1, 2], starts=[3, -5]
            )  # orders the search by the distances of the search before
            cycle = rows(3, [0, 1, 2], [1, 2, 0], np.array([1, 2, -4], dtype))
            with contextlib.suppress(gpuops.NegativeCycleError):
                gpuops.shortest_distances(gpuops.search_graph(*map(xp.asarray, cycle)), [0])


@operation("csr/csr.cu", "sssp/graph_layout.cu", "sssp/search.cu", "sssp/tree.cu")
def trees(xp: Any) -> None:
    with small_searches():
        for dtype in SEARCHED:
            for graph in (
                searched_graph(xp, dtype, 300, 3000),
                searched_graph(xp, dtype, 300, 3000, negative=True, reverse=False),
                path_graph(xp, 300, dtype),
            ):
                gpuops.shortest_path_tree(graph, gpuops.shortest_distances(graph, [3, 4]), [3, 4])


@operation("csr/csr.cu", "sssp/graph_layout.cu", "sssp/search.cu", "sssp/batched.cu")
def searches_in_batches(xp: Any) -> None:
    with small_searches():
        for dtype in SEARCHED:
            for graph in searched_graph(xp, dtype, 300, 3000), path_graph(xp, 70, dtype):
                gpuops.batched_shortest_distances(graph, [1])
                gpuops.batched_shortest_distances(graph, list(range(37)))
                gpuops.batched_shortest_distances(graph, [2] * 3)


@operation("csr/csr.cu", "label_setting/dijkstra.cu")
def dijkstra_by_rounds(xp: Any) -> None:
    rng = np.random.default_rng(8)
    for dtype in SEARCHED:
        for n, m in (1, 0), (5, 9), (600, 4000):
            tails, heads = random_arcs(rng, n, m)
            arrays = rows(n, tails, heads, rng.integers(0, 200, m).astype(dtype))
            gpuops.dijkstra(*map(xp.asarray, arrays), 0)


# --- Whole graphs ---------------------------------------------------------------------------------------------------


@operation("csr/csr.cu", "graphs/components.cu", "graphs/forest.cu", "graphs/rooting.cu")
def whole_graphs(xp: Any) -> None:
    rng = np.random.default_rng(9)
    for kind in np.int32, np.int64:
        for head in np.int32, np.int64:
            for n, m in (1, 0), (5, 9), (400, 700):
                tails, heads = random_arcs(rng, n, m)
                indptr, indices, weights = map(xp.asarray, rows(n, tails, heads, np.ones(m), kind=kind, head=head))
                gpuops.degrees(indptr, indices)
                gpuops.edge_expansion(indptr, indices)
                gpuops.reverse(indptr, indices, weights)
                gpuops.weak_components(indptr, indices, compact=True)
                gpuops.spanning_forest(indptr, indices)


@operation("csr/csr.cu", "hops/hops.cu", "hops/predecessors.cu")
def distances_by_hops(xp: Any) -> None:
    hops = importlib.import_module("gpuops.hops.hops_cuda")
    rng = np.random.default_rng(17)
    small = {dtype: program.variant(PIECE=16) for dtype, program in hops.PROGRAMS.items()}
    with mock.patch.object(hops, "PROGRAMS", small):
        for n, m in (1, 0), (90, 700), (400, 300):
            indptr, indices = map(xp.asarray, rows(n, *random_arcs(rng, n, m)))
            through = xp.asarray(rng.random(n) < 0.9)
            for dtype in "int32", "float64":
                for sources in 1, 70, 1030:
                    options = {"dtype": dtype, "through": through, "predecessors": sources < 100}
                    gpuops.hop_distances(indptr, indices, rng.integers(0, n, sources), **options)


@operation("csr/csr.cu", "centrality/dependencies.cu")
def betweenness_sums(xp: Any) -> None:
    centrality = importlib.import_module("gpuops.centrality.centrality_cuda")
    rng = np.random.default_rng(18)
    with mock.patch.object(centrality, "PROGRAM", centrality.PROGRAM.variant(SHORT=4)):
        for n, m in (1, 0), (90, 500), (300, 200):
            indptr, indices, weights = map(xp.asarray, rows(n, *random_arcs(rng, n, m), rng.random(m) + 0.01))
            through = xp.asarray(rng.random(n) < 0.9)
            for lengths in None, weights:
                gpuops.betweenness(indptr, indices, lengths, range(min(n, 40)), through=through, arcs=True)
                gpuops.betweenness(indptr, indices, lengths)


@operation("csr/csr.cu", "euler/euler.cu", "euler/pairing.cu", "compaction/scan.cu")
def euler_circuits(xp: Any) -> None:
    rng = np.random.default_rng(10)
    for kind in np.int32, np.int64:
        for head in np.int32, np.int64:
            for n, size, walks in (3, 4, 2), (400, 90, 9):
                walk = [rng.integers(0, n, size) for _ in range(walks)]
                tails, heads = np.concatenate(walk), np.concatenate([np.roll(w, -1) for w in walk])
                indptr, indices = map(xp.asarray, rows(n, tails, heads, kind=kind, head=head))
                gpuops.euler_circuit(indptr, indices)


@operation("rmat/rmat.cu")
def rmat_graphs(xp: Any) -> None:
    for graph in (
        RMat(0, edge_factor=3),
        RMat(7, seed=5),
        RMat(6, dtype="float64"),
        RMat(7, weights="integers", directed=True),
        RMat(5, weights="integers", dtype="int64", scrambled=False),
    ):
        rmat_edges(graph.drawing(), 0, graph.ids)
        rmat_rows(graph.drawing(), graph.n // 3, graph.n)


# --- Arrays ---------------------------------------------------------------------------------------------------------

NUMBERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["float16", "float32", "float64"]


@operation("compaction/distinct.cu", "compaction/compaction.cu")
def distinct_values(xp: Any) -> None:
    rng = np.random.default_rng(11)
    for dtype in NUMBERS:
        for n, most in (0, 1), (1, 2), (4097, 100), (17000, 40000), (2600, 2**31):
            # Few values use a table in shared memory, more values a table in global memory, many values sorting.
            if most > 100 and np.dtype(dtype).itemsize < 4:
                continue
            x = xp.asarray(rng.integers(0, most, n).astype(dtype))
            gpuops.distinct(x)
            gpuops.distinct(x, return_counts=True)
            gpuops.distinct(x, return_counts=True, return_inverse=True)
            gpuops.distinct(x, order="first")


@operation("compaction/compaction.cu", "compaction/scan.cu")
def compaction_and_scans(xp: Any) -> None:
    rng = np.random.default_rng(12)
    for dtype in NUMBERS:
        for n in 0, 1, 255, 9000:
            x = xp.asarray(rng.integers(0, 9, n).astype(dtype))
            gpuops.compact(x, xp.asarray(rng.random(n) < 0.5))
            if dtype != "float16":
                gpuops.inclusive_scan(x)
                gpuops.exclusive_scan(x)


@operation("reduction/reduction.cu")
def reductions(xp: Any) -> None:
    rng = np.random.default_rng(13)
    for dtype in "float32", "float64", "int32", "int64":
        for operator in "sum", "minimum", "argmax", "product", "all":
            for shape in (5001,), (3, 5001), (40, 9), (2, 129):
                x = xp.asarray(rng.integers(0, 9, shape).astype(dtype))
                gpuops.butterfly_reduction(x, operator)
                gpuops.butterfly_reduction(x, operator, everywhere=True)


@operation("sequences/look_and_say.cu", "sequences/permutations.cu", "sequences/spectrum.cu")
def sequences(xp: Any) -> None:
    rng = np.random.default_rng(14)
    gpuops.look_and_say(xp.asarray(np.array([1, 1, 1, 3, 1, 2], np.uint8)), 24)
    for masses in rng.integers(1, 190, 1), rng.integers(1, 190, 90), rng.integers(1, 3, 90):
        gpuops.cyclic_spectrum(xp.asarray(masses))
        gpuops.cyclic_spectrum(xp.asarray(masses), ordered=False)
        gpuops.cyclic_spectrum_counts(xp.asarray(masses))
    for values in np.arange(6), np.array([1, 1, 2, 2, 3]), np.array([7]):
        gpuops.permutations(xp.asarray(values))


# --- Maps -----------------------------------------------------------------------------------------------------------

# Numbers of samples, units and dimensions that reach all screens. The first shape has two panels of samples.
SHAPES = [(130, 70, 3), (1, 1, 1), *((9, 65, d) for d in (7, 12, 16, 33, 60, 130))]


@operation("som/pack.cu", "som/decide.cu", "som/screen.cu", "som/screen_tensor.cu", "som/screen_wgmma.cu")
def best_matching_units(xp: Any) -> None:
    rng = np.random.default_rng(15)
    for dtype in "float32", "float64":
        for n, m, d in SHAPES:
            samples, codebook = (rng.standard_normal((k, d)).astype(dtype) for k in (n, m))
            samples[n // 2] *= 1e20  # a sample too large for the screens
            absent = samples.copy()
            absent[::3, 1:] = np.nan
            x, holes, w = map(xp.asarray, (samples, absent, codebook))
            for metric in "euclidean", "taxicab", "cosine":
                for top in range(1, min(m, 2) + 1):
                    for _ in range(2):  # from the second search on with one half product for a score
                        gpuops.best_matching_units(x, w, metric, top=top)
                    gpuops.best_matching_units(holes, w, metric, top=top, missing=True)


@operation("som/pack.cu", "som/decide.cu", "som/screen.cu", "som/screen_tensor.cu", "som/screen_wgmma.cu")
def best_matching_units_of_many(xp: Any) -> None:
    bmu = importlib.import_module("gpuops.som.bmu_cuda")
    rng = np.random.default_rng(16)
    bmu._plan.cache_clear()
    with mock.patch.object(bmu.Program, "runs_on", return_value=False):  # as on GPUs without products of warpgroups
        for _, m, d in SHAPES[2:]:
            x, w = (xp.asarray(rng.standard_normal((k, d)).astype("float32")) for k in (9, m))
            for _ in range(2):
                gpuops.best_matching_units(x, w)
    x, w = (xp.asarray(rng.standard_normal((k, 6)).astype("float32")) for k in (600, 90))
    with mock.patch.multiple(bmu, _CHUNK_BYTES=1, _SORTED_SAMPLES=1):
        bmu._plan.cache_clear()
        gpuops.best_matching_units(x[::-1], w)
        gpuops.best_matching_units(x, w, "taxicab", top=2)
    # More tiles of units than a warp handles at a time.
    gpuops.best_matching_units(*(xp.asarray(rng.standard_normal((k, 1))) for k in (3, 8300)), top=2)
    bmu._plan.cache_clear()


@operation("som/pack.cu", "som/small_map.cu")
def best_matching_units_of_small_maps(xp: Any) -> None:
    bmu, small = (importlib.import_module(f"gpuops.som.{name}") for name in ("bmu_cuda", "small_map_cuda"))
    rng = np.random.default_rng(17)
    bmu._plan.cache_clear()
    with mock.patch.multiple(small, _SAMPLES=0, CHUNK=256):
        for dtype in "float32", "float64":
            for n, m, d in (400, 130, 6), (70, 20, 17), (40, 70, 33), (40, 16, 60), (40, 1, 78):
                samples, codebook = (rng.standard_normal((k, d)).astype(dtype) for k in (n, m))
                samples[n // 2] *= 1e20  # a sample too large for halves
                samples[:9], codebook[1:12] = 1, 0.5  # several candidates
                gpuops.best_matching_units(xp.asarray(samples), xp.asarray(codebook))
    bmu._plan.cache_clear()


@operation("som/update.cu")
def learning_of_maps(xp: Any) -> None:
    rng = np.random.default_rng(17)
    for dtype in "float32", "float64":
        samples, units = rng.standard_normal((300, 5)).astype(dtype), np.sort(rng.integers(0, 24, 300, dtype=np.int32))
        holes = np.where(rng.random(samples.shape) < 0.3, np.nan, samples).astype(dtype)
        weights = xp.asarray(rng.random(300).astype(dtype))
        for x, missing in (samples, False), (holes, True):
            for weighted in None, weights:
                gpuops.unit_sums(xp.asarray(x), xp.asarray(units), 24, weighted, missing, gpuops.fixed_point(300, 8, 1))
        sums, codebook = rng.standard_normal((24, 5)), xp.asarray(rng.standard_normal((24, 5)).astype(dtype))
        for grid in gpuops.Grid(6, 4), gpuops.Grid(6, 4, toroidal=True), gpuops.Grid(6, 4, hexagonal=True):
            for kernel in NEIGHBOURHOODS:
                for counts in rng.integers(0, 5, 24), rng.integers(0, 5, (24, 5)):
                    of_units = map(xp.asarray, (sums, counts.astype(float)))
                    gpuops.smooth(*of_units, codebook, grid, 1.9, kernel)


# --- One operation in this process ------------------------------------------------------------------------------------


def record(launched: set[Kernel]) -> contextlib.AbstractContextManager[Any]:
    """Return a context manager that adds the kernels that gpuops launches to `launched`."""
    function = _cuda._function

    def noted(program: _cuda.Program, entry: str, device: int) -> Any:
        launched.add((program.file, entry))
        return function(program, entry, device)

    return mock.patch.object(_cuda, "_function", noted)


def main() -> None:
    import cupy

    name, *files = sys.argv[1:]
    cupy.cuda.set_allocator(None)
    launched: set[Kernel] = set()
    with record(launched):
        OPERATIONS[name].run(cupy)
        cupy.cuda.Device().synchronize()
    for file in files:
        Path(file).write_text(json.dumps(sorted(launched)))


if __name__ == "__main__":
    main()

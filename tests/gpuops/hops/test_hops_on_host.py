"""The kernels of gpuops/hops on a machine without a GPU: all blocks at once, threads as fibers (host_shim/).

Distances are compared with the Numba half, which test_hops.py compares with a plain search.
"""

from itertools import pairwise

import numpy as np
import pytest
from families import every_kernel, not_launched
from mutants import break_line, lines_with
from sparse_rows import rows

from gpuops import csr, hop_distances
from gpuops.hops import hops_cuda

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))]  # of threads and blocks; 0: in order


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    with pytest.MonkeyPatch.context() as patch:
        for dtype, program in hops_cuda.PROGRAMS.items():
            # Blocks so small that the grid is a crowd of them, and rows of several pieces.
            patch.setitem(hops_cuda.PROGRAMS, dtype, program.variant(threads=64, PIECE=8))
        yield host_shim


def rows_of(arcs, n):
    return rows(n, *np.array(arcs, np.int64).reshape(-1, 2).T)


def skewed(n, m, seed):
    """Some vertices with many arcs, some without any."""
    return rows_of((n * np.random.default_rng(seed).random((m, 2)) ** 3).astype(np.int64), n)


GRAPHS = {
    "no arcs": rows_of([], 3),
    "loops and parallel arcs": rows_of([(0, 0), (0, 1), (0, 1), (1, 1)], 3),
    "path": rows_of(list(pairwise(range(24))), 24),
    "ring": rows_of([(v, (v + 1) % 20) for v in range(20)], 20),
    "star outward": rows_of([(7, v) for v in range(100) if v != 7], 100),
    "star inward": rows_of([(v, 7) for v in range(100) if v != 7], 100),
    "two parts": rows_of([(0, 1), (1, 2), (3, 4)], 5),
    "skewed": skewed(150, 900, 0),
    "dense": skewed(40, 1200, 1),
}


def check(cupy, graph, sources, **options):
    """Compare distances and predecessors with the Numba half."""
    on_device = {
        name: cupy.asarray(x) if isinstance(x, np.ndarray) else x
        for name, x in {"indptr": graph[0], "indices": graph[1], **options}.items()
    }
    for predecessors in False, True:
        expected = hop_distances(*graph, sources, predecessors=predecessors, **options)
        found = hop_distances(**on_device, sources=sources, predecessors=predecessors)
        for ours, numba in zip(*((x if predecessors else [x]) for x in (found, expected)), strict=True):
            assert isinstance(ours, cupy.ndarray)
            assert (ours.dtype, ours.shape) == (numba.dtype, numba.shape)
            assert ours.get().tobytes() == numba.tobytes()


def sources_of(graph, count, seed):
    return np.random.default_rng(seed).integers(0, len(graph[0]) - 1, count)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_graphs_of_every_kind(cupy, name, seed):
    cupy.start(seed, 2)
    check(cupy, GRAPHS[name], sources_of(GRAPHS[name], 40, seed))


@pytest.mark.parametrize("sources", [0, 1, 33, 64, 1030])
def test_sources_fill_words_and_launches_and_the_last_ones_in_part(cupy, sources):
    cupy.start(1, 2)
    graph = skewed(12, 40, 2)
    check(cupy, graph, sources_of(graph, sources, 3))


@pytest.mark.parametrize(
    "options",
    [{"length": 7}, {"length": 0.1, "dtype": "float32", "limit": 0.25}, {"length": 0, "dtype": "float64"}],
)
@pytest.mark.parametrize("name", ["two parts", "dense"])
def test_lengths_limits_and_closed_vertices(cupy, name, options):
    cupy.start(2, 2)
    graph = GRAPHS[name]
    through = np.arange(len(graph[0]) - 1) % 5 != 2
    check(cupy, graph, sources_of(graph, 9, 1), through=through, **options)


def test_the_transposed_graph_may_be_given(cupy):
    cupy.start(1, 2)
    indptr, indices = map(cupy.asarray, GRAPHS["skewed"])
    expected = hop_distances(indptr, indices, range(50))
    found = hop_distances(indptr, indices, range(50), transposed=csr.transpose(indptr, indices)[:2])
    np.testing.assert_array_equal(found, expected)


def test_little_memory_makes_fewer_searches_in_a_launch(cupy, monkeypatch):
    cupy.start(1, 2)
    monkeypatch.setattr(hops_cuda, "_SHARE", 80 * 2**30 // (12 * 20 * 2))
    check(cupy, GRAPHS["ring"], np.arange(100) % 20)


def test_no_vertex(cupy):
    cupy.start(0, 2)
    check(cupy, rows_of([], 0), [])


def test_distances_beyond_int32_are_refused(cupy):
    indptr, indices = map(cupy.asarray, GRAPHS["path"])
    with pytest.raises(OverflowError, match="distances exceed int32; use float64"):
        hop_distances(indptr, indices, [0], length=2**30)


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start(0, 2)
    for dtype in hops_cuda.PROGRAMS if variants else ["int32"]:
        check(cupy, GRAPHS["two parts"], [0], dtype=dtype)
    programs = [*hops_cuda.PROGRAMS.values(), hops_cuda.PREDECESSORS]
    assert not not_launched(programs, cupy.launched, variants=variants)


FILES = "hops/hops.cu", "hops/predecessors.cu"
MUTANTS = [
    *lines_with(FILES[0], r"barrier\.wait\(\);", ""),
    *lines_with(FILES[0], r"__sync(threads|warp)\(\);", ""),
    *lines_with(FILES[0], r"atomicOr\((.+), (.+)\);", r"__stcg(\1, \2);"),
    *lines_with(FILES[1], r"if .* atomicMin\((.+), (.+)\);", r"__stcg(\1, \2);"),
    *lines_with(FILES[0], r"atomicAdd\(size, end\)", "__ldcg(size), __stcg(size, first + end)"),
    *lines_with(FILES[0], r"&& atomicExch\(.+\) != level \+ 1", ""),
    *lines_with(FILES[0], r"\+ 1\) \+ w\]", ") + w]"),
    *lines_with(FILES[0], r"__stcg\(here .+, 0u\);", ";"),
    *lines_with(FILES[0], r"__stcg\(coming .+, 0u\);", ";"),
    *lines_with(FILES[0], r" & ~__ldcg\(seen .+\) : 0;", " : 0;"),
    *lines_with(FILES[0], r"found = over_slots\(found\);", ";"),
    *lines_with(FILES[0], r"arrivals = over_slots\(arrivals\);", ";"),
    *lines_with(FILES[0], r"__stcg\(&control->levels, level \+ 1\);", "__stcg(&control->levels, level);"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "number", "pattern", "replacement"), MUTANTS)
def test_what_is_broken_is_caught(cupy, monkeypatch, file, number, pattern, replacement):
    break_line(monkeypatch, file, number, pattern, replacement)
    with pytest.raises((AssertionError, cupy.KernelError, IndexError, OverflowError, pytest.fail.Exception)):
        run_everything(cupy)


@pytest.mark.slow
def test_without_a_mutation_nothing_is_caught(cupy):
    run_everything(cupy)


def run_everything(cupy):
    for seed in 1, 2, 3:
        cupy.start(seed, 2)
        for name in "skewed", "ring", "star outward", "loops and parallel arcs":
            graph = GRAPHS[name]
            through = np.arange(len(graph[0]) - 1) % 7 != 3
            check(cupy, graph, sources_of(graph, 40, seed), through=through)
        check(cupy, GRAPHS["skewed"], sources_of(GRAPHS["skewed"], 200, seed))
        large = skewed(900, 2000, seed)  # more tiles than warps
        check(cupy, large, sources_of(large, 8, seed))
    test_distances_beyond_int32_are_refused(cupy)

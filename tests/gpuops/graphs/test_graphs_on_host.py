"""The kernels of graphs and of compressed sparse rows on a machine without a GPU: same text, fibers for threads.

Results are compared with the Numba halves, which test_graphs.py compares with others.
"""

import numpy as np
import pytest
from families import every_kernel, not_launched
from mutants import break_line, lines_with
from sparse_rows import rows

from gpuops import edge_expansion, reverse, spanning_forest, weak_components
from gpuops.csr import csr_cuda
from gpuops.graphs import components_cuda, forest_cuda

pytestmark = pytest.mark.usefixtures("cupy")

DTYPES = ["int32", "int64"]


def csr(tails, heads, n, offset="int64", vertex="int32"):
    return rows(n, tails, heads, offset=offset, vertex=vertex)


def random_graph(seed, n, m, offset="int64", vertex="int32"):
    """A few vertices with many arcs, many without any; loops and parallel arcs."""
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random((2, m)) ** 3).astype(np.int64)
    return csr(tails, heads, n, offset, vertex)


def path(n, seed=None):
    names = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    return csr(names[:-1], names[1:], n)


def star(n, inward):
    centre, leaves = np.full(n - 1, n // 2), np.delete(np.arange(n), n // 2)
    return csr(*((leaves, centre) if inward else (centre, leaves)), n)


GRAPHS = {
    "one vertex": csr([], [], 1),
    "no vertex": csr([], [], 0),
    "no arcs": csr([], [], 700),
    "one loop": csr([0], [0], 1),
    "path": path(700),
    "path backwards": csr(np.arange(1, 700), np.arange(699), 700),
    "path in any order": path(700, 1),
    "star outward": star(600, False),
    "star inward": star(600, True),
    "sparse": random_graph(0, 3000, 900),
    "dense": random_graph(1, 60, 3000),
    "grid": csr(*np.concatenate([np.array([(v, v + 1), (v, v + 25)]).T for v in range(500)], axis=1), 525),
    "one arc at the end": csr([4000], [7], 4001),
}


def assert_same(found, expected):
    for result, reference in zip(found, expected, strict=True):
        if reference is not None:
            result = result.get()
            assert (result.dtype, result.shape) == (reference.dtype, reference.shape)
            np.testing.assert_array_equal(result, reference)


def check_all(cupy, indptr, indices):
    graph, on_device = (indptr, indices), (cupy.asarray(indptr), cupy.asarray(indices))
    assert_same([edge_expansion(*on_device)], [edge_expansion(*graph)])
    assert_same([weak_components(*on_device)], [weak_components(*graph)])
    assert_same(spanning_forest(*on_device), spanning_forest(*graph))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", [0, 1])
def test_graphs_of_every_kind(cupy, name, seed):
    cupy.start(seed, 2)
    check_all(cupy, *GRAPHS[name])


@pytest.mark.parametrize("offset", DTYPES)
@pytest.mark.parametrize("vertex", DTYPES)
def test_dtypes(cupy, offset, vertex):
    cupy.start(1, 2)
    indptr, indices = random_graph(2, 400, 500, offset, vertex)
    check_all(cupy, indptr, indices)
    weights = np.arange(500) * 0.5
    on_device = [cupy.asarray(x) for x in (indptr, indices, weights)]
    assert_same(reverse(*on_device), reverse(indptr, indices, weights))


def test_numbers_of_64_bits(cupy, monkeypatch):
    """As from 2^31 arcs on."""
    cupy.start(1, 2)
    monkeypatch.setattr(forest_cuda, "_MOST_ARCS", 100)
    check_all(cupy, *random_graph(3, 300, 500))
    check_all(cupy, *random_graph(3, 300, 500, vertex="int64"))


def test_paths_take_few_rounds(cupy):
    """Launches for a path of n vertices, in the order of their numbers and in any: O(log n) of each kernel."""
    for seed in None, 5:
        counts = []
        for n in 500, 4000:
            cupy.start(0, 2)
            indptr, indices = (cupy.asarray(x) for x in path(n, seed))
            before = cupy.launches
            spanning_forest(indptr, indices)
            counts.append(cupy.launches - before)
        assert counts[1] - counts[0] < 40  # 3 doublings
        assert counts[1] < 200


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start(0, 2)
    dtypes = DTYPES if variants else ["int32"]
    for offset in dtypes:
        for vertex in dtypes:
            check_all(cupy, *random_graph(1, 90, 120, offset, vertex))
    programs = [*csr_cuda._PROGRAMS.values(), *components_cuda._PROGRAMS.values(), *forest_cuda._ROOTING.values()]
    programs += [forest_cuda._FOREST[np.dtype(vertex), np.dtype("int32")] for vertex in DTYPES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest_cuda, "_MOST_ARCS", 10)
        for vertex in dtypes:
            check_all(cupy, *random_graph(1, 90, 120, "int64", vertex))
    programs += [forest_cuda._FOREST[np.dtype(vertex), np.dtype("int64")] for vertex in DTYPES]
    assert not not_launched(programs, cupy.launched, variants=variants)


# Without a barrier append.cuh would store anywhere; unions and roots that are wrong may never end. Neither is tried.
MUTANTS = [
    *lines_with("csr/csr.cu", r"__syncthreads\(\);", ""),
    *lines_with("csr/csr.cu", r"< item - row", "<= item - row"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "number", "pattern", "replacement"), MUTANTS)
def test_what_is_broken_is_caught(cupy, monkeypatch, file, number, pattern, replacement):
    break_line(monkeypatch, file, number, pattern, replacement)
    with pytest.raises((AssertionError, cupy.KernelError, IndexError)):
        run_everything(cupy)


def test_without_a_mutation_nothing_is_caught(cupy):
    run_everything(cupy)


def run_everything(cupy):
    cupy.start(1, 2)
    indptr, indices = random_graph(1, 40_000, 20_000)
    assert_same([edge_expansion(cupy.asarray(indptr), cupy.asarray(indices))], [edge_expansion(indptr, indices)])
    for seed in 1, 2, 3:
        cupy.start(seed, 2)
        check_all(cupy, *random_graph(seed, 2000, 2500))
        check_all(cupy, *path(900, seed))

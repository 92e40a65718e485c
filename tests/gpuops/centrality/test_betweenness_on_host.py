"""The kernels of gpuops/centrality on a machine without a GPU (host_shim/), compared with the Numba half to the bit."""

import numpy as np
import pytest
from mutants import break_line, lines_with
from sparse_rows import rows_of

from gpuops import betweenness, verify_betweenness
from gpuops.centrality import GROUP, centrality_cuda

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))]  # of threads and blocks; 0: in order


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centrality_cuda, "_WIDTH", 0.5)  # many windows
        patch.setattr(centrality_cuda, "PROGRAM", centrality_cuda.PROGRAM.variant(threads=64, SHORT=4))
        yield host_shim


def skewed(n, m, seed, weight):
    rng = np.random.default_rng(seed)
    tails, heads = (n * rng.random((2, m)) ** 2).astype(int)
    return rows_of(list(zip(tails, heads, weight(rng, m), strict=True)), n)


def grid(side, weights):
    arcs = [(v, v + 1) for v in range(side * side) if (v + 1) % side]
    arcs += [(v, v + side) for v in range(side * side - side)]
    both = [(a, b, w) for (a, b), w in zip(arcs, weights(len(arcs)), strict=True)]
    return rows_of(both + [(b, a, w) for a, b, w in both], side * side)


GRAPHS = {
    "no arcs": rows_of([], 18),
    "path": rows_of([(v, v + 1, 1) for v in range(40)], 41),
    "star": rows_of([(0, v, 1) for v in range(1, 99)] + [(v, 0, 1) for v in range(1, 99)], 99),
    "few lengths": skewed(40, 220, 0, lambda rng, m: rng.integers(1, 4, m)),
    "many lengths": skewed(50, 300, 1, lambda rng, m: rng.random(m) + 0.01),
    "heavy and light": skewed(40, 200, 2, lambda rng, m: 10.0 ** rng.integers(-3, 4, m)),
    "grid": grid(7, lambda m: np.random.default_rng(3).integers(1, 3, m)),
}


def check(cupy, graph, sources=None, **options):
    indptr, indices, weights = graph
    expected = betweenness(indptr, indices, weights, sources, **options)
    on_device = {name: cupy.asarray(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    arrays = [None if x is None else cupy.asarray(x) for x in graph]
    found = betweenness(*arrays, sources, **on_device)
    assert isinstance(found.vertices, cupy.ndarray)
    assert found.vertices.get().tobytes() == expected.vertices.tobytes()
    if options.get("arcs"):
        assert found.arcs.get().tobytes() == expected.arcs.tobytes()
    assert found.pairs == expected.pairs
    assert found.inner == pytest.approx(expected.inner, rel=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_graphs_of_every_kind(cupy, name, seed):
    cupy.start(seed, 2)
    indptr, indices, weights = GRAPHS[name]
    check(cupy, (indptr, indices, weights), range(18), arcs=True, endpoints=seed == 0)
    check(cupy, (indptr, indices, None), endpoints=seed == 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_closed_vertices_parts_and_little_memory(cupy, monkeypatch, weighted):
    cupy.start(1, 2)
    indptr, indices, weights = GRAPHS["few lengths"]
    n = len(indptr) - 1
    # Memory for one block, and for the sources of two groups at a time.
    monkeypatch.setattr(centrality_cuda, "_SHARE", (80 << 30) // (2 * GROUP * (8 + 36) * n))
    monkeypatch.setattr(centrality_cuda, "_BLOCK_VERTEX", 2 * GROUP * (8 + 36))
    sources = np.random.default_rng(1).integers(0, n, 5 * GROUP + 3)
    arrays = indptr, indices, weights if weighted else None
    check(cupy, arrays, sources, through=np.arange(n) % 4 != 1, arcs=True)


def test_numbers_of_paths_far_beyond_float64(cupy):
    """Sums of large numbers of paths are added in another order than on a CPU, but always in the same."""
    arcs = [(0, 1 + v, 1) for v in range(5)]
    arcs += [(1 + 5 * i + a, 6 + 5 * i + b, 1 + i % 2) for i in range(130) for a in range(5) for b in range(5) if a + b]
    graph = rows_of(arcs, 1 + 5 * 131)
    for arrays in graph, (*graph[:2], None):
        expected, found = betweenness(*arrays, [0], arcs=True), []
        for seed in 1, 2:
            cupy.start(seed, 2)
            on_device = [None if x is None else cupy.asarray(x) for x in arrays]
            found.append(betweenness(*on_device, [0], arcs=True))
        for one, other, cpus in zip(*(each[:2] for each in (*found, expected)), strict=True):
            assert one.get().tobytes() == other.get().tobytes()
            np.testing.assert_allclose(one.get(), cpus, rtol=1e-12)
        verify_betweenness(found[0], sources=1, arcs=len(arcs), symmetric=False, endpoints=False)


def test_a_weight_that_is_lost(cupy):
    cupy.start(0, 2)
    arrays = map(cupy.asarray, (np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([1.0, 1e-20])))
    with pytest.raises(ValueError, match="the weight 1e-20 of the arc from vertex 1 to vertex 2 is lost"):
        betweenness(*arrays)


def test_no_vertex_no_arc_and_no_source(cupy):
    cupy.start(0, 2)
    for graph, sources in ((rows_of([], 0), None), (GRAPHS["no arcs"], None), (GRAPHS["path"], [])):
        check(cupy, graph, sources, arcs=True)


FILE = "centrality/dependencies.cu"
# Between two loads or stores of a thread, the host lets no other thread
# have its turn in such a launch, so an atomic operation that is replaced by a load and a store is not noticed.
MUTANTS = [
    *lines_with(FILE, r"^ +__syncthreads\(\);", ""),
    *lines_with(FILE, r"atomicAdd\(size, 1\)", "*size"),
    *lines_with(FILE, r"\|\| bits >= atomicMin\((.+?), bits\)\) return;", r"|| bits >= *(\1)) return;"),
    *lines_with(FILE, r"atomicExch\(memory.marks\(\) \+ head, round\) != round", "false"),
    *lines_with(FILE, r"atomicCAS\(memory.distances \+ head, INFINITE, next\) == INFINITE", "false"),
    *lines_with(FILE, r"atomicAdd\(pending \+ head, 1\);", ";"),
    *lines_with(FILE, r"whole\.add\(mine\.of_lane\(__ffs\(\(int\)terms\) - 1\)\)", "whole.add(mine)"),
    *lines_with(FILE, r"bits & 1; bits >>= 1", "0; bits >>= 1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "number", "pattern", "replacement"), MUTANTS)
def test_what_is_broken_is_caught(cupy, monkeypatch, file, number, pattern, replacement):
    break_line(monkeypatch, file, number, pattern, replacement)
    with pytest.raises((AssertionError, cupy.KernelError, IndexError, ValueError)):
        run_everything(cupy)


@pytest.mark.slow
def test_without_a_mutation_nothing_is_caught(cupy):
    run_everything(cupy)


def run_everything(cupy):
    for seed in 1, 2, 3:
        cupy.start(seed, 1)
        for name in "few lengths", "star", "heavy and light":
            graph = GRAPHS[name]
            check(cupy, graph, range(8), arcs=True)
            check(cupy, (*graph[:2], None), range(20), arcs=True)
        # The source has two arcs, and the vertices of the second warp have many.
        late = [(a, b, 5) for a in range(32, 64) for b in range(32, 64) if (a, b) != (60, 40)]
        check(cupy, rows_of([(0, 40, 3), (0, 60, 1), (60, 40, 2), *late], 64), [0])
    indptr, indices, _ = GRAPHS["few lengths"]
    check(cupy, (indptr, indices, None), np.arange(7 * GROUP) % 40)

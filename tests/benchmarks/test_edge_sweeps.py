"""Bellman-Ford by sweeps and the textbook's Dijkstra as benchmarks run them, on the CPU and with the host shim."""

import numpy as np
import pytest

from benchmarks.kernels import edge_sweeps as sweeps
from benchmarks.suites import reduction
from gpuops import dijkstra
from gpuops._cuda import Program
from pipelines.generators import RMat

GRAPH = RMat(8, seed=3, edge_factor=4)


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start(1)
    return host_shim


@pytest.fixture(scope="module")
def edges():
    return sweeps.rmat_edges(np, GRAPH)


@pytest.fixture(scope="module")
def expected(edges):
    """Distances from vertex 0 by another algorithm."""
    return dijkstra(*sweeps.csr_of(np, edges), int(edges.starts[0]))[0]


def on_shim(cupy, edges):
    return sweeps.Edges(edges.n, *(cupy.asarray(x) for x in (edges.starts, edges.ends, edges.weights)))


def test_every_drawn_edge_is_kept(edges):
    tails, heads, weights = GRAPH.arcs()
    drawn = zip(np.minimum(tails, heads), np.maximum(tails, heads), weights, strict=True)
    made = list(zip(edges.starts, edges.ends, edges.weights, strict=True))
    assert sorted(made) == sorted(drawn)
    assert [edge[:2] for edge in made] == sorted(edge[:2] for edge in made)
    arcs = {(a, b) for a, b in zip(tails.tolist(), heads.tolist(), strict=True) if a != b}
    assert sweeps.distinct_arcs(edges) == len(arcs | {(b, a) for a, b in arcs}) < 2 * len(made)


def test_segments(edges):
    by_segments = sweeps.sorted_by_segments(np, edges, 50)
    order = [(e // 50, s // 50, s, e) for s, e in zip(by_segments.starts, by_segments.ends, strict=True)]
    assert order == sorted(order)
    assert len(order) == len(edges.starts)


@pytest.mark.parametrize("variant", sweeps.VARIANTS, ids=lambda variant: variant.name)
def test_variants(cupy, edges, expected, variant):
    laid_out = sweeps.sorted_by_segments(np, edges, 50) if variant.segment_sort else edges
    for xp, arrays in (np, laid_out), (cupy, on_shim(cupy, laid_out)):
        distances, count = sweeps.shortest_by_sweeps(xp, arrays, int(edges.starts[0]), variant)
        np.testing.assert_array_equal(np.asarray(distances), expected)
        assert 2 < count < edges.n
    assert np.isinf(expected).any()


@pytest.mark.slow
@pytest.mark.parametrize("variant", sweeps.VARIANTS[::2], ids=lambda variant: variant.name)
def test_float64(cupy, edges, variant):
    wide = edges.of_dtype("float64")
    expected = dijkstra(*sweeps.csr_of(np, wide), int(edges.starts[0]))[0]
    for xp, arrays in (np, wide), (cupy, on_shim(cupy, wide)):
        distances, _ = sweeps.shortest_by_sweeps(xp, arrays, int(edges.starts[0]), variant)
        assert distances.dtype == np.float64
        np.testing.assert_array_equal(np.asarray(distances), expected)


def test_the_race_changes_the_number_of_sweeps(cupy, edges, expected):
    laid_out, counts = on_shim(cupy, edges), set()
    try:
        for seed in range(1, 9):
            cupy.start(seed)  # threads take turns in another order
            distances, count = sweeps.shortest_by_sweeps(cupy, laid_out, int(edges.starts[0]), sweeps.VARIANTS[0])
            np.testing.assert_array_equal(np.asarray(distances), expected)
            counts.add(count)
    finally:
        cupy.start(1)
    assert len(counts) > 1


def test_there_are_four_segments_at_least():
    for scale in 1, 8, 12, 14, 20, 24:
        lengths = sweeps.segment_lengths(1 << scale)
        assert all(1 <= length and 4 * length <= max(4, 1 << scale) for length in lengths)
    assert sweeps.segment_lengths(1 << 14) == (1 << 12,)
    assert sweeps.segment_lengths(1 << 24) == tuple(1 << p for p in range(12, 22))


def test_without_edges(cupy):
    nothing = sweeps.Edges(3, *(cupy.asarray(np.empty(0, dtype)) for dtype in ("int32", "int32", "float32")))
    distances, _ = sweeps.shortest_by_sweeps(cupy, nothing, 1, sweeps.VARIANTS[1])
    assert distances.tolist() == [np.inf, 0, np.inf]


@pytest.fixture(scope="module")
def small_graph():
    return sweeps.csr_of(np, sweeps.rmat_edges(np, RMat(5, seed=4, edge_factor=3)))


@pytest.mark.parametrize("entry", ["dijkstra_serial", "dijkstra_parallel"])
def test_the_textbook_on_a_gpu(cupy, small_graph, entry):
    distances = reduction.textbook_on_gpu(cupy, [cupy.asarray(x) for x in small_graph], 3, entry)
    np.testing.assert_array_equal(np.asarray(distances), dijkstra(*small_graph, 3)[0])


@pytest.mark.parametrize("by_butterfly", [False, True])
def test_the_textbook_on_a_cpu(small_graph, by_butterfly):
    distances = reduction.textbook_on_cpu(small_graph, 3, by_butterfly)
    np.testing.assert_array_equal(distances, dijkstra(*small_graph, 3)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("*changed = number;", ""),
        ("from_end < at_start", "false"),
        ("from_start < at_end", "false"),
    ],
)
def test_a_broken_sweep_is_caught(cupy, monkeypatch, edges, expected, text, broken):
    source = Program.source
    assert text in source(sweeps.PROGRAMS["float32"])
    monkeypatch.setattr(Program, "source", lambda program: source(program).replace(text, broken))
    cupy.start(2)  # a device on which nothing is compiled yet
    with pytest.raises(AssertionError):
        test_variants(cupy, edges, expected, sweeps.VARIANTS[1])


@pytest.mark.parametrize("threads", reduction.IN_BLOCKS)
@pytest.mark.parametrize("entry", ["two_barriers", "one_barrier"])
def test_sums_of_blocks_by_butterfly(cupy, entry, threads):
    x = np.random.default_rng(0).integers(-1000, 1000, 2048, np.int32)
    found = reduction.in_blocks(cupy, cupy.asarray(x), entry, threads)
    np.testing.assert_array_equal(np.asarray(found), reduction.sums_of_blocks(x, threads))


@pytest.mark.slow
@pytest.mark.parametrize("barrier", [0, 1, 2])
def test_a_missing_barrier_of_the_published_butterfly_is_caught(cupy, monkeypatch, barrier):
    source, wait = Program.source, "__syncthreads();"
    before, _, kernel = source(reduction.IN_BLOCKS[256]).partition("two_barriers(")
    pieces = kernel.split(wait)
    joined = pieces[barrier] + pieces[barrier + 1]
    broken = f"{before}two_barriers({wait.join([*pieces[:barrier], joined, *pieces[barrier + 2 :]])}"
    monkeypatch.setattr(Program, "source", lambda program: broken)
    cupy.start(2)
    with pytest.raises(AssertionError):
        test_sums_of_blocks_by_butterfly(cupy, "two_barriers", 256)

"""The kernels of answers from a hierarchy on the host (host_shim/): bit for bit what the CPU answers."""

import numpy as np
import pytest
from answer_cases import check, compare, grid, hubs
from families import SLOW
from mutants import break_line, lines_with
from road_graphs import hierarchy_of, made, random_graph

from gpuops import _cuda, distance_block, distance_rows
from gpuops.hierarchy import blocks_cuda
from gpuops.hierarchy.ends import starts_of
from gpuops.numbers import DISTANCE_DTYPES, infinity

FILES = "hierarchy/blocks.cu", "hierarchy/sweeps.cu"
BRICKS = 1, 12, 1024
DTYPES = [d if d == "int32" else pytest.param(d, marks=SLOW) for d in map(str, DISTANCE_DTYPES)]


@pytest.fixture(scope="module", autouse=True)
def cupy(host_shim):
    host_shim.start()
    return host_shim


def grid_hierarchy(side=20, dtype="int32", brick=40, **options):
    return hierarchy_of(made(side * side, grid(side), **options), dtype, brick=brick)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_graphs(cupy, monkeypatch, dtype, seed):
    in_order = seed // 3 % 2 == 0
    monkeypatch.setattr(blocks_cuda, "fits_windows", lambda *_: in_order)  # or columns are sorted by brick
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, closed=seed % 3 == 1, negative=seed % 4 == 2, undirected=seed % 2 == 0)
    if np.dtype(dtype).kind == "f" and not (graph.weights < 0).any():
        graph = graph._replace(weights=rng.random(len(graph.weights)))
    order = rng.permutation(graph.n) if rng.random() < 0.3 else None
    cupy.start(seed=seed, multiprocessors=1 + seed % 3)
    check(hierarchy_of(graph, dtype, brick=BRICKS[seed // 2 % 3], order=order), rng)


FAMILIES = {
    "one vertex": lambda: made(1, []),
    "no arcs": lambda: made(40, [], through=np.arange(40) % 3 > 0),
    "closed vertices only": lambda: made(9, [(v, (v + 1) % 9) for v in range(9)], through=np.zeros(9, bool)),
    "closed vertices side by side": lambda: made(400, grid(20), through=np.arange(400) % 5 > 1),
    "hubs": lambda: hubs(20, 2),
    "a wide front": lambda: made(60, np.stack(np.triu_indices(60, 1), 1)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_unusual_graphs(cupy, family, dtype):
    cupy.start(seed=1, multiprocessors=2)
    check(hierarchy_of(FAMILIES[family](), dtype, brick=12), np.random.default_rng(0))


@pytest.mark.parametrize(("dtype", "high"), [("int32", 2**26), pytest.param("int16", 2**10, marks=SLOW)])
def test_distances_that_may_not_fit_are_computed_in_float64(dtype, high):
    hierarchy = grid_hierarchy(8, dtype, high=high, brick=12)
    assert not hierarchy.fits
    rng = np.random.default_rng(0)
    check(hierarchy, rng)
    far = hierarchy_of(
        made(41, [(v, v + 1) for v in range(40)])._replace(weights=np.full(80, high // 4)), dtype, brick=4
    )
    with pytest.raises(OverflowError) as expected:
        distance_rows(far, [0])
    with pytest.raises(OverflowError) as found:
        distance_rows(far.on_gpu(), [0])
    assert str(found.value) == str(expected.value)


# --- Destinations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_of_columns(dtype, monkeypatch):
    """Small bricks, so that windows are narrow; rows of an odd length begin anywhere."""
    monkeypatch.setattr(blocks_cuda, "fits_windows", lambda *_: True)
    hierarchy, rng = grid_hierarchy(41, dtype, brick=3), np.random.default_rng(1)
    on_gpu = hierarchy.on_gpu()
    destinations = rng.integers(0, 41 * 41, 1201)
    compare(hierarchy, on_gpu, rng.integers(0, 41 * 41, 40), destinations)
    tables = blocks_cuda.tables_of(on_gpu)
    columns, of_thread = tables._destinations(destinations).direct, 4 * tables.lanes
    windows, window = len(columns.arrival), columns.window
    assert windows == -(-1201 // window) > 1
    assert window < tables.shape.threads * of_thread * 3 // 4
    front_of = np.split(columns.fronts.get(), columns.starts.get()[1:-1])
    for w, own in enumerate(columns.numbers.get().reshape(windows, -1)):
        np.testing.assert_array_equal(np.sort(own), np.arange(own.size))  # no two threads store to the same place
        count = min(window, 1201 - w * window)
        parts = np.repeat(columns.thread_part.get().reshape(windows, -1)[w], of_thread)
        for number, part in zip(own[own < count], parts[own < count], strict=True):
            place = hierarchy.structure.place[destinations[w * window + number]]
            node, bricks = hierarchy.structure.node_of[place], hierarchy.structure.bricks
            if bricks.of_node[node] < len(bricks.sizes):
                assert part == bricks.of_node[node]
            else:
                row = bricks.node_row[node] + place - hierarchy.structure.starts[node]
                assert front_of[part].tolist() == [row]


def test_destinations_are_laid_out_once(cupy):
    hierarchy, rng = grid_hierarchy(), np.random.default_rng(0)
    on_gpu = hierarchy.on_gpu()
    one, other = rng.integers(0, 400, (2, 40))

    def launches(destinations):
        before, origins = cupy.launches, rng.integers(0, 400, 30)
        found = distance_block(on_gpu, origins, destinations)
        np.testing.assert_array_equal(found.get(), distance_block(hierarchy, origins, destinations))
        return cupy.launches - before

    launches(one)
    again, anew = launches(one.copy()), launches(other)
    assert again == anew - 1 == launches(other)
    other[3] = (other[3] + 1) % 400  # the caller's array is not the one that is kept
    assert launches(other) == anew


def test_out_is_filled_where_it_lies(cupy):
    hierarchy = grid_hierarchy(dtype="float32", through=np.arange(400) % 7 > 0)
    on_gpu = hierarchy.on_gpu()
    origins, destinations = np.array([3, 7, 160, 7]), np.array([0, 12, 0, 399, 14])
    for first in range(4):
        around = cupy.zeros((6, 11), "float32")
        window = around[1:5, first : first + 5]
        assert distance_block(on_gpu, origins, destinations, out=window) is window
        expected = np.zeros((6, 11), "float32")
        expected[1:5, first : first + 5] = distance_block(hierarchy, origins, destinations)
        np.testing.assert_array_equal(around.get(), expected)
    assert distance_block(on_gpu, [], destinations).shape == (0, 5)
    assert distance_block(on_gpu, origins, []).shape == (4, 0)
    with pytest.raises(ValueError, match=r"out must be a CuPy array of float32, of shape \(4, 5\)"):
        distance_block(on_gpu, origins, destinations, out=np.zeros((4, 5), "float32"))


# --- Sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["SOURCES_BYTES", "_MOST_SOURCES"])
def test_sources_in_pieces(cupy, monkeypatch, limit):
    """More sources than blocks of a grid, or memory for the distances to the upper tree, allow."""
    hierarchy, rng = grid_hierarchy(12), np.random.default_rng(0)
    on_gpu, origins, destinations = hierarchy.on_gpu(), rng.integers(0, 144, 300), np.arange(40)

    def launches():
        before = cupy.launches
        compare(hierarchy, on_gpu, origins, destinations)
        return cupy.launches - before

    launches()
    at_once = launches()
    monkeypatch.setattr(blocks_cuda, limit, 128)
    assert launches() == 3 * at_once


def test_closed_sources_with_many_arcs_are_divided(monkeypatch):
    """In each piece, tables for all starts and columns of closed destinations fit into the stated memory."""
    hierarchy = hierarchy_of(hubs(300, 6), "int32", brick=40)
    tables = blocks_cuda.tables_of(hierarchy.on_gpu())
    structure, origins = hierarchy.structure, np.tile(np.arange(6), 40)
    monkeypatch.setattr(blocks_cuda, "SOURCES_BYTES", 2_000_000)
    most = blocks_cuda._batch_bytes(structure, np.dtype("int32"))
    pieces = list(tables._batches(hierarchy, np.arange(6, 300), origins))
    open_, closed = (next(tables._batches(hierarchy, some, np.full(900, 20))) for some in (np.arange(6, 300), None))
    assert len(closed) * hierarchy.closed.entering.starts[-1] * 4 <= most < len(open_) * 6 * 300 * 4
    assert np.sort(np.concatenate(pieces)).tolist() == list(range(240))
    for piece in pieces:
        starts = starts_of(hierarchy, structure.place[origins[piece]])
        assert len(starts.places) * tables.width * 4 <= most
    assert 1 < len(pieces) < 240


def test_no_two_starts_of_a_round_have_one_source():
    hierarchy = hierarchy_of(hubs(50, 3), "int32", brick=12)
    starts = starts_of(hierarchy, hierarchy.structure.place[[0, 20, 1, 2, 20]])
    rounds = blocks_cuda._rounds(starts)
    for each in rounds:
        assert len(np.unique(each.sources)) == len(each.sources) > 0
    found = [np.concatenate(each) for each in zip(*rounds, strict=True)]
    assert sorted(zip(*found, strict=True)) == sorted(zip(*starts, strict=True))


@pytest.mark.parametrize("dtype", ["int32", *(pytest.param(d, marks=SLOW) for d in ("float64", "int16"))])
def test_the_memory_it_takes_is_stated(cupy, monkeypatch, dtype):
    hierarchy = grid_hierarchy(30, dtype, brick=64, high=5)
    structure, on_gpu = hierarchy.structure, hierarchy.on_gpu()
    monkeypatch.setattr(blocks_cuda, "fits_windows", lambda *_: True)
    monkeypatch.setattr(blocks_cuda, "SOURCES_BYTES", 128 * blocks_cuda._source_bytes(structure, hierarchy.dtype))
    out, empty, most = cupy.empty((300, 900), dtype), cupy.empty, 0

    def allocated():
        return sum(last - first for reference, first, last in cupy._allocated if reference() is not None)

    def counted(shape, kind):
        nonlocal most
        array = empty(shape, kind)
        most = max(most, allocated())
        return array

    before = allocated()
    monkeypatch.setattr(cupy, "empty", counted)
    distance_rows(on_gpu, np.arange(300), out=out)
    taken = most - before
    stated = blocks_cuda.answering_bytes(structure, dtype)
    assert taken <= stated <= 1.3 * taken
    kept = allocated() - before
    assert kept <= stated - blocks_cuda._batch_bytes(structure, hierarchy.dtype) <= 1.1 * kept


# --- Kernels ----------------------------------------------------------------------------------------------------------


def test_every_kernel_runs_here(cupy):
    cupy.start()
    for dtype in DISTANCE_DTYPES:
        check(grid_hierarchy(5, dtype, brick=6, through=np.arange(25) != 12), np.random.default_rng(0))
    programs = [program for program in _cuda.declared() if program.file in FILES]
    declared = {(p.source(), p.options, entry) for p in programs for entry in p.entries}
    assert declared
    assert not declared - cupy.launched


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 20, 70])
def test_all_that_lies_between_the_launches_is_written(cupy, monkeypatch, count, dtype):
    """Sources that fill no warp and no row of panels."""
    cupy.start()
    launch, seen = _cuda.Program.launch, []

    def looked_at(program, entry, grid, arguments, **options):
        if entry == "arrive":
            seen.extend(arguments[name].get() for name in ("onward", "arrival"))
            assert (seen[-2][:, -1].view(dtype) == infinity(dtype)).all()  # the row after the last front
        launch(program, entry, grid, arguments, **options)

    monkeypatch.setattr(_cuda.Program, "launch", looked_at)
    hierarchy = grid_hierarchy(dtype=dtype)
    compare(hierarchy, hierarchy.on_gpu(), np.arange(count), np.arange(150))
    assert len(seen) == 4
    for words in seen:
        elements = words.view(dtype)
        assert ((elements >= 0) & (elements <= infinity(dtype))).all()


def test_sums_of_infinity_do_not_wrap():
    """Two components: every sum over the other one is twice infinity."""
    arcs = np.concatenate([grid(9), grid(9) + 81])
    for dtype in "int32", "int16":
        hierarchy = hierarchy_of(made(162, arcs, high=9), dtype, brick=12)
        found = distance_rows(hierarchy.on_gpu(), np.arange(162)).get()
        assert (found[:81, 81:] == np.iinfo(dtype).max).all()
        np.testing.assert_array_equal(found, distance_rows(hierarchy, np.arange(162)))


def answer_the_grid():
    hierarchy = grid_hierarchy(16, brick=40, undirected=False)
    rng = np.random.default_rng(0)
    for count in 1, 40:
        compare(hierarchy, hierarchy.on_gpu(), rng.integers(0, 256, count), np.arange(100))


def test_threads_do_not_race_in_shared_memory(cupy):
    cupy.start(races=True)
    answer_the_grid()


BARRIERS = lines_with("hierarchy/sweeps.cu", r"__sync\w+\(\);", "")
# Barriers that are not needed here: of a warp before a shuffle, where its threads meet anyway; and of a block around
# the barrier of all blocks, as a block has its turn until all of its threads wait.
del BARRIERS[5:7], BARRIERS[3]
MUTANTS = BARRIERS + lines_with("minplus/strip.cuh", r"__sync\w+\(\);", "")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0]}:{mutant[1]}")
def test_a_missing_barrier_is_caught(cupy, monkeypatch, mutant):
    """By wrong distances when threads and blocks take turns at random, or as a race."""
    break_line(monkeypatch, *mutant)

    def answer():
        for seed in range(3):
            cupy.start(seed=seed + 1, multiprocessors=2)
            answer_the_grid()
        cupy.start(races=True)
        answer_the_grid()

    with pytest.raises((cupy.KernelError, AssertionError)):
        answer()

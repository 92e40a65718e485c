"""The kernels of answers from a hierarchy on the host (host_shim/): bit for bit what the CPU answers."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from answer_cases import bits, check, compare, grid, hubs
from families import SLOW, every_kernel, not_launched
from mutants import break_line, lines_with
from road_graphs import as_floats, hierarchy_of, made, random_graph

from gpuops import _cuda, distance_block, distance_rows
from gpuops.hierarchy import blocks_cuda, columns_cuda, memory_cuda, sources_cuda, tree_cuda
from gpuops.numbers import DISTANCE_DTYPES, infinity

pytestmark = pytest.mark.usefixtures("cupy")

FILES = "hierarchy/blocks.cu", "hierarchy/columns.cu", "hierarchy/sweeps.cu"
BRICKS = 1, 12, 1024
DTYPES = [d if d == "int32" else pytest.param(d, marks=SLOW) for d in map(str, DISTANCE_DTYPES)]


def grid_hierarchy(side=20, dtype="int32", brick=40, **options):
    return hierarchy_of(made(side * side, grid(side), **options), dtype, brick=brick)


def compare_with_floyd_warshall(on_gpu, graph):
    """Compare exact distances of a dtype for which no other test compiles the CPU's answers, which takes seconds."""
    expected, some = graph.distances(), np.random.default_rng(0).integers(0, graph.n, 30)
    for origins in some, some[:1], np.arange(graph.n)[::-1]:
        np.testing.assert_array_equal(as_floats(distance_rows(on_gpu, origins).get()), expected[origins])
        block = distance_block(on_gpu, origins, some).get()
        np.testing.assert_array_equal(as_floats(block), expected[origins][:, some])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_graphs(cupy, monkeypatch, dtype, seed):
    monkeypatch.setattr(blocks_cuda, "_FEW", (0, 32)[seed // 3 % 2])  # with 0, one source takes products, too
    monkeypatch.setattr(sources_cuda, "_FEW", (0, 512)[seed % 2])  # with 0, no source climbs alone
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
    "closed vertices side by side": lambda: made(196, grid(14), through=np.arange(196) % 5 > 1),
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
    graph = made(64, grid(8), high=high)
    hierarchy = hierarchy_of(graph, dtype, brick=12)
    assert not hierarchy.fits
    compare_with_floyd_warshall(hierarchy.on_gpu(), graph)
    far = hierarchy_of(
        made(41, [(v, v + 1) for v in range(40)])._replace(weights=np.full(80, high // 4)), dtype, brick=4
    )
    with pytest.raises(OverflowError, match=rf"a distance is \d.*, and {dtype} holds less than \d"):
        distance_rows(far.on_gpu(), [0])


def test_what_is_on_the_device_goes_with_the_structure():
    hierarchy = grid_hierarchy(8).on_gpu()
    distance_rows(hierarchy, np.arange(64))
    kept = weakref.ref(tree_cuda._structure_on_device(hierarchy.structure))
    answers = weakref.ref(blocks_cuda.answers_of(hierarchy))
    del hierarchy
    gc.collect()
    assert answers() is None
    assert kept() is None


# --- Destinations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("brick", [1, 12, 2000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_vertices_in_windows(dtype, brick):
    """Windows of a part of their threads; rows of an odd length begin anywhere."""
    hierarchy = grid_hierarchy(41, dtype, brick=brick, through=np.arange(41 * 41) % 50 > 0)
    on_gpu = hierarchy.on_gpu()
    origins = np.random.default_rng(1).integers(0, 41 * 41, 40)
    found, expected = (distance_rows(each, origins) for each in (on_gpu, hierarchy))
    np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_destinations_repeated_in_any_order(dtype):
    """More columns than a window has, of one brick and of many."""
    hierarchy, rng = grid_hierarchy(41, dtype, brick=100), np.random.default_rng(1)
    for destinations in rng.integers(0, 41 * 41, 1201), np.full(1300, 3), np.arange(41 * 41)[::-1]:
        compare(hierarchy, hierarchy.on_gpu(), rng.integers(0, 41 * 41, 40), destinations)


@pytest.mark.parametrize("closed", [0, 5])
def test_vertices_on_the_device(cupy, closed):
    hierarchy, rng = grid_hierarchy(12, through=np.arange(144) >= closed), np.random.default_rng(0)
    on_gpu = hierarchy.on_gpu()
    for count in 3, 50:
        ends = rng.integers(0, 144, (2, count))
        for dtype in "int64", "int32", "uint8":
            origins, destinations = (cupy.asarray(np.repeat(each, 2).astype(dtype))[::2] for each in ends)
            found = distance_block(on_gpu, origins, destinations)
            np.testing.assert_array_equal(found.get(), distance_block(hierarchy, *ends))
    for wrong in -1, 144:
        with pytest.raises(ValueError, match=f"destination {wrong} is not a vertex"):
            distance_block(on_gpu, cupy.asarray(ends[0]), cupy.asarray(np.append(ends[1], wrong)))


def test_other_weights_copy_no_structure(cupy, monkeypatch):
    """A second hierarchy of the same structure takes only its own tables."""
    hierarchy = grid_hierarchy(30, brick=64)
    distance_rows(hierarchy.on_gpu(), np.arange(40))
    other = replace(hierarchy, out=hierarchy.out + 1).on_gpu()
    copied, asarray = [], cupy.asarray
    monkeypatch.setattr(cupy, "asarray", lambda x: copied.append(x.size) or asarray(x))
    distance_rows(other, np.arange(40))
    assert sum(copied) < 100


def test_out_is_filled_where_it_lies(cupy):
    hierarchy = grid_hierarchy(through=np.arange(400) % 7 > 0)
    on_gpu = hierarchy.on_gpu()
    origins, destinations = np.array([3, 7, 160, 7]), np.array([0, 12, 0, 399, 14])
    for first in range(4):
        around = cupy.zeros((6, 11), "int32")
        window = around[1:5, first : first + 5]
        assert distance_block(on_gpu, origins, destinations, out=window) is window
        expected = np.zeros((6, 11), "int32")
        expected[1:5, first : first + 5] = distance_block(hierarchy, origins, destinations)
        np.testing.assert_array_equal(around.get(), expected)
    assert distance_block(on_gpu, [], destinations).shape == (0, 5)
    assert distance_block(on_gpu, origins, []).shape == (4, 0)
    with pytest.raises(ValueError, match=r"out must be a CuPy array of int32, of shape \(4, 5\)"):
        distance_block(on_gpu, origins, destinations, out=np.zeros((4, 5), "int32"))


# --- Sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["bytes", pytest.param("count", marks=SLOW)])
def test_sources_in_batches(cupy, monkeypatch, limit):
    """More sources than blocks of a grid, or memory for the distances to the upper tree, allow."""
    hierarchy, rng = grid_hierarchy(7, brick=12), np.random.default_rng(0)
    on_gpu, origins, destinations = hierarchy.on_gpu(), rng.integers(0, 49, 300), np.arange(9)

    def launches():
        before = cupy.launches
        compare(hierarchy, on_gpu, origins, destinations)
        return cupy.launches - before

    launches()
    at_once = launches()
    if limit == "bytes":
        monkeypatch.setattr(memory_cuda, "SOURCES_BYTES", 128)
    else:
        monkeypatch.setattr(sources_cuda, "_MOST_SOURCES", 128)
    of_block, of_rows = 7, 6  # begin, home, upper, gather, arrive, stay; for a block, meet
    assert launches() >= at_once + 2 * (of_block + of_rows)


def test_closed_sources_with_many_arcs_are_divided(monkeypatch):
    """In each batch, tables for all starts and columns of closed destinations fit into the stated memory."""
    hierarchy = hierarchy_of(hubs(300, 6), "int32", brick=40)
    tree = blocks_cuda.answers_of(hierarchy.on_gpu()).tree
    origins, most = np.tile(np.arange(6), 40), 2_000_000

    def ordered(origins):
        vertices = sources_cuda.int32_on_device(origins)
        return columns_cuda.lay_out(tree, vertices, vertices[:0])[:2]

    monkeypatch.setattr(memory_cuda, "SOURCES_BYTES", most)
    batches = list(sources_cuda.batches(tree, *ordered(origins), 300))
    assert np.sort(np.concatenate([batch.rows.get() for batch in batches])).tolist() == list(range(240))
    for batch in batches:
        counts = [hierarchy.closed.leaving.starts[v + 1] - hierarchy.closed.leaving.starts[v] for v in range(6)]
        starts = np.array(counts)[hierarchy.structure.place[batch.vertices.get()] - hierarchy.structure.open]
        assert batch.starts == starts.sum()
        np.testing.assert_array_equal(batch.first_start.get(), np.cumsum(starts) - starts)
        assert (batch.starts * tree.structure.width + batch.size * 300) * 4 <= most
    assert 1 < len(batches) < 240
    narrow, wide = (next(sources_cuda.batches(tree, *ordered(np.full(900, 20)), columns)) for columns in (0, 3000))
    assert wide.size * 3000 * 4 <= most < narrow.size * 3000 * 4


@pytest.mark.parametrize("dtype", ["int32", *(pytest.param(d, marks=SLOW) for d in ("float64", "int16"))])
def test_the_memory_it_takes_is_stated(cupy, monkeypatch, dtype):
    hierarchy = grid_hierarchy(30, dtype, brick=64, high=5)
    structure, on_gpu = hierarchy.structure, hierarchy.on_gpu()
    fronts, upper = len(structure.bricks.front), structure.bricks.upper
    of_source = memory_cuda.source_bytes(fronts, upper, memory_cuda.width_of(structure), hierarchy.dtype)
    monkeypatch.setattr(memory_cuda, "SOURCES_BYTES", 128 * of_source)
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
    stated = memory_cuda.answering_bytes(structure, dtype)
    assert taken <= stated <= 1.3 * taken
    kept = allocated() - before
    assert kept <= stated - memory_cuda.batch_bytes(of_source) <= 1.1 * kept


# --- Kernels ----------------------------------------------------------------------------------------------------------


@every_kernel
def test_every_kernel_runs_here(cupy, monkeypatch, variants):
    cupy.start()
    monkeypatch.setattr(sources_cuda, "_FEW", 20)
    graph = made(49, grid(7), high=20, through=np.arange(49) != 12)
    for dtype in DISTANCE_DTYPES if variants else ["int32"]:
        compare_with_floyd_warshall(hierarchy_of(graph, dtype, brick=6).on_gpu(), graph)
    programs = [program for program in _cuda.declared() if program.file in FILES]
    assert not not_launched(programs, cupy.launched, variants=variants)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [33, 70])
def test_all_that_lies_between_the_launches_is_written(cupy, monkeypatch, count, dtype):
    """Sources that fill no row of panels."""
    cupy.start()
    launch, seen = _cuda.Program.launch, []

    def looked_at(program, entry, grid, arguments, **options):
        if entry == "arrive":
            fronts = len(hierarchy.structure.bricks.front)
            onward, panels = (arguments[i].get() for i in (7, 9))
            seen.extend([onward[:, : fronts + 1], panels])  # after that, only rows for the upper tree that are needed
        launch(program, entry, grid, arguments, **options)

    hierarchy = grid_hierarchy(dtype=dtype)
    monkeypatch.setattr(_cuda.Program, "launch", looked_at)
    compare(hierarchy, hierarchy.on_gpu(), np.arange(count), np.arange(150))
    assert len(seen) == 4
    for words in seen:
        elements = np.ascontiguousarray(words).view(dtype)
        assert ((elements >= 0) & (elements <= infinity(dtype))).all()


@pytest.mark.parametrize("dtype", ["int32", pytest.param("int16", marks=SLOW)])
def test_sums_of_infinity_do_not_wrap(dtype):
    """Two components: every sum over the other one is twice infinity."""
    arcs = np.concatenate([grid(9), grid(9) + 81])
    hierarchy = hierarchy_of(made(162, arcs, high=9), dtype, brick=12)
    found = distance_rows(hierarchy.on_gpu(), np.arange(162)).get()
    assert (found[:81, 81:] == np.iinfo(dtype).max).all()
    np.testing.assert_array_equal(found, distance_rows(hierarchy, np.arange(162)))


def answer_the_grid(monkeypatch):
    rng = np.random.default_rng(0)
    for brick, count, few in (40, 1, 1), (12, 9, 9), (12, 40, 1), (150, 9, 9):
        monkeypatch.setattr(sources_cuda, "_FEW", few)
        hierarchy = grid_hierarchy(16, brick=brick, undirected=False)
        compare(hierarchy, hierarchy.on_gpu(), rng.integers(0, 256, count), np.arange(100))
    far = [(v, 28 + 15 * v + 20 * i) for v in range(8) for i in range(3) if 28 + 15 * v + 20 * i < 144]
    spread = made(144, [*grid(12).tolist(), *far], through=np.arange(144) >= 8)  # sources with several starts
    hierarchy = hierarchy_of(spread, "int32", brick=12)
    monkeypatch.setattr(sources_cuda, "_FEW", 8)
    compare(hierarchy, hierarchy.on_gpu(), np.arange(8), np.arange(24))


def test_threads_do_not_race_in_shared_memory(cupy, monkeypatch):
    cupy.start(races=True)
    answer_the_grid(monkeypatch)


def lay_out_in_one_block(cupy, monkeypatch):
    """Sort sources and destinations by one block, which waits for no other: races are sought in such launches only."""
    cupy.start(seed=1, races=True)
    hierarchy = grid_hierarchy(12, brick=9)
    tree = blocks_cuda.answers_of(hierarchy.on_gpu()).tree
    source, launch = _cuda.Program.source, _cuda.Program.launch
    monkeypatch.setattr(
        _cuda.Program,
        "source",
        lambda program: source(program).replace("if (threadIdx.x == 0) arrive_and_wait", "if (false) arrive_and_wait"),
    )
    monkeypatch.setattr(
        _cuda.Program, "launch_cooperative", lambda program, entry, given, most: launch(program, entry, 1, given)
    )
    vertices = cupy.asarray(np.arange(144, dtype=np.int32)[::-1])
    return hierarchy.structure, *columns_cuda.lay_out(tree, vertices, vertices)


def test_sources_and_destinations_are_sorted_by_brick_without_races(cupy, monkeypatch):
    structure, ordered, rows, there = lay_out_in_one_block(cupy, monkeypatch)
    bricks = structure.bricks.of_node[structure.node_of[structure.place]]
    assert (np.diff(bricks[ordered.get()]) >= 0).all()
    np.testing.assert_array_equal(ordered.get(), 143 - rows.get())
    assert len(np.unique(there.column_of.get())) == 144


@pytest.mark.parametrize("mutant", lines_with("hierarchy/columns.cu", r"__sync\w+\(\);", ""), ids=str)
def test_a_missing_barrier_of_the_sort_is_caught(cupy, monkeypatch, mutant):
    break_line(monkeypatch, *mutant)
    with pytest.raises(cupy.KernelError, match="races"):
        lay_out_in_one_block(cupy, monkeypatch)


BARRIERS = lines_with("hierarchy/sweeps.cu", r"__sync\w+\(\);", "")
# Not the barrier of a warp before a shuffle, where its threads meet anyway; nor those without which threads follow
# pointers that are not there yet, which ends the process.
for i in 10, 9, 8, 2, 0:
    del BARRIERS[i]
WAITS = lines_with("hierarchy/sweeps.cu", r"if \(!missing\) return;", "return;")
MUTANTS = BARRIERS + WAITS + lines_with("minplus/strip.cuh", r"__sync\w+\(\);", "")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [pytest.param(line, id=f"{line[0]}:{line[1]}") for line in MUTANTS])
def test_a_missing_barrier_is_caught(cupy, monkeypatch, mutant):
    """By wrong distances when threads and blocks take turns at random, or as a race."""
    break_line(monkeypatch, *mutant)

    def answer():
        for seed in range(3):
            cupy.start(seed=seed + 1, multiprocessors=1)
            answer_the_grid(monkeypatch)
        cupy.start(races=True)
        answer_the_grid(monkeypatch)

    with pytest.raises((cupy.KernelError, AssertionError)):
        answer()

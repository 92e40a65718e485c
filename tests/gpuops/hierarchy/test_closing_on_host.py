"""Closing on a GPU, with its kernels on the host (host_shim/): the tables have the bits of the CPU's."""

import gc
import weakref

import numpy as np
import pytest
from closing_cases import DTYPES, FAMILIES, arrays_of, check, structure_of
from families import diagonals, every_kernel, not_launched, usual
from mutants import break_line, lines_with
from road_graphs import as_floats, hierarchy_of, made, random_graph

from gpuops import close_hierarchy, distance_rows
from gpuops._cuda import Program
from gpuops.hierarchy import closing_cuda
from gpuops.numbers import outside_infinity

pytestmark = pytest.mark.usefixtures("cupy")

FILE = "hierarchy/closing.cu"
SOLVED = {"float32", "int32"}  # dtypes of hierarchies by default


@pytest.mark.parametrize(
    ("family", "dtype", "undirected"), diagonals(list(FAMILIES), DTYPES, [True, False], count=2, always=SOLVED)
)
def test_has_the_bits_of_the_cpu(cupy, family, dtype, undirected):
    graph = made(*FAMILIES[family], undirected=undirected)
    cupy.start(seed=graph.n % 3, multiprocessors=1 + graph.n % 2)
    structure, cost = structure_of(family)
    assert family != "chords" or cost.widest > 150
    check(cupy, structure, *arrays_of(graph, dtype))


@pytest.mark.parametrize("dtype", usual(DTYPES, SOLVED))
@pytest.mark.parametrize("seed", range(4))
def test_any_graph(cupy, dtype, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, most=150, closed=seed % 2 == 1, undirected=seed == 2)
    cupy.start(seed=seed)
    structure, _ = structure_of(graph)
    hierarchy = check(cupy, structure, *graph.rows(dtype))
    if dtype == "int32":
        expected = distance_rows(hierarchy_of(graph, dtype), np.arange(graph.n))
        np.testing.assert_array_equal(distance_rows(hierarchy, np.arange(graph.n)), expected)


def test_distances_are_those_of_floyd_and_warshall(cupy):
    """Closed and answered on a GPU."""
    cupy.start()
    graph = made(*FAMILIES["wide"], undirected=False)
    hierarchy = close_hierarchy(structure_of(graph)[0], *map(cupy.asarray, graph.rows("int32")))
    found = distance_rows(hierarchy, np.arange(graph.n)).get()
    np.testing.assert_array_equal(as_floats(found), graph.distances())


def test_negative_weights(cupy):
    from gpuops.certificates import find_potentials

    graph = random_graph(np.random.default_rng(3), negative=True)
    arrays = graph.rows("int32")
    structure, _ = structure_of(graph)
    check(cupy, structure, *arrays, potentials=find_potentials(*arrays, graph.through))


# --- Again ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["numpy", "cupy"])
def test_other_weights_take_two_launches_and_another_graph_is_noticed(cupy, library):
    graph = made(*FAMILIES["grid"])
    indptr, indices, weights = arrays_of(graph, "float32")
    structure, _ = structure_of(graph)
    given = [cupy.asarray(x) if library == "cupy" else x for x in (indptr, indices)]
    rng = np.random.default_rng(0)

    def launches(weights):
        before = cupy.launches
        found = close_hierarchy(structure, *given, cupy.asarray(weights))
        np.testing.assert_array_equal(found.out.get(), close_hierarchy(structure, indptr, indices, weights).out)
        return cupy.launches - before

    launches(weights)
    layout = closing_cuda._on_device(structure, weights.dtype)
    arcs = layout.arcs
    for _ in range(2):
        assert launches(rng.random(len(weights)).astype("float32")) == 2
    assert layout.arcs is arcs
    weights[rng.random(len(weights)) < 0.2] = np.inf
    assert launches(weights) == 2
    # The same arrays, changed by the caller: the arcs of vertices 0 and 1 change places.
    first, last = indptr[0], indptr[2]
    indices[first:last] = np.concatenate([[0, 20], indices[first : last - 2]])
    tails = np.repeat(np.arange(2), np.diff(indptr[:3]))
    weights[first:last][indices[first:last] == tails] = 1
    if library == "cupy":
        given[1].set(indices)
    launches(weights)
    assert layout.arcs is not arcs


def test_the_layout_goes_with_the_structure(cupy):
    graph = made(*FAMILIES["tree"])
    structure, _ = structure_of(graph)
    check(cupy, structure, *graph.rows("int32"))
    layout = weakref.ref(closing_cuda._on_device(structure, np.dtype("int32")))
    del structure
    gc.collect()
    assert layout() is None


def test_arcs_may_go_and_none_may_come(cupy):
    path = made(21, [(i, i + 1) for i in range(20)])
    structure, _ = structure_of(path)
    check(cupy, structure, *made(21, [(i, i + 1) for i in range(7)]).rows("int32"))
    indptr, indices, weights = made(21, [(i, i + 1) for i in range(20)] + [(0, 20)]).rows("int32")
    (extra,) = np.flatnonzero(indices[: indptr[1]] == 20)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"no room for arc ({extra}|{len(indices) - 1}); make the structure of a"):
            close_hierarchy(structure, indptr, indices, cupy.asarray(weights))
    weights[(indices == 20) & (np.arange(len(indices)) < indptr[1])] = outside_infinity("int32")
    weights[indptr[20] :][indices[indptr[20] :] == 0] = outside_infinity("int32")
    check(cupy, structure, indptr, indices, weights)


# --- Errors and memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [("float32", np.nan), ("float64", -1), ("int32", -1), ("float32", -np.inf), ("int16", 2**13), ("float32", 1e38)],
)
def test_wrong_weights_have_the_error_of_the_cpu(cupy, dtype, wrong):
    graph = made(21, [(i, i + 1) for i in range(20)])
    structure, _ = structure_of(graph)
    indptr, indices, weights = graph.rows(dtype)
    weights[7] = wrong
    with pytest.raises((ValueError, OverflowError)) as expected:
        close_hierarchy(structure, indptr, indices, weights)
    with pytest.raises(type(expected.value)) as found:
        close_hierarchy(structure, indptr, indices, cupy.asarray(weights))
    assert str(found.value) == str(expected.value)


def test_distances_that_do_not_fit(cupy):
    far = made(21, [(i, i + 1) for i in range(20)], undirected=False)._replace(weights=np.full(20, 3 * 10**8))
    structure, _ = structure_of(far)
    indptr, indices, weights = far.rows("int32")
    with pytest.raises(OverflowError, match=r"a distance reaches 5.36871e\+08, too far for int32; convert the"):
        close_hierarchy(structure, indptr, indices, cupy.asarray(weights))


def test_wrong_arguments(cupy):
    graph = made(21, [(i, i + 1) for i in range(20)])
    structure, _ = structure_of(graph)
    indptr, indices, weights = graph.rows("int32")
    with pytest.raises(ValueError, match="the graph has 3 vertices and the structure 21; make a structure for it"):
        close_hierarchy(structure, *map(cupy.asarray, made(3, [(0, 1)]).rows("int32")))
    with pytest.raises(ValueError, match="there are 40 indices and 39 weights"):
        close_hierarchy(structure, indptr, indices, cupy.asarray(weights[1:]))
    with pytest.raises(TypeError, match="distances are float32, float64, int32 or int16, not int64"):
        close_hierarchy(structure, indptr, indices, cupy.asarray(weights.astype("int64")))
    with pytest.raises(TypeError, match="arrays of NumPy and of CuPy"):
        close_hierarchy(structure, cupy.asarray(indptr), cupy.asarray(indices), weights)


# --- Mutants ----------------------------------------------------------------------------------------------------------

# One line of the kernels is changed, so that a node leaves out something; the graph that shows it.
MUTANTS = {
    "children of a node in shared memory": (
        r"const int front = there \? child.front : 0;",
        "const int front = 0;",
        "grid",
    ),
    "children of a node by tiles": (r"c < node.child_count; \+\+c\) \{$", "c < node.child_count - 1; ++c) {", "wide"),
    "a pivot": (r"for \(int k = 0; k < width; \+\+k\) \{$", "for (int k = 1; k < width; ++k) {", "grid"),
    "a panel of rows": (r"if \(is_column && !tree.into\) return;", "if (task == 0) return;", "chords"),
    "a panel of columns": (r"if \(is_column && !tree.into\) return;", "if (task == tiles.count) return;", "chords"),
    "a tile": (r"const bool is_final = .*", r"\g<0> if (task == 1) return;", "chords"),
    "closing a tile": (r"if \(task == 0\) \{", "if (task == 0) { return;", "chords"),
    "arcs": (r"if \(r >= 0 && r < rows && s", "if (r > 0 && r < rows && s", "chords"),
    "largest entries": (r"if \(is_final && \(i < ", "if (false && (i < ", "chords"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_left_out_is_noticed(cupy, monkeypatch, name):
    pattern, replacement, family = MUTANTS[name]
    (mutant,) = lines_with(FILE, pattern, replacement)
    break_line(monkeypatch, *mutant)
    cupy.start()
    structure, _ = structure_of(family)
    with pytest.raises(AssertionError):
        check(cupy, structure, *arrays_of(made(*FAMILIES[family], undirected=False), "int32"))


def in_one_block(monkeypatch):
    """Launch closing in one block, which waits for no other: the shim looks for races in such launches only.

    Atomic minima are left out of the search.
    """
    source = Program.source
    lower = "__device__ inline void lower("
    unseen = '__attribute__((no_sanitize("thread"), noinline)) void lower('

    def changed(program):
        text = source(program).replace("if (threadIdx.x == 0) arrive_and_wait", "if (false) arrive_and_wait")
        return text.replace(lower, unseen).replace("atomicMin(&to, value);", "if (value < to) to = value;")

    monkeypatch.setattr(Program, "source", changed)
    monkeypatch.setattr(Program, "launch_cooperative", lambda self, entry, given: self.launch(entry, 1, given))


@pytest.mark.parametrize("family", ["grid", "wide", "chords"])
def test_threads_do_not_race_in_shared_memory(cupy, monkeypatch, family):
    in_one_block(monkeypatch)
    cupy.start(races=True)
    check(cupy, structure_of(family)[0], *arrays_of(made(*FAMILIES[family], undirected=False), "int32"))


BARRIERS = lines_with(FILE, r"(__sync\w+|All::sync)\(\);", "")
# Without the first barrier of the launch, pointers would be missing, and the process would end. The barrier of a block
# before it arrives at the barrier of all blocks is not needed here: a block has its turn until all of its threads wait.
del BARRIERS[-4:-1:2]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [pytest.param(line, id=str(line[1])) for line in BARRIERS])
def test_a_missing_barrier_is_caught(cupy, monkeypatch, mutant):
    """By wrong tables when threads and blocks take turns at random, or as a race."""
    break_line(monkeypatch, *mutant)

    def close_all():
        for family in "grid", "wide", "chords":
            check(cupy, structure_of(family)[0], *arrays_of(made(*FAMILIES[family], undirected=False), "int32"))

    def close_and_look_for_races():
        cupy.start(seed=3, multiprocessors=2)
        close_all()
        in_one_block(monkeypatch)
        cupy.start(races=True)
        close_all()

    with pytest.raises((cupy.KernelError, OverflowError, AssertionError)):
        close_and_look_for_races()


@every_kernel
def test_every_kernel_runs_here(cupy, variants):
    cupy.start()
    graph = made(*FAMILIES["tree"])
    for dtype in DTYPES if variants else ["int32"]:
        check(cupy, structure_of(graph)[0], *graph.rows(dtype))
    assert not not_launched(closing_cuda._PROGRAMS.values(), cupy.launched, variants=variants)

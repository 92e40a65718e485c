"""Closing a hierarchy: new weights on the same structure, negative weights, and distances that do not fit."""

import numba
import numpy as np
import pytest
from road_graphs import DTYPES, as_floats, hierarchy_of, made, random_graph

from gpuops import (
    NegativeCycleError,
    _threads,
    close_hierarchy,
    distance_block,
    distance_rows,
    hierarchy_order,
    hierarchy_structure,
    one_to_all,
)
from gpuops.numbers import outside_infinity

PATH = [(i, i + 1) for i in range(20)]


def structure_of(indptr, indices, through=None, brick=1024):
    order = hierarchy_order(indptr, indices, through)
    return hierarchy_structure(indptr, indices, order, through, brick=brick)[0]


def test_other_weights_on_the_same_structure():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, most=200, closed=True)
    indptr, indices, weights = graph.rows("int32")
    structure = structure_of(indptr, indices, graph.through, 20)
    for trial in range(3):
        other = graph._replace(weights=rng.integers(0, 50, len(graph.weights)))
        _, _, weights = other.rows("int32")
        gone = rng.random(len(weights)) < 0.2 * trial
        tails = np.repeat(np.arange(graph.n), np.diff(indptr))
        expected = other._replace(tails=tails[~gone], heads=indices[~gone], weights=weights[~gone]).distances()
        weights[gone] = outside_infinity("int32")
        found = distance_rows(close_hierarchy(structure, indptr, indices, weights), np.arange(graph.n))
        np.testing.assert_array_equal(as_floats(found), expected)


def test_arcs_may_go_and_none_may_come():
    structure = structure_of(*made(21, PATH).rows("int32")[:2])
    fewer = made(21, PATH[:7])
    found = distance_rows(close_hierarchy(structure, *fewer.rows("int32")), np.arange(21))
    np.testing.assert_array_equal(as_floats(found), fewer.distances())
    with pytest.raises(ValueError, match=r"the structure has no room for arc \d+; make the structure of a graph with"):
        close_hierarchy(structure, *made(21, [*PATH, (0, 20)]).rows("int32"))


@pytest.mark.slow
def test_zero_is_positive():
    graph = made(21, PATH)._replace(weights=np.full(40, -0.0))
    hierarchy = hierarchy_of(graph, "float64")
    for found in distance_rows(hierarchy, [0, 9]), one_to_all(hierarchy, 3):
        assert not np.signbit(found).any()
        assert not found.any()


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_bits_of_tables_do_not_depend_on_threads(monkeypatch, dtype):
    side = 30
    arcs = [(v, v + step) for v in range(side * side - side) for step in (1, side)]
    graph = made(side * side, arcs)
    weights = np.random.default_rng(2).random(2 * len(arcs))
    graph = graph._replace(weights=np.ceil(1000 * weights) if dtype == "int32" else weights)
    expected = hierarchy_of(graph, dtype, brick=40)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    monkeypatch.setattr(_threads, "_SERIAL_RELAXATIONS", 1)
    found = hierarchy_of(graph, dtype, brick=40)
    assert len(found.structure.roots) > 3
    np.testing.assert_array_equal(found.out, expected.out)
    np.testing.assert_array_equal(found.into, expected.into)


# --- Bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # compiles the kernels of float64
@pytest.mark.parametrize("dtype", ["int32", "int16"])
@pytest.mark.parametrize("brick", [4, 1024])
def test_distances_that_do_not_fit_are_found_and_all_others_answered(dtype, brick):
    most = {"int16": 2**13, "int32": 2**29}[dtype]
    graph = made(21, PATH)._replace(weights=np.full(40, most // 16))  # a path of 16 arcs is too long
    hierarchy = hierarchy_of(graph, dtype, brick=brick)
    assert not hierarchy.fits
    expected = graph.distances()
    near = distance_block(hierarchy, np.arange(5, 16), np.arange(5, 16))
    np.testing.assert_array_equal(near, expected[5:16, 5:16])
    assert near.dtype == dtype
    np.testing.assert_array_equal(one_to_all(hierarchy, 10), expected[10])
    np.testing.assert_array_equal(distance_block(hierarchy, [0], [15]), [[15 * (most // 16)]])
    for ask in (
        lambda: distance_block(hierarchy, [0, 1], [16, 3]),
        lambda: distance_rows(hierarchy, [20]),
        lambda: one_to_all(hierarchy, 0),
    ):
        with pytest.raises(OverflowError, match=rf"a distance is \d.*, and {dtype} holds less than {most:,}"):
            ask()


def test_the_bound_holds():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, closed=True, negative=bool(seed % 2))
        found = graph.distances()
        bound = hierarchy_of(graph, "int32", brick=12).bound
        most, largest = np.abs(found[np.isfinite(found)]).max(initial=0), np.abs(graph.weights).max(initial=1)
        assert most <= bound <= 60 * (largest + 60)


def test_closing_refuses_what_does_not_fit():
    with pytest.raises(OverflowError, match=r"a weight is 8192, too large for distances in int16; convert the weights"):
        hierarchy_of(made(21, PATH)._replace(weights=np.full(40, 2**13)), "int16")
    far = made(21, PATH, undirected=False)._replace(weights=np.full(20, 3 * 10**8))
    with pytest.raises(OverflowError, match=r"a distance reaches 5.36871e\+08, too far for int32; convert the"):
        hierarchy_of(far, "int32")
    with pytest.raises(OverflowError, match="too large for distances in float32; scale the weights down"):
        hierarchy_of(made(21, PATH)._replace(weights=np.full(40, 1e38)), "float32")


# --- Negative weights and wrong arguments -----------------------------------------------------------------------------


def test_negative_weights_need_potentials():
    graph = random_graph(np.random.default_rng(3), negative=True)
    indptr, indices, weights = graph.rows("int32")
    structure = structure_of(indptr, indices)
    for potentials in None, (np.zeros(graph.n), np.zeros(graph.n)), (np.full(graph.n, np.nan), np.zeros(graph.n)):
        with pytest.raises(ValueError, match=r"a weight is negative; pass potentials=gpuops\.certificates\.find"):
            close_hierarchy(structure, indptr, indices, weights, potentials=potentials)
    with pytest.raises(ValueError, match=r"pass two for each of \d+ vertices"):
        close_hierarchy(structure, indptr, indices, weights, potentials=(np.zeros(1), np.zeros(1)))


def test_a_negative_cycle_has_no_potentials():
    graph = made(3, [(0, 1), (1, 2), (2, 0)], undirected=False)._replace(weights=np.array([4, -3, -2]))
    with pytest.raises(NegativeCycleError, match="form a cycle of weight -1"):
        hierarchy_of(graph, "int32")


@pytest.mark.parametrize("dtype", DTYPES[1:3])
def test_negative_floats(dtype):
    graph = random_graph(np.random.default_rng(6), closed=True)
    potential = np.random.default_rng(1).uniform(0, 50, graph.n)
    graph = graph._replace(weights=(graph.weights + potential[graph.tails] - potential[graph.heads]).astype(dtype))
    assert (graph.weights < 0).any()
    hierarchy = hierarchy_of(graph, dtype, brick=12)
    expected = graph.distances()
    found = distance_rows(hierarchy, np.arange(graph.n))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one_to_all(hierarchy, 1), expected[1], rtol=1e-5, atol=1e-5)


def test_wrong_arguments():
    indptr, indices, weights = made(21, PATH).rows("float64")
    structure = structure_of(indptr, indices)
    with pytest.raises(TypeError, match="distances are float32, float64, int32 or int16, not int64"):
        close_hierarchy(structure, indptr, indices, weights.astype("int64"))
    with pytest.raises(ValueError, match="the graph has 3 vertices and the structure 21; make a structure for it"):
        close_hierarchy(structure, *made(3, [(0, 1)]).rows("float32"))
    weights[3] = np.nan
    with pytest.raises(ValueError, match=r"weights contain NaN; write \+inf where there is no arc"):
        close_hierarchy(structure, indptr, indices, weights)

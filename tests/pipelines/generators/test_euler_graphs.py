"""Graphs with Euler circuits: balanced, of the published sizes, deep or shallow."""

import dataclasses
import threading
import time

import numpy as np
import pytest
from commands import invoke
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gpuops import cycle_labels, euler_circuit, pair_arcs, verify_circuit
from pipelines import generate
from pipelines.generators import EulerGraph, ShallowEulerGraph, csr, euler_of_degrees, synthetic_graph
from pipelines.generators.counter_random import ENDS, below, draw
from pipelines.stores.graph import open_graph


def degrees(graph):
    tails, heads, _ = graph.arcs()
    assert len(tails) == graph.ids
    return np.bincount(tails, minlength=graph.n), np.bincount(heads, minlength=graph.n)


def random_below(bound, seed, item, part=0):
    words = draw(np.uint64(seed), ENDS, np.uint64(item), np.uint64(0))
    return int(below(np.uint64(bound), *words[2 * part : 2 * part + 2]))


@given(n=st.integers(1, 40), k=st.integers(1, 8), seed=st.integers(0, 2**64 - 1))
def test_a_deep_graph_deals_quotas_out_in_circles(n, k, seed):
    """Against the plain way: from each vertex on, one step after the other."""
    quotas = [1 + random_below(k, seed, i) for i in range(n)]
    left, heads = list(quotas), []
    for i in range(n):
        j, missing = i, quotas[i]
        while missing:
            j = (j + 1) % n
            if left[j]:
                left[j] -= 1
                missing -= 1
                heads.append(j)
    tails, found, _ = EulerGraph(n, k, seed=seed).arcs()
    np.testing.assert_array_equal(tails, np.repeat(np.arange(n), quotas))
    np.testing.assert_array_equal(found, heads)
    if n > 1:
        tails, found, _ = EulerGraph(n, k, seed=seed, path=True).arcs()
        np.testing.assert_array_equal(tails, np.repeat(np.arange(n), quotas)[1:])
        np.testing.assert_array_equal(found, heads[1:])


@given(n=st.integers(2, 40), k=st.integers(1, 8), seed=st.integers(0, 2**64 - 1))
def test_a_deep_graph_without_its_first_arc_has_a_path(n, k, seed):
    indptr, indices, _ = csr(EulerGraph(n, k, seed=seed, path=True))
    walk = euler_circuit(indptr, indices, path=True)
    verify_circuit(indptr, indices, *walk, path=True)
    begins = np.searchsorted(indptr, walk.arcs[walk.offsets[:-1]], side="right") - 1
    assert (1, 0) in zip(begins, indices[walk.arcs[walk.offsets[1:] - 1]], strict=True)


@given(vertices=st.integers(3, 40), more=st.integers(0, 9), seed=st.integers(0, 2**64 - 1))
def test_a_shallow_graph_is_triangles_and_pairs(vertices, more, seed):
    edges = 3 * vertices - 7 + more
    expected = [(0, 1), (1, 0)]
    for i in range(2, vertices - 1):
        a, b = (random_below(i, seed, i, part) for part in (0, 1))
        expected += [(a, i), (i, b), (b, a)]
    item = vertices - 1
    while len(expected) < edges - 1:
        a, b = (random_below(vertices - 1, seed, item, part) for part in (0, 1))
        expected += [(a, b), (b, a)]
        item += 1
    graph = ShallowEulerGraph(vertices, edges, seed=seed, scrambled=False)
    assert graph.n == vertices - 1
    assert graph.ids == len(expected) in (edges - 1, edges)
    made = list(zip(*(x.tolist() for x in graph.arcs()), strict=True))
    assert [arc[:2] for arc in made] == expected
    scrambled = ShallowEulerGraph(vertices, edges, seed=seed)
    assert sorted(zip(*(x.tolist() for x in scrambled.arcs()), strict=True)) == sorted(made)


@pytest.mark.parametrize("graph", [EulerGraph(5000, 7, seed=2), ShallowEulerGraph(3000, 9001)], ids=str)
def test_there_is_one_circuit(graph):
    leaving, entering = degrees(graph)
    np.testing.assert_array_equal(leaving, entering)
    indptr, indices, _ = csr(graph)
    matrix = csr_array((np.ones(len(indices)), indices, indptr), shape=(graph.n, graph.n))
    assert connected_components(matrix)[0] == 1
    found = euler_circuit(indptr, indices, connected=True)
    verify_circuit(indptr, indices, *found)


def test_deep_quotas_are_uniform():
    counts = np.bincount(degrees(EulerGraph(70_000, 7, seed=1))[0])
    assert counts[0] == 0
    assert (abs(counts[1:] - 10_000) < 6 * np.sqrt(10_000)).all()


def circuits(indptr, indices):
    labels = cycle_labels(pair_arcs(indptr, indices))
    return int((labels == np.arange(len(labels))).sum())


def circuits_by_order(graph, seed):
    """Circuits of the pairing, with the arcs of each row in random order (by another generator, and as they are made),
    sorted by head, and in order of insertion.
    """
    indptr, indices, _ = csr(dataclasses.replace(graph, scrambled=False))
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    at_random = np.lexsort((np.random.default_rng(seed).random(len(tails)), tails))
    orders = at_random, np.lexsort((indices, tails)), slice(None)
    return [circuits(*csr(graph)[:2]), *(circuits(indptr, indices[order]) for order in orders)]


# Ranges: mean and five standard deviations of 30 seeds, or of 10 where a case is slow. Slow cases have published sizes.
@pytest.mark.parametrize(
    ("n", "fewest", "most"), [(20_000, 1, 12), pytest.param(10_485_760, 1, 15, marks=pytest.mark.slow)]
)
def test_deep_graphs_fall_into_few_circuits(n, fewest, most):
    graph = EulerGraph(n, 7, seed=4)
    assert abs(graph.ids - 4 * n) < 6 * 2 * np.sqrt(n)  # the standard deviation of 1 to 7 is 2
    indptr, indices, _ = csr(graph)
    assert fewest <= circuits(indptr, indices) <= most


@pytest.mark.parametrize(
    ("vertices", "arcs", "ranges"),
    [
        (16_384, 49_151, [(615, 835), (615, 835), (1280, 1650), (4180, 4900)]),
        pytest.param(
            1_048_576,
            3_145_727,
            [(44_150, 46_950), (44_150, 46_950), (90_950, 92_800), (287_000, 292_400)],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_shallow_graphs_fall_into_very_many_circuits(vertices, arcs, ranges):
    """Published: 45,514 of 3,145,727 arcs; how many depends on the order within rows."""
    graph = ShallowEulerGraph(vertices, 3 * vertices, seed=6)
    assert (graph.n, graph.ids) == (vertices - 1, arcs)
    for count, (fewest, most) in zip(circuits_by_order(graph, 0), ranges, strict=True):
        assert fewest <= count <= most


def test_the_published_demo():
    graph = EulerGraph(15, 5, seed=15009)
    assert graph.ids == 44
    assert circuits(*csr(graph)[:2]) == 5


@given(degrees=st.lists(st.integers(0, 6), min_size=1, max_size=30), seed=st.integers(0, 2**64 - 1))
def test_graphs_of_given_degrees_are_eulerian(degrees, seed):
    indptr, indices = euler_of_degrees(degrees, seed)
    np.testing.assert_array_equal(np.diff(indptr), degrees)
    np.testing.assert_array_equal(np.bincount(indices, minlength=len(degrees)), degrees)
    verify_circuit(indptr, indices, *euler_circuit(indptr, indices))
    for again, expected in zip(euler_of_degrees(np.array(degrees), seed), (indptr, indices), strict=True):
        np.testing.assert_array_equal(again, expected)


def test_every_matching_of_given_degrees_is_as_likely():
    """Of the 4! matchings of degrees 1, 2, 1, twelve differ in their heads: loops and parallel arcs are kept."""
    found, counts = np.unique(
        [euler_of_degrees([1, 2, 1], seed)[1] for seed in range(6000)], axis=0, return_counts=True
    )
    assert len(found) == 12
    assert (abs(counts - 500) < 5 * np.sqrt(500)).all()


def test_a_graph_is_made_once_for_all_threads(monkeypatch):
    """From Python 3.12 on, `cached_property` does not see to that."""
    calls, make = [], np.cumsum

    def slow(*args, **options):
        calls.append(1)
        time.sleep(0.05)
        return make(*args, **options)

    monkeypatch.setattr(np, "cumsum", slow)
    graph = EulerGraph(1000)
    threads = [threading.Thread(target=lambda: graph.ids) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EulerGraph(0), "n is 0; give a whole number from 1"),
        (lambda: EulerGraph(1, path=True), "n is 1; give a whole number from 2"),
        (lambda: EulerGraph(9, 128), "k is 128; give a whole number from 1 to 127"),
        (lambda: EulerGraph(9, directed=False), "EulerGraph is always directed"),
        (lambda: EulerGraph(9, dtype="float32"), "there are no weights to be float32; choose uniform or integers"),
        (lambda: EulerGraph(9, shift=0.5), "there are no weights to shift; choose uniform or integers"),
        (lambda: EulerGraph(9, weights="lengths"), "no weights 'lengths'; choose none or uniform or integers"),
        (lambda: ShallowEulerGraph(2), "vertices is 2; give a whole number from 3"),
        (lambda: ShallowEulerGraph(10, 22), "edges is 22; give a whole number from 23"),
        (lambda: ShallowEulerGraph(10, directed=False), "ShallowEulerGraph is always directed"),
        (lambda: euler_of_degrees([2, -1]), r"degrees\[1\] is -1; give 0 or more"),
        (lambda: euler_of_degrees([0.5]), "degrees are float64 of the shape .1,.; give an integer for each vertex"),
        (lambda: euler_of_degrees([1], -1), "seed is -1; give a whole number from 0"),
        (lambda: synthetic_graph("euler-shallow", edges=9), "the number of vertices is missing"),
        (
            lambda: synthetic_graph("euler", n=9, edges=9),
            "edges is no option of a graph of kind euler; its options are .*k=",
        ),
    ],
)
def test_misuse_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_held_in_memory_is_counted(tmp_path):
    with pytest.raises(ValueError, match=r"4,294,967,296 vertices need \d+\.\d TiB on"):
        generate(EulerGraph(1 << 32, 127), tmp_path / "g.zarr")


@pytest.mark.parametrize(("kind", "options"), [("euler", ["--max-degree", "3"]), ("euler-shallow", [])])
def test_a_graph_with_a_circuit_is_not_simplified(tmp_path, kind, options):
    """Loops may go, but of two parallel arcs only one would: vertices would not be balanced any more."""
    message = r"has an Euler circuit only with all .*; leave out simplify \(--simplify\)"
    with pytest.raises(ValueError, match=message):
        generate(synthetic_graph(kind, scale=4), tmp_path / "g.zarr", simplify=True)
    command = ["generate", kind, str(tmp_path / "g.zarr"), "--scale", "4", *options, "--simplify"]
    with pytest.raises(ValueError, match=message):
        invoke(*command, catch_exceptions=False)
    assert not (tmp_path / "g.zarr").exists()


def test_generate_command(tmp_path):
    for kind, options, made in (
        ("euler", ["--vertices", "100", "--max-degree", "3", "--seed", "5"], EulerGraph(100, 3, seed=5)),
        ("euler", ["--vertices", "8", "--max-degree", "3", "--path"], EulerGraph(8, 3, path=True)),
        ("euler-shallow", ["--vertices", "50", "--edges", "200"], ShallowEulerGraph(50, 200)),
        ("euler-shallow", ["--scale", "5"], ShallowEulerGraph(33)),
    ):
        path = str(tmp_path / f"{kind}.zarr")
        done = invoke("generate", kind, path, *options, "--overwrite", catch_exceptions=False)
        assert f"directed graph, {made.n} vertices, {made.ids} arcs" in done.output
        assert (open_graph(path).source, open_graph(path).weighted) == (str(made), False)
    done = invoke("generate", "euler", path, "--vertices", "9", "--weights", "integers", "--overwrite")
    assert "weights int32 from " in done.output

"""Made graphs are what they are said to be, and the same however they are made."""

import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from commands import invoke
from scipy.sparse import csr_array
from scipy.sparse.csgraph import bellman_ford, connected_components

from gpuops.certificates import find_negative_cycle, find_potentials
from pipelines import generate, generators
from pipelines.generators import (
    KINDS,
    Dag,
    EulerGraph,
    Grid,
    NegativeCycle,
    RMat,
    Road,
    ShallowEulerGraph,
    UniformRandom,
    csr,
    synthetic_graph,
)
from pipelines.generators.counter_random import below, philox, scramble_all, scrambler
from pipelines.generators.synthetic import _fill
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.workers.capacity import DoesNotFitError
from tilepath.cli import main
from tilepath.cli.graphs import generate_graph

GRAPHS = {
    "rmat": RMat(7, seed=3),
    "rmat, raw, directed": RMat(6, seed=2**64 - 1, directed=True, scrambled=False, weights="integers"),
    "rmat, shifted": RMat(6, seed=1, shift=2.5, weights="integers", dtype="float32"),
    "grid": Grid(9, 5, weights="integers"),
    "grid, directed": Grid(4, 6, directed=True),
    "grid, shifted": Grid(5, shift=1.0),
    "road": Road(12, 17, seed=5),
    "random": UniformRandom(77, edge_factor=3, dtype="float64"),
    "dag": Dag(60, seed=8, weights="integers"),
    "cycle": NegativeCycle(50, seed=1, weights="integers", dtype="int64"),
    "cycle, isolated": NegativeCycle(50, seed=1, isolated=True),
    "euler": EulerGraph(40, 5, seed=3),
    "euler, shallow": ShallowEulerGraph(30, 96, seed=2, weights="integers"),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]


# Random numbers


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [  # the answers published with the generator
        ((0, 0), (0, 0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((2**32 - 1,) * 2, (2**32 - 1,) * 4, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_words(key, counter, words):
    assert " ".join(f"{int(word):08x}" for word in philox(*map(np.uint64, key + counter))) == words


def test_below_is_the_high_half_of_the_product():
    for n in (1, 3, 2**31 + 11, 2**32):
        for word in (0, 1, 2**63 + 12345, 2**64 - 1):
            assert below(np.uint64(n), np.uint64(word >> 32), np.uint64(word & (2**32 - 1))) == n * word >> 64


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 64, 100, 4096, 5000])
def test_scrambling_is_a_permutation(n):
    vertices = np.arange(n)
    scramble_all(vertices, scrambler(7, n))
    np.testing.assert_array_equal(np.sort(vertices), np.arange(n))
    if n >= 64:  # close vertices do not stay close, and another seed scrambles otherwise
        assert np.abs(np.diff(vertices)).mean() > n / 5
        again = np.arange(n)
        scramble_all(again, scrambler(8, n))
        assert (again != vertices).mean() > 0.9


# Every kind


def test_edges_do_not_depend_on_the_pieces(graph):
    whole = graph.arcs()
    for step in (1, 7, 100, graph.ids):
        pieces = [graph.arcs(start, min(start + step, graph.ids)) for start in range(0, graph.ids, step)]
        for column, parts in zip(whole, zip(*pieces, strict=True), strict=True):
            np.testing.assert_array_equal(np.concatenate(parts), column)


def test_edges_depend_on_the_seed(graph):
    other = replace(graph, seed=77)
    assert any(a.size != b.size or (a != b).any() for a, b in zip(graph.arcs(), other.arcs(), strict=True))
    assert eval(str(graph), vars(generators)) == graph


def test_edges_are_in_range(graph):
    tails, heads, weights = graph.arcs()
    assert tails.dtype == heads.dtype == np.int64
    assert weights.dtype == graph.dtype
    assert 0 <= min(tails.min(), heads.min()) <= max(tails.max(), heads.max()) < graph.n
    if not graph.shift and type(graph) is not Dag:
        low, high = (1, 255) if graph.weights == "integers" else (0.1 if graph.weights == "lengths" else 2.0**-53, 2)
        assert low <= weights.min() <= weights.max() <= high
    if graph.weights == "integers":
        assert (weights == weights.astype(np.int64)).all()


@pytest.mark.parametrize("memory", [None, 1 << 14])
def test_a_store_holds_the_same_graph_as_memory(graph, memory, tmp_path):
    stored = generate(graph, tmp_path / "g.zarr", memory=memory, piece=50)
    stored.verify()
    assert stored.directed is not graph.symmetric
    assert stored.source.startswith(str(graph))
    tails, heads, weights = graph.arcs()
    if graph.symmetric:
        tails, heads = np.stack([tails, heads], 1).ravel(), np.stack([heads, tails], 1).ravel()
        weights = np.repeat(weights, 2)
    rows = np.argsort(tails, kind="stable")
    for ours, theirs in zip((heads[rows], weights[rows]), csr(graph, piece=50)[1:], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    order = np.lexsort((heads, tails))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=graph.n))])
    expected = indptr, heads[order].astype(np.int32), weights[order]
    for ours, theirs in zip(expected, stored.rows(), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    coordinates = stored.coordinates()
    assert (coordinates is not None) is isinstance(graph, Grid)
    if coordinates is not None:
        np.testing.assert_array_equal(coordinates, graph.coordinates())


def test_integer_weights_are_uniform():
    weights = UniformRandom(2000, weights="integers").arcs()[2]
    counts = np.bincount(weights, minlength=256)
    assert counts[0] == 0
    expected = weights.size / 255  # the spread of a count is sqrt(expected) = 11
    assert np.abs(counts[1:] - expected).max() < 6 * np.sqrt(expected)


def test_float_weights_are_uniform_and_never_zero():
    weights = UniformRandom(2000, dtype="float32").arcs()[2]
    assert abs(weights.mean(dtype=np.float64) - 0.5) < 6 / np.sqrt(12 * weights.size)
    counts = np.histogram(weights, bins=100, range=(0, 1))[0]
    assert np.abs(counts - weights.size / 100).max() < 6 * np.sqrt(weights.size / 100)
    assert weights.min() > 0
    scaled = weights.astype(np.float64) * 2**24
    assert (scaled == np.round(scaled)).all()
    few = np.empty(1000, np.float32)
    _fill(np.uint64(3), np.arange(1000), False, 4, few)
    np.testing.assert_array_equal(np.unique(few), np.arange(1, 17) / 16)


@pytest.mark.parametrize("weights", ["uniform", "integers"])
def test_shifted_weights_make_no_negative_cycle(weights):
    plain, shifted = RMat(8, weights=weights), RMat(8, weights=weights, shift=8.0)
    indptr, indices, values = csr(shifted)
    assert indptr[-1] == 2 * plain.ids  # both directions
    assert (values < 0).mean() > 0.3
    find_potentials(indptr, indices, values)  # raises if there is a negative cycle
    top = 255 if weights == "integers" else 1
    assert np.abs(values).max() <= 9 * top
    if weights == "uniform":  # exact: multiples of 2^-20, so float32 and float64 hold the same numbers
        exact = csr(RMat(8, shift=8.0, dtype="float64"))[2]
        np.testing.assert_array_equal(values, exact)
    tails, heads, pairs = shifted.arcs()
    drawn = (pairs[0::2].astype(np.float64) + pairs[1::2]) / 2  # the potentials of an edge and its way back cancel
    loops = tails[0::2] == heads[0::2]
    assert loops.any()
    np.testing.assert_array_equal(drawn[loops], pairs[0::2][loops])
    assert (drawn > 0).all()
    assert drawn.max() <= top


# R-MAT


def _kronecker(scale, edges, rng):
    """The reference implementation of the Graph500 specification, transcribed: bit by bit, vectors over edges."""
    a, b, c = 0.57, 0.19, 0.19
    rows, columns = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for bit in range(scale):
        down = rng.random(edges) > a + b
        right = rng.random(edges) > np.where(down, c / (1 - (a + b)), a / (a + b))
        rows += down << bit
        columns += right << bit
    return rows, columns


def _facts(n, tails, heads):
    """Distinct edges without loops, loops, largest degree, vertices without an edge, share of the top hundredth."""
    low, high = np.minimum(tails, heads), np.maximum(tails, heads)
    distinct = np.unique((low * n + high)[low != high])
    degrees = np.sort(np.bincount(np.concatenate([tails, heads]), minlength=n))
    return np.array(
        [
            distinct.size,
            (tails == heads).sum(),
            degrees[-1],
            (degrees == 0).sum(),
            degrees[-n // 100 :].sum(),
        ],
        dtype=float,
    )


def test_rmat_is_the_graph_of_the_definition():
    """Sizes and skew agree with a slow reference, within the spread of that over seeds."""
    scale, edges = 12, 16 << 12
    rng = np.random.default_rng(0)
    references = np.array([_facts(1 << scale, *_kronecker(scale, edges, rng)) for _ in range(12)])
    ours = np.array([_facts(1 << scale, *RMat(scale, seed=seed).arcs()[:2]) for seed in range(12)])
    spread = np.maximum(references.std(axis=0), ours.std(axis=0)) / np.sqrt(12)
    assert (np.abs(ours.mean(axis=0) - references.mean(axis=0)) < 6 * spread + 1).all()
    assert ours[:, 0].mean() < 0.85 * edges  # many parallel edges


def test_rmat_quadrants():
    """Every level goes to each quadrant as often as it should, independently of the level before."""
    scale, probabilities = 6, np.array([0.4, 0.3, 0.2, 0.1])
    tails, heads, _ = RMat(scale, edge_factor=2000, a=0.4, b=0.3, c=0.2, scrambled=False, directed=True).arcs()
    quadrants = [(tails >> bit & 1) << 1 | heads >> bit & 1 for bit in range(scale)]
    expected = tails.size * probabilities
    for quadrant in quadrants:
        assert (np.abs(np.bincount(quadrant, minlength=4) - expected) < 6 * np.sqrt(expected)).all()
    for upper, lower in zip(quadrants[1:], quadrants[:-1], strict=True):
        joint = np.bincount(upper << 2 | lower, minlength=16)
        expected = tails.size * np.outer(probabilities, probabilities).ravel()
        assert (np.abs(joint - expected) < 6 * np.sqrt(expected)).all()


def test_rmat_hubs_have_any_number():
    raw = np.bincount(RMat(10, scrambled=False).arcs()[0], minlength=1024)
    assert raw.argmax() == 0
    vertices = np.arange(1024)
    scramble_all(vertices, scrambler(0, 1024))
    scrambled = np.bincount(RMat(10).arcs()[0], minlength=1024)
    np.testing.assert_array_equal(scrambled[vertices], raw)
    hubs = [np.bincount(RMat(10, seed=seed).arcs()[0]).argmax() for seed in range(20)]
    assert len(set(hubs)) > 15


@pytest.mark.parametrize("scale", [0, 1, 3, 4, 5])
def test_small_scales(scale):
    tails, heads, weights = RMat(scale).arcs()
    assert tails.size == heads.size == weights.size == 16 << scale
    assert set(tails) | set(heads) <= set(range(1 << scale))


# Grids and roads


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 6), (6, 1), (2, 2), (4, 7)])
def test_grid_edges(rows, columns):
    tails, heads, _ = Grid(rows, columns).arcs()
    expected = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns), ordering="sorted")
    assert tails.size == expected.number_of_edges() == rows * (columns - 1) + columns * (rows - 1)
    assert {frozenset(edge) for edge in zip(tails, heads, strict=True)} == set(map(frozenset, expected.edges))


def test_directed_grid():
    grid = Grid(8, 8, directed=True, weights="integers")
    tails, heads, weights = grid.arcs()
    assert (tails.size, tails.size / 2) == (2 * 112, 112)
    np.testing.assert_array_equal(tails[0::2], heads[1::2])
    assert (weights[0::2] != weights[1::2]).mean() > 0.9
    lengths = Grid(8, 8, directed=True, weights="lengths", jitter=0.4).arcs()[2]
    np.testing.assert_array_equal(lengths[0::2], lengths[1::2])


def test_road_is_in_one_piece_and_thin():
    road = Road(60, 70, seed=4)
    tails, heads, weights = road.arcs()
    adjacency = csr_array((weights, (tails, heads)), shape=(road.n, road.n))
    assert connected_components(adjacency, directed=False)[0] == 1
    assert abs(2 * tails.size / road.n - 2.6) < 0.1
    positions = road.coordinates()
    np.testing.assert_array_equal(
        weights, np.linalg.norm(positions[tails] - positions[heads], axis=1).astype("float32")
    )
    squares = np.stack([np.arange(road.n) % 70, np.arange(road.n) // 70], axis=1)
    moved = positions - squares
    assert np.abs(moved).max() <= 0.3
    assert np.abs(moved).max() > 0.29
    assert np.abs(moved.mean(axis=0)).max() < 0.02
    assert nx.check_planarity(nx.Graph(zip(tails.tolist(), heads.tolist(), strict=True)))[0]


def test_roads_without_spare_streets_are_trees():
    for rows, columns in ((1, 9), (9, 1), (13, 11)):
        tails, heads, _ = Road(rows, columns, missing=1.0).arcs()
        tree = nx.Graph(zip(tails.tolist(), heads.tolist(), strict=True))
        assert nx.is_tree(tree)
        assert len(tree) == rows * columns
    tails, heads, _ = Road(50, 50, missing=1.0).arcs()
    assert 0.45 < (heads - tails == 1).mean() < 0.55  # streets to the east, by the coin


# Negative arcs


@pytest.mark.parametrize("weights", ["uniform", "integers"])
def test_dag_has_a_topological_order_and_negative_arcs(weights):
    dag = Dag(300, seed=2, weights=weights, negative=0.25)
    tails, heads, values = dag.arcs()
    order = dag.topological_order()
    np.testing.assert_array_equal(np.sort(order), np.arange(300))
    place = np.argsort(order)
    assert (place[tails] < place[heads]).all()
    assert (place[:-1] > place[1:]).any()  # scrambled
    assert nx.is_directed_acyclic_graph(nx.DiGraph(zip(tails.tolist(), heads.tolist(), strict=True)))
    assert abs((values < 0).mean() - 0.25) < 6 * np.sqrt(0.25 * 0.75 / values.size)
    np.testing.assert_array_equal(np.abs(values), Dag(300, seed=2, weights=weights, negative=0).arcs()[2])
    np.testing.assert_array_equal(dag.topological_order(5, 9), order[5:9])


@pytest.mark.parametrize("length", [1, 2, 7, 40])
@pytest.mark.parametrize("weights", ["uniform", "integers"])
@pytest.mark.parametrize("shift", [0.0, 1.0, 8.0])
def test_the_planted_cycle_is_the_negative_one(length, weights, shift):
    graph = NegativeCycle(200, edge_factor=4, seed=5, length=length, weights=weights, shift=shift)
    vertices, weight = graph.cycle
    assert len(set(vertices)) == length
    if not shift:
        assert graph.arcs(start=length)[2].min() >= -weight
    found = find_negative_cycle(*csr(graph))
    assert found is not None
    assert found[1] == weight < 0
    turn = vertices.index(found[0][0])
    assert found[0] == vertices[turn:] + vertices[:turn]


def test_an_isolated_cycle_is_not_met():
    graph = NegativeCycle(300, seed=6, length=9, isolated=True, weights="integers")
    tails, heads, _ = graph.arcs()
    on = np.isin(np.arange(300), graph.cycle[0])
    assert not (on[heads] & ~on[tails]).any()
    assert (on[tails] & ~on[heads]).any()
    other = NegativeCycle(300, seed=6, length=9, weights="integers")
    assert (on[other.arcs()[1]] & ~on[other.arcs()[0]]).any()
    # SciPy's Bellman-Ford does not search from a source alone; so hand it what can be reached
    kept = ~on[tails]
    matrix = np.full((300, 300), np.inf)
    np.minimum.at(matrix, (tails[kept], heads[kept]), graph.arcs()[2][kept])
    outside = np.flatnonzero(~on)
    assert np.isfinite(bellman_ford(np.where(np.isinf(matrix), 0, matrix), indices=outside[0])[outside]).all()


# Descriptions, and the command


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("rmat", {"scale": 41}, "scale is 41; give a whole number from 0 to 40"),
        ("rmat", {"scale": -1}, "scale is -1"),
        ("rmat", {"scale": 5, "edge_factor": -1}, "edge_factor is -1"),
        ("rmat", {"scale": 5, "seed": 2**64}, "seed is 18446744073709551616"),
        ("rmat", {"scale": 5, "a": 0.7, "b": 0.3}, "a \\+ b \\+ c sum to 1.19"),
        ("rmat", {"scale": 5, "weights": "lengths"}, "RMat has no weights 'lengths'; choose uniform or integers"),
        ("rmat", {"scale": 5, "weights": "uniform", "dtype": "int32"}, "float32 or float64, not int32"),
        ("rmat", {"scale": 5, "missing": 0.5}, "missing is no option of a graph of kind rmat"),
        ("rmat", {}, "give scale=$"),
        ("random", {}, "give scale= or n=$"),
        ("random", {"scale": 5, "n": 7}, "and n=7 both"),
        ("random", {"n": 0}, "n is 0"),
        ("random", {"n": 9, "shift": 9.0}, "shift is 9.0; give a number from 0 to 8"),
        ("road", {"rows": 5, "jitter": 0.5}, "jitter is 0.5"),
        ("road", {"rows": 5, "shift": 1.0}, "lengths cannot be shifted"),
        ("grid", {"rows": 5, "scale": 3}, "and rows=5 both"),
        ("grid", {"columns": 5, "scale": 3}, "and columns=5 both"),
        ("grid", {"rows": 5, "missing": float("nan")}, "missing is nan"),
        ("dag", {"n": 1}, "n is 1; give a whole number from 2"),
        ("dag", {"n": 5, "directed": False}, "Dag must be directed"),
        ("negative-cycle", {"n": 5, "length": 6}, "length is 6; give a whole number from 1 to 5"),
        ("tree", {"scale": 3}, "no kind of graph called 'tree'; choose one of rmat, grid"),
    ],
)
def test_descriptions_that_make_no_sense(kind, options, message):
    with pytest.raises(ValueError, match=message):
        synthetic_graph(kind, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_scale_is_the_logarithm_of_the_vertices(kind):
    for scale in (3, 4):
        assert synthetic_graph(kind, scale=scale, **({"length": 2} if kind == "negative-cycle" else {})).n == 1 << scale


def test_edges_that_do_not_exist():
    with pytest.raises(ValueError, match="edges 0 to 81 were asked for; UniformRandom has 0 to 80"):
        UniformRandom(5).arcs(0, 81)


def test_what_cannot_fit_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DoesNotFitError, match=r"vertices need .* on this machine, .* free\. Generate fewer vertices"):
        generate(RMat(40), tmp_path / "g.zarr")
    with pytest.raises(DoesNotFitError, match=r"may take .*, but the disk has .* or generate a smaller graph"):
        generate(RMat(20, edge_factor=1 << 20), tmp_path / "g.zarr")
    assert list(tmp_path.iterdir()) == []
    generate(RMat(4), tmp_path / "g.zarr")
    monkeypatch.setattr("pipelines.stores.place.store_bytes", lambda _: 1 << 60)  # stays while arcs are sorted
    with pytest.raises(DoesNotFitError, match="may take"):
        generate(RMat(20, edge_factor=1 << 20), tmp_path / "g.zarr", overwrite=True)


def test_simplify_and_overwrite(tmp_path):
    path, graph = tmp_path / "g.zarr", RMat(8)
    whole = generate(graph, path)
    with pytest.raises(StoreError, match="--overwrite"):
        generate(graph, path)
    simple = generate(graph, path, simplify=True, overwrite=True)
    tails, heads, _ = graph.arcs()
    assert simple.m == 2 * _facts(256, tails, heads)[0] < whole.m
    assert simple.simplified


def test_the_command(tmp_path):
    assert generate_graph.params[0].type.choices == tuple(KINDS)
    path = str(tmp_path / "g.zarr")

    def call(*arguments):
        return invoke("generate", *arguments, catch_exceptions=True)

    done = call(
        "rmat", path, "--scale", "6", "--seed", "9", "--weights", "integers", "--quadrants", "0.5", "0.2", "0.2"
    )
    assert done.exit_code == 0, done.output
    assert "undirected graph, 64 vertices, 2,048 arcs; weights int32" in done.output
    stored = open_graph(path)
    assert stored.source == "RMat(scale=6, seed=9, weights='integers', dtype='int32', a=0.5, b=0.2, c=0.2)"
    np.testing.assert_array_equal(
        np.bincount(stored.rows()[2]), np.bincount(np.repeat(RMat(6, seed=9, weights="integers").arcs()[2], 2))
    )
    assert isinstance(call("rmat", path, "--scale", "6").exception, StoreError)
    assert call("road", path, "--scale", "8", "--overwrite", "--memory", "1").exit_code == 0
    assert open_graph(path).optional == {"coordinates"}
    done = call("negative-cycle", path, "--vertices", "40", "--length", "3", "--isolated", "--overwrite")
    vertices, weight = NegativeCycle(40, length=3, isolated=True).cycle
    assert f"with the cycle {' -> '.join(map(str, [*vertices, vertices[0]]))} of weight {weight:g}" in done.output
    assert call("grid", path, "--rows", "3", "--columns", "4", "--overwrite").exit_code == 0
    assert (open_graph(path).n, open_graph(path).m) == (12, 34)
    assert call("rmat", path, "--unscrambled", "--scale", "5", "--directed", "--simplify", "--overwrite").exit_code == 0
    assert call("tree", path).exit_code == 2
    assert call("rmat", path, "--scale", "x").exit_code == 2


def test_mistakes_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for arguments, message in (
        (["rmat", "g", "--scale", "60"], "scale is 60"),
        (["dag", "g"], "the number of vertices is missing"),
    ):
        monkeypatch.setattr(sys, "argv", ["tilepath", "generate", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line

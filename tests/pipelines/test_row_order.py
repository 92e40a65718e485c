"""Stores that keep rows as given: other numbers for arcs, the same answers."""

import dataclasses

import numpy as np
import pytest
from commands import run_command
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuops import cycle_labels, euler_circuit, pair_arcs, verify_circuit
from gpuops.certificates import find_potentials
from pipelines import all_pairs_shortest_paths, euler_circuits, generate, single_source_shortest_paths
from pipelines.analysis.measures import measures
from pipelines.formats.arc_sort import write_sorted
from pipelines.formats.arc_spool import ARC_BYTES
from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.graphs import import_graph
from pipelines.generators import ShallowEulerGraph, UniformRandom, csr, euler_of_degrees
from pipelines.routes.paths import PathFinder
from pipelines.routes.tree_paths import tree_path
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import open_graph
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.row_order import SHORT, sort_rows


def balanced(dtype, shift):
    """CSR with loops, parallel arcs of different weights and, by `shift`, negative arcs, but no negative cycle."""
    rng = np.random.default_rng(5)
    indptr, indices = euler_of_degrees(rng.integers(4, 16, 30), seed=1)
    potential = rng.integers(0, shift + 1, 30)
    tails = np.repeat(np.arange(30), np.diff(indptr))
    assert len(np.unique(np.stack([tails, indices]), axis=1).T) < len(indices) - 20
    weights = rng.integers(1, 60, len(indices)) + potential[tails] - potential[indices]
    return indptr, indices, weights.astype(dtype)


@pytest.fixture(
    scope="module", params=[pytest.param(("int32", 0), marks=pytest.mark.slow), ("float32", 0), ("int32", 40)], ids=str
)
def stores(request, tmp_path_factory):
    """The same graph with rows as given and sorted."""
    folder, graph = tmp_path_factory.mktemp("rows"), balanced(*request.param)
    as_given, by_head = (write_graph(folder / str(by), *graph, sorted_rows=by) for by in (False, True))
    assert not np.array_equal(as_given.indices(), by_head.indices())
    np.testing.assert_array_equal(as_given.indices(), graph[1])
    return as_given, by_head


def test_rows_are_handed_out_by_head(stores):
    as_given, by_head = stores
    assert (as_given.sorted_rows, by_head.sorted_rows) == (False, True)
    for part in (0, None), (7, 19), (3, 3):
        for found, expected in zip(as_given.rows(*part), by_head.rows(*part), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


@pytest.mark.parametrize(("head", "weight"), [(3, "u4"), (300, "u4"), (70_000, "u4"), (2**40, "u8")])
def test_rows_of_every_length_are_sorted_stably(head, weight):
    """By insertion, by distribution in two passes and in four, and rows that rise already."""
    rng = np.random.default_rng(head)
    lengths = [0, 1, 2, 5, SHORT - 1, SHORT, SHORT + 1, 1000, 0, 3000, 7]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    heads = rng.integers(0, head, indptr[-1]).astype("i4" if head < 2**31 else "i8")
    heads[indptr[7] : indptr[8]].sort()
    weights = rng.integers(0, 200, heads.size).astype(weight)
    order = np.lexsort((heads, np.repeat(np.arange(len(lengths)), lengths)))
    expected = heads[order], weights[order]
    sort_rows(indptr, heads, weights)
    np.testing.assert_array_equal(heads, expected[0])
    np.testing.assert_array_equal(weights, expected[1])


@pytest.mark.parametrize("method", ["floyd-warshall", "batched"])
def test_distances_paths_and_measures_are_the_same(client, stores, tmp_path, method):
    answers = []
    for name, graph in zip("ab", stores, strict=True):
        distances = all_pairs_shortest_paths(client, graph, tmp_path / name, method=method, verify=True)
        finder = PathFinder(distances)
        paths = [finder.path(source, target) for source in (0, 11) for target in range(graph.n)]
        find = dataclasses.asdict(measures(distances))
        answers.append((distances[:].tolist(), paths, {key: np.asarray(value).tolist() for key, value in find.items()}))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(("users", "options"), [("client", {}), ("two", {"spread": "vertices", "piece_arcs": 150})])
def test_searches_are_the_same(request, stores, tmp_path, users, options):
    found = []
    for name, graph in zip("ab", stores, strict=True):
        options = {"spread": "sources"} | options
        users_of = request.getfixturevalue(users)
        paths = single_source_shortest_paths(users_of, graph, tmp_path / name, [11], verify=True, **options)
        walks = [tree_path(paths, 11, target, graph=graph) for target in range(graph.n)]
        found.append((paths.distances().tolist(), walks))
    assert found[0] == found[1]


def test_potentials_are_the_same(stores):
    found = [find_potentials(*graph.rows(), graph.through()) for graph in stores]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("method", ["stages", "hierholzer"])
def test_circuits_follow_the_order_of_the_store(client, stores, tmp_path, method):
    for name, graph in zip("ab", stores, strict=True):
        circuits = euler_circuits(client, graph, tmp_path / name, method=method, verify=True)
        expected = euler_circuit(graph.indptr(), graph.indices(), method=method)
        np.testing.assert_array_equal(circuits.arcs(), expected.arcs)
        verify_circuit(graph.indptr(), graph.indices(), *expected)


def test_the_digest_and_the_seal_cover_the_order(stores, tmp_path):
    as_given, by_head = stores
    as_given.verify()
    by_head.verify()
    again = write_graph(tmp_path / "g", *by_head.rows(), sorted_rows=False)  # sorted all the same, but not known to be
    assert again.digest != by_head.digest
    again.verify()
    with pytest.raises(StoreError, match="do not match the recorded digest"):
        dataclasses.replace(again, sorted_rows=True).verify()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), m=st.integers(0, 400), limit=st.integers(1, 90),
    size=st.integers(1, 90), directed=st.booleans(),
)  # fmt: skip
def test_the_external_sort_keeps_the_order_of_the_source(tmp_path_factory, seed, n, m, limit, size, directed):
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, n, (2, m))
    weights = rng.integers(0, 99, m).astype("int16")
    pieces = [tuple(x[i : i + size] for x in (tails, heads, weights)) for i in range(0, m, size)]
    stream = ArcStream(pieces, n=n, directed=directed, weight_dtype="int16")
    path = tmp_path_factory.mktemp("sort") / "g"
    graph = write_sorted(path, stream, sorted_rows=False, memory=limit * ARC_BYTES)
    rows = [[] for _ in range(n)]
    for u, v in zip(tails.tolist(), heads.tolist(), strict=True):
        rows[u].append(v)
        if not directed:
            rows[v].append(u)
    assert graph.indices().tolist() == [v for row in rows for v in row]
    graph.verify()


def test_shallow_graphs_fall_into_the_published_share_of_circuits_where_rows_are_as_given(tmp_path):
    """Per vertex 0.0434 in random order (published: 45,514 of 1,048,575 vertices) and 0.088 sorted by head."""
    for sorted_rows, share in (False, 0.0434), (True, 0.088):
        graph = generate(ShallowEulerGraph(20_001), tmp_path / str(sorted_rows), sorted_rows=sorted_rows)
        labels = cycle_labels(pair_arcs(graph.indptr(), graph.indices()))
        assert int((labels == np.arange(graph.m)).sum()) / graph.n == pytest.approx(share, abs=0.004)


@pytest.mark.parametrize("directed", [True, False])
def test_a_made_graph_keeps_the_order_it_has_in_memory(tmp_path, directed):
    made = UniformRandom(50, edge_factor=6, directed=directed)
    graph = generate(made, tmp_path / "g", sorted_rows=False)
    indptr, indices, _ = csr(made)
    np.testing.assert_array_equal(graph.indptr(), indptr)
    np.testing.assert_array_equal(graph.indices(), indices)


def test_simplified_rows_are_sorted(tmp_path):
    for make in (
        lambda path: generate(UniformRandom(9), path, simplify=True, sorted_rows=False),
        lambda path: write_sorted(path, ArcStream([], n=3), simplify=True, sorted_rows=False),
    ):
        with pytest.raises(ValueError, match="simplified rows are sorted by head.*leave out"):
            make(tmp_path / "g")
        assert not (tmp_path / "g").exists()


def test_commands_keep_rows_as_given(tmp_path):
    source, store = tmp_path / "g.txt", str(tmp_path / "g.zarr")
    source.write_text("0 2 5\n0 1 7\n1 0 1\n2 0 1\n")

    def run(*arguments):
        return run_command(*arguments).output

    assert "; rows as given" in run("import", source, store, "--unsorted")
    assert "; rows as given" in run("info", store)
    assert open_graph(store).indices().tolist() == [2, 1, 0, 0]
    assert "rows as given" not in run("import", source, store, "--overwrite")
    assert open_graph(store).digest == import_graph(source, tmp_path / "h").digest
    assert "; rows as given" in run("generate", "euler-shallow", store, "--scale", 4, "--unsorted", "--overwrite")

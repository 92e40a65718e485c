"""The pipeline against SciPy, NetworkX, a Dijkstra that honours closed vertices, and its certificate."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from families import diagonals, one_in
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import as_stored, dijkstra, random_arcs, scipy_graph, shifted, store_arcs
from pipeline_fixtures import CASES, kill_at, let_tasks_end, two_pids
from scipy.sparse.csgraph import shortest_path

from gpuops import NegativeCycleError
from gpuops.errors import WeightRangeError
from gpuops.numbers import outside_infinity
from pipelines import all_pairs_shortest_paths, positions, single_source_shortest_paths
from pipelines.apsp.methods import Job, Request, choose
from pipelines.apsp.solve import METHODS
from pipelines.formats.graphs import import_graph
from pipelines.sssp.job import SearchJob
from pipelines.sssp.plan import make_search_plan
from pipelines.sssp.searches import _Searcher
from pipelines.stores.distances import DistancesWriter, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.paths import PathsWriter, open_paths
from pipelines.workers.capacity import DoesNotFitError, WorkerFacts

ROME = Path(__file__).parents[3] / "scripts" / "data" / "rome99.gr"


# Cluster and options of the ways a search can be spread.
WAYS = {
    "one by sources": ("client", {}),
    "two by vertices": ("two", {"spread": "vertices"}),
    "three in pieces": ("three", {"spread": "vertices", "piece_arcs": 60}),
}


def expected(n, arcs, source, dtype="int32", through=None):
    """Distances from a vertex as a store of `dtype` holds them: by SciPy, or where vertices are closed by Dijkstra."""
    if through is None:
        return as_stored(shortest_path(scipy_graph(n, *arcs), indices=source), dtype)
    return as_stored(dijkstra(n, *arcs, through, source), dtype)


@pytest.mark.parametrize(("kind", "way"), diagonals(list(CASES), ["one by sources", "three in pieces"]))
def test_every_graph(request, graphs, tmp_path, kind, way):
    users, options = WAYS[way]
    n, arcs, facts = graphs[kind]
    graph = store_arcs(tmp_path / "g", n, *arcs, "int32", **facts)
    sources = [0, n - 1] if n > 1 and way == "one by sources" else [n - 1]
    result = single_source_shortest_paths(
        request.getfixturevalue(users), graph, tmp_path / "p", sources, verify=True, **options
    )
    assert result.dtype == np.int32
    want = [expected(n, arcs, s, through=facts.get("through")) for s in sources]
    np.testing.assert_array_equal(result.distances(), want)
    result.verify()


@pytest.mark.parametrize(
    ("weight", "dtype", "targets"),
    [(3, "int32", None), (0.1, "float32", [7, 9]), (0, "int32", [5])],
)
def test_equal_weights_are_searched_by_hops(client, two, tmp_path, monkeypatch, weight, dtype, targets):
    n, m = 90, 270
    tails, heads, _ = random_arcs(n, m, seed=7)
    kind = "int32" if dtype == "int32" else "float64"
    through = np.arange(n) % 11 != 5
    graph = store_arcs(tmp_path / "g", n, tails, heads, np.full(m, weight), kind, through=through)
    options = {"sources": [3, 5, 8, 16], "dtype": dtype, "verify": True}
    if targets is not None:
        options["targets"] = targets
    plain = single_source_shortest_paths(two, graph, tmp_path / "plain", spread="vertices", **options)

    def unwanted(*_, **__):
        raise AssertionError("searched otherwise")

    monkeypatch.setattr("pipelines.sssp.searches.search_graph", unwanted)
    found = single_source_shortest_paths(client, graph, tmp_path / "found", **options)
    np.testing.assert_array_equal(found.distances(), plain.distances())
    alone = single_source_shortest_paths(
        client, graph, tmp_path / "alone", predecessors=False, **options | {"verify": False}
    )
    np.testing.assert_array_equal(alone.distances(), plain.distances())
    if targets is None:
        every = all_pairs_shortest_paths(client, graph, tmp_path / "d", method="batched", dtype=dtype, verify=True)
        np.testing.assert_array_equal([every.row(source) for source in options["sources"]], plain.distances())
    with pytest.raises(AssertionError, match="searched otherwise"):
        single_source_shortest_paths(client, graph, tmp_path / "one", [3])  # in parallel, by weights


def test_floats_have_the_bits_of_one_worker(client, three, tmp_path):
    n, m = 80, 320
    tails, heads, _ = random_arcs(n, m, seed=4)
    weights = np.random.default_rng(5).random(m) * 10.0 ** np.random.default_rng(6).integers(-6, 2, m)
    through = np.arange(n) % 7 != 3
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, "float64", through=through)
    result = single_source_shortest_paths(
        three, graph, tmp_path / "p", [3, 8], spread="vertices", piece_arcs=120, verify=True
    )
    plain = single_source_shortest_paths(client, graph, tmp_path / "q", [8, 3], predecessors=False)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.distances(), plain.distances()[::-1])
    want = [dijkstra(n, tails, heads, weights, through, s) for s in (3, 8)]
    np.testing.assert_allclose(result.distances(), want, rtol=1e-5)
    exact = single_source_shortest_paths(client, graph, tmp_path / "e", [3, 8], dtype="float64", verify=True)
    np.testing.assert_allclose(exact.distances(), want, rtol=1e-14)


def test_rome(client, three, tmp_path):
    graph = import_graph(ROME, tmp_path / "rome")
    indptr, indices, weights = graph.rows()
    tails = np.repeat(np.arange(graph.n), np.diff(indptr))
    sources = [7, 3000, 500]
    want = [expected(graph.n, (tails, indices, weights), s) for s in sources]
    by_vertices = single_source_shortest_paths(
        three, graph, tmp_path / "v", positions(sources), spread="vertices", verify=True
    )
    np.testing.assert_array_equal(by_vertices.distances(), want)
    many = range(0, graph.n, 50)
    by_sources = single_source_shortest_paths(three, graph, tmp_path / "s", positions([*many, 7]), verify=True)
    np.testing.assert_array_equal(
        by_sources.distances([many.index(3000), many.index(500), len(many)]), [want[1], want[2], want[0]]
    )


def test_a_social_network(client, three, tmp_path):
    """Undirected, without weights of its own, a few hubs, and friends who know nobody else."""
    rng = np.random.default_rng(3)
    n = 800
    a = (n * rng.random(3000) ** 3).astype(int)
    b = rng.integers(0, n, 3000)
    apart = (a >= 780) != (b >= 780)
    a, b = a[~apart], b[~apart]
    tails, heads, ones = np.concatenate([a, b]), np.concatenate([b, a]), np.ones(2 * len(a))
    graph = store_arcs(tmp_path / "g", n, tails, heads, ones, "int32", directed=False)
    want = [expected(n, (tails, heads, ones), s) for s in (0, 790)]
    assert 1 < (want[1] != outside_infinity("int32")).sum() < 21
    for users, spread in ((client, "sources"), (three, "vertices")):
        result = single_source_shortest_paths(users, graph, tmp_path / spread, [0, 790], spread=spread, verify=True)
        np.testing.assert_array_equal(result.distances(), want)


@st.composite
def searches(draw):
    """A small graph without negative cycles, and what to ask of it: facts of the graph, sources and options."""
    n = draw(st.integers(1, 9))
    vertices = st.integers(0, n - 1)
    arcs = draw(st.lists(st.tuples(vertices, vertices, st.integers(0, 5)), max_size=30))
    tails, heads, weights = np.array(arcs, dtype=int).reshape(-1, 3).T
    potential = np.array(draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    weights = weights + potential[tails] - potential[heads]
    dtype = draw(st.sampled_from(["int32", "float32", "float64"]))
    facts = {"through": np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))} if draw(st.booleans()) else {}
    sources = draw(st.lists(vertices, min_size=1, max_size=3, unique=True))
    options = {"together": draw(st.booleans())}
    if draw(st.booleans()):
        options |= {"spread": "vertices", "piece_arcs": draw(st.sampled_from([8, 100]))}
    if len(arcs) == 0 or weights.min() >= 0:
        options["cutoff"] = draw(st.none() | st.integers(0, 12))
        options["targets"] = draw(st.none() | st.lists(vertices, min_size=1, max_size=2, unique=True))
    return (n, tails, heads, weights, dtype), facts, sources, options


@given(search=searches(), workers=st.sampled_from(["client", "two", "three"]))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_search_gets_its_certificate(request, tmp_path_factory, search, workers):
    graph, facts, sources, options = search
    folder, users = tmp_path_factory.mktemp("any"), request.getfixturevalue(workers)
    single_source_shortest_paths(
        users, store_arcs(folder / "g", *graph, **facts), folder / "p", sources, verify=True, **options
    ).verify()


@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_several_sources_as_one(request, tmp_path, way):
    users, options = WAYS[way]
    n, sources = 60, [3, 40, 17]
    arcs = random_arcs(n, 200, seed=2)
    through = np.arange(n) != 40
    graph = store_arcs(tmp_path / "g", n, *arcs, "int32", through=through)
    result = single_source_shortest_paths(
        request.getfixturevalue(users), graph, tmp_path / "p", sources, together=True, verify=True, **options
    )
    assert result.shape == (1, n)
    rows = np.array([expected(n, arcs, s, through=through) for s in sources])
    np.testing.assert_array_equal(result.distances(0), rows.min(axis=0))
    predecessors = result.predecessors(0)
    for v in np.flatnonzero(result.distances(0) < outside_infinity("int32")):
        root = v
        while predecessors[root] >= 0:
            root = predecessors[root]
        assert rows[sources.index(root), v] == rows[:, v].min()


@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_cutoff_and_targets_keep_what_is_near(request, tmp_path, way):
    users, options = WAYS[way]
    n, arcs = 50, random_arcs(50, 150, seed=3)
    graph = store_arcs(tmp_path / "g", n, *arcs, "int32")
    want, none = expected(n, arcs, 5), outside_infinity("int32")

    def search(name, **more):
        return single_source_shortest_paths(
            request.getfixturevalue(users), graph, tmp_path / name, [5], verify=True, **options, **more
        )

    limit = int(np.median(want[want < none]))
    np.testing.assert_array_equal(search("cutoff", cutoff=limit).distances(0), np.where(want <= limit, want, none))
    near, far = np.argsort(want)[[10, 30]]
    kept = np.where(want <= want[far], want, none)
    np.testing.assert_array_equal(search("targets", targets=[near, far]).distances(0), kept)
    both = search("both", targets=[far], cutoff=want[near])
    np.testing.assert_array_equal(both.distances(0), np.where(want <= want[near], want, none))
    assert (both.cutoff, both.targets) == (want[near], (far,))


def nearest(want, cutoff, targets):
    """What is kept of distances: within the cutoff, and no farther than the farthest target within the cutoff."""
    kept = np.where(want > cutoff, np.inf, want)
    reached = kept[targets][np.isfinite(kept[targets])]
    return np.where(kept > reached.max(initial=-1), np.inf, kept) if reached.size else kept


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (4, *range(6, 60)))])
@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_cutoff_and_targets_mean_the_same_by_sources_and_by_vertices(request, tmp_path, way, seed):
    users, options = WAYS[way]
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    tails, heads, weights = random_arcs(n, int(rng.integers(n, 4 * n)), high=9, seed=seed)
    through = rng.random(n) < 0.8
    dtype = rng.choice(["int32", "float32", "float64"])
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, dtype, through=through)
    sources = rng.choice(n, min(n, 3), replace=False)
    want = np.array([dijkstra(n, tails, heads, weights, through, s) for s in sources])
    together = bool(rng.random() < 0.3)
    want = want.min(axis=0, keepdims=True) if together else want
    for trial in range(3):
        targets = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False)
        cutoff = rng.choice(want[np.isfinite(want)]) + rng.choice([0, 0.5])
        kept = np.array([nearest(row, cutoff, targets) for row in want])
        found = single_source_shortest_paths(
            request.getfixturevalue(users), graph, tmp_path / f"{trial}", sources,
            cutoff=cutoff, targets=targets, together=together, verify=True, **options,
        )  # fmt: skip
        held = found.distances().astype(float)
        held[held == outside_infinity(found.dtype)] = np.inf
        np.testing.assert_array_equal(held, kept)


@pytest.mark.parametrize(
    ("way", "dtype"), [("one by sources", "int32"), ("two by vertices", "int32"), ("two by vertices", "float32")]
)
def test_a_cutoff_beyond_all_numbers_cuts_nothing(request, tmp_path, way, dtype):
    users, options = WAYS[way]
    graph = store_arcs(tmp_path / "g", 40, *random_arcs(40, 130), dtype)

    def search(name, **more):
        more |= options
        users_of = request.getfixturevalue(users)
        return single_source_shortest_paths(users_of, graph, tmp_path / name, [3], dtype=dtype, verify=True, **more)

    want = search("without").distances()
    for cutoff in (3.5e38,) if dtype == "int32" else (3.5e38, np.inf):
        found = search(f"{cutoff}", cutoff=cutoff)
        np.testing.assert_array_equal(found.distances(), want)
        assert found.cutoff == cutoff


def test_a_target_beyond_the_cutoff_sets_no_limit(client, two, tmp_path):
    """0 -> 1 -> 2 -> 3 in steps of 1: with a cutoff of 2 the target 3 is not reached, and 1 is the farthest that is."""
    graph = store_arcs(tmp_path / "g", 4, np.arange(3), np.arange(1, 4), np.ones(3), "int32")
    none = outside_infinity("int32")
    for users, spread in ((client, "sources"), (two, "vertices")):
        for targets, kept in (([1, 3], [0, 1, none, none]), ([3], [0, 1, 2, none])):
            found = single_source_shortest_paths(
                users,
                graph,
                tmp_path / f"{spread} {targets}",
                [0],
                cutoff=2,
                targets=targets,
                spread=spread,
                verify=True,
            )
            assert found.distances(0).tolist() == kept


def test_a_target_out_of_reach_limits_nothing(client, tmp_path):
    arcs = np.array([0, 1]), np.array([1, 2]), np.array([1, 1])
    graph = store_arcs(tmp_path / "g", 5, *arcs, "int32")
    result = single_source_shortest_paths(client, graph, tmp_path / "p", [0], targets=[4], verify=True)
    assert result.distances(0).tolist()[:3] == [0, 1, 2]


def negative_cycle_graph(path, *, way_in):
    """0 .. 29 in a row, and a cycle 40 -> 41 -> 42 -> 43 of weight -1, to which an arc leads from 20 if `way_in`."""
    row = np.arange(29)
    cycle = np.array([40, 41, 42, 43])
    tails = np.concatenate([row, cycle, [20] if way_in else []]).astype(int)
    heads = np.concatenate([row + 1, np.roll(cycle, -1), [41] if way_in else []]).astype(int)
    weights = np.concatenate([np.ones(29), [5, -4, 1, -3], [2] if way_in else []])
    return store_arcs(
        path, 60, tails, heads, weights, "int32", labels=np.array([f"v{i}" for i in range(60)], dtype=object)
    )


@pytest.mark.parametrize("way", ["one by sources", "three in pieces"])
def test_a_negative_cycle_in_reach_is_named(request, tmp_path, monkeypatch, way):
    monkeypatch.setattr("pipelines.sssp.vertex_rounds.FIRST_CHECK", 2)
    users, options = WAYS[way]
    options = options | ({"piece_arcs": 3} if "piece_arcs" in options else {})
    graph = negative_cycle_graph(tmp_path / "g", way_in=True)
    for closed in (None, [43]):
        if closed:
            through = np.ones(60, bool)
            through[closed] = False
            indptr, indices, weights = graph.rows()
            graph = write_graph(tmp_path / "closed", indptr, indices, weights, through=through, labels=graph.labels())
            # The way round is barred, so there is an answer.
            result = single_source_shortest_paths(
                request.getfixturevalue(users), graph, tmp_path / "p", ["v0"], verify=True, **options
            )
            assert result.distances((0, 43)) == 20 + 2 - 4 + 1
            continue
        with pytest.raises(NegativeCycleError, match="v4[0-3] -> .* weighs -1") as caught:
            single_source_shortest_paths(request.getfixturevalue(users), graph, tmp_path / "p", ["v0"], **options)
        assert set(caught.value.vertices) == {40, 41, 42, 43}
        assert caught.value.weight == -1
        assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_a_negative_cycle_out_of_reach_is_none(request, tmp_path, way):
    users, options = WAYS[way]
    graph = negative_cycle_graph(tmp_path / "g", way_in=False)
    result = single_source_shortest_paths(
        request.getfixturevalue(users), graph, tmp_path / "p", ["v0"], verify=True, **options
    )
    assert result.distances((0, 29)) == 29
    assert result.distances((0, 41)) == outside_infinity("int32")
    with pytest.raises(NegativeCycleError):
        single_source_shortest_paths(request.getfixturevalue(users), graph, tmp_path / "q", ["v0", "#42"], **options)


@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_a_negative_loop_counts_where_it_can_be_gone_around(request, tmp_path, way):
    users, options = WAYS[way]
    arcs = np.array([0, 1, 3, 4, 1]), np.array([1, 2, 3, 4, 4]), np.array([2, 3, -1, -2, 1])
    graph = store_arcs(tmp_path / "g", 5, *arcs, "int32", through=np.array([True] * 4 + [False]))

    def search(source):
        return single_source_shortest_paths(
            request.getfixturevalue(users), graph, tmp_path / f"{source}", [source], verify=True, **options
        )

    assert search(0).distances(0).tolist()[:3] == [0, 2, 5]
    for source in (3, 4):
        with pytest.raises(NegativeCycleError, match=f"{source} -> {source} weighs") as caught:
            search(source)
        assert (caught.value.vertices, caught.value.weight) == ((source,), 2 - source)


@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_a_source_that_is_nearer_from_another_one(request, tmp_path, way):
    """0 -> 1 weighs -3, so 1 has a predecessor. Once 1 is closed, what follows it begins at its start all the same."""
    users, options = WAYS[way]
    arcs = np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([-3, 5, 1])

    def search(name, **facts):
        graph = store_arcs(tmp_path / f"{name}-graph", 4, *arcs, "int32", **facts)
        result = single_source_shortest_paths(
            request.getfixturevalue(users), graph, tmp_path / name, [0, 1], together=True, verify=True, **options
        )
        assert result.predecessors(0).tolist() == [-1, 0, 1, 2]
        return result.distances(0).tolist()

    assert search("open") == [0, -3, 2, 3]
    assert search("closed", through=np.array([True, False, True, True])) == [0, -3, 5, 6]


@pytest.mark.parametrize("way", ["one by sources", "two by vertices"])
def test_a_negative_cycle_through_a_closed_source_is_one(request, tmp_path, way):
    users, options = WAYS[way]
    arcs = np.array([0, 1, 3, 4]), np.array([1, 0, 4, 3]), np.array([1, -3, 1, -3])
    graph = store_arcs(tmp_path / "g", 5, *arcs, "int32", through=np.array([False, True, True, False, False]))
    with pytest.raises(NegativeCycleError, match="0 -> 1 -> 0 weighs -2|1 -> 0 -> 1 weighs -2"):
        single_source_shortest_paths(request.getfixturevalue(users), graph, tmp_path / "p", [0], **options)
    assert not (tmp_path / "p").exists()
    result = single_source_shortest_paths(
        request.getfixturevalue(users), graph, tmp_path / "p", [1], verify=True, **options
    )
    assert result.distances(0).tolist()[:2] == [-3, 0]


def test_predecessors_around_a_zero_cycle_begin_at_the_source(two, tmp_path):
    """0 -> 1 -> 3 -> 0 weighs nothing; the first two arcs are one worker's, and not negative; 2 is the source."""
    arcs = np.array([0, 1, 2, 3]), np.array([1, 3, 1, 0]), np.array([1, 0, 5, -1])
    graph = store_arcs(tmp_path / "g", 4, *arcs, "int32")
    result = single_source_shortest_paths(two, graph, tmp_path / "p", [2], spread="vertices", verify=True)
    assert result.distances(0).tolist() == [4, 5, 0, 5]
    assert result.predecessors(0).tolist() == [3, 2, -1, 1]


def test_negative_weights_against_networkx(client, two, tmp_path):
    n = 300
    tails, heads, weights = random_arcs(n, 1500, seed=8)
    weights = shifted(n, tails, heads, weights)
    assert weights.min() < 0
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, "int32")
    arcs = nx.DiGraph()
    arcs.add_nodes_from(range(n))
    for u, v, w in zip(tails.tolist(), heads.tolist(), weights.tolist(), strict=True):
        if u != v and (not arcs.has_edge(u, v) or arcs[u][v]["weight"] > w):
            arcs.add_edge(u, v, weight=w)
    want = nx.single_source_bellman_ford_path_length(arcs, 7)
    for users, spread in ((client, "sources"), (two, "vertices")):
        result = single_source_shortest_paths(
            users, graph, tmp_path / "p", [7], spread=spread, verify=True, overwrite=True
        )
        found = result.distances(0)
        reached = found < outside_infinity("int32")
        assert dict(zip(np.flatnonzero(reached).tolist(), found[reached].tolist(), strict=True)) == want


def test_distances_beyond_int32_end_in_an_error_that_names_the_cure(client, two, tmp_path):
    chain = np.arange(9), np.arange(1, 10), np.full(9, 2**29)
    graph = store_arcs(tmp_path / "g", 10, *chain, "int32")
    for users, spread in ((client, "sources"), (two, "vertices")):
        with pytest.raises(WeightRangeError, match="--dtype float64"):
            single_source_shortest_paths(users, graph, tmp_path / "p", [0], spread=spread)
        assert not (tmp_path / "p").exists()
    result = single_source_shortest_paths(client, graph, tmp_path / "p", [0], dtype="float64", verify=True)
    assert result.distances((0, 9)) == 9 * 2.0**29
    heavy = store_arcs(tmp_path / "h", 10, *chain[:2], np.full(9, -(2**29)), "int64")
    with pytest.raises(WeightRangeError, match="--dtype float64"):
        single_source_shortest_paths(client, heavy, tmp_path / "q", [0])


def test_options_of_numpy_are_recorded_as_those_of_python(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 9, *random_arcs(9, 30, low=1), "int32")
    flags = {"together": np.True_, "predecessors": np.False_, "cutoff": np.float32(4)}
    found = single_source_shortest_paths(client, graph, tmp_path / "p", [0], **flags)
    assert (found.together, found.has_predecessors, found.cutoff) == (True, False, 4)


def test_options_that_cannot_be_are_refused(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 9, *random_arcs(9, 30, low=1), "int32")
    signed = store_arcs(tmp_path / "s", 3, np.array([0]), np.array([1]), np.array([-1]), "int32")

    def message(given, **options):
        with pytest.raises((ValueError, TypeError)) as caught:
            single_source_shortest_paths(client, given, tmp_path / "p", **({"sources": [0]} | options))
        assert not (tmp_path / "p").exists()
        return str(caught.value)

    assert "there is no vertex 9" in message(graph, sources=[0, 9])
    assert "there is no vertex -1" in message(graph, sources=[-1])
    assert "source 4 is named twice" in message(graph, sources=[4, 1, 4])
    assert "no source" in message(graph, sources=[])
    assert "there is no vertex 77" in message(graph, targets=[77])
    assert "cutoff is -1" in message(graph, cutoff=-1)
    assert "spread is 'source'; pass one of 'sources', 'vertices'" in message(graph, spread="source")
    for arcs in (0, -5, 2.5, "7"):
        expected = f"piece_arcs is {arcs!r}; give a whole number from 1"
        assert expected in message(graph, spread="vertices", piece_arcs=arcs)
    assert "not int16" in message(graph, dtype="int16")
    assert "without cutoff" in message(signed, cutoff=3)
    assert "without targets" in message(signed, targets=[1])
    assert "follows predecessors" in message(graph, predecessors=False, verify=True)


def test_what_does_not_fit_is_refused_before_anything_is_written(client, tmp_path, monkeypatch):
    graph = store_arcs(tmp_path / "g", 2000, *random_arcs(2000, 6000), "int32")
    monkeypatch.setattr("pipelines.workers.capacity.available_memory", lambda: 10_000)
    with pytest.raises(DoesNotFitError, match="the distances of 2,000 vertices need .* has 9.8 KiB free"):
        single_source_shortest_paths(client, graph, tmp_path / "p", [0])
    monkeypatch.undo()
    monkeypatch.setattr("pipelines.workers.capacity.shutil.disk_usage", lambda folder: _Usage(1000))
    with pytest.raises(DoesNotFitError, match="the disk has 1000 B free"):
        single_source_shortest_paths(client, graph, tmp_path / "p", [0])
    assert not (tmp_path / "p").exists()


class _Usage:
    def __init__(self, free):
        self.free = free


def test_the_planner_says_how_and_why(tmp_path):
    graph = store_arcs(tmp_path / "g", 1000, *random_arcs(1000, 100_000), "int32")

    def plan(rows, free, workers=1, **options):
        facts = [WorkerFacts(f"w{i}", f"host{i}", "CPU", False, free, 0.0) for i in range(workers)]
        return make_search_plan(SearchJob(graph, np.dtype("int32")), rows, facts, **options)

    assert (plan(1, 10**9).spread, plan(1, 10**9).reason) == ("sources", "one worker holds the graph")
    assert plan(40, 10**9, workers=3).spread == "sources"
    assert "less than in rounds" in plan(1, 10**9, workers=3).reason
    streamed = plan(1, 10**6)
    assert (streamed.spread, streamed.reason) == ("vertices", "the graph does not fit a worker")
    assert streamed.pieces > 2
    assert max(streamed.needs.device) <= 10**6
    assert plan(1, 2 * 10**6, workers=3).spread == "vertices"
    with pytest.raises(DoesNotFitError, match="--spread vertices"):
        plan(1, 10**6, spread="sources")
    with pytest.raises(DoesNotFitError, match="the distances of 1,000 vertices"):
        plan(1, 10**4)


def test_an_existing_output_is_not_touched_unasked(client, tmp_path):
    graph = store_arcs(tmp_path / "g", 50, *random_arcs(50, 300), "int32")
    other = store_arcs(tmp_path / "other", 50, *random_arcs(50, 300, seed=9), "int32")
    search = single_source_shortest_paths
    before = search(client, graph, tmp_path / "p", [1, 2]).distances()
    with pytest.raises(StoreError, match="exists already"):
        search(client, graph, tmp_path / "p", [1, 2])
    again = search(client, graph, tmp_path / "p", [1, 2], resume=True)  # finished: returned as it is
    np.testing.assert_array_equal(again.distances(), before)
    for options, fault in (
        ({"dtype": "float32"}, "begun with dtype"),
        ({"together": True}, "begun with together"),
        ({"cutoff": 3}, "begun without cutoff, not with 3.0; repeat its options, or begin again with overwrite"),
        ({"predecessors": False}, "begun with predecessors"),
    ):
        with pytest.raises(StoreError, match=fault):
            search(client, graph, tmp_path / "p", [1, 2], resume=True, **options)
    with pytest.raises(StoreError, match="begun with sources"):
        search(client, graph, tmp_path / "p", [1], resume=True)
    with pytest.raises(StoreError, match="another graph"):
        search(client, other, tmp_path / "p", [1, 2], resume=True)
    assert search(client, graph, tmp_path / "p", [4], overwrite=True).shape == (1, 50)


@pytest.mark.parametrize("spread", one_in(2, ["vertices", "sources"]))
def test_a_killed_worker_costs_nothing_but_time(client, two_processes, tmp_path, monkeypatch, kill_when, spread):
    """kill -9 of one of two worker processes: the bits of an undisturbed run come out."""
    monkeypatch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)
    n, rows = 600, 60 if spread == "sources" else 8
    tails, heads, _ = random_arcs(n, 3000)
    graph = store_arcs(tmp_path / "g", n, tails, heads, np.random.default_rng(8).random(3000), "float64")
    want = single_source_shortest_paths(client, graph, tmp_path / "calm", range(rows)).distances()
    monkeypatch.setattr("pipelines.sssp.plan.CHUNK_BYTES", n * 4)
    monkeypatch.setattr("pipelines.sssp.plan.BATCH", 1)  # chunks of one row: many tasks
    out = tmp_path / "killed"
    killed = kill_when(PathsWriter.begun, out, {1: two_pids(two_processes)[0]})
    result = single_source_shortest_paths(two_processes, graph, out, range(rows), spread=spread, verify=True)
    assert 1 <= killed[0] < rows
    np.testing.assert_array_equal(result.distances(), want)


RUN = """
import sys
import pipelines.sssp.plan, pipelines.sssp.searches
from clusters import start
from pipelines import single_source_shortest_paths
pipelines.workers.row_chunks.RECORD_SECONDS = 0.0
pipelines.sssp.plan.CHUNK_BYTES = pipelines.sssp.plan.BATCH = 1
if __name__ == "__main__":
    with start(device="cpu") as client:
        single_source_shortest_paths(client, sys.argv[1], sys.argv[2], range(100))
"""


def test_a_killed_run_resumes_where_it_was(client, two, tmp_path):
    """kill -9 of everything half-way, then --resume, on another number of workers."""
    n = 600
    graph = store_arcs(tmp_path / "g", n, *random_arcs(n, 3000), "float32")
    out = tmp_path / "killed"
    kill_at(5, PathsWriter.begun, RUN, graph.path, out)
    with pytest.raises(StoreError, match="--resume"):
        open_paths(out)
    written = (out / "distances" / "c" / "0" / "0").stat().st_mtime_ns
    result = single_source_shortest_paths(two, graph, out, range(100), resume=True, verify=True)
    assert (out / "distances" / "c" / "0" / "0").stat().st_mtime_ns == written  # what is done is not done again
    want = single_source_shortest_paths(client, graph, tmp_path / "calm", range(100), predecessors=False)
    np.testing.assert_array_equal(result.distances(), want.distances())


@pytest.mark.parametrize("kind", ["plain", "closed", "negative", "some rows"])
def test_all_pairs_by_searches_are_those_of_floyd_warshall(client, three, tmp_path, kind):
    n = 300
    tails, heads, weights = random_arcs(n, 1200, seed=6)
    if kind == "negative":
        weights = shifted(n, tails, heads, weights)
    through = np.random.default_rng(1).random(n) < 0.7 if kind == "closed" else None
    graph = store_arcs(tmp_path / "g", n, tails, heads, weights, "int32", through=through)
    options = {"sources": [250, 3, 4]} if kind == "some rows" else {}
    want = all_pairs_shortest_paths(client, graph, tmp_path / "fw", method="floyd-warshall", **options)
    got = all_pairs_shortest_paths(three, graph, tmp_path / "b", method="batched", verify=True, **options)
    np.testing.assert_array_equal(got[:], want[:])
    got.verify()
    written = (tmp_path / "b" / "zarr.json").stat().st_mtime_ns
    all_pairs_shortest_paths(client, graph, tmp_path / "b", resume=True, **options)
    assert (tmp_path / "b" / "zarr.json").stat().st_mtime_ns == written  # nothing is computed again
    with pytest.raises(StoreError, match="begun with method batched"):
        all_pairs_shortest_paths(client, graph, tmp_path / "b", resume=True, method="floyd-warshall", **options)


def test_all_pairs_by_searches_resume_by_rows(client, tmp_path, monkeypatch):
    graph = store_arcs(tmp_path / "g", 300, *random_arcs(300, 1200), "int32")
    monkeypatch.setattr("pipelines.workers.row_chunks.RECORD_SECONDS", 0.0)
    write, written = "pipelines.stores.distances.DistancesWriter.writer", DistancesWriter.writer
    monkeypatch.setattr("pipelines.apsp.batched.EDGE", 64)

    def fail(run):
        def block(start, column, values):
            if start >= 128:
                while DistancesWriter.begun(tmp_path / "d").progress()[0] < 128:  # until what went before is recorded
                    time.sleep(0.01)
                raise RuntimeError("the plug is pulled")
            written(run)(start, column, values)

        return block

    with monkeypatch.context() as patch:
        patch.setattr(write, fail)
        with pytest.raises(RuntimeError, match="plug"):
            all_pairs_shortest_paths(client, graph, tmp_path / "d", method="batched")
        let_tasks_end(client)  # also the one that was dealt ahead
    with pytest.raises(StoreError, match="unfinished"):
        open_distances(tmp_path / "d")
    later = []

    def note(run):
        def block(start, column, values):
            later.append(start)
            written(run)(start, column, values)

        return block

    with monkeypatch.context() as patch:
        patch.setattr(write, note)
        all_pairs_shortest_paths(client, graph, tmp_path / "d", resume=True)
    assert sorted({*later}) == [128, 192, 256]


def test_rows_are_written_while_the_next_are_searched_for(client, tmp_path, monkeypatch):
    graph = store_arcs(tmp_path / "g", 300, *random_arcs(300, 1200), "int32")
    monkeypatch.setattr("pipelines.apsp.batched.EDGE", 64)
    rows, opened = _Searcher.rows, DistancesWriter.writer
    begun, second = [], threading.Event()

    def search(searcher, sources):
        begun.append(sources)
        if len(begun) == 2:
            second.set()
        return rows(searcher, sources)

    def writer(run):
        write = opened(run)

        def block(start, column, values):
            assert second.wait(30), "the second search waits for the rows of the first"
            write(start, column, values)

        return block

    monkeypatch.setattr(_Searcher, "rows", search)
    monkeypatch.setattr(DistancesWriter, "writer", writer)
    all_pairs_shortest_paths(client, graph, tmp_path / "d", method="batched", verify=True)
    assert len(begun) == 5


def test_the_method_is_chosen_by_cost(tmp_path):
    sparse = store_arcs(tmp_path / "sparse", 1500, *random_arcs(1500, 3000), "int32")
    dense = store_arcs(tmp_path / "dense", 300, *map(np.ravel, np.indices((300, 300))), np.arange(90_000) % 9, "int32")

    def request(graph, free=10**9, dtype="int32", block=None, writer=None):
        facts = [WorkerFacts("w", "127.0.0.1", "CPU", False, free, 1e9)]
        job = Job(graph, np.dtype(dtype), np.ones(graph.n, bool), None, True)
        return Request(job, None, block, 60.0, facts, writer)

    def chosen(graph, method="auto", **options):
        how, _, reason = choose(METHODS, method, request(graph, **options))
        assert reason.startswith(how.title)
        return reason

    assert chosen(sparse).startswith("batched searches: Floyd-Warshall would take 3 to 4 s, searches ")
    assert chosen(dense).startswith("Floyd-Warshall: Floyd-Warshall would take 20 to 30 ms, searches")
    assert chosen(dense, "batched").startswith("batched searches, as asked for: n = 300, m = 90,000")
    begun = SimpleNamespace(chunk=32)  # a store, whose method nobody needs to ask for again
    assert chosen(dense, "batched", writer=begun).startswith("batched searches, as before: n = 300, m = 90,000")
    large = store_arcs(tmp_path / "large", 20_000, *random_arcs(20_000, 40_000), "int32")
    _, too_large, _ = choose(METHODS, "floyd-warshall", request(large, free=3 * 10**8))
    others = r"on this machine, .*These methods fit \(method, --method\): batched \(\d+ to \d+ m?s\)"
    with pytest.raises(DoesNotFitError, match=others):
        too_large.refuse(tmp_path / "d")
    assert "the matrix does not fit in memory" in chosen(large, free=3 * 10**8)
    assert "hold all arcs to search, which does not fit" in chosen(dense, free=10**6)
    with pytest.raises(DoesNotFitError):
        chosen(dense, "batched", free=10**6)
    for options, fault in (({"block": 64}, "no blocks"), ({"dtype": "int16"}, "no int16 distances")):
        with pytest.raises(ValueError, match=fault):
            chosen(sparse, "batched", **options)
        assert fault in chosen(sparse, **options)


SQUARE = "p sp 4 5\na 1 2 5\na 2 3 5\na 3 4 5\na 4 1 5\na 1 3 7\n"


def test_the_command_from_a_file_to_a_route(tilepath, tmp_path):
    (tmp_path / "square.gr").write_text(SQUARE)
    tilepath("import", "square.gr", "g", "--unit", "km")
    out = tilepath("sssp", "g", "p", "--device", "cpu", "--source", "1", "--source", "3", "--verify")
    assert "2 x 4 int32 distances and predecessors" in out
    assert "proved" in out
    assert tilepath("path", "p", "1", "4").splitlines() == ["1 -> 4: 12 km over 2 arcs", "1 -> 3 -> 4"]
    tilepath("path", "p", "2", "4", fault="from 2 of 4 vertices only; vertex 2 is not among them")
    assert "checked: " in tilepath("info", "p", "--verify")
    tilepath("sssp", "g", "p", "--device", "cpu", "--source", "1", fault="--overwrite")
    near = ("sssp", "g", "near", "--device", "cpu", "--source", "2", "--source", "4", "--together", "--cutoff", "5")
    assert "from the nearest of 2 sources, up to a distance of 5" in tilepath(*near)
    assert tilepath("path", "near", "3").splitlines()[1] == "2 -> 3"
    tilepath("path", "near", "4", "3", fault="nearest to vertex 3 is 2, not 4")
    tilepath("sssp", "g", "q", "--source", "9", fault="no vertex '9'")
    some = ("--source", "all", "--target", "2", "--no-predecessors", "--spread", "vertices", "--dtype", "float64")
    assert ", as far as 1 target" in tilepath("sssp", "g", "q", "--device", "cpu", *some)
    tilepath("path", "q", "1", "2", fault="--no-predecessors")
    assert "4 x 4 int32" in tilepath("apsp", "g", "d", "--device", "cpu", "--method", "batched", "--verify")
    assert "4 x 4 int32" in tilepath("apsp", "g", "d", "--device", "cpu", "--method", "auto", "--overwrite")
    assert tilepath("path", "d", "1", "4").splitlines()[1] == "1 -> 3 -> 4"


def test_all_chunks_but_the_last_are_written_while_the_next_is_searched_for(tmp_path):
    graph = store_arcs(tmp_path / "g", 1000, *random_arcs(1000, 4_000), "int32")
    fact = WorkerFacts("w", "host", "CPU", False, 10**12, 0.0)

    def seconds(rows, chunk, rate):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pipelines.sssp.plan.WRITE_RATE", rate)
            job = SearchJob(graph, np.dtype("int32"), batched=False)
            return make_search_plan(job, rows, [fact], chunk=chunk).seconds

    search = seconds(100, 100, np.inf)
    one, four = (seconds(100, chunk, 800_000 / search) for chunk in (100, 25))  # writing takes about as long
    assert one > 1.9 * search
    assert search < four < 1.5 * search

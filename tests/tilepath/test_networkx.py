"""The NetworkX backend beside NetworkX: its own tests run through us, random graphs, what is refused, and why."""

import importlib.metadata
import inspect
import itertools
import json
import math
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuops
import tilepath.networkx.backend as backend
from tilepath import devices
from tilepath.networkx import searches
from tilepath.networkx.info import FUNCTIONS, ONLY, get_info

ROOT = Path(__file__).parents[2]
OFFERED = sorted(name for names in FUNCTIONS.values() for name in names)


# --- In an interpreter of its own, where NetworkX finds the backend ---------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Environment variables for an interpreter in which the entry points are those of pyproject.toml."""
    folder = tmp_path_factory.mktemp("installed")
    metadata = folder / "tilepath-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tilepath\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in e.items()) for group, e in groups.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NETWORKX", "PYTEST"))}
    path = os.pathsep.join(map(str, (folder, ROOT, Path(__file__).parent)))
    return {**kept, "PYTHONPATH": path, "PYTHONWARNINGS": "default"}


def run_script(installed, text):
    run = [sys.executable, "-c", textwrap.dedent(text)]
    result = subprocess.run(run, env=installed, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


SUITE = [
    "networkx.algorithms.shortest_paths",
    "networkx.algorithms.tests.test_euler",
    "networkx.algorithms.tests.test_distance_measures",
    "networkx.algorithms.centrality.tests.test_closeness_centrality",
    "networkx.algorithms.centrality.tests.test_harmonic_centrality",
    "networkx.algorithms.components",
    "networkx.algorithms.centrality.tests.test_betweenness_centrality",
]
# Of NetworkX 3.6.1; other versions have other tests.
PASSED = {"quick": 431, "suite": 931, "whole": 6800}


def networkx_tests(installed, folder, *arguments):
    """Run tests of NetworkX through the backend; returns how many ended how, and what the plugin counted."""
    answers = folder / "answers.json"
    variables = {
        "NETWORKX_TEST_BACKEND": "tilepath",
        "NETWORKX_FALLBACK_TO_NX": "True",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TILEPATH_ANSWERS": str(answers),
    }
    run = [sys.executable, "-m", "pytest", "-q", "-p", "networkx_answers", "-p", "no:cacheprovider", "-c", os.devnull]
    run += ["--rootdir", str(folder), "--pyargs", *arguments]
    result = subprocess.run(run, env=installed | variables, capture_output=True, text=True, check=False)
    ends = dict(re.findall(r"(\d+) (\w+)", result.stdout.strip().splitlines()[-1]))
    counts = {end: int(number) for number, end in ends.items()}
    assert result.returncode == 0, result.stdout[-3000:]
    return counts, json.loads(answers.read_text())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("quick", [*SUITE, "-k", "not use_bounds"]),
        pytest.param("suite", SUITE, marks=pytest.mark.slow),
        pytest.param("whole", ["networkx"], marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_the_tests_of_networkx_pass_and_every_function_answers(installed, tmp_path, name, arguments):
    counts, counted = networkx_tests(installed, tmp_path, *arguments)
    assert counts.get("xfailed", 0) <= 2
    if nx.__version__ == "3.6.1":
        assert counts["passed"] >= PASSED[name] if name == "whole" else counts["passed"] == PASSED[name]
    assert sorted(counted["answers"]) == OFFERED
    expected = [
        "is a function",
        "is negative",
        "is empty",
        "not above 0",
        "0 sources",
        "have keys",
        *(reason for _, reason in ONLY.values()),
    ]
    if name != "whole":
        assert [refusal for refusal in counted["refusals"] if not any(x in refusal for x in expected)] == []


def test_importing_networkx_loads_nothing_of_ours_but_the_table(installed):
    script = """
        import sys
        before = set(sys.modules)
        import networkx as nx
        assert "tilepath" in nx.utils.backends.backend_info
        print(*(set(sys.modules) - before))
    """
    loaded = run_script(installed, script)
    ours = sorted(name for name in loaded if name.partition(".")[0] in ("tilepath", "pipelines", "gpuops", "clusters"))
    stores = ["pipelines.stores", "pipelines.stores.displays", "pipelines.stores.graph_names"]
    names = ["tilepath", "tilepath.networkx", "tilepath.networkx.info"]
    # All but the last are lists of names, and functions that load nothing.
    operations = ["gpuops", "gpuops.compiled_code", "gpuops.lazy_imports"]
    assert ours == [*operations, "pipelines", *stores, *names]
    assert not {"numpy", "numba", "dask", "zarr", "click"} & set(loaded)


def test_keyword_environment_and_cache_choose_the_backend(installed):
    script = """
        import networkx as nx
        import networkx_answers
        nx.config.warnings_to_ignore.add("cache")
        answers = networkx_answers.ANSWERS
        assert nx.config.backend_priority.algos == ["tilepath"]  # by the environment variable
        nx.johnson(nx.gnm_random_graph(200, 800, seed=1))
        assert answers["johnson"] == 1
        nx.config.backend_priority.algos = []

        small, large = nx.path_graph(5), nx.gnm_random_graph(300, 900, seed=1)
        assert nx.floyd_warshall(small, backend="tilepath")[0][4] == 4 and answers["floyd_warshall"] == 1
        nx.diameter(small)
        nx.eccentricity(large.subgraph(max(nx.connected_components(large), key=len)))
        assert not answers["diameter"] and not answers["eccentricity"]  # nobody asked for us

        nx.config.backend_priority.algos = ["tilepath"]
        nx.closeness_centrality(nx.path_graph(5))
        nx.single_source_dijkstra_path_length(large, 0)
        assert not answers["closeness_centrality"] and not answers["single_source_dijkstra_path_length"]  # too little
        closeness = nx.closeness_centrality(large)
        assert answers["closeness_centrality"] == 1 and len(closeness) == 300
        nx.single_source_dijkstra_path_length(large, 0)  # now that it has been converted
        assert answers["single_source_dijkstra_path_length"] == 1

        large.add_edge(0, 0.5)  # and not any more
        nx.single_source_dijkstra_path_length(large, 0)
        assert answers["single_source_dijkstra_path_length"] == 1
        longer = nx.single_source_dijkstra_path_length(large, 0, backend="tilepath")
        assert longer[0.5] == 1

        nodes, way = nx.path_graph(200), nx.path_graph(200, nx.DiGraph)
        views = [nodes.subgraph(range(150)), nodes.edge_subgraph(list(nodes.edges)[:149]), way.reverse(copy=False)]
        views.append(way.to_undirected(as_view=True))
        for view in views:
            nx.harmonic_centrality(view, backend="tilepath")
        nodes.add_edge(0, 149)
        nodes.remove_edge(70, 71)
        way.add_edge(0, 199)
        way.remove_edge(70, 71)
        for view in views:
            assert nx.harmonic_centrality(view, backend="tilepath") == nx.harmonic_centrality(view, backend="networkx")

        by_function = nx.closeness_centrality(large, distance=lambda u, v, d: 1)  # NetworkX answers
        assert answers["closeness_centrality"] == 1 and by_function[0] == nx.closeness_centrality(large)[0]
        try:
            nx.closeness_centrality(large, distance=lambda u, v, d: 1, backend="tilepath")
        except NotImplementedError as error:
            print(str(error).replace(" ", "_"))
    """
    (message,) = run_script(installed | {"NETWORKX_BACKEND_PRIORITY": "tilepath"}, script)
    assert "not_implemented_by_'tilepath'" in message


# --- One by one, beside NetworkX --------------------------------------------------------------------------------------


def converted(graph, attribute="weight"):
    return backend.convert_from_nx(graph, {} if attribute is None else {attribute: 1})


def ask(name, graph, *args, **kwargs):
    """Our answer, as NetworkX would ask for it."""
    parameters = inspect.signature(getattr(nx, name)).bind(graph, *args, **kwargs)
    parameters.apply_defaults()
    attribute = parameters.arguments.get("weight", parameters.arguments.get("distance"))
    assert backend.can_run(name, (graph, *args), kwargs) is True
    return getattr(backend, name)(converted(graph, attribute), *args, **kwargs)


def outcome(function, *args, **kwargs):
    """What comes back, generators taken to their end, or the error's type and message."""
    try:
        result = function(*args, **kwargs)
        return list(result) if hasattr(result, "__next__") else result
    except (nx.NetworkXException, ValueError, KeyError) as error:
        return type(error), str(error)


def outcomes(name, graph, *args, **kwargs):
    return outcome(ask, name, graph, *args, **kwargs), outcome(getattr(nx, name), graph, *args, **kwargs)


NODES = [3, "a", (1, 2), 0, "b", 2.5, frozenset({1}), None.__class__, 1]
SMALL = st.integers(0, 4)
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


@st.composite
def graphs(draw, weights=SMALL, least=1):
    """A few nodes of mixed types, some isolated, with loops and, where they can be, parallel edges."""
    nodes = draw(st.lists(st.sampled_from(NODES), min_size=least, unique=True))
    graph = draw(st.sampled_from(KINDS))()
    graph.add_nodes_from(nodes)
    ends = st.sampled_from(nodes) if nodes else st.nothing()
    for u, v, weight in draw(st.lists(st.tuples(ends, ends, weights), max_size=24)) if nodes else ():
        graph.add_edge(u, v, **({} if weight is None else {"weight": weight}))
    return graph


QUARTERS = st.integers(0, 16).map(lambda quarters: quarters / 4)  # whose sums are exact in any order
ANY_WEIGHTS = st.sampled_from([st.integers(0, 4), QUARTERS, st.none() | st.integers(0, 3), st.none() | QUARTERS])
GRAPHS = ANY_WEIGHTS.flatmap(graphs)
SIGNED = st.sampled_from([st.integers(-1, 5), st.integers(-4, 20).map(lambda w: w / 4)]).flatmap(graphs)

few = settings(max_examples=25)
many = pytest.param(settings(max_examples=400), marks=pytest.mark.slow)


def types_of(lengths):
    return {node: type(length) for node, length in lengths.items()}


def check_lengths(graph, ours, theirs, ordered=True):
    """The same distances of the same types, in the order of distances."""
    assert ours == theirs
    if isinstance(ours, tuple):  # an error
        return
    if all(type(w) is int for *_, w in graph.edges(data="weight", default=1)):
        assert types_of(ours) == types_of(theirs)
    source = next(iter(ours))
    assert source == next(iter(theirs))
    assert type(ours[source]) is int
    if ordered:
        assert list(ours.values()) == list(theirs.values())


def check_paths(graph, paths, lengths):
    """Each path leads along edges from a source to its node, and is as long as the distance."""
    assert paths.keys() == lengths.keys()
    for node, path in paths.items():
        assert path[-1] == node
        assert lengths[path[0]] == 0
        assert sum(least_weight(graph, u, v) for u, v in pairwise(path)) == lengths[node]


def least_weight(graph, u, v):
    edge = graph[u][v]
    return min(d.get("weight", 1) for d in edge.values()) if graph.is_multigraph() else edge.get("weight", 1)


@pytest.mark.parametrize("budget", [few, many])
def test_dijkstra_from_one_node_and_from_several(budget):
    @budget
    @given(GRAPHS, st.data())
    def check(graph, data):
        nodes = list(graph)
        source, target = data.draw(st.sampled_from([*nodes, "stranger"])), data.draw(st.sampled_from([*nodes, "other"]))
        cutoff = data.draw(st.sampled_from([None, 0, 2, 2.5, -1, math.inf, math.nan]))
        ours, theirs = outcomes("single_source_dijkstra_path_length", graph, source, cutoff=cutoff)
        check_lengths(graph, ours, theirs)
        if isinstance(theirs, dict):
            check_paths(graph, ask("single_source_dijkstra_path", graph, source, cutoff=cutoff), theirs)
        for name in ("dijkstra_path_length", "dijkstra_path", "single_source_dijkstra"):
            ours, theirs = outcomes(name, graph, source, target)
            if name == "dijkstra_path_length" or isinstance(theirs[0], type):
                assert ours == theirs
            else:
                length, path = ours if name == "single_source_dijkstra" else (theirs and None, ours)
                assert path[0] == source
                assert path[-1] == target
                assert length is None or length == theirs[0]

        several = data.draw(st.lists(st.sampled_from(nodes), max_size=3))
        assert outcome(ask, "multi_source_dijkstra_path_length", graph, iter(several)) == outcome(
            nx.multi_source_dijkstra_path_length, graph, several
        )
        ours, theirs = outcomes("multi_source_dijkstra_path_length", graph, several, cutoff=cutoff)
        check_lengths(graph, ours, theirs)
        if isinstance(theirs, dict):
            check_paths(graph, ask("multi_source_dijkstra_path", graph, several, cutoff=cutoff), theirs)
            check_paths(graph, ask("multi_source_dijkstra", graph, several, cutoff=cutoff)[1], theirs)
        assert outcomes("multi_source_dijkstra", graph, several, target)[0].__class__ is tuple

        ours, theirs = outcomes("dijkstra_predecessor_and_distance", graph, source, cutoff=cutoff)
        check_predecessors(ours, theirs)

    check()


def check_predecessors(ours, theirs):
    assert ours[1] == theirs[1]
    if isinstance(theirs[0], dict):
        assert {node: set(before) for node, before in ours[0].items()} == {n: set(b) for n, b in theirs[0].items()}
        assert {node: len(before) for node, before in ours[0].items()} == {n: len(b) for n, b in theirs[0].items()}


@pytest.mark.parametrize("budget", [few, many])
def test_dijkstra_from_all_nodes(budget):
    @budget
    @given(GRAPHS, st.sampled_from([None, 0, 2, 2.5, -1, math.inf, math.nan]))
    def check(graph, cutoff):
        for name in ("all_pairs_dijkstra_path_length", "all_pairs_shortest_path_length"):
            ours, theirs = outcomes(name, graph, cutoff=cutoff)
            assert [node for node, _ in ours] == [node for node, _ in theirs]
            for (_, lengths), (_, expected) in zip(ours, theirs, strict=True):
                if name == "all_pairs_dijkstra_path_length":
                    check_lengths(graph, lengths, expected)
                else:
                    assert list(lengths.values()) == list(expected.values())
                    assert lengths == expected
        lengths = dict(nx.all_pairs_dijkstra_path_length(graph, cutoff=cutoff))
        for node, paths in ask("all_pairs_dijkstra_path", graph, cutoff=cutoff):
            check_paths(graph, paths, lengths[node])
        for node, (found, paths) in ask("all_pairs_dijkstra", graph, cutoff=cutoff):
            assert found == lengths[node]
            check_paths(graph, paths, found)

    check()


@pytest.mark.parametrize("budget", [few, many])
def test_bellman_ford_and_negative_cycles(budget):
    @budget
    @given(SIGNED, st.data())
    def check(graph, data):
        nodes = list(graph)
        source, target = data.draw(st.sampled_from([*nodes, "stranger"])), data.draw(st.sampled_from([*nodes, "other"]))
        ours, theirs = outcomes("single_source_bellman_ford_path_length", graph, source)
        check_lengths(graph, ours, theirs, ordered=False)
        if isinstance(theirs, dict):
            check_paths(graph, ask("single_source_bellman_ford_path", graph, source), theirs)
        for name in ("bellman_ford_path_length", "single_source_bellman_ford", "bellman_ford_path"):
            ours, theirs = outcomes(name, graph, source, target)
            if name == "bellman_ford_path_length" or isinstance(theirs[0], type):
                assert ours == theirs
        check_predecessors(*outcomes("bellman_ford_predecessor_and_distance", graph, source))

        ours, theirs = outcomes("johnson", graph)
        if isinstance(theirs, tuple):
            assert ours == theirs
        else:
            assert list(ours) == list(theirs)
            for node, lengths in nx.all_pairs_bellman_ford_path_length(graph):
                check_paths(graph, ours[node], lengths)
            assert outcomes("all_pairs_bellman_ford_path_length", graph)[0] == [
                (node, lengths) for node, lengths in nx.all_pairs_bellman_ford_path_length(graph)
            ]
        assert ask("negative_edge_cycle", graph) == nx.negative_edge_cycle(graph)
        ours = outcome(ask, "find_negative_cycle", graph, source)
        if isinstance(ours, tuple):
            assert ours == outcome(nx.find_negative_cycle, graph, source)
        else:  # for some loops NetworkX's own ends with an AttributeError
            assert ours[0] == ours[-1]
            assert sum(least_weight(graph, u, v) for u, v in pairwise(ours)) < 0

    check()


@pytest.mark.parametrize("budget", [few, many])
def test_the_floyd_warshall_family(budget):
    @budget
    @given(GRAPHS, st.randoms(use_true_random=False))
    def check(graph, random):
        ours, theirs = outcomes("floyd_warshall", graph)
        assert ours == theirs
        assert list(ours) == list(theirs)
        if not any(w is None for *_, w in graph.edges(data="weight")):
            pairs = [(u, v) for u in graph for v in graph if u != v]
            assert [type(ours[u][v]) for u, v in pairs] == [type(theirs[u][v]) for u, v in pairs]
        assert ours[next(iter(graph))]["stranger"] == math.inf
        predecessors, distances = ask("floyd_warshall_predecessor_and_distance", graph)
        assert distances == theirs
        for source, row in predecessors.items():
            for node, before in row.items():
                if node == source:  # by a loop, which may have a length
                    assert before == source
                else:
                    assert theirs[source][before] + least_weight(graph, before, node) == theirs[source][node]
        expected, _ = nx.floyd_warshall_predecessor_and_distance(graph)
        assert {u: set(row) for u, row in predecessors.items()} == {u: set(row) for u, row in expected.items()}

        order = random.sample(list(graph), len(graph))
        for nodelist in (None, order, order[1:], [*order[1:], "stranger"], [*order[1:], order[-1]]):
            ours, theirs = outcomes("floyd_warshall_numpy", graph, nodelist)
            np.testing.assert_array_equal(ours, theirs)

    check()


@pytest.mark.parametrize("budget", [few, many])
def test_measures_have_the_same_bits(budget):
    floats = st.floats(0.01, 10)

    @budget
    @given(st.sampled_from([st.integers(0, 4), floats, st.none() | floats]).flatmap(graphs), st.data())
    def check(graph, data):
        attribute = data.draw(st.sampled_from([None, "weight"]))
        node = data.draw(st.sampled_from([*graph, "stranger"]))
        bunch = data.draw(st.lists(st.sampled_from(list(graph))))
        for name in ("diameter", "radius", "eccentricity"):
            ours, theirs = outcomes(name, graph, weight=attribute)
            assert ours == theirs
            if not any(w is None for *_, w in graph.edges(data="weight")):
                assert type(ours) is type(theirs)
        for name in ("center", "periphery", "barycenter"):
            ours, theirs = outcomes(name, graph, weight=attribute)
            if isinstance(theirs, tuple):
                assert ours == theirs
            else:
                assert set(ours) == set(theirs)
        ours, theirs = outcomes("eccentricity", graph, bunch, weight=attribute)
        assert ours == theirs
        # From 3.7 on, NetworkX adds in another order.
        close = pytest.approx if nx.__version__ not in ("3.5", "3.6", "3.6.1") else lambda expected: expected
        for improved in (True, False):
            ours, theirs = outcomes("closeness_centrality", graph, distance=attribute, wf_improved=improved)
            assert ours == close(theirs)
            assert list(ours) == list(theirs)
        ours, theirs = outcomes("closeness_centrality", graph, node, attribute)
        assert ours == (theirs if isinstance(theirs, tuple) else close(theirs))
        for some in ({}, {"nbunch": bunch}, {"sources": bunch}):
            ours, theirs = outcomes("harmonic_centrality", graph, distance=attribute, **some)
            assert ours == theirs
            assert list(ours) == list(theirs)
            assert types_of(ours) == types_of(theirs)

    check()


@pytest.mark.parametrize("budget", [few, many])
def test_betweenness(budget):
    @budget
    @given(
        st.sampled_from([st.integers(1, 4), QUARTERS.filter(bool), st.none() | st.just(2)]).flatmap(graphs), st.data()
    )
    def check(graph, data):
        options = {
            "k": data.draw(st.none() | st.integers(1, len(graph))),
            "normalized": data.draw(st.booleans()),
            "weight": data.draw(st.sampled_from([None, "weight"])),
            "seed": data.draw(st.integers(0, 9)),
        }
        for name, more in ("betweenness_centrality", {"endpoints": True}), ("edge_betweenness_centrality", {}):
            if more or not graph.is_multigraph():
                options |= {key: data.draw(st.booleans()) for key in more}
                ours, theirs = outcomes(name, graph, **options)
                assert list(ours) == list(theirs)
                assert list(ours.values()) == pytest.approx(list(theirs.values()), rel=1e-12, abs=1e-15, nan_ok=True)
                assert types_of(ours) == types_of(theirs)
            options.pop("endpoints", None)

    check()


@pytest.mark.parametrize(
    ("edges", "says"),
    [
        ([(0, 1, 1), (1, 2, 0)], "'weight' of an edge is not above 0"),
        ([(0, 1, 1), (1, 2, -1)], "'weight' of an edge is not above 0"),
        ([(0, 1, 1.0), (1, 2, 1e-20)], "the weight 1e-20 of the arc from vertex 1 to vertex 2 is lost"),
    ],
)
def test_betweenness_that_networkx_has_to_answer(edges, says):
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    for name in "betweenness_centrality", "edge_betweenness_centrality":
        with pytest.raises(NotImplementedError, match=says):
            ask(name, graph, weight="weight")
        with pytest.raises(NotImplementedError, match="no path begins"):
            ask(name, graph, k=0)
        with pytest.raises(ValueError, match="larger than population"):
            ask(name, graph, k=4)
        assert list(ask(name, nx.Graph())) == []


def test_edges_of_a_multigraph_have_keys_that_are_not_kept():
    assert "have keys" in backend.can_run("edge_betweenness_centrality", (nx.MultiGraph(),), {})


@pytest.mark.parametrize("budget", [few, many])
def test_components_and_euler(budget):
    @budget
    @given(graphs(least=0))
    def check(graph):
        weakly = "weakly_" if graph.is_directed() else ""
        assert outcome(ask, f"{weakly}connected_components", graph) == list(
            getattr(nx, f"{weakly}connected_components")(graph)
        )
        names = [f"number_{weakly}connected_components", f"is_{weakly}connected", "is_eulerian", "has_eulerian_path"]
        for name in [*names, "is_semieulerian"]:
            ours, theirs = outcomes(name, graph)
            if isinstance(theirs, tuple):  # the text about the null graph differs with the way there
                assert ours[0] is theirs[0]
            else:
                assert ours is theirs or (type(ours), ours) == (type(theirs), theirs)
        for node in graph:
            assert outcomes("has_eulerian_path", graph, node)[0] == nx.has_eulerian_path(graph, node)

    check()


@pytest.mark.parametrize(
    ("weights", "operation"),
    [([], "hop_distances"), ([1], "hop_distances"), ([0.1], "hop_distances"), ([1, 2], "batched_shortest_distances")],
)
def test_results_are_made_when_they_are_asked_for(monkeypatch, weights, operation):
    """By searches that share words where edges are equally long, and otherwise by those that share arcs."""
    searched, search = [], getattr(gpuops, operation)

    def watched(*arguments, **options):
        distances = search(*arguments, **options)
        searched.append(len(distances))
        return distances

    def unwanted(*_, **__):
        raise AssertionError("searched otherwise")

    for name in "hop_distances", "batched_shortest_distances":
        monkeypatch.setattr(gpuops, name, watched if name == operation else unwanted)
    graph = nx.path_graph(1000)
    for (u, v), weight in zip(graph.edges, itertools.cycle(weights), strict=False):
        graph[u][v]["weight"] = weight
    results = ask("all_pairs_dijkstra_path_length", graph)
    assert searched == []
    next(results)
    assert searched == [1]
    assert len(list(results)) == 999
    assert searched[:4] == [1, 2, 4, 8]
    assert sum(searched) == 1000
    if weights:
        lengths = dict(nx.single_source_dijkstra_path_length(graph, 500))
        assert dict(ask("all_pairs_dijkstra_path_length", graph))[500] == lengths


class TestDevice:
    """``nx.config.backends.tilepath.device``"""

    @pytest.fixture
    def config(self, monkeypatch):
        config = nx.utils.configs.Config(device="auto")
        monkeypatch.setattr(nx.config, "backends", nx.utils.configs.Config(tilepath=config))
        return config

    def test_it_is_in_the_table(self):
        assert get_info()["default_config"] == {"device": "auto"}

    def test_auto_looks_for_a_gpu_where_there_is_much_to_do(self, config, monkeypatch):
        asked = []

        def library(device):
            asked.append(device)
            return np

        monkeypatch.setattr(devices, "array_library", library)
        monkeypatch.setattr(devices, "_GPU_WORK", 10**7)
        graph = nx.gnm_random_graph(600, 2400, seed=1)
        for number, (u, v) in enumerate(graph.edges):
            graph[u][v]["weight"] = 1 + number % 2
        ask("floyd_warshall_numpy", nx.path_graph(100))
        ask("eccentricity", graph, 0, weight="weight")
        assert asked == []
        ask("floyd_warshall_numpy", graph)
        assert asked == ["auto"]
        ask("closeness_centrality", graph, distance="weight")
        assert len(asked) > 1
        config.device = "cpu"
        asked.clear()
        ask("eccentricity", graph, 0, weight="weight")
        assert asked == ["cpu"]

    def test_a_gpu_without_cupy_is_an_error_that_names_the_cure(self, config, monkeypatch):
        monkeypatch.setitem(sys.modules, "cupy", None)  # so that it cannot be imported
        config.device = "gpu"
        with pytest.raises(ImportError, match="device is 'gpu', which needs CuPy: pip install"):
            ask("floyd_warshall", nx.path_graph(3))

    def test_a_device_that_there_is_not(self, config):
        config.device = "tpu"
        with pytest.raises(ValueError, match="device is 'tpu'; pass one of 'auto', 'cpu', 'gpu'"):
            ask("floyd_warshall", nx.path_graph(3))

    @pytest.mark.gpu
    def test_answers_of_a_gpu(self, gpu, config):
        config.device = "gpu"
        graph = nx.gnm_random_graph(80, 400, seed=1)
        nx.set_edge_attributes(graph, dict(zip(graph.edges, range(1, 401), strict=True)), "weight")
        for name, options in {
            "all_pairs_dijkstra_path_length": {},
            "all_pairs_bellman_ford_path_length": {},
            "floyd_warshall": {},
            "diameter": {"weight": "weight"},
            "closeness_centrality": {"distance": "weight"},
            "harmonic_centrality": {},
        }.items():
            ours, theirs = outcomes(name, graph, **options)
            assert ours == theirs
        for either in graph, graph.to_directed():
            for name in "betweenness_centrality", "edge_betweenness_centrality":
                for weight in None, "weight":
                    ours, theirs = outcomes(name, either, weight=weight)
                    assert ours == pytest.approx(theirs, rel=1e-12)
        for node, paths in ask("all_pairs_dijkstra_path", graph):
            check_paths(graph, paths, nx.single_source_dijkstra_path_length(graph, node))
        graph.add_edge(0, 1, weight=-5000)
        with pytest.raises(NotImplementedError, match="negative cycle"):
            ask("floyd_warshall", graph)


def test_lengths_of_one_that_are_floats_stay_floats():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 1.0, "weight")
    assert types_of(dict(ask("all_pairs_dijkstra_path_length", graph))[0]) == {0: int, 1: float, 2: float}


@pytest.mark.parametrize("longest", [10, 2**16 - 1, 2**16, 2**40])
def test_nodes_are_in_the_order_of_distances_whatever_these_are(longest):
    graph = nx.DiGraph([(0, node) for node in range(1, 40)])
    lengths = np.random.default_rng(longest).integers(0, longest, 39, endpoint=True).tolist()
    nx.set_edge_attributes(graph, dict(zip(graph.edges, [longest, *lengths[1:]], strict=True)), "weight")
    (_, found), *_ = ask("all_pairs_dijkstra_path_length", graph)
    assert list(found.items()) == sorted(found.items(), key=lambda item: (item[1], item[0]))
    assert found == nx.single_source_dijkstra_path_length(graph, 0)


@pytest.mark.parametrize(
    ("weight", "reason"),
    [
        ("3", "is '3'; tilepath takes ints and floats"),
        (None, "is None; tilepath takes"),
        (math.nan, "is nan; tilepath takes finite"),
        (math.inf, "is inf; tilepath takes finite"),
        (2**53, "add up to 2^53 or more"),
        (-(10**400), "add up to 2^53 or more"),
        (np.float32(1), "tilepath takes ints and floats"),
        (1e308, "sums of 'weight' may exceed float64"),  # an edge counts in both directions
    ],
)
def test_weights_that_are_left_to_networkx(weight, reason):
    graph = nx.path_graph(3)
    graph[0][1]["weight"] = weight
    with pytest.raises(NotImplementedError, match=re.escape(reason)):
        converted(graph)


def test_a_graph_that_makes_up_its_neighbours_is_left_to_networkx():
    graph = nx.algorithms.approximation.kcomponents._AntiGraph(nx.path_graph(4))
    with pytest.raises(NotImplementedError, match="AntiGraph has no dictionaries of neighbours"):
        converted(graph)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_an_undirected_view_of_opposite_arcs_of_two_lengths_is_left_to_networkx(kind):
    """NetworkX gives its edges a length for each direction."""
    graph = kind()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 0, 3), (1, 2, 1)])
    view = graph.to_undirected(as_view=True)
    with pytest.raises(NotImplementedError, match="'weight' of an edge differs by direction"):
        converted(view)
    for taken, name in (view, "eccentricity"), (view.copy(), "all_pairs_dijkstra_path"):
        ours, theirs = outcomes(name, taken)
        assert ours == theirs
    nx.set_edge_attributes(graph, 1, "weight")
    ours, theirs = outcomes("all_pairs_dijkstra_path", view)
    assert ours == theirs


def test_a_circle_of_predecessors_is_no_endless_loop():
    graph = converted(nx.path_graph(3))
    found = searches.Tree(graph, graph.arcs("weight"), [0], np.array([0.0, 1, 2]))
    found.predecessors = np.array([-1, 2, 1])
    for follow in found.paths, lambda: found.path_to(2):
        with pytest.raises(RuntimeError, match="form a cycle"):
            follow()


def test_the_largest_exact_integers():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 2**52 - 1, "weight")
    assert ask("dijkstra_path_length", graph, 0, 2) == 2**53 - 2
    assert ask("dijkstra_path_length", graph, 0, np.int64(2)) == 2**53 - 2


def test_sums_of_exact_integers_are_exact():
    """They pass 2^53 where no distance does."""
    graph = nx.Graph([("a", "a'", {"weight": 1}), ("a", "b", {"weight": 2**52})])
    leaves = {"a": 2, "a'": 5, "b": 3}
    graph.add_weighted_edges_from((node, f"{node}{i}", 1) for node, count in leaves.items() for i in range(count))
    for name, options in {"barycenter": {"weight": "weight"}, "closeness_centrality": {"distance": "weight"}}.items():
        ours, theirs = outcomes(name, graph, **options)
        assert ours == theirs


def test_negative_weights_and_cycles_that_are_left_to_networkx():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(0, 1, -2), (1, 0, 1)])
    for name in ("floyd_warshall", "floyd_warshall_numpy", "floyd_warshall_predecessor_and_distance"):
        with pytest.raises(NotImplementedError, match="negative cycle"):
            ask(name, graph)
    for name in ("all_pairs_dijkstra", "all_pairs_dijkstra_path", "all_pairs_dijkstra_path_length", "eccentricity"):
        with pytest.raises(NotImplementedError, match="negative"):  # when it is called, not when it is iterated
            ask(name, graph, weight="weight")


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("dijkstra_path", {"weight": lambda u, v, d: 1}, "weight is a function"),
        ("closeness_centrality", {"distance": lambda u, v, d: 1}, "distance is a function"),
        ("eccentricity", {"sp": {}}, "paths are given"),
        ("diameter", {"e": {}}, "eccentricities are given"),
        ("diameter", {"usebounds": True}, "bounds are asked for"),
        ("barycenter", {"attr": "x"}, "attributes are written"),
        ("all_pairs_dijkstra", {"cutoff": "3"}, "cutoff is a str"),
    ],
)
def test_arguments_that_are_left_to_networkx(name, arguments, reason):
    assert reason in backend.can_run(name, (nx.path_graph(3),), arguments)


def test_small_graphs_and_single_searches_do_not_pay():
    assert "5 nodes" in backend.should_run("diameter", (nx.path_graph(5),), {})
    assert backend.should_run("diameter", (nx.path_graph(5000),), {}) is True
    assert "not been converted" in backend.should_run("dijkstra_path", (nx.path_graph(5000), 0, 1), {})
    assert backend.should_run("dijkstra_path", (converted(nx.path_graph(5)), 0, 1), {}) is True


def test_a_converted_graph_knows_one_attribute():
    graph = converted(nx.path_graph(3), "length")
    assert backend.dijkstra_path_length(graph, 0, 2, weight="length") == 2
    assert backend.dijkstra_path_length(graph, 0, 2, weight=None) == 2
    with pytest.raises(NotImplementedError, match="converted with the attribute 'length', not 'time'"):
        backend.dijkstra_path_length(graph, 0, 2, weight="time")


@given(GRAPHS)
@few
def test_a_converted_graph_can_be_converted_back(graph):
    back = backend.convert_to_nx(converted(graph))
    assert type(back) is type(graph)
    assert list(back) == list(graph)
    assert str(converted(graph)) == str(graph)
    lengths = sorted((NODES.index(u), NODES.index(v), w) for u, v, w in graph.edges(data="weight", default=1))
    returned = sorted((NODES.index(u), NODES.index(v), w) for u, v, w in back.edges(data="weight"))
    if not graph.is_directed():
        lengths, returned = (sorted((min(u, v), max(u, v), w) for u, v, w in edges) for edges in (lengths, returned))
    assert returned == lengths


def test_the_table_is_of_functions_that_networkx_dispatches():
    assert all(getattr(nx, name).edge_attrs or name for name in OFFERED)
    for name in OFFERED:
        ours = inspect.signature(getattr(backend, name)).parameters.values()
        theirs = inspect.signature(getattr(nx, name).orig_func).parameters.values()
        ours, theirs = ([(p.name, p.default) for p in parameters] for parameters in (ours, theirs))
        newer = [parameter for parameter in ours if parameter not in theirs]  # of later versions
        assert [parameter for parameter in ours if parameter not in newer] == theirs
        assert all(name in ONLY and default is None for name, default in newer)
    assert get_info()["functions"].keys() == set(OFFERED)
    assert importlib.metadata.version("networkx") == nx.__version__


def test_the_document_has_the_table():
    rows = re.findall(
        r"^\| (`.+`) \| (converted graphs|\d+ nodes or more) \|$", (ROOT / "docs/networkx.md").read_text(), re.M
    )
    documented = {name: least for names, least in rows for name in re.findall("`(\\w+)`", names)}
    offered = {name: least for names in FUNCTIONS.values() for name, least in names.items()}
    assert documented == {
        name: "converted graphs" if n is None else f"{n} nodes or more" for name, n in offered.items()
    }

"""The NetworkX backend against NetworkX: every function it offers, on graphs of up to 40 nodes and on views of them.

Both answer the same call, ``backend="tilepath"`` and ``backend="networkx"``; then the graph is changed by its methods
and a second function is called, so that a stale conversion is noticed. Of several shortest paths any is right: paths
are compared by their lengths, predecessors and centres as sets. The long campaign:
``pytest -m slow -s tests/tilepath/test_networkx_campaign.py``
"""

import inspect
import math
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from campaigns import campaign, pick, play, random_arcs, without_negative_cycle

from tilepath.networkx.info import FUNCTIONS

OFFERED = sorted(name for names in FUNCTIONS.values() for name in names)
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]

WEIGHTS = {
    "ints": lambda rng, m: rng.integers(0, 9, m).tolist(),
    "quarters": lambda rng, m: (rng.integers(0, 40, m) / 4).tolist(),
    "floats": lambda rng, m: rng.random(m).tolist(),
    "signed": lambda rng, m: rng.integers(0, 9, m).tolist(),
    "any sign": lambda rng, m: rng.integers(-1, 30, m).tolist(),
    "missing": lambda rng, m: [pick(rng, [None, 1, 3]) for _ in range(m)],
    "mixed": lambda rng, m: [pick(rng, [1, 2.5, 3]) for _ in range(m)],
    "beyond": lambda rng, m: [pick(rng, [2**53, 2**50, 2**52, 1, 1, 1, 1]) + int(x) for x in rng.integers(0, 3, m)],
    "tiny": lambda rng, m: (rng.random(m) * 1e-300).tolist(),
    "huge": lambda rng, m: (rng.random(m) * 1e306).tolist(),
    "numpy": lambda rng, m: list(pick(rng, [rng.random(m), rng.integers(0, 9, m).astype("int32")])),
    "bool": lambda rng, m: (rng.random(m) < 0.5).tolist(),
    "others": lambda rng, m: [pick(rng, [1, "3", None, Fraction(1, 3), math.nan, math.inf]) for _ in range(m)],
}


def draw_graph(rng):
    """A graph of named nodes, its weights in the attribute `weight`; and the kind of these."""
    n = int(pick(rng, [1, 2, 3, 5, 9, 20, 40]))
    nodes = [pick(rng, [i, f"n{i}", (i, "x")]) for i in rng.permutation(n).tolist()]
    graph, kind = pick(rng, KINDS)(), pick(rng, [*WEIGHTS])
    tails, heads = random_arcs(rng, n, int(pick(rng, [0, n // 2, n, 2 * n, 5 * n])))
    weights = WEIGHTS[kind](rng, len(tails))
    if kind == "signed":
        weights = without_negative_cycle(rng, tails, heads, np.array(weights, int)).tolist()
    graph.add_nodes_from(nodes)
    for tail, head, weight in zip(tails, heads, weights, strict=True):
        graph.add_edge(nodes[tail], nodes[head], **({} if weight is None and kind == "missing" else {"weight": weight}))
    return graph, kind


def draw_view(rng, graph):
    """The graph, or a view of it, and what it is called."""
    nodes = list(graph)
    some = [node for node in nodes if rng.random() < 0.7] or nodes
    views = {
        "subgraph": lambda: graph.subgraph(some),
        "edges": lambda: graph.edge_subgraph([edge for edge in graph.edges if rng.random() < 0.7]),
        "undirected": lambda: graph.to_undirected(as_view=True),
        "reverse": lambda: graph.reverse(copy=False) if graph.is_directed() else graph.to_directed(as_view=True),
    }
    name = pick(rng, [None] * 8 + sorted(views))
    view = graph if name is None else views[name]()
    return (graph, "graph") if name is None or not list(view) else (view, f"view ({name})")


def change(rng, graph):
    """Change the graph by one of its methods."""
    nodes, edges = list(graph), list(graph.edges)
    how = rng.integers(4)
    if how == 0 and edges:
        graph.remove_edge(*pick(rng, edges)[:2])
    elif how == 1 and len(nodes) > 1:
        graph.remove_node(pick(rng, nodes))
    elif how == 2:
        graph.add_node("new")
    graph.add_weighted_edges_from([(pick(rng, list(graph)), pick(rng, list(graph)), 1)])


def draw_call(rng, graph):
    """The name of a function, and arguments for its parameters, most of which may be left out."""
    name, nodes = pick(rng, OFFERED), list(graph)
    some = [node for node in nodes if rng.random() < 0.3]
    ends = [*(pick(rng, nodes) for _ in range(9)), "stranger"]
    choices = {
        "source": ends,
        "target": [None, *ends] if "single" in name or "multi" in name else ends,
        "sources": [some, some, some or nodes[:1], [*some, "stranger"], None if "harmonic" in name else nodes],
        "cutoff": [None, 0, 2, 2.5, math.inf, -1],
        "weight": ["weight", "weight", "weight", "weight", None, "other", lambda u, v, d: 1],
        "distance": ["weight", "weight", None, "other"],
        "u": ends,
        "v": [None, *ends],
        "nbunch": [None, some, nodes],
        "nodelist": [None, [nodes[i] for i in rng.permutation(len(nodes))], some],
        "wf_improved": [True, False],
        "normalized": [True, False],
        "endpoints": [True, False],
        "k": [None, None, len(nodes) // 2, len(nodes)],
        "seed": [0, 1, 2],
    }
    parameters = list(inspect.signature(getattr(nx, name).orig_func).parameters.values())[1:]
    arguments = {
        p.name: pick(rng, choices[p.name])
        for p in parameters
        if p.name in choices and (p.default is p.empty or p.name in ("weight", "seed") or rng.random() < 0.5)
    }
    return name, arguments


def outcome(backend, name, graph, arguments):
    """What comes back, generators taken to their end, or the error's type."""
    try:
        result = getattr(nx, name)(graph, **arguments, backend=backend)
        return list(result) if hasattr(result, "__next__") else result
    except NotImplementedError:
        raise
    except (nx.NetworkXException, ValueError, KeyError, TypeError) as error:
        return type(error)


def told(name, graph, weight, result):
    """A result as far as it is determined."""
    if isinstance(result, type):
        return result
    if name == "find_negative_cycle":
        return length(graph, weight, result) < 0 and result[0] == result[-1]
    if name == "floyd_warshall_predecessor_and_distance":
        return result[1]
    if name in ("center", "periphery", "barycenter"):
        return frozenset(result)
    if name.startswith("all_pairs"):
        result = dict(result)
    if "predecessor" in name:
        return {node: frozenset(before) for node, before in result[0].items()}, result[1]
    if "length" not in name and any(word in name for word in ("dijkstra", "bellman", "johnson")):
        return with_lengths(graph, weight, result)
    return result


def with_lengths(graph, weight, result):
    """Lists are paths: their ends and lengths in their place."""
    if isinstance(result, dict):
        return {node: with_lengths(graph, weight, value) for node, value in result.items()}
    if isinstance(result, tuple):
        return tuple(with_lengths(graph, weight, value) for value in result)
    return (result[-1], length(graph, weight, result)) if isinstance(result, list) else result


def length(graph, weight, path):
    """Along the shortest of parallel edges; infinite where there is none."""
    if not all(graph.has_edge(u, v) for u, v in pairwise(path)):
        return math.inf
    return sum(
        min(data.get(weight, 1) for data in (graph[u][v].values() if graph.is_multigraph() else [graph[u][v]]))
        for u, v in pairwise(path)
    )


def alike(ours, theirs, types):
    """The same keys and numbers, floats but for the last bits; and the same types, if these are to be compared."""
    if isinstance(theirs, type) or isinstance(ours, type):
        return ours is theirs
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[key], theirs[key], types) for key in theirs)
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs, [types] * len(ours)))
    if isinstance(theirs, np.ndarray):
        return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    if isinstance(theirs, float | np.floating):
        close = math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-320) or (math.isnan(ours) and math.isnan(theirs))
        return close and (not types or type(ours) is type(theirs))
    return ours == theirs and (not types or type(ours) is type(theirs))


def compare(rng, graph, kind, what):
    name, arguments = draw_call(rng, graph)
    try:
        ours = outcome("tilepath", name, graph, arguments)
    except NotImplementedError:
        return False
    theirs = outcome("networkx", name, graph, arguments)
    if theirs is nx.NetworkXError and name == "negative_edge_cycle":
        return False  # it adds a node for a while, which a view refuses
    types = {type(weight) for *_, weight in graph.edges(data="weight")} in ({int}, {float})
    weight = arguments.get("weight", "weight")
    found, expected = (told(name, graph, weight, result) for result in (ours, theirs))
    case = f"{name} of a {what}, {graph}, weights of {kind}, {arguments}"
    assert alike(found, expected, types), f"{case}: {found!r:.200} instead of {expected!r:.200}"
    return True


def trial(rng):
    graph, kind = draw_graph(rng)
    view, what = draw_view(rng, graph)
    answered = compare(rng, view, kind, what)
    change(rng, graph)
    if list(view) and not what.startswith("view (edges)"):  # which NetworkX's own functions cannot read any more
        answered += compare(rng, view, kind, f"{what}, changed")
    return None if answered else "refused"


@pytest.fixture(autouse=True)
def _use_of_the_cache_is_no_warning(monkeypatch):
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {*nx.config.warnings_to_ignore, "cache"})


@campaign(few=100, many=60_000)
@pytest.mark.filterwarnings("ignore::RuntimeWarning:networkx")
def test_the_backend_agrees_with_networkx(seeds):
    counts = play(seeds, trial)
    assert counts["equal"] > len(seeds) / 2

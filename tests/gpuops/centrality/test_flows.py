"""Flows beside all shortest paths, each with its equal part of the amount."""

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparse_rows import rows_of

from gpuops import LinkFlows, VerificationError, csr, link_flows, verify_flows
from gpuops.centrality import GROUP
from gpuops.centrality.flows import FlowSummation, demand_by_origin
from gpuops.centrality.pairwise_sums import PairwiseSums


def defined(arcs, n, pairs, passes):
    """Flow by (tail, head) as the definition says, or None if a pair has no path."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    for tail, head, weight in arcs:
        graph.add_edge(tail, head, weight=min(weight, graph.get_edge_data(tail, head, {"weight": weight})["weight"]))
    flows = {}
    for origin, destination, amount in pairs:
        if amount == 0 or origin == destination:
            continue
        inside = [v for v in range(n) if passes[v] or v in (origin, destination)]
        some = graph.subgraph(inside).copy()
        if not passes[origin]:
            some.remove_edges_from([*some.in_edges(origin)])
        if not passes[destination]:
            some.remove_edges_from([*some.out_edges(destination)])
        if not nx.has_path(some, origin, destination):
            return None
        paths = list(nx.all_shortest_paths(some, origin, destination, weight="weight"))
        for path in paths:
            for step in nx.utils.pairwise(path):
                flows[step] = flows.get(step, 0) + amount / len(paths)
    return flows


@given(st.data())
def test_any_graph(data):
    n = data.draw(st.integers(1, 7))
    vertex = st.integers(0, n - 1)
    arcs = data.draw(st.lists(st.tuples(vertex, vertex, st.integers(1, 3)), max_size=20))
    if data.draw(st.booleans()):
        arcs = [(tail, head, 2) for tail, head, _ in arcs]  # which need no heap for betweenness
    pairs = data.draw(st.lists(st.tuples(vertex, vertex, st.integers(0, 5)), max_size=6))
    passes = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    indptr, indices, weights = rows_of(arcs, n)
    demand = np.array(pairs, int).reshape(-1, 3).T
    expected = defined(arcs, n, pairs, passes)
    if expected is None:
        with pytest.raises(ValueError, match=r"no path leads from vertex \d to vertex \d, .*; leave out such pairs"):
            link_flows(indptr, indices, weights, *demand, through=passes)
        return
    found = link_flows(indptr, indices, weights, *demand, through=passes)
    tails = csr.tails(indptr, len(indices), np.int64)
    for tail, head, weight, flow in zip(tails.tolist(), indices.tolist(), weights, found.arcs.tolist(), strict=True):
        parallel = [w for t, h, w in arcs if (t, h) == (tail, head)]
        share = weight == min(parallel) and tail != head
        assert flow == pytest.approx(expected.get((tail, head), 0) * share / parallel.count(weight), rel=1e-12)
    verify_flows(indptr, indices, weights, found, *demand)


def random_demand(n=5 * GROUP + 3, m=400, seed=0):
    rng = np.random.default_rng(seed)
    ring = [(v, (v + 1) % n, 3) for v in range(n)]  # every pair has a path
    arrays = rows_of(ring + np.column_stack([rng.integers(0, n, (m, 2)), rng.integers(1, 4, m)]).tolist(), n)
    return arrays, (*rng.integers(0, n, (2, 900)), rng.random(900))


def test_threads_and_parts_change_no_bit(monkeypatch):
    monkeypatch.setattr("gpuops._threads._SERIAL_RELAXATIONS", 1)
    arrays, table = random_demand()
    found = []
    for threads in 1, 3:
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found.append(link_flows(*arrays, *table))
    summation = FlowSummation(*arrays)
    demand = demand_by_origin(*table, summation.n)
    parts = range(0, len(demand), 2 * GROUP)
    tree = PairwiseSums(len(parts))
    for number in reversed(range(len(parts))):
        tree.add(number, summation.over(demand[parts[number] : parts[number] + 2 * GROUP]))
    found.append(summation.result(tree.total()))
    for other in found[1:]:
        assert other.arcs.tobytes() == found[0].arcs.tobytes()
        assert other.cost == found[0].cost


def test_the_certificate_notices_a_wrong_flow_and_a_detour():
    arrays, table = random_demand()
    found = link_flows(*arrays, *table)
    verify_flows(*arrays, found, *table)
    wrong = found.arcs.copy()
    wrong[wrong.argmax()] *= 1 + 1e-6
    with pytest.raises(VerificationError, match=r"at vertex \d+, .* arrives or begins, and .* leaves or ends"):
        verify_flows(*arrays, LinkFlows(wrong, found.cost), *table)
    longer = link_flows(*arrays[:2], arrays[2] ** 2, *table)  # conserved, but by other paths
    with pytest.raises(VerificationError, match=r"the flows cost .*, and not .* as on shortest paths"):
        verify_flows(*arrays, LinkFlows(longer.arcs, found.cost), *table)


def test_a_closed_origin_is_closed_to_travel_from_the_next_origin():
    arrays = rows_of([(0, 2, 1), (1, 0, 1), (1, 3, 1), (3, 4, 1), (4, 2, 1)], 5)
    through = np.arange(5) > 0
    assert link_flows(*arrays, [0, 1], [2, 2], [5, 7], through=through).arcs.tolist() == [5, 0, 7, 7, 7]


def test_no_demand_no_weights_and_far_more_paths_than_float64_holds():
    indptr, indices, _ = rows_of([(0, 1, 1)], 2)
    assert link_flows(indptr, indices, None, [], [], []).arcs.tolist() == [0]
    assert link_flows(indptr, indices, None, [0, 0, 1], [1, 1, 1], [2, 3, 9]) == (pytest.approx([5]), 5)
    count = 1500  # diamonds: 2^1500 paths
    arcs = [(3 * i + a, 3 * i + b, 2) for i in range(count) for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))]
    found = link_flows(*rows_of(arcs, 3 * count + 1), [0], [3 * count], [8])
    np.testing.assert_array_equal(found.arcs, 4)
    assert found.cost == 8 * 4 * count


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"amounts": [1, -1]}, "the amount from 0 to 2 is -1; give finite amounts of 0 or more"),
        ({"amounts": [np.inf, 1]}, "the amount from 0 to 1 is inf"),
        ({"amounts": [1]}, r"2 origins, 2 destinations and amounts of shape \(1,\); give one of each"),
        ({"origins": [0, 3]}, "origin 3 is not a vertex; vertices are 0 to 2"),
        ({"destinations": [0, -1]}, "destination -1 is not a vertex"),
        (
            {"origins": [2, 0]},
            "no path leads from vertex 2 to vertex 1, so the amount 1 cannot travel; leave out such pairs",
        ),
        ({"weights": np.array([1.0, 0.0])}, "from vertex 1 to vertex 2 is 0; weights must be above 0"),
        ({"weights": np.array([1.0, 1e-20])}, "the weight 1e-20 of the arc from vertex 1 to vertex 2 is lost"),
    ],
)
def test_what_is_refused(arguments, says):
    whole = {"indptr": np.array([0, 1, 2, 2]), "indices": np.array([1, 2]), "weights": np.array([1.0, 1.0])}
    table = {"origins": [0, 0], "destinations": [1, 2], "amounts": [1, 1]}
    with pytest.raises(ValueError, match=says):
        link_flows(**(whole | table | arguments))

"""Euler circuits of graphs of every shape, against plain walking, NetworkX, and the stages as they were published."""

import itertools
from collections import Counter, defaultdict, deque

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sparse_rows import rows

from gpuops import (
    NotEulerianError,
    VerificationError,
    circuit_graph,
    cycle_labels,
    euler_circuit,
    join_circuits,
    mates_of,
    pair_arcs,
    spanning_links,
    verify_circuit,
    walk_circuits,
)
from gpuops.arrays import on_host

several = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


# Graphs


def csr(n, arcs, index="int32", offset="int64"):
    """The arcs (tail, head) as indptr and indices; in a row they keep their order."""
    return rows(n, *np.array(arcs, int).reshape(-1, 2).T, offset=offset, vertex=index)


def both_ways(edges):
    return [arc for u, v in edges for arc in ((u, v), (v, u))]


@st.composite
def eulerian(draw, directed=True, path=False):
    """A graph of closed walks, its arcs in any order, and of one walk that is open if it is to have a path."""
    n = draw(st.integers(1, 7))
    walks = draw(st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=6), max_size=5))
    edges = [edge for walk in walks for edge in zip(walk, [*walk[1:], walk[0]], strict=True)]
    if path:
        opened = draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=6).filter(lambda walk: walk[0] != walk[-1]))
        edges += itertools.pairwise(opened)
    arcs = draw(st.permutations(edges if directed else both_ways(edges)))
    return csr(n, arcs, draw(st.sampled_from(["int32", "int64"])), draw(st.sampled_from(["int32", "int64"])))


def star(leaves):
    """Arcs from 0 to leaves and back: as many circuits as leaves."""
    return csr(leaves + 1, both_ways([(0, leaf) for leaf in range(1, leaves + 1)]))


def graph_of(indptr, indices, directed=True):
    """The same for NetworkX; of an undirected graph each edge once."""
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    edges = list(zip(tails.tolist(), indices.tolist(), strict=True))
    if not directed:
        mates = plain_mates(indptr, indices)
        edges = [edge for arc, edge in enumerate(edges) if arc < mates[arc]]
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(range(len(indptr) - 1))
    graph.add_edges_from(edges)
    return graph


def plain_mates(indptr, indices):
    """One arc after the other: it is the mate of the first that waits for it."""
    waiting, mates = defaultdict(deque), {}
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).tolist()
    for arc, (u, v) in enumerate(zip(tails, indices.tolist(), strict=True)):
        if waiting[v, u]:
            mates[arc] = waiting[v, u].popleft()
            mates[mates[arc]] = arc
        else:
            waiting[u, v].append(arc)
    return mates


# What is to be found


def walk_of(xp, indptr, indices, **options):
    """`euler_circuit` on the device, the result in NumPy."""
    found = euler_circuit(xp.asarray(indptr), xp.asarray(indices), **options)
    verify_circuit(
        xp.asarray(indptr),
        xp.asarray(indices),
        *found,
        path=options.get("path", False),
        directed=options.get("directed", True),
    )
    return on_host(found.arcs), found.offsets


def is_euler(indptr, indices, arcs, offsets, directed=True, path=False):
    """Plainly: is it an Euler circuit of each component, in one of them perhaps a path?"""
    m = len(indices)
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).tolist()
    arcs, offsets = arcs.tolist(), offsets.tolist()
    if directed:
        if sorted(arcs) != list(range(m)):
            return False
    else:
        mates = plain_mates(indptr, indices)
        if any(not 0 <= arc < m for arc in arcs) or sorted([*arcs, *(mates[arc] for arc in arcs)]) != list(range(m)):
            return False
    if offsets[:1] != [0] or offsets[-1] != len(arcs) or offsets != sorted(set(offsets)):
        return False
    walks = [arcs[first:last] for first, last in itertools.pairwise(offsets)]
    for walk in walks:
        if any(indices[a] != tails[b] for a, b in itertools.pairwise(walk)):
            return False
    if sum(bool(indices[walk[-1]] != tails[walk[0]]) for walk in walks) > path:
        return False
    connected = nx.Graph(graph_of(indptr, indices))
    connected.remove_nodes_from(list(nx.isolates(connected)))  # a vertex with a loop is not one of them
    return len(walks) == nx.number_connected_components(connected)


def check(indptr, indices, found, start=None, directed=True, path=False):
    """It is one, as its description says: circuits by least vertices, beginning at the start or with the least arc."""
    arcs, offsets = found
    assert is_euler(indptr, indices, arcs, offsets, directed, path)
    tails = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    walks = [arcs[first:last] for first, last in itertools.pairwise(offsets)]
    least = [min(tails[walk].min(), indices[walk].min()) for walk in walks]
    assert least == sorted(least)
    begins = [int(tails[walk[0]]) for walk in walks]
    if start is not None:
        assert start in begins
    for walk, begin in zip(walks, begins, strict=True):
        opened = tails[walk[0]] != indices[walk[-1]]
        assert begin == start or opened or walk[0] == walk.min()


METHODS = ["stages", "hierholzer"]


@pytest.fixture(params=METHODS)
def method(request, xp):
    if request.param == "hierholzer" and xp is not np:
        pytest.skip("Hierholzer's algorithm is of the CPU")
    return request.param


@several
@given(data=st.data(), directed=st.booleans())
def test_circuits(xp, method, data, directed):
    indptr, indices = data.draw(eulerian(directed))
    found = walk_of(xp, indptr, indices, directed=directed, method=method)
    check(indptr, indices, found, directed=directed)
    again = euler_circuit(indptr, indices, directed=directed, method=method)
    np.testing.assert_array_equal(found[0], again.arcs)  # also on a GPU
    assert again.arcs.dtype == np.int32
    for start in np.flatnonzero(np.diff(indptr)).tolist():
        found = walk_of(xp, indptr, indices, directed=directed, method=method, start=start)
        check(indptr, indices, found, start, directed)


@several
@given(data=st.data(), directed=st.booleans())
def test_paths(xp, method, data, directed):
    indptr, indices = data.draw(eulerian(directed, path=True))
    degrees = np.diff(indptr)
    if directed:
        ends = np.flatnonzero(degrees - np.bincount(indices, minlength=len(degrees)) == 1)
    else:
        ends = np.flatnonzero(degrees % 2)
    assert len(ends) == (1 if directed else 2)
    options = {"directed": directed, "method": method, "path": True}
    for start in [None, *ends.tolist()]:
        found = walk_of(xp, indptr, indices, start=start, **options)
        check(indptr, indices, found, ends.min() if start is None else start, directed, path=True)
    other = next((v for v in np.flatnonzero(degrees).tolist() if v not in ends), None)
    if other is not None:
        with pytest.raises(NotEulerianError, match=f"{ends.min()}.* not (begin )?at {other}"):
            walk_of(xp, indptr, indices, start=other, **options)
    with pytest.raises(NotEulerianError, match=r"pass path \(--path\)"):
        walk_of(xp, indptr, indices, directed=directed, method=method)


@given(data=st.data(), directed=st.booleans())
@several
def test_a_graph_with_circuits_has_them_as_paths(xp, data, directed):
    indptr, indices = data.draw(eulerian(directed))
    circuits = walk_of(xp, indptr, indices, directed=directed)
    paths = walk_of(xp, indptr, indices, directed=directed, path=True)
    np.testing.assert_array_equal(circuits[0], paths[0])
    np.testing.assert_array_equal(circuits[1], paths[1])


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("path", [True, False])
def test_small_graphs(xp, method, directed, path):
    options = {"directed": directed, "path": path, "method": method}
    loop = [(0, 0)] if directed else both_ways([(0, 0)])
    for n, arcs in ((0, []), (1, []), (3, [])):
        found, offsets = walk_of(xp, *csr(n, arcs), **options)
        assert (found.tolist(), offsets.tolist()) == ([], [0])
    assert walk_of(xp, *csr(1, loop), **options)[0].tolist() == [0]
    found, offsets = walk_of(xp, *csr(4, both_ways([(2, 3), (2, 3)])), start=3, **options)
    assert indices_of(csr(4, both_ways([(2, 3), (2, 3)])), found)[:2] == [2, 3]
    assert offsets.tolist() == [0, len(found)]


def indices_of(graph, arcs):
    return graph[1][arcs].tolist()


@pytest.mark.parametrize("directed", [True, False])
def test_many_circuits_are_joined(xp, directed):
    rng = np.random.default_rng(3)
    graphs = [star(500), csr(400, both_ways(zip(range(399), range(1, 400), strict=True)))]
    if not directed:
        graphs = [csr(300, both_ways(np.stack([rng.permutation(np.r_[:300, :300]) for _ in "ab"], 1).tolist()))]
    for indptr, indices in graphs:
        found = walk_of(xp, indptr, indices, directed=directed)
        check(indptr, indices, found, directed=directed)


def test_arrays_that_are_not_contiguous(xp):
    indptr, indices = star(40)
    apart = xp.zeros((2, len(indices), 2), np.int32)
    apart[0, :, 1] = xp.asarray(indices)
    expected = walk_of(xp, indptr, indices)[0]
    np.testing.assert_array_equal(walk_of(xp, indptr, apart[0, :, 1])[0], expected)
    predecessors = pair_arcs(xp.asarray(indptr.astype("i4")), apart[0, :, 1])
    apart[0, :, 1] = predecessors
    np.testing.assert_array_equal(on_host(cycle_labels(apart[0, :, 1])), on_host(cycle_labels(predecessors)))


# The certificate

CHANGES = ("drop", "cut", "repeat", "swap", "roll", "split", "merge", "offsets", "reverse", "other", "range")


def change(how, arcs, offsets, m, i, j):
    """A change of the walks that may or may not spoil them."""
    arcs, offsets = arcs.copy(), offsets.copy()
    if how == "drop":
        arcs = np.delete(arcs, i)
    elif how == "cut":
        arcs, offsets = np.delete(arcs, i), np.minimum(offsets, len(arcs) - 1)
    elif how == "repeat":
        arcs[i] = arcs[j]
    elif how == "swap":
        arcs[[i, j]] = arcs[[j, i]]
    elif how == "roll":
        arcs = np.roll(arcs, i)
    elif how == "split":
        offsets = np.unique([*offsets, i])
    elif how == "merge":
        offsets = np.delete(offsets, i % len(offsets))
    elif how == "offsets":
        offsets[i % len(offsets)] += 1
    elif how == "reverse":
        arcs[i : j + 1] = arcs[i : j + 1][::-1].copy()
    elif how == "other":
        arcs[i] = j
    elif how == "range":
        arcs[i] = [-1, m][j % 2]
    return arcs, offsets


@settings(parent=several, max_examples=80)
@given(data=st.data(), directed=st.booleans(), path=st.booleans(), how=st.sampled_from(CHANGES))
def test_the_certificate_rejects_what_is_no_circuit(xp, data, directed, path, how):
    indptr, indices = data.draw(eulerian(directed, path))
    arcs, offsets = walk_of(xp, indptr, indices, directed=directed, path=path)
    assume(len(arcs))
    i, j = data.draw(st.integers(0, len(arcs) - 1)), data.draw(st.integers(0, len(arcs) - 1))
    arcs, offsets = change(how, arcs, offsets, len(indices), i, j)
    try:
        verify_circuit(*map(xp.asarray, (indptr, indices, arcs)), offsets, directed=directed, path=path)
        accepted = True
    except VerificationError:
        accepted = False
    assert accepted == is_euler(indptr, indices, arcs, offsets, directed, path)


@pytest.mark.parametrize(
    ("arcs", "offsets", "message"),
    [
        ([0, 3, 1], [0, 3], "the walks have 3 arcs, but the graph has 4"),
        ([0, 2, 1, 1], [0, 4], "no walk takes the arc 3"),
        ([0, 2, 1, 4], [0, 4], "an arc that is not one of 0 to 3"),
        ([0, 3, 1, 2], [0, 4], r"the arc 3 at 1 does not leave vertex 1, where the arc 0 before it ends"),
        ([0, 2, 1, 3], [0, 3], "do not rise from 0 to 4"),
        ([0, 2, 1, 3], [0, 4, 4], "do not rise from 0 to 4"),
        ([0, 2, 1, 3], [0, 1, 4], "the walk that ends with the arc 0 is not closed"),
        ([0, 2, 1, 3], [0, 2, 4], "several walks pass vertex 0; they could be one"),
    ],
)
def test_the_certificate_says_what_is_wrong(xp, arcs, offsets, message):
    indptr, indices = map(xp.asarray, star(2))
    with pytest.raises(VerificationError, match=message):
        verify_circuit(indptr, indices, xp.asarray(arcs), offsets)


def test_the_certificate_sees_that_a_path_leaves_a_circuit(xp):
    """The path 0 -> 1 and the circuit 0 -> 2 -> 0 could be one path; no walk but the circuit enters 0."""
    graph = [xp.asarray(x) for x in csr(3, [(0, 1), (0, 2), (2, 0)])]
    verify_circuit(*graph, xp.asarray([1, 2, 0]), [0, 3], path=True)
    with pytest.raises(VerificationError, match="several walks pass vertex 0"):
        verify_circuit(*graph, xp.asarray([0, 1, 2]), [0, 1, 3], path=True)


def test_the_certificate_takes_a_path_only_where_one_was_asked_for(xp):
    graph = [xp.asarray(x) for x in csr(2, [(0, 1)])]
    verify_circuit(*graph, xp.asarray([0]), [0, 1], path=True)
    with pytest.raises(VerificationError, match="the walk that ends with the arc 0 is not closed"):
        verify_circuit(*graph, xp.asarray([0]), [0, 1])


# Which graphs have circuits


@settings(parent=several, max_examples=80)
@given(data=st.data(), directed=st.booleans())
def test_networkx_agrees_which_graphs_are_eulerian(xp, data, directed):
    n = data.draw(st.integers(1, 4))
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=7))
    assume({v for edge in edges for v in edge} == set(range(n)))  # NetworkX wants vertices without arcs connected too
    indptr, indices = csr(n, edges if directed else both_ways(edges))
    theirs = graph_of(indptr, indices, directed)
    for path, expected in ((False, nx.is_eulerian(theirs)), (True, nx.has_eulerian_path(theirs))):
        try:
            found = walk_of(xp, indptr, indices, directed=directed, path=path, connected=True)
        except NotEulerianError:
            found = None
        assert (found is not None) == expected
        if expected:
            check(indptr, indices, found, directed=directed, path=path)
            assert len(found[1]) == 2


EITHER = r"store each edge as two arcs, one in each direction, and pass directed=False \(--undirected\)"
BOTH = r"a circuit along every edge both ways: pass directed=True"


@pytest.mark.parametrize(
    ("n", "arcs", "options", "message", "vertices"),
    [
        (3, [(0, 1), (1, 2)], {}, r"2 vertices have .*: 0 \(0 in, 1 out\), 2 \(1 in, 0 out\); .*pass path", (0, 2)),
        (3, [(0, 1), (1, 2), (0, 2)], {}, rf"2 vertices .*: 0 \(0 in, 2 out\), 2 \(2 in, 0 out\); .*{EITHER}", (0, 2)),
        (4, [(0, 1), (0, 2), (0, 3)], {}, r"4 vertices .*: 0 \(0 in, 3 out\), .*, \.\.\.$", (0, 1, 2)),
        (3, [(0, 1), (1, 2), (0, 2)], {"path": True}, rf"2 vertices are not balanced.*{EITHER}", (0, 2)),
        (4, [(0, 1), (2, 1)], {"path": True}, rf"3 vertices are not balanced.*{EITHER}", (0, 1, 2)),
        (4, [(0, 1), (0, 2), (0, 3)], {"path": True}, r"4 vertices are not balanced: .*, \.\.\.$", (0, 1, 2)),
        (3, [(0, 1), (1, 2)], {"path": True, "start": 1}, "the Euler path begins at vertex 0, not at 1", (0, 1)),
        (2, both_ways([(0, 1)]), {"directed": False}, r"2 vertices have an odd one: 0 \(degree 1\).*pass path", (0, 1)),
        (4, both_ways([(0, 1), (0, 2), (0, 3)]), {"directed": False}, rf"4 vertices have.*{BOTH}", (0, 1, 2)),
        (4, both_ways([(0, 1), (0, 2), (0, 3)]), {"directed": False, "path": True}, BOTH, (0, 1, 2)),
        (3, both_ways([(0, 1), (1, 2)]), {"directed": False, "path": True, "start": 1}, "begin at 1", (0, 2, 1)),
        (3, [(0, 1), (1, 2), (2, 0), (0, 1), (1, 2), (2, 0)], {"directed": False}, "from 0 to 1 has no arc", (0, 1)),
        (2, [(0, 1), (1, 0)], {"start": 2}, "start is 2; the vertices are 0 to 1", None),
        (3, [(0, 1), (1, 0)], {"start": 2}, "no arc leaves vertex 2; start elsewhere", (2,)),
        (4, both_ways([(0, 1), (2, 3)]), {"connected": True}, "the arcs 0 and 2 lie in different components, 2", ()),
        (1, [(0, 0)], {"method": "fast"}, "method is 'fast'; pass 'stages' or 'hierholzer'", None),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_would_do(xp, n, arcs, options, message, vertices):
    graph = [xp.asarray(x) for x in csr(n, arcs)]
    with pytest.raises(ValueError, match=message) as caught:
        euler_circuit(*graph, **options)
    if vertices is not None:
        assert isinstance(caught.value, NotEulerianError)
        assert caught.value.vertices == vertices
        assert caught.value.arcs == ((0, 2) if options.get("connected") else ())


@pytest.mark.parametrize(
    ("arcs", "lonely"),
    [
        ([(0, 2), (2, 0), (1, 0)], (1, 0)),  # the arc 0 -> 2, where two sorted lists first differ, has its mate
        ([(0, 1), (0, 1), (1, 0), (1, 2), (2, 1)], (0, 1)),
        ([(0, 0), (0, 0), (1, 1)], (1, 1)),
        ([(0, 0), (0, 0), (1, 1), (2, 2)], (1, 1)),
        ([(0, 0), (0, 0), (0, 0)], (0, 0)),
    ],
)
def test_the_arc_that_is_named_has_no_mate(xp, arcs, lonely):
    with pytest.raises(NotEulerianError, match=f"an arc from {lonely[0]} to {lonely[1]} has no arc back") as caught:
        mates_of(*map(xp.asarray, csr(3, arcs)))
    assert caught.value.vertices == lonely


@several
@given(data=st.data())
def test_mates_are_the_kth_arcs_there_and_back(xp, data):
    indptr, indices = data.draw(eulerian(directed=False))
    mates = on_host(mates_of(xp.asarray(indptr), xp.asarray(indices)))
    assert dict(enumerate(mates.tolist())) == plain_mates(indptr, indices)


def test_errors_name_vertices_as_they_are_told():
    with pytest.raises(NotEulerianError) as caught:
        euler_circuit(*csr(3, [(0, 1), (1, 2)]))
    named = caught.value.named(lambda v: f"{{{'abc'[v]}}}", "trip{s}.zarr")
    assert str(named).startswith(
        "trip{s}.zarr: 2 vertices have unequal numbers of arcs in and out: {a} (0 in, 1 out), {c}"
    )
    assert named.vertices == (0, 2)


@pytest.mark.parametrize(
    ("indptr", "indices", "error", "message"),
    [
        ([0, 2], [0], ValueError, "indptr must rise from 0 to the number of arcs, 1"),
        ([0, 2, 1, 2], [0, 0], ValueError, "indptr must rise from 0 to the number of arcs, 2"),
        ([1, 1], [0], ValueError, "indptr must rise"),
        ([], [], ValueError, "indptr must rise"),
        ([0, 1], [1], ValueError, "indices run from 1 to 1; they must be vertices, 0 to 0"),
        ([0, 1], [-1], ValueError, "indices run from -1 to -1"),
        ([0, 1], [0.5], TypeError, "indices is float64; convert it to integers"),
        ([[0, 1]], [0], ValueError, "indptr has 2 dimensions"),
    ],
)
def test_arrays_that_are_no_graph(xp, indptr, indices, error, message):
    arrays = np.array(indptr, np.int64), np.array(indices) if indices else np.empty(0, int)
    for call in (euler_circuit, pair_arcs):
        with pytest.raises(error, match=message):
            call(*map(xp.asarray, arrays))


def test_stages_take_arc_numbers(xp):
    with pytest.raises(TypeError, match="predecessors is int16; pass arc numbers, int32 or int64"):
        cycle_labels(xp.zeros(1, np.int16))
    with pytest.raises(TypeError, match="labels is a list"):
        spanning_links(xp.zeros(1, np.int64), [0])


def test_hierholzer_is_of_the_cpu(gpu):
    with pytest.raises(TypeError, match="takes NumPy arrays"):
        euler_circuit(*map(gpu.asarray, star(3)), method="hierholzer")


# The stages, one by one, as they were published


def published_predecessors(indptr, indices):
    cursor, predecessors = indptr.tolist(), [-1] * len(indices)
    for arc, head in enumerate(indices.tolist()):
        predecessors[cursor[head]] = arc
        cursor[head] += 1
    return predecessors


def partition_linear(predecessors):
    """Colours of the arcs, and how many."""
    left, colors, color = dict.fromkeys(range(len(predecessors))), [-1] * len(predecessors), 0
    while left:
        arc = next(iter(left))
        while colors[arc] < 0:
            del left[arc]
            colors[arc] = color
            arc = predecessors[arc]
        color += 1
    return colors, color


def kept_slots(indptr, labels):
    """Links of the circuit graph as published: each first slot of a circuit in a row, and the one before it."""
    links = []
    for first, last in itertools.pairwise(indptr):
        kept = []
        for slot in range(first, last):
            if labels[slot] not in [labels[before] for before in kept]:
                kept.append(slot)
        links += [(slot, labels[before], labels[slot]) for before, slot in itertools.pairwise(kept)]
    return links


def kruskal(links):
    """The links, in order, that join two trees."""
    trees, chosen = nx.utils.UnionFind(), []
    for slot, a, b in links:
        if trees[a] != trees[b]:
            trees.union(a, b)
            chosen.append(slot)
    return chosen


def swap_one_by_one(predecessors, slots):
    joined = list(predecessors)
    for slot in slots:
        joined[slot - 1], joined[slot] = joined[slot], joined[slot - 1]
    return joined


@several
@given(data=st.data())
def test_stages_are_the_published_ones(xp, data):
    indptr, indices = data.draw(eulerian())
    on_device = xp.asarray(indptr), xp.asarray(indices)
    predecessors = pair_arcs(*on_device)
    assert predecessors.dtype == np.int32
    expected = published_predecessors(indptr, indices)
    assert on_host(predecessors).tolist() == expected == np.argsort(indices, kind="stable").tolist()

    labels = cycle_labels(predecessors)
    colors, count = partition_linear(expected)
    least = [colors.index(color) for color in range(count)]
    assert on_host(labels).tolist() == [least[color] for color in colors]

    links = circuit_graph(on_device[0], labels)
    published = kept_slots(indptr.tolist(), on_host(labels).tolist())
    assert on_host(links.slots).tolist() == [slot for slot, _, _ in published]
    assert on_host(links.heads).tolist() == [head for _, _, head in published]
    assert on_host(links.tails).tolist() == on_host(labels)[on_host(links.slots) - 1].tolist()

    forest = spanning_links(on_device[0], labels)
    chosen = kruskal(published)
    assert on_host(forest.slots).tolist() == chosen
    assert chosen == kruskal(zip(*(on_host(x).tolist() for x in links), strict=True))
    among = spanning_links(on_device[0], labels, links.slots)
    for ours, theirs in zip(forest, among, strict=True):
        if ours is not forest.components:
            np.testing.assert_array_equal(on_host(ours), on_host(theirs))
    components = on_host(forest.components)[on_host(labels)]
    np.testing.assert_array_equal(on_host(among.components)[on_host(labels)], components)

    joined = join_circuits(predecessors, forest.slots)
    assert on_host(joined).tolist() == swap_one_by_one(expected, chosen)
    relabelled = on_host(cycle_labels(joined))
    np.testing.assert_array_equal(relabelled, components)  # one circuit a component
    np.testing.assert_array_equal(on_host(forest.starts), np.unique(relabelled))

    arcs, offsets = walk_circuits(joined)
    by_parts = walk_circuits(joined, xp.asarray(components), forest.starts)
    np.testing.assert_array_equal(on_host(arcs), on_host(by_parts[0]))
    assert Counter(np.diff(offsets).tolist()) == Counter(Counter(relabelled.tolist()).values())
    for start, last in itertools.pairwise(offsets):
        walk = on_host(arcs)[start:last]
        assert walk[0] == walk.min()
        np.testing.assert_array_equal(on_host(joined)[walk], np.roll(walk, 1))
    np.testing.assert_array_equal(on_host(arcs), walk_of(xp, indptr, indices)[0])


DEMO = (
    [0, 1, 6, 7, 11, 16, 19, 22, 27, 30, 33, 34, 36, 38, 40, 44],
    [1, 2, 3, 4, 5, 6, 3, 4, 5, 6, 7, 5, 6, 7, 8, 9, 7, 8, 9, 7, 8, 9, 10, 11, 12, 13, 14, 11, 12, 13, 14, 0, 1, 14,
     14, 1, 1, 3, 1, 3, 4, 7, 4, 4],
)  # fmt: skip


def test_the_demo_of_15_vertices_step_by_step(xp):
    """44 arcs, five circuits: 0 merges with 1, then with 2, 2 with 3, and 1 with 4, as published."""
    indptr, indices = xp.asarray(DEMO[0]), xp.asarray(DEMO[1])
    predecessors = pair_arcs(indptr, indices)
    assert on_host(predecessors)[:6].tolist() == [31, 0, 32, 35, 36, 38]  # what enters 0; what enters 1

    labels = cycle_labels(predecessors)
    numbers, compact = np.unique(on_host(labels), return_inverse=True)
    assert numbers.tolist() == [0, 2, 4, 5, 13]
    assert np.bincount(compact).tolist() == [22, 5, 4, 4, 9]

    links = circuit_graph(indptr, labels)
    pairs = {tuple(sorted(pair)) for pair in zip(*(on_host(x).tolist() for x in links[1:]), strict=True)}
    assert pairs == {(0, 2), (0, 4), (4, 5), (0, 5), (2, 13), (0, 13), (4, 13)}

    forest = spanning_links(indptr, labels, links.slots)
    slots = on_host(forest.slots)
    assert slots.tolist() == [2, 4, 5, 13]
    tree = [tuple(sorted((int(compact[slot - 1]), int(compact[slot])))) for slot in slots]
    assert tree == [(0, 1), (0, 2), (2, 3), (1, 4)]

    joined = on_host(join_circuits(predecessors, forest.slots))
    before = on_host(predecessors)
    assert np.flatnonzero(joined != before).tolist() == [1, 2, 3, 4, 5, 12, 13]
    assert joined[[1, 2]].tolist() == before[[2, 1]].tolist()
    assert joined[[3, 4, 5]].tolist() == before[[4, 5, 3]].tolist()  # two swaps, one after the other
    assert joined[[12, 13]].tolist() == before[[13, 12]].tolist()
    assert set(on_host(cycle_labels(xp.asarray(joined)))) == {0}

    arcs, offsets = walk_circuits(xp.asarray(joined))
    assert offsets.tolist() == [0, 44]
    verify_circuit(indptr, indices, arcs, offsets)
    np.testing.assert_array_equal(on_host(arcs), walk_of(xp, *DEMO_ARRAYS)[0])
    check(*DEMO_ARRAYS, (on_host(arcs), offsets))


DEMO_ARRAYS = tuple(np.array(part) for part in DEMO)

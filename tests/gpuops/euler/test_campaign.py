"""Thousands of random graphs: all that is found is certified, and NetworkX agrees on which of them are Eulerian.

A few hundred by default, 12,000 with ``pytest -m slow``.
"""

import networkx as nx
import numpy as np
import pytest

from gpuops import NotEulerianError, euler_circuit, verify_circuit

SMALL, LARGE, PIECES = 400, 12_000, 6
CAMPAIGNS = [
    pytest.param(range(SMALL), id="small"),
    *(
        pytest.param(
            range(SMALL + LARGE * i // PIECES, SMALL + LARGE * (i + 1) // PIECES), marks=pytest.mark.slow, id=f"{i}"
        )
        for i in range(PIECES)
    ),
]


def random_graph(rng, directed):
    """Closed walks, some with an arc too many or too few: arcs in any order in rows, the number of vertices, the walks.

    Short rounds over few vertices have loops and parallel arcs; over many vertices they leave several components and
    isolated vertices.
    """
    n = int(rng.choice([1, 2, 3, 5, 8, 30, 200]))
    tails, heads = [np.empty(0, int)], [np.empty(0, int)]
    for _ in range(int(rng.choice([0, 1, 2, 4, 30]))):
        walk = rng.integers(0, n, int(rng.choice([1, 2, 3, 9, 60])))
        tails.append(walk)
        heads.append(np.roll(walk, -1))
    tails, heads = np.concatenate(tails), np.concatenate(heads)
    change = rng.integers(0, 4)
    if change == 1 and len(tails):  # one less: a path, unless it was a loop
        tails, heads = tails[1:], heads[1:]
    elif change > 1:  # a few more: a path, or nothing
        extra = rng.integers(0, n, (2, int(change) - 1))
        tails, heads = np.append(tails, extra[0]), np.append(heads, extra[1])
    edges = np.stack([tails, heads], 1)
    if not directed:
        tails, heads = np.append(tails, heads), np.append(heads, tails)
    order = np.lexsort((rng.random(len(tails)), tails))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    offset, vertex = rng.choice(["int32", "int64"], 2)
    return indptr.astype(offset), heads[order].astype(vertex), edges


def theirs(edges, directed, path):
    """Whether each component has a circuit or, with `path`, one of them a path, by NetworkX."""
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_edges_from(edges.tolist())
    components = nx.weakly_connected_components(graph) if directed else nx.connected_components(graph)
    parts = [graph.subgraph(component) for component in components]
    opened = [part for part in parts if not nx.is_eulerian(part)]
    return len(opened) <= path and all(nx.has_eulerian_path(part) for part in opened)


def plain_hierholzer(indptr, indices):
    """One vertex after the other, with lists."""
    rows = [
        list(range(first, last))[::-1] for first, last in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)
    ]
    arcs, offsets = [], [0]
    for start in range(len(rows)):
        if not rows[start]:
            continue
        stack, walk = [(None, start)], []
        while stack:
            arc, v = stack[-1]
            if rows[v]:
                arc = rows[v].pop()
                stack.append((arc, int(indices[arc])))
            else:
                walk.append(stack.pop()[0])
        arcs += walk[-2::-1]
        offsets.append(len(arcs))
    return arcs, offsets


@pytest.mark.parametrize("seeds", CAMPAIGNS)
@pytest.mark.parametrize("directed", [True, False])
def test_random_graphs(xp, seeds, directed):
    eulerian = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, directed])
        indptr, indices, edges = random_graph(rng, directed)
        on_device = xp.asarray(indptr), xp.asarray(indices)
        path = bool(rng.integers(0, 2))
        options = {"directed": directed, "path": path}
        expected = theirs(edges, directed, path)
        eulerian += expected
        for method in ("stages", "hierholzer"):
            graph = on_device if method == "stages" else (indptr, indices)
            try:
                found = euler_circuit(*graph, method=method, **options)
            except NotEulerianError:
                assert not expected, f"seed {seed}, {method}"
                continue
            assert expected, f"seed {seed}, {method}"
            verify_circuit(*graph, *found, **options)
            if xp is not np and method == "stages":
                again = euler_circuit(indptr, indices, **options)
                np.testing.assert_array_equal(found.arcs.get(), again.arcs)
                np.testing.assert_array_equal(found.offsets, again.offsets)
            if method == "hierholzer" and directed and not path:
                arcs, offsets = plain_hierholzer(indptr, indices)
                assert (found.arcs.tolist(), found.offsets.tolist()) == (arcs, offsets)
    assert len(seeds) / 5 < eulerian < len(seeds) * 4 / 5

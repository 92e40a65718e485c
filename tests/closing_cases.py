"""Graphs whose hierarchies are closed on a GPU and on a CPU, and the comparison of the two."""

from dataclasses import replace

import numpy as np
from road_graphs import made

from gpuops import close_hierarchy, hierarchy_order, hierarchy_structure
from gpuops.numbers import DISTANCE_DTYPES

DTYPES = [dtype.name for dtype in DISTANCE_DTYPES]


def grid(side, reach=1):
    """Each vertex has arcs to all vertices at most `reach` rows and columns away: more than one needs wide nodes."""
    steps = [(i, j) for i in range(reach + 1) for j in range(-reach, reach + 1) if reach > 1 or abs(i) + abs(j) == 1]
    cells = [(i, j) for i in range(side) for j in range(side)]
    return [
        (a * side + b, (a + i) * side + b + j)
        for a, b in cells
        for i, j in steps
        if (i, j) > (0, 0) and a + i < side and 0 <= b + j < side
    ]


# Vertices and arcs. By the order of the numbers, `chords` has nodes and fronts of more than one tile.
FAMILIES = {
    "empty": (0, []),
    "one": (1, [(0, 0)]),
    "no arcs": (5, []),
    "star": (60, [(7, i) for i in range(60)]),
    "tree": (90, [(i, (i - 1) // 3) for i in range(1, 90)]),
    "grid": (400, grid(20)),
    "wide": (324, grid(18, 3)),
    "clique": (150, [(i, j) for i in range(150) for j in range(i)]),
    "chords": (240, [(i, j) for i in range(240) for j in (i + 1, (i * i + 7) % 240, (3 * i + 1) % 240) if j < 240]),
}


def arrays_of(graph, dtype, seed=0):
    """The graph with weights that use all digits of floats, alike in both directions."""
    indptr, indices, weights = graph.rows(dtype)
    if weights.dtype.kind == "f" and graph.n:
        tails = np.repeat(np.arange(graph.n), np.diff(indptr))
        ends = np.minimum(tails, indices) * graph.n + np.maximum(tails, indices)
        weights = (weights + np.random.default_rng(seed).random(graph.n**2)[ends]).astype(dtype)
    return indptr, indices, weights


def structure_of(graph):
    """Return the structure of a graph or of a family, and its cost."""
    by_number = graph == "chords"
    if isinstance(graph, str):
        graph = made(*FAMILIES[graph])
    indptr, indices, _ = graph.rows("int32")
    order = np.arange(graph.n) if by_number else hierarchy_order(indptr, indices, graph.through)
    return hierarchy_structure(indptr, indices, order, graph.through)


def check(cupy, structure, indptr, indices, weights, **options):
    """Close on both; every number that a hierarchy has is equal."""
    expected = close_hierarchy(structure, indptr, indices, weights, **options)
    found = close_hierarchy(structure, indptr, indices, cupy.asarray(weights), **options)
    assert (found.into is None) == (expected.into is None)
    on_host = replace(found, out=found.out.get(), into=None if found.into is None else found.into.get())
    for name in ("out",) if found.into is None else ("out", "into"):
        tables = getattr(on_host, name), getattr(expected, name)
        np.testing.assert_array_equal(*(x.view(f"i{x.itemsize}") for x in tables))
    for name in "leaving", "entering", "beside":
        links = (vars(getattr(each.closed, name)).values() for each in (found, expected))
        for x, y in zip(*links, strict=True):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == y.dtype
    assert found.bound == expected.bound
    return on_host

"""Distances from one source to single vertices, compared with Floyd-Warshall."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from road_graphs import DTYPES, hierarchy_of, made, random_graph

from gpuops.hierarchy.climbing import climb_from, distances_to


def distances(climbed, vertices):
    found = np.empty(len(vertices), climbed.distances.dtype)
    distances_to(climbed, np.asarray(vertices, np.int32), found)
    return np.where(found == climbed.far, np.inf, found)


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=st.integers(0, 2**32), closed=st.booleans(), negative=st.booleans(), undirected=st.booleans())
def test_any_graph(dtype, seed, closed, negative, undirected):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, closed=closed, negative=negative, undirected=undirected)
    expected, hierarchy = graph.distances(), hierarchy_of(graph, dtype)
    for source in rng.integers(0, graph.n, 3):
        climbed = climb_from(hierarchy, source)
        vertices = np.append(rng.permutation(np.flatnonzero(graph.through)), source)
        for asked in np.array_split(vertices, 3):
            np.testing.assert_array_equal(distances(climbed, asked), expected[source, asked])
        others = np.setdiff1d(np.flatnonzero(~graph.through), [source])
        assert (distances(climbed, others) == np.inf).all()


def test_only_the_path_of_a_vertex_to_the_root_is_swept():
    arcs = [(v, v + step) for v in range(870) for step in (1, 30) if step > 1 or v % 30 < 29]
    graph = made(900, arcs)
    hierarchy = hierarchy_of(graph, "int32", brick=50)
    structure, climbed = hierarchy.structure, climb_from(hierarchy, 0)
    node = structure.node_of[structure.place[899]]
    path = [node]
    while structure.parent[path[-1]] >= 0:
        path.append(structure.parent[path[-1]])
    distances(climbed, [899])
    assert np.flatnonzero(climbed.state == climbed.state[node]).tolist() == sorted(path)
    assert len(path) < len(climbed.state) / 4
    np.testing.assert_array_equal(distances(climbed, np.arange(900)), graph.distances()[0])


def test_integers_are_summed_where_they_do_not_overflow():
    """The distance to the end of a chain does not fit int32, and the distances before do."""
    graph = made(60, list(pairwise(range(60))), undirected=False)._replace(weights=np.full(59, 9_200_000))
    climbed = climb_from(hierarchy_of(graph, "int32"), 0)
    assert distances(climbed, [59, 3]).tolist() == [59 * 9_200_000, 3 * 9_200_000]


def test_wrong_source():
    with pytest.raises(ValueError, match="source 9 is not a vertex; vertices are 0 to 8"):
        climb_from(hierarchy_of(made(9, []), "int32"), 9)

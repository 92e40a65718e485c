"""Every pipeline answers from an unweighted graph what it answers from the same graph with weights that are 1."""

import numpy as np
import pytest

from gpuops import csr
from pipelines import (
    all_pairs_shortest_paths,
    build_hierarchy,
    distances_between,
    euler_circuits,
    shortest_path,
    single_source_shortest_paths,
)
from pipelines.pictures.graphs import picture_graph
from pipelines.stores.graph_writer import write_graph


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """An undirected grid of 15 x 15 vertices without weights, and the same with weights that are 1."""
    folder, places = tmp_path_factory.mktemp("both"), np.arange(225).reshape(15, 15)
    ends = (
        np.concatenate([places[:, :-1], places[:-1].T], axis=None),
        np.concatenate([places[:, 1:], places[1:].T], axis=None),
    )
    tails, heads = np.concatenate(ends), np.concatenate(ends[::-1])
    order = np.lexsort((heads, tails))
    arrays = csr.row_starts(tails, 225), heads[order]
    bare = write_graph(folder / "bare", *arrays, directed=False)
    return bare, write_graph(folder / "ones", *arrays, np.ones(len(heads), "int32"), directed=False)


@pytest.mark.parametrize("method", ["floyd-warshall", "out-of-core", "batched", "hierarchy"])
def test_all_pairs(client, both, tmp_path, method):
    bare, ones = (
        all_pairs_shortest_paths(client, g, tmp_path / f"{g.weighted}", method=method, verify=True) for g in both
    )
    assert bare.dtype == ones.dtype
    np.testing.assert_array_equal(bare[:], ones[:])
    assert bare[0, 224] == 28
    assert bare.graph(both[1].path).digest == ones.graph_digest  # the graphs are the same to their results


@pytest.mark.parametrize("spread", ["sources", "vertices"])
def test_searches(client, both, tmp_path, spread):
    bare, ones = (
        single_source_shortest_paths(client, g, tmp_path / f"{g.weighted}", [0, 100], spread=spread, verify=True)
        for g in both
    )
    np.testing.assert_array_equal(bare.distances(), ones.distances())
    np.testing.assert_array_equal(bare.predecessors(), ones.predecessors())


def test_a_hierarchy_and_routes(client, both, tmp_path):
    bare, ones = (build_hierarchy(client, g, tmp_path / f"{g.weighted}") for g in both)
    for mine, theirs in zip(bare.rows(np.arange(225)), ones.rows(np.arange(225)), strict=True):
        np.testing.assert_array_equal(mine[1], theirs[1])
    assert distances_between(bare, [0], [224]).tolist() == [[28]]
    assert shortest_path(bare, 0, 224).distance == 28


def test_circuits_and_pictures(client, both, tmp_path):
    bare, ones = (euler_circuits(client, g, tmp_path / f"{g.weighted}", verify=True) for g in both)
    np.testing.assert_array_equal(bare.arcs(), ones.arcs())
    searched = single_source_shortest_paths(client, both[0], tmp_path / "p", [0])
    picture_graph(both[0], tmp_path / "route.svg", distances=searched, route=("0", "224"))
    assert "28 arcs" in (tmp_path / "route.svg").read_text()

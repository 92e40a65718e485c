"""Blocks of distances by names, from every store that has distances and from graphs, beside SciPy."""

import numpy as np
import pytest
from sparse_rows import all_distances

from pipelines import (
    all_pairs_shortest_paths,
    distances_between,
    open_graph,
    positions,
    single_source_shortest_paths,
    write_samples,
)
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph

N = 40
NAMES = [f"v{i}" for i in range(N)]
ASKED = ["v7", "v3", "v7"], ["v0", "v39", "v3"]


@pytest.fixture(scope="module")
def stores(client, tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("between"), np.random.default_rng(5)
    tails, heads = np.sort(rng.integers(0, N, 100)), rng.integers(0, N, 100)
    indptr = np.searchsorted(tails, np.arange(N + 1))
    graph = write_graph(folder / "graph", indptr, heads, rng.integers(1, 50, 100), labels=np.array(NAMES, object))
    all_pairs_shortest_paths(client, graph, folder / "distances")
    single_source_shortest_paths(client, graph, folder / "paths", ["v3", "v7"])
    return folder, all_distances(*graph.rows())


def as_floats(block):
    return np.where(block == np.iinfo(block.dtype).max, np.inf, block)


@pytest.mark.parametrize("kind", ["graph", "distances", "paths"])
def test_names_and_positions_give_the_block(stores, kind):
    folder, expected = stores
    block = expected[np.ix_([7, 3, 7], [0, 39, 3])]
    np.testing.assert_array_equal(as_floats(distances_between(folder / kind, *ASKED)), block)
    found = distances_between(str(folder / kind), positions([7, 3, 7]), positions([0, 39, 3]))
    np.testing.assert_array_equal(as_floats(found), block)
    with pytest.raises(StoreError, match="there is no vertex 'x'"):
        distances_between(folder / kind, ["v3"], ["x"])
    with pytest.raises(ValueError, match="the sources are not a list but 'v3'"):
        distances_between(folder / kind, "v3", ["v3"])


def test_a_graph_that_was_moved_gives_the_names(stores, tmp_path):
    folder, expected = stores
    (folder / "graph").rename(tmp_path / "graph")
    try:
        with pytest.raises(StoreError, match=r"its graph is no longer at .*graph; give its path"):
            distances_between(folder / "distances", *ASKED)
        found = distances_between(folder / "distances", ["v3"], ["v0"], graph=open_graph(tmp_path / "graph"))
        assert as_floats(found)[0, 0] == expected[3, 0]
        with pytest.raises(ValueError, match="is a graph itself; leave out graph"):
            distances_between(tmp_path / "graph", *ASKED, graph=tmp_path / "graph")
    finally:
        (tmp_path / "graph").rename(folder / "graph")


def test_what_holds_no_distances_is_refused(tmp_path):
    samples = write_samples(tmp_path / "samples", np.ones((3, 2)))
    with pytest.raises(ValueError, match="samples holds no distances; give a graph, or what was made of one"):
        distances_between(samples.path, [0], [0])

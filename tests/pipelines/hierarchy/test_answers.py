"""What a hierarchy store answers: blocks by names, routes, predecessors, tables and pictures."""

import pickle
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from road_graphs import as_floats

from pipelines import (
    StoreError,
    VerificationError,
    build_hierarchy,
    distances_between,
    generate,
    paths_of_pairs,
    picture_bricks,
    positions,
    predecessors,
    shortest_path,
    synthetic_graph,
    verify_distances,
    write_graph,
)
from pipelines.answers.graph_pictures.drawing import INK
from pipelines.stores import hierarchy as hierarchy_module
from pipelines.stores.on_demand import open_on_demand
from tilepath.cli import tilepath

N = 400


@pytest.fixture(scope="module")
def roads(client, tmp_path_factory):
    """A road network with labels, its hierarchy, and all distances by searches."""
    folder = tmp_path_factory.mktemp("roads")
    made = generate(synthetic_graph("road", rows=20, columns=20, missing=0.6, weights="integers"), folder / "plain")
    labels = np.array([f"v{v}" for v in range(N)])
    graph = write_graph(folder / "g", *made.rows(), labels=labels, coordinates=made.coordinates(), directed=False)
    store = build_hierarchy(client, graph, folder / "h")
    indptr, indices, weights = graph.rows()
    d = np.full((N, N), np.inf)
    np.minimum.at(d, (np.repeat(np.arange(N), np.diff(indptr)), indices), weights)
    np.fill_diagonal(d, 0)
    for k in range(N):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return graph, store, d


def test_blocks_by_names_need_no_graph_for_positions(roads):
    _, store, expected = roads
    every = positions(range(N))
    np.testing.assert_array_equal(as_floats(distances_between(store, every, every)), expected)
    found = distances_between(store.path, ["v3", "#7"], ["v5", "v5"])
    np.testing.assert_array_equal(found, expected[[3, 7]][:, [5, 5]])
    for rows, columns in ((0, 0), (0, 2), (2, 0)):
        found = distances_between(store, ["v3", "v5"][:rows], positions(range(columns)))
        assert (found.shape, found.dtype) == ((rows, columns), store.dtype)
    again = pickle.loads(pickle.dumps(store))
    assert len(pickle.dumps(store)) < 500
    np.testing.assert_array_equal(again.row(5), store.row(5))
    assert open_on_demand(store.path).digest == store.digest
    for wrong, message in (
        (["x"], "there is no vertex 'x'"),
        (positions([N]), "there is no vertex '#400'; give an index from 0 to 399"),
        ("v3", "the sources are not a list but 'v3'"),
        ([[3.0]], "source 1 of the list"),
    ):
        with pytest.raises(ValueError, match=message):
            distances_between(store, wrong, every)


def test_names_need_the_graph_wherever_it_is(client, roads, tmp_path):
    graph, _, expected = roads
    shutil.copytree(graph.path, tmp_path / "g")
    store = build_hierarchy(client, tmp_path / "g", tmp_path / "h").path
    (tmp_path / "g").rename(tmp_path / "moved")
    assert distances_between(store, positions([3]), positions([5])) == expected[3, 5]
    with pytest.raises(StoreError, match=r"its graph is no longer at .*g; give its path \(--graph\)"):
        distances_between(store, ["v3"], ["v5"])
    assert distances_between(store, ["v3"], ["v5"], graph=tmp_path / "moved") == expected[3, 5]


@pytest.mark.gpu
def test_a_gpu_answers_if_vertices_lie_there(roads):
    gpu = pytest.importorskip("cupy")
    sources, targets = np.arange(50), np.arange(0, 400, 3)
    found = distances_between(roads[1], positions(gpu.asarray(sources)), positions(targets))
    np.testing.assert_array_equal(found.get(), distances_between(roads[1], positions(sources), positions(targets)))
    whole = distances_between(roads[1], positions(gpu.asarray(sources)), positions(np.arange(400)))
    np.testing.assert_array_equal(whole.get(), roads[2][:50])


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_routes_and_predecessors_follow_from_rows(client, roads, tmp_path, dtype):
    graph, store, expected = roads
    store = store if dtype == store.dtype else build_hierarchy(client, graph, tmp_path / "h", dtype=dtype)
    found = shortest_path(store.path, "v3", "#390")
    assert (found.vertices[0], found.vertices[-1]) == (3, 390)
    assert found.length == found.distance == expected[3, 390]
    table = paths_of_pairs(store, positions([[3, 390], [9, 9], [77, 0]]))
    assert table["distance"].to_pylist() == [expected[3, 390], 0, expected[77, 0]]
    indptr, indices, weights = graph.rows()
    for source, row in zip((0, 88), predecessors(store, positions([0, 88])), strict=True):
        for v in np.flatnonzero(np.arange(N) != source).tolist():
            arcs = slice(indptr[row[v]], indptr[row[v] + 1])
            assert expected[source, row[v]] + weights[arcs][indices[arcs] == v].min() == expected[source, v]


def test_rows_are_the_same_one_by_one_and_together(roads, monkeypatch):
    _, store, expected = roads
    for together in (1, 1000):
        monkeypatch.setattr(hierarchy_module, "TOGETHER", together)
        monkeypatch.setattr(hierarchy_module, "BATCH_BYTES", 3 * N * 4)  # three rows
        seen = [(start + i, row) for start, rows in store.rows(np.arange(5, 12)) for i, row in enumerate(rows)]
        assert [place for place, _ in seen] == list(range(7))
        np.testing.assert_array_equal(as_floats(np.stack([row for _, row in seen])), expected[5:12])


def test_blocks_with_all_vertices_are_rows(roads, monkeypatch):
    _, store, expected = roads
    monkeypatch.setattr(hierarchy_module, "distance_block", None)  # which would compute tables for each block
    np.testing.assert_array_equal(as_floats(store.between([3, 1], np.arange(N))), expected[[3, 1]])


def test_a_wrong_distance_is_found(roads, monkeypatch):
    graph, store, _ = roads
    right = hierarchy_module.distance_rows
    monkeypatch.setattr(hierarchy_module, "distance_rows", lambda hierarchy, sources: right(hierarchy, sources) + 1)
    with pytest.raises(VerificationError, match="from vertex v0 to itself is 1, not 0"):
        verify_distances(store, graph)


def test_bricks_are_in_colours_and_what_separates_them_is_dark(roads, tmp_path, monkeypatch):
    _, store, _ = roads
    division = store.division()
    assert division.parts == 1  # one brick holds a small network
    assert not division.separates.any()
    part = np.where(np.arange(N) % 20 == 10, -1, np.arange(N) % 20 > 10)  # as if a column separated two bricks
    between = part < 0
    part[between] = 2 + np.arange(20)
    names = ("between bricks", "2 bricks, 20 vertices between them")
    made = type(division)(part, between, 22, names)
    monkeypatch.setattr(type(store), "division", lambda self: made)
    picture_bricks(store, tmp_path / "g.dot")
    text = (tmp_path / "g.dot").read_text()
    fills = re.findall(r'^  v\d+ \[label=".*?", fillcolor="(.*?)"', text, re.M)
    assert [fill == INK for fill in fills] == between.tolist()
    assert len({fills[v] for v in np.flatnonzero(part == 0)}) == len({fills[v] for v in np.flatnonzero(part == 1)}) == 1
    arcs = re.findall(r'^  v(\d+) -- v(\d+) \[color="(.*?)"', text, re.M)
    assert {colour == INK for *_, colour in arcs} == {True, False}
    assert [colour == INK for *_, colour in arcs] == [part[int(u)] != part[int(v)] for u, v, _ in arcs]
    assert "2 bricks, 20 vertices between them" in text


def test_the_division_follows_the_tree(client, tmp_path):
    made = generate(synthetic_graph("grid", rows=50, columns=50, weights="integers"), tmp_path / "g")
    store = build_hierarchy(client, made, tmp_path / "h")
    division = store.division()
    assert 1 < len(np.unique(division.part[~division.separates])) < 20
    assert 0 < division.separates.sum() < 400
    indptr, indices, _ = made.rows()
    tails = np.repeat(np.arange(made.n), np.diff(indptr))
    inside = ~division.separates[tails] & ~division.separates[indices]
    assert (division.part[tails[inside]] == division.part[indices[inside]]).all()  # no arc leads from brick to brick


def test_the_commands(roads, tmp_path, monkeypatch):
    _, store, expected = roads
    monkeypatch.chdir(tmp_path)

    def say(*arguments, fails=False):
        said = CliRunner().invoke(tilepath, list(arguments))
        assert (said.exit_code != 0) == fails, (said.output, said.exception)
        return said.output + str(said.exception)

    assert f"v3 -> v390: {expected[3, 390]:,.0f} over" in say("path", store.path, "v3", "v390")
    (tmp_path / "p.csv").write_text("source,target\nv3,v390\nv9,v9\n")
    assert "2 paths" in say("path", store.path, "--pairs", "p.csv", "--out", "routes.csv")
    (tmp_path / "o.csv").write_text("vertex\nv3\nv9\n")
    assert "2 origins, 2 destinations, 4 rows" in say("od", store.path, "od.csv", "--origins", "o.csv")
    graph = store.graph_path
    small = say("hierarchy", graph, "h", "--device", "cpu", "--host-memory", "1kB", fails=True)
    assert "METIS and the graph need" in small
    say("picture", graph, "i.png", "--distances", store.path, "--from", "v17", "--every", "300")
    say("picture", store.path, "b.png", "--sample", "5")
    assert "cannot go with a picture of a hierarchy store" in say("picture", store.path, "c.png", "--edges", fails=True)
    refused = say("export", store.path, "d.csv", fails=True)
    assert "a hierarchy store is not exported; tilepath od writes tables and .npy" in refused
    assert "is faster (tilepath hierarchy)" in say("od", graph, "s.csv", "--origins", "o.csv")

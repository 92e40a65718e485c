"""What a hierarchy store answers: blocks by names, routes, predecessors, tables and pictures."""

import pickle
import re
import shutil

import numpy as np
import pytest
from commands import invoke
from matplotlib.image import imread
from road_graphs import as_floats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sparse_rows import all_distances

from pipelines import (
    StoreError,
    VerificationError,
    build_hierarchy,
    distances_between,
    generate,
    open_hierarchy,
    paths_of_pairs,
    picture_bricks,
    positions,
    predecessors,
    shortest_path,
    synthetic_graph,
    verify_distances,
    write_graph,
)
from pipelines.pictures import canvas, layout, separators
from pipelines.pictures.drawing import BLUE, INK, LEVELS, PALE
from pipelines.stores import hierarchy as hierarchy_module

N = 400


@pytest.fixture(scope="module")
def roads(client, tmp_path_factory):
    """A road network with labels, its hierarchy, and all distances by searches."""
    folder = tmp_path_factory.mktemp("roads")
    made = generate(synthetic_graph("road", rows=20, columns=20, missing=0.6, weights="integers"), folder / "plain")
    labels = np.array([f"v{v}" for v in range(N)])
    graph = write_graph(folder / "g", *made.rows(), labels=labels, coordinates=made.coordinates(), directed=False)
    store = build_hierarchy(client, graph, folder / "h")
    return graph, store, all_distances(*graph.rows())


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
    assert len(pickle.dumps(store)) < 1000
    np.testing.assert_array_equal(again.row(5), store.row(5))
    assert open_hierarchy(store.path).digest == store.digest
    for wrong, message in (
        (["x"], "there is no vertex 'x'"),
        (positions([N]), "there is no vertex '#400'; give a position from 0 to 399"),
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
    with pytest.raises(StoreError, match=r"its graph is no longer at .*g; give its path \(graph, --graph\)"):
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
    assert found.total == found.distance == expected[3, 390]
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


@pytest.fixture(scope="module")
def grid(client, tmp_path_factory):
    """A grid of 50 x 50 vertices, and its hierarchy."""
    folder = tmp_path_factory.mktemp("grid")
    made = generate(synthetic_graph("grid", rows=50, columns=50, weights="integers"), folder / "g")
    return made, build_hierarchy(client, made, folder / "h")


def test_the_division_follows_the_tree(grid):
    made, store = grid
    division = store.division()
    assert 1 < len(np.unique(division.part[~division.separates])) < 20
    assert 0 < division.separates.sum() < 400
    indptr, indices, _ = made.rows()
    tails = np.repeat(np.arange(made.n), np.diff(indptr))
    inside = ~division.separates[tails] & ~division.separates[indices]
    assert (division.part[tails[inside]] == division.part[indices[inside]]).all()  # no arc leads from brick to brick


def test_each_level_of_a_map_cuts_the_pieces_of_the_level_above(grid, tmp_path):
    made, store = grid
    picture_bricks(store, tmp_path / "g.dot", "levels")
    fills = re.findall(r'^  v\d+ \[label=".*?", fillcolor="(.*?)"', (tmp_path / "g.dot").read_text(), re.M)
    separates = store.division().separates
    assert [fill != PALE for fill in fills] == separates.tolist()
    colours = np.array([*LEVELS, PALE])
    levels = np.array([colours.tolist().index(fill) for fill in fills])
    arcs = csr_array((np.ones(made.m), made.indices(), made.indptr()))
    structure, deepest, before = store.hierarchy.structure, levels[separates].max(), 0
    for level in range(deepest + 1):
        left = levels >= level
        pieces, piece = connected_components(arcs[left][:, left])
        assert pieces > before
        own = levels[left] == level
        nodes = structure.node_of[structure.place[left]]
        assert len(set(zip(piece[own], nodes[own], strict=True))) == len(set(piece[own]))  # one node cuts a piece
        before = pieces
    picture_bricks(store, tmp_path / "g.svg", "levels")
    text = (tmp_path / "g.svg").read_text()
    assert all(f"<!-- level {i}" in text for i in range(deepest + 1))
    assert f"<!-- level 0 (root): {(levels == 0).sum()} vertices -->" in text
    picture_bricks(store, tmp_path / "g.png", "levels", title="")
    seen = (imread(tmp_path / "g.png")[..., :3] * 255).round().astype(int)
    radii = np.where(separates, 1.6 + 2.2 * 0.7**levels, 1.6)[:, None]
    places = made.coordinates() * (layout.MAP_WIDTH / np.ptp(made.coordinates()[:, 0]))
    low, high = (places - radii).min(axis=0) - canvas.MARGIN, (places + radii).max(axis=0) + canvas.MARGIN
    column = ((places[:, 0] - low[0]) * 150 / 72).astype(int)
    row = ((high[1] - places[:, 1]) * 150 / 72).astype(int)
    inside = np.flatnonzero((arcs @ separates == 0) & ~separates)  # no arc of a separator ends there
    for v in (*np.flatnonzero(levels == 0)[::9], *inside[::151]):
        assert "#" + "".join(f"{part:02x}" for part in seen[row[v], column[v]]) == fills[v]


def test_closed_vertices_have_no_level(client, grid, tmp_path):
    made, _ = grid
    through = np.arange(made.n) % 250 != 7
    closed = write_graph(tmp_path / "g", *made.rows(), coordinates=made.coordinates(), through=through, directed=False)
    picture_bricks(build_hierarchy(client, closed, tmp_path / "h"), tmp_path / "g.dot", "levels")
    fills = re.findall(r'^  v\d+ \[label=".*?", fillcolor="(.*?)"', (tmp_path / "g.dot").read_text(), re.M)
    assert [fill == BLUE for fill in fills] == (~through).tolist()


def test_the_tree_has_all_vertices_and_nodes_above_their_subtrees(grid, tmp_path, monkeypatch):
    _, store = grid
    division = store.division()
    for most, leaves in ((300, "bricks"), (3, "subtrees of up to 833 vertices")):
        monkeypatch.setattr(separators, "MOST_LEAVES", most)
        monkeypatch.setattr(separators, "THINNEST", 0.0)
        tree = separators.separator_tree(store)
        sizes, inner = np.array(tree.names, int), np.array([fill != PALE for fill in tree.fills])
        assert sizes.sum() == store.n
        assert (sizes[inner].sum() == division.separates.sum()) == (leaves == "bricks")
        assert tree.legend[-1] == (PALE, leaves)
        assert len(tree.heads) == tree.n - 1  # one root
        assert len(np.unique(tree.heads)) == len(tree.heads)
        assert inner[tree.tails].all()
        x, y = tree.coordinates.T
        assert (y[tree.heads] < y[tree.tails]).all()
        for node in np.flatnonzero(inner):
            children = x[tree.heads[tree.tails == node]]
            assert children.min() < x[node] < children.max()
    least = sizes[~inner].max()
    small = sizes[~inner] < least
    assert 0 < small.sum() < len(small)
    monkeypatch.setattr(separators, "THINNEST", separators.WIDTH * (least - 0.5) / store.n)
    tree = separators.separator_tree(store)
    assert tree.legend[-1][1] == f"{leaves}, without {small.sum()} of fewer than {least} vertices"
    assert sorted(map(int, tree.names)) == sorted([*sizes[inner], *sizes[~inner][~small]])
    monkeypatch.undo()
    picture_bricks(store, tmp_path / "t.svg", "tree")
    text = (tmp_path / "t.svg").read_text()
    root = sizes[inner][y[inner].argmax()]
    assert f"<!-- {root} -->" in text
    assert "<!-- g: 2,500 vertices; " in text


def test_pictures_of_levels_need_separators(roads, grid, tmp_path):
    for kind in "levels", "tree":
        with pytest.raises(
            ValueError, match=r"the bricks hold all vertices .*; draw the bricks \(kind='bricks', --kind bricks\)"
        ):
            picture_bricks(roads[1], tmp_path / "p.png", kind)
    with pytest.raises(ValueError, match=r"'heat'; choose one of bricks, levels, tree"):
        picture_bricks(grid[1], tmp_path / "p.png", "heat")
    for wrong in {"sample": 5}, {"around": 7}:
        with pytest.raises(ValueError, match=r"a tree has all vertices; leave out sample \(--sample\) and around"):
            picture_bricks(grid[1], tmp_path / "p.png", "tree", **wrong)
    assert not list(tmp_path.iterdir())


def test_the_commands(roads, grid, tmp_path, monkeypatch):
    _, store, expected = roads
    monkeypatch.chdir(tmp_path)

    def say(*arguments, fails=False):
        said = invoke(*arguments)
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
    say("picture", store.path, "b.png", "--sample", "5", "--size", "3", "--dpi", "60")
    assert imread(tmp_path / "b.png").shape[1] < 6 * 60  # without: 7.5 inches and margins, 150 pixels each
    say("picture", grid[1].path, "t.png", "--kind", "tree")
    say("picture", grid[1].path, "fine.png", "--kind", "tree", "--dpi", "300")
    coarse, fine = (imread(tmp_path / name).shape for name in ("t.png", "fine.png"))
    np.testing.assert_allclose(fine[:2], 2 * np.array(coarse[:2]), atol=2)
    assert "a tree is no map" in say("picture", grid[1].path, "c.png", "--kind", "tree", "--size", "3", fails=True)
    refused = say("picture", graph, "l.png", "--kind", "levels", fails=True)
    assert "--kind levels draws a hierarchy store; make one of the graph (tilepath hierarchy)" in refused
    assert "cannot go with a picture of a hierarchy store" in say("picture", store.path, "c.png", "--edges", fails=True)
    refused = say("export", store.path, "d.csv", fails=True)
    assert "a hierarchy store is not exported; tilepath od writes tables and .npy" in refused
    assert "is faster (tilepath hierarchy)" in say("od", graph, "s.csv", "--origins", "o.csv")

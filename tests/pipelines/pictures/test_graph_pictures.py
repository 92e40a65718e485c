"""Pictures of graphs: what is drawn and where, and that the same call gives the same bytes."""

import math
import re
import sys
from itertools import permutations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from gpuops import NotEulerianError, euler_circuit
from pipelines import build_hierarchy, generate
from pipelines.generators import EulerGraph, Grid
from pipelines.pictures import canvas, part, streets, view
from pipelines.pictures import drawing as drawings
from pipelines.pictures.arrows import label_places, route_arcs
from pipelines.pictures.colours import arc_colours, node_colours
from pipelines.pictures.distances import picture_distances
from pipelines.pictures.drawing import (
    BLUE,
    GREEN,
    LIGHT_GREEN,
    LIGHT_RED,
    PALE,
    RED,
    YELLOW,
    Drawing,
)
from pipelines.pictures.euler_stages import STAGES, picture_euler_stages, picture_partitions
from pipelines.pictures.graphs import picture_graph
from pipelines.pictures.layout import place_nodes
from pipelines.stores.errors import StoreError
from pipelines.stores.graph_writer import write_graph

LANE = [(0, 1), (1, 2), (2, 0), (0, 3)]  # an Euler path from 0 to 3


@pytest.fixture
def write(tmp_path):
    def write(arcs, n=None, name="g.zarr", **facts):
        arcs = np.array(arcs, np.int64).reshape(-1, 2)
        n = int(arcs.max()) + 1 if n is None else n
        tails, heads = arcs[np.argsort(arcs[:, 0], kind="stable")].T
        indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
        weights = np.ones(len(arcs), "int32")
        return write_graph(tmp_path / name, indptr, heads.astype("int32"), weights, overwrite=True, **facts)

    return write


@pytest.fixture
def demo(tmp_path):
    """The published example: 15 vertices, k = 5, 44 arcs, five partitions."""
    return generate(EulerGraph(15, 5, seed=15009), tmp_path / "demo.zarr", sorted_rows=False)


@pytest.fixture
def dot(tmp_path):
    """dot(graph, **options): nodes (name, colour) and arcs (tail, head, text, colour) of the picture as text."""

    def drawn(graph, **options):
        picture_graph(graph, tmp_path / "g.dot", overwrite=True, **options)
        text = (tmp_path / "g.dot").read_text()
        nodes = re.findall(r'^  v\d+ \[label="(.*?)", fillcolor="(.*?)"', text, re.M)
        arcs = re.findall(r'^  v(\d+) -[->] v(\d+) \[color="(.*?)", penwidth=[\d.]+(?:, label="(.*?)")?', text, re.M)
        return nodes, [(int(u), int(v), text, colour) for u, v, colour, text in arcs], text

    return drawn


def test_edges_are_numbered_by_their_places(demo, dot):
    nodes, arcs, text = dot(demo, edges=True)
    assert [name for name, _ in nodes] == [str(v) for v in range(15)]
    tails = np.repeat(np.arange(15), np.diff(demo.indptr())).tolist()
    assert [arc[:3] for arc in arcs] == [
        (u, v, str(i)) for i, (u, v) in enumerate(zip(tails, demo.indices().tolist(), strict=True))
    ]
    assert text.startswith('digraph "demo.zarr: 15 vertices, 44 arcs" {')


def test_a_circuit_is_numbered_in_walking_order_by_turns_green_and_red(demo, dot):
    nodes, arcs, _ = dot(demo, circuit=True)
    found = euler_circuit(demo.indptr(), demo.indices()).arcs
    for place, arc in enumerate(found.tolist()):
        assert arcs[arc][2:] == (str(place + 1), GREEN if place % 2 == 0 else RED)
    walked = sorted(arcs, key=lambda arc: int(arc[2]))
    assert all(a[1] == b[0] for a, b in zip(walked, walked[1:] + walked[:1], strict=True))
    assert [colour for _, colour in nodes] == [LIGHT_GREEN, *["#ffffff"] * 14]


def test_a_path_begins_green_and_ends_red(write, dot):
    nodes, _, text = dot(write(LANE), circuit=True)
    assert [colour for _, colour in nodes] == [LIGHT_GREEN, "#ffffff", "#ffffff", LIGHT_RED]
    assert "Euler path" in text
    with pytest.raises(NotEulerianError, match=r"g\.zarr: an Euler path has .* here 4 vertices are not balanced: 0 "):
        dot(write([(0, 1), (2, 3)]), circuit=True)


def test_an_undirected_edge_is_drawn_once(write, dot):
    both = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (2, 2), (2, 2)]
    graph = write(both, directed=False)
    _, arcs, text = dot(graph, edges=True)
    assert sorted(arc[:2] for arc in arcs) == [(0, 1), (0, 2), (1, 2), (2, 2)]
    assert text.startswith('graph "g.zarr: 3 vertices, 4 edges" {')
    _, arcs, text = dot(graph, circuit=True)
    assert sorted(int(arc[2]) for arc in arcs) == [1, 2, 3, 4]
    walked = sorted(arcs, key=lambda arc: int(arc[2]))
    assert all(a[1] == b[0] for a, b in zip(walked, walked[1:] + walked[:1], strict=True))


def test_a_spanning_tree_is_red_and_the_rest_grey_or_washed_away(demo, dot):
    for wash, rest in ((False, "#b8bcc2"), (True, PALE)):
        _, arcs, _ = dot(demo, spanning_tree=True, wash=wash)
        tree = [arc for arc in arcs if arc[3] == RED]
        assert len(tree) == 14
        assert {arc[3] for arc in arcs} == {RED, rest}
        reached = {0}
        for _ in tree:
            reached |= {v for u, v, *_ in tree if u in reached} | {u for u, v, *_ in tree if v in reached}
        assert len(reached) == 15


def test_degrees_are_marked(write, dot):
    nodes, _, _ = dot(write([(0, 1), (0, 2), (1, 2), (2, 0), (2, 1), (3, 1)]), in_degree=2, out_degree=2)
    assert [colour for _, colour in nodes] == [LIGHT_GREEN, YELLOW, BLUE, "#ffffff"]


def test_components_are_framed(write, dot):
    _, _, text = dot(write([(0, 2), (1, 3)], 5), components=True)
    assert re.findall(r"subgraph cluster_\d \{ label=\"(.*?)\"; (.*?) \}", text) == [
        ("component 0", "v0; v2;"), ("component 1", "v1; v3;"), ("component 2", "v4;")
    ]  # fmt: skip


def test_labels_are_escaped(write, dot):
    _, _, text = dot(write([(0, 1)], labels=np.array(['a "b"', r"c\n"])))
    assert r'label="a \"b\""' in text
    assert r'label="c\\n"' in text


def test_a_route_and_the_distances_over_a_map(solve, tmp_path, dot):
    coordinates = np.array([[0, 0], [1000, 0], [1000, 1000], [0, 1000], [np.nan, 0]])
    arcs = np.array([0, 1, 0, 3, 4]), np.array([1, 2, 3, 2, 0]), np.array([1.0, 1, 3, 3, 1])
    distances, graph = solve(5, arcs, "float64", coordinates=coordinates, weight_unit="km")
    nodes, drawn, text = dot(graph, distances=distances.path, route=("0", "2"))
    assert [name for name, _ in nodes] == ["0", "1", "2", "3"]
    assert "; without 1 lacking coordinates" in text
    assert {arc[:2] for arc in drawn if arc[3] == RED} == {(0, 1), (1, 2)}
    assert 'pos="540.00,540.00!"' in text
    assert re.findall(r"v(\d) .*peripheries=2", text) == ["0", "2"]  # the ends
    picture_graph(graph, tmp_path / "map.svg", distances=distances, route=(0, 2), wash=True, title="Home [h]")
    assert {"Distance from 0, kilometres", "Home [h]"} <= words(tmp_path / "map.svg")


def test_captions_are_written_where_they_hide_nothing():
    """In a dot that is large enough, else to the right, where the page grows; not over other dots and names."""
    places = np.array([[0, 0], [200, 0], [203, 1], [400, 0], [300, 0], [540, 0]])
    names = ["inside", "hides", "near", "alone", "pale", "a long name"]
    fills = [RED, RED, RED, RED, PALE, RED]
    radii = np.array([40.0, 4, 3, 4, 4, 4])
    tails = heads = np.empty(0, np.int64)
    drawing = Drawing(names, tails, heads, fills=fills, coordinates=places, radii=radii, captions=True)
    figure = Figure()
    canvas._draw_page(figure, drawing, 0)
    written = {text.get_text(): text for text in figure.axes[0].texts}
    assert set(written) == {"inside", "near", "alone", "a long name"}  # "hides" would hide a dot
    assert written["inside"].get_position() == (0, 0)
    assert written["alone"].get_position()[0] > 404
    long = canvas._text_width("a long name", canvas.TEXT_SIZE)
    assert figure.get_size_inches()[0] * 72 > 40 + 540 + 4 + long + 2 * canvas.MARGIN


def words(path):
    """The texts of an SVG picture."""
    return set(re.findall("<!-- (.*) -->", path.read_text()))


@pytest.mark.parametrize(("unit", "ratio"), [(1, 1), (1000, 2)], ids=["degrees", "metres"])
def test_longitude_and_latitude_have_equal_lengths(write, tmp_path, unit, ratio):
    corners = np.array([[10, 59.5], [12, 59.5], [12, 60.5], [10, 60.5]]) * unit  # at 60 degrees twice as many east
    graph = write([(0, 1), (1, 2), (2, 3), (3, 0)], coordinates=corners)
    picture_graph(graph, tmp_path / "g.dot")
    places = re.findall(r'pos="(.*),(.*)!"', (tmp_path / "g.dot").read_text())
    width, height = np.ptp(np.array(places, float), axis=0)
    assert width / height == pytest.approx(ratio, rel=1e-3)
    picture_graph(graph, tmp_path / "g.png", title="")
    down, across = imread(tmp_path / "g.png").shape[:2]
    around = 2 * (canvas.MARGIN + 10) * 150 / 72  # margins and half of the vertices on each side
    bar = streets.BAR_ROOM * 150 / 72 if unit == 1 else 0
    assert (across - around) / (down - around - bar) == pytest.approx(ratio, rel=0.02)


def test_places_of_a_generated_grid_are_no_degrees(tmp_path):
    graph = generate(Grid(rows=80, columns=2), tmp_path / "grid.zarr")
    picture_graph(graph, tmp_path / "g.dot")
    places = re.findall(r'pos="(.*),(.*)!"', (tmp_path / "g.dot").read_text())
    width, height = np.ptp(np.array(places, float), axis=0)
    assert height / width == pytest.approx(79, rel=1e-3)


def test_a_large_map_has_dots_only_where_they_say_something(monkeypatch):
    monkeypatch.setattr(drawings, "FEW_NODES", 3)
    facts = {"names": list("abcd"), "tails": np.array([0, 1]), "heads": np.array([1, 2])}
    fills = ["#ffffff", "#ffffff", YELLOW, "#ffffff"]
    places, values = np.zeros((4, 2)), np.arange(4.0)
    for found, more in (
        ([2, 3], {"coordinates": places}),  # a colour, and without arcs
        ([2, 3], {"coordinates": places, "values": values, "every": 2.0}),  # arcs show the bands
        ([2, 3], {"coordinates": places, "values": values}),  # arcs show the values
        ([0, 1, 2, 3], {}),
    ):
        assert canvas.dots_of(Drawing(**facts, fills=fills, **more)).tolist() == found
    picture = Drawing(**facts, coordinates=places)
    monkeypatch.setattr(drawings, "FEW_NODES", 4)
    assert len(canvas.dots_of(picture)) == 4


def test_names_that_a_page_cannot_show(write, tmp_path):
    graph = write([(0, 1), (1, 2), (2, 3)], labels=np.array(["\u6771\u4eac", "a\tb", "", "Charlottenburg-Wilmersdorf"]))
    with pytest.warns(UserWarning, match="drawn as boxes: 2 characters such as .*; set font.family") as found:
        picture_graph(graph, tmp_path / "g.svg")
    assert len(found) == 1
    assert {"a b", '""', "Charlott\u2026lmersdorf"} <= words(tmp_path / "g.svg")


@pytest.fixture
def street(client, tmp_path):
    """A street of 12 crossings, 5 apart, and one that is not on it; and its hierarchy."""
    ends = np.concatenate([np.arange(11), np.arange(1, 12)]), np.concatenate([np.arange(1, 12), np.arange(11)])
    order = np.argsort(ends[0], kind="stable")
    starts = np.searchsorted(ends[0][order], np.arange(14))
    coordinates = np.stack([np.arange(13.0), np.arange(13) % 2.0], axis=1)
    weights = np.full(22, 5)
    graph = write_graph(
        tmp_path / "g", starts, ends[1][order], weights, coordinates=coordinates, directed=False, weight_unit="s"
    )
    return graph, build_hierarchy(client, graph, tmp_path / "h")


def test_isochrones_colour_arcs_by_the_band_of_their_farther_end(street, tmp_path):
    graph, store = street
    picture_graph(graph, tmp_path / "g.svg", distances=store, source=0, every=20)
    text = (tmp_path / "g.svg").read_text()
    lines = re.findall(r"stroke: (#\w{6})", text)
    bands = dict.fromkeys(lines)
    picture_graph(graph, tmp_path / "plain.svg", distances=store, source=0)
    assert len(bands) >= 3  # distances 0 to 55
    assert "<!-- Travel time from 0, seconds -->" in text
    picture_graph(graph, tmp_path / "g.dot", distances=store, source=4)
    assert re.findall(r"v(\d+) .*peripheries=2", (tmp_path / "g.dot").read_text()) == ["4"]
    assert text != (tmp_path / "plain.svg").read_text()
    with pytest.raises(ValueError, match="there would be 111 bands of 0.5; up to 24 can be told apart: widen them"):
        picture_graph(graph, tmp_path / "no.svg", distances=store, source=0, every=0.5)
    with pytest.raises(ValueError, match="all colour the arcs; ask for one"):
        picture_graph(graph, tmp_path / "no.svg", distances=store, route=(0, 3), every=20)
    assert not (tmp_path / "no.svg").exists()


def test_bands_begin_at_their_multiples_and_what_is_not_reached_is_grey():
    drawing = Drawing(
        names=["a", "b", "c", "d"],
        tails=np.array([0, 1, 2]),
        heads=np.array([1, 2, 3]),
        values=np.array([0.0, 19.0, 20.0, np.nan]),
        every=20.0,
    )
    nodes, bar = node_colours(drawing)
    arcs = arc_colours(drawing, bar)
    assert bar.norm.boundaries.tolist() == [0, 20, 40]
    assert tuple(nodes[0]) == tuple(nodes[1]) == tuple(arcs[0]) != tuple(nodes[2])
    assert tuple(nodes[2]) == tuple(arcs[1])
    assert arcs[2] == "#dadce0"


def test_neighbouring_parts_differ_in_colour():
    grid = np.arange(400).reshape(20, 20)
    tails = np.concatenate([grid[:, :-1].ravel(), grid[:-1].ravel()])
    heads = np.concatenate([grid[:, 1:].ravel(), grid[1:].ravel()])
    found = view._apart(tails, heads, 400)
    assert (found[tails] != found[heads]).all()
    assert view._apart(np.arange(0), np.arange(0), 3).shape == (3,)


def test_options_that_exclude_each_other(demo, tmp_path):
    for options, match in (
        ({"edges": True, "circuit": True}, "circuit and edges both number the arcs; ask for one"),
        ({"spanning_tree": True, "circuit": True}, "both colour the arcs"),
        ({"in_degree": 1, "circuit": True}, "both colour the vertices"),
        ({"wash": True}, "wash .* leaves a spanning tree or a route"),
        ({"source": 1, "in_degree": 1}, "distances and degrees both colour the vertices"),
        ({"source": 1, "values": {"vertex": [1]}}, "values and distances both colour the vertices"),
        ({"every": 3}, "bands of every .* are of distances; name their source"),
        ({"every": 0}, "every is 0; give the width of a band, above 0"),
        ({"circuit": True, "sample": 3}, "a sample does not have all arcs"),
        ({"around": 3}, "give its size as well"),
        ({"around": "x", "sample": 3}, "there is no vertex 'x'"),
        ({"sample": 0}, "a sample of 0 vertices cannot be drawn"),
        ({"circuit": tmp_path / "none"}, "no such store"),
    ):
        with pytest.raises(ValueError, match=match):
            picture_graph(demo, tmp_path / "g.svg", **options)
    for suffix in (".xyz", ""):
        with pytest.raises(ValueError, match=r"pictures end in \."):
            picture_graph(demo, tmp_path / f"g{suffix}")
    assert not list(tmp_path.glob("g*"))


def test_a_graph_too_large_is_refused_before_it_is_read(write, tmp_path, monkeypatch):
    graph = write([(0, 1)], n=2001)
    monkeypatch.setattr(type(graph), "indices", lambda *_: pytest.fail("was read"))
    match = r"has 2,001 vertices; a picture shows up to 2,000: draw a sample .* import the graph with .*--coordinates"
    with pytest.raises(ValueError, match=match):
        picture_graph(graph, tmp_path / "g.svg")
    ring = write([(v, (v + 1) % 160) for v in range(160)], name="ring")
    monkeypatch.undo()
    with pytest.raises(
        ValueError, match=r"numbers are legible with up to 400 arcs and 150 vertices; here are 160 arcs and"
    ):
        picture_graph(ring, tmp_path / "g.svg", edges=True)


@pytest.mark.parametrize("directed", [True, False])
def test_a_sample_lies_around_its_vertex(write, directed):
    lane = [(v, v + 1) for v in range(29)]
    graph = write(lane if directed else [arc for u, v in lane for arc in ((u, v), (v, u))], directed=directed)
    found = part.part_of(graph, sample=5, around=10, seed=0, on_map=False)
    assert found.vertices.tolist() == [8, 9, 10, 11, 12]
    tails, heads = found.vertices[found.tails], found.vertices[found.indices]
    whole = np.repeat(np.arange(30), np.diff(graph.indptr()))
    np.testing.assert_array_equal(tails, whole[found.arcs])
    np.testing.assert_array_equal(heads, graph.indices()[found.arcs])
    assert len(found.arcs) == (4 if directed else 8)
    again = [part.part_of(graph, sample=5, around=None, seed=seed, on_map=False) for seed in (1, 1, 2)]
    assert (again[0].vertices == again[1].vertices).all()
    assert (again[0].vertices != again[2].vertices).any()
    apart = write([], n=7, name="apart")
    assert len(part.part_of(apart, sample=4, around=6, seed=0, on_map=False).vertices) == 4


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".dot"])
def test_the_same_call_gives_the_same_bytes(demo, tmp_path, suffix):
    for name in ("a", "b"):
        picture_graph(demo, tmp_path / f"{name}{suffix}", spanning_tree=True, components=True)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    assert b"Date" not in (tmp_path / f"a{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("arcs", "n", "options"),
    [
        ([(0, 0)], 1, {"edges": True}),
        ([(0, 0), (0, 0), (0, 1), (1, 0), (0, 1)], 3, {"edges": True, "components": True}),
        ([], 4, {"components": True}),
        ([], 0, {"components": True, "spanning_tree": True}),
        ([], 0, {}),
        ([(0, 1), (1, 0)], 2, {"coordinates": np.zeros((2, 2))}),
        ([], 0, {"coordinates": np.zeros((0, 2))}),
        ([(0, 1)], 2, {"coordinates": np.full((2, 2), np.nan), "edges": True}),
        ([], 13, {"circuit": True}),
        ([(v, 0) for v in range(200)], 200, {"spanning_tree": True}),
    ],
)
def test_small_and_odd_graphs_are_drawn(write, tmp_path, arcs, n, options):
    options = dict(options)
    graph = write(arcs, n, coordinates=options.pop("coordinates", None))
    picture_graph(graph, tmp_path / "g.svg", **options)
    picture_graph(graph, tmp_path / "g.dot", **options)
    assert (tmp_path / "g.svg").stat().st_size > 500


@pytest.mark.parametrize("missing", ["matplotlib.figure", "networkx", "scipy"])
def test_what_is_missing_is_named_and_text_needs_nothing(demo, tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    picture_graph(demo, tmp_path / "g.dot")
    with pytest.raises(ImportError, match=r"pip install -e .*\[plot\]"):
        picture_graph(demo, tmp_path / "g.svg")


def test_a_graph_by_forces_of_hundreds(write, tmp_path):
    rng = np.random.default_rng(0)
    arcs = [(v, int(rng.integers(0, v))) for v in range(1, 170)]
    picture_graph(write(arcs), tmp_path / "a.svg", seed=1)
    picture_graph(write(arcs), tmp_path / "b.svg", seed=1)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


# Stages -------------------------------------------------------------------------------------------------------------


def test_the_published_pictures(demo, tmp_path):
    paths = picture_euler_stages(demo, tmp_path / "stages", suffix=".dot")
    assert [path.stem for path in paths] == list(STAGES)
    graph, partitions, circuits, tree, circle = [path.read_text() for path in paths]
    assert len(re.findall(" -> ", graph)) == 44
    for text, sizes in ((partitions, [4, 4, 5, 9, 22]), (circle, [44])):
        after = {int(u): int(v) for u, v in re.findall(r"v(\d+) -> v(\d+)", text)}
        assert sorted(len(cycle) for cycle in cycles(after)) == sizes
        assert all(demo.indices()[a] == np.searchsorted(demo.indptr(), b, "right") - 1 for a, b in after.items())
    assert circuits.startswith("graph ")
    red = re.findall(rf'v(\d) -- v(\d) \[color="{RED}"', tree)
    assert {tuple(sorted(map(int, link))) for link in red} == {(0, 1), (0, 2), (2, 3), (1, 4)}  # as published
    assert RED not in circuits
    picture_partitions(demo, tmp_path / "p.dot")
    assert (tmp_path / "p.dot").read_text() == partitions


def cycles(after):
    left = dict(after)
    while left:
        first, v = left.popitem()
        cycle = [first]
        while v != first:
            cycle.append(v)
            v = left.pop(v)
        yield cycle


def test_functions_that_draw_return_the_figure(demo, solve, tmp_path):
    assert picture_graph(demo).get_axes()
    assert picture_partitions(demo)._repr_png_().startswith(b"\x89PNG")
    assert picture_graph(demo, tmp_path / "x.dot") is None
    distances, _ = solve(2, ([0, 1], [1, 0], [1, 1]), "float32")
    figure = picture_distances(distances.path, tmp_path / "x.png")
    assert imread(tmp_path / "x.png").shape[:2] == (900, 1080)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_partitions_of_a_graph_that_has_none(write, tmp_path):
    with pytest.raises(NotEulerianError, match=r"g\.zarr: arcs can be paired if .*; 0 has 1 in and 2 out"):
        picture_partitions(write(LANE), tmp_path / "p.svg")
    with pytest.raises(ValueError, match="name a folder"):
        picture_euler_stages(write(LANE), tmp_path / "p.svg")
    with pytest.raises(StoreError, match="no such store"):
        picture_partitions(tmp_path / "none", tmp_path / "p.svg")


# Geometry -----------------------------------------------------------------------------------------------------------

SIZE = np.array([14.0, 10.0])


def test_arrows_end_at_the_rim():
    centres = np.array([[0, 0], [120, 30], [60, -90]], float)
    sizes = np.tile(SIZE, (3, 1))
    tails, heads = np.array([0, 0, 1, 2, 2, 2]), np.array([1, 1, 0, 1, 2, 2])
    for arc, curve in enumerate(route_arcs(tails, heads, centres, sizes, True, 14.0)):
        tip = curve.head[0] - centres[heads[arc]]
        start = curve.points[0] - centres[tails[arc]]
        for point in (tip, start):
            beyond = np.maximum(np.abs(point) - (SIZE - 10), 0)
            assert math.hypot(*beyond) == pytest.approx(10, abs=1.0)


def test_parallel_arcs_do_not_coincide():
    centres = np.array([[0, 0], [100, 0]], float)
    tails, heads = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 1])
    curves = route_arcs(tails, heads, centres, np.tile(SIZE, (2, 1)), True, 14.0)
    middles = sorted(float(curve.at(np.array([0.5]))[0, 1]) for curve in curves)
    assert min(np.diff(middles)) == pytest.approx(14, abs=0.5)


def test_an_arc_bends_around_a_node_in_its_way():
    centres = np.array([[0, 0], [200, 0], [100, 2]], float)
    sizes = np.tile(SIZE, (3, 1))
    (curve,) = route_arcs(np.array([0]), np.array([1]), centres, sizes, True, 14.0)
    way = curve.at(np.linspace(0, 1, 100))
    assert not (np.abs(way - centres[2]) < SIZE).all(axis=1).any()


def test_texts_lie_on_their_curves_and_clear_of_each_other():
    centres = np.array([[0, 0], [100, 0], [50, 60]], float)
    sizes = np.tile(SIZE, (3, 1))
    tails, heads = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 1])
    curves = route_arcs(tails, heads, centres, sizes, True, 20.0)
    boxes = np.tile([8.0, 4.0], (4, 1))
    places = label_places(curves, boxes, centres, sizes)
    for curve, place in zip(curves, places, strict=True):
        assert np.linalg.norm(curve.at(np.linspace(0, 1, 2001)) - place, axis=1).min() < 1
    apart = np.abs(places[:, None] - places) >= 2 * boxes
    assert apart.any(axis=2)[~np.eye(4, dtype=bool)].all()


def test_a_text_lies_clear_of_a_long_arc_that_crosses():
    centres = np.array([[0, 0], [900, 0], [450, 466], [450, -434]], float)
    curves = route_arcs(np.array([0, 2]), np.array([1, 3]), centres, np.tile(SIZE, (4, 1)), True, 20.0)
    boxes = np.tile([8.0, 4.0], (2, 1))
    places = label_places(curves, boxes, centres, np.tile(SIZE, (4, 1)))
    for place, other in zip(places, reversed(curves), strict=True):
        assert not (np.abs(other.at(np.linspace(0, 1, 2001)) - place) < boxes[0]).all(axis=1).any()


@pytest.mark.parametrize("n", [1, 3, 10, 11, 40])
def test_nodes_lie_apart(n):
    rng = np.random.default_rng(n)
    tails, heads = rng.integers(0, n, (2, 2 * n))
    drawing = Drawing([str(v) for v in range(n)], tails, heads)
    sizes = np.tile(SIZE, (n, 1))
    centres = place_nodes(drawing, sizes, 70.0, 0)
    apart = (np.abs(centres[:, None] - centres) > 2 * sizes).any(axis=2)
    assert apart[~np.eye(n, dtype=bool)].all()


def test_nodes_lie_clear_of_the_arcs_of_others():
    tree = [((v - 1) // 7, v) for v in range(1, 50)]
    tails, heads = np.array(tree).T
    n = len(tree) + 1
    sizes = np.tile([24.0, 10.0], (n, 1))
    centres = place_nodes(Drawing([str(v) for v in range(n)], tails, heads), sizes, 90.0, 0)
    for u, v in tree:
        way = centres[u] + np.linspace(0, 1, 200)[:, None] * (centres[v] - centres[u])
        for other in set(range(n)) - {u, v}:
            assert not (np.abs(way - centres[other]) < sizes[0] - 1).all(axis=1).any()


def test_a_graph_without_cycles_lies_in_layers():
    tails, heads = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 3, 4])
    centres = place_nodes(Drawing(list("abcde"), tails, heads), np.tile(SIZE, (5, 1)), 70.0, 0)
    assert (centres[tails, 1] > centres[heads, 1]).all()
    assert len(set(centres[:, 1].round(6))) == 4


@pytest.mark.parametrize(
    ("arcs", "depths"),
    [
        ([(0, 1), (1, 2), (0, 2), (2, 3)], [0, 1, 2, 3]),
        ([(6, 3), (3, 4), (4, 3), (4, 0), (0, 1), (1, 2), (2, 0), (1, 5)], [3, 4, 5, 1, 2, 5, 0]),
        ([(0, 1), (1, 0), (2, 3), (3, 2), (2, 0)], [0, 1, 1, 2]),  # the first node does not lead to 2 and 3
    ],
)
def test_layers_follow_the_arcs(arcs, depths):
    tails, heads = np.array(arcs).T
    names = list("abcdefg"[: len(depths)])
    y = place_nodes(Drawing(names, tails, heads), np.tile(SIZE, (len(depths), 1)), 70.0, 0)[:, 1]
    np.testing.assert_allclose((y.max() - y) / 70, depths)


def test_few_nodes_with_many_arcs_lie_in_a_circle():
    tails, heads = np.array(list(permutations(range(9), 2))).T
    centres = place_nodes(Drawing(list("abcdefghi"), tails, heads), np.tile(SIZE, (9, 1)), 70.0, 0)
    radii = np.linalg.norm(centres - centres.mean(axis=0), axis=1)
    np.testing.assert_allclose(radii, radii[0])
    assert np.linalg.norm(centres[0] - centres[1]) > 70


def test_stages_of_a_graph_too_large_for_numbers_leave_no_folder(tmp_path):
    n = 500
    graph = write_graph(tmp_path / "ring", np.arange(n + 1), (np.arange(n) + 1) % n, np.ones(n, "int32"))
    with pytest.raises(ValueError, match="the stages number every arc, which is legible up to 400 arcs and 150 v"):
        picture_euler_stages(graph, tmp_path / "stages")
    assert not (tmp_path / "stages").exists()

"""Maps of streets: lines with bends instead of dots, filled bands, widths, the scale bar, and the page."""

import base64
import io
import json
import re
from pathlib import Path

import geopandas
import numpy as np
import pandas
import pyarrow.parquet
import pyogrio
import pytest
import shapely
from commands import run_command
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread
from PIL import Image

from pipelines import build_hierarchy, graph_to_gdfs, import_graph, positions, write_graph
from pipelines.files import figures
from pipelines.files.figures import in_words
from pipelines.files.layers import write_layers
from pipelines.od_tables.frames import od
from pipelines.od_tables.given import read_given
from pipelines.od_tables.what_if import changes
from pipelines.od_tables.write import write_od_table
from pipelines.pictures import canvas, streets
from pipelines.pictures.colours import node_colours
from pipelines.pictures.drawing import CLOSED, RED, Drawing
from pipelines.pictures.graphs import picture_graph
from pipelines.places.networks import open_network
from pipelines.reach.solve import isochrones
from pipelines.routes.distances import SearchedDistances
from pipelines.routes.paths import shortest_path
from pipelines.stores.errors import StoreError

STEP = 0.001  # degrees between crossings
TOWN = "\u00a9 Town & \u00c4mter"


@pytest.fixture(scope="module")
def city(tmp_path_factory, client):
    """24 x 24 crossings with bent streets, one row of which is three times as fast as all others; and its hierarchy."""
    lines, times = [], []
    for y in range(24):
        for x in range(24):
            for dx, dy in ((1, 0), (0, 1)):
                if x + dx < 24 and y + dy < 24:
                    ends = np.array([[x, y], [x + dx / 2 + 0.1, y + dy / 2 + 0.1], [x + dx, y + dy]])
                    lines.append(shapely.LineString([13, 52] + STEP * ends))
                    times.append((10 if y == 12 else 30) if dx else 49)
    frame = geopandas.GeoDataFrame({"time": times}, geometry=lines, crs="EPSG:4326")
    folder = tmp_path_factory.mktemp("city")
    graph = import_graph(frame, folder / "g", weight="time", unit="s", attribution=TOWN)
    return graph, build_hierarchy(client, graph, folder / "h")


def drawn(graph, **options):
    """The drawing that `picture_graph` makes."""
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.pictures.graphs.write_drawing", lambda drawing, *_: kept.append(drawing))
        picture_graph(graph, "g.svg", **options)
    return kept[0]


def collections_of(drawing):
    """The lines that are drawn, as (number of points, colour, width, zorder), lowest first."""
    figure = Figure()
    canvas._draw_page(figure, drawing, 0)
    axes = figure.axes[0]
    found = [each for each in axes.collections if isinstance(each, PathCollection) and len(each.get_edgecolors())]
    found = [each for each in found if not len(each.get_facecolors()) and each.get_zorder() <= 4]  # no rings
    return axes, sorted(
        (
            (
                each.get_zorder(),
                to_hex(each.get_edgecolors()[0]),
                float(each.get_linewidths()[0]),
                sum(len(path.vertices) for path in each.get_paths()),
            )
            for each in found
        ),
    )


def test_streets_are_lines_with_bends_each_once(city, tmp_path):
    graph, _ = city
    picture = drawn(graph)
    assert (picture.streets, picture.m) == (True, 2 * 24 * 23)  # of an undirected graph, an arc of each edge
    axes, lines = collections_of(picture)
    assert sum(points for *_, points in lines) == 3 * picture.m
    assert not any(len(each.get_offsets()) > 1 for each in axes.collections if hasattr(each, "get_sizes"))  # no dots
    # Both directions of a street in a directed graph are drawn once.
    indptr, heads, weights = graph.rows()
    twice = write_graph(
        tmp_path / "d", indptr, heads, weights, coordinates=graph.coordinates(), lines=graph.lines(), crs=graph.crs
    )
    assert sum(points for *_, points in collections_of(drawn(twice))[1]) == 3 * picture.m


def test_fast_roads_have_wide_lines(city):
    _, lines = collections_of(drawn(city[0]))
    assert len(lines) == 2
    (_, colour, narrow, most), (_, again, wide, few) = lines
    assert (colour, most, few) == (again, 3 * (2 * 24 * 23 - 23), 3 * 23)
    assert wide / narrow == pytest.approx(3.2)


def test_roads_of_high_classes_have_wide_lines(tmp_path):
    lines = [shapely.LineString([(x, 0), (x + 1, 0)]) for x in range(600)]
    classes = ["motorway_link", "primary", "residential", "footway", None, "unheard of"] * 100
    frame = geopandas.GeoDataFrame({"time": [1.0] * 600, "highway": classes}, geometry=lines, crs="EPSG:25833")
    with pytest.warns(UserWarning, match="many roads lead one way only"):
        graph = import_graph(frame, tmp_path / "g", weight="time", unit="s", directed=True)
    assert drawn(graph).widths.tolist() == [3.8, 3.0, 1.0, 0.6, 1.0, 1.0] * 100


def test_bands_are_filled_under_grey_streets(city):
    graph, store = city
    _, lines = collections_of(drawn(graph, distances=store, source="0", every=300))
    bands = [line for line in lines if line[0] < 2]
    grey = [line for line in lines if line[0] == 2]
    assert {colour for _, colour, *_ in grey} == {streets.STREET}
    assert sum(points for *_, points in bands) == sum(points for *_, points in grey) == 3 * 2 * 24 * 23
    assert len(bands) >= 3
    assert min(width for *_, width, _ in bands) > 5 * max(width for *_, width, _ in grey)
    # The nearest band, of the source, is drawn over the others; it is the lightest of the colour map.
    table = drawn(graph, distances=store, source="0", every=300)
    colours, _ = node_colours(table)
    assert bands[-1][1] == to_hex(colours[0])
    # The page has room for the bands and, above them, for the title.
    page = picture_graph(graph, distances=store, source="0", every=300, title="Bands")
    (title,) = [text for text in page.axes[0].texts if text.get_text() == "Bands"]
    axes, renderer = page.axes[0], page.canvas.get_renderer()
    title = title.get_window_extent(renderer).transformed(axes.transData.inverted())
    for each in axes.collections:
        if isinstance(each, PathCollection) and each.get_zorder() < 2:
            points = np.concatenate([path.vertices for path in each.get_paths()])
            half = each.get_linewidths()[0] / 2
            low, high = points.min(axis=0) - half, points.max(axis=0) + half
            assert axes.get_xlim()[0] < low[0] < high[0] < axes.get_xlim()[1]
            assert high[1] < title.y0


def test_without_bands_streets_have_the_colours_of_distances(city):
    graph, store = city
    _, lines = collections_of(drawn(graph, distances=store, source="0", cmap="cividis_r"))
    assert len({colour for _, colour, *_ in lines}) > 50
    assert sum(points for *_, points in lines) == 3 * 2 * 24 * 23


def test_a_table_of_values_colours_the_vertices_by_name(city, tmp_path):
    graph, _ = city
    table = pandas.DataFrame({"vertex": ["7", "0", "300"], "betweenness": [0.5, 0.25, None], "reached": [1, 2, 3]})
    table.to_csv(tmp_path / "b.csv", index=False)
    for values in (table, tmp_path / "b.csv"):
        picture = drawn(graph, values=values, column="betweenness")
        assert (picture.scale, picture.values[7], picture.values[0]) == ("Betweenness", 0.5, 0.25)
        assert np.isfinite(picture.values).sum() == 2
    for fault, options in {
        "name the column .*: betweenness, reached": {"values": table},
        "values: no column `closeness`": {"values": table, "column": "closeness"},
        "b.csv, row 3: .*there is no vertex": {"values": tmp_path / "b.csv", "column": "reached"},
        "name the table": {"column": "reached"},
        "values and degrees both colour": {"values": table, "in_degree": 2},
    }.items():
        (tmp_path / "b.csv").write_text("vertex,reached\n0,1\n1,2\nnone,3\n")
        with pytest.raises(ValueError, match=fault):
            drawn(graph, **options)


def test_a_table_of_distances_colours_the_vertices(city, tmp_path):
    graph, store = city
    schools = pandas.DataFrame({"vertex": ["0", "300"], "name": ["north", "south"]})
    nearest = od(store, None, schools, nearest=2, unit="min")
    nearest.to_csv(tmp_path / "od.csv", index=False)
    expected = np.minimum(*(od(store, None, [v], unit="min")["travel_time"] for v in ("0", "300")))
    for values, label in ((nearest, "Travel time, minutes"), (tmp_path / "od.csv", "Travel time")):
        picture = drawn(graph, values=values)
        assert picture.scale == label
        np.testing.assert_allclose(picture.values, expected)
    away = od(store, ["7"], [*map(str, range(100))], also={"hops": np.ones(graph.m, np.int64)})
    assert drawn(graph, values=away).values[:100].tolist() == away["travel_time"].tolist()
    assert drawn(graph, values=away, column="hops").values[:100].tolist() == away["hops"].tolist()
    with pytest.raises(ValueError, match=r"row 1: .*there is no vertex 'north'.* od\(network, None, places\)"):
        drawn(graph, values=od(store, schools, ["7"]))


def test_marks_have_the_names_of_their_places(city):
    graph, _ = city
    schools = pandas.DataFrame({"lon": [13.0001, 13.0101, 13.0102], "lat": 52.0001, "name": ["north", "south", "east"]})
    picture = drawn(graph, marks=schools)
    assert [picture.names[v] for v in picture.marks] == ["north", "south, east"]
    (axes,) = picture_graph(graph, marks=schools).axes
    assert {"north", "south, east"} <= {text.get_text() for text in axes.texts}
    assert [drawn(graph, marks=one).marks for one in ((13.0001, 52.0001), positions(0), "0")] == [[0]] * 3
    here = [(13.0001, 52.0001)]
    for marks, names in (
        (positions([0, 30]), ["", ""]),
        (here[0], [""]),
        ([*here, (13.01, 52.01)], ["1", "2"]),
        (["0", "30"], ["0", "30"]),
    ):
        picture = drawn(graph, marks=marks)
        assert [picture.names[v] for v in picture.marks] == names, marks
    shown = [text.get_text() for text in picture_graph(graph, marks=here[0]).axes[0].texts]
    assert [text for text in shown if len(text) < 3 and text.strip()] == []  # a mark without a name has no label
    with pytest.warns(UserWarning, match="the marks: 1 place is farther than 1,000 m"):
        drawn(graph, marks=[(13.0415, 52.0)])


def test_what_lies_outside_the_network_is_refused_and_areas_are_cut_at_the_edge(city):
    graph, store = city
    far = (15.0, 52.0)
    for options in ({"marks": [far]}, {"source": far}, {"route": (far, "0")}):
        with pytest.raises(ValueError, match="13. km from the nearest vertex, farther than the network is large"):
            drawn(graph, **options)
    areas = isochrones(store, "300", "2min")
    elsewhere = areas.set_geometry(areas.translate(1))
    for given, cause in (
        (elsewhere, "another network, or EPSG:4326 is not its"),
        (elsewhere.set_crs(None, allow_override=True), "it has no coordinate system"),
        (areas.to_crs(25833).set_crs(4326, allow_override=True), "outside the network, which reaches from"),
    ):
        with pytest.raises(ValueError, match=f"areas, row 1: the area, at .*{cause}"):
            drawn(graph, areas=given)
    wide = areas.set_geometry(areas.scale(30, 30))  # as wide as a country
    plain, cut = (picture_graph(graph, areas=given).get_size_inches() for given in (areas, wide))
    assert (plain < cut).all()
    assert (cut < plain + 0.11 * plain.max()).all()
    (area,) = drawn(graph, areas=areas).areas  # within the streets, an area stays as it is
    (same,) = areas.geometry
    assert len(area.polygons[0][0]) == len(same.exterior.coords)
    (page,) = picture_graph(graph, areas=wide, sample=100, around="300").axes
    assert len(page.patches) == 1


def test_sources_at_places_have_their_names(city):
    graph, _ = city
    place = tuple(graph.coordinates()[300].tolist())
    row = pandas.Series({"name": "market", "lon": place[0], "lat": place[1]})
    name = f"{place[0]:.7g}, {place[1]:.7g}"
    for source, label, text in ((place, name, name), (row, "market", "market"), ("300", "300", "300")):
        picture = drawn(graph, source=source)
        assert [picture.names[v] for v in picture.marks] == [label]
        assert picture.scale == f"Travel time from {text}, minutes"
    picture = drawn(graph, source=positions(300), every="5min")
    assert ([picture.names[v] for v in picture.marks], picture.every) == (["source"], 5)
    assert picture.scale == "Travel time from the source, minutes"
    picture = drawn(graph, route=(row, tuple(graph.coordinates()[0].tolist())))
    assert "market" in [picture.names[v] for v in picture.marks]


def test_a_route_between_places_is_named_by_its_places_and_its_distance(city):
    graph, _ = city
    ends = [tuple(graph.coordinates()[v].tolist()) for v in (0, 300)]
    picture = drawn(graph, route=ends)
    assert [picture.names[v] for v in picture.marks] == [f"{x:.7g}, {y:.7g}" for x, y in ends]
    distance = shortest_path(graph, "0", "300").distance
    metres = shortest_path(graph, "0", "300").to_geodataframe()["length"].sum()
    assert distance > 180
    assert picture.title == f"{Path(graph.path).name}: route of {distance / 60:,.1f} minutes, {metres / 1000:,.1f} km"
    assert "route from 0 to 300" in drawn(graph, route=("0", "300")).title
    at_places = drawn(graph, route=positions([0, 300]))  # as of a command
    assert [at_places.names[v] for v in at_places.marks] == ["", ""]
    assert at_places.title == picture.title


def test_a_route_is_drawn_over_grey_streets_with_both_ends(city, tmp_path):
    graph, store = city
    picture = drawn(graph, distances=store, route=("0", "300"))
    assert picture.values is None
    _, lines = collections_of(picture)
    assert lines[-1][:2] == (4, RED)
    assert lines[-1][3] % 3 == 0
    assert len(picture.marks) == 2
    for network in store, graph:  # a hierarchy answers itself, and a graph is searched
        same = drawn(network, route=("0", "300"))
        assert (same.marks, same.lifted.tolist()) == (picture.marks, picture.lifted.tolist())
    route = shortest_path(graph, "0", "300")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.pictures.graphs.shortest_path", lambda *_, **__: pytest.fail("searched"))
        same = drawn(graph, route=route)
    assert (same.marks, same.lifted.tolist()) == (picture.marks, picture.lifted.tolist())
    lines = od(graph, ["0"], ["300"], paths="lines")
    for wrong, part in (
        (lines, "route has lines; .* routes.plot"),
        (lines.geometry.iloc[0], "route has lines"),
        (("0",), "name two vertices"),
        ("03", "name two vertices"),
        (7, "name two vertices"),
    ):
        with pytest.raises(ValueError, match=part):
            drawn(graph, route=wrong)
    with pytest.raises(StoreError, match="route: it leads through another network than .*, or has other weights; draw"):
        drawn(graph.with_weights(closed=[("0", "1")]), route=route)
    above = drawn(graph, distances=store, route=("0", "300"), source="0", every=None)
    assert above.scale.startswith("Travel time from 0")
    _, lines = collections_of(above)
    assert lines[-1][:2] == (4, RED)  # the route keeps its colour above streets with colours
    assert len({colour for _, colour, *_ in lines}) > 50
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SearchedDistances, "search", lambda *_: pytest.fail("searched"))
        drawn(store, route=("0", "300"))
    picture_graph(graph, tmp_path / "r.svg", distances=store, route=("0", "300"))
    assert "Travel time" not in (tmp_path / "r.svg").read_text()


def test_a_vector_file_is_small_and_always_the_same(city, tmp_path):
    graph, store = city
    for name in ("a.svg", "b.svg"):
        picture_graph(graph, tmp_path / name, distances=store, source="0", every=300)
    content = (tmp_path / "a.svg").read_bytes()
    assert content == (tmp_path / "b.svg").read_bytes()
    assert len(content) / (2 * 24 * 23) < 130  # bytes of a street: 6,500 streets stay below a megabyte
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streets, "MOST_POINTS", 100)
        for name, least in ("large.svg", 10_000), ("plain.svg", 10**9):
            patch.setattr(figures, "LARGE", least)
            picture_graph(graph, tmp_path / name, size=4, source="0", every=600)
    shown = []
    for name in "large.svg", "plain.svg":
        (image,) = re.findall(r"base64,\s*([^\"]+)", (tmp_path / name).read_text())
        shown.append((len(image), np.asarray(Image.open(io.BytesIO(base64.b64decode(image))).convert("RGBA"), float)))
    (less, pixels), (more, others) = shown
    assert less < more / 2
    assert np.abs(pixels - others).mean() < 3


def test_the_scale_bar_is_as_long_as_it_says(city):
    graph, _ = city
    axes, _ = collections_of(drawn(graph))
    (text,) = (text.get_text() for text in axes.texts if re.fullmatch(r"[\d.]+ k?m", text.get_text()))
    (bar,) = (line for line in axes.lines if len(line.get_xdata()) == 4)
    points = np.ptp(bar.get_xdata())
    low, high = graph.coordinates().min(axis=0), graph.coordinates().max(axis=0)
    metres = np.radians(high[1] - low[1]) * 6_371_008.8  # of the height of the map
    width, height = (high - low) * [np.cos(np.radians((low[1] + high[1]) / 2)), 1]
    on_page = min(540 / width, 1.3 * 540 / height) * height
    number, unit = text.split()
    assert points * metres / on_page == pytest.approx(float(number) * {"m": 1, "km": 1000}[unit], rel=1e-6)
    assert Drawing(["a", "b"], np.array([0]), np.array([1]), coordinates=np.eye(2)).metres == 0  # no bar


def test_a_colour_bar_leaves_the_attribution_readable(city):
    figure = picture_graph(city[0], source="0")
    figure.canvas.draw()
    page, bar = figure.axes
    (text,) = [each for each in page.texts if each.get_text() == TOWN]
    assert not text.get_window_extent().overlaps(bar.get_tightbbox())


def test_the_attribution_is_on_pictures_layers_and_tables(city, tmp_path):
    graph, store = city
    axes, _ = collections_of(drawn(graph))
    assert [text.get_text() for text in axes.texts].count(TOWN) == 1
    picture_graph(graph, tmp_path / "g.dot", sample=5)
    assert TOWN in (tmp_path / "g.dot").read_text()
    areas, frame = isochrones(store, "0", 90), od(store, ["0"], ["1"])
    assert areas.attrs == frame.attrs == {"unit": "s", "attribution": TOWN}
    assert changes(store, store, ["0"], ["1"]).attrs == frame.attrs
    for suffix in "gpkg", "geojson", "geoparquet":
        write_layers({"areas": areas}, tmp_path / f"a.{suffix}")
    assert pyogrio.read_info(tmp_path / "a.gpkg", "areas")["layer_metadata"] == {"ATTRIBUTION": TOWN}
    assert json.loads((tmp_path / "a.geojson").read_text())["description"] == TOWN
    assert geopandas.read_parquet(tmp_path / "a.geoparquet").attrs["attribution"] == TOWN
    given = read_given(open_network(store, None), ["0"], ["1"], None)
    write_od_table(store, *given.points, tmp_path / "t.parquet")
    assert pyarrow.parquet.read_schema(tmp_path / "t.parquet").metadata[b"attribution"].decode() == TOWN


def test_metres_of_other_coordinate_systems(tmp_path):
    for crs, metres in ("EPSG:25833", 1.0), ("EPSG:2263", 1200 / 3937), ("", 0.0):
        graph = write_graph(
            tmp_path / f"g{crs}",
            np.array([0, 1, 1]),
            np.array([1]),
            coordinates=np.array([[300.0, 0], [900, 0]]),
            crs=crs,
        )
        assert drawn(graph).metres == pytest.approx(metres)


def test_the_page(city, tmp_path):
    graph, store = city
    page, place = tmp_path / "p.png", "{},{}".format(*graph.coordinates()[300].tolist())
    command = ["picture", graph.path, str(page), "--distances", store.path, "--from", place, "--size", "3"]
    told = run_command(*command, "--dpi", "200", "--cmap", "cividis_r", "--title", "Home")
    assert told.output.startswith(f"{place}: moved 0.0 m to vertex 300\n")
    width, height = (24 * STEP - STEP + 0.1 * STEP) * np.array([np.cos(np.radians(52)), 1])
    across = 3.0 if height * 72 / width <= 1.3 * 72 else 1.3 * 3 * width / height
    assert imread(page).shape[1] / 200 == pytest.approx(max(across + 31.2 / 72, 220 / 72), abs=2 / 72)
    for options, says in (
        ({"cmap": "rainbow17", "distances": store}, r"cmap \(--cmap\) is 'rainbow17'; choose a colour map"),
        ({"cmap": "magma"}, r"cmap \(--cmap\) colours distances or values, and the picture has none"),
        ({"size": 0.1}, r"size \(--size\) is 0.1; give a width from 1 to 100"),
        (
            {"path": tmp_path / "no.gif"},
            r"no.gif: pictures end in .svg, .png or .pdf .*maps in .html",
        ),
        ({"dpi": 5}, r"dpi \(--dpi\) is 5; give 10 to 1200"),
    ):
        with pytest.raises(ValueError, match=says):
            picture_graph(graph, **{"path": tmp_path / "no.png"} | options)
    bare = write_graph(tmp_path / "bare", np.array([0, 1, 1]), np.array([1]))
    with pytest.raises(ValueError, match="is the width of a map, but the graph has no coordinates"):
        picture_graph(bare, tmp_path / "no.png", size=3)
    assert not [*tmp_path.glob("no.*")]


def test_a_map_in_axes_of_another_figure(city, tmp_path):
    """The map fills the axes of its side; figure, other axes and their places stay."""
    graph, hierarchy = city
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    right.plot([0, 1])
    places = [axes.get_position(original=True).bounds for axes in (left, right)]
    assert picture_graph(hierarchy, ax=left, source=(13.01, 52.01), title="left") is figure
    assert figure.get_size_inches().tolist() == [9, 4]
    assert figure.axes == [left, right]
    assert [axes.get_position(original=True).bounds for axes in (left, right)] == places
    assert (len(right.lines), len(left.child_axes)) == (1, 1)
    figure.savefig(tmp_path / "both.png")
    box = left.get_window_extent()
    (ring,) = (each for each in left.collections if each.get_zorder() == 8)
    on_screen = ring.get_transform().transform_path(ring.get_paths()[0]).get_extents()
    assert on_screen.width * 72 / figure.dpi == pytest.approx(10.2, abs=1)  # letters and lines have their usual sizes
    middle = (on_screen.p0 + on_screen.p1) / 2
    np.testing.assert_allclose(left.transData.inverted().transform(middle), [13.01, 52.01], atol=1e-6)
    network = graph_to_gdfs(graph)[1].total_bounds
    assert (network[:2] > [left.get_xlim()[0], left.get_ylim()[0]]).all()
    assert (network[2:] < [left.get_xlim()[1], left.get_ylim()[1]]).all()
    degree = np.diff(left.transData.transform([[13, 52], [14, 53]]), axis=0)[0]
    assert degree[0] / degree[1] == pytest.approx(np.cos(np.radians(52.0115)), rel=1e-3)
    scale = left.child_axes[0].get_window_extent()
    assert box.x0 < scale.x0 < scale.x1 < box.x1
    picture_graph(graph, ax=right, sample=200)
    (dots,) = (each for each in right.collections if len(each.get_offsets()) == 200)
    at = right.transData.inverted().transform(dots.get_offset_transform().transform(dots.get_offsets()))
    crossings = (at - [13, 52]) / STEP
    np.testing.assert_allclose(crossings, np.round(crossings), atol=1e-3)
    for wrong in {"ax": left, "path": tmp_path / "a.png"}, {"ax": figure}:
        with pytest.raises(ValueError, match="ax takes axes of matplotlib"):
            picture_graph(graph, **wrong)


def test_scales_in_words():
    assert in_words("sec", "a", np.array([100.0, np.nan])) == (1.0, "Travel time from a, seconds")
    assert in_words("sec", "a", np.array([1000.0, np.nan])) == (1 / 60, "Travel time from a, minutes")
    assert in_words("", "b", np.array([np.nan])) == (1.0, "Distance from b")
    assert in_words("travel_time", "b", np.array([9.0])) == (1.0, "Travel time from b, travel_time")


def test_labels_leave_the_route_visible_and_stay_on_the_page(city):
    graph, _ = city
    ends = (13.014, 52.012), (13.021, 52.012)  # along the fast row, in the eastern half
    page = picture_graph(graph, route=ends)
    (axes,) = page.axes
    assert page.get_size_inches()[0] == picture_graph(graph).get_size_inches()[0]
    renderer, back = page.canvas.get_renderer(), axes.transData.inverted()
    lines = [each for each in axes.collections if each.get_zorder() == 4 and to_hex(each.get_edgecolors()[0]) == RED]
    for x, y in ends:
        (label,) = [text for text in axes.texts if text.get_text() == f"{x}, {y}"]
        box = label.get_window_extent(renderer).transformed(back)
        assert not any(path.intersects_bbox(box, filled=False) for each in lines for path in each.get_paths())


def test_many_rings_are_small(city, tmp_path):
    graph, _ = city
    radii = []
    for count in 5, 40:
        rings = [each for each in picture_graph(graph, marks=positions(np.arange(count))).axes[0].collections]
        (ring,) = [each for each in rings if each.get_zorder() == 8]
        radii.append((np.ptp(ring.get_paths()[0].vertices[:, 0]) / 2, ring.get_linewidths()[0]))
    assert radii == [pytest.approx((5.1, 1.8)), pytest.approx((2.55, 0.9))]


@pytest.mark.parametrize("cmap", ["viridis", "viridis_r", "magma", "Reds", "Blues_r", "RdBu"])
def test_the_ends_of_a_colour_map_are_visible_on_white(city, cmap):
    _, bar = node_colours(drawn(city[0], source="0", cmap=cmap))
    for colour in bar.to_rgba(bar.get_clim()):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        assert 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05) > 1.6
    table = bar.get_cmap()(np.linspace(0, 1, 256))
    assert len(np.unique(table.round(3), axis=0)) > 100


def test_coloured_streets_of_a_small_network_are_thick_and_the_title_fits_the_page(city):
    graph, _ = city
    thin, thick = (min(width for *_, width, _ in collections_of(drawn(graph, **k))[1]) for k in ({}, {"source": "0"}))
    assert thick > 1.4 * thin
    sizes = []
    for inches, title in (
        (7.5, "Home"),
        (3, "Home"),
        (7.5, "A title of so many words that its letters are smaller than the letters of a short title"),
    ):
        page = picture_graph(graph, size=inches, title=title)
        text = next(text for text in page.axes[0].texts if text.get_text() == title)
        assert text.get_window_extent(page.canvas.get_renderer()).x1 < page.bbox.x1
        sizes.append(text.get_size())
    assert sizes[0] > sizes[2] > sizes[1] == 8


def test_closed_roads_are_dashed_lines_with_a_key(city, tmp_path):
    graph, store = city
    whole, places = drawn(graph), graph.coordinates()
    first = graph.with_weights(closed=[("0", "1")])
    indptr, heads, weights = graph.rows()
    options = {"coordinates": places, "lines": graph.lines(), "crs": graph.crs}
    directed = write_graph(tmp_path / "d", indptr, heads, weights, **options)  # both directions are closed
    for changed, roads in (
        (first, [(0, 1)]),
        (first.with_weights(closed=[("4", "1")]), [(0, 1), (1, 4)]),
        (store.with_weights(closed=[("0", "1"), ("1", "4")]), [(0, 1), (1, 4)]),
        (directed.with_weights(closed=[(0, 1), (1, 4)]), [(0, 1), (1, 4)]),
        (graph.with_weights(weights), []),
    ):
        picture = drawn(changed)
        assert len(picture.closed) == len(roads)
        for road, (u, v) in zip(picture.closed, roads, strict=True):
            (arc,) = np.flatnonzero((whole.tails == u) & (whole.heads == v))
            bends = whole.bends[1][whole.bends[0][arc] : whole.bends[0][arc + 1]]
            assert len(bends) == 3  # the road is drawn with its bend
            np.testing.assert_allclose(road if tuple(road[0]) == tuple(bends[0]) else road[::-1], bends)
        keys = [text for _, text in picture.legend]
        assert keys == [[], ["closed road"], ["closed roads"]][len(roads)]
    assert drawn(first, sample=9, around="300").closed == []
    picture_graph(first, tmp_path / "c.html", background=None)
    assert re.search(r'"color": "#7f1d1d", "weight": 3, "dashArray": "6 4"', (tmp_path / "c.html").read_text())
    (axes,) = picture_graph(first).axes
    (lines,) = [each for each in axes.collections if each.get_zorder() == 6 and to_hex(each.get_colors()[0]) == CLOSED]
    assert len(lines.get_segments()) == 1

"""Maps in HTML: what the page has, what it loads from a network, and what a browser shows without a network."""

import json
import re
import shutil
import subprocess
import sys

import geopandas
import numpy as np
import pytest
import shapely
from commands import invoke, run_command
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.image import imread

from pipelines import import_graph, write_graph
from pipelines.pictures.drawing import RED
from pipelines.pictures.graphs import picture_graph
from pipelines.pictures.streets import STREET
from pipelines.reach.solve import isochrones

SIDE = 25
TOWN = "\u00a9 <Town>"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module", params=["EPSG:4326", "EPSG:32633"])
def city(request, tmp_path_factory):
    """25 x 25 crossings, with bent streets to the east; in longitudes and latitudes, or in metres."""
    lines, classes = [], []
    for y in range(SIDE):
        for x in range(SIDE):
            for dx, dy in ((1, 0), (0, 1)):
                if x + dx < SIDE and y + dy < SIDE:
                    bend = [[x + 0.5, y + 0.3]] if dx else []
                    lines.append(shapely.LineString(np.array([[x, y], *bend, [x + dx, y + dy]]) * 0.001 + [15.0, 52.0]))
                    classes.append("primary" if dy and x == 7 else "residential")
    frame = geopandas.GeoDataFrame({"time": 60.0, "highway": classes}, geometry=lines, crs="EPSG:4326")
    folder = tmp_path_factory.mktemp("city")
    frame = frame.to_crs(request.param)
    return import_graph(frame, folder / "g", weight="time", unit="s", attribution=TOWN), frame.to_crs("EPSG:4326")


def contents(page):
    """What the script of a page draws."""
    (found,) = re.findall(r"const data = (\{.*\});\n", page.read_text())
    return json.loads(found)


def decoded(rows, digits):
    """The lines (longitude, latitude) that the rows stand for."""
    steps = np.array([step for row in rows for step in row]).reshape(-1, 2)
    points = np.cumsum(steps, axis=0)[:, ::-1] / digits
    return np.split(points, np.cumsum([len(row) // 2 for row in rows])[:-1])


def test_the_page_has_every_street_once_with_its_bends(city, tmp_path):
    graph, frame = city
    picture_graph(graph, tmp_path / "m.html", title="A & <B>")
    found = contents(tmp_path / "m.html")
    drawn = {}
    for style, rows in found["lines"]:
        for line in decoded(rows, found["digits"]):
            forward = line if tuple(line[0]) < tuple(line[-1]) else line[::-1]
            drawn[tuple(np.round(forward, 3).ravel()) if len(line) == 2 else tuple(forward.ravel())] = style["weight"]
    assert len(drawn) == sum(len(rows) for _, rows in found["lines"]) == len(frame)
    expected = np.sort([shapely.get_coordinates(line).sum() for line in frame.geometry])
    np.testing.assert_allclose(np.sort([sum(line) for line in drawn]), expected, atol=6e-5)
    assert sorted(set(drawn.values())) == [1.3, 3.9]
    assert list(drawn.values()).count(3.9) == SIDE - 1
    np.testing.assert_allclose(found["bounds"], [[52, 15], [52.024, 15.024]], atol=2e-5)
    page = (tmp_path / "m.html").read_text()
    assert "<b>A &amp; &lt;B&gt;</b>" in page
    assert found["attribution"] == "\u00a9 &lt;Town&gt;"
    picture_graph(graph, tmp_path / "again.html", title="A & <B>")
    assert (tmp_path / "again.html").read_text() == page


def test_areas_and_marks_are_where_they_belong(city, tmp_path):
    graph, _ = city
    areas = isochrones(graph, ["300", "0"], "2,4min")
    picture_graph(graph, tmp_path / "m.html", areas=areas, marks=["300", "0"], background=None)
    found = contents(tmp_path / "m.html")
    assert [text for _, text, _ in found["areas"]] == ["within 4 min"] * 2 + ["within 2 min"] * 2
    for (style, _, polygons), area in zip(found["areas"], areas.geometry.to_crs(4326).iloc[[0, 2, 1, 3]], strict=True):
        (rings,) = polygons
        assert shapely.Polygon(decoded(rings, found["digits"])[0]).symmetric_difference(area).area < 0.02 * area.area
        assert style["fillColor"] == style["color"]
        assert (style["fillOpacity"], style["pane"]) == (1, "areas")
        shade = f"{style['fillColor']}{round(255 * found['share']):02x}"  # of the pane, and of the legend
        assert f"background:{shade};" in (tmp_path / "m.html").read_text()
    (at, other), places = [rows for _, _, rows in found["dots"]], graph.coordinates()
    assert [text for _, text, _ in found["dots"]] == ["0", "300"]
    assert all(style["tooltip"]["permanent"] for style, _, _ in found["dots"])
    expected = geopandas.GeoSeries(geopandas.points_from_xy(*places[[0, 300]].T), crs=graph.crs).to_crs(4326)
    shown = [decoded(rows, found["digits"])[0][0] for rows in (at, other)]
    np.testing.assert_allclose(shown, shapely.get_coordinates(expected), atol=1e-5)
    page = (tmp_path / "m.html").read_text()
    assert "Nothing is loaded from a network." in page
    assert not re.search(r"(src|href)=.http", page)
    # A picture has the same areas below its streets.
    (axes,) = picture_graph(graph, areas=areas).axes
    patches = [patch for patch in axes.patches if patch.get_zorder() == 1]
    assert len(patches) == 4
    assert [text.get_text() for text in axes.texts][:2] == ["g: 625 vertices, 1,200 edges", "within 2 min"]


def test_bands_are_those_of_the_picture(city, tmp_path):
    graph, frame = city
    picture_graph(graph, tmp_path / "m.html", source="300", every="4min", background=None)
    found, page = contents(tmp_path / "m.html"), (tmp_path / "m.html").read_text()
    axes = picture_graph(graph, source="300", every="4min").axes[0]
    lines = [each for each in axes.collections if isinstance(each, PathCollection) and each.get_zorder() < 2]
    colours = [to_hex(each.get_edgecolors()[0]) for each in sorted(lines, key=lambda each: each.get_zorder())]
    assert [style["color"] for style, _ in found["bands"]] == colours
    assert len(colours) == 10  # the farthest crossing is 36 streets away, a minute each
    assert sum(len(rows) for _, rows in found["bands"]) == len(frame)
    assert {style["color"] for style, _ in found["lines"]} == {STREET}
    limits = [float(text) for text in re.findall(r"translateX\(-\d+%\)\">([\d.]+)</span>", page)]
    assert limits == list(range(0, 41, 4))
    (strip,) = re.findall(r"linear-gradient\(to right,(.*?)\)", page)
    assert [each.split()[0] for each in strip.split(",")][::2] == colours[::-1]
    # The ground between two streets, which are 111 m and 69 m apart, is filled.
    assert 111 < found["width"] < 250


def test_what_is_loaded_is_said(city, tmp_path):
    graph, _ = city
    run_command("picture", graph.path, tmp_path / "m.html", "--route", "0", "300")
    page = (tmp_path / "m.html").read_text()
    assert "The background map is loaded from tile.openstreetmap.org. Everything else is in this file." in page
    assert not re.search(r"<(script|link)[^>]*(src|href)=.http", page)
    (route,) = [rows for style, rows in contents(tmp_path / "m.html")["lines"] if style["color"] == RED]
    assert len(route) == 12  # vertices are numbered as their streets come: 300 is 12 crossings north of 0
    options = {"coordinates": graph.coordinates(), "lines": graph.lines(), "crs": graph.crs}
    directed = write_graph(tmp_path / "d", *graph.rows(), **options)
    for ends in ("0", "300"), ("300", "0"):
        picture_graph(directed, tmp_path / "d.html", route=ends, overwrite=True)
        (route,) = [rows for style, rows in contents(tmp_path / "d.html")["lines"] if style["color"] == RED]
        assert len(route) == 12
    command = ["isochrones", graph.path, str(tmp_path / "i.html"), "--from", "300", "--within", "3min", "--background"]
    assert invoke(*command, "https://a.example/{z}/{x}/{y}.png").exit_code == 0
    assert "is loaded from a.example." in (tmp_path / "i.html").read_text()
    assert contents(tmp_path / "i.html")["areas"]
    assert invoke(*command, "none", "--overwrite").exit_code == 0
    assert "Nothing is loaded" in (tmp_path / "i.html").read_text()


def test_what_cannot_be_a_map_is_refused(tmp_path, monkeypatch):
    plain = write_graph(tmp_path / "g", [0, 1, 1], [1], coordinates=np.array([[300.0, 0], [900, 0]]))
    with pytest.raises(ValueError, match=r"needs longitudes and latitudes, or a known coordinate system; import the"):
        picture_graph(plain, tmp_path / "m.html")
    empty = write_graph(tmp_path / "e", [0], np.array([], int), coordinates=np.empty((0, 2)))
    with pytest.raises(ValueError, match=r"no vertex has coordinates, so .*; draw an \.svg"):
        picture_graph(empty, tmp_path / "m.html")
    with pytest.raises(ValueError, match="areas lie on a map, but the graph has no coordinates"):
        picture_graph(write_graph(tmp_path / "h", [0, 1, 1], [1]), tmp_path / "m.html", areas=geopandas.GeoDataFrame())
    for out, option, says in (
        ("m.svg", "--kind=edges", "m.svg: a map shows areas, not edges; choose another kind (kind, --kind)"),
        ("m.svg", "--background=Bogus", "background (--background) is 'Bogus', but only an .html file loads one"),
        ("m.gpkg", "--background=Bogus", "background (--background) is 'Bogus', but only an .html file loads one"),
        ("m.gpkg", "--title=T", "m.gpkg: a layer has no title; leave out title (--title), or write a map (.html,"),
    ):
        run = invoke("isochrones", plain.path, out, "--from", "0", "--within", "1", option)
        assert says in str(run.exception)
    with pytest.raises(ValueError, match=r"background \(--background\) is 'Bogus', but only an .html file loads one"):
        picture_graph(plain, tmp_path / "m.png", background="Bogus")
    lines = [shapely.LineString([(15, 52), (15.1, 52)])]
    placed = import_graph(geopandas.GeoDataFrame(geometry=lines, crs=4326), tmp_path / "placed")
    with pytest.raises(ValueError, match=r"background \(--background\) is 'Bogus', which names no tiles .* or a URL"):
        picture_graph(placed, tmp_path / "m.html", background="Bogus")
    for areas in isochrones(placed, "0", 9, kind="edges"), geopandas.GeoDataFrame({"a": [1]}):
        with pytest.raises(ValueError, match="areas have no polygons with limits; pass what tilepath"):
            picture_graph(placed, tmp_path / "m.html", areas=areas)
    assert not (tmp_path / "m.html").exists()
    monkeypatch.setitem(sys.modules, "folium", None)
    with pytest.raises(ImportError, match=r"maps in HTML need folium: pip install -e .*\[web\]"):
        picture_graph(plain, tmp_path / "m.html")


needs_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


@pytest.mark.slow
@needs_a_browser
def test_a_browser_without_a_network_shows_the_streets(city, tmp_path):
    graph, _ = city
    areas = isochrones(graph, "300", "2,4min")
    picture_graph(graph, tmp_path / "m.html", areas=areas, route=("0", "300"), title="Home")
    cut = ["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9"]
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,700", *cut]
    command += ["--virtual-time-budget=10000", f"--user-data-dir={tmp_path / 'profile'}"]
    page = f"file://{tmp_path / 'm.html'}"
    options = {"check": True, "capture_output": True, "timeout": 120}
    shown = subprocess.run([*command, "--dump-dom", page], **options).stdout.decode()
    assert (
        ">The background map cannot be loaded from tile.openstreetmap.org. Everything else is in this file.<" in shown
    )
    assert "Roads: \u00a9 &lt;Town&gt;" in shown
    subprocess.run([*command, f"--screenshot={tmp_path / 's.png'}", page], **options)
    image = imread(tmp_path / "s.png")[:, :, :3]
    shown = [(np.abs(image - np.array(colour)).max(axis=2) < 0.1).sum() for colour in map(to_rgb, (RED, "#b8bcc2"))]
    assert shown[0] > 150, shown  # the route
    assert shown[1] > 1000, shown  # the other streets
    picture_graph(graph, tmp_path / "n.html", areas=areas, background=None)
    page = f"file://{tmp_path / 'n.html'}"
    subprocess.run([*command, f"--screenshot={tmp_path / 'n.png'}", page], **options)
    image = imread(tmp_path / "n.png")[:, :, :3]
    for style, _, _ in contents(tmp_path / "n.html")["areas"]:  # as strong as in the legend, over white paper
        mixed = 0.8 * np.array(to_rgb(style["fillColor"])) + 0.2
        assert (np.abs(image - mixed).max(axis=2) < 0.02).sum() > 500
    rows = np.flatnonzero((image < 0.9).any(axis=2).sum(axis=1) > 50)
    assert rows[-1] - rows[0] > 0.75 * len(image)  # the map fills the page

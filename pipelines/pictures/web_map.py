"""Write a drawing of a map as a page of HTML that can be moved and zoomed, by folium (the `web` extra).

The page contains the streets and Leaflet, the library that draws them, so that it works without a network. Only the
background map is loaded from a network, and the page says so.
"""

from __future__ import annotations

import base64
import html
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from gpuops.extras import install
from pipelines.files.coordinate_systems import to_degrees
from pipelines.files.output_file import check_free, whole_file
from pipelines.pictures.canvas import dots_of
from pipelines.pictures.colours import arc_colours, node_colours
from pipelines.pictures.drawing import CLOSED, INK, PAPER, Drawing
from pipelines.pictures.layout import map_frame, place_nodes
from pipelines.pictures.marks import NAMED_MARKS, ring_size
from pipelines.pictures.streets import STREET, STREET_SHARE, band_width, bands, one_of_each_street, street_points

if TYPE_CHECKING:
    import folium

DIGITS = 100_000  # coordinates are whole numbers of this part of a degree, about a metre
WIDER = 1.3  # lines of a page are this many times as wide as on paper, in pixels for points
SHARE = 0.8  # opacity of areas and bands, on the map and in the legend: the background map shows through
STOPS = 9  # colours in the legend of a smooth scale
MOST_LIMITS = 12  # most intervals between numbers in the legend of bands
ZOOM_STEP = 0.25  # so that a map fills its page; whole steps may leave half of the page empty
LOADED = "The background map is loaded from {}. Everything else is in this file."
MISSING = "The background map cannot be loaded from {}. Everything else is in this file."
NOTHING = "Nothing is loaded from a network."
LEAFLET = Path(__file__).parent / "leaflet"

SCRIPT = """
{% macro script(this, kwargs) %}
(function (map) {
  const data = {{ this.data }};
  // Each row is a line: numbers y, x, y, x, ..., each as the difference to the number two before, across rows too.
  const decoded = (rows) => {
    let y = 0, x = 0;
    return rows.map((row) => {
      const line = [];
      for (let i = 0; i < row.length; i += 2) line.push([(y += row[i]) / data.digits, (x += row[i + 1]) / data.digits]);
      return line;
    });
  };
  const pane = map.createPane("areas");  // as a whole translucent: areas that overlap do not darken each other
  Object.assign(pane.style, { zIndex: 350, opacity: data.share });
  const add = (layer, text, options = { sticky: true }) =>
    (text ? layer.bindTooltip(text, options) : layer).addTo(map);
  for (const [style, text, polygons] of data.areas) add(L.polygon(polygons.map(decoded), style), text);
  const bands = data.bands.map(([style, rows]) => add(L.polyline(decoded(rows), style)));
  const middle = ((data.bounds[0][0] + data.bounds[1][0]) / 360) * Math.PI;
  const widen = () => {  // bands reach across blocks at any zoom
    const pixel = (40075017 * Math.cos(middle)) / 2 ** (map.getZoom() + 8);  // in metres
    for (const band of bands) band.setStyle({ weight: data.width / pixel });
  };
  map.on("zoomend", widen);
  for (const [style, rows] of data.lines) add(L.polyline(decoded(rows), style));
  for (const [style, text, rows] of data.dots)
    for (const [place] of decoded(rows)) add(L.circleMarker(place, style), text, style.tooltip);
  if (!data.tiles) map.getContainer().style.background = "white";
  let moved = false;  // a cell of a notebook may get its size late; until a reader moves the map, it fills its place
  const fit = () => moved || map.fitBounds(data.bounds, { padding: [8, 8], animate: false });
  for (const kind of ["pointerdown", "wheel", "keydown"])
    map.getContainer().addEventListener(kind, () => (moved = true), { capture: true, passive: true });
  map.on("resize", fit);
  new ResizeObserver(() => map.invalidateSize({ animate: false })).observe(map.getContainer());
  fit();
  widen();
  map.attributionControl.setPrefix("Leaflet");
  if (data.attribution) map.attributionControl.addAttribution("Roads: " + data.attribution);
  map.eachLayer((layer) => {
    if (!(layer instanceof L.TileLayer)) return;
    layer.once("tileerror", () => (document.getElementById("loaded").textContent = data.missing));
  });
})({{ this._parent.get_name() }});
{% endmacro %}
"""


def write_web_map(
    drawing: Drawing, path: str | os.PathLike[str], *, background: str | None = None, overwrite: bool = False
) -> folium.Map:
    """Write a page, and return its map, to which layers of folium can be added.

    Parameters
    ----------
    drawing : a map with longitudes and latitudes, or in a known coordinate system
    path : path of the new file, .html
    background : name of the tiles in folium, or their URL, that the page loads from a network as its background map;
        None for no background
    overwrite : replace `path` if it exists

    Raises
    ------
    ImportError
        Folium is missing; the message says how to install it.
    ValueError
        The drawing is no map, or its coordinate system is not known.
    FileExistsError
        `path` exists.
    """
    check_free(path, overwrite)
    found = web_map(drawing, background)
    with whole_file(path) as partial:
        partial.write_text(found.get_root().render(), encoding="utf-8")
    return found


def web_map(drawing: Drawing, background: str | None) -> folium.Map:
    """Return the map of a page."""
    try:
        import folium
        from branca.element import Element, MacroElement
        from jinja2 import Template
    except ImportError as error:
        raise ImportError(f"maps in HTML need folium: {install('web')}") from error
    if drawing.coordinates is None or not drawing.crs:
        raise ValueError(
            "a map in HTML needs longitudes and latitudes, or a known coordinate system; import the network with its "
            "coordinates and coordinate system (coordinates, --coordinates; crs, --crs), or draw an .svg"
        )
    if not np.isfinite(drawing.coordinates).any():
        raise ValueError("no vertex has coordinates, so there is no place for a map in HTML; draw an .svg")

    class Contents(MacroElement):
        _template = Template(SCRIPT)

        def __init__(self) -> None:
            super().__init__()
            loaded = {"missing": MISSING.format(host), "tiles": host}
            self._name, self.data = "Contents", json.dumps(_contents(drawing) | loaded)

    page, host = folium.Map(tiles=None, prefer_canvas=True, control_scale=True, zoom_snap=ZOOM_STEP), ""
    if background is not None:
        attribution = urlsplit(background).netloc.replace("{s}.", "") or None  # that of a name is known to folium
        try:
            tiles = folium.TileLayer(background, attr=attribution, referrerPolicy="origin-when-cross-origin")
        except ValueError:
            raise ValueError(
                f"background (--background) is {background!r}, which names no tiles that folium knows; give such a "
                "name, or a URL with {x}, {y} and {z}"
            ) from None
        page.add_child(tiles)
        host = urlsplit(tiles.tiles).netloc.replace("{s}.", "")
    script, style = (base64.b64encode((LEAFLET / f"leaflet.{end}").read_bytes()).decode() for end in ("js", "css"))
    page.default_js = [("leaflet", f"data:text/javascript;base64,{script}")]
    page.default_css = [("leaflet_css", f"data:text/css;base64,{style}")]
    page.add_child(Contents())
    page.get_root().html.add_child(Element(_legend(drawing, host)))
    elements = [page.get_root()]
    for number, element in enumerate(elements):
        element._id = f"{number}"  # folium has random names, but equal calls give equal bytes
        elements += element._children.values()
    return page


def _contents(drawing: Drawing) -> dict[str, Any]:
    """Return what the script draws: areas, lines and dots, from the lowest to the highest, with styles of Leaflet."""
    colours, bar = node_colours(drawing)
    if bar is not None:
        drawing.colours = arc_colours(drawing, bar)
    places = _latitudes_first(drawing, drawing.coordinates)
    every = [places]
    areas = []
    for area in drawing.areas:
        rings = [[_latitudes_first(drawing, ring) for ring in polygon] for polygon in area.polygons]
        every += [ring for polygon in rings for ring in polygon]
        style = {"color": area.colour, "weight": 1.5, "fillColor": area.colour, "fillOpacity": 1, "pane": "areas"}
        areas.append([style, html.escape(area.text), [_coded(polygon) for polygon in rings]])
    low, high = (np.vstack([limit(part, axis=0) for part in every if len(part)]) for limit in (np.nanmin, np.nanmax))
    streets = _streets(drawing)
    streets["lines"] += _closed(drawing)
    return {
        "areas": areas,
        **streets,
        "dots": [*_dots(drawing, colours, places), *_marks(drawing, places)],
        "bounds": [low.min(axis=0).tolist(), high.max(axis=0).tolist()],
        "digits": DIGITS,
        "share": SHARE,
        "attribution": html.escape(drawing.attribution),
    }


def _streets(drawing: Drawing) -> dict[str, Any]:
    """Return lines by colour and width, each street once, lifted lines last; and filled bands, their width in metres.

    Over bands, lines are grey.
    """
    from matplotlib.colors import to_hex

    found: dict[str, Any] = {"lines": [], "bands": [], "width": 0.0}
    if not drawing.m:
        return found
    assert drawing.coordinates is not None
    offsets, paper = street_points(drawing, place_nodes(drawing, np.zeros((drawing.n, 2)), 0.0, 0))
    if drawing.bends is None:
        points = np.stack([drawing.coordinates[drawing.tails], drawing.coordinates[drawing.heads]], 1).reshape(-1, 2)
    else:
        points = drawing.bends[1]
    points, lifted = _latitudes_first(drawing, points), np.asarray(drawing.lifted)
    shown = one_of_each_street(drawing, offsets, paper) | lifted

    def coded(arcs: np.ndarray) -> list[list[int]]:
        return _coded([points[offsets[arc] : offsets[arc + 1]] for arc in np.flatnonzero(arcs).tolist()])

    colours = np.array([to_hex(colour) for colour in drawing.colours])
    over_bands = drawing.streets and drawing.every is not None
    if over_bands:
        for colour, which in bands(drawing, colours):
            style = {"color": colour, "opacity": 1, "pane": "areas", "smoothFactor": 0, "interactive": False}
            if (which & shown & ~lifted).any():
                found["bands"].append([style, coded(which & shown & ~lifted)])
        found["width"] = band_width(offsets, paper) * drawing.metres / map_frame(drawing.coordinates, drawing.inches)[1]
        colours = np.where(lifted, colours, STREET)
    styles = [f"{colour} {width:.2f}" for colour, width in zip(colours.tolist(), drawing.widths, strict=True)]
    names, kinds = np.unique(styles, return_inverse=True)
    for over in (False, True):
        for kind in np.unique(kinds[shown & (lifted == over)]).tolist():
            colour, width = names[kind].split(" ")
            style = {"color": colour, "weight": round(WIDER * float(width), 2), "interactive": False}
            if over_bands and not over:
                style["opacity"] = STREET_SHARE
            found["lines"].append([style, coded(shown & (lifted == over) & (kinds == kind))])
    return found


def _dots(drawing: Drawing, colours: list[Any], places: np.ndarray) -> list[Any]:
    """Return dots by colour; each has a name if there are few."""
    from matplotlib.colors import to_hex

    found = []
    for v in dots_of(drawing).tolist() if drawing.few else ():
        style = {"radius": 4, "color": INK, "weight": 1, "fillColor": to_hex(colours[v]), "fillOpacity": 1}
        found.append([style, html.escape(drawing.names[v]), _coded([places[v : v + 1]])])
    if not drawing.few:
        dots = dots_of(drawing)
        fills = np.array([to_hex(colours[v]) for v in dots.tolist()])
        for fill in np.unique(fills).tolist():
            style = {"radius": 2, "stroke": False, "fillColor": fill, "fillOpacity": 1, "interactive": False}
            found.append([style, "", _coded(list(places[dots[fills == fill], None]))])
    return found


def _closed(drawing: Drawing) -> list[Any]:
    """Return the closed roads as dashes on white."""
    if not drawing.closed:
        return []
    rows = _coded([_latitudes_first(drawing, line) for line in drawing.closed])
    dashes = {"color": CLOSED, "weight": 3, "dashArray": "6 4", "lineCap": "butt", "interactive": False}
    return [[dashes | {"color": PAPER, "weight": 5, "dashArray": None}, rows], [dashes, rows]]


def _marks(drawing: Drawing, places: np.ndarray) -> list[Any]:
    share = ring_size(drawing)
    style = {"radius": 6 * share, "color": INK, "weight": 3 * share, "fillColor": PAPER, "fillOpacity": 1}
    if len(drawing.marks) <= NAMED_MARKS:
        style["tooltip"] = {"permanent": True, "direction": "right", "offset": [8, 0]}
    return [[style, html.escape(drawing.names[v]), _coded([places[v : v + 1]])] for v in drawing.marks]


def _latitudes_first(drawing: Drawing, points: Any) -> np.ndarray:
    """Return points of a drawing as latitudes and longitudes."""
    points = points if drawing.stretched is None else points / drawing.stretched
    return to_degrees(points, drawing.crs)[:, ::-1]


def _coded(lines: list[np.ndarray]) -> list[list[int]]:
    """Return lines of latitudes and longitudes as the script decodes them."""
    points = np.round(np.concatenate(lines) * DIGITS).astype(np.int64)
    steps = np.diff(points, axis=0, prepend=np.zeros((1, 2), np.int64)).ravel().tolist()
    ends = (2 * np.cumsum([len(line) for line in lines])).tolist()
    return [steps[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _scale(bar: Any) -> tuple[list[tuple[float, float]], list[tuple[Any, float]]]:
    """Return the numbers below a scale and the colours of a scale, both with their places, from 0 to 1.

    The numbers are the ends of a smooth scale, and the limits of bands; of many bands, every second, third and so on.
    """
    low, high = bar.get_clim()
    limits = getattr(bar.norm, "boundaries", None)
    if limits is None:
        shares = np.linspace(0, 1, STOPS).tolist()
        return [(low, 0.0), (high, 1.0)], [(bar.to_rgba(low + share * (high - low)), share) for share in shares]
    count = len(limits) - 1
    numbers = [(float(limits[k]), k / count) for k in range(0, count + 1, math.ceil(count / MOST_LIMITS))]
    fills = [bar.to_rgba((limits[k] + limits[k + 1]) / 2) for k in range(count)]
    return numbers, [(fill, (k + side) / count) for k, fill in enumerate(fills) for side in (0, 1)]


def _legend(drawing: Drawing, host: str) -> str:
    """Return the box with the title, the legend, and what is loaded from a network: the background map from a host."""
    rows = [f"<b>{html.escape(drawing.title)}</b>"] if drawing.title else []
    square = '<span style="display:inline-block;width:10px;height:10px;background:{};border:1px solid {}"></span> {}'
    opacities = {area.colour: f"{round(255 * SHARE):02x}" for area in drawing.areas}
    rows += [square.format(each + opacities.get(each, ""), INK, html.escape(text)) for each, text in drawing.legend]
    _, bar = node_colours(drawing)
    if bar is not None:
        from matplotlib.colors import to_hex

        numbers, colours = _scale(bar)
        stops = ",".join(f"{to_hex(colour)} {share:.2%}" for colour, share in colours)
        opacity = SHARE if drawing.streets and drawing.every is not None else 1  # as that of the bands
        strip = f'<div style="height:8px;opacity:{opacity};background:linear-gradient(to right,{stops})"></div>'
        span = '<span style="position:absolute;left:{0:.2%};transform:translateX(-{0:.0%})">{1:,.15g}</span>'
        below = "".join(span.format(share, float(f"{number:.3g}")) for number, share in numbers)
        below = f'<div style="position:relative;height:1.5em">{below}</div>'
        rows.append(html.escape(drawing.scale) + strip + below)
    rows.append(f'<small id="loaded">{html.escape(LOADED.format(host) if host else NOTHING)}</small>')
    style = (
        "position:fixed;top:10px;right:10px;z-index:1000;max-width:320px;padding:6px 10px;background:white;"
        "border:1px solid #9aa0a6;border-radius:4px;font:13px/1.5 sans-serif"
    )
    return f'<div style="{style}">{"".join(f"<div>{row}</div>" for row in rows)}</div>'

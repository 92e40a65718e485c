"""Areas around reached pieces of streets: convex hulls, concave hulls, or buffers of the streets.

Areas are made in a plane. If coordinates are longitudes and latitudes, the unit of the plane is the metre: x is the
longitude, and y the latitude, each times the length of its degree at the source. So areas of up to some hundred
kilometres have the right shape. Of a smaller limit, an area does not depend on the larger limits.

A concave hull is made of points, and may pass between two points of one street. So long straight streets get additional
points. Without these points, dead ends would lie outside of the hull.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuops import csr
from pipelines.files.coordinate_systems import to_degrees
from pipelines.places.by_place import EARTH_RADIUS
from pipelines.reach.reached import Cut
from pipelines.stores.graph import DEGREES

AREAS = ("concave", "convex", "buffers")
HULLS = ("concave", "convex")
WIDTH = 50.0  # default distance of the edge of a buffer from its street, in metres on the ground
SHARE = 0.01  # default width if the coordinate system is not known, as a share of the diagonal of the network
GAPS = 0.5  # the points of a concave hull are at most this share of the default width apart along a street
MOST_GAPS = 500  # at most this many gaps along the diagonal of an area, so that large areas do not have too many points
SLIVER = 1e-9  # an area that is smaller than this share of the square of its outline is a rounded straight street
ROUND = 3  # segments of a quarter of a circle


def plane_scale(places: np.ndarray, in_degrees: bool) -> np.ndarray:
    """Return the lengths of a unit of x and of a unit of y: in metres for longitudes and latitudes, else 1.

    `places` are those of the sources, (k, 2); the middle of their latitudes counts.
    """
    latitudes = places[np.isfinite(places[:, 1]), 1]
    if not in_degrees or not len(latitudes):
        return np.ones(2)
    degree = np.radians(EARTH_RADIUS)
    middle = (latitudes.min() + latitudes.max()) / 2
    return np.array([degree * np.cos(np.radians(middle)), degree])


def default_width(crs: str, places: np.ndarray, network: np.ndarray) -> float:
    """Return the width of buffers if none is asked for, in the plane.

    Parameters
    ----------
    crs : coordinate system of the places, "" if it is not known
    places : (k, 2) float64, of the sources
    network : (n, 2) float64, the coordinates of all vertices
    """
    if crs == DEGREES:
        return WIDTH
    there = network[np.isfinite(network).all(axis=1)]
    if crs and len(there):
        known = places[np.isfinite(places).all(axis=1)]
        corner = (known if len(known) else there).mean(axis=0) + np.array([[0.0, 0], [1, 0], [0, 1]])
        degrees = to_degrees(corner, crs)
        sides = (degrees[1:] - degrees[0]) * plane_scale(degrees, in_degrees=True)
        unit = float(np.sqrt(abs(sides[0, 0] * sides[1, 1] - sides[0, 1] * sides[1, 0])))  # in metres on the ground
        if 0 < unit < np.inf:
            return WIDTH / unit
    return SHARE * float(np.hypot(*np.ptp(there, axis=0))) if len(there) > 1 else 1.0


def areas_of(
    cut: Cut, band: np.ndarray, limits: int, scale: np.ndarray, kind: str, concavity: float, width: float, gap: float
) -> list[Any]:
    """Return the area within each limit as a Polygon or MultiPolygon of shapely, which is empty if there is no area.

    Each area contains the smaller areas.

    Parameters
    ----------
    cut, band : the reached pieces, and for each piece the number of the limit within which it lies
    limits : number of limits
    scale : from `plane_scale`
    kind : one of `AREAS`
    concavity : from 0, the hull that follows the streets most closely, to 1, the convex hull
    width : distance of the edge of a buffer from its street, in the plane
    gap : the points of a street for its concave hull are at most this far apart, in the plane; in a large area, more
    """
    import shapely

    points, of_piece = cut.points * scale, np.repeat(np.arange(len(band)), np.diff(cut.offsets))
    found: list[Any] = []
    for limit in range(limits):
        if kind == "buffers":
            lines = shapely.linestrings(points, indices=of_piece)[band == limit]
            area = _around(lines, width) if len(lines) else shapely.Polygon()
        else:
            there = band[of_piece] <= limit
            some = points[there]
            if kind == "concave" and len(some):
                largest = max(gap, float(np.hypot(*np.ptp(some, axis=0))) / MOST_GAPS)
                some = _with_more_points(some, of_piece[there], largest)
            several = shapely.multipoints(np.unique(some, axis=0))
            area = shapely.convex_hull(several) if kind == "convex" else shapely.concave_hull(several, ratio=concavity)
        if area.geom_type not in ("Polygon", "MultiPolygon") or area.area < SLIVER * area.length**2:
            area = shapely.Polygon()
        if found and kind != "convex":
            area = shapely.union(found[-1], area)
        found.append(_filled(area) if kind == "concave" else area)
    return [shapely.transform(area, lambda places: places / scale) for area in found]


def _with_more_points(points: np.ndarray, of_piece: np.ndarray, gap: float) -> np.ndarray:
    """Return points along pieces with further points in between, which are at most `gap` apart."""
    steps = np.diff(points, axis=0, append=points[-1:])
    steps[np.diff(of_piece, append=-1) != 0] = 0  # from a piece to the next
    parts = np.maximum(np.ceil(np.hypot(*steps.T) / gap), 1).astype(np.int64)
    share = csr.in_ranges(0, parts) / np.repeat(parts, parts)
    return np.repeat(points, parts, axis=0) + share[:, None] * np.repeat(steps, parts, axis=0)


def united(areas: Sequence[Any]) -> Any:
    """Return the union of areas, an empty Polygon if all are empty; a single area stays as it is."""
    import shapely

    if len(areas) == 1:
        return areas[0]
    found = shapely.union_all(areas)
    return shapely.Polygon() if found.is_empty else found


def _filled(area: Any) -> Any:
    """Return an area without its holes: a hull has none, but the union of two hulls may have some."""
    import shapely

    return united([shapely.Polygon(part.exterior) for part in shapely.get_parts(area)])


def _around(lines: Any, width: float) -> Any:
    """Return the union of buffers around lines. Equal lines, such as the two directions of a street, are taken once."""
    import shapely

    _, different = np.unique(shapely.to_wkb(shapely.normalize(lines)), return_index=True)
    return shapely.union_all(shapely.buffer(lines[different], width, quad_segs=ROUND))

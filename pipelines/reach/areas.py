"""Areas around reached pieces of streets: convex hulls, concave hulls, or buffers of the streets.

Areas are made in a plane. If coordinates are longitudes and latitudes, the unit of the plane is the metre: x is the
longitude, and y the latitude, each times the length of its degree at the middle latitude. So areas of up to some
hundred kilometres have the right shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.places.by_place import EARTH_RADIUS
from pipelines.reach.reached import Cut

AREAS = ("concave", "convex", "buffers")
WIDTH = 50.0  # default distance of the edge of a buffer from its street, in metres
SHARE = 0.01  # default width in other units than metres, as a share of the diagonal of the reached streets
ROUND = 3  # segments of a quarter of a circle


def plane_scale(points: np.ndarray, in_degrees: bool) -> np.ndarray:
    """Return the lengths of a unit of x and of a unit of y: in metres for longitudes and latitudes, else 1."""
    if not in_degrees or not len(points):
        return np.ones(2)
    degree = np.radians(EARTH_RADIUS)
    middle = (points[:, 1].min() + points[:, 1].max()) / 2
    return np.array([degree * np.cos(np.radians(middle)), degree])


def default_width(points: np.ndarray, in_degrees: bool) -> float:
    """Return the width of buffers if none is asked for."""
    if in_degrees or not len(points):
        return WIDTH
    return SHARE * float(np.hypot(*(points.max(axis=0) - points.min(axis=0)))) or 1.0


def areas_of(
    cut: Cut, band: np.ndarray, limits: int, scale: np.ndarray, kind: str, concavity: float, width: float
) -> list[Any]:
    """Return the area within each limit as a Polygon or MultiPolygon of shapely, which is empty if there is no area.

    Parameters
    ----------
    cut, band : the reached pieces, and for each piece the number of the limit within which it lies
    limits : number of limits
    scale : from `plane_scale`
    kind : one of `AREAS`
    concavity : from 0, the hull that follows the streets most closely, to 1, the convex hull
    width : distance of the edge of a buffer from its street, in the plane
    """
    import shapely

    points, of_piece = cut.points * scale, np.repeat(np.arange(len(band)), np.diff(cut.offsets))
    found: list[Any] = []
    for limit in range(limits):
        if kind == "buffers":
            lines = shapely.linestrings(points, indices=of_piece)[band == limit]
            area = _around(lines, width) if len(lines) else shapely.Polygon()
            area = shapely.union(found[-1], area) if found else area
        else:
            several = shapely.multipoints(np.unique(points[band[of_piece] <= limit], axis=0))
            area = shapely.convex_hull(several) if kind == "convex" else shapely.concave_hull(several, ratio=concavity)
        found.append(area if area.geom_type in ("Polygon", "MultiPolygon") else shapely.Polygon())
    return [shapely.transform(area, lambda places: places / scale) for area in found]


def _around(lines: Any, width: float) -> Any:
    """Return the union of buffers around lines. Equal lines, such as the two directions of a street, are taken once."""
    import shapely

    _, different = np.unique(shapely.to_wkb(shapely.normalize(lines)), return_index=True)
    return shapely.union_all(shapely.buffer(lines[different], width, quad_segs=ROUND))

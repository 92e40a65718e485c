"""The coordinate systems of layers, and coordinates and lengths in them, by pyproj (the `geo` extra).

Geographic coordinates become WGS 84, longitude first ("EPSG:4326"), and so do those of Web Mercator, whose metres are
longer than metres on the ground; other coordinate systems stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops.extras import install
from pipelines.files.layers import need_geopandas
from pipelines.stores.coordinates import are_degrees
from pipelines.stores.graph import DEGREES

if TYPE_CHECKING:
    import geopandas

FROM_WEB_MERCATOR = (
    "coordinates of Web Mercator become longitudes and latitudes, whose distances are true on the ground"
)


def with_known_crs(frame: geopandas.GeoDataFrame, crs: str | None, name: str) -> tuple[geopandas.GeoDataFrame, str]:
    """Return a layer and the name of its coordinate system, "" if not known; see the module for systems that change.

    `crs` names the coordinate system if the layer does not record one.
    """
    if crs is not None:
        named = crs_named(crs)
        if frame.crs is not None and not frame.crs.equals(named, ignore_axis_order=True):
            raise ValueError(
                f"{name}: its coordinate system is {_name(frame.crs)}, not {crs}; leave out crs (--crs), or convert "
                "the layer first"
            )
        frame = frame.set_crs(named, allow_override=True)
    if frame.crs is None:
        return frame, ""
    west, south, east, north = frame.total_bounds
    refuse_mislabelled(np.array([(west, south), (east, north)]), frame.crs, name)
    if frame.crs.is_geographic or is_web_mercator(frame.crs):
        return frame.to_crs(DEGREES), DEGREES
    return frame, _name(frame.crs)


def refuse_mislabelled(points: np.ndarray, crs: Any, name: str) -> None:
    """Raise ValueError if points (k, 2) are plainly in another coordinate system than the one that is named.

    These are numbers beyond all longitudes and latitudes in a geographic system; and in a plane, numbers that could be
    longitudes and latitudes and that are no places in the area of use of the system. Points that are not finite say
    nothing.
    """
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return
    named = None if crs == DEGREES else crs_named(crs)
    own = DEGREES if named is None else _name(named) if named.to_authority() else named.name
    other = "of other sources, name the right system (crs, --crs)"
    degrees = are_degrees(points)
    if (named is None or named.is_geographic) and not degrees:
        x, y = points[(np.abs(points) > (180, 90)).any(axis=1)][0].tolist()
        raise ValueError(
            f"{name}: its coordinate system is {own}, but there is no longitude {x:g} with latitude {y:g}; of a frame, "
            f"call frame.set_crs(RIGHT, allow_override=True), where RIGHT is such as 'EPSG:25833'; {other}"
        )
    if named is None or named.is_geographic or not degrees or named.area_of_use is None:
        return
    west, south, east, north = named.area_of_use.bounds
    lon, lat = to_system(points, named, DEGREES).T
    within = (lon >= west) & (lon <= east) if west <= east else (lon >= west) | (lon <= east)
    if not (within & (lat >= south) & (lat <= north)).any():
        x, y = points[0].tolist()
        raise ValueError(
            f"{name}: its coordinate system is {own}, but its numbers, such as {x:g}, {y:g}, lie outside the area of "
            f"this system, and could be longitudes and latitudes; in GeoPandas, call frame.set_crs({DEGREES!r}, "
            f"allow_override=True).to_crs({own!r}); {other}"
        )


def crs_named(crs: Any) -> Any:
    """Return pyproj's coordinate system for a name such as "EPSG:25833"; raise ValueError if the name is unknown."""
    need_geopandas("coordinate systems")
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(crs)
    except CRSError as error:
        raise ValueError(
            f"crs (--crs) is {crs!r}, which is no coordinate system; give a name such as EPSG:25833"
        ) from error


def recorded_name(crs: str) -> str:
    """Return the name under which a store records the coordinate system that a user names."""
    found = crs_named(crs)
    return DEGREES if found.is_geographic else _name(found)


def is_web_mercator(crs: Any) -> bool:
    """Return whether a coordinate system is the one of web maps, such as "EPSG:3857".

    Its metres are true at the equator only: at latitude 60, a street of 1 km is 2 km long.
    """
    if crs in ("", DEGREES):
        return False
    operation = crs_named(crs).coordinate_operation
    return operation is not None and operation.method_name == "Popular Visualisation Pseudo Mercator"


def metres_of(crs: str) -> float:
    """Return the metres in a unit of a coordinate system of a plane; 0 if not known, or if GeoPandas is missing."""
    try:
        from pyproj import CRS
        from pyproj.exceptions import CRSError
    except ImportError:
        return 0.0
    try:
        axes = CRS.from_user_input(crs).axis_info[:2]
    except CRSError:
        return 0.0
    factors = {axis.unit_conversion_factor for axis in axes}
    return factors.pop() if len(factors) == 1 else 0.0


def to_degrees(points: np.ndarray, crs: str) -> np.ndarray:
    """Return points of a coordinate system as longitudes and latitudes, (k, 2)."""
    return to_system(points, crs, DEGREES)


def to_system(points: np.ndarray, crs: Any, wanted: str) -> np.ndarray:
    """Return points (k, 2) of one coordinate system in another system; infinite where a point is in no such system."""
    if crs == wanted or not len(points):
        return points
    need_geopandas("coordinate systems")
    from pyproj import Transformer

    return np.stack(Transformer.from_crs(crs, wanted, always_xy=True).transform(*points.T), axis=1)


def line_lengths(offsets: np.ndarray, points: np.ndarray, *, degrees: bool) -> np.ndarray:
    """Return the lengths of lines: of longitudes and latitudes in metres on the ellipsoid, else in their own unit.

    The points of line k are ``points[offsets[k] : offsets[k + 1]]``; a line has two points or more.
    """
    starts, stops = points[:-1], points[1:]
    if len(offsets) < 2:
        return np.zeros(0)
    if degrees:
        try:
            from pyproj import Geod
        except ImportError as error:
            raise ImportError(f"lengths on the globe need pyproj: {install('geo')}") from error
        _, _, steps = Geod(ellps="WGS84").inv(*starts.T, *stops.T)
    else:
        steps = np.hypot(*(stops - starts).T)
    steps[offsets[1:-1] - 1] = 0.0  # from the last point of a line to the first of the next
    return np.add.reduceat(steps, offsets[:-1])


def _name(crs: Any) -> str:
    authority = crs.to_authority()
    return ":".join(authority) if authority else str(crs.to_wkt())

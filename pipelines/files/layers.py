"""Read and write layers of geometries, by GeoPandas (the `geo` extra): GeoPackage, GeoJSON, GeoParquet, and others.

Geographic coordinates become WGS 84, longitude first ("EPSG:4326"), and so do those of Web Mercator, whose metres are
longer than metres on the ground; other coordinate systems stay as they are. GeoJSON is written in WGS 84, as its
specification says.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuops.extras import install
from pipelines.files.output_file import check_free, whole_file
from pipelines.files.tables import PARQUET
from pipelines.stores.errors import raise_if_of_system
from pipelines.stores.graph import DEGREES
from pipelines.stores.schema import brief

if TYPE_CHECKING:
    import geopandas

DRIVERS = {".gpkg": "GPKG", ".geojson": "GeoJSON"}  # names that GDAL gives to the formats that are written
WRITTEN = (*DRIVERS, ".geoparquet", *PARQUET)
READ = (*DRIVERS, ".geoparquet", ".fgb", ".shp")  # a .parquet file is read too, if `is_geoparquet` is true
GEOPARQUET = (".geoparquet", *PARQUET)
FROM_WEB_MERCATOR = (
    "coordinates of Web Mercator become longitudes and latitudes, whose distances are true on the ground"
)


def need_geopandas(what: str) -> None:
    """Raise ImportError if GeoPandas is missing; the message says that `what` needs it, and how to install it."""
    try:
        import geopandas  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{what} need GeoPandas: {install('geo')}") from error


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file of layers, in lower case."""
    return Path(path).suffix.lower()


def is_geoparquet(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is Parquet and records a column of geometries."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return b"geo" in (pa.parquet.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        return False


def is_layer(path: str | os.PathLike[str]) -> bool:
    """Return whether a file has layers of geometries, by its suffix, and for Parquet by its metadata."""
    return suffix_of(path) in READ or (suffix_of(path) in GEOPARQUET and is_geoparquet(path))


def read_layer(path: str | os.PathLike[str], layer: str | None, kind: str) -> tuple[geopandas.GeoDataFrame, str]:
    """Return a layer of a file, and the name of the layer for messages.

    Parameters
    ----------
    path : the file
    layer : name of the layer; by default the only layer whose geometries are of the kind
    kind : "LineString" or "Point"

    Raises
    ------
    ValueError
        The file cannot be read, or has no such layer or several; the message names the file, and the layers there are.
    ImportError
        GeoPandas is missing.
    """
    need_geopandas(f"{path}: layers of geometries")
    import geopandas
    import pyogrio

    name = os.fspath(path)
    try:
        if suffix_of(path) in GEOPARQUET:
            return _read_geoparquet(name, layer), name
        layers = {str(each): str(type_) for each, type_ in pyogrio.list_layers(path).tolist()}
        chosen = _chosen(name, layers, layer, kind)
        frame = pyogrio.read_dataframe(path, layer=chosen)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, OSError, UnicodeDecodeError) as error:
        raise_if_of_system(error, path)
        raise ValueError(
            f"{name}: cannot be read ({_said(error)}); correct the file, or its suffix if it is another kind of file"
        ) from error
    if not isinstance(frame, geopandas.GeoDataFrame):
        raise ValueError(f"{name}, layer {chosen}: has no geometries; choose another layer (layer, --layer)")
    return frame, name if len(layers) == 1 else f"{name}, layer {chosen}"


def _read_geoparquet(name: str, layer: str | None) -> Any:
    import geopandas

    if layer is not None:
        raise ValueError(f"{name}: GeoParquet has a single layer without a name; leave out layer (--layer)")
    try:
        return geopandas.read_parquet(name)
    except Exception as error:  # GeoPandas raises errors of many types on invalid metadata
        raise_if_of_system(error, name)
        raise ValueError(
            f"{name}: cannot be read as GeoParquet ({_said(error)}); get a new copy, or convert it"
        ) from error


def _said(error: Exception) -> str:
    """Return the message of an error of a library in at most 200 characters."""
    if isinstance(error, UnicodeDecodeError):
        return "text that is not UTF-8"
    return brief(error)


def _chosen(name: str, layers: Mapping[str, str], layer: str | None, kind: str) -> str:
    """Return the name of the layer to read."""
    listed = ", ".join(f"{each} ({type_})" for each, type_ in layers.items()) or "none"
    if layer is not None:
        if layer not in layers:
            raise ValueError(
                f"{name}: there is no layer {layer!r}; its layers are {listed}; choose one (layer, --layer)"
            )
        return layer
    fitting = [each for each, type_ in layers.items() if kind in type_]
    fitting = fitting or [each for each, type_ in layers.items() if type_.startswith(("Unknown", "Geometry"))]
    if len(fitting) != 1:
        count = f"{len(fitting)} layers" if fitting else "no layer"
        raise ValueError(f"{name}: {count} of {kind} geometries; its layers are {listed}; choose one (layer, --layer)")
    return fitting[0]


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
    if frame.crs.is_geographic or is_web_mercator(frame.crs):
        return frame.to_crs(DEGREES), DEGREES
    return frame, _name(frame.crs)


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


def with_geometry(given: Any) -> Any:
    """Return an array of geometries as a GeoSeries, and a data frame with a column `geometry` as a GeoDataFrame."""
    import geopandas

    if hasattr(given, "columns"):
        return geopandas.GeoDataFrame(given, geometry="geometry")
    return geopandas.GeoSeries(given)


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


def check_layers(path: str | os.PathLike[str], overwrite: bool = False) -> str:
    """Return the suffix of a file to write layers to, before long work.

    Raises
    ------
    ValueError
        The suffix names no format of layers.
    FileExistsError, ImportError
        `path` exists and `overwrite` is False, or GeoPandas is missing.
    """
    suffix = suffix_of(path)
    if suffix not in WRITTEN:
        raise ValueError(f"{path}: layers of geometries are written to one of {', '.join(WRITTEN)}; choose one")
    need_geopandas(f"{path}: layers of geometries")
    check_free(path, overwrite)
    return suffix


def write_layers(
    layers: Mapping[str, geopandas.GeoDataFrame], path: str | os.PathLike[str], overwrite: bool = False
) -> None:
    """Write layers, whole or not at all: GeoPackage has all layers, other formats have the first.

    The attribution of the first layer, ``frame.attrs["attribution"]``, becomes metadata of the layers of a GeoPackage,
    the description of a GeoJSON, and an attribute of the table of a GeoParquet.

    Raises
    ------
    ValueError, FileExistsError, ImportError
        As `check_layers`; or GeoJSON cannot have the coordinates, since their coordinate system is not known.
    """
    suffix = check_layers(path, overwrite)
    first = next(iter(layers.values()))
    if suffix == ".geojson" and first.crs is None:
        raise ValueError(
            f"{path}: GeoJSON has longitudes and latitudes, but the coordinate system of the network is not known; "
            "import it with its name (crs, --crs), or write .gpkg"
        )
    import pyogrio

    with whole_file(path) as partial, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)  # the network has none
        if suffix in GEOPARQUET:
            first.to_parquet(partial, index=False)
            return
        written = partial.with_name(partial.name + suffix)  # GDAL warns of other suffixes
        try:
            for name, frame in layers.items() if suffix == ".gpkg" else [("", first)]:
                options: dict[str, Any] = {"RFC7946": "YES", "COORDINATE_PRECISION": 7, "WRITE_NAME": "NO"}
                if name:
                    options = {"layer": name}
                if attribution := first.attrs.get("attribution"):
                    options |= (
                        {"layer_metadata": {"ATTRIBUTION": attribution}} if name else {"DESCRIPTION": attribution}
                    )
                frame = frame if name else frame.to_crs(DEGREES)
                pyogrio.write_dataframe(frame, written, driver=DRIVERS[suffix], append=written.exists(), **options)
            written.replace(partial)
        except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, RuntimeError) as error:
            raise ValueError(f"{path}: cannot be written ({error}); choose another place or format") from error
        finally:
            written.unlink(missing_ok=True)

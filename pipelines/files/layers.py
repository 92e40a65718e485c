"""Read and write layers of geometries, by GeoPandas (the `geo` extra): GeoPackage, GeoJSON, GeoParquet, and others.

GeoJSON is written in WGS 84, as its specification says. For other coordinate systems see
`pipelines.files.coordinate_systems`.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuops.extras import install
from gpuops.memory import size
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


def with_geometry(given: Any, column: str = "geometry") -> Any:
    """Return an array of geometries as a GeoSeries, and a data frame with a column of geometries as a GeoDataFrame."""
    import geopandas

    if hasattr(given, "columns"):
        return geopandas.GeoDataFrame(given, geometry=column)
    return geopandas.GeoSeries(given)


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
            free = size(shutil.disk_usage(partial.parent).free)  # a full disk is not among the reasons of GDAL
            fault = f"{error}; the disk has {free} free"
            raise ValueError(f"{path}: cannot be written ({fault}); choose another place or format") from error
        finally:
            written.unlink(missing_ok=True)

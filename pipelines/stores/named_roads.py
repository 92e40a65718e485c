"""Roads that users name: by their two ends, by rows of a table of arcs, or by geometries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.vertex_names import Positions

COLUMNS = (("source", "target"), ("u", "v"), ("tail", "head"), ("origin", "destination"))
CURE = (
    "name each road by its two ends, as [('a', 'b')]; or give rows of a table of arcs, with columns or an index of "
    "their ends; or geometries, as shapely.Point(13.38, 52.52)"
)


class NamedRoads(NamedTuple):
    """Roads that a user named.

    Attributes
    ----------
    tails, heads : (k,) int64
        The vertices at both ends of each road.
    rows : (k,) int64 or None
        For each road the number of the geometry that meets it; None if the roads are not named by geometries.
    """

    tails: np.ndarray
    heads: np.ndarray
    rows: np.ndarray | None = None


def ends_of(graph: Graph, given: Any, what: str) -> NamedRoads:
    """Return the vertices at both ends of some roads, in the order of `given`.

    Parameters
    ----------
    graph : Graph
    given : a list of pairs of names, or an array (k, 2) of names, or `tilepath.positions` of such an array; or a data
        frame with the columns source and target, or u and v, or with such levels of its index, as edges of OSMnx have;
        or a GeoDataFrame without them, a GeoSeries, a geometry or a list of geometries, for the
        roads that they meet (`pipelines.places.layers`)
    what : word for the roads in messages

    Raises
    ------
    ValueError
        `given` names no roads, or a vertex does not exist.
    """
    if isinstance(given, Positions):
        pairs: Any = np.asarray(given)
    elif (found := _columns(given)) is not None:
        return NamedRoads(*(graph.vertices(each, what) for each in found))
    elif _are_geometries(given):
        # Imported here: the places of roads are those of a layer above the stores.
        from pipelines.places.layers import roads_at

        ends, rows = roads_at(graph, given, what)
        return NamedRoads(ends[:, 0], ends[:, 1], rows)
    else:
        pairs = np.array(list(given), object)
    pairs = pairs.reshape(-1, 2) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{what} has the shape {pairs.shape}; {CURE}")
    wrap = Positions if isinstance(given, Positions) else list
    tails, heads = (graph.vertices(wrap(pairs[:, k]), what) for k in (0, 1))
    return NamedRoads(tails, heads)


def _are_geometries(given: Any) -> bool:
    """Return whether `given` is a geometry, or geometries of GeoPandas, or a list of geometries."""
    if isinstance(given, list | tuple | np.ndarray):
        return len(given) > 0 and all(hasattr(each, "geom_type") for each in given)
    return hasattr(given, "geom_type")


def _columns(given: Any) -> tuple[Any, Any] | None:
    """Return the names at both ends of the rows of a table of arcs; None if `given` is none."""
    names = list(getattr(given, "columns", ())) or list(getattr(given, "column_names", ()))
    for first, second in COLUMNS:
        if first in names and second in names:
            return given[first], given[second]
    index = getattr(given, "index", None)
    levels = list(getattr(index, "names", None) or ())
    for first, second in COLUMNS:
        if first in levels and second in levels:
            return index.get_level_values(first), index.get_level_values(second)  # type: ignore[union-attr]
    return None

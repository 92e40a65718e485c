"""Roads that users name: by their two ends, by rows of a table of arcs, or by geometries."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.vertex_names import Positions

COLUMNS = (("source", "target"), ("u", "v"), ("tail", "head"), ("origin", "destination"))
CURE = (
    "name each road by its two ends, as [('a', 'b')]; or give rows of a table of arcs, with columns or an index of "
    "their ends; or geometries"
)


def ends_of(graph: Graph, given: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices at both ends of some roads, int64 (k) each.

    Parameters
    ----------
    graph : Graph
    given : a list of pairs of names, or an array (k, 2) of names, or `tilepath.positions` of such an array; or a data
        frame with the columns source and target, or u and v, or with such levels of its index, as edges of OSMnx have;
        or a GeoDataFrame without them, a GeoSeries or a geometry, for the roads that it meets
        (`pipelines.stores.layers`)
    what : word for the roads in messages

    Raises
    ------
    ValueError
        `given` names no roads, or a vertex does not exist.
    """
    if isinstance(given, Positions):
        pairs: Any = np.asarray(given)
    elif (found := _columns(given)) is not None:
        return tuple(graph.vertices(each, what) for each in found)  # type: ignore[return-value]
    elif hasattr(given, "geom_type"):
        from pipelines.stores.layers import roads_at

        first, second = roads_at(graph, given, what).T
        return first, second
    else:
        pairs = np.array(list(given), object)
    pairs = pairs.reshape(-1, 2) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{what} has the shape {pairs.shape}; {CURE}")
    wrap = Positions if isinstance(given, Positions) else list
    tails, heads = (graph.vertices(wrap(pairs[:, k]), what) for k in (0, 1))
    return tails, heads


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

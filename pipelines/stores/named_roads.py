"""Roads that users name: by their two ends, by rows of a table of arcs, or by geometries."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.schema import brief
from pipelines.stores.vertex_names import Positions

COLUMNS = (("source", "target"), ("u", "v"), ("tail", "head"), ("origin", "destination"))
CURE = (
    "name each road by its two ends, as [('a', 'b')]; or give rows of a table of arcs, with columns or an index of "
    "their ends; or places or geometries, as (13.38, 52.52)"
)
NAMELESS = (
    "a store keeps no names of streets and no ids of ways; name the two ends, as [('a', 'b')], a place or a geometry, "
    "or rows of a table that has names, as edges[edges['name'] == 'Main Street'] of OSMnx"
)


class NamedRoads(NamedTuple):
    """Roads that a user named.

    Attributes
    ----------
    tails, heads : (k,) int64
        The vertices at both ends of each road.
    rows : (k,) int64
        For each road the row that names it.
    names : (k,) int64 or text, or None
        For each road the name of the geometry that meets it; None if the roads are not named by geometries.
    lines : list of bytes or None, or None
        For each road the key of its line (`pipelines.stores.parallel_roads`); None means all roads between the ends.
    """

    tails: np.ndarray
    heads: np.ndarray
    rows: np.ndarray
    names: Any = None
    lines: list[bytes | None] | None = None


def ends_of(graph: Graph, given: Any, what: str, crs: Any = None) -> NamedRoads:
    """Return the vertices at both ends of some roads, in the order of `given`.

    Parameters
    ----------
    graph : Graph
    given : a list of pairs of names, or an array (k, 2) of names, or `tilepath.positions` of such an array; or a data
        frame with the columns source and target, or u and v, or with such levels of its index, as edges of OSMnx have;
        or a place, a geometry, a list of these, or a frame that has them, for the roads that they meet
        (`pipelines.places.layers`). Pairs of whole numbers are names if one of the numbers is a vertex, else places
    what : word for the roads in messages
    crs : coordinate system of places and geometries that do not say their own

    Raises
    ------
    ValueError
        `given` names no roads, or a vertex does not exist.
    """
    if isinstance(given, Positions):
        pairs: Any = np.asarray(given)
    elif isinstance(given, str | os.PathLike) and os.path.exists(given):
        raise ValueError(f"{what} is the path {given}; read the file first, by pandas.read_csv or geopandas.read_file")
    elif isinstance(given, str | int) or _are_names(given):
        raise ValueError(f"{what} is {brief(repr(given))}; {NAMELESS}")
    elif (found := columns_of_ends(given)) is not None:
        tails, heads = (graph.vertices(each, what) for each in found)
        lines = _lines_of(graph, given, tails, heads, what, crs)
        return NamedRoads(tails, heads, np.arange(len(tails)), lines=lines)
    else:
        # Imported here, as `lines_like`: the places of roads are those of a layer above the stores.
        from pipelines.places.layers import roads_at

        if not _are_vertices(graph, given) and (at := roads_at(graph, given, what, crs)) is not None:
            return at
        if hasattr(given, "columns"):
            names = getattr(given, "column_names", given.columns)
            raise ValueError(f"{what} has the columns {', '.join(map(str, names))}; {CURE}")
        is_pair = isinstance(given, tuple) and len(given) == 2 and _are_names([*given])
        pairs = np.array([given] if is_pair else list(given), object)
    pairs = pairs.reshape(-1, 2) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{what} has the shape {pairs.shape}; {CURE}")
    wrap = Positions if isinstance(given, Positions) else list
    tails, heads = (graph.vertices(wrap(pairs[:, k]), what) for k in (0, 1))
    return NamedRoads(tails, heads, np.arange(len(tails)))


def _lines_of(
    graph: Graph, given: Any, tails: np.ndarray, heads: np.ndarray, what: str, crs: Any
) -> list[bytes | None] | None:
    """Return the keys of the lines of rows of arcs, by their geometries or by the index of `graph_to_gdfs`."""
    if "coordinates" not in graph.optional or graph.lines() is None:
        return None
    # Imported here: a layer above the stores, and a module that reads ends by this one.
    from pipelines.places.layers import lines_like
    from pipelines.stores.arc_tables import INDEX, lines_of_rows

    if hasattr(given, "geometry") and (given.ndim == 1 or hasattr(given, "crs")):
        return lines_like(graph, given, tails, heads, what, crs)
    if getattr(getattr(given, "index", None), "name", None) == INDEX:
        return lines_of_rows(graph, np.asarray(given.index), np.stack([tails, heads]))
    return None


def _are_names(given: Any) -> bool:
    """Return whether `given` is a list of names, which may be those of streets, not of pairs of names."""
    return isinstance(given, list) and len(given) > 0 and all(isinstance(each, str | int) for each in given)


def _are_vertices(graph: Graph, given: Any) -> bool:
    """Return whether whole numbers in pairs are names of vertices: if one of them is, or the graph has no places."""
    if not isinstance(given, tuple | list | np.ndarray) or not all(np.shape(each) in ((), (2,)) for each in given):
        return False
    if (numbers := np.asarray(given)).dtype.kind not in "iu":
        return False
    names = [*map(str, numbers.ravel().tolist())]
    return "coordinates" not in graph.optional or bool((graph.find(names) >= 0).any())


def columns_of_ends(given: Any) -> tuple[Any, Any] | None:
    """Return the names at both ends of the rows of a table of arcs; None if `given` is none."""
    if hasattr(given, "iloc") and given.ndim == 1:  # a row
        pairs = [(given[u], given[v]) for u, v in COLUMNS if u in given.index and v in given.index]
        return ([pairs[0][0]], [pairs[0][1]]) if pairs else None
    names = list(getattr(given, "column_names", getattr(given, "columns", ())))
    for first, second in COLUMNS:
        if first in names and second in names:  # Arrow's entries become text and integers
            ends = given[first], given[second]
            return (ends[0].to_pylist(), ends[1].to_pylist()) if hasattr(ends[0], "to_pylist") else ends
    index = getattr(given, "index", None)
    levels = list(getattr(index, "names", None) or ())
    for first, second in COLUMNS:
        if first in levels and second in levels:
            return index.get_level_values(first), index.get_level_values(second)  # type: ignore[union-attr]
    return None

"""Weights in a table of arcs, as `tilepath.graph_to_gdfs` returns it: a row for each arc, or for each undirected edge.

A frame or a Series of pandas is aligned by its index, which numbers the rows of that table. So a table that was sorted
gives each weight to its own arc. The index has the name `arc`. `reset_index` and `merge` take this name away, so that
rows of another table are not taken for rows of this one.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.named_roads import COLUMNS as ENDS
from pipelines.stores.named_roads import columns_of_ends
from pipelines.stores.parallel_roads import line_keys
from pipelines.stores.road_network import RoadNetwork, road_network

COLUMN = "weight"
INDEX = "arc"  # the name of the index of the table
CURE = (
    "give a number for each row of tilepath.graph_to_gdfs with the index of these rows, a frame with the ends of its "
    "rows, or an array in the order of the arcs"
)


def table_arcs(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the arcs in the table of a graph, and of the other arcs of the same edges.

    The table of a directed graph has all arcs, and each arc is its own other arc.
    """
    arcs = np.arange(graph.m)
    if graph.directed:
        return arcs, arcs
    from gpuops import mates_of

    mates = mates_of(graph.indptr(), graph.indices())
    arcs = np.flatnonzero(arcs < mates)
    return arcs, mates[arcs]


def lines_of_rows(graph: Graph, rows: np.ndarray, ends: np.ndarray) -> list[bytes | None]:
    """Return the keys of the lines of rows of the table of a graph that has lines, for `pipelines.stores.named_roads`.

    A row whose arc does not have the ends (2, k) that the row names has None: it is that of another graph.
    """
    roads, found = road_network(graph), np.full(len(rows), None, object)
    coordinates, arcs = roads.coordinates(), table_arcs(roads)[0]
    assert coordinates is not None  # a store with lines has them
    there = np.flatnonzero((rows >= 0) & (rows < len(arcs)))
    arcs = arcs[rows[there]]
    own = np.stack([np.searchsorted(roads.indptr(), arcs, side="right") - 1, roads.indices()[arcs]])
    same = (own == ends[:, there]).all(axis=0)
    found[there[same]] = line_keys(roads.lines(), coordinates, arcs[same], *own[:, same])
    return found.tolist()


def weights_in_table(
    graph: Graph, own: np.ndarray, given: Any, what: str = "weights", column: str = COLUMN
) -> np.ndarray:
    """Return a weight for each arc of ``graph.rows()``.

    Parameters
    ----------
    own : (m,) the weights of ``graph.rows()``, which arcs keep that are not in the table: the turns of a graph
    given : a frame with the column `column`, or a Series, or an array with a weight for each row; or an array with a
        weight for each arc of ``graph.rows()``, which is returned as it is
    what : word for the weights in messages

    Raises
    ------
    ValueError
        A weight is missing, the index of `given` is not the index of the table, or a row has other ends than the arc of
        its index.
    """
    is_frame = len(getattr(given, "shape", ())) == 2 and hasattr(given, "columns")
    names = [str(name) for name in getattr(given, "column_names", given.columns)] if is_frame else []
    if is_frame and column not in names:
        raise ValueError(f"{what}: no column `{column}`; the columns are {', '.join(names)}; {CURE}")
    entries = given[column] if is_frame else given
    values = np.asarray(entries)
    indexed = hasattr(given, "iloc")
    missing = entries.isna() if indexed else np.isnan(values) if values.dtype.kind == "f" else False
    for row in np.flatnonzero(missing)[:1].tolist():
        at = f"row {given.index[row]}" if indexed else f"entry {row}"
        raise ValueError(f"{what}: {at} is missing or NaN; fill it in, or close the road (closed, --closed)")
    if not is_frame and not indexed and (graph.directed or values.shape != (graph.m // 2,)):
        return values
    roads = road_network(graph)
    arcs, mates = table_arcs(roads)
    ends: Any = columns_of_ends(given) if is_frame else None
    if indexed and _numbers(given.index, len(values)):
        values = _by_index(given.index, values)
        ends = None if ends is None else [_by_index(given.index, np.asarray(each)) for each in ends]
    elif indexed and ends is None:
        raise ValueError(f"{what}: the index does not have the numbers of rows from 0; {CURE}")
    if values.shape != arcs.shape:
        raise ValueError(f"{what}: {len(values):,} rows, but the network has {len(arcs):,}; {CURE}")
    if indexed and ends is None and given.index.name != INDEX:
        raise ValueError(
            f"{what}: the index is not called `{INDEX}`, as that of tilepath.graph_to_gdfs, so rows may have another "
            f"order than the arcs; {CURE}"
        )
    if ends is not None:
        _refuse_other_ends(roads, arcs, ends, what)
    found = _in_rows(graph, roads, np.stack([arcs, mates]), own, values)
    if is_frame and what == "weights" and np.array_equal(found, own):
        _warn_of_further_columns(graph, given, names)
    return found


def _warn_of_further_columns(graph: Graph, given: Any, names: list[str]) -> None:
    """Warn that a frame changes no weight if it has columns of numbers that the table of the graph does not have."""
    known = {COLUMN, INDEX, "length", "key", *(end for pair in ENDS for end in pair)}
    known |= {name for each in graph.choices for name in (each.name, f"{each.name}_weight")}
    further = [name for name in names if name not in known and np.asarray(given[name]).dtype.kind in "iuf"]
    if further:
        warnings.warn(
            f"weights: the column `{COLUMN}` of the frame has the weights that the graph has, so nothing changes; "
            f"other weights may be in {', '.join(further)}: rename that column to `{COLUMN}`, or pass it alone, as "
            f"frame[{further[0]!r}]",
            stacklevel=6,  # the caller of with_weights
        )


def _numbers(index: Any, count: int) -> bool:
    """Return whether an index has each number of a row once."""
    numbers = np.asarray(index)
    return numbers.dtype.kind in "iu" and np.array_equal(np.sort(numbers), np.arange(count))


def _by_index(index: Any, values: np.ndarray) -> np.ndarray:
    found = np.empty_like(values)
    found[np.asarray(index)] = values
    return found


def _refuse_other_ends(roads: Graph, arcs: np.ndarray, ends: Any, what: str) -> None:
    tails = np.repeat(np.arange(roads.n), np.diff(roads.indptr()))
    found = [roads.vertices(list(each), what) for each in ends]
    other = (found[0] != tails[arcs]) | (found[1] != roads.indices()[arcs])
    for row in np.flatnonzero(other)[:1].tolist():
        raise ValueError(
            f"{what}: row {row} leads from vertex {ends[0][row]} to vertex {ends[1][row]}, but arc {row} of the table "
            f"leads from vertex {roads.label(tails[arcs[row]])} to vertex {roads.label(roads.indices()[arcs[row]])}; "
            f"keep the index of the frame, or the order of its rows"
        )


def _in_rows(graph: Graph, roads: Graph, edges: np.ndarray, own: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return weights of edges, each of two arcs of the road network (2, k), as weights of ``graph.rows()``."""
    positions = graph.stored_positions()
    stored = np.empty(graph.m, values.dtype)
    if isinstance(roads, RoadNetwork):  # turns keep their weights
        stored, edges = np.empty(graph.m, np.result_type(own, values)), roads.arcs[edges]
        stored[positions] = own
    stored[edges] = values
    return stored[positions]

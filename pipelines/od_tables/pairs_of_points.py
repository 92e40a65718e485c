"""Read a table of pairs of an origin and a destination."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.tables import frame_table, read_columns, select_columns
from pipelines.places.points import Points, points_from, points_in_table
from pipelines.places.row_names import INDEX, repeated, with_index
from pipelines.places.snapping import Snapping
from pipelines.stores.graph import Graph
from pipelines.stores.vertex_names import Positions, positions

SIDES = {"origin": ("origin", "source", "from"), "destination": ("destination", "target", "to")}
AXES = ("lon", "lat", "x", "y")


def read_pairs_of_points(
    given: Any, snapping: Snapping, points: tuple[Points | None, Points | None] = (None, None)
) -> tuple[Points, Points]:
    """Return the origins and the destinations of a table of pairs, one of each for each row.

    Parameters
    ----------
    given : data frame, or file, with the columns ``origin`` and ``destination`` (or ``source`` and ``target``) of names
        of vertices; or with ``origin_lon``, ``origin_lat``, ``destination_lon`` and ``destination_lat`` (or ``_x`` and
        ``_y``) of places; or an array (k, 2) of names of vertices, or `tilepath.positions` of one
    points : origins and destinations to which the names in the columns refer. If one of them is None, the names on both
        sides refer to the other; if both are None, the names are names of vertices

    Raises
    ------
    ValueError
        A column is missing, or an entry names no vertex or point; the message names the row.
    """
    name = os.fspath(given) if isinstance(given, str | os.PathLike) else "the pairs"
    wanted = [column for side in SIDES for column in _columns(side)]
    if isinstance(given, str | os.PathLike):
        table = read_columns(given, wanted, wanted)
        if not len(table):
            raise ValueError(f"{name}: no rows; give at least one pair")
    elif (frame := frame_table(given)) is not None:
        wanted = [*wanted, INDEX]
        table = select_columns(with_index(frame, given), wanted, name, wanted)
    elif isinstance(given, Positions):
        return _at_positions(np.asarray(given.indices), snapping.graph)
    else:
        values = np.asarray(given)
        if values.ndim != 2 or values.shape[1] != 2:
            raise ValueError(f"pairs have the shape {values.shape}; give a table, or an array of shape (k, 2)")
        table = pa.table(dict(zip(SIDES, values.T, strict=True)))
    sides = []
    for side, known, other in zip(SIDES, points, points[::-1], strict=True):
        part, of = _side(table, side, name, ids=known is not None or other is not None), side
        if known is None and side in part.column_names:  # the points of one side are those of the other side, too
            known, of = other, next(each for each in SIDES if each != side)
        if known is None:
            sides.append(points_in_table(part, name, side, (), snapping))
        elif side not in part.column_names:
            raise ValueError(f"{name}: no column `{side}`; name the {side}s of the pairs there by their ids")
        else:
            sides.append(_named(part[side], known, of, name))
    return sides[0], sides[1]


def _at_positions(pairs: np.ndarray, graph: Graph) -> tuple[Points, Points]:
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs have the shape {pairs.shape}; give a table, or an array of shape (k, 2)")
    origins, destinations = (points_from(positions(pairs[:, k]), graph, side) for k, side in enumerate(SIDES))
    return origins, destinations


def _columns(side: str) -> list[str]:
    return [*SIDES[side], *(f"{side}_{axis}" for axis in AXES)]


def _side(table: pa.Table, side: str, name: str, *, ids: bool) -> pa.Table:
    """Return the columns of one side (origins or destinations), with the names of columns of points.

    A place counts before a name, unless names are `ids` of points that are given.
    """
    new = dict.fromkeys(SIDES[side], side) | {f"{side}_{axis}": axis for axis in AXES}
    there = [column for column in new if column in table.column_names]
    named = [column for column in there if new[column] == side][:1]
    placed = any({f"{side}_{a}", f"{side}_{b}"} <= {*there} for a, b in (AXES[:2], AXES[2:]))
    chosen = [each for each in there if new[each] != side] if placed and not ids else named or there
    if not chosen:
        raise ValueError(
            f"{name}: no column `{side}`, nor `{side}_lon` and `{side}_lat`, nor `{side}_x` and `{side}_y`; rename the"
            " columns"
        )
    new[INDEX] = INDEX
    chosen = chosen + [INDEX] * (INDEX in table.column_names)
    return table.select(chosen).rename_columns([new[column] for column in chosen])


def _named(column: pa.ChunkedArray, known: Points, side: str, name: str) -> Points:
    """Return the points that a column names; messages call the points by `side`."""
    names = column.combine_chunks().cast(pa.large_string())
    if text := repeated(known.ids, f"the {side}s"):
        raise ValueError(f"{text}, since pairs name {side}s by their ids")
    rows = pc.index_in(names, value_set=pa.array(known.texts(), names.type))
    for row in np.flatnonzero(rows.is_null().to_numpy(zero_copy_only=False))[:1].tolist():
        raise ValueError(f"{name}, row {row + 1}: the {side}s have no id {names[row].as_py()!r}; correct it")
    return known.take(rows.to_numpy())

"""Pairs of an origin and a destination in one table: read them, and answer each row.

Rows with the same origin are answered together. A hierarchy store computes a block of distances for some origins and
all of their destinations, and each row takes one distance of the block. The blocks have more distances than there are
rows, but far fewer than all origins and all destinations would have. A distance in a block takes less time than a
single distance.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.tables import frame_table, read_columns, select_columns
from pipelines.od_tables.forms import Found
from pipelines.places.points import Points, points_from, points_in_table
from pipelines.places.row_names import INDEX, repeated, with_index
from pipelines.places.snapping import Snapping
from pipelines.routes.along import Along, sums_along
from pipelines.routes.distances import LANES, SearchedDistances
from pipelines.routes.paths import PathFinder, Walker, walks_of_pairs
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.vertex_names import Positions, positions

PAIRS = 1 << 18  # rows that are answered at a time
TOGETHER = 256  # origins of a block of a hierarchy store
WASTE = 64  # distances that may be computed for each row
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


class RowByRow:
    """Distances of pairs, and their paths if `walks`; origin i goes to destination i.

    Attributes
    ----------
    dtype : dtype of the distances
    """

    def __init__(
        self, source: HierarchyStore | Graph, graph: Graph, origins: Points, destinations: Points, *, walks: bool
    ):
        self._source, self._ends = source, (origins.vertices, destinations.vertices)
        self._finder = PathFinder(source, graph if isinstance(source, HierarchyStore) else None) if walks else None
        self._searched = SearchedDistances(source) if isinstance(source, Graph) and not walks else None
        found = self._finder.distances if self._finder else self._searched or source
        self.dtype: np.dtype = found.dtype  # type: ignore[union-attr]

    @property
    def walker(self) -> Walker:
        """Finds the paths."""
        assert self._finder is not None
        return self._finder

    def ask(self, rows: slice) -> Found:
        """Return the distances, and the paths, of some rows."""
        origins, destinations = (vertices[rows] for vertices in self._ends)
        numbers = np.arange(rows.start, rows.start + len(origins))
        if self._finder is None:
            return Found(numbers, numbers, self._distances(origins, destinations))
        walks = walks_of_pairs(self._finder, origins, destinations)
        return Found(numbers, numbers, walks.distances, (walks.hops, walks.paths.flatten().to_numpy()))

    def sums(self, along: Sequence[Along]) -> list[np.ndarray]:
        """Return the sum of each of some weights along the path of each row, (k,) float64, NaN without a path."""
        found: list[list[np.ndarray]] = [[np.empty(0)] for _ in along]
        for start in range(0, len(self._ends[0]), PAIRS):
            walks = self.ask(slice(start, start + PAIRS)).walks
            assert walks is not None
            arcs = self.walker.arcs(*walks)
            for sums, each in zip(found, along, strict=True):
                sums.append(np.where(walks[0] < 0, np.nan, sums_along(arcs, walks[0], each.weights)))
        return [np.concatenate(sums) for sums in found]

    def _distances(self, origins: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        found = np.empty(len(origins), self.dtype)
        for some in self._groups(origins, destinations):
            starts, row = np.unique(origins[some], return_inverse=True)
            if self._searched is not None:
                found[some] = self._searched.search(starts)[row, destinations[some]]
                continue
            assert isinstance(self._source, HierarchyStore)
            ends, column = np.unique(destinations[some], return_inverse=True)
            found[some] = self._source.between(starts, ends)[row, column]
        return found

    def _groups(self, origins: np.ndarray, destinations: np.ndarray) -> Iterator[np.ndarray]:
        """Yield numbers of rows in groups with few origins each."""
        different, number = np.unique(origins, return_inverse=True)
        most = LANES if self._searched is not None else TOGETHER
        if self._searched is None and len(different) * len(np.unique(destinations)) <= WASTE * len(origins):
            most = max(len(different), 1)
        order = np.argsort(number, kind="stable")
        cuts = np.searchsorted(number[order], np.arange(0, len(different), most))
        yield from np.split(order, cuts[1:])

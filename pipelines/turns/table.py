"""Read a table of turns: which turns of a graph are forbidden, which are the only ones allowed, and what turns cost.

A row names a turn by three vertices, `from`, `via` and `to`, and has its `cost`: a number, which every path with this
turn takes in addition to its weights; "no", which forbids the turn; or "only", which forbids all other turns at `via`
after the arc from `from`. An empty `from` or `to` stands for every vertex. If arcs are parallel, the optional columns
`from_arc` and `to_arc` choose one of them, by its number in the store; otherwise a row holds for all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.tables import column_numbers, column_vertices, frame_table, names_in, read_columns, select_columns
from pipelines.stores.graph import Graph

COLUMNS = ("from", "via", "to", "cost", "from_arc", "to_arc")
ANY = -1  # in place of a vertex or an arc: every one
FORBIDDEN = ("no", "inf", "infinity")

TurnsLike: TypeAlias = "str | os.PathLike[str] | pa.Table | Any"


@dataclass(frozen=True, eq=False)
class TurnRows:
    """The rows of a table of turns.

    Attributes
    ----------
    name : name of the table in messages
    tails, vias, heads : (k,) int64
        The vertices of each turn; `ANY` for every vertex.
    entering, leaving : (k,) int64
        The numbers of its arcs; `ANY` for all arcs between its vertices.
    costs : (k,) float64
        +inf: the turn is forbidden.
    only : (k,) bool
        Whether the turns that the row does not name are forbidden; the cost is then 0.
    """

    name: str
    tails: np.ndarray
    vias: np.ndarray
    heads: np.ndarray
    entering: np.ndarray
    leaving: np.ndarray
    costs: np.ndarray
    only: np.ndarray

    def where(self, row: int) -> str:
        """Return the name of a row in messages."""
        return f"{self.name}, row {row + 1}"


def read_turns(given: TurnsLike, graph: Graph) -> TurnRows:
    """Read a table of turns: a file (.csv, .tsv, .csv.gz, .tsv.gz, .parquet), or a table of pandas, Polars or Arrow.

    Raises
    ------
    ValueError
        A column is missing; a vertex does not exist, an entry of `cost` is neither a number of 0 or more nor "no" or
        "only", or two rows name the same turn with different costs. The message names the row, counted from 1 without
        the header.
    """
    optional = ("from_arc", "to_arc")
    table, name = read_rows(given, "turns", COLUMNS, optional)
    several = [" " in entry.strip() for entry in _texts(table["via"])]
    for row in [row for row, named in enumerate(several) if named][:1]:
        _refuse_several(table["via"][row].as_py(), graph, f"{name}, row {row + 1}")
    costs, only = costs_in(table["cost"], name)
    rows = TurnRows(
        name,
        _vertices(table["from"], graph, name),
        column_vertices(table["via"], graph, name),
        _vertices(table["to"], graph, name),
        _arcs(table, "from_arc", name),
        _arcs(table, "to_arc", name),
        costs,
        only,
    )
    _refuse_contradictions(rows)
    return rows


def forbidden_turns(name: str, pairs: np.ndarray, graph: Graph) -> TurnRows:
    """Return rows that forbid turns, given as pairs of an arc and the next arc, int64 (t, 2).

    Turns at closed vertices are left out, since no path passes there.
    """
    entering, leaving = pairs[graph.through()[graph.indices()[pairs[:, 0]]]].T
    count = len(entering)
    every, vias = np.full(count, ANY), graph.indices()[entering].astype(np.int64)
    return TurnRows(name, every, vias, every, entering, leaving, np.full(count, np.inf), np.zeros(count, bool))


def read_rows(given: Any, what: str, columns: Sequence[str], optional: Sequence[str] = ()) -> tuple[pa.Table, str]:
    """Return columns of a file, a data frame or a table, and its name in messages: `what` unless it is a file."""
    if isinstance(given, str | os.PathLike):
        if not os.path.exists(given):
            raise ValueError(f"{what} (--{what}): there is no file {os.fspath(given)}; give the path of a table")
        return read_columns(given, columns, optional), os.fspath(given)
    if hasattr(given, "iloc") and "cost" in given:  # Arrow has no column with both numbers and words
        given = given.assign(cost=[entry if isinstance(entry, str) else str(entry) for entry in given["cost"]])
    table = given if isinstance(given, pa.Table) else frame_table(given)
    if table is None:
        raise ValueError(f"{what}: {type(given).__name__} is no table; give the path of a file, or a data frame")
    return select_columns(table, columns, what, optional), what


def _texts(column: pa.ChunkedArray) -> list[str]:
    return ["" if entry is None or entry != entry else str(entry) for entry in column.to_pylist()]


def _vertices(column: pa.ChunkedArray, graph: Graph, name: str) -> np.ndarray:
    """Return the vertices that a column names, `ANY` for an empty entry."""
    names = names_in(column, name)
    empty = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(names), ""), True)
    if pc.all(empty).as_py() is not False:
        return np.full(len(names), ANY)
    # Any vertex stands in for empty entries, so that messages count the rows of the whole table.
    found = column_vertices(pa.chunked_array([pc.if_else(empty, "#0", names)]), graph, name)
    return np.where(empty.to_numpy(zero_copy_only=False), ANY, found)


def _arcs(table: pa.Table, column: str, name: str) -> np.ndarray:
    """Return the numbers of arcs in a column, `ANY` for an empty entry or if there is no such column."""
    if column not in table.column_names:
        return np.full(len(table), ANY)
    found = column_numbers(table, column, name, optional=True)
    for row in np.flatnonzero((found < 0) | (~np.isnan(found) & (found != np.floor(found))))[:1].tolist():
        raise ValueError(f"{name}, row {row + 1}: `{column}` is {found[row]:g}; give the number of an arc, from 0")
    return np.where(np.isnan(found), ANY, found).astype(np.int64)


def costs_in(column: pa.ChunkedArray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the costs of turns, +inf if a turn is forbidden, and whether a turn is the only one allowed."""
    texts = [entry.strip().casefold() for entry in _texts(column)]
    only = np.array([text == "only" for text in texts], bool)
    costs = np.zeros(len(texts))
    for row, text in enumerate(texts):
        if text == "only":
            continue
        try:
            costs[row] = np.inf if text in FORBIDDEN else float(text)
        except ValueError:
            costs[row] = np.nan
        if not costs[row] >= 0:
            cure = "give a number of 0 or more, `no` or `only`"
            raise ValueError(f"{name}, row {row + 1}: `cost` is {column[row].as_py()!r}; {cure}")
    return costs, only


def _refuse_several(via: str, graph: Graph, where: str) -> None:
    """Raise ValueError if `via` lists vertices, unless it is the name of one vertex."""
    if graph.find([via])[0] < 0 and (graph.find(via.split()) >= 0).all():
        raise ValueError(
            f"{where}: `via` is {via!r}, several vertices; a turn is at one vertex, so leave out turns over several"
            " roads"
        )


def _refuse_contradictions(rows: TurnRows) -> None:
    """Raise ValueError if two rows name the same turn with different costs."""
    keys = np.stack([rows.vias, rows.tails, rows.heads, rows.entering, rows.leaving])
    order = np.lexsort(keys)
    same = (keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)
    first, second = order[:-1][same], order[1:][same]
    differ = (rows.costs[first] != rows.costs[second]) | (rows.only[first] != rows.only[second])
    for i in np.flatnonzero(differ)[:1]:
        earlier, later = sorted((int(first[i]), int(second[i])))
        raise ValueError(
            f"{rows.where(later)}: the turn has another cost than in row {earlier + 1}; leave one of the two rows out"
        )

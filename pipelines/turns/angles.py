"""Costs of turns by their angles: what a turn to the left, a turn to the right and a U-turn cost.

An angle is counted in degrees from straight ahead: positive to the left, negative to the right. Along arcs with lines,
the bends of the lines count: the last piece of the arc into the junction, and the first piece of the arc out of it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from pipelines.files.tables import column_numbers
from pipelines.stores.coordinates import are_geographic
from pipelines.stores.graph import Graph
from pipelines.stores.lines import points_along
from pipelines.stores.units import SECONDS, symbol_of
from pipelines.turns.table import costs_in, read_rows

COLUMNS = ("turn", "least", "most", "cost")
U_TURN = "u-turn"
USUAL = "usual"  # the name of the table `USUAL_SECONDS`

AngleCostsLike: TypeAlias = "str | os.PathLike[str] | pa.Table | Any"


@dataclass(frozen=True, eq=False)
class AngleCosts:
    """The costs of turns by their angles, and the cost of U-turns.

    Attributes
    ----------
    least, most : (k,) float64
        The angles of each kind of turn, in degrees; of kinds that meet at an angle, the first counts.
    costs : (k,) float64
        +inf: the turn is forbidden.
    u_turn : float
    """

    least: np.ndarray
    most: np.ndarray
    costs: np.ndarray
    u_turn: float


# Seconds of a car that drives on the right: a turn to the left waits for traffic that comes from ahead.
USUAL_SECONDS = AngleCosts(np.array([45.0, -180.0]), np.array([180.0, -45.0]), np.array([7.0, 3.0]), 20.0)


def read_angle_costs(given: AngleCostsLike, graph: Graph) -> AngleCosts:
    """Read a table of costs by angles: "usual", a file (.csv, .tsv, .parquet), or a table of pandas, Polars or Arrow.

    Raises
    ------
    ValueError
        A column is missing; an angle is not between -180 and 180, two rows have angles in common, or a cost is neither
        a number of 0 or more nor "no"; or `given` is "usual" and the weights of the graph are not times.
    """
    if isinstance(given, str) and given == USUAL:
        return _usual(graph)
    table, name = read_rows(given, "angles", COLUMNS)
    kinds = np.array([str(kind).strip().casefold() for kind in table["turn"].to_pylist()], object)
    costs, only = costs_in(table["cost"], name)
    for row in np.flatnonzero(only)[:1].tolist():
        raise ValueError(
            f"{name}, row {row + 1}: `cost` is 'only', which has no meaning for angles; give a number or no"
        )
    back = np.flatnonzero(kinds == U_TURN)
    for row in back[1:2].tolist():
        raise ValueError(f"{name}, row {row + 1}: a second row of {U_TURN}; leave one of them out")
    rows = np.flatnonzero(kinds != U_TURN)
    least, most = (column_numbers(table, column, name, optional=True) for column in ("least", "most"))
    for row in rows.tolist():
        if not -180 <= least[row] <= most[row] <= 180:
            raise ValueError(
                f"{name}, row {row + 1}: angles from {least[row]:g} to {most[row]:g}; give `least` and `most` in"
                " degrees, rising from -180 to 180"
            )
    order = rows[np.argsort(least[rows], kind="stable")]
    for before, after in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        if least[after] < most[before]:
            first, second = sorted((before, after))
            raise ValueError(f"{name}, row {second + 1}: has angles in common with row {first + 1}; separate them")
    u_turn = float(costs[back[0]]) if len(back) else 0.0
    return AngleCosts(least[rows], most[rows], costs[rows], u_turn)


def _usual(graph: Graph) -> AngleCosts:
    unit = symbol_of(graph.weight_unit)
    if unit not in SECONDS:
        known = f"are in {graph.weight_unit}" if graph.weight_unit else "have no unit"
        raise ValueError(
            f"{graph.path}: the weights {known}, and the usual costs of turns are seconds; import the graph with its"
            " unit of time (unit, --unit), or give a table of costs"
        )
    per, usual = SECONDS[unit], USUAL_SECONDS
    return AngleCosts(usual.least, usual.most, usual.costs / per, usual.u_turn / per)


def directions(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return the direction of each arc at its tail and at its head, in degrees against the clock; NaN if unknown.

    Raises
    ------
    ValueError
        The graph has no coordinates.
    """
    places = graph.coordinates()
    if places is None:
        raise ValueError(
            f"{graph.path} has no coordinates, from which angles are computed; import it with coordinates"
            " (--coordinates), or give a table of turns"
        )
    if not graph.m:
        return np.empty(0), np.empty(0)
    tails, heads = np.repeat(np.arange(graph.n), np.diff(graph.indptr())), graph.indices()
    offsets, points = points_along(graph.lines(), places, np.arange(graph.m), tails, heads)
    steps = np.diff(points, axis=0)
    if are_geographic(graph, places):
        steps[:, 0] *= np.cos(np.radians(points[:-1, 1]))
    moves = (steps != 0).any(axis=1)
    moves[offsets[1:-1] - 1] = False  # from a line to the next
    there = np.flatnonzero(moves)
    angles = np.degrees(np.arctan2(steps[there, 1], steps[there, 0]))
    first, after = np.searchsorted(there, offsets[:-1]), np.searchsorted(there, offsets[1:] - 1)
    known = first < after
    found = np.full((2, graph.m), np.nan)
    found[0, known], found[1, known] = angles[first[known]], angles[after[known] - 1]
    return found[0], found[1]

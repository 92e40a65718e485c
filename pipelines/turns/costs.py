"""The costs of all turns at some vertices: one number for each arc into a vertex and each arc out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from numba import njit

from gpuops.recompiling import recompiled_with_imports
from pipelines.turns.angles import AngleCosts
from pipelines.turns.table import ANY, TurnRows

FINE, NO_WAY_IN, NO_WAY_OUT = 0, 1, 2  # what became of a row of a table
BACK = 179.0  # degrees: a turn of at least this angle, to the vertex that the arc came from, is a U-turn


@dataclass(frozen=True, eq=False)
class TurnCosts:
    """The costs of the turns at some vertices of a graph.

    Attributes
    ----------
    vertices : (k,) int64, ascending
    in_starts : (k + 1,) int64
        The arcs into vertex i are ``in_arcs[in_starts[i] : in_starts[i + 1]]``, in ascending order.
    in_arcs : int64
    starts : (k + 1,) int64
        The costs of the turns at vertex i are ``costs[starts[i] : starts[i + 1]]``: one after the other for each arc
        into the vertex, and for such an arc one for each arc out of the vertex.
    costs : float64
        +inf: the turn is forbidden.
    """

    vertices: np.ndarray
    in_starts: np.ndarray
    in_arcs: np.ndarray
    starts: np.ndarray
    costs: np.ndarray

    @classmethod
    def free(cls, indptr: np.ndarray, heads: np.ndarray, vertices: np.ndarray) -> TurnCosts:
        """Return turns that cost nothing, at the given vertices."""
        n = len(indptr) - 1
        chosen = np.zeros(n, bool)
        chosen[vertices] = True
        arcs = np.flatnonzero(chosen[heads])
        in_arcs = arcs[np.argsort(heads[arcs], kind="stable")]
        entering = np.bincount(heads[arcs], minlength=n)[vertices]
        sizes = entering * np.diff(indptr)[vertices]
        starts, in_starts = (np.concatenate([[0], np.cumsum(each)]).astype(np.int64) for each in (sizes, entering))
        return cls(vertices.astype(np.int64), in_starts, in_arcs, starts, np.zeros(starts[-1]))

    def add_angles(
        self, indptr: np.ndarray, heads: np.ndarray, leaving: np.ndarray, arriving: np.ndarray, angles: AngleCosts
    ) -> None:
        """Add the costs of angles, where three roads or more meet, and the cost of U-turns.

        `leaving` and `arriving` have the directions of arcs at their tails and heads (`pipelines.turns.angles`).
        """
        limits = angles.least, angles.most, angles.costs, angles.u_turn
        _add_angles(self._arrays(), indptr, heads, _tails(indptr), leaving, arriving, *limits, self.costs)

    def add_rows(self, indptr: np.ndarray, heads: np.ndarray, rows: TurnRows) -> np.ndarray:
        """Add the costs of a table whose vertices `via` are among the vertices.

        A turn that two rows name alike counts once.
        Returns for each row `FINE`, or `NO_WAY_IN` or `NO_WAY_OUT` if its first or second arc does not exist.
        """
        keys = np.stack([rows.vias, rows.tails, rows.heads, rows.entering, rows.leaving], axis=1)
        once = np.zeros(len(keys), bool)
        once[np.unique(keys, axis=0, return_index=True)[1]] = True
        turns = rows.tails, rows.heads, rows.entering, rows.leaving, np.where(once, rows.costs, 0.0), rows.only
        places = np.searchsorted(self.vertices, rows.vias)
        return _add_rows(self._arrays(), indptr, heads, _tails(indptr), places, *turns, self.costs)

    def cost_something(self) -> np.ndarray:
        """Return the places in `vertices` of those where a turn costs something or is forbidden."""
        before = np.concatenate([[0], np.cumsum(self.costs != 0)])
        return np.flatnonzero(np.diff(before[self.starts]))

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.vertices, self.in_starts, self.in_arcs, self.starts


def _tails(indptr: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _add_rows(arrays, indptr, heads, tails, places, begins, ends, entering, leaving, values, only, costs):
    """Add the costs of rows; returns for each row `FINE`, or which of its arcs does not exist."""
    vertices, in_starts, in_arcs, starts = arrays
    found = np.zeros(len(places), np.int8)
    limited, allowed = np.zeros(len(in_arcs), np.bool_), np.zeros(len(costs), np.bool_)
    for row in range(len(places)):
        place = places[row]
        first, stop = indptr[vertices[place]], indptr[vertices[place] + 1]
        way_in, way_out = False, False
        for i in range(in_starts[place], in_starts[place + 1]):
            arc = in_arcs[i]
            if (begins[row] != ANY and tails[arc] != begins[row]) or (entering[row] != ANY and arc != entering[row]):
                continue
            way_in = True
            cell = starts[place] + (i - in_starts[place]) * (stop - first)
            for out in range(first, stop):
                if (ends[row] == ANY or heads[out] == ends[row]) and (leaving[row] == ANY or out == leaving[row]):
                    way_out = True
                    allowed[cell + out - first] |= only[row]
                    limited[i] |= only[row]
                    costs[cell + out - first] += values[row]
        found[row] = NO_WAY_IN if not way_in else FINE if way_out else NO_WAY_OUT
    for place in range(len(vertices)):
        width = indptr[vertices[place] + 1] - indptr[vertices[place]]
        for i in range(in_starts[place], in_starts[place + 1]):
            cell = starts[place] + (i - in_starts[place]) * width
            for out in range(cell, cell + width):
                if limited[i] and not allowed[out]:
                    costs[out] = np.inf
    return found


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _add_angles(arrays, indptr, heads, tails, leaving, arriving, least, most, values, u_turn, costs):
    vertices, in_starts, in_arcs, starts = arrays
    for place in range(len(vertices)):
        first, stop = indptr[vertices[place]], indptr[vertices[place] + 1]
        roads, cell = stop - first, starts[place]
        for i in range(in_starts[place], in_starts[place + 1]):
            back = False
            for out in range(first, stop):
                back |= _is_back(heads[out], tails[in_arcs[i]], _angle(arriving[in_arcs[i]], leaving[out]))
            roads += not back
        for i in range(in_starts[place], in_starts[place + 1]):
            ways = 0  # ways out of the vertex other than back
            for out in range(first, stop):
                ways += not _is_back(heads[out], tails[in_arcs[i]], _angle(arriving[in_arcs[i]], leaving[out]))
            for out in range(first, stop):
                angle = _angle(arriving[in_arcs[i]], leaving[out])
                if _is_back(heads[out], tails[in_arcs[i]], angle):
                    if ways or u_turn != np.inf:  # nobody stays in a dead end for ever
                        costs[cell] += u_turn
                elif roads > 2:
                    for kind in range(len(values)):
                        if least[kind] <= angle <= most[kind]:
                            costs[cell] += values[kind]
                            break
                cell += 1


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _angle(arriving, leaving):
    """Return the angle between two directions in degrees, from -180 (excluded) to 180: positive to the left."""
    angle = leaving - arriving
    return angle - 360 * np.ceil((angle - 180) / 360)


@njit(nogil=True, cache=True)
@recompiled_with_imports
@no_type_check
def _is_back(head, tail, angle):
    return head == tail and not abs(angle) < BACK

"""Split the junctions of a graph: give each arc into a junction and each arc out of it a vertex of its own.

A vertex where a turn costs something or is forbidden becomes a junction (`pipelines.stores.junctions`). Paths begin and
end at the junction at no cost, and no path passes through it: paths lead from an arrival over a turn to a departure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops import csr
from pipelines.stores.junctions import Junctions
from pipelines.turns.costs import TurnCosts

ADDED = -1  # in place of the number of an arc: an arc of a turn


@dataclass(frozen=True, eq=False)
class Split:
    """The arcs of a graph whose junctions are split, in no order.

    Attributes
    ----------
    junctions : Junctions
    tails, heads : (m,) int64
    costs : (m,) float64
        The costs of turns; 0 for a road.
    roads : (m,) int64
        The number that a road had before; `ADDED` for a turn.
    owners : int64
        For each vertex that was added, the arc that it was added for, by its number before.
    """

    junctions: Junctions
    tails: np.ndarray
    heads: np.ndarray
    costs: np.ndarray
    roads: np.ndarray
    owners: np.ndarray


def split_junctions(indptr: np.ndarray, heads: np.ndarray, turns: TurnCosts) -> Split:
    """Split the vertices of a graph where a turn costs something or is forbidden.

    The vertices that are added have the positions from n on: first all arrivals, then all departures, each in the order
    of the junctions and of their arcs.
    """
    n, m = len(indptr) - 1, len(heads)
    tails = np.repeat(np.arange(n), np.diff(indptr))
    places = turns.cost_something()
    split = turns.vertices[places]
    in_arcs = turns.in_arcs[csr.in_ranges(turns.in_starts[places], turns.in_starts[places + 1])]
    out_arcs = csr.in_ranges(indptr[split], indptr[split + 1])
    arrivals = n + np.arange(len(in_arcs))
    departures = n + len(in_arcs) + np.arange(len(out_arcs))
    from_, to = tails.astype(np.int64), heads.astype(np.int64)
    to[in_arcs], from_[out_arcs] = arrivals, departures

    entering, leaving = np.diff(turns.in_starts)[places], np.diff(indptr)[split]
    cells = csr.in_ranges(turns.starts[places], turns.starts[places + 1])
    widths = np.repeat(leaving, entering)  # the number of turns after each arc into a junction
    firsts = np.repeat(np.cumsum(leaving) - leaving, entering)
    turn_tails = np.repeat(arrivals, widths)
    turn_heads = departures[csr.in_ranges(firsts, firsts + widths)]
    allowed = np.isfinite(turns.costs[cells])
    begins, ends = np.repeat(split, leaving), np.repeat(split, entering)

    added_tails = np.concatenate([turn_tails[allowed], begins, arrivals])
    added_heads = np.concatenate([turn_heads[allowed], departures, ends])
    added_costs = np.zeros(len(added_tails))
    added_costs[: allowed.sum()] = turns.costs[cells][allowed]
    return Split(
        Junctions(np.concatenate([np.arange(n), ends, -1 - begins])),
        np.concatenate([from_, added_tails]),
        np.concatenate([to, added_heads]),
        np.concatenate([np.zeros(m), added_costs]),
        np.concatenate([np.arange(m), np.full(len(added_tails), ADDED)]),
        np.concatenate([in_arcs, out_arcs]),
    )

"""Flows on the arcs of a network, for a demand of travel between its vertices: all travel goes by shortest paths.

The amount that travels from an origin to a destination is shared by the shortest paths between them in equal parts.
This is the accumulation of betweenness (`gpuops.centrality`) with another number for each pair: a target counts with
its amount in place of 1. In the study of traffic, this is *all-or-nothing assignment*: it does not ask how much an arc
can carry. Weights that grow with the flow lead to an equilibrium by repeated assignment (docs/flows.md).

1. For each origin, the shortest paths are found and counted as for betweenness.
2. In the order of falling distances, each vertex passes on what ends at it and what leaves it, in proportion to the
   number of paths over each tight arc into it.
3. The flows of all origins are added in an order that is fixed by the number of origins, so the number of threads and
   of workers changes no bit.

The certificate (`verify_flows`) needs no search. At every vertex, the flow out exceeds the flow in by what begins there
less what ends there. The flows times the weights add up to the amounts times the distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops.arrays import is_cupy
from gpuops.centrality import Summation, flows_numba
from gpuops.centrality.absorbed import Absorbed
from gpuops.centrality.pairwise_sums import Arrays
from gpuops.errors import VerificationError


class LinkFlows(NamedTuple):
    """The flow on each arc, and its cost.

    Attributes
    ----------
    arcs : (m,) float64
        The amount that travels along each arc. Parallel arcs of the least weight have equal parts.
    cost : float
        The sum, over all pairs, of the amount times the distance.
    """

    arcs: np.ndarray
    cost: float


class UnreachableError(ValueError):
    """No path leads from an origin to a destination; the arguments are both vertices and the amount."""

    def __str__(self) -> str:
        origin, destination, amount = self.args
        return (
            f"no path leads from vertex {origin} to vertex {destination}, so the amount {amount:g} cannot travel; "
            "leave out such pairs"
        )


@dataclass(frozen=True, eq=False)
class Demand:
    """Amounts that travel, by origin; `demand_by_origin` makes it. A slice has the demand of some origins.

    Attributes
    ----------
    origins : (k,) int64
        Different vertices, ascending.
    starts : (k + 1,) int64
        The travel from origin i is at ``starts[i]`` to ``starts[i + 1] - 1`` in the other arrays.
    destinations, amounts : (p,) int64, (p,) float64
        Amounts are above 0.
    """

    origins: np.ndarray
    starts: np.ndarray
    destinations: np.ndarray
    amounts: np.ndarray

    def __len__(self) -> int:
        return len(self.origins)

    def __getitem__(self, some: slice) -> Demand:
        first, last, _ = some.indices(len(self))
        pairs = slice(self.starts[first], self.starts[last])
        starts = self.starts[first : last + 1] - self.starts[first]
        return Demand(self.origins[some], starts, self.destinations[pairs], self.amounts[pairs])


def demand_by_origin(origins: Any, destinations: Any, amounts: Any, n: int) -> Demand:
    """Return the demand of a table of pairs, without amounts of 0; arguments and errors as for `link_flows`."""
    origins, destinations = csr.check_vertices(origins, n, "origin"), csr.check_vertices(destinations, n, "destination")
    amounts = np.asarray(amounts, np.float64)
    if not len(origins) == len(destinations) == amounts.size or amounts.ndim != 1:
        raise ValueError(
            f"there are {len(origins)} origins, {len(destinations)} destinations and amounts of shape {amounts.shape}; "
            "give one of each for every pair"
        )
    for wrong in np.flatnonzero(~((amounts >= 0) & (amounts < np.inf)))[:1].tolist():
        raise ValueError(
            f"the amount from {origins[wrong]} to {destinations[wrong]} is {amounts[wrong]:g}; "
            "give finite amounts of 0 or more"
        )
    order = np.flatnonzero(amounts)
    order = order[origins[order].argsort(kind="stable")]
    different, first = np.unique(origins[order], return_index=True)
    return Demand(different, np.append(first, len(order)), destinations[order], amounts[order])


def link_flows(
    indptr: Any,
    indices: Any,
    weights: Any,
    origins: Any,
    destinations: Any,
    amounts: Any,
    *,
    through: Any = None,
    check: bool = True,
) -> LinkFlows:
    """Send amounts from origins to destinations by shortest paths, and add up the flow on each arc.

    Parameters
    ----------
    indptr, indices, weights : (n + 1,), (m,), (m,) NumPy arrays
        The graph, as for `gpuops.betweenness`; without weights (None), every arc has the length 1.
    origins, destinations : (p,) sequences of int
        The vertices of each pair, which may occur several times.
    amounts : (p,) sequence of float
        How much travels from the origin to the destination, 0 or more.
    through : (n,) NumPy array of bool, optional
        Whether a path may pass through each vertex; by default, through every vertex.
    check : bool
        Check that the arrays form a graph. Pass False to skip the check if you know it.

    Returns
    -------
    LinkFlows

    Raises
    ------
    TypeError, ValueError
        As for `gpuops.betweenness`; or an origin or a destination is not a vertex, an amount is negative or not
        finite, or no path leads from an origin to a destination.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")  # of the arcs 0-1, 0-2, 1-2, 2-0
    >>> found = gpuops.link_flows(indptr, indices, weights, [0], [2], amounts=[10])
    >>> found.arcs, found.cost
    (array([10.,  0., 10.,  0.]), 40.0)
    """
    summation = FlowSummation(indptr, indices, weights, through=through, check=check)
    return summation.result(summation.over(demand_by_origin(origins, destinations, amounts, summation.n)))


class FlowSummation(Summation):
    """The sums of `link_flows`, prepared once for parts of a demand; `Summation` says which parts give the same bits.

    Parameters are those of `Summation`; the two directions of an edge have separate flows.
    """

    def __init__(self, indptr: Any, indices: Any, weights: Any = None, *, through: Any = None, check: bool = True):
        if is_cupy(indptr) or is_cupy(indices):
            raise TypeError("flows are computed on a CPU; pass NumPy arrays")
        super().__init__(indptr, indices, weights, through=through, arcs=True, check=check)
        if not len(self._lengths):  # all arcs have the same length
            length = 1.0 if weights is None or not len(self._heads) else float(weights[self._lightest][0])
            self._lengths = np.full(len(self._heads), length)

    def over(self, demand: Demand) -> Arrays:  # type: ignore[override]
        """Return the sums over the origins of `demand`, for `result`: arrays of arcs kept and of the cost."""
        rows = self._indptr, self._stops, self._heads
        arrays = demand.origins, demand.starts, demand.destinations, demand.amounts
        try:
            return flows_numba.sums(rows, self._lengths, arrays)
        except Absorbed as error:
            raise self._lost(*error.args) from None
        except flows_numba.Unreachable as error:
            (pair,) = error.args
            origin = demand.origins[int(np.searchsorted(demand.starts, pair, side="right")) - 1]
            raise UnreachableError(int(origin), int(demand.destinations[pair]), float(demand.amounts[pair])) from None

    def result(self, sums: Arrays) -> LinkFlows:  # type: ignore[override]
        """Return the flows, given the sums over all origins."""
        kept, (cost,) = sums
        return LinkFlows(self._of_given_arcs(kept), float(cost))


def verify_flows(
    indptr: Any, indices: Any, weights: Any, found: LinkFlows, origins: Any, destinations: Any, amounts: Any
) -> None:
    """Check that flows are conserved at every vertex, and that they cost what shortest paths cost.

    Parameters
    ----------
    found : LinkFlows
    indptr, indices, weights, origins, destinations, amounts
        As for `link_flows`.

    Raises
    ------
    VerificationError
        The flow out of a vertex differs from the flow in, or the cost is another.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 2, 0])
    >>> weights = np.array([3, 5, 1, 2], "int32")  # of the arcs 0-1, 0-2, 1-2, 2-0
    >>> pairs = [0], [2], [10]  # origins, destinations and amounts
    >>> found = gpuops.link_flows(indptr, indices, weights, *pairs)
    >>> gpuops.verify_flows(indptr, indices, weights, found, *pairs)
    """
    n, m = len(indptr) - 1, len(indices)
    # Terms are positive, so each addition that a term takes part in rounds its sum by a relative 2^-53. There are fewer
    # than four additions for every arc and vertex, and one for every pair. The check allows twice this error.
    bound = 2 * (4 * (n + m) + len(amounts)) * 2.0**-53
    tails = csr.tails(indptr, m, np.int64)
    leaving, entering = (np.bincount(ends, found.arcs, n) for ends in (tails, indices))
    begins, ends = (np.bincount(vertices, amounts, n) for vertices in (origins, destinations))
    leaving, entering = leaving + ends, entering + begins
    for vertex in np.flatnonzero(~(np.abs(leaving - entering) <= bound * leaving))[:1].tolist():
        raise VerificationError(
            f"at vertex {vertex}, {entering[vertex]:.17g} arrives or begins, and {leaving[vertex]:.17g} leaves or "
            "ends; compute the flows again"
        )
    used = np.flatnonzero(found.arcs)  # a missing arc may have the weight +inf
    cost = float((found.arcs[used] * (1.0 if weights is None else weights[used])).sum())
    if not (math.isfinite(cost) and abs(cost - found.cost) <= bound * found.cost):
        raise VerificationError(
            f"the flows cost {cost:.17g}, and not {found.cost:.17g} as on shortest paths; compute the flows again"
        )

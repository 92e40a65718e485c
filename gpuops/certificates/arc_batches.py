"""Certificate of shortest distances by batches of arcs, in any order, on any number of devices, without a whole graph.

d(v) is the distance of v from the nearest source, where paths begin at distance 0. Weights are not negative. The
distances are right if and only if

1. d(s) = 0 for every source s;
2. d(v) <= d(u) + w for every arc (u, v) of weight w whose tail is reached; in particular v is then reached;
3. every reached vertex v is a source, or is *proven*: an arc (u, v) is tight, d(u) + w = d(v), and u is nearer than v,
   or as near as v and proven before it.

By (2), summed along any path to v, d(v) is at most the length of the path. By (3), with induction on the distance and
then on the order of proofs, some path to v has exactly the length d(v). A tail is as near as its head only if the
weight is too small to change the sum; without such arcs, one pass over all arcs proves every vertex. With predecessors
p, only the arc (p(v), v) proves v; the predecessors are then a forest of shortest paths.

Sums are rounded to the dtype of the distances, as searches round them, so the comparisons need no tolerance. The arrays
may be NumPy or CuPy arrays; the code is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuops.arrays import library_of
from gpuops.errors import VerificationError
from gpuops.numbers import outside_infinity


class RowProof:
    """The proof of one row of distances, with or without predecessors.

    Parameters
    ----------
    distances : (n,) array
        float32, float64 or int32; unreachable is +inf, or the dtype's maximum.
    sources : sequence of int
    predecessors : (n,) array of int32, optional
        -1 at the sources and at unreachable vertices.
    limit : number, optional
        Vertices farther than this count as unreachable.
    label : names a vertex in messages

    Attributes
    ----------
    proven : (n,) array of bool
        True for vertices that are proven. After a pass over all arcs, combine it by "or" with the arrays of the other
        devices.

    Raises
    ------
    VerificationError
        Rule 1 is broken, or an entry is impossible; the message names the vertex.
    """

    def __init__(
        self,
        distances: Any,
        sources: Sequence[int] | np.ndarray,
        predecessors: Any = None,
        *,
        limit: Any = None,
        label: Callable[[int], str] = str,
    ):
        self.distances, self.predecessors, self.label = distances, predecessors, label
        self.limit = limit
        xp = library_of(distances)
        self.unreachable = distances.dtype.type(outside_infinity(distances.dtype))
        wrong = xp.isnan(distances) | (distances < 0) if distances.dtype.kind == "f" else distances < 0
        self._refuse(wrong)
        if limit is not None:
            self._refuse((distances != self.unreachable) & (distances > limit))
        starts = xp.asarray(np.asarray(sources))
        self.proven = xp.zeros(len(distances), dtype=bool)
        self.proven[starts] = True
        self._refuse(self.proven & (distances != 0))
        if predecessors is not None:
            self._refuse((self.proven | (distances == self.unreachable)) & (predecessors != -1), "a predecessor")

    def test(self, tails: Any, heads: Any, weights: Any) -> None:
        """Test rule 2 for a batch of arcs, three arrays of one length, and mark the heads that they prove (rule 3).

        Raises
        ------
        VerificationError
            An arc breaks rule 2; the message names it.
        """
        xp, distances = library_of(self.distances), self.distances
        before, found = distances[tails], distances[heads]
        wide = distances.dtype if distances.dtype.kind == "f" else np.int64
        sums = before.astype(wide, copy=False) + weights.astype(distances.dtype, copy=False)
        short = (sums < found) & (before != self.unreachable)
        if self.limit is not None:
            short &= sums <= self.limit
        for arc in xp.flatnonzero(short)[:1].tolist():
            tail, head = int(tails[arc]), int(heads[arc])
            state = "unreachable" if found[arc] == self.unreachable else f"at the distance {found[arc]}"
            raise VerificationError(
                f"vertex {self.label(head)} is {state}, but the arc {self.label(tail)} -> {self.label(head)} of weight "
                f"{weights[arc]} makes it {before[arc]} + {weights[arc]} = {sums[arc]} at most"
            )
        proves = (sums == found) & ((before < found) | self.proven[tails])
        if self.predecessors is not None:
            proves &= self.predecessors[heads] == tails
        self.proven[heads[proves]] = True

    def lacking(self) -> Any:
        """Return the vertices that are reached and not proven."""
        return library_of(self.distances).flatnonzero((self.distances != self.unreachable) & ~self.proven)

    def refuse_lacking(self) -> None:
        """Raise VerificationError, naming a vertex that no pass over the arcs has proven."""
        for vertex in self.lacking()[:1].tolist():
            through = "any arc" if self.predecessors is None else f"an arc from {int(self.predecessors[vertex])}"
            raise VerificationError(
                f"vertex {self.label(vertex)} is at the distance {self.distances[vertex]}, but no path of that length "
                f"leads there by {through}"
            )

    def _refuse(self, wrong: Any, what: str = "") -> None:
        for vertex in library_of(self.distances).flatnonzero(wrong)[:1].tolist():
            has = what or f"the distance {self.distances[vertex]}"
            raise VerificationError(f"vertex {self.label(vertex)} has {has}, which it cannot have")

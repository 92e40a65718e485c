"""Undirected graphs: which two arcs are one edge, and directions for all edges that balance every vertex.

At each vertex the first arc of the row is paired with the second, the third with the fourth, and so on: a walk that
enters by one edge of a pair leaves by the other. This makes cycles of arcs. For each cycle there is a mirror image, the
same edges in the opposite direction, and no cycle is its own mirror image. Of a cycle and its mirror image, the
orientation keeps the one with the least arc.

M. Atallah, U. Vishkin, "Finding Euler tours in parallel", Journal of Computer and System Sciences 29 (1984).
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from gpuops import csr
from gpuops._halves import half_of
from gpuops.arrays import library_of, on_host
from gpuops.errors import NotEulerianError
from gpuops.euler.balance import refuse_odd
from gpuops.euler.stages import arc_dtype, check_arcs, cycle_labels


class Orientation(NamedTuple):
    """A directed graph with one arc for each edge.

    Attributes
    ----------
    indptr, indices : the graph in CSR
    arcs : (m / 2,) for each arc, its number in the undirected graph
    mates : (m,) arc numbers, as `mates_of` returns them
    """

    indptr: Any
    indices: Any
    arcs: Any
    mates: Any

    def arc_of(self, arcs: tuple[int, int]) -> int:
        """Return the number, in this graph, of whichever of an edge's two arcs this graph contains."""
        xp = library_of(self.arcs)
        places = xp.searchsorted(self.arcs, xp.asarray(arcs, dtype=self.arcs.dtype))
        for arc, place in zip(arcs, places.tolist(), strict=True):
            if place < len(self.arcs) and int(self.arcs[place]) == arc:
                return int(place)
        raise AssertionError("an edge has a direction")


def orient(indptr: Any, indices: Any, path: bool = False) -> Orientation:
    """Direct the edges of an undirected graph so that as many arcs enter each vertex as leave it.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers
        An undirected graph in CSR, every edge as two arcs.
    path : bool
        Whether the caller requested a path, for messages.

    Raises
    ------
    NotEulerianError
        A degree is odd, or an arc has no mate.
    """
    xp = library_of(indices)
    m = len(indices)
    odd = on_host(xp.flatnonzero(xp.diff(indptr) % 2))
    if len(odd):
        refuse_odd(indptr, odd, "an Euler circuit of an undirected graph needs even degrees", path)
    tails = csr.tails(indptr, m, indices.dtype)
    mates = mates_of(indptr, indices)
    slots = xp.arange(m, dtype=mates.dtype)
    firsts = indptr[tails].astype(mates.dtype)
    labels = cycle_labels(mates[firsts + ((slots - firsts) ^ 1)])
    kept = labels < labels[mates]
    before = xp.zeros(m + 1, np.int64)
    before[1:] = xp.cumsum(kept, dtype=np.int64)
    arcs = xp.flatnonzero(kept).astype(mates.dtype)
    return Orientation(before[indptr], indices[arcs], arcs, mates)


def mates_of(indptr: Any, indices: Any) -> Any:
    """Find the other arc of each edge: the k-th arc from u to v and the k-th from v to u; loops in pairs.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers
        An undirected graph in CSR, every edge as two arcs.

    Returns
    -------
    (m,) arc numbers

    Raises
    ------
    NotEulerianError
        An arc has no mate: the graph is directed.
    ValueError
        The arrays are not a CSR.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> gpuops.mates_of(indptr, indices)
    array([1, 0, 3, 2], dtype=int32)
    """
    indptr, indices = check_arcs(indptr, indices)
    xp = library_of(indices)
    m = len(indices)
    arc = arc_dtype(m)
    tails = csr.tails(indptr, m, indices.dtype)
    sort = half_of("euler.euler", indices).pair
    by_head = sort(indptr, indices)  # the stable argsort by heads, or None if a vertex is not balanced
    if by_head is None:  # some arc has no mate
        by_head = xp.argsort(indices, kind="stable").astype(arc)
    by_tail = by_head[sort(indptr, tails[by_head])]
    # The i-th arc by tail and head, and the i-th by head and tail.
    one_sided = (tails[by_head] != indices[by_tail]) | (indices[by_head] != tails[by_tail])
    for place in xp.flatnonzero(one_sided)[:1].tolist():
        out, back = int(by_tail[place]), int(by_head[place])
        one = int(tails[out]), int(indices[out])
        other = int(indices[back]), int(tails[back])
        _refuse_lonely(*(one if one < other else other[::-1]))  # the lesser of the two has no mate
    mates = xp.empty(m, arc)
    mates[by_tail] = by_head
    loops = by_head[tails[by_head] == indices[by_head]]
    if len(loops):
        at = tails[loops]
        apart = at[0 : len(at) // 2 * 2 : 2] != at[1::2]
        if len(loops) % 2 or bool(apart.any()):
            place = 2 * int(apart.argmax()) if bool(apart.any()) else len(at) - 1
            _refuse_lonely(int(at[place]), int(at[place]))
        mates[loops[0::2]], mates[loops[1::2]] = loops[1::2], loops[0::2]
    return mates


def _refuse_lonely(tail: int, head: int) -> NoReturn:
    raise NotEulerianError(
        "an arc from {} to {} has no arc back; in an undirected graph every edge is stored as two arcs, a loop too: is "
        "this graph directed?",
        (tail, head),
    )

"""Proof in O(m), without a second solver, that walks are Euler circuits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import library_of
from gpuops.errors import VerificationError
from gpuops.euler.orientation import mates_of


def verify_circuit(
    indptr: Any, indices: Any, arcs: Any, offsets: Any, *, path: bool = False, directed: bool = True
) -> None:
    """Verify that walks take every arc once, without gaps, in one closed walk for each component.

    Two walks that meet at a vertex could be joined, so walks must not meet.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers
        The graph in CSR.
    arcs : (m,) integers, or (m / 2,) of an undirected graph
        As `euler_circuit` returns them.
    offsets : (c + 1,) integers
        As `euler_circuit` returns them: circuit k is ``arcs[offsets[k] : offsets[k + 1]]``.
    path : bool
        Allow one walk to begin and end at different vertices.
    directed : bool
        False: each edge is stored as two arcs, and is walked along once.

    Raises
    ------
    VerificationError
        The walks are wrong; the message names the first place at fault.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])  # arcs 0-1, 0-2, 1-0, 2-0
    >>> arcs, offsets = gpuops.euler_circuit(indptr, indices)[:2]
    >>> gpuops.verify_circuit(indptr, indices, arcs, offsets)
    >>> gpuops.verify_circuit(indptr, indices, arcs[::-1], offsets)
    Traceback (most recent call last):
    gpuops.errors.VerificationError: the arc 2 at 2 does not leave vertex 2, where the arc 1 before it ends
    """
    xp = library_of(indices)
    m = len(indices)
    expected = m if directed else m // 2
    ends = xp.asarray(offsets, dtype=np.int64)
    if len(arcs) != expected:
        raise VerificationError(f"the walks have {len(arcs)} arcs, but the graph has {expected}")
    if len(ends) == 0 or int(ends[0]) != 0 or int(ends[-1]) != expected or bool((ends[1:] <= ends[:-1]).any()):
        raise VerificationError(f"the offsets do not rise from 0 to {expected}")
    if expected == 0:
        return
    if int(arcs.min()) < 0 or int(arcs.max()) >= m:
        raise VerificationError(f"a walk has an arc that is not one of 0 to {m - 1}")
    # The walks have as many arcs as the graph, so if they leave out no arc, they repeat no arc.
    taken = xp.zeros(m, bool)
    taken[arcs] = True
    if not directed:
        taken[mates_of(indptr, indices)[arcs]] = True
    if not bool(taken.all()):
        raise VerificationError(f"no walk takes the arc {int(xp.flatnonzero(~taken)[0])}")
    following = xp.empty_like(arcs)
    following[:-1], following[-1] = arcs[1:], arcs[0]
    following[ends[1:] - 1] = arcs[ends[:-1]]
    heads = indices[arcs]
    apart = (following < indptr[heads]) | (following >= indptr[heads + 1])
    closing = xp.zeros(expected, bool)
    closing[ends[1:] - 1] = True
    for place in xp.flatnonzero(apart & ~closing)[:1].tolist():
        raise VerificationError(
            f"the arc {int(following[place])} at {place + 1} does not leave vertex {int(heads[place])}, where the arc "
            f"{int(arcs[place])} before it ends"
        )
    open_walks = int((apart & closing).sum())
    if open_walks > path:
        place = int(xp.flatnonzero(apart & closing)[0])
        raise VerificationError(f"the walk that ends with the arc {int(arcs[place])} is not closed")
    walk_of = xp.zeros(expected, arcs.dtype)
    walk_of[ends[1:-1]] = 1
    walk_of = xp.cumsum(walk_of, dtype=arcs.dtype)
    starts = xp.searchsorted(indptr, arcs[ends[:-1]], side="right") - 1
    passed = xp.zeros(len(indptr) - 1, arcs.dtype)  # for each vertex, one of the walks that pass it
    passed[starts] = walk_of[ends[:-1]]
    passed[heads] = walk_of
    met = xp.concatenate([heads[passed[heads] != walk_of], starts[passed[starts] != walk_of[ends[:-1]]]])
    if len(met):
        raise VerificationError(f"several walks pass vertex {int(met[0])}; they could be one")

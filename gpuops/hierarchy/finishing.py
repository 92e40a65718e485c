"""Complete the distances by paths through the tree: arcs between closed vertices, and potentials."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops import csr
from gpuops.arrays import library_of, like, on_host
from gpuops.hierarchy.closing import Hierarchy
from gpuops.numbers import distance_limit, outside_infinity

_PIECE = 2**20  # distances from which potentials are removed at a time


def finish(hierarchy: Hierarchy, found: Any, origins: Any, destinations: Any) -> None:
    """Complete distances that the tree gives, in place.

    Arcs between closed vertices count as paths, potentials are removed, and a closed vertex has the distance 0 to
    itself.

    Parameters
    ----------
    found : (k, l) array of NumPy or CuPy
        The distances by paths through the tree. Unreachable is +inf, or the maximum of an integer dtype.
    origins, destinations : (k,), (l,) arrays of vertices, NumPy or CuPy
        As destinations, None stands for all vertices.
    """
    structure = hierarchy.structure
    if hierarchy.potentials is None and structure.open == len(structure.order):
        return
    origins = on_host(origins)
    destinations = None if destinations is None else on_host(destinations)
    from_ = structure.place[origins] - structure.open
    rows = np.flatnonzero(from_ >= 0)
    if len(rows) == 0 and hierarchy.potentials is None:
        return
    to = structure.place[slice(None) if destinations is None else destinations] - structure.open
    positions, heads, lengths = hierarchy.closed.beside.rows(from_[rows])
    _lower(found, rows[positions], heads, lengths, to)
    if hierarchy.potentials is not None:
        out, into = (like(found, each) for each in hierarchy.potentials)
        ends = slice(None) if destinations is None else like(found, destinations)
        step = max(1, _PIECE // max(1, found.shape[1]))
        for first in range(0, len(origins), step):
            piece = found[first : first + step]
            moved = piece - out[like(found, origins[first : first + step]), None] + into[ends]
            reached = piece != outside_infinity(found.dtype)
            library_of(found).copyto(piece, moved, where=reached, casting="unsafe")
    _lower(found, rows, from_[rows], np.zeros(len(rows), found.dtype), to)


def _lower(found: Any, rows: np.ndarray, heads: np.ndarray, lengths: np.ndarray, to: np.ndarray) -> None:
    """For each row, head and length, lower `found` in this row to the length in every column whose `to` is the head."""
    if len(rows) == 0:
        return
    columns = np.argsort(to, kind="stable")
    first, last = (np.searchsorted(to[columns], heads, side) for side in ("left", "right"))
    counts, ends = last - first, columns[csr.in_ranges(first, last)]
    rows, lengths = np.repeat(rows, counts), np.repeat(lengths, counts)
    order = np.lexsort((lengths, ends, rows))  # the least length of each entry first
    rows, ends, lengths = rows[order], ends[order], lengths[order]
    new = np.append(True, (np.diff(rows) != 0) | (np.diff(ends) != 0))[: len(rows)]
    entries, lengths = (like(found, rows[new]), like(found, ends[new])), like(found, lengths[new])
    found[entries] = library_of(found).minimum(found[entries], lengths)


def narrowed(found: Any, dtype: np.dtype) -> Any:
    """Return distances in float64, which are whole numbers, as integers of `dtype`.

    Raises
    ------
    OverflowError
        A distance does not fit `dtype`.
    """
    xp, limit = library_of(found), distance_limit(dtype)
    reached = xp.isfinite(found)
    most = float(xp.abs(xp.where(reached, found, 0)).max()) if found.size else 0.0
    if most >= limit:
        raise OverflowError(f"a distance is {most:,.0f}, and {dtype} holds less than {limit:,}; use float64 weights")
    return xp.where(reached, found, outside_infinity(dtype)).astype(dtype)

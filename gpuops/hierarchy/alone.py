"""Distances from one source: climb from the source to the root, then sweep all nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.csr import check_vertices
from gpuops.hierarchy import alone_numba
from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.ends import finish, narrowed, starts_of
from gpuops.hierarchy.tree import tree_of
from gpuops.numbers import infinity, to_outside


def one_to_all(hierarchy: Hierarchy, source: Any) -> np.ndarray:
    """Return the distances from one vertex to all vertices.

    For many sources, `gpuops.distance_rows` takes less time. The last bits of floats may differ from its results,
    because lengths are added in another order.

    Parameters
    ----------
    hierarchy : Hierarchy
    source : int

    Returns
    -------
    (n,) array
        Distances in the dtype of the hierarchy. Unreachable is +inf, or the maximum of an integer dtype.

    Raises
    ------
    OverflowError
        A distance does not fit the dtype.
    ValueError
        The source is not a vertex.
    """
    structure = hierarchy.structure
    vertices = check_vertices([source], len(structure.order))
    wide = hierarchy if hierarchy.fits else hierarchy.in_float64
    by_place = np.empty(len(structure.order), wide.dtype)
    inside, closed = by_place[: structure.open], by_place[structure.open :]
    starts = starts_of(wide, structure.place[vertices])
    alone_numba.compile_for(wide.dtype)(inside, starts.places, starts.lengths, tree_of(wide))
    closed[:] = infinity(wide.dtype)
    owners, tails, lengths = wide.closed.entering.rows(np.arange(len(closed)))
    np.minimum.at(closed, owners, inside[tails] + lengths)
    found = to_outside(by_place)[structure.place][None]
    finish(wide, found, vertices, np.arange(len(structure.order)))
    return (found if wide is hierarchy else narrowed(found, hierarchy.dtype))[0]

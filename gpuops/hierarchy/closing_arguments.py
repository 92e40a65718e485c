"""Arguments of `gpuops.close_hierarchy`: check the arcs, and turn weights into lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.hierarchy.order import check_graph
from gpuops.hierarchy.structure import HierarchyStructure
from gpuops.numbers import distance_limit, infinity, outside_infinity

# Rounding error of potentials, relative to the largest number: float lengths that are this little below 0 count as 0.
_ROUNDING = 1e-9
# By kind of dtype, what to do if distances are too large for it.
LARGER = {"i": "convert the weights to float64", "f": "scale the weights down"}


def check_arcs(structure: HierarchyStructure, indptr: Any, indices: Any, weights: Any) -> None:
    """Refuse NumPy arrays that are not a graph with the vertices of the structure."""
    check_graph(indptr, indices, None, weights=weights)
    n = len(structure.order)
    if len(indptr) != n + 1:
        raise ValueError(f"the graph has {len(indptr) - 1:,} vertices and the structure {n:,}; make a structure for it")


def refuse_arc(arc: int) -> None:
    """Raise the error for an arc between two vertices that no node and its front have in common."""
    raise ValueError(
        f"the structure has no room for arc {arc}; make the structure of a graph with this arc, on the same order"
    )


def lengths_of(
    tails: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    potentials: tuple[np.ndarray, np.ndarray] | None,
    n: int,
) -> np.ndarray:
    """Return the weights, made non-negative by the potentials, with `gpuops.numbers.infinity` where there is no arc."""
    dtype = weights.dtype
    there = weights != outside_infinity(dtype)
    if dtype.kind == "f" and np.isnan(weights).any():
        raise ValueError("weights contain NaN; write +inf where there is no arc")
    lengths = np.where(there, weights, dtype.type(0)).astype(np.float64 if dtype.kind == "f" else np.int64)
    if potentials is not None:
        out, into = potentials
        if out.shape != (n,) or into.shape != (n,):
            raise ValueError(
                f"potentials have shapes {out.shape} and {into.shape}; pass two for each of {n:,} vertices"
            )
        rounding = 0.0
        if dtype.kind == "f":
            rounding = _ROUNDING * max(float(np.abs(each).max(initial=0)) for each in (lengths, out, into))
        lengths = lengths + out[tails] - into[indices]
        lengths[(lengths < 0) & (lengths >= -rounding) | ~there] = 0
    if not (lengths >= 0).all():  # nor NaN, of potentials
        raise ValueError(
            "a weight is negative; pass potentials=gpuops.certificates.find_potentials(indptr, indices, weights, "
            "through)"
        )
    largest, limit = lengths.max(initial=0), distance_limit(dtype)
    if largest >= limit or (dtype.kind == "f" and float(largest) * n >= limit):
        raise OverflowError(f"a weight is {largest:.6g}, too large for distances in {dtype}; {LARGER[dtype.kind]}")
    return np.where(there, lengths, infinity(dtype)).astype(dtype) + dtype.type(0)  # -0.0 becomes +0.0

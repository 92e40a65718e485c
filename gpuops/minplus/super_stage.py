"""Several stages of blocked Floyd-Warshall on few rows at a time: a *super-stage*, for matrices larger than memory.

The pivots of a super-stage are some successive blocks K. Its *slab* is the rows of all these pivots.

1. `pass_slab`: the stages of all K on the slab alone. The row panel of each is packed and kept as it was at that stage.
2. `pass_rows`: any other rows, a *band* at a time and in any order, go through all the stages with those panels.

A row needs of the others nothing but the panels, so each entry goes through the sums and minima of the stages one after
another on the whole matrix: the same bits. The matrix passes by once a super-stage instead of once a stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.minplus import Packed, pack, packed_bytes, relax_packed
from gpuops.minplus.floyd_warshall import floyd_warshall

Pivots = slice | np.ndarray  # of a stage: a range of vertices, or some of them


class Panel(NamedTuple):
    """The row panel of a stage."""

    pivots: Pivots
    packed: Packed


def panel_bytes(stages: Sequence[Pivots], n: int, dtype: Any, gpu: bool) -> list[int]:
    """Bytes that the panel of each stage of an (n, n) matrix is kept in, on a GPU or a CPU."""
    return [packed_bytes(len(range(n)[p] if isinstance(p, slice) else p), n, dtype, gpu) for p in stages]


def pass_slab(slab: Any, first: int, stages: Sequence[Pivots], memory: Any = None) -> list[Panel]:
    """Take the rows of the pivots through their own stages, in place; returns the panel of each stage.

    Parameters
    ----------
    slab : (rows, n) array, a distance dtype
        The rows `first` to `first` + rows of the matrix, NumPy or CuPy, contiguous; no value is negative.
    stages : the pivots of each stage, vertices from `first` to `first` + rows
    memory : uint8 (sum of `panel_bytes`) array of the same library, optional
        Where to put the panels.
    """
    panels, start = [], 0
    sizes = panel_bytes(stages, slab.shape[1], slab.dtype, is_cupy(slab))
    for pivots, size in zip(stages, sizes, strict=True):
        place = None if memory is None else memory[start : start + size]
        start += size
        whole = isinstance(pivots, slice)
        own = slice(pivots.start - first, pivots.stop - first) if isinstance(pivots, slice) else pivots - first
        rows = slab[own]  # a view of a range, a copy of some
        closed = floyd_warshall(_columns(rows, pivots), nonnegative=True)
        relax_packed(rows, closed, pack(rows, True, memory=place))
        if not whole:
            slab[own] = rows
        panel = Panel(pivots, pack(rows, True, memory=place))
        panels.append(panel)
        # Where some rows of the slab are no pivots, all are updated, as they would be in one stage.
        for others in (slab[: own.start], slab[own.stop :]) if isinstance(own, slice) else (slab,):
            pass_rows(others, [panel])
    return panels


def pass_rows(rows: Any, panels: Sequence[Panel]) -> None:
    """Take other rows, (any, n), contiguous, of the library of the panels, through all their stages, in place."""
    for pivots, packed in panels:
        relax_packed(rows, _columns(rows, pivots), packed)


def _columns(rows: Any, pivots: Pivots) -> Any:
    """Those columns of some rows: a copy, so that a product's operands never overlap its result."""
    return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]

"""Several stages of blocked Floyd-Warshall on few rows at a time: a *super-stage*, for matrices larger than memory.

The pivots of a super-stage are some successive blocks K. Its *slab* is the rows of all these pivots.

1. `pass_slab`: the stages of all K on the slab alone. The row panel of each is packed and kept as it was at that stage.
2. `pass_rows`: any other rows, a *band* at a time and in any order, go through all the stages with those panels.

A row needs of the others nothing but the panels, so each entry goes through the sums and minima of the stages one after
another on the whole matrix: the same bits. The matrix passes by once a super-stage instead of once a stage.

Nor does a column of the slab need others, but for its *square*, the columns of the pivots. So several workers can take
some columns each through step 1, and the square besides, and give each other their parts of the panels (`Part`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.minplus import Packed, pack, packed_bytes, packed_columns, packed_place, packed_rows, relax_packed
from gpuops.minplus.floyd_warshall import floyd_warshall

Pivots = slice | np.ndarray  # of a stage: a range of vertices, or some of them


class Panel(NamedTuple):
    """The row panel of a stage."""

    pivots: Pivots
    packed: Packed


class Part(NamedTuple):
    """What makes columns of a slab enough: where they are in it, and its square, (rows, rows), contiguous."""

    columns: slice
    n: int
    square: Any


def pivot_count(pivots: Pivots) -> int:
    """How many pivots a stage has."""
    return pivots.stop - pivots.start if isinstance(pivots, slice) else len(pivots)


def column_parts(n: int, workers: int, dtype: Any, gpu: bool) -> list[slice]:
    """Columns for each of some workers: whole panels, about as many for each; some may be empty.

    >>> column_parts(300, 2, "float32", True)
    [slice(0, 128, None), slice(128, 300, None)]
    """
    width = packed_columns(dtype, gpu)
    panels = -(-n // width)
    cuts = [min(panels * worker // workers * width, n) for worker in range(workers + 1)]
    return [slice(*cut) for cut in pairwise(cuts)]


def panel_bytes(stages: Sequence[Pivots], n: int, dtype: Any, gpu: bool) -> list[int]:
    """Bytes that the panel of each stage of an (n, n) matrix is kept in, on a GPU or a CPU."""
    return [packed_bytes(pivot_count(pivots), n, dtype, gpu) for pivots in stages]


def pass_slab(
    slab: Any, first: int, stages: Sequence[Pivots], memory: Sequence[Any] | None = None, part: Part | None = None
) -> list[Panel]:
    """Take the rows of the pivots through their own stages, in place; returns the panel of each stage.

    Parameters
    ----------
    slab : (rows, n) array, a distance dtype
        The rows `first` to `first` + rows of the matrix, NumPy or CuPy, contiguous; no value is negative.
    stages : the pivots of each stage, vertices from `first` to `first` + rows
    memory : for each stage a uint8 (`panel_bytes`) array of the same library, optional
        Where to put the panels.
    part : of the slab, which has these columns alone then; its square is changed in place, too
        The panels lack the other columns, which are to be put into `memory` (`gpuops.minplus.packed_place`). It begins
        at a multiple of 64 bytes.
    """
    panels = []
    square, shift = (slab, 0) if part is None else (part.square, first)  # where the columns of pivots are
    for number, pivots in enumerate(stages):
        own, inside = _counted_from(first, pivots), _counted_from(shift, pivots)
        closed = floyd_warshall(_columns(square[own], inside), nonnegative=True)
        place = None if memory is None else memory[number]
        if part is None:
            packed = _close(slab, own, closed, place)
            updated = [(slab, packed)]
        else:
            assert place is not None
            at = packed_place(len(closed), part.columns, slab.dtype, is_cupy(slab))
            updated = [(square, _close(square, own, closed, None)), (slab, _close(slab, own, closed, place[at]))]
            packed = packed_rows(place, len(closed), part.n, slab.dtype, True)
        panels.append(Panel(pivots, packed))
        # Where some rows of the slab are no pivots, all are updated, as they would be in one stage.
        rest = (slice(0, own.start), slice(own.stop, None)) if isinstance(own, slice) else (slice(None),)
        for others in rest:
            before = _columns(square[others], inside)
            for columns, panel in updated:
                relax_packed(columns[others], before, panel)
    return panels


def _close(slab: Any, own: Any, closed: Any, place: Any) -> Packed:
    """The panel of a stage whose pivots are closed: their rows, which are updated, packed."""
    rows = slab[own]  # a view of a range, a copy of some
    relax_packed(rows, closed, pack(rows, True, memory=place))
    if not isinstance(own, slice):
        slab[own] = rows
    return pack(rows, True, memory=place)


def pass_rows(rows: Any, panels: Sequence[Panel]) -> None:
    """Take other rows, (any, n), contiguous, of the library of the panels, through all their stages, in place."""
    for pivots, packed in panels:
        relax_packed(rows, _columns(rows, pivots), packed)


def _counted_from(first: int, pivots: Pivots) -> Pivots:
    return slice(pivots.start - first, pivots.stop - first) if isinstance(pivots, slice) else pivots - first


def _columns(rows: Any, pivots: Pivots) -> Any:
    """Those columns of some rows: a copy, so that a product's operands never overlap its result."""
    return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]

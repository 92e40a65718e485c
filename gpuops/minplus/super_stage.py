"""Several stages of blocked Floyd-Warshall on a few rows at a time: a *super-stage*, for matrices larger than memory.

The pivots of a super-stage are the pivots of several successive blocks K. Its *slab* is the rows of all its pivots.

1. `pass_slab` runs all stages on the slab alone. The row panel of each stage is packed and kept as it is at that stage.
2. `pass_rows` runs all stages on any other rows, a *band* of rows at a time and in any order, with the kept panels.

A row depends on other rows through the panels only. So every entry goes through the same sums and minima as if the
stages ran one after another on the whole matrix, and the results are equal bit for bit. The matrix is read and written
once per super-stage instead of once per stage.

Likewise, a column of the slab depends on other columns only through the slab's *square*, the columns of its pivots. So
several workers can share step 1: each worker computes some of the columns and the whole square, and the workers
exchange their parts of the panels (`Part`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.minplus import Packed, pack, packed_bytes, packed_columns, packed_place, packed_rows, relax_packed
from gpuops.minplus.floyd_warshall import floyd_warshall

Pivots = slice | np.ndarray  # the pivots of a stage: a range of vertices, or vertices in an array


class Panel(NamedTuple):
    """The row panel of a stage: the pivots and their packed rows."""

    pivots: Pivots
    packed: Packed


class Part(NamedTuple):
    """The columns of a slab (rows, n) that one worker computes, and the slab's square (rows, rows), contiguous."""

    columns: slice
    n: int
    square: Any


def pivot_count(pivots: Pivots) -> int:
    """Return the number of pivots of a stage."""
    return pivots.stop - pivots.start if isinstance(pivots, slice) else len(pivots)


def column_parts(n: int, workers: int, dtype: Any, gpu: bool) -> list[slice]:
    """Divide n columns among workers: whole panels, about equally many for each worker; a worker may get no columns.

    The packed panels of every worker begin on a cache line, whatever the number of pivots.

    >>> column_parts(300, 2, "float32", True)
    [slice(0, 128, None), slice(128, 300, None)]
    """
    width = math.lcm(packed_columns(dtype, gpu), 64 // np.dtype(dtype).itemsize)
    panels = -(-n // width)
    cuts = [min(panels * worker // workers * width, n) for worker in range(workers + 1)]
    return [slice(*cut) for cut in pairwise(cuts)]


def panel_bytes(stages: Sequence[Pivots], n: int, dtype: Any, gpu: bool) -> list[int]:
    """Return the bytes of memory for the panel of each stage of an (n, n) matrix, on a GPU or a CPU."""
    return [packed_bytes(pivot_count(pivots), n, dtype, gpu) for pivots in stages]


def pass_slab(
    slab: Any, first: int, stages: Sequence[Pivots], memory: Sequence[Any] | None = None, part: Part | None = None
) -> list[Panel]:
    """Run the stages on the rows of their pivots, in place, and return the panel of each stage.

    Parameters
    ----------
    slab : (rows, n) array, a distance dtype
        The rows `first` to `first` + rows of the matrix, NumPy or CuPy, contiguous; no value is negative.
    stages : the pivots of each stage, vertices from `first` to `first` + rows
    memory : for each stage a uint8 (`panel_bytes`) array of the same library, optional
        Where to put the panels. With `part`, each array begins at a multiple of 64 bytes.
    part : Part, optional
        If given, `slab` has the columns of `part` only, and the square of `part` is changed in place, too. The panels
        lack the columns of other workers: copy them into `memory`, to the bytes that `gpuops.minplus.packed_place`
        returns.
    """
    panels = []
    square, shift = (slab, 0) if part is None else (part.square, first)  # the array with the columns of the pivots
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
        # If `own` is an array, other rows may lie between the pivots: update all rows, the pivots included.
        rest = (slice(0, own.start), slice(own.stop, None)) if isinstance(own, slice) else (slice(None),)
        for others in rest:
            before = _columns(square[others], inside)
            for columns, panel in updated:
                relax_packed(columns[others], before, panel)
    return panels


def _close(slab: Any, own: Any, closed: Any, place: Any) -> Packed:
    """Update the rows of the pivots by their closure `closed`, and return them packed, as the panel of the stage."""
    rows = slab[own]  # a view if `own` is a slice, a copy if it is an array
    relax_packed(rows, closed, pack(rows, True, memory=place))
    if not isinstance(own, slice):
        slab[own] = rows
    return pack(rows, True, memory=place)


def pass_rows(rows: Any, panels: Sequence[Panel]) -> None:
    """Run all stages on other rows (any, n), in place; the rows are contiguous, of the library of the panels."""
    for pivots, packed in panels:
        relax_packed(rows, _columns(rows, pivots), packed)


def _counted_from(first: int, pivots: Pivots) -> Pivots:
    return slice(pivots.start - first, pivots.stop - first) if isinstance(pivots, slice) else pivots - first


def _columns(rows: Any, pivots: Pivots) -> Any:
    """Return a copy of the columns `pivots`, so that a product's operands never overlap its result."""
    return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]

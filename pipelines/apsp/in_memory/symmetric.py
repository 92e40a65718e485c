"""Undirected graphs with integer weights: the upper half of the matrix is enough, and half of the work.

Rows are cut into strips. In each strip only the columns from the strip's first row on are kept up to date::

    strip 0    * * * *
    strip 1      * * *        the missing columns of rows T (a pivot block) are in the columns T of the strips above
    strip 2        * *
    strip 3          *

With P the row panel of a stage, D[:, T] is P transposed, so D = min(D, P' (x) P), strip by strip. Integer sums do not
round, so the results are the same as with the whole product; float sums would be bracketed differently. Only a single
worker uses symmetry: several workers would have to send each other columns as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuops import minplus_update
from pipelines.apsp.methods import Job

LEAST_ROWS = 512  # least rows of a strip: narrow strips are small products, and each strip packs its panel anew


def share_of_work(job: Job, workers: int) -> float:
    """Return the part of all relaxations that a run will do: 0.5 if symmetry halves them, else 1."""
    return 0.5 if workers == 1 and not job.graph.directed and job.dtype.kind == "i" else 1.0


def is_symmetric(matrix: Any) -> bool:
    """Return whether a square matrix of integers equals its transpose; False for floats."""
    if matrix.dtype.kind != "i":
        return False
    n, step = len(matrix), LEAST_ROWS
    return all(bool((matrix[a : a + step, a:] == matrix[a:, a : a + step].T).all()) for a in range(0, n, step))


def strips(n: int, block: int) -> Iterator[tuple[int, int]]:
    """Return the rows (start, stop) of every strip; a strip has whole blocks."""
    return ((a, min(a + _rows(block), n)) for a in range(0, n, _rows(block)))


def _rows(block: int) -> int:
    return -(-LEAST_ROWS // block) * block


def first_column(row: int, block: int) -> int:
    """Return the first column that is kept up to date in a row."""
    return row // _rows(block) * _rows(block)


def read_rows(matrix: Any, rows: Any, first: int, out: Any) -> None:
    """Write whole rows to `out`; `rows` is a slice or indices, whose columns from `first` on are up to date."""
    out[:, :first] = matrix[:first, rows].T
    out[:, first:] = matrix[rows, first:]


def relax(matrix: Any, panel: Any, block: int, settled: tuple[int, int]) -> None:
    """Update the upper half of D to min(D, P' (x) P), except the rows of `settled` (start, stop)."""
    for start, stop in strips(len(matrix), block):
        low, high = (min(max(row, start), stop) for row in settled)
        for a, z in (start, low), (high, stop):
            if a < z:
                rows = matrix[a:z, start:]
                minplus_update(rows, panel[:, a:z].T, panel[:, start:], out=rows, nonnegative=True)


def mirror(matrix: Any, block: int) -> None:
    """Fill the lower half of a matrix from its upper half."""
    for start, stop in strips(len(matrix), block):
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T

"""What a cut costs: relaxations, memory and disk."""

from __future__ import annotations

import os

import numpy as np

from pipelines.stores.boundary import Cut
from pipelines.workers.capacity import MEMORY_SHARE, DoesNotFitError, refuse_disk
from pipelines.workers.memory import available_memory
from pipelines.workers.progress import size, with_prefix

ANSWERED = 10_000  # rows of distances that a cut is to be good for


def work(cut: Cut, rows: int = ANSWERED) -> float:
    """Relaxations to close all parts and the boundary, and to answer so many rows of distances to all vertices."""
    boundary = float(cut.boundary_sizes.sum())
    return float((cut.sizes.astype(float) ** 3).sum()) + boundary**3 + min(rows, len(cut.part)) * row_work(cut)


def row_work(cut: Cut) -> float:
    """Relaxations of a row of distances to all vertices, on average."""
    n, boundary = len(cut.part), float(cut.boundary_sizes.sum())
    mean = float((cut.boundary_sizes * cut.sizes).sum()) / max(n, 1)  # boundary vertices of the part of a vertex
    return mean * (boundary + n)


def table_bytes(cut: Cut, dtype: np.dtype) -> tuple[int, int]:
    """Bytes of the tables of all parts, and of the distances between all boundary vertices."""
    p, b = (int(sizes.max(initial=1)) for sizes in (cut.sizes, cut.boundary_sizes))
    return cut.parts * p * (p + 2 * max(b, 1)) * dtype.itemsize, int(cut.boundary_sizes.sum()) ** 2 * dtype.itemsize


def describe(cut: Cut, dtype: np.dtype) -> str:
    """One line on a cut."""
    tables, among = table_bytes(cut, dtype)
    return (
        f"{cut.parts:,} parts of {int(cut.sizes.max(initial=0)):,} vertices at most, {int(cut.boundary_sizes.sum()):,}"
        f" boundary vertices; {with_prefix(work(cut, 0)).strip()} relaxations, {size(tables + among)} of tables"
    )


def refuse_what_cannot_fit(cut: Cut, dtype: np.dtype, out: str | os.PathLike[str]) -> None:
    """Raise DoesNotFitError if memory or the disk of `out` is too small."""
    tables, among = table_bytes(cut, dtype)
    free = available_memory()
    if 3 * among > MEMORY_SHARE * free:
        raise DoesNotFitError(
            f"{int(cut.boundary_sizes.sum()):,} boundary vertices need {size(3 * among)} to join {cut.parts:,} parts,"
            f" and {size(free)} are free; give fewer parts (--parts), or use searches (tilepath sssp)"
        )
    refuse_disk(tables + among, out, "give more parts (--parts)")

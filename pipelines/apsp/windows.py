"""How a matrix is cut out of core: windows of rows for the super-stages, chunk rows for the bands. Pure functions.

Rows are counted, since a device holds so many of n distances each: a slab, its panels and some bands. The wider the
window, the less often the matrix passes by. The pivot block stays what it is in memory: the bits depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

from pipelines.apsp.layout import Layout, make_layout
from pipelines.workers.saving import SAVERS

NARROWEST = 64  # rows of a band: narrower ones pack as much as they compute
STORED_COPIES = 16  # of each chunk of the result that is being written: 5, and what the allocator keeps of others
SHARES = 24  # windows that a matrix is cut into at least where several workers each do all of the slab
SQUARES = 64  # where they share it, each does its square: at most so much of the work may that be,
# but on GPUs windows are at least as wide as the lesser of this and an eighth of the matrix. With 2,048 pivots at a
# time the rows of two H100s came and went for longer than they were computed.
BESIDE, FEWEST = 4096, 8


@dataclass(frozen=True)
class Windows:
    """The cut of an n x n matrix out of core.

    Attributes
    ----------
    block : width of a pivot block
    chunk : rows of a band and of a chunk of a checkpoint, edge of the chunks of the result; a multiple of `block`, or
        a part of it
    width : rows of a window, whole blocks and whole bands
    resident : whether the host's memory holds the matrix
    registered : whether its pages are locked, so that a GPU reads and writes them directly
    sharers : workers that take the slab through its stages by columns, a part each; 1: each of them takes all of it
    """

    n: int
    block: int
    chunk: int
    width: int
    resident: bool
    registered: bool = False
    sharers: int = 1

    BANDS: ClassVar[int] = 3  # one is loaded, one computed, one stored

    @property
    def savers(self) -> int:
        """Chunks of the result that are written at a time; from the store, their copies take no more than a band."""
        return SAVERS if self.resident else max(1, min(SAVERS, self.n // (STORED_COPIES * self.chunk)))

    @property
    def layout(self) -> Layout:
        """The same blocks as in memory."""
        return Layout(self.n, self.block, self.block, 1)

    def window(self, row: int) -> tuple[int, int]:
        """The rows (start, stop) of the window of a row."""
        start = row // self.width * self.width
        return start, min(start + self.width, self.n)

    def shared_by(self, workers: int) -> Windows:
        """The cut for other workers than those it was made for.

        Where fewer are left, windows are narrower, so that a part of a slab takes no more memory, unless they are as
        narrow as they can be already.

        >>> Windows(12, 2, 2, 8, True, sharers=4).shared_by(3)
        Windows(n=12, block=2, chunk=2, width=6, resident=True, registered=False, sharers=3)
        """
        if self.sharers == 1:
            return self
        unit = max(self.block, self.chunk)
        width = max(unit, self.width * min(workers, self.sharers) // self.sharers // unit * unit)
        return replace(self, width=width, sharers=workers)

    def super_stages(self, stages: Sequence[tuple[int, int]], done: int) -> list[tuple[int, int]]:
        """The stages (first, stop) of each super-stage, from stage `done` on; there is at least one.

        >>> Windows(12, 2, 2, 4, False).super_stages([(0, 2), (2, 4), (6, 8), (10, 12)], 1)
        [(1, 2), (2, 3), (3, 4)]
        """
        groups = groupby(range(done, len(stages)), key=lambda k: self.window(stages[k][0]))
        found = [list(group) for _, group in groups]
        return [(group[0], group[-1] + 1) for group in found] or [(done, done)]


def chunks_of(n: int, block: int, itemsize: int) -> list[int]:
    """The edges a chunk may have, from the one of a run in memory down.

    >>> chunks_of(3353, 256, 4)
    [1024, 512, 256, 128, 64]
    """
    factor = make_layout(n, 1, itemsize, block).band // block
    edges = []
    while factor >= 1:
        edges.append(factor * block)
        factor //= 2
    while edges[-1] % 2 == 0 and edges[-1] // 2 >= NARROWEST:
        edges.append(edges[-1] // 2)
    return edges


def widest(cut: Windows, workers: int, gpu: bool, fits: Callable[[Windows], bool]) -> Windows | None:
    """The cut with the widest windows that fit, None if none do; its own are as narrow as they may be."""
    most = -(-cut.n // cut.width)
    if workers > 1:
        least = min(BESIDE // cut.width, most // FEWEST) if gpu else 1
        most = max(least, math.isqrt(most**2 // (SQUARES * workers)) if cut.sharers > 1 else most // SHARES)
    low, high = 0, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(replace(cut, width=middle * cut.width)) else (low, middle - 1)
    return replace(cut, width=low * cut.width) if low else None

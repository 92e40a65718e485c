"""How a square matrix is cut into pivot blocks, bands of rows and, out of core, windows of rows. Pure functions.

A *block* is a range of vertices that one stage takes as pivots. Its width decides how sums are bracketed, hence the
last bits of float results, so it depends on n alone. A *band* is a range of rows that one worker owns. It consists of
whole blocks. Bands are dealt cyclically, so that the pivots rotate among the workers. A band is a whole row of chunks
in the store, so that every chunk has one writer::

    block    0 1 | 2 3 | 4 5 | 6        n = 13, block 2, band 4, 2 workers
    band      0     1     2     3
    worker    0     1     0     1

Out of core, a *window* of rows is a slab, and the worker's bands pass through the device. Memory limits the number of
rows, of n distances each, that a device holds: a slab, its panels and some bands. The wider the windows are, the less
often the matrix passes through the device. Pivot blocks are the same as in memory, since the bits depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

from pipelines.workers.saving import SAVERS

BLOCKS = 16  # pivot blocks aimed at: closing them, b^3 relaxations each, is then 1 / BLOCKS^2 of the work
WIDEST = 2048  # rows of a pivot block at most: a row panel of 2,048 x 131,072 float32 is 1 GiB
NARROWEST = 64  # least rows of a band: packing narrower bands takes as long as computing them
STORED_COPIES = 16  # memory of a result chunk being written, in chunks: 5 copies, and freed memory of others
SHARES = 24  # least number of windows of a matrix, if several workers each compute the whole slab
SQUARES = 64  # the squares, which every worker computes if workers share slabs, are at most 1 / SQUARES of the work
# With several GPUs, SHARES and SQUARES do not limit windows to fewer than WIDE rows or 1 / FEWEST of the matrix,
# whichever is less. With 2,048 pivots at a time, two H100s took longer to move the rows than to compute them.
WIDE, FEWEST = 4096, 8


@dataclass(frozen=True)
class Layout:
    """The cut of an n x n matrix into blocks and bands.

    >>> layout = Layout(n=13, block=2, band=4, workers=2)
    >>> layout.blocks()
    [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 13)]
    >>> layout.bands(1)
    [(4, 8), (12, 13)]
    >>> layout.rows(1), layout.owner(12), layout.local(12, 13)
    (5, 1, slice(4, 5, None))
    """

    n: int
    block: int
    band: int
    workers: int

    def blocks(self) -> list[tuple[int, int]]:
        """Return the pivot blocks, (start, stop) each."""
        return [(i, min(i + self.block, self.n)) for i in range(0, self.n, self.block)]

    def bands(self, worker: int) -> list[tuple[int, int]]:
        """Return the row ranges (start, stop) that `worker` owns, in order."""
        step = self.band * self.workers
        return [(i, min(i + self.band, self.n)) for i in range(worker * self.band, self.n, step)]

    def rows(self, worker: int) -> int:
        """Return the number of rows that `worker` holds."""
        return sum(stop - start for start, stop in self.bands(worker))

    def owner(self, row: int) -> int:
        """Return the worker that owns `row`."""
        return row // self.band % self.workers

    def local(self, start: int, stop: int) -> slice:
        """Return where the rows `start` to `stop` (excluded) of one band lie among the rows that their owner holds."""
        at = start // self.band // self.workers * self.band + start % self.band
        return slice(at, at + stop - start)


def make_layout(n: int, workers: int, itemsize: int, block: int | None = None) -> Layout:
    """Cut an n x n matrix for `workers` workers.

    `itemsize` is the size of a distance in bytes; `block` overrides the width of a pivot block.

    >>> make_layout(3353, 1, 4)
    Layout(n=3353, block=256, band=1024, workers=1)
    >>> make_layout(3353, 3, 4).band, make_layout(16384, 1, 4).block, make_layout(10, 4, 4).block
    (512, 1024, 64)
    """
    if block is None:
        block = -(-n // BLOCKS)
        block = min(WIDEST, _round_up(block, 64) if block <= 1024 else _round_up(block, 1024))
    block = max(1, block)
    edge = 2048 if itemsize < 4 else 1024  # square chunks of 4 MiB and more
    band = max(block, min(_round_up(edge, block), n // (2 * workers) // block * block))
    if workers == 1:
        band = _round_up(edge, block)
    return Layout(n, block, band, workers)


def _round_up(value: int, multiple: int) -> int:
    return max(1, -(-value // multiple)) * multiple


@dataclass(frozen=True)
class Windows:
    """The cut of an n x n matrix out of core.

    Attributes
    ----------
    block : width of a pivot block
    chunk : rows of a band and of a chunk of a checkpoint, edge of the chunks of the result; a multiple of `block`, or
        a divisor of it
    width : rows of a window, in whole blocks and whole bands
    resident : whether the host's memory holds the matrix
    registered : whether the pages of the matrix are locked, so that a GPU reads and writes them directly
    sharers : number of workers that share the slab, each with some of its columns; 1 if every worker takes the whole
        slab through its stages
    """

    n: int
    block: int
    chunk: int
    width: int
    resident: bool
    registered: bool = False
    sharers: int = 1

    BANDS: ClassVar[int] = 3  # bands in memory: one loading, one computing, one storing

    @property
    def savers(self) -> int:
        """The number of result chunks that are written at a time.

        If the matrix lies in the store, copies of the chunks take no more memory than a band.
        """
        return SAVERS if self.resident else max(1, min(SAVERS, self.n // (STORED_COPIES * self.chunk)))

    @property
    def layout(self) -> Layout:
        """A layout with the pivot blocks of a run in memory."""
        return Layout(self.n, self.block, self.block, 1)

    def window(self, row: int) -> tuple[int, int]:
        """Return the rows (start, stop) of the window of a row."""
        start = row // self.width * self.width
        return start, min(start + self.width, self.n)

    def shared_by(self, workers: int) -> Windows:
        """Return the cut for another number of workers.

        With fewer workers, windows are narrower, so that a worker's part of a slab takes no more memory, unless the
        windows are as narrow as possible already.

        >>> Windows(12, 2, 2, 8, True, sharers=4).shared_by(3)
        Windows(n=12, block=2, chunk=2, width=6, resident=True, registered=False, sharers=3)
        """
        if self.sharers == 1:
            return self
        unit = max(self.block, self.chunk)
        width = max(unit, self.width * min(workers, self.sharers) // self.sharers // unit * unit)
        return replace(self, width=width, sharers=workers)

    def super_stages(self, stages: Sequence[tuple[int, int]], done: int) -> list[tuple[int, int]]:
        """Return the stages (first, stop) of each super-stage, from stage `done` on; at least one super-stage.

        >>> Windows(12, 2, 2, 4, False).super_stages([(0, 2), (2, 4), (6, 8), (10, 12)], 1)
        [(1, 2), (2, 3), (3, 4)]
        """
        groups = groupby(range(done, len(stages)), key=lambda k: self.window(stages[k][0]))
        found = [list(group) for _, group in groups]
        return [(group[0], group[-1] + 1) for group in found] or [(done, done)]


def chunks_of(n: int, block: int, itemsize: int) -> list[int]:
    """Return the edges that a chunk may have, from the edge of a run in memory downwards.

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
    """Widen `cut`, given at its narrowest, as far as `fits` and the limits for several workers allow.

    Returns None if not even `cut` fits.
    """
    most = -(-cut.n // cut.width)
    if workers > 1:
        least = min(WIDE // cut.width, most // FEWEST) if gpu else 1
        most = max(least, math.isqrt(most**2 // (SQUARES * workers)) if cut.sharers > 1 else most // SHARES)
    low, high = 0, max(1, most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(replace(cut, width=middle * cut.width)) else (low, middle - 1)
    return replace(cut, width=low * cut.width) if low else None

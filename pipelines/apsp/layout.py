"""How a square matrix is cut: pivot blocks for the stages, bands of rows for the workers. Pure functions.

A *block* is a range of vertices that one stage takes as pivots. Its width decides how sums are bracketed, hence the
last bits of float results, so it depends on n alone. A *band* is a range of rows that one worker owns. It consists of
whole blocks. Bands are dealt cyclically, so that the pivots rotate among the workers. A band is a whole row of chunks
in the store, so that every chunk has one writer::

    block    0 1 | 2 3 | 4 5 | 6        n = 13, block 2, band 4, 2 workers
    band      0     1     2     3
    worker    0     1     0     1
"""

from __future__ import annotations

from dataclasses import dataclass

BLOCKS = 16  # pivot blocks aimed at: closing them, b^3 relaxations each, is then 1 / BLOCKS^2 of the work
WIDEST = 2048  # rows of a pivot block at most: a row panel of 2,048 x 131,072 float32 is 1 GiB


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

"""How blocks share out min-plus products of small depth (minplus/strip.cuh)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpuops._cuda import Program, multiprocessors

WORDS = 4  # of a thread in a row
_TURNS = 16  # of a block, each for all its rows, where there are enough of them
_GRID = 2**16 - 1  # blocks that a grid may have downwards
_WAVES = 4  # of blocks on all multiprocessors, before a block does more than one turn


class Shape(NamedTuple):
    """How a product is shared out.

    Attributes
    ----------
    rows : int
        Of a thread: as many as registers allow, since all of them share what it reads of B.
    threads : int
        Of a block.
    blocks : int
        On a multiprocessor.
    """

    rows: int
    threads: int
    blocks: int

    def program(self, file: str, entries: tuple[str, ...], arithmetic: str) -> Program:
        """The kernels of a file, for this shape."""
        macros = (f"ARITHMETIC={arithmetic}", f"ROWS={self.rows}")
        return Program(file, entries, macros, threads=self.threads, blocks=self.blocks)

    def grid(self, strips: int, rows: int, device: int) -> tuple[tuple[int, int], np.int32]:
        """The blocks for so many strips of so many rows, and how many turns each has."""
        turns = math.ceil(rows / self.rows)
        blocks = _WAVES * self.blocks * multiprocessors(device)
        of_block = max(1, min(_TURNS, strips * turns // blocks), math.ceil(turns / _GRID))
        return (strips, math.ceil(turns / of_block)), np.int32(of_block)


SHAPES = {
    "Float32": Shape(16, 256, 2),
    "NonnegativeFloat32": Shape(16, 256, 2),
    "Float64": Shape(8, 128, 3),
    "Int32": Shape(16, 256, 2),
    "Int16": Shape(16, 256, 2),
    "NonnegativeInt16": Shape(16, 256, 2),
}

"""How min-plus products of small depth are divided among blocks (minplus/strip.cuh)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpuops._arithmetic import ARITHMETIC_NAMES
from gpuops._cuda import Program, multiprocessors

WORDS = 4  # words of a row that one thread computes
_TURNS = 16  # most turns of a block, except where the grid would exceed _GRID; a turn computes Shape.rows rows
_GRID = 2**16 - 1  # most blocks of a grid in its second dimension
_WAVES = 4  # a block does a second turn only after all multiprocessors have this many waves of blocks


class Shape(NamedTuple):
    """How a product is divided among blocks and threads.

    Attributes
    ----------
    rows : int
        Rows that a thread computes. Registers limit the number; more rows make better use of the words of B it loads.
    threads : int
        Threads of a block.
    blocks : int
        Blocks that run on a multiprocessor at once.
    """

    rows: int
    threads: int
    blocks: int

    def program(self, file: str, entries: tuple[str, ...], arithmetic: str) -> Program:
        """Declare the kernels of a file for this shape."""
        macros = (f"ARITHMETIC={arithmetic}", f"ROWS={self.rows}")
        return Program(file, entries, macros, threads=self.threads, blocks=self.blocks)

    def grid(self, strips: int, rows: int, device: int) -> tuple[tuple[int, int], np.int32]:
        """Return the grid for `strips` strips of `rows` rows each, and the number of turns of a block."""
        turns = math.ceil(rows / self.rows)
        blocks = _WAVES * self.blocks * multiprocessors(device)
        of_block = max(1, min(_TURNS, strips * turns // blocks), math.ceil(turns / _GRID))
        return (strips, math.ceil(turns / of_block)), np.int32(of_block)


SHAPES = dict.fromkeys(ARITHMETIC_NAMES, Shape(16, 256, 2)) | {"Float64": Shape(8, 128, 3)}

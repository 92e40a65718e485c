"""Where the kernels of Floyd-Warshall keep the words of a tile: in global memory, in shared memory, and in its banks.

These are the index expressions of benchmarks/kernels/staged_load.cu as Python; tests/benchmarks/test_tile_layout.py
compares them with the kernel's text. The drawings of `benchmarks.drawings` are made from them. All functions take
integers.

Doubly tiled order: the 32 x 32 tiles of a matrix follow each other row by row. So do the 4 x 4 tiles of a 32 x 32 tile,
and the 16 words of a 4 x 4 tile (B. Lund, J. W. Smith, arXiv:1001.4108, section 4.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

TILE, SMALL = 32, 4
SLICE = TILE * SMALL  # words of four rows or four columns of a tile
HALF_WARP, WARP = 16, 32


def row_of(e: int) -> int:
    """Return the row of the word at place `e` of a doubly tiled 32 x 32 tile."""
    return e // SLICE * SMALL + e % (SMALL * SMALL) // SMALL


def column_of(e: int) -> int:
    """Return the column of the word at place `e` of a doubly tiled 32 x 32 tile."""
    return e % SLICE // (SMALL * SMALL) * SMALL + e % SMALL


def place_in_rows(i: int, j: int, n: int = 4 * TILE) -> int:
    """Return the place of word (i, j) of the first tile of an (n, n) matrix whose rows follow each other."""
    return i * n + j


def place_in_tiles(i: int, j: int) -> int:
    """Return the place of word (i, j) of a doubly tiled 32 x 32 tile: the inverse of `row_of` and `column_of`."""
    return i // SMALL * SLICE + j // SMALL * SMALL * SMALL + i % SMALL * SMALL + j % SMALL


def pieces(places: Iterable[int]) -> list[int]:
    """Return the lengths of the pieces of successive places, in ascending order of the places."""
    found: list[int] = []
    before = None
    for place in sorted(places):
        if before is not None and place == before + 1:
            found[-1] += 1
        else:
            found.append(1)
        before = place
    return found


# --- Shared memory: the words that thread `t` of a block of 64 reads in a step of a stage -----------------------------


def place_of_thread(t: int) -> tuple[int, int, int]:
    """Return the 4 x 4 tile of a thread in a row of tiles, and the thread's row and column in the 4 x 4 tile."""
    return t // 16, t % 16 // SMALL, t % SMALL


def k_of_step(i: int, j: int, step: int, skew: int) -> int:
    """Return the column of `columns`, and row of `rows`, that a thread at (i, j) of its 4 x 4 tile reads in a step."""
    return (skew * (i + j) + step) % SMALL


def word_of_columns(t: int, step: int, skew: int, r: int = 0) -> int:
    """Return the place in the shared array `columns` that thread `t` reads for its words in row r of 4 x 4 tiles."""
    _, i, j = place_of_thread(t)
    return r * 16 + i * 4 + k_of_step(i, j, step, skew)


def word_of_rows(t: int, step: int, skew: int, s: int = 0) -> int:
    """Return the place in the shared array `rows` that thread `t` reads for its words in half s of a row of tiles."""
    tile, i, j = place_of_thread(t)
    return (s * 4 + tile) * 16 + k_of_step(i, j, step, skew) * 4 + j


def cycles_of_half_warp(words: Iterable[int], banks: int = 16) -> int:
    """Return the cycles in which 16 threads of a Tesla C1060 read `words` of shared memory.

    The paper's rule: one cycle if all threads read one word, or each from a bank of its own; else threads that meet in
    a bank take turns.
    """
    words = list(words)
    return 1 if len(set(words)) == 1 else max(Counter(word % banks for word in words).values())


def cycles_of_warp(words: Iterable[int], banks: int = 32) -> int:
    """Return the cycles in which 32 threads of a GPU since Fermi (2010) read `words`: threads may share any word."""
    return max(Counter(word % banks for word in set(words)).values())

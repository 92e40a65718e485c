"""Reductions on a CPU: the Numba half of `gpuops.reduction`.

The columns of a tile are adjacent in memory, so that combining two lines, or the two halves of a line, is vector code.
If a row is shorter than a line, the butterfly begins with fewer columns: missing columns would not change the result.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numba import njit

from gpuops._compiled_numba import entry
from gpuops._threads import for_all

_COLUMNS, _LINES = 256, 16
_TILE = _COLUMNS * _LINES
_TASK = 64  # tiles, or short rows, that a thread takes at a time

_SUM, _MINIMUM, _MAXIMUM, _PRODUCT = range(4)
_FOLDS = {
    "sum": _SUM,
    "minimum": _MINIMUM,
    "argmin": _MINIMUM,
    "maximum": _MAXIMUM,
    "argmax": _MAXIMUM,
    "product": _PRODUCT,
}


def empty(x: np.ndarray, size: int, dtype: np.dtype) -> np.ndarray:
    """Return an uninitialized array (size,)."""
    return np.empty(size, dtype)


def reduce(x: np.ndarray, operator: str, result: np.ndarray) -> None:
    """Reduce the rows of `x`, (rows, length) and contiguous, both at least 1, to `result`, (rows,)."""
    if operator.startswith("bitwise"):  # any order gives the same bits
        getattr(np, operator).reduce(x, axis=1, out=result)
        return
    if operator in ("all", "any"):
        getattr(np, operator)(x, axis=1, out=result)
        return
    places = operator.startswith("arg")
    levels = _levels(x, _FOLDS[operator], x.dtype if places else result.dtype)
    if places:
        _places(x, levels[0], levels[-1][:, 0], result)
    else:
        result[...] = levels[-1][:, 0]


def _levels(x: np.ndarray, operator: int, dtype: np.dtype) -> list[np.ndarray]:
    """Return the levels of the tree: the results of the tiles of x, then the results of the tiles of each level.

    Each level is an array (rows, tiles); the last level has one tile for each row.
    """
    levels: list[np.ndarray] = []
    while not levels or x.shape[1] > 1:
        tiles = np.empty((len(x), math.ceil(x.shape[1] / _TILE)), dtype)
        task = functools.partial(_fold_tiles, x, operator, _identity(operator, dtype), tiles)
        for_all(task, range(0, tiles.size, _TASK), x.size)
        levels.append(tiles)
        x = tiles
    return levels


def _identity(operator: int, dtype: np.dtype) -> Any:
    if operator == _SUM:
        return dtype.type(-0.0)  # +0.0 would turn a sum of -0.0 into +0.0
    if operator == _PRODUCT:
        return dtype.type(1)
    if dtype.kind == "f":
        return dtype.type(np.inf if operator == _MINIMUM else -np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if operator == _MINIMUM else limits.min)


@njit(nogil=True, cache=True, inline="always")
def _combine(operator, columns, line):
    """Compute ``columns = columns (operator) line``, element by element."""
    if operator == _SUM:
        for i in range(line.size):
            columns[i] += line[i]
    elif operator == _PRODUCT:
        for i in range(line.size):
            columns[i] *= line[i]
    elif operator == _MINIMUM:
        for i in range(line.size):
            value = line[i] + 0  # turns -0.0 into +0.0
            if value < columns[i] or value != value:
                columns[i] = value
    else:
        for i in range(line.size):
            value = line[i] + 0
            if value > columns[i] or value != value:
                columns[i] = value


@entry
def _fold_tiles(x, operator, identity, results, first):
    """Reduce the tiles `first`, `first` + 1, ... of x (rows, length) to `results` (rows, tiles)."""
    length, tiles = x.shape[1], results.shape[1]
    width = 1
    while width < min(length, _COLUMNS):
        width *= 2
    columns = np.empty(width, results.dtype)
    for tile in range(first, min(first + _TASK, results.size)):
        row, start = tile // tiles, tile % tiles * _TILE
        columns[:] = identity
        for line in range(start, min(start + _TILE, length), width):
            _combine(operator, columns, x[row, line : min(line + width, length)])
        half = width // 2
        while half > 0:
            _combine(operator, columns[:half], columns[half : 2 * half])
            half //= 2
        results[row, tile % tiles] = columns[0]


@entry
def _places(x, of_tiles, extremes, places):
    """Find the first place of the extreme in each row, in the first tile with this extreme."""
    for row in range(len(x)):
        extreme, tile = extremes[row], 0
        while of_tiles[row, tile] != extreme and (extreme == extreme or of_tiles[row, tile] == of_tiles[row, tile]):
            tile += 1
        place = tile * _TILE
        while x[row, place] != extreme and (extreme == extreme or x[row, place] == x[row, place]):
            place += 1
        places[row] = place

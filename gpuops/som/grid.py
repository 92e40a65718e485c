"""Grids of self-organizing maps: the positions of units, their neighbours, and how much a unit learns from a sample.

Unit u is in row u // columns and column u % columns. Neighbouring units of a row have distance 1. In a hexagonal grid
odd rows are shifted by half a unit and rows are sqrt(3)/2 apart. On a torus the offset between two positions is the
shortest one, per axis; a hexagonal torus therefore needs an even number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.options import one_of, whole

NEIGHBOURHOODS = ("gaussian", "bubble", "mexican_hat", "linear")


@dataclass(frozen=True)
class Grid:
    """A grid of units.

    Parameters
    ----------
    rows, columns : int
        At least one each; a hexagonal torus has an even number of rows.
    hexagonal : bool
        Whether the grid is hexagonal; otherwise it is rectangular.
    toroidal : bool
        Whether opposite edges are joined; otherwise the grid is planar.

    Raises
    ------
    ValueError
        A side is no whole number from 1, or there is an odd number of rows on a hexagonal torus.
    """

    rows: int
    columns: int
    hexagonal: bool = False
    toroidal: bool = False

    def __post_init__(self) -> None:
        whole("rows", self.rows, 1)
        whole("columns", self.columns, 1)
        if self.hexagonal and self.toroidal and self.rows % 2:
            raise ValueError(f"a hexagonal torus has an even number of rows, not {self.rows}: odd rows are shifted")

    @property
    def units(self) -> int:
        return self.rows * self.columns

    @property
    def row_height(self) -> float:
        return math.sqrt(3) / 2 if self.hexagonal else 1.0

    def positions(self) -> np.ndarray:
        """Return x and y of every unit, (M, 2) float64."""
        row, column = np.divmod(np.arange(self.units), self.columns)
        shift = (row % 2) / 2 if self.hexagonal else 0
        return np.stack([column + shift, row * self.row_height], axis=1)

    def row_offsets(self) -> np.ndarray:
        """Return (rows, rows) int64: entry [i, j] is the offset from row j to row i, on a torus the shortest one."""
        return self._wrapped(np.subtract.outer(np.arange(self.rows), np.arange(self.rows)), self.rows)

    def column_offsets(self, parity: int) -> np.ndarray:
        """Return (columns, columns) int64: entry [i, j] is twice the offset in x from column j to column i.

        `parity` is the parity of the row of column i less the parity of the row of column j (-1, 0 or 1).
        """
        twice = 2 * np.subtract.outer(np.arange(self.columns), np.arange(self.columns))
        return self._wrapped(twice + (parity if self.hexagonal else 0), 2 * self.columns)

    def offsets(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Return the offset in rows and twice the offset in x from units b to units a.

        Both are integer arrays of NumPy or CuPy that broadcast together.
        """
        down = self._wrapped(a // self.columns - b // self.columns, self.rows)
        twice = 2 * (a % self.columns - b % self.columns)
        if self.hexagonal:
            twice = twice + (a // self.columns % 2 - b // self.columns % 2)
        return down, self._wrapped(twice, 2 * self.columns)

    def distances(self, a: Any, b: Any) -> Any:
        """Return the Euclidean distances between units a and b on the grid, float64; 1 between neighbours in a row."""
        down, twice = self.offsets(a, b)
        return ((twice / 2) ** 2 + (down * self.row_height) ** 2) ** 0.5

    def adjacent(self, a: Any, b: Any) -> Any:
        """Return whether units a and b are neighbours or equal.

        In a rectangular grid a unit has eight neighbours, in a hexagonal grid six.
        """
        down, twice = self.offsets(a, b)
        if self.hexagonal:
            return twice * twice + 3 * down * down <= 4
        return (abs(down) <= 1) & (abs(twice) <= 2)

    def neighbours(self) -> np.ndarray:
        """Return the neighbours of every unit in ascending order, padded with -1; int32, (M, 8) or hexagonal (M, 6)."""
        around = -np.ones((self.units, 6 if self.hexagonal else 8), np.int32)
        for unit in range(self.units):
            row, column = divmod(unit, self.columns)
            near = {
                (row + i) % self.rows * self.columns + (column + j) % self.columns
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
                if self.toroidal or (0 <= row + i < self.rows and 0 <= column + j < self.columns)
            } - {unit}
            near = {other for other in near if self.adjacent(unit, other)}
            around[unit, : len(near)] = sorted(near)
        return around

    def _wrapped(self, offsets: Any, period: int) -> Any:
        """Return the offsets, on a torus modulo `period` in [-period / 2, period / 2)."""
        return (offsets + period // 2) % period - period // 2 if self.toroidal else offsets


def neighbourhood(name: str, x: Any, y: Any, sigma: float, hexagonal: bool = False) -> Any:
    """Return how much a unit learns from a sample whose best matching unit lies (x, y) away; 1 at (0, 0).

    Parameters
    ----------
    name : {"gaussian", "mexican_hat", "bubble", "linear"}
    x, y : float arrays that broadcast together
        Offsets on the grid.
    sigma : float
        Radius, above 0, in the unit of `x` and `y`.
    hexagonal : bool

    Returns
    -------
    float64 array

    Notes
    -----
    ===========  ============================================================ ==============================
    gaussian     exp(-r^2 / (2 sigma^2)),  r^2 = x^2 + y^2
    mexican_hat  (1 - r^2 / sigma^2) exp(-r^2 / (2 sigma^2))
    bubble       1 where |x| < sigma and |y| < sigma                          hexagonal: where r < sigma
    linear       (1 - |x| / sigma)+ (1 - |y| / sigma)+                        hexagonal: (1 - r / sigma)+
    ===========  ============================================================ ==============================

    On rectangular grids these functions equal the functions of MiniSom up to a factor, which cancels in an update.

    Raises
    ------
    ValueError
        There is no such neighbourhood, or `sigma` is not positive.
    """
    if hexagonal and name in ("bubble", "linear"):
        check_neighbourhood(name, sigma)
        # 4 r^2 is an integer in a hexagonal grid: with `rint`, rounding cannot move a unit across the radius sigma.
        return _radial(name, np.sqrt(np.rint(4 * (np.square(x) + np.square(y)))) / 2, sigma)
    return sum(np.multiply(f(x), g(y)) for f, g in separable(name, sigma))


def separable(name: str, sigma: float) -> list[tuple[Any, Any]]:
    """Return pairs of functions f and g: on a rectangular grid the neighbourhood is the sum of f(x) g(y) over them."""
    check_neighbourhood(name, sigma)

    def gaussian(t: Any) -> Any:
        return np.exp(np.square(t) / (-2 * sigma * sigma))

    if name == "gaussian":
        return [(gaussian, gaussian)]
    if name == "mexican_hat":
        return [
            (lambda x: gaussian(x) * (1 - np.square(x / sigma)), gaussian),
            (gaussian, lambda y: -gaussian(y) * np.square(y / sigma)),
        ]
    return [(lambda x: _radial(name, abs(x), sigma), lambda y: _radial(name, abs(y), sigma))]


def _radial(name: str, r: Any, sigma: float) -> Any:
    return np.where(r < sigma, 1.0, 0.0) if name == "bubble" else np.maximum(1 - r / sigma, 0.0)


def check_neighbourhood(name: str, sigma: float) -> None:
    """Raise ValueError if there is no such neighbourhood, or its radius is not a positive number."""
    one_of("neighbourhood", name, NEIGHBOURHOODS)
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma is {sigma}; pass a positive number of grid units")

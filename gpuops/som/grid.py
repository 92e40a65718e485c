"""Grids of self-organizing maps: where units lie, which are neighbours, how far an update reaches.

Unit u stands in row u // columns and column u % columns. Neighbouring units have distance 1. In a hexagonal grid odd
rows are shifted by half a unit and rows are sqrt(3)/2 apart. On a torus the differences of two positions are the
shortest ones, per axis, which in a hexagonal grid asks for an even number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

NEIGHBOURHOODS = ("gaussian", "bubble", "mexican_hat", "linear")


@dataclass(frozen=True)
class Grid:
    """A grid of units.

    Parameters
    ----------
    rows, columns : int
        At least one each; a hexagonal torus has an even number of rows.
    hexagonal : bool
        Else rectangular.
    toroidal : bool
        The edges are joined; else planar.

    Raises
    ------
    ValueError
        There are no units, or an odd number of rows on a hexagonal torus.
    """

    rows: int
    columns: int
    hexagonal: bool = False
    toroidal: bool = False

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise ValueError(f"a grid of {self.rows} x {self.columns} has no units")
        if self.hexagonal and self.toroidal and self.rows % 2:
            raise ValueError(f"a hexagonal torus has an even number of rows, not {self.rows}: odd rows are shifted")

    @property
    def units(self) -> int:
        return self.rows * self.columns

    @property
    def row_height(self) -> float:
        return math.sqrt(3) / 2 if self.hexagonal else 1.0

    def positions(self) -> np.ndarray:
        """(M, 2) float64: x and y of every unit."""
        row, column = np.divmod(np.arange(self.units), self.columns)
        shift = (row % 2) / 2 if self.hexagonal else 0
        return np.stack([column + shift, row * self.row_height], axis=1)

    def row_offsets(self) -> np.ndarray:
        """(rows, rows) int64: rows from the second to the first, the short way round on a torus."""
        return self._wrapped(np.subtract.outer(np.arange(self.rows), np.arange(self.rows)), self.rows)

    def column_offsets(self, parity: int) -> np.ndarray:
        """(columns, columns) int64: twice the x from the second to the first; `parity` is the first one's row's
        parity less the second one's (-1, 0 or 1)."""
        twice = 2 * np.subtract.outer(np.arange(self.columns), np.arange(self.columns))
        return self._wrapped(twice + (parity if self.hexagonal else 0), 2 * self.columns)

    def offsets(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Rows, and twice the x, from units b to units a; integer arrays of NumPy or CuPy that broadcast together."""
        down = self._wrapped(a // self.columns - b // self.columns, self.rows)
        twice = 2 * (a % self.columns - b % self.columns)
        if self.hexagonal:
            twice = twice + (a // self.columns % 2 - b // self.columns % 2)
        return down, self._wrapped(twice, 2 * self.columns)

    def distances(self, a: Any, b: Any) -> Any:
        """Euclidean distances on the grid, 1 between neighbours in a row; float64, in the shape of units a and b."""
        down, twice = self.offsets(a, b)
        return ((twice / 2) ** 2 + (down * self.row_height) ** 2) ** 0.5

    def adjacent(self, a: Any, b: Any) -> Any:
        """Are units a and b neighbours? A unit is its own. Rectangular grids have eight of them, hexagonal ones six."""
        down, twice = self.offsets(a, b)
        if self.hexagonal:
            return twice * twice + 3 * down * down <= 4
        return (abs(down) <= 1) & (abs(twice) <= 2)

    def neighbours(self) -> np.ndarray:
        """(M, 8) or, hexagonal, (M, 6) int32: the neighbours of every unit in rising order, filled up with -1."""
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
        """The representative of offsets modulo period in [-period / 2, period / 2)."""
        return (offsets + period // 2) % period - period // 2 if self.toroidal else offsets


def neighbourhood(name: str, x: Any, y: Any, sigma: float, hexagonal: bool = False) -> Any:
    """How much a unit learns from a sample whose unit lies (x, y) away; 1 at (0, 0).

    Parameters
    ----------
    name : {"gaussian", "mexican_hat", "bubble", "linear"}
    x, y : float arrays that broadcast together, in units of the grid
    sigma : float
        Reach, above 0, in units of the grid.
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

    Up to a factor, which an update divides out, those of MiniSom on rectangular grids.

    Raises
    ------
    ValueError
        There is no such neighbourhood, or `sigma` is not positive.
    """
    if hexagonal and name in ("bubble", "linear"):
        check_neighbourhood(name, sigma)
        # 4 r^2 is an integer in a hexagonal grid; so it does not depend on rounding which side of sigma a unit is on.
        return _radial(name, np.sqrt(np.rint(4 * (np.square(x) + np.square(y)))) / 2, sigma)
    return sum(np.multiply(f(x), g(y)) for f, g in separable(name, sigma))


def separable(name: str, sigma: float) -> list[tuple[Any, Any]]:
    """Functions f of x and g of y, the neighbourhood being the sum of f(x) g(y), on a rectangular grid."""
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
    """Raise ValueError if there is no such neighbourhood, or its reach is not a positive number."""
    if name not in NEIGHBOURHOODS:
        raise ValueError(f"neighbourhood is {name!r}; pass one of {', '.join(map(repr, NEIGHBOURHOODS))}")
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma is {sigma}; pass a positive number of grid units")

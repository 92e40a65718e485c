"""First codebooks of self-organizing maps: a plane through the samples, or some of the samples.

The plane is spanned by the two principal components, the greater along the longer side of the grid. Units reach from
one standard deviation below the mean to one above.

The covariance is summed up over parts of the samples, exactly. Every value is first rounded to one of 2^(b + 1) steps
around the mean of its column. Products of rounded values and their sums over a block of rows are integers below 2^53.
float64 holds such integers exactly, whichever library multiplies the matrices and in whatever order. The sums of blocks
are added as int64. So the plane is the same, to the last bit, however samples are spread. Rounding changes a value by
at most 2^-b of the range of its column (b = 20 up to 4 million samples, 16 for a billion), which is precise enough for
a first codebook. A missing value counts as the mean of its column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpuops.arrays import like
from gpuops.som.grid import Grid
from pipelines.som.shard import Piece
from pipelines.workers.device_arrays import to_host

MOST_BITS = 20  # largest b: a column has up to 2^b steps on each side of its mean


@dataclass(frozen=True, eq=False)
class Steps:
    """The rounding of values to integers.

    Attributes
    ----------
    bits : b; the farthest value of a column is 2^b steps from the centre of the column
    centres, spans : (d,) arrays, for each column its centre and the distance to its farthest value
    largest_weight : the largest weight of a sample, None if samples have no weights
    """

    bits: int
    centres: np.ndarray
    spans: np.ndarray
    largest_weight: float | None

    def rounded(self, piece: Piece) -> tuple[Any, Any, Any]:
        """Return integers in float64: values (k, d), values times weight (k, d), and weights (k)."""
        steps = 2.0**self.bits
        centres, factors = (like(piece.values, x) for x in (self.centres, steps / self.spans))
        values = ((piece.values - centres) * factors).round()
        values[values != values] = 0
        if piece.weights is None:
            return values, values, np.full(len(values), steps)
        shares = piece.weights.astype(np.float64) / self.largest_weight
        return values, (values * shares[:, None]).round(), (shares * steps).round()


class Products(NamedTuple):
    """Integer sums over samples, int64: products of columns (d, d), values (d), and weights."""

    products: np.ndarray
    values: np.ndarray
    weights: int

    def plus(self, other: Products) -> Products:
        return Products(self.products + other.products, self.values + other.values, self.weights + other.weights)


def usual_sides(n: int, rows: int | None, columns: int | None, even: bool) -> dict[str, int]:
    """Return rows and columns of a map of n samples: about 5 sqrt(n) units (Vesanto), at most n, sides in ratio 3:4.

    A given side is kept; with `even`, a number of rows that is not given becomes even.
    """
    units = min(5 * math.sqrt(n), n)
    if rows is None:
        rows = max(1, round(math.sqrt(units * 3 / 4)) if columns is None else int(units / columns))
        rows += even and rows % 2
    return {"rows": rows, "columns": columns or max(1, int(units / rows))}


def steps_for(n: int, means: Any, minima: Any, maxima: Any, largest_weight: float | None) -> Steps:
    """Return the finest steps that let no sum over n samples overflow."""
    centres = np.asarray(means, np.float64)
    spans = np.maximum(np.asarray(maxima) - centres, centres - np.asarray(minima))
    bits = min(MOST_BITS, (62 - int(n).bit_length()) // 2)
    return Steps(bits, centres, np.where(spans > 0, spans, 1.0), largest_weight)


def products_of(pieces: Iterable[Piece], steps: Steps) -> Products:
    """Return the sums over a part of the samples."""
    d = len(steps.centres)
    total = Products(np.zeros((d, d), np.int64), np.zeros(d, np.int64), 0)
    rows = 1 << (52 - 2 * steps.bits)  # 52, not 53: the farthest value may round to one step more than 2^bits
    for piece in pieces:
        for start in range(0, len(piece.values), rows):
            block = Piece(0, piece.values[start : start + rows], None)
            if piece.weights is not None:
                block = block._replace(weights=piece.weights[start : start + rows])
            values, weighted, weights = steps.rounded(block)
            total = total.plus(
                Products(
                    to_host(values.T @ weighted).astype(np.int64),
                    to_host(weighted.sum(axis=0)).astype(np.int64),
                    int(weights.sum()),
                )
            )
    return total


def principal_plane(total: Products, steps: Steps, grid: Grid, dtype: Any) -> np.ndarray:
    """Return the codebook on the plane of the two principal components.

    Parameters
    ----------
    total : Products
        Sums over all samples.
    steps : Steps
        The steps that were used to round the values.
    grid : Grid of M units
    dtype : dtype of the codebook

    Returns
    -------
    (M, d) array
    """
    one = 2.0**steps.bits
    weight = total.weights / one
    mean = total.values / weight
    covariance = (total.products + total.products.T) / 2 / weight - np.outer(mean, mean)
    covariance *= np.outer(steps.spans, steps.spans) / one**2
    variances, components = np.linalg.eigh(covariance)
    along = grid.positions()
    extents = np.ptp(along, axis=0)
    along = np.where(extents > 0, 2 * (along - along.min(axis=0)) / np.where(extents > 0, extents, 1) - 1, 0)
    units = np.tile(steps.centres + mean * steps.spans / one, (grid.units, 1))
    for axis, which in zip(np.argsort(-extents, kind="stable"), (-1, -2), strict=True):
        if -which > len(variances):
            break
        component = components[:, which]
        component = component * np.sign(component[np.argmax(abs(component))])
        units += np.outer(along[:, axis], component * np.sqrt(max(variances[which], 0.0)))
    return units.astype(dtype)


def given_codebook(given: Any, grid: Grid, d: int, dtype: Any) -> np.ndarray:
    """Return a first codebook that the user gave, (M, d), C-contiguous; ValueError if its shape or values are wrong."""
    codebook = np.array(given, dtype, order="C")
    if codebook.shape != (grid.units, d) or not np.isfinite(codebook).all():
        raise ValueError(
            f"the first codebook (initial) has the shape {codebook.shape}, or values that are not finite; this map has "
            f"{grid.units:,} units of {d} finite values"
        )
    return codebook


def random_rows(n: int, units: int, seed: int) -> np.ndarray:
    """Return distinct row numbers of n samples, int64 (units,), as drawn by `seed`; ValueError if units exceed n."""
    if units > n:
        raise ValueError(
            f"a map of {units:,} units cannot begin with {n:,} samples, a different one for each unit; "
            "take fewer units, or begin with the plane of the principal components (pca)"
        )
    # Imported here, as this import loads all generators of graphs.
    from pipelines.generators.counter_random import scramble_all, scrambler

    rows = np.arange(units, dtype=np.int64)
    scramble_all(rows, scrambler(seed, n))
    return rows


def pick(pieces: Iterable[Piece], rows: np.ndarray, means: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in `rows` that are among the pieces: their positions in `rows`, and their values.

    A missing value is replaced by the value of its column in `means`.
    """
    at, found = [np.empty(0, np.int64)], [np.empty((0, len(means)))]
    for piece in pieces:
        inside = np.flatnonzero((rows >= piece.first) & (rows < piece.first + len(piece.values)))
        values = to_host(piece.values[rows[inside] - piece.first]).astype(np.float64)
        at.append(inside)
        found.append(np.where(np.isnan(values), np.asarray(means), values))
    return np.concatenate(at), np.concatenate(found)

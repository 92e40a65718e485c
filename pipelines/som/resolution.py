"""Check that the integer sums of an epoch are fine enough for the samples.

The sums of a column are integers in units of about 2^-62 of the greatest possible sum, N times the greatest magnitude.
If one value, or an offset of all values, is 10^20 times as large as the differences between samples, these differences
are lost in the sums. Longer integers would not help: the neighbourhood spreads such a value over the whole map. So
samples are refused if the unit of the sums of a column exceeds 2^-8 of the typical difference in that column, or if the
unit of the sum of distances exceeds 2^-8 of the typical distance between samples. In samples that are accepted,
rounding moves a sample by at most a thousandth of that difference or distance (root mean square).

Typical differences are estimated from some thousand rows spread over all samples, so that a few large values do not
matter. A column with mostly tiny values, such as probabilities, has tiny differences, but its greatest values are not
far beyond the distances between samples. Such a column is accepted.

Squares of tiny values vanish, in distances and in the products of columns, so samples of tiny values are refused, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pipelines.som.epoch import MapJob

# Least greatest magnitude of samples: differences of 2^-61 of it still have squares that are normal numbers.
SMALLEST = 2.0**-450
COARSEST = 2.0**-8  # coarsest unit of sums, as a part of the typical difference between samples
FAR = 2.0**10  # a column is accepted if its greatest value is at most this many typical distances between samples
# Typical differences are estimated from `BLOCKS` blocks of up to `BLOCK_ROWS` rows, in all up to `MOST_VALUES` values.
BLOCKS, BLOCK_ROWS, MOST_VALUES = 16, 256, 1 << 22
SCANNED_VALUES = 1 << 22  # values read at a time to find the row of a value

# A function of the first and the last row (excluded): returns values (k, d), and weights (k) or None, of these rows.
Read: TypeAlias = Callable[[int, int], tuple[np.ndarray, np.ndarray | None]]


def refuse_unresolved(job: MapJob, read: Read, source: str, columns: Sequence[Any]) -> None:
    """Raise ValueError if sums cannot resolve the samples: a value or a weight is too large, or all values are tiny.

    Parameters
    ----------
    job : the map and the figures of the samples
    read : function that returns rows of the samples, on the host
    source, columns : names of the samples and of the columns; the message names the row and the column
    """
    if 0 < max(job.largest) < SMALLEST:
        raise ValueError(
            f"{source}: no value is larger than {max(job.largest):.3g}, and squares of such values vanish; multiply "
            "them, or scale the columns (scaling, --scaling)"
        )
    values, weights = _some_rows(job, read)
    apart = _distance(values)
    if not apart:
        return
    spreads = np.array([_spread(column) for column in values.T])
    largest, heaviest, weight = np.array(job.largest), 1.0, 1.0
    if weights is not None and job.largest_weight is not None:
        heaviest = job.largest_weight
        weight = float(np.median(weights[weights > 0])) if weights.any() else heaviest
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        of_sums = np.where((spreads > 0) & (largest > FAR * apart), 1 / (job.scale.sums * spreads), 0)
        of_distances = largest / apart * (2 * np.sqrt(job.d) * job.n * heaviest / 2.0**62)
    units = np.maximum(of_sums, of_distances) / weight
    k = int(units.argmax())
    if units[k] <= COARSEST:
        return
    what, typical = ("samples", apart) if of_distances[k] >= of_sums[k] else ("values of the column", spreads[k])
    if heaviest / weight > largest[k] / typical:
        row, value = _first(source, job, lambda *rows: read(*rows)[1], heaviest)
        raise ValueError(
            f"{source}: the weight of row {row} (from 0) is {value:.6g}, and most are about {weight:.3g}; sums over "
            f"{job.n:,} samples cannot hold both; bring weights to one scale"
        )
    row, value = _first(source, job, lambda *rows: read(*rows)[0][:, k], largest[k])
    raise ValueError(
        f"{source}: row {row} (from 0), column {columns[k]!r} is {value:.6g}, while most {what} differ by about "
        f"{typical:.3g}; sums over {job.n:,} samples cannot hold both. If it stands for a missing value, leave it "
        "empty and declare that (missing=True, --missing); else leave out the row or the column, or scale the columns "
        "(scaling, --scaling)"
    )


def _some_rows(job: MapJob, read: Read) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rows spread over all samples, or all rows if they are few: values in float64, and weights."""
    count = max(1, min(BLOCK_ROWS, MOST_VALUES // (BLOCKS * job.d)))
    if job.n <= BLOCKS * count:
        blocks = [read(0, job.n)]
    else:
        starts = [(job.n - count) * block // (BLOCKS - 1) for block in range(BLOCKS)]
        blocks = [read(start, start + count) for start in starts]
    weights = [weights for _, weights in blocks if weights is not None]
    values = np.concatenate([values for values, _ in blocks]).astype(np.float64)
    return values, np.concatenate(weights).astype(np.float64) if weights else None


def _distance(values: np.ndarray) -> float:
    """Return the typical distance between samples: the first quartile of the distances that are not 0.

    Each row of the first half is compared with one row of the second half.
    """
    half = len(values) // 2
    squares = np.nansum((values[:half] - values[half : 2 * half]) ** 2, axis=1)
    distances = np.sort(np.sqrt(squares[squares > 0]))
    return float(distances[(len(distances) - 1) // 4]) if len(distances) else 0.0


def _spread(column: np.ndarray) -> float:
    """Return the width of the shortest interval that holds half of the different values; 0 if all are the same."""
    different = np.unique(column[~np.isnan(column)])
    half = len(different) // 2
    return float((different[half:] - different[: len(different) - half]).min()) if half else 0.0


def _first(source: str, job: MapJob, read: Callable[[int, int], Any], magnitude: Any) -> tuple[int, float]:
    """Return the first row with a value of at least this magnitude, and the value."""
    step = max(1, SCANNED_VALUES // job.d)
    for start in range(0, job.n, step):
        values = read(start, min(start + step, job.n))
        found = np.flatnonzero(abs(values) >= magnitude)
        if len(found):
            return start + int(found[0]), float(values[found[0]])
    raise ValueError(f"{source}: no value is as large as was recorded; import the samples again")

"""Best matching units of self-organizing maps: for every sample the nearest unit of a codebook, exactly.

    u(i) = the least j that minimizes  D(x_i, w_j),      x (N, d) samples, w (M, d) codebook

D is evaluated in float64 from the values as given, one dimension after the other, with every operation rounded
separately, by the formulas of `gpuops.som.metrics`. On Euclidean maps squares are compared, and the root is reported.

So units and distances depend on the arguments alone, and a CPU and a GPU return the same bits. Evaluating all N x M
distances in this way would be slow, and nearly all evaluations are unnecessary:

1. Screen. Centre and scale samples and units, which keeps the order of distances, and compute a score S close to the
   distance, in float32 or on tensor cores. Euclidean: |w|^2 - 2 x.w, the squared distance less a constant of the
   sample. Keep only the least score of every tile of units.
2. Bound. With a = |2x| and b the greatest |w| in a tile, centred and scaled, no score of the tile is off by more than

       eps = kappa b (a + b) + rho (a + b)^2 + tiny

   kappa is the unit roundoff times the number of operations of a score, including the rounding of operands; rho is
   the same for D. Taxicab: eps = (kappa + rho) (a + b) + tiny, with sums of absolute values for norms.
   On tensor cores x and w become halves (float16) x' and w', and most scores are one product of halves. Then kappa
   covers the sums alone, and eps grows by what rounding to halves took away from this sample and this tile: with
   r = |x - x'|, R the greatest |w - w'| of the tile, and norms a >= |x| and b >= |w| + R >= |w'|,

       |x.w - x'.w'| = |x.(w - w') + (x - x').w'| <= a R + r b

   by the inequality of Cauchy and Schwarz. The bias |w|^2 and, with missing values, the squares of w are features of
   a unit as well; what they lose is added up for each tile.
   The least value of (least score + eps) over all tiles bounds the score of the best unit from above, and the second
   least value bounds the score of the second best unit.
3. Decide. Evaluate D in every tile whose least score - eps does not exceed that bound: usually in one tile to five.
   A GPU first computes the scores of the units of these tiles in float32, beginning with the tile of the least score.
   The bound on their error has the same form, with a much smaller kappa and without residuals. So the first tile
   excludes most of the others, and few units remain to be evaluated in float64.

For many samples and at most 1,024 units, one kernel of a GPU does all steps (small_map.cu): instead of tiles it bounds
quads, four units whose scores one thread has.

Chunks, threads, devices and the kind of screen change which tiles are evaluated, never the answer. Where the bound of
one product of halves keeps many tiles, as with samples far from all units, a score is made of three products instead:
x and w are sums of two halves each, and eps is about a tenth as large.

T. Kohonen, "The self-organizing map", Proceedings of the IEEE 78(9), 1990. Bounds of sums of products: N. J. Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd edition, SIAM, 2002, section 3.1. How tensor cores round: M. Fasi,
N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Comp. Science 7:e330, 2021.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._halves import half_of
from gpuops.arrays import is_cupy
from gpuops.som.grid import Grid
from gpuops.som.metrics import METRICS, check_metric

NOT_FINITE, NOTHING_PRESENT = 1, 2  # faults of a sample


def best_matching_units(
    samples: Any,
    codebook: Any,
    metric: str = "euclidean",
    top: int = 1,
    missing: bool = False,
    validate: bool = True,
) -> tuple[Any, Any]:
    """Return the nearest units of the codebook to each sample, and their distances.

    Parameters
    ----------
    samples : (N, d) array
    codebook : (M, d) array
        Both NumPy or both CuPy, both float32 or both float64; magnitudes up to 2^500.
    metric : {"euclidean", "taxicab", "cosine"}
    top : {1, 2}
        How many units to find for each sample.
    missing : bool
        Whether NaN in a sample stands for a missing value, whose dimension is left out of the sample's distances (for
        "cosine" also out of the lengths). "cosine" with missing values is slow, because there is no screen for it.
    validate : bool
        Check for values that are not finite and for samples without any value. Pass False if you know that there are
        no such samples: then the call need not wait for a GPU. On a GPU a faulty sample then gets any unit, or -1. A
        CPU always checks.

    Returns
    -------
    units : (N,) int32 array, or (N, 2) with top = 2, the nearest first
        Among units at the same distance the lowest comes first.
    distances : array of the same shape, in the dtype of the samples

    Raises
    ------
    TypeError
        Arrays of different libraries or dtypes, or of an unsupported dtype.
    ValueError
        Shapes that do not fit, an empty codebook, values that are not finite, a sample without any value.

    Examples
    --------
    >>> samples, codebook = np.array([[0.0, 0.2], [1.0, 0.9]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> units, distances = gpuops.best_matching_units(samples, codebook)
    >>> units
    array([0, 1], dtype=int32)
    """
    _check(samples, codebook)
    check_metric(metric)
    if top not in (1, 2):
        raise ValueError(f"top is {top!r}; pass 1 or 2")
    if top > len(codebook):
        raise ValueError("top is 2 and the codebook has a single unit; there is no second best")
    half = half_of("som.bmu", samples)
    units, distances, fault = half.search(samples, codebook, METRICS[metric], top, bool(missing), validate)
    if fault:
        raise ValueError(_explain(fault, bool(missing)))
    return (units[:, 0], distances[:, 0]) if top == 1 else (units, distances)


def quantization_error(distances: Any) -> float:
    """Return the mean distance of the samples to their best matching units.

    Parameters
    ----------
    distances : (N,) or (N, 2) float array
        From `best_matching_units`, with top = 1 or 2.

    Raises
    ------
    ValueError
        There are no samples.

    Examples
    --------
    >>> samples = np.array([[0.0], [0.2], [0.9], [2.1]])
    >>> codebook = np.array([[0.0], [1.0], [2.0]])  # a map of 1 x 3 units
    >>> units, distances = gpuops.best_matching_units(samples, codebook)
    >>> round(gpuops.quantization_error(distances), 3)
    0.1
    """
    nearest = distances if distances.ndim == 1 else distances[:, 0]
    if not len(nearest):
        raise ValueError("distances is empty; the error is defined for one or more samples")
    return float(nearest.mean(dtype=np.float64))


def topographic_error(units: Any, grid: Grid) -> float:
    """Return the fraction of the samples whose two nearest units are not neighbours on the grid.

    Parameters
    ----------
    units : (N, 2) integer array
        From `best_matching_units(..., top=2)`.
    grid : Grid
        In a rectangular grid a unit has eight neighbours, diagonals included, in a hexagonal grid six.

    Raises
    ------
    ValueError
        There are no samples, or `units` does not have two units for each sample.

    Examples
    --------
    >>> samples = np.array([[0.0], [0.2], [0.9], [2.1]])
    >>> codebook = np.array([[0.0], [1.0], [2.0]])  # a map of 1 x 3 units
    >>> units, _ = gpuops.best_matching_units(samples, codebook, top=2)
    >>> gpuops.topographic_error(units, gpuops.Grid(1, 3))
    0.0
    """
    if units.ndim != 2 or units.shape[1] != 2:
        raise ValueError(f"units has shape {units.shape}; find two units for each sample with top=2")
    if not len(units):
        raise ValueError("units is empty; the error is defined for one or more samples")
    return 1 - float(grid.adjacent(units[:, 0], units[:, 1]).mean(dtype=np.float64))


def error_bound(depth: int, d: int, u: float) -> tuple[float, float]:
    """Return kappa and rho (see above): scores take `depth` operations with unit roundoff u, distances float64."""
    n = depth + 4
    return 1.02 * n * u / (1 - n * u) if n * u < 0.25 else math.inf, (d + 8) * 2.0**-49


def _check(samples: Any, codebook: Any) -> None:
    for name, array in ("samples", samples), ("codebook", codebook):
        if not (isinstance(array, np.ndarray) or is_cupy(array)):
            raise TypeError(f"{name} is a {type(array).__name__}; pass a NumPy or a CuPy array")
        if array.ndim != 2:
            raise ValueError(f"{name} has {array.ndim} dimensions; pass a matrix, one row per sample or unit")
        if array.dtype not in (np.float32, np.float64):
            raise TypeError(f"{name} is {array.dtype}; convert it to float32 or float64")
    if is_cupy(samples) != is_cupy(codebook):
        raise TypeError("samples and codebook are arrays of NumPy and of CuPy; move one with cupy.asarray or .asnumpy")
    if is_cupy(samples) and samples.device != codebook.device:
        raise ValueError(f"samples is on {samples.device} and codebook on {codebook.device}; move one of them")
    if samples.dtype != codebook.dtype:
        raise TypeError(f"samples is {samples.dtype} and codebook is {codebook.dtype}; give them one dtype")
    if not len(codebook):
        raise ValueError("codebook has no units")
    if samples.shape[1] != codebook.shape[1] or not codebook.shape[1]:
        raise ValueError(
            f"samples have {samples.shape[1]} dimensions and units {codebook.shape[1]}; give both the same"
        )


def _explain(fault: tuple[str, int, int], missing: bool) -> str:
    argument, row, kind = fault
    if kind == NOTHING_PRESENT:
        return f"row {row} of samples has no value at all; leave it out"
    if argument == "samples" and not missing:
        return (
            f"row {row} of samples has a value that is infinite, not a number or beyond 2^500; pass missing=True where "
            "NaN stands for a missing value"
        )
    return f"row {row} of {argument} has a value that is infinite, not a number or beyond 2^500"

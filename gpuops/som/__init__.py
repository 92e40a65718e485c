"""Best matching units of self-organizing maps: for every sample the nearest unit of a codebook, exactly.

    u(i) = the least j that minimizes  D(x_i, w_j),      x (N, d) samples, w (M, d) codebook

D is evaluated in float64 from the values as given, one dimension after the other, every operation rounded by itself,
by the formulas of `gpuops.som.metrics`; on Euclidean maps squares are compared, and the root is reported.

So units and distances are a function of the arguments alone, and both halves return the same bits. To evaluate all of
N x M distances like that would be slow, and nearly all of it is unnecessary:

1. Screen. Centre and scale, which keeps distances in order, and find a score S close to the distance, in float32 or on
   tensor cores. Euclidean: |w|^2 - 2 x.w, the distance less a constant of the sample. Keep the least score of every
   tile of units, never a score by itself.
2. Bound. With a = |2x| and b the greatest |w| in a tile, centred and scaled, no score of the tile is off by more than

       eps = kappa b (a + b) + rho (a + b)^2 + tiny

   kappa: unit roundoff times the number of operations of a score, representation of the operands included;
   rho: the same of D. Taxicab: (kappa + rho) (a + b), with sums of absolute values.
   The least of (least score + eps) is an upper bound for the best unit; for two units the second least is one for both.
3. Decide. Evaluate D where least score - eps does not exceed that bound: nearly always in one tile.

Chunks, threads, devices and the way of screening change which tiles are looked into, never the answer.

T. Kohonen, "The self-organizing map", Proceedings of the IEEE 78(9), 1990. Bounds of sums of products: N. J. Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd edition, SIAM, 2002, section 3.1. How tensor cores round: M. Fasi,
N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Comp. Science 7:e330, 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import is_cupy
from gpuops.som import bmu_cuda, bmu_numba
from gpuops.som.grid import Grid
from gpuops.som.metrics import METRICS, check_metric


def best_matching_units(
    samples: Any,
    codebook: Any,
    metric: str = "euclidean",
    top: int = 1,
    missing: bool = False,
    validate: bool = True,
) -> tuple[Any, Any]:
    """Nearest units of the codebook and their distances.

    Parameters
    ----------
    samples : (N, d) array
    codebook : (M, d) array
        Both NumPy or both CuPy, both float32 or both float64; magnitudes up to 2^500.
    metric : {"euclidean", "taxicab", "cosine"}
    top : {1, 2}
        How many units to find for each sample.
    missing : bool
        Whether NaN in a sample means that the dimension is left out of its distances (for "cosine" also of the
        lengths). On "cosine" this skips the screen and is slow.
    validate : bool
        Look for values that are not finite and for samples without any. False, for samples known to have none, saves
        waiting for a GPU, where a sample that has some all the same gets any unit, or -1. The CPU finds them anyway.

    Returns
    -------
    units : (N,) int32 array, or (N, 2) with top = 2, the nearest first
        Among units at the same distance the lowest comes first.
    distances : array of the same shape, in the dtype of the samples

    Raises
    ------
    TypeError
        Arrays of different libraries or dtypes, or of another dtype.
    ValueError
        Shapes that do not fit, an empty codebook, values that are not finite, a sample without any value.
    """
    _check(samples, codebook)
    check_metric(metric)
    if top not in (1, 2):
        raise ValueError(f"top is {top!r}; pass 1 or 2")
    if top > len(codebook):
        raise ValueError("top is 2 and the codebook has a single unit; there is no second best")
    half = bmu_cuda if is_cupy(samples) else bmu_numba
    units, distances, fault = half.search(samples, codebook, METRICS[metric], top, bool(missing), validate)
    if fault:
        raise ValueError(_explain(fault, bool(missing)))
    return (units[:, 0], distances[:, 0]) if top == 1 else (units, distances)


def quantization_error(distances: Any) -> float:
    """Mean distance of the samples to their units, in the units of the samples.

    Parameters
    ----------
    distances : (N,) or (N, 2) float array
        From `best_matching_units`, with top = 1 or 2.

    Raises
    ------
    ValueError
        There are no samples.
    """
    nearest = distances if distances.ndim == 1 else distances[:, 0]
    if not len(nearest):
        raise ValueError("distances is empty; the error of no samples is not defined")
    return float(nearest.mean(dtype=np.float64))


def topographic_error(units: Any, grid: Grid) -> float:
    """Fraction of the samples whose two nearest units are not neighbours on the grid.

    Parameters
    ----------
    units : (N, 2) integer array
        From `best_matching_units(..., top=2)`.
    grid : Grid
        Rectangular grids count diagonal neighbours too, hexagonal ones have six.

    Raises
    ------
    ValueError
        There are no samples, or not two units for each.
    """
    if units.ndim != 2 or units.shape[1] != 2:
        raise ValueError(f"units has shape {units.shape}; find two units for each sample with top=2")
    if not len(units):
        raise ValueError("units is empty; the error of no samples is not defined")
    return 1 - float(grid.adjacent(units[:, 0], units[:, 1]).mean(dtype=np.float64))


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
    if kind == bmu_numba.NOTHING_PRESENT:
        return f"row {row} of samples has no value at all; leave it out"
    if argument == "samples" and not missing:
        return (
            f"row {row} of samples has a value that is infinite, not a number or beyond 2^500; pass missing=True where "
            "NaN stands for a missing value"
        )
    return f"row {row} of {argument} has a value that is infinite, not a number or beyond 2^500"

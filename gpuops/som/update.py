"""Learning of a codebook: from the sums of the samples of every unit (batch), or one sample after the other (online).

Batch, one epoch (T. Kohonen; J. Vesanto et al., "SOM Toolbox for Matlab 5", 2000, equation 9):

    S_j = sum of the samples whose best matching unit is j,   n_j = their number               `unit_sums`
    w_i = sum over j of h_ij S_j  /  sum over j of h_ij n_j                                    `smooth`

h is the neighbourhood. S and n are sums of many numbers, in an order that depends on chunks and workers. So integers
are added: every sample is multiplied by a power of two and rounded. Integer sums are exact, and equal for every order.
Rounding changes a value by at most 2^-55 of the greatest possible sum of its column, whatever the magnitude of other
columns: every column has its power of two, in steps of 2^8, so that columns of similar magnitude share a power.

Smoothing also adds in a fixed order, row by row of the grid, so that a CPU and a GPU get the same bits. Where the
neighbourhood is separable, smoothing takes rows x columns x (rows + columns) steps.

Online: w_i += rate h_i,u(x) (x - w_i) for one sample x at a time; every step depends on the step before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops._halves import half_of, half_on
from gpuops.arrays import is_cupy, library_of, like, on_host
from gpuops.som.grid import NEIGHBOURHOODS, Grid, check_neighbourhood, neighbourhood, separable
from gpuops.som.metrics import METRICS, check_metric

# Denominators up to this count as 0: so close to the smallest float64 they consist mostly of rounding.
_LEAST_DENOMINATOR = 2.0**-960

UNIT_STEP = 8  # the units of two columns differ by a power of 2^8


class FixedPoint(NamedTuple):
    """Units of the integer sums, and the bounds on values and weights within which no sum overflows.

    `sums` and `counts` are the units of sums and of weighted counts, powers of two. `sums` and `largest` are float64,
    (d,), or 0-d if all columns have the same unit.
    """

    sums: np.ndarray
    counts: float
    largest: np.ndarray
    largest_weight: float

    def columns(self, d: int) -> np.ndarray:
        """Return the units of the sums and the bounds of the values for d columns, (2, d) float64."""
        if self.sums.shape not in ((), (d,)):
            raise ValueError(f"the scale has units for {len(self.sums)} columns, but the samples have {d}")
        result = np.empty((2, d))
        result[0], result[1] = self.sums, self.largest
        return result


def fixed_point(total: float, largest: Any, largest_weight: float | None = None) -> FixedPoint:
    """Return units in which no sum overflows.

    The column of the greatest values has the finest such unit, other columns a unit up to 2^7 coarser than the finest.

    Parameters
    ----------
    total : float
        Number of samples in all chunks whose sums will be added.
    largest : float or (d,) array
        Bound on the absolute values of samples, for all columns or for each column.
    largest_weight : float, optional
        Bound on the weights; None if samples have no weights.

    Raises
    ------
    ValueError
        A bound is negative or not finite, or the greatest sum overflows.

    Examples
    --------
    >>> scale = gpuops.fixed_point(total=1000, largest=10.0)
    >>> np.log2(scale.sums).item()  # values are multiplied by 2^48 and rounded
    48.0
    """
    largest = np.asarray(largest, np.float64)
    bounds = {"total": total, "largest": largest, "largest_weight": 1 if largest_weight is None else largest_weight}
    for name, bound in bounds.items():
        if not (np.isfinite(bound) & np.greater_equal(bound, 0)).all():
            raise ValueError(f"{name} is {bound}; pass a finite bound that is not negative")
    weight = float(bounds["largest_weight"])

    def units(bound: Any) -> np.ndarray:
        with np.errstate(over="ignore"):
            greatest = np.asarray(total * bound)
        if not np.isfinite(greatest).all():
            raise ValueError("total x largest x largest_weight overflows; pass smaller values or weights")
        positive = greatest > 0
        if not positive.any():
            return np.ones_like(greatest)
        exponents = np.frexp(greatest)[1]
        overall = exponents.max(where=positive, initial=exponents.min())
        finer = np.where(positive, overall - exponents, 0) // UNIT_STEP * UNIT_STEP
        return np.ldexp(1.0, np.minimum(62 - overall + finer, 1000))

    with np.errstate(over="ignore"):
        heaviest = largest * weight
    return FixedPoint(units(heaviest), 1.0 if largest_weight is None else float(units(weight)), largest, weight)


def unit_sums(
    samples: Any,
    units: Any,
    count: int,
    weights: Any = None,
    missing: bool = False,
    scale: FixedPoint | None = None,
    validate: bool = True,
) -> tuple[Any, Any]:
    """Return the sum and the number of the samples of every unit, the same bits for every order of the samples.

    Parameters
    ----------
    samples : (N, d) float32 or float64 array
    units : (N,) int32 array
        Of the same library, from `best_matching_units`.
    count : int
        M, the number of units.
    weights : (N,) array of the dtype of the samples, optional
        Not negative.
    missing : bool
        Whether NaN in a sample stands for a missing value.
    scale : FixedPoint, optional
        None: the results are in float64. Otherwise they are integers in the units of `scale`, and the results of
        several chunks may be added; divide by `scale.sums` and `scale.counts` at the end (`from_fixed_point`).
    validate : bool
        Check for the faults listed under ValueError. Pass False if you know that there are none: then the call need not
        wait for a GPU. On a GPU faulty values are then left out of the sums. A CPU always checks.

    Returns
    -------
    sums : (M, d) float64, or int64 with `scale`
    counts : (M,), or (M, d) with `missing`, of the same dtype; int64 counts without weights are in units of 1

    Raises
    ------
    TypeError
        Arrays of different libraries, or of a dtype or shape that does not fit.
    ValueError
        A value that is not finite or beyond the bound of `scale`, a negative weight, a unit that does not exist.

    Examples
    --------
    >>> samples = np.array([[0.0], [0.2], [0.9], [2.1]])
    >>> codebook = np.array([[0.0], [1.0], [2.0]])  # a map of 1 x 3 units
    >>> units, distances = gpuops.best_matching_units(samples, codebook)
    >>> sums, counts = gpuops.unit_sums(samples, units, 3)
    >>> sums.ravel(), counts
    (array([0.2, 0.9, 2.1]), array([2., 1., 1.]))
    """
    if samples.ndim != 2 or samples.dtype not in (np.float32, np.float64):
        raise TypeError(f"samples is {samples.dtype} in {samples.ndim} dimensions; pass a matrix of float32 or float64")
    if units.shape != samples.shape[:1] or units.dtype != np.int32:
        raise TypeError(f"units is {units.dtype} {units.shape}; pass int32 {samples.shape[:1]}, one for each sample")
    if weights is not None and (weights.shape != units.shape or weights.dtype != samples.dtype):
        raise TypeError(f"weights is {weights.dtype} {weights.shape}; pass {samples.dtype} {units.shape}")
    for name, array in ("units", units), ("weights", weights):
        if array is not None and is_cupy(array) != is_cupy(samples):
            raise TypeError(f"samples and {name} are arrays of NumPy and of CuPy; move one of them")
    units_of_sums = scale or _scale_for(samples, weights)
    half = half_of("som.update", samples)
    sums, counts, fault = half.accumulate(samples, units, count, weights, bool(missing), units_of_sums, validate)
    if fault is not None:
        raise ValueError(
            f"row {fault}: a value or its weight is not finite, negative (weights), or beyond the bounds of the scale, "
            f"or its unit is not one of {count}"
        )
    return (sums, counts) if scale else from_fixed_point(sums, counts, units_of_sums)


def from_fixed_point(sums: Any, counts: Any, scale: FixedPoint) -> tuple[Any, Any]:
    """Return sums and counts in float64, from the results of `unit_sums` with a scale.

    Parameters
    ----------
    sums : (M, d) int64 array
        The sums of one chunk of samples, or the total of several chunks.
    counts : (M,) or (M, d) int64 array
    scale : FixedPoint
        The scale of all chunks.

    Returns
    -------
    sums, counts : float64 arrays of the same shapes

    Examples
    --------
    >>> samples = np.array([[0.0], [0.2], [0.9], [2.1]])
    >>> codebook = np.array([[0.0], [1.0], [2.0]])  # a map of 1 x 3 units
    >>> units, distances = gpuops.best_matching_units(samples, codebook)
    >>> scale = gpuops.fixed_point(len(samples), abs(samples).max())
    >>> first = gpuops.unit_sums(samples[:2], units[:2], 3, scale=scale)
    >>> second = gpuops.unit_sums(samples[2:], units[2:], 3, scale=scale)
    >>> sums, counts = gpuops.from_fixed_point(first[0] + second[0], first[1] + second[1], scale)
    >>> sums.round(6).ravel(), counts
    (array([0.2, 0.9, 2.1]), array([2., 1., 1.]))
    """
    return sums * like(sums, 1 / scale.sums), counts * (1 / scale.counts)  # exact: units are powers of two


def _scale_for(samples: Any, weights: Any) -> FixedPoint:
    def greatest(x: Any) -> np.ndarray:
        if not len(x):
            return np.zeros(x.shape[1:])
        magnitudes = abs(x)
        finite = magnitudes <= np.finfo(x.dtype).max  # other values are faults, which `accumulate` finds
        found = library_of(x).where(finite, magnitudes, 0).max(axis=0)
        return on_host(found)

    heaviest = None if weights is None else float(greatest(weights))
    return fixed_point(max(len(samples), 1), greatest(samples), heaviest)


def smooth(sums: Any, counts: Any, codebook: Any, grid: Grid, sigma: float, kernel: str = "gaussian") -> Any:
    """Return the codebook after one epoch of batch learning.

    Parameters
    ----------
    sums : (M, d) float64 array
    counts : (M,) or (M, d) float64 array
        From `unit_sums`.
    codebook : (M, d) array
        The weights before the epoch. A unit keeps its weights if no sample reaches it, that is, if its sum of h n is
        not positive (mexican hat: not greater than rounding errors); with counts (M, d), so does each dimension.
    grid : Grid
    sigma : float
        Radius of the neighbourhood, as a distance on the grid.
    kernel : {"gaussian", "bubble", "mexican_hat", "linear"}
        See `gpuops.som.grid.neighbourhood`.

    Returns
    -------
    (M, d) array in the dtype of `codebook`

    Raises
    ------
    ValueError
        Shapes do not fit the grid, there is no such kernel, or `sigma` is not positive.

    Examples
    --------
    >>> samples = np.array([[0.0], [0.2], [0.9], [2.1]])
    >>> codebook = np.array([[0.0], [1.0], [2.0]])  # a map of 1 x 3 units
    >>> units, distances = gpuops.best_matching_units(samples, codebook)
    >>> sums, counts = gpuops.unit_sums(samples, units, 3)
    >>> gpuops.smooth(sums, counts, codebook, gpuops.Grid(1, 3), sigma=0.5).round(2).ravel()
    array([0.15, 0.86, 1.96])
    """
    check_neighbourhood(kernel, sigma)
    if sums.shape != codebook.shape or len(codebook) != grid.units:
        raise ValueError(
            f"sums has shape {sums.shape} and codebook {codebook.shape}; the grid has {grid.units} units, one row each"
        )
    if counts.shape not in (sums.shape, sums.shape[:1]):
        raise ValueError(f"counts has shape {counts.shape}; with sums {sums.shape} pass that, or one for each unit")
    both = library_of(sums).concatenate([sums, counts.reshape(len(counts), -1)], axis=1)
    mixed = spread(both, grid, sigma, kernel)
    if kernel == "mexican_hat":  # its terms cancel: a sum within rounding of 0 counts as 0
        columns = sums.shape[1]
        terms = spread(both[:, columns:], grid, sigma, "gaussian")
        denominators = mixed[:, columns:]
        denominators[denominators <= (grid.rows + grid.columns + 8) * 2.0**-51 * terms] = 0
    return half_of("som.update", sums).means(mixed, codebook, _LEAST_DENOMINATOR)


def spread(values: Any, grid: Grid, sigma: float, kernel: str) -> Any:
    """Return the sums over j of h_ij values_j, (M, c) float64; every device adds in the same order of j."""
    mix = half_of("som.update", values).mix
    by_row = values.astype(np.float64, copy=False).reshape(grid.rows, grid.columns, -1)
    if grid.hexagonal and kernel in ("bubble", "linear"):
        result = _spread_by_row_distance(mix, by_row, grid, sigma, kernel)
    elif grid.hexagonal and grid.rows > 1:
        result = _zeros_like(by_row)
        for f, g in separable(kernel, sigma):
            _add_hexagonal(mix, by_row, grid, f, g, result)
    else:
        result = None
        for f, g in separable(kernel, sigma):
            along = mix(f(grid.column_offsets(0) / 2), by_row)
            result = mix(g(grid.row_offsets() * grid.row_height), along.reshape(1, grid.rows, -1), result)
    return result.reshape(grid.units, -1)


def _add_hexagonal(mix: Any, values: Any, grid: Grid, f: Any, g: Any, result: Any) -> None:
    """Add the sums over j of f(x) g(y) values_j to `result`: along rows, then across, for even and odd rows apart."""
    down = g(grid.row_offsets() * grid.row_height)
    for parity in 0, 1:
        along = _zeros_like(values)
        for other in 0, 1:
            x = grid.column_offsets(parity - other) / 2
            along[other::2] = mix(f(x), values[other::2])
        target = result[parity::2].reshape(1, -1, along[0].size)
        mixed = mix(down[parity::2], along.reshape(1, grid.rows, -1), target)
        result[parity::2] = mixed.reshape(result[parity::2].shape)


def _spread_by_row_distance(mix: Any, values: Any, grid: Grid, sigma: float, kernel: str) -> Any:
    """Return the sums over j of h_ij values_j, one offset between rows at a time, without rows beyond the radius."""
    result = _zeros_like(values)
    offsets = grid.row_offsets()
    for offset in np.unique(offsets).tolist():
        y = offset * grid.row_height
        if abs(y) >= sigma:
            continue
        for parity in 0, 1:
            to_rows, from_rows = np.nonzero(offsets == offset)
            chosen = to_rows % 2 == parity
            to_rows, from_rows = to_rows[chosen], from_rows[chosen]
            if not len(to_rows):
                continue
            x = grid.column_offsets(int(parity - from_rows[0] % 2)) / 2
            to_rows, from_rows = like(values, to_rows), like(values, from_rows)
            h = neighbourhood(kernel, x, y, sigma, hexagonal=True)
            result[to_rows] = mix(h, values[from_rows], result[to_rows])
    return result


def train_online(
    codebook: np.ndarray,
    samples: np.ndarray,
    order: Any,
    grid: Grid,
    sigmas: Any,
    rates: Any,
    kernel: str = "gaussian",
    metric: str = "euclidean",
    missing: bool = False,
) -> np.ndarray:
    """Return the codebook after one step of online learning for each entry of `order`.

    Parameters
    ----------
    codebook : (M, d) NumPy array
    samples : (N, d) NumPy array
        Training runs on the CPU: every step depends on the step before, and M x d differences are too few for a GPU.
    order : (T,) integers
        Rows of `samples`.
    grid : Grid
    sigmas, rates : (T,) floats, or a float
        Radius of the neighbourhood and learning rate at each step.
    kernel, metric, missing
        As for `smooth` and `best_matching_units`.

    Returns
    -------
    (M, d) array in the dtype of `codebook`; the work is done in float64.

    Raises
    ------
    TypeError
        Arrays are not NumPy's.
    ValueError
        Shapes do not fit the grid, `order` names rows that do not exist, there is no such kernel or metric, a radius is
        not positive, or values are not finite.

    Examples
    --------
    >>> samples = np.array([[0.0], [0.2], [0.9], [2.1]])
    >>> codebook = np.array([[0.0], [1.0], [2.0]])  # a map of 1 x 3 units
    >>> trained = gpuops.train_online(codebook, samples, [0, 3], gpuops.Grid(1, 3), sigmas=0.5, rates=0.1)
    >>> trained.round(2).ravel()
    array([0.  , 1.  , 2.01])
    """
    for name, array in ("codebook", codebook), ("samples", samples):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name} is not a NumPy array; online training runs on the CPU: use cupy.asnumpy")
    if codebook.ndim != 2 or len(codebook) != grid.units or samples.ndim != 2 or samples.shape[1] != codebook.shape[1]:
        raise ValueError(
            f"codebook has shape {codebook.shape} and samples {samples.shape}; the grid has {grid.units} units, "
            "one row each, and samples have the dimensions of units"
        )
    order = np.asarray(order, np.int64)
    sigmas, rates = (np.broadcast_to(np.asarray(x, np.float64), order.shape) for x in (sigmas, rates))
    if order.size and not (order.min() >= 0 and order.max() < len(samples)):
        raise ValueError(f"order names rows that do not exist; samples has {len(samples)} rows")
    for sigma in (sigmas.min(), sigmas.max()) if sigmas.size else ():
        check_neighbourhood(kernel, float(sigma))
    check_metric(metric)
    if not (missing or np.isfinite(samples).all()):
        raise ValueError(
            "samples have values that are not finite; pass missing=True where NaN stands for a missing one"
        )
    return half_on("som.update", gpu=False).learn(
        codebook, samples, order, grid, sigmas, rates, NEIGHBOURHOODS.index(kernel), METRICS[metric]
    )


def _zeros_like(values: Any) -> Any:
    zeros = values.copy()
    zeros[...] = 0
    return zeros

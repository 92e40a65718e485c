"""Learning of self-organizing maps on the CPU: the Numba half of `gpuops.som.update`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops._compiled_numba import entry, inner
from gpuops._threads import for_all
from gpuops.som.grid import Grid
from gpuops.som.metrics import COSINE, EUCLIDEAN, TAXICAB

_TASKS = 16  # ranges of units, each added up by one thread
_WIDTH = 512  # columns that are mixed at a time: four rows of the result (16 KiB) stay in the first-level cache
_ROWS = 4  # rows that are mixed at a time
_GAUSSIAN, _BUBBLE, _MEXICAN_HAT, _LINEAR = range(4)


def accumulate(samples: Any, units: Any, count: int, weights: Any, missing: bool, scale: Any, validate: bool) -> Any:
    """Return sums (M, d) and counts (M,) or (M, d) in fixed point, int64, and the first row at fault, or None.

    Faults are found in any case, also without `validate`.
    """
    d = samples.shape[1]
    sums, counts = np.zeros((count, d), np.int64), np.zeros((count, d if missing else 1), np.int64)
    weighted = weights is not None
    weights = weights if weighted else np.ones(0, samples.dtype)
    tasks = min(_TASKS, max(count, 1))
    edges = [count * task // tasks for task in range(tasks + 1)]
    faults = []
    bounds = *scale.columns(d), scale.counts, scale.largest_weight

    def add(task: int) -> None:
        fault = _accumulate(
            samples, units, weights, weighted, missing, *bounds, sums, counts, edges[task], edges[task + 1]
        )
        if fault >= 0:
            faults.append(fault)

    outside = (units < 0) | (units >= count)
    if outside.any():
        faults.append(int(outside.argmax()))
    for_all(add, range(tasks), 4 * samples.size)
    return sums, counts if missing else counts[:, 0], min(faults, default=None)


@entry
def _accumulate(
    samples, units, weights, weighted, missing, unit, largest, count_unit, largest_weight, sums, counts, first, last
):
    """Add up the samples of units `first` to `last` - 1; return the first row at fault, or -1."""
    n, d = samples.shape
    for i in range(n):
        u = units[i]
        if u < first or u >= last:
            continue
        weight, number = 1.0, np.int64(1)
        if weighted:
            weight = np.float64(weights[i])
            if not 0 <= weight <= largest_weight:
                return i
            number = np.int64(np.rint(weight * count_unit))
        if not missing:
            counts[u, 0] += number
        for k in range(d):
            x = np.float64(samples[i, k])
            if missing:
                if x != x:
                    continue
                counts[u, k] += number
            if not abs(x) <= largest[k]:
                return i
            sums[u, k] += np.int64(np.rint(x * weight * unit[k]))
    return -1


def mix(h: np.ndarray, values: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return start[b, i, :] (or 0) + sum over j, in order, of h[i, j] values[b, j, :]; all arrays are float64."""
    values = np.ascontiguousarray(values)
    h = np.ascontiguousarray(h, np.float64)
    if start is None:
        result = np.zeros((values.shape[0], h.shape[0], values.shape[2]))
    else:
        result = np.array(start, np.float64, order="C")
    pieces = [
        (b, i, c)
        for b in range(result.shape[0])
        for i in range(0, result.shape[1], _ROWS)
        for c in range(0, result.shape[2], _WIDTH)
    ]
    groups = [pieces[first : first + 64] for first in range(0, len(pieces), 64)]

    def mix_group(group: list[Any]) -> None:
        _mix(h, values, result, np.array(group))

    for_all(mix_group, groups, result.size * h.shape[1])
    return result


@entry
def _mix(h, values, result, pieces):
    """Add products to four rows of the result at a time, four products to each; parentheses keep their order."""
    rows, depth = h.shape
    f = np.zeros((_ROWS, 4))
    spare = np.zeros(_WIDTH)
    for b, first, left in pieces:
        width = min(_WIDTH, result.shape[2] - left)
        out0 = result[b, first, left : left + width]
        out1 = result[b, first + 1, left : left + width] if first + 1 < rows else spare[:width]
        out2 = result[b, first + 2, left : left + width] if first + 2 < rows else spare[:width]
        out3 = result[b, first + 3, left : left + width] if first + 3 < rows else spare[:width]
        for j in range(0, depth, 4):
            f[:] = 0.0
            for i in range(min(_ROWS, rows - first)):
                for p in range(min(4, depth - j)):
                    f[i, p] = h[first + i, j + p]
            if not f.any():
                continue
            last = depth - 1  # beyond the last row, factors are 0
            v0 = values[b, j, left : left + width]
            v1 = values[b, min(j + 1, last), left : left + width]
            v2 = values[b, min(j + 2, last), left : left + width]
            v3 = values[b, min(j + 3, last), left : left + width]
            a0, a1, a2, a3 = f[0, 0], f[0, 1], f[0, 2], f[0, 3]
            b0, b1, b2, b3 = f[1, 0], f[1, 1], f[1, 2], f[1, 3]
            c0, c1, c2, c3 = f[2, 0], f[2, 1], f[2, 2], f[2, 3]
            d0, d1, d2, d3 = f[3, 0], f[3, 1], f[3, 2], f[3, 3]
            for c in range(width):
                x0, x1, x2, x3 = v0[c], v1[c], v2[c], v3[c]
                out0[c] = (((out0[c] + a0 * x0) + a1 * x1) + a2 * x2) + a3 * x3
                out1[c] = (((out1[c] + b0 * x0) + b1 * x1) + b2 * x2) + b3 * x3
                out2[c] = (((out2[c] + c0 * x0) + c1 * x1) + c2 * x2) + c3 * x3
                out3[c] = (((out3[c] + d0 * x0) + d1 * x1) + d2 * x2) + d3 * x3


def means(mixed: np.ndarray, codebook: np.ndarray, least: float) -> np.ndarray:
    """Return the first d columns of `mixed` (M, d + 1 or 2 d) divided by its last 1 or d columns.

    Where the divisor is `least` or less, return the entry of `codebook`.
    """
    d = codebook.shape[1]
    numerators, denominators = mixed[:, :d], mixed[:, d:]
    reached = denominators > least
    quotients = numerators / np.where(reached, denominators, 1.0)
    return np.where(reached, quotients, codebook).astype(codebook.dtype)


def learn(
    codebook: np.ndarray,
    samples: np.ndarray,
    order: np.ndarray,
    grid: Grid,
    sigmas: np.ndarray,
    rates: np.ndarray,
    kernel: int,
    metric: int,
) -> np.ndarray:
    """Return the codebook after one step for each entry of `order`; arguments are checked."""
    w = np.array(codebook.T, np.float64, order="C")
    shape = (grid.rows, grid.columns, grid.hexagonal, grid.toroidal)
    fault = _learn(w, np.ascontiguousarray(samples), order, *shape, sigmas.copy(), rates.copy(), kernel, metric)
    if fault >= 0:
        raise ValueError(f"row {fault} of samples has no value at all, or an infinite one; leave it out")
    return np.ascontiguousarray(w.T.astype(codebook.dtype))


@entry
def _learn(w, samples, order, rows, columns, hexagonal, toroidal, sigmas, rates, kernel, metric):
    d, m = w.shape
    distance, square = np.empty(m), np.empty(m)
    reach = np.empty(m)
    height = math.sqrt(3.0) / 2 if hexagonal else 1.0
    for step in range(order.size):
        x = samples[order[step]]
        distance[:] = 0.0
        square[:] = 0.0
        present, length = 0, 0.0
        for k in range(d):
            value = np.float64(x[k])
            if value != value:
                continue
            if abs(value) == np.inf:
                return order[step]
            present += 1
            length += value * value
            row = w[k]
            if metric == EUCLIDEAN:
                for j in range(m):
                    distance[j] += (value - row[j]) * (value - row[j])
            elif metric == TAXICAB:
                for j in range(m):
                    distance[j] += abs(value - row[j])
            else:
                for j in range(m):
                    distance[j] += value * row[j]
                    square[j] += row[j] * row[j]
        if present == 0:
            return order[step]
        if metric == COSINE:
            for j in range(m):
                product = math.sqrt(length) * math.sqrt(square[j])
                distance[j] = max(1.0 - distance[j] / product, 0.0) if product > 0 else 1.0
        unit = np.argmin(distance)
        sigma, rate = sigmas[step], rates[step]
        for j in range(m):
            down = unit // columns - j // columns
            twice = 2 * (unit % columns - j % columns)
            if hexagonal:
                twice += unit // columns % 2 - j // columns % 2
            if toroidal:
                down = (down + rows // 2) % rows - rows // 2
                twice = (twice + columns) % (2 * columns) - columns
            reach[j] = rate * _neighbourhood(kernel, abs(twice / 2), abs(down * height), sigma, hexagonal)
        for k in range(d):
            value = np.float64(x[k])
            if value == value:
                row = w[k]
                for j in range(m):
                    row[j] += reach[j] * (value - row[j])
    return -1


@inner
def _neighbourhood(kernel, x, y, sigma, hexagonal):
    """Return `gpuops.som.grid.neighbourhood` of two scalars that are not negative."""
    square = (x * x + y * y) / (sigma * sigma)
    if kernel == _GAUSSIAN:
        return math.exp(square / -2)
    if kernel == _MEXICAN_HAT:
        return math.exp(square / -2) * (1 - square)
    if hexagonal:
        r = math.sqrt(np.rint(4 * (x * x + y * y))) / 2
        return (1.0 if r < sigma else 0.0) if kernel == _BUBBLE else max(1 - r / sigma, 0.0)
    if kernel == _BUBBLE:
        return 1.0 if x < sigma and y < sigma else 0.0
    return max(1 - x / sigma, 0.0) * max(1 - y / sigma, 0.0)

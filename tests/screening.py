"""What the kernels of a search for best matching units tell each other, and the bound on the error of a score."""

from types import SimpleNamespace

import numpy as np

from gpuops.som import bmu_cuda
from gpuops.som.metrics import METRICS, normalized

TILE = 64


def choose(products, samples, codebook, metric="euclidean", top=1, missing=False):
    """Let the next search of these shapes take one half product for a score, or three, and return its plan."""
    with samples.device as device:
        shapes = len(samples), *codebook.shape
        plan = bmu_cuda._plan(device.id, samples.dtype, METRICS[metric], missing, top, *shapes)
        plan.kept.fill(products == 1)  # tiles and samples, by which `pack` chooses
    return plan


def inside(xp, samples, codebook, metric="euclidean", products=1, missing=False):
    """Search, and return units, centre and scale, least scores, the bounds of tiles and samples, faults and the plan.

    Unlike `best_matching_units`, no array is checked.
    """
    samples, codebook = xp.asarray(samples), xp.asarray(codebook)
    n, (m, d) = len(samples), codebook.shape
    plan = choose(products, samples, codebook, metric, missing=missing)
    units, distances = xp.empty((n, 1), np.int32), xp.empty((n, 1), samples.dtype)
    memory = xp.empty(plan.size, np.uint8)
    plan.launch(samples, codebook, units, distances, memory.data.ptr, None)
    memory = memory.get()  # waits for the kernels
    tiles = -(-m // TILE)

    def read(name, kind, *shape):
        at = int(plan.offsets[bmu_cuda._SCRATCH.index(name)])
        return np.frombuffer(memory, kind, int(np.prod(shape)), at).reshape(shape)

    seen = SimpleNamespace(units=units.get()[:, 0], fault=read("fault", "u8", 2))
    seen.constants = plan.argument.view(bmu_cuda._SEARCH)
    if seen.constants["matched"]:  # there are no scores
        seen.left = int(read("left", "i4", 1)[0])
        return seen
    seen.least = read("least", "f4", n, tiles)
    *seen.centre, seen.scale = read("centre", "f8", d + 1)
    seen.tile_norms, seen.tile_residuals, seen.offsets = read("tile_bounds", "f4", tiles, 4)[:, :3].T.astype(float)
    seen.norms, seen.residuals = read("sample_norms", "f8", n), read("sample_residuals", "f8", n)
    seen.products = int(read("products", "i4", 1)[0])
    seen.kept = plan.kept.get()
    seen.order = read("nearest", "i4", n)[read("order", "i4", n)] if seen.constants["sorted"] else None
    return seen


def bound(seen):
    """Return the bound on the error of every least score (n, tiles), as the docstring of `gpuops.som` has it."""
    a, b, c = seen.norms[:, None], seen.tile_norms, seen.constants
    rounding = float(c["rounding"]) * (a + b) ** 2 + float(c["tiny"])
    if seen.products == 1:
        halves = a * seen.tile_residuals + seen.residuals[:, None] * b + seen.offsets
        return halves + float(c["kappa_of_one"]) * b * (a + b) + rounding
    return (float(c["kappa"]) * b + float(c["split"]) * (1 + b)) * (a + b) + rounding


def least_scores(seen, samples, codebook, metric="euclidean"):
    """Return the least score of every tile (n, tiles) in float64; NaN in samples is a missing value."""
    x, w = samples.astype(float), codebook.astype(float)
    if metric == "cosine":
        scores = -(normalized(x) * seen.scale) @ (normalized(w) * seen.scale).T
    else:
        x, w = ((v - seen.centre) * seen.scale for v in (x, w))
        there = ~np.isnan(x)
        scores = there @ (w * w).T - 2 * np.nan_to_num(x) @ w.T
    return np.stack([scores[:, at : at + TILE].min(axis=1) for at in range(0, len(codebook), TILE)], axis=1)


def off(seen, samples, codebook, metric="euclidean"):
    """Return the error of every least score as a part of its bound."""
    return abs(seen.least - least_scores(seen, samples, codebook, metric)) / bound(seen)


def trap(rounded, d=60, dtype="float32"):
    """Return one sample and units of two tiles, of which one product of halves takes the wrong one to be the nearest.

    The errors of the best unit, number 65, and of unit 1 are opposite, and more than half of what the bound allows: a
    bound half as large excludes the best unit. `rounded` says what is not a half, "units" or "sample".
    """
    signs = np.random.default_rng(d).choice([-2.5, 2.5], (32, d))
    codebook = np.zeros((128, d + 1), dtype)
    codebook[0:64:2, :d], codebook[64:128:2, :d] = signs, -signs  # far units, whose mean is zero; the scale is one
    codebook[1::2] = codebook[::2]
    up, down = 1 + 2.0**-11 + 2.0**-23, 1 + 2.0**-11 - 2.0**-23
    if rounded == "units":
        codebook[1], codebook[65] = up, down  # the one nearer to 1 is rounded down, and seems farther
        sample = np.ones(d + 1)
        sample[d] = codebook[1, d] = codebook[65, d] = 0
    else:
        # What is rounded off the sample lies along the difference of both units, which the sample is orthogonal to.
        # The last dimension alone makes unit 65 the nearer one.
        along, signs = np.resize([1.0, -1.0], d), np.resize([1.0, 1.0, -1.0, -1.0], d)
        sample = np.append(signs * np.where(along == signs, down, up), -(2.0**-10)) / -2
        codebook[1], codebook[65] = np.append(2 * along, -(2.0**-5)), np.append(-2 * along, 2.0**-5)
    return sample[None].astype(dtype), codebook


def trap_of_keys():
    """Return a sample and units of which the nearest, number 1, seems 511 places of float32 farther than number 1023.

    Both scores lie at either end of two neighbouring ranges of 2^8 places, between which rounding takes them apart. In
    a key, the number of the quad replaces the last eight places. What halves take from unit 1 makes it the nearest.
    """
    rng = np.random.default_rng(3)
    units = rng.integers(-1024, 1024, (1_000_000, 3)) / 2**12
    units[:, 0] = 2.5 + rng.integers(0, 256, len(units)) / 512
    sample = np.array([92, 1, 4])
    bias = (units * units).sum(axis=1)
    coarse = 256 * (bias / 256).astype("float16").astype(float)
    places = (2 * units @ sample - coarse - (bias - coarse).astype("float16")) * 2**14  # of scores from -1024 to -512
    order = np.argsort(places)
    order = order[(places[order] > 512 * 2**14) & (places[order] < 540 * 2**14)]
    low, high = places[order[:-1]], places[order[1:]]
    gaps = np.where(np.rint(low) // 256 < np.rint(high) // 256, high - low, 1)
    at = gaps.argmin()
    assert gaps[at] < 0.1
    samples, codebook = np.zeros((1, 20)), np.zeros((1024, 20))
    codebook[:, 3] = np.where(np.arange(1024) // 16 % 2, 2.5, -2.5)  # the centre is zero, and the scale is one
    samples[0, 16:19], codebook[1], codebook[1023] = sample, 0, 0
    codebook[1, 16:19], codebook[1023, 16:19] = units[order[at]], units[order[at + 1]]
    codebook[1, 18] += 2.0**-20
    return samples.astype("float32"), codebook.astype("float32")


def trap_of_small_map(rounded, d=28):
    """Return `trap` with scores near 0, which the numbers of the units change little."""
    samples, codebook = (
        np.append(values, np.zeros((len(values), 1), "float32"), axis=1) for values in trap(rounded, d)
    )
    if rounded == "sample":  # -2 x 11 x 8 + 8^2 = -4 d
        samples[:, -1], codebook[[1, 65], -1] = 11, 8
    return samples, codebook

"""Best matching units on the CPU: the Numba half of `gpuops.som`, which describes the steps and why they suffice.

Units are packed in panels as wide as two vectors, and in tiles of 1, 2 or 4 panels; samples in panels of ROWS. The
innermost loop is written in LLVM IR with explicit vectors, for the reasons given in `product_numba`: the scores of ROWS
samples and one panel of units stay in registers while the loop runs over the features. A few lines of `product_numba`
are repeated here, because Numba's cache does not notice a change in a file that both modules would import.
"""

from __future__ import annotations

import functools
import math
from itertools import product
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpuops._compiled_numba import compiled
from gpuops._threads import for_all
from gpuops.som import NOT_FINITE, NOTHING_PRESENT, error_bound
from gpuops.som.metrics import COSINE, EUCLIDEAN, TAXICAB

_FEATURES = binding.get_host_cpu_features()
_VECTOR_BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
_FUSED = bool(_FEATURES.get("fma") or _FEATURES.get("neon"))  # otherwise fma would be a function call for every lane
_LANES = _VECTOR_BYTES // 4
_VECTORS = 2

ROWS = 8 if _FEATURES.get("avx512f") or _FEATURES.get("neon") else 4
COLUMNS = _VECTORS * _LANES  # units in a panel
MOST_PANELS = 4  # most panels in a tile; the units of a tile share one least score
BLOCK = 128  # samples in a task; their features and a tile of units fit into the second-level cache

_LARGEST = np.float64(2.0**500)  # greatest magnitude of a value: sums of squares must not overflow
_FARTHEST = np.float64(2.0**60)  # samples with a greater scaled feature are not screened


def search(samples, codebook, metric, top, missing, validate):
    """Return units (N, top) int32, distances (N, top) and the first fault, or None; arguments are checked.

    A fault is (argument, row, NOT_FINITE or NOTHING_PRESENT). Faults are found in any case, also without `validate`.
    """
    n, (m, d) = len(samples), codebook.shape
    units, distances = np.empty((n, top), np.int32), np.empty((n, top), samples.dtype)
    faulty = ~(np.abs(codebook) <= _LARGEST).all(axis=1)
    if faulty.any():
        return units, distances, ("codebook", int(faulty.argmax()), NOT_FINITE)
    centre, scale = _centre_and_scale(codebook, metric)
    dots = metric != TAXICAB
    depth = 2 * d if missing and dots else d
    panels = _panels_of_tile(m, d)
    tile = panels * COLUMNS
    tiles = math.ceil(m / tile)
    features = np.zeros((tiles * panels, depth, COLUMNS), np.float32)
    bias = np.full((tiles * panels, COLUMNS), np.inf, np.float32)
    exact = np.zeros((tiles, d, tile), samples.dtype)
    unit_norms, tile_norms = np.zeros(tiles * tile), np.zeros(tiles)
    pack, search_block = compile_for(samples.dtype)
    whole = (centre, scale, metric, missing)

    def pack_tile(tile):
        pack(codebook, *whole, features, bias, exact, unit_norms, tile_norms, tile)

    for_all(pack_tile, range(tiles), 32 * codebook.size)
    kappa, rounding = error_bound(depth, d, 2.0**-24)
    faults = []

    def search_from(first):
        fault = search_block(
            samples, *whole, features, bias, exact, unit_norms, tile_norms, m, kappa, rounding, first, units, distances
        )
        if fault >= 0:
            faults.append(fault)

    for_all(search_from, range(0, n, BLOCK), n * m * depth)
    if faults:
        row, kind = divmod(min(faults), 4)
        return units, distances, ("samples", row, kind)
    return units, distances, None


def _panels_of_tile(m: int, d: int) -> int:
    """Return the number of panels in a tile of units: larger tiles have fewer least scores, but more units to evaluate.

    For every sample there are m / tile least scores to compare, and about one tile of units with d dimensions to
    evaluate. Comparing a least score takes about as long as evaluating 7 dimensions of a unit.
    """
    panels = math.sqrt(7 * m / d) / COLUMNS
    return 1 if panels < 1.5 else 2 if panels < 3 else MOST_PANELS


def _centre_and_scale(codebook, metric):
    d = codebook.shape[1]
    if metric == COSINE:
        return np.zeros(d), 4.0
    centre = codebook.mean(axis=0, dtype=np.float64)
    reach = float(np.abs(codebook - centre).max())
    return centre, 2.0 ** min(500, 2 - math.frexp(reach)[1]) if reach else 1.0


@functools.cache
def compile_for(dtype: np.dtype) -> tuple[Any, Any]:
    """Return `_pack_tile` and `_search_block` compiled for a dtype, with one signature for every layout."""
    scalar = numba.from_dtype(dtype)
    matrix = types.Array(scalar, 2, "A", readonly=True)
    whole = (types.float64[::1], types.float64, types.int64, types.boolean)
    packed = (types.float32[:, :, ::1], types.float32[:, ::1], types.Array(scalar, 3, "C"))
    norms = (types.float64[::1], types.float64[::1])
    return (
        compiled(types.void(matrix, *whole, *packed, *norms, types.int64), _pack_tile),
        compiled(
            types.int64(
                matrix, *whole, *packed, *norms, types.int64, types.float64, types.float64, types.int64,
                types.int32[:, ::1], types.Array(scalar, 2, "C"),
            ),
            _search_block,
        ),
    )  # fmt: skip


def _pack_tile(codebook, centre, scale, metric, missing, features, bias, exact, unit_norms, tile_norms, tile):
    """Write the features, biases and exact values of the units of one tile; units beyond the last have bias +inf."""
    m, d = codebook.shape
    size = exact.shape[2]
    greatest = 0.0
    for s in range(min(size, m - tile * size)):
        unit = tile * size + s
        panel, column = unit // COLUMNS, unit % COLUMNS
        factor = scale
        if metric == COSINE:
            square = 0.0
            for k in range(d):
                square += np.float64(codebook[unit, k]) * np.float64(codebook[unit, k])
            length = math.sqrt(square)
            unit_norms[unit] = length
            factor = scale / length if length > 0 else 0.0
        norm = 0.0
        for k in range(d):
            w = (np.float64(codebook[unit, k]) - centre[k]) * factor
            features[panel, k, column] = w
            if missing and metric != TAXICAB:
                features[panel, d + k, column] = w * w
            norm += abs(w) if metric == TAXICAB else w * w
            exact[tile, k, s] = codebook[unit, k]
        bias[panel, column] = norm if metric == EUCLIDEAN and not missing else 0.0
        greatest = max(greatest, norm if metric == TAXICAB else math.sqrt(norm))
    tile_norms[tile] = greatest


def _search_block(
    samples, centre, scale, metric, missing, features, bias, exact, unit_norms, tile_norms, m, kappa, rounding, first,
    units, distances,
):  # fmt: skip
    """Write units and distances of BLOCK samples from `first` on; return 4 * row + kind of the first fault, or -1.

    One long function: its steps share some twenty buffers.
    """
    n, d = samples.shape
    count = min(BLOCK, n - first)
    groups = (count + ROWS - 1) // ROWS
    depth, tiles, tile, top = features.shape[1], exact.shape[0], exact.shape[2], units.shape[1]
    panels = tile // COLUMNS
    dots = metric != TAXICAB
    panel = np.zeros((groups, depth if dots or not missing else 2 * d, ROWS), np.float32)
    norms = np.zeros(count)
    lengths = np.zeros(count)

    for i in range(count):
        g, r = i // ROWS, i % ROWS
        factor = scale
        square, present = 0.0, 0
        for k in range(d):
            x = np.float64(samples[first + i, k])
            if missing and x != x:
                continue
            if not abs(x) <= _LARGEST:
                return 4 * (first + i) + NOT_FINITE
            present += 1
            square += x * x
        if present == 0:
            return 4 * (first + i) + NOTHING_PRESENT
        lengths[i] = math.sqrt(square)
        if metric == COSINE:
            factor = scale / lengths[i] if lengths[i] > 0 else 0.0
        norm, farthest = 0.0, 0.0
        for k in range(d):
            x = np.float64(samples[first + i, k])
            if missing:
                there = x == x
                panel[g, d + k, r] = np.float32(there and metric != COSINE)
                if not there:
                    panel[g, k, r] = 0.0
                    continue
            x = (x - centre[k]) * factor
            if dots:
                x *= -1.0 if metric == COSINE else -2.0
            farthest = max(farthest, abs(x))
            norm += x * x if dots else abs(x)
            panel[g, k, r] = x if abs(x) <= _FARTHEST else 0.0
        norms[i] = math.sqrt(norm) if dots else norm
        if not farthest <= _FARTHEST or (metric == COSINE and missing):
            norms[i] = np.inf

    least = np.empty((tiles, groups * ROWS), np.float32)
    for t in range(tiles):
        w, b = features[t * panels : (t + 1) * panels], bias[t * panels : (t + 1) * panels]
        for g in range(groups):
            out = least[t, g * ROWS : (g + 1) * ROWS]
            if dots:
                least_dot_products(out, panel[g], w, b)
            elif missing:
                least_masked_differences(out, panel[g], w, b)
            else:
                least_differences(out, panel[g], w, b)

    epsilon = np.empty(tiles)
    value, other, length = np.empty(tile), np.empty(tile), np.empty(tile)
    for i in range(count):
        # Upper bounds of the score of the best unit, and of the second best unit.
        enough, enough_of_two = np.inf, np.inf
        for t in range(tiles):
            a, w = norms[i], tile_norms[t]
            if dots:
                epsilon[t] = kappa * w * (a + w) + rounding * (a + w) * (a + w) + d * 2.0**-60
            else:
                epsilon[t] = (kappa + rounding) * (a + w) + d * 2.0**-60
            bound = least[t, i] + epsilon[t]
            if bound < enough:
                enough, enough_of_two = bound, enough
            elif bound < enough_of_two:
                enough_of_two = bound
        if top == 2:
            enough = enough_of_two
        best, second = np.inf, np.inf
        unit, second_unit = -1, -1
        for t in range(tiles):
            if least[t, i] - epsilon[t] > enough:
                continue
            value[:] = 0.0
            if metric == COSINE:
                other[:] = 0.0
                for s in range(tile):
                    length[s] = unit_norms[t * tile + s]
            for k in range(d):
                x = np.float64(samples[first + i, k])
                if missing and x != x:
                    continue
                row = exact[t, k]
                if metric == EUCLIDEAN:
                    for s in range(tile):
                        difference = x - np.float64(row[s])
                        value[s] += difference * difference
                elif metric == TAXICAB:
                    for s in range(tile):
                        value[s] += abs(x - np.float64(row[s]))
                else:
                    for s in range(tile):
                        value[s] += x * np.float64(row[s])
                    if missing:
                        for s in range(tile):
                            other[s] += np.float64(row[s]) * np.float64(row[s])
            for s in range(min(tile, m - t * tile)):
                v = value[s]
                if metric == COSINE:
                    product_ = lengths[i] * (math.sqrt(other[s]) if missing else length[s])
                    v = max(1.0 - v / product_, 0.0) if product_ > 0 else 1.0
                if v < best or unit < 0:
                    best, second = v, best
                    unit, second_unit = t * tile + s, unit
                elif v < second or second_unit < 0:
                    second, second_unit = v, t * tile + s
        units[first + i, 0] = unit
        distances[first + i, 0] = math.sqrt(best) if metric == EUCLIDEAN else best
        if top == 2:
            units[first + i, 1] = second_unit
            distances[first + i, 1] = math.sqrt(second) if metric == EUCLIDEAN else second
    return -1


# --- The innermost loop ---------------------------------------------------------------------------------------------


def _least_scores(step):
    """Return a nopython function: least[r] = min over the units of bias + sum over k of step(x[k, r], w[., k, .]).

    least : (ROWS,) float32, contiguous
    x : (depth, or 2 depth with masks, ROWS) float32, contiguous
    w : (panels, depth, COLUMNS) float32, contiguous
    bias : (panels, COLUMNS) float32, contiguous

    One long function: it emits one loop, whose parts share the builder and the registers.
    """

    @intrinsic
    def least_scores(typingctx, least, x, w, bias):
        def codegen(context, builder, signature, arguments):
            least, x, w, bias = (
                context.make_array(array_type)(context, builder, value)
                for array_type, value in zip(signature.args, arguments, strict=True)
            )
            index, lane = ir.IntType(64), ir.IntType(32)
            vector = ir.VectorType(ir.FloatType(), _LANES)
            undefined = ir.Constant(vector, ir.Undefined)
            panels, depth, _ = cgutils.unpack_tuple(builder, w.shape)

            def load(pointer, at):
                address = builder.gep(pointer, [at])
                return builder.load(builder.bitcast(address, vector.as_pointer()), align=4)

            def broadcast(row, r):
                scalar = builder.load(builder.gep(x.data, [builder.add(row, index(r))]))
                one = builder.insert_element(undefined, scalar, lane(0))
                return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(lane, _LANES), [0] * _LANES))

            def minimum(a, b):  # exactly vminps
                return builder.select(builder.fcmp_ordered("<", a, b), a, b)

            infinity = ir.Constant(vector, [math.inf] * _LANES)
            best = [cgutils.alloca_once_value(builder, infinity) for _ in range(ROWS)]
            scores = {key: cgutils.alloca_once(builder, vector) for key in product(range(ROWS), range(_VECTORS))}
            with cgutils.for_range(builder, panels) as panel:
                for r, v in scores:
                    at = builder.add(builder.mul(panel.index, index(COLUMNS)), index(v * _LANES))
                    builder.store(load(bias.data, at), scores[r, v])
                w_panel = builder.gep(w.data, [builder.mul(panel.index, builder.mul(depth, index(COLUMNS)))])
                with cgutils.for_range(builder, depth) as k:
                    at = builder.mul(k.index, index(COLUMNS))
                    units = [load(w_panel, builder.add(at, index(v * _LANES))) for v in range(_VECTORS)]
                    row, mask_row = (builder.mul(i, index(ROWS)) for i in (k.index, builder.add(k.index, depth)))
                    for r in range(ROWS):
                        sample = broadcast(row, r)
                        mask = functools.partial(broadcast, mask_row, r)
                        for v in range(_VECTORS):
                            score = builder.load(scores[r, v])
                            builder.store(step(builder, score, sample, units[v], mask), scores[r, v])
                for r, v in scores:
                    builder.store(minimum(builder.load(scores[r, v]), builder.load(best[r])), best[r])
            for r in range(ROWS):
                value, width = builder.load(best[r]), _LANES
                while width > 1:
                    width //= 2
                    half = ir.VectorType(lane, width)
                    low, high = (
                        builder.shuffle_vector(value, value, ir.Constant(half, list(range(first, first + width))))
                        for first in (0, width)
                    )
                    value = minimum(low, high)
                builder.store(builder.extract_element(value, lane(0)), builder.gep(least.data, [index(r)]))
            return context.get_dummy_value()

        return types.void(least, x, w, bias), codegen

    return least_scores


def _call(builder, name, *values):
    """Call an intrinsic function of LLVM on vectors, lane by lane."""
    vector = values[0].type
    signature = ir.FunctionType(vector, [vector] * len(values))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{vector.count}f32"), values
    )


def _absolute(builder, value):
    return _call(builder, "fabs", value)


def _multiply(builder, score, x, w, mask):
    return _call(builder, "fma", x, w, score) if _FUSED else builder.fadd(score, builder.fmul(x, w))


def _differ(builder, score, x, w, mask):
    return builder.fadd(score, _absolute(builder, builder.fsub(x, w)))


def _differ_where_present(builder, score, x, w, mask):
    return builder.fadd(score, builder.fmul(_absolute(builder, builder.fsub(x, w)), mask()))


least_dot_products = _least_scores(_multiply)
least_differences = _least_scores(_differ)
least_masked_differences = _least_scores(_differ_where_present)

// Bounds on the error of scores, and the nearest of some units; for the kernels that decide.
#pragma once

#include "features.cuh"

// The error bound of the scores of a sample, made of halves in `products` products, in float32 by the screen
// (products = 0) or in float32 by `decide` (SIFTED); with the norm a of the sample and the norm b of a tile:
//
//     products    bound
//     1           residual of the sample x b + a x residual of the tile + offset of the tile
//                 + (kappa_of_one b + rounding (a + b)) (a + b) + tiny
//     3           (kappa b + rounding (a + b) + split (1 + b)) (a + b) + tiny
//     0, SIFTED   the same with split = 0; taxicab: (kappa + rounding) (a + b) + tiny
//
// It is computed in float32 and enlarged a little, because its own computation rounds, too.
constexpr int SIFTED = -1;

struct Bounds {
    float norm, factor, constant, tiny, residual, reach, whole;

    __device__ Bounds(const Search& s, long long i, int products)
        : Bounds(s, s.sample_norms[i], products == 1 ? s.sample_residuals[i] : 0, products) {}
    __device__ Bounds(const Search& s, double a, double r, int products) {  // of a sample with this norm and residual
        const double more = 1.0001;
        const bool one = products == 1;
        const double split = products == 3 ? s.split : 0;
        const double kappa = one ? s.kappa_of_one : products == SIFTED ? s.kappa_of_sifted : s.kappa;
        norm = (float)(a * more);
        factor = (float)((DOTS ? kappa + s.rounding + split : 0) * more);
        constant = (float)((DOTS ? s.rounding * a + split : kappa + s.rounding) * more);
        tiny = (float)((products == SIFTED ? s.tiny_of_sifted : s.tiny) * more);
        residual = one ? (float)(r * more) : 0;
        reach = one ? norm : 0;
        whole = one ? (float)more : 0;
    }
    // Returns the bounds of another lane's sample; the other members are the same for all samples.
    __device__ Bounds of_lane(int lane) const {
        Bounds result = *this;
        result.norm = __shfl_sync(0xffffffff, norm, lane);
        result.constant = __shfl_sync(0xffffffff, constant, lane);
        if (whole > 0) {  // one half product
            result.residual = __shfl_sync(0xffffffff, residual, lane);
            result.reach = result.norm;
        }
        return result;
    }
    __device__ float epsilon(float least, const TileBound& tile) const {
        return (norm + tile.norm) * (factor * tile.norm + constant) + residual * tile.norm + reach * tile.residual +
               whole * tile.offset + tiny + fabsf(least) * 0x1p-22f;
    }
};

// A unit and its distance (euclidean: the squared distance).
struct Found {
    double value;
    int unit;
};
constexpr int NONE = -1;

// The two nearest of some units, at equal distances the lowest.
struct Nearest {
    Found best = {__longlong_as_double(0x7ff0000000000000), NONE}, second = best;

    __device__ void add(const Found& found) {
        const auto precedes = [&](const Found& known) {
            return found.value < known.value || (found.value == known.value && found.unit < known.unit);
        };
        if (precedes(best)) {
            second = best;
            best = found;
        } else if (precedes(second)) {
            second = found;
        }
    }
};

// Returns the least key of a warp's lanes.
__device__ inline unsigned long long least_of_warp(unsigned long long key) {
    const unsigned high = __reduce_min_sync(0xffffffff, (unsigned)(key >> 32));
    const unsigned low = __reduce_min_sync(0xffffffff, key >> 32 == high ? (unsigned)key : 0xffffffff);
    return (unsigned long long)high << 32 | low;
}

// Returns the nearest unit of a warp's lanes, at equal distances the lowest unit. Distances are not negative, so that
// their bits compare like the distances.
__device__ inline Found nearest_of_warp(Found found) {
    const unsigned long long key = (unsigned long long)__double_as_longlong(found.value), least = least_of_warp(key);
    const unsigned unit = __reduce_min_sync(0xffffffff, key == least ? (unsigned)found.unit : (unsigned)NONE);
    return {__longlong_as_double((long long)least), (int)unit};
}

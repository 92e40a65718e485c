// Best matching units, before and after the screen: pack units and samples as features, decide in float64.
//
//     centre_units   a centre of the codebook, and how far units reach from it
//     pack_units     units as features [tiles][depth][TILE] and as given [tiles][d][TILE]; biases; the greatest norm in
//                    each tile
//     pack_samples   samples as features [panels][rows][PANEL]; their norms
//     decide         units and distances, from the least scores [n][tiles] that a screen left
//
// gpuops/som/__init__.py says what is computed and why it is exact. A score is the bias of a unit plus the dot product
// of the features or, for taxicab, the sum of their absolute differences. Features are centred, and scaled by a power
// of two:
//
//     metric               sample x             unit w      bias
//     euclidean            -2 x                 w           |w|^2
//     euclidean, missing   -2 x or 0; 1 or 0    w; w^2      0
//     taxicab              x                    w           0
//     cosine               -x / |x|             w / |w|     0
//
// With missing values and taxicab, masks, 1 or 0, follow the features of x.
//
// No feature exceeds 2^14, so that a screen may split it into two halves. A unit or a sample with a larger one is not
// screened: a unit gets the bias -inf and the norm +inf, which have its tile looked into; a sample gets the norm +inf,
// which has all tiles looked into.
//
// Launch: said at each kernel.
// Macros: FLOAT, the type of the values; METRIC, EUCLIDEAN, TAXICAB or COSINE.

constexpr int EUCLIDEAN = 0, TAXICAB = 1, COSINE = 2;
constexpr bool DOTS = METRIC != TAXICAB;

constexpr int TILE = 64;    // units that share one least score
constexpr int PANEL = 128;  // samples whose features lie together
constexpr int SAMPLED = 256;
constexpr int THREADS = 128;
constexpr int WARPS = 8;

constexpr int NOT_FINITE = 1, NOTHING_PRESENT = 2;
constexpr double LARGEST_VALUE = 3.273390607896142e150;  // 2^500: squares of what is larger would not fit
constexpr double LARGEST_SAMPLE = 16384, LARGEST_UNIT = 128;

// What kernels tell each other and the host; all 0 at first.
struct State {
    unsigned long long reach;      // bits of a double
    unsigned long long faults[2];  // of samples and of units: NO_FAULT - (4 * row + kind) of the first, or 0
};
constexpr unsigned long long NO_FAULT = 1ull << 62;

__device__ inline double infinite() {
    return __longlong_as_double(0x7ff0000000000000);
}

__device__ inline bool usable(double x) {
    return fabs(x) <= LARGEST_VALUE;
}

__device__ inline void report(unsigned long long* fault, long long row, int kind) {
    atomicMax(fault, NO_FAULT - (4 * (unsigned long long)row + kind));
}

// A power of two that brings the reach of the units between 2 and 4.
__device__ inline double scale_of(const State* state) {
    if (METRIC == COSINE) return 4;
    if (state->reach == 0) return 1;
    const int exponent = (int)(state->reach >> 52) - 1022;
    return __longlong_as_double((long long)(min(500, 2 - exponent) + 1023) << 52);
}

// Launch: one block of THREADS threads per dimension. Any centre will do; this is the mean of up to SAMPLED units.
extern "C" __global__ void centre_units(double* centre, State* state, const FLOAT* codebook, long long row_stride,
                                        long long column_stride, long long m) {
    __shared__ double sums[THREADS];
    if (METRIC == COSINE) {
        if (threadIdx.x == 0) centre[blockIdx.x] = 0;
        return;
    }
    const int count = (int)min(m, (long long)SAMPLED);
    const FLOAT* column = codebook + blockIdx.x * column_stride;
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const double w = column[i * m / count * row_stride];
        sum += usable(w) ? w / count : 0;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    double middle = 0;
    for (int t = 0; t < THREADS; ++t) middle += sums[t];
    double reach = 0;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const double w = column[i * m / count * row_stride];
        reach = fmax(reach, usable(w) ? fabs(w - middle) : 0);
    }
    if (threadIdx.x == 0) centre[blockIdx.x] = middle;
    if (reach > 0) atomicMax(&state->reach, (unsigned long long)__double_as_longlong(reach));
}

// Launch: one block of TILE threads per tile.
extern "C" __global__ void pack_units(float* features, FLOAT* exact, float* bias, double* lengths, double* tile_norms,
                                      State* state, const double* centre, const FLOAT* codebook, long long row_stride,
                                      long long column_stride, long long m, int d, int depth, int missing) {
    __shared__ double norms[TILE];
    const long long tile = blockIdx.x, unit = tile * TILE + threadIdx.x;
    const FLOAT* row = codebook + unit * row_stride;
    features += tile * depth * TILE + threadIdx.x;
    exact += tile * d * TILE + threadIdx.x;
    const bool inside = unit < m;
    double factor = scale_of(state), square = 0, norm = 0;
    bool finite = true;
    for (int k = 0; k < d; ++k) {
        const double w = inside ? (double)row[k * column_stride] : 0;
        finite = finite && usable(w);
        if (METRIC == COSINE) square = __dadd_rn(square, __dmul_rn(w, w));
        exact[k * TILE] = (FLOAT)w;
    }
    if (!finite) report(state->faults + 1, unit, NOT_FINITE);
    if (METRIC == COSINE) {
        const double length = sqrt(square);
        lengths[unit] = length;
        factor = length > 0 ? factor / length : 0;
    }
    bool screened = true;
    for (int k = 0; k < d; ++k) {
        const double w = inside ? ((double)row[k * column_stride] - centre[k]) * factor : 0;
        norm += DOTS ? w * w : fabs(w);
        screened = screened && fabs(w) <= LARGEST_UNIT;
        features[k * TILE] = screened ? (float)w : 0.f;
        if (missing && DOTS) features[(d + k) * TILE] = screened ? (float)(w * w) : 0.f;
    }
    for (int k = missing && DOTS ? 2 * d : d; k < depth; ++k) features[k * TILE] = 0;
    const double least = METRIC == EUCLIDEAN && !missing ? norm : 0;
    bias[unit] = (float)(!inside ? infinite() : screened ? least : -infinite());
    norms[threadIdx.x] = !screened ? infinite() : DOTS ? sqrt(norm) : norm;  // such a tile bounds nothing from above
    __syncthreads();
    if (threadIdx.x == 0) {
        double greatest = 0;
        for (int t = 0; t < TILE; ++t) greatest = fmax(greatest, norms[t]);
        tile_norms[tile] = greatest;
    }
}

// Launch: one block of PANEL threads per panel. rows: depth, and that many masks more for taxicab with missing values.
extern "C" __global__ void pack_samples(float* features, double* norms, double* lengths, State* state,
                                        const double* centre, const FLOAT* samples, long long row_stride,
                                        long long column_stride, long long first, long long n, int d, int depth,
                                        int rows, int missing) {
    const long long i = (long long)blockIdx.x * PANEL + threadIdx.x;
    const FLOAT* row = samples + (first + i) * row_stride;
    features += blockIdx.x * (long long)rows * PANEL + threadIdx.x;
    const bool inside = i < n;
    double factor = scale_of(state), square = 0, norm = 0;
    bool finite = true, empty = true;
    if (METRIC == COSINE) {
        for (int k = 0; k < d; ++k) {
            const double x = inside ? (double)row[k * column_stride] : 0;
            if (!missing || x == x) square = __dadd_rn(square, __dmul_rn(x, x));
        }
        const double length = sqrt(square);
        lengths[i] = length;
        factor = length > 0 ? factor / length : 0;
    }
    factor *= METRIC == COSINE ? -1 : METRIC == EUCLIDEAN ? -2 : 1;
    bool screened = !(missing && METRIC == COSINE);
    for (int k = 0; k < d; ++k) {
        double x = inside ? (double)row[k * column_stride] : 0;
        const bool there = !missing || x == x;
        empty = empty && !there;
        finite = finite && (!there || usable(x));
        x = there && inside ? (x - centre[k]) * factor : 0;
        norm += DOTS ? x * x : fabs(x);
        screened = screened && fabs(x) <= LARGEST_SAMPLE;
        features[k * PANEL] = screened ? (float)x : 0.f;
        if (missing && METRIC != COSINE) features[((DOTS ? d : depth) + k) * PANEL] = there ? 1.f : 0.f;
    }
    for (int k = missing && METRIC == EUCLIDEAN ? 2 * d : d; k < depth; ++k) features[k * PANEL] = 0;
    for (int k = depth + d; k < rows; ++k) features[k * PANEL] = 0;
    norms[i] = !screened ? infinite() : DOTS ? sqrt(norm) : norm;
    if (!finite) report(state->faults, first + i, NOT_FINITE);
    if (finite && empty) report(state->faults, first + i, NOTHING_PRESENT);
}

// A unit and its distance (euclidean: the square of it).
struct Found {
    double value;
    int unit;
};
constexpr int NONE = -1;

// The least key of a warp's lanes.
__device__ inline unsigned long long least_of_warp(unsigned long long key) {
    const unsigned high = __reduce_min_sync(0xffffffff, (unsigned)(key >> 32));
    const unsigned low = __reduce_min_sync(0xffffffff, key >> 32 == high ? (unsigned)key : 0xffffffff);
    return (unsigned long long)high << 32 | low;
}

// The nearest of a warp's lanes, of equal ones the lowest unit. Distances are not negative: their bits compare as they.
__device__ inline Found nearest_of_warp(Found found) {
    const unsigned long long key = (unsigned long long)__double_as_longlong(found.value), least = least_of_warp(key);
    const unsigned unit = __reduce_min_sync(0xffffffff, key == least ? (unsigned)found.unit : (unsigned)NONE);
    return {__longlong_as_double((long long)least), (int)unit};
}

// How far a score of a tile may be off.
__device__ inline double error_bound(double sample_norm, double unit_norm, double kappa, double rounding, double split,
                                     double tiny) {
    const double both = sample_norm + unit_norm;
    if (!DOTS) return (kappa + rounding) * both + tiny;
    return kappa * unit_norm * both + rounding * both * both + split * (1 + unit_norm) * both + tiny;
}

// Launch: blocks of WARPS warps, a warp per sample.
extern "C" __global__ void decide(int* units, FLOAT* distances, const float* least, const double* sample_norms,
                                  const double* sample_lengths, const FLOAT* samples, long long row_stride,
                                  long long column_stride, long long first, long long n, const FLOAT* exact,
                                  const double* unit_lengths, const double* tile_norms, long long m, int tiles, int d,
                                  int top, int missing, double kappa, double rounding, double split, double tiny) {
    // A warp's sample, 32 dimensions at a time: as double, for what is slow is to make one of a float.
    __shared__ double staged[WARPS][32];
    const int lane = threadIdx.x % 32;
    const long long i = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= n) return;
    double* mine = staged[threadIdx.x / 32];
    const FLOAT* row = samples + (first + i) * row_stride;
    least += i * tiles;
    const double norm = sample_norms[i];
    const auto epsilon = [&](int tile) { return error_bound(norm, tile_norms[tile], kappa, rounding, split, tiny); };

    // What the best unit, or the best two, score at most; a comparison with NaN is false, so that NaN excludes nothing.
    double enough = infinite(), enough_of_two = infinite();
    const auto add_bound = [&](double bound) {
        if (bound < enough) {
            enough_of_two = enough;
            enough = bound;
        } else if (bound < enough_of_two) {
            enough_of_two = bound;
        }
    };
    for (int tile = lane; tile < tiles; tile += 32) add_bound(least[tile] + epsilon(tile));
    for (int lanes = 16; lanes; lanes /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, enough, lanes);
        if (top == 2) {
            const double other_of_two = __shfl_xor_sync(0xffffffff, enough_of_two, lanes);
            add_bound(other);
            add_bound(other_of_two);
        } else if (other < enough) {
            enough = other;
        }
    }
    if (top == 2) enough = enough_of_two;

    Found best = {infinite(), NONE}, second = best;  // of this lane
    for (int base = 0; base < tiles; base += 32) {
        const int tile = base + lane;
        const bool candidate = tile < tiles && !(least[tile] - epsilon(tile) > enough);
        for (unsigned left = __ballot_sync(0xffffffff, candidate); left; left &= left - 1) {
            const int t = base + __ffs((int)left) - 1;
            const FLOAT* column = exact + (long long)t * d * TILE + lane;
            double value[2] = {0, 0}, square[2] = {0, 0};
            for (int from = 0; from < d; from += 32) {
                const int count = min(32, d - from);
                __syncwarp();
                if (lane < count) mine[lane] = row[(from + lane) * column_stride];
                __syncwarp();
#pragma unroll 4
                for (int k = 0; k < count; ++k) {
                    const double x = mine[k];
                    if (missing && x != x) continue;
                    for (int s = 0; s < 2; ++s) {
                        const double w = column[(from + k) * TILE + s * 32];
                        if (METRIC == EUCLIDEAN) value[s] = __dadd_rn(value[s], __dmul_rn(x - w, x - w));
                        if (METRIC == TAXICAB) value[s] = __dadd_rn(value[s], fabs(x - w));
                        if (METRIC == COSINE) value[s] = __dadd_rn(value[s], __dmul_rn(x, w));
                        if (METRIC == COSINE && missing) square[s] = __dadd_rn(square[s], __dmul_rn(w, w));
                    }
                }
            }
            for (int s = 0; s < 2; ++s) {
                const int unit = t * TILE + s * 32 + lane;  // greater than those before
                if (METRIC == COSINE) {
                    const double product = sample_lengths[i] * (missing ? sqrt(square[s]) : unit_lengths[unit]);
                    value[s] = product > 0 ? fmax(1 - value[s] / product, 0) : 1;
                }
                if (unit < m && value[s] < best.value) {
                    second = best;
                    best = {value[s], unit};
                } else if (unit < m && value[s] < second.value) {
                    second = {value[s], unit};
                }
            }
        }
    }
    for (int place = 0; place < top; ++place) {
        const Found found = nearest_of_warp(best);
        if (lane == 0) {
            units[(first + i) * top + place] = found.unit;
            distances[(first + i) * top + place] = (FLOAT)(METRIC == EUCLIDEAN ? sqrt(found.value) : found.value);
        }
        if (best.unit == found.unit) best = second;
    }
}

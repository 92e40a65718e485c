// Best matching units, before and after the screen: pack units and samples as features, and decide in float64.
//
//     pack      computes a centre of the codebook and a scale; writes units as features and as given, biases and the
//               bounds of each tile; writes samples as features, their norms and residuals; on tensor cores chooses how
//               many half products make a score
//     bound, place    put samples with the same nearest tile next to each other, for maps beyond the first-level cache
//     decide    computes units and distances from the least scores [n][tiles] that a screen has written. Cosine with
//               missing values has no screen: all units are evaluated.
//
// gpuops/som/__init__.py describes the computation and why it is exact. A score is the bias of a unit plus the dot
// product of the features or, for taxicab, the sum of their absolute differences. Features are centred, and scaled by a
// power of two:
//
//     metric               sample x             unit w      bias
//     euclidean            -2 x                 w           |w|^2
//     euclidean, missing   -2 x or 0; 1 or 0    w; w^2      0
//     taxicab              x                    w           0
//     cosine               -x / |x|             w / |w|     0
//
// The screen in float32 takes units as [tiles][depth][TILE] and samples as [panels][rows][PANEL]; for taxicab with
// missing values, masks, 1 or 0, follow the features of x. Tensor cores take both as halves (halves.cuh), with the bias
// in two further features, which samples multiply by COARSE and by 1.
//
// No feature exceeds 2^14, so that it fits into two halves. Units and samples with larger features are not screened.
// Such a unit gets the bias -inf and the norm +inf, so that `decide` evaluates its tile; such a sample gets the norm
// +inf, so that `decide` evaluates all tiles.
//
// Launch: see each kernel.
// Macros: FLOAT, the type of the values; METRIC, EUCLIDEAN, TAXICAB or COSINE.

#include "halves.cuh"
#include "search.cuh"

constexpr int EUCLIDEAN = 0, TAXICAB = 1, COSINE = 2;
constexpr bool DOTS = METRIC != TAXICAB;

constexpr int TILE = 64;               // units that share one least score
constexpr int PANEL = 128;             // samples whose features lie together, or units that a block packs
constexpr int WARPS = 8, AT_ONCE = 4;  // warps of a block of `decide`; groups of 32 tiles that a warp reads at a time
constexpr int SAMPLED = 64, FEWEST = 32, VALUES = 8192;  // most and fewest units whose mean is the centre; their values

constexpr int NOT_FINITE = 1, NOTHING_PRESENT = 2;
constexpr double LARGEST_VALUE = 3.273390607896142e150;  // 2^500: sums of squares must not overflow
constexpr double LARGEST_SAMPLE = 16384, LARGEST_UNIT = 128;
constexpr double COARSE = 256, LARGEST_BIAS = 32768 * COARSE;

// One half product makes the scores of a chunk if its bound keeps on average at most FEW tiles and one of MANY. With
// more tiles, two products more take less time than evaluating these tiles (200,000 x 60, 40,000 units, on an H200: from
// about 20 tiles on).
constexpr unsigned FEW = 2, MANY = 40;
constexpr bool SIFTED = METRIC != COSINE && sizeof(FLOAT) == 4;  // large maps are evaluated in float32 first
constexpr int MOST_SIFTED = 1 << 18;                             // dimensions
constexpr int MOST_UNITS = 4;  // of a tile, to evaluate one after the other instead of all together
constexpr int COUNTED = 16;    // a block in so many counts the tiles that this bound keeps

// A block of `pack` reports the first fault in its rows as NO_FAULT - (4 * row + kind), or 0 if there is none.
constexpr unsigned long long NO_FAULT = 1ull << 62;

__device__ inline double infinite() {
    return __longlong_as_double(0x7ff0000000000000);
}

__device__ inline long long panels_of_units(const Search& s) {
    return (s.m + PANEL - 1) / PANEL;
}

__device__ inline bool usable(double x) {
    return fabs(x) <= LARGEST_VALUE;
}

__device__ inline double greatest_of_warp(double value) {
    for (int lanes = 16; lanes; lanes /= 2) value = fmax(value, __shfl_xor_sync(0xffffffff, value, lanes));
    return value;
}

// Called by all PANEL threads of a block. Any centre gives exact results; here it is the mean of some units. Every
// block computes and stores the same centre, because that is faster than waiting for another block. Returns the scale,
// a power of two: scaled, the greatest deviation of the units from the centre is between 2 and 4 (cosine: scale 4).
__device__ inline double find_centre(const Search& s) {
    __shared__ double reaches[PANEL / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int count = (int)min(s.m, (long long)min(SAMPLED, max(VALUES / s.d, FEWEST)));
    const double step = (double)s.m / count, share = 1.0 / count;
    int group = 32;  // threads that compute one dimension
    while (group > 1 && group * s.d > PANEL) group /= 2;
    double reach = 0;
    for (int base = 0; base < s.d; base += PANEL / group) {
        const int k = base + threadIdx.x / group;
        const FLOAT* column = (const FLOAT*)s.codebook + (k < s.d ? k : 0) * s.unit_columns;
        double middle = 0;
        if (METRIC != COSINE) {
#pragma unroll 8
            for (int i = lane % group; i < count; i += group) {
                const double w = column[(long long)(i * step) * s.unit_rows];
                middle += usable(w) ? w * share : 0;
            }
            for (int lanes = group / 2; lanes; lanes /= 2) middle += __shfl_xor_sync(0xffffffff, middle, lanes);
#pragma unroll 8
            for (int i = lane % group; i < count; i += group) {
                const double w = column[(long long)(i * step) * s.unit_rows];
                reach = fmax(reach, usable(w) ? fabs(w - middle) : 0);
            }
        }
        if (k < s.d && lane % group == 0) s.centre[k] = middle;
    }
    reach = greatest_of_warp(reach);
    if (lane == 0) reaches[warp] = reach;
    __syncthreads();
    for (int other = 0; other < PANEL / 32; ++other) reach = fmax(reach, reaches[other]);
    double scale = METRIC == COSINE ? 4 : 1;
    if (reach > 0) {
        const int exponent = (int)(__double_as_longlong(reach) >> 52) - 1022;
        scale = __longlong_as_double((long long)(min(500, 2 - exponent) + 1023) << 52);
    }
    if (threadIdx.x == 0) s.centre[s.d] = scale;
    return scale;
}

// Writes the chunks of a row, feature(k) for k = 0, 1, ... in this order, and calls lost(k, remainder) with what
// rounding to halves takes from it.
template <class Feature, class Lost>
__device__ inline void pack_halves(Chunk* hi, long long rows, const Search& s, long long row, bool with_lo,
                                   const Feature& feature, const Lost& lost) {
    Chunk* const lo = hi + rows * (s.depth / CHUNK);
    for (int k = 0; k < s.depth; k += CHUNK) {
        Chunk chunk_hi, chunk_lo;
#pragma unroll
        for (int pair = 0; pair < CHUNK / 2; ++pair) {
            const int at = k + 2 * pair;
            double values[2];
            values[0] = feature(at);
            values[1] = feature(at + 1);
            split(chunk_hi.pairs[pair], chunk_lo.pairs[pair], values);
            lost(at, values[0]);
            lost(at + 1, values[1]);
        }
        const long long place = chunk_at(row, k / CHUNK, s.slab, s.depth);
        hi[place] = chunk_hi;
        if (with_lo) lo[place] = chunk_lo;
    }
}

// Packs two tiles of units, one unit per thread. Returns the kind of fault of the thread's unit, or 0.
__device__ inline int pack_units(const Search& s, double factor) {
    __shared__ double norms[PANEL / 32], residuals[PANEL / 32], offsets[PANEL / 32];
    const long long unit = (long long)blockIdx.x * PANEL + threadIdx.x, tile = unit / TILE;
    const bool inside = unit < s.m, there = tile < s.tiles;
    const int place = threadIdx.x % TILE;
    const FLOAT* row = (const FLOAT*)s.codebook + unit * s.unit_rows;
    FLOAT* exact = (FLOAT*)s.exact + tile * s.d * TILE + place;
    double square = 0, norm = 0;
    bool finite = true;
    for (int k = 0; k < s.d && there; ++k) {
        const double w = inside ? (double)row[k * s.unit_columns] : 0;
        finite = finite && usable(w);
        if (METRIC == COSINE) square = __dadd_rn(square, __dmul_rn(w, w));
        exact[k * TILE] = (FLOAT)w;
    }
    if (METRIC == COSINE && there) {
        const double length = sqrt(square);
        s.unit_lengths[unit] = length;
        factor = length > 0 ? factor / length : 0;
    }
    const auto value = [&](int k) { return inside ? ((double)row[k * s.unit_columns] - s.centre[k]) * factor : 0; };
    bool screened = true;
    for (int k = 0; k < s.d && there; ++k) {
        const double w = value(k);
        norm += DOTS ? w * w : fabs(w);
        screened = screened && fabs(w) <= LARGEST_UNIT;
    }
    screened = screened && (!s.tensor || norm <= LARGEST_BIAS);
    const double least = METRIC == EUCLIDEAN && !s.missing ? norm : 0;
    const double bias = !inside ? infinite() : screened ? least : -infinite();
    const int features = s.missing && DOTS ? 2 * s.d : s.d;
    const auto feature = [&](int k) {
        if (!screened || k >= features) return 0.0;
        const double w = value(k < s.d ? k : k - s.d);
        return k < s.d ? w : w * w;
    };
    double residual = 0, offset = 0;
    if (there && s.tensor) {
        float coarse, unused;
        from_halves(coarse, unused, pair_of_halves((float)(bias / COARSE), 0));
        const auto with_bias = [&](int k) {
            if (k == features) return (double)coarse;
            return k == features + 1 && inside && screened ? bias - COARSE * coarse : feature(k);
        };
        const auto lost = [&](int k, double remainder) {
            if (k < s.d) {
                residual += remainder * remainder;
            } else if (k != features) {
                offset += fabs(remainder);
            }
        };
        pack_halves((Chunk*)s.w, (long long)(s.tiles + s.tiles % 2) * TILE, s, unit, true, with_bias, lost);
    } else if (there) {
        float* to = (float*)s.w + tile * s.depth * TILE + place;
        for (int k = 0; k < s.depth; ++k) to[k * TILE] = (float)feature(k);
    }
    if (there && !s.tensor) s.bias[unit] = (float)bias;
    // A tile with a unit that is not screened gives no upper bound: its norm is infinite.
    const double greatest = greatest_of_warp(!screened ? infinite() : DOTS ? sqrt(norm) : norm);
    residual = greatest_of_warp(sqrt(residual));
    offset = greatest_of_warp(offset);
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) norms[warp] = greatest, residuals[warp] = residual, offsets[warp] = offset;
    __syncthreads();
    if (there && place == 0) {
        const auto of_tile = [&](const double (&of_warps)[PANEL / 32]) {
            return fmax(of_warps[warp], of_warps[warp + 1]) * 1.0001;
        };
        const double residual_of_tile = of_tile(residuals);
        s.tile_bounds[tile] = {(float)(of_tile(norms) + residual_of_tile), (float)residual_of_tile,
                               (float)of_tile(offsets)};
    }
    return finite ? 0 : NOT_FINITE;
}

// Packs one panel of samples, one sample per thread. Returns the kind of fault of the thread's sample, or 0.
__device__ inline int pack_samples(const Search& s, double factor, bool with_lo) {
    const long long panel = blockIdx.x - s.unit_blocks, i = panel * PANEL + threadIdx.x;
    const FLOAT* row = (const FLOAT*)s.samples + (s.first + i) * s.sample_rows;
    const bool inside = i < s.n, missing = s.missing;
    double square = 0, norm = 0, residual = 0;
    bool finite = true, empty = true;
    const auto given = [&](int k) { return inside ? (double)row[k * s.sample_columns] : 0; };
    const auto present = [&](double x) { return !missing || x == x; };
    if (METRIC == COSINE) {
        for (int k = 0; k < s.d; ++k) {
            const double x = given(k);
            if (present(x)) square = __dadd_rn(square, __dmul_rn(x, x));
        }
        const double length = sqrt(square);
        s.sample_lengths[i] = length;
        factor = length > 0 ? factor / length : 0;
    }
    factor *= METRIC == COSINE ? -1 : METRIC == EUCLIDEAN ? -2 : 1;
    bool screened = !(missing && METRIC == COSINE);
    const auto feature = [&](int k) {  // called once for each dimension
        double x = given(k);
        const bool there = present(x);
        empty = empty && !there;
        finite = finite && (!there || usable(x));
        x = there && inside ? (x - s.centre[k]) * factor : 0;
        norm += DOTS ? x * x : fabs(x);
        screened = screened && fabs(x) <= LARGEST_SAMPLE;
        return screened ? x : 0;
    };
    if (s.tensor) {
        const int masks = missing ? s.d : 0, features = s.d + masks;
        const auto with_bias = [&](int k) {
            if (k < s.d) return feature(k);
            if (k < features) return METRIC == EUCLIDEAN && present(given(k - s.d)) ? 1.0 : 0.0;
            return k == features ? COARSE : k == features + 1 ? 1.0 : 0.0;
        };
        const auto lost = [&](int k, double remainder) { residual += remainder * remainder; };
        const long long rows = (long long)(gridDim.x - s.unit_blocks) * PANEL;
        pack_halves((Chunk*)s.x, rows, s, i, with_lo, with_bias, lost);
        residual = sqrt(residual);
        s.sample_residuals[i] = residual;
    } else {
        float* features = (float*)s.x + panel * s.rows * PANEL + threadIdx.x;
        for (int k = 0; k < s.d; ++k) features[k * PANEL] = (float)feature(k);
        int k = s.d;
        if (missing && METRIC == EUCLIDEAN) {
            for (; k < 2 * s.d; ++k) features[k * PANEL] = present(given(k - s.d)) ? 1.f : 0.f;
        }
        for (; k < s.depth; ++k) features[k * PANEL] = 0;
        for (; k < s.rows; ++k) {
            features[k * PANEL] = k < s.depth + s.d && present(given(k - s.depth)) ? 1.f : 0.f;
        }
    }
    s.sample_norms[i] = !screened ? infinite() : DOTS ? sqrt(norm) + residual : norm;
    return !finite ? NOT_FINITE : empty ? NOTHING_PRESENT : 0;
}

// Returns how many half products make a score of this chunk. The first chunk of a plan takes three; a later chunk takes
// one if the bound of one product would have kept few tiles of the chunk before.
__device__ inline int products_of_chunk(const Search& s) {
    const unsigned long long kept = s.kept[0], samples = s.kept[1];
    return samples && kept * MANY <= samples * (FEW * MANY + (unsigned)s.tiles) ? 1 : 3;
}

// Launch: blocks of PANEL threads: first `unit_blocks` blocks for two tiles each, 0 if units are packed already, then
// one block for each panel of samples.
extern "C" __global__ void pack(const Search s) {
    __shared__ unsigned long long fault;
    if (threadIdx.x == 0) fault = 0;
    const double scale = find_centre(s);  // has a barrier, after which all threads see fault = 0
    const bool of_units = blockIdx.x < s.unit_blocks;
    const long long panel = of_units ? blockIdx.x : s.first / PANEL + blockIdx.x - s.unit_blocks;
    const int products = s.tensor ? products_of_chunk(s) : 1;
    if (s.tensor && blockIdx.x == 0 && threadIdx.x == 0) *s.products = products;
    for (long long tile = (long long)blockIdx.x * PANEL + threadIdx.x; s.sorted && tile < s.tiles;
         tile += (long long)gridDim.x * PANEL) {
        s.tile_counts[tile] = 0;
    }
    const int kind = of_units ? pack_units(s, scale) : pack_samples(s, scale, products > 1);
    if (kind) atomicMax(&fault, NO_FAULT - (4 * (unsigned long long)(panel * PANEL + threadIdx.x) + kind));
    __syncthreads();
    if (threadIdx.x == 0) s.faults[of_units ? panel : panels_of_units(s) + panel] = fault;
}

struct alignas(8) Two {
    float values[2];
};

// A unit and its distance (euclidean: the squared distance).
struct Found {
    double value;
    int unit;
};
constexpr int NONE = -1;

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

// The error bound of the scores of a sample, made of halves in `products` products or in float32 (products = 0); with
// the norm a of the sample and the norm b of a tile:
//
//     products    bound
//     1           residual of the sample x b + a x residual of the tile + offset of the tile
//                 + (kappa_of_one b + rounding (a + b)) (a + b) + tiny
//     3           (kappa b + rounding (a + b) + split (1 + b)) (a + b) + tiny
//     0           the same; taxicab: (kappa + rounding) (a + b) + tiny
//
// It is computed in float32 and enlarged a little, because its own computation rounds, too.
struct Bounds {
    float norm, factor, constant, tiny, residual, reach, whole;

    __device__ Bounds(const Search& s, long long i, int products) {
        const double more = 1.0001, a = s.sample_norms[i];
        const bool one = products == 1;
        const double split = one ? 0 : s.split;
        norm = (float)(a * more);
        factor = (float)((DOTS ? (one ? s.kappa_of_one : s.kappa) + s.rounding + split : 0) * more);
        constant = (float)((DOTS ? s.rounding * a + split : s.kappa + s.rounding) * more);
        tiny = (float)(s.tiny * more);
        residual = one ? (float)(s.sample_residuals[i] * more) : 0;
        reach = one ? norm : 0;
        whole = one ? (float)more : 0;
    }
    __device__ float epsilon(float least, const TileBound& tile) const {
        return (norm + tile.norm) * (factor * tile.norm + constant) + residual * tile.norm + reach * tile.residual +
               whole * tile.offset + tiny + fabsf(least) * 0x1p-22f;
    }
};

// Called by one block: writes the first fault of samples and of units.
__device__ inline void find_fault(const Search& s) {
    __shared__ unsigned long long found[2];
    if (threadIdx.x < 2) found[threadIdx.x] = 0;
    __syncthreads();
    const long long of_units = panels_of_units(s), count = of_units + (s.first + s.n + PANEL - 1) / PANEL;
    for (long long i = threadIdx.x; i < count; i += WARPS * 32) {
        if (s.faults[i]) atomicMax(found + (i < of_units), s.faults[i]);
    }
    __syncthreads();
    if (threadIdx.x < 2) s.fault[threadIdx.x] = found[threadIdx.x];
}

// Numbers in the order of the floats: -inf, ..., -0, 0, ..., inf.
__device__ inline unsigned in_order(float value) {
    const unsigned bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

__device__ inline float from_order(unsigned number) {
    return __uint_as_float(number >> 31 ? number & ~(1u << 31) : ~number);
}

// Returns the least value of a warp's lanes and makes `least` the lane that has it, or one of several lanes.
__device__ inline float least_of_warp(float value, int& lane) {
    const unsigned number = in_order(value), least = __reduce_min_sync(0xffffffff, number);
    lane = __ffs((int)__ballot_sync(0xffffffff, number == least)) - 1;
    return from_order(least);
}

// Returns an upper bound of the score of the best unit, for top = 2 of the second best unit; `nearest` becomes the tile
// that bounds the best score. A comparison with NaN is false, so that NaN excludes no tile.
template <class Score>
__device__ inline float bound_of_best(const Search& s, const Bounds& bounds, const Score& score, int& nearest) {
    const int lane = threadIdx.x % 32;
    float enough = (float)infinite(), enough_of_two = enough;
    nearest = 0;
#pragma unroll 4
    for (int tile = lane; tile < s.tiles; tile += 32) {
        const float bound = score(tile) + bounds.epsilon(score(tile), s.tile_bounds[tile]);
        if (bound < enough) {
            enough_of_two = enough;
            enough = bound;
            nearest = tile;
        } else if (bound < enough_of_two) {
            enough_of_two = bound;
        }
    }
    int of_lane;
    const float best = least_of_warp(enough, of_lane);
    nearest = __shfl_sync(0xffffffff, nearest, of_lane);
    return s.top == 1 ? best : least_of_warp(lane == of_lane ? enough_of_two : enough, of_lane);
}

// Launch: blocks of WARPS warps, a warp per sample; if `sorted`. Counts the samples of each tile.
extern "C" __global__ void bound(const Search s) {
    const int lane = threadIdx.x % 32;
    const long long i = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= s.n) return;
    const float* const least = s.least + i * s.tiles;
    const Bounds bounds(s, i, s.tensor ? *s.products : 0);
    int nearest;
    const float enough = bound_of_best(s, bounds, [&](int tile) { return least[tile]; }, nearest);
    if (lane == 0) {
        s.enough[i] = enough;
        s.nearest[i] = nearest;
        s.ranks[i] = atomicAdd(s.tile_counts + nearest, 1);
    }
}

// Launch: blocks of WARPS warps, a thread per sample; if `sorted`. Puts samples in order.
extern "C" __global__ void place(const Search s) {
    // Each lane adds up the samples of a stretch of tiles, and each warp finds the sums before all stretches.
    const int stretch = (s.tiles + 31) / 32, lane = threadIdx.x % 32;
    int own = 0;
    for (int tile = lane * stretch; tile < min((lane + 1) * stretch, s.tiles); ++tile) own += s.tile_counts[tile];
    int sum = own;
    for (int reach = 1; reach < 32; reach *= 2) {
        const int before = __shfl_up_sync(0xffffffff, sum, reach);
        if (lane >= reach) sum += before;
    }
    const long long i = (long long)blockIdx.x * WARPS * 32 + threadIdx.x;
    const int tile = i < s.n ? s.nearest[i] : 0;
    int at = __shfl_sync(0xffffffff, sum - own, tile / stretch);
    if (i >= s.n) return;
    for (int other = tile / stretch * stretch; other < tile; ++other) at += s.tile_counts[other];
    s.order[at + s.ranks[i]] = (int)i;
}

// Launch: blocks of WARPS warps, a warp per sample. Samples of the same tile follow each other if `sorted`, so that the
// tile comes from the first-level cache.
extern "C" __global__ void decide(const Search s) {
    // Of a warp, 32 dimensions at a time: its sample, as double, because the conversion from float is slow; or terms.
    __shared__ double staged[WARPS][32];
    if (blockIdx.x == 0) find_fault(s);
    const int lane = threadIdx.x % 32;
    const long long at = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
    if (at >= s.n) return;
    const long long i = s.sorted ? s.order[at] : at;
    const int tiles = s.tiles, d = s.d, top = s.top, missing = s.missing;
    const float* const least = s.least + i * tiles;
    const TileBound* const tile_bounds = s.tile_bounds;
    // Without a screen `least` is not initialized. The bounds are infinite then, so any score works.
    const auto score = [&](int tile) { return METRIC == COSINE && missing ? 0 : least[tile]; };
    double* mine = staged[threadIdx.x / 32];
    const FLOAT* row = (const FLOAT*)s.samples + (s.first + i) * s.sample_rows;
    const int products = s.tensor ? *s.products : 0;
    const Bounds bounds(s, i, products);
    int nearest;
    const float enough = s.sorted ? s.enough[i] : bound_of_best(s, bounds, score, nearest);

    if (products && blockIdx.x % COUNTED == 0 && s.sample_norms[i] < infinite()) {
        const Bounds of_one(s, i, 1);
        const float enough_for_one = products == 1 ? enough : bound_of_best(s, of_one, score, nearest);
        unsigned kept = 0;
        for (int tile = lane; tile < tiles; tile += 32) {
            kept += !(score(tile) - of_one.epsilon(score(tile), tile_bounds[tile]) > enough_for_one);
        }
        kept = __reduce_add_sync(0xffffffff, kept);
        if (lane == 0) {
            atomicAdd(s.kept, kept);
            atomicAdd(s.kept + 1, 1u);
        }
    }

    Found best = {infinite(), NONE}, second = best;  // found by this lane
    const auto add = [&](double value, int unit) {   // called for units in ascending order
        if (unit < s.m && value < best.value) {
            second = best;
            best = {value, unit};
        } else if (unit < s.m && value < second.value) {
            second = {value, unit};
        }
    };
    const auto evaluate = [&](int tile) {  // called for tiles in ascending order
        const FLOAT* column = (const FLOAT*)s.exact + (long long)tile * d * TILE + lane;
        double value[2] = {0, 0}, square[2] = {0, 0};
        for (int from = 0; from < d; from += 32) {
            const int count = min(32, d - from);
            __syncwarp();
            if (lane < count) mine[lane] = row[(from + lane) * s.sample_columns];
            __syncwarp();
#pragma unroll 4
            for (int k = 0; k < count; ++k) {
                const double x = mine[k];
                if (missing && x != x) continue;
                for (int h = 0; h < 2; ++h) {
                    const double w = column[(from + k) * TILE + h * 32];
                    if (METRIC == EUCLIDEAN) value[h] = __dadd_rn(value[h], __dmul_rn(x - w, x - w));
                    if (METRIC == TAXICAB) value[h] = __dadd_rn(value[h], fabs(x - w));
                    if (METRIC == COSINE) value[h] = __dadd_rn(value[h], __dmul_rn(x, w));
                    if (METRIC == COSINE && missing) square[h] = __dadd_rn(square[h], __dmul_rn(w, w));
                }
            }
        }
        for (int h = 0; h < 2; ++h) {
            const int unit = tile * TILE + h * 32 + lane;
            if (METRIC == COSINE) {
                const double product = s.sample_lengths[i] * (missing ? sqrt(square[h]) : s.unit_lengths[unit]);
                value[h] = product > 0 ? fmax(1 - value[h] / product, 0) : 1;
            }
            add(value[h], unit);
        }
    };

    // Large maps in float32 first; small ones gain nothing. No term is negative, so that the sum of d terms is off by less
    // than `blur` of it, and by `floor` for what is flushed to zero. Only units that this does not exclude are evaluated.
    const float blur = 2 * (d + 8) * 0x1p-24f, floor = d * 0x1p-120f;
    float limit = (float)infinite(), limit_of_two = limit;  // upper bounds of the distances of the two nearest units
    const auto evaluate_unit = [&](int unit) {
        const FLOAT* column = (const FLOAT*)s.exact + (long long)(unit / TILE) * d * TILE + unit % TILE;
        double sum = 0;
        for (int from = 0; from < d; from += 32) {
            const int count = min(32, d - from);
            __syncwarp();
            if (lane < count) {
                const double x = row[(from + lane) * s.sample_columns], w = column[(from + lane) * TILE];
                mine[lane] = missing && x != x ? 0 : METRIC == EUCLIDEAN ? __dmul_rn(x - w, x - w) : fabs(x - w);
            }
            __syncwarp();
#pragma unroll 4
            for (int k = 0; k < count; ++k) sum = __dadd_rn(sum, mine[k]);
        }
        if (lane == 0) add(sum, unit);
    };
    const auto sift = [&](int tile) {  // called for tiles in ascending order
        const Two* column = (const Two*)s.exact + (long long)tile * d * (TILE / 2) + lane;
        float* const x = (float*)mine;
        float value[2] = {0, 0};
        for (int from = 0; from < d; from += 32) {
            const int count = min(32, d - from);
            __syncwarp();
            if (lane < count) x[lane] = row[(from + lane) * s.sample_columns];
            __syncwarp();
#pragma unroll 4
            for (int k = 0; k < count; ++k) {
                if (missing && x[k] != x[k]) continue;
                const Two w = column[(from + k) * (TILE / 2)];
                for (int h = 0; h < 2; ++h) {
                    const float apart = x[k] - w.values[h];
                    value[h] += METRIC == EUCLIDEAN ? apart * apart : fabsf(apart);
                }
            }
        }
        const int unit = tile * TILE + 2 * lane;
        float upper[2];
        bool near[2];
        for (int h = 0; h < 2; ++h) {
            upper[h] = unit + h < s.m ? value[h] + blur * value[h] + floor : (float)infinite();
        }
        int of_lane;
        const float smaller = fminf(upper[0], upper[1]), larger = fmaxf(upper[0], upper[1]);
        const float nearest = least_of_warp(smaller, of_lane);
        if (top == 2) {
            const float second_nearest = least_of_warp(lane == of_lane ? larger : smaller, of_lane);
            limit_of_two = fminf(fmaxf(limit, nearest), fminf(limit_of_two, second_nearest));
        }
        limit = fminf(limit, nearest);
        for (int h = 0; h < 2; ++h) {  // a value above 1e38 may be infinite because it overflowed
            const float lower = fminf(value[h], 1e38f);
            near[h] = unit + h < s.m && !(lower - blur * lower - floor > (top == 2 ? limit_of_two : limit));
        }
        const unsigned first = __ballot_sync(0xffffffff, near[0]), second = __ballot_sync(0xffffffff, near[1]);
        if (__popc(first) + __popc(second) > MOST_UNITS) return evaluate(tile);
        for (unsigned left = first | second; left; left &= left - 1) {
            const int other = __ffs((int)left) - 1;
            if (first >> other & 1) evaluate_unit(tile * TILE + 2 * other);
            if (second >> other & 1) evaluate_unit(tile * TILE + 2 * other + 1);
        }
    };
    for (int base = 0; base < tiles; base += 32 * AT_ONCE) {
        float scores[AT_ONCE];
        TileBound tile_bound[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            const int tile = min(base + j * 32 + lane, tiles - 1);
            scores[j] = score(tile);
            tile_bound[j] = tile_bounds[tile];
        }
        unsigned candidates = 0;  // bit j is for tile base + j * 32 + lane
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            const bool out = scores[j] - bounds.epsilon(scores[j], tile_bound[j]) > enough;
            candidates |= (unsigned)(base + j * 32 + lane < tiles && !out) << j;
        }
#pragma unroll 1
        for (int j = 0; j < AT_ONCE; ++j) {
            unsigned left = __ballot_sync(0xffffffff, candidates >> j & 1);
            for (; left; left &= left - 1) {
                const int tile = base + j * 32 + __ffs((int)left) - 1;
                if (SIFTED && s.sorted && d <= MOST_SIFTED) {
                    sift(tile);
                } else {
                    evaluate(tile);
                }
            }
        }
    }
    for (int place = 0; place < top; ++place) {
        const Found found = nearest_of_warp(best);
        if (lane == 0) {
            s.units[(s.first + i) * top + place] = found.unit;
            ((FLOAT*)s.distances)[(s.first + i) * top + place] =
                (FLOAT)(METRIC == EUCLIDEAN ? sqrt(found.value) : found.value);
        }
        if (best.unit == found.unit) best = second;
    }
}

// Best matching units, before and after the screen: pack units and samples as features, and decide in float64.
//
//     pack      computes a centre of the codebook and a scale; writes units as features and as given, biases and the
//               bounds of each tile; writes samples as features, their norms and residuals; on tensor cores chooses how
//               many half products make a score
//     bound, place    put samples with the same nearest tile next to each other, if there are many samples
//     decide, decide_together    compute units and distances from the least scores [n][tiles] that a screen has written,
//               for one sample in a warp or for several. Cosine with missing values has no screen: all units are
//               evaluated.
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

constexpr int TILE = 64;    // units that share one least score
constexpr int PANEL = 128;  // samples whose features lie together, or units that a block packs
constexpr int WARPS = 4;    // of a block of `bound`, `place` and `decide`
constexpr int SAMPLED = 64, FEWEST = 32, VALUES = 8192;  // most and fewest units whose mean is the centre; their values

constexpr int NOT_FINITE = 1, NOTHING_PRESENT = 2;
constexpr double LARGEST_VALUE = 3.273390607896142e150;  // 2^500: sums of squares must not overflow
constexpr double LARGEST_SAMPLE = 16384, LARGEST_UNIT = 128;
constexpr double COARSE = 256, LARGEST_BIAS = 32768 * COARSE;

// One half product makes the scores of a chunk if its bound keeps on average at most FEW tiles and one of MANY. With
// more tiles, two products more took less time than evaluating these tiles (200,000 x 60, 40,000 units, on an H200, before
// tiles were sifted: from about 20 tiles on).
constexpr unsigned FEW = 2, MANY = 40;
constexpr int COUNTED = 16;  // a block in so many counts the tiles that this bound keeps

constexpr int TOGETHER = 4;    // samples of a warp of `decide_together`
constexpr int STAGED = 128;    // dimensions of a sample that a warp has in shared memory
constexpr int MOST_UNITS = 8;  // of a tile, to be listed one by one instead of the whole tile
constexpr int LISTED = 32;     // units and tiles that may be listed for a sample, to be evaluated

// A block of `pack` reports the first fault in its rows as NO_FAULT - (4 * row + kind), or 0 if there is none.
constexpr unsigned long long NO_FAULT = 1ull << 62;

__device__ inline double infinite() {
    return __longlong_as_double(0x7ff0000000000000);
}

__device__ inline long long panels_of_units(const Search& s) {
    return (s.m + PANEL - 1) / PANEL;
}

// Rows of features of units in float32; those behind the dimensions are not used.
__device__ inline int fine_rows(const Search& s) {
    return s.tensor ? (s.d + 3) / 4 * 4 : s.depth;
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
    if (there) s.bias[unit] = (float)bias;
    float* const fine = s.fine + tile * fine_rows(s) * TILE + place;
    for (int k = 0; k < fine_rows(s) && there && s.tensor; ++k) fine[k * TILE] = k < s.d ? (float)feature(k) : 0;
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
struct alignas(16) Four {
    float values[4];
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

// A unit, and a lower bound of its score.
struct Near {
    float lower;
    int unit;
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

    __device__ Bounds(const Search& s, long long i, int products) {
        const double more = 1.0001, a = s.sample_norms[i];
        const bool one = products == 1;
        const double split = products == 3 ? s.split : 0;
        const double kappa = one ? s.kappa_of_one : products == SIFTED ? s.kappa_of_sifted : s.kappa;
        norm = (float)(a * more);
        factor = (float)((DOTS ? kappa + s.rounding + split : 0) * more);
        constant = (float)((DOTS ? s.rounding * a + split : kappa + s.rounding) * more);
        tiny = (float)((products == SIFTED ? s.tiny_of_sifted : s.tiny) * more);
        residual = one ? (float)(s.sample_residuals[i] * more) : 0;
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

// Launch: blocks of WARPS warps, a thread per sample; if `sorted`. Counts the samples of each tile.
extern "C" __global__ void bound(const Search s) {
    const int lane = threadIdx.x % 32, products = s.tensor ? *s.products : 0;
    const long long i = (long long)blockIdx.x * WARPS * 32 + threadIdx.x, first = i - lane;
    int own = NONE;
    for (int k = 0; k < 32 && first + k < s.n; ++k) {
        const float* const least = s.least + (first + k) * s.tiles;
        int nearest;
        bound_of_best(s, Bounds(s, first + k, products), [&](int tile) { return least[tile]; }, nearest);
        if (lane == k) own = nearest;
    }
    // A warp counts its samples of a tile at once, because the counters of a few tiles would be a bottleneck.
    const unsigned same = __match_any_sync(0xffffffff, (unsigned)own);
    const int leader = __ffs((int)same) - 1;
    int before = 0;
    if (lane == leader && own != NONE) before = atomicAdd(s.tile_counts + own, __popc(same));
    before = __shfl_sync(0xffffffff, before, leader);
    if (i >= s.n) return;
    s.nearest[i] = own;
    s.ranks[i] = before + __popc(same & ((1u << lane) - 1));
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

// Starts to load a line into the first-level cache.
__device__ inline void prefetch(const void* line) {
    asm volatile("prefetch.global.L1 [%0];" ::"l"(line));
}
constexpr int LINE = 128;  // bytes

// Adds the terms of `count` dimensions, a multiple of 4, to the scores of two units for each sample. The terms of a score
// are in two sums, of even and of odd dimensions.
template <int SAMPLES, bool MISSING>
__device__ inline void add_terms(float (&sums)[SAMPLES][2][2], const Four (*features)[STAGED / 4], const Two* units,
                                 int count) {
#pragma unroll 2
    for (int k = 0; k < count; k += 4) {
        Two w[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) w[j] = units[(k + j) * (TILE / 2)];
#pragma unroll
        for (int q = 0; q < SAMPLES; ++q) {
            const Four x = features[q][k / 4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const float a = x.values[j], b = w[j].values[h];
                    if (MISSING && a != a) continue;
                    sums[q][h][j % 2] += !DOTS ? fabsf(a - b) : MISSING ? b * (a + b) : a * b;
                }
            }
        }
    }
}

// Decides SAMPLES successive samples for each warp of a block. GROUP lanes know the same of a sample, and share its work.
//
// A tile is first *sifted*: the scores of its units are computed in float32, with a much smaller error bound than that of
// the screen. The tile with the least score comes first, because its scores exclude most other tiles. Units that may be
// the best one are listed, and those that still may be it in the end are evaluated in float64.
//
// In a sift, a lane has two units, and all samples share the loads of these units.
template <int SAMPLES>
__device__ inline void decide_samples(const Search& s) {
    __shared__ Four features_of_warps[WARPS][SAMPLES][STAGED / 4];
    __shared__ double terms_of_warps[WARPS][SAMPLES][33];  // an odd number, because of the banks
    __shared__ Near listed_of_warps[WARPS][SAMPLES][LISTED];
    constexpr int GROUP = 32 / SAMPLES;
    constexpr unsigned ALL = 0xffffffff;
    const float infinity = (float)infinite();
    if (blockIdx.x == 0) find_fault(s);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / GROUP, place = lane % GROUP;
    const long long first = ((long long)blockIdx.x * WARPS + warp) * SAMPLES;
    if (first >= s.n) return;
    const int samples = (int)min((long long)SAMPLES, s.n - first), own = (int)first + min(group, samples - 1);
    const int i = s.sorted ? s.order[own] : own;
    const int tiles = s.tiles, d = s.d, top = s.top, missing = s.missing, rows = (d + 3) / 4 * 4;
    const int products = s.tensor ? *s.products : 0;
    const bool screens = !(METRIC == COSINE && missing);  // otherwise `least` is not initialized
    const TileBound* const tile_bounds = s.tile_bounds;
    const float* const least = s.least + (long long)i * tiles;
    const FLOAT* const row = (const FLOAT*)s.samples + (s.first + i) * s.sample_rows;
    if (screens) {  // lines that will be read arrive meanwhile
        const char* const scores = (const char*)(s.least + (long long)i * tiles);
        for (int at = place * LINE; at < tiles * 4; at += GROUP * LINE) prefetch(scores + at);
    }
    const Bounds sifted(s, i, SIFTED);
    float limit = infinity, limit_of_two = infinity;  // upper bounds of the two best scores
    int listed = screens ? 0 : LISTED + 1;  // more than LISTED: all tiles will be evaluated that are not excluded

    Four(*const features)[STAGED / 4] = features_of_warps[warp];
    double factor = s.centre[d] * (METRIC == EUCLIDEAN ? -2 : METRIC == COSINE ? -1 : 1);
    if (METRIC == COSINE) factor = s.sample_lengths[i] > 0 ? factor / s.sample_lengths[i] : 0;
    int first_staged = -1;
    const auto stage = [&](int from) {  // features of dimensions that do not exist or are missing are NaN or 0
        if (from == first_staged) return;
        first_staged = from;
        __syncwarp();
#pragma unroll 4
        for (int k = place; k < min(STAGED, rows - from); k += GROUP) {
            float feature = missing ? __int_as_float(0x7fffffff) : 0;
            if (from + k < d) {
                feature = (float)((row[(from + k) * s.sample_columns] - s.centre[from + k]) * factor);
            }
            ((float*)features[group])[k] = feature;
        }
        __syncwarp();
    };
    const auto sift = [&](int tile, unsigned who) {  // for the samples whose bits are set
        const Two* const column = (const Two*)s.fine + (long long)tile * fine_rows(s) * (TILE / 2) + lane;
        float parts[SAMPLES][2][2] = {};
        for (int from = 0; from < d; from += STAGED) {
            stage(from);
            const int count = min(STAGED, rows - from);
            if (missing) {
                add_terms<SAMPLES, true>(parts, features, column + from * (TILE / 2), count);
            } else {
                add_terms<SAMPLES, false>(parts, features, column + from * (TILE / 2), count);
            }
        }
        const Two bias = ((const Two*)s.bias)[tile * (TILE / 2) + lane];
        const TileBound tile_bound = tile_bounds[tile];
        const int unit = tile * TILE + 2 * lane;
#pragma unroll
        for (int q = 0; q < SAMPLES; ++q) {
            if (!(who >> q & 1)) continue;
            const auto of_sample = [&](auto known) { return __shfl_sync(ALL, known, q * GROUP); };
            const Bounds bounds = sifted.of_lane(q * GROUP);
            float lower[2], upper[2];
            for (int h = 0; h < 2; ++h) {
                const float value = parts[q][h][0] + parts[q][h][1] + bias.values[h];
                const float epsilon = bounds.epsilon(value, tile_bound);
                lower[h] = value - epsilon;
                upper[h] = value + epsilon < infinity ? value + epsilon : infinity;  // also if NaN
            }
            float best = of_sample(limit), best_of_two = of_sample(limit_of_two);
            int lane_of_least;
            const float smaller = fminf(upper[0], upper[1]), larger = fmaxf(upper[0], upper[1]);
            const float least_upper = least_of_warp(smaller, lane_of_least);
            if (top == 2) {
                const float second_upper = least_of_warp(lane == lane_of_least ? larger : smaller, lane_of_least);
                best_of_two = fminf(fmaxf(best, least_upper), fminf(best_of_two, second_upper));
            }
            best = fminf(best, least_upper);
            unsigned near[2];
            for (int h = 0; h < 2; ++h) {
                near[h] = __ballot_sync(ALL, unit + h < s.m && !(lower[h] > (top == 1 ? best : best_of_two)));
            }
            const int found = __popc(near[0]) + __popc(near[1]), known = of_sample(listed);
            const int added = found > MOST_UNITS ? 1 : found;
            if (group == q) {
                limit = best;
                limit_of_two = best_of_two;
                listed = min(known + added, LISTED + 1);
            }
            if (known + added > LISTED) continue;
            Near* const list = listed_of_warps[warp][q] + known;
            if (found > MOST_UNITS) {
                if (lane == 0) *list = {-infinity, ~tile};
                continue;
            }
            const unsigned before = (1u << lane) - 1;
            if (near[0] >> lane & 1) list[__popc(near[0] & before)] = {lower[0], unit};
            if (near[1] >> lane & 1) list[__popc(near[0]) + __popc(near[1] & before)] = {lower[1], unit + 1};
        }
    };

    const Bounds bounds(s, i, products);
    const auto enough = [&] { return top == 1 ? limit : limit_of_two; };
    if (screens) {
        int nearest;
        if (s.sorted) {
            nearest = s.nearest[i];
        } else {
            bound_of_best(s, bounds, [&](int tile) { return least[tile]; }, nearest);
        }
        // First the nearest tiles of all samples; then those that remain of 32 GROUP tiles at a time, as bits of the lane
        // of each GROUP tiles: for sample after sample, one for a tile.
        unsigned left = (1u << SAMPLES) - 1, candidates = 0, lanes = 0, bits = 0;
        for (int base = -32 * GROUP, tile;;) {
            unsigned who = 0;
            if (left) {
                tile = __shfl_sync(ALL, nearest, (__ffs((int)left) - 1) * GROUP);
                const unsigned same = __ballot_sync(ALL, nearest == tile);
                for (int q = 0; q < SAMPLES; ++q) who |= (same >> q * GROUP & 1) << q;
                left &= ~who;
            } else if (bits) {
                const int bit = __ffs((int)bits) - 1;
                for (int q = 0; q < SAMPLES; ++q) who |= (bits >> (q * GROUP + bit % GROUP) & 1) << q;
                for (int q = 0; q < SAMPLES; ++q) bits &= ~(1u << (q * GROUP + bit % GROUP));
                tile = base + (__ffs((int)lanes) - 1) * GROUP + bit % GROUP;
                if (!bits) lanes &= lanes - 1;
            } else if (lanes) {
                bits = __shfl_sync(ALL, candidates, __ffs((int)lanes) - 1);
                continue;
            } else {
                base += 32 * GROUP;
                if (base >= tiles) break;
                const float best = enough();
#pragma unroll 4
                for (int turn = 0; turn < min(32, (tiles - base + GROUP - 1) / GROUP); ++turn) {
                    const int own_tile = base + turn * GROUP + place, at = min(own_tile, tiles - 1);
                    const bool out = least[at] - bounds.epsilon(least[at], tile_bounds[at]) > best;
                    const unsigned kept =
                        __ballot_sync(ALL, own_tile < tiles && own_tile != nearest && group < samples && !out);
                    if (lane == turn) candidates = kept;
                }
                if (lane >= (tiles - base + GROUP - 1) / GROUP) candidates = 0;
                lanes = __ballot_sync(ALL, candidates != 0);
                continue;
            }
            sift(tile, who & ((1u << samples) - 1));
        }
        if (products && blockIdx.x % COUNTED == 0) {  // how many tiles would one half product keep?
            const Bounds of_one(s, i, 1);
            const bool counts = group < samples && s.sample_norms[i] < infinite();
            unsigned kept = 0;
            for (int tile = place; tile < tiles && counts; tile += GROUP) {
                kept += !(least[tile] - of_one.epsilon(least[tile], tile_bounds[tile]) > enough());
            }
            kept = __reduce_add_sync(ALL, kept);
            const unsigned counted = __reduce_add_sync(ALL, counts && place == 0);
            if (lane == 0) {
                atomicAdd(s.kept, kept);
                atomicAdd(s.kept + 1, counted);
            }
        }
    }

    __syncwarp();
    double (*const terms)[33] = terms_of_warps[warp];
    const auto distance = [&](int sample, double sum, double square, int unit) {
        if (METRIC != COSINE) return sum;
        const double product = s.sample_lengths[sample] * (missing ? sqrt(square) : s.unit_lengths[unit]);
        return product > 0 ? fmax(1 - sum / product, 0.0) : 1.0;
    };
    Nearest nearest_units;  // of the group's sample
    const Near* const list = listed_of_warps[warp][group];
    bool whole = listed > LISTED;  // whether there are tiles to be evaluated
    for (int at = 0;;) {
        int unit = NONE;
        for (; at < listed && listed <= LISTED && unit < 0; ++at) {
            const Near near = list[at];
            if (near.lower > enough()) continue;
            unit = near.unit;
            whole |= unit < 0;
        }
        if (!__any_sync(ALL, unit >= 0)) break;
        const FLOAT* const of_unit = (const FLOAT*)s.codebook + max(unit, 0) * s.unit_rows;
        double sum = 0;
        for (int from = 0; from < d; from += 32) {
            __syncwarp();
#pragma unroll
            for (int k = place; k < 32; k += GROUP) {
                if (from + k >= d) continue;
                const double x = row[(from + k) * s.sample_columns], w = of_unit[(from + k) * s.unit_columns];
                const double apart = x - w, square = __dmul_rn(apart, apart);
                const double term = METRIC == COSINE ? __dmul_rn(x, w) : METRIC == TAXICAB ? fabs(apart) : square;
                terms[group][k] = missing && x != x ? 0 : term;
            }
            __syncwarp();
#pragma unroll 4
            for (int k = 0; k < min(32, d - from); ++k) sum = __dadd_rn(sum, terms[group][k]);
        }
        if (unit >= 0) nearest_units.add({distance(i, sum, 0, unit), unit});
    }
    for (unsigned left = __ballot_sync(ALL, whole && place == 0 && group < samples); left; left &= left - 1) {
        const int of = __ffs((int)left) - 1, sample = __shfl_sync(ALL, i, of);
        const int entries = __shfl_sync(ALL, listed, of);
        const float best_score = __shfl_sync(ALL, enough(), of);
        const FLOAT* const values = (const FLOAT*)s.samples + (s.first + sample) * s.sample_rows;
        const float* const scores = s.least + (long long)sample * tiles;
        const Bounds of_sample(s, sample, products);
        Nearest of_lane;
        const auto evaluate = [&](int tile) {
            const FLOAT* column = (const FLOAT*)s.exact + (long long)tile * d * TILE + lane;
            double value[2] = {0, 0}, square[2] = {0, 0};
            for (int from = 0; from < d; from += 32) {
                const int count = min(32, d - from);
                __syncwarp();
                if (lane < count) terms[0][lane] = values[(from + lane) * s.sample_columns];
                __syncwarp();
#pragma unroll 4
                for (int k = 0; k < count; ++k) {
                    const double x = terms[0][k];
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
                if (unit < s.m) of_lane.add({distance(sample, value[h], square[h], unit), unit});
            }
        };
        const Near* const of_list = listed_of_warps[warp][of / GROUP];
        for (int at = 0; at < (entries > LISTED ? tiles : entries); ++at) {
            if (entries <= LISTED) {
                if (of_list[at].unit < 0) evaluate(~of_list[at].unit);
                continue;
            }
            const float score = screens ? scores[at] : 0;
            if (!(score - of_sample.epsilon(score, tile_bounds[at]) > best_score)) evaluate(at);
        }
        for (int turn = 0; turn < top; ++turn) {
            const Found found = nearest_of_warp(of_lane.best);
            if (group == of / GROUP && found.unit != NONE) nearest_units.add(found);
            if (of_lane.best.unit == found.unit) of_lane.best = of_lane.second;
        }
    }
    if (place == 0 && group < samples) {
        const auto write = [&](const Found& found, int number) {
            s.units[(s.first + i) * top + number] = found.unit;
            ((FLOAT*)s.distances)[(s.first + i) * top + number] =
                (FLOAT)(METRIC == EUCLIDEAN ? sqrt(found.value) : found.value);
        };
        write(nearest_units.best, 0);
        if (top == 2) write(nearest_units.second, 1);
    }
}

// Launch: blocks of WARPS warps, a warp per sample; unless `sorted`.
extern "C" __global__ void decide(const Search s) {
    decide_samples<1>(s);
}

// Launch: blocks of WARPS warps, a warp for TOGETHER samples; if `sorted`, since samples of the same tile then follow
// each other.
extern "C" __global__ void decide_together(const Search s) {
    decide_samples<TOGETHER>(s);
}

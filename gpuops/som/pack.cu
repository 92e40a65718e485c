// Best matching units, before the screen: packs units and samples as features (features.cuh).
//
// `pack` computes a centre of the codebook and a scale; writes units as features and as given, biases and the bounds of
// each tile; writes samples as features, their norms and residuals; on tensor cores chooses how many half products make
// a score.
//
// Launch: see the kernel.
// Macros: FLOAT, METRIC (features.cuh).

#include "features.cuh"
#include "halves.cuh"

constexpr int SAMPLED = 64, FEWEST = 32, VALUES = 8192;  // most and fewest units whose mean is the centre; their values

// One half product makes the scores of a chunk if its bound keeps on average at most FEW tiles and one of MANY. With
// more tiles, two products more took less time than evaluating these tiles (200,000 x 60, 40,000 units, on an H200, before
// tiles were sifted: from about 20 tiles on).
constexpr unsigned FEW = 2, MANY = 40;

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
    FLOAT* const exact = (FLOAT*)s.exact + (s.matched ? first_of_exact(unit, s.d) : tile * s.d * TILE + place);
    const int next = s.matched ? QUAD : TILE;
    double square = 0, norm = 0;
    bool finite = true;
    constexpr int AT_ONCE = 8;  // loads on their way: otherwise each would wait for the store before it
    for (int from = 0; from < s.d && there; from += AT_ONCE) {
        FLOAT values[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            values[k] = inside && from + k < s.d ? row[(from + k) * s.unit_columns] : 0;
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            if (from + k >= s.d) break;
            const double w = values[k];
            finite = finite && usable(w);
            if (METRIC == COSINE) square = __dadd_rn(square, __dmul_rn(w, w));
            exact[(from + k) * next] = values[k];
        }
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
    if (s.matched && blockIdx.x == 0 && threadIdx.x == 0) {
        s.left[0] = s.left[1] = 0;
        if (s.unit_blocks) s.faults[panels_of_units(s)] = 0;  // of all samples
    }
    if (s.matched && !of_units) return;
    const int kind = of_units ? pack_units(s, scale) : pack_samples(s, scale, products > 1);
    if (kind) atomicMax(&fault, NO_FAULT - (4 * (unsigned long long)(panel * PANEL + threadIdx.x) + kind));
    __syncthreads();
    if (threadIdx.x == 0) s.faults[of_units ? panel : panels_of_units(s) + panel] = fault;
}

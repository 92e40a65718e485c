// Best matching units, after the screen: decides from the least scores [n][tiles] which unit is the nearest, in float64
// where it must be. gpuops/som/__init__.py describes the computation and why it is exact.
//
//     bound, place    put samples with the same nearest tile next to each other, if there are many samples
//     decide, decide_together    compute units and distances, for one sample in a warp or for several. Cosine with
//               missing values has no screen: all units are evaluated.
//
// Launch: see each kernel.
// Macros: FLOAT, METRIC (features.cuh).

#include "bounds.cuh"

constexpr int WARPS = 4;     // of a block
constexpr int COUNTED = 16;  // a block in so many counts the tiles that the bound of one half product keeps

constexpr int TOGETHER = 4;    // samples of a warp of `decide_together`
constexpr int STAGED = 128;    // dimensions of a sample that a warp has in shared memory
constexpr int MOST_UNITS = 8;  // of a tile, to be listed one by one instead of the whole tile
constexpr int LISTED = 32;     // units and tiles that may be listed for a sample, to be evaluated

struct alignas(8) Two {
    float values[2];
};
struct alignas(16) Four {
    float values[4];
};

// A unit, and a lower bound of its score.
struct Near {
    float lower;
    int unit;
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
#pragma unroll 4
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

// Decides SAMPLES successive samples for each warp of a block. The GROUP lanes of a sample hold the same numbers, such as
// its bounds, and share its work.
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
#pragma unroll 8
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

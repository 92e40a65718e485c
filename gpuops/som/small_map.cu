// Best matching units of many samples in a small map: one kernel screens and decides, and no score is stored.
//
//     match        finds the units of nearly all samples
//     match_left   finds the units of samples with features that do not fit into halves
//
// All units, as halves, are in shared memory. A warp takes a batch of 32 samples at a time, whose features it computes
// itself, and computes scores of one half product on tensor cores. A thread gets the scores of four samples and of QUAD
// units at a time, a *quad*. The least of these scores and the number of the quad are one float, the *key* of the quad:
// the number replaces the last bits of the score. For each sample a thread keeps the least and the second least key.
//
// With e, the bound on the error of a key, quads whose key - e does not exceed the least key + e of all threads may hold
// the nearest unit. They are *candidates*, and all their units are evaluated in float64 as given. Most samples have one
// candidate. If the second least key of a thread is a candidate, the thread may have had more, and its warp *looks again*:
// it computes the scores once more, and lists all candidates of these samples.
//
// Source of the bound: gpuops/som/__init__.py; to replace bits of a score changes it by at most 2^(BITS - 23) of it.
//
// Launch: `pack` for the units alone, then `match` and `match_left`, in blocks of at most THREADS threads. `match`
//         stays on each multiprocessor, with shared memory for all units as halves and for 32 samples of each warp.
// Macros: FLOAT, METRIC = EUCLIDEAN (features.cuh); KSTEPS, steps of 16 features; THREADS, most threads of a block.

#include "../device/async_copy.cuh"
#include "bounds.cuh"
#include "halves.cuh"

constexpr int CHUNKS = 2 * KSTEPS, GROUP = CHUNKS * 8;  // GROUP: chunks of eight units
constexpr int BITS = 8;                                 // of a key, for the number of its quad
constexpr float LEAST_KEY = 0x1p-126f;                  // the least normal number
constexpr float ABSENT = 0x1.fffffep127f;               // the score of a quad without a unit: the greatest number
constexpr int ABSENT_UNIT = 0x7fffffff;
constexpr int BATCH = 32;     // samples of a warp at a time
constexpr int OF_THREAD = 4;  // samples whose scores a thread has
constexpr int LISTED = 64;    // candidates that a warp lists before it evaluates them

// A candidate, and its nearest unit.
struct Candidate {
    unsigned long long value;  // the bits of its squared distance
    int unit;
    short quad, sample;
};

constexpr int LINE = 128;  // bytes

// Starts to load a line into the second-level cache.
__device__ inline void prefetch(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

// sums (16 x 8) += a (16 x 16) b (16 x 8)
__device__ inline void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads operand B, eight units: each eight lanes pass the addresses of the rows of a core matrix.
__device__ inline void load_units(unsigned (&b)[KSTEPS][2], const Chunk* group, int lane) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(group + lane);
#pragma unroll
    for (int k = 0; k + 1 < KSTEPS; k += 2) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(b[k][0]), "=r"(b[k][1]), "=r"(b[k + 1][0]), "=r"(b[k + 1][1])
                     : "r"(at + k * 256));
    }
    if (KSTEPS % 2) {  // the other 16 lanes pass the same addresses, which are not used
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(b[KSTEPS - 1][0]), "=r"(b[KSTEPS - 1][1])
                     : "r"(at + (KSTEPS - 1) * 256 - lane / 16 * 256));
    }
}

// Returns the first unit of a quad.
__device__ inline int first_of_quad(int quad) {
    return quad / 4 * 16 + quad % 4 * 2;
}

// By how much unit j of a quad is behind the first one.
__device__ inline int behind(int j) {
    return j % 2 + j / 2 * 8;
}

// Bounds that hold for all units.
__device__ inline TileBound bound_of_map(const Search& s) {
    TileBound result = {0, 0, 0};
    for (int tile = 0; tile < s.tiles; ++tile) {
        const TileBound& of_tile = s.tile_bounds[tile];
        result.norm = fmaxf(result.norm, of_tile.norm);
        result.residual = fmaxf(result.residual, of_tile.residual);
        result.offset = fmaxf(result.offset, of_tile.offset);
    }
    return result;
}

// The bound on the error of a key of one sample.
struct KeyBound {
    float of_any;                                                             // the part of it that all keys have
    static constexpr float of_key = 0x1p-22f + 1.0001f / (1 << (23 - BITS));  // the other part, as a part of the key

    __device__ KeyBound(const Search& s, float norm, float residual, const TileBound& map) {
        of_any = Bounds(s, norm, residual, 1).epsilon(0, map);
    }
    __device__ explicit KeyBound(float of_any) : of_any(of_any) {}
    __device__ float upper(float key) const { return key + (of_any + fabsf(key) * of_key); }
    __device__ float lower(float key) const { return key - (of_any + fabsf(key) * of_key); }
    // Returns a number that a key exceeds only if its lower bound exceeds `enough`.
    __device__ float greatest_with(float enough) const {
        const float sum = enough + of_any;
        return sum + fabsf(sum) * (2 * of_key);
    }
};

// Computes the features of a warp's samples as operand A, and the norms of the samples and of their residuals.
__device__ inline void take_samples(const Search& s, const FLOAT* staged, int columns, const double* centre,
                                    double factor, unsigned (&a)[2][KSTEPS][4], float (&norms)[OF_THREAD],
                                    float (&residuals)[OF_THREAD]) {
    const int lane = threadIdx.x % 32;
    int d = s.d;
    asm volatile("" : "+r"(d));  // else what depends on it would be kept from batch to batch, in too many registers
    float squares[OF_THREAD] = {}, lost[OF_THREAD] = {};
    unsigned far = 0;
#pragma unroll
    for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            const int first = 16 * k + 8 * part + lane % 4 * 2;
#pragma unroll
            for (int q = 0; q < OF_THREAD; ++q) {
                float values[2];
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    // Without a branch: what is behind the dimensions is replaced by the features of the bias, and zeros.
                    const int column = first + h, inside = min(column, d - 1);
                    const double x = staged[(lane / 4 + 8 * q) * columns + inside];
                    const float feature = (float)((x - centre[inside]) * factor);
                    const float square = column < d ? feature * feature : 0;
                    values[h] = column < d ? feature : column == d ? (float)COARSE : column == d + 1 ? 1.f : 0.f;
                    squares[q] += square;
                    far |= (unsigned)!(square <= (float)(LARGEST_SAMPLE * LARGEST_SAMPLE)) << q;
                }
                const unsigned pair = pair_of_halves(values[0], values[1]);
                a[q / 2][k][q % 2 + 2 * part] = pair;
                float rounded[2];
                from_halves(rounded[0], rounded[1], pair);
#pragma unroll
                for (int h = 0; h < 2; ++h) lost[q] += (values[h] - rounded[h]) * (values[h] - rounded[h]);
            }
        }
    }
    far |= __shfl_xor_sync(0xffffffff, far, 1);
    far |= __shfl_xor_sync(0xffffffff, far, 2);
#pragma unroll
    for (int q = 0; q < OF_THREAD; ++q) {
        for (int lanes = 1; lanes < 4; lanes *= 2) {
            squares[q] += __shfl_xor_sync(0xffffffff, squares[q], lanes);
            lost[q] += __shfl_xor_sync(0xffffffff, lost[q], lanes);
        }
        // Enlarged, because the sums are rounded. A feature was rounded to float32 before it became a half; a square below
        // the least float counts as 0.
        const float norm = sqrtf(squares[q]) * 1.0001f + 0x1p-58f;
        residuals[q] = sqrtf(lost[q]) * 1.0001f + norm * 0x1p-23f + 0x1p-58f;
        norms[q] = far >> q & 1 ? (float)infinite() : norm + residuals[q];
    }
}

// Returns the nearest unit of a quad, with squared distances as the CPU computes them.
__device__ inline Found nearest_of_quad(const Search& s, const FLOAT* sample, int quad) {
    struct alignas(4 * sizeof(FLOAT)) Values {
        FLOAT of[QUAD];
    };
    const Values* const units = (const Values*)s.exact + (long long)quad * s.d;
    constexpr int AT_ONCE = 24 / sizeof(FLOAT);  // loads on their way, as many as registers allow
    double sums[QUAD] = {};
#pragma unroll AT_ONCE
    for (int k = 0; k < s.d; ++k) {
        const Values w = units[k];
        const double x = sample[k];
#pragma unroll
        for (int j = 0; j < QUAD; ++j) {
            const double difference = x - (double)w.of[j];
            sums[j] = __dadd_rn(sums[j], __dmul_rn(difference, difference));
        }
    }
    Found best = {infinite(), NONE};
    const int first = first_of_quad(quad);
#pragma unroll
    for (int j = 0; j < QUAD; ++j) {
        const int unit = first + behind(j);
        if (unit < s.m && (sums[j] < best.value || best.unit == NONE)) best = {sums[j], unit};
    }
    return best;
}

__device__ inline void write_found(const Search& s, long long i, const Found& found) {
    s.units[i] = found.unit;
    ((FLOAT*)s.distances)[i] = (FLOAT)sqrt(found.value);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) match(const Search s) {
    extern __shared__ Chunk units[];
    __shared__ Candidate candidates_of_warps[THREADS / 32][LISTED];
    __shared__ unsigned long long least_of_warps[THREADS / 32][BATCH];  // bits of squared distances, in their order
    __shared__ int units_of_warps[THREADS / 32][BATCH];
    __shared__ double centre[16 * KSTEPS];
    constexpr unsigned ALL = 0xffffffff;
    const float infinity = (float)infinite();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, columns = s.d | 1;
    const int pairs = (int)(s.m + 15) / 16, chunks = s.tiles * 8 * GROUP;
    for (int at = threadIdx.x; at < pairs * 2 * GROUP; at += blockDim.x) units[at] = ((const Chunk*)s.w)[at];
    for (int k = threadIdx.x; k < s.d; k += blockDim.x) centre[k] = s.centre[k];
    const double factor = -2 * s.centre[s.d];
    const TileBound map = bound_of_map(s);
    FLOAT* const staged = (FLOAT*)(units + chunks) + warp * BATCH * columns;
    Candidate* const candidates = candidates_of_warps[warp];
    unsigned long long* const least_of_samples = least_of_warps[warp];
    int* const unit_of_samples = units_of_warps[warp];
    __syncthreads();
    const auto take = [&] { return lane == 0 ? atomicAdd(s.left + 1, 1) : 0; };
    for (int next = take();;) {
        const long long first = (long long)__shfl_sync(ALL, next, 0) * BATCH;
        if (first >= s.n) break;
        next = take();  // is there when this batch is done
        const int there = (int)min((long long)BATCH, s.n - first);
        const FLOAT* const given = (const FLOAT*)s.samples + (s.first + first) * s.sample_rows;
        __syncwarp();
        int d = s.d;
        asm volatile("" : "+r"(d));                                  // as in take_samples
        for (int row = lane / d, column = lane % d; row < there;) {  // every 32nd value, counted row by row
            copy_word<sizeof(FLOAT)>(&staged[row * columns + column],
                                     given + row * s.sample_rows + column * s.sample_columns);
            row += 32 / d;
            column += 32 % d;
            if (column >= d) column -= d, ++row;
        }
        commit_copies();
        for (int k = there * columns + lane; k < BATCH * columns; k += 32) staged[k] = 0;
        const long long of_lane = (long long)__shfl_sync(ALL, next, 0) * BATCH + lane;  // a sample of the next batch
        if (of_lane < s.n) {
            const FLOAT* const row = (const FLOAT*)s.samples + (s.first + of_lane) * s.sample_rows;
            for (int k = 0; k < d; k += LINE / (int)sizeof(FLOAT)) prefetch(row + k * s.sample_columns);
        }
        wait_for_copies<0>();
        __syncwarp();
        unsigned a[2][KSTEPS][4];
        float norms[OF_THREAD], residuals[OF_THREAD];
        take_samples(s, staged, columns, centre, factor, a, norms, residuals);

        // Computes the least score of each sample and each quad of the thread; +inf if the quad has no unit.
        const auto screen = [&](int pair, float (&least_of_quads)[OF_THREAD]) {
            float sums[2][2][4] = {};  // of either group and 16 samples
#pragma unroll
            for (int g = 0; g < 2; ++g) {
                unsigned b[KSTEPS][2];
                load_units(b, units + (pair * 2 + g) * GROUP, lane);
#pragma unroll
                for (int k = 0; k < KSTEPS; ++k) {
                    multiply(sums[g][0], a[0][k], b[k]);
                    multiply(sums[g][1], a[1][k], b[k]);
                }
            }
#pragma unroll
            for (int q = 0; q < OF_THREAD; ++q) {
                float scores[QUAD];
#pragma unroll
                for (int j = 0; j < QUAD; ++j) scores[j] = sums[j / 2][q / 2][q % 2 * 2 + j % 2];
                least_of_quads[q] = fminf(fminf(scores[0], scores[1]), fminf(scores[2], scores[3]));
            }
        };
        float least[OF_THREAD], second[OF_THREAD];
#pragma unroll
        for (int q = 0; q < OF_THREAD; ++q) least[q] = second[q] = ABSENT;
        const auto add = [&](int pair, bool last) {
            float scores[OF_THREAD];
            screen(pair, scores);
#pragma unroll
            for (int q = 0; q < OF_THREAD; ++q) {
                const unsigned quad = pair * 4 + lane % 4;
                if (last) scores[q] = fminf(scores[q], ABSENT);  // +inf with a number would not be a number
                const float key = __uint_as_float((__float_as_uint(scores[q]) & ~0u << BITS) | quad);
                second[q] = fminf(second[q], fmaxf(least[q], key));
                least[q] = fminf(least[q], key);
            }
        };
#pragma unroll 2
        for (int pair = 0; pair < pairs - 1; ++pair) add(pair, false);
        add(pairs - 1, true);

        // Bounds of sample number `lane`; the least key of a sample is of all its threads.
        float norm = 0, residual = 0, key = 0;
#pragma unroll
        for (int q = 0; q < OF_THREAD; ++q) {
            float best = fminf(least[q], __shfl_xor_sync(ALL, least[q], 1));
            best = fminf(best, __shfl_xor_sync(ALL, best, 2));
            const float of_lane[3] = {__shfl_sync(ALL, norms[q], lane % 8 * 4),
                                      __shfl_sync(ALL, residuals[q], lane % 8 * 4),
                                      __shfl_sync(ALL, best, lane % 8 * 4)};
            if (lane / 8 == q) norm = of_lane[0], residual = of_lane[1], key = of_lane[2];
        }
        const KeyBound of_sample(s, norm, residual, map);
        const bool left = !(of_sample.of_any < infinity);  // its features do not fit into halves, or those of a unit
        float greatest[OF_THREAD];  // key that may be a candidate, of samples whose scores are looked at again
        bool again = false;
        unsigned those = 0, quads = 0;  // candidates of the thread: bit q, and the quad in byte q
#pragma unroll
        for (int q = 0; q < OF_THREAD; ++q) {
            const KeyBound bound(__shfl_sync(ALL, of_sample.of_any, lane / 4 + 8 * q));
            const float enough = bound.upper(__shfl_sync(ALL, key, lane / 4 + 8 * q));
            const bool screened = bound.of_any < infinity;
            const auto may_be = [&](float other) { return !(bound.lower(other) > enough); };
            // The device may have rounded a key below LEAST_KEY to zero, and its quad is not known.
            const bool open = may_be(second[q]) || (may_be(least[q]) && fabsf(least[q]) < LEAST_KEY);
            unsigned unknown = __ballot_sync(ALL, screened && open);
            again |= unknown != 0;
            unknown |= unknown >> 1;
            unknown |= unknown >> 2;  // bit 4 i: of sample i
            const bool looks_again = unknown >> lane / 4 * 4 & 1;
            greatest[q] = looks_again ? bound.greatest_with(enough) : -infinity;
            those |= (unsigned)(screened && !looks_again && may_be(least[q])) << q;
            quads |= (__float_as_uint(least[q]) & ~(~0u << BITS)) << BITS * q;
        }
        least_of_samples[lane] = ~0ull;
        unit_of_samples[lane] = ABSENT_UNIT;
        unsigned long long known = ~0ull;  // the least distance of sample number `lane`
        int found = 0;
        // Lists candidates, of all threads and then of each pair that is looked at again, and evaluates some at a time.
        for (int pair = again ? 0 : pairs;;) {
            const bool last = pair == pairs;
#pragma unroll 1
            for (int q = 0; q < OF_THREAD; ++q) {
                const bool is = those >> q & 1;
                const unsigned of_warp = __ballot_sync(ALL, is);
                if (is) {
                    Candidate& candidate = candidates[found + __popc(of_warp & ((1u << lane) - 1))];
                    candidate.quad = (short)(quads >> BITS * q & ~(~0u << BITS));
                    candidate.sample = (short)(lane / 4 + 8 * q);
                }
                found += __popc(of_warp);
                if (found <= LISTED - 32 && !(last && q == OF_THREAD - 1)) continue;
                __syncwarp();
                for (int at = lane; at < found; at += 32) {
                    Candidate& candidate = candidates[at];
                    const Found best = nearest_of_quad(s, staged + candidate.sample * columns, candidate.quad);
                    candidate.value = (unsigned long long)__double_as_longlong(best.value);
                    candidate.unit = best.unit;
                    atomicMin(least_of_samples + candidate.sample, candidate.value);
                }
                __syncwarp();
                if (least_of_samples[lane] != known) {  // the units so far are farther
                    known = least_of_samples[lane];
                    unit_of_samples[lane] = ABSENT_UNIT;
                }
                __syncwarp();
                for (int at = lane; at < found; at += 32) {
                    const Candidate& candidate = candidates[at];
                    if (candidate.value == least_of_samples[candidate.sample]) {
                        atomicMin(unit_of_samples + candidate.sample, candidate.unit);
                    }
                }
                __syncwarp();
                found = 0;
            }
            if (last) break;
            float scores[OF_THREAD];
            do {
                screen(pair, scores);
                those = 0;
#pragma unroll
                for (int q = 0; q < OF_THREAD; ++q) those |= (unsigned)(scores[q] <= greatest[q]) << q;
                quads = (pair * 4 + lane % 4) * 0x01010101u;
                ++pair;
            } while (pair < pairs && !__any_sync(ALL, those));
        }
        const bool inside = lane < there;
        if (inside && !left) {
            write_found(s, s.first + first + lane, {__longlong_as_double((long long)known), unit_of_samples[lane]});
        }
        const unsigned lefts = __ballot_sync(ALL, inside && left);
        if (lefts) {
            bool finite = true;
            for (int k = 0; k < d; ++k) finite = finite && usable(staged[lane * columns + k]);
            if (!finite && inside) {
                atomicMax(s.faults + panels_of_units(s),
                          NO_FAULT - (4 * (unsigned long long)(s.first + first + lane) + NOT_FINITE));
            }
            int at = 0;
            if (lane == 0) at = atomicAdd(s.left, __popc(lefts));
            at = __shfl_sync(ALL, at, 0);
            if (inside && left) s.order[at + __popc(lefts & ((1u << lane) - 1))] = (int)(first + lane);
        }
    }
}

// Takes the samples that `match` left, a warp for each, and reports faults.
extern "C" __global__ void __launch_bounds__(THREADS, 1) match_left(const Search s) {
    __shared__ float features_of_warps[THREADS / 32][16 * KSTEPS];
    constexpr unsigned ALL = 0xffffffff;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = s.d;
    const int count = *s.left, step = gridDim.x * (blockDim.x / 32);
    const double factor = -2 * s.centre[d];
    float* const features = features_of_warps[warp];
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        s.fault[0] = s.faults[panels_of_units(s)];
        unsigned long long fault = 0;
        for (long long panel = 0; panel < panels_of_units(s); ++panel) fault = max(fault, s.faults[panel]);
        s.fault[1] = fault;
    }
    for (int number = blockIdx.x * (blockDim.x / 32) + warp; number < count; number += step) {
        const int i = s.order[number];
        const FLOAT* const row = (const FLOAT*)s.samples + (s.first + i) * s.sample_rows;
        double square = 0;
        bool screened = true;
        __syncwarp();
        for (int k = lane; k < d; k += 32) {
            const double x = (row[k * s.sample_columns] - s.centre[k]) * factor;
            screened = screened && fabs(x) <= LARGEST_SAMPLE;
            square += x * x;
            features[k] = (float)x;
        }
        for (int lanes = 16; lanes; lanes /= 2) square += __shfl_xor_sync(ALL, square, lanes);
        screened = __all_sync(ALL, screened);
        __syncwarp();
        const Bounds bounds(s, screened ? sqrt(square) * 1.0001 : infinite(), 0, SIFTED);
        const auto score = [&](int unit) {
            const float* const of_unit = s.fine + (long long)(unit / TILE) * fine_rows(s) * TILE + unit % TILE;
            float sums[2] = {};
            for (int k = 0; k + 1 < d; k += 2) {
                sums[0] += features[k] * of_unit[k * TILE];
                sums[1] += features[k + 1] * of_unit[(k + 1) * TILE];
            }
            if (d % 2) sums[0] += features[d - 1] * of_unit[(d - 1) * TILE];
            return sums[0] + sums[1] + s.bias[unit];
        };
        float enough = (float)infinite();
        for (int unit = lane; unit < s.m; unit += 32) {
            const float value = score(unit), upper = value + bounds.epsilon(value, s.tile_bounds[unit / TILE]);
            if (upper < enough) enough = upper;
        }
        for (int lanes = 16; lanes; lanes /= 2) enough = fminf(enough, __shfl_xor_sync(ALL, enough, lanes));
        Nearest nearest;
        for (int unit = lane; unit < s.m; unit += 32) {
            const float value = score(unit);
            if (value - bounds.epsilon(value, s.tile_bounds[unit / TILE]) > enough) continue;
            double sum = 0;
            const FLOAT* const exact = (const FLOAT*)s.exact + first_of_exact(unit, d);
            for (int k = 0; k < d; ++k) {
                const double difference = (double)row[k * s.sample_columns] - (double)exact[k * QUAD];
                sum = __dadd_rn(sum, __dmul_rn(difference, difference));
            }
            nearest.add({sum, unit});
        }
        const Found found = nearest_of_warp(nearest.best);
        if (lane == 0) write_found(s, s.first + i, found);
    }
}

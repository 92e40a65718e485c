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
// Launch: `pack` for the units alone, then `match` and `match_left`, in blocks of at most MOST_THREADS threads. `match`
//         stays on each multiprocessor, with shared memory for all units as halves and for 32 samples of each warp.
// Macros: FLOAT, METRIC = EUCLIDEAN (features.cuh); KSTEPS, steps of 16 features.

#include "../device/async_copy.cuh"
#include "bounds.cuh"
#include "halves.cuh"

constexpr int CHUNKS = 2 * KSTEPS, GROUP = CHUNKS * 8;  // GROUP: chunks of eight units
constexpr int MOST_THREADS = 512;
constexpr int BITS = 8;                    // of a key, for the number of its quad
constexpr float LEAST_KEY = 0x1p-126f;     // the least normal number
constexpr float ABSENT = 0x1.fffffep127f;  // the score of a unit that does not exist: the greatest number
constexpr int BATCH = 32;                  // samples of a warp at a time
constexpr int OF_THREAD = 4;               // samples whose scores a thread has
constexpr int LISTED = 64;                 // candidates that a warp lists before it evaluates them

// A candidate, and its nearest unit.
struct Candidate {
    double value;
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
    float of_any, of_key;  // the part of it that all keys have, and as a part of the key

    __device__ KeyBound(const Search& s, float norm, float residual, const TileBound& map) {
        const Bounds bounds(s, norm, residual, 1);
        of_any = bounds.epsilon(0, map);
        of_key = 0x1p-22f + 1.0001f / (1 << (23 - BITS));
    }
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
                    const int column = first + h;
                    float value = column == s.d ? (float)COARSE : column == s.d + 1 ? 1.f : 0.f;
                    if (column < s.d) {
                        const double x = staged[(lane / 4 + 8 * q) * columns + column];
                        value = (float)((x - centre[column]) * factor);
                        squares[q] += value * value;
                        if (!(fabsf(value) <= (float)LARGEST_SAMPLE)) far |= 1u << q;
                    }
                    values[h] = value;
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
    constexpr int AT_ONCE = 32 / sizeof(FLOAT);  // loads on their way, as many as registers allow
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

extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) match(const Search s) {
    extern __shared__ Chunk units[];
    __shared__ Candidate candidates_of_warps[MOST_THREADS / 32][LISTED];
    __shared__ double centre[16 * KSTEPS];
    constexpr unsigned ALL = 0xffffffff;
    const float infinity = (float)infinite();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = s.d, columns = d | 1;
    const int pairs = (int)(s.m + 15) / 16, chunks = s.tiles * 8 * GROUP;
    for (int at = threadIdx.x; at < pairs * 2 * GROUP; at += blockDim.x) units[at] = ((const Chunk*)s.w)[at];
    for (int k = threadIdx.x; k < d; k += blockDim.x) centre[k] = s.centre[k];
    const double factor = -2 * s.centre[d];
    const TileBound map = bound_of_map(s);
    FLOAT* const staged = (FLOAT*)(units + chunks) + warp * BATCH * columns;
    Candidate* const candidates = candidates_of_warps[warp];
    __syncthreads();
    const auto take = [&] { return lane == 0 ? atomicAdd(s.left + 1, 1) : 0; };
    for (int next = take();;) {
        const long long first = (long long)__shfl_sync(ALL, next, 0) * BATCH;
        if (first >= s.n) break;
        next = take();  // is there when this batch is done
        const int there = (int)min((long long)BATCH, s.n - first);
        const FLOAT* const given = (const FLOAT*)s.samples + (s.first + first) * s.sample_rows;
        __syncwarp();
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

        // Computes the least score of each sample and each quad of the thread.
        const auto screen = [&](int pair, bool whole, float (&least_of_quads)[OF_THREAD]) {
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
            const int unit = first_of_quad(pair * 4 + lane % 4);
#pragma unroll
            for (int q = 0; q < OF_THREAD; ++q) {
                float scores[QUAD];
#pragma unroll
                for (int j = 0; j < QUAD; ++j) {
                    scores[j] = sums[j / 2][q / 2][q % 2 * 2 + j % 2];
                    if (!whole && unit + behind(j) >= s.m) scores[j] = ABSENT;
                }
                least_of_quads[q] = fminf(fminf(scores[0], scores[1]), fminf(scores[2], scores[3]));
            }
        };
        float least[OF_THREAD], second[OF_THREAD];
#pragma unroll
        for (int q = 0; q < OF_THREAD; ++q) least[q] = second[q] = ABSENT;
        const auto add = [&](int pair, bool whole) {
            float scores[OF_THREAD];
            screen(pair, whole, scores);
#pragma unroll
            for (int q = 0; q < OF_THREAD; ++q) {
                const unsigned quad = pair * 4 + lane % 4;
                const float key = __uint_as_float((__float_as_uint(scores[q]) & ~0u << BITS) | quad);
                second[q] = fminf(second[q], fmaxf(least[q], key));
                least[q] = fminf(least[q], key);
            }
        };
#pragma unroll 2
        for (int pair = 0; pair < pairs - 1; ++pair) add(pair, true);
        add(pairs - 1, false);

        Nearest nearest;  // of sample number `lane`
        int found = 0;
        const auto evaluate = [&] {
            __syncwarp();
            for (int at = lane; at < found; at += 32) {
                Candidate& candidate = candidates[at];
                const Found best = nearest_of_quad(s, staged + candidate.sample * columns, candidate.quad);
                candidate.value = best.value;
                candidate.unit = best.unit;
            }
            __syncwarp();
            for (int at = 0; at < found; ++at) {
                if (candidates[at].sample == lane) nearest.add({candidates[at].value, candidates[at].unit});
            }
            __syncwarp();
            found = 0;
        };
        const auto list = [&](unsigned which, int quad) {  // bit q: a candidate of sample q of the thread
#pragma unroll 1
            for (int q = 0; q < OF_THREAD; ++q) {
                const bool is = which >> q & 1;
                const unsigned those = __ballot_sync(ALL, is);
                if (is) {
                    Candidate& candidate = candidates[found + __popc(those & ((1u << lane) - 1))];
                    candidate.quad = (short)quad;
                    candidate.sample = (short)(lane / 4 + 8 * q);
                }
                found += __popc(those);
                if (found > LISTED - 32) evaluate();
            }
        };

        float greatest[OF_THREAD];  // key that may be a candidate, of samples whose scores are looked at again
        float key = 0;              // the least one of sample number `lane`
        bool left = false, again = false;
        unsigned apart = 0;  // bit q: the thread's least key of sample q is a candidate, but not the least one of all
#pragma unroll
        for (int q = 0; q < OF_THREAD; ++q) {
            float best = fminf(least[q], __shfl_xor_sync(ALL, least[q], 1));
            best = fminf(best, __shfl_xor_sync(ALL, best, 2));
            const KeyBound bound(s, norms[q], residuals[q], map);
            const float enough = bound.upper(best);
            const bool screened = bound.of_any < infinity;  // also of units
            const auto may_be = [&](float other) { return !(bound.lower(other) > enough); };
            // The device may have rounded a key below LEAST_KEY to zero, and its quad is not known.
            const bool open = may_be(second[q]) || (may_be(least[q]) && fabsf(least[q]) < LEAST_KEY);
            unsigned those = __ballot_sync(ALL, screened && open);
            those |= those >> 1;
            those |= those >> 2;  // bit 4 i: of sample i
            const bool unknown = those >> lane / 4 * 4 & 1;
            greatest[q] = unknown ? bound.greatest_with(enough) : -infinity;
            if (screened && !unknown && least[q] != best && may_be(least[q])) apart |= 1u << q;
            const float of_lane = __shfl_sync(ALL, best, lane % 8 * 4);
            const bool left_of_lane = __shfl_sync(ALL, !screened, lane % 8 * 4);
            if (lane / 8 == q) {
                key = of_lane;
                left = left_of_lane;
                again = those >> lane % 8 * 4 & 1;
            }
        }
        const auto quad_of = [](float key) { return (int)(__float_as_uint(key) & ~(~0u << BITS)); };
        if (!left && !again) nearest.add(nearest_of_quad(s, staged + lane * columns, quad_of(key)));
#pragma unroll
        for (int q = 0; q < OF_THREAD; ++q) {
            if (__any_sync(ALL, apart >> q & 1)) list(apart & 1u << q, quad_of(least[q]));
        }
        if (__any_sync(ALL, again)) {
#pragma unroll 1
            for (int pair = 0; pair < pairs; ++pair) {
                float scores[OF_THREAD];
                screen(pair, false, scores);
                unsigned those = 0;
#pragma unroll
                for (int q = 0; q < OF_THREAD; ++q) those |= (unsigned)(scores[q] <= greatest[q]) << q;
                if (__any_sync(ALL, those)) list(those, pair * 4 + lane % 4);
            }
        }
        evaluate();
        const bool inside = lane < there;
        if (inside && !left) write_found(s, s.first + first + lane, nearest.best);
        const unsigned those = __ballot_sync(ALL, inside && left);
        if (those) {
            bool finite = true;
            for (int k = 0; k < d; ++k) finite = finite && usable(staged[lane * columns + k]);
            if (!finite && inside) {
                atomicMax(s.faults + panels_of_units(s),
                          NO_FAULT - (4 * (unsigned long long)(s.first + first + lane) + NOT_FINITE));
            }
            int at = 0;
            if (lane == 0) at = atomicAdd(s.left, __popc(those));
            at = __shfl_sync(ALL, at, 0);
            if (inside && left) s.order[at + __popc(those & ((1u << lane) - 1))] = (int)(first + lane);
        }
    }
}

// Takes the samples that `match` left, a warp for each, and reports faults.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, 1) match_left(const Search s) {
    __shared__ float features_of_warps[MOST_THREADS / 32][16 * KSTEPS];
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

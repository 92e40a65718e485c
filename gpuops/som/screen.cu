// Best matching units, the screen in float32: computes the least score of every tile of units, for every sample.
//
//     least[i][t] = min over the units j of tile t of  bias_j + sum over k of step(x[k][i], w[k][j])
//
//     STEP                step(x, w)
//     PRODUCT             x w
//     DIFFERENCE          |x - w|
//     MASKED_DIFFERENCE   |x - w| times the mask of x
//
// Features come from pack.cu: x [panels][rows][PANEL], w [tiles][depth][TILE]. A block takes one panel of samples and
// some tiles, one after the other. Slabs of samples and units pass through shared memory; the copy of the next slab
// overlaps with the arithmetic. A thread keeps 8 x 8 scores in registers.
//
// Launch: grid (panels, parts of the map), THREADS threads.
// Macros: STEP; SLAB, dimensions in a slab, a multiple of 4; SINGLE, 1 if depth is SLAB, else 0; THREADS, the threads
//         of a block, equal to PANEL.

#include "../device/async_copy.cuh"
#include "search.cuh"

constexpr int PRODUCT = 0, DIFFERENCE = 1, MASKED_DIFFERENCE = 2;
constexpr bool MASKED = STEP == MASKED_DIFFERENCE;

constexpr int TILE = 64, PANEL = 128, OWN = 8;
constexpr int STAGES = 2;

// All threads together copy SLAB rows, contiguous in both memories.
template <int WIDTH>
__device__ inline void copy_slab(float (*shared)[WIDTH], const float* global) {
    for (int word = threadIdx.x * 4; word < SLAB * WIDTH; word += THREADS * 4) {
        copy_16_bytes(&shared[0][0] + word, global + word);
    }
}

struct alignas(16) Four {
    float values[4];
};

// Loads a thread's values of a row: four neighbouring values, and four more half a row further.
template <int WIDTH>
__device__ inline void load_own(float (&own)[OWN], const float (&row)[WIDTH], int first) {
    const Four low = *(const Four*)(row + first), high = *(const Four*)(row + WIDTH / 2 + first);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        own[e] = low.values[e];
        own[4 + e] = high.values[e];
    }
}

// Taxicab scores are -inf or not negative, so that their bits, read as integers, compare like the scores. One
// instruction takes the minimum of three integers.
__device__ inline float least_of_three(float a, float b, float c) {
    if (STEP == PRODUCT) return fminf(fminf(a, b), c);
    return __int_as_float(__vimin3_s32(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}

// Launch: grid (panels, parts of the map), THREADS threads; a part is `share` tiles.
extern "C" __global__ void __launch_bounds__(THREADS, SINGLE ? 4 : 3) screen(const Search s) {
    __shared__ alignas(16) float x_slabs[SINGLE ? 1 : STAGES][SLAB][PANEL];
    __shared__ alignas(16) float masks[SINGLE ? 1 : STAGES][MASKED ? SLAB : 1][PANEL];
    __shared__ alignas(16) float w_slabs[STAGES][SLAB][TILE];

    // A warp owns 4 x 8 groups of samples x units.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int unit = lane % 8, group = warp * 4 + lane / 8;
    const int depth = s.depth, first_tile = blockIdx.y * s.share, last_tile = min(first_tile + s.share, s.tiles);
    const int slabs = SINGLE ? 1 : depth / SLAB;
    const int steps = (last_tile - first_tile) * slabs;
    const float* const x = (const float*)s.x + (long long)blockIdx.x * (MASKED ? 2 : 1) * depth * PANEL;
    const float* const w = (const float*)s.w + (long long)first_tile * depth * TILE;

    const auto fetch = [&](int step) {
        if (step < steps) {
            if (!SINGLE || step == 0) {
                const int stage = SINGLE ? 0 : step % STAGES;
                const float* slab = x + step % slabs * SLAB * PANEL;
                copy_slab(x_slabs[stage], slab);
                if (MASKED) copy_slab(masks[stage], slab + depth * PANEL);
            }
            copy_slab(w_slabs[step % STAGES], w + (long long)step * SLAB * TILE);
        }
        commit_copies();
    };
    fetch(0);
    int step = 0;
    for (int tile = first_tile; tile < last_tile; ++tile) {
        float scores[OWN][OWN];
#pragma unroll
        for (int u = 0; u < OWN; ++u) {
            const float start = s.bias[tile * TILE + u / 4 * (TILE / 2) + unit * 4 + u % 4];
#pragma unroll
            for (int r = 0; r < OWN; ++r) scores[r][u] = start;
        }
        for (int slab = 0; slab < slabs; ++slab, ++step) {
            wait_for_copies<0>();
            __syncthreads();  // all threads have copied this slab, and no thread reads the slab before it any more
            fetch(step + 1);
            const int stage = SINGLE ? 0 : step % STAGES;
#pragma unroll
            for (int k = 0; k < SLAB; ++k) {
                float a[OWN], b[OWN], present[OWN];
                load_own(a, x_slabs[stage][k], group * 4);
                load_own(b, w_slabs[step % STAGES][k], unit * 4);
                if (MASKED) load_own(present, masks[stage][MASKED ? k : 0], group * 4);
#pragma unroll
                for (int r = 0; r < OWN; ++r) {
#pragma unroll
                    for (int u = 0; u < OWN; ++u) {
                        float& score = scores[r][u];
                        if (STEP == PRODUCT) score += a[r] * b[u];
                        if (STEP == DIFFERENCE) score += fabsf(a[r] - b[u]);
                        if (MASKED) score += fabsf(a[r] - b[u]) * present[r];
                    }
                }
            }
        }
        float best[OWN];
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            best[r] = fminf(scores[r][0], scores[r][1]);
#pragma unroll
            for (int u = 2; u < OWN; u += 2) best[r] = least_of_three(best[r], scores[r][u], scores[r][u + 1]);
        }
        // Eight lanes share eight samples. In each step a lane gives half of its samples to the lane across and keeps
        // the other half; in the end lane `unit` holds the least score of sample `unit`.
#pragma unroll
        for (int half = OWN / 2; half; half /= 2) {
            const bool upper = unit & half;
#pragma unroll
            for (int r = 0; r < half; ++r) {
                const float given = upper ? best[r] : best[r + half], kept = upper ? best[r + half] : best[r];
                best[r] = fminf(kept, __shfl_xor_sync(0xffffffff, given, half));
            }
        }
        const long long i = (long long)blockIdx.x * PANEL + unit / 4 * (PANEL / 2) + group * 4 + unit % 4;
        if (i < s.n) s.least[i * s.tiles + tile] = best[0];
    }
}

// Best matching units, the screen on tensor cores: computes the least score of every tile of units, for every sample.
//
//     least[i][t] = min over the units j of tile t of  bias_j + sum over k of x[k][i] w[k][j]
//
// A block takes 256 samples; a warp keeps 32 samples in registers, as operand A. Tiles of units pass through shared
// memory, as operand B; the copy of the next tile overlaps with the arithmetic.
//
// A feature v is the sum of two halves (float16), hi = v rounded and lo = (v - hi) rounded, 22 bits together, and
//
//     x w = hi lo' + lo hi' + hi hi'   up to 2^-20 |x w|.
//
// Tensor cores truncate sums instead of rounding them, and the error grows with the sum. So the small products are
// added first, and after 64 dimensions the sum is added to float32 registers and the next sum starts at zero.
//
// Features come from bmu.cu: x [panels of 128 samples][depth][PANEL], w as fragments.
//
// Launch: grid (blocks of 256 samples, parts of the map), THREADS threads; a part is `share` tiles.
// Macros: KSTEPS, 1 to 4; DEEP, 0 if depth is 16 KSTEPS, 1 if depth is a multiple of 16 KSTEPS; THREADS, the threads of
//         a block of `screen`, equal to ROWS.

#include "../device/async_copy.cuh"
#include "halves.cuh"
#include "search.cuh"

constexpr int TILE = 64, PANEL = 128, ROWS = 256;
constexpr int COLUMNS = TILE / 8;
constexpr int PAIR = 2;
constexpr int DEPTH = 16 * KSTEPS;
constexpr int FRAGMENTS = KSTEPS * COLUMNS * 32;  // fragments of one tile and one panel of dimensions

// sums (16 x 8) += a (16 x 16) b (16 x 8)
__device__ inline void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Operand A: 2 x 16 samples of a warp, one panel of dimensions.
struct Samples {
    unsigned hi[2][KSTEPS][4], lo[2][KSTEPS][4];

    __device__ void load(const float* x, int lane) {
#pragma unroll
        for (int m = 0; m < 2; ++m) {
#pragma unroll
            for (int step = 0; step < KSTEPS; ++step) {
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    const float* at =
                        x + (step * 16 + r / 2 * 8 + lane % 4 * 2) * PANEL + m * 16 + r % 2 * 8 + lane / 4;
                    split(hi[m][step][r], lo[m][step][r], at[0], at[PANEL]);
                }
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, KSTEPS == 1 ? 2 : 1) screen(const Search s) {
    __shared__ Fragment stages[2][FRAGMENTS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_tile = blockIdx.y * s.share, last_tile = min(first_tile + s.share, s.tiles);
    const int passes = DEEP ? s.depth / DEPTH : 1;
    const int steps = (last_tile - first_tile) * passes;
    const float* const x = s.x + ((long long)blockIdx.x * 2 + warp / 4) * passes * DEPTH * PANEL + warp % 4 * 32;
    const Fragment* const fragments = (const Fragment*)s.w + (long long)first_tile * passes * FRAGMENTS;
    const auto fetch = [&](int step) {
        if (step < steps) {
            for (int f = threadIdx.x; f < FRAGMENTS; f += THREADS) {
                copy_16_bytes(&stages[step % 2][f], fragments + (long long)step * FRAGMENTS + f);
            }
        }
        commit_copies();
    };
    fetch(0);
    Samples samples;
    if (!DEEP) samples.load(x, lane);
    int step = 0;
    for (int tile = first_tile; tile < last_tile; ++tile) {
        float total[DEEP ? COLUMNS : 1][2][4];
        float best[4] = {__int_as_float(0x7f800000), __int_as_float(0x7f800000), __int_as_float(0x7f800000),
                         __int_as_float(0x7f800000)};  // least scores of rows lane / 4 + 0, 8, 16 and 24
        for (int pass = 0; pass < passes; ++pass, ++step) {
            if (DEEP) samples.load(x + (long long)pass * DEPTH * PANEL, lane);
            wait_for_copies<0>();
            __syncthreads();  // all threads have copied this tile, and no thread reads the tile before it any more
            fetch(step + 1);
            const Fragment* stage = stages[step % 2] + lane;
#pragma unroll
            for (int first = 0; first < COLUMNS; first += PAIR) {
                Fragment units[PAIR][KSTEPS];
#pragma unroll
                for (int c = 0; c < PAIR; ++c) {
#pragma unroll
                    for (int k = 0; k < KSTEPS; ++k) units[c][k] = stage[(k * COLUMNS + first + c) * 32];
                }
                // Four sums take turns, so that an mma does not wait for the mma just before it.
                float sums[PAIR][2][4] = {};
#pragma unroll
                for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], samples.hi[q % 2][k], units[q / 2][k].lo);
                    }
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], samples.lo[q % 2][k], units[q / 2][k].hi);
                    }
                }
#pragma unroll
                for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], samples.hi[q % 2][k], units[q / 2][k].hi);
                    }
                }
                const bool last = !DEEP || pass == passes - 1;
#pragma unroll
                for (int c = 0; c < PAIR; ++c) {
                    float2 offset = {0, 0};
                    if (last) offset = *(const float2*)(s.bias + tile * TILE + (first + c) * 8 + lane % 4 * 2);
#pragma unroll
                    for (int m = 0; m < 2; ++m) {
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            float score = sums[c][m][e];
                            if (DEEP) {
                                float& known = total[DEEP ? first + c : 0][m][e];
                                if (pass) score += known;
                                known = score;
                            }
                            if (last) {
                                float& row = best[m * 2 + e / 2];
                                row = fminf(row, score + (e % 2 ? offset.y : offset.x));
                            }
                        }
                    }
                }
            }
        }
        // Four lanes share four rows; in the end each lane holds the least score of row number lane % 4.
#pragma unroll
        for (int half = 2; half; half /= 2) {
            const bool upper = lane & half;
#pragma unroll
            for (int r = 0; r < half; ++r) {
                const float given = upper ? best[r] : best[r + half], kept = upper ? best[r + half] : best[r];
                best[r] = fminf(kept, __shfl_xor_sync(0xffffffff, given, half));
            }
        }
        const long long i = (long long)blockIdx.x * ROWS + warp * 32 + lane % 4 * 8 + lane / 4;
        if (i < s.n) s.least[i * s.tiles + tile] = best[0];
    }
}

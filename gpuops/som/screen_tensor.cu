// Best matching units, the screen on tensor cores: the least score of every tile of units, for every sample.
//
//     least[i][t] = min over the units j of tile t of  bias_j + sum over k of x[k][i] w[k][j]
//
//     split_units   units as operand B of mma.m16n8k16, the registers hi and lo of each lane: [tiles][panels of 64
//                   dimensions][KSTEPS][8 columns of 8 units][32 lanes] of 16 bytes
//     screen        256 samples a block, 32 a warp as operand A, in registers; tiles of units pass through shared
//                   memory, the next on its way while one is used
//
// A feature v is the sum of two halves (float16), hi = v rounded and lo = (v - hi) rounded, 22 bits together, and
//
//     x w = hi lo' + lo hi' + hi hi'   up to 2^-20 |x w|.
//
// Tensor cores do not round properly, with an error that grows with the sum. So the small products come first, and
// after 64 dimensions the sum goes to float32 registers and the next one starts at zero.
//
// Features come from bmu.cu: x [panels of 128 samples][depth][PANEL], w [tiles][depth][TILE].
//
// Launch: said at each kernel.
// Macros: KSTEPS, 1 to 4; DEEP, 0 where depth is 16 KSTEPS, 1 where it is a multiple of that; THREADS, of a block of
//         `screen`, ROWS.

#include "../device/async_copy.cuh"

constexpr int TILE = 64, PANEL = 128, ROWS = 256;
constexpr int COLUMNS = TILE / 8;
constexpr int PAIR = 2;
constexpr int DEPTH = 16 * KSTEPS;
constexpr int FRAGMENTS = KSTEPS * COLUMNS * 32;  // of one tile and one panel of dimensions

struct alignas(16) Fragment {
    unsigned hi[2], lo[2];
};

// Two features as halves, the first one in the low bits.
__device__ inline unsigned pair_of_halves(float first, float second) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

__device__ inline void split(unsigned& hi, unsigned& lo, float first, float second) {
    hi = pair_of_halves(first, second);
    float first_hi, second_hi;
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(first_hi), "=f"(second_hi)
        : "r"(hi));
    lo = pair_of_halves(first - first_hi, second - second_hi);
}

// sums (16 x 8) += a (16 x 16) b (16 x 8)
__device__ inline void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Launch: grid (tiles, panels of dimensions), FRAGMENTS threads.
extern "C" __global__ void split_units(Fragment* fragments, const float* w, int depth) {
    const int lane = threadIdx.x % 32, column = threadIdx.x / 32 % COLUMNS, step = threadIdx.x / 32 / COLUMNS;
    const int k = blockIdx.y * DEPTH + step * 16 + lane % 4 * 2;
    w += (long long)blockIdx.x * depth * TILE + column * 8 + lane / 4;
    Fragment fragment;
    for (int half = 0; half < 2; ++half) {
        split(fragment.hi[half], fragment.lo[half], w[(k + 8 * half) * TILE], w[(k + 8 * half + 1) * TILE]);
    }
    fragments[((long long)blockIdx.x * gridDim.y + blockIdx.y) * FRAGMENTS + threadIdx.x] = fragment;
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

// Launch: grid (blocks of 256 samples, parts of the map), THREADS threads; a part is `share` tiles.
extern "C" __global__ void __launch_bounds__(THREADS, KSTEPS == 1 ? 2 : 1)
    screen(float* least, const float* x, const Fragment* fragments, const float* bias, long long n, int tiles,
           int panels, int share) {
    __shared__ Fragment stages[2][FRAGMENTS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_tile = blockIdx.y * share, last_tile = min(first_tile + share, tiles);
    const int passes = DEEP ? panels : 1;
    const int steps = (last_tile - first_tile) * passes;
    x += ((long long)blockIdx.x * 2 + warp / 4) * passes * DEPTH * PANEL + warp % 4 * 32;
    fragments += (long long)first_tile * passes * FRAGMENTS;
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
                         __int_as_float(0x7f800000)};  // of rows lane / 4 + 0, 8, 16 and 24
        for (int pass = 0; pass < passes; ++pass, ++step) {
            if (DEEP) samples.load(x + (long long)pass * DEPTH * PANEL, lane);
            wait_for_copies<0>();
            __syncthreads();  // this tile is here for all threads, and nobody reads the one before any more
            fetch(step + 1);
            const Fragment* stage = stages[step % 2] + lane;
#pragma unroll
            for (int first = 0; first < COLUMNS; first += PAIR) {
                Fragment units[PAIR][KSTEPS];
#pragma unroll
                for (int c = 0; c < PAIR; ++c) {
#pragma unroll
                    for (int s = 0; s < KSTEPS; ++s) units[c][s] = stage[(s * COLUMNS + first + c) * 32];
                }
                // Four sums at a time: each waits for its own product before, not for the others.
                float sums[PAIR][2][4] = {};
#pragma unroll
                for (int s = 0; s < KSTEPS; ++s) {
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], samples.hi[q % 2][s], units[q / 2][s].lo);
                    }
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], samples.lo[q % 2][s], units[q / 2][s].hi);
                    }
                }
#pragma unroll
                for (int s = 0; s < KSTEPS; ++s) {
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], samples.hi[q % 2][s], units[q / 2][s].hi);
                    }
                }
                const bool last = !DEEP || pass == passes - 1;
#pragma unroll
                for (int c = 0; c < PAIR; ++c) {
                    float2 offset = {0, 0};
                    if (last) offset = *(const float2*)(bias + tile * TILE + (first + c) * 8 + lane % 4 * 2);
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
        // Four lanes have four rows in common; in the end lane % 4 holds the one of that number.
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
        if (i < n) least[i * tiles + tile] = best[0];
    }
}

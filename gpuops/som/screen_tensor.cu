// Best matching units, the screen on tensor cores: computes the least score of every tile of units, for every sample.
//
//     least[i][t] = min over the units j of tile t of  sum over k of x[i][k] w[j][k]
//
// Two kernels, of which the one runs that `pack` chose: `screen_by_one` multiplies the features rounded to halves;
// `screen_by_three` adds the remainders hi and lo,
//
//     x w = hi lo' + lo hi' + hi hi'   up to 2^-20 |x w|.
//
// A block takes 256 samples; a warp keeps 32 samples in registers, as operand A. Tiles of units pass through shared
// memory, as operand B; the copy of the next tile overlaps with the arithmetic.
//
// Tensor cores truncate sums instead of rounding them, and the error grows with the sum. So the small products are
// added first, and after each slab the sum is added to float32 registers and the next sum starts at zero.
//
// Features come from pack.cu, as halves.cuh describes; the bias of a unit is among its features.
//
// Launch: grid (blocks of 256 samples, parts of the map), THREADS threads; a part is `share` tiles, for one product
//         `share_of_one`.
// Macros: KSTEPS, steps of 16 dimensions in a slab, 1 to 5; DEEP, 0 if there is one slab, else 1; THREADS, the threads of
//         a block, equal to ROWS.

#include "../device/async_copy.cuh"
#include "halves.cuh"
#include "search.cuh"

constexpr int TILE = 64, ROWS = 256;
constexpr int GROUPS = TILE / 8;
constexpr int SLAB = 16 * KSTEPS, CHUNKS = 2 * KSTEPS;
constexpr int STAGE = GROUPS * CHUNKS * 8;  // chunks of one tile and one slab

// sums (16 x 8) += a (16 x 16) b (16 x 8)
__device__ inline void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads operand A, 2 x 16 samples of a warp, one slab. `words` are those of the first group of 8 samples.
__device__ inline void load_samples(unsigned (&a)[2][KSTEPS][4], const unsigned* words, int lane) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                a[m][k][r] = words[((m * 2 + r % 2) * CHUNKS + 2 * k + r / 2) * 32 + lane];
            }
        }
    }
}

// Loads operand B, 8 units, one slab, from shared memory: each eight lanes pass the addresses of the rows of a core
// matrix, and each lane gets a word of all these matrices.
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

// PRODUCTS is 1 or 3; `stages` are two stages of hi and, for three products, lo.
template <int PRODUCTS>
__device__ inline void screen(const Search& s, int share, Chunk* stages) {
    constexpr int PLANES = PRODUCTS == 3 ? 2 : 1;
    // Sums of several slabs stay in registers, which needs the loop over groups unrolled. Otherwise a rolled loop leaves
    // registers for a second block.
    constexpr int PAIR = 2, UNROLLED = DEEP ? GROUPS / PAIR : 1;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_tile = blockIdx.y * share, last_tile = min(first_tile + share, s.tiles);
    const int slabs = DEEP ? s.depth / SLAB : 1;
    const int steps = (last_tile - first_tile) * slabs;
    const long long blocks = gridDim.x;
    // Words of a warp's samples, hi and lo; and chunks of the units of this part.
    const unsigned* const x =
        (const unsigned*)s.x +
        (((long long)blockIdx.x * (ROWS / 64) + warp / 2) * slabs * 8 + warp % 2 * 4) * CHUNKS * 32;
    const long long x_plane = blocks * ROWS * (s.depth / 2);
    const Chunk* const w = (const Chunk*)s.w + (long long)first_tile * slabs * STAGE;
    const long long w_plane = (long long)(s.tiles + s.tiles % 2) * slabs * STAGE;
    const auto fetch = [&](int step) {
        if (step < steps) {
#pragma unroll
            for (int plane = 0; plane < PLANES; ++plane) {
                for (int c = threadIdx.x; c < STAGE; c += THREADS) {
                    copy_16_bytes(&stages[(step % 2 * PLANES + plane) * STAGE + c],
                                  w + plane * w_plane + (long long)step * STAGE + c);
                }
            }
        }
        commit_copies();
    };
    fetch(0);
    unsigned hi[2][KSTEPS][4], lo[PLANES == 2 ? 2 : 1][KSTEPS][4];
    const auto load = [&](int slab) {
        const unsigned* words = x + (long long)slab * 8 * CHUNKS * 32;
        load_samples(hi, words, lane);
        if constexpr (PLANES == 2) load_samples(lo, words + x_plane, lane);
    };
    if (!DEEP) load(0);
    int step = 0;
    for (int tile = first_tile; tile < last_tile; ++tile) {
        float total[DEEP ? GROUPS : 1][2][4];
        float best[4] = {__int_as_float(0x7f800000), __int_as_float(0x7f800000), __int_as_float(0x7f800000),
                         __int_as_float(0x7f800000)};  // least scores of rows lane / 4 + 0, 8, 16 and 24
        for (int slab = 0; slab < slabs; ++slab, ++step) {
            if (DEEP) load(slab);
            wait_for_copies<0>();
            __syncthreads();  // all threads have copied this tile, and no thread reads the tile before it any more
            fetch(step + 1);
            const Chunk* const stage = stages + step % 2 * PLANES * STAGE;
#pragma unroll UNROLLED
            for (int first = 0; first < GROUPS; first += PAIR) {
                unsigned units[PLANES][PAIR][KSTEPS][2];
#pragma unroll
                for (int plane = 0; plane < PLANES; ++plane) {
#pragma unroll
                    for (int g = 0; g < PAIR; ++g) {
                        load_units(units[plane][g], stage + plane * STAGE + (first + g) * CHUNKS * 8, lane);
                    }
                }
                // Four sums take turns, so that an mma does not wait for the mma just before it.
                float sums[PAIR][2][4] = {};
                if constexpr (PLANES == 2) {
#pragma unroll
                    for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
                        for (int q = 0; q < 2 * PAIR; ++q) {
                            multiply(sums[q / 2][q % 2], hi[q % 2][k], units[1][q / 2][k]);
                        }
#pragma unroll
                        for (int q = 0; q < 2 * PAIR; ++q) {
                            multiply(sums[q / 2][q % 2], lo[q % 2][k], units[0][q / 2][k]);
                        }
                    }
                }
#pragma unroll
                for (int k = 0; k < KSTEPS; ++k) {
#pragma unroll
                    for (int q = 0; q < 2 * PAIR; ++q) {
                        multiply(sums[q / 2][q % 2], hi[q % 2][k], units[0][q / 2][k]);
                    }
                }
#pragma unroll
                for (int g = 0; g < PAIR; ++g) {
#pragma unroll
                    for (int m = 0; m < 2; ++m) {
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            float score = sums[g][m][e];
                            if (DEEP) {
                                float& known = total[DEEP ? first + g : 0][m][e];
                                if (slab) score += known;
                                known = score;
                            }
                            if (!DEEP || slab == slabs - 1) {
                                float& row = best[m * 2 + e / 2];
                                row = fminf(row, score);
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

// Launched for every chunk, before `screen_by_three`.
extern "C" __global__ void __launch_bounds__(THREADS, DEEP ? 1 : 2) screen_by_one(const Search s) {
    __shared__ Chunk stages[2 * STAGE];
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x < 2) s.kept[threadIdx.x] = 0;  // `pack` has read it
    if (*s.products == 1) screen<1>(s, s.share_of_one, stages);
}

extern "C" __global__ void __launch_bounds__(THREADS, DEEP || KSTEPS > 4 ? 1 : 2) screen_by_three(const Search s) {
    __shared__ Chunk stages[4 * STAGE];
    if (*s.products == 3) screen<3>(s, s.share, stages);
}

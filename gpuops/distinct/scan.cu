// Prefix sums in one pass: result[i + shift] = x[0] + ... + x[i]; with shift 1, result[0] = 0.
//
// A block has a tile, each of its warps a stretch of it, of ITEMS lines of 32 neighbours. Lines are added up by
// shuffles, lines of a warp and warps of a block one after the other, and tiles by look-back (device/tile_prefix.cuh).
//
// Launch: a block of THREADS for every tile. `sums` has two for each tile.
// Macros: ELEMENT, of x; SUM, of the result; THREADS.

#include "../device/tile_prefix.cuh"

using Sum = SUM;

constexpr int ITEMS = 16, LINE = 32, TILE = THREADS * ITEMS;

extern "C" __global__ void __launch_bounds__(THREADS)
    scan(const ELEMENT* __restrict__ x, long long n, int shift, Sum* __restrict__ result, unsigned long long* states,
         Sum* sums) {
    __shared__ Sum start;
    const long long tile = next_tile(states);
    const long long first = tile * TILE + threadIdx.x / 32 * (ITEMS * LINE) + threadIdx.x % 32;
    Sum mine[ITEMS], of_warp = 0;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) mine[j] = first + j * LINE < n ? (Sum)x[first + j * LINE] : 0;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const Sum of_line = up_to_lane(mine[j]);
        mine[j] = of_warp + of_line;
        of_warp += __shfl_sync(0xffffffffu, of_line, 31);
    }
    Sum all;
    const Sum before = before_warp<THREADS>(of_warp, &all);
    if (threadIdx.x < 32) {
        const Sum before_all = sum_before_tile(states, sums, tile, all);
        if (threadIdx.x == 0) start = before_all;
    }
    __syncthreads();
    const Sum base = start + before;
    if (shift && tile == 0 && threadIdx.x == 0) result[0] = 0;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const long long i = first + j * LINE + shift;
        if (i < n) result[i] = base + mine[j];
    }
}

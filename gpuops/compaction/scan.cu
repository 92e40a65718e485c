// Prefix sums in one pass: result[i] = x[0] + ... + x[i - shift], shift being 0 or 1.
//
// A block has a tile, each lane LINES runs of RUN adjacent elements (device/runs.cuh). The runs of a line are added up
// by shuffles, the lines of a warp and the warps of a block one after the other, the tiles by look-back
// (device/tile_prefix.cuh).
//
// Launch: a block of THREADS threads for every tile.
// Macros: ELEMENT, the type of x; SUM, the type of the result; THREADS.

#include "../device/runs.cuh"
#include "../device/tile_prefix.cuh"

using Sum = SUM;

constexpr int RUN = sizeof(Sum) == 8 ? 2 : 4, LINES = 16 / RUN, TILE = THREADS * 16;

extern "C" __global__ void __launch_bounds__(THREADS)
    scan(const ELEMENT* __restrict__ x, long long n, int shift, Sum* __restrict__ result, unsigned long long* states) {
    __shared__ Sum start;
    const long long tile = next_tile(states), first = first_of_lane<RUN, LINES>(tile * TILE);
    const bool whole = (tile + 1) * TILE <= n;
    Run<ELEMENT, RUN> mine[LINES];
    load_runs(mine, x, first, n, whole);
    Sum before_run[LINES], of_warp = 0;
#pragma unroll
    for (int l = 0; l < LINES; ++l) {
        Sum of_run = 0;
#pragma unroll
        for (int j = 0; j < RUN; ++j) of_run += (Sum)mine[l].values[j];
        const Sum up_to_here = up_to_lane(of_run), before = __shfl_up_sync(0xffffffffu, up_to_here, 1);
        before_run[l] = of_warp + (threadIdx.x % 32 ? before : 0);
        of_warp += __shfl_sync(0xffffffffu, up_to_here, 31);
    }
    Sum all;
    const Sum before = before_warp<THREADS>(of_warp, &all);
    if (threadIdx.x < 32) {
        const Sum before_all = before_tile<Halves<Sum>>(states, tile, all);
        if (threadIdx.x == 0) start = before_all;
    }
    __syncthreads();
    const Sum base = start + before;
#pragma unroll
    for (int l = 0; l < LINES; ++l) {
        Sum sum = base + before_run[l];
        Run<Sum, RUN> sums;
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            if (shift) sums.values[j] = sum;
            sum += (Sum)mine[l].values[j];
            if (!shift) sums.values[j] = sum;
        }
        const long long i = first + l * (RUN * 32);
        if (whole) {
            *(Run<Sum, RUN>*)(result + i) = sums;
            continue;
        }
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            if (i + j < n) result[i + j] = sums.values[j];
        }
    }
}

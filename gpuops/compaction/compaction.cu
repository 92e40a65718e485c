// Compaction in one pass over an array: the elements that a mask keeps, or the first of each run of equal elements.
//
//     compact   elements of x (n) where keep (n) is not 0
//     heads     elements of x (n) that differ from the element before, and their places in x
//
// A block has a tile, each lane LINES runs of RUN adjacent elements (device/runs.cuh). A line has 128 elements, so one
// sum over the lanes of a warp, with 8 bits for each line, counts the kept elements of four lines at once. Kept
// elements are gathered in shared memory, while look-back counts the kept elements of the tiles before
// (device/tile_prefix.cuh).
//
// The number of kept elements is stored in `count`.
//
// Launch: a block of THREADS threads for every tile.
// Macros: WORD, an unsigned integer of the size of an element; THREADS.

#include "../device/runs.cuh"
#include "../device/tile_prefix.cuh"

using Word = WORD;

constexpr int RUN = 4, LINES = sizeof(Word) == 8 ? 2 : 4, TILE = THREADS * LINES * RUN;

// `kept` has a bit for each of this lane's elements, RUN bits for each line. gather(l, j, place) is called for every
// kept element, number j of this lane's run in line l, with its place among the kept elements of the tile.
// spread(place, to) is called to store the kept element `place` of the tile at `to` in the result.
template <class Gather, class Spread>
__device__ inline void keep_in_order(unsigned kept, unsigned long long* states, long long tile,
                                     unsigned long long* count, Gather gather, Spread spread) {
    __shared__ unsigned long long start;
    unsigned counts = 0;
#pragma unroll
    for (int l = 0; l < LINES; ++l) counts |= (unsigned)__popc(kept >> RUN * l & ((1 << RUN) - 1)) << 8 * l;
    const unsigned up_to_here = up_to_lane(counts), of_lines = __shfl_sync(0xffffffffu, up_to_here, 31);
    unsigned of_warp = 0, all;
#pragma unroll
    for (int l = 0; l < LINES; ++l) of_warp += of_lines >> 8 * l & 255;
    unsigned line = before_warp<THREADS>(of_warp, &all);
    if (threadIdx.x < 32) {
        const unsigned long long before = before_tile<Count>(states, tile, all);
        if (threadIdx.x == 0) start = before;
        if (threadIdx.x == 0 && tile == gridDim.x - 1) *count = before + all;
    }
#pragma unroll
    for (int l = 0; l < LINES; ++l) {
        unsigned place = line + ((up_to_here - counts) >> 8 * l & 255);
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            if (kept >> (RUN * l + j) & 1) gather(l, j, place++);
        }
        line += of_lines >> 8 * l & 255;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < all; i += THREADS) spread(i, start + i);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compact(const Word* __restrict__ x, const unsigned char* __restrict__ keep, long long n, Word* __restrict__ result,
            unsigned long long* states, unsigned long long* count) {
    __shared__ Word gathered[TILE];
    const long long tile = next_tile(states), first = first_of_lane<RUN, LINES>(tile * TILE);
    const bool whole = (tile + 1) * TILE <= n;
    Run<Word, RUN> mine[LINES];
    Run<unsigned char, RUN> flags[LINES];
    load_runs(flags, keep, first, n, whole);
    load_runs(mine, x, first, n, whole);
    unsigned kept = 0;
#pragma unroll
    for (int l = 0; l < LINES; ++l) {
#pragma unroll
        for (int j = 0; j < RUN; ++j) kept |= (unsigned)(flags[l].values[j] != 0) << (RUN * l + j);
    }
    keep_in_order(
        kept, states, tile, count, [&](int l, int j, unsigned place) { gathered[place] = mine[l].values[j]; },
        [&](unsigned place, unsigned long long to) { result[to] = gathered[place]; });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    heads(const Word* __restrict__ x, long long n, Word* __restrict__ result, long long* __restrict__ places,
          int placed, unsigned long long* states, unsigned long long* count) {
    __shared__ Word gathered[TILE];
    __shared__ unsigned short from[TILE];
    const long long tile = next_tile(states), first = first_of_lane<RUN, LINES>(tile * TILE);
    const int lane = threadIdx.x % 32;
    Run<Word, RUN> mine[LINES];
    const bool whole = (tile + 1) * TILE <= n;
    load_runs(mine, x, first, n, whole);
    Word left = lane == 0 && first > 0 && first < n ? x[first - 1] : 0;  // in lane 0, the element before its line
    unsigned kept = 0;
#pragma unroll
    for (int l = 0; l < LINES; ++l) {
        const Word of_left_lane = (Word)__shfl_up_sync(0xffffffffu, mine[l].values[RUN - 1], 1);
        Word before = lane ? of_left_lane : left;
        left = (Word)__shfl_sync(0xffffffffu, mine[l].values[RUN - 1], 31);
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            kept |= (unsigned)(before != mine[l].values[j]) << (RUN * l + j);
            before = mine[l].values[j];
        }
        if (!whole) {
            const long long there = n - first - l * (RUN * 32);
            if (there < RUN) kept &= ~(~0u << (RUN * l + (int)max(there, 0ll)));
        }
    }
    kept |= first == 0;
    const unsigned of_lane = (unsigned)(first - tile * TILE);
    keep_in_order(
        kept, states, tile, count,
        [&](int l, int j, unsigned place) {
            gathered[place] = mine[l].values[j];
            if (placed) from[place] = (unsigned short)(of_lane + l * (RUN * 32) + j);
        },
        [&](unsigned place, unsigned long long to) {
            result[to] = gathered[place];
            if (placed) places[to] = tile * TILE + from[place];
        });
}

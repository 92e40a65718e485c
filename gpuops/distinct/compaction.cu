// The elements of an array that are kept, in order, and the first of each run of equal ones: one pass over the array.
//
//     compact   x (n) where keep (n) is not 0
//     heads     x (n) where it differs from the element before, and the places of those
//
// A block has a tile, each of its warps a stretch of it, of ITEMS lines of 32 neighbours. A ballot for each line says
// who is kept, and look-back how many are in the tiles before (device/tile_prefix.cuh); so everyone knows its place.
//
// The state of the last tile holds how many are kept in all, in its lower 62 bits.
//
// Launch: a block of THREADS for every tile.
// Macros: WORD, an unsigned integer of the size of an element; THREADS.

#include "../device/tile_prefix.cuh"

using Word = WORD;

constexpr int ITEMS = sizeof(Word) == 8 ? 8 : 16, LINE = 32, TILE = THREADS * ITEMS;

// store(j, place): this lane's element of line j is kept, at that place of the result.
template <class Store>
__device__ inline void keep_in_order(const unsigned (&kept)[ITEMS], unsigned long long* states, long long tile,
                                     Store store) {
    __shared__ unsigned long long start;
    unsigned of_warp = 0;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) of_warp += __popc(kept[j]);
    unsigned all;
    const unsigned before = before_warp<THREADS>(of_warp, &all);
    if (threadIdx.x < 32) {
        const unsigned long long before_all = before_tile(states, tile, all);
        if (threadIdx.x == 0) start = before_all;
    }
    __syncthreads();
    const unsigned lane = threadIdx.x % 32, nearer = (1u << lane) - 1;
    unsigned long long place = start + before;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        if (kept[j] >> lane & 1) store(j, place + __popc(kept[j] & nearer));
        place += __popc(kept[j]);
    }
}

// This lane's element in the first line of its warp.
__device__ inline long long first_of_lane(long long tile) {
    return tile * TILE + threadIdx.x / 32 * (ITEMS * LINE) + threadIdx.x % 32;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compact(const Word* __restrict__ x, const unsigned char* __restrict__ keep, long long n, Word* __restrict__ result,
            unsigned long long* states) {
    const long long tile = next_tile(states), first = first_of_lane(tile);
    Word mine[ITEMS];
    unsigned kept[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const long long i = first + j * LINE;
        mine[j] = i < n ? x[i] : 0;
        kept[j] = i < n ? keep[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) kept[j] = __ballot_sync(0xffffffffu, kept[j] != 0);
    keep_in_order(kept, states, tile, [&](int j, unsigned long long place) { result[place] = mine[j]; });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    heads(const Word* __restrict__ x, long long n, Word* __restrict__ result, long long* __restrict__ places,
          int placed, unsigned long long* states) {
    const long long tile = next_tile(states), first = first_of_lane(tile);
    const int lane = threadIdx.x % 32;
    Word mine[ITEMS];
    unsigned kept[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) mine[j] = first + j * LINE < n ? x[first + j * LINE] : 0;
    Word left = lane == 0 && first > 0 && first < n ? x[first - 1] : 0;  // of the first lane: the one before its line
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const long long i = first + j * LINE;
        const Word before = (Word)__shfl_up_sync(0xffffffffu, mine[j], 1);
        kept[j] = __ballot_sync(0xffffffffu, i < n && (i == 0 || (lane ? before : left) != mine[j]));
        left = (Word)__shfl_sync(0xffffffffu, mine[j], 31);
    }
    keep_in_order(kept, states, tile, [&](int j, unsigned long long place) {
        result[place] = mine[j];
        if (placed) places[place] = first + j * LINE;
    });
}

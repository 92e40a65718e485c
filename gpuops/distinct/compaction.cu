// The elements of an array that are kept, in order, and the first of each run of equal ones: one pass over the array.
//
//     compact   x (n) where keep (n) is not 0
//     heads     x (n) where it differs from the element before, and the places of those
//
// A block has a tile of ITEMS lines of THREADS elements; look-back says how many are kept in the tiles before
// (device/tile_prefix.cuh). What a tile keeps is gathered in shared memory, from where it goes to neighbours.
//
// The state of the last tile holds how many are kept in all, in its lower 62 bits.
//
// Launch: a block of THREADS for every tile.
// Macros: WORD, an unsigned integer of the size of an element; THREADS.

#include "../device/tile_prefix.cuh"

using Word = WORD;

constexpr int ITEMS = 12, TILE = THREADS * ITEMS;  // a thread has ITEMS elements side by side

// keeps(i): the element i is kept; i counts from the tile's first one.
template <class Keeps>
__device__ inline void keep_in_order(const Word* tile_of_x, long long first, Keeps keeps, Word* kept, long long* places,
                                     unsigned long long* states, long long tile) {
    __shared__ unsigned short chosen[TILE];
    __shared__ unsigned long long start;
    unsigned mask = 0;
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) mask |= (unsigned)keeps((int)threadIdx.x * ITEMS + j) << j;
    unsigned all;
    unsigned place = before_thread<THREADS>(__popc(mask), &all);
    for (; mask; mask &= mask - 1) chosen[place++] = (unsigned short)(threadIdx.x * ITEMS + __ffs((int)mask) - 1);
    if (threadIdx.x < 32) {
        const unsigned long long before = before_tile(states, tile, all);
        if (threadIdx.x == 0) start = before;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        kept[start + i] = tile_of_x[chosen[i]];
        if (places) places[start + i] = first + chosen[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compact(const Word* __restrict__ x, const unsigned char* __restrict__ keep, long long n, Word* __restrict__ kept,
            unsigned long long* states) {
    __shared__ unsigned char flags[TILE];
    const long long tile = next_tile(states), first = tile * TILE;
    const int size = (int)min(n - first, (long long)TILE);
    for (int i = threadIdx.x; i < TILE; i += THREADS) flags[i] = i < size ? keep[first + i] : 0;
    __syncthreads();
    keep_in_order(x + first, first, [&](int i) { return flags[i] != 0; }, kept, nullptr, states, tile);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    heads(const Word* __restrict__ x, long long n, Word* __restrict__ kept, long long* __restrict__ places, int placed,
          unsigned long long* states) {
    __shared__ Word words[TILE];
    const long long tile = next_tile(states), first = tile * TILE;
    const int size = (int)min(n - first, (long long)TILE);
    for (int i = threadIdx.x; i < size; i += THREADS) words[i] = x[first + i];
    const Word before = first > 0 ? x[first - 1] : 0;
    __syncthreads();
    keep_in_order(
        words, first,
        [&](int i) { return i < size && (i > 0 ? words[i - 1] != words[i] : first == 0 || before != words[0]); }, kept,
        placed ? places : nullptr, states, tile);
}

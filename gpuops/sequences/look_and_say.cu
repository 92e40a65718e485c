// A step of the look-and-say sequence: count and digit of every run, in one pass over the term.
//
// A block has a tile of ITEMS adjacent digits for each thread. A thread describes the runs that begin among its digits;
// look-back counts the runs that begin in the tiles before (device/tile_prefix.cuh). No run is longer than LONGEST, so
// a tile needs at most LONGEST digits of the next tile.
//
// Launch: a block of THREADS threads for every tile.
// Macros: THREADS.

#include "../device/tile_prefix.cuh"

constexpr int ITEMS = 16, TILE = THREADS * ITEMS, LONGEST = 9;

extern "C" __global__ void __launch_bounds__(THREADS)
    say(const unsigned char* __restrict__ term, long long n, unsigned char* __restrict__ said,
        unsigned long long* states) {
    __shared__ unsigned char digits[1 + TILE + LONGEST];  // the first digit is the one before the tile
    __shared__ unsigned short runs[TILE];                 // count and digit, the count in the lower half
    __shared__ unsigned long long start;
    const long long tile = next_tile(states), first = tile * TILE;
    const int size = (int)min(n - first, (long long)TILE), known = (int)min(n - first, (long long)(TILE + LONGEST));
    for (int i = threadIdx.x; i < known; i += THREADS) digits[1 + i] = term[first + i];
    if (threadIdx.x == 0 && tile > 0) digits[0] = term[first - 1];
    __syncthreads();

    const unsigned char* const mine = digits + 1 + threadIdx.x * ITEMS;
    const int count = min(ITEMS, size - (int)threadIdx.x * ITEMS), left = known - (int)threadIdx.x * ITEMS;
    unsigned heads = 0;
    for (int j = 0; j < count; ++j) heads |= (unsigned)(mine[j] != mine[j - 1]) << j;
    if (tile == 0 && threadIdx.x == 0) heads |= 1;
    unsigned all;
    unsigned place = before_thread<THREADS>(__popc(heads), &all);
    for (; heads; heads &= heads - 1) {
        const int head = __ffs((int)heads) - 1;
        int run = 1;
        while (head + run < left && run < LONGEST && mine[head + run] == mine[head]) ++run;
        runs[place++] = (unsigned short)(mine[head] << 8 | run);
    }
    if (threadIdx.x < 32) {
        const unsigned long long before = before_tile<Count>(states, tile, all);
        if (threadIdx.x == 0) start = before;
    }
    __syncthreads();
    unsigned short* const to = (unsigned short*)said + start;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) to[i] = runs[i];
}

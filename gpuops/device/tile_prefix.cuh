// What the tiles before a tile have together, in the launch that counts them: decoupled look-back.
//
// Every tile leaves its own number in a word, and adds up those before it until it comes to one that knows all before
// itself. Blocks take tiles in the order in which they start, so that a tile never waits for one that has no block yet.
//
// `states` has a word for each tile and one more in front, which deals out the tiles; all are zero before the launch.
//
// D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
#pragma once

constexpr unsigned long long OWN = 1ull << 62, ALL = 2ull << 62, KNOWN = 3ull << 62;  // what a word says; 0: nothing

// Called once by all threads of a block: the tile that it has.
__device__ inline long long next_tile(unsigned long long* states) {
    __shared__ unsigned long long tile;
    if (threadIdx.x == 0) tile = atomicAdd(states, 1ull);
    __syncthreads();
    return (long long)tile;
}

// What a tile says. The load is volatile: with __ldcg, ptxas removes the loop that waits (CUDA 13).
__device__ inline unsigned long long state_of(const unsigned long long* state) {
    unsigned long long now;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(state) : "memory");
    return now;
}

// Calls add(tile, state) with those before `tile` that make up all before it, a lane for each, once they say something.
template <class Add>
__device__ inline void look_back(const unsigned long long* states, long long tile, Add add) {
    for (long long nearest = tile - 1; nearest >= 0; nearest -= 32) {
        const long long other = nearest - threadIdx.x % 32;  // in front of all tiles there is known to be nothing
        unsigned long long state = ALL;
        if (other >= 0) {
            while (((state = state_of(states + 1 + other)) & KNOWN) == 0) {
            }
        }
        const unsigned known = __ballot_sync(0xffffffffu, (state & KNOWN) == ALL);
        const int last = known ? __ffs((int)known) - 1 : 31;
        if (other >= 0 && threadIdx.x % 32 <= last) add(other, state);
        if (known) break;
    }
}

template <class T>
__device__ inline T sum_of_lanes(T value) {
    for (int b = 16; b > 0; b /= 2) value += __shfl_xor_sync(0xffffffffu, value, b);
    return value;
}

// Called by the first warp of a block, whose lanes give the same `mine`, below 2^62.
__device__ inline unsigned long long before_tile(unsigned long long* states, long long tile, unsigned long long mine) {
    const bool first_lane = threadIdx.x % 32 == 0;
    if (first_lane && tile > 0) atomicExch(states + 1 + tile, OWN | mine);
    unsigned long long before = 0;
    look_back(states, tile, [&](long long, unsigned long long state) { before += state & ~KNOWN; });
    before = sum_of_lanes(before);
    if (first_lane) atomicExch(states + 1 + tile, ALL | (before + mine));
    return before;
}

// The same for sums of any size: two of them for each tile, in `sums`, its own and that of all up to it.
template <class Sum>
__device__ inline Sum sum_before_tile(unsigned long long* states, Sum* sums, long long tile, Sum mine) {
    const bool first_lane = threadIdx.x % 32 == 0;
    const auto say = [&](unsigned long long what, Sum sum) {
        __stcg(sums + 2 * tile + (what == ALL), sum);
        __threadfence();
        atomicExch(states + 1 + tile, what);
    };
    if (first_lane && tile > 0) say(OWN, mine);
    Sum before = 0;
    look_back(states, tile, [&](long long other, unsigned long long state) {
        __threadfence();
        before += __ldcg(sums + 2 * other + (state == ALL));
    });
    before = sum_of_lanes(before);
    if (first_lane) say(ALL, before + mine);
    return before;
}

// Called by all threads of a block of SIZE, at most 1,024 and a multiple of 32: the sum of `mine` of the warps before
// this one, and in `all` that of the block. The lanes of a warp give the same.
template <int SIZE, class T>
__device__ inline T before_warp(T mine, T* all) {
    __shared__ T of_warps[SIZE / 32];
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    T before = 0, total = 0;
    for (int w = 0; w < SIZE / 32; ++w) {
        if (w < threadIdx.x / 32) before += of_warps[w];
        total += of_warps[w];
    }
    *all = total;
    return before;
}

// The sum of `value` of the lanes up to this one.
template <class T>
__device__ inline T up_to_lane(T value) {
    for (int b = 1; b < 32; b *= 2) {
        const T other = __shfl_up_sync(0xffffffffu, value, b);
        if (threadIdx.x % 32 >= b) value += other;
    }
    return value;
}

// The same for threads, of which each gives its own: the sum of `mine` of the threads before this one.
template <int SIZE>
__device__ inline unsigned before_thread(unsigned mine, unsigned* all) {
    const unsigned up_to_here = up_to_lane(mine);
    return before_warp<SIZE>(__shfl_sync(0xffffffffu, up_to_here, 31), all) + up_to_here - mine;
}

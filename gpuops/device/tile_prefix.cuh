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

// Called by the first warp of a block, whose lanes give the same `mine`, below 2^62.
__device__ inline unsigned long long before_tile(unsigned long long* states, long long tile, unsigned long long mine) {
    const int lane = threadIdx.x % 32;
    unsigned long long before = 0;
    if (lane == 0 && tile > 0) atomicExch(states + 1 + tile, OWN | mine);
    for (long long nearest = tile - 1; nearest >= 0; nearest -= 32) {
        const long long other = nearest - lane;  // what is in front of all tiles counts as known to have nothing
        unsigned long long state = ALL;
        if (other >= 0) {
            while (((state = state_of(states + 1 + other)) & KNOWN) == 0) {
            }
        }
        const unsigned known = __ballot_sync(0xffffffffu, (state & KNOWN) == ALL);
        const int last = known ? __ffs((int)known) - 1 : 31;
        unsigned long long sum = lane <= last ? state & ~KNOWN : 0;
        for (int b = 16; b > 0; b /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, b);
        before += sum;
        if (known) break;
    }
    if (lane == 0) atomicExch(states + 1 + tile, ALL | (before + mine));
    return before;
}

// Called by all threads of a block of SIZE, at most 1,024 and a multiple of 32: the sum of `mine` of the threads
// before this one, and in `all` that of the block.
template <int SIZE>
__device__ inline unsigned before_thread(unsigned mine, unsigned* all) {
    __shared__ unsigned of_warps[SIZE / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned up_to_here = mine;
    for (int b = 1; b < 32; b *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, up_to_here, b);
        if (lane >= b) up_to_here += other;
    }
    if (lane == 31) of_warps[warp] = up_to_here;
    __syncthreads();
    unsigned before = up_to_here - mine, total = 0;
    for (int w = 0; w < SIZE / 32; ++w) {
        if (w < warp) before += of_warps[w];
        total += of_warps[w];
    }
    *all = total;
    return before;
}

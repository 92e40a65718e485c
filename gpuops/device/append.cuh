// Lists that all blocks append to: every thread with an element to append gets a place, by one atomic for each block.
//
// The threads of a block keep their order; the order of blocks changes from run to run.
#pragma once

// Called once by all threads of a block of THREADS threads, a multiple of 32. Returns this thread's place, which is
// valid if `mine` is true. `count` is the number of places taken so far.
template <int THREADS>
__device__ inline unsigned long long append(bool mine, unsigned long long* count) {
    __shared__ unsigned long long first;
    __shared__ unsigned of_warps[THREADS / 32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned votes = __ballot_sync(0xffffffffu, mine);
    if (lane == 0) of_warps[warp] = __popc(votes);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned total = 0;
        for (int i = 0; i < THREADS / 32; ++i) {
            const unsigned size = of_warps[i];
            of_warps[i] = total;
            total += size;
        }
        first = total ? atomicAdd(count, (unsigned long long)total) : 0;
    }
    __syncthreads();
    return first + of_warps[warp] + __popc(votes & ((1u << lane) - 1));
}

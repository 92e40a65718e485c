// A barrier of all blocks of a cooperative launch.
#pragma once

// One thread of every block calls this, between two barriers of the block. `arrived` counts the arrivals at all
// barriers of the launch and starts at 0; `expected` is its value once every block has reached this barrier. Afterwards
// all blocks see the stores that other blocks made before, if their loads bypass the first-level cache.
__device__ inline void arrive_and_wait(unsigned* arrived, unsigned expected) {
    // A release is enough here; __threadfence would order more accesses than needed.
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(arrived), "r"(1u) : "memory");
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
    } while ((int)(now - expected) < 0);
}

// The same, for all threads of all blocks.
struct GridBarrier {
    unsigned *arrived, expected = 0;

    __device__ void wait() {
        __syncthreads();
        expected += gridDim.x;
        if (threadIdx.x == 0) arrive_and_wait(arrived, expected);
        __syncthreads();
    }
};

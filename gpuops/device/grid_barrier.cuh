// Waiting for other blocks of a cooperative launch.
#pragma once

// One thread of a block calls this after a barrier of the block. Blocks that see the arrival, by `wait_for_arrivals`,
// see all stores that the block made before. It counts as `times` arrivals.
__device__ inline void arrive(unsigned* arrived, unsigned times = 1) {
    // A release is enough here; __threadfence would order more accesses than needed.
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(arrived), "r"(times) : "memory");
}

// Waits until `arrived`, which starts at 0, has counted `expected` arrivals. One thread of a block calls this before a
// barrier of the block. Loads after the barrier have to bypass the first-level cache.
__device__ inline void wait_for_arrivals(const unsigned* arrived, unsigned expected) {
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
    } while ((int)(now - expected) < 0);
}

// A barrier of all blocks. One thread of every block calls this, between two barriers of the block. `arrived` counts
// the arrivals at all barriers of the launch; `expected` is its value once every block has reached this barrier.
__device__ inline void arrive_and_wait(unsigned* arrived, unsigned expected) {
    arrive(arrived);
    wait_for_arrivals(arrived, expected);
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

// A barrier of all blocks of a cooperative launch.
#pragma once

// One thread of every block calls, between two barriers of the block. `arrived` counts arrivals at all barriers of the
// launch and starts at 0; `expected` is how many there are once every block has reached this one. What blocks stored
// before is seen by all afterwards, if they read past the first-level cache.
__device__ inline void arrive_and_wait(unsigned* arrived, unsigned expected) {
    // A release is enough: __threadfence would order all accesses of the device.
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(arrived), "r"(1u) : "memory");
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
    } while ((int)(now - expected) < 0);
}

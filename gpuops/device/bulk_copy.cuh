// Bulk copies from global to shared memory (cp.async.bulk), from sm_90 on.
//
// One thread starts a copy. A barrier in shared memory (mbarrier) goes from one phase to the next when all its arrivals
// have come, and all bytes that were announced to it. Whoever waits for a barrier names the parity of the phase whose
// end it waits for: 0 for the first phase. Of a new barrier, the phase of parity 1 counts as ended.
#pragma once

using Barrier = unsigned long long;

__device__ inline unsigned shared_address(const void* shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}

// One thread makes the barriers, then calls `publish_barriers`, then the threads of the block meet.
__device__ inline void make_barrier(Barrier& barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

__device__ inline void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void arrive(Barrier& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

__device__ inline void arrive_and_announce(Barrier& barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
                 : "memory");
}

// Ends the launch with an error if the phase does not end: each poll takes up to some microseconds.
__device__ inline void wait_for_phase(Barrier& barrier, unsigned parity) {
    constexpr unsigned MOST_POLLS = 1 << 26;
    unsigned ended = 0;
    for (unsigned polls = 0; !ended; ++polls) {
        if (polls == MOST_POLLS) __trap();
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(ended)
                     : "r"(shared_address(&barrier)), "r"(parity)
                     : "memory");
    }
}

// Addresses and bytes are multiples of 16. The bytes count for `barrier` when they have come.
__device__ inline void copy_bulk(void* shared, const void* global, unsigned bytes, Barrier& barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(shared_address(&barrier))
                 : "memory");
}

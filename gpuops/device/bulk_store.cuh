// Stores of whole rows from shared memory that go on while the threads do: on Hopper by the engine for bulk copies, which
// keeps the way free for the loads of others; before it by all lanes of a warp.
//
// Who has written to shared memory calls `publish_to_copies` before the barrier that whoever stores waits for. Who stores
// calls `commit_stores` after his stores, and `wait_for_stores` before shared memory may change, or the block end.
#pragma once

#if __CUDA_ARCH__ >= 900 && !defined(NO_BULK)
constexpr bool STORES_IN_BULK = true;

__device__ inline void publish_to_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Addresses and bytes are multiples of 16.
__device__ inline void store_bulk(void* to, const void* shared, int bytes) {
    const unsigned from = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}
__device__ inline void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ inline void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#else
constexpr bool STORES_IN_BULK = false;

__device__ inline void publish_to_copies() {}
__device__ inline void store_bulk(void*, const void*, int) {}
__device__ inline void commit_stores() {}
__device__ inline void wait_for_stores() {}
#endif

// All lanes of a warp: `count` elements of a row, `from` being as far behind a multiple of 16 bytes as `to`.
template <class T>
__device__ inline void store_row(T* to, const T* from, int count) {
    constexpr int ALIGNED = 16 / sizeof(T);
    const int lane = threadIdx.x % 32, behind = (int)((unsigned long long)to / sizeof(T) % ALIGNED);
    const int first = min(count, (ALIGNED - behind) % ALIGNED), last = first + (count - first) / ALIGNED * ALIGNED;
    if (STORES_IN_BULK) {
        if (lane == 0 && first < last) store_bulk(to + first, from + first, (last - first) * (int)sizeof(T));
    } else {
        for (int e = first + lane * ALIGNED; e < last; e += 32 * ALIGNED) {
            __stcs((int4*)(to + e), *(const int4*)(from + e));
        }
    }
    // What is less than 16 bytes at both ends.
    if (lane < first) to[lane] = from[lane];
    if (last + lane < count) to[last + lane] = from[last + lane];
}

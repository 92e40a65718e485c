// Asynchronous copies from global to shared memory (cp.async): the thread goes on while they run.
//
// A thread issues copies, commits the copies since its last commit as a group, and later waits until at most PENDING of
// its groups are unfinished. A barrier then makes the copied bytes visible to the other threads.
#pragma once

// Both addresses are multiples of 16.
__device__ inline void copy_16_bytes(void* shared, const void* global) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}

// Both addresses are multiples of BYTES, 4 or 8.
template <int BYTES>
__device__ inline void copy_word(void* shared, const void* global) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(global), "n"(BYTES) : "memory");
}

__device__ inline void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Copies from global to shared memory that go on while the thread does (cp.async).
//
// A thread issues copies, commits those since its last commit as a group, and later waits until no more than PENDING
// of its groups are on their way. A barrier then makes what has arrived visible to the others.
#pragma once

// Both addresses are multiples of 16.
__device__ inline void copy_16_bytes(void* shared, const void* global) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}

__device__ inline void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

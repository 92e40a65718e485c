// The butterfly: every thread of a block gets the combination of what all threads have.
//
// Step b, for b = threads / 2, ..., 2, 1: thread i combines what it has with what thread i xor b has. Both do so, and
// as the operation is commutative they get the same: after the last step all threads have one result, combined in one
// fixed tree. Partners in other warps leave their values in shared memory, where each warp takes those steps for the
// whole block, with a single barrier for all of them; partners in the same warp exchange values by shuffles.
//
// An Operation has a type State and a commutative combine(State, State) -> State. The number of threads is a power of
// two.
#pragma once

constexpr unsigned WHOLE_WARP = 0xffffffffu;

// What lane i xor b has; for a State of several words, its file overloads this.
template <class State>
__device__ inline State of_partner(State mine, int b) {
    return __shfl_xor_sync(WHOLE_WARP, mine, b);
}

// values[j]: what thread 32 j + lane has.
template <class Operation, int COUNT>
__device__ inline typename Operation::State butterfly(typename Operation::State (&values)[COUNT]) {
    static_assert(COUNT > 0 && (COUNT & (COUNT - 1)) == 0, "partners are i and i xor b");
#pragma unroll
    for (int b = COUNT / 2; b > 0; b /= 2) {
#pragma unroll
        for (int j = 0; j < b; ++j) values[j] = Operation::combine(values[j], values[j ^ b]);
    }
    typename Operation::State mine = values[0];
#pragma unroll
    for (int b = 16; b > 0; b /= 2) mine = Operation::combine(mine, of_partner(mine, b));
    return mine;
}

// Called by all 32 COUNT threads of a block; `shared` has a place for each. Others may still read there when a thread
// returns: until there was another barrier, the next call takes other places.
template <class Operation, int COUNT>
__device__ inline typename Operation::State in_every_thread(typename Operation::State mine,
                                                            typename Operation::State* shared) {
    typename Operation::State values[COUNT];
    shared[threadIdx.x] = mine;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < COUNT; ++j) values[j] = shared[32 * j + threadIdx.x % 32];
    return butterfly<Operation, COUNT>(values);
}

// The butterfly: every thread of a block gets the combination of the values of all threads.
//
// Step b, for b = threads / 2, ..., 2, 1: thread i combines its value with the value of thread i xor b. Thread i xor b
// does the same, and because the operation is commutative both get the same value. After the last step all threads have
// one result, combined in one fixed tree. Steps between warps go through shared memory: every thread stores its value
// there, and after a single barrier each warp computes these steps for the whole block. Steps within a warp exchange
// values by shuffles.
//
// An Operation has a type State and a commutative combine(State, State) -> State. The number of threads is a power of
// two.
#pragma once

constexpr unsigned WHOLE_WARP = 0xffffffffu;

// Returns the value of lane i xor b. A file whose State has several words overloads this function.
template <class State>
__device__ inline State of_partner(State mine, int b) {
    return __shfl_xor_sync(WHOLE_WARP, mine, b);
}

// values[j] is the value of thread 32 j + lane.
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

// Called by all 32 * COUNT threads of a block; `shared` has one State for each thread. When a thread returns, other
// threads may still read `shared`: a second call needs other shared memory, or a barrier before it.
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

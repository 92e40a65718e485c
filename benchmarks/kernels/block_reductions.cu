// Every element of an array replaced by the sum of its block of THREADS elements: the butterfly in two ways.
//
//     two_barriers   as published: each step reads the partner's value from shared memory, with a barrier before the
//                    store and one after it, 2 log2 THREADS barriers in all and one before the first step
//     one_barrier    by gpuops/device/butterfly.cuh: shuffles in a warp, one barrier for the steps between warps
//
// x, sums (n), n a multiple of THREADS. int32, as published; the sum wraps around.
//
// Launch: n / THREADS blocks of THREADS threads, a macro, a power of two and at least 32.
//
// "Using Parallel Reduction to Optimize Dijkstra", 4 August 2010.

#include "../../gpuops/device/butterfly.cuh"

struct Sum {
    using State = int;
    __device__ static int combine(int a, int b) { return a + b; }
};

extern "C" __global__ void __launch_bounds__(THREADS) two_barriers(const int* x, int* sums) {
    __shared__ int sum[THREADS];
    const int i = threadIdx.x;
    sum[i] = x[(long long)blockIdx.x * THREADS + i];
    __syncthreads();
    for (int bit = THREADS / 2; bit > 0; bit /= 2) {
        const int t = Sum::combine(sum[i], sum[i ^ bit]);
        __syncthreads();
        sum[i] = t;
        __syncthreads();
    }
    sums[(long long)blockIdx.x * THREADS + i] = sum[i];
}

extern "C" __global__ void __launch_bounds__(THREADS) one_barrier(const int* x, int* sums) {
    __shared__ int values[THREADS];
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    sums[i] = in_every_thread<Sum, THREADS / 32>(x[i], values);
}

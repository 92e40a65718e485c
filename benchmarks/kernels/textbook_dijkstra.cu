// The minimum found one by one and by butterfly, and Dijkstra's algorithm as in textbooks with either.
//
//     minimum_serial      the minimum of x (n), one element after the other
//     dijkstra_serial     settles one vertex at a time, the nearest; the first thread looks at all that are not settled
//     dijkstra_parallel   the same, but each thread looks at every THREADS-th vertex, and a butterfly finds the nearest
//
// That is n times a minimum over n vertices. All threads relax the arcs of the vertex that was settled. distances (n):
// 0 at the source, +inf elsewhere, as integers in the order of the numbers; settled (n): 0.
//
// Launch: one block of THREADS threads, a macro; minimum_serial: one thread.
//
// "Using parallel reduction to optimize Dijkstra", 2010 (the minimum by butterfly).

#include "../../gpuops/device/butterfly.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int UNREACHABLE = 0x7f800000;

struct Place {
    int distance, vertex;
};

__device__ inline Place of_partner(Place mine, int b) {
    return {of_partner(mine.distance, b), of_partner(mine.vertex, b)};
}

struct Nearest {
    using State = Place;
    __device__ static Place combine(Place a, Place b) {
        return a.distance < b.distance || (a.distance == b.distance && a.vertex < b.vertex) ? a : b;
    }
};

__device__ inline Place nearest_of(const int* distances, const int* settled, int n, int first, int step) {
    Place nearest{UNREACHABLE, n};
    for (int v = first; v < n; v += step) {
        const int distance = settled[v] ? UNREACHABLE : distances[v];
        if (distance < nearest.distance) nearest = {distance, v};
    }
    return nearest;
}

__device__ inline void relax(const long long* indptr, const int* indices, const float* weights, int* distances,
                             const Place& tail) {
    for (long long arc = indptr[tail.vertex] + threadIdx.x; arc < indptr[tail.vertex + 1]; arc += THREADS) {
        atomicMin(distances + indices[arc], __float_as_int(__int_as_float(tail.distance) + weights[arc]));
    }
}

extern "C" __global__ void minimum_serial(const float* __restrict__ x, long long n, float* result) {
    float least = x[0];
    for (long long i = 1; i < n; ++i) least = fminf(least, x[i]);
    *result = least;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    dijkstra_serial(const long long* __restrict__ indptr, const int* __restrict__ indices,
                    const float* __restrict__ weights, int n, int* distances, int* settled) {
    __shared__ Place tail;
    for (;;) {
        if (threadIdx.x == 0) {
            tail = nearest_of(distances, settled, n, 0, 1);
            if (tail.vertex < n) settled[tail.vertex] = 1;
        }
        __syncthreads();
        if (tail.vertex == n) break;
        relax(indptr, indices, weights, distances, tail);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    dijkstra_parallel(const long long* __restrict__ indptr, const int* __restrict__ indices,
                      const float* __restrict__ weights, int n, int* distances, int* settled) {
    __shared__ Place partners[THREADS];
    for (;;) {
        const Place mine = nearest_of(distances, settled, n, threadIdx.x, THREADS);
        const Place tail = in_every_thread<Nearest, WARPS>(mine, partners);
        if (tail.vertex == n) break;
        if (mine.vertex == tail.vertex) settled[tail.vertex] = 1;  // its own vertex: no other thread looks there
        relax(indptr, indices, weights, distances, tail);
        __syncthreads();
    }
}

// Weak components by union-find: unite the two ends of every arc, then make every vertex point to its root.
//
//   unite_ends   one thread for each arc
//   shorten_all  one thread for each vertex; launched again until it leaves `unfinished` at 0 (union_find.cuh)
//
// Macro VERTEX: int or long long.

#include "../device/union_find.cuh"

using Vertex = VERTEX;

constexpr int THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS)
    unite_ends(const Vertex* __restrict__ tails, const Vertex* __restrict__ heads, long long m, Vertex* parents) {
    const long long arc = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (arc < m) unite(parents, tails[arc], heads[arc]);
}

extern "C" __global__ void __launch_bounds__(THREADS) shorten_all(Vertex* parents, long long n, int* unfinished) {
    const long long v = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (v < n && !shorten(parents, (Vertex)v)) *unfinished = 1;
}

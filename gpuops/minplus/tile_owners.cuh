// What kernels share whose blocks own tiles of a matrix for a whole launch, and wait for what other blocks publish.
//
// Loads of published data bypass the first-level cache, because other multiprocessors stored the data.
//
// Macros: the macros of closure_tile.cuh.
#pragma once

#include "../device/grid_barrier.cuh"
#include "closure_tile.cuh"

constexpr int VALUES = TILE * OWN / THREADS;  // that a thread computes of a strip of OWN columns

__device__ inline unsigned multiprocessor() {
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

// All threads of a block wait for arrivals.
__device__ inline void await(const unsigned* arrived, unsigned expected) {
    if (threadIdx.x == 0) wait_for_arrivals(arrived, expected);
    __syncthreads();
}

// All threads of a block call this when they have stored what a thread of the block then announces by `arrive`.
__device__ inline void finish_stores() {
    __syncthreads();  // before arrivals
}

__device__ inline void announce(unsigned* arrived, unsigned times = 1) {
    if (threadIdx.x == 0) arrive(arrived, times);
}

__device__ inline void share(Tile& tile, const Own& own) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) tile[own_row() + r][own_column() + s] = own[r][s];
    }
}

// A thread's values of a strip, of which it has VALUES that follow each other in a row: min(values, a (x) strip). PARTS
// threads compute two rows together, each over its part of the depth, so that they load few operands.
template <int UNROLLED>
__device__ inline void relax_strip(Wide (&values)[VALUES], const Tile& a, const Wide (*strip)[TILE + 4]) {
    constexpr int PARTS = 2 * OWN / VALUES;
    const int part = threadIdx.x % PARTS, row = threadIdx.x / PARTS * 2;
    Wide sums[2 * OWN];
#pragma unroll
    for (int v = 0; v < 2 * OWN; ++v) sums[v] = infinity<Element>();
#pragma unroll UNROLLED
    for (int p0 = 0; p0 < TILE; p0 += 4 * PARTS) {
        const int p = p0 + 4 * part;
        Wide x[2][4], y[OWN][4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
#pragma unroll
            for (int r = 0; r < 2; ++r) x[r][q] = a[row + r][p + q];
#pragma unroll
            for (int s = 0; s < OWN; ++s) y[s][q] = strip[s][p + q];
        }
#pragma unroll
        for (int v = 0; v < 2 * OWN; ++v) {
#pragma unroll
            for (int q = 0; q < 4; q += 2) {
                sums[v] = relaxed(sums[v], x[v / OWN][q], y[v % OWN][q], x[v / OWN][q + 1], y[v % OWN][q + 1]);
            }
        }
    }
#pragma unroll
    for (int lanes = PARTS / 2, count = OWN; lanes > 0; lanes /= 2, count /= 2) {
        const bool upper = part & lanes;
#pragma unroll
        for (int v = 0; v < count; ++v) {
            const Wide passed = __shfl_xor_sync(0xffffffffu, upper ? sums[v] : sums[v + count], lanes);
            sums[v] = shorter(upper ? sums[v + count] : sums[v], passed);
        }
    }
#pragma unroll
    for (int v = 0; v < VALUES; ++v) values[v] = shorter(values[v], sums[v]);
}

// The number of the first tile that a block owns; `count` or more if none. `start` is what counts start from, `first` is in
// shared memory.
template <class Arrivals>
__device__ inline unsigned first_tile(Arrivals* arrivals, unsigned start, unsigned count, unsigned& first) {
    if (gridDim.x <= count) return blockIdx.x - 1;
    if (threadIdx.x == 0) {
        wait_for_arrivals(&arrivals->multiprocessor, start + 1);
        const bool beside = __ldcg(&arrivals->multiprocessor) - start == multiprocessor() + 1;
        const bool leaves = beside && atomicAdd(&arrivals->left, 1u) - start < gridDim.x - 1 - count;
        first = leaves ? count : atomicAdd(&arrivals->owners, 1u) - start;
    }
    __syncthreads();
    return first;
}

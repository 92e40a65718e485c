// Closes matrices d (batch, n, n) of one tile each in place. Nobody is farther than 0 from himself.
//
// Launch: a block of THREADS threads for each matrix.
// Macros: those of closure_tile.cuh, OWN among them: few threads that own much have few barriers and few loads; BLOCKS.

#include "closure_tile.cuh"

// `sizes` has two numbers for every matrix, its own n and how many of its vertices may lie inside paths; without it all
// are alike, and every vertex is a pivot.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    close_tiles(Element* d, long long matrix_stride, long long stride, int n, const int* sizes, double tolerance) {
    const int size = sizes ? sizes[2 * blockIdx.x] : n, inside = sizes ? sizes[2 * blockIdx.x + 1] : n;
    d += blockIdx.x * matrix_stride;
    Own own;
    load_own(own, d, stride, size, size);
    if (own_row() == own_column()) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) own[r][r] = shorter(own[r][r], Wide(0));
    }
    close_tile(own, inside, tolerance);
    store_own(d, stride, size, size, own);
}

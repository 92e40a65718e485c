// Closes matrices d (batch, n, n) of one tile each in place. A diagonal entry d[i][i] counts as min(d[i][i], 0).
//
// Launch: a block of THREADS threads for each matrix.
// Macros: BLOCKS, the blocks on a multiprocessor; the macros of closure_tile.cuh. OWN is given, because a few threads
//         that own much need few barriers and few loads.

#include "closure_tile.cuh"

// `sizes` has two numbers for every matrix: its n, and the number of its vertices that may lie inside paths. If `sizes`
// is null, both numbers are n for every matrix.
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

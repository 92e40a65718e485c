// Closes small matrices d (batch, n, n) in place, by tiles; diagonals must be 0 or less. For every tile K of pivots, in
// order, there are two launches:
//
//     relax_panels   closes the tile d[K,K]; row_panel = min(d[K,:], d*[K,K] (x) d[K,:]); column_panel = d[:,K].
//                    Every block closes the tile again: that is cheaper than one more launch to wait for.
//     relax_rest     d = min(d, column_panel (x) row_panel) in the rows outside K; d[K,:] = row_panel.
//
// No block writes a tile that another block of the same launch reads, so blocks never race. Panels are stored tile by
// tile, as [batch][n / TILE][TILE][TILE], padded with infinity. Only the first `inside` vertices of a matrix are
// pivots; the column panel has infinity in the columns of other vertices.
//
// Launch: see each kernel; blockIdx.z is the matrix.
// Macros: ELEMENT, the type of the distances; TILE, such that two tiles fit into 48 KiB of shared memory;
//         THREADS, the threads of a block.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "closure_tile.cuh"

// The n of a matrix of the batch, and the number of its vertices that may lie inside paths.
struct Size {
    int n, inside;
};
// `sizes` has both numbers for every matrix. If it is null, both are n for every matrix.
__device__ inline Size size_of(int matrix, int n, const int* sizes) {
    return sizes ? Size{sizes[2 * matrix], sizes[2 * matrix + 1]} : Size{n, n};
}

// Launch: grid (2 n / TILE, 1, batch), THREADS threads. The first half of the blocks computes the row panel, the second
// half copies the column panel.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    relax_panels(const Element* d, long long matrix_stride, long long stride, int n, const int* sizes, int pivots,
                 double tolerance, Element* row_panel, Element* column_panel) {
    __shared__ alignas(16) Tile closed, right;
    const Size size = size_of(blockIdx.z, n, sizes);
    const int tiles = gridDim.x / 2, tile = blockIdx.x % tiles;
    const int k0 = pivots * TILE, t0 = tile * TILE;
    if (k0 >= size.inside || t0 >= size.n) return;
    d += blockIdx.z * matrix_stride;
    const long long panel = ((long long)blockIdx.z * tiles + tile) * TILE * TILE;
    const Element* row_tile = d + k0 * stride + t0;
    Own own;
    if (blockIdx.x >= tiles) {
        load_own(own, d + t0 * stride + k0, stride, size.n - t0, size.inside - k0);
        store_own(column_panel + panel, TILE, TILE, TILE, own);
        return;
    }
    load_tile(right, row_tile, stride, size.n - k0, size.n - t0);
    load_own(own, d + k0 * stride + k0, stride, size.n - k0, size.n - k0);
    close_tile(own, size.inside - k0, tolerance);
    if (tile != pivots) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
#pragma unroll
            for (int s = 0; s < OWN; ++s) {
                const bool pivot = k0 + own_column() + s < size.inside;
                closed[own_row() + r][own_column() + s] = pivot ? own[r][s] : infinity<Element>();
            }
        }
        __syncthreads();
        load_own(own, row_tile, stride, size.n - k0, size.n - t0);
        relax_tile(own, closed, right);
    }
    store_own(row_panel + panel, TILE, TILE, TILE, own);
}

// Launch: grid (n / TILE, n / TILE, batch), x along a row, THREADS threads.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    relax_rest(Element* d, long long matrix_stride, long long stride, int n, const int* sizes, int pivots,
               const Element* row_panel, const Element* column_panel) {
    __shared__ alignas(16) Tile left, right;
    const Size size = size_of(blockIdx.z, n, sizes);
    const int i0 = blockIdx.y * TILE, j0 = blockIdx.x * TILE;
    if (pivots * TILE >= size.inside || i0 >= size.n || j0 >= size.n) return;
    const long long first = (long long)blockIdx.z * gridDim.x * TILE * TILE;
    Element* target = d + blockIdx.z * matrix_stride + i0 * stride + j0;
    Own own;
    if (blockIdx.y == pivots) {
        load_own(own, row_panel + first + j0 * TILE, TILE, TILE, TILE);
    } else {
        load_tile(left, column_panel + first + i0 * TILE, TILE, TILE, TILE);
        load_tile(right, row_panel + first + j0 * TILE, TILE, TILE, TILE);
        load_own(own, target, stride, size.n - i0, size.n - j0);
        __syncthreads();
        relax_tile(own, left, right);
    }
    store_own(target, stride, size.n - i0, size.n - j0, own);
}

// Closes a small matrix d (n, n) in place, in one launch: the independent block of blocked Floyd-Warshall, itself done
// by tiles. For every tile K of pivots, in order, two steps, with a barrier of the grid after each:
//
//     relax_panel   closes the tile d[K,K], then row_panel = d*[K,K] (x) d[K,:] and column_panel = a copy of d[:,K].
//                   Every block closes the tile for itself: that is cheaper than a step to wait for.
//     relax_rest    d = min(d, column_panel (x) row_panel) in the rows outside K; d[K,:] = row_panel.
//
// Both read what the step before left and write elsewhere, so blocks never race. What other multiprocessors left is read
// past the first-level cache. Panels are stored tile by tile, as [n / TILE][TILE][TILE], filled up with infinity.
//
// Launch: cooperative, as many blocks of THREADS threads as there are tiles, at most BLOCKS on every multiprocessor;
//         `clear_diagonal` and `look_over` say their own.
// Macros: ELEMENT, the type of the distances; TILE, such that two tiles fit into 48 KiB of shared memory;
//         THREADS, of a block; BLOCKS.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "../device/grid_barrier.cuh"
#include "closure_tile.cuh"

// The two steps, each for one tile. Functions of their own, so that what the launch goes by takes none of the registers.
struct Closing {
    Element* d;
    long long stride;
    int n;
    double tolerance;
    Element* row_panel;
    Element* column_panel;
};

__attribute__((noinline)) __device__ void relax_panel(const Closing& all, int k0, int t0, bool column, Tile& left,
                                                      Tile& right) {
    const Element* row_tile = all.d + k0 * all.stride + t0;
    Own own;
    if (column) {
        load_own(own, all.d + t0 * all.stride + k0, all.stride, all.n - t0, all.n - k0);
        store_own(all.column_panel + t0 * TILE, TILE, TILE, TILE, own);
        return;
    }
    load_tile(right, row_tile, all.stride, all.n - k0, all.n - t0);
    load_own(own, all.d + k0 * all.stride + k0, all.stride, all.n - k0, all.n - k0);
    close_tile(own, TILE, all.tolerance);
    if (t0 != k0) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
#pragma unroll
            for (int s = 0; s < OWN; ++s) left[own_row() + r][own_column() + s] = own[r][s];
        }
        __syncthreads();
        load_own(own, row_tile, all.stride, all.n - k0, all.n - t0);
        relax_tile(own, left, right);
    }
    store_own(all.row_panel + t0 * TILE, TILE, TILE, TILE, own);
}

__attribute__((noinline)) __device__ void relax_rest(const Closing& all, int k0, int i0, int j0, Tile& left,
                                                     Tile& right) {
    Element* target = all.d + i0 * all.stride + j0;
    Own own;
    if (i0 == k0) {
        load_own(own, all.row_panel + j0 * TILE, TILE, TILE, TILE);
    } else {
        load_tile(left, all.column_panel + i0 * TILE, TILE, TILE, TILE);
        load_tile(right, all.row_panel + j0 * TILE, TILE, TILE, TILE);
        load_own(own, target, all.stride, all.n - i0, all.n - j0);
        __syncthreads();
        relax_tile(own, left, right);
    }
    store_own(target, all.stride, all.n - i0, all.n - j0, own);
}

// After a barrier of the block.
__device__ inline void wait_for_all(unsigned* arrived, unsigned& expected) {
    expected += gridDim.x;
    if (threadIdx.x == 0) arrive_and_wait(arrived, expected);
    __syncthreads();
}

// row_panel, column_panel [n / TILE][TILE][TILE]; arrived, 0.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    close_small(Element* d, long long stride, int n, double tolerance, Element* row_panel, Element* column_panel,
                unsigned* arrived) {
    __shared__ alignas(16) Tile left, right;
    const Closing all{d, stride, n, tolerance, row_panel, column_panel};
    const int tiles = (n + TILE - 1) / TILE;
    unsigned expected = 0;
    for (int pivots = 0; pivots < tiles; ++pivots) {
        for (int i = blockIdx.x; i < 2 * tiles; i += gridDim.x) {
            relax_panel(all, pivots * TILE, i % tiles * TILE, i >= tiles, left, right);
            __syncthreads();  // nobody reads the tiles in shared memory any more
        }
        wait_for_all(arrived, expected);
        for (int i = blockIdx.x; i < tiles * tiles; i += gridDim.x) {
            relax_rest(all, pivots * TILE, i / tiles * TILE, i % tiles * TILE, left, right);
            __syncthreads();
        }
        if (pivots + 1 < tiles) wait_for_all(arrived, expected);
    }
}

// Launch: blocks of THREADS threads, a thread for each vertex of all matrices. Nobody is farther than 0 from himself.
extern "C" __global__ void clear_diagonal(Element* d, long long matrix_stride, long long step, int n,
                                          long long vertices) {
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (i >= vertices) return;
    Element& own = d[i / n * matrix_stride + i % n * step];
    if (own > Element(0)) own = Element(0);
}

// Launch: a block of THREADS threads for each row of all matrices, or fewer. found: is there NaN, -inf, anything below
// 0; 0 at first.
extern "C" __global__ void look_over(const Element* d, long long matrix_stride, long long row_stride,
                                     long long column_stride, int n, long long rows, int* found) {
    for (long long i = blockIdx.x; i < rows; i += gridDim.x) {
        const Element* row = d + i / n * matrix_stride + i % n * row_stride;
        for (int j = threadIdx.x; j < n; j += THREADS) {
            const Element x = row[j * column_stride];
            if (x != x) found[0] = 1;
            if (x < Element(0)) found[2] = 1;
            if (Element(0.5) != Element(0) && x == -infinity<Element>()) found[1] = 1;  // integers have none
        }
    }
}

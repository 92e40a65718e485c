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
#include "arithmetic.cuh"

using Element = ELEMENT;
using Wide = decltype(Element() + Element());  // int for int16: registers are no narrower

constexpr int OWN = 4;  // a thread owns OWN x OWN neighbours of a tile
constexpr int SIDE = TILE / OWN;
static_assert(THREADS == SIDE * SIDE, "the macro says what the launch does");

// A thread's part of a tile, and a tile in shared memory: rows OWN apart start in different banks, each on 16 bytes.
using Own = Wide[OWN][OWN];
using Tile = Wide[TILE][TILE + 4];

__device__ inline int own_row() {
    return (int)threadIdx.x / SIDE * OWN;
}
__device__ inline int own_column() {
    return (int)threadIdx.x % SIDE * OWN;
}

// The addition wraps to the width of an element, as it does in product.cu and on the CPU. Only distances on their
// way to minus infinity get there, and min never lets a negative diagonal entry become positive again.
__device__ inline Wide relaxed(Wide w, Wide a, Wide b) {
    return shorter(w, Wide(Element(a + b)));
}

__device__ inline Wide element(const Element* d, long long stride, int i, int j, int rows, int columns) {
    return i < rows && j < columns ? __ldcg(d + i * stride + j) + Element(0) : infinity<Element>();
}

__device__ inline void load_tile(Tile& tile, const Element* d, long long stride, int rows, int columns) {
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        tile[e / TILE][e % TILE] = element(d, stride, e / TILE, e % TILE, rows, columns);
    }
}

__device__ inline void load_own(Own& own, const Element* d, long long stride, int rows, int columns) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            own[r][s] = element(d, stride, own_row() + r, own_column() + s, rows, columns);
        }
    }
}

__device__ inline void store_own(Element* d, long long stride, int rows, int columns, const Own& own) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            const int i = own_row() + r, j = own_column() + s;
            if (i < rows && j < columns) __stcg(d + i * stride + j, Element(own[r][s]));
        }
    }
}

// Closes a tile. In step k the owners publish row k and column k, in two buffers by turns, so that one barrier per
// step is enough. The pivot d[k][k] counts as 0 in its step: less than that it can only be by rounding, which must
// not pile up, or on a negative cycle, which stays visible. A diagonal entry that ends in [-tolerance, 0) becomes 0.
__device__ inline void close_tile(Own& own, double tolerance) {
    __shared__ alignas(16) Wide pivot_row[2][TILE], pivot_column[2][TILE];
    const int i0 = own_row(), j0 = own_column();
    for (int k0 = 0; k0 < TILE; k0 += OWN) {
#pragma unroll
        for (int k = 0; k < OWN; ++k) {
            Wide* row = pivot_row[k % 2];
            Wide* column = pivot_column[k % 2];
            const bool owns_pivot = i0 == k0 && j0 == k0;
            if (i0 == k0) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) row[j0 + s] = owns_pivot && s == k ? Wide(0) : own[k][s];
            }
            if (j0 == k0) {
#pragma unroll
                for (int r = 0; r < OWN; ++r) column[i0 + r] = owns_pivot && r == k ? Wide(0) : own[r][k];
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) own[r][s] = relaxed(own[r][s], column[i0 + r], row[j0 + s]);
            }
        }
    }
    if (i0 == j0) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            if (own[r][r] < 0 && own[r][r] >= -tolerance) own[r][r] = 0;
        }
    }
}

// own = min(own, a (x) b)
__device__ inline void relax_tile(Own& own, const Tile& a, const Tile& b) {
    const int i0 = own_row(), j0 = own_column();
#pragma unroll 4
    for (int p = 0; p < TILE; p += OWN) {
        Own x, y;
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
#pragma unroll
            for (int s = 0; s < OWN; ++s) {
                x[r][s] = a[i0 + r][p + s];
                y[r][s] = b[p + r][j0 + s];
            }
        }
#pragma unroll
        for (int q = 0; q < OWN; ++q) {
#pragma unroll
            for (int r = 0; r < OWN; ++r) {
#pragma unroll
                for (int s = 0; s < OWN; ++s) own[r][s] = relaxed(own[r][s], x[r][q], y[q][s]);
            }
        }
    }
}

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
    close_tile(own, all.tolerance);
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

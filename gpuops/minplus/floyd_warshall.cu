// Closes small matrices d (batch, n, n) in place, such as the independent block of blocked Floyd-Warshall, by tiles.
//
//     close_tiles    closes matrices of one tile, in one launch.
//
// For larger ones, for every tile K of pivots, in order, two launches:
//
//     relax_panels   closes the tile d[K,K], then row_panel = d*[K,K] (x) d[K,:] and column_panel = a copy of d[:,K].
//                    Every block closes the tile for itself: that is cheaper than a launch to wait for.
//     relax_rest     d = min(d, column_panel (x) row_panel) in the rows outside K; d[K,:] = row_panel.
//
// Both read what the launch before left and write elsewhere, so blocks never race. Panels are stored tile by tile, as
// [batch][n / TILE][TILE][TILE], filled up with infinity. Only the first `inside` vertices of a matrix are pivots; in the
// panels the columns of the others are infinite.
//
// Launch: said at each kernel; blockIdx.z is the matrix, except in close_tiles.
// Macros: ELEMENT, the type of the distances; TILE, such that two tiles fit into 48 KiB of shared memory;
//         THREADS, of a block.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

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
    return i < rows && j < columns ? d[i * stride + j] + Element(0) : infinity<Element>();
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
            if (i < rows && j < columns) d[i * stride + j] = Element(own[r][s]);
        }
    }
}

// How large a matrix of the batch is, and how many of its vertices may lie inside paths.
struct Size {
    int n, inside;
};
// `sizes` has both for every matrix; without it all are alike, and every vertex is a pivot.
__device__ inline Size size_of(int matrix, int n, const int* sizes) {
    return sizes ? Size{sizes[2 * matrix], sizes[2 * matrix + 1]} : Size{n, n};
}

// Closes a tile over its first `inside` vertices. In step k the owners publish row k and column k, in two buffers by turns, so that one barrier per
// step is enough. The pivot d[k][k] counts as 0 in its step: less than that it can only be by rounding, which must
// not pile up, or on a negative cycle, which stays visible. A diagonal entry that ends in [-tolerance, 0) becomes 0.
__device__ inline void close_tile(Own& own, int inside, double tolerance) {
    __shared__ alignas(16) Wide pivot_row[2][TILE], pivot_column[2][TILE];
    const int i0 = own_row(), j0 = own_column();
    for (int k0 = 0; k0 < min(TILE, inside); k0 += OWN) {
#pragma unroll
        for (int k = 0; k < OWN; ++k) {
            if (k0 + k >= inside) break;
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

// Launch: a block of THREADS threads for each matrix, none of which is larger than a tile.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    close_tiles(Element* d, long long matrix_stride, long long stride, int n, const int* sizes, double tolerance) {
    const Size size = size_of(blockIdx.x, n, sizes);
    d += blockIdx.x * matrix_stride;
    Own own;
    load_own(own, d, stride, size.n, size.n);
    close_tile(own, size.inside, tolerance);
    store_own(d, stride, size.n, size.n, own);
}

// Launch: grid (2 n / TILE, 1, batch), THREADS threads; the first half make the row panel, the second copy the column
// panel.
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

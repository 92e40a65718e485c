// Blocked Floyd-Warshall on tiles of 32 x 32 in shared memory, three launches for every 32 pivots.
//
//     independent        the tile on the diagonal, by itself
//     singly_dependent   the tiles in its rows and columns, each from itself and the independent one
//     doubly_dependent   all other tiles, each from two singly dependent ones
//
// w (n, n), rows one after the other, n a multiple of 32. All tiles that a block touches lie in shared memory, the one
// it updates too. A task is one pass of a loop that is not unrolled, and words are found by division, as in 2008.
//
// Launch: said at each kernel.
// Macros: THREADS, of a block.
//
// G. J. Katz, J. T. Kider, "All-pairs shortest-paths for large graphs on the GPU", Graphics Hardware, 2008, as
// described in B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, section 3.2.

constexpr int TILE = 32;

using Tile = float[TILE][TILE];

__device__ inline float* corner(float* w, int n, int tile_i, int tile_j) {
    return w + (long long)tile_i * TILE * n + tile_j * TILE;
}

__device__ inline void load(Tile& tile, const float* w, int n) {
#pragma unroll 1
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        tile[e / TILE][e % TILE] = w[(long long)(e / TILE) * n + e % TILE];
    }
}

__device__ inline void store(float* w, int n, const Tile& tile) {
#pragma unroll 1
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        w[(long long)(e / TILE) * n + e % TILE] = tile[e / TILE][e % TILE];
    }
}

// w = min(w, a (x) b), where w may be a or b, or both: one k after the other. Row and column k do not change in step k.
__device__ inline void relax_in_order(Tile& w, const Tile& a, const Tile& b) {
#pragma unroll 1
    for (int k = 0; k < TILE; ++k) {
        __syncthreads();
#pragma unroll 1
        for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
            const int i = e / TILE, j = e % TILE;
            w[i][j] = fminf(w[i][j], a[i][k] + b[k][j]);
        }
    }
}

// Launch: one block of THREADS threads.
extern "C" __global__ void independent(float* w, int n, int pivots) {
    __shared__ Tile tile;
    float* place = corner(w, n, pivots, pivots);
    load(tile, place, n);
    relax_in_order(tile, tile, tile);
    store(place, n, tile);
}

// Launch: grid (n / TILE, 2), y = 0 for the rows of the pivots and y = 1 for their columns; THREADS threads.
extern "C" __global__ void singly_dependent(float* w, int n, int pivots) {
    __shared__ Tile pivot, tile;
    const int other = blockIdx.x;
    const bool in_rows = blockIdx.y == 0;
    if (other == pivots) return;
    float* place = in_rows ? corner(w, n, pivots, other) : corner(w, n, other, pivots);
    load(pivot, corner(w, n, pivots, pivots), n);
    load(tile, place, n);
    if (in_rows) {
        relax_in_order(tile, pivot, tile);
    } else {
        relax_in_order(tile, tile, pivot);
    }
    store(place, n, tile);
}

// Launch: grid (n / TILE, n / TILE), x along a row; THREADS threads.
extern "C" __global__ void doubly_dependent(float* w, int n, int pivots) {
    __shared__ Tile left, above, tile;
    const int tile_i = blockIdx.y, tile_j = blockIdx.x;
    if (tile_i == pivots || tile_j == pivots) return;
    float* place = corner(w, n, tile_i, tile_j);
    load(left, corner(w, n, tile_i, pivots), n);
    load(above, corner(w, n, pivots, tile_j), n);
    load(tile, place, n);
    __syncthreads();
#pragma unroll 1
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        const int i = e / TILE, j = e % TILE;
#pragma unroll 1
        for (int k = 0; k < TILE; ++k) tile[i][j] = fminf(tile[i][j], left[i][k] + above[k][j]);
    }
    store(place, n, tile);
}

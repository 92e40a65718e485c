// Blocked Floyd-Warshall on tiles of 32 x 32 in shared memory, with fewer and cheaper instructions for the same data.
//
//     independent        the tile on the diagonal, by itself
//     singly_dependent   the tiles in its rows and columns, each from itself and the independent one
//     doubly_dependent   all other tiles, each from two singly dependent ones
//
// w (n, n), rows one after the other, n a multiple of 32. As in katz_kider.cu all tiles that a block touches lie in
// shared memory. What changed: places come from shifts, once per thread; loops are unrolled; a thread's tasks lie in
// one column of the tile, so that a word of `above` serves four of them. (Today's compilers also keep what a thread
// updates in registers from one k to the next.)
//
// With REGISTERS = 1 the doubly dependent tile lies in registers alone, and a block has two tiles in shared memory, 8 KiB
// instead of 12. The paper calls this no gain by itself, since still one block fits a multiprocessor of its GPU.
//
// Launch: said at each kernel.
// Macros: THREADS, of a block; REGISTERS, 0 or 1.
//
// B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, section 4, the first round;
// with REGISTERS = 1 section 4.1.

constexpr int TILE = 32;
constexpr int ROWS = THREADS / TILE;  // of a tile, that the threads cover together
constexpr int OWN = TILE / ROWS;      // tasks of a thread for each k: rows i0, i0 + ROWS, ... of column j

using Tile = float[TILE][TILE];

__device__ inline float* corner(float* w, int n, int tile_i, int tile_j) {
    return w + (long long)(tile_i << 5) * n + (tile_j << 5);
}

__device__ inline void load(Tile& tile, const float* w, int n, int i0, int j) {
    w += (long long)i0 * n + j;
#pragma unroll
    for (int r = 0; r < OWN; ++r, w += (long long)ROWS * n) tile[i0 + r * ROWS][j] = *w;
}

__device__ inline void store(float* w, int n, const Tile& tile, int i0, int j) {
    w += (long long)i0 * n + j;
#pragma unroll
    for (int r = 0; r < OWN; ++r, w += (long long)ROWS * n) *w = tile[i0 + r * ROWS][j];
}

// w = min(w, a (x) b), where w may be a or b, or both: one k after the other. Row and column k do not change in step k.
__device__ inline void relax_in_order(Tile& w, const Tile& a, const Tile& b, int i0, int j) {
#pragma unroll
    for (int k = 0; k < TILE; ++k) {
        __syncthreads();
        const float step = b[k][j];
#pragma unroll
        for (int i = i0; i < i0 + TILE; i += ROWS) w[i][j] = fminf(w[i][j], a[i][k] + step);
    }
}

// Launch: one block of THREADS threads.
extern "C" __global__ void independent(float* w, int n, int pivots) {
    __shared__ Tile tile;
    const int i0 = threadIdx.x >> 5, j = threadIdx.x & 31;
    float* place = corner(w, n, pivots, pivots);
    load(tile, place, n, i0, j);
    relax_in_order(tile, tile, tile, i0, j);
    store(place, n, tile, i0, j);
}

// Launch: grid (n / TILE, 2), y = 0 for the rows of the pivots and y = 1 for their columns; THREADS threads.
extern "C" __global__ void singly_dependent(float* w, int n, int pivots) {
    __shared__ Tile pivot, tile;
    const int i0 = threadIdx.x >> 5, j = threadIdx.x & 31, other = blockIdx.x;
    const bool in_rows = blockIdx.y == 0;
    if (other == pivots) return;
    float* place = in_rows ? corner(w, n, pivots, other) : corner(w, n, other, pivots);
    load(pivot, corner(w, n, pivots, pivots), n, i0, j);
    load(tile, place, n, i0, j);
    if (in_rows) {
        relax_in_order(tile, pivot, tile, i0, j);
    } else {
        relax_in_order(tile, tile, pivot, i0, j);
    }
    store(place, n, tile, i0, j);
}

// Launch: grid (n / TILE, n / TILE), x along a row; THREADS threads.
extern "C" __global__ void doubly_dependent(float* w, int n, int pivots) {
    __shared__ Tile left, above;
    const int i0 = threadIdx.x >> 5, j = threadIdx.x & 31, tile_i = blockIdx.y, tile_j = blockIdx.x;
    if (tile_i == pivots || tile_j == pivots) return;
    float* place = corner(w, n, tile_i, tile_j);
    load(left, corner(w, n, tile_i, pivots), n, i0, j);
    load(above, corner(w, n, pivots, tile_j), n, i0, j);
#if REGISTERS
    float own[OWN];
    place += (long long)i0 * n + j;
#pragma unroll
    for (int r = 0; r < OWN; ++r) own[r] = place[(long long)(r * ROWS) * n];
#else
    __shared__ Tile tile;
    load(tile, place, n, i0, j);
#endif
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) {
        const float step = above[k][j];
#pragma unroll
        for (int r = 0; r < OWN; ++r) {
            const int i = i0 + r * ROWS;
#if REGISTERS
            own[r] = fminf(own[r], left[i][k] + step);
#else
            tile[i][j] = fminf(tile[i][j], left[i][k] + step);
#endif
        }
    }
#if REGISTERS
#pragma unroll
    for (int r = 0; r < OWN; ++r) place[(long long)(r * ROWS) * n] = own[r];
#else
    store(place, n, tile, i0, j);
#endif
}

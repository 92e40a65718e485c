// Blocked Floyd-Warshall whose doubly dependent tiles lie in registers, while what they depend on is loaded in stages.
//
//     to_tiles           rows one after the other -> doubly tiled order
//     independent        the 32 x 32 tile on the diagonal, by itself
//     singly_dependent   the tiles in its rows and columns, each from itself and the independent one
//     doubly_dependent   all other tiles, 16 words per thread in registers; of the two tiles they depend on, four
//                        columns and four rows at a time pass through 1 KiB of shared memory instead of 12, so that
//                        many blocks fit a multiprocessor
//     from_tiles         back
//
// w (n, n), tiled (n, n), n a multiple of 32. Doubly tiled order: tiles of 32 x 32 are contiguous, row by row, and so
// are tiles of 4 x 4 inside each. Then four rows of a tile are 128 words in one piece, four columns are eight pieces of
// 16, and either way loads are coalesced. Neighbouring threads own the 16 words of a 4 x 4 tile, so in the order k = 0,
// 1, 2, 3 they would meet in the same banks of shared memory. With SKEW = 1, as published, every thread therefore starts
// at k = (i + j) % 4: the order within a stage is free. With SKEW = 0 all threads start at k = 0. tile_layout.py counts
// the conflicts of both.
//
// Launch: said at each kernel.
// Macros: THREADS, of a block, but for doubly_dependent; SKEW, 0 or 1.
//
// B. Lund, J. W. Smith, "A multi-stage CUDA kernel for Floyd-Warshall", arXiv:1001.4108, sections 4.1 to 4.3.

constexpr int TILE = 32;
constexpr int SMALL = 4;
constexpr int WORDS = TILE * TILE;
constexpr int SLICE = TILE * SMALL;  // four rows or columns of a tile
constexpr int FEW_THREADS = 64;      // of a block of doubly_dependent

using Tile = float[TILE][TILE];

__device__ inline float* corner(float* tiled, int n, int tile_i, int tile_j) {
    return tiled + ((long long)tile_i * (n / TILE) + tile_j) * WORDS;
}

// Row and column of the word at place e of a tile.
__device__ inline int row_of(int e) {
    return e / SLICE * SMALL + e % (SMALL * SMALL) / SMALL;
}
__device__ inline int column_of(int e) {
    return e % SLICE / (SMALL * SMALL) * SMALL + e % SMALL;
}

// Launch both: grid (n / TILE, n / TILE), x along a row; THREADS threads.
extern "C" __global__ void to_tiles(const float* w, float* tiled, int n) {
    const float* place = w + (long long)blockIdx.y * TILE * n + blockIdx.x * TILE;
    float* tile = corner(tiled, n, blockIdx.y, blockIdx.x);
    for (int e = threadIdx.x; e < WORDS; e += THREADS) tile[e] = place[(long long)row_of(e) * n + column_of(e)];
}
extern "C" __global__ void from_tiles(float* w, float* tiled, int n) {
    float* place = w + (long long)blockIdx.y * TILE * n + blockIdx.x * TILE;
    const float* tile = corner(tiled, n, blockIdx.y, blockIdx.x);
    for (int e = threadIdx.x; e < WORDS; e += THREADS) place[(long long)row_of(e) * n + column_of(e)] = tile[e];
}

__device__ inline void load(Tile& tile, const float* place) {
    for (int e = threadIdx.x; e < WORDS; e += THREADS) tile[row_of(e)][column_of(e)] = place[e];
}

__device__ inline void store(float* place, const Tile& tile) {
    for (int e = threadIdx.x; e < WORDS; e += THREADS) place[e] = tile[row_of(e)][column_of(e)];
}

// w = min(w, a (x) b), where w may be a or b, or both: one k after the other. Row and column k do not change in step k.
__device__ inline void relax_in_order(Tile& w, const Tile& a, const Tile& b) {
    const int i0 = threadIdx.x / TILE, j = threadIdx.x % TILE;
#pragma unroll
    for (int k = 0; k < TILE; ++k) {
        __syncthreads();
#pragma unroll
        for (int i = i0; i < i0 + TILE; i += THREADS / TILE) w[i][j] = fminf(w[i][j], a[i][k] + b[k][j]);
    }
    __syncthreads();
}

// Launch: one block of THREADS threads.
extern "C" __global__ void independent(float* tiled, int n, int pivots) {
    __shared__ Tile tile;
    float* place = corner(tiled, n, pivots, pivots);
    load(tile, place);
    relax_in_order(tile, tile, tile);
    store(place, tile);
}

// Launch: grid (n / TILE, 2), y = 0 for the rows of the pivots and y = 1 for their columns; THREADS threads.
extern "C" __global__ void singly_dependent(float* tiled, int n, int pivots) {
    __shared__ Tile pivot, tile;
    const int other = blockIdx.x;
    const bool in_rows = blockIdx.y == 0;
    if (other == pivots) return;
    float* place = in_rows ? corner(tiled, n, pivots, other) : corner(tiled, n, other, pivots);
    load(pivot, corner(tiled, n, pivots, pivots));
    load(tile, place);
    if (in_rows) {
        relax_in_order(tile, pivot, tile);
    } else {
        relax_in_order(tile, tile, pivot);
    }
    store(place, tile);
}

// Launch: grid (n / TILE, n / TILE), x along a row; FEW_THREADS threads.
extern "C" __global__ void __launch_bounds__(FEW_THREADS) doubly_dependent(float* tiled, int n, int pivots) {
    __shared__ float columns[SLICE], rows[SLICE];  // eight tiles of 4 x 4 each
    const int thread = threadIdx.x, tile_i = blockIdx.y, tile_j = blockIdx.x;
    if (tile_i == pivots || tile_j == pivots) return;
    const float* left = corner(tiled, n, tile_i, pivots);
    const float* above = corner(tiled, n, pivots, tile_j);
    float* place = corner(tiled, n, tile_i, tile_j) + thread;

    // 64 threads cover half a row of 4 x 4 tiles: a thread has the place (i, j) in two tiles of each of eight rows.
    const int tile = threadIdx.x / 16, i = threadIdx.x % 16 / 4, j = threadIdx.x % 4;
    float own[8][2];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int s = 0; s < 2; ++s) own[r][s] = place[r * SLICE + s * FEW_THREADS];
    }
#pragma unroll 1
    for (int stage = 0; stage < TILE / SMALL; ++stage) {
        __syncthreads();  // nobody reads the stage before any more
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            columns[s * FEW_THREADS + thread] = left[(s * 4 + tile) * SLICE + stage * 16 + thread % 16];
            rows[s * FEW_THREADS + thread] = above[stage * SLICE + s * FEW_THREADS + thread];
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < SMALL; ++step) {
            const int k = (SKEW * (i + j) + step) % SMALL;
#pragma unroll
            for (int r = 0; r < 8; ++r) {
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    own[r][s] = fminf(own[r][s], columns[r * 16 + i * 4 + k] + rows[(s * 4 + tile) * 16 + k * 4 + j]);
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int s = 0; s < 2; ++s) place[r * SLICE + s * FEW_THREADS] = own[r][s];
    }
}

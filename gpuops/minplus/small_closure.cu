// Closes a small matrix d (n, n) in place, in one launch: the independent block of blocked Floyd-Warshall. It is closed
// by tiles itself, with one barrier of the grid for every tile K of pivots. Stage K computes each tile
//
//     d[K,J] = min(d[K,J], d*[K,K] (x) d[K,J])        d*[K,K] is closed already
//     d[I,J] = min(d[I,J], d[I,K] (x) new d[K,J])     the block computes new d[K,J] again, to avoid waiting for it
//
// and closes d[K+1,K+1], the slowest part of a stage. The first block closes it, and a block that shares the first
// block's multiprocessor takes tile d[K,K], which needs no more work.
//
// Stages read one of two copies of the matrix and write the other copy, so blocks never race. A copy is stored tile by
// tile, as [n / TILE][n / TILE][TILE][TILE], padded with infinity. Loads bypass the first-level cache, because other
// multiprocessors stored the data.
//
// Launch: cooperative, a block of THREADS threads for each tile, but at most BLOCKS blocks on every multiprocessor.
// Macros: BLOCKS, and the macros of closure_tile.cuh.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "../device/grid_barrier.cuh"
#include "closure_tile.cuh"

// State that blocks share; all 0 at the start of a launch.
struct alignas(16) Blocks {
    unsigned arrived;         // blocks that have arrived at barriers
    unsigned multiprocessor;  // 1 + the number of the first block's multiprocessor
    unsigned neighbour;       // another block on the first block's multiprocessor, 0 if there is none
};

__device__ inline unsigned multiprocessor() {
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

// Loads a thread's part of a tile of a copy. All loads are issued before the first value is used.
__device__ inline void load_part(Own& own, const Element* tile) {
    const Bits* from = (const Bits*)(tile + own_row() * TILE + own_column());
    Neighbours rows[OWN];
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int a = 0; a < ACCESSES; ++a) rows[r].bits[a] = __ldcg(from + r * TILE / OWN * ACCESSES + a);
    }
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) own[r][s] = rows[r].elements[s];
    }
}

__device__ inline void share(Tile& tile, const Own& own) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) tile[own_row() + r][own_column() + s] = own[r][s];
    }
}

// Computes tile (i, j) after stage k from the tiles of a copy.
__device__ __forceinline__ void pass_tile(Own& own, const Element* copy, int tiles, int k, int i, int j, Tile& left,
                                          Tile& right) {
    const auto tile = [&](int row, int column) { return copy + (long long)(row * tiles + column) * TILE * TILE; };
    Own closed, known;
    load_part(own, tile(k, j));
    if (i != k) load_part(known, tile(i, k));
    if (j != k) {
        load_part(closed, tile(k, k));
        share(left, closed);
        share(right, own);
        __syncthreads();
        relax_tile(own, left, right);
        __syncthreads();
    }
    if (i == k) return;
    share(left, known);
    share(right, own);
    load_part(known, tile(i, j));  // the minimum with it is taken at the end
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) own[r][s] = infinity<Element>();
    }
    __syncthreads();
    relax_tile(own, left, right);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) own[r][s] = shorter(own[r][s], known[r][s]);
    }
}

// Closes a tile of pivots; a diagonal entry d[i][i] counts as min(d[i][i], 0).
__device__ __forceinline__ void close_pivots(Own& own, double tolerance) {
    if (own_row() == own_column()) {
#pragma unroll
        for (int r = 0; r < OWN; ++r) own[r][r] = shorter(own[r][r], Wide(0));
    }
    close_tile(own, TILE, tolerance);
}

// Waits for all blocks of the grid; called after a barrier of the block.
__device__ inline void wait_for_all(unsigned* arrived, unsigned& expected) {
    expected += gridDim.x;
    if (threadIdx.x == 0) arrive_and_wait(arrived, expected);
    __syncthreads();
}

// scratch: `Blocks`, followed by the two copies. Before sm_90, two blocks on a multiprocessor would leave each too few
// registers.
extern "C" __global__ void __launch_bounds__(THREADS, __CUDA_ARCH__ < 900 ? 1 : BLOCKS)
    close_small(Element* d, long long stride, int n, double tolerance, Blocks* scratch) {
    __shared__ alignas(16) Tile left, right;
    const int tiles = (n + TILE - 1) / TILE;
    const unsigned count = tiles * tiles;
    Element* copies = (Element*)(scratch + 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) __stcg(&scratch->multiprocessor, multiprocessor() + 1);
    unsigned expected = 0;
    for (int k = -1; k < tiles; ++k) {
        if (k >= 0) wait_for_all(&scratch->arrived, expected);
        // The neighbour stores its number in stage 0; all blocks read it from stage 1 on.
        const bool beside = k == 0 && blockIdx.x != 0 && __ldcg(&scratch->multiprocessor) == multiprocessor() + 1;
        if (beside && threadIdx.x == 0) __stcg(&scratch->neighbour, blockIdx.x);
        const unsigned neighbour = k > 0 ? __ldcg(&scratch->neighbour) : 0;
        const Element* copy = copies + (long long)(k & 1) * count * TILE * TILE;
        Element* next = copies + (long long)((k + 1) & 1) * count * TILE * TILE;
        const unsigned pivots = count - tiles - 1;  // the turn of d[K,K], which the neighbour takes over
        for (unsigned turn = blockIdx.x; turn < count; turn += gridDim.x) {
            const unsigned taken = !neighbour ? turn : turn == neighbour ? pivots : turn == pivots ? neighbour : turn;
            const int place = (taken + (unsigned)((k + 1) * (tiles + 1))) % count, i = place / tiles, j = place % tiles;
            Element* target = d + i * TILE * stride + j * TILE;
            Own own;
            if (k < 0) {
                load_own(own, target, stride, n - i * TILE, n - j * TILE);
            } else {
                pass_tile(own, copy, tiles, k, i, j, left, right);
            }
            if (k + 1 < tiles) {
                if (turn == 0) close_pivots(own, tolerance);
                store_own(next + (long long)place * TILE * TILE, TILE, TILE, TILE, own);
            } else {
                store_own(target, stride, n - i * TILE, n - j * TILE, own);
            }
            __syncthreads();  // all tiles are stored, and no thread reads `left` and `right` any more
        }
    }
}

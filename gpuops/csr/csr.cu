// The tail of every arc of compressed sparse rows, in time that does not depend on how arcs are spread over rows.
//
// The n row ends and the m arcs are merged into a list of n + m items: the end of a row stands before the arc
// indptr[row + 1]. The list is cut into tiles of TILE items: no tile has many arcs or many rows, empty rows included.
//
//   cut      one thread for each tile finds the row where the tile begins, by binary search; the last entry of
//            `rows` is the row where the last tile ends
//   expand   one block for each tile: every row stores its number at its first arc, and a running maximum fills the
//            arcs between
//
// A third kernel checks whether arrays form a graph:
//
//   look_over   by grid-stride loops: whether indptr falls, its first and last entry, and the range of the heads
//
// Macros: OFFSET, the type of indptr; VERTEX, the type of the tails; each is int or long long.
//
// D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016.

using Offset = OFFSET;
using Vertex = VERTEX;

// The number of items of a thread is odd, so that 32 threads reading ITEMS words apart read from 32 banks.
constexpr int THREADS = 256, ITEMS = 11, TILE = THREADS * ITEMS, WARPS = THREADS / 32;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

extern "C" __global__ void __launch_bounds__(THREADS)
    cut(const Offset* __restrict__ indptr, long long n, long long m, long long tiles, Vertex* __restrict__ rows) {
    const long long tile = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (tile > tiles) return;
    const long long item = min(tile * TILE, n + m);
    long long low = max(item - m, 0ll), high = min(item, n);
    while (low < high) {  // the number of rows that end among the first `item` items
        const long long row = low + (high - low) / 2;
        if (indptr[row + 1] < item - row) {
            low = row + 1;
        } else {
            high = row;
        }
    }
    rows[tile] = (Vertex)low;
}

extern "C" __global__ void __launch_bounds__(THREADS, 8)
    expand(const Offset* __restrict__ indptr, const Vertex* __restrict__ rows, long long n, long long m,
           Vertex* __restrict__ tails) {
    __shared__ int row_of[TILE];  // counted from the tile's first row
    __shared__ int of_warps[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long item = (long long)blockIdx.x * TILE, end = min(item + TILE, n + m);
    const long long row = rows[blockIdx.x], last_row = rows[blockIdx.x + 1];
    const long long arc = item - row;
    const int arcs = (int)(end - last_row - arc), ends = (int)(last_row - row);
    if (arcs == 0) return;

    for (int i = threadIdx.x; i < TILE; i += THREADS) row_of[i] = 0;
    __syncthreads();
    for (int i = 1 + threadIdx.x; i <= ends; i += THREADS) {
        const int start = (int)(indptr[row + i] - arc);
        if (start < arcs) atomicMax(row_of + start, i);  // an empty row starts where the next row does, which wins
    }
    __syncthreads();

    int* const mine = row_of + threadIdx.x * ITEMS;
    int latest[ITEMS];
    latest[0] = mine[0];
#pragma unroll
    for (int j = 1; j < ITEMS; ++j) latest[j] = max(latest[j - 1], mine[j]);
    int before = latest[ITEMS - 1];  // becomes the maximum over this thread and the threads before it in its warp
#pragma unroll
    for (int b = 1; b < 32; b *= 2) before = max(before, __shfl_up_sync(WHOLE_WARP, before, b));
    const int up_to_here = before;
    before = __shfl_up_sync(WHOLE_WARP, before, 1);
    if (lane == 0) before = 0;
    if (lane == 31) of_warps[warp] = up_to_here;
    __syncthreads();
    for (int i = 0; i < warp; ++i) before = max(before, of_warps[i]);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) mine[j] = max(before, latest[j]);
    __syncthreads();
    for (int i = threadIdx.x; i < arcs; i += THREADS) tails[arc + i] = (Vertex)(row + row_of[i]);
}

struct Bounds {  // all 0 before the launch
    long long falls, first, last;
    long long below, most;  // how far the least head is below 0, and the largest head plus 1
};

extern "C" __global__ void __launch_bounds__(THREADS)
    look_over(const Offset* __restrict__ indptr, const Vertex* __restrict__ indices, long long n, long long m,
              Bounds* bounds) {
    const long long first = (long long)blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    bool falls = false;
    for (long long v = first; v < n; v += step) falls = falls || indptr[v + 1] < indptr[v];
    long long below = 0, most = 0;
    for (long long i = first; i < m; i += step) {
        const long long head = indices[i];
        below = max(below, -head);
        most = max(most, head + 1);
    }
    for (int lanes = 16; lanes; lanes /= 2) {
        below = max(below, __shfl_xor_sync(WHOLE_WARP, below, lanes));
        most = max(most, __shfl_xor_sync(WHOLE_WARP, most, lanes));
    }
    if (falls) bounds->falls = 1;
    if (threadIdx.x % 32 == 0 && below) atomicMax(&bounds->below, below);
    if (threadIdx.x % 32 == 0 && most) atomicMax(&bounds->most, most);
    if (first == 0) {
        bounds->first = indptr[0];
        bounds->last = indptr[n];
    }
}

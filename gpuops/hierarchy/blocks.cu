// Distances from sources to columns, from the distances from the sources to the fronts of parts. Each part takes one
// min-plus product.
//
//     gather        copy distances from the sources to the fronts of parts into panels
//     pack_tables   copy the tables of the parts into panels
//     arrive        out[s, t] = onward[s, front of J] (x) table[J][:, t]      for columns t of parts J
//     stay          lower out[s, t] to the distance by paths that do not leave the brick of s
//     meet          the distance to a destination is the least of its columns
//
// A *column* is an open vertex and a length to add: a destination and 0, or the tail of an arc into a closed
// destination and the length of the arc. A *part* is a brick with its columns; or a vertex of the upper tree, which is
// its own front, with one column.
//
// A block of `arrive` computes a window: columns that are neighbours in the result. Columns of a window are dealt to
// threads. All columns of a thread belong to one part, so that its product is as deep as the front of this part. A window
// is stored row by row (minplus/strip.cuh). A thread has COLUMNS slots. A slot without a column has the number -1 in
// `slots`; in `columns` it has a number that follows the numbers of all columns of the window.
//
//     onward  [sources / ROWS rounded up][depth][ROWS]    depth: vertices of all fronts, and one infinite row
//     arrival [windows][part_depth][STRIP]                part_depth: the largest front, rounded up to an even number
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; ROWS; THREADS, the threads of a block, except where a kernel says
//         otherwise; BLOCKS, the blocks of `arrive` on a multiprocessor.

#include "../minplus/strip.cuh"
#include "tree.cuh"

constexpr int PACK_WORDS = 32, PACK_DEPTH = 8;

// A distance as answers store it: integers above half of infinity mean unreachable, and become the maximum of the type.
__device__ inline float outside(float x) {
    return x;
}
__device__ inline double outside(double x) {
    return x;
}
__device__ inline int outside(int x) {
    return x <= infinity<int>() / 2 ? x : 0x7fffffff;
}
__device__ inline short outside(short x) {
    return x <= infinity<short>() / 2 ? x : (short)0x7fff;
}

// Row `front[k]` of `d` becomes row k of every panel. Rows from `count` on and columns from `sources` on are infinite.
// Launch: grid (depth / PACK_DEPTH rounded up, words of all panels in a row / PACK_WORDS), PACK_WORDS x PACK_DEPTH
//         threads.
extern "C" __global__ void gather(Word* panels, const Element* d, int stride, const int* front, int count, int depth,
                                  int sources) {
    const int k = blockIdx.x * PACK_DEPTH + threadIdx.y, source = blockIdx.y * PACK_WORDS + threadIdx.x;
    if (k >= depth) return;
    const Element x = k < count && source < sources ? d[(long long)front[k] * stride + source] : infinity<Element>();
    panels[((long long)(source / ROWS) * depth + k) * ROWS + source % ROWS] = ARITHMETIC::broadcast(x);
}

// Part J has the rows from starts[J] on of all fronts. Parts from `bricks` on have one column, the vertex of their front.
// Launch: grid (words of all panels / PACK_WORDS, part_depth / PACK_DEPTH rounded up), PACK_WORDS x PACK_DEPTH threads.
extern "C" __global__ void pack_tables(Word* panels, const Element* table, const long long* table_starts,
                                       const int* starts, const int* thread_part, const int* slots, const int* rows,
                                       const Element* lengths, int bricks, int part_depth) {
    const int word = blockIdx.x * PACK_WORDS + threadIdx.x, k = blockIdx.y * PACK_DEPTH + threadIdx.y;
    const int part = thread_part[word / WORDS];
    if (k >= part_depth) return;
    const int depth = part < 0 ? 0 : starts[part + 1] - starts[part];
    Element x[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        const int column = slots[word * LANES + lane];
        x[lane] = infinity<Element>();
        if (column >= 0 && k < depth) {
            const Element base =
                part < bricks ? table[table_starts[part] + (long long)rows[column] * depth + k] : Element(0);
            x[lane] = shorter(x[lane], sum(base, lengths[column]));
        }
    }
    panels[((long long)(word / STRIP) * part_depth + k) * STRIP + word % STRIP] = ARITHMETIC::pack(x);
}

// `columns` has the number of each slot's column in its window. `rows` has the row of the result for each source, and -1
// for padding. Launch: grid (windows, pieces of `turns` times ROWS sources), THREADS threads.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    arrive(Element* out, long long stride, long long targets, int window, const int* rows, int sources,
           const Word* onward, int depth, const Word* arrival, int part_depth, const int* thread_part,
           const int* starts, const int* columns, int turns) {
    __shared__ Exchange exchange;
    const int thread = blockIdx.x * THREADS + threadIdx.x, part = thread_part[thread];
    const int front = part < 0 ? 0 : starts[part], front_size = part < 0 ? 0 : starts[part + 1] - front;
    const Word* b = arrival + (long long)blockIdx.x * part_depth * STRIP + threadIdx.x * WORDS;
    const long long first_column = (long long)blockIdx.x * window;
    const int width = (int)min((long long)window, targets - first_column);
    int to[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) to[c] = columns[thread * COLUMNS + c];
    out += first_column;
    for (int turn = 0; turn < turns; ++turn) {
        const int group = blockIdx.y * turns + turn, first = group * ROWS;
        if (first >= sources) break;
        Tile tile;
        multiply_strip(tile, onward + ((long long)group * depth + front) * ROWS, b, front_size);
        store_strip(
            tile, exchange, to, width,
            [&](int r) {
                const int row = rows[first + r];
                return row < 0 ? nullptr : out + row * stride;
            },
            [](Element x) { return outside(x); });
    }
}

// Columns are sorted by part, those of each part from part_starts[part] on; `order` has their numbers.
// Launch: a warp for each start of a launch of `home`, THREADS threads.
extern "C" __global__ void stay(Element* out, long long stride, const int* rows, const Tree* tree_, const int* places,
                                const int* sources, int starts, const Element* inner, int width, const int* part_starts,
                                const int* order, const int* column_rows, const Element* lengths, int bricks) {
    const int start = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (start >= starts) return;
    const int brick = tree_->brick[tree_->node_of[places[start]]];
    if (brick >= bricks) return;
    out += rows[sources[start]] * stride;
    inner += (long long)start * width;
    for (int c = part_starts[brick] + (int)threadIdx.x % WARP; c < part_starts[brick + 1]; c += WARP) {
        const int column = order[c];
        const Element x = shorter(infinity<Element>(), sum(inner[column_rows[column]], lengths[column]));
        out[column] = shorter(out[column], outside(x));
    }
}

// Destination `targets[t]` of a row of `out` is as far as the nearest of its columns in that row of `found`, which are
// columns[starts[t]] to columns[starts[t + 1]]. Launch: a block for each row, any number of threads.
extern "C" __global__ void meet(Element* out, long long stride, const Element* found, long long found_stride,
                                const int* rows, const int* targets, const int* starts, const int* columns, int count) {
    const Element* from = found + blockIdx.x * found_stride;
    out += rows[blockIdx.x] * stride;
    for (int t = threadIdx.x; t < count; t += blockDim.x) {
        Element best = from[columns[starts[t]]];
        for (int c = starts[t] + 1; c < starts[t + 1]; ++c) best = shorter(best, from[columns[c]]);
        out[targets[t]] = best;
    }
}

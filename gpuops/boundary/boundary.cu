// Rows of distances from closed parts, by two ragged batches of min-plus products of small depth, each in one launch,
// and the few entries within parts:
//
//     pack_among, pack_columns   copy tables into panels, filled up with infinity
//     depart    onward[s, :] = to_boundary[I, s, :] (x) among[B(I), :]       for sources s of parts I
//     arrive    out[s, t] = onward[s, B(J)] (x) from_boundary[J, :, t]       for targets t of parts J
//     stay      out[s, t] is at most inner[I, s, t] where J = I
//
// A thread has columns of one part: its depth is the boundary of that, a range of rows of the other factor. `arrive`
// goes by windows of columns that are neighbours in the result; within a window, columns go by part and are shared out
// to threads, and a window is stored row by row. `depart` computes onward transposed, sources being its columns, and
// writes the panels that `arrive` reads. No result exceeds infinity.
//
// A slot is a place for a column; the COLUMNS slots of a thread are neighbours. What is not there is -1; but in `arrive`
// the slots of a window without a column have numbers after those of its columns, each its own: no two threads store to
// the same place.
//
//     among  [S / ROWS rounded up][depth][ROWS]          depth: more than S, since an odd boundary is rounded up
//     onward [sources / ROWS rounded up][depth][ROWS]
//     departure, arrival [windows][part_depth][STRIP]    part_depth: the largest boundary, rounded up to an even number
//
// Launch: said at each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; ROWS; THREADS, of a block of `depart` and `arrive`; BLOCKS.

#include "../minplus/strip.cuh"

constexpr int PACK_WORDS = 32, PACK_DEPTH = 8;

// Launch: grid (words of all panels / PACK_WORDS rounded up, depth / PACK_DEPTH rounded up), PACK_WORDS x PACK_DEPTH threads.
extern "C" __global__ void pack_among(Word* panels, const Element* among, int boundary, int depth) {
    const int word = blockIdx.x * PACK_WORDS + threadIdx.x, k = blockIdx.y * PACK_DEPTH + threadIdx.y;
    if (k >= depth || word >= (depth + ROWS - 1) / ROWS * ROWS) return;
    const bool there = word < boundary && k < boundary;
    panels[((long long)(word / ROWS) * depth + k) * ROWS + word % ROWS] =
        ARITHMETIC::broadcast(there ? among[(long long)k * boundary + word] : infinity<Element>());
}

// Column `places[slot]` of the table of the part of its thread. Launch: the same, for words of panels as wide as strips.
extern "C" __global__ void pack_columns(Word* panels, const Element* table, long long part_stride,
                                        long long place_stride, long long depth_stride, const int* thread_part,
                                        const int* places, int rows, int depth) {
    const int word = blockIdx.x * PACK_WORDS + threadIdx.x, k = blockIdx.y * PACK_DEPTH + threadIdx.y;
    if (k >= depth) return;
    table += max(thread_part[word / WORDS], 0) * part_stride + k * depth_stride;
    Element x[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        const int place = places[word * LANES + lane];
        x[lane] = place >= 0 && k < rows ? table[place * place_stride] : infinity<Element>();
    }
    panels[((long long)(word / STRIP) * depth + k) * STRIP + word % STRIP] = ARITHMETIC::pack(x);
}

// Where the boundary of a part begins among all boundary vertices, and how many vertices it has.
struct Boundary {
    int first, size;
};
__device__ inline Boundary boundary_of(int part, const int* starts) {
    return part < 0 ? Boundary{0, 0} : Boundary{starts[part], starts[part + 1] - starts[part]};
}

// Launch: grid (strips of sources, pieces of `turns` times ROWS boundary vertices), THREADS threads.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    depart(Word* onward, int depth, const Word* among, const Word* departure, int part_depth, const int* thread_part,
           const int* starts, int sources, int turns) {
    const int thread = blockIdx.x * THREADS + threadIdx.x, source = thread * COLUMNS;
    if (source >= sources) return;
    const Boundary own = boundary_of(thread_part[thread], starts);
    const Word* b = departure + (long long)blockIdx.x * part_depth * STRIP + threadIdx.x * WORDS;
    onward += (long long)(source / ROWS) * depth * ROWS + source % ROWS;
    for (int turn = 0; turn < turns; ++turn) {
        const int group = blockIdx.y * turns + turn;
        if (group * ROWS >= depth) break;
        Tile tile;
        multiply_strip(tile, among + ((long long)group * depth + own.first) * ROWS, b, own.size);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            Element x[COLUMNS];
#pragma unroll
            for (int w = 0; w < WORDS; ++w) ARITHMETIC::unpack(x + w * LANES, tile[r][w]);
            Word* to = onward + (long long)(group * ROWS + r) * ROWS;
#pragma unroll
            for (int c = 0; c < COLUMNS; c += GROUP) {
                Access access;
#pragma unroll
                for (int g = 0; g < GROUP; ++g) access.words[g] = ARITHMETIC::broadcast(x[c + g]);
                *(Access*)(to + c) = access;
            }
        }
    }
}

// Launch: grid (windows, pieces of `turns` times ROWS sources), THREADS threads. `columns` says where in its
// window a column goes; `rows` to which row of the result a source does.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    arrive(Element* out, long long stride, int targets, int window, const int* rows, int sources, const Word* onward,
           int depth, const Word* arrival, int part_depth, const int* thread_part, const int* starts,
           const int* columns, int turns) {
    __shared__ Exchange exchange;
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    const Boundary own = boundary_of(thread_part[thread], starts);
    const Word* b = arrival + (long long)blockIdx.x * part_depth * STRIP + threadIdx.x * WORDS;
    const int first_column = blockIdx.x * window, width = min(window, targets - first_column);
    int to[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) to[c] = columns[thread * COLUMNS + c];
    out += first_column;
    for (int turn = 0; turn < turns; ++turn) {
        const int group = blockIdx.y * turns + turn, first = group * ROWS;
        if (first >= sources) break;
        Tile tile;
        multiply_strip(tile, onward + ((long long)group * depth + own.first) * ROWS, b, own.size);
        store_strip(tile, exchange, to, width, [&](int r) {
            const int row = rows[first + r];
            return row < 0 ? nullptr : out + row * stride;
        });
    }
}

// The result is at most the distances within a part. Targets are sorted by part, those of each part from
// target_starts[part] on. Launch: a warp for each slot of a source, THREADS threads.
extern "C" __global__ void stay(Element* out, long long stride, const int* rows, const int* row_place,
                                const int* thread_part, int sources, const int* target_starts, const int* columns,
                                const int* column_place, const Element* inner, int size) {
    const int source = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (source >= sources || rows[source] < 0) return;
    const int part = thread_part[source / COLUMNS];
    out += rows[source] * stride;
    inner += ((long long)part * size + row_place[source]) * size;
    for (int t = target_starts[part] + (int)threadIdx.x % 32; t < target_starts[part + 1]; t += 32) {
        Element* to = out + columns[t];
        *to = shorter(*to, inner[column_place[t]] + Element(0));  // which turns -0.0 into +0.0
    }
}

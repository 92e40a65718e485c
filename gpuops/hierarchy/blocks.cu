// Distances from sources to destinations, from the distances from the sources to the upper tree.
//
//     reach         few sources: the distance to each destination, without columns
//     gather        copy distances from the sources to the fronts of all bricks into panels
//     arrive        out[s, t] = onward[s, front of J] (x) table[J][:, t]      for columns t of bricks J
//     stay          lower out[s, t] to the distance by paths that do not leave the brick of s
//     meet          the distance to a destination is the least of its columns
//
// columns.cuh says what a column is, and how columns are dealt to threads. A block of `arrive` computes a window of
// columns for some sources, and stores it row by row (minplus/strip.cuh).
//
//     onward  [sources / ROWS rounded up][depth][ROWS]    depth: vertices of all fronts, and of the upper tree
//     arrival [windows][part_depth][STRIP]                part_depth: the largest front, rounded up to an even number
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; ROWS; THREADS, the threads of a block, except where a kernel says
//         otherwise; BLOCKS, the blocks of `arrive` on a multiprocessor.

#include "columns.cuh"

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

// Sources that share the loads of a table.
constexpr int REACHED = 4;

// The rows of `out` are the sources in their order. `d` has a row of `stride` elements for each vertex of the upper
// tree; see `Climb` in sweeps.cu for `vertices` to `inner`. All vertices are destinations if `destinations` is null.
// Launch: grid (count / THREADS, sources / REACHED), both rounded up.
extern "C" __global__ void reach(Element* out, long long row_stride, const Tree* tree_, const Element* table,
                                 const int* vertices, int vertex, const int* first_start, const Element* inner,
                                 const Element* d, int stride, int sources, const int* destinations, int count) {
    const Tree& tree = *tree_;
    const int column = blockIdx.x * THREADS + threadIdx.x, first = blockIdx.y * REACHED;
    if (column >= count) return;
    const int own = min(REACHED, sources - first);
    Element best[REACHED];
#pragma unroll
    for (int s = 0; s < REACHED; ++s) best[s] = infinity<Element>();
    const auto relax = [&](int upper_row, Element length) {
        const Element* from = d + (long long)upper_row * stride + first;
#pragma unroll
        for (int s = 0; s < REACHED; ++s) {
            if (s < own) best[s] = shorter(best[s], sum(from[s], length));
        }
    };
    const Doors doors(tree, tree.entering, destinations ? destinations[column] : column);
    for (int i = 0; i < doors.count; ++i) {
        const Position at(tree, doors.end(i));
        const Element length = doors.length(i);
        if (at.brick >= tree.bricks) {
            relax(at.row, onwards(0, length));
            continue;
        }
        const int front = tree.brick_fronts[at.brick], depth = tree.brick_fronts[at.brick + 1] - front;
        const Element* own_table = table + tree.table_starts[at.brick] + (long long)at.row * depth;
        for (int f = 0; f < depth; ++f) relax(tree.brick_front[front + f], onwards(own_table[f], length));
#pragma unroll
        for (int s = 0; s < REACHED; ++s) {
            if (s >= own) break;
            const int source = first + s;
            const Doors starts(tree, tree.leaving, vertices ? vertices[source] : vertex);
            const Element* within = inner + (first_start ? first_start[source] : source) * tree.width + at.row;
            for (int j = 0; j < starts.count; ++j, within += tree.width) {
                if (tree.brick[tree.node_of[starts.end(j)]] == at.brick) {
                    best[s] = shorter(best[s], onwards(*within, length));
                }
            }
        }
    }
#pragma unroll
    for (int s = 0; s < REACHED; ++s) {
        if (s < own) out[(first + s) * row_stride + column] = outside(best[s]);
    }
}

// Row k of every panel has the distances to the vertex `brick_front[k]`; from row `fronts` on, to the vertices
// `upper_columns`, in groups of COLUMNS rows. -1 stands for none: such rows are infinite, but after the first group
// without a vertex no rows are read, nor written. Columns from `sources` on are infinite.
// Launch: grid (more than fronts / PACK_DEPTH, any number), PACK_WORDS x PACK_DEPTH threads. Threads that have no row
//         of a front share the other rows.
extern "C" __global__ void gather(Word* panels, const Tree* tree_, const Element* d, int stride, int fronts,
                                  const int* upper_columns, int depth, int sources) {
    const int k = blockIdx.x * PACK_DEPTH + threadIdx.y;
    const auto copy = [&](int to, int row) {
        const Element* from = d + (long long)row * stride;
#pragma unroll 4
        for (int source = blockIdx.y * PACK_WORDS + threadIdx.x; source < stride; source += gridDim.y * PACK_WORDS) {
            const Element x = row >= 0 && source < sources ? from[source] : infinity<Element>();
            panels[((long long)(source / ROWS) * depth + to) * ROWS + source % ROWS] = ARITHMETIC::broadcast(x);
        }
    };
    if (k < fronts) {
        copy(k, tree_->brick_front[k]);
        return;
    }
    for (int i = k - fronts; i < depth - fronts; i += gridDim.x * PACK_DEPTH - fronts) {
        if (i > 0 && upper_columns[i / COLUMNS * COLUMNS] < 0) return;
        copy(fronts + i, upper_columns[i]);
    }
}

// `rows` has the row of the result for each source; null: rows are in the order of sources. Launch: grid (windows,
// pieces of `turns` times ROWS sources), THREADS threads.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    arrive(Element* out, long long stride, long long columns, int window, const int* rows, int sources,
           const Tree* tree_, const Word* onward, int depth, const Word* arrival, int part_depth,
           const int* thread_brick, const int* thread_front, const int* numbers, int turns) {
    __shared__ Exchange exchange;
    const int thread = blockIdx.x * THREADS + threadIdx.x, front_size = depth_of(*tree_, thread_brick[thread]);
    if (!numbers && thread_brick[blockIdx.x * THREADS] < 0) return;  // no columns from here on
    const int front = thread_front[thread];
    const Word* b = arrival + (long long)blockIdx.x * part_depth * STRIP + threadIdx.x * WORDS;
    const long long first_column = (long long)blockIdx.x * window;
    const int width = (int)min((long long)window, columns - first_column);
    out += first_column;
    for (int turn = 0; turn < turns; ++turn) {
        const int group = blockIdx.y * turns + turn, first = group * ROWS;
        if (first >= sources) break;
        Tile tile;
        multiply_strip(tile, onward + ((long long)group * depth + front) * ROWS, b, front_size);
        int to[COLUMNS];  // during the product, registers are scarce
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) to[c] = number_of(thread * COLUMNS + c, numbers);
        store_strip(
            tile, exchange, to, width,
            [&](int r) {
                const int source = first + r;
                return source < sources ? out + (rows ? rows[source] : source) * stride : nullptr;
            },
            [](Element x) { return outside(x); });
    }
}

// The slots of brick J are slots[i] for `counts[J]` numbers i from firsts[J] on; i itself if `slots` is null.
// Launch: a warp for each source, THREADS threads.
extern "C" __global__ void stay(Element* out, long long stride, const int* rows, int sources, const Tree* tree_,
                                const int* vertices, const int* first_start, const Element* inner, const int* firsts,
                                const int* counts, const int* slots, const int* slot_rows, const Element* slot_lengths,
                                const int* numbers, int window) {
    const int source = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (source >= sources) return;
    const Tree& tree = *tree_;
    const Doors starts(tree, tree.leaving, vertices[source]);
    out += (rows ? rows[source] : source) * stride;
    inner += (first_start ? first_start[source] : source) * tree.width;
    for (int s = 0; s < starts.count; ++s, inner += tree.width) {
        const int brick = tree.brick[tree.node_of[starts.end(s)]];
        if (brick >= tree.bricks) continue;
        const int last = firsts[brick] + counts[brick];
        for (int i = firsts[brick] + (int)threadIdx.x % WARP; i < last; i += WARP) {
            const int slot = slots ? slots[i] : i;
            const long long column = (long long)(slot / (THREADS * COLUMNS)) * window + number_of(slot, numbers);
            const Element x = onwards(inner[slot_rows[slot]], slot_lengths ? slot_lengths[slot] : Element(0));
            out[column] = shorter(out[column], outside(x));
        }
        __syncwarp();  // another start of this source may be in the same brick
    }
}

// Rows that share the loads of column numbers. Their parts of `found` stay in the first-level cache.
constexpr int MET = 2;

// Destination t is as far as the nearest of its columns, whose numbers in a row of `found` are column_of[first_column[t]]
// and the next; column_of[t] alone if `first_column` is null. It is column t of `out`, or column destinations[t] if
// `by_vertex`. Launch: grid (any number, sources / MET rounded up), any number of threads.
extern "C" __global__ void meet(Element* __restrict__ out, long long stride, const Element* __restrict__ found,
                                long long found_stride, const int* rows, int sources, const Tree* tree_,
                                const int* __restrict__ destinations, int count, int by_vertex,
                                const int* __restrict__ first_column, const int* __restrict__ column_of) {
    const int first = blockIdx.y * MET, own = min(MET, sources - first);
    const int begin = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    Element* to[MET];
#pragma unroll
    for (int s = 0; s < MET; ++s) to[s] = out + (s < own ? rows[first + s] : 0) * stride;
    found += first * found_stride;
    if (!first_column) {
#pragma unroll 4
        for (int t = begin; t < count; t += step) {
            const int column = column_of[t];
#pragma unroll
            for (int s = 0; s < MET; ++s) {
                if (s < own) __stcs(to[s] + t, found[s * found_stride + column]);
            }
        }
        return;
    }
    for (int t = begin; t < count; t += step) {
        const int column = by_vertex ? destinations[t] : t,
                  columns = Doors(*tree_, tree_->entering, destinations[t]).count;
        for (int s = 0; s < own; ++s) {
            Element best = outside(infinity<Element>());
            for (int c = first_column[t]; c < first_column[t] + columns; ++c) {
                best = shorter(best, found[s * found_stride + column_of[c]]);
            }
            to[s][column] = best;
        }
    }
}

// Sort sources by brick, and lay out the columns of destinations by brick (columns.cuh).
//
//     count_doors   how many starts a source has, or columns a destination
//     lay_out       a counting sort of sources, and of columns
//     pack_tables   copy the tables of the columns into panels [windows][part_depth][STRIP]
//
// The order within a brick changes from run to run. Distances do not depend on this order.
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; ROWS; THREADS and BLOCKS as in blocks.cu.

#include "../device/grid_barrier.cuh"
#include "columns.cuh"

// Launch: a thread for each vertex, in blocks of THREADS threads.
extern "C" __global__ void count_doors(const Tree* tree_, const int* vertices, int count, int entering, int* doors) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) doors[i] = Doors(*tree_, entering ? tree_->entering : tree_->leaving, vertices[i]).count;
}

// Brick i has counts[i] elements; the last count is that of the upper tree. The ranges of the bricks follow each other
// in the order `order` (null: rising), and the range of the upper tree comes last. The length of a range is a multiple
// of `unit`. starts[i] becomes the begin of range i. All threads of a block take part.
__device__ inline void scan(const int* counts, const int* order, int bricks, int unit, int* starts,
                            int (&of_warps)[THREADS / WARP]) {
    const int each = (bricks + THREADS) / THREADS, lane = threadIdx.x % WARP;
    const int first = threadIdx.x * each, last = min(first + each, bricks + 1);
    const auto brick_at = [&](int i) { return order && i < bricks ? order[i] : i; };
    const auto room = [&](int brick) { return (__ldcg(counts + brick) + unit - 1) / unit * unit; };
    int own = 0;
    for (int i = first; i < last; ++i) own += room(brick_at(i));
    int before = own;
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        const int other = __shfl_up_sync(0xffffffff, before, lanes);
        if (lane >= lanes) before += other;
    }
    if (lane == WARP - 1) of_warps[threadIdx.x / WARP] = before;
    before -= own;
    __syncthreads();
    for (int warp = 0; warp < (int)threadIdx.x / WARP; ++warp) before += of_warps[warp];
    for (int i = first; i < last; ++i) {
        const int brick = brick_at(i);
        starts[brick] = before;
        before += room(brick);
    }
}

// `sorted` becomes the sources, sorted by brick, and `rows` the number that each of these sources had before. Closed
// sources count as vertices of the upper tree.
//
// Destination t has the columns from first_column[t] on, or column t if `first_column` is null; all together have
// `columns` columns. The slots of brick J are those from slot_starts[J] on. `column_of` becomes the number of each
// column in a row of all windows. `lengths` and `slot_lengths` may be null if all lengths are 0. `fronts`: vertices of
// all fronts; `threads` and `upper_count`: lengths of the arrays of threads, and of `upper_columns`.
//
// `arrived`, `source_counts` and `slot_counts` are 0 before. Launch: cooperative.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    lay_out(const Tree* tree_, unsigned* arrived, const int* sources, int source_count, int* source_counts,
            int* source_starts, int* source_ranks, int* sorted, int* rows, const int* destinations,
            int destination_count, const int* first_column, int columns, int* places, Element* lengths, int* ranks,
            const int* order, int* slot_counts, int* slot_starts, int fronts, int* column_of, int* slot_rows,
            Element* slot_lengths, int threads, int* thread_brick, int* thread_front, int* upper_columns,
            int upper_count) {
    __shared__ int of_warps[2][THREADS / WARP];
    const Tree& tree = *tree_;
    const int bricks = (int)tree.bricks, step = gridDim.x * THREADS, own = blockIdx.x * THREADS + threadIdx.x;
    const auto brick_of = [&](int place) { return place < tree.open ? tree.brick[tree.node_of[place]] : bricks; };
    GridBarrier barrier{arrived};
    for (int i = own; i < source_count; i += step) {
        source_ranks[i] = atomicAdd(&source_counts[brick_of(tree.place[sources[i]])], 1);
    }
    for (int t = own; t < destination_count; t += step) {
        const Doors doors(tree, tree.entering, destinations[t]);
        const int first = first_column ? first_column[t] : t;
        for (int i = 0; i < doors.count; ++i) {
            places[first + i] = doors.end(i);
            if (lengths) lengths[first + i] = doors.length(i);
            ranks[first + i] = atomicAdd(&slot_counts[brick_of(doors.end(i))], 1);
        }
    }
    for (int i = own; i < threads * COLUMNS; i += step) slot_rows[i] = -1;
    for (int i = own; i < threads; i += step) thread_brick[i] = thread_front[i] = -1;
    for (int i = own; i < upper_count; i += step) upper_columns[i] = -1;
    barrier.wait();
    if (blockIdx.x == 0 && destination_count) scan(slot_counts, order, bricks, COLUMNS, slot_starts, of_warps[0]);
    if (blockIdx.x == gridDim.x - 1 && source_count)
        scan(source_counts, nullptr, bricks, 1, source_starts, of_warps[1]);
    barrier.wait();
    for (int i = own; i < source_count; i += step) {
        const int to = __ldcg(source_starts + brick_of(tree.place[sources[i]])) + source_ranks[i];
        sorted[to] = sources[i];
        rows[to] = i;
    }
    for (int column = own; column < columns; column += step) {
        const Position at(tree, __ldcg(places + column));
        const int slot = __ldcg(slot_starts + at.brick) + __ldcg(ranks + column);
        column_of[column] = slot / (THREADS * COLUMNS) * (THREADS * COLUMNS) + number_of(slot, nullptr);
        slot_rows[slot] = at.row;
        if (slot_lengths) slot_lengths[slot] = __ldcg(lengths + column);
        const int in_upper = at.brick == bricks ? slot - __ldcg(slot_starts + bricks) : -1;
        if (in_upper >= 0) upper_columns[in_upper] = at.row;
        if (slot % COLUMNS == 0) {
            thread_brick[slot / COLUMNS] = at.brick;
            thread_front[slot / COLUMNS] = in_upper < 0 ? tree.brick_fronts[at.brick] : fronts + in_upper;
        }
    }
}

// part_depth: the rows of the largest table, rounded up to an even number.
// Launch: grid (words of all panels / PACK_WORDS, part_depth / PACK_DEPTH rounded up), PACK_WORDS x PACK_DEPTH threads.
extern "C" __global__ void pack_tables(Word* panels, const Tree* tree_, const Element* table, const int* thread_brick,
                                       const int* slot_rows, const Element* slot_lengths, int part_depth) {
    const int word = blockIdx.x * PACK_WORDS + threadIdx.x, k = blockIdx.y * PACK_DEPTH + threadIdx.y;
    const int brick = thread_brick[word / WORDS], depth = depth_of(*tree_, brick);
    if (k >= part_depth) return;
    Element x[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        const int slot = word * LANES + lane, row = slot_rows[slot];
        x[lane] = infinity<Element>();
        if (row < 0 || k >= depth) continue;
        const Element length = slot_lengths ? slot_lengths[slot] : Element(0);
        if (brick < tree_->bricks) {
            x[lane] = onwards(table[tree_->table_starts[brick] + (long long)row * depth + k], length);
        } else if (k == slot % COLUMNS) {
            x[lane] = onwards(0, length);
        }
    }
    panels[((long long)(word / STRIP) * part_depth + k) * STRIP + word % STRIP] = ARITHMETIC::pack(x);
}

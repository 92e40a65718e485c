// Shared by search.cu, batched.cu, tree.cu and cycle.cu: a grid that runs as one machine, queues of vertices, and rows
// of arcs that the lanes of a warp read together.
//
// Macros:
//     DISTANCE   Float32, Float64 or Int32
//     SIGNED     1 if distances may be negative, else 0
//     THREADS    threads of a block
//     BLOCKS     blocks that a multiprocessor runs at a time
//     UNROLL     arcs that a lane loads at a time
//     PIECE      arcs of a long row that one warp reads
#pragma once

#include "../device/distances.cuh"
#include "../device/grid_barrier.cuh"

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = THREADS / 32;
constexpr int ALONE = 3;  // arcs of a row that a lane reads by itself, where rows end after few arcs

using Distance = DISTANCE<SIGNED>;
using Value = Distance::Value;
using Word = Distance::Word;
constexpr Word UNREACHABLE = Distance::UNREACHABLE, LOWEST = Distance::LOWEST;

__device__ inline Word word(Value x) {
    return Distance::word(x);
}
__device__ inline Value value(Word x) {
    return Distance::value(x);
}
__device__ inline Value sum(Value a, Value b) {
    return Distance::sum(a, b);
}

// --- A grid that runs as one machine -------------------------------------------------------------------------------
//
// The grid is launched cooperatively: all its blocks are on the device at once, so they can wait for each other. Work
// is divided into steps, and a barrier ends every step. All blocks read the counts of a step after its barrier, so all
// blocks decide alike.

struct Tally {
    int queued;         // vertices appended to the queue of the next step
    int pieces;         // pieces of long rows appended for the next step
    int taken;          // batches of vertices given out, beyond the first batch of every warp
    int taken_pieces;   // pieces given out, beyond the first piece of every warp
    long long touched;  // arcs read
    long long held;     // arcs that settled vertices hold back
    long long open;     // arcs into unsettled vertices; other kernels count other things
    long long due;      // smallest word at which a vertex outside of the queue is due
};

struct Control {
    unsigned arrived;  // arrivals of blocks at barriers
    int overflow;      // 1: a sum did not fit; 2: only sums that do not fit reach some vertex
    int piled[3];      // vertices that wait for a later window, by window modulo 3
    Tally tallies[3];  // by step modulo 3; a step adds to its tally and clears the tally of the next step
    long long rounds, windows, pulls, touched, finished;  // results
};

constexpr long long NEVER = 0x7fffffffffffffff;

__device__ inline void note_overflow(Control* control, int kind) {
    atomicMax(&control->overflow, kind);
}

struct Grid {
    Control* control;
    Tally& local;  // in shared memory: counts of this block in this step
    Tally& last;   // in shared memory: counts of all blocks in the last step
    int step = 1;
    unsigned expected = 0;

    __device__ Tally& tally() const { return control->tallies[step % 3]; }
    __device__ static void clear(Tally& tally) {
        tally.queued = tally.pieces = tally.taken = tally.taken_pieces = 0;
        tally.touched = tally.held = tally.open = 0;
        tally.due = NEVER;
    }

    __device__ void start() {
        if (threadIdx.x == 0) clear(local);
        __syncthreads();
    }

    // Ends the step. Afterwards all blocks see the stores of all blocks before it, if they load past the first-level
    // cache.
    __device__ void barrier() {
        __syncthreads();
        expected += gridDim.x;
        if (threadIdx.x == 0) {
            Tally& all = tally();
            if (local.touched) atomicAdd((unsigned long long*)&all.touched, (unsigned long long)local.touched);
            if (local.held) atomicAdd((unsigned long long*)&all.held, (unsigned long long)local.held);
            if (local.open) atomicAdd((unsigned long long*)&all.open, (unsigned long long)local.open);
            if (local.due != NEVER) atomicMin(&all.due, local.due);
            clear(local);
            // The tally of the step before last: every block has read it, since all have arrived at the last barrier.
            if (blockIdx.x == 0) clear(control->tallies[(step + 1) % 3]);
            arrive_and_wait(&control->arrived, expected);
            last.queued = __ldcg(&all.queued);
            last.pieces = __ldcg(&all.pieces);
            last.touched = __ldcg(&all.touched);
            last.held = __ldcg(&all.held);
            last.open = __ldcg(&all.open);
            last.due = __ldcg(&all.due);
        }
        ++step;
        __syncthreads();
    }

    // `count` adds `mine` of the calling threads to `total`, `earliest` takes the minimum. Whole warps call.
    __device__ static void count(long long& total, long long mine) {
        for (int lanes = 16; lanes; lanes /= 2) mine += __shfl_xor_sync(ALL_LANES, mine, lanes);
        if (threadIdx.x % 32 == 0 && mine) atomicAdd((unsigned long long*)&total, (unsigned long long)mine);
    }
    __device__ static void earliest(long long& due, long long mine) {
        for (int lanes = 16; lanes; lanes /= 2) mine = min(mine, __shfl_xor_sync(ALL_LANES, mine, lanes));
        if (threadIdx.x % 32 == 0 && mine != NEVER) atomicMin(&due, mine);
    }

    __device__ static int warps() { return gridDim.x * WARPS; }
    // Warps with successive numbers are in different blocks, so that little work is spread over all multiprocessors.
    __device__ static int warp() { return threadIdx.x / 32 * gridDim.x + blockIdx.x; }

    // Calls batch(first) for every multiple of `each` below `size`, each call in a warp that is free.
    template <class Batch>
    __device__ void share(long long size, int each, int* taken, Batch batch) const {
        for (long long first = (long long)warp() * each; first < size;) {
            batch(first);
            if (size <= (long long)warps() * each) break;
            int turn = 0;
            if (threadIdx.x % 32 == 0) turn = atomicAdd(taken, 1);
            first = ((long long)warps() + __shfl_sync(ALL_LANES, turn, 0)) * each;
        }
    }
};

// --- Queues --------------------------------------------------------------------------------------------------------

// Vertices that a warp appends to a list of the grid. They are kept until there are 32 vertices to store side by side.
struct Stage {
    int (&kept)[64];
    int* list;
    int* size;
    int capacity;           // vertices beyond it are counted but not stored
    int* queued = nullptr;  // if given: the step in which each vertex was last stored; a step stores a vertex once
    int step = 0;
    int count = 0;

    // All lanes call; appends `vertex` of the lanes where `wanted` is true.
    __device__ void append(bool wanted, int vertex) {
        const unsigned votes = __ballot_sync(ALL_LANES, wanted);
        if (!votes) return;
        const int lane = threadIdx.x % 32;
        if (wanted) kept[count + __popc(votes & ((1u << lane) - 1))] = vertex;
        count += __popc(votes);
        __syncwarp();
        if (count >= 32) {
            store(true, kept[lane]);
            drop(32);
        }
    }
    // All lanes call; stores `vertex` in the list at once, for the lanes where `wanted` is true.
    __device__ void store(bool wanted, int vertex) {
        const int lane = threadIdx.x % 32;
        if (queued && wanted) wanted = atomicExch(queued + vertex, step) != step;
        const unsigned votes = __ballot_sync(ALL_LANES, wanted);
        if (!votes) return;
        int place = 0;
        if (lane == 0) place = atomicAdd(size, __popc(votes));
        place = __shfl_sync(ALL_LANES, place, 0) + __popc(votes & ((1u << lane) - 1));
        if (wanted && place >= 0 && place < capacity) __stcg(list + place, vertex);
    }
    __device__ void flush() {
        const int lane = threadIdx.x % 32;
        if (count) store(lane < count, kept[lane]);
        count = 0;
    }
    // Takes back up to 32 kept vertices, one for each of the first lanes.
    __device__ int take() {
        const int vertex = kept[threadIdx.x % 32];
        drop(min(count, 32));
        return vertex;
    }

   private:
    __device__ void drop(int number) {
        const int lane = threadIdx.x % 32;
        count -= number;
        const int moved = lane < count ? kept[number + lane] : 0;
        __syncwarp();
        if (lane < count) kept[lane] = moved;
        __syncwarp();
    }
};

// --- Rows ----------------------------------------------------------------------------------------------------------

// The rows that a warp reads together, without empty rows, in shared memory. Arcs are numbered from 0 across all rows.
struct Rows {
    long long begin[32];  // start of the row in the graph, less the number of its first arc
    Word key[32];
    int tag[32];
    int before[32];  // place of the first arc in the full row, less its number
    int end[32];     // number of the first arc that is not wanted
};

// A piece of a long row. Many warps read a long row, in the step after the step that found it.
struct Piece {
    Word key;  // the `key` of the row in `walk`, or other data for the reader
    int vertex, place, length;
};

// Cuts `length` arcs from `place` on into pieces for the next step.
__device__ inline void cut(Grid& grid, Piece* pieces, int vertex, Word key, int place, int length) {
    int at = atomicAdd(&grid.tally().pieces, (length + PIECE - 1) / PIECE);
    for (; length > 0; ++at, place += PIECE, length -= PIECE) {
        Piece& piece = pieces[at];
        __stcg(&piece.key, key);
        __stcg(&piece.vertex, vertex);
        __stcg(&piece.place, place);
        __stcg(&piece.length, min(length, PIECE));
    }
}

__device__ inline Piece piece_at(const Piece* pieces, long long i) {
    const Piece& piece = pieces[i];
    return {__ldcg(&piece.key), __ldcg(&piece.vertex), __ldcg(&piece.place), __ldcg(&piece.length)};
}

// Every lane has a row, or a part of a row, sorted by ascending weight, and reads it up to the first arc that the
// visitor does not want. All lanes read arcs of all rows, and call the visitor:
//
//   wants(rows, row, weight)                     is the arc wanted? once false, false for the rest of the row
//   refuse(rows, row, place, weight)             gets the first arc that is not wanted; `place` counts in the full row
//   load(head)                                   loads a word of the head
//   offer(rows, row, head, weight, loaded)       may change the head, and returns the word for `visit`; for wanted arcs.
//                                                No lane waits for the answer before it has made its next offer
//   visit(rows, row, arc, head, weight, loaded, live)    all lanes call; a lane with a wanted arc is live
//
// `key` and `tag` belong to the row, and are returned as the visitor left them in `rows`. Returns the number of wanted
// arcs.
template <class Visitor>
__device__ inline int walk(Rows& rows, const int* __restrict__ indices, const Value* __restrict__ weights,
                           long long begin, int place, int length, Word& key, int& tag, long long& touched,
                           Visitor& visitor) {
    const int lane = threadIdx.x % 32;
    int end = length;
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const int others = __shfl_up_sync(ALL_LANES, end, lanes);
        if (lane >= lanes) end += others;
    }
    const int total = __shfl_sync(ALL_LANES, end, 31), start = end - length;
    const int mine = __popc(__ballot_sync(ALL_LANES, length > 0) & ((1u << lane) - 1));
    if (length > 0) {
        rows.begin[mine] = begin - start;
        rows.key[mine] = key;
        rows.tag[mine] = tag;
        rows.before[mine] = place - start;
        rows.end[mine] = end;
    }
    __syncwarp();
    int begun = 0;  // rows that have started so far
    for (int base = 0; base < total; base += 32 * UNROLL) {
        Value weight[UNROLL];
        int head[UNROLL], row[UNROLL];
        unsigned starts[UNROLL];
        bool live[UNROLL];
        Word loaded[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int first = base + 32 * u, arc = first + lane;
            const bool starts_here = length > 0 && start >= first && start < first + 32;
            starts[u] = __reduce_or_sync(ALL_LANES, starts_here ? 1u << (start - first) : 0u);
            row[u] = begun + __popc(starts[u] << (31 - lane)) - 1;
            begun += __popc(starts[u]);
            live[u] = arc < total && arc < rows.end[row[u]];
            if (live[u]) {
                weight[u] = weights[rows.begin[row[u]] + arc];
                head[u] = indices[rows.begin[row[u]] + arc];
                ++touched;
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int arc = base + 32 * u + lane;
            const bool wanted = live[u] && visitor.wants(rows, row[u], weight[u]);
            const unsigned refused = __ballot_sync(ALL_LANES, live[u] && !wanted);
            const bool first =
                refused >> lane & 1 && (lane == 0 || starts[u] >> lane & 1 || !(refused >> (lane - 1) & 1));
            if (first && arc < rows.end[row[u]]) {
                rows.end[row[u]] = arc;
                visitor.refuse(rows, row[u], rows.before[row[u]] + arc, weight[u]);
            }
            live[u] = wanted;
            __syncwarp();
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if (live[u]) loaded[u] = visitor.load(head[u]);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if (live[u]) loaded[u] = visitor.offer(rows, row[u], head[u], weight[u], loaded[u]);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            visitor.visit(rows, row[u], base + 32 * u + lane, head[u], weight[u], loaded[u], live[u]);
        }
        __syncwarp();
    }
    int wanted = 0;
    if (length > 0) {
        key = rows.key[mine];
        tag = rows.tag[mine];
        wanted = rows.end[mine] - start;
    }
    __syncwarp();
    return wanted;
}

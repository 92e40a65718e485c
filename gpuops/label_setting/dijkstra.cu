// Dijkstra's algorithm from one source, settling in each round all vertices that are provably final.
//
// The fringe is the set of vertices that are reached and not settled. A round is three steps, with a barrier of the
// whole grid after each:
//
//     minimum   Over the fringe, find the least distance, and the least sum of a distance and the lightest arc out. A
//               block finds its two minima by butterfly; atomics combine the minima of the blocks.
//     settle    Settle each vertex whose distance is at most the second minimum, or at most the first minimum plus the
//               vertex's lightest arc in. Other vertices stay in the fringe.
//     relax     Relax the arcs out of the settled vertices. Vertices reached for the first time join the fringe.
//
// The lightest arcs are found before the first round. After the last round each vertex gets a predecessor: the
// lowest-numbered tail of a tight arc into it that was settled in an earlier round. A row of up to LONG arcs is read by
// GROUP lanes, a longer row by a block. gpuops/label_setting/__init__.py explains why this is right.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads, a power of two, on every multiprocessor.
// Macros: DISTANCE, Float32, Float64 or Int32; THREADS; BLOCKS; LONG.
//
// A. Crauser, K. Mehlhorn, U. Meyer, P. Sanders, "A parallelization of Dijkstra's shortest path algorithm", MFCS 1998.

#include "../device/butterfly.cuh"
#include "../device/distances.cuh"
#include "../device/grid_barrier.cuh"

constexpr int WARPS = THREADS / 32, GROUP = 8;
constexpr int NEVER_SETTLED = 0x7fffffff;
constexpr long long FAR = 0x7fffffffffffffff;

using Distance = DISTANCE<false>;
using Value = Distance::Value;
using Word = Distance::Word;
constexpr Word UNREACHABLE = Distance::UNREACHABLE;

__device__ inline Word longer(Word distance, Value weight) {
    return Distance::word(Distance::sum(Distance::value(distance), weight));
}

struct Least {
    using State = Word;
    __device__ static Word combine(Word a, Word b) { return min(a, b); }
};

// --- The grid ------------------------------------------------------------------------------------------------------

struct Round {
    long long nearest;          // the least distance in the fringe
    long long soonest;          // the least sum of a distance and the lightest arc out
    int fringe;                 // vertices in the fringe
    int short_rows, long_rows;  // vertices settled in this round, by the length of their rows
};

struct Progress {
    Round rounds[2];  // the current round and the next one, alternating
    long long count, unfit;
    int long_rows;  // long rows of the graph
    unsigned arrived;
};

__device__ inline void clear(Round& round) {
    __stcg(&round.nearest, FAR);
    __stcg(&round.soonest, FAR);
    __stcg(&round.fringe, 0);
    __stcg(&round.short_rows, 0);
    __stcg(&round.long_rows, 0);
}

// Called by all threads of the grid.
__device__ inline void wait_for_all(unsigned* arrived, unsigned& expected) {
    __syncthreads();
    expected += gridDim.x;
    if (threadIdx.x == 0) arrive_and_wait(arrived, expected);
    __syncthreads();
}

// Calls step(i, i < size) for every i below `size`, each in one thread of the grid. All lanes of a warp call `step`
// together, some of them with i >= size.
template <class Step>
__device__ inline void for_each(int size, Step step) {
    const long long threads = (long long)gridDim.x * THREADS, lane = threadIdx.x % 32;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i - lane < size; i += threads) {
        step((int)i, i < size);
    }
}

// Called by all lanes of a warp. `down`: the list grows downwards from `list`.
__device__ inline void append(int* list, int* size, bool wanted, int vertex, bool down = false) {
    const unsigned votes = __ballot_sync(WHOLE_WARP, wanted);
    if (!votes) return;
    const int lane = threadIdx.x % 32, leader = __ffs(votes) - 1;
    int place = 0;
    if (lane == leader) place = atomicAdd(size, __popc(votes));
    place = __shfl_sync(WHOLE_WARP, place, leader) + __popc(votes & ((1u << lane) - 1));
    if (wanted) __stcg(down ? list - place : list + place, vertex);
}

// Calls visit(tail, arc, live) for the arcs of the rows row_of(0), ..., row_of(count - 1), except rows of more than
// LONG arcs. All lanes of a warp call `visit` together; `live` is false for a lane without an arc.
template <class RowOf, class Visit>
__device__ inline void for_short_rows(const long long* indptr, int count, RowOf row_of, Visit visit) {
    const int lane = threadIdx.x % 32, rows = 32 / GROUP;
    const long long step = (long long)gridDim.x * WARPS * rows;
    // Consecutive rows go to different blocks, so that even few rows are spread over all multiprocessors.
    for (long long first = ((long long)(threadIdx.x / 32) * gridDim.x + blockIdx.x) * rows; first < count;
         first += step) {
        const long long i = first + lane / GROUP;
        int tail = 0;
        long long arc = 0, end = 0;
        if (i < count) {
            tail = row_of((int)i);
            end = indptr[tail + 1];
            arc = indptr[tail];
            arc = end - arc > LONG ? end : arc + lane % GROUP;
        }
        for (; __any_sync(WHOLE_WARP, arc < end); arc += GROUP) visit(tail, arc, arc < end);
    }
}

// Calls visit(tail, arc, live) for the arcs of the given rows, each read by a block; for rows of more than LONG arcs.
template <class RowOf, class Visit>
__device__ inline void for_long_rows(const long long* indptr, int count, RowOf row_of, Visit visit) {
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const int tail = row_of(i);
        const long long end = indptr[tail + 1];
        for (long long arc = indptr[tail] + threadIdx.x; arc - threadIdx.x % 32 < end; arc += THREADS) {
            visit(tail, arc, arc < end);
        }
    }
}

// fringes (2, n): the fringe of this round and of the next. settled (n): the round in which a vertex was settled. due
// (n): the vertices settled in this round, short rows from the front, long rows from the back. long_rows (n): all
// vertices with long rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    dijkstra(const long long* __restrict__ indptr, const int* __restrict__ indices, const Value* __restrict__ weights,
             int n, int source, Word* distances, int* predecessors, Word* leaving, Word* entering, int* settled,
             int* fringes, int* due, int* long_rows, Progress* progress) {
    __shared__ Word partners[2][THREADS];
    unsigned expected = 0;
    const auto barrier = [&] { wait_for_all(&progress->arrived, expected); };
    const bool first_thread = blockIdx.x == 0 && threadIdx.x == 0;

    for_each(n, [&](int v, bool live) {
        append(long_rows, &progress->long_rows, live && indptr[v + 1] - indptr[v] > LONG, v);
        if (!live) return;
        __stcg(distances + v, v == source ? (Word)0 : UNREACHABLE);
        __stcg(leaving + v, UNREACHABLE);
        __stcg(entering + v, UNREACHABLE);
        __stcg(settled + v, NEVER_SETTLED);
        __stcg(predecessors + v, -1);
    });
    if (first_thread) {
        clear(progress->rounds[0]);
        __stcg(fringes, source);
        __stcg(&progress->rounds[0].fringe, 1);
    }
    barrier();

    const int long_count = __ldcg(&progress->long_rows);
    const auto any = [](int v) { return v; };
    const auto long_row = [&](int i) { return __ldcg(long_rows + i); };
    const auto lightest = [&](int tail, long long arc, bool live) {
        if (!live) return;
        const int head = indices[arc];
        const Word length = longer(0, weights[arc]);  // 0 for -0.0
        if (length < __ldcg(leaving + tail)) atomicMin(leaving + tail, length);
        if (length < __ldcg(entering + head)) atomicMin(entering + head, length);
    };
    for_short_rows(indptr, n, any, lightest);
    for_long_rows(indptr, long_count, long_row, lightest);
    // No barrier yet: the fringe of the first round is the source, which is settled whatever the lightest arcs are.

    int count = 0;
    for (;; ++count) {
        Round &round = progress->rounds[count % 2], &next = progress->rounds[(count + 1) % 2];
        const int* const fringe = fringes + (count % 2 ? (long long)n : 0);
        int* const next_fringe = fringes + (count % 2 ? 0 : (long long)n);
        const int size = __ldcg(&round.fringe);
        if (size == 0) break;
        if (first_thread) clear(next);

        Word nearest = UNREACHABLE, soonest = UNREACHABLE;
        for_each(size, [&](int i, bool live) {
            if (!live) return;
            const int vertex = __ldcg(fringe + i);
            const Word distance = __ldcg(distances + vertex);
            nearest = min(nearest, distance);
            soonest = min(soonest, longer(distance, Distance::value(__ldcg(leaving + vertex))));
        });
        nearest = in_every_thread<Least, WARPS>(nearest, partners[0]);
        soonest = in_every_thread<Least, WARPS>(soonest, partners[1]);
        if (threadIdx.x == 0 && nearest < UNREACHABLE) {
            atomicMin(&round.nearest, (long long)nearest);
            atomicMin(&round.soonest, (long long)soonest);
        }
        barrier();

        const Word least = (Word)__ldcg(&round.nearest), final_to = (Word)__ldcg(&round.soonest);
        for_each(size, [&](int i, bool live) {
            const int vertex = live ? __ldcg(fringe + i) : 0;
            const Word distance = __ldcg(distances + vertex);
            const Word entered = longer(least, Distance::value(__ldcg(entering + vertex)));
            const bool settles = live && (distance <= final_to || distance <= entered);
            const bool is_long = indptr[vertex + 1] - indptr[vertex] > LONG;
            if (settles) __stcg(settled + vertex, count);
            append(due, &round.short_rows, settles && !is_long, vertex);
            append(due + n - 1, &round.long_rows, settles && is_long, vertex, true);
            append(next_fringe, &next.fringe, live && !settles, vertex);
        });
        barrier();

        const auto relax = [&](int tail, long long arc, bool live) {
            int head = 0;
            bool reached = false;
            if (live) {
                head = indices[arc];
                const Word candidate = longer(__ldcg(distances + tail), weights[arc]);
                reached = candidate < __ldcg(distances + head) && atomicMin(distances + head, candidate) == UNREACHABLE;
            }
            append(next_fringe, &next.fringe, reached, head);
        };
        for_short_rows(indptr, __ldcg(&round.short_rows), [&](int i) { return __ldcg(due + i); }, relax);
        for_long_rows(indptr, __ldcg(&round.long_rows), [&](int i) { return __ldcg(due + n - 1 - i); }, relax);
        barrier();
    }

    bool unfit = false;
    const auto precede = [&](int tail, long long arc, bool live) {
        const Word distance = __ldcg(distances + tail);
        if (!live || distance == UNREACHABLE) return;
        const int head = indices[arc];
        const Word known = __ldcg(distances + head);
        unfit |= known == UNREACHABLE;
        if (known == UNREACHABLE || longer(distance, weights[arc]) != known) return;
        if (__ldcg(settled + tail) >= __ldcg(settled + head)) return;
        atomicMin((unsigned*)predecessors + head, (unsigned)tail);
    };
    for_short_rows(indptr, n, any, precede);
    for_long_rows(indptr, long_count, long_row, precede);
    if (unfit && !Distance::SUMS_FIT) progress->unfit = 1;
    if (first_thread) progress->count = count;
}

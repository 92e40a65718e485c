// Up to 1,024 breadth-first searches in one launch: bit i of a vertex's words belongs to search i. A warp reads an arc
// once for all searches, and the words of its other end are neighbours in memory.
//
//     begin    No distance is known. The sources arrive at their vertices.
//     settle   A vertex takes the level as its distance in all searches that arrived there, and its arcs are queued.
//     push     The arcs of the queue are read from their tails: searches that are here arrive at heads that they have
//              not seen.
//     pull     Or, if a pull is cheaper: arcs are read from their heads. A vertex reads its tails until all searches
//              that still proceed have seen it.
//
// After `begin`, the steps are settle, and then push or pull, for each level. A barrier of the grid ends every step.
//
// M. Then et al., "The more the merrier: efficient multi-source graph traversal", PVLDB 8, 2014; S. Beamer,
// K. Asanovic, D. Patterson, "Direction-optimizing breadth-first search", SC 2012.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads on every multiprocessor.
// Macros: VALUE    int, float or double: the type of distances
//         PIECE    arcs of a long row that one warp reads
//         PULL     time of an arc in a push, in units of the time of an arc in a pull
//         LISTED   up to 1 / LISTED of all vertices are settled by a list, more by reading all vertices

#include "../device/grid_barrier.cuh"

using Value = VALUE;

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = THREADS / 32;
// Heads or tails whose words a lane loads at a time.
constexpr int HEADS = 4, TAILS = 6;

// Some arcs of a row, or the whole of a short row.
struct Piece {
    long long begin;
    int vertex, length;
};

// Counts of a level.
struct Tally {
    int listed;          // vertices at which a push arrived
    int pieces;          // pieces in the queue
    long long queued;    // arcs in the queue
    long long read;      // arcs that a pull read, and vertices
    unsigned going[32];  // searches that arrived at some vertex
};

struct Control {
    unsigned arrived;  // arrivals of blocks at barriers
    int levels;        // result: the number of levels of the deepest search
    int pulled;        // pieces of the rows that a pull reads
    int pulls;         // result: the number of pulls
    Tally tallies[3];  // by level modulo 3
};

struct Graph {
    const long long* __restrict__ indptr;
    const int* __restrict__ indices;
    const long long* __restrict__ in_indptr;
    const int* __restrict__ in_indices;
    const bool* __restrict__ through;
    bool has_through;
    int n;

    __device__ long long arcs() const { return indptr[n]; }
    __device__ bool passes(int vertex) const { return !has_through || through[vertex]; }
};

struct Result {
    Value unreachable;
    Value* distances;
    int searches;
};

__device__ inline int sum(int a, int b) {
    return (int)((unsigned)a + (unsigned)b);
}
// CuPy compiles a + b so that subnormal sums are 0; a CPU keeps them.
__device__ inline float sum(float a, float b) {
    float result;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ inline double sum(double a, double b) {
    return a + b;
}

// All threads of the grid call the steps. A lane has word `lane % words` of the vertices that its warp reads; if there
// are fewer words than lanes, a warp reads several arcs at a time.
struct Searches {
    const Graph& graph;
    const Result& result;
    const int words;  // 1 << width, up to 32
    const int width;
    unsigned* here;    // searches that are at the vertex in this level
    unsigned* coming;  // searches that arrive in the next level
    unsigned* seen;    // searches that have been here
    int* stamps;       // the level in which a vertex was last listed, plus 1
    int* list;
    Piece* queues;  // two queues in turn, and the pieces of rows that a pull reads
    long long capacity;
    Control* control;
    unsigned* tile;  // of the warp, in shared memory: words of 32 vertices, with gaps against bank conflicts
    int level = 0;
    Value value = 0;  // distance of the level

    __device__ static int lane() { return threadIdx.x % 32; }
    __device__ static int warps() { return gridDim.x * WARPS; }
    // Warps with successive numbers are in different blocks, so that little work is spread over all multiprocessors.
    __device__ static int warp() { return threadIdx.x / 32 * gridDim.x + blockIdx.x; }
    __device__ Tally& tally(int of_level) const { return control->tallies[of_level % 3]; }
    __device__ Piece* queue(int of_level) const { return queues + of_level % 2 * capacity; }
    __device__ Piece* rows_in() const { return queues + 2 * capacity; }
    __device__ int word() const { return lane() & (words - 1); }
    __device__ int slot() const { return lane() >> width; }
    __device__ int slots() const { return 32 >> width; }
    __device__ long long at(int vertex) const { return (long long)vertex * words + word(); }

    // All lanes call; `total` grows by the sum of `mine`.
    __device__ static void count(long long* total, long long mine) {
        for (int lanes = 16; lanes; lanes /= 2) mine += __shfl_xor_sync(ALL_LANES, mine, lanes);
        if (lane() == 0 && mine) atomicAdd((unsigned long long*)total, (unsigned long long)mine);
    }

    // All lanes call; returns where `count` items of each lane begin in a list of *size items, which grows.
    __device__ static int reserve(int* size, int count) {
        int end = count;
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            const int others = __shfl_up_sync(ALL_LANES, end, lanes);
            if (lane() >= lanes) end += others;
        }
        int first = 0;
        if (lane() == 31 && end) first = atomicAdd(size, end);
        return __shfl_sync(ALL_LANES, first, 31) + end - count;
    }

    // All lanes call; appends the row of a vertex to a queue, cut into pieces, where `wanted` is true.
    __device__ static void append_row(Piece* pieces, int* size, bool wanted, int vertex, long long begin,
                                      long long degree) {
        int place = reserve(size, wanted ? (int)((degree + PIECE - 1) / PIECE) : 0);
        for (long long first = 0; wanted && first < degree; first += PIECE, ++place) {
            __stcg(&pieces[place].begin, begin + first);
            __stcg(&pieces[place].vertex, vertex);
            __stcg(&pieces[place].length, (int)min(degree - first, (long long)PIECE));
        }
    }

    // Few items are spread over all warps: returns how many of `size` items a warp takes at a time, a power of two.
    __device__ static int at_a_time(int size) {
        int each = 32;
        while (each > 1 && (long long)warps() * each / 2 >= size) each /= 2;
        return each;
    }

    // Calls visit(piece, loaded) for all pieces, in whole warps; `loaded` is what load(vertex) returned, a piece ahead.
    template <class Load, class Visit>
    __device__ static void for_pieces(const Piece* pieces, int size, Load load, Visit visit) {
        const int each = at_a_time(size);
        for (long long first = (long long)warp() * each; first < size; first += (long long)warps() * each) {
            const int count = (int)min((long long)each, size - first);
            const Piece* mine = pieces + first + min(lane(), count - 1);
            const long long begin = __ldcg(&mine->begin);
            const int vertex = __ldcg(&mine->vertex), length = __ldcg(&mine->length);
            unsigned loaded = load(__shfl_sync(ALL_LANES, vertex, 0));
            for (int i = 0; i < count; ++i) {
                const unsigned ahead = load(__shfl_sync(ALL_LANES, vertex, min(i + 1, count - 1)));
                visit(Piece{__shfl_sync(ALL_LANES, begin, i), __shfl_sync(ALL_LANES, vertex, i),
                            __shfl_sync(ALL_LANES, length, i)},
                      loaded);
                loaded = ahead;
            }
        }
    }

    // Reads the other ends of the arcs of a piece: calls visit(ends) with SIZE ends for each lane, -1 behind the
    // last arc, until it returns false. Lanes with the same end have different words.
    template <int SIZE, class Visit>
    __device__ void for_ends(const int* __restrict__ indices, const Piece& piece, Visit visit) const {
        for (int base = 0; base < piece.length; base += 32) {
            const int count = min(32, piece.length - base);
            const int loaded = lane() < count ? indices[piece.begin + base + lane()] : 0;
            for (int arc = 0; arc < count; arc += SIZE * slots()) {
                int ends[SIZE];
#pragma unroll
                for (int i = 0; i < SIZE; ++i) {
                    const int mine = arc + i * slots() + slot();
                    const int end = __shfl_sync(ALL_LANES, loaded, mine & 31);
                    ends[i] = mine < count ? end : -1;
                }
                if (!visit(ends)) return;
            }
        }
    }

    // Returns the bits of all lanes that have the same word.
    __device__ unsigned over_slots(unsigned bits) const {
        for (int lanes = words; lanes < 32; lanes *= 2) bits |= __shfl_xor_sync(ALL_LANES, bits, lanes);
        return bits;
    }

    // All lanes call; lists vertices where `wanted` is true, each once in a level.
    __device__ void list_once(bool wanted, int vertex) const {
        if (wanted)
            wanted = __ldcg(stamps + vertex) != level + 1 && atomicExch(stamps + vertex, level + 1) != level + 1;
        if (!__any_sync(ALL_LANES, wanted)) return;
        const int place = reserve(&tally(level).listed, wanted);
        if (wanted) __stcg(list + place, vertex);
    }

    __device__ void begin(const int* sources) {
        const long long thread = (long long)warp() * 32 + lane(), threads = (long long)warps() * 32;
        for (long long i = thread; i < (long long)result.searches * graph.n; i += threads) {
            __stcs(result.distances + i, result.unreachable);
        }
        for (long long first = thread - lane(); first < graph.n; first += threads) {
            const bool there = first + lane() < graph.n;
            const int vertex = (int)(first + lane());
            const long long row = there ? graph.in_indptr[vertex] : 0;
            const long long degree = there ? graph.in_indptr[vertex + 1] - row : 0;
            append_row(rows_in(), &control->pulled, degree > 0, vertex, row, degree);
        }
        for (long long first = thread - lane(); first < result.searches; first += threads) {
            const bool there = first + lane() < result.searches;
            const int search = (int)first + lane(), vertex = there ? sources[search] : 0;
            if (there) atomicOr(coming + (long long)vertex * words + search / 32, 1u << search % 32);
            list_once(there, vertex);
        }
    }

    // `size` vertices are settled: those of the list, or all.
    __device__ void settle(int size, bool listed) {
        if (blockIdx.x == 0 && threadIdx.x < 32) {
            Tally& next = tally(level + 1);
            if (threadIdx.x == 0) next.listed = next.pieces = 0, next.queued = next.read = 0;
            next.going[threadIdx.x] = 0;
        }
        if (level > 0) {  // searches that were here have gone on
            const Piece* gone = queue(level - 1);
            const int pieces = __ldcg(&tally(level - 1).pieces);
            for (int i = warp() * slots() + slot(); i < pieces; i += warps() * slots()) {
                __stcg(here + at(__ldcg(&gone[i].vertex)), 0u);
            }
        }
        const int vertices = at_a_time(size);
        unsigned arrivals = 0;
        long long queued = 0;
        for (long long first = (long long)warp() * vertices; first < size; first += (long long)warps() * vertices) {
            settle_tile((int)first, min(vertices, (int)(size - first)), listed, arrivals, queued);
        }
        arrivals = over_slots(arrivals);
        if (arrivals && lane() < words) atomicOr(tally(level).going + lane(), arrivals);
        count(&tally(level).queued, queued);
    }

    __device__ void settle_tile(int first, int vertices, bool listed, unsigned& arrivals, long long& queued) {
        const bool there = lane() < vertices;
        const int vertex = !there ? 0 : listed ? __ldcg(list + first + lane()) : first + lane();
        const long long row = there ? graph.indptr[vertex] : 0;
        const long long degree = there ? graph.indptr[vertex + 1] - row : 0;
        const bool goes_on = degree > 0 && (level == 0 || graph.passes(vertex));
        for (int i = lane(); i - lane() < vertices * words; i += 32) {
            const int slot = i >> width;
            const int other = __shfl_sync(ALL_LANES, vertex, slot % 32);
            const bool other_goes_on = __shfl_sync(ALL_LANES, goes_on, slot % 32);
            if (slot >= vertices) continue;
            const unsigned bits = __ldcg(coming + at(other));
            if (bits) atomicOr(seen + at(other), bits);
            if (bits && !other_goes_on) __stcg(coming + at(other), 0u);
            tile[slot * (words + 1) + word()] = bits;
            arrivals |= bits;
        }
        __syncwarp();
        bool arrived = false;
        for (int w = 0; w < words; ++w) {
            const unsigned bits = there ? tile[lane() * (words + 1) + w] : 0;
            arrived |= bits != 0;
            for (unsigned left = __reduce_or_sync(ALL_LANES, bits); left; left &= left - 1) {
                const int search = __ffs((int)left) - 1;
                if (bits >> search & 1) result.distances[(32ll * w + search) * graph.n + vertex] = value;
            }
        }
        if (__any_sync(ALL_LANES, arrived) && lane() == 0) __stcg(&control->levels, level + 1);
        append_row(queue(level), &tally(level).pieces, arrived && goes_on, vertex, row, degree);
        if (arrived && goes_on) queued += degree;
    }

    __device__ void push() {
        const auto at_tail = [&](int vertex) { return __ldcg(here + at(vertex)); };
        const auto leave = [&](Piece piece, unsigned leaving) {
            const unsigned of_slot = ALL_LANES >> (32 - words) << slot() * words;
            for_ends<HEADS>(graph.indices, piece, [&](const int (&heads)[HEADS]) {
                unsigned arriving[HEADS];
#pragma unroll
                for (int i = 0; i < HEADS; ++i) {
                    arriving[i] = heads[i] >= 0 && leaving ? leaving & ~__ldcg(seen + at(heads[i])) : 0;
                }
#pragma unroll
                for (int i = 0; i < HEADS; ++i) {
                    const unsigned votes = __ballot_sync(ALL_LANES, arriving[i] != 0);
                    if (!votes) continue;
                    if (arriving[i]) atomicOr(coming + at(heads[i]), arriving[i]);
                    list_once(word() == 0 && votes & of_slot, heads[i]);
                }
                return true;
            });
        };
        for_pieces(queue(level - 1), __ldcg(&tally(level - 1).pieces), at_tail, leave);
    }

    __device__ void pull() {
        const unsigned going = __ldcg(&tally(level - 1).going[word()]);
        long long read = 0;
        const auto missing = [&](int vertex) { return going & ~__ldcg(seen + at(vertex)); };
        const auto fetch = [&](Piece piece, unsigned wanted) {
            if (!__any_sync(ALL_LANES, wanted != 0)) return;
            unsigned found = 0;
            ++read;
            for_ends<TAILS>(graph.in_indices, piece, [&](const int (&tails)[TAILS]) {
#pragma unroll
                for (int i = 0; i < TAILS; ++i) {
                    found |= tails[i] >= 0 ? __ldcg(here + at(tails[i])) : 0;
                    read += tails[i] >= 0;
                }
                found = over_slots(found);
                return (bool)__any_sync(ALL_LANES, (wanted & ~found) != 0);
            });
            if (lane() < words && wanted & found) atomicOr(coming + at(piece.vertex), wanted & found);
        };
        for_pieces(rows_in(), __ldcg(&control->pulled), missing, fetch);
        count(&tally(level).read, word() == 0 ? read : 0);  // lanes that read an arc together count it once
        if (blockIdx.x == 0 && threadIdx.x == 0) ++control->pulls;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    search(const long long* __restrict__ indptr, const int* __restrict__ indices,
           const long long* __restrict__ in_indptr, const int* __restrict__ in_indices,
           const bool* __restrict__ through, int has_through, int n, const int* __restrict__ sources, int searches,
           int words, Value length, int levels, Value unreachable, Value* distances, unsigned* state, int* stamps,
           int* list, Piece* queues, long long capacity, Control* control) {
    __shared__ unsigned tiles[WARPS][32 * 33];
    const Graph graph{indptr, indices, in_indptr, in_indices, through, has_through != 0, n};
    const Result result{unreachable, distances, searches};
    const long long size = (long long)n * words;
    Searches all{graph,  result, words,  __ffs(words) - 1, state,   state + size,           state + 2 * size,
                 stamps, list,   queues, capacity,         control, tiles[threadIdx.x / 32]};
    GridBarrier barrier{&control->arrived};

    all.begin(sources);
    barrier.wait();
    long long cost = n + graph.arcs();  // of a pull, at most; a later pull seldom reads more than the last one
    bool pulls = false;
    for (;;) {
        const int listed = __ldcg(&all.tally(all.level).listed);
        const bool by_list = !pulls && listed <= n / LISTED;
        all.settle(by_list ? listed : n, by_list);
        barrier.wait();
        const Tally& settled = all.tally(all.level);
        all.value = sum(all.value, length);
        if (++all.level == levels || !__ldcg(&settled.pieces)) break;
        unsigned* const gone = all.here;
        all.here = all.coming;
        all.coming = gone;
        pulls = (double)__ldcg(&settled.queued) * PULL > (double)cost;
        if (pulls) {
            all.pull();
        } else {
            all.push();
        }
        barrier.wait();
        if (pulls) cost = __ldcg(&all.tally(all.level).read);
    }
}

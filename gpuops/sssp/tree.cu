// Finds a predecessor for each vertex, on a shortest path from a root. The predecessors always form a forest.
//
// An arc is tight if the distance of its tail and its weight add up to the distance of its head, to the bit.
//
// 1. Each vertex takes the tail of the first tight arc of its row (without transposed rows, the smallest tail). If
//    weights are not negative, only tails with smaller distances count, so that the arcs taken form no cycles.
// 2. With negative weights smaller distances do not exclude cycles, so any tight arc is taken. Predecessors are then
//    followed by pointer jumping, and predecessors that do not lead to a root are dropped.
// 3. The vertices left lie on cycles of length 0, or behind arcs too light to change a sum. They are resolved level by
//    level: a vertex takes as predecessor the smallest tail that was resolved in the level before.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads on every multiprocessor.
// Macros: the macros of search.cuh.

#include "search.cuh"

constexpr int UNRESOLVED = 0x7fffffff;

struct Tree {
    const long long* __restrict__ indptr;
    const Value* __restrict__ distances;
    const bool* roots;
    const bool* __restrict__ through;
    bool has_through;
    int active;
    unsigned* predecessors;
    int* levels;

    __device__ Word distance(int vertex) const { return word(distances[vertex]); }
    __device__ bool pushes(int vertex) const { return !has_through || through[vertex] || roots[vertex]; }
};

// key: the distance of the head, tag: the place of its first tight arc.
struct FirstTight {
    const Tree& tree;

    // Whether an arc of this weight, or a heavier arc, may be tight.
    __device__ bool goes_on(Word distance, Value weight) const { return SIGNED || word(weight) <= distance; }
    __device__ bool is_tight(Word distance, int tail, Value weight, Word known) const {
        if (known == UNREACHABLE || (!SIGNED && known >= distance)) return false;
        return word(sum(value(known), weight)) == distance && tree.pushes(tail);
    }

    __device__ bool wants(const Rows& rows, int row, Value weight) const { return goes_on(rows.key[row], weight); }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int tail) const { return tree.distance(tail); }
    __device__ Word offer(const Rows&, int, int, Value, Word known) const { return known; }
    __device__ void visit(Rows& rows, int row, int arc, int tail, Value weight, Word known, bool live) const {
        if (!live || !is_tight(rows.key[row], tail, weight, known)) return;
        atomicMin(&rows.tag[row], rows.before[row] + arc);
        atomicMin(&rows.end[row], arc);
    }
};

// key: the distance of the tail, tag: the tail.
struct SmallestTail {
    const Tree& tree;

    __device__ bool wants(const Rows& rows, int row, Value weight) const {
        return word(sum(value(rows.key[row]), weight)) < UNREACHABLE;
    }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int head) const { return tree.distance(head); }
    __device__ Word offer(const Rows&, int, int, Value, Word known) const { return known; }
    __device__ void visit(const Rows& rows, int row, int, int head, Value weight, Word known, bool live) const {
        if (!live || (!SIGNED && known <= rows.key[row])) return;
        if (word(sum(value(rows.key[row]), weight)) != known) return;
        if (!tree.roots[head]) atomicMin(tree.predecessors + head, (unsigned)rows.tag[row]);
    }
};

// key: the distance of the tail, tag: the tail, which is of the level before `level`.
struct NextLevel {
    const Tree& tree;
    Grid& grid;
    Stage& queue;
    Piece* pieces;
    int level;

    __device__ bool wants(const Rows& rows, int row, Value weight) const {
        return SIGNED || word(sum(value(rows.key[row]), weight)) <= rows.key[row];
    }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int head) const { return tree.distance(head); }
    __device__ Word offer(const Rows&, int, int, Value, Word known) const { return known; }
    __device__ void visit(const Rows& rows, int row, int, int head, Value weight, Word known, bool live) {
        bool queues = false;
        if (live && known < UNREACHABLE && word(sum(value(rows.key[row]), weight)) == known) {
            const int before = atomicMin(tree.levels + head, level);
            if (before >= level) atomicMin(tree.predecessors + head, (unsigned)rows.tag[row]);
            queues = before > level && head < tree.active && tree.pushes(head);
        }
        enqueue(queues, head);
    }
    __device__ void enqueue(bool queues, int vertex) {
        if (queues) {
            const long long degree = tree.indptr[vertex + 1] - tree.indptr[vertex];
            if (degree > PIECE) {
                cut(grid, pieces, vertex, 0, 0, (int)degree);
                queues = false;
            }
        }
        queue.append(queues, vertex);
    }
};

// Reads `left` arcs from `place` on of the row of every lane, as far as they are wanted; long rows are cut into pieces
// after a while.
template <class Visitor>
__device__ inline void read_rows(Grid& grid, Rows& rows, const int* indices, const Value* weights, long long begin,
                                 int place, int left, Word key, int& tag, Piece* pieces, int vertex, long long& touched,
                                 Visitor& visitor) {
    for (int part = 8; __any_sync(ALL_LANES, left > 0); part = min(8 * part, 1 << 20)) {
        if (part >= PIECE && left > PIECE && pieces) {
            cut(grid, pieces, vertex, key, place, left);
            left = 0;
        }
        const int length = min(left, part);
        const int wanted = walk(rows, indices, weights, begin + place, place, length, key, tag, touched, visitor);
        left = wanted < length ? 0 : left - length;
        place += wanted;
    }
}

// The search for predecessors: its lists and its steps. All threads of the grid call a step.
struct Forest {
    const Tree& tree;
    Grid& grid;
    Rows& rows;
    int (&staged)[64];
    const int* __restrict__ indices;
    const Value* __restrict__ weights;
    const long long* __restrict__ in_indptr;
    const int* __restrict__ in_indices;
    const Value* __restrict__ in_weights;
    int n;
    int* queues;    // two queues in turn: of this step and of the next step
    Piece* pieces;  // two lists in turn, like `queues`
    long long piece_capacity;

    int level = 0;
    long long touched = 0;

    __device__ int* queue_of(int step) const { return queues + (step % 2 ? (long long)n : 0); }
    __device__ Piece* pieces_of(int step) const { return pieces + (step % 2 ? piece_capacity : 0); }
    __device__ Stage queue() const { return {staged, queue_of(grid.step), &grid.tally().queued, n}; }
    __device__ NextLevel next_level(Stage& queue) const { return {tree, grid, queue, pieces_of(grid.step), level}; }

    // Without transposed rows: every vertex takes the smallest tail of a tight arc.
    __device__ void look_forth() {
        SmallestTail smallest_tail{tree};
        for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < n; v += (long long)gridDim.x * THREADS) {
            __stcg(tree.predecessors + v, ~0u);
        }
        grid.barrier();
        grid.share(tree.active, 32, &grid.tally().taken, [&](long long first) {
            const int vertex = (int)first + threadIdx.x % 32;
            const Word distance = vertex < tree.active ? tree.distance(vertex) : UNREACHABLE;
            const bool pushes = distance < UNREACHABLE && tree.pushes(vertex);
            const long long begin = pushes ? tree.indptr[vertex] : 0;
            const int left = pushes ? (int)(tree.indptr[vertex + 1] - begin) : 0;
            int tag = vertex;
            read_rows(grid, rows, indices, weights, begin, 0, left, distance, tag, pieces_of(grid.step), vertex,
                      touched, smallest_tail);
        });
        grid.barrier();
        read_pieces(smallest_tail);
    }

    // Reads the pieces of long rows that the last step cut off, with a visitor whose tag is the tail.
    template <class Visitor>
    __device__ void read_pieces(Visitor& visitor) {
        const Piece* cut_off = pieces_of(grid.step - 1);
        grid.share(grid.last.pieces, 1, &grid.tally().taken_pieces, [&](long long i) {
            const Piece piece = piece_at(cut_off, i);
            int tag = piece.vertex;
            read_rows(grid, rows, indices, weights, tree.indptr[piece.vertex] + piece.place, 0,
                      threadIdx.x % 32 ? 0 : piece.length, tree.distance(piece.vertex), tag, nullptr, 0, touched,
                      visitor);
        });
    }

    // With transposed rows: every vertex takes the tail of its first tight arc. Returns whether all vertices that are
    // reached, except roots, have one. Most tails are at the first arc or soon after it: a lane looks alone at ALONE
    // arcs of its row, before all lanes of the warp read what is left of their rows.
    __device__ bool look_back() {
        FirstTight first_tight{tree};
        long long unresolved = 0;
        grid.share(n, 32, &grid.tally().taken, [&](long long first) {
            const int vertex = (int)first + threadIdx.x % 32;
            const Word distance = vertex < n ? tree.distance(vertex) : UNREACHABLE;
            const bool looks = distance < UNREACHABLE && !tree.roots[vertex];
            const long long begin = looks ? in_indptr[vertex] : 0;
            int left = looks ? (int)(in_indptr[vertex + 1] - begin) : 0, at = 0, place = UNRESOLVED;
            unsigned tail = ~0u;
            for (; at < ALONE && left > 0; ++at, --left) {
                const Value weight = in_weights[begin + at];
                const int other = in_indices[begin + at];
                ++touched;
                const bool tight = first_tight.is_tight(distance, other, weight, tree.distance(other));
                if (tight) tail = other;
                if (tight || !first_tight.goes_on(distance, weight)) {
                    left = 0;
                    break;
                }
            }
            if (__any_sync(ALL_LANES, left > 0)) {
                read_rows(grid, rows, in_indices, in_weights, begin, at, left, distance, place, pieces_of(grid.step),
                          vertex, touched, first_tight);
                if (place < UNRESOLVED) tail = in_indices[begin + place];
            }
            if (vertex < n) __stcg(tree.predecessors + vertex, tail);
            if (looks && tail == ~0u) {
                __stcg(tree.levels + vertex, UNRESOLVED);
                ++unresolved;
            }
        });
        Grid::count(grid.local.open, unresolved);
        grid.barrier();
        const bool all = !grid.last.open;
        if (grid.last.pieces) look_back_along_pieces(first_tight, pieces_of(grid.step - 1), grid.last.pieces);
        return all;
    }

    // Finds the place of the first tight arc in the pieces of each long row, keeps it in `levels`, and takes its tail.
    __device__ void look_back_along_pieces(FirstTight& first_tight, const Piece* cut_off, int size) {
        grid.share(size, 1, &grid.tally().taken_pieces, [&](long long i) {
            const Piece piece = piece_at(cut_off, i);
            if (__ldcg(tree.levels + piece.vertex) < piece.place) return;
            const int lane = threadIdx.x % 32;
            Word distance = tree.distance(piece.vertex);
            int place = UNRESOLVED;
            walk(rows, in_indices, in_weights, in_indptr[piece.vertex] + piece.place, piece.place,
                 lane ? 0 : piece.length, distance, place, touched, first_tight);
            if (lane == 0 && place < UNRESOLVED) atomicMin(tree.levels + piece.vertex, place);
        });
        grid.barrier();
        for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
            const Piece piece = piece_at(cut_off, i);
            const int place = __ldcg(tree.levels + piece.vertex);
            if (place >= piece.place && place < piece.place + piece.length) {
                __stcg(tree.predecessors + piece.vertex, (unsigned)in_indices[in_indptr[piece.vertex] + place]);
            }
        }
    }

    // Finds the end of the chain of predecessors from each vertex, or a vertex of the cycle that the chain leads to.
    __device__ void follow_predecessors(int* ancestors) {
        for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < n; v += (long long)gridDim.x * THREADS) {
            const unsigned before = __ldcg(tree.predecessors + v);
            __stcg(ancestors + v, before == ~0u ? (int)v : (int)before);
        }
        grid.barrier();
        // After a round, ancestors are twice as far. A thread that is ahead of other threads does no harm.
        const int lane = threadIdx.x % 32;
        for (long long reach = 1; reach < n; reach *= 2) {
            long long moved = 0;
            for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < n;
                 first += (long long)gridDim.x * THREADS) {
                if (first + lane >= n) continue;
                const int near = __ldcg(ancestors + first + lane), far = __ldcg(ancestors + near);
                if (far != near) __stcg(ancestors + first + lane, far);
                moved += far != near;
            }
            Grid::count(grid.local.open, moved);
            grid.barrier();
            if (!grid.last.open) break;
        }
    }

    // Puts roots and vertices with a valid predecessor into level 0. Counts the other reached vertices in `open`.
    __device__ void resolve(const int* ancestors) {
        const int lane = threadIdx.x % 32;
        long long unresolved = 0;
        for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < n;
             first += (long long)gridDim.x * THREADS) {
            const int vertex = (int)first + lane;
            if (vertex < n) {
                const bool reached = tree.distance(vertex) < UNREACHABLE;
                bool resolved = reached && (tree.roots[vertex] || __ldcg(tree.predecessors + vertex) != ~0u);
                if (SIGNED && resolved && !tree.roots[__ldcg(ancestors + vertex)]) {
                    __stcg(tree.predecessors + vertex, ~0u);
                    resolved = false;
                }
                __stcg(tree.levels + vertex, resolved ? 0 : UNRESOLVED);
                unresolved += reached && !resolved;
            }
        }
        Grid::count(grid.local.open, unresolved);
        grid.barrier();
    }

    // Queues the vertices of level 0 that may resolve other vertices.
    __device__ void begin_levels() {
        const int lane = threadIdx.x % 32;
        Stage next = queue();
        NextLevel visitor = next_level(next);
        for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < tree.active;
             first += (long long)gridDim.x * THREADS) {
            const int vertex = (int)first + lane;
            bool begins = vertex < tree.active && __ldcg(tree.levels + vertex) == 0 && tree.pushes(vertex);
            if (begins && !SIGNED) {
                const Word distance = tree.distance(vertex);
                begins = word(sum(value(distance), weights[tree.indptr[vertex]])) == distance;
            }
            visitor.enqueue(begins, vertex);
        }
        next.flush();
        grid.barrier();
    }

    // Resolves the vertices to which tight arcs lead from the level before.
    __device__ void resolve_level() {
        ++level;
        const int lane = threadIdx.x % 32, size = grid.last.queued;
        const int each = min(32, max(1, (size + Grid::warps() - 1) / Grid::warps()));
        const int* list = queue_of(grid.step - 1);
        Stage next = queue();
        NextLevel visitor = next_level(next);
        read_pieces(visitor);
        grid.share(size, each, &grid.tally().taken, [&](long long first) {
            const bool mine = lane < each && first + lane < size;
            int tail = mine ? __ldcg(list + first + lane) : 0;
            const long long begin = mine ? tree.indptr[tail] : 0;
            const int left = mine ? (int)(tree.indptr[tail + 1] - begin) : 0;
            read_rows(grid, rows, indices, weights, begin, 0, left, tree.distance(tail), tail, nullptr, 0, touched,
                      visitor);
        });
        next.flush();
        grid.barrier();
    }

    // Without negative weights, only vertices without a predecessor are left to resolve.
    __device__ void resolve_levels() {
        int* const ancestors = queues;
        grid.barrier();
        if (SIGNED) follow_predecessors(ancestors);
        resolve(ancestors);
        if (!grid.last.open) return;
        begin_levels();
        while (grid.last.queued || grid.last.pieces) resolve_level();
    }

    __device__ void finish() {
        Grid::count(grid.local.touched, touched);
        grid.barrier();
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            Control* control = grid.control;
            control->rounds += level;
            control->touched += grid.last.touched;
            control->finished = 1;
        }
    }
};

// The original numbering, and the sources, distances and starts in it.
struct Outside {
    const int* __restrict__ order;
    const int* __restrict__ rank;
    const int* __restrict__ sources;
    int source_count;
    const Value* __restrict__ starts;
    bool has_starts;
    const Value* __restrict__ distances;

    // Writes the distances in the internal numbering to `within`, and marks as roots the sources that are reached; if
    // starts are given, only sources that are reached at their starts. Returns whether a distance is negative.
    __device__ bool bring_in(Grid& grid, int n, Value* within, bool* roots) const {
        long long negative = 0;
        for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < n; v += (long long)gridDim.x * THREADS) {
            const Value distance = distances[order[v]];
            within[v] = distance;
            roots[v] = false;
            negative += distance < 0;
        }
        Grid::count(grid.local.open, negative);
        grid.barrier();
        const bool found = grid.last.open > 0;
        for (int i = blockIdx.x * THREADS + threadIdx.x; i < source_count; i += gridDim.x * THREADS) {
            const int place = rank[sources[i]];
            const Value distance = distances[sources[i]];
            if (word(distance) < UNREACHABLE && (!has_starts || distance == starts[i])) roots[place] = true;
        }
        grid.barrier();
        return found;
    }
    __device__ void bring_out(int n, const unsigned* predecessors, int* result) const {
        for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < n; v += (long long)gridDim.x * THREADS) {
            const unsigned before = __ldcg(predecessors + rank[v]);
            result[v] = before == ~0u ? -1 : order[before];
        }
    }
};

// Returns whether a distance is negative. Then smaller distances do not exclude cycles, and the caller needs SIGNED.
__device__ inline bool any_negative(Grid& grid, const Value* distances, int n) {
    long long negative = 0;
    for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x / 32 * 32; first < n;
         first += (long long)gridDim.x * THREADS) {
        const long long v = first + threadIdx.x % 32;
        negative += v < n && distances[v] < 0;
    }
    Grid::count(grid.local.open, negative);
    grid.barrier();
    return grid.last.open > 0;
}

// With `has_result`, distances (n), sources and starts (source_count) and result (n), the predecessors, are in the
// original numbering; predecessors (n), roots (n) and within (n) are scratch. Without it, distances (n), roots (n) and
// predecessors (n), which are the result, are in the internal numbering. -1: no predecessor. levels (n), queues (2, n)
// and pieces (2, piece_capacity) are scratch. If a distance is negative and SIGNED is 0, finished stays 0.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    tree(const long long* __restrict__ indptr, const int* __restrict__ indices, const Value* __restrict__ weights,
         const long long* __restrict__ in_indptr, const int* __restrict__ in_indices,
         const Value* __restrict__ in_weights, const bool* __restrict__ through, int has_in, int has_through, int n,
         int active, int* levels, int* queues, Piece* pieces, long long piece_capacity, bool* roots,
         unsigned* predecessors, const int* __restrict__ order, const int* __restrict__ rank,
         const int* __restrict__ sources, int source_count, const Value* __restrict__ starts, int has_starts,
         Value* within, int* result, int has_result, const Value* distances, Control* control) {
    __shared__ Rows all_rows[WARPS];
    __shared__ int staged[WARPS][64];
    __shared__ Tally tallies[2];
    const int warp = threadIdx.x / 32;
    Grid grid{control, tallies[0], tallies[1]};
    grid.start();
    const Outside outside{order, rank, sources, source_count, starts, has_starts != 0, distances};
    const bool negative = has_result ? outside.bring_in(grid, n, within, roots) : any_negative(grid, distances, n);
    if (!SIGNED && negative) return;
    if (has_result) distances = within;
    const Tree tree{indptr, distances, roots, through, has_through != 0, active, predecessors, levels};
    Forest forest{tree,       grid, all_rows[warp], staged[warp], indices,       weights, in_indptr, in_indices,
                  in_weights, n,    queues,         pieces,       piece_capacity};
    bool resolved = false;
    if (has_in) {
        resolved = forest.look_back();
    } else {
        forest.look_forth();
    }
    if (SIGNED || !resolved) forest.resolve_levels();
    forest.finish();
    if (has_result) outside.bring_out(n, predecessors, result);
}

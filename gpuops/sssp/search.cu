// Shortest paths from a set of vertices, in place: distances (n) are improved until no arc improves a distance.
//
// A row of arcs is sorted by ascending weight. The search proceeds by windows [low, high) of distances:
//
//     open     A vertex whose distance fell since it last relaxed its arcs is due at its distance, any other vertex at
//              the sum of the first arc that it holds back. All vertices that are due below `high` form a queue.
//     relax    Every vertex of the queue relaxes the arcs whose sums are below `high`, and holds back further arcs.
//              Vertices whose distance fell form the next queue. When the queue is empty, all distances below `high`
//              are final. Where rows are short, as in grids and roads, waiting for all blocks takes longer than the
//              work: so each warp relaxes the vertices that it found itself, a few times, before it queues the rest.
//     pull     Once settled vertices hold back more than PULL times the arcs that lead to unsettled vertices, every
//              unsettled vertex takes the minimum over its arcs from settled vertices, as far as their weights can
//              still improve its distance. Then the arcs that settled vertices held back are done. If few arcs lead to
//              unsettled vertices, the next window is the last: narrow windows cost more rounds than they save arcs.
//
// With negative weights no vertex is ever settled, there is no pull, and a window only determines the order of work: a
// vertex that falls below `low` relaxes its arcs at once, and heavy arcs wait. The distances of an earlier search, from
// any sources, are potentials that make weights non-negative. With potentials, windows are windows of keys. The *key*
// of a vertex is its distance less its potential. A vertex then relaxes all its arcs at once, most vertices only once.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads on every multiprocessor.
// Macros: the macros of search.cuh, and
//     THIN, WIDEN   a window is too narrow if it reads fewer than THIN arcs a round or fewer than 1 / WIDEN of all arcs
//     PULL          the cost of pulling an arc, in units of relaxing an arc
//     SHORT         most arcs of a row that a warp relaxes without waiting for other warps
//
// U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003;
// pull, and arcs that are never relaxed: V. Chakaravarthy et al., "Scalable single source shortest path algorithms for
// massively parallel systems", IPDPS 2014.

#include "search.cuh"

// The state of a vertex; a sector of memory has all of it.
struct alignas(16) State {
    Word pushed;  // the distance at which the vertex last relaxed its arcs
    Word next;    // the sum of the arc at the cursor, at which the vertex is due
    int cursor;   // the first arc that is held back; never below 0, since a racing warp may read an old value
    int piled;    // the window that last piled the vertex
};

struct Search {
    const long long* __restrict__ indptr;
    const int* __restrict__ indices;
    const Value* __restrict__ weights;
    const long long* __restrict__ in_indptr;
    const int* __restrict__ in_indices;
    const Value* __restrict__ in_weights;
    const bool* __restrict__ through;
    bool has_through;
    int n, active;  // active: the number of vertices with arcs, which come first
    int ahead;      // how often a warp relaxes the vertices that it found before it queues them
    Word* distances;
    State* states;
    int* queued;  // the step that last queued the vertex
    int* parents;
    const Word* __restrict__ potentials;  // null if there are none

    __device__ bool keyed() const { return SIGNED && potentials; }
    // The key of a vertex at a distance at which it has not relaxed its arcs: there it is due.
    __device__ Word key(int vertex, Word distance) const {
        if (!keyed()) return distance;
        const Word potential = max(potentials[vertex], (Word)(LOWEST + 1));
        if (potential == UNREACHABLE) return distance;
        return min(word(sum(value(distance), -value(potential))), (Word)(UNREACHABLE - 1));
    }
    __device__ bool passes(int vertex) const { return !has_through || through[vertex]; }
};

// key: the distance of the tail, tag: the tail.
struct Push {
    const Search& search;
    Control* control;
    Stage& queue;
    Word limit;  // arcs with smaller sums are relaxed
    Word high;   // vertices with smaller keys are queued
    bool collects;
    bool ahead = false;  // whether the warp runs ahead of the queue: then it does not record the arcs held back

    __device__ bool wants(const Rows& rows, int row, Value weight) const {
        if (!Distance::fits(value(rows.key[row]), weight)) note_overflow(control, weight < 0 ? 2 : 1);
        return word(sum(value(rows.key[row]), weight)) < limit;
    }
    __device__ void refuse(const Rows& rows, int row, int place, Value weight) const {
        if (ahead) return;
        const int tail = rows.tag[row];
        __stcg(&search.states[tail].next, word(sum(value(rows.key[row]), weight)));
        __stcg(&search.states[tail].cursor, place);
    }
    __device__ Word load(int head) const { return __ldcg(search.distances + head); }
    // Returns the distance that the head had.
    __device__ Word offer(const Rows& rows, int row, int head, Value weight, Word known) const {
        const Word candidate = word(sum(value(rows.key[row]), weight));
        return candidate < known ? atomicMin(search.distances + head, candidate) : known;
    }
    __device__ void visit(const Rows& rows, int row, int, int head, Value weight, Word before, bool live) {
        bool queues = false;
        if (live) {
            const Word candidate = word(sum(value(rows.key[row]), weight));
            if (candidate < before) {
                if (SIGNED) __stcg(search.parents + head, rows.tag[row]);
                queues = collects && head < search.active && search.passes(head);
                if (search.keyed() && search.key(head, candidate) >= high) queues = false;
            }
        }
        queue.append(queues, head);
    }
};

// key: the distance of the head. The distances of settled tails are below `settled`, and not below `low` if the head
// has not yet pulled from the tail.
struct Pull {
    const Search& search;
    Control* control;
    Word settled;
    Value low;

    // Whether an arc of this weight, or a heavier arc, may improve the distance of the head.
    __device__ bool goes_on(Word distance, Value weight) const {
        if (!Distance::fits(low, weight)) note_overflow(control, 1);
        return word(sum(low, weight)) < distance;
    }
    __device__ Word candidate(int tail, Value weight, Word known) const {
        if (known >= settled || !search.passes(tail)) return UNREACHABLE;
        if (!Distance::fits(value(known), weight)) note_overflow(control, 1);
        return word(sum(value(known), weight));
    }

    __device__ bool wants(const Rows& rows, int row, Value weight) const { return goes_on(rows.key[row], weight); }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int tail) const { return __ldcg(search.distances + tail); }
    __device__ Word offer(const Rows&, int, int, Value, Word known) const { return known; }
    __device__ void visit(Rows& rows, int row, int, int tail, Value weight, Word known, bool live) const {
        const Word offered = live ? candidate(tail, weight, known) : UNREACHABLE;
        if (offered < UNREACHABLE && offered < rows.key[row]) atomicMin(&rows.key[row], offered);
    }
};

// Notes overflow 2 if only a sum that does not fit would reach some vertex.
struct Unfit {
    const Search& search;
    Control* control;

    __device__ bool wants(const Rows&, int, Value) const { return true; }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int head) const { return __ldcg(search.distances + head); }
    __device__ Word offer(const Rows&, int, int, Value, Word known) const { return known; }
    __device__ void visit(const Rows& rows, int row, int, int, Value weight, Word known, bool live) const {
        if (live && known == UNREACHABLE && !Distance::fits(value(rows.key[row]), weight)) note_overflow(control, 2);
    }
};

// Relaxes the arcs of up to 32 vertices that this warp has found, without waiting for other warps. Vertices with long
// rows, or with arcs to hold back, go to the queue, which gives each vertex to a single warp.
__device__ inline void run_ahead(const Search& search, Rows& rows, Push& push, long long& touched) {
    const bool mine = threadIdx.x % 32 < push.queue.count;
    int vertex = push.queue.take(), length = 0;
    Word distance = 0;
    long long begin = 0;
    bool waits = false;
    if (mine) {
        distance = __ldcg(search.distances + vertex);
        const Word pushed = __ldcg(&search.states[vertex].pushed);
        begin = search.indptr[vertex];
        const long long degree = search.indptr[vertex + 1] - begin;
        waits = degree > SHORT;
        if (pushed != distance && !waits) length = (int)degree;
    }
    push.ahead = true;
    const int wanted = walk(rows, search.indices, search.weights, begin, 0, length, distance, vertex, touched, push);
    push.ahead = false;
    if (wanted < length) {
        waits = true;
    } else if (length) {
        __stcg(&search.states[vertex].pushed, distance);
        __stcg(&search.states[vertex].next, UNREACHABLE);
        __stcg(&search.states[vertex].cursor, length);
    }
    push.queue.store(waits, vertex);
}

// Relaxes the arcs of `size` vertices. With `sources`, the vertices are closed sources: they relax all their arcs at
// once, at their starting distance, and queue no heads.
__device__ inline void relax(const Search& search, Grid& grid, Rows& rows, Stage& queue, Stage& pile, const int* list,
                             int size, Piece* pieces, Word high, int window, bool sources) {
    const int lane = threadIdx.x % 32, each = min(32, max(1, (size + Grid::warps() - 1) / Grid::warps()));
    long long touched = 0;
    const Word limit = sources || search.keyed() ? UNREACHABLE : high;
    Push push{search, grid.control, queue, limit, high, !sources};
    const int ahead = sources ? 0 : search.ahead;
    grid.share(size, each, &grid.tally().taken, [&](long long first) {
        const bool mine = lane < each && first + lane < size;
        int vertex = 0, place = 0, left = 0;
        long long begin = 0;
        Word distance = 0;
        if (mine) {
            vertex = __ldcg(list + first + lane);
            const Word pushed = __ldcg(&search.states[vertex].pushed);
            distance = sources ? pushed : __ldcg(search.distances + vertex);
            begin = search.indptr[vertex];
            if (pushed == distance && !sources) place = __ldcg(&search.states[vertex].cursor);
            left = (int)(search.indptr[vertex + 1] - begin) - place;
        }
        bool holds = false;
        for (int part = max(8, 64 / each); __any_sync(ALL_LANES, left > 0); part = min(8 * part, 1 << 20)) {
            if (part >= PIECE && left > PIECE && !sources) {
                int end = place + left;
                const int degree = end;
                for (int low = place; low < end;) {
                    const int middle = low + (end - low) / 2;
                    if (word(sum(value(distance), search.weights[begin + middle])) < limit) {
                        low = middle + 1;
                    } else {
                        end = middle;
                    }
                }
                if (end > place) cut(grid, pieces, vertex, distance, place, end - place);
                holds = end < degree;
                if (holds) {
                    const Value weight = search.weights[begin + end];
                    if (!Distance::fits(value(distance), weight)) note_overflow(grid.control, 1);
                    __stcg(&search.states[vertex].next, word(sum(value(distance), weight)));
                    __stcg(&search.states[vertex].cursor, end);
                }
                left = 0;
            }
            const int length = min(left, part);
            const int wanted = walk(rows, search.indices, search.weights, begin + place, place, length, distance,
                                    vertex, touched, push);
            holds |= wanted < length;
            left = wanted < length ? 0 : left - length;
            place += wanted;
        }
        if (mine && !sources) {
            __stcg(&search.states[vertex].pushed, distance);
            if (!holds) {
                // The vertex may be queued again for the distance just pushed: then all its arcs are relaxed already.
                __stcg(&search.states[vertex].next, UNREACHABLE);
                __stcg(&search.states[vertex].cursor, (int)(search.indptr[vertex + 1] - begin));
            }
        }
        const bool piles = mine && holds && !sources && __ldcg(&search.states[vertex].piled) != window;
        if (piles) __stcg(&search.states[vertex].piled, window);
        pile.append(piles, vertex);
        for (int i = 0; i < ahead && queue.count; ++i) run_ahead(search, rows, push, touched);
    });
    Grid::count(grid.local.touched, touched);
}

// Relaxes the pieces that the last step cut off.
__device__ inline void relax_pieces(const Search& search, Grid& grid, Rows& rows, Stage& queue, const Piece* pieces,
                                    int size, Word high) {
    const int lane = threadIdx.x % 32;
    long long touched = 0;
    Push push{search, grid.control, queue, search.keyed() ? UNREACHABLE : high, high, true};
    grid.share(size, 1, &grid.tally().taken_pieces, [&](long long i) {
        Piece piece = piece_at(pieces, i);
        // A vertex whose distance fell in the meantime is in the queue, and relaxes all its arcs again.
        if (__ldcg(search.distances + piece.vertex) != piece.key) return;
        const long long begin = search.indptr[piece.vertex] + piece.place;
        walk(rows, search.indices, search.weights, begin, piece.place, lane ? 0 : piece.length, piece.key, piece.vertex,
             touched, push);
    });
    Grid::count(grid.local.touched, touched);
}

// Every unsettled vertex takes the minimum over its arcs from settled vertices. For most vertices few arcs can improve
// the distance: a lane reads ALONE arcs of its row, before all lanes of the warp read what is left of their rows.
__device__ inline void pull(const Search& search, Grid& grid, Rows& rows, Piece* pieces, int size, Word settled,
                            Value low) {
    const int lane = threadIdx.x % 32;
    long long touched = 0;
    Pull visitor{search, grid.control, settled, low};
    grid.share(size, 32, &grid.tally().taken, [&](long long first) {
        int vertex = (int)first + lane, place = 0, left = 0;
        long long begin = 0;
        Word distance = UNREACHABLE;
        const bool mine = first + lane < size;
        if (mine) {
            distance = __ldcg(search.distances + vertex);
            if (distance < settled) {
                __stcg(&search.states[vertex].next, UNREACHABLE);
            } else {
                begin = search.in_indptr[vertex];
                left = (int)(search.in_indptr[vertex + 1] - begin);
            }
        }
        const Word known = distance;
        for (; place < ALONE && left > 0; ++place, --left) {
            const Value weight = search.in_weights[begin + place];
            const int tail = search.in_indices[begin + place];
            ++touched;
            if (!visitor.goes_on(distance, weight)) {
                left = 0;
                break;
            }
            distance = min(distance, visitor.candidate(tail, weight, visitor.load(tail)));
        }
        for (int part = 8; __any_sync(ALL_LANES, left > 0); part = min(8 * part, 1 << 20)) {
            if (part >= PIECE && left > PIECE) {
                cut(grid, pieces, vertex, distance, place, left);
                left = 0;
            }
            const int length = min(left, part);
            const int wanted = walk(rows, search.in_indices, search.in_weights, begin + place, place, length, distance,
                                    vertex, touched, visitor);
            left = wanted < length ? 0 : left - length;
            place += wanted;
        }
        if (mine && distance < known) __stcg(search.distances + vertex, distance);
    });
    Grid::count(grid.local.touched, touched);
}

__device__ inline void pull_pieces(const Search& search, Grid& grid, Rows& rows, const Piece* pieces, int size,
                                   Word settled, Value low) {
    const int lane = threadIdx.x % 32;
    long long touched = 0;
    Pull visitor{search, grid.control, settled, low};
    grid.share(size, 1, &grid.tally().taken_pieces, [&](long long i) {
        Piece piece = piece_at(pieces, i);
        Word distance = __ldcg(search.distances + piece.vertex);
        const Word known = distance;
        const long long begin = search.in_indptr[piece.vertex] + piece.place;
        walk(rows, search.in_indices, search.in_weights, begin, piece.place, lane ? 0 : piece.length, distance,
             piece.vertex, touched, visitor);
        if (lane == 0 && distance < known) atomicMin(search.distances + piece.vertex, distance);
    });
    Grid::count(grid.local.touched, touched);
}

// Opens a window up to `high`, for the vertices in `list` or, if `list` is null, for the vertices 0 to `size` - 1.
// Vertices due below `high` go to the queue, vertices due later to the pile. With `counts`, counts the arcs that
// settled vertices hold back, and the arcs that lead to unsettled vertices.
__device__ inline void open(const Search& search, Grid& grid, Stage& queue, Stage& pile, const int* list, int size,
                            Word low, Word high, bool counts) {
    const int lane = threadIdx.x % 32, threads = gridDim.x * THREADS;
    long long due = NEVER, held = 0, entering = 0;
    for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < size; first += threads) {
        bool ready = false, waits = false;
        int vertex = 0;
        if (first + lane < size) {
            vertex = list ? __ldcg(list + first + lane) : (int)first + lane;
            const Word distance = __ldcg(search.distances + vertex), pushed = __ldcg(&search.states[vertex].pushed);
            Word from = __ldcg(&search.states[vertex].next);
            if (distance != pushed) {
                from = vertex < search.active && search.passes(vertex) ? search.key(vertex, distance) : UNREACHABLE;
            }
            ready = from < high;
            waits = !ready && from < UNREACHABLE;
            if (waits) due = min(due, (long long)from);
            if (counts) {
                if (distance >= low) {
                    entering += search.in_indptr[vertex + 1] - search.in_indptr[vertex];
                } else if (distance == pushed && from < UNREACHABLE) {
                    held += search.indptr[vertex + 1] - search.indptr[vertex] - __ldcg(&search.states[vertex].cursor);
                }
            }
        }
        queue.append(ready, vertex);
        pile.append(waits, vertex);
    }
    Grid::earliest(grid.local.due, due);
    if (counts) {
        Grid::count(grid.local.held, held);
        Grid::count(grid.local.open, entering);
    }
}

__device__ inline Word window_end(Word due, double width) {
    return max(due + 1, Distance::at((double)value(due) + width));
}

// Selects the distances of the result: up to `limit`, and up to the farthest target in `list` (original numbering).
struct Targets {
    const int* __restrict__ rank;
    const int* __restrict__ list;
    int size;
    Word limit;  // UNREACHABLE: no limit

    __device__ Word end() const { return min(limit, (Word)(UNREACHABLE - 1)) + 1; }  // the end of the last window

    // Returns whether there are targets and all are settled. All threads of the block call. Inlined, this function and
    // `farthest` would take registers from loops whose speed matters.
    __attribute__((noinline)) __device__ bool settled(const Word* distances, Word low) const {
        __shared__ int open;
        if (threadIdx.x == 0) open = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < size; i += THREADS) {
            if (__ldcg(distances + rank[list[i]]) >= low) open = 1;
        }
        __syncthreads();
        const bool none = open == 0;
        __syncthreads();
        return size && none;
    }
    // Returns the distance of the farthest target that is reached, or `limit` if no target is reached.
    __attribute__((noinline)) __device__ Word farthest(const Word* distances) const {
        __shared__ Word most;
        if (threadIdx.x == 0) most = LOWEST;
        __syncthreads();
        for (int i = threadIdx.x; i < size; i += THREADS) {
            const Word distance = __ldcg(distances + rank[list[i]]);
            if (distance < UNREACHABLE && distance <= limit) atomicMax(&most, distance);
        }
        __syncthreads();
        return most == LOWEST ? limit : most;
    }
};

// A search: its lists, its state, and its steps. All threads of the grid call a step, and a barrier ends it.
struct Run {
    const Search& search;
    Grid& grid;
    Rows& rows;
    int (&staged)[2][64];
    int* queues;  // two queues in turn: of this step and of the next step
    int* piles;   // two piles in turn: of this window and of the next window
    int capacity;
    Piece* pieces;  // two lists in turn, like `queues`
    long long piece_capacity;
    int entered;  // number of vertices that may have arcs into them; 0: no pulls
    double width;

    int window = 1;
    // Sums below high are relaxed; distances below low are settled. In the other order, an A100 has a register too few.
    Word high = LOWEST, low = LOWEST;
    Value pulled = 0;   // vertices have pulled from all tails below this distance
    bool scans = true;  // whether the next window looks at all vertices instead of the pile
    int rounds = 0, windows = 0, pulls = 0;
    long long touched = 0;  // arcs read

    __device__ int* queue_of(int step) const { return queues + (step % 2 ? (long long)search.n : 0); }
    __device__ int* pile_of(int window) const { return piles + (window % 2 ? (long long)capacity : 0); }
    __device__ Piece* pieces_of(int step) const { return pieces + (step % 2 ? piece_capacity : 0); }
    __device__ Stage queue() const { return {staged[0], queue_of(grid.step), &grid.tally().queued, search.n}; }
    __device__ Stage pile() const { return {staged[1], pile_of(window), &grid.control->piled[window % 3], capacity}; }

    __device__ void barrier() {
        grid.barrier();
        touched += grid.last.touched;
    }

    // Starts from the sources, given in the original numbering: closed sources are queued, other sources are piled.
    __device__ void begin_at(const int* rank, const int* sources, const Value* starts, int size) {
        const int lane = threadIdx.x % 32, threads = gridDim.x * THREADS;
        for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < search.n; v += threads) {
            __stcg(search.distances + v, UNREACHABLE);
            search.states[v] = State{UNREACHABLE, UNREACHABLE, 0, 0};
            __stcg(search.queued + v, 0);
            if (SIGNED) __stcg(search.parents + v, -1);
        }
        grid.barrier();
        Stage closed_sources = queue(), open_sources = pile();
        long long due = NEVER;
        for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < size; first += threads) {
            bool closed_source = false, open_source = false;
            int vertex = 0;
            if (first + lane < size) {
                vertex = rank[sources[first + lane]];
                const Word distance = word(starts[first + lane] + Value(0));
                __stcg(search.distances + vertex, distance);
                closed_source = vertex < search.active && !search.passes(vertex);
                open_source = vertex < search.active && !closed_source;
                if (closed_source) __stcg(&search.states[vertex].pushed, distance);
                if (open_source) due = min(due, (long long)search.key(vertex, distance));
            }
            closed_sources.append(closed_source, vertex);
            open_sources.append(open_source, vertex);
        }
        closed_sources.flush();
        open_sources.flush();
        Grid::earliest(grid.local.due, due);
        scans = search.has_through;  // closed sources do not queue the heads of their arcs
        grid.barrier();
    }

    // Converts distances to words, and queues closed sources. A search that resumes keeps its state.
    __device__ void begin(const bool* pending, bool has_pending, bool resumes) {
        Stage sources = queue();
        const int lane = threadIdx.x % 32, threads = gridDim.x * THREADS;
        for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < search.n;
             first += threads) {
            const int vertex = (int)first + lane;
            bool closed_source = false;
            if (vertex < search.n) {
                const Word distance = word(((const Value*)search.distances)[vertex] + Value(0));
                __stcg(search.distances + vertex, distance);
                __stcg(search.queued + vertex, 0);
                __stcg(&search.states[vertex].piled, 0);
                if (SIGNED && !resumes) __stcg(search.parents + vertex, -1);
                if (!resumes) {
                    const bool starts = distance < UNREACHABLE && (!has_pending || pending[vertex]);
                    const bool closed = vertex < search.active && !search.passes(vertex);
                    closed_source = starts && closed;
                    __stcg(&search.states[vertex].pushed, starts != closed ? UNREACHABLE : distance);
                    __stcg(&search.states[vertex].next, UNREACHABLE);
                }
            }
            sources.append(closed_source, vertex);
        }
        sources.flush();
        grid.barrier();
    }

    // Queues the vertices that are due below `high`. Returns whether settled vertices hold back enough arcs to pull.
    __device__ bool open_window() {
        const int waiting = __ldcg(&grid.control->piled[window % 3]);
        const bool all = scans || search.keyed() || waiting > capacity;
        const int* list = pile_of(window);
        ++window;
        if (blockIdx.x == 0 && threadIdx.x == 0) __stcg(&grid.control->piled[(window + 1) % 3], 0);
        {
            Stage ready = queue(), later = pile();
            open(search, grid, ready, later, all ? nullptr : list, all ? max(search.active, entered) : waiting, low,
                 high, all && entered && low > LOWEST);
            ready.flush();
            later.flush();
        }
        grid.barrier();
        scans = false;
        return all && entered && low > LOWEST && (double)grid.last.open * PULL < (double)grid.last.held;
    }

    // Every unsettled vertex takes the minimum over its arcs from settled vertices. The next window is the last if any
    // narrower window would be too narrow.
    __device__ void pull_from_settled(Word end) {
        if (grid.last.open < search.indptr[search.n] / WIDEN) high = end;
        pull(search, grid, rows, pieces_of(grid.step), entered, low, pulled);
        barrier();
        if (grid.last.pieces) {
            const int size = grid.last.pieces;
            pull_pieces(search, grid, rows, pieces_of(grid.step - 1), size, low, pulled);
            barrier();
        }
        pulled = value(low);
        scans = true;
        ++pulls;
    }

    // Relaxes arcs with sums below `high`, and returns true when none is left, false after `most_rounds`. With
    // `sources`, the queue has closed sources, which relax all their arcs, once.
    __device__ bool relax_window(long long most_rounds, bool sources) {
        windows += !sources;
        while (grid.last.queued || grid.last.pieces) {
            const int size = grid.last.queued, piece_count = grid.last.pieces;
            if (rounds == most_rounds && !sources) {
                restart_pieces(piece_count);
                return false;
            }
            Stage nearer = queue(), waiting = pile();
            nearer.queued = search.queued;
            nearer.step = grid.step;
            if (piece_count) relax_pieces(search, grid, rows, nearer, pieces_of(grid.step - 1), piece_count, high);
            relax(search, grid, rows, nearer, waiting, queue_of(grid.step - 1), size, pieces_of(grid.step), high,
                  window, sources);
            nearer.flush();
            waiting.flush();
            barrier();
            ++rounds;
        }
        return true;
    }

    // Pieces count as relaxed when they are cut off. If the launch stops before it relaxes them, their vertices have to
    // begin again.
    __device__ void restart_pieces(int size) {
        const Piece* rest = pieces_of(grid.step - 1);
        for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
            __stcg(&search.states[__ldcg(&rest[i].vertex)].pushed, UNREACHABLE);
        }
    }

    // Narrow windows cost barriers, wide windows relax arcs in vain.
    __device__ void fit_width(int rounds_of_window, long long read) {
        const long long arcs = search.indptr[search.n];
        if (read < max(arcs / WIDEN, (long long)rounds_of_window * THIN)) {
            width *= 2;
        } else if (read > arcs) {
            width /= 2;
        }
    }

    // A sum did not fit: finds out whether some vertex is reached by no other sum.
    __device__ void look_for_unfit() {
        grid.barrier();
        Unfit visitor{search, grid.control};
        long long read = 0;
        grid.share(search.active, 32, &grid.tally().taken, [&](long long first) {
            int vertex = (int)first + threadIdx.x % 32, left = 0;
            long long begin = 0;
            Word distance = UNREACHABLE;
            if (vertex < search.active) {  // of closed vertices, only sources relaxed their arcs, at their start
                const Word* at = search.passes(vertex) ? search.distances + vertex : &search.states[vertex].pushed;
                distance = __ldcg(at);
            }
            if (distance < UNREACHABLE) {
                begin = search.indptr[vertex];
                left = (int)(search.indptr[vertex + 1] - begin);
            }
            walk(rows, search.indices, search.weights, begin, 0, min(left, 1 << 25), distance, vertex, read, visitor);
        });
        grid.barrier();
    }

    // Leaves the distances in place or, once they are final, writes the selected distances to `result`, in the original
    // numbering.
    __device__ void finish(bool finished, const Targets& asked, Value* result) {
        grid.barrier();
        if (finished && result) {
            const Word farthest = asked.farthest(search.distances);
            for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < search.n;
                 v += (long long)gridDim.x * THREADS) {
                const Word distance = __ldcg(search.distances + asked.rank[v]);
                result[v] = value(distance <= farthest ? distance : UNREACHABLE);
            }
        } else if (SIGNED) {
            for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < search.n;
                 v += (long long)gridDim.x * THREADS) {
                __stcg(search.distances + v, Distance::ordered(__ldcg(search.distances + v)));
            }
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            Control* control = grid.control;
            control->rounds += rounds;
            control->windows += windows;
            control->pulls += pulls;
            control->touched += touched;
            control->finished = finished;
        }
    }
};

// The arguments of a search, except the arrays that it only reads. distances, states and queued (n), parents (n) if
// SIGNED; queues (2, n), piles (2, capacity), pieces (2, piece_capacity). entered: number of vertices that may have arcs
// into them, if in_indptr is given; 0: no pulls. A launch that stops after `most_rounds` leaves finished = 0, and a launch
// with `resume` continues it.
struct Arguments {
    Word* distances;
    State* states;
    const Word* potentials;  // null if there are none
    int *queued, *parents, *queues, *piles;
    Piece* pieces;
    Control* control;
    Value* result;  // null: `distances` are improved in place
    long long piece_capacity, most_rounds;
    double width;
    Value limit;
    int n, active, entered, ahead, capacity, source_count, target_count;
    int has_through, has_pending, resume;
};

// rank (n), sources and starts (source_count), targets (target_count) and result (n), all in the original numbering,
// are for a search that begins at sources. Its result is unreachable beyond `limit` and beyond the farthest target that
// is reached; the search ends there, unless weights may be negative. A search without sources improves `distances` in
// place.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    search(const long long* __restrict__ indptr, const int* __restrict__ indices, const Value* __restrict__ weights,
           const long long* __restrict__ in_indptr, const int* __restrict__ in_indices,
           const Value* __restrict__ in_weights, const bool* __restrict__ through, const bool* __restrict__ pending,
           const int* __restrict__ rank, const int* __restrict__ sources, const Value* __restrict__ starts,
           const int* __restrict__ targets, const Arguments given) {
    __shared__ Rows all_rows[WARPS];
    __shared__ int staged[WARPS][2][64];
    __shared__ Tally tallies[2];
    const int warp = threadIdx.x / 32;
    const Search search{indptr,       indices,      weights,       in_indptr,
                        in_indices,   in_weights,   through,       given.has_through != 0,
                        given.n,      given.active, given.ahead,   given.distances,
                        given.states, given.queued, given.parents, given.potentials};
    Control* const control = given.control;
    Grid grid{control, tallies[0], tallies[1]};
    Run run{search,         grid,         all_rows[warp],       staged[warp],  given.queues, given.piles,
            given.capacity, given.pieces, given.piece_capacity, given.entered, given.width};
    const Targets asked{rank, targets, given.target_count, word(given.limit)};
    grid.start();
    if (given.result && !given.resume) {
        run.begin_at(rank, sources, starts, given.source_count);
    } else {
        run.begin(pending, given.has_pending != 0, given.resume != 0);
    }
    bool finished = false, early = false;
    for (bool sources = true; !finished; sources = false) {
        if (!sources && run.open_window()) {
            run.pull_from_settled(asked.end());
        } else if (!grid.last.queued && !(sources && run.scans)) {
            const Word due = (Word)grid.last.due;
            finished = grid.last.due == NEVER || due >= asked.end();
            if (!run.windows) run.pulled = value(due);
            run.high = min(asked.end(), window_end(due, run.width));
        } else {
            const int rounds = run.rounds;
            const long long touched = run.touched;
            if (!run.relax_window(given.most_rounds, sources)) break;
            if (sources) continue;
            run.fit_width(run.rounds - rounds, run.touched - touched);
            run.low = run.high;
            run.high = min(asked.end(), window_end(run.high - 1, run.width));
            early = !SIGNED && asked.settled(given.distances, run.low);
            finished = early || (!SIGNED && run.low == asked.end());
        }
    }
    // Vertices that only sums that do not fit would reach are beyond any limit, so a search with a limit need not look.
    const bool asked_for_all = finished && !early && asked.limit == UNREACHABLE;
    if (!Distance::SUMS_FIT && asked_for_all && __ldcg(&control->overflow) == 1) run.look_for_unfit();
    run.finish(finished, asked, given.result);
}

// Shortest paths from a set of vertices, in place: distances (n) are improved until no arc improves any.
//
// A row of arcs is sorted by rising weight. The search goes by windows [low, high) of distances:
//
//     open     A vertex whose distance fell since its arcs were last relaxed is due at its distance, any other at the
//              sum it holds back. All that are due below `high` make a queue.
//     relax    For each of the queue, the arcs whose sum is below `high`; the rest is held back. Vertices whose
//              distance fell make the next queue. Once the queue is empty, all distances below `high` are final.
//              Where rows are short, as in grids and roads, waiting for all blocks takes longer than the work, so each
//              warp goes on with what it found a few times before it hands the rest over to the queue.
//     pull     Once the arcs held back outnumber those into vertices that are not settled, each of these takes the
//              minimum over its arcs from settled vertices, as far as their weights can still improve it. What settled
//              vertices held back is then done.
//
// With negative weights nothing is ever settled, there is no pull, and a window only says what to do first: a vertex
// that falls below `low` is relaxed at once, heavy arcs wait. Distances of an earlier search, from wherever it began, are
// potentials that make weights non-negative. With them windows are those of the difference, the *key* of a vertex, which
// then relaxes all its arcs, and most vertices do so once.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads on every multiprocessor.
// Macros: those of search.cuh, and
//     THIN, WIDEN   a window that reads less than THIN arcs a round, or less than one in WIDEN of all, is too narrow
//     PULL          the price of an arc to pull, in arcs to push
//     SHORT         arcs of a row, at most, that a warp relaxes ahead of the others
//
// U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003;
// pull, and what is not relaxed at all: V. Chakaravarthy et al., "Scalable single source shortest path algorithms for
// massively parallel systems", IPDPS 2014.

#include "search.cuh"

struct Search {
    const long long* __restrict__ indptr;
    const int* __restrict__ indices;
    const Value* __restrict__ weights;
    const long long* __restrict__ in_indptr;
    const int* __restrict__ in_indices;
    const Value* __restrict__ in_weights;
    const bool* __restrict__ through;
    bool has_through;
    int n, active;  // vertices with arcs come first
    int ahead;      // how often a warp goes on with what it found before it waits for the others
    Word* distances;
    Word* pushed;  // the distance at which arcs were last relaxed
    Word* next;    // the sum at the cursor: when to go on
    int* cursor;   // the first arc that is held back
    int* queued;   // step in which the vertex was last queued
    int* piled;    // window in which it was last piled
    int* parents;
    const Word* __restrict__ potentials;  // null: none

    __device__ bool keyed() const { return SIGNED && potentials; }
    // When a vertex is due that has not relaxed its arcs since it came this near.
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
    Word limit;  // of sums
    Word high;   // of the keys of vertices to be queued
    bool collects;
    bool ahead = false;  // of the queue: what is held back is not written down

    __device__ bool wants(const Rows& rows, int row, Value weight) const {
        if (!Distance::fits(value(rows.key[row]), weight)) note_overflow(control, weight < 0 ? 2 : 1);
        return word(sum(value(rows.key[row]), weight)) < limit;
    }
    __device__ void refuse(const Rows& rows, int row, int place, Value weight) const {
        if (ahead) return;
        const int tail = rows.tag[row];
        __stcg(search.next + tail, word(sum(value(rows.key[row]), weight)));
        __stcg(search.cursor + tail, place);
    }
    __device__ Word load(int head) const { return __ldcg(search.distances + head); }
    __device__ void visit(const Rows& rows, int row, int, int head, Value weight, Word known, bool live) {
        bool queues = false;
        if (live) {
            const Word candidate = word(sum(value(rows.key[row]), weight));
            if (candidate < known && candidate < atomicMin(search.distances + head, candidate)) {
                if (SIGNED) __stcg(search.parents + head, rows.tag[row]);
                queues = collects && head < search.active && search.passes(head);
                if (search.keyed() && search.key(head, candidate) >= high) queues = false;
            }
        }
        queue.append(queues, head);
    }
};

// key: the distance of the head; settled tails are below `settled`, those not yet pulled from not below `low`.
struct Pull {
    const Search& search;
    Control* control;
    Word settled;
    Value low;

    __device__ bool wants(const Rows& rows, int row, Value weight) const {
        if (!Distance::fits(low, weight)) note_overflow(control, 1);
        return word(sum(low, weight)) < rows.key[row];
    }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int tail) const { return __ldcg(search.distances + tail); }
    __device__ void visit(Rows& rows, int row, int, int tail, Value weight, Word known, bool live) const {
        if (!live || known >= settled || !search.passes(tail)) return;
        if (!Distance::fits(value(known), weight)) note_overflow(control, 1);
        const Word candidate = word(sum(value(known), weight));
        if (candidate < rows.key[row]) atomicMin(&rows.key[row], candidate);
    }
};

// Is there a vertex that only sums which do not fit would reach?
struct Unfit {
    const Search& search;
    Control* control;

    __device__ bool wants(const Rows&, int, Value) const { return true; }
    __device__ void refuse(const Rows&, int, int, Value) const {}
    __device__ Word load(int head) const { return __ldcg(search.distances + head); }
    __device__ void visit(const Rows& rows, int row, int, int, Value weight, Word known, bool live) const {
        if (live && known == UNREACHABLE && !Distance::fits(value(rows.key[row]), weight)) note_overflow(control, 2);
    }
};

// Relaxes the arcs of up to 32 vertices that this warp has found, without waiting for the others. Rows that are long or
// hold arcs back go to the queue: these are for one warp at a time.
__device__ inline void run_ahead(const Search& search, Rows& rows, Push& push, long long& touched) {
    const bool mine = threadIdx.x % 32 < push.queue.count;
    int vertex = push.queue.take(), length = 0;
    Word distance = 0;
    long long begin = 0;
    bool waits = false;
    if (mine) {
        distance = __ldcg(search.distances + vertex);
        const Word pushed = __ldcg(search.pushed + vertex);
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
        __stcg(search.pushed + vertex, distance);
        __stcg(search.next + vertex, UNREACHABLE);
        __stcg(search.cursor + vertex, length);
    }
    push.queue.store(waits, vertex);
}

// Relaxes the arcs of `size` vertices. Only `sources` may be closed: they push at the distance they started with, all
// their arcs at once, and collect nothing.
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
            const Word pushed = __ldcg(search.pushed + vertex);
            distance = sources ? pushed : __ldcg(search.distances + vertex);
            begin = search.indptr[vertex];
            if (pushed == distance && !sources) place = __ldcg(search.cursor + vertex);
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
                    __stcg(search.next + vertex, word(sum(value(distance), weight)));
                    __stcg(search.cursor + vertex, end);
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
            __stcg(search.pushed + vertex, distance);
            if (!holds) {
                // It may be queued already for the very distance that was pushed: then nothing is left to do.
                __stcg(search.next + vertex, UNREACHABLE);
                __stcg(search.cursor + vertex, (int)(search.indptr[vertex + 1] - begin));
            }
        }
        const bool piles = mine && holds && !sources && __ldcg(search.piled + vertex) != window;
        if (piles) __stcg(search.piled + vertex, window);
        pile.append(piles, vertex);
        for (int i = 0; i < ahead && queue.count; ++i) run_ahead(search, rows, push, touched);
    });
    Grid::count(grid.local.touched, touched);
}

// Relaxes pieces that the last step cut off.
__device__ inline void relax_pieces(const Search& search, Grid& grid, Rows& rows, Stage& queue, const Piece* pieces,
                                    int size, Word high) {
    const int lane = threadIdx.x % 32;
    long long touched = 0;
    Push push{search, grid.control, queue, search.keyed() ? UNREACHABLE : high, high, true};
    grid.share(size, 1, &grid.tally().taken_pieces, [&](long long i) {
        Piece piece = piece_at(pieces, i);
        // A vertex whose distance fell in the meantime is in the queue, and starts again.
        if (__ldcg(search.distances + piece.vertex) != piece.key) return;
        const long long begin = search.indptr[piece.vertex] + piece.place;
        walk(rows, search.indices, search.weights, begin, piece.place, lane ? 0 : piece.length, piece.key, piece.vertex,
             touched, push);
    });
    Grid::count(grid.local.touched, touched);
}

// Every vertex that is not settled takes the minimum over its arcs from vertices that are.
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
                __stcg(search.next + vertex, UNREACHABLE);
            } else {
                begin = search.in_indptr[vertex];
                left = (int)(search.in_indptr[vertex + 1] - begin);
            }
        }
        const Word known = distance;
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

// Opens a window up to `high`: of the vertices 0, 1, ... (list: null) or of those listed, what is due goes to the
// queue, what is due later to the pile. With `counts`, how many arcs settled vertices hold back, and how many lead to
// others.
__device__ inline void open(const Search& search, Grid& grid, Stage& queue, Stage& pile, const int* list, int size,
                            Word low, Word high, bool counts) {
    const int lane = threadIdx.x % 32, threads = gridDim.x * THREADS;
    long long due = NEVER, held = 0, entering = 0;
    for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < size; first += threads) {
        bool ready = false, waits = false;
        int vertex = 0;
        if (first + lane < size) {
            vertex = list ? __ldcg(list + first + lane) : (int)first + lane;
            const Word distance = __ldcg(search.distances + vertex), pushed = __ldcg(search.pushed + vertex);
            Word from = __ldcg(search.next + vertex);
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
                    held += search.indptr[vertex + 1] - search.indptr[vertex] - __ldcg(search.cursor + vertex);
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

// Which distances are asked for: none beyond `limit`, and those up to the farthest of `list`, in the original numbering.
struct Targets {
    const int* __restrict__ rank;
    const int* __restrict__ list;
    int size;
    Word limit;  // UNREACHABLE: all

    __device__ Word end() const { return min(limit, (Word)(UNREACHABLE - 1)) + 1; }  // of all windows

    // All threads of the block call. Inlined, these would take registers from the loops that count.
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
    // That of the farthest that is reached, if one is.
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

// A search: its lists, where it stands, and its steps. All threads of the grid call a step, and a barrier ends it.
struct Run {
    const Search& search;
    Grid& grid;
    Rows& rows;
    int (&staged)[2][64];
    int* queues;  // of this step and of the next, by turns
    int* piles;   // of this window and of the next, by turns
    int capacity;
    Piece* pieces;  // as queues
    long long piece_capacity;
    int entered;  // vertices that may have arcs into them; 0: no pulls
    double width;

    int window = 1;
    Word low = LOWEST, high = LOWEST;  // settled below low; relaxed below high
    Value pulled = 0;                  // what is settled below has been pulled from
    bool scans = true;                 // the pile is worth less than looking at all vertices
    int rounds = 0, windows = 0, pulls = 0;
    long long touched = 0;  // arcs

    __device__ int* queue_of(int step) const { return queues + (step % 2 ? (long long)search.n : 0); }
    __device__ int* pile_of(int window) const { return piles + (window % 2 ? (long long)capacity : 0); }
    __device__ Piece* pieces_of(int step) const { return pieces + (step % 2 ? piece_capacity : 0); }
    __device__ Stage queue() const { return {staged[0], queue_of(grid.step), &grid.tally().queued, search.n}; }
    __device__ Stage pile() const { return {staged[1], pile_of(window), &grid.control->piled[window % 3], capacity}; }

    __device__ void barrier() {
        grid.barrier();
        touched += grid.last.touched;
    }

    // Nothing is reached but the sources, in the original numbering; closed ones are queued.
    __device__ void begin_at(const int* rank, const int* sources, const Value* starts, int size) {
        const int lane = threadIdx.x % 32, threads = gridDim.x * THREADS;
        for (long long v = (long long)blockIdx.x * THREADS + threadIdx.x; v < search.n; v += threads) {
            __stcg(search.distances + v, UNREACHABLE);
            __stcg(search.pushed + v, UNREACHABLE);
            __stcg(search.next + v, UNREACHABLE);
            __stcg(search.queued + v, 0);
            __stcg(search.piled + v, 0);
            if (SIGNED) __stcg(search.parents + v, -1);
        }
        grid.barrier();
        Stage closed_sources = queue();
        for (long long first = (long long)blockIdx.x * THREADS + threadIdx.x - lane; first < size; first += threads) {
            bool closed_source = false;
            int vertex = 0;
            if (first + lane < size) {
                vertex = rank[sources[first + lane]];
                const Word distance = word(starts[first + lane] + Value(0));
                __stcg(search.distances + vertex, distance);
                closed_source = vertex < search.active && !search.passes(vertex);
                if (closed_source) __stcg(search.pushed + vertex, distance);
            }
            closed_sources.append(closed_source, vertex);
        }
        closed_sources.flush();
        grid.barrier();
    }

    // Distances become words, and closed sources are queued. A search that resumes goes on with what it had.
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
                __stcg(search.piled + vertex, 0);
                if (SIGNED && !resumes) __stcg(search.parents + vertex, -1);
                if (!resumes) {
                    const bool starts = distance < UNREACHABLE && (!has_pending || pending[vertex]);
                    closed_source = starts && vertex < search.active && !search.passes(vertex);
                    __stcg(search.pushed + vertex, starts && !closed_source ? UNREACHABLE : distance);
                    __stcg(search.next + vertex, UNREACHABLE);
                }
            }
            sources.append(closed_source, vertex);
        }
        sources.flush();
        grid.barrier();
    }

    // Queues what is due below `high`. Returns whether settled vertices hold back enough arcs to pull instead.
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

    // What is not settled takes the minimum over its arcs from what is.
    __device__ void pull_from_settled() {
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

    // Relaxes arcs below `high` until none is left; false: not after `most_rounds`. Of closed `sources` all arcs, once.
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

    // Arcs that were cut off count as relaxed: where they will not be, their vertices have to begin again.
    __device__ void restart_pieces(int size) {
        const Piece* rest = pieces_of(grid.step - 1);
        for (int i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS) {
            __stcg(search.pushed + __ldcg(&rest[i].vertex), UNREACHABLE);
        }
    }

    // Windows cost barriers where they are narrow, and arcs relaxed in vain where they are wide.
    __device__ void fit_width(int rounds_of_window, long long read) {
        const long long arcs = search.indptr[search.n];
        if (read < max(arcs / WIDEN, (long long)rounds_of_window * THIN)) {
            width *= 2;
        } else if (read > arcs) {
            width /= 2;
        }
    }

    // A sum did not fit: did it matter?
    __device__ void look_for_unfit() {
        grid.barrier();
        Unfit visitor{search, grid.control};
        long long read = 0;
        grid.share(search.active, 32, &grid.tally().taken, [&](long long first) {
            int vertex = (int)first + threadIdx.x % 32, left = 0;
            long long begin = 0;
            Word distance = vertex < search.active ? __ldcg(search.distances + vertex) : UNREACHABLE;
            if (distance < UNREACHABLE && search.passes(vertex)) {
                begin = search.indptr[vertex];
                left = (int)(search.indptr[vertex + 1] - begin);
            }
            walk(rows, search.indices, search.weights, begin, 0, min(left, 1 << 25), distance, vertex, read, visitor);
        });
        grid.barrier();
    }

    // Leaves distances, or once all are final those that are asked for in `result`, in the original numbering.
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

// What a search is given beside the arrays that it only reads. distances, pushed, next (n) words, cursor, queued, piled
// (n), parents (n) if SIGNED; queues (2, n), piles (2, capacity), pieces (2, piece_capacity). entered: vertices that may
// have arcs into them, as far as in_indptr is given; 0: no pulls. `resume` goes on where a launch stopped after
// `most_rounds`, for which it leaves finished = 0.
struct Arguments {
    Word *distances, *pushed, *next;
    const Word* potentials;  // null: none
    int *cursor, *queued, *piled, *parents, *queues, *piles;
    Piece* pieces;
    Control* control;
    Value* result;  // null: `distances` are improved in place
    long long piece_capacity, most_rounds;
    double width;
    Value limit;
    int n, active, entered, ahead, capacity, source_count, target_count;
    int has_through, has_pending, resume;
};

// rank (n), sources and starts (source_count), targets (target_count), result (n), all of the original numbering, are
// for a search that begins at sources: its result is cut beyond `limit` and beyond the farthest target that is reached,
// and it ends there, unless weights may be negative. A search without sources improves `distances` in place.
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
    const Search search{indptr,       indices,       weights,         in_indptr,
                        in_indices,   in_weights,    through,         given.has_through != 0,
                        given.n,      given.active,  given.ahead,     given.distances,
                        given.pushed, given.next,    given.cursor,    given.queued,
                        given.piled,  given.parents, given.potentials};
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
            run.pull_from_settled();
        } else if (!sources && !grid.last.queued) {
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
    // What no sum that fits reaches is beyond any limit.
    const bool asked_for_all = finished && !early && asked.limit == UNREACHABLE;
    if (!Distance::SUMS_FIT && asked_for_all && __ldcg(&control->overflow) == 1) run.look_for_unfit();
    run.finish(finished, asked, given.result);
}

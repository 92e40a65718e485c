// Up to 32 separate shortest path searches at once, in place: each lane of a warp has one search. An arc is read once
// for all searches, and the distances of its head are neighbours in memory.
//
// Searches share an arc only if they reach it at about the same time, but a search that begins far from the dense part
// of the graph is late everywhere. So each search has a clock, which shows 0 at the distance at which the search
// reaches the hub, the vertex with most arcs. If there is no hub, the clock shows 0 at the start. By this clock the
// search proceeds as in search.cu:
//
//     open     The vertices that came nearer in some search, or hold back arcs, and are due before `high` form a queue.
//     relax    A vertex of the queue takes the arcs that are due before `high` in any search that waits for them, and
//              relaxes them in all searches that wait; it holds back further arcs. A vertex far before the hub holds
//              back no arcs.
//     pull     If a pull is cheaper than relaxing the arcs held back, every vertex takes the minimum over its arcs. It
//              reads arcs as long as their weight, added to the least distance of a waiting vertex, can improve its
//              distance in some search. Afterwards only vertices that the pull improved have arcs to relax.
//
// Clocks, windows and pulls determine only the order of work. Whatever the order, no vertex has arcs to relax at the
// end.
//
// begin_batch runs before and puts the sources at 0 in the columns; end_batch runs after and makes rows of the columns.
//
// Launch: cooperative, BLOCKS blocks of THREADS threads on every multiprocessor, unless a kernel says otherwise.
// Macros: the macros of search.cu except SHORT; MARGIN, the time before the hub that counts as far, in widths of the
//         first window.

#include "search.cuh"

using Key = decltype(Value(0) + 0.0f);  // a time by the clock of a search

constexpr int IN_FLIGHT = 8;                   // heads or tails whose distances a warp loads at a time
constexpr int HEAD = PIECE < 64 ? PIECE : 64;  // arcs of a long row that are pulled before the row is cut into pieces
constexpr int WORTHWHILE = 16;                 // a pull is considered if more than 1 / 16 of all arcs is held back

struct Batch {
    const long long* __restrict__ indptr;
    const int* __restrict__ indices;
    const Value* __restrict__ weights;
    const long long* __restrict__ in_indptr;
    const int* __restrict__ in_indices;
    const Value* __restrict__ in_weights;
    const bool* __restrict__ through;
    bool has_through;
    int active, searches;
    long long stride;
    Word* distances;
    unsigned* fresh;  // searches in which the vertex came nearer since it last relaxed its arcs
    unsigned* held;   // searches for which the vertex holds back the arcs from the cursor on
    int* cursor;      // the first arc held back; of a closed vertex: the searches that begin there
    Key* next;        // when the arc at the cursor is due
    int* queued;      // the step that last queued the vertex
    Control* control;

    __device__ bool passes(int vertex) const { return !has_through || through[vertex]; }
    __device__ Word* row(int vertex) const { return distances + vertex * stride + threadIdx.x % 32; }
    __device__ Word known(int vertex, bool wanted = true) const {
        return wanted && threadIdx.x % 32 < searches ? __ldcg(row(vertex)) : UNREACHABLE;
    }
};

__device__ inline Key forever() {
    return (Key)__int_as_float(0x7f800000);
}

__device__ inline Key least_of_warp(Key key) {
    for (int lanes = 16; lanes; lanes /= 2) key = min(key, __shfl_xor_sync(ALL_LANES, key, lanes));
    return key;
}

// Converts the bits of a key to an integer in the order of keys, and back.
__device__ inline long long ordered(long long bits) {
    return bits ^ (bits >> 63 & 0x7fffffffffffffff);
}

// Calls visit(v, distance) in all lanes for the bits v of `which`; each lane gets the distance of vertex first + v in
// its search.
template <class Visit>
__device__ inline void for_rows(const Batch& batch, int first, unsigned which, Visit visit) {
    constexpr int AT_A_TIME = 4;
    while (which) {
        int v[AT_A_TIME];
        Word distance[AT_A_TIME];
#pragma unroll
        for (int r = 0; r < AT_A_TIME; ++r) {
            v[r] = __ffs(which) - 1;
            distance[r] = v[r] < 0 ? UNREACHABLE : batch.known(first + v[r]);
            which &= which - 1;
        }
#pragma unroll
        for (int r = 0; r < AT_A_TIME; ++r) {
            if (v[r] >= 0) visit(v[r], distance[r]);
        }
    }
}

// Lowers `all`, a word for each lane, to the least word that any warp has for the lane. All threads of the block call.
__device__ inline void lower(Word* all, Word (&shared)[32], Word mine) {
    const int lane = threadIdx.x % 32;
    if (threadIdx.x < 32) shared[lane] = UNREACHABLE;
    __syncthreads();
    atomicMin(&shared[lane], mine);
    __syncthreads();
    if (threadIdx.x < 32 && shared[lane] < UNREACHABLE) atomicMin(all + lane, shared[lane]);
}

// Relaxes the arcs of a vertex at `distance`, from arc `first` on, that are due before `high`. An arc is due at
// `earliest` plus its weight, so the first arcs are relaxed; returns their number. With `collects`, queues the heads
// that came nearer before `high`.
__device__ inline int push(const Batch& batch, Grid& grid, Stage& queue, Word distance, Key earliest, Key hub, Key high,
                           bool collects, long long first, int length) {
    const int lane = threadIdx.x % 32;
    const bool reached = distance < UNREACHABLE;
    int done = 0, count = 32;
    for (; count == 32 && done < length; done += count) {
        const bool there = done + lane < length;
        const int head = there ? batch.indices[first + done + lane] : 0;
        const Value weight = there ? batch.weights[first + done + lane] : Value(0);
        count = __popc(__ballot_sync(ALL_LANES, there && earliest + (Key)weight < high));
        unsigned nearer = 0;
        bool soon = false;
        for (int arc = 0; arc < count; arc += IN_FLIGHT) {
            Word known[IN_FLIGHT], candidate[IN_FLIGHT];
            Word* at[IN_FLIGHT];
#pragma unroll
            for (int a = 0; a < IN_FLIGHT; ++a) {
                const bool live = reached && arc + a < count;
                at[a] = batch.row(__shfl_sync(ALL_LANES, head, arc + a));
                const Value w = __shfl_sync(ALL_LANES, weight, arc + a);
                if (live && !Distance::fits(value(distance), w)) note_overflow(batch.control, 1);
                candidate[a] = live ? word(sum(value(distance), w)) : UNREACHABLE;
                known[a] = live ? __ldcg(at[a]) : LOWEST;
            }
#pragma unroll
            for (int a = 0; a < IN_FLIGHT; ++a) {
                const bool improves = candidate[a] < known[a] && candidate[a] < atomicMin(at[a], candidate[a]);
                const unsigned improved = __ballot_sync(ALL_LANES, improves);
                if (improved) {
                    const bool in_time = __any_sync(ALL_LANES, improves && (Key)value(candidate[a]) - hub < high);
                    if (lane == arc + a) {
                        nearer = improved;
                        soon = in_time;
                    }
                }
            }
        }
        bool queues = false;
        if (nearer && head < batch.active && batch.passes(head)) {
            atomicOr(batch.fresh + head, nearer);
            queues = collects && soon && atomicExch(batch.queued + head, grid.step) != grid.step;
        }
        queue.append(queues, head);
    }
    return done;
}

// Relaxes the arcs of a vertex that are due before `high`. With `sources`, the vertex is a closed source, which relaxes
// all its arcs and queues no heads.
__device__ inline void relax(const Batch& batch, Grid& grid, Stage& queue, Piece* pieces, int vertex, Key hub, Key high,
                             Key margin, bool sources, long long& touched) {
    const int lane = threadIdx.x % 32;
    // `fresh` is read before the distances; other warps set it after they store a distance.
    unsigned fresh = 0;
    if (lane == 0) fresh = atomicExch(batch.fresh + vertex, 0u);
    fresh = __shfl_sync(ALL_LANES, fresh, 0);
    const unsigned waiting = fresh | __ldcg(batch.held + vertex);
    if (!waiting) return;
    const long long begin = batch.indptr[vertex];
    const int degree = (int)(batch.indptr[vertex + 1] - begin);
    const Word distance = batch.known(vertex, waiting >> lane & 1);
    Key earliest = least_of_warp(distance < UNREACHABLE ? (Key)value(distance) - hub : forever());
    if (sources || earliest < -margin) earliest = -forever();
    int place = fresh ? 0 : __ldcg(batch.cursor + vertex);
    const int whole = sources ? degree : min(degree - place, PIECE);
    const int done = push(batch, grid, queue, distance, earliest, hub, high, !sources, begin + place, whole);
    if (lane == 0) touched += done;
    place += done;
    if (done == whole && place < degree) {
        int end = degree;
        for (int low = place; low < end;) {
            const int middle = low + (end - low) / 2;
            if (earliest + (Key)batch.weights[begin + middle] < high) {
                low = middle + 1;
            } else {
                end = middle;
            }
        }
        if (lane == 0 && end > place) cut(grid, pieces, vertex, (Word)waiting, place, end - place);
        place = end;
    }
    if (lane == 0 && !sources) {
        __stcg(batch.held + vertex, place < degree ? waiting : 0u);
        __stcg(batch.cursor + vertex, place);
        __stcg(batch.next + vertex, place < degree ? earliest + (Key)batch.weights[begin + place] : forever());
    }
}

// Returns the minimum of `distance` and of the sums over the arcs from `first` on, as far as they can improve it.
__device__ inline Word pull(const Batch& batch, Word distance, Word floor, long long first, int length,
                            long long& touched) {
    const int lane = threadIdx.x % 32;
    for (int base = 0; base < length; base += 32) {
        const int count = min(32, length - base);
        const bool there = lane < count;
        const int tail = there ? batch.in_indices[first + base + lane] : 0;
        const Value weight = there ? batch.in_weights[first + base + lane] : Value(0);
        const unsigned pushing = __ballot_sync(ALL_LANES, there && batch.passes(tail));
        for (int arc = 0; arc < count; arc += IN_FLIGHT) {
            // Arcs after this one are heavier: if it cannot improve a distance, they cannot either.
            const Value least = __shfl_sync(ALL_LANES, weight, arc);
            const bool waits = floor < UNREACHABLE;
            if (waits && !Distance::fits(value(floor), least)) note_overflow(batch.control, 1);
            if (!__any_sync(ALL_LANES, waits && word(sum(value(floor), least)) < distance)) return distance;
            if (lane == 0) touched += min(IN_FLIGHT, count - arc);
            Word known[IN_FLIGHT];
#pragma unroll
            for (int a = 0; a < IN_FLIGHT; ++a) {
                known[a] = batch.known(__shfl_sync(ALL_LANES, tail, arc + a), pushing >> (arc + a) & 1);
            }
#pragma unroll
            for (int a = 0; a < IN_FLIGHT; ++a) {
                const Value w = __shfl_sync(ALL_LANES, weight, arc + a);
                const bool reached = known[a] < UNREACHABLE;
                if (reached && !Distance::fits(value(known[a]), w)) note_overflow(batch.control, 1);
                if (reached) distance = min(distance, word(sum(value(known[a]), w)));
            }
        }
    }
    return distance;
}

// The searches: their lists, their state, and their steps. All threads of the grid call a step.
struct Run {
    const Batch& batch;
    Grid& grid;
    int (&staged)[64];
    Word (&block_lows)[32];
    int n, entered;  // entered: number of vertices that may have arcs into them; 0: no pulls
    int* queues;     // two queues in turn: of this step and of the next step
    Piece* pieces;   // two lists in turn, like `queues`
    long long piece_capacity;
    Word* floors;  // by search: no waiting vertex is nearer
    double width;  // width of a window

    Key margin = (Key)(width * MARGIN);
    Key hub = 0;  // distance at which the search of this lane reaches the hub
    Key high = -forever();
    int rounds = 0, windows = 0, pulls = 0;
    long long touched = 0, total = 0;  // arcs read: by this thread in this step; by all threads in earlier steps

    __device__ static int lane() { return threadIdx.x % 32; }
    __device__ static long long first_of_warp() { return (long long)Grid::warp() * 32; }
    __device__ static int stride_of_grid() { return Grid::warps() * 32; }
    __device__ int* queue_of(int step) const { return queues + (step % 2 ? (long long)n : 0); }
    __device__ Piece* pieces_of(int step) const { return pieces + (step % 2 ? piece_capacity : 0); }
    __device__ Stage queue() const { return {staged, queue_of(grid.step), &grid.tally().queued, n}; }

    __device__ void barrier() {
        Grid::count(grid.local.touched, touched);
        touched = 0;
        grid.barrier();
        total += grid.last.touched;
    }

    __device__ Key a_window_after(Key time) {
        Key end = time + (Key)width;
        for (; time < forever() && !(end > time); end = time + (Key)width) width *= 2;
        return end;
    }

    // Initializes the state of the vertices, queues closed sources and sets the clocks.
    __device__ void begin(const Word* hub_distances, bool has_hub, Word* clocks) {
        Stage sources = queue();
        Word earliest = UNREACHABLE;
        for (long long first = first_of_warp(); first < batch.active; first += stride_of_grid()) {
            const int size = (int)min(32ll, batch.active - first), vertex = (int)first + lane();
            unsigned begins = 0;
            for_rows(batch, (int)first, ALL_LANES >> (32 - size), [&](int v, Word distance) {
                const unsigned reached = __ballot_sync(ALL_LANES, distance < UNREACHABLE);
                if (lane() == v) begins = reached;
                if (has_hub && distance < UNREACHABLE) {
                    earliest = min(earliest, word(sum(value(distance), value(hub_distances[first + v]))));
                }
            });
            bool closed_source = false;
            if (lane() < size) {
                closed_source = begins && !batch.passes(vertex);
                __stcg(batch.fresh + vertex, begins);
                __stcg(batch.held + vertex, 0u);
                __stcg(batch.cursor + vertex, (int)begins);
                __stcg(batch.next + vertex, forever());
                __stcg(batch.queued + vertex, 0);
            }
            sources.append(closed_source, vertex);
        }
        sources.flush();
        lower(clocks, block_lows, earliest);
        barrier();
        const Word clock = __ldcg(clocks + lane());
        hub = clock < UNREACHABLE ? (Key)value(clock) : Key(0);
    }

    __device__ void push_closed_sources() {
        if (!grid.last.queued) return;
        const int* list = queue_of(grid.step - 1);
        Stage none = queue();
        grid.share(grid.last.queued, 1, &grid.tally().taken, [&](long long i) {
            relax(batch, grid, none, nullptr, __ldcg(list + i), hub, forever(), margin, true, touched);
        });
        barrier();
        ++rounds;
    }

    // Queues the vertices that are due before `high`. Counts the waiting arcs in `held`, and finds the next due time.
    __device__ void open_window() {
        Stage ready = queue();
        if (blockIdx.x == 0 && threadIdx.x < 32) __stcg(floors + lane(), UNREACHABLE);
        long long due = NEVER, held_back = 0;
        for (long long first = first_of_warp(); first < batch.active; first += stride_of_grid()) {
            const int vertex = (int)first + lane();
            const bool there = vertex < batch.active;
            const unsigned nearer = there ? __ldcg(batch.fresh + vertex) : 0u;
            Key from = there ? __ldcg(batch.next + vertex) : forever();
            if (from < forever() || nearer) {
                held_back +=
                    batch.indptr[vertex + 1] - batch.indptr[vertex] - (nearer ? 0 : __ldcg(batch.cursor + vertex));
            }
            for_rows(batch, (int)first, __ballot_sync(ALL_LANES, nearer != 0), [&](int v, Word distance) {
                const bool mine = __shfl_sync(ALL_LANES, nearer, v) >> lane() & 1;
                const Key time = least_of_warp(mine ? (Key)value(distance) - hub : forever());
                if (lane() == v) from = min(from, time);
            });
            if (from >= high && from < forever()) due = min(due, ordered(__double_as_longlong((double)from)));
            ready.append(from < high, vertex);
        }
        ready.flush();
        Grid::earliest(grid.local.due, due);
        Grid::count(grid.local.held, held_back);
        barrier();
    }

    // Returns whether a pull is cheaper than relaxing the arcs held back. It takes two steps that queue no vertex, so
    // the list of the queue keeps its place.
    __device__ bool prefers_to_pull(long long held_back) {
        find_floors();
        barrier();
        Grid::count(grid.local.open, price_of_pull());
        barrier();
        return (double)grid.last.open * PULL < (double)held_back;
    }

    __device__ void find_floors() {
        Word least = UNREACHABLE;
        for (long long first = first_of_warp(); first < batch.active; first += stride_of_grid()) {
            const int vertex = (int)first + lane();
            const unsigned waiting =
                vertex < batch.active ? __ldcg(batch.fresh + vertex) | __ldcg(batch.held + vertex) : 0u;
            for_rows(batch, (int)first, __ballot_sync(ALL_LANES, waiting != 0), [&](int v, Word distance) {
                if (__shfl_sync(ALL_LANES, waiting, v) >> lane() & 1) least = min(least, distance);
            });
        }
        lower(floors, block_lows, least);
    }

    __device__ Word floor() const { return lane() < batch.searches ? __ldcg(floors + lane()) : UNREACHABLE; }

    // Returns the number of arcs that a pull would read, for the vertices of this thread.
    __device__ long long price_of_pull() const {
        const Word floor = this->floor();
        long long price = 0;
        for (long long first = first_of_warp(); first < entered; first += stride_of_grid()) {
            const int there = (int)min(32ll, entered - first), vertex = (int)first + lane();
            Key most = 0;
            for_rows(batch, (int)first, ALL_LANES >> (32 - there), [&](int v, Word distance) {
                Key reach = floor >= distance         ? Key(0)
                            : distance == UNREACHABLE ? forever()
                                                      : (Key)value(distance) - (Key)value(floor);
                reach = -least_of_warp(-reach);
                if (lane() == v) most = reach;
            });
            if (lane() < there) {
                long long low = batch.in_indptr[vertex], end = batch.in_indptr[vertex + 1], begin = low;
                if (end > low && (Key)batch.in_weights[end - 1] < most) low = end;
                while (low < end) {
                    const long long middle = low + (end - low) / 2;
                    if ((Key)batch.in_weights[middle] < most) {
                        low = middle + 1;
                    } else {
                        end = middle;
                    }
                }
                price += end - begin;
            }
        }
        return price;
    }

    // Every vertex takes the minimum over its arcs; then only vertices that came nearer have arcs to relax.
    __device__ void pull_all() {
        const Word floor = this->floor();
        grid.share(entered, 8, &grid.tally().taken, [&](long long first) {
            const int there = (int)min(8ll, entered - first), vertex = (int)first + lane();
            const long long begin = lane() < there ? batch.in_indptr[vertex] : 0;
            const int degree = lane() < there ? (int)(batch.in_indptr[vertex + 1] - begin) : 0;
            unsigned nearer = 0;
            for (int v = 0; v < there; ++v) {
                const Word known = lane() < batch.searches ? batch.known((int)first + v) : LOWEST;
                const int length = __shfl_sync(ALL_LANES, degree, v);
                const int first_part = length > PIECE ? HEAD : length;
                const Word distance = pull(batch, known, floor, __shfl_sync(ALL_LANES, begin, v), first_part, touched);
                const bool improves = distance < known;
                if (improves) __stcg(batch.row((int)first + v), distance);
                const unsigned improved = __ballot_sync(ALL_LANES, improves);
                if (lane() == v) {
                    nearer = improved;
                    if (first_part < length) {
                        cut(grid, pieces_of(grid.step), vertex, 0, first_part, length - first_part);
                    }
                }
            }
            if (lane() < there && vertex < batch.active) {
                __stcg(batch.fresh + vertex, batch.passes(vertex) ? nearer : 0u);
                __stcg(batch.held + vertex, 0u);
                __stcg(batch.next + vertex, forever());
            }
        });
        barrier();
        if (grid.last.pieces) pull_pieces(floor);
        ++pulls;
    }

    __device__ void pull_pieces(Word floor) {
        const Piece* cut_off = pieces_of(grid.step - 1);
        grid.share(grid.last.pieces, 1, &grid.tally().taken_pieces, [&](long long i) {
            const Piece piece = piece_at(cut_off, i);
            const Word known = lane() < batch.searches ? batch.known(piece.vertex) : LOWEST;
            const Word distance =
                pull(batch, known, floor, batch.in_indptr[piece.vertex] + piece.place, piece.length, touched);
            const bool improves = distance < known && distance < atomicMin(batch.row(piece.vertex), distance);
            const unsigned improved = __ballot_sync(ALL_LANES, improves);
            if (lane() == 0 && improved && piece.vertex < batch.active && batch.passes(piece.vertex)) {
                atomicOr(batch.fresh + piece.vertex, improved);
            }
        });
        barrier();
    }

    // Relaxes arcs that are due before `high`, first of `size` vertices in a list, then of vertices that come nearer.
    __device__ void relax_window(const int* list, int size) {
        ++windows;
        for (int piece_count = 0; size || piece_count; size = grid.last.queued, piece_count = grid.last.pieces) {
            const Piece* cut_off = pieces_of(grid.step - 1);
            Stage nearer = queue();
            grid.share(piece_count, 1, &grid.tally().taken_pieces, [&](long long i) {
                const Piece piece = piece_at(cut_off, i);
                const Word distance = batch.known(piece.vertex, (unsigned)piece.key >> lane() & 1);
                push(batch, grid, nearer, distance, -forever(), hub, high, true,
                     batch.indptr[piece.vertex] + piece.place, piece.length);
                if (lane() == 0) touched += piece.length;
            });
            grid.share(size, 1, &grid.tally().taken, [&](long long i) {
                relax(batch, grid, nearer, pieces_of(grid.step), __ldcg(list + i), hub, high, margin, false, touched);
            });
            nearer.flush();
            barrier();
            ++rounds;
            list = queue_of(grid.step - 1);
        }
    }

    // Narrow windows cost barriers, wide windows relax arcs in vain.
    __device__ void fit_width(int rounds_of_window, long long read) {
        const long long arcs = batch.indptr[n];
        if (read < max(arcs / WIDEN, (long long)rounds_of_window * THIN)) {
            width *= 2;
        } else if (read > arcs) {
            width /= 2;
        }
    }

    // A sum did not fit: finds out whether some vertex is reached by no other sum.
    __device__ void look_for_unfit() {
        grid.share(batch.active, 1, &grid.tally().taken, [&](long long vertex) {
            const bool pushes = batch.passes((int)vertex) || __ldcg(batch.cursor + vertex) >> lane() & 1;
            const Word distance = batch.known((int)vertex, pushes);
            const long long end = batch.indptr[vertex + 1];
            for (long long arc = batch.indptr[vertex]; arc < end && distance < UNREACHABLE; ++arc) {
                if (!Distance::fits(value(distance), batch.weights[arc]) &&
                    batch.known(batch.indices[arc]) == UNREACHABLE) {
                    note_overflow(batch.control, 2);
                }
            }
        });
    }

    __device__ void finish() {
        grid.barrier();
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            Control* control = batch.control;
            control->rounds += rounds;
            control->windows += windows;
            control->pulls += pulls;
            control->touched += total;
            control->finished = 1;
        }
    }
};

// distances (n, stride): the first `searches` columns from the pointer on, 1 to 32, belong to the searches. fresh,
// held, cursor, queued, next (n); queues (2, n), pieces (2, piece_capacity); lows (2, 32), UNREACHABLE at first. With
// has_hub, hub_distances (n) are the distances of the vertices to the hub. entered: number of vertices that may have
// arcs into them; 0: no pulls.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    search_batch(const long long* __restrict__ indptr, const int* __restrict__ indices,
                 const Value* __restrict__ weights, const long long* __restrict__ in_indptr,
                 const int* __restrict__ in_indices, const Value* __restrict__ in_weights,
                 const bool* __restrict__ through, const Word* __restrict__ hub_distances, int has_through, int has_hub,
                 int n, int active, int entered, Word* distances, long long stride, int searches, unsigned* fresh,
                 unsigned* held, int* cursor, int* queued, Key* next, int* queues, Piece* pieces,
                 long long piece_capacity, Word* lows, Control* control, double width) {
    __shared__ int staged[WARPS][64];
    __shared__ Word block_lows[32];
    __shared__ Tally tallies[2];
    const Batch batch{indptr,           indices, weights,  in_indptr, in_indices, in_weights, through,
                      has_through != 0, active,  searches, stride,    distances,  fresh,      held,
                      cursor,           next,    queued,   control};
    Grid grid{control, tallies[0], tallies[1]};
    Run run{batch,  grid,   staged[threadIdx.x / 32], block_lows, n,    entered,
            queues, pieces, piece_capacity,           lows + 32,  width};
    grid.start();
    run.begin(hub_distances, has_hub != 0, lows);
    run.push_closed_sources();
    while (true) {
        run.open_window();
        const int size = grid.last.queued;
        const int* list = run.queue_of(grid.step - 1);
        const long long held_back = grid.last.held;
        if (!size) {
            if (grid.last.due == NEVER) break;
            // There is little work before the hub: one window.
            run.high = max(run.a_window_after((Key)__longlong_as_double(ordered(grid.last.due))), Key(0));
        } else if (entered && run.windows && held_back * WORTHWHILE > indptr[n] && run.prefers_to_pull(held_back)) {
            run.pull_all();
        } else {
            const int rounds = run.rounds;
            const long long total = run.total;
            run.relax_window(list, size);
            run.fit_width(run.rounds - rounds, run.total - total);
            run.high = run.a_window_after(run.high);
        }
    }
    if (__ldcg(&control->overflow)) run.look_for_unfit();
    run.finish();
}

// Sets words (size) to UNREACHABLE. Launch: blocks of THREADS threads, with grid strides.
extern "C" __global__ void reach_nothing(Word* words, long long size) {
    const long long step = (long long)gridDim.x * THREADS;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < size; i += step) words[i] = UNREACHABLE;
}

// Sets the distance of each source to 0 in the column of its search. Launch: blocks of THREADS threads, a thread for
// each of the `searches` sources.
extern "C" __global__ void begin_batch(Word* distances, long long stride, const int* __restrict__ rank,
                                       const int* __restrict__ sources, int searches) {
    const int search = blockIdx.x * THREADS + threadIdx.x;
    if (search < searches) distances[rank[sources[search]] * stride + search] = 0;
}

// Writes rows (searches, n), in the original numbering, from distances (n, searches).
// Launch: grid (n / 32, searches / 32), each rounded up, 32 x 8 threads.
extern "C" __global__ void end_batch(const Word* __restrict__ distances, int searches, const int* __restrict__ rank,
                                     long long n, Word* __restrict__ rows) {
    __shared__ Word square[32][33];  // one column more, so that rows and columns each spread over all banks
    const long long first = blockIdx.x * 32ll;
    const int column = blockIdx.y * 32;
    for (int v = threadIdx.y; v < 32 && first + v < n; v += 8) {
        if (column + threadIdx.x < searches) {
            square[v][threadIdx.x] = distances[(long long)rank[first + v] * searches + column + threadIdx.x];
        }
    }
    __syncthreads();
    for (int s = threadIdx.y; s < 32 && column + s < searches; s += 8) {
        if (first + threadIdx.x < n) rows[(column + s) * n + first + threadIdx.x] = square[threadIdx.x][s];
    }
}

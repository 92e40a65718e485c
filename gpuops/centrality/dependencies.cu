// Dependencies of all vertices on some sources, each source in a block, as gpuops/centrality/__init__.py describes.
//
//     search    Shortest distances from the source. Without weights, level by level. With weights, vertices whose
//               distance fell below `high` relax their arcs, and the others wait in a pile until `high` rises.
//     count     Vertices are taken in rounds, which are the levels if there are any. Otherwise a vertex is ready once
//               all its tight arcs come from vertices of earlier rounds. The numbers of paths of its tails, in the order
//               of its row, add up to its own.
//     depend    The rounds backward: the shares of the heads, in the order of a row, add up to the dependency.
//
// Sums are added by one thread, or by one warp in the order of the row, so their bits do not depend on which threads
// are early. Numbers of paths have exponents, as in tight_arcs_numba.py, with the same bits.
//
// add_vertices and add_arcs then add up the sources: the sources of a group one after the other, the groups in pairs.
//
// U. Brandes, "On variants of shortest-path betweenness centrality and their generic computation", Social Networks 30,
// 2008; A. Davidson, S. Baxter, M. Garland, J. Owens, "Work-efficient parallel GPU methods for single-source shortest
// paths", IPDPS 2014.
//
// Launch: any number of blocks of THREADS threads. Macros: SHORT, arcs of a row that one thread reads.

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = THREADS / 32;
constexpr double SMALLER = 0x1p-512;  // a number of paths is m 2^(512 e)
constexpr double LARGEST = 0x1p256;   // m is less than this
constexpr int GROUP = 16;             // sources that are added one after the other
constexpr int DEPTH = 32;             // levels of the tree of groups, at most
constexpr unsigned long long INFINITE = 0x7ff0000000000000;

// The graph without loops and parallel arcs, and the graph with all arcs reversed; the same for every source.
struct Graph {
    const long long *indptr, *in_indptr;
    const int *heads, *tails;
    const double *lengths, *in_lengths;
    const bool* through;
    int n, weighted, has_through;

    __device__ double length(long long arc) const { return weighted ? lengths[arc] : 1.0; }
    __device__ double in_length(long long arc) const { return weighted ? in_lengths[arc] : 1.0; }
    __device__ bool leaves(int vertex, int source) const { return !has_through || through[vertex] || vertex == source; }
};

// Memory of a block, (n) arrays; or of a source, if sums of arcs need it later.
struct Memory {
    unsigned long long* distances;  // the bits of float64, in the order of the distances
    double *counts, *shares, *inner;
    int* exponents;
    int* lists;  // six lists of `capacity` numbers
    long long capacity;

    __device__ int* list(int number) const { return lists + number * capacity; }
    __device__ int* marks() const { return list(4); }  // the round that a vertex was last listed in
    __device__ int* waits() const { return list(5); }  // whether a vertex has been in the pile
    __device__ double distance(int vertex) const { return __longlong_as_double((long long)__ldcg(distances + vertex)); }
};

// Returns value 2^(-512 gap) for gap >= 0.
__device__ inline double scaled(double value, int gap) {
    for (int left = min(gap, 4); left > 0; --left) value = __dmul_rn(value, SMALLER);
    return value;
}

// The sum of the numbers of paths, and of the numbers of arcs on these paths.
struct Paths {
    double count = 0, arcs = 0;
    int exponent = 0;

    __device__ bool any() const { return count != 0; }
    __device__ void add(const Paths& other) {
        if (other.count == 0) return;
        if (count == 0) {
            *this = other;
            return;
        }
        const int gap = other.exponent - exponent;
        if (gap > 0) {
            count = __dadd_rn(scaled(count, gap), other.count);
            arcs = __dadd_rn(scaled(arcs, gap), other.arcs);
            exponent = other.exponent;
        } else {
            count = __dadd_rn(count, scaled(other.count, -gap));
            arcs = __dadd_rn(arcs, scaled(other.arcs, -gap));
        }
        if (count >= LARGEST) {
            count = scaled(count, 1);
            arcs = scaled(arcs, 1);
            ++exponent;
        }
    }
    __device__ Paths of_lane(int lane) const {
        Paths other;
        other.count = __shfl_sync(ALL_LANES, count, lane);
        other.arcs = __shfl_sync(ALL_LANES, arcs, lane);
        other.exponent = __shfl_sync(ALL_LANES, exponent, lane);
        return other;
    }
};

struct Shares {
    double sum = 0;

    __device__ bool any() const { return sum != 0; }
    __device__ void add(const Shares& other) { sum = __dadd_rn(sum, other.sum); }
    __device__ Shares of_lane(int lane) const { return {__shfl_sync(ALL_LANES, sum, lane)}; }
};

// Whole warps call; every lane has a vertex, where `there` is true. Calls visit(vertex, arc) for all arcs of its row:
// a lane reads a short row, a warp a long one.
template <class Visit>
__device__ inline void for_arcs(const long long* __restrict__ indptr, bool there, int vertex, Visit visit) {
    const int lane = threadIdx.x % 32;
    const long long begin = there ? indptr[vertex] : 0, end = there ? indptr[vertex + 1] : 0;
    if (end - begin <= SHORT) {
        for (long long arc = begin; arc < end; ++arc) visit(vertex, arc);
    }
    for (unsigned left = __ballot_sync(ALL_LANES, end - begin > SHORT); left; left &= left - 1) {
        const int owner = __ffs((int)left) - 1, of_owner = __shfl_sync(ALL_LANES, vertex, owner);
        const long long last = __shfl_sync(ALL_LANES, end, owner);
        for (long long arc = __shfl_sync(ALL_LANES, begin, owner) + lane; arc < last; arc += 32) visit(of_owner, arc);
    }
}

// The same for a sum: returns the sum of term(vertex, arc) over the row, added in its order.
template <class Sum, class Term>
__device__ inline Sum sum_of_row(const long long* __restrict__ indptr, bool there, int vertex, Term term) {
    const int lane = threadIdx.x % 32;
    const long long begin = there ? indptr[vertex] : 0, end = there ? indptr[vertex + 1] : 0;
    Sum sum;
    if (end - begin <= SHORT) {
        for (long long arc = begin; arc < end; ++arc) sum.add(term(vertex, arc));
    }
    for (unsigned left = __ballot_sync(ALL_LANES, end - begin > SHORT); left; left &= left - 1) {
        const int owner = __ffs((int)left) - 1, of_owner = __shfl_sync(ALL_LANES, vertex, owner);
        const long long last = __shfl_sync(ALL_LANES, end, owner);
        Sum whole;
        for (long long first = __shfl_sync(ALL_LANES, begin, owner); first < last; first += 32) {
            Sum mine;
            if (first + lane < last) mine = term(of_owner, first + lane);
            for (unsigned terms = __ballot_sync(ALL_LANES, mine.any()); terms; terms &= terms - 1) {
                whole.add(mine.of_lane(__ffs((int)terms) - 1));
            }
        }
        if (lane == owner) sum = whole;
    }
    return sum;
}

// Counters of a block, in shared memory.
struct Sizes {
    int near, following, far, farther;
    unsigned long long least;
};

// One source in one block; all its threads call the functions.
struct Source {
    const Graph& graph;
    const Memory& memory;
    Sizes& sizes;
    int source;
    double width;  // of a window of the search

    // Calls visit(there, i) for all i below `size`, in whole warps.
    template <class Visit>
    __device__ static void for_all(int first, int size, Visit visit) {
        for (int i = first + threadIdx.x; i - (int)threadIdx.x % 32 < size; i += THREADS) visit(i < size, i);
    }

    __device__ static void append(int* list, int* size, int vertex) { list[atomicAdd(size, 1)] = vertex; }

    __device__ bool tight(int tail, double length, int head) const {
        const double end = memory.distance(head);
        return memory.distance(tail) + length == end && end < __longlong_as_double((long long)INFINITE);
    }
    __device__ bool tight_out(int tail, long long arc) const {
        return graph.leaves(tail, source) && tight(tail, graph.length(arc), graph.heads[arc]);
    }
    __device__ bool tight_in(int head, long long arc) const {
        const int tail = graph.tails[arc];
        return graph.leaves(tail, source) && tight(tail, graph.in_length(arc), head);
    }

    __device__ void search() {
        int near = 0, following = 1, far = 2, farther = 3;  // numbers of lists
        for (int v = threadIdx.x; v < graph.n; v += THREADS) {
            __stcg(memory.distances + v, v == source ? 0 : INFINITE);
            __stcg(memory.marks() + v, 0);
            __stcg(memory.waits() + v, 0);
        }
        if (threadIdx.x == 0) {
            memory.list(near)[0] = source;
            sizes.near = 1;
            sizes.following = sizes.far = sizes.farther = 0;
            sizes.least = INFINITE;
        }
        __syncthreads();
        double low = 0, high = width;
        for (int round = 1;; ++round) {
            for (int size = sizes.near; size > 0; ++round) {
                for_all(0, size, [&](bool there, int i) {
                    relax(there, there ? memory.list(near)[i] : 0, following, far, high, round);
                });
                __syncthreads();
                size = sizes.following;
                __syncthreads();
                if (threadIdx.x == 0) sizes.following = 0;
                const int done = near;
                near = following;
                following = done;
                __syncthreads();
            }
            const int waiting = sizes.far;
            for_all(0, waiting, [&](bool there, int i) {
                const double distance = there ? memory.distance(memory.list(far)[i]) : 0;
                // Vertices that came below `high` have relaxed their arcs.
                if (there && distance >= high)
                    atomicMin(&sizes.least, (unsigned long long)__double_as_longlong(distance));
            });
            if (threadIdx.x == 0) sizes.near = 0;
            __syncthreads();
            if (sizes.least == INFINITE) break;
            low = high;
            const double least = __longlong_as_double((long long)sizes.least);
            // The width may be lost in the sum.
            high = max(least + width, __longlong_as_double((long long)sizes.least + 1));
            for_all(0, waiting, [&](bool there, int i) {
                const int vertex = there ? memory.list(far)[i] : 0;
                const double distance = there ? memory.distance(vertex) : 0;
                if (there && distance >= high) append(memory.list(farther), &sizes.farther, vertex);
                if (there && distance >= low && distance < high) append(memory.list(near), &sizes.near, vertex);
            });
            const int done = far;
            far = farther;
            farther = done;
            __syncthreads();
            if (threadIdx.x == 0) {
                sizes.far = sizes.farther;
                sizes.farther = 0;
                sizes.least = INFINITE;
            }
            __syncthreads();
        }
    }

    __device__ void relax(bool there, int tail, int following, int far, double high, int round) const {
        for_arcs(graph.indptr, there && graph.leaves(tail, source), tail, [&](int from, long long arc) {
            const int head = graph.heads[arc];
            const double end = memory.distance(from) + graph.length(arc);
            const unsigned long long bits = (unsigned long long)__double_as_longlong(end);
            if (bits >= __ldcg(memory.distances + head) || bits >= atomicMin(memory.distances + head, bits)) return;
            if (end < high) {
                if (atomicExch(memory.marks() + head, round) != round)
                    append(memory.list(following), &sizes.following, head);
            } else if (atomicExch(memory.waits() + head, 1) == 0) {
                append(memory.list(far), &sizes.far, head);
            }
        });
    }

    // Without weights: a search by levels, which are the rounds. Returns their number.
    __device__ int search_by_levels(int* order, int* bounds) const {
        for (int v = threadIdx.x; v < graph.n; v += THREADS) {
            __stcg(memory.distances + v, v == source ? 0 : INFINITE);
        }
        if (threadIdx.x == 0) {
            order[0] = source;
            bounds[0] = 0;
            sizes.near = 1;
        }
        __syncthreads();
        int level = 0;
        for (int begin = 0, end = 1; begin < end; ++level) {
            const unsigned long long next = (unsigned long long)__double_as_longlong(level + 1.0);
            for_all(begin, end, [&](bool there, int i) {
                const int tail = there ? order[i] : 0;
                for_arcs(graph.indptr, there && graph.leaves(tail, source), tail, [&](int, long long arc) {
                    const int head = graph.heads[arc];
                    if (__ldcg(memory.distances + head) != INFINITE) return;
                    if (atomicCAS(memory.distances + head, INFINITE, next) == INFINITE) {
                        append(order, &sizes.near, head);
                    }
                });
            });
            __syncthreads();
            begin = end;
            end = sizes.near;
            if (threadIdx.x == 0) bounds[level + 1] = begin;
            __syncthreads();
        }
        return level;
    }

    // Counts for each vertex the tight arcs into it from vertices that are not counted yet: all of them.
    __device__ void count_tight_arcs(int* pending, unsigned long long* absorbed) const {
        for (int v = threadIdx.x; v < graph.n; v += THREADS) __stcg(pending + v, 0);
        __syncthreads();
        for_all(0, graph.n, [&](bool there, int vertex) {
            const bool reached = there && __ldcg(memory.distances + vertex) < INFINITE;
            for_arcs(graph.indptr, reached, vertex, [&](int tail, long long arc) {
                if (!tight_out(tail, arc)) return;
                const int head = graph.heads[arc];
                atomicAdd(pending + head, 1);
                if (memory.distance(tail) == memory.distance(head)) atomicMin(absorbed, (unsigned long long)arc);
            });
        });
    }

    // With weights: counts paths, and returns the number of rounds. `order` receives the vertices, `bounds` where each
    // round begins in it.
    __device__ int count_by_rounds(int* order, int* bounds, int* pending) const {
        if (threadIdx.x == 0) {
            order[0] = source;
            bounds[0] = 0;
            sizes.near = 1;
        }
        __syncthreads();
        int rounds = 0;
        for (int begin = 0, end = 1; begin < end; ++rounds) {
            for_all(begin, end, [&](bool there, int i) {
                const int vertex = there ? order[i] : 0;
                count_paths(there, vertex);
                for_arcs(graph.indptr, there, vertex, [&](int tail, long long arc) {
                    const int head = graph.heads[arc];
                    if (tight_out(tail, arc) && atomicAdd(pending + head, -1) == 1) append(order, &sizes.near, head);
                });
            });
            __syncthreads();
            begin = end;
            end = sizes.near;
            if (threadIdx.x == 0) bounds[rounds + 1] = begin;
            __syncthreads();
        }
        return rounds;
    }

    __device__ void count_by_levels(int levels, const int* order, const int* bounds) const {
        for (int level = 0; level < levels; ++level) {
            for_all(bounds[level], bounds[level + 1],
                    [&](bool there, int i) { count_paths(there, there ? order[i] : 0); });
            __syncthreads();
        }
    }

    __device__ void count_paths(bool there, int vertex) const {
        Paths paths =
            sum_of_row<Paths>(graph.in_indptr, there && vertex != source, vertex, [&](int head, long long arc) {
                Paths of_tail;
                if (tight_in(head, arc)) {
                    const int tail = graph.tails[arc];
                    of_tail.count = memory.counts[tail];
                    of_tail.exponent = memory.exponents[tail];
                    of_tail.arcs = __dmul_rn(of_tail.count, __dadd_rn(memory.inner[tail], 1.0));
                }
                return of_tail;
            });
        if (!there) return;
        if (vertex == source) paths.count = 1;
        memory.counts[vertex] = paths.count;
        memory.exponents[vertex] = paths.exponent;
        memory.inner[vertex] = graph.weighted ? paths.arcs / paths.count : memory.distance(vertex);
    }

    // Stores for each vertex that was reached what it contributes to the sums over all sources.
    __device__ void depend(int rounds, const int* order, const int* bounds, double added, double* contributions) const {
        for (int round = rounds - 1; round > 0; --round) {
            for_all(bounds[round], bounds[round + 1], [&](bool there, int i) {
                const int vertex = there ? order[i] : 0;
                const bool leaves = there && graph.leaves(vertex, source);
                const double total =
                    sum_of_row<Shares>(graph.indptr, leaves, vertex, [&](int tail, long long arc) {
                        const int head = graph.heads[arc];
                        if (!tight_out(tail, arc)) return Shares();
                        return Shares{scaled(memory.shares[head], memory.exponents[head] - memory.exponents[tail])};
                    }).sum;
                if (!there) return;
                const double count = memory.counts[vertex], dependency = __dmul_rn(count, total);
                memory.shares[vertex] = __dadd_rn(1.0, dependency) / count;
                contributions[vertex] = __dadd_rn(dependency, added);
            });
            __syncthreads();
        }
    }

    // Stores the contributions of the source and of vertices that were not reached, and behind the vertices the number of
    // pairs and of inner vertices.
    __device__ void total(int reached, double added, double* of_warps, double* contributions) const {
        double sum = 0;
        for (int v = threadIdx.x; v < graph.n; v += THREADS) {
            if (__ldcg(memory.distances + v) == INFINITE) {
                contributions[v] = 0;
            } else if (v != source) {
                sum = __dadd_rn(sum, memory.inner[v] - 1);
            }
        }
        for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, lanes);
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            contributions[source] = __dmul_rn(added, reached - 1);
            contributions[graph.n] = reached - 1;
            contributions[graph.n + 1] = 0;
            for (int warp = 0; warp < WARPS; ++warp) contributions[graph.n + 1] += of_warps[warp];
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    depend(const long long* __restrict__ indptr, const int* __restrict__ heads, const double* __restrict__ lengths,
           const long long* __restrict__ in_indptr, const int* __restrict__ tails,
           const double* __restrict__ in_lengths, int weighted, const bool* __restrict__ through, int has_through,
           int n, const int* __restrict__ sources, int count, double width, double added, int keeps,
           unsigned long long* distances, double* counts, double* shares, double* inner, int* exponents, int* lists,
           double* contributions, unsigned long long* absorbed) {
    __shared__ Sizes sizes;
    __shared__ double of_warps[WARPS];
    const Graph graph{indptr, in_indptr, heads, tails, lengths, in_lengths, through, n, weighted, has_through};
    for (int i = blockIdx.x; i < count; i += gridDim.x) {
        const long long row = (keeps ? i : (long long)blockIdx.x) * n;
        const Memory memory{distances + row,
                            counts + row,
                            shares + row,
                            inner + row,
                            exponents + row,
                            lists + (long long)blockIdx.x * 6 * (n + 1),
                            n + 1};
        Source source{graph, memory, sizes, sources[i], width};
        double* const contribution = contributions + (long long)i * (n + 2);
        int* const order = memory.list(0);
        int* const bounds = memory.list(1);
        int rounds;
        if (weighted) {
            source.search();
            source.count_tight_arcs(memory.marks(), absorbed);
            rounds = source.count_by_rounds(order, bounds, memory.marks());
        } else {
            rounds = source.search_by_levels(order, bounds);
            source.count_by_levels(rounds, order, bounds);
        }
        const int reached = sizes.near;
        source.depend(rounds, order, bounds, added, contribution);
        source.total(reached, added, of_warps, contribution);
    }
}

// Returns the sum of part(i) over `count` sources, by the tree of gpuops/centrality/pairwise_sums.py.
template <class Part>
__device__ inline double sum_of_sources(int count, Part part) {
    double waiting[DEPTH];
    int depth = 0;
    for (int first = 0, group = 0; first < count; first += GROUP, ++group) {
        double sum = 0;
        for (int i = first; i < min(first + GROUP, count); ++i) sum = __dadd_rn(sum, part(i));
        for (int bits = group; bits & 1; bits >>= 1) sum = __dadd_rn(waiting[--depth], sum);
        waiting[depth++] = sum;
    }
    double sum = depth ? waiting[--depth] : 0;
    while (depth) sum = __dadd_rn(waiting[--depth], sum);
    return sum;
}

// A thread for each of the `size` columns.
extern "C" __global__ void __launch_bounds__(THREADS)
    add_vertices(const double* __restrict__ contributions, int size, int count, double* sums) {
    const int column = blockIdx.x * THREADS + threadIdx.x;
    if (column >= size) return;
    sums[column] = sum_of_sources(count, [&](int i) { return contributions[(long long)i * size + column]; });
}

// A thread for each arc.
extern "C" __global__ void __launch_bounds__(THREADS)
    add_arcs(const int* __restrict__ tails, const int* __restrict__ heads, const double* __restrict__ lengths,
             int weighted, const bool* __restrict__ through, int has_through, int n, long long m,
             const int* __restrict__ sources, int count, const unsigned long long* __restrict__ distances,
             const double* __restrict__ counts, const double* __restrict__ shares, const int* __restrict__ exponents,
             double* sums) {
    const long long arc = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (arc >= m) return;
    const int tail = tails[arc], head = heads[arc];
    const double length = weighted ? lengths[arc] : 1.0;
    const bool passes = !has_through || through[tail];
    sums[arc] = sum_of_sources(count, [&](int i) {
        const long long row = (long long)i * n;
        if (!passes && tail != sources[i]) return 0.0;
        const unsigned long long end = distances[row + head];
        const double begin = __longlong_as_double((long long)distances[row + tail]);
        if (end >= INFINITE || begin + length != __longlong_as_double((long long)end)) return 0.0;
        const double share = scaled(shares[row + head], exponents[row + head] - exponents[row + tail]);
        return __dmul_rn(counts[row + tail], share);
    });
}

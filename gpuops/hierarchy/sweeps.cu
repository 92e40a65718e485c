// Climbs and sweeps of many sources in a hierarchy: the steps of blocks_numba.py on a GPU, with the same bits.
//
//     begin    infinity, before the climbs
//     home     a source climbs in the bricks where it starts, and these bricks are swept from there
//     climb    all sources climb the upper tree
//     alone    `home` and `climb` for few sources, with more threads for each
//     upper    a sweep of the upper tree
//     tables   distances from the front of each brick to its vertices, by a sweep of the brick
//
// A *start* is an open vertex where a source enters the tree: an open source itself, or an open head of an arc of a
// closed source.
//
// A climb needs the nodes between its starts and the root only, so a block climbs from there by itself. The sweep needs
// no barrier: a distance to the upper tree has its sign bit set until it is final, and the threads that need the
// distance wait for it.
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; CHUNK; CLIMBING, the sources of a block of `climb`; THREADS and BLOCKS,
//         the threads of a block of `upper`, and its blocks on a multiprocessor.

#include "../device/relaxed.cuh"
#include "tree.cuh"

constexpr unsigned ALL_LANES = 0xffffffff;
// Successive sources of a lane, if there are many. More shorts would take more registers than there are.
constexpr int TOGETHER = sizeof(Element) == 4 ? 4 : 2;

// The least term(i) over i < count. The loads of several terms overlap; the last term may be taken more than once.
template <class Term>
__device__ inline Element least(int count, Term term) {
    constexpr int TERMS = 4;
    Element best = infinity<Element>();
    for (int first = 0; first < count; first += TERMS) {
#pragma unroll
        for (int i = 0; i < TERMS; ++i) best = shorter(best, term(min(first + i, count - 1)));
    }
    return best;
}

// The distances of climbs, behind the distances to the upper tree.
__device__ inline Element* climbed_of(const Tree& tree, Element* above, int stride) {
    return above + tree.upper_rows * stride;
}

// --- The upper tree ------------------------------------------------------------------------------------------------

// Distances are not negative. With its sign bit set, a distance is provisional.
__device__ inline int with_other_sign(int x) {
    return x ^ (int)0x80000000;
}
__device__ inline short with_other_sign(short x) {
    return (short)(x ^ 0x8000);
}
__device__ inline float with_other_sign(float x) {
    return __int_as_float(with_other_sign(__float_as_int(x)));
}
__device__ inline double with_other_sign(double x) {
    return __longlong_as_double(__double_as_longlong(x) ^ (long long)(1ull << 63));
}
__device__ inline bool is_provisional(int x) {
    return x < 0;
}
__device__ inline bool is_provisional(float x) {
    return __float_as_int(x) < 0;
}
__device__ inline bool is_provisional(double x) {
    return __double_as_longlong(x) < 0;
}

// Distances from successive sources, those of a lane.
template <int COUNT>
struct alignas(COUNT * sizeof(Element)) Several {
    Element x[COUNT];

    __device__ Several signs_changed() const {
        Several result;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) result.x[i] = with_other_sign(x[i]);
        return result;
    }
    __device__ bool any_provisional() const {
        bool found = false;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) found |= is_provisional(x[i]);
        return found;
    }
    __device__ void relax(const Several& from, Element length) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) x[i] = shorter(x[i], sum(from.x[i], length));
    }
};

// The lengths from 32 rows to a chunk: each lane reads those of a row, before all lanes go through the rows together.
using Lengths = Element[WARP][CHUNK];

// Each lane of a warp has COUNT sources.
//
//     above   a row of `stride` elements for each vertex: after the climb, the least distances from the sources by paths
//             that climb to the node of the vertex and end there, as provisional distances; then the distances
template <int COUNT>
struct Sweep {
    using Sources = Several<COUNT>;
    static constexpr int SOURCES = COUNT * WARP;
    static constexpr int ROWS_AT_ONCE = COUNT == 1 ? 16 : 4;  // so many loads overlap

    const Tree& tree;
    Element* above;
    const int stride;
    Lengths& lengths;  // in shared memory, of this warp
    const int lane = threadIdx.x % WARP;

    __device__ Sources* at(int row, int group) const {
        return (Sources*)(above + (long long)row * stride + group * SOURCES + lane * COUNT);
    }

    // Waits until all of the rows are final. Rows are polled one at a time.
    template <int ROWS>
    static __device__ void wait_for(Sources (&to)[ROWS], const Sources* const (&from)[ROWS]) {
        for (;;) {
            const Sources* missing = nullptr;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) to[r] = load_relaxed(from[r]);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (to[r].any_provisional()) missing = from[r];
            }
            if (!missing) return;
            do {
                __nanosleep(20);
            } while (load_relaxed(missing).any_provisional());
        }
    }

    // Lowers best[v] to the least of above[front[j]] + arcs[v * step + j] over all j < size, for the first VERTICES
    // vertices; from `count` on, they repeat the last one.
    template <int VERTICES>
    __device__ void relax(Sources (&best)[CHUNK], int count, int group, const int* front, int size, const Element* arcs,
                          int step) const {
        for (int first = 0; first < size; first += WARP) {
            const int j = first + lane, own_row = front[min(j, size - 1)];
#pragma unroll
            for (int v = 0; v < VERTICES; ++v) {
                lengths[lane][v] = j < size ? arcs[min(v, count - 1) * step + j] : infinity<Element>();
            }
            __syncwarp();
            for (int k = 0; k < min(WARP, size - first); k += ROWS_AT_ONCE) {
                Sources before[ROWS_AT_ONCE];
                const Sources* from[ROWS_AT_ONCE];
#pragma unroll
                for (int r = 0; r < ROWS_AT_ONCE; ++r) from[r] = at(__shfl_sync(ALL_LANES, own_row, k + r), group);
                wait_for(before, from);
#pragma unroll
                for (int r = 0; r < ROWS_AT_ONCE; ++r) {
#pragma unroll
                    for (int v = 0; v < VERTICES; ++v) best[v].relax(before[r], lengths[k + r][v]);
                }
            }
            __syncwarp();
        }
    }

    // above[chunk] min= into[chunk] (x) above[front].
    __device__ __forceinline__ void sweep(int chunk, int group) const {
        const int node = tree.chunk_node[chunk], row = tree.chunk_row[chunk], count = tree.chunk_size[chunk];
        const Node own(tree, node);
        const Element* arcs = into(tree, node, own, row);
        const int step = tree.back_has_out ? own.step() : own.size;
        Sources best[CHUNK];
#pragma unroll
        for (int v = 0; v < CHUNK; ++v) best[v] = load_relaxed(at(row + min(v, count - 1), group)).signs_changed();
        if (count > CHUNK / 2) {
            relax<CHUNK>(best, count, group, own.front, own.size, arcs, step);
        } else {
            relax<CHUNK / 2>(best, count, group, own.front, own.size, arcs, step);
        }
#pragma unroll
        for (int v = 0; v < CHUNK; ++v) {
            if (v >= count) break;
            store_relaxed(at(row + v, group), best[v]);
        }
    }

    // The warps of all blocks share the chunks. They take them in an order in which a chunk waits for earlier ones only.
    __device__ void run(int sources) const {
        const int groups = (sources + SOURCES - 1) / SOURCES;
        const int warps = gridDim.x * (THREADS / WARP), warp = threadIdx.x / WARP * gridDim.x + blockIdx.x;
        for (long long item = warp; item < tree.chunks * groups; item += warps) {
            sweep((int)(item / groups), (int)(item % groups));
        }
    }
};

// Launch: any number of blocks and threads.
extern "C" __global__ void begin(const Tree* tree_, Element* above, int stride) {
    const long long count = tree_->upper_rows * stride, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        above[i] = with_other_sign(infinity<Element>());
        climbed_of(*tree_, above, stride)[i] = infinity<Element>();
    }
}

// `above` becomes final. Rows have `stride` elements, a multiple of the sources of a warp. Launch: cooperative, since
// blocks wait for each other.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    upper(const Tree* tree_, Element* above, int stride, int sources, int few) {
    __shared__ Lengths lengths[THREADS / WARP];
    __shared__ Tree tree;  // in registers, its pointers would take most of them
    if (threadIdx.x == 0) tree = *tree_;
    __syncthreads();
    Lengths& of_warp = lengths[threadIdx.x / WARP];
    if (few) {
        Sweep<1>{tree, above, stride, of_warp}.run(sources);
    } else {
        Sweep<TOGETHER>{tree, above, stride, of_warp}.run(sources);
    }
}

// --- Climbs ----------------------------------------------------------------------------------------------------------

// A block climbs the upper tree for SOURCES successive sources from `source` on. A thread has one of these sources, and
// some columns of each node.
//
//     above     see `Sweep`
//     climbed   such rows, behind those of `above`: the distances from the sources as the nodes below leave them
template <int SOURCES>
struct Climb {
    const Tree& tree;
    Element *climbed, *above;
    const int stride, source;
    const int worker = threadIdx.x / SOURCES, workers = blockDim.x / SOURCES;

    __device__ Element& at(Element* distances, int row) const {
        return distances[(long long)row * stride + source + threadIdx.x % SOURCES];
    }

    // climbed[node] (x) out: `above` for the vertices of the node, and `climbed` is lowered for its front. A thread has
    // COLUMNS columns at a time.
    template <int COLUMNS>
    __device__ void climb(const Node& own) const {
        constexpr int ROWS_AT_ONCE = COLUMNS == 1 ? 8 : 4;  // so many loads overlap
        const int last = own.step() - 1;
        for (int column = worker; column <= last; column += COLUMNS * workers) {
            const Element* out[COLUMNS];
            Element best[COLUMNS];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                out[c] = own.out + min(column + c * workers, last);
                best[c] = infinity<Element>();
            }
            for (int first = 0; first < own.width; first += ROWS_AT_ONCE) {
#pragma unroll
                for (int r = 0; r < ROWS_AT_ONCE; ++r) {
                    const int i = min(first + r, own.width - 1);
                    const Element before = at(climbed, own.first + i);
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c) best[c] = shorter(best[c], sum(before, out[c][i * own.step()]));
                }
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const int j = column + c * workers;
                if (j < own.width) {
                    at(above, own.first + j) = with_other_sign(best[c]);
                } else if (j <= last) {
                    Element& to = at(climbed, own.front[j - own.width]);
                    to = shorter(to, best[c]);
                }
            }
        }
    }

    // Lanes of a warp share the starts of a source, `starts`. The block goes from the nodes that the sources enter to the
    // root in the order of nodes, in which children come before their parents.
    __device__ void run(const Doors& starts) const {
        constexpr unsigned NONE = ~0u;
        constexpr int DOORS = WARP / SOURCES;
        const auto entered = [&](int i) { return (unsigned)tree.upper_node(starts.end(i)); };
        for (int i = threadIdx.x % WARP / SOURCES; __any_sync(ALL_LANES, i < starts.count); i += DOORS) {
            unsigned node = i < starts.count ? entered(i) : NONE;
            if (node != NONE && i >= DOORS && node == entered(i - DOORS)) node = NONE;  // the block was there
            for (;;) {
                const unsigned lowest = __reduce_min_sync(ALL_LANES, node);
                if (lowest == NONE) break;
                if (node == lowest) node = tree.parent[lowest];
                const Node own(tree, lowest);
                if (SOURCES > 1 && own.step() > 2 * workers) {
                    climb<4>(own);
                } else {
                    climb<1>(own);
                }
                __syncthreads();
            }
        }
    }
};

// A source enters the tree at a start. All threads of a block take part. With `climbs`, the distances of
// climbs are lowered for the front of the brick; with `sweeps`, `d` becomes the distances within the brick. `x` is a row of the
// vertices of a brick and its front.
__device__ inline void from_start(const Tree& tree, int place, Element length, bool climbs, bool sweeps, Element* x,
                                  Element* d, int source, Element* above, int stride) {
    const auto lower = [&](int row, Element to) {
        Element& distance = climbed_of(tree, above, stride)[(long long)row * stride + source];
        distance = shorter(distance, to);
    };
    int node = tree.node_of[place];
    const int brick = tree.brick[node], row = tree.row[node] + place - tree.starts[node];
    if (brick == tree.bricks) {
        if (climbs && threadIdx.x == 0) lower(row, length);
        return;
    }
    const int size = tree.sizes[brick], front = tree.brick_fronts[brick], last = tree.above_brick[brick];
    const int depth = tree.brick_fronts[brick + 1] - front;
    for (int i = threadIdx.x; i < size + depth; i += blockDim.x) {
        if (sweeps) d[i] = infinity<Element>();
        x[i] = i == row ? length : infinity<Element>();
    }
    __syncthreads();
    while (node != last) {
        const Node own(tree, node);
        node = tree.parent[node];
        for (int c = threadIdx.x + (sweeps ? 0 : own.width); c < own.step(); c += blockDim.x) {
            Element& to = c < own.width ? d[own.first + c] : x[own.front[c - own.width]];
            to = shorter(to,
                         least(own.width, [&](int i) { return sum(x[own.first + i], own.out[i * own.step() + c]); }));
        }
        __syncthreads();
    }
    if (climbs) {
        for (int f = threadIdx.x; f < depth; f += blockDim.x) lower(tree.brick_front[front + f], x[size + f]);
    }
    for (int level = tree.brick_levels[brick]; sweeps && level < tree.brick_levels[brick + 1]; ++level) {
        for (int u = tree.level_starts[level] + (int)threadIdx.x; u < tree.level_starts[level + 1]; u += blockDim.x) {
            const Node own(tree, tree.sweep_node[u]);
            const Element* lengths_in = into(tree, tree.sweep_node[u], own, tree.sweep_row[u]);
            Element& to = d[tree.sweep_row[u]];
            to = shorter(to, least(own.size, [&](int j) { return sum(lengths_in[j], d[own.front[j]]); }));
        }
        __syncthreads();
    }
}

// All threads of a block enter the tree at the starts of a source; see `from_start`.
//
//     vertices     the sources; null if `vertex` is the only source
//     first_start  the number of the first start of each source; null if each source is its own start
//     inner        a row of `width` elements for each of `all_starts`: the distances within its brick, as far as paths
//                  stay there; and behind these such a row for each block
__device__ inline void from_source(const Tree& tree, const int* vertices, int vertex, const int* first_start,
                                   int source, bool climbs, bool sweeps, Element* inner, int all_starts, Element* above,
                                   int stride) {
    const Doors starts(tree, tree.leaving, vertices ? vertices[source] : vertex);
    Element* d = inner + (first_start ? first_start[source] : source) * tree.width;
    Element* const x = inner + (all_starts + blockIdx.y * (long long)gridDim.x + source) * tree.width;
    for (int i = 0; i < starts.count; ++i, d += tree.width) {
        from_start(tree, starts.end(i), starts.length(i), climbs, sweeps, x, d, source, above, stride);
        __syncthreads();
    }
}

// Launch: a block for each source, any number of threads.
extern "C" __global__ void home(const Tree* tree_, const int* vertices, int vertex, const int* first_start,
                                Element* inner, int all_starts, Element* above, int stride) {
    __shared__ Tree tree;  // in registers, its pointers would take most of them
    if (threadIdx.x == 0) tree = *tree_;
    __syncthreads();
    from_source(tree, vertices, vertex, first_start, blockIdx.x, true, true, inner, all_starts, above, stride);
}

// Launch: a block for each CLIMBING sources, in whole warps.
extern "C" __global__ void __launch_bounds__(1024, 1)
    climb(const Tree* tree_, const int* vertices, Element* above, int stride, int sources) {
    __shared__ Tree tree;
    if (threadIdx.x == 0) tree = *tree_;
    __syncthreads();
    const int first = blockIdx.x * CLIMBING, source = first + threadIdx.x % CLIMBING;
    Doors starts(tree, tree.leaving, vertices[min(source, sources - 1)]);
    if (source >= sources) starts.count = 0;
    Climb<CLIMBING>{tree, climbed_of(tree, above, stride), above, stride, first}.run(starts);
}

// Launch: grid (sources, 2), 2 * THREADS threads. The second block of a source sweeps the bricks.
extern "C" __global__ void __launch_bounds__(2 * THREADS, 2)
    alone(const Tree* tree_, const int* vertices, int vertex, const int* first_start, Element* inner, int all_starts,
          Element* above, int stride) {
    __shared__ Tree tree;
    if (threadIdx.x == 0) tree = *tree_;
    __syncthreads();
    const int source = blockIdx.x;
    const bool climbs = blockIdx.y == 0;
    from_source(tree, vertices, vertex, first_start, source, climbs, !climbs, inner, all_starts, above, stride);
    if (!climbs) return;
    const Doors starts(tree, tree.leaving, vertices ? vertices[source] : vertex);
    Climb<1>{tree, climbed_of(tree, above, stride), above, stride, source}.run(starts);
}

// The table of a brick has a row for each vertex, with its distances from the front. Launch: a block for each brick, any
// number of threads.
extern "C" __global__ void tables(const Tree* tree_, Element* table) {
    const Tree tree = *tree_;
    const int brick = blockIdx.x, size = tree.sizes[brick];
    const int depth = tree.brick_fronts[brick + 1] - tree.brick_fronts[brick];
    table += tree.table_starts[brick];
    for (int level = tree.brick_levels[brick]; level < tree.brick_levels[brick + 1]; ++level) {
        const int first = tree.level_starts[level], count = tree.level_starts[level + 1] - first;
        for (int item = threadIdx.x; item < count * depth; item += blockDim.x) {
            const int u = first + item / depth, f = item % depth, row = tree.sweep_row[u];
            const Node own(tree, tree.sweep_node[u]);
            const Element* lengths = into(tree, tree.sweep_node[u], own, row);
            Element best = infinity<Element>();
            for (int j = 0; j < own.size; ++j) {
                const int before = own.front[j];
                if (before < size) {
                    best = shorter(best, sum(lengths[j], table[(long long)before * depth + f]));
                } else if (before - size == f) {
                    best = shorter(best, lengths[j]);
                }
            }
            table[(long long)row * depth + f] = best;
        }
        __syncthreads();
    }
}

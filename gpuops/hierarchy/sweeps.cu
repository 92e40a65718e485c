// Climbs and sweeps of many sources in a hierarchy: the steps of blocks_numba.py on a GPU, with the same bits.
//
//     begin    infinity, before the climbs of many sources
//     home     a source climbs in the bricks where it starts, and these bricks are swept from there
//     upper    all sources climb and sweep the upper tree; of few sources, this kernel takes the first two steps, too
//     tables   distances from the front of each brick to its vertices, by a sweep of the brick
//
// A *start* is an open vertex where a source enters the tree: an open source itself, or an open head of an arc of a
// closed source.
//
// Launch: see each kernel.
// Macros: ARITHMETIC, a struct of arithmetic.cuh; CHUNK; THREADS and BLOCKS, the threads of a block of `upper`, and its
//         blocks on a multiprocessor.

#include "../device/grid_barrier.cuh"
#include "tree.cuh"

// Sources that climb.
//
//     climbing  a row of `width` elements for each source: the vertices of a brick, then its front
//     inner     such a row for each start: the distances within its brick, as far as paths stay there
//     above     a row of `stride` elements for each vertex of the upper tree: the distances from the sources
//     touched   1 for each group of 32 sources and each node of the upper tree that is above one of their starts or
//               contains it, else 0
struct Climb {
    const int* vertices;  // of the sources; null if `vertex` is the only source
    int vertex;
    const int* first_start;  // the number of the first start of each source; null if each source is its own start
    Element *climbing, *inner, *above;
    int stride;
    unsigned char* touched;

    // Threads number `thread` of `threads` take this step together. Of one source alone, nothing else is read.
    __device__ void begin(const Tree& tree, bool one, long long thread, long long threads) const {
        const long long groups = stride / WARP, step = one ? stride : 1;
        for (long long i = thread; i < tree.upper_rows * stride / step; i += threads) {
            above[i * step] = infinity<Element>();
        }
        for (long long i = thread; i < tree.upper_nodes * groups; i += threads) touched[i] = 0;
    }

    // All threads of a block take this step for one source.
    __device__ void home(const Tree& tree, int source) const {
        const Doors starts(tree, tree.leaving, vertices ? vertices[source] : vertex);
        Element* x = climbing + source * tree.width;
        Element* d = inner + (first_start ? first_start[source] : source) * tree.width;
        for (int i = 0; i < starts.count; ++i, d += tree.width) {
            from_start(tree, source, starts.end(i), starts.length(i), x, d);
        }
    }

    __device__ void from_start(const Tree& tree, int source, int place, Element length, Element* x, Element* d) const {
        int node = tree.node_of[place];
        const int brick = tree.brick[node], row = tree.row[node] + place - tree.starts[node];
        Element* of_source = above + source;
        if (brick < tree.bricks) {
            const int size = tree.sizes[brick], first = tree.brick_fronts[brick];
            const int depth = tree.brick_fronts[brick + 1] - first;
            for (int i = threadIdx.x; i < size + depth; i += blockDim.x) {
                d[i] = infinity<Element>();
                x[i] = i == row ? length : infinity<Element>();
            }
            __syncthreads();
            for (; node >= 0 && tree.brick[node] == brick; node = tree.parent[node]) {
                const Node own(tree, node);
                for (int c = threadIdx.x; c < own.step(); c += blockDim.x) {
                    Element best = infinity<Element>();
                    for (int i = 0; i < own.width; ++i) {
                        best = shorter(best, sum(x[own.first + i], own.out[i * own.step() + c]));
                    }
                    Element& to = c < own.width ? d[own.first + c] : x[own.front[c - own.width]];
                    to = shorter(to, best);
                }
                __syncthreads();
            }
            for (int f = threadIdx.x; f < depth; f += blockDim.x) {
                lower(of_source[(long long)tree.brick_front[first + f] * stride], x[size + f]);
            }
            for (int level = tree.brick_levels[brick]; level < tree.brick_levels[brick + 1]; ++level) {
                for (int u = tree.level_starts[level] + (int)threadIdx.x; u < tree.level_starts[level + 1];
                     u += blockDim.x) {
                    const Node own(tree, tree.sweep_node[u]);
                    const Element* lengths_in = into(tree, tree.sweep_node[u], own, tree.sweep_row[u]);
                    Element best = d[tree.sweep_row[u]];
                    for (int j = 0; j < own.size; ++j) best = shorter(best, sum(lengths_in[j], d[own.front[j]]));
                    d[tree.sweep_row[u]] = best;
                }
                __syncthreads();
            }
        } else if (threadIdx.x == 0) {
            lower(of_source[(long long)row * stride], length);
        }
        if (threadIdx.x == 0) {
            for (; node >= 0; node = tree.parent[node])
                touched[(long long)tree.upper[node] * (stride / WARP) + source / WARP] = 1;
        }
    }

    // In `upper`, another multiprocessor stored the first value.
    __device__ static void lower(Element& to, Element x) { to = shorter(__ldcg(&to), x); }
};

// Launch: any number of blocks and threads.
extern "C" __global__ void begin(const Tree* tree_, Element* above, int stride, unsigned char* touched,
                                 unsigned* arrived) {
    const Tree& tree = *tree_;
    const long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (thread == 0) *arrived = 0;
    Climb{nullptr, 0, nullptr, nullptr, nullptr, above, stride, touched}.begin(tree, false, thread,
                                                                               (long long)gridDim.x * blockDim.x);
}

// Launch: a block for each source, any number of threads.
extern "C" __global__ void home(const Tree* tree_, const int* vertices, int vertex, const int* first_start,
                                Element* climbing, Element* inner, Element* above, int stride, unsigned char* touched) {
    const Tree tree = *tree_;
    Climb{vertices, vertex, first_start, climbing, inner, above, stride, touched}.home(tree, blockIdx.x);
}

// --- The upper tree ------------------------------------------------------------------------------------------------

// Successive sources of a lane. More shorts would take more registers than there are.
constexpr int TOGETHER = sizeof(Element) == 4 ? 4 : 2;

template <int COUNT>
struct alignas(COUNT * sizeof(Element)) Several {
    Element x[COUNT];

    // Reads past the first-level cache, since other multiprocessors write.
    static __device__ Several load(const Element* from) {
        Several result;
        if constexpr (sizeof(Several) == 16) {
            *(int4*)&result = __ldcg((const int4*)from);
        } else if constexpr (sizeof(Several) == 8) {
            *(int2*)&result = __ldcg((const int2*)from);
        } else if constexpr (sizeof(Several) == 4) {
            *(int*)&result = __ldcg((const int*)from);
        } else {
            result.x[0] = __ldcg(from);
        }
        return result;
    }
    __device__ void relax(const Several& from, Element length) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) x[i] = shorter(x[i], sum(from.x[i], length));
    }
};

__device__ inline Element least_of_warp(Element x) {
    for (int lanes = WARP / 2; lanes; lanes /= 2) x = shorter(x, (Element)__shfl_xor_sync(0xffffffff, x, lanes));
    return x;
}

// The lengths from 32 rows to a chunk: each lane reads those of a row, before all lanes go through the rows together.
using Lengths = Element[WARP][CHUNK];

// A warp has a chunk of vertices, and COUNT sources for each lane. With ONE, it has a single source, and its lanes share
// the rows.
template <int COUNT, bool ONE>
struct UpperTree {
    using Sources = Several<COUNT>;
    static constexpr int SOURCES = ONE ? 1 : COUNT * WARP;

    const Tree& tree;
    Element *x, *d;
    const int stride;
    const unsigned char* touched;
    Lengths& lengths;  // in shared memory
    const int lane = threadIdx.x % WARP;

    __device__ bool is_touched(int node, int group) const {
        const unsigned char* of_node = touched + (long long)tree.upper[node] * (stride / WARP);
        bool found = false;
        for (int i = 0; i < COUNT; ++i) found |= __ldcg(of_node + group * COUNT + i);
        return found;
    }

    // Lowers best[v] to the least from[row(i)] + length(i, v) over all i < rows, for the first VERTICES vertices.
    template <int VERTICES, class Row, class Length>
    __device__ void relax(Sources (&best)[CHUNK], const Element* from, int rows, Row row, Length length) const {
        for (int first = 0; first < rows; first += WARP) {
            const int i = first + lane, count = min(WARP, rows - first);
            if (ONE) {
                if (i >= rows) return;
                const Sources before = Sources::load(from + (long long)row(i) * stride);
#pragma unroll
                for (int v = 0; v < VERTICES; ++v) best[v].relax(before, length(i, v));
                continue;
            }
            const int own_row = row(min(i, rows - 1));
#pragma unroll
            for (int v = 0; v < VERTICES; ++v) lengths[lane][v] = i < rows ? length(i, v) : infinity<Element>();
            __syncwarp();
#pragma unroll 4
            for (int k = 0; k < count; ++k) {
                const Sources before = Sources::load(from + (long long)__shfl_sync(0xffffffff, own_row, k) * stride);
#pragma unroll
                for (int v = 0; v < VERTICES; ++v) best[v].relax(before, lengths[k][v]);
            }
            __syncwarp();
        }
    }
    template <class Row, class Length>
    __device__ void relax(int count, Sources (&best)[CHUNK], const Element* from, int rows, Row row,
                          Length length) const {
        if (count > CHUNK / 2) {
            relax<CHUNK>(best, from, rows, row, length);
        } else {
            relax<CHUNK / 2>(best, from, rows, row, length);
        }
    }

    __device__ void store(Element* to, Sources (&best)[CHUNK], int count) const {
#pragma unroll
        for (int v = 0; v < CHUNK; ++v) {
            if (v >= count) break;
            if (ONE) best[v].x[0] = least_of_warp(best[v].x[0]);
            if (!ONE || lane == 0) *(Sources*)(to + (long long)v * stride) = best[v];
        }
    }

    // Lowers x[chunk] to x[node] (x) out[node, chunk] for every node below whose front has vertices of the chunk.
    __device__ __noinline__ void climb(int chunk, int group) const {
        if (!is_touched(tree.chunk_node[chunk], group)) return;
        const int count = tree.chunk_size[chunk];
        Element *const from = x + source_of(group), *const to = from + (long long)tree.chunk_row[chunk] * stride;
        Sources best[CHUNK];
#pragma unroll
        for (int v = 0; v < CHUNK; ++v) best[v] = Sources::load(to + (long long)min(v, count - 1) * stride);
        for (int p = tree.pull_starts[chunk]; p < tree.pull_starts[chunk + 1]; ++p) {
            const int node = tree.pull_node[p], mask = tree.pull_mask[p];
            if (!is_touched(node, group)) continue;
            const Node own(tree, node);
            const Element* out = own.out + own.width + tree.pull_place[p];
            relax(
                count, best, from, own.width, [&](int i) { return own.first + i; },
                [&](int i, int v) {
                    const int place = __popc(mask & ((1 << v) - 1));
                    return mask >> v & 1 ? out[i * own.step() + place] : infinity<Element>();
                });
        }
        store(to, best, count);
    }

    // d[chunk] = x[node] (x) out[node, chunk] min into[chunk] (x) d[front], where x are the distances after the climb.
    __device__ __noinline__ void sweep(int chunk, int group) const {
        const int node = tree.chunk_node[chunk], row = tree.chunk_row[chunk], count = tree.chunk_size[chunk];
        const int source = source_of(group);
        const Node own(tree, node);
        Sources best[CHUNK];
#pragma unroll
        for (int v = 0; v < CHUNK; ++v) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) best[v].x[i] = infinity<Element>();
        }
        if (is_touched(node, group)) {
            const Element* out = own.out + (row - own.first);
            relax(
                count, best, x + source, own.width, [&](int i) { return own.first + i; },
                [&](int i, int v) { return out[i * own.step() + min(v, count - 1)]; });
        }
        const Element* arcs = into(tree, node, own, row);
        const int step = tree.back_has_out ? own.step() : own.size;
        relax(
            count, best, d + source, own.size, [&](int j) { return own.front[j]; },
            [&](int j, int v) { return arcs[min(v, count - 1) * step + j]; });
        store(d + (long long)row * stride + source, best, count);
    }

    __device__ int source_of(int group) const { return ONE ? 0 : group * SOURCES + lane * COUNT; }

    __device__ void run(int sources, GridBarrier& barrier) const {
        const int groups = (sources + SOURCES - 1) / SOURCES, last = (int)tree.chunk_level_count - 1;
        const int warps = gridDim.x * (THREADS / WARP), warp = threadIdx.x / WARP * gridDim.x + blockIdx.x;
        const auto each = [&](int level, auto work) {
            const int begin = tree.chunk_levels[level], count = tree.chunk_levels[level + 1] - begin;
            for (long long item = warp; item < (long long)count * groups; item += warps) {
                work(begin + (int)(item / groups), (int)(item % groups));
            }
            barrier.wait();
        };
        for (int level = last - 1; level >= 0; --level) each(level, [&](int c, int g) { climb(c, g); });
        for (int level = 0; level <= last; ++level) each(level, [&](int c, int g) { sweep(c, g); });
    }
};

// On entry, `x` has the distances from the sources to the vertices where they enter the upper tree; or all sources
// begin here, which is faster for few sources. On return, `x` has the distances after the climb, and `d` the distances
// to the upper tree. Rows have `stride` elements, a multiple of the sources of a warp. Launch: cooperative.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    upper(const Tree* tree_, int from_begin, const int* vertices, int vertex, const int* first_start, Element* climbing,
          Element* inner, Element* x, Element* d, int stride, int sources, unsigned char* touched, unsigned* arrived) {
    __shared__ Lengths lengths[THREADS / WARP];
    __shared__ Tree tree;  // in registers, its pointers would take most of them
    if (threadIdx.x == 0) tree = *tree_;
    __syncthreads();
    GridBarrier barrier{arrived};
    if (from_begin) {
        const Climb all{vertices, vertex, first_start, climbing, inner, x, stride, touched};
        all.begin(tree, sources == 1, blockIdx.x * (long long)THREADS + threadIdx.x, (long long)gridDim.x * THREADS);
        barrier.wait();
        for (int source = blockIdx.x; source < sources; source += gridDim.x) all.home(tree, source);
        barrier.wait();
    }
    Lengths& of_warp = lengths[threadIdx.x / WARP];
    if (sources == 1) {
        UpperTree<1, true>{tree, x, d, stride, touched, of_warp}.run(sources, barrier);
    } else if (sources <= WARP) {
        UpperTree<1, false>{tree, x, d, stride, touched, of_warp}.run(sources, barrier);
    } else {
        UpperTree<TOGETHER, false>{tree, x, d, stride, touched, of_warp}.run(sources, barrier);
    }
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

// Closes the nodes of a hierarchy: the distances from the vertices of each node to each other and to its front, and
// from the front to the node, over paths in the subtree of the node.
//
//     look_over       checks the weights and the graph; launched first
//     close_levels    all levels of the tree in one launch, the lowest level first
//
// A node of `width` vertices with a front of `front` vertices is a matrix of width + front = size rows: arcs, and the
// *updates* of the children, the distances among their fronts. The vertices of the node are its pivots. By size:
//
//     up to SMALL   a warp closes the node, in shared memory (up to 16 only, in levels with few nodes from 17 to SMALL)
//     up to MEDIUM  a block closes the node, in shared memory, if it has one tile of pivots
//     larger        tiles of TILE x TILE entries, where the results belong: in `out`, in `into`, and in the update. A
//                   launch-wide barrier follows each stage: all tiles are assembled; then, for each tile of pivots, the
//                   tile is closed and multiplied with its rows and columns; then all other tiles are lowered.
//
// The children of a node follow each other, in the nodes of the level below, and so do their updates and the lists of
// the places of their fronts in the parent. Levels store their updates in two buffers, in turn.
//
// The sums are those of closing_numba.py, so floats have the same bits.
//
// Launch: see each kernel.
// Macros: SMALL, MEDIUM, the most rows of a node that a warp or a block closes; BLOCKS, the blocks on a multiprocessor;
//         the macros of closure_tile.cuh.
//
// G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", JEA 8, 2003.

#include "../device/grid_barrier.cuh"
#include "../minplus/closure_tile.cuh"

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = THREADS / 32;

// closing_cuda.py fills these structs and has the same fields.
struct Node {
    long long out, into, update;  // where the tables and the update begin
    long long places;             // where the places of the front in the matrix of the parent begin
    int width, front;
    int children, child_count;  // the first child, and how many there are
};
struct Level {
    int first, last;              // nodes
    int small;                    // most rows of a node that a warp closes
    int first_stage, last_stage;  // a level has one stage or more
};
struct Stage {
    int first, last, tasks;  // items, and the tasks of all items
};
struct Item {
    int node, first_task;
};
struct Arc {
    int number;           // ~number for the first arc between two vertices; the others follow, in both directions
    unsigned short i, j;  // its place in the matrix of its node
};
static_assert(sizeof(Node) == 48 && sizeof(Level) == 20 && sizeof(Stage) == 12 && sizeof(Item) == 8 && sizeof(Arc) == 8,
              "closing_cuda.py has the same fields");

// All 0 before `look_over`.
struct Control {
    unsigned long long arrived;   // blocks at barriers, in the low half
    unsigned long long differs;   // 1: the graph is not the one that the layout is of
    unsigned long long refused;   // 1: a weight is NaN, negative or too large
    unsigned long long directed;  // 1: two directions of an edge differ
    unsigned long long homeless;  // 1 + the number of an arc that the structure has no room for, or 0
    double largest;               // largest finite entry of all tables
    double paths[2];              // largest sums over a path to a root of the largest entries of `out`, of `into`
};

// An entry is never negative, so the order of the bits of floats is the order of the numbers.
__device__ inline void lower(int& to, int value) {
    atomicMin(&to, value);
}
__device__ inline void lower(float& to, float value) {
    atomicMin((int*)&to, __float_as_int(value));
}
__device__ inline void lower(double& to, double value) {
    atomicMin((unsigned long long*)&to, (unsigned long long)__double_as_longlong(value));
}
__device__ inline void raise(double& to, double value) {
    atomicMax((unsigned long long*)&to, (unsigned long long)__double_as_longlong(value));
}

// The length of an arc. Adding 0 turns -0.0 into +0.0.
__device__ inline Wide length(const Element* weights, int number) {
    return shorter(Wide(weights[number] + Element(0)), Wide(infinity<Element>()));
}
__device__ inline int number_of(Arc arc) {
    return arc.number < 0 ? ~arc.number : arc.number;
}

// --- Checks --------------------------------------------------------------------------------------------------------

// Floats may not reach limit / n, and integers not `limit`. The graph, two arrays of words, is compared with
// `known_starts` and `known_heads`. `rejected` are arcs that the structure has no room for: they must be absent.
// Launch: blocks of THREADS threads.
extern "C" __global__ void look_over(const Element* weights, long long count, double limit, double n, const Arc* arcs,
                                     long long entries, const int* starts, const int* known_starts,
                                     long long start_words, const int* heads, const int* known_heads,
                                     long long head_words, const int* rejected, long long rejected_count,
                                     Control* control) {
    constexpr bool FLOATS = Element(0.5) != Element(0);
    const double absent = FLOATS ? infinity<Element>() : (double)((1ll << (8 * sizeof(Element) - 1)) - 1);
    const long long first = (long long)blockIdx.x * THREADS + threadIdx.x, step = (long long)gridDim.x * THREADS;
    bool refused = false, differs = false, directed = false;
    for (long long a = first; a < count; a += step) {
        const double weight = weights[a];
        refused |= weight != absent && !(weight >= 0 && weight < limit && (!FLOATS || weight * n < limit));
    }
    for (long long w = first; w < start_words; w += step) differs |= starts[w] != known_starts[w];
    for (long long w = first; w < head_words; w += step) differs |= heads[w] != known_heads[w];
    for (long long e = first; e < entries; e += step) {
        if (arcs[e].number >= 0) continue;
        Wide shortest[2] = {infinity<Element>(), infinity<Element>()};
        for (long long x = e; x == e || (x < entries && arcs[x].number >= 0); ++x) {
            Wide& known = shortest[arcs[x].i < arcs[x].j];
            known = shorter(known, length(weights, number_of(arcs[x])));
        }
        directed |= shortest[0] != shortest[1];
    }
    for (long long r = first; r < rejected_count; r += step) {
        if (length(weights, rejected[r]) < infinity<Element>()) control->homeless = rejected[r] + 1ull;
    }
    if (refused) control->refused = 1;
    if (differs) control->differs = 1;
    if (directed) control->directed = 1;
}

// --- What all nodes share ------------------------------------------------------------------------------------------

// The arguments of `close_levels`, in shared memory. `into` is null if the graph is undirected: then out[:, width:] has
// the same distances.
// `sums` has four numbers for each node. `largest` are the largest finite entries of its `out` and of its `into` table.
// `below` are the largest sums of `largest` along a path from a leaf to a child of the node, for `out` and for `into`.
struct Tree {
    const Node* nodes;
    const unsigned short* places;
    const long long* arc_starts;  // where the arcs of each node begin, then how many there are
    const Arc* arcs;
    const Element* weights;
    Element* out;
    Element* into;
    Element* updates;
    double* sums;

    __device__ double& largest(int node, bool of_into) const { return sums[(long long)node * 4 + of_into]; }
    __device__ double& below(int node, bool of_into) const { return sums[(long long)node * 4 + 2 + of_into]; }

    __device__ double path(int node, bool of_into) const {
        return __ldcg(&largest(node, of_into)) + __ldcg(&below(node, of_into));
    }
};

__shared__ Tree tree;

// Words of shared memory for a node of `size` rows: the matrix, and two panels of width x front each.
__device__ constexpr int words_for(int size) {
    return size * (size | 1) + size * size / 2;
}

__shared__ alignas(16) union {
    Tile tiles[2];
    Wide of_block[words_for(MEDIUM)];
    Wide of_warps[WARPS][words_for(SMALL)];
} memory;
__shared__ double of_each_warp[4][WARPS];

__device__ inline double largest_of_warp(double value) {
    for (int lanes = 16; lanes; lanes /= 2) value = max(value, __shfl_xor_sync(ALL_LANES, value, lanes));
    return value;
}

// The larger of `most` and the value; `most` if the value is infinite.
__device__ inline Wide larger(Wide most, Wide value) {
    return value < infinity<Element>() && value > most ? value : most;
}

// --- Nodes in shared memory ----------------------------------------------------------------------------------------

// COUNT threads that close a node together, a warp or a block.
template <int COUNT>
struct Team {
    static __device__ int thread() { return (int)threadIdx.x % COUNT; }
    static __device__ void sync() {
        if (COUNT == 32) {
            __syncwarp();
        } else {
            __syncthreads();
        }
    }
    // Calls action(i, j) for all i < rows and j < columns. A row has 2^shift threads.
    template <class Action>
    static __device__ void for_all(int shift, int rows, int columns, Action action) {
        for (int i = thread() >> shift; i < rows; i += COUNT >> shift) {
            for (int j = thread() & ((1 << shift) - 1); j < columns; j += 1 << shift) action(i, j);
        }
    }
};

// Lowers the matrix to the updates of all children. The lanes of a warp read the records of 32 children at once.
template <int COUNT>
__device__ inline void enter_updates(Wide* matrix, int stride, const Node& node) {
    const int lane = threadIdx.x % 32;
    for (int first = 0; first < node.child_count; first += 32) {
        const bool there = first + lane < node.child_count;
        const Node& child = tree.nodes[node.children + min(first + lane, node.child_count - 1)];
        const int front = there ? child.front : 0;
        const long long places = child.places, update = __shfl_sync(ALL_LANES, child.update, 0);
        int end = front * front;
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            const int others = __shfl_up_sync(ALL_LANES, end, lanes);
            if (lane >= lanes) end += others;
        }
        const int total = __shfl_sync(ALL_LANES, end, 31);
        for (int base = Team<COUNT>::thread() - lane; base < total; base += COUNT) {
            const int e = base + lane;
            int of = 0;  // the first child whose entries end after e
            for (int lanes = 16; lanes; lanes /= 2) {
                if (__shfl_sync(ALL_LANES, end, of + lanes - 1) <= e) of += lanes;
            }
            const int side = __shfl_sync(ALL_LANES, front, of);
            const int own = e - __shfl_sync(ALL_LANES, end, of) + side * side;
            const unsigned short* place = tree.places + __shfl_sync(ALL_LANES, places, of);
            if (e < total) {
                const int i = own / side, j = own - i * side;
                lower(matrix[place[i] * stride + place[j]], Wide(__ldcg(tree.updates + update + e)));
            }
        }
    }
}

// Stores the largest entries of the tables and the largest sums of the paths below.
template <int COUNT>
__device__ inline void store_sums(int number, const Node& node, Wide most_out, Wide most_into) {
    double of[4] = {double(most_out), double(most_into), 0, 0};
    const int kinds = tree.into ? 2 : 1;
    for (int c = Team<COUNT>::thread(); c < node.child_count; c += COUNT) {
        for (int kind = 0; kind < kinds; ++kind) of[2 + kind] = max(of[2 + kind], tree.path(node.children + c, kind));
    }
    for (int k = 0; k < 4; ++k) {
        if (k % 2 < kinds) of[k] = largest_of_warp(of[k]);
    }
    if (COUNT > 32) {
        if (threadIdx.x % 32 == 0) {
            for (int k = 0; k < 4; ++k) of_each_warp[k][threadIdx.x / 32] = of[k];
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int k = 0; k < 4; ++k) {
                for (int warp = 1; warp < WARPS; ++warp) of[k] = max(of[k], of_each_warp[k][warp]);
            }
        }
    }
    if (Team<COUNT>::thread() == 0) {
        for (int kind = 0; kind < kinds; ++kind) {
            tree.largest(number, kind) = of[kind];
            tree.below(number, kind) = of[2 + kind];
        }
    }
}

// `close_node` and the functions for tiles are not inline: otherwise, their registers would add up.

template <int COUNT>
__device__ __noinline__ void close_node(int number) {
    using All = Team<COUNT>;
    Wide* const matrix = COUNT == 32 ? memory.of_warps[threadIdx.x / 32] : memory.of_block;
    const Node& node = tree.nodes[number];
    const int width = node.width, front = node.front, size = width + front;
    const int stride = size | 1;  // odd, so that a column too lies in different banks
    const int shift = size <= 8 ? 3 : size <= 16 ? 4 : 5;
    Wide* const rows = matrix + size * stride;                      // the distances from the pivots to the front
    Wide* const columns = tree.into ? rows + width * front : rows;  // and from the front to the pivots, transposed

    All::for_all(shift, size, size,
                 [&](int i, int j) { matrix[i * stride + j] = i == j ? Wide(0) : infinity<Element>(); });
    All::sync();
    for (long long e = tree.arc_starts[number] + All::thread(); e < tree.arc_starts[number + 1]; e += COUNT) {
        const Arc arc = tree.arcs[e];
        lower(matrix[arc.i * stride + arc.j], length(tree.weights, number_of(arc)));
    }
    enter_updates<COUNT>(matrix, stride, node);
    All::sync();

    for (int k = 0; k < width; ++k) {
        All::for_all(shift, width, width, [&](int i, int j) {
            if (i == k || j == k) return;
            Wide& entry = matrix[i * stride + j];
            entry = shorter(entry, matrix[i * stride + k] + matrix[k * stride + j]);
        });
        All::sync();
    }

    Wide most_out = 0, most_into = 0;
    Element* const out = tree.out + node.out;
    All::for_all(shift, width, width, [&](int i, int j) {
        most_out = larger(most_out, matrix[i * stride + j]);
        out[i * size + j] = Element(matrix[i * stride + j]);
    });
    All::for_all(shift, width, front, [&](int i, int f) {
        Wide best = matrix[i * stride + width + f];
        for (int k = 0; k < width; ++k) best = shorter(best, matrix[i * stride + k] + matrix[k * stride + width + f]);
        rows[i * front + f] = best;
        most_out = larger(most_out, best);
        out[i * size + width + f] = Element(best);
    });
    if (tree.into) {
        All::for_all(shift, width, front, [&](int i, int f) {
            const Wide* row = matrix + (width + f) * stride;
            Wide best = row[i];
            for (int k = 0; k < width; ++k) best = shorter(best, row[k] + matrix[k * stride + i]);
            columns[i * front + f] = best;
            most_into = larger(most_into, best);
            tree.into[node.into + i * front + f] = Element(best);
        });
    }
    All::sync();
    Element* const update = tree.updates + node.update;
    All::for_all(shift, front, front, [&](int e, int f) {
        Wide best = matrix[(width + e) * stride + width + f];
        for (int k = 0; k < width; ++k) best = shorter(best, columns[k * front + e] + rows[k * front + f]);
        update[e * front + f] = Element(best);
    });
    store_sums<COUNT>(number, node, most_out, most_into);  // waits for the warp, so that the next node may follow
}

// --- Nodes by tiles ------------------------------------------------------------------------------------------------

__device__ inline bool by_tiles(const Node& node) {
    return node.width > TILE || node.width + node.front > MEDIUM;
}

// The tiles of a node: first the tiles of its pivots, then those of its front.
struct Tiles {
    const Node& node;
    int size, of_width, count;

    __device__ explicit Tiles(const Node& of)
        : node(of),
          size(of.width + of.front),
          of_width((of.width + TILE - 1) / TILE),
          count(of_width + (of.front + TILE - 1) / TILE) {}

    __device__ int first(int tile) const {
        return tile < of_width ? tile * TILE : node.width + (tile - of_width) * TILE;
    }
    __device__ int length(int tile) const { return min(TILE, (tile < of_width ? node.width : size) - first(tile)); }
    // The tile with this number among those that are not `pivots`.
    __device__ static int other(int number, int pivots) { return number + (number >= pivots); }
};

// A part of a table or of an update.
struct Part {
    Element* first;
    int stride, rows, columns;
};

// The tile (i, j) of a node: in `out` if i is a tile of pivots, in the update if both are tiles of the front. For i in
// the front and j a tile of pivots, call `transposed_part`: such tiles are transposed, in `into`, or in `out` if the
// graph is undirected.
__device__ inline Part part(const Tiles& tiles, int i, int j) {
    const Node& node = tiles.node;
    const int i0 = tiles.first(i), j0 = tiles.first(j), rows = tiles.length(i), columns = tiles.length(j);
    if (i < tiles.of_width) return {tree.out + node.out + (long long)i0 * tiles.size + j0, tiles.size, rows, columns};
    return {tree.updates + node.update + (long long)(i0 - node.width) * node.front + (j0 - node.width), node.front,
            rows, columns};
}
// The tile (i, j), i in the front and j a tile of pivots, as the transposed matrix: rows are pivots.
__device__ inline Part transposed_part(const Tiles& tiles, int i, int j) {
    if (!tree.into) return part(tiles, j, i);
    const Node& node = tiles.node;
    const long long place = (long long)tiles.first(j) * node.front + (tiles.first(i) - node.width);
    return {tree.into + node.into + place, node.front, tiles.length(j), tiles.length(i)};
}

__device__ inline void load_tile(Tile& tile, Part from) {
    load_tile(tile, from.first, from.stride, from.rows, from.columns);
}
__device__ inline void load_transposed(Tile& tile, Part from) {
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        tile[e % TILE][e / TILE] = element(from.first, from.stride, e / TILE, e % TILE, from.rows, from.columns);
    }
}
__device__ inline void load_own(Own& own, Part from) {
    load_own(own, from.first, from.stride, from.rows, from.columns);
}
__device__ inline void store_own(Part to, const Own& own) {
    store_own(to.first, to.stride, to.rows, to.columns, own);
}

// Writes `own` to the tile, or its transpose.
__device__ inline void share(Tile& tile, const Own& own, bool transposed) {
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            const int i = own_row() + r, j = own_column() + s;
            (transposed ? tile[j][i] : tile[i][j]) = own[r][s];
        }
    }
}

// Raises the node's `largest` to the largest finite entry of `own`, a tile of a table with its final entries.
__device__ inline void note(int number, bool of_into, const Own& own) {
    Wide most = 0;
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) most = larger(most, own[r][s]);
    }
    const double found = largest_of_warp(double(most));
    if (threadIdx.x % 32 == 0) raise(tree.largest(number, of_into), found);
}

// Assembles a tile from the arcs of the node and the updates of its children. Task 0 also stores the node's `sums`.
__device__ __noinline__ void assemble(int number, int task) {
    Tile& tile = memory.tiles[0];
    const Node& node = tree.nodes[number];
    const Tiles tiles(node);
    const int i = task / tiles.count, j = task % tiles.count;
    if (task == 0) store_sums<THREADS>(number, node, 0, 0);
    const bool is_transposed = i >= tiles.of_width && j < tiles.of_width;
    if (is_transposed && !tree.into) return;
    const int i0 = tiles.first(i), j0 = tiles.first(j), rows = tiles.length(i), columns = tiles.length(j);
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        tile[e / TILE][e % TILE] = i == j && e / TILE == e % TILE ? Wide(0) : infinity<Element>();
    }
    __syncthreads();
    for (long long e = tree.arc_starts[number] + threadIdx.x; e < tree.arc_starts[number + 1]; e += THREADS) {
        const Arc arc = tree.arcs[e];
        const int r = arc.i - i0, s = arc.j - j0;
        if (r >= 0 && r < rows && s >= 0 && s < columns) lower(tile[r][s], length(tree.weights, number_of(arc)));
    }
    const int lane = threadIdx.x % 32;
    for (int c = 0; c < node.child_count; ++c) {
        const Node& child = tree.nodes[node.children + c];
        const unsigned short* places = tree.places + child.places;
        int before[4] = {};  // vertices of the child's front before the tile's first row, last row, and columns
        for (int first = 0; first < child.front; first += 32) {
            const int place = first + lane < child.front ? places[first + lane] : 0xffff;
            const int bounds[4] = {i0, i0 + rows, j0, j0 + columns};
#pragma unroll
            for (int b = 0; b < 4; ++b) before[b] += __popc(__ballot_sync(ALL_LANES, place < bounds[b]));
        }
        const Element* update = tree.updates + child.update;
        for (int r = before[0] + threadIdx.x / 32; r < before[1]; r += WARPS) {
            Wide* row = tile[places[r] - i0];
            for (int s = before[2] + lane; s < before[3]; s += 32) {
                lower(row[places[s] - j0], Wide(__ldcg(update + (long long)r * child.front + s)));
            }
        }
    }
    __syncthreads();
    const Part to = is_transposed ? transposed_part(tiles, i, j) : part(tiles, i, j);
    for (int e = threadIdx.x; e < TILE * TILE; e += THREADS) {
        const int r = e / TILE, s = e % TILE;
        if (r < to.rows && s < to.columns) {
            __stcg(to.first + (long long)r * to.stride + s, Element(is_transposed ? tile[s][r] : tile[r][s]));
        }
    }
}

// Closes a tile of pivots and multiplies it with one tile of their rows, or of their columns.
__device__ __noinline__ void relax_panel(int number, int pivots, int task) {
    Tile &left = memory.tiles[0], &right = memory.tiles[1];
    const Tiles tiles(tree.nodes[number]);
    const int tile = Tiles::other(task % (tiles.count - 1), pivots), depth = tiles.length(pivots);
    const bool is_column = task >= tiles.count - 1, in_front = tile >= tiles.of_width;
    if (is_column && !tree.into) return;
    Own own;
    load_own(own, part(tiles, pivots, pivots));
    close_tile(own, depth, 0);
    const bool from_left = !is_column || in_front;  // a column in the front is stored transposed, and so multiplied
    share(from_left ? left : right, own, is_column && in_front);
    const Part target = !is_column ? part(tiles, pivots, tile)
                        : in_front ? transposed_part(tiles, tile, pivots)
                                   : part(tiles, tile, pivots);
    load_tile(from_left ? right : left, target);
    load_own(own, target);
    __syncthreads();
    relax_tile(own, left, right, depth);
    store_own(target, own);
    if (pivots == tiles.of_width - 1) note(number, is_column && in_front, own);
    if (tree.into || in_front) return;
    const Part mirrored = part(tiles, tile, pivots);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
#pragma unroll
        for (int s = 0; s < OWN; ++s) {
            const int i = own_row() + r, j = own_column() + s;
            if (i < target.rows && j < target.columns) {
                __stcg(mirrored.first + (long long)j * mirrored.stride + i, Element(own[r][s]));
            }
        }
    }
}

// Lowers one tile outside the rows and columns of the pivots, or (task 0) closes the tile of the pivots.
__device__ __noinline__ void relax_rest(int number, int pivots, int task) {
    Tile &left = memory.tiles[0], &right = memory.tiles[1];
    const Tiles tiles(tree.nodes[number]);
    const int depth = tiles.length(pivots);
    const bool is_final = pivots == tiles.of_width - 1;
    Own own;
    if (task == 0) {
        const Part closed = part(tiles, pivots, pivots);
        load_own(own, closed);
        close_tile(own, depth, 0);
        store_own(closed, own);
        if (is_final) note(number, false, own);
        return;
    }
    const int i = Tiles::other((task - 1) / (tiles.count - 1), pivots);
    const int j = Tiles::other((task - 1) % (tiles.count - 1), pivots);
    const bool is_transposed = i >= tiles.of_width && j < tiles.of_width;
    if (is_transposed && !tree.into) return;
    const Part row = part(tiles, pivots, j);
    Part target = part(tiles, i, j);
    if (i < tiles.of_width) {
        load_tile(left, part(tiles, i, pivots));
        load_tile(right, row);
    } else if (is_transposed) {
        load_transposed(left, row);
        load_tile(right, transposed_part(tiles, i, pivots));
        target = transposed_part(tiles, i, j);
    } else {
        load_transposed(left, transposed_part(tiles, i, pivots));
        load_tile(right, row);
    }
    load_own(own, target);
    __syncthreads();
    relax_tile(own, left, right, depth);
    store_own(target, own);
    if (is_final && (i < tiles.of_width || is_transposed)) note(number, is_transposed, own);
}

// --- All levels ----------------------------------------------------------------------------------------------------

// Returns the last item that begins at the task or before it. All lanes of a warp call.
__device__ inline Item item_of(const Item* items, int count, int task) {
    const int lane = threadIdx.x % 32;
    while (count > 1) {
        const int step = (count + 31) / 32, at = lane * step;
        const bool begins = at < count && items[at].first_task <= task;
        const int last = (__popc(__ballot_sync(ALL_LANES, begins)) - 1) * step;
        items += last;
        count = min(step, count - last);
    }
    return items[0];
}

// Launch: cooperative, blocks of THREADS threads.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    close_levels(const Node* nodes, int count, const unsigned short* places, const long long* arc_starts,
                 const Arc* arcs, const Level* levels, int level_count, const Stage* stages, const Item* items,
                 const Element* weights, Element* out, Element* into, Element* updates, double* sums,
                 Control* control) {
    if (threadIdx.x == 0) tree = {nodes, places, arc_starts, arcs, weights, out, into, updates, sums};
    __syncthreads();
    unsigned expected = 0;
    for (int l = 0; l < level_count; ++l) {
        const Level& level = levels[l];
        for (int s = 0; s < level.last_stage - level.first_stage; ++s) {
            const Stage& stage = stages[level.first_stage + s];
            for (int task = blockIdx.x; task < stage.tasks; task += gridDim.x) {
                const Item item = item_of(items + stage.first, stage.last - stage.first, task);
                const int own = task - item.first_task, pivots = (s - 1) / 2;
                if (s == 0 && !by_tiles(nodes[item.node])) {
                    close_node<THREADS>(item.node);
                } else if (s == 0) {
                    assemble(item.node, own);
                } else if (s % 2) {
                    relax_panel(item.node, pivots, own);
                } else {
                    relax_rest(item.node, pivots, own);
                }
                __syncthreads();  // the next task takes the same memory
            }
            if (s == 0) {
                // Successive nodes go to different blocks, first to those that had the fewest tasks.
                const int warp = threadIdx.x / 32 * gridDim.x + (gridDim.x - 1 - blockIdx.x);
                for (int node = level.first + warp; node < level.last; node += gridDim.x * WARPS) {
                    if (nodes[node].width + nodes[node].front > level.small) continue;
                    close_node<32>(node);
                }
            }
            __syncthreads();
            expected += gridDim.x;
            if (threadIdx.x == 0) arrive_and_wait((unsigned*)&control->arrived, expected);
            __syncthreads();
        }
    }
    // Find the largest entry of all tables, and the largest sums along paths to the roots, which are the last nodes.
    const int first = (blockIdx.x * THREADS) + threadIdx.x, kinds = into ? 2 : 1;
    double largest = 0;
    for (int node = first; node < count; node += gridDim.x * THREADS) {
        for (int kind = 0; kind < kinds; ++kind) largest = max(largest, __ldcg(&tree.largest(node, kind)));
    }
    largest = largest_of_warp(largest);
    if (threadIdx.x % 32 == 0) raise(control->largest, largest);
    for (int node = levels[level_count - 1].first + first; node < count; node += gridDim.x * THREADS) {
        for (int kind = 0; kind < kinds; ++kind) raise(control->paths[kind], tree.path(node, kind));
    }
}

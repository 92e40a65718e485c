// A hierarchy on the device.
//
// Macros: ARITHMETIC, a struct of arithmetic.cuh.
#pragma once

#include "../minplus/words.cuh"

constexpr int WARP = 32;

// Pointers to the arrays of a hierarchy on the device; blocks_cuda.py lists them in this order.
struct Tree {
    // For each node, or for each vertex of all fronts.
    const int *starts, *front_starts, *rows, *parent, *brick, *row, *upper;
    const long long* out_starts;
    // For each place.
    const int* node_of;
    // For each brick; `brick_front` for each vertex of their fronts.
    const int *sizes, *brick_fronts, *brick_front;
    const long long* table_starts;
    // The vertices in the order of a sweep: brick after brick, then the upper tree; each level by level, from its roots
    // down.
    const int *level_starts, *brick_levels, *sweep_node, *sweep_row;
    // The upper tree in chunks of up to CHUNK vertices of a node, level by level, from its roots down; see sweeps.py.
    const int *chunk_levels, *chunk_node, *chunk_row, *chunk_size, *pull_starts, *pull_node, *pull_place, *pull_mask;
    // The tables `out`, and `back`: the `into` tables, or `out` again if the graph is undirected. `back_starts` has the
    // first entry of the `into` table of each node.
    const Element *out, *back;
    const long long* back_starts;
    long long back_has_out;       // 1 if `back` is `out`: its rows are then as long as rows of `out`
    long long chunk_level_count;  // levels of the upper tree
};

__device__ inline Element sum(Element x, Element y) {
    return (Element)(x + y);  // of shorts, too: two times infinity fits
}

struct Node {
    int first, width, size;  // row of its first vertex, number of its vertices, size of its front
    const int* front;        // rows of the front
    const Element* out;

    __device__ Node(const Tree& tree, int node)
        : first(tree.row[node]),
          width(tree.starts[node + 1] - tree.starts[node]),
          size(tree.front_starts[node + 1] - tree.front_starts[node]),
          front(tree.rows + tree.front_starts[node]),
          out(tree.out + tree.out_starts[node]) {}
    __device__ int step() const { return width + size; }
};

// The distances from the front of a node to its vertex in this row.
__device__ inline const Element* into(const Tree& tree, int node, const Node& own, int row) {
    return tree.back + tree.back_starts[node] +
           (long long)(row - own.first) * (tree.back_has_out ? own.step() : own.size);
}

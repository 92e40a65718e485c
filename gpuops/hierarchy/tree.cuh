// A hierarchy on the device.
//
// Macros: ARITHMETIC, a struct of arithmetic.cuh.
#pragma once

#include "../minplus/words.cuh"

constexpr int WARP = 32;

// The arcs of closed vertices, those of closed vertex c from starts[c] on: the place of the open end, and the length.
struct Links {
    const long long* starts;
    const int* ends;
    const Element* lengths;
};

// Pointers to the arrays of a hierarchy on the device; tree_cuda.py lists them in this order.
struct Tree {
    // For each node, or for each vertex of all fronts.
    const int *starts, *front_starts, *rows, *parent, *brick, *row;
    const long long* out_starts;
    // For each vertex.
    const int* place;
    // For each place.
    const int* node_of;
    // For each brick; `brick_front` for each vertex of their fronts. `above_brick` has the node above, or -1.
    const int *sizes, *above_brick, *brick_fronts, *brick_front;
    const long long* table_starts;
    // The vertices in the order of a sweep: brick after brick, then the upper tree; each level by level, from its roots
    // down.
    const int *level_starts, *brick_levels, *sweep_node, *sweep_row;
    // The upper tree in chunks of up to CHUNK vertices of a node, from its roots down; see sweep_order.py.
    const int *chunk_node, *chunk_row, *chunk_size;
    long long chunks, open, bricks;  // numbers of chunks, of open vertices and of bricks
    long long upper_rows;            // number of vertices of the upper tree
    long long width;                 // the most vertices of a brick and its front
    // The tables `out`, and `back`: the `into` tables, or `out` again if the graph is undirected. `back_starts` has the
    // first entry of the `into` table of each node.
    const Element *out, *back;
    const long long* back_starts;
    long long back_has_out;   // 1 if `back` is `out`: its rows are then as long as rows of `out`
    Links leaving, entering;  // arcs from closed to open vertices, and from open to closed vertices

    // The lowest node of the upper tree from a place upwards, or -1.
    __device__ int upper_node(int of_place) const {
        const int node = node_of[of_place];
        return brick[node] < bricks ? above_brick[brick[node]] : node;
    }
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

// The open vertices where paths from or to a vertex begin or end in the tree, each with a length to add: the vertex
// itself if it is open, or the open ends of its arcs.
struct Doors {
    int place, count;
    const int* ends = nullptr;
    const Element* lengths = nullptr;

    __device__ Doors(const Tree& tree, const Links& links, int vertex) : place(tree.place[vertex]), count(1) {
        if (place < tree.open) return;
        const long long first = links.starts[place - tree.open];
        count = (int)(links.starts[place - tree.open + 1] - first);
        ends = links.ends + first;
        lengths = links.lengths + first;
    }
    __device__ int end(int i) const { return lengths ? ends[i] : place; }
    __device__ Element length(int i) const { return lengths ? lengths[i] : Element(0); }
};

// The brick of an open vertex, or the number of bricks for vertices of the upper tree; and its row in that table.
struct Position {
    int brick, row;

    __device__ Position(const Tree& tree, int place) {
        const int node = tree.node_of[place];
        brick = tree.brick[node];
        row = tree.row[node] + place - tree.starts[node];
    }
};

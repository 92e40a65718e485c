"""Distances of a road network from a hierarchy of its vertices: any row or block of the matrix, without the matrix.

Vertices are eliminated in an order that keeps the graph sparse. Eliminating a vertex joins its neighbours by arcs as
long as the paths through the vertex; the rest of the graph then no longer needs the vertex. The steps:

1. order     vertices of degree 2 and less first, the rest by nested dissection (METIS)              `order`
2. structure the elimination tree, its nodes of several vertices, and their exact cost               `structure`
3. close     each node with its front, bottom up, by a small dense Floyd-Warshall                    `closing`
4. answer    a row, many rows, or a block of distances                                               `blocks`
             single distances from a source, for the vertices along a route                          `climbing`

The *front* of a node consists of the r later vertices that are neighbours of its subtree; they lie on the path from
the node to the root. A node of w vertices has two tables: `out`, w x (w + r), has the distances from its vertices to
each other and to its front; `into`, w x r, has the distances from its front to its vertices. Both tables count only
paths whose inner vertices lie in the subtree of the node. A shortest path first climbs in the tree and then descends.
With (x) for the min-plus product, two steps therefore give all distances from a source:

    climb    d[node] min= d[node] (x) out[:, :w],   d[front] min= d[node] (x) out[:, w:]       from a source to the root
    sweep    d[node] min= into (x) d[front]                                              from the root to all vertices

Many sources climb and sweep together. A *brick* (`bricks`) is a maximal subtree of up to 512 vertices. Bricks are not
swept for each source. Instead, the table T of distances from the front of a brick to its vertices is computed once, by
a sweep of the brick alone. With the distances d from the sources to the front, d (x) T, a product of small depth, gives
the distances to the brick by paths through its front.

Closed vertices, which no path passes through, are not in the tree (`closed_arcs`). A search from a closed source starts
at the heads of its arcs; the distance to a closed destination is a minimum over the arcs into it.

A hierarchy whose tables are CuPy arrays answers rows and blocks on the GPU, with the bits of the CPU. Its tables are
computed on the GPU (from CuPy weights), or copied there (`Hierarchy.on_gpu`).

For a module `x`, `x_numba.py` has its loops for the CPU, `x_cuda.py` launches its kernels, and `x.cu` has the kernels.
`sweeps.cu` has the climbs and sweeps of `blocks`, in the order of `sweep_order`. `tree_cuda` has the arrays of a
hierarchy on a GPU, `sources_cuda` and `columns_cuda` (`columns.cu`) the two sides of a block.

J. Dibbelt, B. Strasser, D. Wagner, "Customizable contraction hierarchies", JEA 21, 2016. D. Delling, A. V. Goldberg,
A. Nowatzyk, R. F. Werneck, "PHAST: hardware-accelerated shortest path trees", JPDC 73, 2013. P. Sao, R. Kannan,
P. Gera, R. Vuduc, "A supernodal all-pairs shortest path algorithm", PPoPP 2020.
"""

from gpuops.hierarchy.blocks import distance_block as distance_block
from gpuops.hierarchy.blocks import distance_rows as distance_rows
from gpuops.hierarchy.blocks import one_to_all as one_to_all
from gpuops.hierarchy.closing import Hierarchy as Hierarchy
from gpuops.hierarchy.closing import close_hierarchy as close_hierarchy
from gpuops.hierarchy.order import hierarchy_order as hierarchy_order
from gpuops.hierarchy.structure import Cost as Cost
from gpuops.hierarchy.structure import HierarchyStructure as HierarchyStructure
from gpuops.hierarchy.structure import hierarchy_structure as hierarchy_structure

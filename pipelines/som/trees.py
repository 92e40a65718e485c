"""The minimum spanning tree of a codebook, as FlowSOM shows maps.

S. Van Gassen, B. Callebaut, M. J. Van Helden, B. N. Lambrecht, P. Demeester, T. Dhaene, Y. Saeys, "FlowSOM: using
self-organizing maps for visualization and interpretation of cytometry data", Cytometry A 87(7), 2015.
"""

from __future__ import annotations

import numpy as np

from gpuops.som.metrics import distances_to_all

MOST_NODES = 1000  # most nodes of a tree that is laid out


def spanning_tree(units: np.ndarray, metric: str = "euclidean") -> np.ndarray:
    """Return the links of the minimum spanning tree of the units.

    Prim's algorithm from unit 0, in time M^2 d and memory M d. Of units at equal distance, the lowest comes first.

    Parameters
    ----------
    units : (M, d) float array
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    (M - 1, 2) int64 array
    """
    m = len(units)
    links = np.empty((m - 1, 2), np.int64)
    nearest, outside = np.zeros(m, np.int64), np.ones(m, bool)
    distances, new = np.full(m, np.inf), 0
    for i in range(m - 1):
        outside[new] = False
        to_new = distances_to_all(units[new : new + 1], units, metric)[0]
        closer = outside & (to_new < distances)
        distances[closer], nearest[closer] = to_new[closer], new
        new = int(np.where(outside, distances, np.inf).argmin())
        links[i] = nearest[new], new
    return links


def tree_layout(units: np.ndarray, links: np.ndarray, metric: str = "euclidean") -> np.ndarray:
    """Return where to draw the nodes of a tree: distances on paper are close to the number of links between two nodes.

    Parameters
    ----------
    units : (M, d) float array
    links : (M - 1, 2) int array
        From `spanning_tree`.
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    (M, 2) float64 array

    Raises
    ------
    ValueError
        There are more than `MOST_NODES` units.
    """
    import networkx

    m = len(units)
    if m > MOST_NODES:
        raise ValueError(f"the map has {m:,} units; a tree is laid out for up to {MOST_NODES:,}; draw umatrix instead")
    if m == 1:
        return np.zeros((1, 2))
    tree = networkx.Graph()
    tree.add_nodes_from(range(m))
    tree.add_edges_from(links.tolist())
    # Start from a layout without crossings: from a circle, networkx's default, branches stay tangled.
    layout = networkx.kamada_kawai_layout(tree, pos=_radial(tree))
    return np.array([layout[node] for node in range(m)])


def _radial(tree: object) -> dict[int, tuple[float, float]]:
    """Return positions around the centre of the tree: each branch has a sector as wide as its number of leaves."""
    import networkx

    graph: networkx.Graph = tree
    root = networkx.center(graph)[0]
    order = list(networkx.dfs_preorder_nodes(graph, root))
    parents = {child: parent for parent, child in networkx.dfs_edges(graph, root)}
    leaves = dict.fromkeys(order, 0)
    for node in reversed(order):
        leaves[node] = leaves[node] or 1
        if node != root:
            leaves[parents[node]] += leaves[node]
    begin, depth = {root: 0.0}, {root: 0}
    used = dict.fromkeys(order, 0.0)
    for node in order[1:]:
        parent = parents[node]
        begin[node], depth[node] = begin[parent] + used[parent], depth[parent] + 1
        used[parent] += leaves[node]
    turn = 2 * np.pi / leaves[root]
    angles = {node: (begin[node] + leaves[node] / 2) * turn for node in order}
    return {node: (depth[node] * np.cos(angles[node]), depth[node] * np.sin(angles[node])) for node in order}

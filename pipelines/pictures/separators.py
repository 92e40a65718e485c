"""The separators of a hierarchy for pictures: the level of each vertex in the tree, and the tree down to its bricks."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from gpuops.hierarchy import HierarchyStructure
from pipelines.pictures.drawing import LEVELS, PALE, Drawing
from pipelines.pictures.view import legend_of_levels
from pipelines.stores.hierarchy import HierarchyStore
from pipelines.stores.schema import counted

# A subtree larger than a brick is a leaf of a picture if it has at most 1 / MOST_LEAVES of the open vertices.
MOST_LEAVES = 300
THINNEST = 0.2  # width of the smallest leaf that is drawn, in points
LARGEST = 11.0  # radius of the largest dots, in points
WIDTH = 540.0  # width of a tree, in points
STEP = 44.0  # greatest height of a level, in points
TALLEST = 400.0  # greatest height of a tree, in points


def levels_of_vertices(structure: HierarchyStructure) -> np.ndarray:
    """Return the level of each vertex, int64 (n): the nodes above its own node. In bricks and if closed, it is -1."""
    levels = np.full(len(structure.order), -1)
    upper = structure.bricks.of_node == len(structure.roots)
    levels[structure.order[: structure.open]] = np.where(upper, _levels(structure), -1)[structure.node_of]
    return levels


def separator_tree(store: HierarchyStore) -> Drawing:
    """Return the tree above the bricks. Its leaves are bricks, in large trees also subtrees of several bricks.

    A node is drawn above its subtree, whose width is its share of the open vertices.
    """
    structure = store.hierarchy.structure
    bricks, starts, parent = structure.bricks, structure.starts, structure.parent
    first = starts[:-1].copy()  # the first place of each subtree, whose places follow each other
    first[structure.roots] = bricks.first_place
    nodes = np.flatnonzero((bricks.of_node == len(structure.roots)) | np.isin(np.arange(len(parent)), structure.roots))
    for node in nodes.tolist():  # children come before their parent
        if parent[node] >= 0:
            first[parent[node]] = min(first[parent[node]], first[node])
    sizes = starts[1:] - first
    most = max(int(bricks.sizes.max(initial=0)), structure.open // MOST_LEAVES)
    nodes = nodes[(parent[nodes] < 0) | (sizes[parent[nodes]] > most)]
    least = THINNEST * structure.open / WIDTH
    small, nodes = int((sizes[nodes] < least).sum()), nodes[sizes[nodes] >= least]
    inner, size = sizes[nodes] > most, sizes[nodes]
    vertices = np.where(inner, np.diff(starts)[nodes], size)
    levels = _levels(structure)[nodes]
    largest = np.where(inner, vertices[inner].max(), vertices[~inner].max(initial=1))
    room = WIDTH * size / structure.open / 2
    below = np.flatnonzero(parent[nodes] >= 0)
    y = -levels * min(STEP, TALLEST / max(1, levels.max()))
    leaves = "bricks" if most == bricks.sizes.max() else f"subtrees of up to {most:,} vertices"
    if small:
        leaves += f", without {small:,} of fewer than {math.ceil(least):,} vertices"
    return Drawing(
        names=[str(count) for count in vertices.tolist()],
        tails=np.searchsorted(nodes, parent[nodes[below]]),
        heads=below,
        directed=False,
        colours=["#9aa0a6"] * len(below),
        title=f"{Path(store.graph_path).name}: {counted(store.n, 'vertex', 'vertices')}; {store.division().names[1]}",
        fills=np.where(inner, np.array(LEVELS, object)[np.minimum(levels, len(LEVELS) - 1)], PALE),
        legend=[*legend_of_levels(np.where(inner, levels, -1), vertices), (PALE, leaves)],
        coordinates=np.stack([WIDTH * (first[nodes] + size / 2) / structure.open, y], axis=1),
        radii=np.maximum(np.minimum(LARGEST * np.sqrt(vertices / largest), room), 0.7),
        captions=True,
    )


def _levels(structure: HierarchyStructure) -> np.ndarray:
    """Return the number of nodes above each node, int64 (N)."""
    parents = structure.parent.tolist()
    levels = [0] * len(parents)
    for node in range(len(parents) - 1, -1, -1):  # parents come after their children
        if parents[node] >= 0:
            levels[node] = levels[parents[node]] + 1
    return np.array(levels, np.int64)

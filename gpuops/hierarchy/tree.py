"""A hierarchy as one tuple of arrays, which compiled code can read."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numba
import numpy as np
from numba import types

from gpuops.hierarchy.closing import Hierarchy


class Tree(NamedTuple):
    """The arrays of a `HierarchyStructure` and its `Bricks`, and the tables of a `Hierarchy`.

    The documentation of these classes describes the arrays.
    """

    # For each node, or for each vertex of all fronts, one front after another.
    starts: np.ndarray
    front_starts: np.ndarray
    front: np.ndarray
    parent: np.ndarray
    brick: np.ndarray
    row: np.ndarray
    rows: np.ndarray
    out_starts: np.ndarray
    back_starts: np.ndarray  # where the `into` table of a node begins in `back`
    # For each place.
    node_of: np.ndarray
    # For each brick. `nodes` lists the nodes of all bricks, then the nodes of the upper tree.
    nodes: np.ndarray
    brick_nodes: np.ndarray
    sizes: np.ndarray
    first_place: np.ndarray
    brick_fronts: np.ndarray
    brick_front: np.ndarray
    # The `out` and `into` tables. If the graph is undirected, `back` is `out`, which contains the `into` tables.
    out: np.ndarray
    back: np.ndarray
    undirected: bool


_trees: WeakKeyDictionary[Hierarchy, Tree] = WeakKeyDictionary()


def tree_of(hierarchy: Hierarchy) -> Tree:
    """Return the arrays of a hierarchy, without copying them."""
    if hierarchy not in _trees:
        _trees[hierarchy] = _tree_of(hierarchy)
    return _trees[hierarchy]


def _tree_of(hierarchy: Hierarchy) -> Tree:
    structure, bricks = hierarchy.structure, hierarchy.structure.bricks
    undirected = hierarchy.into is None
    back_starts = structure.into_starts
    if undirected:  # a row of `out` has first the distances within the node, then the distances to the front
        back_starts = structure.out_starts + np.append(np.diff(structure.starts), 0)
    arrays = dict(
        starts=structure.starts,
        front_starts=structure.front_starts,
        front=structure.front,
        parent=structure.parent,
        brick=bricks.of_node,
        row=bricks.node_row,
        rows=bricks.rows,
        out_starts=structure.out_starts,
        back_starts=back_starts,
        node_of=structure.node_of,
        nodes=bricks.nodes,
        brick_nodes=bricks.node_starts,
        sizes=bricks.sizes,
        first_place=bricks.first_place,
        brick_fronts=bricks.front_starts,
        brick_front=bricks.front,
        out=hierarchy.out,
        back=hierarchy.out if hierarchy.into is None else hierarchy.into,
    )
    return Tree(**{name: _read_only(array) for name, array in arrays.items()}, undirected=undirected)


def _read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view, which `tree_type` requires because arrays of stores may be mapped read-only."""
    view = array.view()
    view.flags.writeable = False
    return view


def tree_type(dtype: np.dtype) -> types.NamedTuple:
    """Return the Numba type of a `Tree`."""
    long, short, number = (
        types.Array(scalar, 1, "C", readonly=True) for scalar in (types.int64, types.int32, numba.from_dtype(dtype))
    )
    kinds = {"out": number, "back": number, "undirected": types.boolean}
    for name in "front", "parent", "brick", "row", "rows", "node_of", "nodes", "brick_front":
        kinds[name] = short
    return types.NamedTuple([kinds.get(name, long) for name in Tree._fields], Tree)

"""Distances from one source to single vertices, each computed when it is asked for.

The source climbs to the root once. The distance to a vertex follows from a sweep of the nodes on the path from the root
to the vertex alone. These nodes are kept, so that vertices near each other share most of the work. Neither a row of
distances nor a table of a brick is computed, and only the tables on the paths are read.

Distances of integers are summed in int64, and distances of floats in float64. Integer distances equal the distances of
`gpuops.distance_rows`; float distances may differ in the last bits, as float32 sums are not rounded after each step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops.csr import check_vertices
from gpuops.hierarchy.climbing_numba import begin, climb, enter
from gpuops.hierarchy.climbing_numba import distances_to as distances_to
from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.starts import starts_of
from gpuops.hierarchy.tree import tree_of
from gpuops.numbers import distance_limit


class Climbed(NamedTuple):
    """A source that has climbed to the root, for `distances_to`. One thread at a time may use it.

    The arrays of a `Tree` that are not described here keep their names. Compiled code passes each array of a tuple
    separately, so the tuple has no more arrays than a sweep needs.

    Attributes
    ----------
    source : int
    place : (n,) int32
        The place of each vertex.
    distances : (open,) int64 or float64
        By place. Entries of nodes that neither the climb nor a sweep has reached are not initialized.
    state : (N,) uint8
        For each node, 0 if it was not reached yet, 1 if the climb reached it, 2 if it was swept.
    limit, far : numbers
        Entries of the tables from `limit` on are unreachable, and so are `distances` equal to `far`.
    potentials : (n,) int64 or float64
        By vertex, added to its distance. Empty if the hierarchy has no potentials.
    offset : number
        Subtracted from all distances: the potential of the source.
    """

    source: int
    place: np.ndarray
    distances: np.ndarray
    state: np.ndarray
    limit: Any
    far: Any
    potentials: np.ndarray
    offset: Any
    node_of: np.ndarray
    parent: np.ndarray
    starts: np.ndarray
    front_starts: np.ndarray
    front: np.ndarray
    back_starts: np.ndarray
    back: np.ndarray
    undirected: bool


def climb_from(hierarchy: Hierarchy, source: int) -> Climbed:
    """Climb from a source to the root.

    `distances_to(climbed, vertices, found)`, which compiled code may call, then fills `found`, an array of the dtype of
    `climbed.distances`, with the distances to vertices that are open or the source itself.

    Raises
    ------
    ValueError
        The source is not a vertex.
    """
    structure = hierarchy.structure
    chosen = check_vertices(source, len(structure.order))
    scalar: Any = np.float64 if hierarchy.dtype.kind == "f" else np.int64
    limit = scalar(np.inf if scalar is np.float64 else distance_limit(hierarchy.dtype))
    far = scalar(np.inf if scalar is np.float64 else np.iinfo(np.int64).max // 2)
    out, into = (np.empty(0, scalar),) * 2 if hierarchy.potentials is None else hierarchy.potentials
    offset = scalar(0) if hierarchy.potentials is None else out[chosen[0]]
    tree = tree_of(hierarchy)
    distances, state = begin(structure.open, len(tree.parent), far)
    climbed = Climbed(
        int(chosen[0]), structure.place, distances, state, limit, far, into, offset,
        tree.node_of, tree.parent, tree.starts, tree.front_starts, tree.front, tree.back_starts, tree.back,
        tree.undirected,
    )  # fmt: skip
    places, _, lengths = starts_of(hierarchy, structure.place[chosen])
    nodes = np.sort(enter(climbed, places, lengths.astype(scalar)))
    climb(climbed, nodes, tree.out_starts, tree.out)
    return climbed

"""Close a hierarchy: compute the tables of every node, for given weights.

On a CPU, each brick is closed by one thread; when all bricks are closed, one thread closes the upper tree. A GPU closes
level after level (`closing_cuda`). The order in which pivots are eliminated follows from the structure alone, so the
bits of the tables do not depend on the number of threads, nor on where they are computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuops import csr
from gpuops._threads import for_all
from gpuops.arrays import contiguous, is_cupy, library_of
from gpuops.hierarchy import closing_cuda, closing_numba, structure_numba
from gpuops.hierarchy.closed_arcs import ClosedArcs, Links
from gpuops.hierarchy.closing_arguments import LARGER, check_arcs, lengths_of, refuse_arc
from gpuops.hierarchy.structure import HierarchyStructure
from gpuops.numbers import check_dtype, distance_limit, infinity


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A structure and the tables of its nodes, in one distance dtype. Unreachable is `gpuops.numbers.infinity`.

    `out` and `into` are NumPy arrays, or CuPy arrays on one device, which then computes the answers. All other arrays
    are NumPy's.

    Attributes
    ----------
    structure : HierarchyStructure
    out : (cost.out,) array, NumPy or CuPy
        For each node of w vertices with a front of r vertices, a (w, w + r) table by rows: the distances from the
        vertices of the node to each other, then to the front.
    into : (cost.into,) array like `out`, or None
        For each node, a (w, r) table: row i has the distances from the front to vertex i of the node. None if the graph
        is undirected; the last r columns of the `out` table then have the same distances.
    closed : ClosedArcs
    potentials : pair of (n,) arrays, or None
        The potentials that made negative weights non-negative.
    bound : float
        An upper bound of the magnitudes of all finite distances.
    """

    structure: HierarchyStructure
    out: Any
    into: Any
    closed: ClosedArcs
    potentials: tuple[np.ndarray, np.ndarray] | None
    bound: float

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the distances."""
        return self.out.dtype

    @property
    def fits(self) -> bool:
        """Whether `bound` proves that all distances fit the dtype; if not, every answer is checked."""
        return self.bound < distance_limit(self.dtype)

    def on_gpu(self) -> Hierarchy:
        """Return the same hierarchy with its tables in CuPy arrays on the current device, which answers then use."""
        import cupy

        into = None if self.into is None else cupy.asarray(self.into)
        return replace(self, out=cupy.asarray(self.out), into=into)

    @cached_property
    def in_float64(self) -> Hierarchy:
        """The same hierarchy in float64. Integer distances up to 2^53 are exact."""

        def floats(values: Any) -> Any:
            return library_of(values).where(values < infinity(values.dtype), values, np.inf)

        def links(of: Links) -> Links:
            return replace(of, lengths=floats(of.lengths))

        closed = ClosedArcs(*map(links, (self.closed.leaving, self.closed.entering, self.closed.beside)))
        into = None if self.into is None else floats(self.into)
        return replace(self, out=floats(self.out), into=into, closed=closed)


def close_hierarchy(
    structure: HierarchyStructure,
    indptr: Any,
    indices: Any,
    weights: Any,
    *,
    potentials: tuple[np.ndarray, np.ndarray] | None = None,
) -> Hierarchy:
    """Compute the tables of a structure for given weights. One structure can be closed with many sets of weights.

    Parameters
    ----------
    structure : HierarchyStructure
        The result of `gpuops.hierarchy_structure`.
    indptr, indices, weights : (n + 1,), (m,), (m,) arrays
        The graph that the structure was made for, or the same graph with fewer arcs. Weights are float32, float64,
        int32 or int16; distances have the same dtype. An arc of weight +inf, or of the maximum of an integer dtype, is
        ignored. With CuPy weights, their GPU computes the tables, and `indptr` and `indices` are NumPy or CuPy arrays.
        The layout of the structure and of the last graph stays on the GPU as long as the structure: closing the same
        graph again, with other weights, takes a fraction of the time.
    potentials : pair of (n,) arrays, optional
        The result of `gpuops.certificates.find_potentials`, which raises NegativeCycleError if a negative cycle rules
        out potentials. Required if a weight is negative.

    Returns
    -------
    Hierarchy

    Raises
    ------
    OverflowError
        A weight, or a distance in the table of a node, does not fit the dtype.
    TypeError
        CuPy arrays of a graph with NumPy weights, or weights of another dtype.
    ValueError
        Arrays that are not a graph, NaN, a weight that is negative even with the potentials, or an arc that the
        structure was not made for.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> weights = np.array([4, 4, 7, 7], "int32")
    >>> order = gpuops.hierarchy_order(indptr, indices)
    >>> structure, cost = gpuops.hierarchy_structure(indptr, indices, order)
    >>> hierarchy = gpuops.close_hierarchy(structure, indptr, indices, weights)
    >>> gpuops.distance_rows(hierarchy, [2]).tolist()
    [[11, 7, 0]]
    """
    dtype = check_dtype(weights.dtype)
    tables = closing_cuda.close if is_cupy(weights) else _tables
    closed, out, into, largest, paths = tables(structure, indptr, indices, weights, potentials)
    limit = distance_limit(dtype)
    if largest >= limit:
        raise OverflowError(f"a distance reaches {limit:.6g}, too far for {dtype}; {LARGER[dtype.kind]}")
    bound = paths
    bound += sum(float(links.lengths.max(initial=0)) for links in (closed.leaving, closed.entering, closed.beside))
    bound += sum(float(np.abs(each).max(initial=0)) for each in potentials or ())
    return Hierarchy(structure, out, into, closed, potentials, bound)


def _tables(
    structure: HierarchyStructure,
    indptr: Any,
    indices: Any,
    weights: Any,
    potentials: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[ClosedArcs, np.ndarray, np.ndarray | None, float, float]:
    """Close on the CPU.

    Returns the arcs of closed vertices, the tables, the largest finite entry of all tables, and an upper bound of the
    finite distances between open vertices.
    """
    check_arcs(structure, indptr, indices, weights)
    n, open_, dtype = len(structure.order), structure.open, weights.dtype
    tails = csr.tails(indptr, len(indices), np.int64)
    lengths = lengths_of(tails, indices, weights, potentials, n)
    place, there = structure.place, np.empty(0, np.int64)
    if open_ < n:
        there = np.flatnonzero((lengths < infinity(dtype)) & ((place[tails] >= open_) | (place[indices] >= open_)))
    closed = ClosedArcs.of(place[tails[there]], place[indices[there]], lengths[there], open_, n)
    del tails, there  # a tenth of the memory at the fullest point
    arcs = structure_numba.deal(contiguous(indptr), contiguous(indices), place, open_, True)
    undirected = closing_numba.are_symmetric(*arcs, lengths, infinity(dtype))
    out = np.empty(structure.out_starts[-1], dtype)
    into = None if undirected else np.empty(structure.into_starts[-1], dtype)
    largest = _close(structure, arcs, lengths, out, into)
    paths = sum(closing_numba.longest_path(each, structure.parent) for each in largest)
    return closed, out, into, max(float(each.max(initial=0)) for each in largest), paths


def _close(
    structure: HierarchyStructure,
    arcs: tuple[np.ndarray, np.ndarray, np.ndarray],
    lengths: np.ndarray,
    out: np.ndarray,
    into: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Fill the tables. Returns the largest finite entry of the `out` table and of the `into` table of each node."""
    bricks, nodes = structure.bricks, len(structure.parent)
    widths, fronts = np.diff(structure.starts), np.diff(structure.front_starts)
    children = np.bincount(structure.parent[structure.parent >= 0], minlength=nodes).astype(np.int64)
    update_starts = np.concatenate([[0], np.cumsum(np.diff(bricks.front_starts) ** 2)])
    updates = np.empty(update_starts[-1], out.dtype)
    largest = np.zeros((2, nodes))
    close = closing_numba.compile_for(out.dtype)
    fixed = (
        structure.starts, structure.front_starts, structure.front, children, *arcs, lengths,
        structure.out_starts, out, structure.into_starts, out[:0] if into is None else into, into is None,
        bricks.of_node, update_starts, updates, *largest,
    )  # fmt: skip
    unknown: list[int] = []

    def close_brick(brick: int) -> None:
        first, last = bricks.node_starts[brick : brick + 2]
        unknown.append(close(bricks.nodes[first:last], False, *fixed))

    work = (widths * (widths + fronts) ** 2.0)[bricks.nodes[: bricks.node_starts[-2]]].sum()
    for_all(close_brick, range(len(bricks.sizes)), int(work))
    if max(unknown, default=-1) < 0:
        upper = np.sort(np.concatenate([structure.roots, bricks.nodes[bricks.node_starts[-2] :]]))
        unknown.append(close(upper, True, *fixed))
    if max(unknown) >= 0:
        refuse_arc(max(unknown))
    return largest[0], largest[1]

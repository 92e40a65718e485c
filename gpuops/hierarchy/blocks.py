"""Distances from many sources: rows, or a block for any origins and destinations.

On a CPU, each thread takes a batch of sources. The batch climbs to the upper tree and sweeps it. Then, for each brick
with destinations, one product gives the distances by paths that enter the brick through its front; for sources in the
same brick, the distances are lowered by paths that never leave it. On a GPU, `blocks_cuda` takes the same steps. The
bits of a distance do not depend on the other sources and destinations of the call.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpuops._threads import for_all
from gpuops.arrays import has_contiguous_rows, is_cupy, library_of
from gpuops.csr import check_vertices
from gpuops.hierarchy import blocks_cuda, blocks_numba
from gpuops.hierarchy.closing import Hierarchy
from gpuops.hierarchy.destinations import Destinations
from gpuops.hierarchy.finishing import finish, narrowed
from gpuops.hierarchy.memory import BATCH, ROUND, kept_most
from gpuops.hierarchy.starts import starts_of
from gpuops.hierarchy.tree import tree_of
from gpuops.memory import available_memory
from gpuops.numbers import outside_infinity

# Number of tasks into which computing the tables is cut.
_TASKS = 16
# Estimated relaxations for an entry of a table.
_TABLE_WORK = 8
# Estimated relaxations for the distance from a source to a vertex of the upper tree.
_UPPER_WORK = 32


def one_to_all(hierarchy: Hierarchy, source: Any) -> Any:
    """Return the distances from one vertex to all vertices: the only row of `gpuops.distance_rows`.

    Parameters
    ----------
    hierarchy : Hierarchy
    source : int

    Returns
    -------
    (n,) array
        As a row of `gpuops.distance_rows`.

    Raises
    ------
    OverflowError, ValueError
        As for `gpuops.distance_rows`.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> weights = np.array([4, 4, 7, 7], "int32")
    >>> order = gpuops.hierarchy_order(indptr, indices)
    >>> structure, cost = gpuops.hierarchy_structure(indptr, indices, order)
    >>> hierarchy = gpuops.close_hierarchy(structure, indptr, indices, weights)
    >>> gpuops.one_to_all(hierarchy, 0)
    array([ 0,  4, 11], dtype=int32)
    """
    return distance_rows(hierarchy, [source])[0]


def distance_rows(hierarchy: Hierarchy, sources: Any, *, out: Any = None) -> Any:
    """Return the distances from each source to all vertices.

    The first call for a hierarchy computes the tables of all bricks, which takes several times as long as a row. On a
    CPU, later calls use the same tables if they fit into a quarter of the memory that is available to the first call;
    otherwise, every call computes them again. A process with a part of the machine's threads takes the same part of the
    quarter. On a GPU, the tables are always kept, and blocks use them too.

    Parameters
    ----------
    hierarchy : Hierarchy
    sources : (k,) sequence of int, or CuPy array of integers
        In any order, repeated or not.
    out : (k, n) array, optional
        Receives the result: of the dtype and the library of the tables, with contiguous rows.

    Returns
    -------
    (k, n) array
        Distances in the dtype of the hierarchy, a CuPy array if its tables are. Unreachable is +inf, or the maximum of
        an integer dtype. A distance has the same bits for any other sources, for any number of threads, and in
        `gpuops.distance_block`.

    Raises
    ------
    OverflowError
        A distance does not fit the dtype.
    ValueError
        A source is not a vertex, or `out` does not fit.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> weights = np.array([4, 4, 7, 7], "int32")
    >>> order = gpuops.hierarchy_order(indptr, indices)
    >>> structure, cost = gpuops.hierarchy_structure(indptr, indices, order)
    >>> hierarchy = gpuops.close_hierarchy(structure, indptr, indices, weights)
    >>> gpuops.distance_rows(hierarchy, [0, 1]).tolist()
    [[0, 4, 11], [4, 0, 7]]
    """
    return _answer(hierarchy, sources, None, out)


def distance_block(hierarchy: Hierarchy, origins: Any, destinations: Any, *, out: Any = None) -> Any:
    """Return the distances from each origin to each destination.

    Parameters
    ----------
    hierarchy : Hierarchy
    origins, destinations : (k,), (l,) sequences of int, or CuPy arrays of integers
        In any order, repeated or not. For a hierarchy on the same GPU without closed vertices and potentials, CuPy
        arrays are not copied to the host.
    out : (k, l) array, optional
        Receives the result: of the dtype and the library of the tables, with contiguous rows.

    Returns
    -------
    (k, l) array
        As for `gpuops.distance_rows`.

    Raises
    ------
    OverflowError, ValueError
        As for `gpuops.distance_rows`.

    Examples
    --------
    >>> indptr, indices = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # a road through 3 vertices
    >>> weights = np.array([4, 4, 7, 7], "int32")
    >>> order = gpuops.hierarchy_order(indptr, indices)
    >>> structure, cost = gpuops.hierarchy_structure(indptr, indices, order)
    >>> hierarchy = gpuops.close_hierarchy(structure, indptr, indices, weights)
    >>> gpuops.distance_block(hierarchy, [0, 1], [2]).tolist()
    [[11], [7]]
    """
    return _answer(hierarchy, origins, destinations, out)


class _Plan:
    """The destinations of one or more calls, and their tables if the tables are kept.

    A single window of tables is always kept, several windows if the tables take at most `most` bytes.
    """

    def __init__(self, hierarchy: Hierarchy, vertices: np.ndarray, most: int = 0):
        self.destinations = there = Destinations.of(hierarchy, vertices)
        self.tree, self.kernels = tree_of(hierarchy), blocks_numba.compile_for(hierarchy.dtype)
        self.columns = (
            there.group_brick, there.group_starts, there.window_starts, there.column,
            there.window_runs, there.run_starts, there.run_targets, there.run_again,
            there.arc_starts, there.arc_rows, there.arc_lengths, there.needed, there.table_starts,
        )  # fmt: skip
        self.windows = len(there.window_starts) - 1
        self._keeps = self.windows == 1 or there.table_starts[-1] * hierarchy.dtype.itemsize <= most
        self._kept: dict[int, np.ndarray] = {}

    def table(self, window: int) -> np.ndarray:
        """Return the tables of a window."""
        if window in self._kept:
            return self._kept[window]
        table = self._made(window)
        if self._keeps:
            self._kept[window] = table
        return table

    def _made(self, window: int) -> np.ndarray:
        starts = self.destinations.table_starts
        first, last = self.destinations.window_starts[window : window + 2].tolist()
        table = np.empty(starts[last] - starts[first], self.tree.out.dtype)
        cuts = sorted({first + (last - first) * i // _TASKS for i in range(_TASKS + 1)})

        def make(groups: tuple[int, int]) -> None:
            part = table[starts[groups[0]] - starts[first] : starts[groups[1]] - starts[first]]
            self.kernels.tables(part, *groups, *self.columns, self.tree)

        for_all(make, list(pairwise(cuts)), _TABLE_WORK * len(table))
        return table


_everywhere: WeakKeyDictionary[Hierarchy, _Plan] = WeakKeyDictionary()  # plans with all vertices as destinations


def _answer(hierarchy: Hierarchy, origins: Any, destinations: Any, out: Any) -> Any:
    with hierarchy.out.device if is_cupy(hierarchy.out) else nullcontext():
        return _answer_there(hierarchy, origins, destinations, out)


def _answer_there(hierarchy: Hierarchy, origins: Any, destinations: Any, out: Any) -> Any:
    n, dtype, xp = len(hierarchy.structure.order), hierarchy.dtype, library_of(hierarchy.out)
    checked = _on_device if xp is not np else check_vertices
    origins = checked(origins, n, "origin" if destinations is not None else "source")
    vertices = None if destinations is None else checked(destinations, n, "destination")
    shape = (len(origins), n if vertices is None else len(vertices))
    out = xp.empty(shape, dtype) if out is None else out
    fits = library_of(out) is xp and out.shape == shape and out.dtype == dtype
    if not fits or not has_contiguous_rows(out):
        library = "NumPy" if xp is np else "CuPy"
        raise ValueError(f"out must be a {library} array of {dtype}, of shape {shape}, with contiguous rows")
    wide = hierarchy if hierarchy.fits else hierarchy.in_float64
    if is_cupy(hierarchy.out):
        fill = partial(blocks_cuda.answers_of(wide).fill, vertices)
    else:
        fill = partial(_fill, wide, _plan(wide, vertices))
    if hierarchy.fits:
        fill(origins, out)
        finish(hierarchy, out, origins, vertices)
        return out
    step = max(1, ROUND // max(1, shape[1]))
    for first in range(0, len(origins), step):
        some = slice(first, first + step)
        found = xp.empty(out[some].shape, wide.dtype)
        fill(origins[some], found)
        finish(wide, found, origins[some], vertices)
        out[some] = narrowed(found, dtype)
    return out


def _on_device(vertices: Any, n: int, name: str) -> Any:
    """Check vertices for answers of a GPU. CuPy arrays become int32 and stay where they are."""
    import cupy

    if is_cupy(vertices) and vertices.ndim == 1 and vertices.dtype.kind in "iu" and vertices.size > 0:
        here = vertices.device == cupy.cuda.Device()
        if here and int(vertices.min()) >= 0 and int(vertices.max()) < n:
            return cupy.ascontiguousarray(vertices, np.int32)
    return check_vertices(vertices, n, name)


def _plan(hierarchy: Hierarchy, vertices: np.ndarray | None) -> _Plan:
    """Return the plan for some destinations; None stands for all vertices, whose plan is kept."""
    if vertices is not None:
        return _Plan(hierarchy, vertices)
    if hierarchy not in _everywhere:
        _everywhere[hierarchy] = _Plan(
            hierarchy, np.arange(len(hierarchy.structure.order)), kept_most(available_memory())
        )
    return _everywhere[hierarchy]


def _fill(hierarchy: Hierarchy, plan: _Plan, origins: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with distances by paths through the tree."""
    out[:, plan.destinations.missing] = outside_infinity(hierarchy.dtype)
    # Sort the origins by place, so that the sources of a batch are near each other in the tree.
    order = np.argsort(hierarchy.structure.place[origins])
    step = max(1, ROUND // max(1, hierarchy.structure.bricks.upper) // BATCH) * BATCH
    for first in range(0, len(order), step):
        _fill_some(hierarchy, plan, origins, order[first : first + step], out)


def _fill_some(hierarchy: Hierarchy, plan: _Plan, origins: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Fill some rows of `out`, with their distances to the upper tree all in memory."""
    there, upper = plan.destinations, hierarchy.structure.bricks.upper
    batches = [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
    starts = [starts_of(hierarchy, hierarchy.structure.place[origins[batch]]) for batch in batches]
    above = [np.empty((upper, len(batch)), hierarchy.dtype) for batch in batches]

    def depart(i: int) -> None:
        plan.kernels.depart(above[i], *starts[i], there.needed, plan.tree)

    def arrive(window: int, table: np.ndarray, i: int) -> None:
        plan.kernels.arrive(out, batches[i], above[i], *starts[i], table, window, *plan.columns, plan.tree)

    numbers = range(len(batches))
    for_all(depart, numbers, len(rows) * upper * _UPPER_WORK)
    for window in range(plan.windows):
        table = plan.table(window)
        for_all(partial(arrive, window, table), numbers, len(rows) * len(table))

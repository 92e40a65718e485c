"""Rows of distances of a graph that is cut into closed parts, by two short products (see `pipelines.boundary`).

For a source s of part I and the targets of part J, with B(I) and B(J) their boundary vertices:

    onward = D_I[s, B(I)] (x) H[B(I), :]               from s to every boundary vertex of the graph
    row[J] = onward[B(J)] (x) D_J[B(J), J]             for J = I at most D_I[s, J]

On a CPU a row of both stays in cache; on a GPU each is a batch of products in one launch. An entry is written once, and
costs as many relaxations as J has boundary vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpuops._threads import for_all
from gpuops.arrays import has_contiguous_rows, is_cupy, library_of
from gpuops.boundary import boundary_cuda, tiles_cuda
from gpuops.boundary.boundary_cuda import StripTables
from gpuops.boundary.boundary_numba import compile_for
from gpuops.boundary.tables_cuda import ONWARD_BYTES
from gpuops.boundary.tiles_cuda import TileTables
from gpuops.numbers import check_dtype

ROWS = 16  # of a task
STRIPS = 64  # boundary vertices of a part, at most, for which a GPU goes by strips and not by tiles


def device_bytes(part: np.ndarray, boundary_sizes: np.ndarray, dtype: np.dtype) -> int:
    """What a GPU takes beside tables and results to make whole rows.

    Parameters
    ----------
    part, boundary_sizes : as in `ClosedParts`
    dtype : of distances

    Returns
    -------
    int
        Bytes: how all vertices are laid out as targets, and what lies between the two launches.
    """
    way = boundary_cuda if boundary_sizes.max(initial=0) <= STRIPS else tiles_cuda
    return way.targets_bytes(part, boundary_sizes, np.dtype(dtype)) + ONWARD_BYTES


@dataclass(frozen=True, eq=False)
class ClosedParts:
    """Tables of a cut graph: K parts of p vertices and b boundary vertices at most, S boundary vertices in all.

    Attributes
    ----------
    part, place : (n,) integers
        The part of every vertex, and its place there; boundary vertices have the first places.
    boundary_sizes : (K,) integers
        Boundary vertices of each part.
    to_boundary : (K, p, b) array
        Distances within each part from every place to its boundary; infinite beyond its sizes.
    from_boundary : (K, b, p) array
    inner : (K, p, p) array
        Distances within each part.
    among : (S, S) array
        Distances between all boundary vertices, those of one part after those of another.

    The tables are all NumPy or all CuPy, of one distance dtype, contiguous; integers have the inside infinity of
    `gpuops.numbers`. The first three are NumPy.
    """

    part: np.ndarray
    place: np.ndarray
    boundary_sizes: np.ndarray
    to_boundary: Any
    from_boundary: Any
    inner: Any
    among: Any

    @cached_property
    def starts(self) -> np.ndarray:
        """(K + 1,) int64: where the boundary of each part begins among all boundary vertices, and the end."""
        return np.concatenate([[0], np.cumsum(self.boundary_sizes)])

    @cached_property
    def all_columns(self) -> tuple[np.ndarray, ...]:
        """What `_columns` finds for all vertices: whole rows ask for it again and again."""
        return _columns(self, np.arange(len(self.part)))

    @cached_property
    def device_tables(self) -> StripTables | TileTables:
        """What the kernels read, where the tables are CuPy's."""
        return (StripTables if self.to_boundary.shape[2] <= STRIPS else TileTables)(self)

    def on_gpu(self) -> ClosedParts:
        """The same with CuPy tables on the current device, which thus stay there for many calls."""
        import cupy

        tables = ("to_boundary", "from_boundary", "inner", "among")
        return replace(self, **{name: cupy.asarray(getattr(self, name)) for name in tables})


def boundary_distances(parts: ClosedParts, sources: Any, targets: Any, *, out: Any = None) -> Any:
    """Distances from each of some vertices to each of others.

    Parameters
    ----------
    parts : ClosedParts
    sources, targets : (k,) and (l,) vertices
        In any order, repeated or not; NumPy or CuPy.
    out : (k, l) array, optional
        Receives the result, in the dtype of the tables, with contiguous rows.

    Returns
    -------
    (k, l) array
        NumPy or CuPy, as the tables are. Integers have the inside infinity. Bits do not depend on the device.

    Raises
    ------
    IndexError
        There is no such vertex.
    ValueError
        `out` does not fit.
    """
    dtype, xp = check_dtype(parts.among.dtype), library_of(parts.among)
    n = len(parts.part)
    sources, targets = (np.asarray(v.get() if is_cupy(v) else v, np.int64) for v in (sources, targets))
    for name, vertices in ("sources", sources), ("targets", targets):
        if len(vertices) and not (0 <= np.min(vertices) and np.max(vertices) < n):
            raise IndexError(f"{name}: the vertices are 0 to {n - 1:,}")
    shape = (len(sources), len(targets))
    out = xp.empty(shape, dtype) if out is None else out
    if out.shape != shape or out.dtype != dtype or library_of(out) is not xp or not has_contiguous_rows(out):
        raise ValueError(
            f"out is {out.dtype} {out.shape}; for these vertices it must be {dtype} {shape}, where the tables are, "
            "with contiguous rows"
        )
    whole = [len(vertices) == n and np.array_equal(vertices, np.arange(n)) for vertices in (sources, targets)]
    if is_cupy(parts.among):
        if out.size:
            with parts.among.device:
                parts.device_tables.distances(out, None if whole[0] else sources, None if whole[1] else targets)
        return out
    columns = parts.all_columns if whole[1] else _columns(parts, targets)
    rows: Callable[..., Any] = compile_for(dtype)
    order = np.argsort(parts.part[sources], kind="stable")  # neighbours in a part share rows of `among`
    tables = (parts.part, parts.place, parts.starts, parts.to_boundary, parts.inner, parts.among)
    work = len(sources) * (len(targets) + len(parts.among)) * max(1, parts.to_boundary.shape[2])
    for_all(
        lambda first: rows(out, order[first : first + ROWS], sources, *tables, *columns),
        range(0, len(sources), ROWS),
        work,
    )
    return out


def _columns(parts: ClosedParts, targets: np.ndarray) -> tuple[np.ndarray, ...]:
    """The targets by part: their order, the parts there are and where each begins, places, and how they are reached."""
    order = np.argsort(parts.part[targets], kind="stable")
    there = parts.part[targets][order].astype(np.int64)
    groups, firsts = np.unique(there, return_index=True)
    places = parts.place[targets][order].astype(np.int64)
    arrival = np.ascontiguousarray(parts.from_boundary[there, :, places].T)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return back, groups, np.append(firsts, len(order)).astype(np.int64), places, arrival

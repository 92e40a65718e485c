"""Close the parts of a cut graph, and the graph of their boundary vertices.

Parts are closed here on a CPU; `batches` closes them on a GPU, many at a time. `close` closes the boundary graph on
either device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gpuops import floyd_warshall
from gpuops.arrays import like
from gpuops.numbers import distance_limit, infinity
from pipelines.stores.boundary import Cut

Potentials = tuple[np.ndarray, np.ndarray] | None  # for tails, for heads; None if no weight is negative


class Arcs(NamedTuple):
    """Arcs with weights that are not negative.

    Attributes
    ----------
    tails, heads : (m,) integers
    weights : (m,) numbers of the dtype of the distances
    """

    tails: np.ndarray
    heads: np.ndarray
    weights: np.ndarray


def close(d: Any, through: np.ndarray) -> Any:
    """Close a matrix of lengths in place over paths whose inner vertices are open. Returns the matrix.

    Parameters
    ----------
    d : (n, n) array, NumPy or CuPy
        A matrix as for `gpuops.floyd_warshall`, without negative entries.
    through : (n,) bool
        Whether a vertex is open, so that it may lie inside a path.
    """
    if through.all():
        return floyd_warshall(d, out=d, nonnegative=True)
    order = like(d, np.argsort(~through, kind="stable"))
    sorted_ = floyd_warshall(d[order[:, None], order], nonnegative=True, pivots=int(through.sum()))
    d[order[:, None], order] = sorted_
    return d


def close_part(arcs: Arcs, through: np.ndarray) -> np.ndarray:
    """Return the distances within a part.

    Parameters
    ----------
    arcs : arcs between vertices of the part, named by their places in the part
    through : (p,) bool

    Returns
    -------
    (p, p) array
    """
    return close(_matrix(arcs, len(through)), through)


def ways_to(inner: np.ndarray, through: np.ndarray, boundary: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first columns and rows of a closed part: the distances to its boundary, and from its boundary.

    A closed boundary vertex must not lie inside a path. Only the vertex itself reaches it, and it reaches only itself.

    Returns
    -------
    (p, boundary) and (boundary, p) arrays
    """
    to_boundary, from_boundary = inner[:, :boundary].copy(), inner[:boundary].copy()
    for v in np.flatnonzero(~through[:boundary]).tolist():
        to_boundary[:, v] = from_boundary[v] = infinity(inner.dtype)
        to_boundary[v, v] = from_boundary[v, v] = 0
    return to_boundary, from_boundary


def with_weights(d: np.ndarray, potentials: Potentials, vertices: np.ndarray) -> np.ndarray:
    """Return the distances for the given weights from the distances with potentials: d[u, v] - out[u] + into[v]."""
    return d if potentials is None else _moved(d, potentials[0][vertices], potentials[1][vertices])


def without_negative(d: np.ndarray, potentials: Potentials, vertices: np.ndarray) -> np.ndarray:
    """Undo `with_weights`. Floats that rounding makes negative become 0."""
    if potentials is None:
        return d
    return np.maximum(_moved(d, -potentials[0][vertices], -potentials[1][vertices]), d.dtype.type(0))


def _moved(d: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
    reached = d < (infinity(d.dtype) if d.dtype.kind == "f" else distance_limit(d.dtype))
    moved = np.where(reached, (d - out[:, None] + into).astype(d.dtype), infinity(d.dtype))
    np.fill_diagonal(moved, 0)
    return moved


def boundary_matrix(cut: Cut, arcs: Arcs, among: Iterable[np.ndarray]) -> np.ndarray:
    """Return the lengths between boundary vertices, not yet closed: arcs between parts, and distances within parts.

    Parameters
    ----------
    arcs : the arcs from one part to another
    among : for each part, the (b, b) distances between its boundary vertices

    Returns
    -------
    (S, S) array
        Rows and columns are the boundary vertices of all parts, one part after another.
    """
    starts = np.cumsum(cut.boundary_sizes) - cut.boundary_sizes
    place = starts[cut.part] + cut.place
    h = _matrix(Arcs(place[arcs.tails], place[arcs.heads], arcs.weights), int(cut.boundary_sizes.sum()))
    for start, block in zip(starts.tolist(), among, strict=True):
        square = slice(start, start + len(block))
        np.minimum(h[square, square], block, out=h[square, square])
    return h


def _matrix(arcs: Arcs, size: int) -> np.ndarray:
    """Return the matrix of the least weights of the arcs between any two vertices, with 0 on the diagonal."""
    d = np.full((size, size), infinity(arcs.weights.dtype))
    np.minimum.at(d, (arcs.tails, arcs.heads), arcs.weights)
    np.fill_diagonal(d, 0)
    return d

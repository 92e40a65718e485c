"""Cut a graph into parts with few boundary vertices, by METIS, and choose the number of parts.

G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci.
Comput. 20, 1998.
"""

from __future__ import annotations

import numpy as np

from pipelines.boundary.plan import ANSWERED, work
from pipelines.stores.boundary import Cut

SMALLEST = 48  # fewest vertices of a part, on average, that are tried
LARGEST = 4096  # most vertices of a part, on average, that are tried: closing larger parts takes long


def cut_graph(indptr: np.ndarray, indices: np.ndarray, parts: int | None = None, rows: int = ANSWERED) -> Cut:
    """Cut a graph into parts.

    Parameters
    ----------
    indptr, indices : (n + 1,) and (m,) integers
        The graph in CSR; directions, loops and parallel arcs are ignored.
    parts : int, optional
        Number of parts. By default, the number with the least work (`pipelines.boundary.plan.work`).
    rows : int
        Expected number of requested rows of distances.

    Raises
    ------
    ImportError
        `pymetis` is not installed.
    ValueError
        `parts` is not from 1 to the number of vertices.
    """
    n = len(indptr) - 1
    if parts is not None and not 1 <= parts <= max(n, 1):
        raise ValueError(f"parts is {parts}; with {n:,} vertices it must be from 1 to {max(n, 1):,}")
    pattern = _undirected(indptr, indices)
    if parts is not None:
        return _cut(*pattern, parts)
    best = _cut(*pattern, 1)
    worse, count = 0, 2
    while n // count >= SMALLEST and worse < 2:
        if n // count <= LARGEST:
            other = _cut(*pattern, count)
            best, worse = (other, 0) if work(other, rows) < work(best, rows) else (best, worse + 1)
        count *= 2
    return best


def _undirected(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both directions of every arc, once and without loops, in CSR for METIS."""
    n = len(indptr) - 1
    tails, heads = np.repeat(np.arange(n), np.diff(indptr)), np.asarray(indices, np.int64)
    apart = tails != heads
    pairs = np.concatenate([(tails * n + heads)[apart], (heads * n + tails)[apart]])
    pairs.sort(kind="stable")  # unlike `unique`, this sort is faster if many pairs are in order
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
    starts = np.searchsorted(pairs, np.arange(n + 1) * n)
    return starts.astype(np.int32), (pairs % max(n, 1)).astype(np.int32)


def _cut(starts: np.ndarray, neighbours: np.ndarray, parts: int) -> Cut:
    n = len(starts) - 1
    if parts == 1 or n == 0:
        return Cut(np.zeros(n, np.int32), np.zeros(n, bool))
    try:
        import pymetis
    except ImportError as error:
        raise ImportError("cutting a graph needs pymetis: pip install 'tilepath[partition]'") from error
    adjacency = pymetis.CSRAdjacency(adj_starts=starts, adjacent=neighbours)
    options = pymetis.Options(seed=1)
    _, found = pymetis.part_graph(parts, adjacency, recursive=False, options=options)
    _, part = np.unique(np.asarray(found, np.int32), return_inverse=True)  # METIS may leave parts empty
    return cut_into(part.astype(np.int32), starts, neighbours)


def cut_into(part: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> Cut:
    """Return the cut of a graph, in CSR, into the given parts, (n,) int32, with the boundary vertices of each part."""
    tails = np.repeat(np.arange(len(part)), np.diff(indptr))
    across = part[tails] != part[indices]
    boundary = np.zeros(len(part), bool)
    boundary[tails[across]] = boundary[indices[across]] = True
    return Cut(part, boundary)

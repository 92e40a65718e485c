"""Close the parts of a cut graph on a GPU, many at a time: the GPU makes one batch of matrices from the arcs."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from gpuops import floyd_warshall
from gpuops.numbers import infinity
from pipelines.boundary.cut_graph import CutGraph
from pipelines.boundary.plan import BATCH_BYTES


class PartBatches:
    """The closed parts of a graph, for tasks that take them one by one in rising order. `xp` is CuPy.

    Tasks may call from several threads. A batch may include parts that other workers also close; this costs less than a
    launch for each part.
    """

    def __init__(self, graph: CutGraph, xp: Any):
        self.graph, self.xp = graph, xp
        cut = graph.cut
        self.size = int(cut.sizes.max(initial=1))
        self._first, self._inner = 0, np.empty((0, 0, 0))
        self._lock = Lock()
        # The row of each vertex, by part and place, in the matrix of its part. Closed vertices are not pivots, so they
        # come last.
        through = graph.through[cut.order]
        part = cut.part[cut.order]
        self._part_starts = np.concatenate([[0], np.cumsum(cut.sizes)])
        by_through = np.lexsort((~through, part))
        self._rank = np.empty(len(part), np.int64)
        self._rank[by_through] = np.arange(len(part)) - self._part_starts[part]
        self._open = np.bincount(part, through, minlength=cut.parts).astype(np.int64)

    def inner(self, part: int) -> np.ndarray:
        """Return the distances within a part, on the host. The following parts are closed in the same batch."""
        with self._lock:
            if not 0 <= part - self._first < len(self._inner):
                count = max(1, BATCH_BYTES // (self.size**2 * self.graph.job.dtype.itemsize))
                self._first, self._inner = part, self.closed(part, min(part + count, self.graph.cut.parts)).get()
            size = int(self.graph.cut.sizes[part])
            return self._inner[part - self._first, :size, :size]

    def closed(self, first: int, last: int) -> Any:
        """Return the distances within parts, (last - first, p, p), CuPy; undefined beyond the size of a part."""
        sizes, pivots = self.graph.cut.sizes[first:last], self._open[first:last]
        d = self.lengths(first, last)
        floyd_warshall(d, out=d, nonnegative=True, sizes=sizes, pivots=pivots)
        for k in np.flatnonzero(pivots < sizes).tolist():
            start, size = self._part_starts[first + k], sizes[k]
            rank = self.xp.asarray(self._rank[start : start + size])
            d[k, :size, :size] = d[k][rank][:, rank]
        return d

    def lengths(self, first: int, last: int) -> Any:
        """Return the least weight of the arcs between any two vertices of a part."""
        tails, heads, weights = (array[slice(*self.graph.starts[[first, last]])] for array in self.graph.within)
        owner = np.repeat(np.arange(last - first), np.diff(self.graph.starts[first : last + 1]))
        starts = self._part_starts[first:last][owner]
        places = (owner * self.size + self._rank[starts + tails]) * self.size + self._rank[starts + heads]
        order = np.lexsort((weights, places))
        least = order[np.flatnonzero(np.diff(places[order], prepend=-1))]
        d = self.xp.empty((last - first, self.size, self.size), self.graph.job.dtype)
        d[...] = infinity(d.dtype)
        d.reshape(-1)[self.xp.asarray(places[least])] = self.xp.asarray(weights[least])
        return d

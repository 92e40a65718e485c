"""Windows and pulls: shortest distances on a CPU, if weights are not negative or the graph has potentials.

Rows of arcs are sorted by ascending weight, and most arcs are never read:

* **push.** One thread opens windows of distances, one after the other. A window begins at the least sum that is due,
  and its vertices form a queue. Each vertex relaxes the arcs whose sums lie within the window and holds back its
  further arcs: `cursor` is the first arc held back, `wake` is the sum of that arc, and the pile has all vertices that
  wait. When the queue is empty, distances within the window are final.
* **pull.** Once settled vertices hold back many arcs compared with the arcs that lead to unsettled vertices, every
  unsettled vertex takes the minimum over its own incoming arcs from reached vertices. It reads arcs only as long as
  their weights can still improve its distance, which takes few arcs. All threads pull, each for a range of vertices. A
  distance that another thread changes meanwhile is an upper bound before and after the change. A pass that changes no
  distance proves that all distances are final. When a pass changes few distances, their vertices are pushed again: by
  windows if there are potentials, else by all threads (`gpuops.sssp.finish_numba`).

On R-MAT graphs a twentieth of the arcs is read. On grids and roads hardly any arc is held back, so there are no pulls.

If weights are negative and the graph has potentials p, windows and pulls use *keys*, d(v) - p(v), in place of
distances, and reduced weights, w + p(u) - p(v), in place of weights. Keys and reduced weights are float64 and determine
only the order of work. The search compares and stores distances: sums of the original weights, rounded as usual. An arc
whose key is beyond the window cannot improve a head whose key is within the window, because rounding is monotone. But a
distance that is rounded down may move a vertex back behind the window. Such a vertex is *late*: it relaxes its arcs
once more after the pulls.

U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003;
pull: V. Chakaravarthy et al., "Scalable single source shortest path algorithms for massively parallel systems", IPDPS
2014.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuops._compiled_numba import entry
from gpuops.numbers import outside_infinity
from gpuops.sssp.profile_numba import less, never, profile
from gpuops.sssp.pulls_numba import LATE
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

_PATIENCE = 8  # windows before windows may widen: at the beginning of a search they have little work in any graph

# Pulls begin once settled vertices hold back more than _MANY of all arcs, and more than _PULL of the arcs to be pulled.
_MANY = 1 / 16
_PULL = 1 / 4

_LET_GO = 1 / 512  # share of all arcs that are relaxed before pulls, however heavy, so that pulls read fewer arcs
_NEAREST = 255  # of the vertices that wait, the nearest that are sorted at first: few hold back as many arcs

_MOST, _NO_LIMIT = 32, 2**62  # a search with potentials gives up after it has read all arcs _MOST times


class Scratch(NamedTuple):
    """Scratch memory, reused by one search after the other: new memory costs time, even more with many threads."""

    wake: np.ndarray
    cursor: np.ndarray
    state: np.ndarray
    lists: np.ndarray

    @classmethod
    def of(cls, graph: Any) -> Scratch:
        n, keys = graph.n, graph.dtype if graph.potentials is None else np.float64
        return cls(np.empty(n, keys), np.empty(n, np.int32), np.empty(n, np.uint8), np.empty((2, n), np.int32))


class Search:
    """One search, which stops when pulls are due and can continue after them.

    Attributes
    ----------
    begins : the closed vertices at which paths begin, and their distances
    last : distances with keys up to `last` are final
    floor : no vertex with a key below `floor` holds back arcs
    late : (n,) uint8, 2 for vertices that came back behind `last`
    gave_up : whether the search stopped because rounded sums seem to fall forever around a cycle; only with potentials
    """

    late: np.ndarray | None = None
    gave_up = False

    def __init__(
        self,
        graph: Any,
        distances: np.ndarray,
        pending: np.ndarray | None = None,
        limit: Any = None,
        scratch: Scratch | None = None,
    ):
        self.infinity, self.never = outside_infinity(graph.dtype), never(graph)
        self.graph, self.distances, self.profile = graph, distances, profile(graph)
        self.limit = self.never if limit is None else limit
        self.wake, self.cursor, self.state, (self.queue, self.pile) = scratch or Scratch.of(graph)
        self.cursor.fill(0)
        self.state.fill(0)
        self.kind = kind = self.wake.dtype.type
        self.width = kind(max(self.profile.width, 1) if graph.dtype.kind == "i" else self.profile.width)
        self.rounds, self.touched, self.waiting = 0, 0, 0  # touched: arcs read; waiting: vertices in the pile
        self.open_arcs = graph.m if self.profile.cuts.size else -1  # arcs into unsettled vertices; -1: no pulls
        begin, self.begins = starting_vertices(graph, distances, pending)
        begin = np.union1d(begin, relax_closed(graph, distances, self.begins))
        self.last = self.floor = kind(0)
        if graph.potentials is not None and len(begin):
            self.last = self.floor = self._keys(begin).min()
        self._wait(begin)

    def push(self) -> bool:
        """Open windows until no vertex is due, and return False; return True as soon as pulls are due."""
        graph, kind = self.graph, self.kind
        most = _NO_LIMIT if graph.potentials is None else _MOST * (graph.m + graph.n)
        self.waiting, last, width, self.touched, self.open_arcs, windows, pulls = _push(
            graph.indptr, graph.indices, graph.weights, graph.potentials, self.profile.lightest, self.profile.entering,
            self.distances, self.wake, self.cursor, self.state, self.queue, self.pile, self.waiting, self.last,
            self.width, self.limit, self.infinity, self.never, self.touched, most, self.open_arcs,
        )  # fmt: skip
        self.last, self.width = kind(last), kind(width)
        self.rounds += windows
        self.gave_up = self.touched > most
        if pulls:
            self._raise_floor()
        return pulls

    def _raise_floor(self) -> None:
        """Relax all arcs of the nearest vertices, a small share of all arcs, to raise `floor`.

        In a pull, a vertex reads its row as far as an arc from a tail at `floor` could improve its distance. A source
        with few arcs is far nearer than all other vertices, and would keep `floor` low.
        """
        graph, waiting, some = self.graph, self.pile[: self.waiting], _NEAREST
        keys = self._keys(waiting)
        while True:
            places = np.argpartition(keys, some)[: some + 1] if some < len(keys) else np.arange(len(keys))
            places = places[np.argsort(keys[places])]
            nearest = waiting[places]
            held = np.cumsum(graph.indptr[nearest + 1] - graph.indptr[nearest] - self.cursor[nearest])
            count = int(np.searchsorted(held, _LET_GO * graph.m, side="right"))
            if count < len(places) or some >= len(keys):
                break
            some *= 16
        self.late = None if graph.potentials is None else np.zeros(graph.n, np.uint8)
        _let_go(
            graph.indptr, graph.indices, graph.weights, graph.potentials, self.distances, self.cursor, nearest[:count],
            self.last, self.late,
        )  # fmt: skip
        self.floor = keys[places[count]] if count < len(places) else self.last

    def _keys(self, vertices: np.ndarray) -> np.ndarray:
        distances, potentials = self.distances[vertices], self.graph.potentials
        return distances if potentials is None else distances - potentials[vertices]

    def go_on_from(self, changed: np.ndarray, passes: int) -> None:
        """Continue after pulls: only the arcs of vertices in the mask `changed` can improve a distance."""
        self.rounds += passes
        self.open_arcs = -1
        self.state[:] = 0
        self._wait(np.flatnonzero(changed != 0))  # of a mask, which takes half of the time of bytes

    def _wait(self, vertices: np.ndarray) -> None:
        """Put vertices into the pile, to relax all their arcs."""
        wide = np.int64 if self.graph.dtype.kind == "i" else self.graph.dtype
        due = self.distances[vertices].astype(wide) + self.profile.lightest[vertices]
        vertices, due = vertices[due < self.never], due[due < self.never]
        self.waiting = len(vertices)
        self.pile[: self.waiting], self.wake[vertices] = vertices, due
        self.cursor[vertices], self.state[vertices] = 0, 2


@entry
def _push(
    indptr, indices, weights, potentials, lightest, entering, distances, wake, cursor, state, queue, pile, waiting,
    last, width, limit, infinity, never, touched, most, open_arcs,
):  # fmt: skip
    """Open windows. The state of a vertex is 1 in the queue, 2 in the pile, 3 in both.

    One long function: the innermost loop changes the queue, the pile and the window.
    """
    n, m, windows, kind = distances.size, indices.size, 0, wake.dtype.type
    due = never  # the earliest key at which a vertex wakes
    for i in range(waiting):
        due = min(due, wake[pile[i]])
    while True:
        if due >= never or due > limit:
            return 0, last, width, touched, open_arcs, windows, False
        last = kind(min(due + width, never))
        due = never
        looked_at, kept, size = waiting, 0, 0
        for i in range(waiting):
            vertex = pile[i]
            if wake[vertex] <= last:
                queue[size] = vertex
                state[vertex] = 1
                size += 1
            else:
                due = min(due, wake[vertex])
                pile[kept] = vertex
                kept += 1
        waiting, first, read, again = kept, 0, 0, 0
        while size > 0:
            tail = queue[first]
            first = first + 1 if first + 1 < n else 0
            size -= 1
            state[tail] &= 2
            distance, begin, end = distances[tail], indptr[tail], indptr[tail + 1]
            start = arc = begin + cursor[tail]
            wakes = False
            key = kind(0)
            while arc < end:
                head, nearer = indices[arc], distance + weights[arc]
                key = distance + less(weights[arc], head, potentials)
                if key > last:
                    wakes = key < never
                    break
                arc += 1
                known = distances[head]
                if nearer < known:
                    distances[head] = nearer
                    if less(known, head, potentials) > last:
                        open_arcs -= entering[head]
                    again += cursor[head]
                    cursor[head] = 0
                    leaves = nearer + lightest[head]
                    if state[head] & 1 or leaves >= never:
                        continue
                    if leaves <= last:
                        at = first + size
                        queue[at if at < n else at - n] = head
                        state[head] |= 1
                        size += 1
                    else:
                        wake[head] = leaves
                        due = min(due, kind(leaves))
                        if state[head] == 0:
                            pile[waiting] = head
                            state[head] = 2
                            waiting += 1
            read += arc - start
            cursor[tail] = arc - begin
            if wakes:
                wake[tail] = key
                due = min(due, wake[tail])
                if state[tail] == 0:
                    pile[waiting] = tail
                    state[tail] = 2
                    waiting += 1
            else:
                wake[tail] = never
            if touched + read > most:
                return 0, last, width, touched + read, open_arcs, windows, False
        windows += 1
        touched += read
        held = m - open_arcs - touched if open_arcs >= 0 else 0
        if held > _MANY * m and held > _PULL * open_arcs:
            return waiting, last, width, touched, open_arcs, windows, True
        if 2 * again > read:
            width = kind(width / 2)
        elif windows > _PATIENCE and read < 2 * looked_at:
            width = kind(min(width * 2, never))


@entry
def _let_go(indptr, indices, weights, potentials, distances, cursor, vertices, last, late):
    for tail in vertices:
        distance = distances[tail]
        for arc in range(indptr[tail] + cursor[tail], indptr[tail + 1]):
            nearer, head = distance + weights[arc], indices[arc]
            known = distances[head]
            distances[head] = nearer if nearer < known else known  # a branch here would often be mispredicted
            if potentials is not None and nearer < known and less(nearer, head, potentials) <= last:
                late[head] = LATE

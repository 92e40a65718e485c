"""Windows and pulls: shortest distances on a CPU, where weights are not negative or have potentials.

Rows of arcs are sorted by rising weight, and most arcs are never looked at:

* **push.** One thread goes by windows of distances. A window is opened at the least sum that is due, its vertices make
  a queue; each relaxes the arcs whose sums lie within the window, and holds back the rest: `cursor` is the first arc
  held back, `wake` its sum, the pile all vertices that wait. When the queue is empty, distances within are final.
* **pull.** Once settled vertices hold back more arcs than lead to the others, each of these takes the minimum over its
  own arcs from vertices that are reached, as far as their weights can still improve it, which takes few arcs. All
  threads pull, each for vertices of its own; what another writes meanwhile is an upper bound, before and after. A pass
  in which nothing changes is a proof. When little does, what changed is pushed again.

On R-MAT graphs a twentieth of the arcs is read. On grids and roads nearly nothing is held back, so nothing is pulled.

Where weights are negative, and the graph has potentials p, all this goes by *keys*, d(v) - p(v), and arcs by their
reduced weights, w + p(u) - p(v). Keys and reduced weights are float64, and say what to do when. What is compared and
stored in the end are distances: sums of the weights themselves, rounded as usual. An arc whose key is beyond the window
cannot improve a head whose key is within, as rounding is monotone. But a distance that is rounded down may bring a
vertex back behind the window. Such a vertex is *late*: it relaxes its arcs once more when pulls are over.

U. Meyer, P. Sanders, "Delta-stepping: a parallelizable shortest path algorithm", Journal of Algorithms 49, 2003;
pull: V. Chakaravarthy et al., "Scalable single source shortest path algorithms for massively parallel systems", IPDPS
2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gpuops._threads import for_all
from gpuops.numbers import outside_infinity
from gpuops.sssp.profile_numba import less, never, profile
from gpuops.sssp.sources_numba import relax_closed, starting_vertices

_PATIENCE = 8  # windows before the first one is widened: where a search begins it is thin in any graph

# Pulls begin once settled vertices hold back that share of all arcs, and of the arcs that may be pulled.
_MANY = 1 / 16
_PULL = 1 / 4

_LET_GO = 1 / 512  # of all arcs: what may be relaxed, however heavy, to begin pulls with less to look at
_FEW = 1 / 256  # pulls end when fewer of the unsettled vertices change
_GATHER = 256  # what a random access takes, in relaxations of a dense matrix

_MOST, _NO_LIMIT = 32, 2**62  # with potentials, a search gives up when it has read all arcs that many times
_PASSES = 64  # of pulls, at most
_ROUNDING = 2.0**-48  # of a few sums in float64
_LATE = 2  # marks a vertex that came back behind what is final


# --- Push -------------------------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """Memory that searches use one after the other: new memory from the system costs time, more so to many threads."""

    wake: np.ndarray
    cursor: np.ndarray
    state: np.ndarray
    lists: np.ndarray

    @classmethod
    def of(cls, graph: Any) -> Room:
        n, keys = graph.n, graph.dtype if graph.potentials is None else np.float64
        return cls(np.empty(n, keys), np.empty(n, np.int32), np.empty(n, np.uint8), np.empty((2, n), np.int32))


class Search:
    """One search, which stops where pulls are due and can go on after them.

    Attributes
    ----------
    begins : the closed vertices at which paths begin, and their distances
    last : a key, up to which distances are final
    floor : a key, below which no vertex holds arcs back
    late : (n,) uint8, 2 for vertices that came back behind `last`
    gave_up : rounded sums seem to fall forever around a cycle; only with potentials
    """

    late: np.ndarray | None = None
    gave_up = False

    def __init__(
        self,
        graph: Any,
        distances: np.ndarray,
        pending: np.ndarray | None = None,
        limit: Any = None,
        room: Room | None = None,
    ):
        self.infinity, self.never = outside_infinity(graph.dtype), never(graph)
        self.graph, self.distances, self.profile = graph, distances, profile(graph)
        self.limit = self.never if limit is None else limit
        self.wake, self.cursor, self.state, (self.queue, self.pile) = room or Room.of(graph)
        self.cursor.fill(0)
        self.state.fill(0)
        self.kind = kind = self.wake.dtype.type
        self.width = kind(max(self.profile.width, 1) if graph.dtype.kind == "i" else self.profile.width)
        self.rounds, self.touched, self.waiting = 0, 0, 0  # touched: arcs; waiting: vertices in the pile
        self.open_arcs = graph.m if self.profile.ranges else -1  # into vertices not settled; -1: no pulls
        begin, self.begins = starting_vertices(graph, distances, pending)
        begin = np.union1d(begin, relax_closed(graph, distances, self.begins))
        self.last = self.floor = kind(0)
        if graph.potentials is not None and len(begin):
            self.last = self.floor = self._keys(begin).min()
        self._wait(begin)

    def push(self) -> bool:
        """Open windows until nothing is due, or until it takes less to pull: then True."""
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
        """Let go of some arcs: those of the nearest vertices.

        How far a vertex looks back along its row depends on the nearest tail that there may be. A source with few arcs
        is nearer than all others by far.
        """
        waiting = self.pile[: self.waiting]
        keys = self._keys(waiting)
        by_key = np.argsort(keys)
        waiting, keys = waiting[by_key], keys[by_key]
        held = self.graph.indptr[waiting + 1] - self.graph.indptr[waiting] - self.cursor[waiting]
        count = int(np.searchsorted(np.cumsum(held), _LET_GO * self.graph.m, side="right"))
        graph = self.graph
        self.late = np.zeros(graph.n, np.uint8)
        _let_go(
            graph.indptr, graph.indices, graph.weights, graph.potentials, self.distances, self.cursor, waiting[:count],
            self.last, self.late,
        )  # fmt: skip
        self.floor = keys[count] if count < len(waiting) else self.last

    def _keys(self, vertices: np.ndarray) -> np.ndarray:
        distances, potentials = self.distances[vertices], self.graph.potentials
        return distances if potentials is None else distances - potentials[vertices]

    def go_on_from(self, changed: np.ndarray, passes: int) -> None:
        """After so many passes of pulls, only the arcs of vertices that changed can improve anything: a mask."""
        self.rounds += passes
        self.open_arcs = -1
        self.state[:] = 0
        self._wait(np.flatnonzero(changed))

    def _wait(self, vertices: np.ndarray) -> None:
        """Put vertices into the pile, to relax all their arcs."""
        wide = np.int64 if self.graph.dtype.kind == "i" else self.graph.dtype
        due = self.distances[vertices].astype(wide) + self.profile.lightest[vertices]
        vertices, due = vertices[due < self.never], due[due < self.never]
        self.waiting = len(vertices)
        self.pile[: self.waiting], self.wake[vertices] = vertices, due
        self.cursor[vertices], self.state[vertices] = 0, 2


@njit(nogil=True, cache=True)
def _push(
    indptr, indices, weights, potentials, lightest, entering, distances, wake, cursor, state, queue, pile, waiting,
    last, width, limit, infinity, never, touched, most, open_arcs,
):  # fmt: skip
    """state: 1, in the queue; 2, in the pile; 3, both.

    One long function: queue, pile and window are all changed by the innermost loop.
    """
    n, m, windows, kind = distances.size, indices.size, 0, wake.dtype.type
    due = never  # nothing wakes before
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


@njit(nogil=True, cache=True)
def _let_go(indptr, indices, weights, potentials, distances, cursor, vertices, last, late):
    for tail in vertices:
        distance = distances[tail]
        for arc in range(indptr[tail] + cursor[tail], indptr[tail + 1]):
            nearer, head = distance + weights[arc], indices[arc]
            if nearer < distances[head]:
                distances[head] = nearer
                if potentials is not None and less(nearer, head, potentials) <= last:
                    late[head] = _LATE


# --- Pull -------------------------------------------------------------------------------------------------------------


def pull(
    graph: Any, rows: Callable[..., Any], distances: np.ndarray, floor: Any, last: Any, late: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Let vertices look for nearer tails, in passes, until few of them find one.

    Parameters
    ----------
    graph : SearchGraph
    rows : what pulls for a range of vertices, `pull_rows` or one with its signature
    distances : in place
    floor, last : no tail that may improve anything is nearer than the one; distances up to the other are final
    late : vertices to which this does not apply, as `Search.late`; changed in place

    Returns
    -------
    changed : (n,) uint8, not 0 for vertices that came nearer in the last pass; no arc of another one improves anything
    passes : how many there were
    """
    given, infinity = profile(graph), outside_infinity(graph.dtype)
    through = np.ones(graph.n, bool) if graph.through is None else graph.through
    arrays = graph.in_indptr, graph.in_indices, graph.in_weights, graph.potentials, given.in_lightest, through
    changed = np.zeros(graph.n, np.uint8) if late is None else late
    passes = 0
    rounding = 0
    if graph.potentials is not None:
        rounding = _ROUNDING * (given.magnitude + abs(floor) + abs(last))
        floor, last = floor - rounding, last - rounding
    while True:
        counts: list[tuple[int, int]] = []

        def work(vertices: tuple[int, int], floor: Any = floor, counts: list[tuple[int, int]] = counts) -> None:
            counts.append(rows(*arrays, distances, changed, floor, last, infinity, *vertices))

        for_all(work, given.ranges, _GATHER * graph.n)
        passes += 1
        unsettled, nearer = (sum(column) for column in zip(*counts, strict=True))
        if nearer <= _FEW * unsettled or passes == _PASSES:
            return changed, passes
        floor = last - rounding  # final distances have been looked at


@njit(nogil=True, cache=True)
def _plus(weight, tail, potentials):
    return weight if potentials is None else np.float64(weight) + potentials[tail]


@njit(nogil=True, cache=True)
def pull_rows(
    in_indptr, in_indices, in_weights, potentials, in_lightest, through, distances, changed, floor, last, infinity,
    first_vertex, last_vertex,
):  # fmt: skip
    """How many vertices of a range are not settled, and how many came nearer."""
    unsettled, nearer = 0, 0
    for head in range(first_vertex, last_vertex):
        known = distances[head]
        if changed[head] != _LATE:
            changed[head] = 0
        if less(known, head, potentials) <= last:
            continue
        unsettled += 1
        if floor + in_lightest[head] >= known:
            continue
        best = known
        for arc in range(in_indptr[head], in_indptr[head + 1]):
            weight, tail = in_weights[arc], in_indices[arc]
            if floor + _plus(weight, tail, potentials) >= best:
                break
            distance = distances[tail] + weight
            if potentials is not None and distances[tail] == infinity:
                continue  # an int32 infinity, to which a negative weight was added
            if distance < best and through[tail]:
                best = distance
        if best < known:
            distances[head] = best
            late = potentials is not None and less(best, head, potentials) <= last
            changed[head] = _LATE if late else max(changed[head], np.uint8(1))
            nearer += 1
    return unsettled, nearer

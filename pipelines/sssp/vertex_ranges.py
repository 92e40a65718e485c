"""One worker's part of a search spread by vertices: the arcs that leave a range of vertices, in pieces.

A piece is a graph of its own: its vertices are those of a part of the range, and beside them, as *ghosts* without
arcs, the heads that lie elsewhere. The distances of all n vertices stay on the worker as upper bounds: of its own
vertices the best that is known, of the others the best that its own arcs offer.

1. settle: search each piece that has a pending vertex from its pending vertices until no arc in it improves its head;
   heads in other pieces of the range become pending there. A piece that has to be read again waits for the next round:
   what others have found by then spares work.
2. collect_news: the distances of other workers' vertices that were improved since they were last sent, by owner.
3. receive: take over what improves, and mark it pending.

When nobody has anything to send or pending, no arc improves anything. That fixpoint is unique: sums of rounded
additions are monotone, so the distance of v is the least, over all paths to v, of their lengths rounded arc by arc,
whatever the order in which paths were tried. Hence the same bits for any number of workers and pieces, in floats too.

4. attach, once all distances are final and known everywhere: predecessors by `gpuops.sssp.shortest_path_tree` in each
   piece, whose roots are the vertices that have theirs already.
5. take: a vertex whose tight arcs all come from elsewhere gets its predecessor in a packet, and is a root in the next
   round of step 4. So a vertex that ties with its predecessor comes after it, and predecessors never form a cycle.
   Without ties one round does it all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from gpuops import NegativeCycleError
from gpuops.arrays import like
from gpuops.numbers import outside_infinity
from gpuops.sssp import improve_distances, shortest_path_tree
from gpuops.sssp.graph_layout import SearchGraph, search_graph
from pipelines.sssp.searches import SearchJob
from pipelines.workers.capacity import available_memory
from pipelines.workers.device_arrays import to_host

Packet = tuple[np.ndarray, np.ndarray]  # vertices, and the distances or the predecessors that are offered to them


@dataclass(frozen=True)
class Piece:
    """The arcs that leave the vertices `first` to `last` (excluded), laid out for searches."""

    first: int
    last: int
    graph: SearchGraph
    vertices: Any  # (local n) the vertex of each number in `graph`: the own ones first, then the ghosts
    places: Any  # the same in the internal order of `graph`

    def moved(self, move: Callable[[Any], Any]) -> Piece:
        """The piece with every array moved to the device or to the host."""
        arrays = {name: move(part) for name, part in vars(self.graph).items() if hasattr(part, "dtype")}
        return replace(
            self, graph=replace(self.graph, **arrays), vertices=move(self.vertices), places=move(self.places)
        )


def equal_ranges(indptr: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Cut the vertices into `count` ranges that as many arcs leave, as nearly as whole vertices allow.

    >>> equal_ranges(np.array([0, 4, 5, 6, 8]), 2)
    [(0, 1), (1, 4)]
    """
    n = len(indptr) - 1
    goals = np.arange(1, count) * (int(indptr[-1]) / count)
    inner = np.searchsorted(indptr, goals, side="left").clip(0, n)
    edges = [0, *inner.tolist(), n]
    return list(pairwise(edges))


@dataclass(frozen=True)
class Seeds:
    """What a search begins with: sources at distance 0, and heads of arcs that leave the closed ones among them.

    Closed vertices have no say in a piece, although paths may begin at them.
    """

    sources: tuple[int, ...]
    heads: dict[int, tuple[Any, int]]  # vertex -> least distance, and the source that it comes from


def seeds_of(job: SearchJob, sources: tuple[int, ...]) -> Seeds:
    """The seeds of a search from `sources`."""
    through = job.through
    heads: dict[int, tuple[Any, int]] = {}
    for source in sources:
        if through is None or through[source]:
            continue
        _, indices, weights = job.arcs(source, source + 1)
        for head, weight in zip(indices.tolist(), weights, strict=True):
            if head != source and (head not in heads or weight < heads[head][0]):
                heads[head] = (weight, source)
    return Seeds(sources, heads)


class VertexRange:
    """The state of one worker."""

    def __init__(self, job: SearchJob, ranges: list[tuple[int, int]], worker: int, pieces: int, xp: Any):
        self.job, self.ranges, self.worker, self.xp = job, ranges, worker, xp
        self.first, self.last = ranges[worker]
        indptr = job.graph.indptr(self.first, self.last)
        cuts = equal_ranges(indptr - indptr[0], pieces)
        self.cuts = [(self.first + a, self.first + b) for a, b in cuts if a < b]
        mask = job.through
        self.through = None if mask is None else xp.asarray(mask)
        # Reading and sorting pieces again is what takes longest. Beside a GPU, the host mostly has room to keep them.
        own_bytes = int(indptr[-1] - indptr[0]) * (4 + job.dtype.itemsize) + 32 * job.graph.n * len(self.cuts)
        self._streamed = len(self.cuts) > 1
        self._keeps = not self._streamed or (xp is not np and own_bytes * len(ranges) < available_memory() / 2)
        self._kept: dict[int, Piece] = {}  # on the device if there is just one, else on the host
        n, self.unreachable = job.graph.n, outside_infinity(job.dtype)
        self.known = xp.full(n, self.unreachable, dtype=job.dtype)
        self.pending = xp.zeros(n, dtype=bool)
        self.news = xp.zeros(n, dtype=bool)  # improved since it was last sent
        self.packets: dict[int, Packet] = {}  # by receiver
        self.seeds = Seeds((), {})
        self.attached = xp.zeros(n, dtype=bool)
        self.predecessors = xp.empty(0, dtype=np.int32)

    def begin(self, seeds: Seeds) -> None:
        """Start a search."""
        self.seeds = seeds
        self.known[:] = self.unreachable
        self.pending[:] = False
        self.news[:] = False
        self.receive((np.array(seeds.sources), np.zeros(len(seeds.sources), self.job.dtype)))
        heads = np.array(list(seeds.heads), dtype=np.int64)
        self.receive((heads, np.array([length for length, _ in seeds.heads.values()], self.job.dtype)))

    def receive(self, packet: Packet) -> None:
        """Take over distances of own vertices that improve on what is known; a packet names each vertex once."""
        vertices, values = (like(self.known, part) for part in packet)
        better = self._owns(vertices) & (values < self.known[vertices])
        self.known[vertices[better]] = values[better]
        self.pending[vertices[better]] = True

    def settle(self) -> int:
        """Search every piece that has a pending vertex, once; returns how many vertices are pending after that."""
        for cut in self.cuts:
            if bool(self.pending[slice(*cut)].any()):
                self._search(self._piece(*cut))
        return int(self.pending[self.first : self.last].sum())

    def _search(self, piece: Piece) -> None:
        known = self.known[piece.places]
        pending = self.pending[piece.places]  # ghosts have no arcs
        self.pending[piece.first : piece.last] = False
        before = known.copy()
        try:
            improve_distances(piece.graph, known, pending)
        except NegativeCycleError as error:
            vertices = to_host(piece.vertices)[list(error.vertices)]
            raise NegativeCycleError(str(error), vertices.tolist(), error.weight) from None
        improved = piece.places[known < before]
        self.known[piece.places] = known
        elsewhere = improved[(improved < piece.first) | (improved >= piece.last)]
        own = self._owns(elsewhere)
        self.pending[elsewhere[own]] = True
        self.news[elsewhere[~own]] = True

    def collect_news(self) -> list[int]:
        """Make up packets of what there is to send, and forget that it is news; returns how much for each worker."""
        if self.job.cutoff is not None:  # nothing shorter lies behind it, as no weight is negative then
            self.news &= self.known <= self.job.cutoff
        counts = self._pack(self.news, self.known)
        self.news[:] = False
        return counts

    def _pack(self, chosen: Any, values: Any) -> list[int]:
        """Packets of the chosen vertices, bool (n), with their values (n); returns how many for each worker."""
        counts = []
        for worker, (first, last) in enumerate(self.ranges):
            vertices = self.xp.flatnonzero(chosen[first:last]).astype(np.int32) + np.int32(first)
            counts.append(len(vertices))
            if len(vertices):
                self.packets[worker] = to_host(vertices), to_host(values[vertices])
        return counts

    def own(self) -> np.ndarray:
        """The distances of the own vertices, a copy."""
        return to_host(self.known[self.first : self.last].copy())

    def own_predecessors(self) -> np.ndarray:
        """The predecessors of the own vertices, once all are attached."""
        return to_host(self.predecessors)

    def complete(self, parts: list[np.ndarray]) -> None:
        """Take over the final distances of all workers, in the order of their ranges."""
        for (first, last), part in zip(self.ranges, parts, strict=True):
            self.known[first:last] = like(self.known, part)
        self.job.refuse_loops(self.known, self.seeds.sources)
        self.job.cut(self.known)
        self.predecessors = self.xp.full(self.last - self.first, -1, dtype=np.int32)
        self.pending[self.first : self.last] = self.known[self.first : self.last] != self.unreachable
        self.attached[:] = False
        roots = like(self.known, np.array(self.seeds.sources))
        # A source that is nearer from another one (weights are negative) has a predecessor like any vertex.
        self.attached[roots[self.known[roots] == 0]] = True
        for head, (length, tail) in self.seeds.heads.items():
            if self.first <= head < self.last and bool(self.known[head] == length) and not bool(self.attached[head]):
                self.predecessors[head - self.first] = tail
                self.attached[head] = True

    def take(self, packets: list[Packet]) -> tuple[int, int]:
        """Take predecessors that others found; returns how many vertices got theirs, and how many lack it still."""
        return sum(self._take(*(like(self.known, part) for part in packet)) for packet in packets), self._lacking()

    def attach(self, first: bool) -> list[int]:
        """Find predecessors, and make up packets of those of other workers' vertices; returns how much for each.

        In the `first` round it stops once no own vertex lacks one: but for ties, all has then been found.
        """
        offers = self.xp.full(self.job.graph.n, -1, dtype=np.int32)
        own = self.pending[self.first : self.last]
        while bool(own.any()) and not (first and not self._lacking()):
            for cut in self.cuts:
                if bool(self.pending[slice(*cut)].any()):
                    self._attach(self._piece(*cut), offers)
        return self._pack(offers >= 0, offers)

    def _attach(self, piece: Piece, offers: Any) -> None:
        self.pending[piece.first : piece.last] = False
        roots = self.attached[piece.vertices]
        if self.through is not None:
            roots &= self.through[piece.vertices]
        # Arcs of other pieces may be negative: then a shorter distance alone does not make a tail come first.
        graph = replace(piece.graph, negative=self.job.graph.weight_min < 0)
        tree = shortest_path_tree(graph, self.known[piece.vertices], self.xp.flatnonzero(roots))
        heads = self.xp.flatnonzero(tree >= 0)
        vertices, tails = piece.vertices[heads], piece.vertices[tree[heads]]
        own = self._owns(vertices)
        offers[vertices[~own]] = tails[~own]
        self._take(vertices[own], tails[own])
        self.pending[piece.first : piece.last] = False  # the tree goes on from those just taken

    def _lacking(self) -> int:
        """How many own vertices lack a predecessor."""
        own = slice(self.first, self.last)
        return int(((self.known[own] != self.unreachable) & ~self.attached[own]).sum())

    def _owns(self, vertices: Any) -> Any:
        return (vertices >= self.first) & (vertices < self.last)

    def _take(self, vertices: Any, tails: Any) -> int:
        """Give own vertices that lack one the predecessors offered; returns how many."""
        lacking = ~self.attached[vertices]
        vertices, tails = vertices[lacking], tails[lacking]
        self.predecessors[vertices - self.first] = tails
        self.attached[vertices] = self.pending[vertices] = True
        return len(vertices)

    def _piece(self, first: int, last: int) -> Piece:
        """The arcs that leave the vertices from `first` to `last` (excluded), on the device."""
        piece = self._kept.get(first)
        if piece is None:
            piece = self._lay_out(first, last)
            if self._keeps:
                self._kept[first] = piece.moved(to_host) if self._streamed else piece
        return piece.moved(self.xp.asarray) if self._streamed else piece

    def _lay_out(self, first: int, last: int) -> Piece:
        xp = self.xp
        indptr, heads, weights = map(xp.asarray, self.job.arcs(first, last))
        ghost = xp.zeros(self.job.graph.n, dtype=bool)
        ghost[heads] = True
        ghost[first:last] = False
        vertices = xp.concatenate([xp.arange(first, last), xp.flatnonzero(ghost)])
        number = xp.empty(self.job.graph.n, dtype=np.int32)
        number[vertices] = xp.arange(len(vertices), dtype=np.int32)
        graph = search_graph(
            xp.concatenate([indptr, xp.full(len(vertices) - (last - first), len(heads), dtype=np.int64)]),
            number[heads],
            weights,
            dtype=self.job.dtype,
            through=None if self.through is None else self.through[vertices],
            reverse=not self._streamed,  # to lay that out takes longer than it would save a piece that is soon dropped
        )
        return Piece(first, last, graph, vertices, vertices[graph.order])

"""One worker's part of a search spread by vertices: the arcs that leave a range of vertices, in pieces.

The distances of all n vertices stay on the worker as upper bounds: of its own vertices the best that is known, of the
others the best that its own arcs offer. Arcs are laid out by pieces (`pipelines.sssp.pieces`), one if memory has room.

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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuops import NegativeCycleError
from gpuops.arrays import like
from gpuops.numbers import outside_infinity
from gpuops.sssp import improve_distances, shortest_path_tree
from pipelines.sssp.packets import Outbox, opened
from pipelines.sssp.pieces import Piece, lay_out_piece
from pipelines.sssp.searches import SearchJob
from pipelines.workers.capacity import available_memory
from pipelines.workers.device_arrays import to_host
from pipelines.workers.panels import Token


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
    """The state of one worker.

    Parameters
    ----------
    attempt : its name
    job : what is searched for
    ranges : of vertices, one for each worker
    worker : the number of this one
    pieces : into which its range is cut
    transposed : lay out the transpose of a single piece too
    xp : NumPy or CuPy
    """

    def __init__(
        self,
        attempt: str,
        job: SearchJob,
        ranges: list[tuple[int, int]],
        worker: int,
        pieces: int,
        transposed: bool,
        xp: Any,
    ):
        self.job, self.ranges, self.worker, self.xp = job, ranges, worker, xp
        self.first, self.last = ranges[worker]
        self.outbox = Outbox(attempt, xp, ranges, worker, job.dtype)
        self.panels = self.outbox.panels
        n, self.unreachable = job.graph.n, outside_infinity(job.dtype)
        self.cuts = [(a, b) for a, b in job.graph.ranges(pieces, self.first, self.last) if a < b]
        mask = job.through
        self.through = None if mask is None else xp.asarray(mask)
        # Reading and sorting pieces again is what takes longest. Beside a GPU, the host mostly has room to keep them.
        self._streamed, self._transposed = len(self.cuts) > 1, transposed
        all_bytes = job.graph.m * (4 + job.dtype.itemsize) + 32 * n * len(self.cuts) * len(ranges)
        self._keeps = not self._streamed or (xp is not np and all_bytes < available_memory() / 2)
        self._kept: dict[int, Piece] = {}  # on the device if there is just one, else on the host
        if not self._streamed:
            for cut in self.cuts:
                self._piece(*cut)
        self.known = xp.full(n, self.unreachable, dtype=job.dtype)
        self.pending = xp.zeros(n, dtype=bool)
        self.news = xp.zeros(n, dtype=bool)  # improved since it was last sent
        self.seeds = Seeds((), {})
        self.attached = xp.zeros(n, dtype=bool)
        self.predecessors = xp.empty(0, dtype=np.int32)

    def begin(self, seeds: Seeds) -> None:
        """Start a search."""
        self.seeds = seeds
        self.known[:] = self.unreachable
        self.pending[:] = False
        self.news[:] = False
        self._improve(np.array(seeds.sources), np.zeros(len(seeds.sources), self.job.dtype))
        heads = np.array(list(seeds.heads), dtype=np.int64)
        self._improve(heads, np.array([length for length, _ in seeds.heads.values()], self.job.dtype))

    def receive(self, sent: Any) -> None:
        """Take over the distances in a packet."""
        self._improve(*opened(self._arrived(sent), self.job.dtype))

    def _improve(self, vertices: Any, values: Any) -> None:
        """Take over distances of own vertices that improve on what is known; each vertex is named once."""
        vertices, values = like(self.known, vertices), like(self.known, values)
        better = self._owns(vertices) & (values < self.known[vertices])
        self.known[vertices[better]] = values[better]
        self.pending[vertices[better]] = True

    def _arrived(self, sent: Any) -> Any:
        """An array from another worker, on the device: by its token, or as it is where Dask has carried it."""
        return self.panels.take(sent) if isinstance(sent, Token) else like(self.known, sent)

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

    def collect_news(self) -> list[Token | None]:
        """Publish what there is to send, and forget that it is news; returns a token for each worker that gets some."""
        if self.job.cutoff is not None:  # nothing shorter lies behind it, as no weight is negative then
            self.news &= self.known <= self.job.cutoff
        tokens = self._send(self.news, self.known)
        self.news[:] = False
        return tokens

    def _send(self, chosen: Any, values: Any) -> list[Token | None]:
        """Publish packets of the chosen vertices, bool (n), none of them own, with their values (n)."""
        self.outbox.begin()
        tokens: list[Token | None] = []
        for worker, (first, last) in enumerate(self.ranges):
            vertices = self.xp.flatnonzero(chosen[first:last]).astype(np.int32) + np.int32(first)
            tokens.append(self.outbox.send(worker, vertices, values[vertices]) if len(vertices) else None)
        return tokens

    def own(self) -> np.ndarray:
        """The distances of the own vertices, a copy."""
        return to_host(self.known[self.first : self.last].copy())

    def show(self) -> Token | None:
        """Publish the distances of the own vertices, which all other workers need once they are final."""
        self.outbox.begin()
        return self.outbox.show(self.known[self.first : self.last]) if len(self.ranges) > 1 else None

    def own_predecessors(self) -> np.ndarray:
        """The predecessors of the own vertices, once all are attached."""
        return to_host(self.predecessors)

    def complete(self, shown: list[Any]) -> None:
        """Take over the final distances that all workers have shown, in the order of their ranges."""
        for worker, ((first, last), part) in enumerate(zip(self.ranges, shown, strict=True)):
            if worker != self.worker:
                self.known[first:last] = self._arrived(part)
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

    def take(self, sent: list[Any]) -> tuple[int, int]:
        """Take predecessors that others found; returns how many vertices got theirs, and how many lack it still."""
        kind = self.predecessors.dtype
        return sum(self._take(*opened(self._arrived(packet), kind)) for packet in sent), self._lacking()

    def attach(self, first: bool) -> list[Token | None]:
        """Find predecessors, and publish those of other workers' vertices; returns a token for each that gets some.

        In the `first` round it stops once no own vertex lacks one: but for ties, all has then been found.
        """
        offers = self.xp.full(self.job.graph.n, -1, dtype=np.int32)
        own = self.pending[self.first : self.last]
        while bool(own.any()) and not (first and not self._lacking()):
            for cut in self.cuts:
                if bool(self.pending[slice(*cut)].any()):
                    self._attach(self._piece(*cut), offers)
        return self._send(offers >= 0, offers)

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
        rows = self.job.arcs(first, last, self.xp)
        # The transpose of a piece that is soon dropped takes longer to lay out than it would save.
        reverse = self._transposed and not self._streamed
        return lay_out_piece(self.job.graph.n, first, last, rows, self.job.dtype, self.through, reverse)

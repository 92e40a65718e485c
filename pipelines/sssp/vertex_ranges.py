"""One worker's part of a search spread by vertices: the arcs that leave a range of vertices, in pieces.

Upper bounds of the distances of all n vertices stay on the worker: for its own vertices the least known distances, for
other vertices the least distances by its own arcs. Arcs are laid out in pieces (`pipelines.sssp.pieces`), or in a
single piece if memory has room.

1. settle: search each piece that has pending vertices, from these vertices, until no arc of the piece improves its
   head. Heads in other pieces of the range become pending there. A piece that has to be read again waits for the next
   round, since distances that other workers find meanwhile save work.
2. collect_news: publish, for each owner, the distances of other workers' vertices that improved since they were last
   sent.
3. improve: take over the distances from other workers that are improvements, and mark their vertices as pending.

When no worker has distances to send or pending vertices, no arc improves a distance. This fixpoint is unique: sums of
rounded additions are monotone, so the distance of v is the least length of all paths to v, rounded arc by arc, and the
order of the searches does not matter. Hence the bits are the same for any number of workers and pieces, for floats too.

4. attach, once all distances are final and known to all workers: find predecessors in each piece by
   `gpuops.sssp.shortest_path_tree`, whose roots are the vertices that already have their predecessors.
5. take: a vertex whose tight arcs all come from pieces of other workers gets its predecessor in a packet, and becomes a
   root in the next round of step 4. So a vertex at the same distance as its predecessor comes after it, and
   predecessors never form a cycle. Without such ties, one round finds all predecessors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuops import NegativeCycleError
from gpuops.arrays import like
from gpuops.memory import available_memory
from gpuops.numbers import outside_infinity
from gpuops.sssp import improve_distances, shortest_path_tree
from pipelines.sssp.job import SearchJob
from pipelines.sssp.packets import Outbox, opened
from pipelines.sssp.pieces import Piece, lay_out_piece
from pipelines.sssp.plan import SearchPlan
from pipelines.sssp.stage_graph import ATTACH, COMPLETE, SETTLE, SHOW, TAKE
from pipelines.workers.device_arrays import to_host
from pipelines.workers.rings import Token
from pipelines.workers.stage_graph import Task


@dataclass(frozen=True)
class Seeds:
    """The first distances of a search: sources at distance 0, and the heads of arcs that leave closed sources.

    The search of a piece does not relax arcs that leave closed vertices, although paths may begin at these vertices.
    """

    sources: tuple[int, ...]
    heads: dict[int, tuple[Any, int]]  # vertex -> least distance, and the source of that arc


def seeds_of(job: SearchJob, sources: tuple[int, ...]) -> Seeds:
    """Return the seeds of a search from `sources`."""
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
    attempt : name of the attempt
    job : the problem
    plan : says into how many pieces a range is cut, and whether the transpose of a single piece is laid out too
    ranges : ranges of vertices (first, last), one for each worker
    worker : number of this worker
    xp : NumPy or CuPy
    """

    def __init__(self, attempt: str, plan: SearchPlan, ranges: list[tuple[int, int]], worker: int, xp: Any):
        job = plan.job
        self.job, self.ranges, self.worker, self.xp = job, ranges, worker, xp
        self.first, self.last = ranges[worker]
        self.outbox = Outbox(attempt, xp, ranges, worker, job.dtype)
        self.ring = self.outbox.ring
        n, self.unreachable = job.graph.n, outside_infinity(job.dtype)
        self.cuts = [(a, b) for a, b in job.graph.ranges(plan.pieces, self.first, self.last) if a < b]
        mask = job.through
        self.through = None if mask is None else xp.asarray(mask)
        # Reading and sorting pieces again takes most of the time. The host of a GPU mostly has room to keep them.
        self._streamed, self._transposed = len(self.cuts) > 1, plan.transposed
        all_bytes = job.graph.m * (4 + job.dtype.itemsize) + 32 * n * len(self.cuts) * len(ranges)
        self._keeps = not self._streamed or (xp is not np and all_bytes < available_memory() / 2)
        self._kept: dict[int, Piece] = {}  # on the device if there is one piece, else on the host
        if not self._streamed:
            for cut in self.cuts:
                self._piece(*cut)
        self.known = xp.full(n, self.unreachable, dtype=job.dtype)
        self.pending = xp.zeros(n, dtype=bool)
        self.news = xp.zeros(n, dtype=bool)  # whether the distance improved since it was last sent
        self.seeds = Seeds((), {})
        self.attached = xp.zeros(n, dtype=bool)
        self.predecessors = xp.empty(0, dtype=np.int32)
        self._repeated = False  # whether `_attach` was called before; only ties make another call necessary

    def perform(self, task: Task, arrays: Iterator[Any]) -> Any:
        """Do a task of the stage graph."""
        if task.kind == SETTLE:
            for packet in arrays:
                self._improve(*opened(packet, self.job.dtype))
            return self._settle(), self._collect_news()
        if task.kind == SHOW:
            return self._show()
        if task.kind == COMPLETE:
            self._complete(arrays)
            return self.own()
        if task.kind == TAKE:
            return self._take_all(arrays)
        return self._attach() if task.kind == ATTACH else to_host(self.predecessors)

    def begin(self, seeds: Seeds) -> None:
        """Start a search."""
        self.seeds = seeds
        self.known[:] = self.unreachable
        self.pending[:] = False
        self.news[:] = False
        self._improve(np.array(seeds.sources), np.zeros(len(seeds.sources), self.job.dtype))
        heads = np.array(list(seeds.heads), dtype=np.int64)
        self._improve(heads, np.array([length for length, _ in seeds.heads.values()], self.job.dtype))

    def _improve(self, vertices: Any, values: Any) -> None:
        """Take over distances of own vertices that are less than the known distances; each vertex is named once."""
        vertices, values = like(self.known, vertices), like(self.known, values)
        better = self._owns(vertices) & (values < self.known[vertices])
        self.known[vertices[better]] = values[better]
        self.pending[vertices[better]] = True

    def _settle(self) -> int:
        """Search every piece that has a pending vertex once; returns how many own vertices are pending afterwards."""
        for cut in self.cuts:
            if bool(self.pending[slice(*cut)].any()):
                self._search(self._piece(*cut))
        return int(self.pending[self.first : self.last].sum())

    def _search(self, piece: Piece) -> None:
        known = self.known[piece.places]
        pending = self.pending[piece.places]  # may include ghosts, which have no arcs
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

    def _collect_news(self) -> list[Token | None]:
        """Publish the news, and clear them; returns a token for each worker, None for a worker that gets no news."""
        if self.job.cutoff is not None:  # with a cutoff no weight is negative: paths never come back below it
            self.news &= self.known <= self.job.cutoff
        tokens = self._send(self.news, self.known)
        self.news[:] = False
        return tokens

    def _send(self, chosen: Any, values: Any) -> list[Token | None]:
        """Publish packets of the chosen vertices of other workers, bool (n), with their values (n)."""
        self.outbox.begin()
        tokens: list[Token | None] = []
        for worker, (first, last) in enumerate(self.ranges):
            vertices = self.xp.flatnonzero(chosen[first:last]).astype(np.int32) + np.int32(first)
            tokens.append(self.outbox.send(worker, vertices, values[vertices]) if len(vertices) else None)
        return tokens

    def own(self) -> np.ndarray:
        """Return the distances of the own vertices, a copy."""
        return to_host(self.known[self.first : self.last].copy())

    def _show(self) -> Token | None:
        """Publish the distances of the own vertices, which all other workers need once they are final."""
        self.outbox.begin()
        return self.outbox.show(self.known[self.first : self.last]) if len(self.ranges) > 1 else None

    def _complete(self, shown: Iterator[Any]) -> None:
        """Take over the final distances that the other workers have published, in the order of their ranges."""
        others = (bounds for worker, bounds in enumerate(self.ranges) if worker != self.worker)
        for (first, last), part in zip(others, shown, strict=True):
            self.known[first:last] = part
        self.job.refuse_loops(self.known, self.seeds.sources)
        self.job.cut(self.known)
        self.predecessors = self.xp.full(self.last - self.first, -1, dtype=np.int32)
        self.pending[self.first : self.last] = self.known[self.first : self.last] != self.unreachable
        self.attached[:] = False
        self._repeated = False
        roots = like(self.known, np.array(self.seeds.sources))
        # With negative weights, a source may be reached at less than 0 from another source; then it has a predecessor.
        self.attached[roots[self.known[roots] == 0]] = True
        for head, (length, tail) in self.seeds.heads.items():
            if self.first <= head < self.last and bool(self.known[head] == length) and not bool(self.attached[head]):
                self.predecessors[head - self.first] = tail
                self.attached[head] = True

    def _take_all(self, packets: Iterator[Any]) -> tuple[int, int]:
        """Take predecessors from other workers; returns how many vertices got one, and how many still lack one."""
        kind = self.predecessors.dtype
        return sum(self._take(*opened(packet, kind)) for packet in packets), self._lacking()

    def _attach(self) -> list[Token | None]:
        """Find predecessors, and publish the predecessors of other workers' vertices.

        Returns a token for each worker, None for a worker that gets no packet. The first call stops when no own vertex
        lacks a predecessor: without ties, all predecessors are then found.
        """
        offers = self.xp.full(self.job.graph.n, -1, dtype=np.int32)
        own = self.pending[self.first : self.last]
        while bool(own.any()) and (self._repeated or self._lacking()):
            for cut in self.cuts:
                if bool(self.pending[slice(*cut)].any()):
                    self._attach_piece(self._piece(*cut), offers)
        self._repeated = True
        return self._send(offers >= 0, offers)

    def _attach_piece(self, piece: Piece, offers: Any) -> None:
        self.pending[piece.first : piece.last] = False
        roots = self.attached[piece.vertices]
        if self.through is not None:
            roots &= self.through[piece.vertices]
        # If arcs of other pieces are negative, a tail with a shorter distance does not always come before its head.
        graph = replace(piece.graph, negative=self.job.graph.weight_min < 0)
        tree = shortest_path_tree(graph, self.known[piece.vertices], self.xp.flatnonzero(roots))
        heads = self.xp.flatnonzero(tree >= 0)
        vertices, tails = piece.vertices[heads], piece.vertices[tree[heads]]
        own = self._owns(vertices)
        offers[vertices[~own]] = tails[~own]
        self._take(vertices[own], tails[own])
        self.pending[piece.first : piece.last] = False  # the tree went on from the vertices just taken

    def _lacking(self) -> int:
        """Return how many own vertices lack a predecessor."""
        own = slice(self.first, self.last)
        return int(((self.known[own] != self.unreachable) & ~self.attached[own]).sum())

    def _owns(self, vertices: Any) -> Any:
        return (vertices >= self.first) & (vertices < self.last)

    def _take(self, vertices: Any, tails: Any) -> int:
        """Give own vertices that lack a predecessor the tails offered; returns how many vertices got one."""
        lacking = ~self.attached[vertices]
        vertices, tails = vertices[lacking], tails[lacking]
        self.predecessors[vertices - self.first] = tails
        self.attached[vertices] = self.pending[vertices] = True
        return len(vertices)

    def _piece(self, first: int, last: int) -> Piece:
        """Return the piece of the vertices `first` to `last` (excluded), on the device."""
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

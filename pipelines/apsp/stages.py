"""The stages of blocked Floyd-Warshall on rows that stay on the workers: attempts, commits, and the tasks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from distributed import Client, Future

from gpuops import floyd_warshall, minplus_update
from gpuops.arrays import like
from gpuops.certificates import nonnegative_weights
from gpuops.minplus.adjacency import weight_rows
from gpuops.numbers import distance_limit, to_outside
from pipelines.apsp import symmetric
from pipelines.apsp.layout import Layout, make_layout
from pipelines.apsp.methods import Job
from pipelines.stores.distances import DistancesWriter
from pipelines.validation.bounds import arc_pieces, refuse_overflow
from pipelines.workers.attempts import (
    Attempt,
    clear,
    held,
    keep,
    run_attempts,
)
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.device_arrays import array_library, mark, synchronize, to_host
from pipelines.workers.interruption import asked, stop_if_asked
from pipelines.workers.panels import Card, Panels, Token, deal_slots
from pipelines.workers.progress import Progress
from pipelines.workers.saving import Savers

COMMIT_SECONDS = 60.0  # at least this long between two commits by default,
COMMIT_SHARE = 0.05  # and at most this share of the time spent in them
WINDOW = 3  # stages in flight: enough to hide the scheduler, few enough to bound the panels in memory
REACH = WINDOW + 2  # stages until a slot is written again: that of k + 1 is while k - 2 .. k are read, and one to spare
MEET_SECONDS = 120.0  # limit of mapping the memory of other workers


def stages_of(layout: Layout, job: Job) -> list[tuple[int, int]]:
    """The pivot blocks that hold a vertex which may lie inside a path."""
    return [(start, stop) for start, stop in layout.blocks() if job.through[start:stop].any()]


def relaxations_done(layout: Layout, job: Job, writer: DistancesWriter | None) -> int:
    """Relaxations that the commits of `writer` have behind them."""
    if writer is None:
        return 0
    return sum(layout.n**2 * int(job.through[a:b].sum()) for a, b in stages_of(layout, job)[: writer.stage])


def ring_sizes(layout: Layout, job: Job) -> list[int]:
    """How many row panels each worker's ring holds."""
    return _deal(layout, job)[1]


def _deal(layout: Layout, job: Job) -> tuple[list[int], list[int]]:
    owners = [layout.owner(start) for start, _ in stages_of(layout, job)]
    return deal_slots(owners, layout.workers, REACH if layout.workers > 1 else 1)


def run_stages(
    client: Client, job: Job, writer: DistancesWriter, shown: Progress, facts: list[WorkerFacts], commit_seconds: float
) -> None:
    """Run attempts until the result is committed; a new one begins whenever the workers change."""

    def begin(members: list[str], before: Stages | None) -> Stages:
        number, members = 0 if before is None else before.number + 1, members[: len(facts)]
        return Stages(
            client, job, writer if before is None else before.committed, shown, members, number, commit_seconds
        )

    run_attempts(client, [fact.address for fact in facts], begin, shown)


class Stages(Attempt):
    """One life of the resident state: load, stages, commits. Its futures die with it."""

    def __init__(
        self,
        client: Client,
        job: Job,
        writer: DistancesWriter,
        shown: Progress,
        members: list[str],
        number: int,
        commit_seconds: float,
    ):
        super().__init__(client, members, "apsp", f"{writer.run_id[:8]}-{number}")
        self.number, self.job, self.committed, self.shown = number, job, writer, shown
        self.layout = make_layout(writer.n, len(members), writer.dtype.itemsize, writer.options["block"])
        # The bands of a resumed run follow the chunks of its store, whatever the number of workers then was.
        self.layout = Layout(writer.n, self.layout.block, writer.chunk, len(members))
        self.stages = stages_of(self.layout, job)
        self.slots, self.rings = _deal(self.layout, job)
        self.obstacles: list[list[str | None]] = []  # by worker and owner: why a panel has to come through Dask
        self.commit_seconds = commit_seconds

    def done(self) -> int:
        return self.committed.stage

    def where(self) -> str:
        return f"stage {self.committed.stage} of {self.committed.stages}"

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self.shown.stage("loading")
        workers = range(len(self.members))
        loads = [self.submit(_load, w, self.committed, self.layout, w, self.rings[w], self.job) for w in workers]
        cards, halves = zip(*self.results(loads), strict=True)
        self._meet(cards)
        if any(halves):
            self.shown.note("undirected, with integer weights: half of the work, by symmetry")
        tokens = [self.submit(_token, w) for w in workers]
        self.shown.start(relaxations_done(self.layout, self.job, self.committed))

        last_commit, commit_cost = time.monotonic(), 0.0
        panel: list[Future] = []  # of the stage to come, if its pivot ran ahead: as each worker gets it
        flights: list[tuple[int, list[Future]]] = []
        written = False
        for k in range(self.committed.stage, len(self.stages)):
            if k == self.committed.stage:
                stop_if_asked()
            pause = max(self.commit_seconds, commit_cost / COMMIT_SHARE)
            due = (asked() or time.monotonic() - last_commit > pause) and k + 1 < len(self.stages)
            if k + 1 == len(self.stages) and self.committed.sources is None:
                self.committed.make_slot(result=True)
                written = True
            last = due or k + 1 == len(self.stages)
            tokens, panel = self._stage(k, tokens, panel, last, written)
            flights.append((k, tokens))
            if len(flights) == WINDOW:
                self._land(flights)
            if due:
                while flights:
                    self._land(flights)
                begin = time.monotonic()
                self._commit(k + 1)
                # Futures from before the commit are released: Dask would remember their lineage forever.
                tokens, self.futures = [self.submit(_token, w) for w in workers], []
                last_commit, commit_cost = time.monotonic(), time.monotonic() - begin
        while flights:
            self._land(flights)
        self.shown.stage("writing the result")
        if written:
            self.committed = self.committed.commit(len(self.stages) + 1)
        else:
            self._commit(len(self.stages) + 1)

    def _meet(self, cards: Sequence[Card]) -> None:
        """Have every worker map the rings of the others."""
        self.obstacles = [[None]]
        if len(cards) == 1:
            return
        try:
            self.obstacles = self.results([self.submit(_meet, w, cards) for w in range(len(cards))], MEET_SECONDS)
        except TimeoutError:
            raise TimeoutError(
                f"workers did not map each other's memory within {MEET_SECONDS:.0f} s; look at their logs"
            ) from None
        self.shown.note(how_panels_travel(cards, self.obstacles))

    def cancel(self) -> None:
        """Drop all unfinished tasks and the state; nobody's memory is freed while another maps it."""
        alive = [address for address in self.members if address in self.client.nthreads()]
        if alive:
            self.client.run(_unmap, self.name, workers=alive, on_error="ignore")
        super().cancel()

    def _stage(
        self, k: int, tokens: list[Future], panel: list[Future], last: bool, write: bool
    ) -> tuple[list[Future], list[Future]]:
        """Submit stage k after the tasks of `tokens`; returns its tokens and, if looking ahead, the next stage's panel.

        With `write`, the last stage of all, bands are written as they are done.

        The `last` stage before a commit, or of all, does not look ahead, and neither does one worker alone: a pivot
        closed twice may round otherwise than one closed once.
        """
        block, following, following_panel = self.stages[k], None, []
        if not panel:
            owner = self.layout.owner(block[0])
            panel = self._sent(
                owner, self.submit(_pivot, owner, k, self.slots[k], block, None, None, tokens[owner], priority=10)
            )
        if not last and len(self.members) > 1:
            following = self.stages[k + 1]
            owner = self.layout.owner(following[0])
            ahead = self.submit(
                _pivot, owner, k + 1, self.slots[k + 1], following, block, panel[owner], tokens[owner], priority=10
            )
            following_panel = self._sent(owner, ahead)
            tokens = [ahead if w == owner else token for w, token in enumerate(tokens)]
        if write:
            return [
                self.submit(_relax_and_save, w, block, panel[w], self.committed, token)
                for w, token in enumerate(tokens)
            ], []
        after = [self.submit(_relax, w, block, following, last, panel[w], token) for w, token in enumerate(tokens)]
        return after, following_panel

    def _sent(self, owner: int, token: Future) -> list[Future]:
        """A panel as each worker gets it: its token, or where the owner's memory cannot be mapped, the array."""
        if not any(reasons[owner] for reasons in self.obstacles):
            return [token] * len(self.members)
        array = self.submit(_array, owner, token, priority=10)
        return [array if reasons[owner] else token for reasons in self.obstacles]

    def _land(self, flights: list[tuple[int, list[Future]]]) -> None:
        """Wait for the oldest stage in flight."""
        k, tokens = flights.pop(0)
        start, stop = self.stages[k]
        self.shown.stage(f"stage {k + 1} of {len(self.stages)}")
        self.wait(tokens)
        self.shown.advance(self.layout.n**2 * int(self.job.through[start:stop].sum()))
        self.drop_done()

    def _commit(self, stage: int) -> None:
        """Write the state, or the result at the last stage, to the free slot and name it."""
        result = stage == self.committed.stages
        self.committed.make_slot(result=result)
        if result and self.committed.sources is not None:
            self._write_sources()
        else:
            self.wait([self.submit(_save, w, self.committed, result) for w in range(len(self.members))])
        self.committed = self.committed.commit(stage)

    def _write_sources(self) -> None:
        """Collect the rows of the sources by whole chunks of the result, each written by one worker."""
        sources = np.asarray(self.committed.sources)
        owners = np.array([self.layout.owner(int(s)) for s in sources])
        writes = []
        for start in range(0, len(sources), self.committed.chunk):
            part = slice(start, start + self.committed.chunk)
            pieces, places = [], []
            for w in np.unique(owners[part]):
                at = np.flatnonzero(owners[part] == w)
                places.append(at)
                pieces.append(self.submit(_rows_of, int(w), sources[part][at].tolist(), self.committed))
            w = start // self.committed.chunk % len(self.members)
            writes.append(self.submit(_write_pieces, w, self.committed, start, pieces, places, stateless=True))
        self.wait(writes)


def how_panels_travel(cards: Sequence[Card], obstacles: list[list[str | None]]) -> str:
    """One line on the way of the row panels."""
    reasons = {reason for row in obstacles for reason in row if reason}
    if reasons:
        some = "some pivot rows travel" if any(not all(row) for row in obstacles) else "pivot rows travel"
        return f"{some} through Dask and host memory ({'; '.join(sorted(reasons))})"
    return f"pivot rows go straight {'from GPU to GPU' if cards[0].gpu else 'from worker to worker, in shared memory'}"


# The tasks: each runs on the worker it is pinned to, changes that worker's rows in place and returns a token.


@dataclass
class _Slab:
    """The rows one worker holds."""

    job: Job
    layout: Layout
    worker: int
    panels: Panels
    matrix: Any  # (rows, n), NumPy or CuPy
    symmetric: bool  # whether the matrix is, and only its upper half is kept up to date
    running: Any = None  # the update given to the GPU last

    def complete(self) -> None:
        """Bring all of the matrix up to date."""
        if self.symmetric:
            symmetric.mirror(self.matrix, self.layout.block)

    def rows(self, block: tuple[int, int]) -> Any:
        """The rows of a block, a view."""
        return self.matrix[self.layout.local(*block)]

    def pivots(self, block: tuple[int, int]) -> Any:
        """The vertices of the block that may lie inside a path: a slice, or their indices where some may not."""
        start, stop = block
        inside = self.job.through[start:stop]
        return slice(start, stop) if inside.all() else np.flatnonzero(inside) + start

    def columns(self, rows: Any, pivots: Any) -> Any:
        """Those columns of some rows: a copy, so that a product's operands never overlap its result."""
        return rows[:, pivots].copy() if isinstance(pivots, slice) else rows[:, pivots]


def _load(
    attempt: str, writer: DistancesWriter, layout: Layout, worker: int, slots: int, job: Job
) -> tuple[Card, bool]:
    """Set up this worker's ring, then its rows: of the committed checkpoint, or of the weights.

    Returns where the ring is, and whether symmetry halves the work.
    """
    clear()
    panel_bytes = layout.block * layout.n * job.dtype.itemsize
    panels = Panels(attempt, array_library(), slots, panel_bytes, shared=layout.workers > 1)
    matrix = array_library().empty((layout.rows(worker), layout.n), dtype=job.dtype)
    whole = [(0, layout.n)] if layout.workers == 1 else layout.bands(worker)
    for start, stop in layout.bands(worker) if writer.slot else whole:
        if writer.slot:
            matrix[layout.local(start, stop)] = like(matrix, writer.read_rows(start, stop))
            continue
        for first, indptr, indices, weights in arc_pieces(job.graph, start, stop):
            if job.potentials is not None:
                weights = nonnegative_weights(job.potentials, first, indptr, indices, weights)
            weight_rows(matrix[layout.local(first, first + len(indptr) - 1)], first, indptr, indices, weights)
    half = layout.workers == 1 and symmetric.is_symmetric(matrix)
    keep(attempt, _Slab(job, layout, worker, panels, matrix, half))
    return panels.card, half


def _meet(attempt: str, cards: Sequence[Card]) -> list[str | None]:
    """Map the rings of all: why not, where that fails."""
    return held(attempt).panels.meet(cards)


def _unmap(attempt: str, dask_worker: Any) -> None:
    """Unmap the rings of others (for `Client.run`)."""
    slab = dask_worker.tilepath_state.get(attempt)
    if slab is not None:
        slab.panels.close()


def _pivot(
    attempt: str,
    stage: int,
    slot: int,
    block: tuple[int, int],
    before: tuple[int, int] | None,
    panel: Any,
    _after: Any,
) -> Token:
    """Close the independent block and publish the singly dependent row panel, (pivots, n).

    Running ahead, it first does the doubly dependent update of these rows for the stage `before`, from its panel.
    """
    slab = held(attempt)
    rows = slab.rows(block)
    if before is not None:
        _update(slab, rows, before, panel)
    pivots = slab.pivots(block)
    within = slice(None) if isinstance(pivots, slice) else pivots - block[0]
    panel = slab.panels.open(slot, (int(slab.job.through[block[0] : block[1]].sum()), slab.layout.n), slab.job.dtype)
    first = symmetric.first_column(block[0], slab.layout.block) if slab.symmetric else 0
    if slab.symmetric:
        symmetric.read_rows(slab.matrix, pivots, first, panel)
    else:
        panel[...] = rows[within]
    closed = floyd_warshall(slab.columns(panel, pivots), nonnegative=True)
    minplus_update(panel, closed, panel, out=panel, nonnegative=True)
    rows[within, first:] = panel[:, first:]
    return slab.panels.publish(slot, stage)


def _array(attempt: str, token: Token) -> Any:
    """The array of a panel, for workers that cannot map it; its slot stays as it is until they have it."""
    return held(attempt).panels.take(token)


def _relax(
    attempt: str, block: tuple[int, int], following: tuple[int, int] | None, last: bool, panel: Any, _after: Any
) -> None:
    """Doubly dependent update of this worker's other rows.

    On a GPU it ends when the one before has, and only the `last` when it is done itself: so the GPU has work while the
    scheduler sends more.
    """
    slab = held(attempt)
    if slab.symmetric:
        _relax_half(slab, block, panel)
    else:
        _relax_rows(slab, slice(0, len(slab.matrix)), block, panel, [following] if following else [])
    before, slab.running = slab.running, mark(slab.matrix)
    if before is not None:
        before.synchronize()
    if last:
        synchronize(slab.matrix)


def _relax_and_save(attempt: str, block: tuple[int, int], panel: Any, writer: DistancesWriter, _after: Any) -> None:
    """The last stage, and the result of each band while the next is updated."""
    slab = held(attempt)
    if slab.symmetric:
        _relax_half(slab, block, panel)
        slab.complete()
    with Savers() as savers:
        for band in slab.layout.bands(slab.worker):
            rows = slab.layout.local(*band)
            if not slab.symmetric:
                _relax_rows(slab, rows, block, panel, [])
            finish(slab.job, slab.matrix[rows], np.arange(*band))  # in place: nothing else is asked of this state
            _save_band(savers, slab, writer, band)


def _relax_half(slab: _Slab, block: tuple[int, int], panel: Any) -> None:
    """The update of a symmetric matrix, on one side of its diagonal."""
    settled = block if isinstance(slab.pivots(block), slice) else (0, 0)
    symmetric.relax(slab.matrix, slab.panels.take(panel), slab.layout.block, settled)


def _relax_rows(slab: _Slab, rows: slice, block: tuple[int, int], panel: Any, settled: list[tuple[int, int]]) -> None:
    """Doubly dependent update of a range of this worker's rows, but for those of blocks that are settled."""
    if isinstance(slab.pivots(block), slice):
        settled = [*settled, block]  # rows of the panel itself; where some are no pivots, all are updated
    start, stop, _ = rows.indices(len(slab.matrix))
    done = sorted(slab.layout.local(*b).indices(len(slab.matrix))[:2] for b in settled if _owns(slab, b))
    for first, end in [*((a, b) for a, b in done if start <= a < stop), (stop, stop)]:
        if start < first:
            _update(slab, slab.matrix[start:first], block, panel)
        start = end


def _owns(slab: _Slab, block: tuple[int, int]) -> bool:
    return slab.layout.owner(block[0]) == slab.worker


def _update(slab: _Slab, rows: Any, block: tuple[int, int], panel: Any) -> None:
    if isinstance(panel, Token):
        panel = slab.panels.take(panel)
    column_panel = slab.columns(rows, slab.pivots(block))
    minplus_update(rows, column_panel, panel, out=rows, nonnegative=True)


def _save(attempt: str, writer: DistancesWriter, result: bool) -> None:
    """Write this worker's rows to the slot being written, a chunk at a time: copying, compressing, writing overlap."""
    slab = held(attempt)
    slab.complete()
    bands = slab.layout.bands(slab.worker)
    if result:  # in place: the result is the last that is asked of this state
        for band in bands:
            finish(slab.job, slab.matrix[slab.layout.local(*band)], np.arange(*band))
    with Savers() as savers:
        for band in bands:
            _save_band(savers, slab, writer, band)


def _save_band(savers: Savers, slab: _Slab, writer: DistancesWriter, band: tuple[int, int]) -> None:
    savers.save(slab.matrix[slab.layout.local(*band)], writer.chunk, partial(writer.writer(), band[0]))


def _rows_of(attempt: str, vertices: list[int], writer: DistancesWriter) -> np.ndarray:
    """Finished rows of some vertices this worker owns."""
    slab = held(attempt)
    slab.complete()
    local = np.array([slab.layout.local(v, v + 1).start for v in vertices])
    rows = to_host(slab.matrix[local])
    finish(slab.job, rows, np.array(vertices))
    return rows


def _write_pieces(writer: DistancesWriter, start: int, pieces: list[np.ndarray], places: list[np.ndarray]) -> None:
    rows = np.empty((sum(map(len, pieces)), writer.n), dtype=writer.dtype)
    for piece, place in zip(pieces, places, strict=True):
        rows[place] = piece
    writer.write_rows(start, rows)


def _token(attempt: str) -> None:
    """A token that depends on nothing."""


def finish(job: Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of some vertices, as they are inside operations, into rows as they stand in stores, in place."""
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = distance_limit(job.dtype), 64  # rows at a time, as the sums are in int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)

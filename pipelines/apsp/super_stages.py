"""Super-stages of blocked Floyd-Warshall on bands of rows that pass through the workers (`gpuops.minplus.super_stage`).

Between two super-stages the matrix lies in the memory of the host, where they change it in place; or in the store, from
one slot of which every super-stage writes to the other, so that each is a commit (without commits, in place). The first
reads the weights, the last writes the result. Each worker has chunk rows of its own, which it passes after the slab.

Several workers that have the matrix in the memory of their host *share* the slab: each takes some columns of it, and
the square, through its stages, and then they give each other their parts of the panels. Elsewhere every worker takes
all of the slab through its stages itself, which needs no exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future as Done
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Client, Future

from gpuops.minplus import packed_place
from gpuops.minplus.super_stage import Panel, Part, column_parts, panel_bytes, pass_rows, pass_slab, pivot_count
from pipelines.apsp.band_rows import Result, Weights
from pipelines.apsp.finished_rows import finish
from pipelines.apsp.methods import Job
from pipelines.apsp.schedule import Staged, relaxations, stages_of
from pipelines.apsp.windows import Windows
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.row_files import RowFiles
from pipelines.workers.attempts import StateLost, clear, held, keep
from pipelines.workers.conveyor import Conveyor, Rows, Sink, Source, count, parts
from pipelines.workers.device_arrays import array_library, synchronize
from pipelines.workers.exchange import Exchange
from pipelines.workers.interruption import asked, stop_if_asked
from pipelines.workers.lanes import CpuLane, GpuLane, HostMatrix
from pipelines.workers.panels import Card, Panels, Token
from pipelines.workers.progress import Progress

Blocks = Sequence[tuple[int, int]]
Sent = list[tuple[Token, Any]]  # parts of row panels of other workers: what they are, and how they get here


class SuperStages(Staged, Exchange):
    """One life of a run out of core: super-stages and commits, for `workers.attempts.run_attempts`."""

    def __init__(
        self,
        client: Client,
        members: list[str],
        before: SuperStages | None,
        job: Job,
        windows: Windows,
        writer: DistancesWriter,
        shown: Progress,
        commit_seconds: float,
    ):
        super().__init__(client, members, before, job, writer, shown, commit_seconds)
        self.windows = windows.shared_by(len(members))
        self.stages = stages_of(windows.layout, job)
        self._cards: list[Card] = []
        self.by_host = True  # the plan of a GPU has no room for arrays beside those it counts

    def run(self) -> None:
        """From the last commit to the result."""
        if self.committed.stage == self.committed.stages:
            return
        self._load()
        super_stages = self.windows.super_stages(self.stages, self.committed.stage)
        for number, (first, stop) in enumerate(super_stages, 1):
            if first == self.committed.stage:
                stop_if_asked()
            left = len(super_stages) - number
            following = self.windows.window(self.stages[stop][0]) if left else (0, 0)
            self.shown.stage(f"stages {first + 1} to {stop} of {len(self.stages)}")
            blocks = self.stages[first:stop]
            if left == 0:
                self.committed.make_slot(result=True)
            elif not self.windows.resident:
                self.committed.make_row_slot()
            self._super_stage(first, blocks, following, left == 0)
            self.shown.advance(relaxations(self.job, blocks))
            if left == 0:
                self.committed = self.committed.commit(self.committed.stages)
            elif not self.windows.resident:
                # Without commits on the way one slot is enough, until the result needs the other.
                if asked() or left == 1 or self.commit_seconds < math.inf:
                    self.committed = self.committed.commit(stop)
            elif self.due():
                with self.committing():
                    self.committed.make_row_slot()
                    self._all(_save, self.committed)
                    self.committed = self.committed.commit(stop)

    @property
    def _shares(self) -> bool:
        return self.windows.sharers > 1

    def _load(self) -> None:
        """Set up the workers; if they share slabs, the matrix too, of which each then reads what others wrote."""
        self.shown.stage("loading")
        workers = len(self.members)
        first = self.results([self.submit(_begin, 0, self.job, self.windows, 0, workers, True)])
        place = first[0][0]
        others = [self.submit(_begin, w, self.job, self.windows, w, workers, place) for w in range(1, workers)]
        self._cards = [card for _, card in first + self.results(others)]
        if self._shares:
            if len({card.gpu for card in self._cards}) > 1:
                raise ConnectionError("workers of different kinds cannot share the work; run again with --resume")
            self.meet(self._cards, "parts of row panels", self.shown)
            self._all(_fill, self.committed)
        self.start(self.stages[: self.committed.stage])

    def _super_stage(self, first: int, blocks: Blocks, following: tuple[int, int], end: bool) -> None:
        """Take all rows through some stages. No row of the window changes before all workers have read it."""
        arguments = self.committed, first, blocks, following, end
        if len(self.members) == 1:
            self._all(_pass_all, *arguments)
            return
        self._all(_pass_slab, *arguments)
        if end and self._shares:
            self._all(_store_slab)
        self._all(_pass_bands, each=self._sent_parts(first, blocks))

    def _sent_parts(self, first: int, blocks: Blocks) -> list[Sent]:
        """What each worker gets of the row panels of these stages: the parts of all others, its neighbour's first."""
        if not self._shares:
            return [[] for _ in self.members]
        n, dtype, gpu, workers = self.windows.n, self.job.dtype, self._cards[0].gpu, len(self.members)
        tokens: list[list[tuple[Token, list[Any]]]] = [
            [] for _ in self.members
        ]  # by owner, and as each worker gets them
        for owner, columns in enumerate(column_parts(n, workers, dtype, gpu)):
            for slot, block in enumerate(blocks):
                place = packed_place(pivot_count(self.job.pivots(block)), columns, dtype, gpu)
                shape = (place.stop - place.start,)
                token = Token(self._cards[owner], first + slot, slot, shape, "uint8", place.start)
                tokens[owner].append((token, self.sent(owner, token)))
        others = [[(worker + step) % workers for step in range(1, workers)] for worker in range(workers)]
        return [
            [(token, sent[worker]) for owner in owners for token, sent in tokens[owner]]
            for worker, owners in enumerate(others)
        ]

    def _all(self, task: Any, *arguments: Any, each: Sequence[Any] | None = None) -> None:
        """Have every worker do a task; `each` is one more argument, of which each has its own."""
        last = [()] * len(self.members) if each is None else [(own,) for own in each]
        tokens: list[Future] = [self.submit(task, w, *arguments, *own) for w, own in enumerate(last)]
        self.wait(tokens)
        self.futures = []  # Dask would remember their lineage forever


# The tasks. State on a worker: buffers for the slab, the panels and the bands, and the matrix where the host holds it.


@dataclass
class _Resident:
    job: Job
    windows: Windows
    worker: int
    workers: int
    lane: Any
    columns: slice  # of the slab, that this worker takes through its stages: all, unless workers share it
    slab: Any  # (width, columns)
    squares: Any  # (width * width) if they share it: the columns of the window's own vertices
    panels: Panels  # a slot for each stage of a window
    bands: Conveyor  # of buffers, (chunk, n) each
    matrix: HostMatrix | None
    newest: HostMatrix | RowFiles | None = None  # what the last super-stage wrote its rows to
    window: tuple[int, int] = (0, 0)
    memory: Sequence[Any] = ()  # uint8: what each slot holds,
    row_panels: Sequence[Panel] = ()  # of the stages of the window
    ready: set[int] = field(default_factory=set)  # first rows of the bands of the next window that the slab holds
    rest: _Bands | None = None  # of this super-stage, beside the slab

    @property
    def shares(self) -> bool:
        return self.windows.sharers > 1

    def own(self, total: int) -> range:
        """The first rows of this worker's chunk rows."""
        return range(self.worker * self.windows.chunk, total, self.workers * self.windows.chunk)

    def in_window(self, rows: Rows) -> np.ndarray:
        """bool: which of some rows are in the slab."""
        vertices = _vertices(rows)
        return (vertices >= self.window[0]) & (vertices < self.window[1])

    def square(self, window: tuple[int, int]) -> Any:
        """Of a window, (rows, rows)."""
        rows = window[1] - window[0]
        return self.squares[: rows * rows].reshape(rows, rows)

    def load_slab(self, source: Source, start: int, stop: int) -> None:
        """Load rows of the window."""
        rows, at = slice(start, stop), slice(start - self.window[0], stop - self.window[0])
        if self.matrix is not None and self.shares:
            self.lane.load(self.matrix.columns(self.columns), rows, self.slab[at])
            self.lane.load(self.matrix.columns(slice(*self.window)), rows, self.square(self.window)[at])
        else:
            self.lane.load(source, rows, self.slab[at])

    def store_slab(self, done: Any) -> None:
        """Write the columns of the slab to the matrix, after the work marked `done`."""
        assert self.matrix is not None
        start, stop = self.window
        for at, rows in parts(slice(start, stop), self.windows.chunk):
            self.lane.store(
                self.matrix.columns(self.columns), start + at, self.slab[at : at + count(rows)], done, beside=True
            )

    def keep_for(self, window: tuple[int, int], start: int, band: Any) -> None:
        """Rows of the next window, which are computed, stay here."""
        at = slice(start - window[0], start - window[0] + len(band))
        self.slab[at] = band[:, self.columns]
        if self.shares:
            self.square(window)[at] = band[:, slice(*window)]
        self.ready.add(start)


def _begin(attempt: str, job: Job, windows: Windows, worker: int, workers: int, shared: bool | str) -> tuple[str, Card]:
    """Set up the buffers, and the matrix in the host's memory if it is there.

    Returns where the others find that, and the ring of panels.
    """
    clear()
    gpu = array_library() is not np
    n, dtype = windows.n, job.dtype
    try:
        matrix = HostMatrix(n, dtype, shared if workers > 1 else False) if windows.resident else None
    except FileNotFoundError as error:
        raise StateLost("the worker that holds the matrix is gone") from error
    lane: Any = CpuLane()
    if gpu:
        lane = GpuLane(None if matrix is None or not windows.registered else matrix.matrix)
        lane.library.get_default_memory_pool().free_all_blocks()
    shares, width, block = windows.sharers > 1, min(windows.width, n), min(windows.block, n)
    columns = column_parts(n, workers, dtype, gpu)[worker] if shares else slice(0, n)
    (capacity,) = panel_bytes([slice(0, block)], n, dtype, gpu)
    state = _Resident(
        job,
        windows,
        worker,
        workers,
        lane,
        columns,
        lane.empty((width, columns.stop - columns.start), dtype),
        lane.empty((width * width if shares else 0,), dtype),
        Panels(attempt, lane.library, -(-width // block), capacity, shared=shares, buffered=False),
        Conveyor([lane.empty((min(windows.chunk, n), n), dtype) for _ in range(windows.BANDS)]),
        matrix,
    )
    keep(attempt, state)
    return "" if matrix is None else matrix.place, state.panels.card


def _fill(attempt: str, writer: DistancesWriter) -> None:
    """Put this worker's rows into the matrix: the weights, or what is committed."""
    state = held(attempt)
    source = _source(state, writer)

    def load(start: int, buffer: Any) -> Any:
        rows = slice(start, min(start + state.windows.chunk, state.windows.n))
        state.lane.load(source, rows, buffer[: count(rows)])
        return buffer[: count(rows)]

    def store(start: int, made: tuple[Any, Any]) -> None:
        state.lane.store(state.matrix, start, *made)

    state.bands.begin(state.own(state.windows.n), load)
    state.bands.run(lambda _, band: (band, state.lane.done()), store)
    state.bands.settle()
    state.newest = state.matrix


def _pass_all(
    attempt: str, writer: DistancesWriter, first: int, blocks: Blocks, following: tuple[int, int], end: bool
) -> None:
    """A whole super-stage of one worker."""
    _pass_slab(attempt, writer, first, blocks, following, end)
    _pass_bands(attempt, [])


def _pass_slab(
    attempt: str, writer: DistancesWriter, first: int, blocks: Blocks, following: tuple[int, int], end: bool
) -> None:
    """Take the rows of a window through the stages of these blocks, from stage `first` on, and keep the panels."""
    state = held(attempt)
    start, stop = state.window = state.windows.window(blocks[0][0]) if blocks else (0, 0)
    source = _source(state, writer)
    for at, rows in parts(slice(start, stop), state.windows.chunk):
        if start + at not in state.ready:
            state.load_slab(source, start + at, start + at + count(rows))
    state.ready = set()
    state.bands.settle()
    state.rest = _Bands(state, writer, source, following, end)
    if not (end and state.shares):  # whose rows of the window are not in the matrix yet
        state.rest.begin()
    slab, pivots = state.slab[: stop - start], [state.job.pivots(block) for block in blocks]
    sizes = panel_bytes(pivots, state.windows.n, slab.dtype, state.lane.library is not np)
    state.memory = [state.panels.open(slot, (size,), np.uint8) for slot, size in enumerate(sizes)]
    part = Part(state.columns, state.windows.n, state.square(state.window)) if state.shares else None
    state.row_panels = pass_slab(slab, start, pivots, state.memory, part)
    for slot in range(len(blocks)):
        state.panels.publish(slot, first + slot)
    synchronize(slab)


def _store_slab(attempt: str) -> None:
    """Write this worker's part of the slab to the matrix, when nobody reads the rows of the window any more."""
    state = held(attempt)
    state.store_slab(state.lane.done())


def _pass_bands(attempt: str, sent: Sent) -> None:
    """Take this worker's rows through the stages, and write them to the next place: at the end, the result."""
    state = held(attempt)
    for token, part in sent:
        _take_part(state, token, part)
    state.rest.run()
    state.newest = state.rest.newest
    synchronize(state.slab)


class _Bands:
    """The rows of a worker in a super-stage, apart from the slab: all of the matrix, or at the end those of the result.

    Rows of the window come late, as they leave the slab, and those of the next one after them, as they come to it. If
    workers share it, each writes its part beside the bands, or has done so if this is the end.
    """

    def __init__(
        self, state: _Resident, writer: DistancesWriter, source: Source, following: tuple[int, int], end: bool
    ):
        self._state, self._source, self._following, self._end = state, source, following, end
        self._kept = writer.sources if end else None
        self.newest = None if end else state.matrix or writer.row_files(writer.other_slot)
        self._sink: Sink = self.newest or Result(writer, state.windows.savers)
        self._total = state.windows.n if self._kept is None else len(self._kept)
        self._beside = state.shares and not end
        self._storing: Done[None] | None = None

    def begin(self) -> None:
        """Load the first bands, while the slab is computed."""
        self._state.bands.begin(self._items(), self._load)

    def run(self) -> None:
        """Take all bands through the stages, whose row panels are there."""
        state = self._state
        if self._end and state.shares:
            self.begin()
        with ThreadPoolExecutor(1) as thread:
            if self._beside:
                self._storing = thread.submit(state.store_slab, state.lane.done())
            state.bands.run(self._work, lambda start, made: state.lane.store(self._sink, start, *made))
        if self._storing is not None:
            self._storing.result()
        # The next super-stage waits for the last band, which nobody else reads before.
        alone = state.matrix is not None and (state.shares or state.workers == 1)
        items = self._items()
        state.bands.settle(1 if alone and items and not self._end and not self._to_keep(items[-1]) else 0)

    def _items(self) -> list[int]:
        """The first rows of the bands, in their order."""
        items = [start for start in self._state.own(self._total) if not (self._beside and self._in_window(start))]
        if self._end:
            return items
        items.sort(key=lambda start: 2 * self._to_keep(start) + self._in_window(start))
        plain = sum(not self._to_keep(start) and not self._in_window(start) for start in items)
        return items[: plain - 1] + items[plain:] + items[plain - 1 : plain] if plain else items

    def _in_window(self, start: int) -> bool:
        return _within(start, self._state.window)

    def _to_keep(self, start: int) -> bool:
        return not self._end and _within(start, self._following)

    def _rows(self, start: int) -> Rows:
        part = slice(start, min(start + self._state.windows.chunk, self._total))
        return part if self._kept is None else np.asarray(self._kept[part])

    def _load(self, start: int, buffer: Any) -> Any:
        rows = self._rows(start)
        band = buffer[: count(rows)]
        if self._state.shares or not self._state.in_window(rows).all():
            self._state.lane.load(self._source, rows, band)
        return band

    def _work(self, start: int, band: Any) -> tuple[Any, Any]:
        state, rows = self._state, self._rows(start)
        inside, first = np.flatnonzero(state.in_window(rows)), state.window[0]
        if isinstance(rows, slice) and len(inside):  # all: a window is whole bands
            if not state.shares:
                band[...] = state.slab[rows.start - first : rows.stop - first]
        else:
            slab = [band[at].copy() if state.shares else state.slab[_vertices(rows)[at] - first] for at in inside]
            if len(inside) < len(band):
                pass_rows(band, state.row_panels)
            for at, row in zip(inside, slab, strict=True):
                band[at] = row
        if self._to_keep(start):
            if self._storing is not None:
                self._storing.result()
            state.keep_for(self._following, start, band)
        if self._end:
            finish(state.job, band, _vertices(rows))
        return band, state.lane.done()


def _take_part(state: _Resident, token: Token, part: Token | Any) -> None:
    """Put another worker's part of a row panel where it belongs: fetched, or as it came through Dask."""
    memory = state.memory[token.slot][token.start : token.start + token.size]
    if isinstance(part, Token):
        state.panels.fetch(part, memory)
    elif state.panels.xp is np:
        memory[...] = part
    else:
        memory.set(part)


def _save(attempt: str, writer: DistancesWriter) -> None:
    """Write this worker's rows of the matrix in memory to a checkpoint."""
    state = held(attempt)
    state.bands.settle()
    files = writer.row_files(writer.other_slot)
    for start in state.own(writer.n):
        files.write(start, state.matrix.matrix[start : start + state.windows.chunk])


def _within(row: int, window: tuple[int, int]) -> bool:
    return window[0] <= row < window[1]


def _vertices(rows: Rows) -> np.ndarray:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _source(state: _Resident, writer: DistancesWriter) -> Source:
    """Where the rows are: where the last super-stage wrote them, in the committed slot, or still in the graph."""
    return state.newest or (writer.row_files(writer.slot) if writer.slot else Weights(state.job))

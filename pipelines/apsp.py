"""All-pairs shortest paths: blocked Floyd-Warshall over the workers, from a graph store to a distances store.

Vertices are cut into pivot blocks, rows of the matrix D into bands dealt cyclically to the workers
(`pipelines.layout`). Stage K lets paths pass through the vertices T of block K; (x) is the min-plus product::

    independent         C = closure of D[T, T]            on the worker that owns rows T
    singly dependent    P = C (x) D[T, :]                 there too; P replaces rows T and goes to every worker
    doubly dependent    D = min(D, D[:, T] (x) P)         on every worker, for its own rows

P[:, T] is C, so the third line also does the textbook's column panel. The owner of block K + 1 does those rows first,
so that the next pivot overlaps the rest (look-ahead). A vertex that may not lie inside a path is left out of T.

Negative weights are made non-negative by potentials first, and distances shifted back when they are written [3]_. So
a negative cycle is found in the sparse graph, long before n^3 work would find it, the rounding of zero cycles cannot
look like one, and the kernels take their fast path.

The matrix stays on the workers (`pipelines.resident`); a task per worker and stage returns a token. Every so often the
state is committed to the store; if a worker dies, all workers reload the last commit and go on: same bits.

.. [1] G. Venkataraman, S. Sahni, S. Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm", ACM Journal of
   Experimental Algorithmics 8 (2003).
.. [2] B. Lund, J. W. Smith, "A Multi-Stage CUDA Kernel for Floyd-Warshall" (2010).
.. [3] D. B. Johnson, "Efficient algorithms for shortest paths in sparse networks", Journal of the ACM 24 (1977).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from dask.system import CPU_COUNT
from distributed import Client, Future

from gpuops import NegativeCycleError, floyd_warshall, minplus_update
from gpuops.adjacency import like, weight_rows
from gpuops.numbers import infinity, to_outside
from pipelines.bounds import arc_pieces, distance_dtype, distances_fit, refuse_overflow
from pipelines.device_arrays import array_library, synchronize, to_host
from pipelines.layout import Layout, make_layout
from pipelines.negative_cycle import find_potentials, named_cycle, nonnegative_weights
from pipelines.plan import WorkerFacts, make_plan, measure_workers, refuse_what_cannot_fit
from pipelines.progress import Progress
from pipelines.resident import (
    Epoch,
    ResidentState,
    clear,
    held,
    keep,
    run_epochs,
    workers_of,
)
from pipelines.stores import Distances, Graph, StoreError, create_distances, open_distances, open_graph
from pipelines.stores.distances import Run, resume_distances
from pipelines.verify import verify_distances

COMMIT_SECONDS = 60.0  # at least this long between two commits,
COMMIT_SHARE = 0.05  # and at most this share of the time spent in them
SAVERS = min(8, CPU_COUNT)  # chunks a worker writes at a time; each is held in a few copies
WINDOW = 3  # stages in flight: enough to hide the scheduler, few enough to bound the panels in memory


def all_pairs_shortest_paths(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    dtype: Any = None,
    sources: Sequence[int] | None = None,
    method: Literal["floyd-warshall", "batched", "auto"] | None = None,
    block: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    verify: bool = False,
    progress: bool | None = None,
    commit_seconds: float = COMMIT_SECONDS,
) -> Distances:
    """Write the shortest distance between every two vertices of `graph` to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster; one task at a time per worker. Workers with the Dask resource ``GPU`` compute on their GPU.
    graph : Graph or path of a graph store
        n vertices. Weights may be negative; a cycle of negative weight may not be.
    out : path of the new distances store
    dtype : {"float32", "float64", "int32", "int16"}, optional
        Of the distances; float32 for float weights and int32 for integer weights by default.
    sources : sequence of int, optional
        Keep the rows of these vertices only. (Floyd-Warshall computes all of them.)
    method : {"floyd-warshall", "batched", "auto"}, optional
        "batched" searches from every source, many at a time (`pipelines.batched`), which pays where the graph is
        sparse; "auto" compares what either would take, and says so. By default Floyd-Warshall, or what `out` was begun
        with.
    block : int, optional
        Width of a pivot block. It decides how float sums are bracketed.
    resume : bool
        Go on from the last commit of an unfinished `out`; begin if there is none; return a finished one as it is.
    overwrite : bool
        Replace a store that stands at `out`.
    verify : bool
        Check the result by certificates on sampled rows (`pipelines.verify`).
    progress : bool, optional
        Show progress on standard error; by default where that is a terminal.
    commit_seconds : float
        Least time between two commits of the state.

    Returns
    -------
    Distances
        The finished store, opened.

    Raises
    ------
    gpuops.NegativeCycleError
        With the vertices of one such cycle; `out` is not created.
    pipelines.plan.DoesNotFitError
        Memory or disk is too small; nothing is written.
    pipelines.bounds.WeightRangeError
        The distances do not fit `dtype`.
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.

    Notes
    -----
    O(n^3) work, n / block stages of one task a worker; 1.5 x the matrix in memory over all workers.
    """
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    run = _unfinished(out, graph, dtype, sources, block, method) if resume and os.path.lexists(out) else None
    if run is not None and run.stage == run.stages:
        return _checked(open_distances(out), graph, verify)
    if run is None and os.path.lexists(out) and not overwrite:
        raise StoreError(f"{out} exists already; choose another name, pass overwrite (--overwrite) or --resume")

    distances = distance_dtype(graph, dtype) if run is None else run.dtype
    job = _Job(
        graph=graph,
        dtype=distances,
        through=graph.through(),
        potentials=_potentials(graph),
        fits=distances_fit(graph, distances),
    )
    rows_out = graph.n if sources is None else len(_check_sources(graph, sources))
    if run is not None:
        method = run.plan.get("method", "floyd-warshall")

    client.register_plugin(ResidentState())
    members = workers_of(client)
    facts = measure_workers(client, members, str(distances))
    width = block if run is None else run.plan["block"]
    layout = make_layout(graph.n, len(members), distances.itemsize, width)
    pivots = int(job.through.sum())
    plan = make_plan(layout, distances, pivots, rows_out, facts, _done(layout, job, run))
    reason = None
    if method not in (None, "floyd-warshall"):
        from pipelines.batched import choose_method, search_from_all
        from pipelines.searches import SearchJob

        reason, searches = choose_method(method, graph, plan, rows_out, facts, run, block)
        if searches is not None:
            rows = SearchJob(graph, distances, predecessors=False, potentials=job.potentials)
            with Progress(rows_out, "rows", progress) as shown:
                shown.note(reason)
                search_from_all(client, facts, rows, out, searches, run, sources, overwrite, shown)
                shown.stage("verifying")
                return _checked(open_distances(out), graph, verify)

    refuse_what_cannot_fit(plan, facts, out)
    if run is None:
        run = create_distances(
            out,
            graph,
            dtype=distances,
            chunk=layout.band,
            stages=len(_stages(layout, job)) + 1,
            plan={"method": "floyd-warshall", "block": layout.block},
            sources=sources,
            overwrite=overwrite,
        )
    with Progress(plan.relaxations, "relaxations", progress) as shown:
        if reason is not None:
            shown.note(reason)
        shown.note(plan.describe(facts))
        _run_epochs(client, job, run, shown, facts, commit_seconds)
        shown.stage("verifying")
        return _checked(open_distances(out), graph, verify)


@dataclass(frozen=True)
class _Job:
    """What the tasks need to know of the problem; pickles small but for the mask."""

    graph: Graph
    dtype: np.dtype
    through: np.ndarray
    potentials: tuple[np.ndarray, np.ndarray] | None  # of tails and of heads; None where no weight is negative
    fits: bool  # is it proven that the distances fit the dtype?


def _unfinished(
    out: Any, graph: Graph, dtype: Any, sources: Sequence[int] | None, block: int | None, method: str | None
) -> Run:
    """The store to go on with, which must have been begun with the same options."""
    run = resume_distances(out, graph)
    asked = {
        "dtype": dtype and str(np.dtype(dtype)),
        "block": block,
        "sources": sources and list(map(int, sources)),
        "method": None if method == "auto" else method,
    }
    begun = {
        "dtype": str(run.dtype),
        "block": run.plan["block"],
        "sources": run.sources and list(run.sources),
        "method": run.plan.get("method", "floyd-warshall"),
    }
    for name, value in asked.items():
        if value is not None and value != begun[name]:
            raise StoreError(f"{out} was begun with {name} {begun[name]}, not {value}; drop the option or start afresh")
    return run


def _check_sources(graph: Graph, sources: Sequence[int]) -> Sequence[int]:
    for source in sources:
        if not 0 <= source < graph.n:
            raise ValueError(f"source {source} is no vertex of {graph.path}, which has 0 to {graph.n - 1}")
    if len(sources) == 0:
        raise ValueError("sources is empty; leave it out to keep all rows")
    return sources


def _potentials(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """What makes the weights non-negative, or NegativeCycleError naming the vertices of the cycle that forbids it."""
    if graph.weight_min >= 0:
        return None
    try:
        return find_potentials(*graph.rows(), graph.through())
    except NegativeCycleError as error:
        raise named_cycle(graph, error) from None


def _stages(layout: Layout, job: _Job) -> list[tuple[int, int]]:
    """The pivot blocks that hold a vertex which may lie inside a path."""
    return [(start, stop) for start, stop in layout.blocks() if job.through[start:stop].any()]


def _done(layout: Layout, job: _Job, run: Run | None) -> int:
    """Relaxations that the commits of `run` have behind them."""
    if run is None:
        return 0
    return sum(layout.n**2 * int(job.through[a:b].sum()) for a, b in _stages(layout, job)[: run.stage])


def _checked(distances: Distances, graph: Graph, verify: bool) -> Distances:
    if verify:
        verify_distances(distances, graph)
    return distances


# The driver: epochs, and the stages within one.


def _run_epochs(
    client: Client, job: _Job, run: Run, shown: Progress, facts: list[WorkerFacts], commit_seconds: float
) -> None:
    """Run epochs until the result is committed; a new one begins whenever the workers change."""

    def begin(members: list[str], before: _Epoch | None) -> _Epoch:
        number = 0 if before is None else before.number + 1
        return _Epoch(client, job, run if before is None else before.committed, shown, members, number, commit_seconds)

    run_epochs(client, [fact.address for fact in facts], begin, shown)


class _Epoch(Epoch):
    """One life of the resident state: load, stages, commits. Its futures die with it."""

    def __init__(
        self,
        client: Client,
        job: _Job,
        run: Run,
        shown: Progress,
        members: list[str],
        number: int,
        commit_seconds: float,
    ):
        super().__init__(client, members, "apsp", f"{run.run_id[:8]}-{number}")
        self.number, self.job, self.committed, self.shown = number, job, run, shown
        self.layout = make_layout(run.n, len(members), run.dtype.itemsize, run.plan["block"])
        # The bands of a resumed run follow the chunks of its store, whatever the number of workers then was.
        self.layout = Layout(run.n, self.layout.block, run.chunk, len(members))
        self.stages = _stages(self.layout, job)
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
        tokens = [self.submit(_load, w, self.committed, self.layout, w, self.job) for w in workers]
        self.wait(tokens)
        self.shown.start(_done(self.layout, self.job, self.committed))

        last_commit, commit_cost = time.monotonic(), 0.0
        panel: Future | None = None  # of the stage to come, if its pivot ran ahead
        flights: list[tuple[int, list[Future]]] = []
        for k in range(self.committed.stage, len(self.stages)):
            pause = max(self.commit_seconds, commit_cost / COMMIT_SHARE)
            due = time.monotonic() - last_commit > pause and k + 1 < len(self.stages)
            tokens, panel = self._stage(k, tokens, panel, look_ahead=not due and len(self.members) > 1)
            flights.append((k, tokens))
            if len(flights) == WINDOW:
                self._land(flights)
            if due:
                while flights:
                    self._land(flights)
                begin = time.monotonic()
                self._commit(k + 1)
                # Nothing of before the commit is held on to: Dask would remember its lineage for ever.
                tokens, self.futures = [self.submit(_token, w) for w in workers], []
                last_commit, commit_cost = time.monotonic(), time.monotonic() - begin
        while flights:
            self._land(flights)
        self.shown.stage("writing the result")
        self._commit(len(self.stages) + 1)

    def _stage(
        self, k: int, tokens: list[Future], panel: Future | None, look_ahead: bool
    ) -> tuple[list[Future], Future | None]:
        """Submit stage k after the tasks of `tokens`; returns its tokens and, if looking ahead, the next stage's panel.

        A commit comes after a stage without look-ahead: a pivot closed twice may round otherwise than one closed once.
        """
        block, following, following_panel = self.stages[k], None, None
        if panel is None:
            owner = self.layout.owner(block[0])
            panel = self.submit(_pivot, owner, block, None, None, tokens[owner], priority=10)
        if look_ahead and k + 1 < len(self.stages):
            following = self.stages[k + 1]
            owner = self.layout.owner(following[0])
            following_panel = self.submit(_pivot, owner, following, block, panel, tokens[owner], priority=10)
            tokens = [following_panel if w == owner else token for w, token in enumerate(tokens)]
        after = [self.submit(_relax, w, block, following, panel, token) for w, token in enumerate(tokens)]
        return after, following_panel

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


# The tasks: each runs on the worker it is pinned to, changes that worker's rows in place and returns a token.


@dataclass
class _Slab:
    """The rows one worker holds."""

    job: _Job
    layout: Layout
    worker: int
    matrix: Any  # (rows, n), NumPy or CuPy

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


def _load(epoch: str, run: Run, layout: Layout, worker: int, job: _Job) -> None:
    """Set up this worker's rows: of the committed checkpoint, or of the weights."""
    clear()
    matrix = array_library().empty((layout.rows(worker), layout.n), dtype=job.dtype)
    whole = [(0, layout.n)] if layout.workers == 1 else layout.bands(worker)
    for start, stop in layout.bands(worker) if run.slot else whole:
        if run.slot:
            matrix[layout.local(start, stop)] = like(matrix, run.read_rows(start, stop))
            continue
        for first, indptr, indices, weights in arc_pieces(job.graph, start, stop):
            if job.potentials is not None:
                weights = nonnegative_weights(job.potentials, first, indptr, indices, weights)
            weight_rows(matrix[layout.local(first, first + len(indptr) - 1)], first, indptr, indices, weights)
    keep(epoch, _Slab(job, layout, worker, matrix))


def _pivot(epoch: str, block: tuple[int, int], before: tuple[int, int] | None, panel: Any, _after: Any) -> Any:
    """Close the independent block and return the singly dependent row panel, (pivots, n).

    Running ahead, it first does the doubly dependent update of these rows for the stage `before`, from its panel.
    """
    slab = held(epoch)
    rows = slab.rows(block)
    if before is not None:
        _update(slab, rows, before, panel)
    pivots = slab.pivots(block)
    within = slice(None) if isinstance(pivots, slice) else pivots - block[0]
    panel = rows[within].copy()
    closed = floyd_warshall(slab.columns(panel, pivots), nonnegative=True)
    panel = minplus_update(panel, closed, panel, out=panel, nonnegative=True)
    rows[within] = panel
    synchronize(panel)
    return panel


def _relax(epoch: str, block: tuple[int, int], following: tuple[int, int] | None, panel: Any, _after: Any) -> None:
    """Doubly dependent update of this worker's other rows."""
    slab = held(epoch)
    settled = [following] if following else []
    if isinstance(slab.pivots(block), slice):
        settled.append(block)  # rows of the panel itself; where some are no pivots, all are updated
    done = sorted(slab.layout.local(*b).indices(len(slab.matrix))[:2] for b in settled if _owns(slab, b))
    start = 0
    for first, last in [*done, (len(slab.matrix), len(slab.matrix))]:
        if start < first:
            _update(slab, slab.matrix[start:first], block, panel)
        start = last


def _owns(slab: _Slab, block: tuple[int, int]) -> bool:
    return slab.layout.owner(block[0]) == slab.worker


def _update(slab: _Slab, rows: Any, block: tuple[int, int], panel: Any) -> None:
    column_panel = slab.columns(rows, slab.pivots(block))
    minplus_update(rows, column_panel, panel, out=rows, nonnegative=True)
    synchronize(rows)


def _save(epoch: str, run: Run, result: bool) -> None:
    """Write this worker's rows to the slot in the making, a chunk at a time: copying, compressing, writing overlap."""
    slab = held(epoch)
    write = run.writer()

    def save(corner: tuple[int, int, int]) -> None:
        start, stop, column = corner
        rows = slab.matrix[slab.layout.local(start, stop)]
        write(start, column, to_host(rows[:, column : column + run.chunk]))

    bands = slab.layout.bands(slab.worker)
    if result:  # in place: the result is the last that is asked of this state
        for band in bands:
            _finish(slab.job, slab.matrix[slab.layout.local(*band)], np.arange(*band))
    with ThreadPoolExecutor(SAVERS) as pool:
        for _ in pool.map(save, [(*band, column) for band in bands for column in range(0, run.n, run.chunk)]):
            pass


def _rows_of(epoch: str, vertices: list[int], run: Run) -> np.ndarray:
    """Finished rows of some vertices this worker owns."""
    slab = held(epoch)
    local = np.array([slab.layout.local(v, v + 1).start for v in vertices])
    rows = to_host(slab.matrix[local])
    _finish(slab.job, rows, np.array(vertices))
    return rows


def _write_pieces(run: Run, start: int, pieces: list[np.ndarray], places: list[np.ndarray]) -> None:
    rows = np.empty((sum(map(len, pieces)), run.n), dtype=run.dtype)
    for piece, place in zip(pieces, places, strict=True):
        rows[place] = piece
    run.write_rows(start, rows)


def _token(epoch: str) -> None:
    """A token that depends on nothing."""


def _finish(job: _Job, rows: Any, vertices: np.ndarray) -> None:
    """Turn the rows of some vertices, as they are inside operations, into rows as they stand in stores, in place."""
    if not job.fits:
        refuse_overflow(rows, job.dtype)
    if job.potentials is not None:
        out, into = (like(rows, potential) for potential in job.potentials)
        limit, step = infinity(job.dtype) / 2, 64  # rows at a time, as the sums are in int64 or float64
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            shift = into - out[like(rows, vertices[start : start + step])][:, None]
            part += ((part < limit) * shift).astype(part.dtype)
    rows[like(rows, np.arange(len(rows))), like(rows, vertices)] = 0
    to_outside(rows)

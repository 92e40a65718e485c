"""Sums over sources, made by workers: every worker prepares the graph once, and gets some sources at a time.

The sum of a task depends on the sources of this task alone. So other workers repeat the tasks of a lost worker, with
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from distributed import Client

from gpuops.centrality import GROUP, Betweenness, Summation
from gpuops.centrality.flows import UnreachableError
from gpuops.centrality.pairwise_sums import PairwiseSums
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import Needs, WorkerFacts, measure_workers, on_devices
from pipelines.workers.device_arrays import array_library
from pipelines.workers.plans import run_plan, stating
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.row_chunks import DealtRows, RowsInMemory, RowTasks

TASKS = 8  # tasks for each worker, so that all workers end at about the same time
TASK_ARCS = 1 << 34  # arcs that a task visits at most, for all its sources: about a minute
# Bytes for each vertex and each arc of the graph: of the graph as it is read, and of its copy without loops and
# parallel arcs.
_VERTEX, _ARC = 32, 60
_SEARCH_VERTEX, _SEARCH_ARC = 100, 8  # bytes for each vertex and each arc in the search of a thread
# The least bytes for each vertex on a GPU: of a block, and of each source of a group, more if sums of arcs are wanted.
# With more memory, there are more blocks and more sources at a time.
_BLOCK_VERTEX, _SOURCE_VERTEX, _KEPT_VERTEX = 60, 8, 36


@dataclass(frozen=True)
class BetweennessJob:
    """The problem, for the tasks."""

    graph: Graph
    hops: bool  # whether every arc has the length 1
    endpoints: bool
    edges: bool  # whether sums of the arcs are wanted

    kind: ClassVar[str] = "betweenness"
    unit: ClassVar[str] = "sources"
    work: ClassVar[str] = "counting paths"

    @property
    def method(self) -> str:
        """The name of the method in the plan."""
        return "hops" if self.hops else "weights"

    @property
    def how(self) -> str:
        """A clause about the method for the text of the plan."""
        return f", by {self.method}"

    def summation(self, xp: Any = np) -> Summation:
        """Read the graph, and prepare it for sums by the library `xp`."""
        indptr, indices, weights = (xp.asarray(x) for x in self.graph.rows())
        through = self.graph.through()
        return Summation(
            indptr,
            indices,
            None if self.hops else weights,
            through=None if through.all() else xp.asarray(through),
            symmetric=not self.graph.directed,
            endpoints=self.endpoints,
            arcs=self.edges,
            check=False,
        )

    def needs(self, facts: list[WorkerFacts]) -> Needs:
        """Return the memory of the workers, of their GPUs if they have some."""
        n, m = self.graph.n, self.graph.m
        results = 8 * (n + m * self.edges)
        each = _SEARCH_VERTEX * n + _SEARCH_ARC * m + 2 * results
        on_cpu = _VERTEX * n + _ARC * m
        on_gpu = on_cpu + (_BLOCK_VERTEX + GROUP * (_SOURCE_VERTEX + _KEPT_VERTEX * self.edges)) * n
        return Needs(tuple(on_gpu if fact.gpu else on_cpu + fact.threads * each for fact in facts))

    @property
    def cure(self) -> str:
        """What to do if the memory of the workers is too small."""
        return "Give fewer workers (--workers)" + (", or leave out edges (--edges)" if self.edges else "")

    def result(self, sums: Any) -> Any:
        """Return the betweenness for the sums of all sources."""
        if self.edges:
            return self.summation().result(sums)  # this reads the graph again, since parallel arcs share their sum
        vertices, _, (pairs, inner) = sums
        return Betweenness(vertices, None, int(pairs), float(inner))


def sources_of_task(graph: Graph, sources: int, workers: int) -> int:
    """Return the number of sources of a task: `GROUP` times a power of two."""
    size = GROUP
    while 2 * size * workers * TASKS <= sources and 2 * size * max(1, graph.m) <= TASK_ARCS:
        size *= 2
    return size


def add_up(client: Client, job: BetweennessJob, sources: Any, asked: str, progress: bool | None) -> PairwiseSums:
    """State the plan, and let the workers add up the sums of all sources, which the plan calls `asked`.

    Raises
    ------
    ValueError
        As the operation on one device; the message names the graph or, of an `UnreachableError`, the vertices.
    """
    graph, facts = job.graph, measure_workers(client, None)
    needs = job.needs(facts)
    stated = f"n = {graph.n:,}, m = {graph.m:,}, {asked}, {on_devices(facts)}{job.how}: {needs}"
    with stating(run_plan(stated, job.method, needs)):
        what = f"{counted(graph.n, 'vertex', 'vertices')} and {counted(graph.m, 'arc')}"
        needs.refuse_memory(what, facts, job.cure)
    size = sources_of_task(graph, len(sources), len(facts))
    sums = PairwiseSums(-(-len(sources) // size))
    tasks = RowTasks(
        job.kind,
        load=(_load, job),
        work=lambda rows: (_sum, sources[rows]),
        receive=lambda start, found: sums.add(start // size, found),
        unit=job.unit,
        stage=job.work,
    )
    rows = RowsInMemory(len(sources), size)
    with Progress(len(sources), job.unit, progress) as bar:
        bar.note(stated)
        try:
            Run(client, [fact.address for fact in facts], rows, bar, resumes=False).attempts(DealtRows, tasks)
        except UnreachableError as error:
            origin, destination, amount = error.args
            raise UnreachableError(graph.label(origin), graph.label(destination), amount) from None
        except ValueError as error:
            raise ValueError(f"{graph.path}: {error}") from None
    return sums


def _load(attempt: str, job: BetweennessJob) -> None:
    clear_states()
    keep_state(attempt, job.summation(array_library()))


def _sum(attempt: str, sources: np.ndarray) -> Any:
    return state_of(attempt).over(sources)

"""All pairs of a graph that small sets of vertices separate: from its hierarchy, row by row (`pipelines.hierarchy`).

METIS is expected to order the vertices in `CHILD` + `ORDERING` x (n + m) seconds; the cost is known only then. METIS is
run only if this is a small part of the time that other methods take (`pipelines.apsp.methods.PATIENCE`), or if this
method is asked for. The structure then gives the exact number of relaxations: closing takes `BEGINNING` seconds, and
`CLOSING` for each relaxation, on the CPU of one worker. The products of a row are computed at the rate `ANSWERING` x r,
with r the relaxations/s of a min-plus product. Each distance of a row takes another `ENTRY` seconds of a thread, or
`GPU_ENTRY` seconds of a GPU. Rows are written at `WRITE_RATE` by each worker.

The hierarchy is a separate store inside the distances store, until the distances are complete. Integer distances are
the same as with other methods. Floats are summed in another order.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import numpy as np
from distributed import Client

from gpuops.hierarchy import Cost, HierarchyStructure, hierarchy_structure
from gpuops.hierarchy.order import has_metis
from gpuops.memory import available_memory, size
from pipelines.apsp.methods import FEWER_ROWS, Estimate, Method, Obstacle, Request
from pipelines.hierarchy.building import HierarchyJob, build
from pipelines.hierarchy.ordering import AT_ONCE, order_vertices
from pipelines.hierarchy.plan import (
    SearchesAreFasterError,
    answers,
    closing_memory,
    describe,
    most_relaxations,
    ordering_memory,
    table_bytes,
    without_metis,
)
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.durable import remove_folder
from pipelines.stores.errors import disk_errors
from pipelines.stores.hierarchy import HierarchyStore, HierarchyWriter, create_hierarchy, open_hierarchy
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import MEMORY_SHARE, WRITE_RATE, Needs
from pipelines.workers.device_arrays import array_library
from pipelines.workers.progress import Progress, estimated
from pipelines.workers.resident_state import clear_states, keep_state, state_of
from pipelines.workers.row_chunks import DealtRows, RowTasks, chunks_of_task
from pipelines.workers.saving import HELD, KEPT_COPIES, WRITTEN_COPIES, Savers, written_bytes

CHILD = 1.0  # seconds to begin and to end a child process, which orders a large graph
BEGINNING = 0.15  # seconds to begin and to end the additional store
ORDERING = 1.2e-6  # seconds that METIS takes for every vertex and arc
CLOSING = 1e-9  # seconds of closing for every relaxation
ANSWERING = 0.5  # rate at which rows are computed from the tables, as a share of the rate of a product
ENTRY, GPU_ENTRY = 2e-9, 8e-12  # additional seconds of a thread, or of a GPU, for every distance of a row
EDGE = 1024  # edge of a square chunk of the result: 4 MiB or more
LEAST_EDGE = 128  # least edge of a chunk, where there are few rows
TASK_BYTES = 2**31  # bytes of the rows that a task computes
TABLES = "hierarchy.zarr"  # name of the store of the tables, inside the store that is written


@dataclass(frozen=True, eq=False)
class Preparation:
    """Everything that precedes the tables: the order of the vertices, their structure and the exact cost."""

    order: np.ndarray
    structure: HierarchyStructure
    cost: Cost


def estimate(request: Request) -> Estimate:
    """Estimate the time and memory of the hierarchy and of the rows that are not done; raises Obstacle."""
    job, rows, facts = request.job, request.rows, request.facts
    if request.block is not None:
        raise Obstacle(f"block is {request.block}, but the hierarchy has no blocks")
    plan = _plan(request)
    cost, n = plan.cost, job.graph.n
    chunk = max(LEAST_EDGE, min(EDGE, -(-rows // (2 * len(facts))))) if request.writer is None else request.writer.chunk
    tables = table_bytes(cost, job.graph, job.dtype)
    result = rows * n * job.dtype.itemsize
    across = -(-n // chunk)
    written = written_bytes(across, chunk * min(chunk, n) * job.dtype.itemsize, WRITTEN_COPIES + KEPT_COPIES)
    bands = 1 + -(-HELD // across)  # a band is computed, while chunks of earlier bands wait to be written
    answering = answers(plan.structure, job.dtype, tables, job.fits, (chunk, n), facts, blocks=bands, written=written)
    closing = closing_memory(plan.structure, cost, job.graph, job.dtype)
    host = max(closing, answering.host[0]), *answering.host[1:]
    needs = Needs(answering.device, host, disk=result + tables)
    rate = sum(fact.rate for fact in facts) * ANSWERING
    entry = 1 / sum(1 / GPU_ENTRY if fact.gpu else fact.threads / ENTRY for fact in facts)
    seconds = BEGINNING + cost.relaxations * CLOSING + (tables + result) / WRITE_RATE / len(facts)
    seconds += rows * (_row_work(plan.structure) / rate + n * entry)

    return Estimate(
        seconds=seconds,
        too_large=None if needs.fits(facts) else "the hierarchy does not fit in memory",
        chunk=chunk,
        work=(rows, "rows"),
        needs=needs,
        summary=f"{describe(cost, job.graph, job.dtype)}; {needs}, time {estimated(seconds)}",
        plan=plan,
        facts=facts,
        what="the hierarchy and its rows",
        cure="Use method='batched' (--method batched), or free memory",
        disk_cure=FEWER_ROWS,
    )


def execute(client: Client, request: Request, estimate: Estimate, writer: DistancesWriter, bar: Progress) -> None:
    """Close the hierarchy, write the rows that are not done, and commit the store."""
    place = os.path.join(writer.path, TABLES)
    done = writer.rows_done()
    if not done.any():
        writer.make_result()
    if not done.all():
        tables = _closed(client, request, estimate.plan, place)
        sources = np.arange(writer.n) if writer.sources is None else np.array(writer.sources)
        band = writer.chunk * writer.n * writer.dtype.itemsize
        tasks = RowTasks(
            "hierarchy-rows",
            load=(_load, tables),
            work=lambda rows: (_write_rows, writer, rows.start, sources[rows]),
            stage="computing rows",
            chunks=chunks_of_task(writer, TASK_BYTES // max(1, band), len(request.facts)),
        )
        Run(client, [fact.address for fact in request.facts], writer, bar).attempts(DealtRows, tasks)
    with disk_errors(writer.path):
        remove_folder(place)
    writer.commit(writer.stages)


HIERARCHY = Method("hierarchy", "the hierarchy", "the hierarchy", estimate, execute)


def _plan(request: Request) -> Preparation:
    """Order the vertices, or read the order that an earlier run committed; raises Obstacle."""
    graph, through = request.job.graph, request.job.through
    order = _committed(request)
    if order is None:
        child = CHILD if graph.n + graph.m > AT_ONCE else 0.0
        if child + ORDERING * (graph.n + graph.m) > request.patience:
            raise Obstacle
        needed = ordering_memory(graph)
        if needed > MEMORY_SHARE * available_memory():
            raise Obstacle(f"to order the vertices for the hierarchy takes {size(needed)} of memory")
        order = order_vertices(graph, lambda: None)
    try:
        structure, cost = hierarchy_structure(
            graph.indptr(), graph.indices(), order, through, limit=most_relaxations(graph)
        )
    except ValueError as error:  # closing takes more relaxations than the limit
        fault = str(error).partition(". ")[0]
        cure = "Searches suit such a graph: use" if has_metis() else f"{without_metis()},"
        cause = SearchesAreFasterError(f"{graph.path}: {fault}. {cure} method='batched' (--method batched)")
        raise Obstacle("the hierarchy would take longer than searches") from cause
    return Preparation(order, structure, cost)


def _committed(request: Request) -> np.ndarray | None:
    """Return the order that an earlier run committed; None if there is none."""
    place = os.path.join(request.writer.path, TABLES) if request.writer is not None else ""
    if not os.path.isdir(place):
        return None
    begun = HierarchyWriter.begun(place)
    return {0: lambda: None, 1: begun.order}.get(begun.done(), lambda: begun.structure().order)()


def _row_work(structure: HierarchyStructure) -> float:
    """Return the relaxations for a row of distances: products for the bricks, and a sweep of the upper tree."""
    bricks, upper = structure.bricks, structure.bricks.of_node == len(structure.roots)
    entries = np.diff(structure.starts) * np.diff(structure.front_starts)
    return float((bricks.sizes * np.diff(bricks.front_starts)).sum() + entries[upper].sum())


def _closed(client: Client, request: Request, plan: Preparation, place: str) -> HierarchyStore:
    """Return the hierarchy, after the steps that are not committed yet."""
    job = request.job
    if os.path.isdir(place):
        writer = HierarchyWriter.resume(place, job.graph, {})
    else:
        writer = create_hierarchy(place, job.graph, dtype=job.dtype, options={})
    if writer.done() < 1:
        writer.commit_order(plan.order, None)
    if writer.done() < 2:
        writer.commit_structure(plan.structure, plan.cost)
    if not writer.finished:
        fact = max(request.facts, key=lambda fact: fact.host_memory)
        task = HierarchyJob(job.graph, job.dtype, job.potentials, False, None, np.inf, fact)
        with Progress(writer.progress()[1], "steps", False) as bar:
            build(client, task, writer, bar)
    return open_hierarchy(place)


def _load(attempt: str, tables: HierarchyStore) -> None:
    clear_states()
    keep_state(attempt, partial(tables.whole_rows, gpu=array_library() is not np))


def _write_rows(attempt: str, writer: DistancesWriter, start: int, sources: np.ndarray) -> None:
    """Write rows from `start` on; one chunk row is written while the next is computed."""
    whole_rows, write = state_of(attempt), writer.writer()
    with Savers() as savers:
        for first in range(0, len(sources), writer.chunk):
            rows = whole_rows(sources[first : first + writer.chunk])
            savers.save(rows, writer.chunk, partial(write, start + first))

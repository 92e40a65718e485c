"""The tasks of the worker that makes a hierarchy: order, structure and tables, each committed when it ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from distributed import Client, Future

from gpuops.errors import WeightRangeError
from gpuops.extras import install
from gpuops.hierarchy import Cost, HierarchyStructure, close_hierarchy, hierarchy_structure
from gpuops.hierarchy.order import has_metis
from gpuops.memory import size
from pipelines.hierarchy.ordering import order_vertices
from pipelines.hierarchy.plan import (
    SearchesAreFasterError,
    closing_memory,
    describe,
    ordering_memory,
    refuse_closing,
    table_bytes,
    without_metis,
)
from pipelines.places.by_place import ByPlace, has_scipy, vertices_by_place
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyWriter, open_hierarchy
from pipelines.stores.place import take_place
from pipelines.stores.schema import counted
from pipelines.workers.attempts import POLL_SECONDS, Attempt, Run
from pipelines.workers.capacity import Needs, WorkerFacts, refuse_disk
from pipelines.workers.interruption import stop_if_asked
from pipelines.workers.plans import Plan, refusing, run_plan, state_plan
from pipelines.workers.progress import Progress
from pipelines.workers.resident_state import clear_states, keep_state, state_of


@dataclass(frozen=True, eq=False)
class HierarchyJob:
    """The data of the problem that the tasks need.

    Attributes
    ----------
    potentials : potentials of tails and of heads; None if no weight is negative
    thorough : whether METIS takes longer for a better order
    like : path of the store whose order and structure are used; None if there is none
    limit : most relaxations that closing may take
    fact : the worker
    """

    graph: Graph
    dtype: np.dtype
    potentials: tuple[np.ndarray, np.ndarray] | None
    thorough: bool
    like: str | None
    limit: float
    fact: WorkerFacts


def build(client: Client, job: HierarchyJob, writer: HierarchyWriter, bar: Progress) -> None:
    """Take the steps that are not committed yet; the complete store takes its place."""
    Run(client, [job.fact.address], writer, bar).attempts(Building, job)
    take_place(writer.path)  # here and not in a task: if the result of a task is lost, the next attempt reads the store


class Building(Attempt):
    """An attempt to make the hierarchy."""

    kind = "hierarchy"

    def __init__(self, run: Run, members: list[str], before: Building | None, job: HierarchyJob):
        super().__init__(run, members, before)
        self.job = job

    def run(self) -> None:
        steps = (("ordering", _order), ("finding the structure", _structure), ("closing", _close))
        self.bar.start(self.done())
        for number in range(self.done(), len(steps)):
            name, task = steps[number]
            self.bar.stage(name)
            shown = f"{self.kind}-{task.__name__.strip('_')}"
            arguments = number, task, self.job, self.out
            plan: Plan | None = self._result_of(self.submit(_unless_done, 0, *arguments, name=[shown]))
            if plan is not None:
                state_plan(plan)
                self.bar.note(plan.text)
            self.bar.advance(1)

    def done(self) -> int:
        return int(self.out.done())

    def where(self) -> str:
        done, steps = self.out.progress()
        return f"{done} of {steps} steps"

    def _result_of(self, future: Future) -> Any:
        """Return the result of a task; Ctrl-C ends the run at once, as nothing of an unfinished step is kept."""
        while not future.done():
            stop_if_asked()
            with suppress(TimeoutError):  # an error of the task is raised below
                self.wait([future], POLL_SECONDS)
        return self.results([future])[0]


def _unless_done(
    attempt: str, number: int, task: Callable[..., Any], job: HierarchyJob, writer: HierarchyWriter
) -> Any:
    """Take the step of this number, unless a task of an attempt that was given up has committed it meanwhile."""
    return None if writer.done() > number else task(attempt, job, writer)


def _order(attempt: str, job: HierarchyJob, writer: HierarchyWriter) -> None:
    clear_states()
    keep_state(attempt, True)
    pool = ThreadPoolExecutor(1)
    try:
        by_place = pool.submit(_by_place, job.graph)  # while METIS uses one core
        writer.commit_order(_order_of(job, partial(state_of, attempt)), by_place.result())
    finally:
        pool.shutdown(wait=False)


def _order_of(job: HierarchyJob, wanted: Callable[[], object]) -> np.ndarray:
    if job.like is not None:
        return open_hierarchy(job.like).hierarchy.structure.order
    return order_vertices(job.graph, wanted, job.thorough)


def _by_place(graph: Graph) -> ByPlace | None:
    """Return the vertices by place, None if places cannot be snapped to them."""
    coordinates = graph.coordinates()
    if coordinates is None or not np.isfinite(coordinates).all(axis=1).any() or not has_scipy():
        return None
    return vertices_by_place(graph, coordinates)


def _structure(attempt: str, job: HierarchyJob, writer: HierarchyWriter) -> Plan:
    clear_states()
    structure, cost, plan = _found(job, writer.order(), writer.path)
    writer.commit_structure(structure, cost)
    return plan


def plan_of(job: HierarchyJob, out: str) -> Plan:
    """Return the plan of a hierarchy that is to be written to `out`; the order is computed for the plan."""
    return _found(job, _order_of(job, lambda: None), out)[2]


def _found(job: HierarchyJob, order: np.ndarray, out: str) -> tuple[HierarchyStructure, Cost, Plan]:
    """Find the structure on an order, or take the structure of another store; refuse a run that does not fit."""
    like = None if job.like is None else open_hierarchy(job.like)
    indptr, indices, through = job.graph.indptr(), job.graph.indices(), job.graph.through()
    missing = None if like is None else _lacks(like.hierarchy.structure, indptr, indices, through)
    if like is not None and missing is None:
        structure, cost, source = like.hierarchy.structure, like.cost, f"the structure of {like.path}: "
    else:
        try:
            structure, cost = hierarchy_structure(indptr, indices, order, through, limit=job.limit)
        except ValueError as error:  # closing takes more relaxations than the limit
            fault, cure = str(error).partition(". ")[0], "Searches suit such a graph: use"
            if like is not None:
                fault = f"{fault}, on the order of {like.path}"
                cure = "Leave out like (--like), or search with"
            elif not has_metis():
                cure = f"{without_metis()},"
            raise SearchesAreFasterError(
                f"{job.graph.path}: {fault}. {cure} tilepath sssp or tilepath apsp --method batched"
            ) from None
        source = f"a new structure on the order of {like.path}, as {missing}: " if like is not None else ""
        if like is None and not has_metis():
            source = f"ordered without pymetis ({install('hierarchy')} for a better order): "
    memory, disk = closing_memory(structure, cost, job.graph, job.dtype), table_bytes(cost, job.graph, job.dtype)
    most = memory if like is not None else max(memory, ordering_memory(job.graph))
    text = f"{source}{describe(cost, job.graph, job.dtype)}, needs {size(most)} of RAM"
    plan = run_plan(text, "tables", Needs(host=(most,), disk=disk))
    with refusing(plan):
        refuse_closing(structure, cost, job.graph, job.dtype, job.fact)
        refuse_disk(disk, out, "search instead (tilepath sssp)")
    return structure, cost, plan


def _close(attempt: str, job: HierarchyJob, writer: HierarchyWriter) -> None:
    clear_states()
    indptr, indices, weights = job.graph.rows()
    try:
        weights = weights.astype(job.dtype, copy=False)
        found = close_hierarchy(writer.structure(), indptr, indices, weights, potentials=job.potentials)
    except OverflowError as error:
        fault, larger = str(error).partition(";")[0], {"int16": "int32", "float64": ""}.get(str(job.dtype), "float64")
        cure = f"use dtype={larger!r} (--dtype {larger})" if larger else "scale the weights down"
        raise WeightRangeError(f"{job.graph.path}: {fault}; {cure}") from None
    writer.complete(found)


def _lacks(structure: HierarchyStructure, indptr: np.ndarray, indices: np.ndarray, through: np.ndarray) -> str | None:
    """Return why a graph cannot be closed on a structure, as text; None if it can."""
    open_, place = structure.open, structure.place
    if (through != (place < open_)).any():
        return "other vertices are closed"
    tails, heads = np.repeat(place, np.diff(indptr)), place[indices]
    first, last = np.minimum(tails, heads), np.maximum(tails, heads)
    first, last = (each[last < open_] for each in (first, last))
    nodes = structure.node_of[first]
    outside = structure.node_of[last] != nodes
    nodes, last = nodes[outside].astype(np.int64), last[outside]
    # The fronts of all nodes, as ascending numbers.
    n, owner = len(place), np.repeat(np.arange(len(structure.parent)), np.diff(structure.front_starts))
    fronts, wanted = owner * n + structure.front, nodes * n + last
    at = np.minimum(np.searchsorted(fronts, wanted), len(fronts) - 1)
    count = int((fronts[at] != wanted).sum()) if len(fronts) else len(wanted)
    return f"it has no room for {counted(count, 'arc')}" if count else None

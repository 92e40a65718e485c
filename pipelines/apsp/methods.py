"""Methods of all pairs as data, and the choice among methods.

A `Method` has two functions: `estimate` returns the time and memory of a run, and `execute` does the run. The driver
knows no method by name, so a new method only has to be added to the tuple `pipelines.apsp.solve.METHODS`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client

from pipelines.apsp.layout import Layout
from pipelines.stores.distances import DistancesWriter
from pipelines.stores.graph import Graph
from pipelines.workers.capacity import DoesNotFitError, Needs, WorkerFacts, refuse_disk
from pipelines.workers.progress import Progress, estimated

FEWER_ROWS = "keep the rows of some sources only (sources, --source)"  # a cure of a disk that is too small
WITHOUT_COMMITS = ", or do without commits (commit_seconds=None, --commit-seconds none)"  # a further cure
PATIENCE = 0.2  # share of the least time of other methods that a method may spend on its estimate


@dataclass(frozen=True, eq=False)
class Job:
    """The problem, for the tasks. Its pickle is small, apart from the mask `through`."""

    graph: Graph
    dtype: np.dtype
    through: np.ndarray
    potentials: tuple[np.ndarray, np.ndarray] | None  # potentials of tails and of heads; None if no weight is negative
    fits: bool  # whether the distances are proven to fit the dtype

    def pivots(self, block: tuple[int, int]) -> Any:
        """Return the pivots of a block: a slice, or an array of indices if some of its vertices are closed."""
        start, stop = block
        inside = self.through[start:stop]
        return slice(start, stop) if inside.all() else np.flatnonzero(inside) + start

    def stages(self, layout: Layout) -> list[tuple[int, int]]:
        """Return the pivot blocks that have at least one vertex that may lie inside a path."""
        return [(start, stop) for start, stop in layout.blocks() if self.through[start:stop].any()]

    def relaxations(self, stages: Sequence[tuple[int, int]]) -> int:
        """Return the number of relaxations of some stages."""
        return self.graph.n**2 * sum(int(self.through[start:stop].sum()) for start, stop in stages)


@dataclass(frozen=True, eq=False)
class Request:
    """The options of a run, and the workers and the store it has.

    Attributes
    ----------
    sources : vertices whose rows are kept; None keeps all rows
    block : width of a pivot block; None if it was not asked for
    commit_seconds : least time between two commits
    facts : the resources of the workers
    writer : the store that was begun; None if there is none
    patience : seconds that an estimate may take
    workers : how many workers Floyd-Warshall is to use; None lets it choose
    coordination : name of the executor of Floyd-Warshall's stages; None lets it choose
    """

    job: Job
    sources: tuple[int, ...] | None
    block: int | None
    commit_seconds: float
    facts: list[WorkerFacts]
    writer: DistancesWriter | None
    patience: float = math.inf
    workers: int | None = None
    coordination: str | None = None

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        return self.job.graph.n if self.sources is None else len(self.sources)

    @property
    def begun(self) -> bool:
        """Whether the store holds a committed state to go on from."""
        return self.writer is not None and self.writer.slot is not None

    def relaxations_done(self, layout: Layout) -> int:
        """Return the number of relaxations that the last commit contains."""
        return 0 if self.writer is None else self.job.relaxations(self.job.stages(layout)[: self.writer.stage])


@dataclass(frozen=True, eq=False)
class Estimate:
    """The time and memory that a method would take, and the properties of the store it would write.

    Attributes
    ----------
    seconds : float
    too_large : str or None
        Why the run does not fit in memory; None if it fits.
    chunk, stages, block : properties of a new store; a method of rows has one stage, and no pivot blocks
    work : number of units of work, and the name of a unit
    needs : memory and disk of the run
    summary : one line on the time, memory and disk of the run
    plan : data for `execute`
    facts : the workers that it uses
    what, cure : subject and advice of the refusal of a run that does not fit in memory, as for `Needs.refuse_memory`
    disk_cure : advice of the refusal of a run that does not fit on the disk, as for `refuse_disk`
    others : names and times of other methods that fit, for a refusal
    """

    seconds: float
    too_large: str | None
    chunk: int
    work: tuple[int, str]
    needs: Needs
    summary: str
    plan: Any
    facts: Sequence[WorkerFacts]
    what: str
    cure: str | Callable[[int], str]
    disk_cure: str
    stages: int = 1
    block: int | None = None
    others: Sequence[str] = ()

    def refuse(self, out: str | os.PathLike[str]) -> None:
        """Raise DoesNotFitError if memory, or the disk of `out`, is too small; names the methods that fit."""
        try:
            self.needs.refuse_memory(self.what, self.facts, self.cure)
            refuse_disk(self.needs.disk, out, self.disk_cure)
        except DoesNotFitError as error:
            if not self.others:
                raise
            raise DoesNotFitError(f"{error}. These methods fit (method, --method): {', '.join(self.others)}") from None


class Obstacle(Exception):
    """A method cannot fulfil a request; the text says why, and the cause of this error, if any, says it at length.

    An Obstacle without a text means that the method would not pay.
    """


@dataclass(frozen=True)
class Method:
    """A way to compute all pairs.

    Attributes
    ----------
    name : name in options and in stores
    title, short : name in messages, when first mentioned and after that
    estimate : returns the estimate of a run; raises Obstacle if the method cannot fulfil the request
    execute : writes the rows of the store that are not done, and commits the store
    """

    name: str
    title: str
    short: str
    estimate: Callable[[Request], Estimate]
    execute: Callable[[Client, Request, Estimate, DistancesWriter, Progress], None]


def choose(methods: Sequence[Method], name: str, request: Request) -> tuple[Method, Estimate, str]:
    """Return a method, its estimate, and a message that says why it was chosen.

    `name` is the name of a method, or "auto" for the method that takes the least time among the methods that fit. If no
    method fits, "auto" returns the last method that can fulfil the request: it takes the least memory, and its refusal
    says what would fit. With "auto" an estimate may take `PATIENCE` times the least time of the methods estimated
    before.

    Raises
    ------
    ValueError
        The method does not go with another option.
    DoesNotFitError
        The method that was asked for does not fit in memory, however large the disk is.
    """
    if name != "auto":
        (method,) = (method for method in methods if method.name == name)
        try:
            estimate = method.estimate(request)
        except Obstacle as obstacle:
            cure = f"leave that option out, or use method={methods[0].name!r} (--method {methods[0].name})"
            raise obstacle.__cause__ or ValueError(f"{obstacle}; {cure}") from None
        if request.writer is not None:
            return method, estimate, f"{method.title}, as before: {estimate.summary}"
        if estimate.too_large is not None:
            fit = _fitting(_estimates([other for other in methods if other is not method], request)[0])
            estimate = replace(estimate, others=[f"{other.name} ({estimated(its.seconds)})" for other, its in fit])
        return method, estimate, f"{method.title}, as asked for: {estimate.summary}"

    found, reasons = _estimates(methods, request)
    fitting = _fitting(found)
    reasons += [estimate.too_large for _, estimate in found if fitting and estimate.too_large is not None]
    if len(found) > 1:
        (first, estimate), *others = found
        costs = [f"{first.title} would take {estimated(estimate.seconds)}"]
        reasons.append(", ".join(costs + [f"{method.short} {estimated(other.seconds)}" for method, other in others]))
    method, estimate = min(fitting, key=lambda one: one[1].seconds) if fitting else found[-1]
    return method, estimate, f"{method.title}: {'; '.join(reasons)}\n{estimate.summary}"


def _estimates(methods: Sequence[Method], request: Request) -> tuple[list[tuple[Method, Estimate]], list[str]]:
    """Return the estimates of the methods that can fulfil the request, and why other methods cannot."""
    found: list[tuple[Method, Estimate]] = []
    reasons: list[str] = []
    for method in methods:
        least = min((estimate.seconds for _, estimate in _fitting(found)), default=math.inf)
        try:
            found.append((method, method.estimate(replace(request, patience=PATIENCE * least))))
        except Obstacle as obstacle:
            reasons += [str(obstacle)] if str(obstacle) else []
    return found, reasons


def _fitting(found: list[tuple[Method, Estimate]]) -> list[tuple[Method, Estimate]]:
    return [(method, estimate) for method, estimate in found if estimate.too_large is None]

"""What a method of all pairs is, and the choice among methods.

A method is data: `estimate` says what it would take, `execute` does it. The driver knows no method by name, so another
one joins by being added to the tuple it chooses from (`pipelines.apsp.solve.METHODS`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client

from pipelines.stores import Graph
from pipelines.stores.distances import DistancesWriter
from pipelines.workers.capacity import WorkerFacts
from pipelines.workers.progress import Progress, duration

PATIENCE = 0.2


@dataclass(frozen=True, eq=False)
class Job:
    """What the tasks need to know of the problem; pickles small but for the mask."""

    graph: Graph
    dtype: np.dtype
    through: np.ndarray
    potentials: tuple[np.ndarray, np.ndarray] | None  # of tails and of heads; None where no weight is negative
    fits: bool  # whether it is proven that the distances fit the dtype

    def pivots(self, block: tuple[int, int]) -> Any:
        """The vertices of a block that may lie inside a path: a slice, or their indices where some may not."""
        start, stop = block
        inside = self.through[start:stop]
        return slice(start, stop) if inside.all() else np.flatnonzero(inside) + start


@dataclass(frozen=True, eq=False)
class Request:
    """What a run is asked for, and what it has.

    `writer` is the store that was begun, None if there is none; `block` is the width of a pivot block, None if it was
    not asked for; `workers` is how many workers Floyd-Warshall is to use, None if it may choose. An estimate may take
    `patience` seconds.
    """

    job: Job
    sources: tuple[int, ...] | None
    block: int | None
    commit_seconds: float
    facts: list[WorkerFacts]
    writer: DistancesWriter | None
    patience: float = math.inf
    workers: int | None = None

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.job.graph.n if self.sources is None else len(self.sources)

    @property
    def begun(self) -> bool:
        """Whether the store holds a committed state to go on with."""
        return self.writer is not None and self.writer.slot is not None


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method would take, and how its store is begun.

    Attributes
    ----------
    seconds : float
    too_large : str or None
        Why it does not fit in memory, None if it fits.
    chunk, stages, options : of a store that is begun; the driver records the name of the method with the options
    work : how many units of work there are, and what they are called
    summary : one line on what the run takes; None if `execute` says it
    refuse : raises DoesNotFitError if memory, or the disk of the path it is given, is too small
    plan : what `execute` needs to know
    """

    seconds: float
    too_large: str | None
    chunk: int
    stages: int
    options: dict[str, Any]
    work: tuple[int, str]
    summary: str | None
    refuse: Callable[[str | os.PathLike[str]], None]
    plan: Any


class Obstacle(Exception):
    """Why a method cannot do what is asked for; its cause, if it has one, says it at length.

    Without a text: the method would not pay.
    """


@dataclass(frozen=True)
class Method:
    """A way to compute all pairs.

    Attributes
    ----------
    name : what it is called in options and in stores
    title, short : what it is called in messages, first and later on
    estimate : raises Obstacle if it cannot do what is asked for
    execute : writes the rows of the store that are not done, and commits it
    """

    name: str
    title: str
    short: str
    estimate: Callable[[Request], Estimate]
    execute: Callable[[Client, Request, Estimate, DistancesWriter, Progress], None]


def choose(methods: Sequence[Method], name: str, request: Request) -> tuple[Method, Estimate, str | None]:
    """The method of that name, or with "auto" the one that takes the least time of those that fit; and why, if said.

    Where none fits it is the last that can do what is asked for, which takes the least memory, to say what would fit.
    With "auto" a method may spend `PATIENCE` of the time of those before it on its estimate.

    Raises
    ------
    ValueError
        The method does not go with another option.
    DoesNotFitError
        The method does not fit, whatever the disk has.
    """
    if name != "auto":
        (method,) = (method for method in methods if method.name == name)
        try:
            estimate = method.estimate(request)
        except Obstacle as obstacle:
            cure = f"leave that option out, or use --method {methods[0].name}"
            raise obstacle.__cause__ or ValueError(f"{obstacle}; {cure}") from None
        return method, estimate, estimate.summary and f"{method.title}, as asked for: {estimate.summary}"

    found: list[tuple[Method, Estimate]] = []
    reasons: list[str] = []
    for method in methods:
        least = min((estimate.seconds for _, estimate in found if estimate.too_large is None), default=math.inf)
        try:
            found.append((method, method.estimate(replace(request, patience=PATIENCE * least))))
        except Obstacle as obstacle:
            reasons += [str(obstacle)] if str(obstacle) else []
    fitting = [(method, estimate) for method, estimate in found if estimate.too_large is None]
    reasons += [estimate.too_large for _, estimate in found if fitting and estimate.too_large is not None]
    if len(found) > 1:
        (first, estimate), *others = found
        costs = [f"{first.title} would take about {duration(estimate.seconds)}"]
        reasons.append(", ".join(costs + [f"{method.short} {duration(other.seconds)}" for method, other in others]))
    method, estimate = min(fitting, key=lambda one: one[1].seconds) if fitting else found[-1]
    said = [f"{method.title}: {'; '.join(reasons)}", *([estimate.summary] if estimate.summary else [])]
    return method, estimate, "\n".join(said)

"""A cut graph on a worker: the arcs within each part, and the arcs between parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops.certificates import nonnegative_weights
from pipelines.boundary.closures import Arcs, Potentials
from pipelines.stores import Graph
from pipelines.stores.boundary import Cut


@dataclass(frozen=True, eq=False)
class Job:
    """The data of the problem that tasks need."""

    graph: Graph
    dtype: np.dtype
    potentials: Potentials
    fits: bool  # whether all distances are proven to fit the dtype


@dataclass(frozen=True, eq=False)
class CutGraph:
    """A cut graph on a worker: the cut, the arcs within each part, and the arcs between parts."""

    job: Job
    cut: Cut
    through: np.ndarray
    within: Arcs  # sorted by part; tails and heads are places in the part
    starts: np.ndarray  # where the arcs of each part begin in `within`, then their number
    between: Arcs


def cut_arcs(job: Job, cut: Cut) -> CutGraph:
    """Sort the arcs of a graph by part, with weights in the dtype of the distances, made non-negative."""
    indptr, indices, weights = job.graph.rows()
    if job.potentials is not None:
        weights = nonnegative_weights(job.potentials, 0, indptr, indices, weights)
    tails = np.repeat(np.arange(job.graph.n), np.diff(indptr))
    weights = weights.astype(job.dtype)
    across = cut.part[tails] != cut.part[indices]
    between = Arcs(tails[across], indices[across], weights[across])
    order = np.flatnonzero(~across)
    order = order[np.argsort(cut.part[tails[order]], kind="stable")]
    starts = np.searchsorted(cut.part[tails[order]], np.arange(cut.parts + 1))
    within = Arcs(cut.place[tails[order]], cut.place[indices[order]], weights[order])
    return CutGraph(job, cut, job.graph.through(), within, starts, between)

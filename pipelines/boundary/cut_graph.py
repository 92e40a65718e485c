"""A cut graph as workers hold it: its arcs by the part they lie in, and those between parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuops.certificates import nonnegative_weights
from pipelines.boundary.closures import Arcs, Potentials
from pipelines.stores import Graph
from pipelines.stores.boundary import Cut


@dataclass(frozen=True, eq=False)
class Job:
    """What the tasks need to know of the problem."""

    graph: Graph
    dtype: np.dtype
    potentials: Potentials
    fits: bool  # whether it is proven that the distances fit the dtype


@dataclass(frozen=True, eq=False)
class CutGraph:
    """What a worker holds: the graph cut, its arcs by the part they lie in, and those between parts."""

    job: Job
    cut: Cut
    through: np.ndarray
    within: Arcs  # by part, tails and heads as places in it
    starts: np.ndarray  # of the arcs of each part, and the end
    between: Arcs


def cut_arcs(job: Job, cut: Cut) -> CutGraph:
    """The arcs of a graph by part; weights in the dtype of the distances, not negative."""
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

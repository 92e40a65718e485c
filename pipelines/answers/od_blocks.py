"""Compute a block of origins: the distances to all destinations, or values that the distances are reduced to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pipelines.answers.od_reductions import Reduction, reduced
from pipelines.answers.searched_distances import LANES, SearchedDistances
from pipelines.stores import Graph
from pipelines.stores.on_demand import OnDemand
from pipelines.workers.device_arrays import to_host

Ask: TypeAlias = Callable[[np.ndarray], np.ndarray]  # from the vertices of some origins to a row for each origin

DEVICE_PAIRS = 1 << 27  # least number of pairs whose distances are computed on a GPU at a time


class Distances:
    """Distances from any vertices to some targets; unreachable is +inf, or the maximum of an integer dtype."""

    def __init__(self, source: OnDemand | Graph, targets: np.ndarray):
        if isinstance(source, OnDemand):
            self.dtype = source.dtype
            self.rows: Ask = lambda v: source.between(v, targets)
            return
        if source.weight_min < 0:
            raise ValueError(
                f"{source.path} has negative weights; make a hierarchy store of it first (tilepath hierarchy)"
            )
        found = SearchedDistances(source)
        self.dtype = found.dtype
        self.rows = lambda v: np.concatenate(
            [found.search(v[i : i + LANES])[:, targets] for i in range(0, len(v), LANES)]
        )


@dataclass(frozen=True, eq=False)
class Reducing:
    """A table with one value for each origin.

    Attributes
    ----------
    targets : (l,) vertices
    values : (l,) the value that each target counts
    reduction : the value that the distances from an origin are reduced to
    within : destinations farther away do not count
    rows : number of origins whose distances to all targets are in memory at a time
    """

    targets: np.ndarray
    values: np.ndarray
    reduction: Reduction
    within: float | None
    rows: int

    def of(self, found: Distances) -> Ask:
        """Return a function that computes the values of origins from distances on the CPU."""
        return self._ask(found.rows, self.values, self.rows)

    def on_gpu(self, store: Any) -> Ask:
        """Return a function that computes the values of origins on the GPU, and copy the tables of `store` there.

        Targets are sorted by part, which is faster. So sums are added in another order than on a CPU, and rounded
        differently.
        """
        import cupy

        order = np.argsort(store.tables_on_gpu.part[self.targets], kind="stable")
        targets, values = self.targets[order], cupy.asarray(self.values[order])
        rows = max(self.rows, DEVICE_PAIRS // max(1, len(targets)))
        ask = self._ask(lambda v: store.between_on_gpu(v, targets), values, rows)
        ask(targets[:1])  # lays out tables and targets, and compiles the kernels
        return ask

    def _ask(self, find: Callable[[np.ndarray], Any], values: Any, rows: int) -> Ask:
        def ask(vertices: np.ndarray) -> np.ndarray:
            pieces = (vertices[i : i + rows] for i in range(0, len(vertices), rows))
            found = [reduced(find(piece), self.reduction, values, self.within) for piece in pieces]
            return np.concatenate([to_host(values) for values in found])

        return ask

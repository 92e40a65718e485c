"""What is asked for a block of origins: distances to the destinations, or what they are reduced to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gpuops import batched_shortest_distances, search_graph
from pipelines.answers.od_reductions import Reduction, reduced
from pipelines.stores import Graph
from pipelines.stores.boundary import Boundary
from pipelines.workers.device_arrays import to_host

Ask: TypeAlias = Callable[[np.ndarray], np.ndarray]  # of the vertices of some origins, a row for each

DEVICE_PAIRS = 1 << 27  # at least so many have their distances on a GPU at a time
LANES = 32  # searches that share the reads of arcs


class Distances:
    """Distances to some targets, from any vertices; unreachable is +inf, or the integer dtype's maximum."""

    def __init__(self, source: Boundary | Graph, targets: np.ndarray):
        if isinstance(source, Boundary):
            self.dtype = source.dtype
            self.rows: Ask = lambda v: source.between(v, targets)
            return
        if source.weight_min < 0:
            raise ValueError(
                f"{source.path} has negative weights; make a boundary store of it first (tilepath partition)"
            )
        graph = search_graph(*source.rows(), through=source.through(), symmetric=not source.directed)
        self.dtype = graph.dtype
        self.rows = lambda v: np.concatenate(
            [batched_shortest_distances(graph, v[i : i + LANES])[:, targets] for i in range(0, len(v), LANES)]
        )


@dataclass(frozen=True, eq=False)
class Reducing:
    """A table with one value for each origin.

    Attributes
    ----------
    targets : (l,) vertices
    values : (l,) what each of them counts
    reduction : what the distances are reduced to
    within : destinations that are farther away do not count
    rows : origins at a time, whose distances to all targets are in memory
    """

    targets: np.ndarray
    values: np.ndarray
    reduction: Reduction
    within: float | None
    rows: int

    def of(self, found: Distances) -> Ask:
        """The values of origins, from distances on the CPU."""
        return self._ask(found.rows, self.values, self.rows)

    def on_gpu(self, store: Boundary) -> Ask:
        """The values of origins, from the tables of a store, which are on the GPU from now on.

        Targets are sorted by part, as that is faster; so sums are rounded otherwise than on a CPU.
        """
        import cupy

        order = np.argsort(store.tables_on_gpu.part[self.targets], kind="stable")
        targets, values = self.targets[order], cupy.asarray(self.values[order])
        rows = max(self.rows, DEVICE_PAIRS // max(1, len(targets)))
        ask = self._ask(lambda v: store.between_on_gpu(v, targets), values, rows)
        ask(targets[:1])  # tables and targets are laid out, and kernels compiled
        return ask

    def _ask(self, find: Callable[[np.ndarray], Any], values: Any, rows: int) -> Ask:
        def ask(vertices: np.ndarray) -> np.ndarray:
            pieces = (vertices[i : i + rows] for i in range(0, len(vertices), rows))
            found = [reduced(find(piece), self.reduction, values, self.within) for piece in pieces]
            return np.concatenate([to_host(values) for values in found])

        return ask

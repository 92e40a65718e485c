"""Stores of distances between vertices: distances stores hold a matrix, other stores compute distances on demand."""

from __future__ import annotations

import os
from typing import TypeAlias

from pipelines.stores.distances import Distances, open_distances
from pipelines.stores.graph import Graph
from pipelines.stores.on_demand import OnDemand, open_on_demand
from pipelines.stores.schema import kind_of

Solution: TypeAlias = Distances | OnDemand
SolutionLike: TypeAlias = Solution | str | os.PathLike[str]


def open_solution(
    solution: SolutionLike, graph: Graph | str | os.PathLike[str] | None = None
) -> tuple[Solution, Graph]:
    """Open a store of distances, held or computed, and the graph of the store (None: the graph that it records)."""
    if isinstance(solution, str | os.PathLike):
        solution = open_on_demand(solution) if kind_of(solution).on_demand else open_distances(solution)
    return solution, solution.graph(graph.path if isinstance(graph, Graph) else graph)

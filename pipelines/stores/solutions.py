"""Stores of distances between vertices: distances stores hold a matrix, boundary stores compute it."""

from __future__ import annotations

import os
from typing import TypeAlias

from pipelines.stores.boundary import SCHEMA as BOUNDARY
from pipelines.stores.boundary import Boundary, open_boundary
from pipelines.stores.distances import Distances, open_distances
from pipelines.stores.graph import Graph
from pipelines.stores.schema import store_schema

Solution: TypeAlias = Distances | Boundary
SolutionLike: TypeAlias = Solution | str | os.PathLike[str]


def open_solution(
    solution: SolutionLike, graph: Graph | str | os.PathLike[str] | None = None
) -> tuple[Solution, Graph]:
    """Open a distances or boundary store, and the graph it was computed from (None: the graph that it records)."""
    if isinstance(solution, str | os.PathLike):
        solution = open_boundary(solution) if store_schema(solution) == BOUNDARY else open_distances(solution)
    return solution, solution.graph(graph.path if isinstance(graph, Graph) else graph)

"""Solutions: stores of all distances of a graph, which hold the matrix or compute rows from a hierarchy."""

from __future__ import annotations

import os
from typing import TypeAlias

from pipelines.stores.distances import Distances, open_distances
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import SCHEMA, HierarchyStore, open_hierarchy
from pipelines.stores.schema import check_path, kind_of

Solution: TypeAlias = Distances | HierarchyStore
SolutionLike: TypeAlias = Solution | str | os.PathLike[str]


def open_solution(
    solution: SolutionLike, graph: Graph | str | os.PathLike[str] | None = None
) -> tuple[Solution, Graph]:
    """Open a distances or hierarchy store, and the graph of the store (None: the graph that it records)."""
    if isinstance(solution, str | os.PathLike):
        computed = kind_of(solution).schema == SCHEMA
        solution = open_hierarchy(solution) if computed else open_distances(solution)
    if not isinstance(solution, Solution):
        check_path(solution)
    return solution, solution.graph(graph)

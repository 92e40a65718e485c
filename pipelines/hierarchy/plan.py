"""The cost of a hierarchy: memory, disk, and the comparison with searches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuops.hierarchy import Cost
from pipelines.stores import Graph
from pipelines.stores.schema import counted
from pipelines.workers.capacity import DoesNotFitError, Needs, WorkerFacts
from pipelines.workers.progress import size, with_prefix

# Bytes of memory for each vertex and each arc, while vertices are ordered, while the structure is computed, and while
# tables are closed. On road networks and grids 41 to 77 were measured, and up to 130 for 24 million vertices.
GRAPH_BYTES = 130
# Bytes for each vertex to answer from tables that are mapped; rows to all vertices need most, up to 560 on grids.
ANSWER_BYTES = 600
# Most bytes of intermediate tables of one call, and of distances that wait to be converted to integers.
CALL_BYTES = 1 << 29
# Rows of distances that are expected to be requested.
ANSWERED = 10_000
# Relaxations of a closure that take as long as one arc of a search.
ARC_WORK = 10
CURE = "Free some memory, take a larger machine, or search instead (tilepath sssp)"


class SearchesAreFasterError(DoesNotFitError):
    """Closing the hierarchy takes longer than the searches that it would save."""


def most_relaxations(graph: Graph) -> float:
    """Return the relaxations of a closure that takes as long as searches from `ANSWERED` vertices, or from all."""
    return float(min(ANSWERED, graph.n)) * ARC_WORK * (graph.n + graph.m)


def table_bytes(cost: Cost, graph: Graph, dtype: np.dtype) -> int:
    """Return the bytes of the store. An undirected graph with weights that are not negative has no table `into`."""
    symmetric = not graph.directed and graph.weight_min >= 0
    places, potentials = 4 * graph.n, 0 if graph.weight_min >= 0 else 16 * graph.n
    return cost.table_bytes(dtype, symmetric) + places + potentials + 16 * cost.nodes


def closing_memory(cost: Cost, graph: Graph, dtype: np.dtype) -> int:
    """Return the bytes that closing takes: the graph, the tables, and the matrix of the widest node."""
    return GRAPH_BYTES * (graph.n + graph.m) + 2 * table_bytes(cost, graph, dtype) + cost.widest**2 * dtype.itemsize


def answers_by_worker(tables: int, n: int, fits: bool, block: int, facts: Sequence[WorkerFacts]) -> list[int]:
    """Return the bytes that each worker needs to answer.

    Parameters
    ----------
    tables : bytes of the store. The workers of a host share them, so they are counted for the first worker only
    n : number of vertices
    fits : whether all distances are proven to fit their dtype; if not, each worker has the tables in float64 as well
    block : bytes of distances that a worker has at a time
    """
    own = ANSWER_BYTES * n + CALL_BYTES + block + (0 if fits else 4 * tables)
    seen: set[str] = set()
    needed = []
    for fact in facts:
        needed.append(own + (0 if fact.host in seen else tables))
        seen.add(fact.host)
    return needed


def refuse_ordering(graph: Graph, fact: WorkerFacts) -> None:
    """Raise DoesNotFitError if the memory of the host is too small to order the vertices."""
    what = f"to order {counted(graph.n, 'vertex', 'vertices')} and {counted(graph.m, 'arc')}, METIS and the graph"
    Needs(host=(GRAPH_BYTES * (graph.n + graph.m),)).refuse_memory(what, [fact], CURE)


def refuse_closing(cost: Cost, graph: Graph, dtype: np.dtype, fact: WorkerFacts) -> None:
    """Raise DoesNotFitError if the memory of the host is too small to close the hierarchy."""
    what = f"to close {counted(cost.nodes, 'node')}, the tables and the graph"
    Needs(host=(closing_memory(cost, graph, dtype),)).refuse_memory(what, [fact], CURE)


def describe(cost: Cost, graph: Graph, dtype: np.dtype) -> str:
    """Return a line about the cost."""
    widest = counted(cost.widest, "vertex", "vertices")
    return (
        f"{counted(cost.nodes, 'node')} of up to {widest} with their fronts; {with_prefix(cost.relaxations).strip()} "
        f"relaxations, {size(table_bytes(cost, graph, dtype))} of tables, needs "
        f"{size(closing_memory(cost, graph, dtype))} of RAM"
    )

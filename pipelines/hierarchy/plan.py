"""The cost of a hierarchy: memory, disk, and the comparison with searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gpuops.extras import install
from gpuops.hierarchy import Cost, HierarchyStructure
from gpuops.hierarchy.memory import (
    answer_bytes,
    answering_bytes,
    brick_bytes,
    closing_bytes,
    kept_most,
    order_bytes,
    structure_bytes,
    window_bytes,
)
from gpuops.memory import size
from pipelines.places.by_place import by_place_bytes
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted
from pipelines.workers.capacity import DoesNotFitError, Needs, WorkerFacts
from pipelines.workers.progress import with_prefix

# Bytes for each vertex to answer from mapped tables. Rows to all vertices were measured to need the most: up to 250, in
# addition to the tables of all bricks.
ANSWER_BYTES = 300
# The same, where only blocks of distances are computed.
BLOCK_BYTES = 100
# Blocks of distances in the memory of a GPU: one block is computed, while earlier blocks are converted or saved.
GPU_BLOCKS = 3
# Rows of distances that are expected to be requested.
ANSWERED = 10_000
# Relaxations of a closure that take as long as one arc of a search.
ARC_WORK = 10
CURE = "Free some memory, take a larger machine, or search instead (tilepath sssp)"


class SearchesAreFasterError(DoesNotFitError):
    """Closing the hierarchy takes longer than the searches that it would save."""


def without_metis() -> str:
    """Return a cure for an order that is too slow to close."""
    return f"Install pymetis ({install('hierarchy')}) for a better order, or use batched searches"


def most_relaxations(graph: Graph) -> float:
    """Return the relaxations of a closure that takes as long as searches from `ANSWERED` vertices, or from all."""
    return float(min(ANSWERED, graph.n)) * ARC_WORK * (graph.n + graph.m)


def table_bytes(cost: Cost, graph: Graph, dtype: np.dtype) -> int:
    """Return the bytes of the store. An undirected graph with weights that are not negative has no table `into`."""
    symmetric = not graph.directed and graph.weight_min >= 0
    places, potentials = 4 * graph.n, 0 if graph.weight_min >= 0 else 16 * graph.n
    return cost.table_bytes(dtype, symmetric) + places + potentials + 16 * cost.nodes


def ordering_memory(graph: Graph) -> int:
    """Return the bytes of the graph, of its ordering, and of sorting its vertices by place at the same time."""
    placed = by_place_bytes(graph) if "coordinates" in graph.optional else 0
    return _graph_bytes(graph) + order_bytes(graph.n, graph.m) + placed


def closing_memory(structure: HierarchyStructure, cost: Cost, graph: Graph, dtype: np.dtype) -> int:
    """Return the bytes that the structure and closing take, with the graph and a copy of the tables to write."""
    undirected = not graph.directed and graph.weight_min >= 0
    closing = closing_bytes(structure, cost, graph.m, dtype, undirected) + table_bytes(cost, graph, dtype)
    return _graph_bytes(graph) + max(structure_bytes(graph.n, graph.m, cost), closing)


def _graph_bytes(graph: Graph) -> int:
    """Return the bytes of a graph in memory, whose weights are converted to the dtype of the distances."""
    return 9 * graph.n + graph.m * (4 + 8 + graph.weight_dtype.itemsize)


def answers(
    structure: HierarchyStructure,
    dtype: np.dtype,
    tables: int,
    fits: bool,
    block: tuple[int, int],
    facts: Sequence[WorkerFacts],
    *,
    blocks: int = 1,
    written: int = 0,
    rows: bool = True,
) -> Needs:
    """Return what the workers need to answer.

    Parameters
    ----------
    tables : bytes of the store. The workers of a host share them, so they are counted for the first worker only. Each
        GPU has a copy
    fits : whether all distances are proven to fit their dtype; if not, each worker has the tables in float64 as well,
        up to four times as large
    block, blocks : rows and columns of distances that are computed at a time, and how many such blocks the host has
    written : bytes of copies that are made to write results
    rows : whether whole rows are computed; each worker on a CPU then keeps the tables of all bricks if they take at
        most its share of the memory (`kept_most`)
    """
    wide, converted = (dtype, 0) if fits else (np.dtype(np.float64), 4 * tables)
    of_block, n = block[0] * block[1] * dtype.itemsize, len(structure.order)
    own = (ANSWER_BYTES if rows else BLOCK_BYTES) * n + answer_bytes(structure, wide, *block, not fits)
    own += blocks * of_block + written + converted
    bricks, window = brick_bytes(structure, wide), window_bytes(structure, wide)
    on_gpu = answering_bytes(structure, wide) if any(fact.gpu for fact in facts) else 0
    on_host = Counter(fact.host for fact in facts)
    seen: set[str] = set()
    host, device = [], []
    for fact in facts:
        shared = 0 if fact.host in seen else tables
        seen.add(fact.host)
        if fact.gpu:
            host.append(blocks * of_block + written + shared)
            device.append(on_gpu + tables + converted + GPU_BLOCKS * of_block)
        else:
            kept = rows and bricks <= kept_most(fact.host_memory or fact.free_memory, 1 / on_host[fact.host])
            host.append(own + shared + (bricks if kept else window))
            device.append(0)
    return Needs(device=tuple(device) if any(device) else (), host=tuple(host))


def refuse_ordering(graph: Graph, fact: WorkerFacts) -> None:
    """Raise DoesNotFitError if the memory of the host is too small to order the vertices."""
    what = f"to order {counted(graph.n, 'vertex', 'vertices')} and {counted(graph.m, 'arc')}, METIS and the graph"
    Needs(host=(ordering_memory(graph),)).refuse_memory(what, [fact], CURE)


def refuse_closing(structure: HierarchyStructure, cost: Cost, graph: Graph, dtype: np.dtype, fact: WorkerFacts) -> None:
    """Raise DoesNotFitError if the memory of the host is too small to close the hierarchy."""
    what = f"to close {counted(cost.nodes, 'node')}, the tables and the graph"
    Needs(host=(closing_memory(structure, cost, graph, dtype),)).refuse_memory(what, [fact], CURE)


def describe(cost: Cost, graph: Graph, dtype: np.dtype) -> str:
    """Return a line about the cost."""
    widest = counted(cost.widest, "vertex", "vertices")
    return (
        f"{counted(cost.nodes, 'node')} of up to {widest} with their fronts; {with_prefix(cost.relaxations)} "
        f"relaxations, {size(table_bytes(cost, graph, dtype))} of tables"
    )

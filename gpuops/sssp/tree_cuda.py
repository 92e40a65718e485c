"""Predecessors on a GPU, with the kernel of tree.cu: one launch, in the memory of a finished search."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.numbers import SEARCH_DTYPES
from gpuops.sssp import memory_cuda
from gpuops.sssp.launch_cuda import arcs, declare
from gpuops.sssp.memory_cuda import Memory

PROGRAMS = {
    (dtype, signed): declare("sssp/tree.cu", ("tree",), dtype, signed)
    for dtype in SEARCH_DTYPES
    for signed in (False, True)
}


def tree(graph: Any, distances: Any, roots: Any) -> Any:
    """Return a predecessor for each vertex that is reached; see `gpuops.sssp.tree_numba.tree`."""
    return _grow(graph, distances, roots, ())


def tree_from_sources(graph: Any, distances: Any, sources: np.ndarray, starts: np.ndarray | None) -> Any:
    """Return predecessors like `tree`, but with all vertices in the original numbering; no vertex is closed.

    Parameters
    ----------
    graph : SearchGraph
        On a GPU.
    distances : (n,) cupy array
        As `search` returns them.
    sources : (k,) array of int
        On the host.
    starts : (k,) array or None
        A source is a root if its distance is its start; None: every reached source is a root.
    """
    starts = np.zeros(0, graph.dtype) if starts is None else starts
    return _grow(graph, distances, None, (starts, sources.astype(np.int32)))


def _grow(graph: Any, distances: Any, roots: Any, beside: tuple[np.ndarray, ...]) -> Any:
    """Find predecessors from `roots` (internal numbering), or from the host arrays `beside` (original numbering).

    `beside` has starts and sources.
    """
    import cupy

    with distances.device:
        result = cupy.empty((graph.n,), np.int32)
        if not graph.n:
            return result
        memory = memory_cuda.take(graph, graph.negative)
        if memory.tree is None:
            memory.tree = _constants(graph, memory)
        levels = memory.tree["levels"]
        for signed in (False, True)[graph.negative :]:
            starts, sources = memory.control.begin(*beside) or (levels, levels)
            outside = roots is None
            arguments = memory.tree | {
                "roots": memory.roots if outside else roots,
                "predecessors": memory.arrays["queued"] if outside else result,
                "order": graph.order if outside else levels,
                "rank": graph.rank if outside else levels,
                "sources": sources,
                "source_count": np.int32(len(beside[1]) if outside else 0),
                "starts": starts,
                "has_starts": np.int32(outside and len(beside[0]) > 0),
                "within": memory.distances,
                "result": result,
                "has_result": np.int32(outside),
                "distances": distances,
                "control": memory.control.memory,
            }
            PROGRAMS[graph.dtype, signed].launch_cooperative("tree", arguments)
            if memory.control.get()[1]:
                break  # otherwise some distances are negative: use the signed kernel
        memory_cuda.give_back(graph, graph.negative, memory)
    return result


def _constants(graph: Any, memory: Memory) -> dict[str, Any]:
    """Return the arguments that are the same for every launch with this memory."""
    inward, levels, pieces = graph.in_indptr is not None, memory.levels, memory.arrays["pieces"]
    return {
        **arcs(graph, inward),
        "through": levels if graph.through is None else graph.through,
        "has_in": np.int32(inward),
        "has_through": np.int32(graph.through is not None),
        "n": np.int32(graph.n),
        "active": np.int32(memory.active),
        "levels": levels,
        "queues": memory.arrays["queues"],
        "pieces": pieces,
        "piece_capacity": np.int64(pieces.shape[1]),
    }

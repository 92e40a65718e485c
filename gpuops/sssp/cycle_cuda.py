"""Look for a negative cycle during a search on a GPU, with the kernel of cycle.cu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops.errors import NegativeCycleError
from gpuops.sssp.launch_cuda import declare
from gpuops.sssp.memory_cuda import Memory

PROGRAM = declare("sssp/cycle.cu", ("look_for_cycle",), np.dtype(np.int32), signed=True)


def negative_cycle(graph: Any, memory: Memory) -> NegativeCycleError | None:
    """Return the error for a negative cycle among the arcs that improved distances last; None if none is found.

    These arcs form trees as long as there is no negative cycle. Threads that race may leave a wrong arc, so a cycle
    counts only if the exact sum of its weights is negative.
    """
    import cupy

    parents, control = memory.parents, memory.control
    control.begin()
    arguments = {
        "parents": parents,
        "ancestors": memory.arrays["queued"],  # scratch: only the steps of a search use it
        "n": np.int32(graph.n),
        "control": control.memory,
    }
    PROGRAM.launch_cooperative("look_for_cycle", arguments)
    if not control.get()[1]:
        return None
    vertices = cupy.arange(graph.n, dtype=np.int32)
    ancestors = cupy.where(parents < 0, vertices, parents)
    for _ in range(graph.n.bit_length()):
        ancestors = ancestors[ancestors]
    first = int(ancestors[int((parents[ancestors] >= 0).argmax())])
    parents = parents.get()
    cycle, vertex = [first], int(parents[first])
    while vertex != first:
        cycle.append(vertex)
        vertex = int(parents[vertex])
    cycle.reverse()
    weights = _weights_along(graph, cycle)
    total = math.fsum(weights.tolist()) if weights.dtype.kind == "f" else sum(weights.tolist())
    if total >= 0:
        return None
    return NegativeCycleError(f"negative cycle of {len(cycle)} vertices and weight {total:g}", cycle, total)


def _weights_along(graph: Any, cycle: list[int]) -> np.ndarray:
    """Return the weights of the arcs from each vertex of `cycle` to the next; there are no parallel arcs."""
    import cupy

    tails = cupy.asarray(np.array(cycle))
    starts, ends = graph.indptr[tails].get(), graph.indptr[tails + 1].get()
    lengths = ends - starts
    arcs = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    on_device = cupy.asarray(arcs)
    heads = np.repeat(np.roll(cycle, -1), lengths)
    return graph.weights[on_device].get()[graph.indices[on_device].get() == heads]

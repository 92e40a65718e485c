"""The rows of a graph in the memory of a device, for operations on all arcs. Results have the same bits on any device.

A process without a cluster chooses its device here. Workers of a cluster have their own devices (`pipelines.workers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuops.devices import library_for_size
from gpuops.memory import refuse_beyond_memory

if TYPE_CHECKING:
    from pipelines.stores.graph import Graph
    from pipelines.stores.neighbours import ReversedGraph

# From this many arcs on, "auto" takes a GPU, if there is one. With 31,458,372 arcs, as in the published run, degrees,
# the reverse graph, components and a forest take 0.10 to 2.7 s on two cores (benchmarks/results/graphs-amd-epyc.json)
# and 0.6 to 17 ms on an H200 (graphs-h200.json). To start a GPU took commands of 1,048,576 arcs 0.2 to 1 s there. The
# published program takes a GPU from 10,485,760 vertices on.
GPU_ARCS = 30_000_000
# Bytes of GPU memory for each arc and each vertex, at most: a reverse graph sorts its arcs with 64-bit numbers.
ARC_BYTES, VERTEX_BYTES = 80, 64


def rows_on(graph: Graph | ReversedGraph, device: str, *, weights: bool = False) -> tuple[Any, ...]:
    """Return `indptr` and `indices` of a graph, and with `weights` the weights of its arcs, on a device.

    Parameters
    ----------
    device : {"auto", "cpu", "gpu"}
        Arrays are NumPy's on a CPU and CuPy's on a GPU. "auto" takes a GPU from `GPU_ARCS` arcs on, if there is one
        with enough free memory.

    Raises
    ------
    ValueError
        There is no such device, or the GPU cannot hold the arcs.
    ImportError, NoGpuError
        `device` is "gpu", and CuPy or a GPU is missing.
    """
    needed = ARC_BYTES * graph.m + VERTEX_BYTES * graph.n
    xp = library_for_size(device, graph.m, GPU_ARCS, needed)
    if xp.__name__ == "cupy":
        cure = "use device='cpu'"
        refuse_beyond_memory(needed, f"{graph.m:,} arcs on a GPU take", cure, xp.cuda.Device().id)
    arrays = (graph.indptr(), graph.indices(), *([graph.weights()] if weights else []))
    return tuple(map(xp.asarray, arrays))

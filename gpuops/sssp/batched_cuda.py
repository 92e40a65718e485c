"""Up to 32 separate searches at once on a GPU, with the kernels of batched.cu.

The searches need 28 bytes for each vertex (32 with float64) in addition to the distances.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import Any

import numpy as np

from gpuops._cuda import Program
from gpuops.numbers import SEARCH_DTYPES
from gpuops.sssp.kept import kept_with_graph
from gpuops.sssp.launch_cuda import Control, Statistics, arcs, declare, pieces
from gpuops.sssp.memory_cuda import profile
from gpuops.sssp.search_cuda import Search

_WIDTH = 0.5  # width of the first window, in units of the mean weight divided by the mean degree
HUB = 8  # a vertex with this many times more arcs than the mean is a hub, at which searches come together

PROGRAMS = {
    dtype: declare(
        *("sssp/batched.cu", ("search_batch", "reach_nothing", "begin_batch", "end_batch"), dtype, False),
        *("THIN=16384", "WIDEN=8", "PULL=2", "MARGIN=2"),
        most_threads=640,
    )
    for dtype in SEARCH_DTYPES
}


def batch(graph: Any, sources: np.ndarray) -> Any:
    """Return the shortest distances from each of some sources, (k, n), all in the original numbering.

    Weights must not be negative.
    """
    import cupy

    n, k, program = graph.n, len(sources), PROGRAMS[graph.dtype]
    with graph.weights.device:
        result = cupy.empty((k, n), graph.dtype)
        if not k or not n:
            return result
        columns = _columns_from(graph, program, graph.rank, sources.astype(np.int32))
        improve_columns(graph, columns)
        arguments = (columns, np.int32(k), graph.rank, np.int64(n), result)
        grid = math.ceil(n / 32), math.ceil(k / 32)
        program.launch("end_batch", grid, arguments, threads=(32, 8))
    return result


def _columns_from(graph: Any, program: Program, rank: Any, sources: np.ndarray) -> Any:
    """Return the distances (n, k) at which searches begin: 0 at a source, in its own column."""
    import cupy

    k = len(sources)
    columns = cupy.empty((graph.n, k), graph.dtype)
    _reach_nothing(program, columns)
    arguments = (columns, np.int64(k), rank, cupy.asarray(sources), np.int32(k))
    program.launch("begin_batch", math.ceil(k / program.threads), arguments)
    return columns


def _reach_nothing(program: Program, words: Any) -> None:
    blocks = min(1024, math.ceil(words.size / program.threads))
    program.launch("reach_nothing", blocks, (words, np.int64(words.size)))


def improve_columns(graph: Any, distances: Any) -> Statistics:
    """Improve the distances of many separate searches, which share each read of an arc.

    Parameters
    ----------
    graph : SearchGraph
        Without negative weights.
    distances : (n, k) cupy array
        A column for every search, the rows contiguous; changed in place. A vertex relaxes its arcs in every search that
        has reached it.

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    import cupy

    total, k = Statistics(), distances.shape[1]
    if not profile(graph).active:
        return total
    program = PROGRAMS[distances.dtype]
    with distances.device:
        control, lows = Control(graph.dtype), cupy.empty((2, 32), np.dtype(f"i{distances.itemsize}"))
        arguments = _arguments(graph, program, distances, lows, control)
        for column in range(0, k, 32):
            control.begin()
            _reach_nothing(program, lows)
            arguments["distances"], arguments["searches"] = distances[:, column:], np.int32(min(32, k - column))
            program.launch_cooperative("search_batch", arguments)
            total = total.plus(control.get()[0])
    return total


def _arguments(graph: Any, program: Program, distances: Any, lows: Any, control: Control) -> dict[str, Any]:
    """Return the arguments of search_batch; the arrays that are not given are made here, as scratch."""
    import cupy

    n, inward = graph.n, graph.in_indptr is not None
    active, longest, mean_weight, degree = profile(graph)
    fresh, held, cursor, queued = cupy.empty((4, n), np.int32)
    piece_lists = pieces(graph, program)
    width, hub_distances = _WIDTH * mean_weight / degree or math.inf, None
    if longest > HUB * degree:
        # Without distances to the hub, searches reach a vertex at different times and share little: use one window.
        hub_distances, width = (_distances_to_hub(graph), width) if inward else (None, math.inf)
    return {
        **arcs(graph, inward),
        "through": cursor if graph.through is None else graph.through,
        "hub_distances": cursor if hub_distances is None else hub_distances,
        "has_through": np.int32(graph.through is not None),
        "has_hub": np.int32(hub_distances is not None),
        "n": np.int32(n),
        "active": np.int32(active),
        "entered": np.int32(0 if not inward else active if graph.symmetric else n),
        "distances": distances,
        "stride": np.int64(distances.strides[0] // distances.itemsize),
        "searches": np.int32(0),
        "fresh": fresh,
        "held": held,
        "cursor": cursor,
        "queued": queued,
        "next": cupy.empty((n,), np.float64 if graph.dtype.itemsize == 8 else np.float32),
        "queues": cupy.empty((2, n), np.int32),
        "pieces": piece_lists,
        "piece_capacity": np.int64(piece_lists.shape[1]),
        "lows": lows,
        "control": control.memory,
        "width": np.float64(width),
    }


@kept_with_graph
def _distances_to_hub(graph: Any) -> Any:
    """Return the distances of all vertices to the hub, vertex 0, which has the most arcs.

    They determine the order of a batch's work, not its result.
    """
    import cupy

    program, rank = PROGRAMS[graph.dtype], cupy.zeros((1,), np.int32)
    distances = _columns_from(graph, program, rank, np.zeros(1, np.int32))[:, 0]
    with contextlib.suppress(OverflowError):  # then the distances are lengths of some walks
        Search(graph if graph.symmetric else _reversed(graph), distances, signed=False).run()
    return distances


def _reversed(graph: Any) -> Any:
    """Return the graph with every arc reversed."""
    rows, in_rows = ("indptr", "indices", "weights"), ("in_indptr", "in_indices", "in_weights")
    others = zip((*rows, *in_rows), (*in_rows, *rows), strict=True)
    result = replace(graph, **{name: getattr(graph, other) for name, other in others})
    # Vertices without arcs are not the last vertices here, so all vertices count as active.
    result.kept[profile] = profile(graph)._replace(active=graph.n, longest=int(graph.in_indptr[1]))
    return result

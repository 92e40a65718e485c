"""The spanning forest on a GPU: the CUDA half of `gpuops.graphs.spanning_forest`, kernels in forest.cu and rooting.cu.

Additional memory: 28 bytes for each arc and 32 bytes for each vertex if all arrays are int32 (`indptr` may be int64),
twice as much if all arrays are int64.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from gpuops._cuda import Program
from gpuops.csr.csr_cuda import tails
from gpuops.graphs.components_cuda import launch, until_short

_MOST_ARCS = 2**31 - 1  # most arcs whose numbers are int32; the largest int32 number stands for "no arc"

_TYPES = {np.dtype("int32"): "int", np.dtype("int64"): "long long"}
_FOREST = {
    (vertex, arc): Program(
        "graphs/forest.cu",
        ("offer_all", "choose", "shorten_all", "keep", "lower"),
        (f"VERTEX={_TYPES[vertex]}", f"ARC={_TYPES[arc]}"),
    )
    for vertex, arc in product(_TYPES, repeat=2)
}
_ROOTING = {
    vertex: Program("graphs/rooting.cu", ("pick", "join", "relabel", "separate"), (f"VERTEX={_TYPES[vertex]}",))
    for vertex in _TYPES
}


def forest(indptr: Any, indices: Any) -> tuple[Any, Any, Any]:
    """Return a mask of the forest's arcs (m,), and for each vertex the least vertex of its component and its parent."""
    import cupy

    n, m = len(indptr) - 1, len(indices)
    with indices.device:
        sources = tails(indptr, m, indices.dtype)
        chosen, components = _boruvka(n, sources, indices)
        edges = cupy.flatnonzero(chosen)
        parents = _parents(components, sources[edges], indices[edges])
        return chosen, components, parents


def _boruvka(n: int, sources: Any, heads: Any) -> tuple[Any, Any]:
    import cupy

    m = len(heads)
    number = np.dtype(np.int32 if m <= _MOST_ARCS else np.int64)
    program = _FOREST[heads.dtype, number]
    chosen, parents = cupy.zeros((m,), bool), cupy.arange(n, dtype=heads.dtype)
    if m == 0:
        return chosen, parents
    best, others = cupy.empty((n,), number), cupy.empty((n,), heads.dtype)
    best[...] = 2 ** (8 * number.itemsize - 1) - 1
    vertices = np.int64(n)
    launch(program, "offer_all", m, (sources, heads, np.int64(m), best))
    list_tails, list_heads, numbers, size, every = sources, heads, best, m, True
    while True:
        launch(program, "choose", n, (sources, heads, vertices, parents, best, others, chosen))
        parents, others = others, parents
        until_short(
            lambda flag, parents=parents: launch(program, "shorten_all", n, (parents, vertices, best, flag))  # type: ignore[misc]
        )
        kept = cupy.empty((size,), heads.dtype), cupy.empty((size,), heads.dtype), cupy.empty((size,), number)
        count = cupy.zeros((1,), np.uint64)
        arguments = (list_tails, list_heads, numbers, np.int32(every), np.int64(size), parents, best, *kept, count)
        launch(program, "keep", size, arguments)
        (list_tails, list_heads, numbers), size, every = kept, int(count[0]), False
        if size == 0:
            break
    least = cupy.empty((n,), heads.dtype)
    least[...] = np.iinfo(heads.dtype).max
    launch(program, "lower", n, (parents, vertices, least))
    return chosen, least[parents]


def _parents(components: Any, left: Any, right: Any) -> Any:
    """Return the parents in the forest whose edges join `left` and `right`, (edges,) each."""
    import cupy

    n, edges, dtype = len(components), len(left), components.dtype
    program = _ROOTING[dtype]
    parents = cupy.empty((n,), dtype)
    parents[...] = -1
    if edges == 0:
        return parents
    joined, tops = cupy.arange(n, dtype=dtype), components.copy()
    picks, inside, outside = (cupy.empty((n,), dtype) for _ in range(3))
    order = cupy.empty((edges,), dtype)  # the parts that joined, round by round
    spare = tuple(cupy.empty((edges,), dtype) for _ in range(8))
    lists, free = (left, right, left, right), (spare[:4], spare[4:])
    counts = cupy.zeros((2,), np.uint64)  # number of parts that joined, number of edges left
    bounds = [0]
    while bounds[-1] < edges:
        size = edges - bounds[-1]
        round_ = np.int32(len(bounds))
        launch(program, "pick", size, (*lists[:2], np.int64(size), picks))
        arguments = (*lists, np.int64(size), picks, round_, joined, inside, outside, order, counts[:1])
        launch(program, "join", size, arguments)
        counts[1:] = 0
        launch(program, "relabel", size, (*lists, np.int64(size), joined, *free[0], counts[1:]))
        lists, free = free[0], (free[1], free[0])
        bounds.append(edges - int(counts[1]))
    for first, last in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
        if first < last:
            part = order[first:last], np.int64(last - first)
            launch(program, "separate", last - first, (*part, joined, inside, outside, tops, parents))
    return parents

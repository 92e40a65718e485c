"""A graph laid out for searches on a GPU: the CUDA half of `gpuops.sssp.graph_layout`, kernels in graph_layout.cu.

1. Arcs are sorted by tail and head, which puts parallel ones beside each other: the first takes the least weight.
2. Vertices are numbered by falling degree, a sort of n keys.
3. For the rows, and again for the transpose: a sort by weight, ties by the other end, then a stable one by row.

Sorts are CuPy's, which come compiled. All else is done by kernels of our own, so that the first graph does not wait for
a dozen of CuPy's to be compiled; each reduction of those takes seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpuops import csr
from gpuops._cuda import Program
from gpuops.errors import NegativeCycleError

_THREADS = 256
_MOST_BLOCKS = 1024  # of a kernel that goes by grid strides

_ENTRIES = (
    *("read_arcs", "order_arcs", "find_lightest", "drop_parallel", "count_degrees", "vertex_keys", "number_vertices"),
    *("number_arcs", "take_vertices", "take_keys", "place_arcs", "begin_rows", "measure", "look_for_negative"),
)
PROGRAMS = {
    name: Program("sssp/graph_layout.cu", _ENTRIES, (f"DISTANCE={name.capitalize()}",), threads=_THREADS)
    for name in ("float32", "float64", "int32")
}

# Struct Report of graph_layout.cu.
_COUNTS = ("not_finite", "fractions", "too_large", "negative", "loop", "kept", "parallel", "closed", "uneven", "active")
_REPORT = np.dtype([*((name, np.uint64) for name in _COUNTS), ("magnitudes", np.float64)])

_KINDS = {"float32": 0, "float64": 1, "int32": 2, "int64": 3}  # of weights, as weight_at of graph_layout.cu has them


def lay_out(
    indptr: Any, indices: Any, weights: Any, dtype: np.dtype, through: Any, symmetric: bool, reverse: bool
) -> tuple[Any, ...]:
    """The fields of a `SearchGraph`, of checked arrays of CuPy; raises what `search_graph` does.

    One long function, as every step lets go of arrays of the steps before.
    """
    import cupy

    n, m = len(indptr) - 1, len(indices)
    indices, weights = csr.contiguous(_as_integers(indices)), csr.contiguous(_with_kind(weights))
    program, word = PROGRAMS[dtype.name], np.dtype(f"i{dtype.itemsize}")
    with indptr.device:
        report = _zeros(_REPORT.itemsize, np.uint8)

        def launch(entry: str, size: int, *arguments: Any) -> None:
            if size:
                program.launch(entry, math.ceil(size / _THREADS), arguments)

        tails = csr.tails(_as_integers(indptr), m, np.int32)
        values, pairs = cupy.empty((m,), dtype), cupy.empty((m,), np.int64)
        wide, kind = np.int32(indices.dtype == np.int64), np.int32(_KINDS[weights.dtype.name])
        launch("read_arcs", m, tails, indices, wide, weights, kind, np.int64(m), values, pairs, report)
        found = _read(report)
        _refuse(found, dtype)
        if found["loop"]:
            arc = 2**64 - 1 - int(found["loop"])
            vertex, weight = int(tails[arc]), values[arc].item()
            raise NegativeCycleError(f"a loop of weight {weight:g} at vertex {vertex}", (vertex,), weight)
        del tails

        kept = int(found["kept"])
        order = cupy.argsort(pairs)  # stable, like all sorts of CuPy
        arcs, words = cupy.empty((m,), np.int64), cupy.empty((m,), word)
        launch("order_arcs", m, pairs, order, values, np.int64(m), np.int64(kept), arcs, words, report)
        del pairs, order, values
        parallel = int(_read(report)["parallel"])
        if parallel:
            launch("find_lightest", kept, arcs, np.int64(kept), words)
            unique = cupy.empty((m,), np.int64)
            launch("drop_parallel", m, arcs, np.int64(m), unique)
            arcs, kept = unique, kept - parallel

        degrees, in_degrees = _zeros(n, np.int32), _zeros(n, np.int32) if symmetric else report
        both = np.int32(symmetric)
        launch("count_degrees", m, arcs, np.int64(m), np.int32(n), degrees, in_degrees, both)
        keys = cupy.empty((n,), np.int64)
        launch("vertex_keys", n, degrees, in_degrees, np.int32(n), np.int64(m), both, keys, report)
        new_order, rank = cupy.empty((n,), np.int32), cupy.empty((n,), np.int32)
        passes = cupy.empty((n if through is not None else 1,), bool)
        has_through = np.int32(through is not None)
        mask = passes if through is None else csr.contiguous(through)
        launch(
            "number_vertices", n, cupy.argsort(keys), np.int32(n), new_order, rank, mask, has_through, passes, report
        )
        del keys, degrees, in_degrees
        found = _read(report)
        if found["uneven"]:
            raise ValueError("the graph is not symmetric: a vertex has more arcs out than in; pass symmetric=False")

        def rows(transposed: bool) -> tuple[Any, Any, Any]:
            vertices, neighbours = cupy.empty((2, m), np.int32)
            keys = cupy.empty((m,), np.int64)
            sizes = np.int64(m), np.int32(transposed)
            launch("number_arcs", m, arcs, words, rank, *sizes, vertices, neighbours, keys)
            first = _sorted_by(launch, keys, neighbours if word.itemsize == 8 else None)
            del keys
            taken = cupy.empty((m,), np.int32)
            launch("take_vertices", m, vertices, first, np.int64(m), taken)
            second = cupy.argsort(taken)
            row_of, heads = taken[:kept], cupy.empty((kept,), np.int32)  # the sort took a copy
            lengths = cupy.empty((kept,), dtype)
            launch(
                *("place_arcs", kept, first, second, vertices, neighbours, words, np.int64(kept)),
                *(row_of, heads, lengths),
            )
            starts = cupy.empty((n + 1,), np.int64)
            launch("begin_rows", n + 1, row_of, np.int64(kept), np.int32(n), starts)
            return starts, heads, lengths

        outgoing = rows(transposed=False)
        incoming = outgoing if symmetric else rows(transposed=True) if reverse else (None, None, None)
    open_ = passes if found["closed"] else None
    return *outgoing, *incoming, open_, new_order, rank, bool(found["negative"])


def _sorted_by(launch: Any, keys: Any, neighbours: Any) -> Any:
    """The order of arcs by weight, ties by `neighbours`, which keys of 32 bits have in them."""
    import cupy

    if neighbours is None:
        return cupy.argsort(keys)
    m = len(keys)
    first, by_neighbour = cupy.argsort(neighbours), cupy.empty((m,), np.int64)
    launch("take_keys", m, keys, first, np.int64(m), by_neighbour)
    second, order = cupy.argsort(by_neighbour), by_neighbour
    launch("take_keys", m, first, second, np.int64(m), order)
    return order


def measure(graph: Any) -> tuple[int, float]:
    """How many vertices have arcs, and the sum of the magnitudes of all weights."""
    with graph.weights.device:
        report = _zeros(_REPORT.itemsize, np.uint8)
        blocks = min(_MOST_BLOCKS, max(1, math.ceil(max(graph.n, graph.m) / _THREADS)))
        arguments = (graph.indptr, graph.weights, np.int32(graph.n), np.int64(graph.m), report)
        PROGRAMS[graph.dtype.name].launch("measure", blocks, arguments)
        found = _read(report)
    return int(found["active"]), float(found["magnitudes"])


def any_negative(distances: Any) -> bool:
    """Is any of the distances below 0? Contiguous."""
    n = len(distances)
    with distances.device:
        report = _zeros(_REPORT.itemsize, np.uint8)
        blocks = min(_MOST_BLOCKS, max(1, math.ceil(n / _THREADS)))
        PROGRAMS[distances.dtype.name].launch("look_for_negative", blocks, (distances, np.int32(n), report))
        return bool(_read(report)["negative"])


def _refuse(found: np.void, dtype: np.dtype) -> None:
    if found["not_finite"]:
        raise ValueError("weights contain NaN or -inf; weights below 0 must be finite")
    if found["fractions"]:
        raise ValueError("weights have fractions, which int32 distances cannot have; use float64")
    if found["too_large"]:
        raise OverflowError(f"weights exceed {dtype}; use float64")


def _read(report: Any) -> np.void:
    return report.get().view(_REPORT)[0]


def _zeros(size: int, dtype: Any) -> Any:
    """CuPy clears memory without a kernel."""
    import cupy

    return cupy.zeros((size,), dtype)


def _as_integers(array: Any) -> Any:
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def _with_kind(weights: Any) -> Any:
    if weights.dtype.name in _KINDS:
        return weights
    return weights.astype(np.float64 if weights.dtype.kind == "f" else np.int64)

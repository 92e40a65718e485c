"""A graph laid out for searches on a GPU: the CUDA half of `gpuops.sssp.graph_layout`, with kernels in graph_layout.cu.

1. Arcs are sorted by tail and head, so that parallel arcs are neighbours: the first arc takes the least weight.
2. Vertices are numbered by descending degree, by a sort of n keys.
3. The arcs of the rows, and then of the transpose, are sorted by weight, ties by the other end, then stably by row.

If memory is too small to sort all arcs at once, they are sorted by ranges of rows, and each range twice: first to count
the arcs that are kept, and again, once vertices are numbered, to place them. A transpose needs all arcs at once.

Sorts are CuPy's, which are precompiled. The kernels of graph_layout.cu do everything else, so that the first graph does
not wait for a dozen of CuPy's kernels to be compiled; a reduction of CuPy takes seconds to compile.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops._copies_cuda import argsort
from gpuops._cuda import Program, struct
from gpuops.arrays import contiguous
from gpuops.errors import NegativeCycleError
from gpuops.numbers import SEARCH_DTYPES

_THREADS = 256
_MOST_BLOCKS = 1024  # most blocks of a kernel that uses grid strides

_ENTRIES = (
    *("read_arcs", "order_arcs", "find_lightest", "drop_parallel", "count_degrees", "vertex_keys", "number_vertices"),
    *("number_arcs", "take_vertices", "take_keys", "place_arcs", "begin_rows", "measure", "look_for_negative"),
)
PROGRAMS = {
    dtype: Program("sssp/graph_layout.cu", _ENTRIES, (f"DISTANCE={dtype.name.capitalize()}",), threads=_THREADS)
    for dtype in SEARCH_DTYPES
}

_REPORT = struct("sssp/graph_layout.cu", "Report")

# Dtypes of weights for `weight_at` of graph_layout.cu.
_KINDS = {dtype: kind for kind, dtype in enumerate((*SEARCH_DTYPES, np.dtype("int64")))}


WHOLE = 1 << 26  # arcs that are always sorted at once
_SORTING = 80  # most bytes an arc while arcs are sorted
_NUMBERING = 48  # additional bytes a vertex


def lay_out(
    indptr: Any, indices: Any, weights: Any, dtype: np.dtype, through: Any, symmetric: bool, reverse: bool
) -> tuple[Any, ...]:
    """Return the fields of a `SearchGraph` for checked CuPy arrays; raises the errors of `search_graph`.

    Every step frees arrays of the steps before.
    """
    import cupy

    n, m = len(indptr) - 1, len(indices)
    with indptr.device:
        sorting = _Sorting(indptr, indices, weights, dtype)
        launch, report = sorting.launch, _zeros(_REPORT.itemsize, np.uint8)
        ranges = [(0, n)] if reverse and not symmetric else _ranges(sorting.indptr, m, dtype)
        degrees, in_degrees = _zeros(n, np.int32), _zeros(n, np.int32) if symmetric else report
        both, negative, kept = np.int32(symmetric), False, 0
        simple: Any = None
        for some in ranges:
            simple = None
            simple = sorting.simplified(*some)
            size = len(simple.arcs)
            launch("count_degrees", size, simple.arcs, np.int64(size), np.int32(n), degrees, in_degrees, both)
            negative, kept = negative or simple.negative, kept + simple.kept
        keys = cupy.empty((n,), np.int64)
        launch("vertex_keys", n, degrees, in_degrees, np.int32(n), np.int64(m), both, keys, report)
        order, rank = cupy.empty((n,), np.int32), cupy.empty((n,), np.int32)
        passes = cupy.empty((n if through is not None else 1,), bool)
        has_through = np.int32(through is not None)
        mask = passes if through is None else contiguous(through)
        launch("number_vertices", n, argsort(keys), np.int32(n), order, rank, mask, has_through, passes, report)
        del keys, in_degrees
        found = _read(report)
        if found["uneven"]:
            raise ValueError("the graph is not symmetric: a vertex has more arcs out than in; pass symmetric=False")

        incoming: tuple[Any, ...] = (None, None, None)
        if len(ranges) > 1:
            del simple
            outgoing = _by_ranges(sorting, ranges, degrees[order], rank, kept)
        else:
            del degrees
            outgoing = sorting.rows(simple, rank)[0]
            if reverse and not symmetric:
                incoming = sorting.rows(simple, rank, transposed=True)[0]
    open_ = passes if found["closed"] else None
    return *outgoing, *(outgoing if symmetric else incoming), open_, order, rank, negative


def _ranges(indptr: Any, m: int, dtype: np.dtype) -> list[tuple[int, int]]:
    """Return the ranges of rows whose arcs are sorted together: a single range if memory has room for it."""
    import cupy

    n = len(indptr) - 1
    if m <= WHOLE:
        return [(0, n)]
    free = cupy.cuda.Device().mem_info[0] + cupy.get_default_memory_pool().free_bytes() - _NUMBERING * n
    if _SORTING * m <= free:
        return [(0, n)]
    room = max(WHOLE, (free - (4 + dtype.itemsize) * m) // (2 * _SORTING))  # larger ranges are no faster
    goals = cupy.asarray(np.arange(0, m, room)[1:])
    cuts = [0, *cupy.searchsorted(indptr, goals).get().tolist(), n]
    return [(a, b) for a, b in itertools.pairwise(cuts) if a < b]


def _by_ranges(sorting: _Sorting, ranges: list[tuple[int, int]], degrees: Any, rank: Any, kept: int) -> tuple[Any, ...]:
    """Return offsets, heads and weights of all rows, sorted range by range, for the second time after the count.

    `degrees` are the degrees of the vertices in the new numbering, `kept` is their sum.
    """
    import cupy

    indptr = _zeros(len(rank) + 1, np.int64)
    indptr[1:] = degrees.cumsum(dtype=np.int64)
    indices, weights = cupy.empty((kept,), np.int32), cupy.empty((kept,), sorting.dtype)
    for some in ranges:
        (starts, heads, lengths), row_of = sorting.rows(sorting.simplified(*some), rank)
        places = (indptr[:-1] - starts[:-1])[row_of]
        places += cupy.arange(len(row_of), dtype=np.int64)
        indices[places], weights[places] = heads, lengths
        del starts, heads, lengths, row_of, places  # before the arrays of the next range are made
    return indptr, indices, weights


class _Simple(NamedTuple):
    """Arcs of a range of rows, sorted by tail and head. Loops and all but the lightest parallel arcs are marked."""

    arcs: Any
    words: Any  # weights as integers in the same order
    kept: int
    negative: bool


class _Sorting:
    """The arcs of a graph, and the sorts that lay them out."""

    def __init__(self, indptr: Any, indices: Any, weights: Any, dtype: np.dtype):
        self.indptr = _as_integers(indptr)
        self.indices, self.weights = contiguous(_as_integers(indices)), contiguous(_with_kind(weights))
        self.dtype, self.word = dtype, np.dtype(f"i{dtype.itemsize}")

    def launch(self, entry: str, size: int, *arguments: Any) -> None:
        """Launch a kernel with a thread for each of `size` elements."""
        if size:
            PROGRAMS[self.dtype].launch(entry, math.ceil(size / _THREADS), arguments)

    def simplified(self, first: int, last: int) -> _Simple:
        """Return the arcs of the rows `first` to `last` (excluded)."""
        import cupy

        dtype, launch, report = self.dtype, self.launch, _zeros(_REPORT.itemsize, np.uint8)
        offsets, some, m = self.indptr, slice(None), len(self.indices)
        whole = (first, last) == (0, len(self.indptr) - 1)
        if not whole:
            some = slice(int(self.indptr[first]), int(self.indptr[last]))
            offsets, m = self.indptr[first : last + 1] - some.start, some.stop - some.start
        tails = csr.tails(offsets, m, np.int32)
        if not whole:
            tails += np.int32(first)
        values, pairs = cupy.empty((m,), dtype), cupy.empty((m,), np.int64)
        wide, kind = np.int32(self.indices.dtype == np.int64), np.int32(_KINDS[self.weights.dtype])
        given = self.indices[some], wide, self.weights[some], kind
        launch("read_arcs", m, tails, *given, np.int64(m), values, pairs, report)
        found = _read(report)
        _refuse(found, dtype)
        if found["loop"]:
            arc = 2**64 - 1 - int(found["loop"])
            vertex, weight = int(tails[arc]), values[arc].item()
            raise NegativeCycleError(f"a loop of weight {weight:g} at vertex {vertex}", (vertex,), weight)
        del tails

        kept = int(found["kept"])
        order = argsort(pairs)  # stable
        arcs, words = cupy.empty((m,), np.int64), cupy.empty((m,), self.word)
        launch("order_arcs", m, pairs, order, values, np.int64(m), np.int64(kept), arcs, words, report)
        del pairs, order, values
        parallel = int(_read(report)["parallel"])
        if parallel:
            launch("find_lightest", kept, arcs, np.int64(kept), words)
            unique = cupy.empty((m,), np.int64)
            launch("drop_parallel", m, arcs, np.int64(m), unique)
            arcs, kept = unique, kept - parallel
        return _Simple(arcs, words, kept, bool(found["negative"]))

    def rows(self, simple: _Simple, rank: Any, transposed: bool = False) -> tuple[tuple[Any, Any, Any], Any]:
        """Return offsets, heads and weights of rows in the new numbering, sorted by weight, and the row of each arc."""
        import cupy

        launch, n, m, kept = self.launch, len(rank), len(simple.arcs), simple.kept
        vertices, neighbours = cupy.empty((2, m), np.int32)
        keys = cupy.empty((m,), np.int64)
        sizes = np.int64(m), np.int32(transposed)
        launch("number_arcs", m, simple.arcs, simple.words, rank, *sizes, vertices, neighbours, keys)
        first = _sorted_by(launch, keys, neighbours if self.word.itemsize == 8 else None)
        del keys
        taken = cupy.empty((m,), np.int32)
        launch("take_vertices", m, vertices, first, np.int64(m), taken)
        second = argsort(taken)
        row_of, heads = taken[:kept], cupy.empty((kept,), np.int32)  # the sort made a copy of `taken`
        lengths = cupy.empty((kept,), self.dtype)
        launch(
            *("place_arcs", kept, first, second, vertices, neighbours, simple.words, np.int64(kept)),
            *(row_of, heads, lengths),
        )
        starts = cupy.empty((n + 1,), np.int64)
        launch("begin_rows", n + 1, row_of, np.int64(kept), np.int32(n), starts)
        return (starts, heads, lengths), row_of


def _sorted_by(launch: Any, keys: Any, neighbours: Any) -> Any:
    """Return the order of arcs by weight, ties by `neighbours`; None if the keys contain the neighbours."""
    import cupy

    if neighbours is None:
        return argsort(keys)
    m = len(keys)
    first, by_neighbour = argsort(neighbours), cupy.empty((m,), np.int64)
    launch("take_keys", m, keys, first, np.int64(m), by_neighbour)
    second, order = argsort(by_neighbour), by_neighbour
    launch("take_keys", m, first, second, np.int64(m), order)
    return order


def measure(graph: Any) -> tuple[int, float]:
    """Return the number of vertices with arcs, and the sum of the magnitudes of all weights."""
    with graph.weights.device:
        report = _zeros(_REPORT.itemsize, np.uint8)
        blocks = min(_MOST_BLOCKS, max(1, math.ceil(max(graph.n, graph.m) / _THREADS)))
        arguments = (graph.indptr, graph.weights, np.int32(graph.n), np.int64(graph.m), report)
        PROGRAMS[graph.dtype].launch("measure", blocks, arguments)
        found = _read(report)
    return int(found["active"]), float(found["magnitudes"])


def any_negative(distances: Any) -> bool:
    """Return whether any of the distances, a contiguous array, is below 0."""
    n = len(distances)
    with distances.device:
        report = _zeros(_REPORT.itemsize, np.uint8)
        blocks = min(_MOST_BLOCKS, max(1, math.ceil(n / _THREADS)))
        PROGRAMS[distances.dtype].launch("look_for_negative", blocks, (distances, np.int32(n), report))
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
    """Return zeros; CuPy clears memory without a kernel."""
    import cupy

    return cupy.zeros((size,), dtype)


def _as_integers(array: Any) -> Any:
    return array if array.dtype in (np.int32, np.int64) else array.astype(np.int64)


def _with_kind(weights: Any) -> Any:
    if weights.dtype in _KINDS:
        return weights
    return weights.astype(np.float64 if weights.dtype.kind == "f" else np.int64)

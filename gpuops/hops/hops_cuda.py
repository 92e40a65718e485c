"""Breadth-first searches from many vertices on a GPU: the CUDA half of `gpuops.hops`, 1,024 searches in a launch.

A launch needs 12 bytes for each vertex and 32 searches, and 56 bytes more for each vertex. With little memory, a launch
makes fewer searches.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from gpuops import csr
from gpuops._cuda import Program, struct
from gpuops.arrays import contiguous
from gpuops.numbers import outside_infinity

_MACROS = "PIECE=512", "PULL=2", "LISTED=4"
PROGRAMS = {
    np.dtype(dtype): Program("hops/hops.cu", ("search",), (f"VALUE={kind}", *_MACROS), threads=256, blocks=blocks)
    for dtype, kind, blocks in (("int32", "int", 4), ("float32", "float", 4), ("float64", "double", 3))
}
PREDECESSORS = Program("hops/predecessors.cu", ("attach",), threads=256)
_CONTROL = struct("hops/hops.cu", "Control", Tally=struct("hops/hops.cu", "Tally"))
_PIECE = struct("hops/hops.cu", "Piece")
_WORD = 32  # searches of a word
_MOST_WORDS = 32  # words of a launch
_SHARE = 4  # the words of the vertices take up to 1 / _SHARE of the memory of the GPU
_MOST_ROWS = 32768  # rows of predecessors in a launch


class Arcs(NamedTuple):
    """A graph on a GPU.

    Attributes
    ----------
    indptr, indices : (n + 1,), (m,) arrays of int64 and int32
    in_indptr, in_indices : (n + 1,), (m,) arrays of int64 and int32
        The graph with all arcs reversed.
    through : (n,) array of bool or None
        Whether paths may pass through each vertex.
    """

    indptr: Any
    indices: Any
    in_indptr: Any
    in_indices: Any
    through: Any


def prepared(indptr: Any, indices: Any, through: Any, transposed: tuple[Any, Any] | None) -> Arcs:
    """Return the graph as `rows` takes it, with the transposed graph."""
    given = indptr, indices
    forward = _typed(*given)
    if transposed is None:
        starts, tails, _ = csr.transpose(*forward)
        backward = starts, tails
    else:
        backward = forward if all(map(operator.is_, transposed, given)) else _typed(*transposed)
    return Arcs(*forward, *backward, None if through is None else contiguous(through))


def _typed(indptr: Any, indices: Any) -> tuple[Any, Any]:
    return contiguous(indptr.astype(np.int64, copy=False)), contiguous(indices.astype(np.int32, copy=False))


def rows(graph: Arcs, sources: np.ndarray, length: np.number, levels: int) -> tuple[Any, int]:
    """Return rows of distances, (k, n), and the number of levels of the deepest search, at most `levels`.

    Distances have the dtype of `length`, the length of an arc.
    """
    import cupy

    n, k = len(graph.indptr) - 1, len(sources)
    program = PROGRAMS[length.dtype]
    with graph.indptr.device:
        distances = cupy.empty((k, n), length.dtype)
        if not distances.size:
            return distances, 0
        words = _words(n, k)
        starts = range(0, k, _WORD * words)
        capacity = n + len(graph.indices) // int(program.macro("PIECE"))  # a piece of a row is whole, or the last one
        state = cupy.empty((3, n * words), np.uint32)
        stamps, vertices = cupy.empty((2, n), np.int32)
        queues = cupy.empty((3, capacity, _PIECE.itemsize), np.uint8)
        controls = cupy.zeros((len(starts), _CONTROL.itemsize), np.uint8)
        begins = cupy.asarray(sources.astype(np.int32))
        for number, first in enumerate(starts):
            searches = min(_WORD * words, k - first)
            for array in state, stamps:
                array.data.memset_async(0, array.nbytes)
            arguments = {
                "indptr": graph.indptr,
                "indices": graph.indices,
                "in_indptr": graph.in_indptr,
                "in_indices": graph.in_indices,
                "through": stamps if graph.through is None else graph.through,
                "has_through": np.int32(graph.through is not None),
                "n": np.int32(n),
                "sources": begins[first:],
                "searches": np.int32(searches),
                "words": np.int32(words),
                "length": length,
                "levels": np.int32(levels),
                "unreachable": length.dtype.type(outside_infinity(length.dtype)),
                "distances": distances[first:],
                "state": state,
                "stamps": stamps,
                "list": vertices,
                "queues": queues,
                "capacity": np.int64(capacity),
                "control": controls[number],
            }
            program.launch_cooperative("search", arguments)
        return distances, int(controls.get().view(_CONTROL)["levels"].max())


def trees(graph: Arcs, sources: np.ndarray, levels: Any, _: Any) -> Any:
    """Return rows of predecessors, (k, n) int32: for each vertex, the least tail of an arc on a shortest path.

    Parameters
    ----------
    graph, sources
        As for `rows`.
    levels : (k, n) array of int32
        The number of arcs of a shortest path; unreachable is 2^31 - 1.
    """
    import cupy

    (k, n), m = levels.shape, len(graph.indices)
    with levels.device:
        found = cupy.empty((k, n), np.int32)
        found.data.memset_async(0xFF, found.nbytes)  # -1, the largest unsigned number
        if not (found.size and m):
            return found
        tails = csr.tails(graph.indptr, m, np.dtype(np.int32))
        begins = cupy.asarray(sources.astype(np.int32))
        for first in range(0, k, _MOST_ROWS):
            arguments = {
                "tails": tails,
                "heads": graph.indices,
                "m": np.int64(m),
                "through": tails if graph.through is None else graph.through,
                "has_through": np.int32(graph.through is not None),
                "n": np.int64(n),
                "sources": begins[first:],
                "levels": levels[first:],
                "predecessors": found[first:],
            }
            blocks = math.ceil(m / PREDECESSORS.threads), min(_MOST_ROWS, k - first)
            PREDECESSORS.launch("attach", blocks, arguments)
        return found


def _words(n: int, searches: int) -> int:
    """Return the number of words of a launch, a power of two."""
    import cupy

    words = 1
    while words < _MOST_WORDS and _WORD * words < searches:
        words *= 2
    memory = cupy.cuda.Device().mem_info[1] // _SHARE
    while words > 1 and 12 * n * words > memory:
        words //= 2
    return words

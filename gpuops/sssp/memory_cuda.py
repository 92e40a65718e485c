"""The memory of a search on a GPU, which stays with the graph for later searches and trees.

A search takes 40 bytes for each vertex (68 with float64), and a little more for long rows. With negative weights, the
distances of an earlier search take 4 (8) more bytes for each vertex.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import struct
from gpuops.numbers import SEARCH_DTYPES, outside_infinity
from gpuops.sssp.graph_layout_cuda import measure
from gpuops.sssp.kept import kept_with_graph
from gpuops.sssp.launch_cuda import Control, arcs, declare, pieces

# In a graph of at most _DEGREE arcs a vertex on average, and at most _SHORT arcs in a row, a warp relaxes the vertices
# that it found itself, up to AHEAD times, before it queues the rest.
_DEGREE, _SHORT, AHEAD = 8, 32, 8
LEAST_PILE = 1024  # vertices, at least, that fit into a pile; if more vertices wait, all vertices are read again

# Width of the first window, in units of the mean weight divided by the mean degree. It doubles if windows have little
# work.
_WIDTH = 1.0
# Width of a window with negative weights, in units of the mean magnitude of a weight. No distance is final before the
# end of the search, and windows only postpone heavy arcs.
_SIGNED_WIDTH = 2.0
# With potentials, the first width is _LATER_WIDTH, in units of the mean weight divided by the mean degree. The
# magnitude of reduced weights is not known. So if a search reads the arcs of the graph more than AGAIN times, later
# searches use _NARROWER times the width, down to _NARROWEST times the first width.
_LATER_WIDTH, AGAIN, _NARROWER, _NARROWEST = 0.25, 2.5, 1 / 4, 4.0**-6

# By dtype and by whether distances may be negative.
PROGRAMS = {
    (dtype, signed): declare(
        *("sssp/search.cu", ("search",), dtype, signed),
        *("THIN=65536", "WIDEN=8", "PULL=0.5", f"SHORT={_SHORT}"),
    )
    for dtype in SEARCH_DTYPES
    for signed in (False, True)
}
_ARGUMENTS = {dtype: struct("sssp/search.cu", "Arguments", Value=dtype) for dtype in SEARCH_DTYPES}


class Profile(NamedTuple):
    """Constants of a graph that windows depend on."""

    active: int  # number of vertices with arcs, which come first
    longest: int  # number of arcs of the first vertex, the most of any vertex
    weight: float  # mean magnitude of a weight
    degree: float  # mean number of arcs of an active vertex


@kept_with_graph
def profile(graph: Any) -> Profile:
    """Return the constants of a graph."""
    active, magnitudes = measure(graph)
    longest = int(graph.indptr[1]) if graph.n else 0
    return Profile(active, longest, magnitudes / max(graph.m, 1), max(graph.m, 1) / max(active, 1))


class Memory:
    """The arrays of a search, and the arguments that are the same for every launch.

    With negative weights also the distances of an earlier search: potentials of the vertices that the search reached.
    """

    potentials: Any = None
    learned = 0  # arcs that the search of the potentials read
    tree: dict[str, Any] | None = None  # the arguments of tree.cu that are the same for every launch

    def __init__(self, graph: Any, signed: bool):
        import cupy

        self.program = PROGRAMS[graph.dtype, signed]
        self.active, longest, mean_weight, degree = profile(graph)
        self.width = (_SIGNED_WIDTH * mean_weight if signed else _WIDTH * mean_weight / degree) or math.inf
        self.later_width = _LATER_WIDTH * mean_weight / degree or math.inf
        self.narrowest = _NARROWEST * self.later_width
        self.infinity = graph.dtype.type(outside_infinity(graph.dtype))
        n, word = graph.n, np.dtype(f"i{graph.dtype.itemsize}")
        inward = graph.in_indptr is not None and not signed
        capacity = max(n // 64, LEAST_PILE)
        with graph.weights.device:
            self.distances = cupy.empty((n,), word)
            states = cupy.zeros((n * 4 * word.itemsize,), np.uint8)
            self.levels, self.roots = states[: 4 * n], states[4 * n :]  # of a tree
            self.parents = cupy.empty((n if signed else 1,), np.int32)
            self.arrays = {
                "states": states,
                "queued": cupy.empty((n,), np.int32),
                "parents": self.parents,
                "queues": cupy.empty((2, n), np.int32),
                "piles": cupy.empty((2, capacity), np.int32),
                "pieces": pieces(graph, self.program),
            }
            self.control = Control(graph.dtype)
            self.done = cupy.cuda.Event(disable_timing=True)  # the end of the last launch with this memory
        self.given = given = np.zeros((), _ARGUMENTS[graph.dtype])
        for name, array in self.arrays.items():
            given[name] = array.data.ptr
        given["piece_capacity"], given["capacity"] = self.arrays["pieces"].shape[1], capacity
        given["n"], given["active"], given["has_through"] = n, self.active, graph.through is not None
        given["entered"] = 0 if not inward else self.active if graph.symmetric else n
        given["ahead"] = AHEAD if 0 < graph.m <= _DEGREE * n and longest <= _SHORT else 0
        nothing = self.parents
        self.arguments: dict[str, Any] = {
            **arcs(graph, inward),
            "through": nothing if graph.through is None else graph.through,
            **dict.fromkeys(("pending", "rank", "sources", "starts", "targets"), nothing),
            "given": given.view(f"V{given.nbytes}"),  # CuPy would inspect fields at every launch
        }

    def learn(self, touched: int, arcs: int) -> None:
        """Keep the distances of a finished search if it read more arcs than the search whose distances are kept."""
        if self.potentials is not None and touched > AGAIN * arcs:
            self.later_width = max(_NARROWER * self.later_width, self.narrowest)
        if touched > self.learned:
            self.potentials, self.learned, spare = self.distances, touched, self.potentials
            self.distances = self.potentials.copy() if spare is None else spare


@kept_with_graph
def idle(_graph: Any) -> dict[bool, list[Memory]]:
    """Return the memory of earlier searches, by whether a search is signed."""
    return {False: [], True: []}


def take(graph: Any, signed: bool) -> Memory:
    """Return the memory of an earlier search, or new memory; launches with it wait on the device for that search."""
    import cupy

    try:
        memory = idle(graph)[signed].pop()
    except IndexError:
        return Memory(graph, signed)
    cupy.cuda.get_current_stream().wait_event(memory.done)
    return memory


def give_back(graph: Any, signed: bool, memory: Memory) -> None:
    """Let later searches of the graph take the memory of a search that was launched."""
    memory.done.record()
    idle(graph)[signed].append(memory)

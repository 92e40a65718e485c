"""Shortest paths from a set of vertices on a GPU, with the kernel of search.cu.

A search is one cooperative launch: its blocks wait for each other on the device, round after round. The host waits for
the end only if the search may fail: sums of int32 may not fit, and with negative weights a launch stops from time to
time, to look for a negative cycle. Otherwise the distances are on the device in the order of the current stream, as
those of CuPy's functions are.

CuPy compiles with -ftz=true: sums smaller than 1.2e-38 are 0 on a GPU.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gpuops.errors import NegativeCycleError
from gpuops.sssp import memory_cuda
from gpuops.sssp.cycle_cuda import negative_cycle
from gpuops.sssp.graph_layout_cuda import any_negative
from gpuops.sssp.launch_cuda import Statistics

_ALL_ROUNDS = 2**62
# Rounds before a search with negative weights first looks for a negative cycle; the number doubles after every look.
# With potentials (_LATER) there are more rounds, and a cycle is unlikely.
FIRST_LOOK, FIRST_LOOK_LATER = 64, 512


def search(graph: Any, sources: np.ndarray, starts: np.ndarray, limit: Any = None, targets: Any = None) -> Any:
    """Return the distances of `gpuops.sssp.sssp_numba.search`; `sources`, `starts` and `targets` are on the host."""
    import cupy

    sources, first = (sources, slice(None)) if len(sources) < 2 else np.unique(sources, return_index=True)
    starts = starts[first]
    with graph.weights.device:
        result = cupy.empty((graph.n,), graph.dtype)
        if len(result):
            signed = graph.negative or bool((starts < 0).any())
            Search(graph, None, signed, Beginning(sources, starts, targets, limit, result)).run_to_the_end()
    return result


def improve(graph: Any, distances: Any, pending: Any = None) -> int:
    """Relax arcs as `gpuops.sssp.sssp_numba.improve` does, and return the number of rounds."""
    with distances.device:
        searching = Search(graph, distances, signed=graph.negative or any_negative(distances))
        searching.run_to_the_end(pending)
    return searching.statistics.rounds


class Beginning(NamedTuple):
    """A search from sources: the sources and their starts, the targets and the limit, and the array for the result."""

    sources: np.ndarray
    starts: np.ndarray
    targets: np.ndarray | None
    limit: Any
    result: Any


class Search:
    """A search on the current device, which can stop and continue.

    It begins at sources (`begin`), or it improves `distances`.
    """

    def __init__(self, graph: Any, distances: Any, signed: bool, begin: Beginning | None = None):
        self.graph, self.signed, self.begin = graph, signed, begin
        self.memory = memory_cuda.take(graph, signed)
        self.distances = self.memory.distances if distances is None else distances
        self.width = self.memory.later_width if self.memory.learned else self.memory.width
        self.statistics = Statistics()
        self.started = False

    def run_to_the_end(self, pending: Any = None) -> None:
        """Search; with weights of any sign, look for a negative cycle from time to time."""
        first_look = FIRST_LOOK_LATER if self.memory.learned else FIRST_LOOK
        most = first_look if self.signed else _ALL_ROUNDS
        while not self.run(pending, most):
            self.refuse_negative_cycle()
            if self.statistics.rounds > 2 * self.graph.n + FIRST_LOOK:
                raise NegativeCycleError(
                    "distances keep falling around a cycle whose weight rounds to less than 0; "
                    "use int32 weights or float64"
                )
            most *= 2

    def run(self, pending: Any = None, most_rounds: int = _ALL_ROUNDS) -> bool:
        """Search, and return True if no arc improves a distance any more, False after `most_rounds` more rounds."""
        memory = self.memory
        if not memory.active and self.begin is None:
            return True
        memory.program.launch_cooperative("search", self._arguments(pending, most_rounds))
        self.started = True
        if self.begin is not None and not self.signed and self.graph.dtype.kind == "f":
            memory.control.copied.synchronize()  # the next launch uses the same memory of the host
            memory_cuda.give_back(self.graph, self.signed, memory)
            return True
        try:
            found, finished = memory.control.get()
        except OverflowError:
            if self.signed:
                self.refuse_negative_cycle()
            raise
        self.statistics = self.statistics.plus(found)
        if finished:
            # If only starts are negative, a search may have a limit, which is a distance, not a key: no potentials.
            if self.begin is not None and self.graph.negative:
                memory.learn(self.statistics.touched, self.graph.m)
            memory_cuda.give_back(self.graph, self.signed, memory)
        return finished

    def _arguments(self, pending: Any, most_rounds: int) -> dict[str, Any]:
        """Return the arguments of a launch; this clears the control block."""
        begin, memory, graph = self.begin, self.memory, self.graph
        nothing, given, arguments = memory.parents, memory.given, memory.arguments.copy()
        beside: tuple[np.ndarray, ...] = ()
        limit, counts = None, (0, 0)
        if begin is not None:
            aims = begin.sources[:0] if begin.targets is None else begin.targets
            limit, counts, beside = begin.limit, (len(begin.sources), len(aims)), (begin.starts, begin.sources, aims)
            arguments["rank"] = graph.rank
        starts, sources, targets = memory.control.begin(*beside) or (nothing, nothing, nothing)
        given["control"] = memory.control.address
        given["distances"] = self.distances.data.ptr
        given["potentials"] = 0 if memory.potentials is None else memory.potentials.data.ptr
        given["result"] = 0 if begin is None else begin.result.data.ptr
        given["most_rounds"], given["width"] = most_rounds, self.width
        given["limit"] = memory.infinity if limit is None or limit == math.inf else limit + graph.dtype.type(0)
        given["source_count"], given["target_count"] = counts
        given["has_pending"], given["resume"] = pending is not None, self.started
        if pending is not None:
            arguments["pending"] = pending
        arguments["sources"], arguments["starts"], arguments["targets"] = sources, starts, targets
        return arguments

    def refuse_negative_cycle(self) -> None:
        """Raise NegativeCycleError if the arcs that improved distances last contain a negative cycle."""
        if (error := negative_cycle(self.graph, self.memory)) is not None:
            raise error

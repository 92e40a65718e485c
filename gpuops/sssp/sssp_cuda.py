"""Shortest paths from a set of vertices on a GPU: the CUDA half of `gpuops.sssp`.

A search is one cooperative launch: its blocks wait for each other on the device, round after round, and the host waits
for the end alone. search.cu is for one set of sources, batched.cu for up to 32 separate searches, tree.cu for
predecessors. Scratch memory is 36 bytes a vertex (52 with float64) and a little for long rows; 28 (32) for separate
searches.

**Why the result does not depend on the order of relaxations.** A relaxation takes the minimum of a distance and a
rounded sum, which never falls when the distance of the tail rises. So every distance that is stored is the rounded
length of some walk, added up from its start; and where no arc improves anything, by induction along a walk, no
distance exceeds the rounded length of any walk. It is the least of them, whatever the order. Thousands of threads may
race, and the bits are those of Dijkstra.

CuPy compiles with -ftz=true: sums smaller than 1.2e-38 are 0 on a GPU.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import Program
from gpuops.errors import NegativeCycleError
from gpuops.numbers import outside_infinity

_DTYPES = ("float32", "float64", "int32")

_BLOCKS = 1  # for every multiprocessor
_PIECE = 512  # arcs of a long row that one warp relaxes
# By kernel: its file, and what the file says about these macros.
_KERNELS = {
    "search": ("sssp/search.cu", ("UNROLL=2", f"PIECE={_PIECE}", "THIN=65536", "WIDEN=8", "PULL=0.5")),
    "tree": ("sssp/tree.cu", ("UNROLL=2", f"PIECE={_PIECE}")),
    "search_batch": (
        "sssp/batched.cu",
        ("UNROLL=2", f"PIECE={_PIECE}", "THIN=16384", "WIDEN=8", "PULL=2", "MARGIN=2"),
    ),
}


def _threads(kernel: str, dtype: np.dtype) -> int:
    """Threads of a block: as many as registers allow."""
    return 512 if dtype.itemsize == 8 else 640 if kernel == "search_batch" else 768


def _program(kernel: str, name: str, signed: bool) -> Program:
    file, tuning = _KERNELS[kernel]
    macros = f"DISTANCE={name.capitalize()}", f"SIGNED={int(signed)}", *tuning
    return Program(file, (kernel,), macros, threads=_threads(kernel, np.dtype(name)), blocks=_BLOCKS)


# A program for each, so that a first search waits for the compiler no longer than it has to.
_PROGRAMS = {
    (kernel, name, signed): _program(kernel, name, signed)
    for kernel in _KERNELS
    for name in _DTYPES
    for signed in (False, True)
    if not (signed and kernel == "search_batch")
}

_LEAST_PILE = 1024  # vertices that may wait for a later window before all are looked at again

# The width of a window is this many times the mean weight over the mean degree. It doubles where windows are thin.
_WIDTH = 1.0
_BATCH_WIDTH = 0.5
# With negative weights nothing is final before the end, and heavy arcs are what a window keeps for later: its width is
# this many times the mean magnitude of a weight.
_SIGNED_WIDTH = 0.5

# A vertex with so many times more arcs than the mean is a hub, at which searches come together.
_HUB = 8

# Rounds after which a search with negative weights looks for a negative cycle for the first time; then twice as many.
_FIRST_LOOK = 64


def improve(graph: Any, distances: Any, pending: Any = None) -> int:
    """Relax arcs, of weights that are not negative, until none improves a distance (`gpuops.sssp.improve_distances`).

    Parameters
    ----------
    graph : SearchGraph
        On a GPU.
    distances : (n,) cupy array
        Upper bounds, not negative, in the graph's numbering and dtype, contiguous; changed in place.
    pending : (n,) cupy array of bool, optional
        The vertices whose arcs are to be relaxed; None: all that are reached.

    Returns
    -------
    int
        Number of rounds.

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    search = _Search(graph, distances, signed=False)
    search.run(pending)
    return search.rounds


def bellman_ford(graph: Any, distances: Any, pending: Any = None) -> int:
    """`improve` for weights of any sign.

    Raises
    ------
    NegativeCycleError
        With a cycle in the graph's numbering.
    """
    search = _Search(graph, distances, signed=True)
    most = _FIRST_LOOK
    while not search.run(pending, most):
        cycle = search.negative_cycle()
        if cycle is not None or search.rounds > 2 * graph.n + _FIRST_LOOK:
            _raise_negative_cycle(cycle)
        most *= 2
    return search.rounds


class Statistics(NamedTuple):
    """What a search did, for those who tune it."""

    rounds: int = 0
    windows: int = 0
    pulls: int = 0
    touched: int = 0  # arcs read

    def plus(self, found: Any) -> Statistics:
        """With what another launch did, of which `found` is the control block."""
        return Statistics(*(count + int(found[name]) for name, count in self._asdict().items()))


class _Search:
    """Memory of a search, which may stop and go on."""

    def __init__(self, graph: Any, distances: Any, signed: bool):
        import cupy

        self.graph, self.distances, self.signed = graph, distances, signed
        self.program = _PROGRAMS["search", distances.dtype.name, signed]
        self.active, mean_weight, degree = _profile(graph)
        n, word = graph.n, np.dtype(f"i{distances.itemsize}")
        with distances.device:
            self.pushed, self.next = cupy.empty((2, n), word)
            self.cursor, self.queued, self.piled = cupy.empty((3, n), np.int32)
            self.parents = cupy.empty((n if signed else 1,), np.int32)
            if signed:
                self.parents[...] = -1
            self.queues = cupy.empty((2, n), np.int32)
            self.capacity = max(n // 8, _LEAST_PILE)
            self.piles = cupy.empty((2, self.capacity), np.int32)
            self.pieces = _pieces(graph)
        self.width = (_SIGNED_WIDTH * mean_weight if signed else _WIDTH * mean_weight / degree) or math.inf
        self.statistics = Statistics()
        self.started = False

    @property
    def rounds(self) -> int:
        return self.statistics.rounds

    def run(self, pending: Any = None, most_rounds: int = 2**62) -> bool:
        """Search until no arc improves anything, True, or for so many more rounds."""
        graph, nothing = self.graph, self.parents
        if not self.active:
            return True
        inward = graph.in_indptr is not None and not self.signed
        entered = 0 if not inward else self.active if graph.symmetric else graph.n
        with self.distances.device:
            control = _Control()
            arguments = {
                **_arcs(graph, inward),
                "through": nothing if graph.through is None else graph.through,
                "pending": nothing if pending is None else pending,
                "has_through": np.int32(graph.through is not None),
                "has_pending": np.int32(pending is not None),
                "n": np.int32(graph.n),
                "active": np.int32(self.active),
                "entered": np.int32(entered),
                "distances": self.distances,
                "pushed": self.pushed,
                "next": self.next,
                "cursor": self.cursor,
                "queued": self.queued,
                "piled": self.piled,
                "parents": self.parents,
                "queues": self.queues,
                "piles": self.piles,
                "capacity": np.int32(self.capacity),
                "pieces": self.pieces,
                "piece_capacity": np.int64(self.pieces.shape[1]),
                "control": control.memory,
                "width": np.float64(self.width),
                "most_rounds": np.int64(most_rounds),
                "resume": np.int32(self.started),
            }
            self.program.launch_cooperative("search", arguments)
            self.started = True
            found = control.get()
            self.statistics = self.statistics.plus(found)
            if found["overflow"] == 2:
                cycle = self.negative_cycle() if self.signed else None
                if cycle is not None:
                    _raise_negative_cycle(cycle)
                raise OverflowError("distances exceed int32; use float64")
            return bool(found["finished"])

    def negative_cycle(self) -> tuple[list[int], float] | None:
        """A negative cycle among the arcs that improved distances last, and its weight.

        Such arcs form trees as long as there is none. Threads that race may leave the wrong one, so a cycle counts only
        if the weights of its arcs, added up exactly, are negative.
        """
        import cupy

        with self.distances.device:
            vertices = cupy.arange(self.graph.n, dtype=np.int32)
            ancestors = cupy.where(self.parents < 0, vertices, self.parents)
            for _ in range(self.graph.n.bit_length()):
                ancestors = ancestors[ancestors]
            on_cycles = self.parents[ancestors] >= 0
            if not bool(on_cycles.any()):
                return None
            first = int(ancestors[int(on_cycles.argmax())])
            parents = self.parents.get()
        cycle, vertex = [first], int(parents[first])
        while vertex != first:
            cycle.append(vertex)
            vertex = int(parents[vertex])
        cycle.reverse()
        weights = _weights_along(self.graph, cycle)
        total = math.fsum(weights.tolist()) if weights.dtype.kind == "f" else sum(weights.tolist())
        return (cycle, total) if total < 0 else None


def tree(graph: Any, distances: Any, roots: Any) -> Any:
    """A predecessor for each vertex that is reached; see `gpuops.sssp.shortest_path_tree`.

    Parameters
    ----------
    graph : SearchGraph
    distances : (n,) cupy array
        As `improve` or `bellman_ford` leaves them.
    roots : (n,) cupy array of bool
        Vertices whose distance is a start. They have no predecessor.

    Returns
    -------
    (n,) cupy array of int32
        -1 at roots and where nothing leads.
    """
    import cupy

    active = _profile(graph).active
    n, inward = graph.n, graph.in_indptr is not None
    with distances.device:
        predecessors, levels = cupy.empty((n,), np.int32), cupy.empty((n,), np.int32)
        if not active:
            predecessors[...] = -1
            return predecessors
        queues, pieces, control = cupy.empty((2, n), np.int32), _pieces(graph), _Control()
        arguments = {
            **_arcs(graph, inward),
            "through": roots if graph.through is None else graph.through,
            "roots": roots,
            "has_in": np.int32(inward),
            "has_through": np.int32(graph.through is not None),
            "n": np.int32(n),
            "active": np.int32(active),
            "distances": distances,
            "predecessors": predecessors,
            "levels": levels,
            "queues": queues,
            "pieces": pieces,
            "piece_capacity": np.int64(pieces.shape[1]),
            "control": control.memory,
        }
        _PROGRAMS["tree", distances.dtype.name, graph.negative].launch_cooperative("tree", arguments)
    return predecessors


def batched(graph: Any, distances: Any) -> int:
    """Improve many separate searches that share each read of an arc.

    Parameters
    ----------
    graph : SearchGraph
        Without negative weights.
    distances : (n, k) cupy array
        A column for every search, the rows contiguous; changed in place. Each vertex that a search has reached
        relaxes its arcs.

    Returns
    -------
    int
        Number of rounds.

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    return _batched(graph, distances).rounds


def _batched(graph: Any, distances: Any) -> Statistics:
    import cupy

    active, mean_weight, degree = _profile(graph)
    n, k, inward = graph.n, distances.shape[1], graph.in_indptr is not None
    total = Statistics()
    if not active:
        return total
    program = _PROGRAMS["search_batch", distances.dtype.name, False]
    word = np.dtype(f"i{distances.itemsize}")
    with distances.device:
        fresh, held, cursor, queued = cupy.empty((4, n), np.int32)
        following = cupy.empty((n,), np.float64 if word.itemsize == 8 else np.float32)
        queues, pieces = cupy.empty((2, n), np.int32), _pieces(graph)
        width = _BATCH_WIDTH * mean_weight / degree or math.inf
        hub_distances = None
        if int(graph.indptr[1]) > _HUB * degree:
            # Searches that are not together in time share little in windows: all at once is better then.
            hub_distances, width = (_distances_to_hub(graph), width) if inward else (None, math.inf)
        entered = 0 if not inward else active if graph.symmetric else n
        for column in range(0, k, 32):
            control, lows = _Control(), cupy.empty((2, 32), word)
            lows[...] = _unreachable(distances.dtype).view(word)
            arguments = {
                **_arcs(graph, inward),
                "through": cursor if graph.through is None else graph.through,
                "hub_distances": cursor if hub_distances is None else hub_distances,
                "has_through": np.int32(graph.through is not None),
                "has_hub": np.int32(hub_distances is not None),
                "n": np.int32(n),
                "active": np.int32(active),
                "entered": np.int32(entered),
                "distances": distances[:, column:],
                "stride": np.int64(distances.strides[0] // distances.itemsize),
                "searches": np.int32(min(32, k - column)),
                "fresh": fresh,
                "held": held,
                "cursor": cursor,
                "queued": queued,
                "next": following,
                "queues": queues,
                "pieces": pieces,
                "piece_capacity": np.int64(pieces.shape[1]),
                "lows": lows,
                "control": control.memory,
                "width": np.float64(width),
            }
            program.launch_cooperative("search_batch", arguments)
            found = control.get()
            if found["overflow"] == 2:
                raise OverflowError("distances exceed int32; use float64")
            total = total.plus(found)
    return total


class _Reversed:
    """A graph with arcs turned over."""

    through: Any
    symmetric = False

    def __init__(self, graph: Any):
        self.n, self.m, self.dtype, self.through = graph.n, graph.m, graph.dtype, graph.through
        self.indptr, self.indices, self.weights = graph.in_indptr, graph.in_indices, graph.in_weights
        self.in_indptr, self.in_indices, self.in_weights = graph.indptr, graph.indices, graph.weights
        # Vertices without arcs are anywhere.
        _profiles[self] = _Profile(self.n, *_profile(graph)[1:])


def _distances_to_hub(graph: Any) -> Any:
    """Of all vertices to vertex 0, which has the most arcs. They say what a batch does first, nothing else."""
    import cupy

    if graph in _to_hub:
        return _to_hub[graph]
    distances = cupy.empty((graph.n,), graph.dtype)
    distances[...] = _unreachable(graph.dtype)
    distances[0] = 0
    search = _Search(graph if graph.symmetric else _Reversed(graph), distances, signed=False)
    with contextlib.suppress(OverflowError):  # then they are those of some walks
        search.run()
    _to_hub[graph] = distances
    return distances


# --- Arguments of launches ----------------------------------------------------------------------------------------


def _unreachable(dtype: np.dtype) -> Any:
    return dtype.type(outside_infinity(dtype))


def _arcs(graph: Any, inward: bool) -> dict[str, Any]:
    """The first arguments of all kernels; the transpose, if absent or not requested, is never read."""
    return {
        "indptr": graph.indptr,
        "indices": graph.indices,
        "weights": graph.weights,
        "in_indptr": graph.in_indptr if inward else graph.indptr,
        "in_indices": graph.in_indices if inward else graph.indices,
        "in_weights": graph.in_weights if inward else graph.weights,
    }


# Structs of search.cuh.
_TALLY = np.dtype(
    [
        *((name, np.int32) for name in ("queued", "pieces", "taken", "taken_pieces")),
        *((name, np.int64) for name in ("touched", "held", "open", "due")),
    ],
    align=True,
)
_CONTROL = np.dtype(
    [
        ("arrived", np.uint32),
        ("overflow", np.int32),
        ("piled", np.int32, 3),
        ("tallies", _TALLY, 3),
        *((name, np.int64) for name in ("rounds", "windows", "pulls", "touched", "finished")),
    ],
    align=True,
)
_NEVER = 2**63 - 1


class _Control:
    """A control block of the kernels, on the device."""

    def __init__(self) -> None:
        import cupy

        block = np.zeros(1, _CONTROL)
        block["tallies"]["due"] = _NEVER
        self.memory = cupy.asarray(block.view(np.uint8))

    def get(self) -> np.void:
        """Its fields; waits for the device."""
        return self.memory.get().view(_CONTROL)[0]


def _pieces(graph: Any) -> Any:
    """Room for the pieces of all rows longer than one, twice: a distance and three int32 each."""
    import cupy

    size = 16 if graph.dtype.itemsize == 4 else 24
    return cupy.empty((2, 2 * graph.m // _PIECE + 1, size), np.uint8)


# --- What does not change from search to search ---------------------------------------------------------------------


class _Profile(NamedTuple):
    active: int  # vertices with arcs, which are the first ones
    weight: float  # mean magnitude
    degree: float  # mean of those with arcs


_profiles: weakref.WeakKeyDictionary[Any, _Profile] = weakref.WeakKeyDictionary()
_to_hub: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # distances


def _profile(graph: Any) -> _Profile:
    if graph not in _profiles:
        active = int((graph.indptr[1:] > graph.indptr[:-1]).sum())
        magnitudes = abs(graph.weights) if graph.negative else graph.weights
        mean = float(magnitudes.sum(dtype=np.float64)) / graph.m if graph.m else 0.0
        _profiles[graph] = _Profile(active, mean, max(graph.m, 1) / max(active, 1))
    return _profiles[graph]


# --- Negative cycles ------------------------------------------------------------------------------------------------


def _weights_along(graph: Any, cycle: list[int]) -> np.ndarray:
    """The weights of the arcs from each vertex of `cycle` to the next; there are no parallel arcs."""
    import cupy

    tails = cupy.asarray(np.array(cycle))
    starts, ends = graph.indptr[tails].get(), graph.indptr[tails + 1].get()
    lengths = ends - starts
    arcs = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    on_device = cupy.asarray(arcs)
    heads = np.repeat(np.roll(cycle, -1), lengths)
    return graph.weights[on_device].get()[graph.indices[on_device].get() == heads]


def _raise_negative_cycle(cycle: tuple[list[int], float] | None) -> None:
    if cycle is None:
        raise NegativeCycleError(
            "distances keep falling around a cycle whose weight rounds to less than 0; use int32 weights or float64"
        )
    vertices, weight = cycle
    raise NegativeCycleError(f"negative cycle of {len(vertices)} vertices and weight {weight:g}", vertices, weight)

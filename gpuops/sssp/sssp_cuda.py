"""Shortest paths from a set of vertices on a GPU: the CUDA half of `gpuops.sssp`.

A search is one cooperative launch: its blocks wait for each other on the device, round after round, and the host waits
only for the end. search.cu searches from one set of sources, batched.cu runs up to 32 separate searches, and tree.cu
finds predecessors. The scratch memory of a search is 40 bytes a vertex (60 with float64) and a little for long rows;
separate searches need 28 bytes a vertex (32). The scratch memory of a search is kept with the graph, for later searches
and trees. So are the arguments of launches and, with negative weights, the distances of a search: 4 (8) more bytes.

**Why the result does not depend on the order of relaxations.** A relaxation takes the minimum of a distance and a
rounded sum, and the rounded sum never falls when the distance of the tail rises. So every stored distance is the
rounded length of some walk, added up from the start of the walk. When no arc improves a distance, induction along a
walk shows that no distance exceeds the rounded length of any walk. So every distance is the least rounded length of a
walk, whatever the order: thousands of threads may race, and the result has the same bits as Dijkstra's algorithm.

CuPy compiles with -ftz=true: sums smaller than 1.2e-38 are 0 on a GPU.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
import weakref
from typing import Any, NamedTuple

import numpy as np

from gpuops._cuda import Program
from gpuops.errors import NegativeCycleError
from gpuops.numbers import outside_infinity
from gpuops.sssp.graph_layout_cuda import measure

_DTYPES = ("float32", "float64", "int32")

_BLOCKS = 1  # blocks on every multiprocessor
_PIECE = 512  # arcs of a long row that one warp relaxes
# In a graph of at most _DEGREE arcs a vertex on average, and at most _SHORT arcs in a row, a warp relaxes the vertices
# that it found itself, up to _AHEAD times, before it queues the rest.
_DEGREE, _SHORT, _AHEAD = 8, 32, 8
# The file of each kernel, and its macros, which the file explains.
_KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "search": (
        "sssp/search.cu",
        ("UNROLL=2", f"PIECE={_PIECE}", "THIN=65536", "WIDEN=8", "PULL=0.5", f"SHORT={_SHORT}"),
    ),
    "tree": ("sssp/tree.cu", ("UNROLL=2", f"PIECE={_PIECE}")),
    "search_batch": (
        "sssp/batched.cu",
        ("UNROLL=2", f"PIECE={_PIECE}", "THIN=16384", "WIDEN=8", "PULL=2", "MARGIN=2"),
    ),
}

_BESIDE = {"search_batch": ("reach_nothing", "begin_batch", "end_batch")}  # other kernels of the same file


def _threads(kernel: str, dtype: np.dtype) -> int:
    """Return the number of threads of a block, the most that registers allow."""
    return 512 if dtype.itemsize == 8 else 640 if kernel == "search_batch" else 768


def _program(kernel: str, name: str, signed: bool) -> Program:
    file, tuning = _KERNELS[kernel]
    macros = f"DISTANCE={name.capitalize()}", f"SIGNED={int(signed)}", *tuning
    entries, threads = (kernel, *_BESIDE.get(kernel, ())), _threads(kernel, np.dtype(name))
    return Program(file, entries, macros, threads=threads, blocks=_BLOCKS)


# Each kernel is a separate program, so that a first search compiles only the kernel that it launches.
_PROGRAMS = {
    (kernel, name, signed): _program(kernel, name, signed)
    for kernel in _KERNELS
    for name in _DTYPES
    for signed in (False, True)
    if not (signed and kernel == "search_batch")
}

_CYCLE = Program(
    "sssp/cycle.cu",
    ("look_for_cycle",),
    ("DISTANCE=Int32", "SIGNED=1", "UNROLL=1", f"PIECE={_PIECE}"),
    threads=768,
    blocks=_BLOCKS,
)

_LEAST_PILE = 1024  # vertices, at least, that fit into a pile; if more vertices wait, all vertices are read again

# Width of the first window, in units of the mean weight divided by the mean degree. It doubles if windows have little
# work.
_WIDTH = 1.0
# The same width for a batch of searches.
_BATCH_WIDTH = 0.5
# Width of a window with negative weights, in units of the mean magnitude of a weight. No distance is final before the
# end of the search, and windows only postpone heavy arcs.
_SIGNED_WIDTH = 2.0
# With potentials, the first width is _LATER_WIDTH, in units of the mean weight divided by the mean degree. The
# magnitude of reduced weights is not known. So if a search reads the arcs of the graph more than _AGAIN times, later
# searches use _NARROWER times the width, down to _NARROWEST times the first width.
_LATER_WIDTH, _AGAIN, _NARROWER, _NARROWEST = 0.25, 2.5, 1 / 4, 4.0**-6

# A vertex with this many times more arcs than the mean is a hub, at which searches come together.
_HUB = 8

_ALL_ROUNDS = 2**62
# Rounds before a search with negative weights first looks for a negative cycle; the number doubles after every look.
# With potentials (_LATER) there are more rounds, and a cycle is unlikely.
_FIRST_LOOK, _FIRST_LOOK_LATER = 64, 512


def search(graph: Any, sources: np.ndarray, starts: np.ndarray, limit: Any = None, targets: Any = None) -> Any:
    """Return the shortest distances from the nearest of some sources, in the original numbering.

    Parameters
    ----------
    graph : SearchGraph
        On a GPU.
    sources : (k,) array of int
        On the host.
    starts : (k,) array
        The distances at which paths begin, on the host.
    limit : number, optional
        Vertices farther than this are unreachable.
    targets : array of int, optional
        On the host. Vertices farther than the farthest target that can be reached are unreachable.

    Returns
    -------
    (n,) cupy array

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached; its vertices are in the internal numbering.
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    import cupy

    sources, first = (sources, slice(None)) if len(sources) < 2 else np.unique(sources, return_index=True)
    starts = starts[first]
    with graph.weights.device:
        result = cupy.empty((graph.n,), graph.dtype)
        if len(result):
            searching = _Search(graph, None, signed=graph.negative or bool((starts < 0).any()))
            searching.begin = _Beginning(sources, starts, targets, limit, result)
            searching.run_to_the_end()
    return result


def improve(graph: Any, distances: Any, pending: Any = None) -> int:
    """Relax arcs of non-negative weights until no arc improves a distance (`gpuops.sssp.improve_distances`).

    Parameters
    ----------
    graph : SearchGraph
        On a GPU.
    distances : (n,) cupy array
        Upper bounds, not negative, in the internal numbering and the dtype of the graph, contiguous; changed in place.
    pending : (n,) cupy array of bool, optional
        The vertices whose arcs are to be relaxed; None: all vertices that are reached.

    Returns
    -------
    int
        Number of rounds.

    Raises
    ------
    OverflowError
        int32 distances that would reach 2^31 - 1.
    """
    with distances.device:
        search = _Search(graph, distances, signed=False)
        search.run(pending)
    return search.rounds


def bellman_ford(graph: Any, distances: Any, pending: Any = None) -> int:
    """Relax arcs like `improve`, for weights of any sign.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached; its vertices are in the internal numbering.
    """
    with distances.device:
        search = _Search(graph, distances, signed=True)
        search.run_to_the_end(pending)
    return search.rounds


class Statistics(NamedTuple):
    """Counts of a search, for tuning."""

    rounds: int = 0
    windows: int = 0
    pulls: int = 0
    touched: int = 0  # arcs read

    def plus(self, found: _Found) -> Statistics:
        """Return these counts plus the counts of another launch."""
        return Statistics(*map(operator.add, self, found[:4]))


class _Found(NamedTuple):
    """The results in the control block of a launch."""

    rounds: int
    windows: int
    pulls: int
    touched: int
    finished: int
    overflow: int


class _Beginning(NamedTuple):
    """A search from sources: the sources and their starts, the targets and the limit, and the array for the result."""

    sources: np.ndarray
    starts: np.ndarray
    targets: np.ndarray | None
    limit: Any
    result: Any


# Memory of finished searches, by graph and by whether a search is signed, for later searches.
_idle: weakref.WeakKeyDictionary[Any, dict[bool, list[_Memory]]] = weakref.WeakKeyDictionary()


class _Search:
    """A search on the current device, which can stop and continue. If `distances` is None, it uses its own array."""

    begin: _Beginning | None = None

    def __init__(self, graph: Any, distances: Any, signed: bool):
        self.graph, self.signed, self.memory = graph, signed, _memory(graph, signed)
        self.distances = self.memory.distances if distances is None else distances
        self.width = self.memory.later_width if self.memory.learned else self.memory.width
        self.statistics = Statistics()
        self.started = False

    @property
    def rounds(self) -> int:
        return self.statistics.rounds

    def run_to_the_end(self, pending: Any = None) -> None:
        """Search; with weights of any sign, look for a negative cycle from time to time."""
        first_look = _FIRST_LOOK_LATER if self.memory.learned else _FIRST_LOOK
        most = first_look if self.signed else _ALL_ROUNDS
        while not self.run(pending, most):
            cycle = self.negative_cycle()
            if cycle is not None or self.rounds > 2 * self.graph.n + _FIRST_LOOK:
                _raise_negative_cycle(cycle)
            most *= 2

    def run(self, pending: Any = None, most_rounds: int = _ALL_ROUNDS) -> bool:
        """Search, and return True if no arc improves a distance any more, False after `most_rounds` more rounds."""
        begin, memory, graph = self.begin, self.memory, self.graph
        if not memory.active and begin is None:
            return True
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
        memory.program.launch_cooperative("search", arguments)
        self.started = True
        found = memory.control.get()
        self.statistics = self.statistics.plus(found)
        if found.overflow == 2:
            cycle = self.negative_cycle() if self.signed else None
            if cycle is not None:
                _raise_negative_cycle(cycle)
            raise OverflowError("distances exceed int32; use float64")
        if found.finished:
            # If only starts are negative, a search may have a limit, which is a distance, not a key: no potentials.
            if begin is not None and graph.negative:
                memory.learn(self.statistics.touched, graph.m)
            _give_back(graph, self.signed, memory)
        return bool(found.finished)

    def negative_cycle(self) -> tuple[list[int], float] | None:
        """Return a negative cycle among the arcs that improved distances last, and its weight; None if none is found.

        These arcs form trees as long as there is no negative cycle. Threads that race may leave a wrong arc, so a cycle
        counts only if the exact sum of its weights is negative.
        """
        import cupy

        parents, memory = self.memory.parents, self.memory
        memory.control.begin()
        arguments = {
            "parents": parents,
            "ancestors": memory.queued,  # scratch: only the steps of a search use it
            "n": np.int32(self.graph.n),
            "control": memory.control.memory,
        }
        _CYCLE.launch_cooperative("look_for_cycle", arguments)
        if not memory.control.get().finished:
            return None
        vertices = cupy.arange(self.graph.n, dtype=np.int32)
        ancestors = cupy.where(parents < 0, vertices, parents)
        for _ in range(self.graph.n.bit_length()):
            ancestors = ancestors[ancestors]
        first = int(ancestors[int((parents[ancestors] >= 0).argmax())])
        parents = parents.get()
        cycle, vertex = [first], int(parents[first])
        while vertex != first:
            cycle.append(vertex)
            vertex = int(parents[vertex])
        cycle.reverse()
        weights = _weights_along(self.graph, cycle)
        total = math.fsum(weights.tolist()) if weights.dtype.kind == "f" else sum(weights.tolist())
        return (cycle, total) if total < 0 else None


class _Memory:
    """The arrays of a search, and the arguments that are the same for every launch.

    With negative weights also the distances of an earlier search: potentials of the vertices that the search reached.
    """

    potentials: Any = None
    learned = 0  # arcs that the search of the potentials read

    def __init__(self, graph: Any, signed: bool):
        import cupy

        self.program = _PROGRAMS["search", graph.dtype.name, signed]
        self.active, mean_weight, degree = _profile(graph)
        self.width = (_SIGNED_WIDTH * mean_weight if signed else _WIDTH * mean_weight / degree) or math.inf
        self.later_width = _LATER_WIDTH * mean_weight / degree or math.inf
        self.narrowest = _NARROWEST * self.later_width
        self.infinity = _unreachable(graph.dtype)
        n, word = graph.n, np.dtype(f"i{graph.dtype.itemsize}")
        inward = graph.in_indptr is not None and not signed
        capacity = max(n // 8, _LEAST_PILE)
        with graph.weights.device:
            self.distances, pushed, following = cupy.empty((3, n), word)
            self.queued, piled = cupy.empty((2, n), np.int32)
            cursor = cupy.zeros((n,), np.int32)
            self.parents = cupy.empty((n if signed else 1,), np.int32)
            self.queues, piles = cupy.empty((2, n), np.int32), cupy.empty((2, capacity), np.int32)
            self.pieces, self.control = _pieces(graph), _Control(graph.dtype)
            self.arrays = {
                "pushed": pushed,
                "next": following,
                "cursor": cursor,
                "queued": self.queued,
                "piled": piled,
                "parents": self.parents,
                "queues": self.queues,
                "piles": piles,
                "pieces": self.pieces,
            }
        self.given = np.zeros((), _arguments(graph.dtype))
        self.struct = self.given.view(f"V{self.given.nbytes}")  # CuPy would inspect fields at every launch
        for name, array in self.arrays.items():
            self.given[name] = array.data.ptr
        self.given["piece_capacity"], self.given["capacity"] = self.pieces.shape[1], capacity
        self.given["n"], self.given["active"], self.given["has_through"] = n, self.active, graph.through is not None
        self.given["entered"] = 0 if not inward else self.active if graph.symmetric else n
        short = 0 < graph.m <= _DEGREE * n and _most_arcs(graph) <= _SHORT
        self.given["ahead"] = _AHEAD if short else 0
        nothing = self.parents
        self.arguments: dict[str, Any] = {
            **_arcs(graph, inward),
            "through": nothing if graph.through is None else graph.through,
            **dict.fromkeys(("pending", "rank", "sources", "starts", "targets"), nothing),
            "given": self.struct,
        }
        self.tree = self._tree(graph)

    def learn(self, touched: int, arcs: int) -> None:
        """Keep the distances of a finished search if it read more arcs than the search whose distances are kept."""
        if self.potentials is not None and touched > _AGAIN * arcs:
            self.later_width = max(_NARROWER * self.later_width, self.narrowest)
        if touched > self.learned:
            self.potentials, self.learned, spare = self.distances, touched, self.potentials
            self.distances = self.potentials.copy() if spare is None else spare

    def _tree(self, graph: Any) -> dict[str, Any]:
        """Return the arguments of tree.cu that are the same for every launch, and placeholders for other arguments."""
        inward, scratch, zero = graph.in_indptr is not None, self.arrays, np.int32(0)
        levels = scratch["cursor"]
        return {
            **_arcs(graph, inward),
            "through": levels if graph.through is None else graph.through,
            "roots": scratch["piled"],
            "has_in": np.int32(inward),
            "has_through": np.int32(graph.through is not None),
            "n": np.int32(graph.n),
            "active": np.int32(self.active),
            "predecessors": scratch["queued"],
            "levels": levels,
            "queues": scratch["queues"],
            "pieces": scratch["pieces"],
            "piece_capacity": np.int64(scratch["pieces"].shape[1]),
            "order": levels,
            "rank": levels,
            "sources": levels,
            "source_count": zero,
            "starts": levels,
            "has_starts": zero,
            "within": levels,
            "result": levels,
            "has_result": zero,
            "distances": levels,
            "control": levels,
        }


def _memory(graph: Any, signed: bool) -> _Memory:
    """Return the memory of a finished search, or new memory."""
    try:
        return _idle.setdefault(graph, {}).setdefault(signed, []).pop()
    except IndexError:
        return _Memory(graph, signed)


def _give_back(graph: Any, signed: bool, memory: _Memory) -> None:
    _idle[graph][signed].append(memory)


def tree_outside(graph: Any, distances: Any, sources: np.ndarray, starts: np.ndarray | None) -> Any:
    """Return predecessors in the original numbering; no vertex is closed.

    Parameters
    ----------
    graph : SearchGraph
        On a GPU.
    distances : (n,) cupy array
        As `search` returns them.
    sources : (k,) array of int
        On the host.
    starts : (k,) array or None
        A source is a root if its distance is its start; None: every reached source is a root.
    """
    beside = [np.zeros(0, graph.dtype) if starts is None else starts, sources.astype(np.int32)]
    return _grow_tree(graph, distances, None, beside)


def tree(graph: Any, distances: Any, roots: Any) -> Any:
    """Return a predecessor for each vertex that is reached; see `gpuops.sssp.shortest_path_tree`.

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
        -1 at roots and unreachable vertices.
    """
    return _grow_tree(graph, distances, roots, [])


def _grow_tree(graph: Any, distances: Any, roots: Any, beside: list[np.ndarray]) -> Any:
    """Find predecessors from `roots` (internal numbering), or from the host arrays `beside`.

    `beside` has starts and sources. Then distances, sources and the result are in the original numbering.
    """
    import cupy

    n, outside = graph.n, roots is None
    with distances.device:
        result = cupy.empty((n,), np.int32)
        if not n:
            return result
        memory = _memory(graph, graph.negative)
        # The searches that used these arrays are over.
        control, levels = memory.control, memory.arrays["cursor"]
        for signed in (False, True)[graph.negative :]:
            starts, sources = control.begin(*beside) or (levels, levels)
            arguments = memory.tree.copy()
            arguments |= {"sources": sources, "starts": starts, "result": result, "distances": distances}
            arguments["control"], arguments["within"] = control.memory, memory.distances
            if outside:
                arguments |= {"order": graph.order, "rank": graph.rank, "has_result": np.int32(1)}
                arguments["source_count"] = np.int32(len(beside[1]))
                arguments["has_starts"] = np.int32(len(beside[0]) > 0)
            else:
                arguments |= {"roots": roots, "predecessors": result}
            program = _PROGRAMS["tree", graph.dtype.name, signed]
            program.launch_cooperative("tree", arguments)
            if control.get().finished:
                break  # otherwise some distances are negative: use the signed kernel
        _give_back(graph, graph.negative, memory)
    return result


def batch(graph: Any, sources: np.ndarray) -> Any:
    """Return the shortest distances from each of some sources, (k, n) in the original numbering."""
    import cupy

    n, k = graph.n, len(sources)
    program = _PROGRAMS["search_batch", graph.dtype.name, False]
    with graph.weights.device:
        result = cupy.empty((k, n), graph.dtype)
        if not k or not n:
            return result
        columns = cupy.empty((n, k), graph.dtype)
        _reach_nothing(program, columns)
        numbers = cupy.asarray(sources.astype(np.int32))
        arguments = (columns, np.int64(k), graph.rank, numbers, np.int32(k))
        program.launch("begin_batch", math.ceil(k / program.threads), arguments)
        _batched(graph, columns)
        grid = math.ceil(n / 32), math.ceil(k / 32)
        program.launch("end_batch", grid, (columns, np.int32(k), graph.rank, np.int64(n), result), threads=(32, 8))
    return result


def _reach_nothing(program: Program, words: Any) -> None:
    blocks = min(1024, math.ceil(words.size / program.threads))
    program.launch("reach_nothing", blocks, (words, np.int64(words.size)))


def batched(graph: Any, distances: Any) -> int:
    """Improve the distances of many separate searches, which share each read of an arc.

    Parameters
    ----------
    graph : SearchGraph
        Without negative weights.
    distances : (n, k) cupy array
        A column for every search, the rows contiguous; changed in place. A vertex relaxes its arcs in every search that
        has reached it.

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
        if _most_arcs(graph) > _HUB * degree:
            # Without distances to the hub, searches reach a vertex at different times and share little: use one window.
            hub_distances, width = (_distances_to_hub(graph), width) if inward else (None, math.inf)
        entered, control = 0 if not inward else active if graph.symmetric else n, _Control(graph.dtype)
        for column in range(0, k, 32):
            lows = cupy.empty((2, 32), word)
            control.begin()
            _reach_nothing(program, lows)
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
            if found.overflow == 2:
                raise OverflowError("distances exceed int32; use float64")
            total = total.plus(found)
    return total


class _Reversed:
    """A graph with every arc reversed."""

    through: Any
    symmetric = False

    def __init__(self, graph: Any):
        self.n, self.m, self.dtype, self.through = graph.n, graph.m, graph.dtype, graph.through
        self.indptr, self.indices, self.weights = graph.in_indptr, graph.in_indices, graph.in_weights
        self.in_indptr, self.in_indices, self.in_weights = graph.indptr, graph.indices, graph.weights
        # Vertices without arcs are not the last vertices here, so all vertices count as active.
        _profiles[self] = _Profile(self.n, *_profile(graph)[1:])


def _distances_to_hub(graph: Any) -> Any:
    """Return the distances of all vertices to the hub, vertex 0, which has the most arcs.

    They determine the order of a batch's work, not its result.
    """
    import cupy

    if graph in _to_hub:
        return _to_hub[graph]
    distances = cupy.empty((graph.n,), graph.dtype)
    program, first = _PROGRAMS["search_batch", graph.dtype.name, False], cupy.zeros((1,), np.int32)
    _reach_nothing(program, distances)
    program.launch("begin_batch", 1, (distances, np.int64(1), first, first, np.int32(1)))
    search = _Search(graph if graph.symmetric else _Reversed(graph), distances, signed=False)
    with contextlib.suppress(OverflowError):  # then the distances are lengths of some walks
        search.run()
    _to_hub[graph] = distances
    return distances


# --- Arguments of launches ----------------------------------------------------------------------------------------


def _unreachable(dtype: np.dtype) -> Any:
    return dtype.type(outside_infinity(dtype))


def _arcs(graph: Any, inward: bool) -> dict[str, Any]:
    """Return the first arguments of all kernels; a transpose that is absent or not requested is never read."""
    return {
        "indptr": graph.indptr,
        "indices": graph.indices,
        "weights": graph.weights,
        "in_indptr": graph.in_indptr if inward else graph.indptr,
        "in_indices": graph.in_indices if inward else graph.indices,
        "in_weights": graph.in_weights if inward else graph.weights,
    }


# The structs `Tally` and `Control` of search.cuh.
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
_EMPTY = np.zeros(1, _CONTROL)
_EMPTY["tallies"]["due"] = 2**63 - 1  # never
_BLOCK = _EMPTY.view(np.uint8)


def _place(name: str, size: int) -> slice:
    """Return the slice of the control block from a field on, in elements of `size` bytes."""
    assert _CONTROL.fields is not None
    return slice(_CONTROL.fields[name][1] // size, None)


_RESULTS, _OVERFLOW = _place("rounds", 8), _place("overflow", 4)


class _Control:
    """A control block of the kernels, followed by the host arrays that a launch takes.

    Both lie in pinned memory on the host and in memory on the device; successive launches use the same memory.
    """

    def __init__(self, dtype: np.dtype) -> None:
        self.kinds = dtype, np.dtype(np.int32), np.dtype(np.int32)
        self._take(4096)

    def _take(self, size: int) -> None:
        import cupy

        self.host = np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)
        self.device = cupy.empty((size,), np.uint8)
        self.block, self.memory = self.host[: _CONTROL.itemsize], self.device[: _CONTROL.itemsize]
        self.data, self.address, self.host_address = self.device.data, self.device.data.ptr, self.host.ctypes.data
        self.results, self.overflow = self.block.view(np.int64)[_RESULTS], self.block.view(np.int32)[_OVERFLOW]
        self.layouts: dict[tuple[int, ...], tuple[list[Any], list[Any], int]] = {}

    def begin(self, *beside: np.ndarray) -> list[Any]:
        """Clear the block, copy it and some arrays to the device, and return the arrays as bytes on the device.

        The arrays are starting distances, sources and targets, in this order; the last arrays may be absent.
        """
        sizes = tuple(map(len, beside))
        if sizes not in self.layouts:
            bytes_of = [size * kind.itemsize for size, kind in zip(sizes, self.kinds, strict=False)]
            ends = list(itertools.accumulate(-(-size // 16) * 16 for size in (_CONTROL.itemsize, *bytes_of)))
            if ends[-1] > len(self.host) or len(self.layouts) == 64:
                self._take(max(2 * ends[-1], len(self.host)))
            parts = zip(ends, bytes_of, self.kinds, strict=False)
            places = [self.host[a : a + size].view(kind) for a, size, kind in parts]
            views = [self.device[a:b] for a, b in itertools.pairwise(ends)]
            self.layouts[sizes] = places, views, ends[-1]
        places, views, size = self.layouts[sizes]
        self.block[:] = _BLOCK
        for place, array in zip(places, beside, strict=True):
            place[:] = array
        self.data.copy_from_host_async(self.host_address, size)
        return views

    def get(self) -> _Found:
        """Return the results in the control block; waits for the device."""
        import cupy

        self.data.copy_to_host_async(self.host_address, _CONTROL.itemsize)
        cupy.cuda.get_current_stream().synchronize()
        return _Found._make([*self.results.tolist(), int(self.overflow[0])])


@functools.cache
def _arguments(dtype: np.dtype) -> np.dtype:
    """Return the struct `Arguments` of search.cu as a dtype."""
    pointers = "distances pushed next potentials cursor queued piled parents queues piles pieces control result"
    integers = "n active entered ahead capacity source_count target_count has_through has_pending resume"
    return np.dtype(
        [
            *((name, np.uint64) for name in pointers.split()),
            *(("piece_capacity", np.int64), ("most_rounds", np.int64), ("width", np.float64), ("limit", dtype)),
            *((name, np.int32) for name in integers.split()),
        ],
        align=True,
    )


def _pieces(graph: Any) -> Any:
    """Return memory for two lists of the pieces of all long rows; a piece is a distance and three int32."""
    import cupy

    size = 16 if graph.dtype.itemsize == 4 else 24
    return cupy.empty((2, 2 * graph.m // _PIECE + 1, size), np.uint8)


# --- Constants of a graph -------------------------------------------------------------------------------------------


class _Profile(NamedTuple):
    active: int  # number of vertices with arcs, which come first
    weight: float  # mean magnitude of a weight
    degree: float  # mean number of arcs of an active vertex


_profiles: weakref.WeakKeyDictionary[Any, _Profile] = weakref.WeakKeyDictionary()
_to_hub: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # distances to the hub


def _profile(graph: Any) -> _Profile:
    if graph not in _profiles:
        active, magnitudes = measure(graph)
        _profiles[graph] = _Profile(active, magnitudes / max(graph.m, 1), max(graph.m, 1) / max(active, 1))
    return _profiles[graph]


_most: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def _most_arcs(graph: Any) -> int:
    """Return the number of arcs of the first vertex, the most of any vertex."""
    if graph not in _most:
        _most[graph] = int(graph.indptr[1])
    return _most[graph]


# --- Negative cycles ------------------------------------------------------------------------------------------------


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


def _raise_negative_cycle(cycle: tuple[list[int], float] | None) -> None:
    if cycle is None:
        raise NegativeCycleError(
            "distances keep falling around a cycle whose weight rounds to less than 0; use int32 weights or float64"
        )
    vertices, weight = cycle
    raise NegativeCycleError(f"negative cycle of {len(vertices)} vertices and weight {weight:g}", vertices, weight)

"""Euler circuits on a GPU: the stages of `gpuops.euler.stages`, kernels in euler.cu.

CuPy sorts by binaries that it ships, but compiles a kernel for each kind of elementwise operation at its
first use, in a tenth of a second. So the kernels of euler.cu do the elementwise operations.

A stage reads and writes each arc a few times in order, and follows one or two random references for each arc. The
random references take the time: each reads 32 bytes of memory for the 4 bytes it needs. docs/euler.md counts them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._copies_cuda import argsort, copied
from gpuops._cuda import Program
from gpuops._scan_cuda import scan

_THREADS = 256
_MOST_BLOCKS = 1 << 20  # the kernels use grid-stride loops
_WAYS = 1 << 18  # ways (from splitter to splitter) walked along at once: about one for each thread of a GPU
_RAREST = 6  # at least one arc in 2^6 is a splitter; the longest way is then about 15 times as long as the average

_TYPES = {np.dtype("int32"): "int", np.dtype("int64"): "long long"}
_ENTRIES = (
    "survey",
    "leap_around",
    "label_ways",
    "list_unlabelled",
    "label_unite",
    "label_flatten",
    "mark_rows",
    "narrow",
    "propose_none",
    "propose_links",
    "accept_links",
    "components",
    "join",
    "relabel",
    "set_starts",
    "choose_splitters",
    "number_splitters",
    "measure",
    "leap",
    "measure_circuits",
    "write_order",
)
_PROGRAMS = {arc: Program("euler/euler.cu", _ENTRIES, (f"ARC={name}",)) for arc, name in _TYPES.items()}
_PAIRING = {head: Program("euler/pairing.cu", ("check_pairing",), (f"HEAD={name}",)) for head, name in _TYPES.items()}


def pair(indptr: Any, indices: Any) -> Any:
    """Return the predecessors of the arcs, or None if the graph is not balanced."""
    import cupy

    m = len(indices)
    arc = np.dtype(np.int32 if m < 2**31 else np.int64)
    with indices.device:
        order = argsort(indices)
        wrong, n = cupy.zeros((1,), np.int32), len(indptr) - 1
        _launch_program(_PAIRING[indices.dtype], "check_pairing", n, (wrong, indptr, indices, order, np.int64(n)))
        if int(wrong[0]):
            return None
        if arc == order.dtype:
            return order
        predecessors = cupy.empty((m,), arc)
        _launch("narrow", m, (predecessors, order), arc)
        return predecessors


def label(predecessors: Any) -> Any:
    """Return the least arc of the circuit of each arc."""
    import cupy

    m, arc = len(predecessors), predecessors.dtype
    with predecessors.device:
        labels = cupy.empty((m,), arc)
        labels.data.memset_async(0xFF, labels.nbytes)  # -1
        if m == 0:
            return labels
        splitters = _Splitters(m, arc)
        count, before = splitters.count, splitters.before
        following, least = cupy.empty((count,), np.int32), cupy.empty((count,), arc)
        _launch("survey", count, (following, least, splitters.arcs, predecessors, splitters.bits, before), arc)
        for _ in range(count.bit_length()):
            farther, lower = cupy.empty((count,), np.int32), cupy.empty((count,), arc)
            _launch("leap_around", count, (farther, lower, following, least), arc)
            following, least = farther, lower
        _launch("label_ways", count, (labels, least, splitters.arcs, predecessors, splitters.bits), arc)
        rest, left = cupy.empty((m,), arc), cupy.zeros((1,), np.uint32)
        _launch("list_unlabelled", m, (rest, left, labels, predecessors), arc)
        _launch("label_unite", number := int(left[0]), (labels, rest, predecessors), arc)
        _launch("label_flatten", number, (labels, rest), arc)
    return labels


def span(indptr: Any, labels: Any, slots: Any) -> tuple[Any, Any, Any]:
    """Join circuits to trees by links between them; see `spanning_links`."""
    import cupy

    m, arc = len(labels), labels.dtype
    with labels.device:
        trees, best = copied(labels), cupy.empty((m,), arc)
        _launch("propose_none", m, (best,), arc)
        first = cupy.zeros((m,), np.uint8)
        _launch("mark_rows", len(indptr) - 1, (first, indptr), arc)
        # There are at most as many links as circuits, and at most as many circuits as arcs.
        links, starts = cupy.empty((m,), arc), cupy.empty((m,), arc)
        accepted, counts = cupy.zeros((-(-m // 32),), np.uint32), cupy.zeros((2,), np.uint32)
        listed = slots is not None
        candidates = (labels, first, slots if listed else labels)
        while True:
            found = cupy.zeros((1,), np.int32)
            number = len(slots) if listed else m
            arguments = (found, best, trees, *candidates, np.int64(number), np.int32(listed))
            _launch_sized("propose_links", number, arguments, arc)
            if not int(found[0]):
                break
            _launch("accept_links", m, (best, trees, accepted, links, counts, labels), arc)
        _launch("components", m, (starts, counts[1:], trees, labels), arc)
        link_count, start_count = map(int, counts.get())
        links, starts = links[:link_count], starts[:start_count]
        links.sort()
        starts.sort()
        return links, starts, trees


def join(predecessors: Any, slots: Any) -> Any:
    """Join circuits by links; see `join_circuits`. A kernel, since CuPy compiles a dozen for the same."""
    with predecessors.device:
        joined = copied(predecessors)
        _launch("join", len(slots), (joined, predecessors, slots), predecessors.dtype)
        return joined


def relabel(components: Any, labels: Any) -> Any:
    """Return the label of the component of each arc, ``components[labels]``."""
    import cupy

    with labels.device:
        result = cupy.empty((len(labels),), labels.dtype)
        _launch("relabel", len(labels), (result, components, labels), labels.dtype)
        return result


def walk(predecessors: Any, labels: Any, starts: Any) -> tuple[Any, np.ndarray]:
    """Return the arcs of each circuit in order, from its start, and where each circuit begins in them."""
    import cupy

    m, arc, circuits = len(predecessors), predecessors.dtype, len(starts)
    with predecessors.device:
        order = cupy.empty((m,), arc)
        if m == 0:
            return order, np.zeros(1, np.int64)
        splitters = _Splitters(m, arc, starts)
        arcs, bits, ends, before, number = (
            splitters.arcs,
            splitters.bits,
            splitters.ends,
            splitters.before,
            splitters.count,
        )
        lengths, following = cupy.empty((number,), arc), cupy.empty((number,), np.int32)
        _launch("measure", number, (following, lengths, arcs, predecessors, bits, ends, before), arc)
        sublists = lengths
        for _ in range(number.bit_length()):
            farther, longer = cupy.empty((number,), np.int32), cupy.empty((number,), arc)
            _launch("leap", number, (farther, longer, following, sublists), arc)
            following, sublists = farther, longer
        lengths_from_1, numbers = cupy.zeros((circuits + 1,), np.int64), cupy.empty((m,), arc)
        starting = (lengths_from_1[1:], numbers, starts, labels, sublists, bits, before)
        _launch("measure_circuits", circuits, starting, arc)
        offsets = scan(lengths_from_1, 0, np.dtype(np.int64))
        arguments = (order, offsets, numbers, labels, arcs, sublists, predecessors, bits, ends)
        _launch("write_order", number, arguments, arc)
        return order, offsets.get()


class _Splitters:
    """Some arcs, chosen by a hash of their numbers: enough that all threads have a way. Short circuits may have none.

    Attributes
    ----------
    arcs : (count,) arc numbers of the splitters, ascending
    bits, ends : a bit for each arc: whether it is a splitter, whether it is a start. All starts are splitters.
    before : for each word of `bits`, the number of splitters in the words before it, and at last `count`
    """

    def __init__(self, m: int, arc: np.dtype, starts: Any = None):
        import cupy

        words = -(-m // 32)
        self.ends, counts_from_1 = cupy.zeros((words,), np.uint32), cupy.zeros((words + 1,), np.int32)
        if starts is not None:
            _launch("set_starts", len(starts), (self.ends, starts), arc)
        self.bits = copied(self.ends)
        rarity = min(max((m // _WAYS).bit_length() - 1, 1), _RAREST)
        _launch_sized("choose_splitters", words, (self.bits, counts_from_1[1:], np.int32(rarity), np.int64(m)), arc)
        self.before = scan(counts_from_1, 0, np.dtype(np.int64))
        self.count = int(self.before[-1])
        self.arcs = cupy.empty((self.count,), arc)
        _launch_sized("number_splitters", words, (self.arcs, self.bits, self.before, np.int64(m)), arc)


def _launch(entry: str, count: int, arguments: tuple[Any, ...], arc: np.dtype) -> None:
    """Launch a kernel whose last parameter is `count`, with at least `count` threads if _MOST_BLOCKS allows."""
    _launch_sized(entry, count, (*arguments, np.int64(count)), arc)


def _launch_sized(entry: str, count: int, arguments: tuple[Any, ...], arc: np.dtype) -> None:
    _launch_program(_PROGRAMS[arc], entry, count, arguments)


def _launch_program(program: Program, entry: str, count: int, arguments: tuple[Any, ...]) -> None:
    if count:
        program.launch(entry, min(-(-count // _THREADS), _MOST_BLOCKS), arguments, threads=_THREADS)

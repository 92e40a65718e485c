"""Euler circuits on a GPU: the stages of `gpuops.euler.stages`, kernels in euler.cu.

A stage reads and writes each arc a few times in order, and follows one or two random references for each: what takes
time are those, 32 bytes of memory for 4 that are wanted. docs/euler.md counts them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._cuda import Program

_THREADS = 256
_MOST_BLOCKS = 1 << 20  # the kernels stride

_TYPES = {"int32": "int", "int64": "long long"}
_ENTRIES = (
    "label_first",
    "label_unite",
    "label_flatten",
    "mark_rows",
    "propose",
    "accept",
    "components",
    "set_starts",
    "choose",
    "number",
    "measure",
    "leap",
    "measure_circuits",
    "write",
)
_PROGRAMS = {arc: Program("euler/euler.cu", _ENTRIES, (f"ARC={name}",)) for arc, name in _TYPES.items()}
_PAIRING = {
    (arc, head): Program("euler/pairing.cu", ("check_pairing",), (f"ARC={_TYPES[arc]}", f"HEAD={_TYPES[head]}"))
    for arc in _TYPES
    for head in _TYPES
}


def pair(indptr: Any, indices: Any) -> Any:
    """Predecessors of the arcs, or None if the graph is not balanced."""
    import cupy

    m = len(indices)
    arc = np.dtype(np.int32 if m < 2**31 else np.int64)
    with indices.device:
        predecessors = cupy.argsort(indices, kind="stable").astype(arc)
        wrong, program = cupy.zeros((1,), np.int32), _PAIRING[arc.name, indices.dtype.name]
        arguments = (wrong, indptr, indices, predecessors, np.int64(len(indptr) - 1))
        _launch_program(program, "check_pairing", len(indptr) - 1, arguments)
        return None if int(wrong[0]) else predecessors


def label(predecessors: Any) -> Any:
    import cupy

    m = len(predecessors)
    with predecessors.device:
        labels = cupy.empty((m,), predecessors.dtype)
        _launch("label_first", m, (labels, predecessors), labels.dtype)
        _launch("label_unite", m, (labels, predecessors), labels.dtype)
        _launch("label_flatten", m, (labels,), labels.dtype)
    return labels


def span(indptr: Any, labels: Any, slots: Any) -> tuple[Any, Any, Any]:
    import cupy

    m, arc = len(labels), labels.dtype
    with labels.device:
        trees, best = labels.copy(), cupy.empty((m,), arc)
        best[...] = np.iinfo(arc).max
        first = cupy.zeros((m,), np.uint8)
        _launch("mark_rows", len(indptr) - 1, (first, indptr), arc)
        # As many links as circuits at most, which are no more than arcs.
        links, starts = cupy.empty((m,), arc), cupy.empty((m,), arc)
        accepted, counts = cupy.zeros((-(-m // 32),), np.uint32), cupy.zeros((2,), np.uint32)
        listed = slots is not None
        candidates = (labels, first, slots if listed else labels)
        while True:
            found = cupy.zeros((1,), np.int32)
            number = len(slots) if listed else m
            arguments = (found, best, trees, *candidates, np.int64(number), np.int32(listed))
            _launch_sized("propose", number, arguments, arc)
            if not int(found[0]):
                break
            _launch("accept", m, (best, trees, accepted, links, counts, labels), arc)
        _launch("components", m, (starts, counts[1:], trees, labels), arc)
        link_count, start_count = map(int, counts.get())
        return cupy.sort(links[:link_count]), cupy.sort(starts[:start_count]), trees


def walk(predecessors: Any, labels: Any, starts: Any) -> tuple[Any, np.ndarray]:
    import cupy

    m, arc, circuits = len(predecessors), predecessors.dtype, len(starts)
    with predecessors.device:
        order = cupy.empty((m,), arc)
        if m == 0:
            return order, np.zeros(1, np.int64)
        words = -(-m // 32)
        ends, counts = cupy.zeros((words,), np.uint32), cupy.empty((words,), np.int32)
        _launch("set_starts", circuits, (ends, starts), arc)
        splitters = ends.copy()
        _launch_sized("choose", words, (splitters, counts, np.int64(m)), arc)
        after = cupy.cumsum(counts, dtype=np.int32)
        number, before = int(after[-1]), after - counts
        arcs, lengths = cupy.empty((number,), arc), cupy.empty((number,), arc)
        following = cupy.empty((number,), np.int32)
        _launch_sized("number", words, (arcs, splitters, before, np.int64(m)), arc)
        _launch("measure", number, (following, lengths, arcs, predecessors, splitters, ends, before), arc)
        sublists = lengths
        for _ in range(max(number - 1, 0).bit_length()):
            farther, longer = cupy.empty((number,), np.int32), cupy.empty((number,), arc)
            _launch("leap", number, (farther, longer, following, sublists), arc)
            following, sublists = farther, longer
        circuit_lengths, numbers = cupy.empty((circuits,), np.int64), cupy.empty((m,), arc)
        starting = (circuit_lengths, numbers, starts, labels, sublists, splitters, before)
        _launch("measure_circuits", circuits, starting, arc)
        offsets = cupy.zeros((circuits + 1,), np.int64)
        offsets[1:] = cupy.cumsum(circuit_lengths, dtype=np.int64)
        arguments = (order, offsets, numbers, labels, arcs, sublists, predecessors, splitters, ends)
        _launch("write", number, arguments, arc)
        return order, offsets.get()


def _launch(entry: str, count: int, arguments: tuple[Any, ...], arc: np.dtype) -> None:
    """Launch a kernel whose last parameter is `count`, with a thread for each of them if there are not too many."""
    _launch_sized(entry, count, (*arguments, np.int64(count)), arc)


def _launch_sized(entry: str, count: int, arguments: tuple[Any, ...], arc: np.dtype) -> None:
    _launch_program(_PROGRAMS[arc.name], entry, count, arguments)


def _launch_program(program: Program, entry: str, count: int, arguments: tuple[Any, ...]) -> None:
    if count:
        program.function(entry)((min(-(-count // _THREADS), _MOST_BLOCKS),), (_THREADS,), arguments)

"""Euler circuits on a CPU: the stages of `gpuops.euler.stages`, and Hierholzer's algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._compiled_numba import entry, reverse
from gpuops._union_find_numba import find, unite


def pair(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    """Return the predecessor of each arc, None if a vertex has more arcs of one direction than of the other."""
    predecessors = np.empty(len(indices), np.int32 if len(indices) < 2**31 else np.int64)
    return predecessors if _pair(indptr, indices, indptr[:-1].copy(), predecessors) else None


@entry
def _pair(indptr, indices, cursor, predecessors):
    for arc in range(indices.size):
        v = indices[arc]
        slot = cursor[v]
        if slot == indptr[v + 1]:
            return False  # more arcs in than out
        predecessors[slot] = arc
        cursor[v] = slot + 1
    return True


@entry
def label(predecessors):
    """Return the least arc of the circuit of each arc."""
    labels = np.full_like(predecessors, -1)
    for least in range(predecessors.size):
        arc = predecessors.dtype.type(least)
        while labels[arc] < 0:
            labels[arc] = least
            arc = predecessors[arc]
    return labels


def span(indptr: np.ndarray, labels: np.ndarray, slots: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join circuits to trees by links between them; see `spanning_links`."""
    trees = np.arange(len(labels), dtype=labels.dtype)
    if slots is None:
        found = _span_rows(indptr, labels, trees)
    else:
        found = _span_links(labels, np.ascontiguousarray(slots), trees)
    return found, _least_arcs(labels, trees), trees


@entry
def _span_rows(indptr, labels, trees):
    found, count = np.empty_like(labels), 0  # the system allocates only the pages that are written
    for v in range(indptr.size - 1):
        for slot in range(indptr[v] + 1, indptr[v + 1]):
            a, b = labels[slot - 1], labels[slot]
            if a != b and unite(trees, a, b):
                found[count] = slot
                count += 1
    return found[:count].copy()


@entry
def _span_links(labels, slots, trees):
    found, count = np.empty_like(slots), 0
    for slot in slots:
        if unite(trees, labels[slot - 1], labels[slot]):
            found[count] = slot
            count += 1
    return found[:count].copy()


@entry
def _least_arcs(labels, trees):
    """Make every label point to the root of its tree, and return the roots."""
    starts, count = np.empty_like(labels), 0
    for arc in range(labels.size):
        if labels[arc] != arc:
            continue
        root = find(trees, labels[arc])
        trees[arc] = root
        if root == arc:
            starts[count] = arc
            count += 1
    return starts[:count].copy()


def join(predecessors: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Join circuits by links; see `join_circuits`."""
    joined = predecessors.copy()
    if len(slots):
        apart = slots[1:] != slots[:-1] + 1
        begins, ends = np.ones(len(slots), bool), np.ones(len(slots), bool)
        begins[1:], ends[:-1] = apart, apart
        joined[slots - 1] = predecessors[slots]
        joined[slots[ends]] = predecessors[slots[begins] - 1]
    return joined


def relabel(components: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the label of the component of each arc."""
    return components[labels]


def walk(predecessors: np.ndarray, labels: Any, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the arcs of each circuit in order, from its start, and where each circuit begins in them."""
    arcs, offsets = np.empty_like(predecessors), np.zeros(len(starts) + 1, np.int64)
    _walk(predecessors, starts, arcs, offsets)
    return arcs, offsets


@entry
def _walk(predecessors, starts, arcs, offsets):
    place = 0
    for k in range(starts.size):
        start = starts[k]
        arcs[place] = start
        first = last = place + 1
        arc = predecessors[start]
        while arc != start:
            arcs[last] = arc
            last += 1
            arc = predecessors[arc]
        reverse(arcs[first:last])
        offsets[k + 1] = place = last


def hierholzer(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return circuits by Hierholzer's algorithm, in the order of their least vertices; None if not balanced.

    Random memory accesses take the time. So each vertex has a single number, its next arc or -1; the last head of a row
    is stored as its complement; and going back reads only one byte of each vertex: whether arcs are left.
    """
    n, m = len(indptr) - 1, len(indices)
    arcs = np.empty(m, np.int32 if m < 2**31 else np.int64)
    following, left = np.empty(n, arcs.dtype), np.zeros(n, bool)
    offsets = _hierholzer(indptr, indices.copy(), following, left, np.empty_like(indices), arcs)
    return None if offsets[-1] != m else (arcs, offsets)


@entry
def _hierholzer(indptr, heads, following, left, tails, arcs):
    """Go along unused arcs until a vertex has none left, then back to a vertex that has one, until all arcs are used.

    The arcs gone along are stored from `begin` on, with their `tails`. An arc passed going back has its final place: it
    is stored before the arcs passed earlier, from the end of `arcs` downwards.
    """
    for vertex in range(following.size):
        following[vertex] = -1
        if indptr[vertex] < indptr[vertex + 1]:
            following[vertex], left[vertex] = indptr[vertex], True
            heads[indptr[vertex + 1] - 1] ^= -1
    sign = 8 * heads.itemsize - 1
    offsets, circuits, begin = np.zeros(16, np.int64), 0, 0
    for start in range(following.size):
        if following[start] < 0:
            continue
        v, top, place = np.uint64(start), begin, arcs.size
        while True:
            origin, arc = v, following[v]
            while arc >= 0:
                head = heads[np.uint64(arc)]
                last = head >> sign  # -1 in the last arc of a row, else 0
                arcs[top], tails[top] = arc, v
                top += 1
                following[v] = (arc + 1) | last
                if last:
                    left[v] = False
                v = np.uint64(head ^ last)
                arc = following[v]
            if v != origin:
                return offsets  # more arcs lead here than away
            while True:
                top -= 1
                place -= 1
                arcs[place] = arcs[top]
                v = np.uint64(tails[top])
                if top == begin or left[v]:
                    break
            if top == begin:
                break
        if place > begin:
            for i in range(place, arcs.size):
                arcs[begin] = arcs[i]
                begin += 1
        else:
            begin = arcs.size
        circuits += 1
        if circuits == offsets.size:
            offsets = np.concatenate((offsets, np.zeros_like(offsets)))
        offsets[circuits] = begin
    return offsets[: circuits + 1].copy()

"""Euler circuits on a CPU: the stages of `gpuops.euler.stages`, and Hierholzer's algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpuops._union_find_numba import find, unite


def pair(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    predecessors = np.empty(len(indices), np.int32 if len(indices) < 2**31 else np.int64)
    return predecessors if _pair(indptr, indices, indptr[:-1].copy(), predecessors) else None


@njit(nogil=True, cache=True)
def _pair(indptr, indices, cursor, predecessors):
    for arc in range(indices.size):
        v = indices[arc]
        slot = cursor[v]
        if slot == indptr[v + 1]:
            return False  # more arcs in than out
        predecessors[slot] = arc
        cursor[v] = slot + 1
    return True


@njit(nogil=True, cache=True)
def label(predecessors):
    labels = np.full_like(predecessors, -1)
    for least in range(predecessors.size):
        arc = predecessors.dtype.type(least)
        while labels[arc] < 0:
            labels[arc] = least
            arc = predecessors[arc]
    return labels


def span(indptr: np.ndarray, labels: np.ndarray, slots: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    trees = np.arange(len(labels), dtype=labels.dtype)
    if slots is None:
        found = _span_rows(indptr, labels, trees)
    else:
        found = _span_links(labels, np.ascontiguousarray(slots), trees)
    return found, _least_arcs(labels, trees), trees


@njit(nogil=True, cache=True)
def _span_rows(indptr, labels, trees):
    found, count = np.empty(16, labels.dtype), 0
    for v in range(indptr.size - 1):
        for slot in range(indptr[v] + 1, indptr[v + 1]):
            a, b = labels[slot - 1], labels[slot]
            if a != b and unite(trees, a, b):
                if count == found.size:
                    found = np.concatenate((found, np.empty_like(found)))
                found[count] = slot
                count += 1
    return found[:count].copy()


@njit(nogil=True, cache=True)
def _span_links(labels, slots, trees):
    found, count = np.empty_like(slots), 0
    for slot in slots:
        if unite(trees, labels[slot - 1], labels[slot]):
            found[count] = slot
            count += 1
    return found[:count].copy()


@njit(nogil=True, cache=True)
def _least_arcs(labels, trees):
    """Let every label point to the root of its tree; the roots."""
    starts, count = np.empty(16, labels.dtype), 0
    for arc in range(labels.size):
        if labels[arc] != arc:
            continue
        root = find(trees, labels[arc])
        trees[arc] = root
        if root == arc:
            if count == starts.size:
                starts = np.concatenate((starts, np.empty_like(starts)))
            starts[count] = arc
            count += 1
    return starts[:count].copy()


def walk(predecessors: np.ndarray, labels: Any, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    arcs, offsets = np.empty_like(predecessors), np.zeros(len(starts) + 1, np.int64)
    _walk(predecessors, starts, arcs, offsets)
    return arcs, offsets


@njit(nogil=True, cache=True)
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
        arcs[first:last] = arcs[first:last][::-1].copy()
        offsets[k + 1] = place = last


def hierholzer(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Circuits of a balanced graph by Hierholzer's algorithm, in the order of their least vertices."""
    arcs = np.empty(len(indices), np.int32 if len(indices) < 2**31 else np.int64)
    return arcs, _hierholzer(indptr, indices, arcs)


@njit(nogil=True, cache=True)
def _hierholzer(indptr, indices, arcs):
    """Go on along unused arcs until there is none, then back: an arc passed going back is the next from the end."""
    cursor, stack = indptr[:-1].copy(), np.empty_like(arcs)
    offsets, circuits, place = np.zeros(16, np.int64), 0, 0
    for v in range(indptr.size - 1):
        if cursor[v] == indptr[v + 1]:
            continue
        begin, top = place, 0
        while True:
            arc = cursor[v]
            if arc < indptr[v + 1]:
                cursor[v] = arc + 1
                stack[top] = arc
                top += 1
                v = indices[arc]
            else:
                top -= 1
                arcs[place] = stack[top]
                place += 1
                if top == 0:
                    break
                v = indices[stack[top - 1]]
        arcs[begin:place] = arcs[begin:place][::-1].copy()
        circuits += 1
        if circuits == offsets.size:
            offsets = np.concatenate((offsets, np.zeros_like(offsets)))
        offsets[circuits] = place
    return offsets[: circuits + 1].copy()

"""Negative cycles on a CPU: the Numba half of `gpuops.certificates.negative_cycle`."""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry, inner


@entry
def relax(indptr, indices, weights, through, threshold, start, potentials, parents, tail_of):
    """Relax arcs among open vertices, beginning with arcs out of `start`; return a vertex on a parent cycle, or -1."""
    n = potentials.size
    queue, queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    for i in range(start.size):
        queue[i] = start[i]
        queued[start[i]] = True
    head, count, relaxed = 0, start.size, 0
    while count > 0:
        u = queue[head]
        head, count = (head + 1) % n, count - 1
        queued[u] = False
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            length = potentials[u] + weights[arc]
            if not through[v] or length >= potentials[v] - threshold:
                continue
            potentials[v], parents[v], tail_of[v] = length, arc, u
            relaxed += 1
            if not queued[v]:
                queue[(head + count) % n] = v
                queued[v] = True
                count += 1
        if relaxed >= n:
            relaxed = 0
            at = _on_cycle(tail_of)
            if at >= 0:
                return at
    return -1


@inner
def _on_cycle(tail_of):
    """Return a vertex on a cycle of the graph v -> tail_of[v], or -1."""
    seen_from = np.full(tail_of.size, -1, np.int64)
    for start in range(tail_of.size):
        v = start
        while v >= 0 and seen_from[v] < 0:
            seen_from[v] = start
            v = tail_of[v]
        if v >= 0 and seen_from[v] == start:
            return v
    return -1


@entry
def cheapest_turns(indptr, indices, weights, through, potentials, far):
    """Return for each closed z the least w(z, a) - p[a] over arcs to open a, and the least p[b] + w(b, z), b open."""
    out, back = np.full(through.size, far, weights.dtype), np.full(through.size, far, weights.dtype)
    for u in range(through.size):
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            if through[v] and not through[u]:
                out[u] = min(out[u], weights[arc] - potentials[v])
            elif through[u] and not through[v]:
                back[v] = min(back[v], potentials[u] + weights[arc])
    return out, back


@entry
def return_to(z, indptr, indices, weights, through, potentials, back, labels, far, parents, tail_of):
    """Return whether a walk from z over open vertices back to z has negative weight; `parents` then describe the walk.

    The label of v is the least length of a walk from z to v, less p[v]. `labels` are all `far` before and after a call.
    """
    n = labels.size
    queue, queued = np.empty(n, np.int64), np.zeros(n, np.bool_)
    head, count, found = 0, 0, False
    labelled = np.empty(n, np.int64)
    labels_set = 0
    u = z
    while not found:
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            if v == z and u != z and labels[u] + potentials[u] + weights[arc] < 0:
                parents[z], tail_of[z], found = arc, u, True
                break
            if not through[v]:
                continue
            if u == z:
                label = weights[arc] - potentials[v]
            else:  # below 0 by rounding only; clipped, so that no label falls around a cycle and the search ends
                label = labels[u] + max(weights[arc] + potentials[u] - potentials[v], 0)
            if label >= labels[v] or label + back >= 0:
                continue
            if labels[v] == far:
                labelled[labels_set] = v
                labels_set += 1
            labels[v], parents[v], tail_of[v] = label, arc, u
            if not queued[v]:
                queue[(head + count) % n] = v
                queued[v] = True
                count += 1
        if count == 0:
            break
        u = queue[head]
        head, count = (head + 1) % n, count - 1
        queued[u] = False
    for i in range(labels_set):
        labels[labelled[i]] = far
    return found

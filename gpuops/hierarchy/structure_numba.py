"""Numba kernels of the structure of a hierarchy: elimination tree, column counts, nodes and fronts.

A vertex is named by its place in the order. `deal` lists the arcs in CSR, by their lower or by their higher ends.

J. W. H. Liu, "The role of elimination trees in sparse factorization", SIMAX 11, 1990. J. R. Gilbert, E. G. Ng,
B. W. Peyton, "An efficient algorithm to compute row and column counts for sparse Cholesky factorization", SIMAX 15,
1994.
"""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry, inner


@entry
def deal(indptr, indices, place, size, by_lower):
    """List the arcs between places below `size` in CSR, by their lower or by their higher ends. Loops are left out.

    Returns the starts of the rows and, for each arc, its other end and its number. The number of an arc that leads from
    the higher to the lower place is given as its complement, `~number`.
    """
    starts = np.zeros(size + 1, np.int64)
    for tail in range(len(indptr) - 1):
        if place[tail] < size:
            for arc in range(indptr[tail], indptr[tail + 1]):
                a, b = place[tail], place[indices[arc]]
                if b < size and a != b:
                    starts[(min(a, b) if by_lower else max(a, b)) + 1] += 1
    for v in range(size):
        starts[v + 1] += starts[v]
    free = starts[:-1].copy()
    others, arcs = np.empty(starts[size], np.int32), np.empty(starts[size], np.int64)
    for tail in range(len(indptr) - 1):
        if place[tail] < size:
            for arc in range(indptr[tail], indptr[tail + 1]):
                a, b = place[tail], place[indices[arc]]
                if b < size and a != b:
                    low, high = min(a, b), max(a, b)
                    key, other = (low, high) if by_lower else (high, low)
                    others[free[key]], arcs[free[key]] = other, arc if a < b else ~arc
                    free[key] += 1
    return starts, others, arcs


@entry
def elimination_tree(starts, lower):
    """Return the parent of each place, -1 for roots. `lower` lists the lower neighbours of each place, in CSR."""
    n = len(starts) - 1
    parent, ancestor = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for v in range(n):
        for i in range(starts[v], starts[v + 1]):
            at = lower[i]
            while ancestor[at] != -1 and ancestor[at] != v:
                ancestor[at], at = v, ancestor[at]
            if ancestor[at] == -1:
                ancestor[at] = parent[at] = v
    return parent


@entry
def postorder(parent):
    """Renumber a tree by a postorder in which each vertex comes right after the largest subtree below it.

    Returns the new place of each vertex and, by new places, the parents and the sizes of the subtrees.
    """
    n = len(parent)
    size, heavy = np.ones(n, np.int32), np.full(n, -1, np.int32)
    for v in range(n):
        above = parent[v]
        if above >= 0:
            size[above] += size[v]
            if heavy[above] < 0 or size[v] > size[heavy[above]]:
                heavy[above] = v
    place, free, roots = np.empty(n, np.int32), np.empty(n, np.int32), 0  # free: where the next lighter child begins
    for v in range(n - 1, -1, -1):  # parents first
        above = parent[v]
        if above < 0:
            begin = roots
            roots += size[v]
        elif heavy[above] == v:
            begin = place[above] - size[v]
        else:
            begin = free[above]
            free[above] += size[v]
        place[v], free[v] = begin + size[v] - 1, begin
    new_parent, new_size = np.empty(n, np.int32), np.empty(n, np.int32)
    for v in range(n):
        new_parent[place[v]] = place[parent[v]] if parent[v] >= 0 else -1
        new_size[place[v]] = size[v]
    return place, new_parent, new_size


@entry
def column_counts(starts, higher, parent, size):
    """Return the number of higher neighbours that each vertex has when it is eliminated. Places are a postorder."""
    n = len(parent)
    counts = np.zeros(n, np.int64)
    latest, before, ancestor = np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.arange(n).astype(np.int32)
    for v in range(n):
        first = v - size[v] + 1
        counts[v] += first == v
        if parent[v] >= 0:
            counts[parent[v]] -= 1
        for i in range(starts[v], starts[v + 1]):
            row = higher[i]
            if latest[row] >= first:  # an earlier vertex below v has an arc to `row`: v is no leaf of its row subtree
                continue
            latest[row] = v
            counts[v] += 1
            if before[row] >= 0:  # the paths up from the previous leaf and from v meet in their lowest common ancestor
                common = before[row]
                while ancestor[common] != common:
                    common = ancestor[common]
                at = before[row]
                while at != common:
                    ancestor[at], at = common, ancestor[at]
                counts[common] -= 1
            before[row] = v
        if parent[v] >= 0:
            ancestor[v] = parent[v]
    for v in range(n):
        if parent[v] >= 0:
            counts[parent[v]] += counts[v]
    return counts - 1


@entry
def node_ends(parent, size, counts, leaf, slack):
    """Return whether each vertex is the last of its node.

    A node is a subtree of at most `leaf` vertices, or a piece of a chain. A vertex of a chain joins the node of its
    child if the tables of the joined node have at most the share `slack` more entries than separate tables, and one
    more for each vertex.
    """
    n = len(parent)
    last, begin, entries = np.zeros(n, np.bool_), np.empty(n, np.int32), np.empty(n, np.int64)
    for v in range(n):
        last[v], begin[v], entries[v] = True, v, 1 + 2 * counts[v]
        if size[v] <= leaf:
            begin[v] = v - size[v] + 1
            for x in range(begin[v], v):
                last[x] = False
                entries[v] += 1 + 2 * counts[x]
        elif parent[v - 1] == v:
            width, both = v + 1 - begin[v - 1], entries[v - 1] + entries[v]
            if width * (width + 2 * counts[v]) <= (1 + slack) * both + width:
                last[v - 1], begin[v], entries[v] = False, begin[v - 1], both
    return last


@entry
def fronts(arc_starts, higher, starts, front_starts, node_of):
    """Return the front of each node, ascending: the later vertices of its arcs and of the fronts of its children."""
    nodes, front = len(starts) - 1, np.empty(front_starts[-1], np.int32)
    child, sibling = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
    seen = np.full(starts[-1], -1, np.int32)
    for node in range(nodes):
        end, count = starts[node + 1], front_starts[node]
        for i in range(arc_starts[starts[node]], arc_starts[end]):
            if higher[i] >= end and seen[higher[i]] != node:
                seen[higher[i]], front[count] = node, higher[i]
                count += 1
        other = child[node]
        while other >= 0:
            for i in range(front_starts[other], front_starts[other + 1]):
                if front[i] >= end and seen[front[i]] != node:
                    seen[front[i]], front[count] = node, front[i]
                    count += 1
            other = sibling[other]
        if count > front_starts[node]:
            least = front[front_starts[node]]
            for i in range(front_starts[node], count):
                least = min(least, front[i])
            parent = node_of[least]
            sibling[node], child[parent] = child[parent], node
    return _sorted_rows(front_starts, front, starts[-1])


@inner
def _sorted_rows(starts, values, size):
    """Sort each row of values below `size`: sort all entries by value, then distribute them to their rows."""
    places = np.zeros(size + 1, np.int64)
    for value in values:
        places[value + 1] += 1
    for value in range(size):
        places[value + 1] += places[value]
    rows, result, free = np.empty(len(values), np.int32), np.empty_like(values), starts.copy()
    for row in range(len(starts) - 1):
        for i in range(starts[row], starts[row + 1]):
            rows[places[values[i]]] = row
            places[values[i]] += 1
    i = 0
    for value in range(size):
        while i < places[value]:
            result[free[rows[i]]] = value
            free[rows[i]] += 1
            i += 1
    return result

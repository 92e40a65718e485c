"""The size of the largest strongly connected component, by Tarjan's algorithm.

R. Tarjan, Depth-first search and linear graph algorithms (1972), without recursion.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


def largest_component(n: int, tails: np.ndarray, heads: np.ndarray) -> int:
    """Return the number of vertices of the largest strongly connected component of a graph with n vertices.

    >>> largest_component(4, np.array([0, 1, 2, 2]), np.array([1, 0, 1, 3]))
    2
    """
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))])
    return largest_of_rows(starts, heads[np.argsort(tails, kind="stable")])


def largest_of_rows(indptr: np.ndarray, heads: np.ndarray) -> int:
    """Return the same number for arcs in compressed rows."""
    return int(_largest(indptr.astype(np.int64), heads.astype(np.int64)))


@njit(nogil=True, cache=True)
@no_type_check
def _largest(starts, heads):
    """Search depth first; `low` is the least number found from a vertex, and at the root of a component its own."""
    n = len(starts) - 1
    number, low, next_arc = np.full(n, -1, np.int64), np.empty(n, np.int64), starts[:-1].copy()
    path, stack, on_stack = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.bool_)
    found, held, largest = 0, 0, 0
    for root in range(n):
        if number[root] >= 0:
            continue
        depth, path[0] = 0, root
        while depth >= 0:
            vertex = path[depth]
            if number[vertex] < 0:
                number[vertex] = low[vertex] = found
                found += 1
                stack[held] = vertex
                held += 1
                on_stack[vertex] = True
            if next_arc[vertex] < starts[vertex + 1]:
                head = heads[next_arc[vertex]]
                next_arc[vertex] += 1
                if number[head] < 0:
                    depth += 1
                    path[depth] = head
                elif on_stack[head]:
                    low[vertex] = min(low[vertex], number[head])
                continue
            if low[vertex] == number[vertex]:
                size = 0
                while True:
                    held -= 1
                    on_stack[stack[held]] = False
                    size += 1
                    if stack[held] == vertex:
                        break
                largest = max(largest, size)
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[vertex])
    return largest

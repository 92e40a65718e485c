"""Shortest paths of a graph without weights, counted level by level of a breadth-first search.

The arcs of a level are read twice: once in the search, which adds up the numbers of paths, and once on the way back.
Neither loop has a branch or compares levels, although arcs lead to the next level and to any other level:

* The search adds the number of paths of a tail to every head. At heads of the next level this is right; at other heads
  it spoils a number that is not read again, as the numbers of a level are copied before the level's arcs are read.
* On the way back, `shares` is zero except at the vertices of the next level, so that all other heads add zero.
"""

from __future__ import annotations

from gpuops._compiled_numba import entry


@entry
def count_by_levels(indptr, stops, heads, source, order, bounds, paths, seen, counts):
    """Search from `source` and count shortest paths, in float64.

    Parameters
    ----------
    indptr, stops : (n,), (n,) int64
        The arcs out of v are ``indptr[v]`` to ``stops[v] - 1``.
    heads : (m,) uint32
    order : (n + 1,) uint32
        Receives the vertices reached, level by level.
    bounds : (n + 1,) int64
        Receives where each level begins in `order`, and where the last level ends.
    paths, seen : (n,) float64, (n,) uint8
        Working memory.
    counts : (n,) float64
        Receives the number of paths to each vertex of `order`; meaningless if it exceeds `largest`.

    Returns
    -------
    reached, levels : int
    largest : float
        The largest number of paths.
    """
    paths[:], seen[:] = 0.0, 0
    order[0], seen[source], paths[source] = source, 1, 1.0
    begin, size, levels, largest = 0, 1, 0, 1.0
    bounds[0] = 0
    while begin < size:
        end = size
        for place in range(begin, end):
            counts[place] = paths[order[place]]
            largest = max(largest, counts[place])
        for place in range(begin, end):
            tail, count = order[place], counts[place]
            for arc in range(indptr[tail], stops[tail]):
                head = heads[arc]
                order[size] = head
                size += 1 - seen[head]
                seen[head] = 1
                paths[head] += count
        levels += 1
        bounds[levels] = end
        begin = end
    return size, levels, largest


@entry
def depend_by_levels(indptr, stops, heads, order, bounds, levels, counts, shares, dependencies, added, vertices, arcs):
    """Add the dependencies of one source to `vertices`, and to `arcs` unless it is empty.

    Parameters
    ----------
    indptr, stops, heads, order, bounds, counts
        As `count_by_levels` left them.
    levels : int
        Number of levels.
    shares : (n,) float64
        Zero everywhere, before and after the call. In between, (1 + dependency of w) / paths to w for each vertex w of
        the next level.
    dependencies : (n,) float64
        Working memory.
    added : float
        Is added to the dependency of every vertex except the source.
    vertices, arcs : (n,) float64, (m,) or (0,) float64
    """
    for level in range(levels - 1, -1, -1):
        begin, end = bounds[level], bounds[level + 1]
        dependencies[begin:end] = 0.0
        if level < levels - 1:
            for place in range(begin, end):
                tail, total = order[place], 0.0
                for arc in range(indptr[tail], stops[tail]):
                    total += shares[heads[arc]]
                dependencies[place] = counts[place] * total
            if len(arcs) > 0:
                for place in range(begin, end):
                    tail, count = order[place], counts[place]
                    for arc in range(indptr[tail], stops[tail]):
                        arcs[arc] += count * shares[heads[arc]]
            for place in range(end, bounds[level + 2]):
                shares[order[place]] = 0.0
        if level > 0:
            for place in range(begin, end):
                vertex = order[place]
                shares[vertex] = (1.0 + dependencies[place]) / counts[place]
                vertices[vertex] += dependencies[place] + added

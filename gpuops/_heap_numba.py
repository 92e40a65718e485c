"""Dijkstra's algorithm with a heap of four children to a node, for operations that search on a CPU.

A vertex moves up in the heap when its distance falls, so it is in the heap at most once.
"""

from __future__ import annotations

from gpuops._compiled_numba import inner


@inner
def settle(graph, sources, limit, infinity, distances, predecessors, queue, place):
    """Fill a row of distances from the nearest of `sources`, and of predecessors; queue[place[v]] == v while v waits.

    `graph` is (indptr, indices, weights, through); `through` says which vertices a path may pass through, and is empty
    if it may pass through all. The caller fills `distances` with `infinity` and `predecessors` with -1 beforehand; only
    entries of settled vertices change. At the end the last entries of `queue` are the vertices settled.

    Returns the number of vertices settled, and whether a distance may have exceeded the range of its dtype.
    """
    indptr, indices, weights, through = graph
    kind = weights.dtype.type
    size, settled, unfit = 0, 0, False
    for source in sources:
        if distances[source] == infinity:
            distances[source], queue[size], place[source] = 0, source, size
            size += 1
    while size > 0:
        tail = queue[0]
        settled += 1
        size -= 1
        vertex, hole = queue[size], 0
        distance = distances[vertex]
        while True:  # the last vertex of the heap sinks from the top
            child = 4 * hole + 1
            if child >= size:
                break
            nearest, least = child, distances[queue[child]]
            for other in range(child + 1, min(child + 4, size)):
                if distances[queue[other]] < least:
                    nearest, least = other, distances[queue[other]]
            if least >= distance:
                break
            queue[hole] = queue[nearest]
            place[queue[hole]] = hole
            hole = nearest
        queue[hole] = vertex
        place[vertex] = hole
        queue[len(queue) - settled] = tail  # at most n vertices wait or are settled

        if len(through) > 0 and not through[tail] and predecessors[tail] >= 0:
            continue
        start = distances[tail]
        for arc in range(indptr[tail], indptr[tail + 1]):
            head, length = indices[arc], start + weights[arc]  # int32 sums are int64 here
            if length >= distances[head]:
                unfit |= distances[head] == infinity
                continue
            if not length <= limit:
                continue
            if distances[head] == infinity:
                place[head] = size
                size += 1
            distances[head], predecessors[head] = kind(length), tail
            hole = place[head]
            while hole > 0 and distances[queue[(hole - 1) // 4]] > length:  # the head rises
                queue[hole] = queue[(hole - 1) // 4]
                place[queue[hole]] = hole
                hole = (hole - 1) // 4
            queue[hole] = head
            place[head] = hole
    return settled, unfit

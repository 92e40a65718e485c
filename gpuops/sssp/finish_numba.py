"""The end of a search by windows and pulls on a CPU, without potentials. All threads share each step.

1. Pulls, until few vertices come nearer (`gpuops.sssp.search_numba`).
2. Pushes, pass by pass: each vertex that came nearer relaxes all its arcs, until no vertex comes nearer. Distances fall
   by atomic minima. A thread that lowers a distance marks the vertex afterwards, and a thread that relaxes the arcs of
   a vertex first takes the mark away. So a vertex whose distance falls meanwhile keeps a mark.
3. The distances are gathered in the original numbering.

Each thread returns to Python once, at the end. A return of sixteen threads takes a millisecond, as they need Python's
global interpreter lock one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._atomics import exchange, lower, store
from gpuops._compiled_numba import entry, inner
from gpuops.sssp.passes_numba import new_counters, next_range, passes_done
from gpuops.sssp.pulls_numba import pull, pull_rows

_WORD = 8  # marks that are read at once
_RANGES = 128
_NO_LIMIT = 2**62


def finish(graph: Any, distances: np.ndarray, floor: Any, last: Any, outside: np.ndarray) -> int:
    """Make distances final from the time on when pulls are due, and return the number of passes.

    `floor` and `last` are those of `pull`. `outside` has n elements and receives the distances in the original
    numbering, or it has none.
    """
    words = np.zeros(-(-graph.n // _WORD), np.uint64)
    marks, counters = words.view(np.uint8)[: graph.n], (new_counters(), new_counters())
    rank = graph.rank if len(outside) else graph.rank[:0]
    _, passes = pull(
        graph, _finish_rows, distances, floor, last, marks,
        graph.indptr, graph.indices, graph.weights, words, rank, outside, *counters,
    )  # fmt: skip
    return passes + passes_done(counters[0])


@entry
def _finish_rows(
    in_indptr, in_indices, in_weights, potentials, in_lightest, through, distances, marks, floors, last, infinity,
    cuts, counters, few, most, indptr, indices, weights, words, rank, outside, push_counters, gather_counters,
):  # fmt: skip
    """Do all steps, with other threads that do the same."""
    pull_rows(
        in_indptr, in_indices, in_weights, potentials, in_lightest, through, distances, marks, floors, last, infinity,
        cuts, counters, few, most,
    )  # fmt: skip
    number, nearer = -1, 0
    while True:
        number = next_range(push_counters, _RANGES, number, 0, nearer, 0.0, _NO_LIMIT)
        if number < 0:
            break
        place, nearer = number % _RANGES, 0
        for word in range(words.size * place // _RANGES, words.size * (place + 1) // _RANGES):
            if words[word]:
                nearer += _push(indptr, indices, weights, through, distances, marks, word)
    while True:
        number = next_range(gather_counters, _RANGES, number, 0, 0, 0.0, 1)
        if number < 0:
            return
        for i in range(rank.size * number // _RANGES, rank.size * (number + 1) // _RANGES):
            outside[i] = distances[rank[i]]


@inner
def _push(indptr, indices, weights, through, distances, marks, word):
    """Relax the arcs of the marked vertices of a word, and mark the heads that come nearer; return their number."""
    nearer = 0
    for tail in range(_WORD * word, min(_WORD * (word + 1), marks.size)):
        if marks[tail] and exchange(marks, tail, 1, 0) and through[tail]:
            begin = distances[tail]
            for arc in range(indptr[tail], indptr[tail + 1]):
                distance, head = begin + weights[arc], indices[arc]
                if distance < distances[head] and lower(distances, head, distance) > distance:
                    store(marks, head, 1)
                    nearer += 1
    return nearer

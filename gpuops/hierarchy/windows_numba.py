"""The loops of `windows`. Each passes over the columns once or twice; parts without columns take no time.

Indices are unsigned: Numba tests whether a signed index counts from the end, which doubles the time.
"""

from __future__ import annotations

import numpy as np

from gpuops._compiled_numba import entry


@entry
def look_up(places, node_of, brick, node_row, starts, bricks):
    """Return the brick of each place and its row there.

    The number of the upper tree is `bricks`; closed vertices have the number `bricks` + 1.
    """
    part, row = np.empty(places.size, np.int32), np.zeros(places.size, np.int32)
    for i in range(places.size):
        if places[i] >= node_of.size:
            part[i] = bricks + 1
        else:
            node = node_of[places[i]]
            part[i], row[i] = brick[node], node_row[node] + places[i] - starts[node]
    return part, row


@entry
def most_threads(part, parts, window, of_thread, enough):
    """Return the most threads that a window needs. If that is more than `enough`, return any number above `enough`."""
    counts = np.zeros(parts, np.int64)
    most = 0
    for first in range(0, part.size, window):
        last, threads = min(first + window, part.size), 0
        for column in range(first, last):
            own = np.uint64(part[column])
            threads += counts[own] % of_thread == 0
            counts[own] += 1
        for column in range(first, last):
            counts[np.uint64(part[column])] = 0
        most = max(most, threads)
        if most > enough:
            break
    return most


@entry
def share_out(part, parts, window, of_thread, threads, thread_part, numbers, columns):
    """Fill the slots of `threads` threads of each window; all hold -1 before."""
    counts, firsts = np.zeros(parts, np.int64), np.empty(parts, np.int64)  # columns of a part, its first thread
    seen, reciprocals = np.zeros(parts, np.int64), np.empty(parts, np.float64)
    for w in range(thread_part.size // threads):
        first, last = w * window, min((w + 1) * window, part.size)
        for column in range(first, last):
            counts[part[column]] += 1
        thread = w * threads
        for column in range(first, last):
            own = np.uint64(part[column])
            if seen[own] == 0:
                shares = (counts[own] + of_thread - 1) // of_thread
                firsts[own], counts[own], reciprocals[own] = thread, shares, 1 / shares
                for _ in range(shares):
                    thread_part[thread] = part[column]
                    thread += 1
            rank = seen[own]
            seen[own] = rank + 1
            turn = np.int64((rank + 0.5) * reciprocals[own])  # rank / threads of the part, rounded down
            slot = np.uint64((firsts[own] + rank - turn * counts[own]) * of_thread + turn)
            numbers[slot], columns[slot] = column - first, column
        for column in range(first, last):
            own = np.uint64(part[column])
            counts[own] = seen[own] = 0


@entry
def number_absent(numbers, of_window, window, count):
    """Replace -1 for slots without a column: in each window they are numbered on from its last column."""
    for w in range(numbers.size // of_window):
        number = min(window, count - w * window)
        for slot in range(w * of_window, (w + 1) * of_window):
            absent = numbers[slot] < 0
            numbers[slot] = number if absent else numbers[slot]
            number += absent

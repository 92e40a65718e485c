"""Disjoint sets on a CPU, for any number of threads at once; device/union_find.cuh is the same for a GPU.

``parents`` is an array of (n,) int32 or int64, initially ``arange(n)``. Every set is a tree whose members point to
their parents. The root of a tree points to itself and is its least member. So whatever the order of unions and however
threads race, in the end the root of a set is the least member of the set.

No thread undoes a step of another thread. Only a compare-and-swap makes a root point elsewhere, to a smaller element,
and only once. Every other value stored in ``parents[x]`` is an ancestor of x that was found earlier. A thread that
reads an outdated value therefore reads a nearer ancestor of x.

R. J. Anderson, H. Woll, "Wait-free parallel algorithms for the union-find problem", STOC 1991;
J. Jaiganesh, M. Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018.
"""

from __future__ import annotations

from gpuops._atomics import exchange
from gpuops._compiled_numba import entry, inner


@inner
def find(parents, x):
    """Return the root of the set of x. Halves the path: elements of the path come to point two steps further."""
    parent = parents[x]
    while parent != x:
        grandparent = parents[parent]
        if grandparent != parent:
            parents[x] = grandparent
        x, parent = parent, grandparent
    return x


@inner
def unite(parents, a, b):
    """Unite the sets of a and b. Returns true if they were two sets; of several racing calls, only one returns true."""
    a, b = find(parents, a), find(parents, b)
    while a != b:
        if a < b:
            a, b = b, a
        if exchange(parents, a, a, b):
            return True
        a = find(parents, a)  # another thread has made this root point elsewhere
    return False


@entry
def flatten(parents, first, last):
    """Make the elements `first` to `last` - 1 point to their roots, after all unions are done.

    Threads may flatten different ranges at once: no thread stores in the range of another thread, so no older ancestor
    comes back.
    """
    for x in range(first, last):
        parent = parents[x]
        grandparent = parents[parent]
        while grandparent != parent:
            parent, grandparent = grandparent, parents[grandparent]
        parents[x] = parent

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

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpuops._compiled_numba import entry, inner


@intrinsic
def _compare_and_swap(typing: Any, parents: Any, x: Any, expected: Any, value: Any) -> Any:
    """Store `value` in parents[x] if it holds `expected`, and return the previous parents[x]; one atomic step."""
    if not (isinstance(parents, types.Array) and isinstance(x, types.Integer)):
        return None
    word = parents.dtype

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, old, new = arguments
        old, new = (
            context.cast(builder, value, kind, word) for value, kind in zip((old, new), signature.args[2:], strict=True)
        )
        array = context.make_array(parents)(context, builder, array)
        index = context.cast(builder, index, signature.args[1], types.intp)
        place = cgutils.get_item_pointer(context, builder, parents, array, [index])
        swap = builder.cmpxchg(place, old, new, "acq_rel", "acquire")
        return builder.extract_value(swap, 0)

    return word(parents, x, expected, value), build


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
        seen = _compare_and_swap(parents, a, a, b)
        if seen == a:
            return True
        a = find(parents, seen)
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

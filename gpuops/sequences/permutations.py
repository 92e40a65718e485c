"""Permutations in lexicographic order, any stretch of them: the one with a given rank needs none before it.

The first element of permutation r of n different ones is number r div (n - 1)! of what is left, and so on with the rest
of r: the digits of r in factorial base. Where elements repeat, each arrangement is one permutation, and as many begin
with an element as there are of the others: n! / (c1! c2! ...), times its share of what is left. A GPU finds each
permutation like this; a core does so for the first of a stretch and goes on from each to the next.

D. E. Knuth, "The Art of Computer Programming", volume 4A, 7.2.1.2.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuops.arrays import check_vectors, is_cupy, like
from gpuops.sequences import permutations_cuda, permutations_numba

_CHUNK_BYTES = 64 << 20


def permutation_count(values: Any) -> int:
    """How many permutations there are, exactly.

    Parameters
    ----------
    values : int or (n,) array
        As in `permutations`.

    Returns
    -------
    int

    Examples
    --------
    >>> permutation_count(10), permutation_count(np.array([1, 1, 2, 2]))
    (3628800, 6)
    """
    return _arrangements(_kinds(values)[1])


def permutations(values: Any, first: int = 0, count: int | None = None) -> Any:
    """Permutations by rank, in lexicographic order.

    Parameters
    ----------
    values : int or (n,) array
        What is arranged: 0 to n - 1, or numbers of any dtype, NumPy or CuPy, in any order. Equal ones do not count as
        different. At most 256 different ones.
    first : int
        Rank of the first permutation, from 0. Rank 0 is ascending.
    count : int, optional
        Default: all from there on.

    Returns
    -------
    (count, n) array
        Of the dtype of `values`; uint8 for an int.

    Raises
    ------
    TypeError
        Neither an int nor an array.
    ValueError
        A rank that there is not, more than the memory of the device has room for (the message says how much it would
        take), or on a GPU 2^63 permutations and more.

    Examples
    --------
    >>> permutations(5, first=5, count=1)
    array([[0, 1, 4, 3, 2]], dtype=uint8)
    """
    kinds, repeats = _kinds(values)
    total = _arrangements(repeats)
    count = _stretch(total, first, count)
    length = sum(repeats)
    needed = count * length * (1 + (kinds.itemsize if kinds.itemsize > 1 else 0))
    on_gpu = is_cupy(values)
    room = _memory(values.device.id if on_gpu else None)
    if needed > room:
        raise ValueError(
            f"{count:,} permutations of {length} elements take {needed / 1e9:,.1f} GB, and there are {room / 1e9:,.1f}"
            "; take fewer by count, or go through permutation_chunks"
        )
    if on_gpu:
        if total >= 2**63:
            raise ValueError(f"there are {total:,} permutations, and a GPU counts to 2^63; pass a NumPy array")
        codes = permutations_cuda.permute(values.device, repeats, total, first, count)
    else:
        codes = permutations_numba.permute(_unranked, repeats, first, count)
    if kinds.dtype == np.uint8 and np.array_equal(kinds, np.arange(len(kinds))):
        return codes
    return like(codes, kinds)[codes]


def permutation_chunks(
    values: Any, first: int = 0, count: int | None = None, *, rows: int | None = None
) -> Iterator[Any]:
    """The permutations of `permutations`, a part at a time: no more than one is in memory.

    Parameters
    ----------
    values, first, count
        As in `permutations`.
    rows : int, optional
        Permutations in a part; default what 64 MiB hold, at least one.

    Yields
    ------
    (rows, n) array
        The last one may be shorter.

    Raises
    ------
    ValueError
        As `permutations`, or `rows` below 1.
    """
    kinds, repeats = _kinds(values)
    count = _stretch(_arrangements(repeats), first, count)
    rows = max(1, _CHUNK_BYTES // max(1, sum(repeats) * kinds.itemsize)) if rows is None else rows
    if rows < 1:
        raise ValueError(f"rows is {rows}; a part has at least one")
    return (
        permutations(values, start, min(rows, first + count - start)) for start in range(first, first + count, rows)
    )


def permutation_rank(permutation: Any) -> int:
    """The rank of a permutation among those of its elements, exactly, however many.

    Parameters
    ----------
    permutation : (n,) array
        NumPy or CuPy.

    Returns
    -------
    int

    Examples
    --------
    >>> permutation_rank(np.array([0, 2, 4, 1, 3]))
    10
    """
    check_vectors({"permutation": permutation})
    kinds, codes = np.unique(_on_host(permutation), return_inverse=True)
    left = np.bincount(codes, minlength=len(kinds)).tolist()
    arrangements, rank = _arrangements(left), 0
    for remaining, code in zip(range(len(codes), 0, -1), codes.tolist(), strict=True):
        rank += arrangements * sum(left[:code]) // remaining
        arrangements = arrangements * left[code] // remaining
        left[code] -= 1
    return rank


def next_permutation(permutation: Any) -> Any:
    """The permutation that follows in lexicographic order.

    Parameters
    ----------
    permutation : (n,) array
        NumPy or CuPy; elements may repeat.

    Returns
    -------
    (n,) array or None
        None after the last one.

    Examples
    --------
    >>> next_permutation(np.array([1, 3, 2, 2]))
    array([2, 1, 2, 3])
    """
    check_vectors({"permutation": permutation})
    kinds, codes = np.unique(_on_host(permutation), return_inverse=True)
    return like(permutation, kinds[codes]) if permutations_numba.advance(codes) else None


def _kinds(values: Any) -> tuple[Any, list[int]]:
    """What is arranged, ascending and each once, on the host; and how often each occurs."""
    if isinstance(values, int | np.integer):
        if values < 0:
            raise ValueError(f"values is {values}; there are no permutations of fewer than no elements")
        values = np.arange(values) if values > 256 else np.arange(values, dtype=np.uint8)
    check_vectors({"values": values})
    kinds, repeats = np.unique(_on_host(values), return_counts=True)
    if len(kinds) > 256:
        raise ValueError(f"values has {len(kinds):,} different elements; at most 256 can be arranged")
    return kinds, repeats.tolist()


def _arrangements(repeats: list[int]) -> int:
    result, length = 1, 0
    for count in repeats:
        length += count
        result *= math.comb(length, count)
    return result


def _stretch(total: int, first: int, count: int | None) -> int:
    if not 0 <= first <= total:
        raise ValueError(f"first is {first:,}; ranks go from 0 to {total - 1:,}")
    count = total - first if count is None else count
    if not 0 <= count <= total - first:
        raise ValueError(f"count is {count:,}; from rank {first:,} on there are {total - first:,} permutations")
    return count


def _unranked(repeats: list[int], rank: int) -> np.ndarray:
    """The permutation of a rank, as numbers of kinds."""
    left, arrangements = list(repeats), _arrangements(repeats)
    codes = np.empty(sum(repeats), np.uint8)
    for place, remaining in enumerate(range(len(codes), 0, -1)):
        code = 0
        while rank >= (these := arrangements * left[code] // remaining):
            rank -= these
            code += 1
        codes[place], arrangements = code, these
        left[code] -= 1
    return codes


@functools.cache
def _memory(device: int | None) -> int:
    """Bytes in all, of a GPU or the host."""
    if device is None:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    import cupy

    return int(cupy.cuda.Device(device).mem_info[1])


def _on_host(array: Any) -> np.ndarray:
    return array.get() if is_cupy(array) else array

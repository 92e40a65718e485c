"""Permutations in lexicographic order, from any rank on: the permutation with a given rank needs no other permutation.

The first element of permutation r of n different elements is number r div (n - 1)! of the elements, and so on with the
remainder of r among the elements left: the digits of r in factorial base. If elements repeat, equal elements are not
told apart: n elements, of which c1, c2, ... are equal, have n! / (c1! c2! ...) permutations, and c1 / n of the
permutations begin with the first kind of element. A GPU finds each permutation from its rank. A CPU thread finds only
the first permutation of a range from its rank, and then each permutation from the one before.

D. E. Knuth, "The Art of Computer Programming", volume 4A, 7.2.1.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuops.arrays import check_vectors, is_cupy, like, on_host
from gpuops.memory import refuse_beyond_memory
from gpuops.sequences import permutations_cuda, permutations_numba

_CHUNK_BYTES = 1 << 20  # a chunk stays in the cache of a core: 10! permutations of 10 come in 35 chunks


def permutation_count(values: Any) -> int:
    """Return the exact number of permutations.

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
    """Return permutations by rank, in lexicographic order.

    Parameters
    ----------
    values : int or (n,) array
        The elements: an int n for 0 to n - 1, or a NumPy or CuPy array of numbers of any dtype, in any order. Equal
        elements are not told apart. At most 256 elements may be different.
    first : int
        Rank of the first permutation, from 0. The permutation of rank 0 is ascending.
    count : int, optional
        Number of permutations. Default: all from `first` on.

    Returns
    -------
    (count, n) array
        The dtype of `values`; uint8 for an int.

    Raises
    ------
    TypeError
        `values` is neither an int nor an array.
    ValueError
        There is no such rank, the memory of the device cannot hold the result (the message states its size), or there
        are 2^63 or more permutations on a GPU.

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
    refuse_beyond_memory(
        needed,
        f"{count:,} permutations of {length} elements take",
        "take fewer by count, or go through permutation_chunks",
        values.device.id if on_gpu else None,
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
    """Yield the permutations of `permutations` in chunks; only one chunk at a time is in memory.

    Parameters
    ----------
    values, first, count
        As in `permutations`.
    rows : int, optional
        Permutations in a chunk. Default: the number that fits in 1 MiB, at least one.

    Yields
    ------
    (rows, n) array
        The last chunk may be shorter.

    Raises
    ------
    ValueError
        As in `permutations`, or `rows` is below 1.

    Examples
    --------
    >>> for chunk in gpuops.permutation_chunks(np.array([1, 2, 3]), rows=4):
    ...     print(len(chunk), chunk[0])
    4 [1 2 3]
    2 [3 1 2]
    """
    kinds, repeats = _kinds(values)
    count = _stretch(_arrangements(repeats), first, count)
    rows = max(1, _CHUNK_BYTES // max(1, sum(repeats) * kinds.itemsize)) if rows is None else rows
    if rows < 1:
        raise ValueError(f"rows is {rows}; a chunk has at least one")
    return (
        permutations(values, start, min(rows, first + count - start)) for start in range(first, first + count, rows)
    )


def permutation_rank(permutation: Any) -> int:
    """Return the exact rank of a permutation among all permutations of its elements.

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
    kinds, codes = np.unique(on_host(permutation), return_inverse=True)
    left = np.bincount(codes, minlength=len(kinds)).tolist()
    arrangements, rank = _arrangements(left), 0
    for remaining, code in zip(range(len(codes), 0, -1), codes.tolist(), strict=True):
        rank += arrangements * sum(left[:code]) // remaining
        arrangements = arrangements * left[code] // remaining
        left[code] -= 1
    return rank


def next_permutation(permutation: Any) -> Any:
    """Return the next permutation in lexicographic order.

    Parameters
    ----------
    permutation : (n,) array
        NumPy or CuPy; elements may repeat.

    Returns
    -------
    (n,) array or None
        None after the last permutation.

    Examples
    --------
    >>> next_permutation(np.array([1, 3, 2, 2]))
    array([2, 1, 2, 3])
    """
    check_vectors({"permutation": permutation})
    kinds, codes = np.unique(on_host(permutation), return_inverse=True)
    return like(permutation, kinds[codes]) if permutations_numba.advance(codes) else None


def _kinds(values: Any) -> tuple[Any, list[int]]:
    """Return the different elements, ascending, on the host, and how often each occurs."""
    if isinstance(values, int | np.integer):
        if values < 0:
            raise ValueError(f"values is {values}; the number of elements must not be negative")
        values = np.arange(values) if values > 256 else np.arange(values, dtype=np.uint8)
    check_vectors({"values": values})
    kinds, repeats = np.unique(on_host(values), return_counts=True)
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
    """Return the permutation with the given rank, as numbers of kinds."""
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

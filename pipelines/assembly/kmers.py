"""Count the k-mers of reads, on both strands together.

A k-mer is a word of k nucleotides, with two bits for each, the first nucleotide in the highest bits. A read may be of
either strand of a genome. So a k-mer and its reverse complement count as one k-mer, represented by the smaller of the
two words. k is odd: a word of odd length differs from its reverse complement in the middle letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, no_type_check

import numba
import numpy as np

from gpuops.recompiling import recompiled_with_imports
from pipelines.formats.reads import BREAK, Batch

MOST = 31  # most letters of a word of odd length in 64 bits


class Kmers(NamedTuple):
    """The k-mers of some reads.

    Attributes
    ----------
    k : int
    codes : (c,) uint64, ascending
        For each k-mer, the smaller of its word and the reverse complement.
    counts : (c,) int64
        The number of times that the k-mer or its reverse complement occurs in the reads.
    reads, bases : int
        Number of reads and of bases that were read; bases that are not A, C, G or T count too.
    """

    k: int
    codes: np.ndarray
    counts: np.ndarray
    reads: int
    bases: int


def count_kmers(batches: Iterable[Batch], k: int) -> Kmers:
    """Count the k-mers of reads; words with another letter than A, C, G or T are left out.

    Parameters
    ----------
    batches : reads, as `pipelines.formats.reads.read_batches` yields them
    k : odd, 3 to 31

    Raises
    ------
    ValueError
        `k` is even or out of range.
    """
    check_k(k)
    held = np.empty(0, np.uint64), np.empty(0, np.int64)
    fresh: list[np.ndarray] = []  # merged when as long as `held`, so that each word is sorted only a few times
    reads = bases = waiting = 0
    for batch in batches:
        reads += batch.reads
        bases += len(batch.codes) - batch.reads
        words = np.empty(len(batch.codes), np.uint64)
        fresh.append(words[: _canonical_words(batch.codes, k, words)])
        waiting += len(fresh[-1])
        if waiting >= len(held[0]):
            held, fresh, waiting = _merged(*held, fresh), [], 0
    return Kmers(k, *_merged(*held, fresh), reads, bases)


def check_k(k: int) -> None:
    """Raise ValueError if `k` is not an odd number from 3 to `MOST`."""
    if not 3 <= k <= MOST:
        raise ValueError(f"k is {k}; give an odd number from 3 to {MOST}")
    if k % 2 == 0:
        raise ValueError(f"k is {k}; give an odd number: a word of even length may be its own reverse complement")


def reverse_complements(codes: np.ndarray, k: int) -> np.ndarray:
    """Return the reverse complement of each word of k letters.

    Parameters
    ----------
    codes : (c,) uint64
    k : 1 to 32

    Returns
    -------
    (c,) uint64
    """
    words = ~codes.astype(np.uint64)
    for bits, mask in (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F):
        words = (words >> np.uint64(bits)) & np.uint64(mask) | (words & np.uint64(mask)) << np.uint64(bits)
    return words.byteswap() >> np.uint64(64 - 2 * k)


def text_of(codes: np.ndarray, k: int) -> list[str]:
    """Return words of k letters as text."""
    shifts = np.arange(2 * (k - 1), -1, -2, dtype=np.uint64)
    letters = np.frombuffer(b"ACGT", np.uint8)[(codes[:, None] >> shifts & np.uint64(3)).astype(np.intp)]
    return [row.tobytes().decode() for row in letters]


def _merged(codes: np.ndarray, counts: np.ndarray, fresh: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return words and their counts, from words that were counted before and `fresh` words."""
    words, times = np.unique(np.concatenate([np.empty(0, np.uint64), *fresh]), return_counts=True)
    words, times = np.concatenate([codes, words]), np.concatenate([counts, times])
    order = np.argsort(words, kind="stable")
    words, times = words[order], times[order]
    first = np.flatnonzero(np.diff(words, prepend=~words[:1]))
    return words[first], np.add.reduceat(times, first) if len(first) else times


@no_type_check
@numba.njit(nogil=True, cache=True)
@recompiled_with_imports
def _canonical_words(codes, k, words):
    """Write each word of the reads, or its reverse complement if that is smaller, to `words`; return their number."""
    mask, top = np.uint64((1 << 2 * k) - 1), np.uint64(2 * (k - 1))
    word, complement = np.uint64(0), np.uint64(0)
    length = count = 0
    for code in codes:
        if code >= BREAK:
            length = 0
            continue
        word = (word << np.uint64(2) | np.uint64(code)) & mask
        complement = complement >> np.uint64(2) | np.uint64(3 - code) << top
        length += 1
        if length >= k:
            words[count] = min(word, complement)
            count += 1
    return count

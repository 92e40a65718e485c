"""The lengths of the terms of a look-and-say sequence, without making the terms.

A term can be divided into pieces that develop independently. The last digit of a piece never changes, and its first
digit ends up in a cycle. If the first digit of the right one of two adjacent pieces never equals the last digit of
the left piece, no run ever extends over both. Pieces that cannot be divided are atoms. After some steps the term of any
seed consists of few kinds of atoms (92, and two families with digits above 3), so it suffices to count the atoms of
each kind, step by step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

_PREFIX = 24  # leading digits of a piece that are followed through the steps, to find its first digits
_SMALL = 2**60  # length of the longest term whose next step still counts atoms in int64


def term_lengths(term: np.ndarray, steps: int) -> Iterator[int]:
    """Yield the length of a term, whose runs are at most 255 long, and the lengths of the `steps` terms after it."""
    atoms = Counter(_apart(term.tobytes()))
    kinds = _kinds(tuple(atoms))
    counts = np.zeros((len(kinds.lengths),), np.int64)
    counts[: len(atoms)] = list(atoms.values())
    yield (length := len(term))
    for _ in range(steps):
        if length > _SMALL:
            counts = counts.astype(object)  # Python integers, which have no limit
        counts = np.add.reduceat(counts[kinds.sources], kinds.starts)
        yield (length := int(counts @ kinds.lengths))


class _Kinds(NamedTuple):
    """All kinds of atoms that some given atoms develop into: the given atoms first, a dummy without digits last."""

    lengths: np.ndarray
    # For each atom in turn, the atoms that produce it in one step; the dummy, which never occurs, if no atom does.
    sources: np.ndarray
    starts: np.ndarray  # for each atom, the place of its first source


@lru_cache(maxsize=16)
def _kinds(first: tuple[bytes, ...]) -> _Kinds:
    numbers = {atom: number for number, atom in enumerate(first)}
    atoms, parts = list(first), []
    for atom in atoms:  # the loop appends to `atoms`
        parts.append(_decay(atom))
        for part in parts[-1]:
            if part not in numbers:
                numbers[part] = len(atoms)
                atoms.append(part)
    sources: list[list[int]] = [[] for _ in atoms]
    for number, of_atom in enumerate(parts):
        for part in of_atom:
            sources[numbers[part]].append(number)
    nothing = len(atoms)
    sources = [of_atom or [nothing] for of_atom in (*sources, [])]
    return _Kinds(
        np.array([*map(len, atoms), 0]),
        np.array([number for of_atom in sources for number in of_atom]),
        np.array([0, *accumulate(map(len, sources[:-1]))]),
    )


@lru_cache(maxsize=4096)
def _decay(atom: bytes) -> tuple[bytes, ...]:
    return _apart(_said(atom))


def _runs(word: bytes) -> list[tuple[int, int]]:
    """Return the count and the digit of every run."""
    runs, first = [], 0
    for i in range(1, len(word) + 1):
        if i == len(word) or word[i] != word[first]:
            runs.append((i - first, word[first]))
            first = i
    return runs


def _said(word: bytes) -> bytes:
    return bytes(x for run in _runs(word) for x in run)


def _apart(word: bytes) -> tuple[bytes, ...]:
    """Divide a word into pieces that develop independently."""
    pieces, first = [], 0
    for i in range(1, len(word)):
        if word[i] != word[i - 1] and word[i - 1] not in _beginnings(word[i : i + _PREFIX], i + _PREFIX >= len(word)):
            pieces.append(word[first:i])
            first = i
    return (*pieces, word[first:]) if word else ()


@lru_cache(maxsize=65536)
def _beginnings(prefix: bytes, whole: bool) -> frozenset[int]:
    """Return the first digits of a word and of all later terms of it; all digits if the prefix is too short to tell.

    `whole`: the prefix is the whole word. Otherwise the last run of the prefix may be longer in the word, so this run
    is left out of the next prefix.
    """
    digits, seen = set(), set()
    while (prefix, whole) not in seen:
        seen.add((prefix, whole))
        digits.add(prefix[0])
        runs = _runs(prefix)
        following = bytes(x for run in (runs if whole else runs[:-1]) for x in run)
        if not following:
            return frozenset(range(256))
        prefix, whole = following[:_PREFIX], whole and len(following) <= _PREFIX
    return frozenset(digits)

"""How long the terms of a look-and-say sequence are, without making them.

A term falls apart into pieces that never touch: the last digit of a piece stays what it is, so two neighbours are apart
for ever if the first digit of the right one, which goes around in a cycle, never equals it. Pieces that cannot be
divided are atoms. After some steps a term of any seed consists of few kinds of them (92, and two families with digits
above 3), so to count the atoms of each kind is enough, step by step.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

_PREFIX = 24  # digits of a piece whose future is followed, to know how it begins
_SMALL = 2**60  # terms no longer than this have 64-bit numbers of atoms, and so has the next one


def term_lengths(term: np.ndarray, steps: int) -> list[int]:
    """The lengths of a term without runs above 255, and of the `steps` terms after it."""
    atoms = Counter(_apart(term.tobytes()))
    kinds = _kinds(tuple(atoms))
    counts = np.zeros((len(kinds.lengths),), np.int64)
    counts[: len(atoms)] = list(atoms.values())
    lengths = [len(term)]
    for _ in range(steps):
        if lengths[-1] > _SMALL:
            counts = counts.astype(object)  # integers without a limit
        counts = np.add.reduceat(counts[kinds.sources], kinds.starts)
        lengths.append(int(counts @ kinds.lengths))
    return lengths


class _Kinds(NamedTuple):
    """All atoms that come from some: first these, last an empty one, which there never is."""

    lengths: np.ndarray
    sources: (
        np.ndarray
    )  # one after the other for each atom, those of which it is a part; the empty one if there is none
    starts: np.ndarray  # of each atom's sources


@lru_cache(maxsize=16)
def _kinds(first: tuple[bytes, ...]) -> _Kinds:
    numbers = {atom: number for number, atom in enumerate(first)}
    atoms, parts = list(first), []
    for atom in atoms:  # which grows on the way
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
    """Counts and digits."""
    runs, first = [], 0
    for i in range(1, len(word) + 1):
        if i == len(word) or word[i] != word[first]:
            runs.append((i - first, word[first]))
            first = i
    return runs


def _said(word: bytes) -> bytes:
    return bytes(x for run in _runs(word) for x in run)


def _apart(word: bytes) -> tuple[bytes, ...]:
    """The pieces of a word that never touch."""
    pieces, first = [], 0
    for i in range(1, len(word)):
        if word[i] != word[i - 1] and word[i - 1] not in _beginnings(word[i : i + _PREFIX], i + _PREFIX >= len(word)):
            pieces.append(word[first:i])
            first = i
    return (*pieces, word[first:]) if word else ()


@lru_cache(maxsize=65536)
def _beginnings(prefix: bytes, whole: bool) -> frozenset[int]:
    """The first digits of a word and of all that comes after it, or all digits where too little of it is known.

    `whole` says that the prefix is the word. Else its last run may go on, so that it is left out of the next prefix.
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

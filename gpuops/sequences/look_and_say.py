"""The look-and-say sequence: every term describes the previous term, run by run, as count and digit.

1, 11, 21, 1211, 111221, ... A step marks where runs begin, finds each run's place by a prefix sum, and stores count and
digit there. The lengths of terms are known beforehand (`gpuops.sequences.atoms`), so on a GPU all steps are launched
without waiting for results.

A run of more than 9 digits can only come from a seed. Its count is stored as one element, as in the article below, or
as decimal digits, as when one says it aloud. After the first steps no run is longer than 3.

J. H. Conway, "The weird and wonderful chemistry of audioactive decay", 1987; fierval, "Look-and-say:
[Alea.]CUDA", 6 January 2016.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._halves import half_of
from gpuops.arrays import check_vectors, contiguous, is_cupy, like, on_host
from gpuops.memory import refuse_beyond_memory
from gpuops.sequences.atoms import term_lengths

LONG_RUNS = ("digits", "element")


def look_and_say(seed: Any, steps: int, *, long_runs: str = "digits") -> Any:
    """Return the term of the look-and-say sequence that follows `steps` steps after a seed.

    Parameters
    ----------
    seed : str, or (n,) uint8 array
        Digits. An array is a NumPy or CuPy array; its elements may exceed 9 if `long_runs` is "element".
    steps : int
    long_runs : {"digits", "element"}
        How a run of ten ones is described: "digits": 1, 0, 1; "element", with the count as one element: 10, 1.

    Returns
    -------
    (m,) uint8 array
        NumPy for a str.

    Raises
    ------
    TypeError
        The seed is neither text nor an array of uint8.
    ValueError
        The seed has elements that are not digits, or a run too long for one element; `steps` is negative; there is no
        such `long_runs`; or the memory of the device cannot hold a term (the message states the length of the term).

    Examples
    --------
    >>> "".join(map(str, look_and_say("1", 5)))
    '312211'
    """
    term, left = _short_runs(_checked(seed, steps, long_runs), steps, long_runs)
    host = on_host(term)
    if left == 0 or len(term) == 0 or np.array_equal(host, [2, 2]):  # 22 describes itself
        return term if is_cupy(term) else np.array(term)
    lengths: list[int] = []
    for length in term_lengths(host, left):
        refuse_beyond_memory(
            length + (lengths[-1] if lengths else 0),
            f"a term of {length:,} digits, {len(lengths) + steps - left} steps after the seed, and the one before take",
            "take fewer steps, or the lengths alone by look_and_say_lengths",
            term.device.id if is_cupy(term) else None,
        )
        lengths.append(length)
    return half_of("sequences.look_and_say", term).say(term, lengths)


def look_and_say_lengths(seed: Any, steps: int, *, long_runs: str = "digits") -> list[int]:
    """Return the lengths of a seed and of the `steps` terms after it, exact at any length; the terms are not made.

    Parameters
    ----------
    seed, steps, long_runs
        As in `look_and_say`.

    Returns
    -------
    list of int

    Examples
    --------
    >>> look_and_say_lengths("1", 10)
    [1, 2, 2, 4, 6, 6, 8, 10, 14, 20, 26]
    >>> look_and_say_lengths("1", 1000)[-1] > 10**114
    True
    """
    term = _checked(seed, steps, long_runs)
    first = [len(term)]
    for _ in range(steps):
        if _longest_run(term) <= 9:
            break
        term = _said(term, long_runs)
        first.append(len(term))
    host = on_host(term)
    return [*first[:-1], *term_lengths(host, steps + 1 - len(first))]


def _checked(seed: Any, steps: int, long_runs: str) -> Any:
    if long_runs not in LONG_RUNS:
        raise ValueError(f"long_runs is {long_runs!r}; choose digits or element")
    if steps < 0:
        raise ValueError(f"steps is {steps}; it must not be negative")
    if isinstance(seed, str):
        if not (seed.isascii() and seed.isdigit()):
            raise ValueError(f"the seed {seed!r} is not a row of digits, such as 1113122113")
        return np.frombuffer(seed.encode(), np.uint8) - np.uint8(ord("0"))
    check_vectors({"seed": seed})
    if seed.dtype != np.uint8:
        raise TypeError(f"seed is {seed.dtype}; pass a str of digits or an array of uint8")
    if long_runs == "digits" and len(seed) and int(seed.max()) > 9:
        raise ValueError(f"seed has the element {int(seed.max())}, which is not a digit; or pass long_runs='element'")
    return contiguous(seed)


def _short_runs(term: Any, steps: int, long_runs: str) -> tuple[Any, int]:
    """Take steps until no run is longer than 9; return the term and the number of steps left."""
    while steps and _longest_run(term) > 9:
        term, steps = _said(term, long_runs), steps - 1
    return term, steps


def _longest_run(term: Any) -> int:
    return int(_runs(term)[0].max(initial=0))


def _runs(term: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts and the digits of all runs."""
    host = on_host(term)
    heads = np.flatnonzero(np.diff(host, prepend=host[:1] ^ 1))
    return np.diff(heads, append=len(host)), host[heads]


def _said(term: Any, long_runs: str) -> Any:
    """Take one step from any term, on the host."""
    counts, digits = _runs(term)
    if long_runs == "digits":
        text = "".join(f"{count}{digit}" for count, digit in zip(counts.tolist(), digits.tolist(), strict=True))
        return like(term, np.frombuffer(text.encode(), np.uint8) - np.uint8(ord("0")))
    if counts.max(initial=0) > 255:
        raise ValueError(
            f"the seed has a run of {counts.max():,}, and an element counts to 255; pass long_runs='digits'"
        )
    return like(term, np.column_stack((counts, digits)).astype(np.uint8).ravel())

"""De Bruijn sequences: every word of a given length over an alphabet once, by an Euler circuit.

The vertices of the de Bruijn graph are the words of ``order - 1`` letters, its arcs the words of ``order`` letters: arc
``w x`` leads from w without x to w without its first letter. Each vertex has one arc in and one out for each letter, so
there is an Euler circuit, and the last letters of its arcs are the sequence [1]_. A lock that looks at the last four
digits alone is opened by 10,003 keys at most, where the 10,000 numbers one by one take 40,000.

.. [1] N. G. de Bruijn, "A combinatorial problem", Indagationes Mathematicae 8 (1946).
"""

from __future__ import annotations

import operator

import numpy as np

from gpuops import euler_circuit
from gpuops.errors import VerificationError
from pipelines.workers.capacity import DoesNotFitError
from pipelines.workers.memory import available_memory
from pipelines.workers.progress import size

ARC_BYTES = 48  # of memory for each word: the graph, the walk, its letters


def de_bruijn_sequence(alphabet: str, order: int, *, cyclic: bool = False) -> str:
    """The shortest text that holds every word of `order` letters of the alphabet once.

    Parameters
    ----------
    alphabet : letters, each once
    order : letters in a word, from 1
    cyclic : the text is read around: leave out the `order` - 1 letters at its end that repeat those at its beginning

    Returns
    -------
    str
        a^order letters of an alphabet of a letters, and ``order - 1`` more unless `cyclic`. It begins with the first
        letter of the alphabet, `order` times.

    Raises
    ------
    ValueError
        A letter stands in the alphabet twice, or an argument is out of range.
    DoesNotFitError
        The words do not fit in memory.
    """
    repeated = next((letter for letter in alphabet if alphabet.count(letter) > 1), None)
    if repeated is not None:
        raise ValueError(f"alphabet: {repeated!r} is there twice; give each letter once")
    codes = de_bruijn_codes(len(alphabet), order, cyclic=cyclic)
    letters = np.array([ord(letter) for letter in alphabet], np.uint32)
    return letters[codes].tobytes().decode("utf-32-le" if np.little_endian else "utf-32-be")


def de_bruijn_codes(letters: int, order: int, *, cyclic: bool = False) -> np.ndarray:
    """As `de_bruijn_sequence`, of letters 0, 1, ..., `letters` - 1: uint8 up to 256 letters, uint32 beyond."""
    letters, order = operator.index(letters), operator.index(order)
    if letters < 1:
        raise ValueError("alphabet: it is empty; give at least one letter")
    if order < 1:
        raise ValueError(f"order is {order}; give a whole number from 1")
    _refuse_what_cannot_fit(letters, order)
    vertices = letters ** (order - 1)
    arcs = np.arange(vertices * letters)
    walk, _ = euler_circuit(np.arange(0, len(arcs) + 1, letters), arcs % vertices, method="hierholzer")
    walk = np.roll(walk, order - 1 - int(np.flatnonzero(walk == 0)[0]))  # the word of first letters ends the prefix
    codes = (walk % letters).astype(np.uint8 if letters <= 256 else np.uint32)
    return codes if cyclic else np.resize(codes, len(codes) + order - 1)


def verify_de_bruijn(codes: np.ndarray, letters: int, order: int) -> None:
    """Prove that every word of `order` letters is in a cyclic sequence once.

    Parameters
    ----------
    codes : (letters ** order,) integers
        As `de_bruijn_codes` returns them with ``cyclic=True``.

    Raises
    ------
    VerificationError
        Names a word that is missing.
    """
    count = letters**order
    if len(codes) != count:
        raise VerificationError(f"the sequence has {len(codes):,} letters; {count:,} words need as many")
    words = np.zeros(count, np.int64)
    for shift in range(order):
        words = words * letters + np.roll(codes, -shift)
    missing = np.flatnonzero(np.bincount(words, minlength=count) == 0)
    if len(missing):
        word = [int(missing[0]) // letters**place % letters for place in reversed(range(order))]
        raise VerificationError(f"the word {word} is missing, one of {len(missing):,}")


def _refuse_what_cannot_fit(letters: int, order: int) -> None:
    free = available_memory()
    most = int(np.log(free / ARC_BYTES) / np.log(letters)) if letters > 1 else int(free / ARC_BYTES)
    if order > most:  # letters ** order itself may be too large a number to work out
        raise DoesNotFitError(
            f"order {order}: there are {letters}^{order} words, which take {ARC_BYTES} bytes each, and {size(free)} of"
            f" memory are free; give an order of {most} at most"
        )

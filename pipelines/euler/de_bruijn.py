"""De Bruijn sequences, which hold every word of a given length over an alphabet once, by an Euler circuit.

The vertices of the de Bruijn graph are the words of ``order - 1`` letters, and its arcs are the words of ``order``
letters. An arc leads from its word without the last letter to its word without the first letter. Each vertex has one
incoming and one outgoing arc for each letter, so there is an Euler circuit. The last letters of its arcs are the
sequence [1]_. For example, a lock that looks only at the last four digits is opened by at most 10,003 keystrokes;
typing the 10,000 numbers one by one takes 40,000.

.. [1] N. G. de Bruijn, "A combinatorial problem", Indagationes Mathematicae 8 (1946).
"""

from __future__ import annotations

import operator

import numpy as np

from gpuops import euler_circuit
from gpuops.errors import VerificationError
from gpuops.memory import available_memory, size
from pipelines.workers.capacity import DoesNotFitError

ARC_BYTES = 48  # bytes of memory for each word: the graph, the walk, its letters


def de_bruijn_sequence(alphabet: str, order: int, *, cyclic: bool = False) -> str:
    """Return the shortest text that holds every word of `order` letters of the alphabet once.

    Parameters
    ----------
    alphabet : letters, each once
    order : number of letters in a word, from 1
    cyclic : True for a cyclic text: leave out the last `order` - 1 letters, which repeat the first `order` - 1 letters

    Returns
    -------
    str
        For an alphabet of a letters, a^order letters, and ``order - 1`` more letters unless `cyclic`. The text begins
        with the first letter of the alphabet, `order` times.

    Raises
    ------
    ValueError
        A letter occurs twice in the alphabet, or an argument is out of range.
    DoesNotFitError
        The words do not fit in memory.

    Examples
    --------
    >>> tilepath.de_bruijn_sequence("01", 3)
    '0001011100'
    >>> tilepath.de_bruijn_sequence("01", 3, cyclic=True)
    '00010111'
    """
    repeated = next((letter for letter in alphabet if alphabet.count(letter) > 1), None)
    if repeated is not None:
        raise ValueError(f"alphabet: {repeated!r} occurs twice; give each letter once")
    codes = de_bruijn_codes(len(alphabet), order, cyclic=cyclic)
    letters = np.array([ord(letter) for letter in alphabet], np.uint32)
    return letters[codes].tobytes().decode("utf-32-le" if np.little_endian else "utf-32-be")


def de_bruijn_codes(letters: int, order: int, *, cyclic: bool = False) -> np.ndarray:
    """Return the sequence of `de_bruijn_sequence` for the letters 0, 1, ..., `letters` - 1.

    The dtype is uint8 for up to 256 letters, and uint32 for more letters.
    """
    letters, order = operator.index(letters), operator.index(order)
    if letters < 1:
        raise ValueError("alphabet: it is empty; give at least one letter")
    if order < 1:
        raise ValueError(f"order is {order}; give a whole number from 1")
    _refuse_what_cannot_fit(letters, order)
    vertices = letters ** (order - 1)
    arcs = np.arange(vertices * letters)
    walk, _ = euler_circuit(np.arange(0, len(arcs) + 1, letters), arcs % vertices, method="hierholzer")
    walk = np.roll(walk, order - 1 - int(np.flatnonzero(walk == 0)[0]))  # begin with `order` times the first letter
    codes = (walk % letters).astype(np.uint8 if letters <= 256 else np.uint32)
    return codes if cyclic else np.resize(codes, len(codes) + order - 1)


def verify_de_bruijn(codes: np.ndarray, letters: int, order: int) -> None:
    """Prove that a cyclic sequence holds every word of `order` letters once.

    Parameters
    ----------
    codes : (letters ** order,) integers
        The sequence, as `de_bruijn_codes` returns it with ``cyclic=True``.

    Raises
    ------
    VerificationError
        The sequence has a wrong length, or a word is missing; the message names the word.
    """
    count = letters**order
    if len(codes) != count:
        raise VerificationError(f"the sequence has {len(codes):,} letters; {count:,} words need one letter each")
    words = np.zeros(count, np.int64)
    for shift in range(order):
        words = words * letters + np.roll(codes, -shift)
    missing = np.flatnonzero(np.bincount(words, minlength=count) == 0)
    if len(missing):
        word = [int(missing[0]) // letters**place % letters for place in reversed(range(order))]
        raise VerificationError(f"the word {word} is missing, one of {len(missing):,} missing words")


def _refuse_what_cannot_fit(letters: int, order: int) -> None:
    free = available_memory()
    most = int(np.log(free / ARC_BYTES) / np.log(letters)) if letters > 1 else int(free / ARC_BYTES)
    if order > most:  # compare orders, because letters ** order may be too large a number to compute
        raise DoesNotFitError(
            f"order {order}: there are {letters}^{order} words, which take {ARC_BYTES} bytes each, but only "
            f"{size(free)} of memory are free; give an order of {most} at most"
        )

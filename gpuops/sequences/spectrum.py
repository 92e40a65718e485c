"""Cyclic spectra: the masses of all pieces of a cyclic peptide.

A peptide of n amino acids in a ring has n (n - 1) pieces of 1 to n - 1 neighbours. With nothing and the whole ring its
theoretical spectrum has n (n - 1) + 2 masses. The piece of k from place i on weighs P[i + k] - P[i], P being the prefix
sums of two turns, so that each value costs one subtraction.

Where masses are small integers, sums are counted, not sorted: a piece and the rest of the ring weigh the total
together, so that half of the pieces are enough, and counts alone say what is too long to hold.

P. Compeau, P. Pevzner, "Bioinformatics Algorithms", 2015, chapter 4; fierval, "Non-linear thinking with CUDA", 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops.arrays import check_vectors, is_cupy, library_of
from gpuops.sequences import spectrum_cuda, spectrum_numba

# Whole masses in dalton.
AMINO_ACIDS = {
    **{"G": 57, "A": 71, "S": 87, "P": 97, "V": 99, "T": 101, "C": 103, "I": 113, "L": 113, "N": 114},
    **{"D": 115, "K": 128, "Q": 128, "E": 129, "M": 131, "H": 137, "F": 147, "R": 156, "Y": 163, "W": 186},
}
_LARGEST_TOTAL = 2**62


def peptide_masses(letters: str) -> np.ndarray:
    """The masses of a peptide, amino acid by amino acid.

    Parameters
    ----------
    letters : str
        Of the 20 amino acids, such as NQEL; small letters will do.

    Returns
    -------
    (n,) int64 array

    Raises
    ------
    ValueError
        Another letter; the message says where.

    Examples
    --------
    >>> peptide_masses("NQEL")
    array([114, 128, 129, 113])
    """
    for place, letter in enumerate(letters.upper(), start=1):
        if letter not in AMINO_ACIDS:
            raise ValueError(f"letter {place} of the peptide is {letter!r}; amino acids are {' '.join(AMINO_ACIDS)}")
    return np.array([AMINO_ACIDS[letter] for letter in letters.upper()], np.int64)


def cyclic_spectrum(masses: Any, *, ordered: bool = True) -> Any:
    """The masses of all pieces of a ring.

    Parameters
    ----------
    masses : (n,) array of integers
        NumPy or CuPy, in the order of the ring.
    ordered : bool
        Ascending. Else nothing comes first, then the pieces of 1, of 2, ... by the place where they begin, the whole
        ring last.

    Returns
    -------
    (n (n - 1) + 2,) int64 array
        For n = 0, (1,): nothing weighs 0.

    Raises
    ------
    TypeError
        Not an array of integers.
    ValueError
        Not one dimension, or sums from 2^62 on.

    Examples
    --------
    >>> cyclic_spectrum(np.array([57, 71, 113]))
    array([  0,  57,  71, 113, 128, 170, 184, 241])
    """
    masses = _checked(masses)
    xp, n = library_of(masses), len(masses)
    if n == 0:
        return xp.zeros((1,), np.int64)
    half: Any = spectrum_cuda if is_cupy(masses) else spectrum_numba
    if not ordered:
        return half.sums(_prefix_sums(masses))
    total = int(masses.sum())
    # A table that is longer than what it counts is slower than sorting.
    if int(masses.min()) >= 0 and total < n * n:
        return half.expanded(half.counts(_prefix_sums(masses), total), n * (n - 1) + 2)
    result = half.sums(_prefix_sums(masses))
    result.sort()
    return result


def cyclic_spectrum_counts(masses: Any) -> Any:
    """How many pieces of a ring have each mass: the spectrum where its n (n - 1) + 2 values do not fit.

    Parameters
    ----------
    masses : (n,) array of integers
        NumPy or CuPy, not negative.

    Returns
    -------
    (total + 1,) int64 array
        By mass, from 0 to that of the whole ring; 8 bytes each.

    Raises
    ------
    TypeError
        Not an array of integers.
    ValueError
        Not one dimension, a negative mass, or sums from 2^62 on.

    Examples
    --------
    >>> np.flatnonzero(cyclic_spectrum_counts(np.array([2, 3, 3])))
    array([0, 2, 3, 5, 6, 8])
    """
    masses = _checked(masses)
    if len(masses) == 0:
        return library_of(masses).ones((1,), np.int64)
    if int(masses.min()) < 0:
        raise ValueError(f"masses go down to {int(masses.min())}; a table has places from 0 on")
    half: Any = spectrum_cuda if is_cupy(masses) else spectrum_numba
    return half.counts(_prefix_sums(masses), int(masses.sum()))


def spectrum_score(spectrum: Any, experimental: Any) -> int:
    """How many masses two spectra share, each as often as it is in both.

    Parameters
    ----------
    spectrum, experimental : (k,), (l,) arrays
        NumPy or CuPy, both of one; in any order.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        Not arrays of one library.
    ValueError
        Not one dimension.

    Examples
    --------
    >>> spectrum_score(np.array([0, 57, 57, 114]), np.array([57, 114, 0, 71]))
    3
    """
    check_vectors({"spectrum": spectrum, "experimental": experimental})
    xp = library_of(spectrum)
    ours, theirs = xp.sort(spectrum), xp.sort(experimental)
    in_ours = xp.searchsorted(ours, theirs, side="right") - xp.searchsorted(ours, theirs, side="left")
    number = xp.arange(len(theirs), dtype=np.int64) - xp.searchsorted(theirs, theirs, side="left")  # among equal ones
    return int((number < in_ours).sum())


def _checked(masses: Any) -> Any:
    check_vectors({"masses": masses})
    if masses.dtype.kind not in "iu":
        raise TypeError(f"masses is {masses.dtype}; multiply them to integers, such as millidalton")
    largest = max(int(masses.max()), -int(masses.min())) if len(masses) else 0
    if largest * len(masses) >= _LARGEST_TOTAL:
        raise ValueError(f"{len(masses)} masses up to {largest:,} may add up to 2^62; take a larger unit")
    return masses


def _prefix_sums(masses: Any) -> Any:
    """(2 n,): of two turns, without the own mass."""
    xp = library_of(masses)
    sums = xp.zeros((2 * len(masses),), np.int64)
    sums[1:] = xp.cumsum(xp.concatenate((masses, masses[:-1])), dtype=np.int64)
    return sums

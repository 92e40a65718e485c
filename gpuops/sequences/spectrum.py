"""Cyclic spectra: the masses of all pieces of a cyclic peptide.

A peptide of n amino acids in a ring has n (n - 1) pieces of 1 to n - 1 adjacent amino acids. With the empty piece and
the whole ring, its theoretical spectrum has n (n - 1) + 2 masses. The piece of k amino acids from place i on weighs
P[i + k] - P[i], where P are the prefix sums of two turns of the ring, so each value costs one subtraction.

If masses are small integers, sums are counted, not sorted. A piece and the rest of the ring together weigh the total,
so computing half of the pieces is enough. If the spectrum is too long for memory, the counts alone describe it.

P. Compeau, P. Pevzner, "Bioinformatics Algorithms", 2015, chapter 4; fierval, "Non-linear Thinking with CUDA", 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuops._halves import half_of
from gpuops.arrays import check_vectors, is_cupy, library_of
from gpuops.memory import refuse_beyond_memory

# Whole masses in dalton.
AMINO_ACIDS = {
    **{"G": 57, "A": 71, "S": 87, "P": 97, "V": 99, "T": 101, "C": 103, "I": 113, "L": 113, "N": 114},
    **{"D": 115, "K": 128, "Q": 128, "E": 129, "M": 131, "H": 137, "F": 147, "R": 156, "Y": 163, "W": 186},
}
_LARGEST_TOTAL = 2**62


def peptide_masses(letters: str) -> np.ndarray:
    """Return the masses of a peptide's amino acids, in dalton.

    Parameters
    ----------
    letters : str
        Letters of the 20 amino acids, such as NQEL; lower case is accepted.

    Returns
    -------
    (n,) int64 array

    Raises
    ------
    ValueError
        A letter is not an amino acid; the message gives its place.

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
    """Return the masses of all pieces of a ring.

    Parameters
    ----------
    masses : (n,) array of integers
        NumPy or CuPy, in the order of the ring.
    ordered : bool
        True: ascending. False: the empty piece, then the pieces of 1, of 2, ... elements, each by the place where they
        begin, then the whole ring.

    Returns
    -------
    (n (n - 1) + 2,) int64 array
        For n = 0 (1,): the empty piece, of mass 0.

    Raises
    ------
    TypeError
        `masses` is not an array of integers.
    ValueError
        `masses` is not one-dimensional, sums may reach 2^62, or the memory of the device cannot hold the spectrum.

    Examples
    --------
    >>> cyclic_spectrum(np.array([57, 71, 113]))
    array([  0,  57,  71, 113, 128, 170, 184, 241])
    """
    masses = _checked(masses)
    xp, n = library_of(masses), len(masses)
    if n == 0:
        return xp.zeros((1,), np.int64)
    refuse_beyond_memory(
        8 * (n * (n - 1) + 2),
        f"the spectrum of {n:,} masses takes",
        "take cyclic_spectrum_counts",
        masses.device.id if is_cupy(masses) else None,
    )
    half = half_of("sequences.spectrum", masses)
    if not ordered:
        return half.sums(_prefix_sums(masses))
    total = int(masses.sum())
    # A table with more places than pieces is slower than sorting.
    if int(masses.min()) >= 0 and total < n * n:
        return half.expanded(half.counts(_prefix_sums(masses), total), n * (n - 1) + 2)
    result = half.sums(_prefix_sums(masses))
    result.sort()
    return result


def cyclic_spectrum_counts(masses: Any) -> Any:
    """Count the pieces of a ring that have each mass: the spectrum, if its n (n - 1) + 2 values do not fit in memory.

    Parameters
    ----------
    masses : (n,) array of integers
        NumPy or CuPy, not negative.

    Returns
    -------
    (total + 1,) int64 array
        The number of pieces of each mass, from 0 to the mass of the whole ring.

    Raises
    ------
    TypeError
        `masses` is not an array of integers.
    ValueError
        `masses` is not one-dimensional, a mass is negative, sums may reach 2^62, or the memory of the device cannot
        hold the table.

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
    total = int(masses.sum())
    refuse_beyond_memory(
        8 * (total + 1),
        f"a table of masses up to {total:,} takes",
        "take a larger unit",
        masses.device.id if is_cupy(masses) else None,
    )
    half = half_of("sequences.spectrum", masses)
    return half.counts(_prefix_sums(masses), total)


def spectrum_score(spectrum: Any, experimental: Any) -> int:
    """Count the masses that two spectra share; a mass counts as often as it occurs in both.

    Parameters
    ----------
    spectrum, experimental : (k,), (l,) arrays
        Both NumPy or both CuPy arrays, in any order.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        The arrays are not of one library.
    ValueError
        An array is not one-dimensional.

    Examples
    --------
    >>> spectrum_score(np.array([0, 57, 57, 114]), np.array([57, 114, 0, 71]))
    3
    """
    check_vectors({"spectrum": spectrum, "experimental": experimental})
    xp = library_of(spectrum)
    ours, theirs = xp.sort(spectrum), xp.sort(experimental)
    in_ours = xp.searchsorted(ours, theirs, side="right") - xp.searchsorted(ours, theirs, side="left")
    # The number of each mass of `theirs` among equal masses.
    number = xp.arange(len(theirs), dtype=np.int64) - xp.searchsorted(theirs, theirs, side="left")
    return int((number < in_ours).sum())


def _checked(masses: Any) -> Any:
    check_vectors({"masses": masses})
    if masses.dtype.kind not in "iu":
        raise TypeError(f"masses is {masses.dtype}; convert them to integers, in a unit such as millidalton")
    largest = max(int(masses.max()), -int(masses.min())) if len(masses) else 0
    if largest * len(masses) >= _LARGEST_TOTAL:
        raise ValueError(f"{len(masses)} masses up to {largest:,} may add up to 2^62; take a larger unit")
    return masses


def _prefix_sums(masses: Any) -> Any:
    """Return the prefix sums (2 n,) over two turns of the ring; each sum excludes the mass at its own place."""
    xp = library_of(masses)
    sums = xp.zeros((2 * len(masses),), np.int64)
    sums[1:] = xp.cumsum(xp.concatenate((masses, masses[:-1])), dtype=np.int64)
    return sums

"""Read the graphs that SciPy's csgraph accepts into compressed sparse rows.

In a sparse or masked matrix, each stored entry is an arc, even if it is zero. In a plain array, zeros are not arcs.
Infinity and NaN are never arcs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from gpuops import csr

DTYPES = tuple(map(np.dtype, ("float64", "float32", "int32")))
_EXACT = {np.dtype("float64"): 2**53, np.dtype("float32"): 2**24}  # whole numbers below this are exact


class Arcs(NamedTuple):
    """A graph in compressed sparse rows. Heads may be in any order; loops and parallel arcs are allowed.

    Attributes
    ----------
    indptr : (n + 1,) int64
    indices : (m,) int32
    weights : (m,) array
        Finite and contiguous, in the dtype of the distances.
    whole : bool
        True if the weights are whole numbers, so that distances must stay exact.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    whole: bool

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    def tails(self) -> np.ndarray:
        return csr.tails(self.indptr, len(self.indices), np.int32)


def read_arcs(csgraph: Any, directed: bool, unweighted: bool, dtype: np.dtype) -> Arcs:
    """Return the arcs of a sparse, masked or plain matrix (N, N); unless `directed`, with all opposite arcs added."""
    indptr, indices, lengths = _stored(csgraph) if issparse(csgraph) else _filled(csgraph)
    if unweighted:
        lengths = np.ones(len(lengths), dtype)
    weights, whole = _convert(lengths, dtype)
    csr.check_csr(indptr, indices, weights=weights)
    if not directed:
        indptr, indices, weights = csr.both_directions(indptr, indices, weights)
    return Arcs(indptr, indices, weights, whole)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"the graph has the shape {shape}; pass a square matrix, (N, N)")
    if shape[0] >= 2**31:
        raise ValueError(f"there are {shape[0]} vertices; at most 2^31 - 1 are supported")


def _stored(csgraph: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _check_shape(csgraph.shape)
    rows = csgraph.tocsr()
    indptr, indices = rows.indptr.astype(np.int64, copy=False), rows.indices.astype(np.int32, copy=False)
    lengths = _real(rows.data)
    if lengths.dtype.kind != "f" or bool(np.isfinite(lengths).all()):
        return indptr, indices, lengths
    _refuse_minus_infinity(lengths)
    kept = np.isfinite(lengths)
    return np.concatenate([[0], np.cumsum(kept)])[indptr], indices[kept], lengths[kept]


def _filled(csgraph: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    masked = np.ma.isMaskedArray(csgraph)
    matrix = _real(np.ma.getdata(csgraph) if masked else np.asarray(csgraph))
    _check_shape(matrix.shape)
    arcs = ~np.ma.getmaskarray(csgraph) if masked else matrix != 0
    if matrix.dtype.kind == "f":
        if masked:
            _refuse_minus_infinity(matrix[arcs])
        arcs &= np.isfinite(matrix)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(arcs, axis=1))])
    heads = np.flatnonzero(arcs)
    heads -= np.repeat(np.arange(len(matrix)) * len(matrix), np.diff(indptr))
    return indptr.astype(np.int64, copy=False), heads.astype(np.int32), matrix[arcs]


def _refuse_minus_infinity(stored: np.ndarray) -> None:
    if bool((stored == -np.inf).any()):
        raise ValueError("the graph contains -inf, which is not a length; negative weights must be finite")


def _real(lengths: np.ndarray) -> np.ndarray:
    """Return `lengths` as they are if integers, booleans, float32 or float64, else converted to float64."""
    if lengths.dtype.kind in "iub" or lengths.dtype in DTYPES:
        return lengths
    return lengths.astype(np.float64)  # NumPy warns if imaginary parts are lost


def _convert(lengths: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, bool]:
    """Return the lengths in `dtype`, and True if they are whole numbers, which distances must not round."""
    whole = lengths.dtype.kind in "iub"
    if not whole and dtype != np.float64:
        whole = bool((lengths == np.rint(lengths)).all())
    if dtype.kind == "i":
        if not whole:
            raise ValueError("weights have fractions, which int32 distances cannot have; take dtype='float64'")
        if len(lengths) and not (-(2**31) <= lengths.min() and lengths.max() < 2**31 - 1):
            raise OverflowError("weights exceed int32; take dtype='float64'")
    with np.errstate(over="ignore"):
        weights = lengths.astype(dtype, copy=False)
    if dtype == np.float32 and not bool(np.isfinite(weights).all()):
        raise OverflowError("weights exceed float32; take dtype='float64'")
    return weights, whole


def refuse_rounded(arcs: Arcs, distances: np.ndarray) -> None:
    """Raise OverflowError if whole numbers, or their sums, may have been rounded."""
    if not (arcs.whole and arcs.weights.dtype.kind == "f" and len(arcs.weights)):
        return
    exact = _EXACT[arcs.weights.dtype]
    heaviest = float(np.abs(arcs.weights).max())
    if heaviest * arcs.n < exact:
        return
    signed = bool((arcs.weights < 0).any())  # then a small distance may be the difference of large sums
    finite = distances[np.isfinite(distances)]
    if signed or (finite.size and float(finite.max()) >= exact):  # >=: a sum may have been rounded down to `exact`
        raise OverflowError(
            f"distances of whole numbers may exceed {exact}, up to which {arcs.weights.dtype} is exact; "
            + ("scale the weights down, or pass them as floats" if exact == 2**53 else "take dtype='float64'")
        )

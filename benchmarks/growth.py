"""The order of growth of measured times: coefficients of powers of n, fitted to records.

The article on cyclic spectra asks for the order of the GPU's time. For n masses and a device that does P additions at a
time:

grid         n (n - 1) threads add n / 2 numbers each on average, the longest n - 1: O(1 + n + n^3 / P)
streamed     n - 1 launches, each of n threads that add one number: O(n (1 + n / P)), a n + b n^2
not sorted   one launch for all n (n - 1) sums: O(1 + n^2 / P)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ORDERS = {
    "published, brute force, one core": (3,),
    "published, memo, one core": (2,),
    "published, grid": (0, 1, 3),
    "published, streamed": (1, 2),
    "cyclic_spectrum, not sorted": (0, 2),
}


def fit(points: list[tuple[float, float]], powers: tuple[int, ...]) -> tuple[list[float], float]:
    """Fit seconds t(n) = sum of c[p] n^p with c >= 0, by least squares of the relative errors.

    Parameters
    ----------
    points : sizes and seconds
    powers : the exponents p

    Returns
    -------
    coefficients : one for each power, in seconds
    error : the largest relative error of a point
    """
    from scipy.optimize import nnls

    n, seconds = (np.array(column, float) for column in zip(*points, strict=True))
    terms = np.stack([n**p for p in powers], axis=1) / seconds[:, None]
    coefficients, _ = nnls(terms, np.ones(len(n)))
    return coefficients.tolist(), float(abs(terms @ coefficients - 1).max())


def spectra(records: list[dict[str, Any]]) -> dict[str, tuple[list[float], float]]:
    """Return the fit of each way of `ORDERS` of which the records of `sequences` have more sizes than powers."""
    found = {}
    for way, powers in ORDERS.items():
        points = [
            (record["sizes"]["n"], record["seconds"]["median"])
            for record in records
            if record["case"].startswith("cyclic spectrum, ") and record["way"] == way
        ]
        if len(points) > len(powers):
            found[way] = fit(points, powers)
    return found


def formula(coefficients: Sequence[float], powers: Sequence[int]) -> str:
    """Return a fit as text, such as "104 us + 252 fs n^3"; coefficients of zero are left out."""
    terms = zip(coefficients, powers, strict=True)
    return " + ".join(
        _coefficient(value) + ("" if p == 0 else " n" if p == 1 else f" n^{p}") for value, p in terms if value > 0
    )


def _coefficient(seconds: float) -> str:
    for unit, scale in (("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-15:.3g} fs"

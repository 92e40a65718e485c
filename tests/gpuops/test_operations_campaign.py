"""Operations on arrays and sequences, and contigs, on hostile inputs against NumPy, itertools and plain Python.

Arrays are strided and reversed views, read-only, empty, with NaN, -0.0, infinities and the
ends of the range of their dtype. The long campaign: ``pytest -m slow -s tests/gpuops/test_operations_campaign.py``
"""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from campaigns import campaign, pick, play, random_arcs

import gpuops

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
UNREACHABLE = 2**31 - 1


def numbers(rng, dtypes, longest=300):
    """A hostile array of one of the dtypes."""
    n, dtype = int(pick(rng, [0, 1, 2, 7, longest])), np.dtype(pick(rng, dtypes))
    if dtype.kind == "b":
        x = rng.random(n) < 0.5
    elif dtype.kind == "f":
        x = pick(rng, [rng.normal(size=n) * 100, rng.integers(-3, 3, n)]).astype(dtype)
        limits = np.finfo(dtype)
        special = [np.nan, -0.0, 0.0, np.inf, -np.inf, limits.max, limits.tiny, limits.smallest_subnormal]
    else:
        limits = np.iinfo(dtype)
        special = [limits.min, limits.max, 0, 1]
        low, high = pick(rng, [(limits.min, limits.max), (0, 5), (max(-60, limits.min), 60)])
        x = rng.integers(low, high, n, dtype, endpoint=True)
    if dtype.kind != "b" and rng.random() < 0.5:
        x[rng.random(n) < 0.2] = pick(rng, special)
    return laid_out(rng, x)


def laid_out(rng, x):
    """The same elements, as a view or read-only."""
    kind = pick(rng, ["plain", "strided", "reversed", "read-only", "column"])
    if kind == "strided":
        x = np.repeat(x, 3)[::3]
    elif kind == "reversed":
        x = x[::-1].copy()[::-1]
    elif kind == "column":
        x = np.stack([x, x], axis=1)[:, 1]
    elif kind == "read-only":
        x = x.copy()
        x.flags.writeable = False
    return x


def distinct(rng):
    x, order = numbers(rng, ["bool", *INTEGERS, *FLOATS]), pick(rng, ["value", "first"])
    found = gpuops.distinct(x, return_counts=True, return_inverse=True, order=order)
    values, places, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    by = np.argsort(places) if order == "first" else np.arange(len(values))
    assert found.values.dtype == x.dtype
    np.testing.assert_array_equal(found.values, values[by])
    np.testing.assert_array_equal(found.counts, counts[by])
    np.testing.assert_array_equal(found.inverse, np.argsort(by)[inverse])


def compact(rng):
    x = numbers(rng, ["bool", *INTEGERS, *FLOATS])
    keep = laid_out(rng, rng.random(len(x)) < pick(rng, [0, 0.5, 1]))
    found = gpuops.compact(x, keep)
    assert found.dtype == x.dtype
    assert found.tobytes() == x[keep].tobytes()  # NaN and -0.0 too


def scan(rng):
    x, inclusive = numbers(rng, ["bool", *INTEGERS, "float32", "float64"]), bool(rng.integers(2))
    found = (gpuops.inclusive_scan if inclusive else gpuops.exclusive_scan)(x)
    kind = {"b": "int64", "i": "int64", "u": "uint64"}.get(x.dtype.kind, x.dtype)
    with np.errstate(all="ignore"):
        sums = np.cumsum(x.astype("float64" if x.dtype.kind == "f" else kind))
        expected = sums if inclusive else np.append(np.zeros(1, sums.dtype), sums[:-1])[: len(x)]
        assert found.dtype == kind
        if x.dtype.kind != "f":
            np.testing.assert_array_equal(found, expected)
        elif np.isfinite(x).all() and np.abs(x, dtype=float).sum() < np.finfo(x.dtype).max:
            slack = np.abs(x.astype(float)).sum() * np.finfo(x.dtype).eps * (1 + len(x))
            np.testing.assert_allclose(found, expected, rtol=0, atol=slack + 1e-320)
        else:
            return "not compared (sums of floats without a limit)"
    return None


def permutations(rng):
    dtype = pick(rng, ["bool", "int8", "uint16", "int64", "float32", "float64"])
    values = (rng.integers(0, 4, rng.integers(0, 7)) - (dtype[0] in "if")).astype(dtype)
    values = laid_out(rng, values)
    rows = sorted(set(itertools.permutations(values.tolist())))
    assert gpuops.permutation_count(values) == len(rows)
    first = int(rng.integers(len(rows) + 1))
    count = int(rng.integers(len(rows) - first + 1))
    found = gpuops.permutations(values, first, count)
    assert found.shape == (count, len(values))
    assert [*map(tuple, found.tolist())] == rows[first : first + count]
    rank = rows.index(tuple(values.tolist()))
    assert gpuops.permutation_rank(values) == rank
    following = gpuops.next_permutation(values)
    assert (following is None) == (rank + 1 == len(rows))
    assert following is None or tuple(following.tolist()) == rows[rank + 1]


def spectrum(rng):
    masses = rng.integers(*pick(rng, [(0, 200), (0, 3), (-9, 9), (2**40, 2**50)]), int(rng.integers(0, 14)))
    x, ring = laid_out(rng, masses), [*masses.tolist()] * 2
    n = len(masses)
    pieces = [0, *(sum(ring[i : i + k]) for k in range(1, n) for i in range(n)), *([sum(ring[:n])] if n else [])]
    assert gpuops.cyclic_spectrum(x, ordered=False).tolist() == pieces
    assert gpuops.cyclic_spectrum(x).tolist() == sorted(pieces)
    if 0 <= min(pieces) and max(pieces) < 10**4:
        counts = gpuops.cyclic_spectrum_counts(x).tolist()
        assert {mass: count for mass, count in enumerate(counts) if count} == Counter(pieces)


def hop_distances(rng):
    n = int(pick(rng, [1, 2, 9, 40, 130]))
    tails, heads = random_arcs(rng, n, int(pick(rng, [0, n, 3 * n])))
    order = np.argsort(tails, kind="stable")
    sources = rng.integers(0, n, int(pick(rng, [0, 1, 63, 65])))
    matrix = np.zeros((n, n), bool)
    matrix[tails, heads] = True
    hops, reached = np.full((len(sources), n), UNREACHABLE), np.eye(n, dtype=bool)[sources]
    for step in range(n):
        hops[reached & (hops == UNREACHABLE)] = step
        reached = reached @ matrix
    indptr = np.searchsorted(tails[order], np.arange(n + 1)).astype(pick(rng, ["int32", "int64"]))
    indices = heads[order].astype(pick(rng, ["int32", "int64"]))
    indptr, indices, sources = (laid_out(rng, x) for x in (indptr, indices, sources))
    np.testing.assert_array_equal(gpuops.hop_distances(indptr, indices, sources), hops)


def look_and_say(rng):
    seed = "".join(map(str, rng.integers(*pick(rng, [(0, 10), (1, 4), (7, 8)]), int(rng.integers(1, 30)))))
    steps = int(rng.integers(0, 9))
    terms = [seed]
    for _ in range(steps):
        terms.append("".join(f"{len(run[0])}{run[1]}" for run in re.findall(r"((.)\2*)", terms[-1])))
    given = pick(rng, [seed, laid_out(rng, np.array([*seed], "uint8"))])
    assert "".join(map(str, gpuops.look_and_say(given, steps))) == terms[-1]
    assert gpuops.look_and_say_lengths(given, steps) == [*map(len, terms)]


OPERATIONS = [distinct, compact, scan, permutations, spectrum, hop_distances, look_and_say]


@campaign(few=40, many=60_000)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_operations_agree_with_plain_ones(operation, seeds):
    play(seeds, operation)

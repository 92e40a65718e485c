"""Random networks with turns, and their distances by brute force.

The reference knows no junctions: a path is a sequence of arcs, and two successive arcs cost what the rows say. The
cheapest sequences are found by closing the matrix of pairs of arcs.
"""

import numpy as np
from campaigns import pick
from numba import njit

from gpuops.csr import tails as tails_of
from pipelines.turns.table import ANY, TurnRows

NETWORKS, LARGEST = 25, 6  # networks of a trial, and vertices of a network


def networks(rng):
    """Networks side by side, as CSR: (bounds of their vertices, indptr, heads, weights, through)."""
    sizes = rng.integers(1, LARGEST + 1, NETWORKS)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    tails, heads = [], []
    for first, size in zip(bounds[:-1], sizes, strict=True):
        ends = first + rng.integers(0, size, (2, rng.integers(0, 3 * size)))
        if rng.random() < 0.4:  # roads in both directions
            ends = np.append(ends, ends[::-1], axis=1)
        tails.append(ends[0])
        heads.append(ends[1])
    tails, heads = np.concatenate(tails), np.concatenate(heads)
    order = np.lexsort((heads, tails))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=bounds[-1]))])
    weights = rng.integers(0, 9, len(tails))
    return bounds, indptr, heads[order].astype(np.int32), weights, rng.random(bounds[-1]) < 0.95


def rows_of_turns(rng, indptr, heads, through):
    """Rows for random turns that exist: most name three vertices, some only two, one or an arc."""
    tails = tails_of(indptr, len(heads), np.int64)
    into, out = np.nonzero(heads[:, None] == tails)
    kept = np.flatnonzero(through[heads[into]] & (rng.random(len(into)) < pick(rng, [0.05, 0.2, 0.5])))
    into, out, count = into[kept], out[kept], len(kept)
    costs = rng.choice([np.inf, 3.0, 1.0, 0.0], count)
    only = rng.random(count) < 0.25
    rows = {
        "name": "turns",
        "tails": np.where(rng.random(count) < 0.1, ANY, tails[into]),
        "vias": heads[into].astype(np.int64),
        "heads": np.where(~only & (rng.random(count) < 0.1), ANY, heads[out]),
        "entering": np.where(rng.random(count) < 0.3, into, ANY),
        "leaving": np.where(rng.random(count) < 0.3, out, ANY),
        "costs": np.where(only, 0.0, costs),
        "only": only,
    }
    keys = np.stack([rows[name] for name in ("tails", "vias", "heads", "entering", "leaving")])
    once = np.sort(np.unique(keys, axis=1, return_index=True)[1])  # two rows of one turn might contradict each other
    return TurnRows(**{name: each if name == "name" else each[once] for name, each in rows.items()})


def by_brute_force(bounds, indptr, heads, weights, through, rows):
    """Distances (n, n) between all vertices of each network; -1 if unreachable, or of another network."""
    tails, parts = (
        tails_of(indptr, len(heads), np.int64),
        ("tails", "vias", "heads", "entering", "leaving", "costs", "only"),
    )
    rows = tuple(getattr(rows, part) for part in parts)
    return _closed(bounds, indptr, tails, heads.astype(np.int64), weights, through, rows)


@njit(cache=True)
def _closed(bounds, indptr, tails, heads, weights, through, rows):
    n, far = len(indptr) - 1, np.inf
    found = np.full((n, n), -1.0)
    for network in range(len(bounds) - 1):
        first, stop = indptr[bounds[network]], indptr[bounds[network + 1]]
        after = np.full((stop - first, stop - first), far)  # the cost from the end of an arc to the end of another
        for a in range(first, stop):
            if through[heads[a]]:
                _turns_after(a, first, stop, tails, heads, weights, rows, after[a - first])
            after[a - first, a - first] = 0.0
        for k in range(stop - first):
            for i in range(stop - first):
                for j in range(stop - first):
                    after[i, j] = min(after[i, j], after[i, k] + after[k, j])
        for a in range(first, stop):
            for b in range(first, stop):
                length = weights[a] + after[a - first, b - first]
                if length < far and (found[tails[a], heads[b]] < 0 or length < found[tails[a], heads[b]]):
                    found[tails[a], heads[b]] = length
        for v in range(bounds[network], bounds[network + 1]):
            found[v, v] = 0.0
    return found


@njit(cache=True)
def _turns_after(a, first, stop, tails, heads, weights, rows, costs):
    """Fill in what each arc costs that follows the arc a, with the turn into it."""
    begins, vias, ends, entering, leaving, values, only = rows
    limited, allowed = False, np.zeros(len(costs), np.bool_)
    for b in range(first, stop):
        if tails[b] != heads[a]:
            continue
        costs[b - first] = weights[b]
        for row in range(len(vias)):
            if vias[row] != heads[a] or begins[row] not in (-1, tails[a]) or entering[row] not in (-1, a):
                continue
            this = ends[row] in (-1, heads[b]) and leaving[row] in (-1, b)
            limited |= only[row]
            allowed[b - first] |= this and only[row]
            costs[b - first] += values[row] if this else 0.0
    if limited:
        costs[~allowed] = np.inf

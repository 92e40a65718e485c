"""Certificates of distances: proof in O(m) per row, without a second solver.

The row D of distances from s is correct if and only if

1. D[s] = 0;
2. D[v] <= D[u] + w for every arc (u, v) of weight w whose tail may be left (u = s, or u may lie inside a path) and
   is reachable; in particular v is then reachable too;
3. every finite D[v] is attained: a path of tight arcs (D[u] + w = D[v]) leads from s to v.

Summed along any path from s, (1) and (2) say that D[v] is at most its length; by (3) some path is exactly that long. By
(2) every reachable vertex has a finite distance, by (3) every finite distance is reached. Nothing here requires
non-negative weights: summed around a cycle, (2) says that it is not negative.

Integers are tested exactly. Floats are tested within the rounding of path sums (`pipelines.validation.tight_arcs`), and
the tolerance that was granted is part of the certificate.

The rules for distances follow the Graph500 specification (validation of the single-source shortest path kernel).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numba import njit

from pipelines.stores import Distances, Graph
from pipelines.validation.tight_arcs import Arcs, arcs_for, open_solution, stored_rows, tight_tree
from pipelines.validation.tight_arcs import VerificationError as VerificationError

CERTIFIED_ROWS = 16  # of a result, unless more are requested


@dataclass(frozen=True)
class Certificate:
    """What was checked, and within what tolerance."""

    rows: int
    arcs: int  # tests of the triangle inequality
    hops: int  # the most arcs on a shortest path found
    relative: float  # the largest tolerance granted: relative * |D[v]| + absolute; both 0 for integers
    absolute: float
    slack: float  # the most by which rounding broke the triangle inequality, 0 for integers


def verify_distances(
    distances: Distances | str | os.PathLike[str],
    graph: Graph | str | os.PathLike[str] | None = None,
    rows: int | Literal["all"] = CERTIFIED_ROWS,
    seed: int = 0,
) -> Certificate:
    """Prove rows of a distances store correct.

    Parameters
    ----------
    distances : the store or its path
    graph : the graph or its path; None: the one recorded in the store
    rows : how many rows, chosen at random except the first and the last, or "all"
    seed : seed of the choice

    Raises
    ------
    VerificationError
        A row is wrong; the message names it, the arc or vertex at fault and the numbers.
    StoreError
        The graph is another one, or a store cannot be read.
    """
    distances, graph = open_solution(distances, graph)
    arcs = arcs_for(*graph.rows(), graph.through(), distances.dtype, graph.label)
    chosen = choose_rows(distances.shape[0], rows, seed)
    sources = distances.row_vertices()[chosen]
    certificates: list[Certificate] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start, block in stored_rows(distances, chosen):
            certificates += pool.map(verify_row, [arcs] * len(block), block, sources[start : start + len(block)])
    return join_certificates(certificates)


def join_certificates(certificates: list[Certificate]) -> Certificate:
    """One certificate for all rows checked."""
    return Certificate(
        rows=sum(c.rows for c in certificates),
        arcs=sum(c.arcs for c in certificates),
        hops=max(c.hops for c in certificates),
        relative=max(c.relative for c in certificates),
        absolute=max(c.absolute for c in certificates),
        slack=max(c.slack for c in certificates),
    )


def verify_row(arcs: Arcs, row: np.ndarray, source: int) -> Certificate:
    """Prove one row (n) of distances correct; raises VerificationError."""
    source, row = int(source), arcs.lift(row)
    tree = tight_tree(arcs, row, source)  # conditions 1 and 3
    u, arc, checked, slack = _triangles(arcs.arrays, row, arcs.unreachable, source, tree.relative, tree.absolute)
    if arc >= 0:
        v, label = arcs.indices[arc], arcs.label
        found = "unreachable" if row[v] == arcs.unreachable else row[v]
        raise VerificationError(
            f"the distance from vertex {label(source)} to vertex {label(v)} is {found}, "
            f"but the arc {label(u)} -> {label(v)} "
            f"of weight {arcs.weights[arc]} makes it at most {row[u]} + {arcs.weights[arc]}"
        )
    return Certificate(1, checked, tree.depth, tree.relative, tree.absolute, slack)


def choose_rows(count: int, rows: int | Literal["all"], seed: int) -> np.ndarray:
    """The rows to be proven: the first, the last, and others at random; int64, in order."""
    if rows == "all" or rows >= count:
        return np.arange(count)
    if rows < 1:
        raise ValueError(f"rows is {rows}; check at least one")
    inner = 1 + np.random.default_rng(seed).choice(count - 2, max(0, rows - 2), replace=False)
    return np.sort(np.concatenate([[0, count - 1][:rows], inner]))


@njit(nogil=True, cache=True)
def _triangles(arcs, row, unreachable, source, relative, absolute):
    """Tail and arc that break condition 2, or -1 and -1; the arcs checked; the largest excess within tolerance."""
    indptr, indices, weights, through = arcs
    checked, slack = 0, 0.0
    for u in range(row.size):
        if row[u] == unreachable or not (u == source or through[u]):
            continue
        for arc in range(indptr[u], indptr[u + 1]):
            v = indices[arc]
            excess = float(row[v] - (row[u] + weights[arc]))
            if row[v] == unreachable or excess > relative * abs(row[v]) + absolute:
                return u, arc, checked, slack
            checked += 1
            slack = max(slack, excess)
    return -1, -1, checked, slack

"""Certificates of distances stores: choose rows, and prove them by `gpuops.certificates.distances` on threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np

from gpuops.certificates import Certificate, arcs_for, join_certificates, verify_row
from gpuops.options import whole
from pipelines.stores.graph import Graph
from pipelines.stores.solutions import SolutionLike, open_solution

CERTIFIED_ROWS = 16  # default number of rows that are proven


def verify_distances(
    distances: SolutionLike,
    graph: Graph | str | os.PathLike[str] | None = None,
    rows: int | Literal["all"] = CERTIFIED_ROWS,
) -> Certificate:
    """Prove that rows of a store of distances, held or computed, are correct.

    Parameters
    ----------
    distances : the store or its path
    graph : the graph or its path; None: the graph recorded in the store
    rows : number of rows, chosen at random except the first and the last, or "all"

    Raises
    ------
    VerificationError
        A row is wrong; the message names it, the arc or vertex at fault and the numbers.
    StoreError
        The graph is not the recorded graph, or a store cannot be read.

    Examples
    --------
    >>> tilepath.verify_distances(distances, rows="all")
    Certificate(rows=4, arcs=32, hops=2, relative=0.0, absolute=0.0, slack=0.0)
    """
    distances, graph = open_solution(distances, graph)
    arcs = arcs_for(*graph.rows(), graph.through(), distances.dtype, graph.label)
    chosen = choose_rows(distances.shape[0], rows)
    sources = distances.row_vertices()[chosen]
    certificates: list[Certificate] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start, block in distances.rows(chosen):
            certificates += pool.map(verify_row, [arcs] * len(block), block, sources[start : start + len(block)])
    return join_certificates(certificates)


def choose_rows(count: int, rows: int | Literal["all"] = CERTIFIED_ROWS) -> np.ndarray:
    """Return the rows to prove, int64 and sorted: the first, the last, and further rows at random, always the same."""
    if rows == "all" or whole("rows", rows, 1) >= count:
        return np.arange(count)
    inner = 1 + np.random.default_rng(0).choice(count - 2, max(0, rows - 2), replace=False)
    return np.sort(np.concatenate([[0, count - 1][:rows], inner]))

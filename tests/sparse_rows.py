"""Graphs in compressed sparse rows, made from lists of arcs, and all their distances."""

import numpy as np

from gpuops import csr


def rows(n, tails, heads, *of_arcs, offset="int64", vertex="int32"):
    """`indptr`, `indices` and the attributes of the arcs; arcs of a row stay in the order of the list."""
    tails = np.asarray(tails, np.int64)
    order = tails.argsort(kind="stable")
    heads, *of_arcs = (np.asarray(values)[order] for values in (heads, *of_arcs))
    return csr.row_starts(tails, n).astype(offset), heads.astype(vertex), *of_arcs


def rows_of(arcs, n):
    """The graph of arcs (tail, head, weight), with weights of float64."""
    tails, heads, weights = np.array(arcs, np.float64).reshape(-1, 3).T
    return rows(n, tails, heads, weights)


def all_distances(indptr, indices, weights, through=None):
    """(n, n) float64, +inf if unreachable: by Floyd and Warshall's algorithm, over open vertices."""
    n = len(indptr) - 1
    d = np.full((n, n), np.inf)
    np.minimum.at(d, (np.repeat(np.arange(n), np.diff(indptr)), indices), weights)
    np.fill_diagonal(d, np.minimum(d.diagonal(), 0))
    for k in range(n) if through is None else np.flatnonzero(through):
        np.minimum(d, d[:, k, None] + d[k], out=d)
    return d

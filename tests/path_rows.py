"""Rows of a paths store, written as a test has them; arcs whose distances round."""

import numpy as np


def write_rows(run, start, distances, predecessors=None):
    """Write whole chunk rows of a `PathsWriter`, from row `start`; predecessors where the store has them."""
    run.opened("distances")[1](start, 0, distances)
    if run.has_predecessors and predecessors is not None:
        run.opened("predecessors")[1](start, 0, predecessors)


def rounding_arcs(signed):
    """Return the number of vertices and arcs with weights over twelve orders of magnitude, in both directions.

    Many arcs vanish beside the distances. If `signed`, some weights are negative.
    """
    rng = np.random.default_rng(3)
    n, m = 120, 360
    tails, heads = rng.integers(0, n, m), rng.integers(0, n, m)
    tails, heads = np.concatenate([tails, heads]), np.concatenate([heads, tails])
    weights = np.tile(10.0 ** rng.uniform(-8, 4, m), 2)
    if signed:
        potential = rng.uniform(0, 100, n)
        weights = weights + 0.01 + potential[tails] - potential[heads]
    return n, (tails, heads, weights)

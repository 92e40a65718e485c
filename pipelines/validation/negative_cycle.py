"""Potentials that make the weights of a stored graph non-negative, or an error that names a negative cycle."""

from __future__ import annotations

import numpy as np

from gpuops.certificates import find_potentials
from gpuops.errors import NegativeCycleError
from pipelines.stores.graph import Graph


def potentials_of(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """Return potentials of tails and of heads, (n) each, that make all weights non-negative.

    Returns None if no weight is negative.

    Raises
    ------
    NegativeCycleError
        The graph has a negative cycle, so there are no potentials; the error names the vertices of the cycle.
    """
    if graph.weight_min >= 0:
        return None
    try:
        return find_potentials(*graph.rows(), graph.through())
    except NegativeCycleError as error:
        raise named_cycle(graph, error) from None


def named_cycle(graph: Graph, error: NegativeCycleError) -> NegativeCycleError:
    """Return the error for users, with the labels of the vertices of the cycle, and the cure."""
    vertices, weight = error.vertices, error.weight
    if not vertices:  # no cycle is known: sums decrease with rounding, but may not decrease without it
        return NegativeCycleError(f"{graph.path}: {error}")
    names = graph.names([*vertices[:20], vertices[0]])
    shown = " -> ".join(names[:-1] + ["..."] * (len(vertices) > 20) + names[-1:])
    return NegativeCycleError(
        f"{graph.path}: the cycle {shown} weighs {weight:g}, so distances along it fall forever; correct its weights",
        vertices,
        weight,
    )

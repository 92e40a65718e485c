"""Negative weights of a stored graph: what makes them non-negative, or the cycle that forbids it, by its labels."""

from __future__ import annotations

import numpy as np

from gpuops.certificates import find_potentials
from gpuops.errors import NegativeCycleError
from pipelines.stores import Graph


def potentials_of(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """Potentials of tails and of heads, (n) each, that make the weights non-negative; None where they are.

    Raises
    ------
    NegativeCycleError
        There are none; it names the vertices of the cycle that forbids them.
    """
    if graph.weight_min >= 0:
        return None
    try:
        return find_potentials(*graph.rows(), graph.through())
    except NegativeCycleError as error:
        raise named_cycle(graph, error) from None


def named_cycle(graph: Graph, error: NegativeCycleError) -> NegativeCycleError:
    """The error for users: the vertices of the cycle by their labels, and the cure."""
    vertices, weight = error.vertices, error.weight
    if not vertices:  # none of its cycles is known: rounded sums fall, exact ones may not
        return NegativeCycleError(f"{graph.path}: {error}")
    names = graph.names([*vertices[:20], vertices[0]])
    shown = " -> ".join(names[:-1] + ["..."] * (len(vertices) > 20) + names[-1:])
    return NegativeCycleError(
        f"{graph.path}: the cycle {shown} weighs {weight:g}, so distances along it fall forever; correct its weights",
        vertices,
        weight,
    )

"""A negative cycle of a stored graph, as users are told of it."""

from __future__ import annotations

from gpuops.errors import NegativeCycleError
from pipelines.stores import Graph


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

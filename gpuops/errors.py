"""Errors that operations and pipelines share; any other error lives where it is raised."""

from __future__ import annotations

from collections.abc import Sequence


class NegativeCycleError(ValueError):
    """A cycle of negative weight: distances along it fall forever, so none is returned.

    Attributes
    ----------
    vertices : tuple of int
        One such cycle in travel order, the first vertex not repeated; empty where only its existence is
        known (an operation on a bare matrix).
    weight : float or int or None
        Total weight of that cycle, None where `vertices` is empty.
    """

    def __init__(self, message: str, vertices: Sequence[int] = (), weight: float | None = None):
        super().__init__(message, tuple(vertices), weight)
        self.vertices = tuple(vertices)
        self.weight = weight

    def __str__(self) -> str:
        return str(self.args[0])


class NotEulerianError(ValueError):
    """There is no Euler circuit, or no Euler path; the message says at which vertices, and what there is instead.

    Attributes
    ----------
    vertices : tuple of int
        Some vertices whose degrees forbid it; empty where the arcs do not hang together.
    arcs : tuple of int
        Two arcs in different components, where one walk was asked for; else empty.
    """

    def __init__(self, message: str, vertices: Sequence[int] = (), arcs: Sequence[int] = ()):
        super().__init__(message, tuple(vertices), tuple(arcs))
        self.vertices, self.arcs = tuple(vertices), tuple(arcs)

    def __str__(self) -> str:
        return str(self.args[0])


class VerificationError(ValueError):
    """A result is not what it claims to be; the message names the place."""

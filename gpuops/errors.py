"""Errors that operations and pipelines share; any other error lives where it is raised."""

from __future__ import annotations

from collections.abc import Sequence


class NegativeCycleError(ValueError):
    """A cycle of negative weight: distances along it fall for ever, so none is returned.

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

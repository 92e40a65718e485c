"""Errors that operations and pipelines share; any other error lives where it is raised."""

from __future__ import annotations

from collections.abc import Callable, Sequence


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
        The vertices that the message names, in its order; each stands for a ``{}`` in the text that it is made of.
    arcs : tuple of int
        Two arcs in different components, where one walk was asked for; else empty.
    """

    def __init__(self, text: str, vertices: Sequence[int] = (), arcs: Sequence[int] = ()):
        super().__init__(text, tuple(vertices), tuple(arcs))
        self.vertices, self.arcs = tuple(vertices), tuple(arcs)

    def __str__(self) -> str:
        return self._named(str)

    def named(self, name: Callable[[int], str], graph: str) -> NotEulerianError:
        """The same of the graph called `graph`, whose vertices have names."""
        text = f"{graph}: {self._named(name)}"
        return NotEulerianError(text.replace("{", "{{").replace("}", "}}"), self.vertices, self.arcs)

    def _named(self, name: Callable[[int], str]) -> str:
        return str(self.args[0]).format(*map(name, self.vertices))


class VerificationError(ValueError):
    """A result is not what it claims to be; the message names the place."""

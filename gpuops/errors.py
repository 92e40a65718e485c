"""Errors that operations and pipelines share; any other error lives where it is raised."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class NegativeCycleError(ValueError):
    """A cycle has negative weight: distances along it fall forever, so no distances are returned.

    Attributes
    ----------
    vertices : tuple of int
        One such cycle in travel order, the first vertex not repeated; empty if only its existence is
        known (an operation on a bare matrix).
    weight : float or int or None
        Total weight of that cycle; None if `vertices` is empty.
    """

    def __init__(self, message: str, vertices: Sequence[int] = (), weight: float | None = None):
        # By name: since Python 3.14, super() would be the error of SciPy that `tilepath.csgraph` mixes in.
        ValueError.__init__(self, message, tuple(vertices), weight)
        self.vertices = tuple(vertices)
        self.weight = weight

    def __str__(self) -> str:
        return str(self.args[0])


class NoGpuError(RuntimeError):
    """A GPU is asked for, and this machine has none that CuPy can use."""


class NotEulerianError(ValueError):
    """There is no Euler circuit, or no Euler path; the message says at which vertices, and what exists instead.

    Attributes
    ----------
    vertices : tuple of int
        The vertices that the message names, in the order of the message; each replaces one ``{}`` of `text`.
    arcs : tuple of int
        Two arcs in different components, if one walk was requested; else empty.
    """

    def __init__(self, text: str, vertices: Sequence[int] = (), arcs: Sequence[int] = ()):
        super().__init__(text, tuple(vertices), tuple(arcs))
        self.vertices, self.arcs = tuple(vertices), tuple(arcs)

    def __str__(self) -> str:
        return self._named(str)

    def named(self, name: Callable[[int], str], graph: str) -> NotEulerianError:
        """Return this error for the graph called `graph`, with `name(vertex)` for every vertex in the message."""
        text = f"{graph}: {self._named(name)}"
        return NotEulerianError(text.replace("{", "{{").replace("}", "}}"), self.vertices, self.arcs)

    def _named(self, name: Callable[[int], str]) -> str:
        return str(self.args[0]).format(*map(name, self.vertices))


class VerificationError(ValueError):
    """A result is wrong; the message names the vertex, arc or element that proves it."""


class WeightRangeError(ValueError):
    """The weights or distances of a graph do not fit the requested dtype; the message names a dtype that may."""

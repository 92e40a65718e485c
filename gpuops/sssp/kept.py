"""Results that searches compute once for a graph. The graph keeps them, so that they are freed with the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Kept(dict[Callable[[Any], Any], Any]):
    """Results for a graph, by the functions that computed them. A pickle of the graph has none of them."""

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()


def kept_with_graph(compute: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Let a function of a graph compute its result at the first call only, and keep it in `graph.kept`."""

    @functools.wraps(compute)
    def kept(graph: Any) -> Result:
        if kept not in graph.kept:
            graph.kept[kept] = compute(graph)
        return graph.kept[kept]

    return kept

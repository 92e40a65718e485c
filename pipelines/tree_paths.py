"""Paths read off a paths store: follow the predecessors from the target until there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.numbers import outside_infinity
from pipelines.paths import NoPathError
from pipelines.stores import Graph, Paths, StoreError


@dataclass(frozen=True)
class TreePath:
    """A shortest path of a paths store."""

    vertices: tuple[int, ...]  # from the source to the target; one vertex if they are the same
    distance: Any  # as stored


def tree_path(paths: Paths, graph: Graph, source: int | None, target: int) -> TreePath:
    """The path to `target` in the row of `source`; with all sources as one, None leaves open which one is nearest.

    Raises
    ------
    NoPathError
        The target was not reached, or lies beyond the cutoff or the targets of the search.
    StoreError
        There is no such row, the path begins at another source, or the predecessors are damaged.
    """
    if source is None and not paths.together:
        raise StoreError(f"{paths.path}: holds a row for each source; name the one to start from")
    row = 0 if source is None else paths.row_of(source)
    distance = paths.distances((row, target))
    label = graph.label
    if distance == outside_infinity(paths.dtype):
        start = "any source" if source is None else f"vertex {label(source)}"
        kept = " within what the search was limited to" if paths.cutoff is not None or paths.targets else ""
        raise NoPathError(f"no path leads from {start} to vertex {label(target)}{kept}")
    vertices = _follow(paths, paths.predecessors(row), target)
    if source is not None and vertices[0] != source:
        if not paths.together:
            raise StoreError(
                f"{paths.path}: predecessors do not lead to vertex {source}; it is damaged, compute it anew"
            )
        raise StoreError(
            f"{paths.path}: holds paths from the nearest source; nearest to vertex {label(target)} is "
            f"{label(vertices[0])}, not {label(source)}; ask for the path from there"
        )
    return TreePath(tuple(vertices), distance.item())


def _follow(paths: Paths, predecessors: np.ndarray, target: int) -> list[int]:
    vertices = [target]
    while (before := int(predecessors[vertices[-1]])) >= 0:
        if before >= paths.n or len(vertices) == paths.n:
            raise StoreError(f"{paths.path}: the predecessors of vertex {target} form a cycle; compute it anew")
        vertices.append(before)
    return vertices[::-1]

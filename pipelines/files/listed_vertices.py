"""Read the vertices that the user lists, as sources and targets of searches: in Python, as options or in a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pipelines.files.tables import (
    check_expanded,
    column_names,
    column_vertices,
    has_column,
    is_table,
    open_text,
    read_columns,
    reading,
)
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.vertex_names import VertexNameList

SHOWN = 3  # vertices named in a message


def listed_vertices(graph: Graph, what: str, listed: VertexNameList) -> tuple[int, ...]:
    """Return the numbers of the vertices listed, by name or as `tilepath.positions` (see `Graph.vertices`).

    `what`, such as "source", is the role of the vertices in messages.

    Raises
    ------
    ValueError
        The list is empty, an entry is not a vertex, or a vertex is listed twice.
    """
    vertices = graph.vertices(listed, what)
    if len(vertices) == 0:
        raise ValueError(f"there is no {what}; name at least one ({what}s, --{what})")
    different, counts = np.unique(vertices, return_counts=True)
    if len(different) < len(vertices):
        twice = graph.label(different[counts > 1][0])
        raise ValueError(f"{what} {twice} is named twice; name each {what} once")
    return tuple(vertices.tolist())


def vertices_in_file(graph: Graph, what: str, path: str | os.PathLike[str]) -> list[int]:
    """Return the vertices listed in a file.

    In a table, the vertices are the column called `what`, or else `vertex`. Any other file has one vertex in each line.

    Raises
    ------
    ValueError
        An entry is not a vertex; the message names its row or line.
    """
    name = os.fspath(path)
    if is_table(path):
        table = read_columns(path, [what, "vertex"], optional=[what, "vertex"])
        if not table.column_names:
            places = "; tilepath.vertices_at moves places to vertices" if has_column(path, "lon") else ""
            raise ValueError(
                f"{name}: no column `{what}` or `vertex`; its columns are {', '.join(column_names(path))}; rename one, "
                f"or list one vertex per line of a .txt file{places}"
            )
        return column_vertices(table.column(0), graph, name).tolist()
    with reading(path):
        check_expanded(path)
    with reading(path), open_text(path) as stream:
        text = stream.read().decode("utf-8-sig")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
    vertices = graph.find([lines[number - 1] for number in numbers]).tolist()
    for number, vertex in zip(numbers, vertices, strict=True):
        if vertex < 0:
            try:
                graph.vertex(lines[number - 1])
            except StoreError as error:
                raise ValueError(f"{name}, line {number}: {error}") from None
    return vertices


def brief(graph: Graph, vertices: Any, none: str = "none") -> str:
    """Return the names of the first of `vertices`, a sequence of int, for a message; `none` if `vertices` is None."""
    if vertices is None:
        return none
    left = len(vertices) - SHOWN
    return ", ".join(graph.names(vertices[:SHOWN])) + (f" and {left:,} more" if left > 0 else "")

"""Vertices listed by the user: the sources and targets of searches, given in Python, as options or in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.answers.tables import DELIMITERS, PARQUET, column_vertices, open_text, read_columns, reading
from pipelines.stores import Graph, StoreError

SHOWN = 3  # vertices named in a message


def listed_vertices(graph: Graph, what: str, listed: Sequence[int | str] | np.ndarray) -> tuple[int, ...]:
    """The vertices listed as a `what`, such as "source": an int is an index, text a name as in `Graph.vertex`.

    Raises
    ------
    ValueError
        There is none, one is not a vertex, or one is listed twice.
    """
    if isinstance(listed, str) or np.ndim(listed) != 1:
        raise ValueError(f"the {what}s are not a list; give a list of vertices, each an index (int) or a name (str)")
    if len(listed) == 0:
        raise ValueError(f"there is no {what}; name at least one (--{what})")
    if isinstance(listed, np.ndarray) and listed.dtype.kind in "iu":
        vertices = listed
    else:
        vertices = np.array(_indices(graph, what, list(listed)))
    for wrong in vertices[(vertices < 0) | (vertices >= graph.n)][:1]:
        graph.vertex(wrong)  # which says what is wrong
    different, counts = np.unique(vertices, return_counts=True)
    if len(different) < len(vertices):
        twice = graph.label(different[counts > 1][0])
        raise ValueError(f"{what} {twice} is named twice; name each {what} once")
    return tuple(vertices.tolist())


def _indices(graph: Graph, what: str, given: list[Any]) -> list[int]:
    for name in given:
        if isinstance(name, bool) or not isinstance(name, int | np.integer | str):
            raise ValueError(f"{name!r} is not a {what}; give indices (int) or names (str)")
    texts = [i for i, name in enumerate(given) if isinstance(name, str)]
    if texts:
        for i, vertex in zip(texts, graph.find([given[i] for i in texts]).tolist(), strict=True):
            given[i] = vertex if vertex >= 0 else graph.vertex(given[i])
    return given


def vertices_in_file(graph: Graph, what: str, path: str | os.PathLike[str]) -> list[int]:
    """The vertices listed in a file: the column called `what`, or else `vertex`, of a table; else one in each line.

    Raises
    ------
    ValueError
        An entry is not a vertex; the message names its row or line.
    """
    name = os.fspath(path)
    if name.lower().endswith((*DELIMITERS, *PARQUET)):
        table = read_columns(path, [what, "vertex"], optional=[what, "vertex"])
        if not table.column_names:
            raise ValueError(
                f"{name}: no column `{what}` or `vertex`; rename one, or list one vertex per line of a .txt file"
            )
        return column_vertices(table.column(0), graph, name).tolist()
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
    """The names of the first of some vertices, a sequence of int, for a message; `none` where that is None."""
    if vertices is None:
        return none
    left = len(vertices) - SHOWN
    return ", ".join(graph.names(vertices[:SHOWN])) + (f" and {left:,} more" if left > 0 else "")

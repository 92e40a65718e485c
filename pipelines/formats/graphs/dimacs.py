"""Read graphs (`.gr`) and coordinates (`.co`) in the formats of the 9th DIMACS Implementation Challenge.

    c a comment                         c a comment
    p sp VERTICES ARCS                  p aux sp co VERTICES
    a TAIL HEAD WEIGHT                  v VERTEX X Y

Vertices are numbered from 1; the numbers become labels. Arcs are directed; a two-way road is listed twice.
http://www.diag.uniroma1.it/challenge9/format.shtml
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.text import NUMBER, VERTEX, Layout, read_table
from pipelines.formats.text_file import TextFile, count
from pipelines.stores.schema import counted


@contextmanager
def read_dimacs(source: str | os.PathLike[str]) -> Iterator[ArcStream]:
    """Yield the arcs of a `.gr` file."""
    with TextFile(source) as text:
        n, m = _problem(text, ["p", "sp"], 2)
        layout = Layout("a TAIL HEAD WEIGHT", (VERTEX, VERTEX, NUMBER), comments="c", prefix="a", n=n)
        yield ArcStream(announced_arcs(text, layout, m, text.number), n=n, labels=range(1, n + 1))


def read_coordinates(source: str | os.PathLike[str], n: int) -> np.ndarray:
    """Return the positions of n vertices from a `.co` file, float64 (n, 2); NaN for vertices that the file lacks."""
    with TextFile(source) as text:
        (announced,) = _problem(text, ["p", "aux", "sp", "co"], 1)
        if announced != n:
            raise text.error(
                f"announces {counted(announced, 'vertex', 'vertices')}, but the graph has {n}; use the file of the "
                "same graph"
            )
        return positions(text, Layout("v VERTEX X Y", (VERTEX, NUMBER, NUMBER), comments="c", prefix="v", n=n), n)


def positions(text: TextFile, layout: Layout, n: int) -> np.ndarray:
    """Return the positions of n vertices from lines of vertex, x and y, float64 (n, 2); NaN for a missing vertex."""
    found = np.full((n, 2), np.nan)
    for columns in read_table(text, layout):
        found[columns[0]] = np.column_stack([columns[1], columns[2]])
    return found


def _problem(text: TextFile, words: list[str], numbers: int) -> list[int]:
    """Return the numbers on the problem line, which begins with `words`."""
    form = " ".join(words) + {1: " VERTICES", 2: " VERTICES ARCS"}[numbers]
    while (line := text.line()) is not None:
        fields = line.split()
        if not fields or fields[0].startswith("c"):
            continue
        found = [number for word in fields[len(words) :] if (number := count(word)) is not None]
        if fields[: len(words)] != words or not len(found) == len(fields) - len(words) == numbers:
            raise text.error(
                f"{line.strip()[:80]!r} is not the problem line `{form}`; correct it, or add it before the first arc"
            )
        return found
    raise FormatError(f"{text.path}: has no problem line `{form}`; check that the file has this format (--format)")


def announced_arcs(
    text: TextFile, layout: Layout, announced: int, line: int, places: tuple[int, int, int | None] = (0, 1, 2)
) -> Iterator[Piece]:
    """Yield the arcs of the lines; FormatError if their number differs from the number in the header, on `line`.

    `places` are the columns of tails, heads and weights; without a column of weights, the pieces have none.
    """
    arcs, (tail, head, weight) = 0, places
    for columns in read_table(text, layout):
        arcs += len(columns[tail])
        yield columns[tail], columns[head], None if weight is None else columns[weight]
    if arcs != announced:
        cure = "the file is truncated; get a complete copy" if arcs < announced else "correct the header"
        raise text.error(
            f"announces {counted(announced, 'arc')}, but {arcs} follow, up to line {text.number}; {cure}", line
        )

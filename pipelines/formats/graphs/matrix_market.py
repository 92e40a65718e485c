"""Read Matrix Market coordinate files (`.mtx`): entry (i, j) = v is an arc from i to j of weight v.

    %%MatrixMarket matrix coordinate FIELD SYMMETRY
    % a comment
    ROWS COLUMNS ENTRIES
    I J VALUE

FIELD is `real`, `integer` or `pattern` (no values: unweighted); SYMMETRY is `general` (directed) or `symmetric` (each
entry is an undirected edge). In an integer file every value must be an integer. Stored zeros are arcs of weight 0.
Vertices are numbered from 1; their numbers become labels.
https://math.nist.gov/MatrixMarket/formats.html
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.dimacs import announced_arcs
from pipelines.formats.graphs.text import NUMBER, VERTEX, Layout
from pipelines.formats.text_file import TextFile, count


@contextmanager
def read_matrix_market(source: str | os.PathLike[str]) -> Iterator[ArcStream]:
    """Yield the arcs of a `.mtx` file."""
    with TextFile(source) as text:
        field, symmetry = _banner(text)
        n, announced = _size(text)
        values = field != "pattern"
        layout = Layout(
            "ROW COLUMN VALUE" if values else "ROW COLUMN",
            (VERTEX, VERTEX) + (NUMBER,) * values,
            comments="%",
            n=n,
            integers=field == "integer",
        )
        yield ArcStream(
            announced_arcs(text, layout, announced, text.number, (0, 1, 2 if values else None)),
            n=n,
            directed=symmetry == "general",
            weighted=values,
            weight_dtype="float64" if field in ("real", "double") else None,
            labels=range(1, n + 1),
        )


def _banner(text: TextFile) -> tuple[str, str]:
    line = text.line()
    if line is None:
        raise FormatError(f"{text.path}: is empty; get a new copy")
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise text.error(
            f"{line.strip()[:80]!r} is not the banner `%%MatrixMarket matrix coordinate FIELD SYMMETRY`; "
            "add it, or name the actual format (--format)"
        )
    layout, field, symmetry = words[2:]
    if layout != "coordinate":
        raise text.error(f"a dense matrix ({layout:.40}) lists no arcs; save it as sparse, in coordinate format")
    if field not in ("real", "double", "integer", "pattern"):
        raise text.error(f"values are {field:.40}; weights are real, integer or pattern; convert the matrix")
    if symmetry not in ("general", "symmetric"):
        raise text.error(f"a {symmetry:.40} matrix is not supported; save it as general, with both triangles")
    return field, symmetry


def _size(text: TextFile) -> tuple[int, int]:
    while (line := text.line()) is not None:
        words = line.split()
        if not words or words[0].startswith("%"):
            continue
        sizes = [size for word in words if (size := count(word)) is not None]
        if not len(words) == len(sizes) == 3:
            raise text.error(f"{line.strip()[:80]!r} is not the size line `ROWS COLUMNS ENTRIES`; correct it")
        rows, columns, entries = sizes
        if rows != columns:
            raise text.error(f"the matrix is {rows} x {columns}; the matrix of a graph must be square")
        return rows, entries
    raise text.error("the size line `ROWS COLUMNS ENTRIES` is missing; the file is truncated; get a complete copy")

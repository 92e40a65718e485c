"""Read and write adjacency text (`.adj`): each line has a vertex and the heads of its arcs.

    # a comment
    a -> b, c
    "Ulm, Donau" -> a
    d

Names become labels in order of first appearance. A line without an arrow, or with an empty list after the arrow, names
a vertex without arcs; a vertex may have several lines. A name with a comma, an arrow, a quotation mark or # is written
in quotation marks, and quotation marks in the name are doubled. A line that begins with # is a comment. The format has
no weights; the graph that is read is unweighted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from pipelines.files.output_file import check_free, whole_file
from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.vertices import NAME_BYTES, check_numbering
from pipelines.formats.text_file import BLANKS, TextFile, count
from pipelines.stores.graph import Graph, open_graph

ARROW = "->"
PIECE = 1 << 18  # approximate number of arcs in a piece

# A token between blanks: a quoted name, an arrow, a comma, or an unquoted name.
_TOKEN = re.compile(r'[ \t\r]*(?:"((?:[^"]|"")*)"|(->)|(,)|((?:[^",\-]|-(?!>))+))')
_QUOTED = re.compile(r'["#,\r\n]|->|^[ \t]|[ \t]$|^$')


@contextmanager
def read_adjacency(
    source: str | os.PathLike[str] | Sequence[str],
    labels: bool = True,
    directed: bool = True,
    vertices: int | None = None,
) -> Iterator[ArcStream]:
    """Yield the arcs of a text file with lines `a -> b, c`, or of a list of such lines.

    Parameters
    ----------
    labels : False: the names are numbers of vertices, from 0, and are not stored
    directed : False: each arc is an undirected edge, which the file has in the line of one of its ends
    vertices : number of vertices if vertices are numbers; default: implied by the largest number
    """
    name, lines = (os.fspath(source), None) if isinstance(source, str | os.PathLike) else ("the list", _listed(source))
    check_numbering(name, None, vertices, labels)
    with TextFile(name, lines=lines) as text:
        names: dict[str, int] | None = {} if labels else None
        stream = ArcStream((), n=vertices, labels=names, label_bytes=NAME_BYTES, directed=directed, weighted=False)
        stream.remarks.append(f"{name}: lines `a -> b, c`; no weights, so each arc counts 1")
        stream.pieces = _pieces(text, names, stream)
        yield stream


def _listed(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines without the line break at their ends; raise FormatError if one is not a line of text."""
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise FormatError(f"the list, line {number}: {line!r:.80} is not text; give all lines as text")
        ended = line.removesuffix("\n").removesuffix("\r")
        if "\n" in ended:
            raise FormatError(f"the list, line {number}: {line!r:.80} has a line break; give each line its own entry")
        yield ended


def looks_like_adjacency(path: str) -> bool:
    """Return True if the first line that is not a comment has an arrow."""
    with TextFile(path, plain=False) as text:
        while (line := text.line()) is not None:
            if line.strip(BLANKS) and line.lstrip(BLANKS)[0] not in "#%":
                return ARROW in line
    return False


def write_adjacency_text(
    graph: Graph | str | os.PathLike[str], path: str | os.PathLike[str], *, overwrite: bool = False
) -> int:
    """Write a graph as lines `a -> b, c`, with arcs in the order of the store and without weights.

    When the file is read again, vertices have the same names and rows, but are numbered in order of first appearance.
    Vertices without labels are written by position, and ``import_graph(..., labels=False)`` returns the same graph.

    Parameters
    ----------
    graph : Graph or path of a graph store
    path : path of the text file
    overwrite : replace an existing file

    Returns
    -------
    int
        The number of lines written, one for each vertex.

    Raises
    ------
    ValueError
        Two vertices have the same name, or a name has a line break.
    FileExistsError
        `path` exists.

    Examples
    --------
    >>> tilepath.write_adjacency_text(ring, "ring.txt")
    3
    >>> with open("ring.txt") as file:
    ...     print(file.read().rstrip())
    # vertices by index: import with labels=False (--no-labels)
    0 -> 1
    1 -> 2
    2 -> 0
    """
    check_free(path, overwrite)
    graph = open_graph(graph)
    labels = graph.labels()
    quoted: dict[str, str] = {}
    if labels is not None:
        for name in labels.tolist():
            if name in quoted:
                raise ValueError(
                    f"{graph.path}: several vertices are labelled {name!r}; a text could not tell them apart"
                )
            if re.search(r"[\r\n\0]", name):
                raise ValueError(f"{graph.path}: the label {name!r} has a line break, which a line of text cannot hold")
            quoted[name] = in_quotes(name)
    with whole_file(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        if labels is None:
            file.write("# vertices by index: import with labels=False (--no-labels)\n")
        for name, neighbours in graph:
            heads = [quoted.get(head, head) for head in neighbours]
            file.write(quoted.get(name, name) + (f" {ARROW} {', '.join(heads)}\n" if heads else "\n"))
    return graph.n


def in_quotes(name: str) -> str:
    """Return `name` as it is written in a line: in quotation marks if necessary."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"' if _QUOTED.search(name) else name


def _pieces(text: TextFile, names: dict[str, int] | None, stream: ArcStream) -> Iterator[Piece]:
    tails: list[int] = []
    heads: list[int] = []
    for number, line in _lines(text):
        found = _names(text, number, line)
        if names is None:
            vertices = [_numbered(text, number, name, stream.n) for name in found]
            stream.known = max(stream.known, vertices[0] + 1)
        else:
            vertices = [names.setdefault(name, len(names)) for name in found]
            stream.known = len(names)
        tails += vertices[:1] * (len(vertices) - 1)
        heads += vertices[1:]
        if len(tails) >= PIECE:
            yield _piece(tails, heads)
            tails, heads = [], []
    yield _piece(tails, heads)


def _piece(tails: list[int], heads: list[int]) -> Piece:
    return np.array(tails, np.int64), np.array(heads, np.int64), None


def _lines(text: TextFile) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is neither blank nor a comment."""
    for first, _, block in text.blocks():
        for number, line in enumerate(block.split(b"\n")[:-1], first):
            try:
                decoded = line.decode().strip(BLANKS)
            except UnicodeDecodeError:
                raise text.error("is not UTF-8; convert the file (iconv -t UTF-8)", number) from None
            if decoded and decoded[0] != "#":
                yield number, decoded


def _names(text: TextFile, number: int, line: str) -> list[str]:
    """Return the names in a line: the vertex, then its neighbours."""
    tail, _, rest = line.partition(ARROW)
    if '"' not in line and "#" not in line and ARROW not in rest:  # most lines
        names = [tail, *rest.split(",")] if rest.strip(BLANKS) else [tail]
        names = [name.strip(BLANKS) for name in names]
        if all(names) and "," not in tail:
            return names
    return _tokens(text, number, line)


def _tokens(text: TextFile, number: int, line: str) -> list[str]:
    """Return the names in a line with quotation marks, or raise FormatError for a faulty line."""
    shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
    names: list[str] = []
    at, arrows, wanted = 0, 0, True  # `wanted`: the next token must be a name
    while at < len(line):
        match = _TOKEN.match(line, at)
        if match is None:
            raise text.error(
                f"{shown} has an unmatched quotation mark; names may not extend over several lines", number
            )
        quoted, arrow, comma, plain = match.groups()
        at = match.end()
        if arrow:
            arrows += 1
            if wanted or arrows > 1:
                fault = "more than one arrow" if arrows > 1 else "no name before the arrow"
                raise text.error(
                    f"{shown} has {fault}, expected `a -> b, c`; put names that hold `->` in quotes", number
                )
            wanted = True
        elif comma:
            if wanted or not arrows:
                fault = "an empty name" if wanted else "a comma before the arrow"
                raise text.error(
                    f"{shown} has {fault}, expected `a -> b, c`; put names that hold a comma in quotes", number
                )
            wanted = True
        else:
            name = quoted.replace('""', '"') if quoted is not None else plain.strip(BLANKS)
            if quoted is None and "#" in plain:
                raise text.error(
                    f"{shown} has a # that may begin a comment; put that on a line of its own, or the name in quotes",
                    number,
                )
            if not name and quoted is None:
                continue  # blanks
            if not wanted:
                raise text.error(f"{shown} has two names without a comma between them; correct the line", number)
            names.append(name)
            wanted = False
    if wanted and len(names) != 1:  # after the arrow, the list of names may be empty
        raise text.error(f"{shown} has an empty name, expected `a -> b, c`; correct the line", number)
    return names


def _numbered(text: TextFile, number: int, name: str, n: int | None) -> int:
    vertex = count(name)
    if vertex is None:
        raise text.error(f"{name[:80]!r} is not the number of a vertex; leave labels=False (--no-labels) out", number)
    if n is not None and vertex >= n:
        raise text.error(
            f"names a vertex {vertex}, but there are {n}; correct the line or vertices (--vertices)", number
        )
    return vertex

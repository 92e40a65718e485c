"""Read edge lists in text: one edge per line, fields separated by blanks or a character (`.txt`, `.csv`, `.el`, ...).

    # a comment
    0 1 2.5

Vertices are numbers, counted from `base`, or names, which become labels in order of first appearance.

The first line is a header if it has a well-known pair of column names, such as source and target, or if every field is
a word above a column of numbers. It is an edge if no field is a word above numbers. If neither is the case, the line is
refused as unclear.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.columns import Columns, choose_columns, well_known_pairs
from pipelines.formats.graphs.osmnx import units_in
from pipelines.formats.graphs.text import LABEL, NUMBER, SKIP, VERTEX, Layout, read_table
from pipelines.formats.graphs.vertices import Names, check_numbering, edge_stream
from pipelines.formats.text_file import BLANKS, TextFile, count, is_number, is_whole

SAMPLE_LINES = 1000  # lines examined to decide whether the first line is a header
_OTHER_KIND, _DOUBT, _SAME_KIND = "a word above numbers", "a word above numbers, perhaps", "like the fields below"


@contextmanager
def read_edge_list(
    source: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    weight: str | int | None = None,
    delimiter: str | None = None,
    comment: str = "#%",
    base: int | None = None,
    vertices: int | None = None,
    labels: bool | None = None,
    header: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """Yield the edges of a text file.

    Parameters
    ----------
    columns : positions from 0, or names in the header, of tail, head and optionally weight (`choose_columns`)
    weight : column of weights, if `columns` has only tail and head
    delimiter : character between fields; "": runs of blanks; default: "," in `.csv`, tab in `.tsv`, else blanks
    comment : characters; lines that begin with one of these characters are skipped
    base : number of the first vertex; default 0
    vertices : number of vertices if vertices are numbers; default: implied by the largest number
    labels : True if vertices are names; default: True unless both ends of the first edge are whole numbers
    header : True if the first line names the columns; default: True if columns are given by name, else by `is_header`
    directed : False: each line is an undirected edge
    """
    name = os.fspath(source)
    delimiter = _delimiter(name, delimiter, comment)
    with TextFile(source) as text:
        rows = _first_rows(text, delimiter, comment)
        empty = "if it is a graph without edges, pass the number of its vertices (--vertices)"
        if not rows and vertices is None:
            raise FormatError(f"{name}: holds no edges; check that it is the right file; {empty}")
        if header is None:
            header = bool(rows) and (
                _asked_by_name(rows[0], columns, weight)
                or is_header(text, rows, _places(len(rows[0]), columns, weight), bool(labels))
            )
        names: list[str] = []
        if header and rows:
            text.line()
            names = rows.pop(0)
        if not rows and vertices is None:
            raise text.error(
                f"is a header, and no edge follows; if it is an edge, pass header=False (--no-header); {empty}"
            )
        width = len(names or (rows[0] if rows else "TH"))
        chosen = choose_columns(name, width, names, columns, weight)
        if labels is None and rows:
            row = rows[0]
            labels = len(row) > max(chosen.tail, chosen.head) and not (
                is_whole(row[chosen.tail]) and is_whole(row[chosen.head])
            )
        check_numbering(name, base, vertices, bool(labels))
        words = {chosen.tail: "TAIL", chosen.head: "HEAD", chosen.weight: "WEIGHT"}
        kinds = {"TAIL": LABEL if labels else VERTEX, "HEAD": LABEL if labels else VERTEX, "WEIGHT": NUMBER}
        form = [words.get(i, "...") for i in range(width)]
        layout = Layout(
            form=(delimiter or " ").join(form),
            kinds=tuple(kinds.get(word, SKIP) for word in form),
            delimiter=delimiter,
            comments=comment,
            base=base or 0,
            n=vertices,
            cure="pass labels=True (--labels) if vertices have names",
        )
        known = Names() if labels else None
        began = f"line {text.number} is a header" if names else "no header"
        yield edge_stream(
            _pieces(text, layout, chosen, known),
            known,
            source=name,
            base=base,
            n=vertices,
            directed=directed,
            weighted=chosen.weight is not None,
            weight_unit=names[chosen.weight] if names and chosen.weight is not None else "",
            units=units_in(names or ()),
            remarks=[f"{name}: {began}; {chosen.described(names)}{chosen.unread(names) if directed else ''}"],
        )


def _pieces(text: TextFile, layout: Layout, chosen: Columns, names: Names | None) -> Iterator[Piece]:
    for columns in read_table(text, layout):
        tails, heads = columns[chosen.tail], columns[chosen.head]
        if names is not None:
            tails, heads = names.number(tails, heads)
        yield tails, heads, None if chosen.weight is None else columns[chosen.weight]


def _delimiter(name: str, given: str | None, comment: str) -> str:
    """Return the character between fields, or "" for runs of blanks."""
    suffix = os.path.splitext(name.removesuffix(".gz"))[1].lower()
    delimiter = {".csv": ",", ".tsv": "\t"}.get(suffix, "") if given is None else given
    if len(delimiter.encode(errors="replace")) > 1 or re.match(r'[\w"\r\n.+-]', delimiter) or not comment.isascii():
        raise FormatError(
            f"{name}: the delimiter is {delimiter!r}, the comment characters are {comment!r}; give ASCII characters, "
            "and a delimiter that is not part of names or numbers"
        )
    return "" if delimiter == " " else delimiter


def _first_rows(text: TextFile, delimiter: str, comment: str) -> list[list[str]]:
    """Return the fields of the first lines without comments and blank lines, of at least two lines if there are two.

    Comments and blank lines at the start of the file are consumed; the returned lines remain to be read.
    """
    blanks = BLANKS.replace(delimiter, "")

    def skipped(line: str) -> bool:
        line = line.lstrip(blanks)
        return not line or line[0] in comment

    while (lines := text.peek(1)) and skipped(lines[0]):
        text.line()
    wanted = SAMPLE_LINES
    rows: list[list[str]] = []
    while len(rows) < 2:
        lines = text.peek(wanted)
        rows = [_split(line, delimiter, blanks) for line in lines if not skipped(line)]
        if len(lines) < wanted:
            break
        wanted *= 4
    return rows


def _split(line: str, delimiter: str, blanks: str) -> list[str]:
    """Return the fields of a line, split as in `read_table`."""
    if not delimiter:
        return re.findall(f"[^{blanks}]+", line)
    apart, ends = re.escape(delimiter), rf"[{blanks}]*"
    field = re.compile(rf'{ends}(?:"((?:[^"]|"")*)"{ends}|([^{apart}]*))({apart}|$)')
    fields, at = [], 0
    while True:
        found = field.match(line, at)
        assert found is not None  # anything up to the next delimiter is a field
        quoted, plain, delimited = found.groups()
        fields.append(plain.strip(blanks) if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if not delimited:
            return fields


def _asked_by_name(first: list[str], columns: Sequence[str | int] | None, weight: str | int | None) -> bool:
    """Return True if the first line has a column name that the user gave."""
    return any(isinstance(c, str) and c in first and count(c) is None for c in [*(columns or []), weight])


def _places(width: int, columns: Sequence[str | int] | None, weight: str | int | None) -> list[int]:
    """Return the positions of tail, head and optionally weight in a table without a header."""
    if columns is None:
        columns = [0, 1] if width != 3 else [0, 1, 2]
    chosen = [*columns[:2], weight] if weight is not None else columns
    found = (count(c) if isinstance(c, str) else c for c in chosen)
    return [c for c in found if c is not None and 0 <= c < width]


def is_header(text: TextFile, rows: Sequence[Sequence[str]], chosen: Sequence[int], named: bool) -> bool:
    """Return True if the first row names the columns of the table.

    Parameters
    ----------
    text : the file; its next line is the first row
    rows : fields of its first lines, without comments and blank lines
    chosen : columns that hold tail, head and optionally weight if there is no header
    named : True if the vertices are names, which may look like numbers

    Raises
    ------
    FormatError
        The first row may be a header or an edge.
    """
    first, below = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    ends = [column for column in chosen[:2] if column < len(first)]
    numbers = any(map(is_number, first))
    kinds = {}
    for column, word in enumerate(first):
        is_kind = is_whole if column in ends else is_number
        kind = _kind(word, [row[column] for row in below], is_kind, named and column in ends)
        # Columns that are not chosen count only in part: there an edge may have an empty field or a word. But few
        # headers have numbers.
        if column in chosen or (word and kind != _DOUBT and not numbers):
            kinds[column] = kind
    if pairs := well_known_pairs(first):
        certain = bool(well_known_pairs(first, vague=False))
        again = {row[end] for row in below for pair in pairs for end in pair}  # names of vertices
        repeated = any(first[end] in again for pair in pairs for end in pair)
        if not (numbers or repeated) and (certain or _OTHER_KIND in kinds.values()):
            return True
        if certain or not (numbers or repeated):
            raise _doubt(text, first, "it has words that often name columns")
    found = set(kinds.values())
    if not below or found <= {_SAME_KIND}:
        return False
    if found == {_OTHER_KIND}:
        return True
    odd = next(first[column] for column, kind in kinds.items() if kind != _SAME_KIND)
    raise _doubt(text, first, f"{odd!r} stands above numbers")


def _kind(word: str, below: Sequence[str], is_kind: Callable[[str], bool], named: bool) -> str:
    numbers = sum(map(is_kind, below))
    if not numbers or is_kind(word):
        return _SAME_KIND
    return _DOUBT if numbers < len(below) or named or not word or _is_float(word) else _OTHER_KIND


def _is_float(word: str) -> bool:
    """Return True if `float` accepts the word, as it accepts the airport codes INF, NAN and 1E5."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _doubt(text: TextFile, first: Sequence[str], why: str) -> FormatError:
    shown = ", ".join(map(repr, first))
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return text.error(
        f"{shown} may be a header or an edge: {why}; pass header=True (--header) or header=False (--no-header)",
        text.number + 1,
    )

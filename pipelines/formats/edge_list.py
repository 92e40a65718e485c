"""Edge lists in text: one edge per line, fields separated by blanks or by a character (`.txt`, `.csv`, `.el`, ...).

    # a comment
    0 1 2.5

Vertices are numbers, counted from `base`, or names, which become labels in order of first appearance.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np

from pipelines.arc_sort import ArcStream, FormatError, Piece
from pipelines.formats.columns import Names, choose_columns
from pipelines.formats.text import LABEL, NUMBER, SKIP, VERTEX, Layout, read_table
from pipelines.formats.text_file import TextFile


@contextmanager
def read_edge_list(
    source: str | os.PathLike[str],
    columns: Sequence[str | int] | None = None,
    weight: str | int | None = None,
    delimiter: str | None = None,
    comment: str = "#%",
    base: int = 0,
    labels: bool | None = None,
    header: bool | None = None,
    directed: bool = True,
) -> Iterator[ArcStream]:
    """The edges of a text file.

    Parameters
    ----------
    columns : positions from 0, or names in the header, of tail, head and perhaps weight (`choose_columns`)
    weight : column of weights, where `columns` has only two
    delimiter : character between fields; "": runs of blanks; default: "," in `.csv`, tab in `.tsv`, else blanks
    comment : lines whose first character is one of these are skipped
    base : number of the first vertex
    labels : are vertices names? Default: they are where the first line has no whole numbers
    header : does the first line name the columns? Default: where it has no numbers and the next line does, or
        where columns are given by name
    directed : False: each line is an undirected edge
    """
    name = os.fspath(source)
    suffix = os.path.splitext(name.removesuffix(".gz"))[1].lower()
    delimiter = {".csv": ",", ".tsv": "\t"}.get(suffix, "") if delimiter is None else delimiter
    delimiter = "" if delimiter == " " else delimiter
    if len(delimiter.encode()) > 1 or not comment.isascii():
        raise FormatError(f"{name}: delimiter and comment characters are single ASCII characters; give others")
    with TextFile(source) as text:
        while (lines := text.peek(1)) and (not lines[0].strip() or lines[0].lstrip()[0] in comment):
            text.line()
        rows = [_split(line, delimiter) for line in text.peek(2)]
        if not rows:
            raise FormatError(f"{name}: holds no edge; is it the right file?")
        chosen = [c for c in [*(columns or []), weight] if c is not None]
        if header is None:
            header = any(isinstance(c, str) and c in rows[0] and not c.isdecimal() for c in chosen)
            header = header or _looks_like_header(rows)
        if header:
            text.line()
        names = rows[0] if header else []
        row = rows[1] if header and len(rows) > 1 else rows[0]
        tail, head, value = choose_columns(name, len(rows[0]), names, columns, weight)
        if labels is None:
            labels = len(row) > max(tail, head) and not (_is_whole(row[tail]) and _is_whole(row[head]))
        kinds = [SKIP] * len(rows[0])
        kinds[tail] = kinds[head] = LABEL if labels else VERTEX
        if value is not None:
            kinds[value] = NUMBER
        words = {tail: "TAIL", head: "HEAD", value: "WEIGHT"}
        layout = Layout(
            form=(delimiter or " ").join(words.get(i, "...") for i in range(len(kinds))),
            kinds=tuple(kinds),
            delimiter=delimiter,
            comments=comment,
            base=base,
            cure="pass labels=True (--labels) if vertices have names",
        )
        yield ArcStream(
            _pieces(text, layout, tail, head, value, known := Names() if labels else None),
            directed=directed,
            labels=map(str, count(base)) if known is None and base else known,
            weight_unit=names[value] if names and value is not None else "",
        )


def _pieces(
    text: TextFile, layout: Layout, tail: int, head: int, value: int | None, names: Names | None
) -> Iterator[Piece]:
    for columns in read_table(text, layout):
        tails, heads = columns[tail], columns[head]
        if names is not None:
            tails, heads = names.number(tails, heads)
        yield tails, heads, np.ones(len(tails), np.int32) if value is None else columns[value]


def _split(line: str, delimiter: str) -> list[str]:
    if not delimiter:
        return line.split()
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter), [])]


def _is_whole(word: str) -> bool:
    return word.removeprefix("-").isdecimal()


def _looks_like_header(rows: list[list[str]]) -> bool:
    """Words on the first line where the second has numbers."""

    def numbers(row: list[str]) -> list[bool]:
        return [_is_number(word) for word in row]

    return len(rows) == 2 and len(rows[0]) == len(rows[1]) and not any(numbers(rows[0])) and any(numbers(rows[1]))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True

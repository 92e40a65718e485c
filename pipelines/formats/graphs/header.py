"""Decide whether the first line of a table of edges is a header or an edge; if that is unclear, raise an error.

The line is a header if it has a well-known pair of column names, such as source and target, or if every field is a word
above a column of numbers. It is an edge if no field is a word above numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.graphs.columns import well_known_pairs
from pipelines.formats.graphs.decimals import is_number, is_whole
from pipelines.formats.text_file import TextFile

_OTHER_KIND, _DOUBT, _SAME_KIND = "a word above numbers", "a word above numbers, perhaps", "like the fields below"


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
    return text.error(f"{shown} may be a header or an edge: {why}; pass --header or --no-header", text.number + 1)

"""Read tables in text: blocks of whole lines are turned into columns in one pass over the bytes.

A `Layout` describes a line: a class for each of the 256 bytes, and a kind for each field. One compiled scan splits,
checks and converts a block; threads scan several blocks at a time. The scan counts lines, so naming the line of an
error takes time only if there is an error. pyarrow converts decimal numbers. Its CSV reader is not used: it accepts
neither runs of blanks nor comments nor leading letters, and does not name the faulty line. Rewriting the text for
pyarrow takes longer than this scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, no_type_check

import numba
import numpy as np
import pyarrow as pa

from pipelines.formats.errors import FormatError
from pipelines.formats.text_file import BLANKS, TextFile, rounded
from pipelines.workers.ahead import in_turn

SKIP, VERTEX, NUMBER, LABEL = range(4)  # kinds of fields
_DECIMAL = 4  # kind of a NUMBER field after a value that is not a plain integer was found in it
ORDINARY, QUOTE, COMMENT, BLANK, DELIMITER, NEWLINE = range(6)  # classes of bytes

_NO_PREFIX, _WRONG_WIDTH, _NO_VERTEX, _OUTSIDE, _EMPTY, _OPEN_QUOTE, _NO_NUMBER, _ROUNDED, _NO_UTF8, _NOT_PLAIN = range(
    1, 11
)
_NO_INTEGER = 11


@dataclass(frozen=True)
class Layout:
    """The format of the lines of a table.

    Attributes
    ----------
    form : the fields of a line, for messages
    kinds : kind of each field: SKIP, VERTEX, NUMBER or LABEL
    delimiter : the byte between two fields; empty: runs of blanks and tabs
    blanks : further bytes that count as blanks
    comments : bytes; a line that begins with one of these bytes is skipped
    prefix : the letter at the start of every line, or empty
    base : number of the first vertex
    n : number of vertices, or None if it is not known
    integers : True if the header says that a NUMBER is an integer
    cure : cure in the message about a field that is not a vertex number
    """

    form: str
    kinds: tuple[int, ...]
    delimiter: str = ""
    blanks: str = ""
    comments: str = ""
    prefix: str = ""
    base: int = 1
    n: int | None = None
    integers: bool = False
    cure: str = "correct the line"

    def classes(self) -> np.ndarray:
        """Return the class of each byte, uint8 (256)."""
        table = np.full(256, ORDINARY, dtype=np.uint8)
        for characters, kind in (
            (BLANKS + self.blanks, BLANK),
            ('"' if self.delimiter else "", QUOTE),
            (self.comments, COMMENT),
            (self.delimiter, DELIMITER),
            ("\n", NEWLINE),
        ):
            table[list(characters.encode())] = kind
        return table


def read_table(text: TextFile, layout: Layout) -> Iterator[dict[int, Any]]:
    """Yield the columns of the remaining lines, block by block.

    Returns
    -------
    iterator of dict
        The column of each field, by the field's position. VERTEX: int64 array, from 0; NUMBER: finite int64 or float64
        array; LABEL: pyarrow string array.

    Raises
    ------
    FormatError
        A line is faulty; the message names the first faulty line.
    """
    table = _Table(text, layout)
    for found in in_turn(table.columns, text.blocks()):
        if found:
            yield found


class _Table:
    """Turns blocks into columns. Blocks are independent, so threads may do this at the same time."""

    def __init__(self, text: TextFile, layout: Layout):
        self._text, self._layout, self._classes = text, layout, layout.classes()
        self._high = np.iinfo(np.int64).max if layout.n is None else layout.base + layout.n
        # Fields become _DECIMAL here when a block has decimals in them, so that later blocks are scanned only once.
        self._kinds = np.array(layout.kinds, dtype=np.int8)
        self._places = {field: column for column, field in enumerate(np.flatnonzero(self._kinds != SKIP).tolist())}
        self._slots = np.array([self._places.get(field, 0) for field in range(len(self._kinds))], dtype=np.int64)

    def columns(self, part: tuple[int, int, bytes]) -> dict[int, Any]:
        first_line, rows, block = part
        layout, kinds, columns = self._layout, self._kinds.copy(), len(self._places)
        integers, lines = np.empty((columns, rows), dtype=np.int64), np.empty(rows, dtype=np.int32)
        packed, ends = np.empty((columns, 0), dtype=np.uint8), np.zeros((columns, rows + 1), dtype=np.int32)
        count, fault, line = 0, _NOT_PLAIN, 0
        while fault == _NOT_PLAIN:  # scan again, and keep the text of the field that is not a plain integer
            if packed.shape[1] < len(block) and not {LABEL, _DECIMAL}.isdisjoint(kinds):
                packed = np.empty((columns, len(block)), dtype=np.uint8)
            count, fault, line, field = _scan(
                np.frombuffer(block, dtype=np.uint8), self._classes, layout.delimiter == "",
                ord(layout.prefix) if layout.prefix else 0, kinds, self._slots, layout.base, self._high, integers,
                packed, ends, lines,
            )  # fmt: skip
            if fault == _NOT_PLAIN:
                kinds[field] = self._kinds[field] = _DECIMAL
        found: dict[int, Any] = {}
        for field, column in self._places.items():
            if fault:
                break
            if kinds[field] in (VERTEX, NUMBER):
                found[field] = integers[column, :count]
                continue
            strings = pa.StringArray.from_buffers(
                count, pa.py_buffer(ends[column, : count + 1]), pa.py_buffer(packed[column])
            )
            if kinds[field] == LABEL:
                found[field], bad, kind = strings, first_not_utf8(strings), _NO_UTF8
            else:
                found[field], bad, kind = _numbers(strings, layout.integers)
            if bad is not None:
                fault, line = kind, int(lines[bad])
        if fault:
            raise _error(self._text, layout, fault, first_line + line, block.split(b"\n", line + 1)[line])
        return found if count else {}


def _numbers(strings: pa.StringArray, integers: bool) -> tuple[np.ndarray, int | None, int]:
    """Return the numbers in `strings`, the position of the first faulty number (None if all are valid), and its fault.

    With `integers`, a number that is not a 64-bit integer is faulty.

    The scan accepts only digits, signs, points and e, so no string is hexadecimal, "inf" or "nan".
    """
    try:
        strings[:100].cast(pa.int64())  # most columns of decimals fail here, faster than a cast of all strings
        return strings.cast(pa.int64()).to_numpy(), None, 0
    except pa.ArrowInvalid:
        if integers:
            return np.zeros(0), next(i for i in range(len(strings)) if not _is_integer(strings[i : i + 1])), _NO_INTEGER
    try:
        values = strings.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return np.zeros(0), next(i for i in range(len(strings)) if not _is_number(strings[i : i + 1])), _NO_NUMBER
    infinite = np.flatnonzero(~np.isfinite(values))
    if infinite.size:
        return values, int(infinite[0]), _NO_NUMBER
    large = np.flatnonzero(np.abs(values) >= 2.0**53)
    return values, next((i for i in large.tolist() if rounded(strings[i].as_py())), None), _ROUNDED


def _is_number(one: pa.StringArray) -> bool:
    try:
        return bool(np.isfinite(one.cast(pa.float64())[0].as_py()))
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return False


def _is_integer(one: pa.StringArray) -> bool:
    try:
        return one.cast(pa.int64()) is not None
    except pa.ArrowInvalid:
        return False


def first_not_utf8(strings: pa.StringArray) -> int | None:
    """Return the position of the first string that is not UTF-8; None if all are UTF-8."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return next(i for i, item in enumerate(strings.cast(pa.binary())) if not _is_utf8(item.as_py()))
    return None


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _error(text: TextFile, layout: Layout, fault: int, line: int, content: bytes) -> FormatError:
    shown = content.decode(errors="replace").strip()
    shown = repr(shown if len(shown) <= 80 else shown[:77] + "...")
    last = "" if layout.n is None else f"..{layout.base + layout.n - 1}"
    what = {
        _NO_PREFIX: f"{shown} does not begin with {layout.prefix!r}, expected `{layout.form}`; correct the line",
        _WRONG_WIDTH: f"{shown} does not have {len(layout.kinds)} fields, expected `{layout.form}`; correct the line",
        _NO_VERTEX: f"{shown} does not name its vertices by whole numbers, expected `{layout.form}`; {layout.cure}",
        _OUTSIDE: f"{shown} names a vertex outside {layout.base}{last or ' and up'}; "
        + ("correct the line or the number of vertices" if last else "correct the line or the base (--base)"),
        _EMPTY: f"{shown} has an empty field, expected `{layout.form}`; complete or remove the line",
        _OPEN_QUOTE: f"{shown} has an unmatched quotation mark; names may not extend over several lines",
        _NO_NUMBER: f"{shown} has a value that is not a finite float64 number, expected `{layout.form}`; "
        "correct it, or leave out an arc that does not exist",
        _ROUNDED: f"{shown} has an integer that float64, the type of its column, does not hold exactly; round it, or "
        "write the whole column as 64-bit integers",
        _NO_INTEGER: f"{shown} has a value that is not a 64-bit integer, as the header announces; correct it, or write "
        "real in the header",
        _NO_UTF8: f"{shown} is not UTF-8; convert the file (iconv -t UTF-8)",
    }
    return text.error(what[fault], line)


@numba.njit(nogil=True, cache=True)
@no_type_check  # mypy does not know Numba's integer types
def _scan(text, classes, blanks_separate, prefix, kinds, slots, low, high, integers, packed, ends, lines):
    """Split, check and convert the lines of a block that ends in a newline.

    Writes whole numbers to `integers` (columns, rows), text to `packed` (the bytes of all fields of a column, joined)
    and `ends` (where each field ends there), and the line of each row to `lines`. Returns the number of rows, the fault
    (0: no fault), and the line and the field of the fault.

    One long function on purpose: with a function for each step, it took 1.3 to 1.6 times as long, inlined or not.
    """
    ending = BLANK if blanks_separate else DELIMITER  # bytes of this class and of higher classes end a field
    at = line = row = 0
    while at < text.size:
        while classes[text[at]] == BLANK:
            at += 1
        if classes[text[at]] == COMMENT:
            while text[at] != 10:
                at += 1
        if text[at] == 10:
            at += 1
            line += 1
            continue
        if prefix:
            if text[at] != prefix or classes[text[at + 1]] != BLANK:
                return row, _NO_PREFIX, line, 0
            at += 1
        field = 0
        while True:
            while classes[text[at]] == BLANK:
                at += 1
            if blanks_separate and text[at] == 10:
                break
            if field >= kinds.size:
                return row, _WRONG_WIDTH, line, field
            kind, slot = kinds[field], slots[field]
            quoted = classes[text[at]] == QUOTE
            if quoted:
                at += 1
            start = digits = at
            value = 0
            if kind == VERTEX or kind == NUMBER:
                if text[at] == 45 or text[at] == 43:  # minus, plus
                    at += 1
                digits = at
                while 48 <= text[at] <= 57:
                    value = value * 10 + (np.int64(text[at]) - 48)
                    at += 1
                if text[start] == 45:
                    value = -value
            whole = 0 < at - digits <= 18  # up to 18 digits fit in int64
            ended = at
            if quoted:
                while classes[text[at]] != QUOTE or classes[text[at + 1]] == QUOTE:
                    if text[at] == 10:
                        return row, _OPEN_QUOTE, line, field
                    at += 2 if classes[text[at]] == QUOTE else 1
                stop = at
                at += 1
                while classes[text[at]] == BLANK:
                    at += 1
                if classes[text[at]] != DELIMITER and text[at] != 10:
                    return row, _OPEN_QUOTE, line, field
            else:
                while classes[text[at]] < ending:
                    at += 1
                stop = at
                while stop > start and classes[text[stop - 1]] == BLANK:
                    stop -= 1
            whole &= ended == stop
            if kind == VERTEX:
                if not whole:
                    return row, _NO_VERTEX, line, field
                if value < low or value >= high:
                    return row, _OUTSIDE, line, field
                integers[slot, row] = value - low
            elif kind == NUMBER:
                if not whole:
                    return row, _NOT_PLAIN, line, field
                integers[slot, row] = value
            elif kind != SKIP:
                if start == stop:
                    return row, _EMPTY, line, field
                end = ends[slot, row]
                while start < stop:
                    if kind == _DECIMAL and not (
                        48 <= text[start] <= 57
                        or text[start] == 43
                        or 45 <= text[start] <= 46
                        or text[start] | 32 == 101
                    ):  # digits, plus, minus, point, E
                        return row, _NO_NUMBER, line, field
                    packed[slot, end] = text[start]
                    end += 1
                    start += 2 if quoted and classes[text[start]] == QUOTE else 1
                ends[slot, row + 1] = end
            field += 1
            if text[at] == 10:
                break
            if classes[text[at]] == DELIMITER:
                at += 1
        if field != kinds.size:
            return row, _WRONG_WIDTH, line, field
        lines[row] = line
        row += 1
    return row, 0, 0, 0

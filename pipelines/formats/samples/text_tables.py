"""The format of a text table, and its records with their lines, read with Python's csv module.

pyarrow does not support fields that are separated by runs of blanks, and does not tell the line of a row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.formats.errors import FormatError
from pipelines.formats.text_file import TextFile

WHITESPACE = "whitespace"  # as a delimiter: fields are separated by any number of blanks and tabs


class TextTable(NamedTuple):
    """The format of a text file: the delimiter and the decimal mark.

    If `blanks`, every run of blanks is first replaced by a tab, which is then the `delimiter`.
    """

    source: str
    delimiter: str
    blanks: bool
    decimal: str

    @property
    def parted_by(self) -> str:
        return WHITESPACE if self.blanks else repr(self.delimiter)

    def is_number(self, word: str) -> bool:
        """Return True if a field is a number with this decimal mark."""
        if self.decimal != ".":
            word = "no number" if "." in word else word.replace(self.decimal, ".")
        try:
            float(word)
        except ValueError:
            return False
        return "_" not in word

    def first_record(self) -> tuple[int, list[str]]:
        """Return the last line of the first record, and its fields; no fields if the file is empty."""
        with TextFile(self.source, plain=False) as file:
            return next(self._records(file, self._lines(file)), (0, []))

    def records(self, file: TextFile, begin: int, row: int) -> Iterator[tuple[int, list[str]]]:
        """Yield line and fields of each row from `row` on; rows are counted from 0, after the first `begin` lines."""
        lines = self._lines(file)
        for _ in islice(lines, begin):
            pass
        yield from islice(self._records(file, lines, begin), row, None)

    def line_of(self, begin: int, row: int) -> int | None:
        """Return the line in which row `row` ends; None if there is no such row."""
        with TextFile(self.source, plain=False) as file:
            return next((line for line, _ in self.records(file, begin, row)), None)

    @contextmanager
    def stream(self) -> Iterator[Any]:
        """Yield the text as a stream for pyarrow, with fields separated by `delimiter`."""
        if self.blanks:
            with TextFile(self.source, plain=False) as file:
                yield _Blocks(_one_tab(block) for _, _, block in file.blocks())
            return
        with open(self.source, "rb") as raw:
            gzipped = raw.read(2) == b"\x1f\x8b"
        with pa.input_stream(self.source, compression="gzip" if gzipped else None) as stream:
            yield stream

    def _lines(self, file: TextFile) -> Iterator[str]:
        for _, _, block in file.blocks():
            block = _one_tab(block) if self.blanks else block
            yield from block.decode(errors="replace").split("\n")[:-1]

    def _records(self, file: TextFile, lines: Iterable[str], begin: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line and the fields of every record that is not blank; `begin` lines come before `lines`."""
        reader = csv.reader(lines, delimiter=self.delimiter)
        try:
            yield from ((begin + reader.line_num, fields) for fields in reader if fields)
        except csv.Error as error:
            raise file.error(f"{error}; check that it is a text file", begin + reader.line_num) from error


def text_table(source: str, delimiter: str | None, decimal: str) -> TextTable:
    """Return the format of `source`; FormatError if the delimiter or the decimal mark is not valid."""
    if decimal not in (".", ","):
        raise FormatError(f"{source}: the decimal mark is {decimal!r}; give a point or a comma (decimal, --decimal)")
    if delimiter is None:
        of_csv = ";" if decimal == "," else ","
        delimiter = "\t" if source.removesuffix(".gz").lower().endswith(".tsv") else of_csv
    if delimiter == WHITESPACE:
        return TextTable(source, "\t", True, decimal)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise FormatError(f"{source}: the delimiter is {delimiter!r}; give one ASCII character, or {WHITESPACE}")
    if delimiter == decimal:
        raise FormatError(
            f"{source}: {decimal!r} cannot be both delimiter and decimal mark; name another delimiter (--delimiter)"
        )
    return TextTable(source, delimiter, False, decimal)


# A quoted field, which is kept, or a run of blanks; blanks at the end of a line are dropped.
_BLANKS = re.compile(rb'("(?:[^"]|"")*")|[ \t]+(\r?\n)|[ \t]+')
_LEADING = re.compile(rb"^[ \t]+", re.MULTILINE)


def _one_tab(block: bytes) -> bytes:
    """Return whole lines with every run of blanks and tabs outside of quotes replaced by one tab."""

    def put(found: re.Match[bytes]) -> bytes:
        return found[1] or found[2] or b"\t"

    return _BLANKS.sub(put, _LEADING.sub(b"", block))


class _Blocks(io.RawIOBase):
    """A readable file of blocks of bytes, for pyarrow."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            block = next(self._blocks, None)
            if block is None:
                break
            self._rest += block
        size = len(self._rest) if size < 0 else size
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

"""Read text files of any size, gzip'd or not: the header by lines, then blocks of whole lines; lines are counted.

Numbers in text are plain decimal literals with the digits 0 to 9, no underscores, hexadecimals or `inf`.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np

from pipelines.formats.errors import FormatError
from pipelines.stores.errors import raise_if_of_system

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INT64_DIGITS = 18  # a number of up to 18 digits fits in int64
BLOCK_BYTES = 8 << 20
BLANKS = " \t\r"  # blanks between and around fields
# Zero bytes, and carriage returns without a line feed, whether meant as line breaks or not.
_ODD = re.compile(rb"\r(?![\r\n]|\Z)|\0")


def is_whole(word: str) -> bool:
    """Return True if `word` is a whole number."""
    return _WHOLE.fullmatch(word) is not None


def is_number(word: str) -> bool:
    """Return True if `word` is a whole or decimal number."""
    return _NUMBER.fullmatch(word) is not None


def count(word: str) -> int | None:
    """Return the non-negative integer that `word` denotes; None if it is no such integer or has more than 18 digits.

    >>> count("007"), count("-1"), count("9" * 5000), count("٣")
    (7, None, None, None)
    """
    if not (word.isascii() and word.isdecimal() and len(word) <= _INT64_DIGITS):
        return None
    return int(word)


def rounded(word: str) -> bool:
    """Return True if `word` is an integer that is not exact in float64."""
    digits = word.lstrip("+-0") or "0"  # int() reads at most 4,300 digits, leading zeros included
    return is_whole(word) and int(digits) != int(float(digits))


def _opened(path: str) -> BinaryIO:
    file: BinaryIO | None = None
    try:
        file = open(path, "rb")
        if file.read(2) == b"\x1f\x8b":
            file.close()
            file = gzip.open(path, "rb")  # type: ignore[assignment]
        file.seek(0)
    except OSError as error:
        if file is not None:
            file.close()
        raise_if_of_system(error, path)
        raise FormatError(f"{path}: cannot be read ({error.strerror}); check the name") from error
    return file


def _line_ends(block: bytes) -> int:
    r"""Return ``block.count(b"\\n")``; comparing all bytes at once is faster than stopping at each newline."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == 10))


class TextFile:
    """A text file, gzip'd or not; `line` reads its header, `blocks` the rest, and `number` counts the lines.

    Lines end in LF or CR LF. If `plain`, a zero byte and any other CR are errors. If `lines` are given, they are read
    in place of a file, and `path` is their name in messages.
    """

    def __init__(self, path: str | os.PathLike[str], plain: bool = True, lines: Iterable[str] | None = None):
        self.path, self._plain = os.fspath(path), plain
        self.number = 0  # number of the last line read, from 1
        self._file = _opened(self.path) if lines is None else io.BytesIO("\n".join(lines).encode())
        self._buffer, self._at, self._ended = b"", 0, False
        try:
            self._more()
        except BaseException:
            self._file.close()
            raise
        self._buffer = self._buffer.removeprefix(b"\xef\xbb\xbf")

    def __enter__(self) -> TextFile:
        return self

    def __exit__(self, *_error: Any) -> None:
        self._file.close()

    def peek(self, count: int) -> list[str]:
        """Return the next lines, at most `count`; they remain to be read."""
        while not self._ended and self._buffer.count(b"\n", self._at) < count:
            self._more()
        lines = self._buffer[self._at :].split(b"\n", count)[:count]
        if lines[-1:] == [b""] and self._buffer.count(b"\n", self._at) < count:
            lines.pop()
        return [line.decode(errors="replace") for line in lines]

    def line(self) -> str | None:
        """Read and return the next line, or None at the end of the file."""
        lines = self.peek(1)
        if not lines:
            return None
        end = self._buffer.find(b"\n", self._at)
        self._at = end + 1 if end >= 0 else len(self._buffer)
        self.number += 1
        return lines[0]

    def blocks(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the rest of the file in blocks of whole lines: the number of the first line, the count, the text."""
        while True:
            end = self._buffer.rfind(b"\n", self._at) + 1
            if end > self._at:
                block = self._buffer[self._at : end]
                self._at = end
                lines = _line_ends(block)
                yield self.number + 1, lines, block
                self.number += lines
            elif self._ended:
                break
            self._more()
        if self._at < len(self._buffer):
            yield self.number + 1, 1, self._buffer[self._at :] + b"\n"

    def error(self, what: str, line: int | None = None) -> FormatError:
        """Return an error about a line, by default the last line read."""
        return FormatError(f"{self.path}, line {self.number if line is None else line}: {what}")

    def _more(self) -> None:
        rest = self._buffer[self._at :]
        if len(rest) > 64 * BLOCK_BYTES and b"\n" not in rest:
            raise self.error(f"no line break in {len(rest)} bytes; check that it is a text file", self.number + 1)
        try:
            read = self._file.read(BLOCK_BYTES)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FormatError(
                f"{self.path}: the gzip file is truncated or damaged ({error}); get a new copy"
            ) from error
        except OSError as error:
            raise_if_of_system(error, self.path)
            raise FormatError(f"{self.path}: cannot be read ({error.strerror})") from error
        self._buffer, self._at, self._ended = rest + read, 0, not read
        start = max(0, len(rest) - 1)  # a CR at the end of the last block can be judged only now
        returns = ends = 0
        if self._buffer.find(b"\r", start) >= 0:
            returns, ends = (self._buffer.count(end, start) for end in (b"\r", b"\r\n"))
        if self._plain and (returns != ends or b"\0" in read):
            self._refuse_odd_bytes(start)

    def _refuse_odd_bytes(self, start: int) -> None:
        odd = _ODD.search(self._buffer, start)
        if odd is None:
            return
        line = self.number + 1 + self._buffer.count(b"\n", 0, odd.start())
        if odd[0] == b"\0":
            raise self.error("holds a zero byte; convert it to text in UTF-8 (iconv -t UTF-8)", line)
        raise self.error("a carriage return without a line feed; convert the line breaks (tr '\\r' '\\n')", line)

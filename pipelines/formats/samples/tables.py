"""Samples from tables of named columns, CSV and Parquet, read in pieces by pyarrow.

pyarrow converts a gigabyte of text in seconds, but reports neither the line at fault nor what it takes for a header. So
the first line is examined here, and the line of an error is searched for with Python's own csv module.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.columns import PIECE_BYTES, Chosen, Rows, Wanted, choose_columns, distinct
from pipelines.formats.text_file import TextFile

TEXT_BYTES = 8 << 20  # a block; pyarrow reads ahead, and holds some forty times as much
ABSENT = frozenset(pa.csv.ConvertOptions().null_values)  # "", NA, NaN, null and the like
_NO_UTF8 = frozenset("\0\ufffd")
_RECODE = "is not text encoded in UTF-8; convert the file, or name its format (--format)"
_CURE = "values are numbers: name the columns that hold them (--columns), and the one with the labels (--label)"


@contextmanager
def read_csv(
    source: str, wanted: Wanted, delimiter: str | None = None, header: bool | None = None
) -> Iterator[tuple[list[str], Iterator[Rows]]]:
    """The rows of a text file, gzip'd or not, in UTF-8; every line has the same number of fields, blank ones are
    skipped. Fields may be quoted, by ``"``. Without a header columns are called by their numbers.

    Parameters
    ----------
    delimiter : default a comma, in .tsv a tab
    header : default: whether the fields of values in the first line are words, not numbers
    """
    if delimiter is None:
        delimiter = "\t" if source.removesuffix(".gz").lower().endswith(".tsv") else ","
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise FormatError(f"{source}: the delimiter is {delimiter!r}; give one ASCII character")
    with TextFile(source, plain=False) as file:
        line, words = next(_records(file, iter(file.line, None), delimiter), (0, []))
    if not words:
        raise FormatError(f"{source}: is empty; a table has at least one row")
    if any(set(word) & _NO_UTF8 for word in words):
        raise FormatError(f"{source}, line {line}: {_RECODE}")
    if header is None:
        header = _is_header(source, line, words, wanted)
    begin = line if header else 0  # pyarrow itself skips the blank lines before a first row
    names = distinct(source, words) if header else list(map(str, range(len(words))))
    chosen = choose_columns(source, names, wanted)
    types = {names[c]: pa.float64() for c in chosen.values}
    for column, kind in ((chosen.label, pa.string()), (chosen.weight, pa.float64())):
        if column is not None:
            types[names[column]] = kind
    seen = 0

    def rows() -> Iterator[Rows]:
        nonlocal seen
        try:
            table = pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(block_size=TEXT_BYTES, column_names=names, skip_rows=begin),
                parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(column_types=types, include_columns=list(types)),
            )
            for batch in table:
                yield _rows(batch, names, chosen)
                seen += len(batch)
        except pa.ArrowInvalid as error:
            raise _fault(source, error, delimiter, names, chosen, begin, seen) from error

    with open(source, "rb") as raw:
        gzipped = raw.read(2) == b"\x1f\x8b"
    with pa.input_stream(source, compression="gzip" if gzipped else None) as stream:
        yield [names[c] for c in chosen.values], rows()


@contextmanager
def read_parquet(source: str, wanted: Wanted) -> Iterator[tuple[list[str], Iterator[Rows]]]:
    """The rows of a Parquet file."""
    # Buffered, as a row group may be the whole file.
    with pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False) as file:
        schema = file.schema_arrow
        names = distinct(source, schema.names)
        chosen = choose_columns(source, names, wanted)
        for column in (*chosen.values, *(() if chosen.weight is None else (chosen.weight,))):
            kind = schema.field(column).type
            if not any(is_kind(kind) for is_kind in _NUMBERS):
                raise FormatError(f"{source}: column {names[column]!r} holds {kind}; {_CURE}")
        if chosen.label is not None and pa.types.is_nested(schema.field(chosen.label).type):
            raise FormatError(f"{source}: column {names[chosen.label]!r} holds lists; labels are text or numbers")
        wide = [schema.names[c] for c in (*chosen.values, chosen.label, chosen.weight) if c is not None]
        batches = file.iter_batches(max(1, PIECE_BYTES // (8 * len(wide))), columns=wide)
        yield [names[c] for c in chosen.values], (_rows(batch, schema.names, chosen) for batch in batches)


_NUMBERS: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
)


def _rows(batch: Any, names: list[str], chosen: Chosen) -> Rows:
    """A record batch as rows."""
    values = np.empty((len(batch), len(chosen.values)))
    for place, column in enumerate(chosen.values):
        values[:, place] = _floats(batch.column(names[column]))
    weights = None if chosen.weight is None else _floats(batch.column(names[chosen.weight]))
    labels = None
    if chosen.label is not None:
        labels = [label or None for label in batch.column(names[chosen.label]).cast(pa.string()).to_pylist()]
    return Rows(values, weights, labels)


def _floats(column: Any) -> np.ndarray:
    """A column of numbers as float64, NaN for nulls."""
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _is_header(source: str, line: int, words: list[str], wanted: Wanted) -> bool:
    """Whether the first line holds names: if a column is requested by name, else judged by the fields of values."""
    asked = [*(wanted.columns or ()), *(c for c in (wanted.label, wanted.weight) if c is not None)]
    if any(isinstance(column, str) and not column.isdecimal() for column in asked):
        return True
    values = [words[c] for c in choose_columns(source, list(map(str, range(len(words)))), wanted).values]
    known = [word for word in values if word.strip() not in ABSENT]
    numbers = sum(map(_is_number, known))
    if 0 < numbers < len(known):
        odd = next(word for word in known if not _is_number(word))
        raise FormatError(
            f"{source}, line {line}: has numbers and words such as {odd!r}; say whether it holds names (--header) or "
            "values (--no-header), and name the column of labels (--label)"
        )
    return numbers < len(known)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _records(file: TextFile, lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Number of the last line, and fields, of every record that is not blank."""
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        yield from ((reader.line_num, fields) for fields in reader if fields)
    except csv.Error as error:
        raise file.error(f"{error}; check that it is a text file", reader.line_num) from error


def _fault(
    source: str, error: Exception, delimiter: str, names: list[str], chosen: Chosen, begin: int, seen: int
) -> FormatError:
    """The error that stopped pyarrow after `seen` rows, and its line."""
    numbers = [*chosen.values, *(() if chosen.weight is None else (chosen.weight,))]
    cut = f"check the line, and that {delimiter!r} separates the fields (--delimiter)"
    with TextFile(source, plain=False) as file:
        lines = (line for _, _, block in file.blocks() for line in block.decode(errors="replace").split("\n")[:-1])
        for _ in islice(lines, begin):
            pass
        for number, fields in islice(_records(file, lines, delimiter), seen, None):
            line = begin + number
            if len(fields) != len(names):
                return file.error(f"has {len(fields)} fields, expected {len(names)}; {cut}", line)
            for column in numbers:
                word = fields[column].strip()
                if word not in ABSENT and not _is_number(word):
                    cure = _CURE if len(names) > 1 else cut
                    return file.error(f"column {names[column]!r} is {word!r}, not a number; {cure}", line)
            if any(set(field) & _NO_UTF8 for field in fields):
                return file.error(_RECODE, line)
    if seen == 0 and begin:
        return FormatError(f"{source}: has column names but no rows; a table has at least one row")
    return FormatError(f"{source}: cannot be read after row {seen} (from 0): {error}")

"""Samples from tables of named columns, CSV and Parquet, read in pieces by pyarrow.

pyarrow converts a gigabyte of text in seconds, but reports neither the line at fault nor what it takes for a header. So
the first line is examined here, and the line of an error is searched for with Python's own csv module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.columns import Chosen, Opened, Rows, Wanted, choose_columns, distinct
from pipelines.formats.samples.text_tables import TextTable, text_table
from pipelines.formats.text_file import TextFile
from pipelines.stores.labels import ABSENT

TEXT_SHARE = 4  # of a piece is a block of text: pyarrow reads ahead, and holds some forty times as much
_NO_UTF8 = frozenset("\0\ufffd")
_RECODE = "is not text encoded in UTF-8; convert the file, or name its format (--format)"
_CURE = "values are numbers: name the columns that hold them (--columns), and the one with the labels (--label)"


@contextmanager
def read_csv(
    source: str, wanted: Wanted, delimiter: str | None = None, header: bool | None = None, decimal: str = "."
) -> Iterator[Opened]:
    """The rows of a text file, gzip'd or not, in UTF-8; every line has the same number of fields, blank ones are
    skipped. Fields may be quoted, by ``"``. Without a header columns are called by their numbers.

    Parameters
    ----------
    delimiter : default a comma, in .tsv a tab, with decimal commas a semicolon; "whitespace" for runs of blanks
    header : default: whether the fields of values in the first line are words, not numbers
    decimal : the decimal mark of numbers, a point or a comma
    """
    text = text_table(source, delimiter, decimal)
    line, words = text.first_record()
    if not words:
        raise FormatError(f"{source}: is empty; a table has at least one row")
    if any(set(word) & _NO_UTF8 for word in words):
        raise FormatError(f"{source}, line {line}: {_RECODE}")
    if header is None:
        header = _is_header(text, line, words, wanted)
    begin = line if header else 0  # pyarrow itself skips the blank lines before a first row
    names = distinct(source, words) if header else list(map(str, range(len(words))))
    chosen = choose_columns(source, names, wanted)
    types = {names[c]: pa.float64() for c in chosen.values}
    for column, kind in ((chosen.label, pa.string()), (chosen.weight, pa.float64()), (chosen.ids, pa.string())):
        if column is not None:
            types[names[column]] = kind
    seen, block = 0, max(1, wanted.piece_bytes // TEXT_SHARE)

    def rows() -> Iterator[Rows]:
        nonlocal seen
        try:
            table = pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(block_size=block, column_names=names, skip_rows=begin),
                parse_options=pa.csv.ParseOptions(delimiter=text.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=types, include_columns=list(types), null_values=[*ABSENT], decimal_point=decimal
                ),
            )
            for batch in table:
                yield _rows(batch, names, chosen)
                seen += len(batch)
        except pa.ArrowInvalid as error:
            raise _fault(text, error, names, chosen, begin, seen) from error

    with text.stream() as stream:
        yield Opened(chosen.names, rows(), partial(text.line_of, begin))


@contextmanager
def read_parquet(source: str, wanted: Wanted) -> Iterator[Opened]:
    """The rows of a Parquet file."""
    # Buffered, as a row group may be the whole file.
    with pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False) as file:
        chosen, names = choose_typed(source, file.schema_arrow, wanted)
        batches = file.iter_batches(max(1, wanted.piece_bytes // (8 * len(names))), columns=names)
        yield Opened(chosen.names, (_rows(batch, file.schema_arrow.names, chosen) for batch in batches))


@contextmanager
def read_arrow(source: str, wanted: Wanted) -> Iterator[Opened]:
    """The rows of an Arrow file (Feather) or stream."""
    with pa.memory_map(source) as mapped:
        batches: Any
        try:
            file = pa.ipc.open_file(mapped)
            schema, batches = file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        except pa.ArrowInvalid:  # a stream has no footer
            mapped.seek(0)
            batches = pa.ipc.open_stream(mapped)
            schema = batches.schema
        chosen, _ = choose_typed(source, schema, wanted)
        yield Opened(chosen.names, (_rows(batch, schema.names, chosen) for batch in batches))


def choose_typed(source: str, schema: Any, wanted: Wanted) -> tuple[Chosen, list[str]]:
    """The columns of a table of types, and their names in it; FormatError if one has another type."""
    names = distinct(source, schema.names)
    chosen = choose_columns(source, names, wanted)
    for column in (*chosen.values, *(() if chosen.weight is None else (chosen.weight,))):
        kind = schema.field(column).type
        if not any(is_kind(kind) for is_kind in _NUMBERS):
            raise FormatError(f"{source}: column {names[column]!r} holds {kind}; {_CURE}")
    for column in (chosen.label, chosen.ids):
        if column is not None and pa.types.is_nested(schema.field(column).type):
            raise FormatError(f"{source}: column {names[column]!r} holds lists; labels and ids are text or numbers")
    return chosen, [schema.names[column] for column in (*chosen.values, *chosen.extras())]


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
    texts = (
        None if column is None else batch.column(names[column]).cast(pa.string()).to_pylist()
        for column in (chosen.label, chosen.ids)
    )
    return Rows(values, weights, *texts)


def _floats(column: Any) -> np.ndarray:
    """A column of numbers as float64, NaN for nulls."""
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _is_header(text: TextTable, line: int, words: list[str], wanted: Wanted) -> bool:
    """Whether the first line holds names: if a column is requested by name, else judged by the fields of values."""
    asked = [*(wanted.columns or ()), *wanted.exclude]
    asked += [column for column in (wanted.label, wanted.weight, wanted.ids) if column is not None]
    if any(isinstance(column, str) and not column.isdecimal() for column in asked):
        return True
    values = [words[c] for c in choose_columns(text.source, list(map(str, range(len(words)))), wanted).values]
    known = [word for word in values if word.strip() not in ABSENT]
    numbers = sum(map(text.is_number, known))
    if 0 < numbers < len(known):
        odd = next(word for word in known if not text.is_number(word))
        raise FormatError(
            f"{text.source}, line {line}: has numbers and words such as {odd!r}; say whether it holds names (--header) "
            "or values (--no-header), and name the column of labels (--label)"
        )
    return numbers < len(known)


def _fault(text: TextTable, error: Exception, names: list[str], chosen: Chosen, begin: int, seen: int) -> FormatError:
    """The error that stopped pyarrow after `seen` rows, and its line."""
    numbers = [*chosen.values, *(() if chosen.weight is None else (chosen.weight,))]
    cut = f"check the line, and that {text.parted_by} separates the fields (--delimiter)"
    with TextFile(text.source, plain=False) as file:
        for line, fields in text.records(file, begin, seen):
            if len(fields) != len(names):
                return file.error(f"has {len(fields)} fields, expected {len(names)}; {cut}", line)
            for column in numbers:
                word = fields[column].strip()
                if word not in ABSENT and not text.is_number(word):
                    cure = _CURE if len(names) > 1 else cut
                    return file.error(f"column {names[column]!r} is {word!r}, not a number; {cure}", line)
            if any(set(field) & _NO_UTF8 for field in fields):
                return file.error(_RECODE, line)
    if seen == 0 and begin:
        return FormatError(f"{text.source}: has column names but no rows; a table has at least one row")
    return FormatError(f"{text.source}: cannot be read after row {seen} (from 0): {error}")

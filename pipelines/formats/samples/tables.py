"""Read samples from tables of named columns, CSV, Parquet and Arrow, in pieces with pyarrow.

pyarrow converts a gigabyte of text in seconds, but does not name the faulty line, and does not tell a header from
values. So this module examines the first line, and finds the line of an error with Python's csv module.
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

from pipelines.formats.errors import FormatError
from pipelines.formats.samples.columns import Chosen, Opened, Rows, Wanted, choose_columns, distinct
from pipelines.formats.samples.text_tables import TextTable, text_table
from pipelines.formats.text_file import TextFile
from pipelines.stores.samples_writer import ABSENT
from pipelines.stores.scaling import MISSING_CURE

TEXT_SHARE = 4  # a block of text is this part of a piece: pyarrow reads ahead, and holds some forty blocks
_NO_UTF8 = frozenset("\0\ufffd")
_RECODE = "is not text encoded in UTF-8; convert the file, or name its format (--format)"
_CURE = (
    "values are numbers: name the columns of values (columns, --columns), or leave out others (exclude, "
    "--exclude); name the columns of labels (label, --label) and of ids (ids, --id)"
)
SHOWN = 5  # faulty columns named in a message
SURVEYED = 10_000  # rows after the first fault that are searched for faults in other columns


@contextmanager
def read_csv(
    source: str, wanted: Wanted, delimiter: str | None = None, header: bool | None = None, decimal: str = "."
) -> Iterator[Opened]:
    """Yield the rows of a text file in UTF-8, gzip'd or not.

    Every line has the same number of fields; blank lines are skipped. Fields may be quoted by ``"``. Without a header,
    the names of columns are their numbers.

    Parameters
    ----------
    delimiter : default a comma, in .tsv a tab, with decimal commas a semicolon; "whitespace" for runs of blanks
    header : True if the first line has column names; default: True if a column is requested by name, or if the fields
        of values in the first line are words, not numbers
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
    begin = line if header else 0  # without a header, pyarrow skips the blank lines before the first row
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
            raise _fault(text, error, names, chosen, begin, seen, wanted.missing) from error

    with text.stream() as stream:
        yield Opened(chosen.names, rows(), partial(text.line_of, begin))


@contextmanager
def read_parquet(source: str, wanted: Wanted) -> Iterator[Opened]:
    """Yield the rows of a Parquet file."""
    # Buffered, since a row group may be the whole file.
    with pq.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False) as file:
        chosen, names = choose_typed(source, file.schema_arrow, wanted)
        batches = file.iter_batches(max(1, wanted.piece_bytes // (8 * len(names))), columns=names)
        yield Opened(chosen.names, (_rows(batch, file.schema_arrow.names, chosen) for batch in batches))


@contextmanager
def read_arrow(source: str, wanted: Wanted) -> Iterator[Opened]:
    """Yield the rows of an Arrow file (Feather) or stream."""
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
    """Return the chosen columns of a typed table, and their names there; FormatError if a column has a wrong type."""
    names = distinct(source, schema.names)
    chosen = choose_columns(source, names, wanted)
    kinds = {c: schema.field(c).type for c in (*chosen.values, *(() if chosen.weight is None else (chosen.weight,)))}
    words = [
        f"column {names[c]!r} holds {kind}" for c, kind in kinds.items() if not any(is_of(kind) for is_of in _NUMBERS)
    ]
    if words:
        raise FormatError(f"{source}: {' and '.join(words)}; {_CURE}")
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
    """Return a record batch as `Rows`."""
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
    """Return a column of numbers as float64, with NaN for nulls."""
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _is_header(text: TextTable, line: int, words: list[str], wanted: Wanted) -> bool:
    """Return True if the first line has column names: if a column is requested by name, or if no value is a number."""
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
            f"{text.source}, line {line}: has numbers and words such as {odd!r:.80}; say whether it holds names "
            "(header=True, --header) or values (header=False, --no-header), and name the column of labels (label, "
            "--label)"
        )
    return numbers < len(known)


def _fault(
    text: TextTable, error: Exception, names: list[str], chosen: Chosen, begin: int, seen: int, missing: bool
) -> FormatError:
    """Return an error that names the line of pyarrow's `error` after `seen` rows, and faults in the following rows.

    Unless values may be `missing`, it also names the first missing value.
    """
    numbers = [*chosen.values, *(() if chosen.weight is None else (chosen.weight,))]
    cut = f"check the line, and that {text.parted_by} separates the fields (delimiter, --delimiter)"
    words: dict[int, str] = {}  # the first word of each column that is not a number
    first, absent = 0, ""
    with TextFile(text.source, plain=False) as file:
        for row, (line, fields) in enumerate(text.records(file, begin, seen)):
            if words and (row > SURVEYED or len(fields) != len(names)):
                break
            if len(fields) != len(names):
                return file.error(f"has {len(fields)} fields, expected {len(names)}; {cut}", line)
            for column in numbers:
                word = fields[column].strip()
                if word in ABSENT:
                    absent = absent or f"column {names[column]!r} has no value in line {line}; {MISSING_CURE}"
                elif column not in words and not text.is_number(word):
                    first, words[column] = first or line, word
            if not words and any(set(field) & _NO_UTF8 for field in fields):
                return file.error(_RECODE, line)
        if words:
            faults = " and ".join(
                f"column {names[column]!r:.80} is {word!r:.80}" for column, word in [*words.items()][:SHOWN]
            )
            cure = _CURE if len(names) > 1 else cut
            also = f". Besides, {absent}" if absent and not missing else ""
            return file.error(f"{faults}, not a number; {cure}{also}", first)
    if seen == 0 and begin:
        return FormatError(f"{text.source}: has column names but no rows; a table has at least one row")
    return FormatError(f"{text.source}: cannot be read after row {seen} (from 0): {error}")

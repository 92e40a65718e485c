"""Join Parquet files that lie one after the other to one file, without reading their rows.

A Parquet file ends with its *footer*, a Thrift structure in the compact protocol. The footer has the schema and, for
each group of rows, the positions of its columns. Pieces that were appended to each other become one file by a further
footer at the end, which has the groups of all pieces, with positions from the beginning of the whole file. The footers
of the pieces stay in the file, but readers do not look at them.

The numbers of fields are defined by parquet.thrift in https://github.com/apache/parquet-format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import IO, Any

MAGIC = b"PAR1"
BOOLEANS, I16, I64, DOUBLE, BINARY, LISTS, STRUCT = (1, 2), 4, 6, 7, 8, (9, 10), 12
ROWS, GROUPS = 3, 4  # fields of a file
COLUMNS, GROUP_ROWS_PLACE = 1, 5  # fields of a group of rows
COLUMN_PLACES, COLUMN_FACTS, FACTS_PLACES = (2, 4, 6), 3, (9, 10, 11, 14)  # fields of a column, and of its metadata

Fields = dict[int, tuple[int, Any]]  # type and value of each field of a structure, by the number of the field


def join_pieces(path: str | os.PathLike[str], ends: Sequence[int]) -> None:
    """Make one Parquet file of the pieces that were appended to each other in the file `path`, and end at `ends`."""
    if len(ends) < 2:
        return
    with open(path, "r+b") as file:
        whole = _footer(file, ends[0])
        rows, groups = whole[ROWS][1], list(whole[GROUPS][1][1])
        for start, end in pairwise(ends):
            piece = _footer(file, end)
            rows += piece[ROWS][1]
            groups += [_moved(group, start) for group in piece[GROUPS][1][1]]
        whole[ROWS], whole[GROUPS] = (I64, rows), (LISTS[0], (STRUCT, groups))
        footer = _structure(whole)
        file.seek(0, os.SEEK_END)
        file.write(footer + len(footer).to_bytes(4, "little") + MAGIC)


def _footer(file: IO[bytes], end: int) -> Fields:
    """Return the footer of the piece that ends at `end`."""
    file.seek(end - 8)
    length = int.from_bytes(file.read(4), "little")
    file.seek(end - 8 - length)
    return _Reader(file.read(length)).structure()


def _moved(group: Fields, by: int) -> Fields:
    """Return a group of rows with its positions moved by `by` bytes."""

    def move(fields: Fields, places: Sequence[int]) -> None:
        for place in places:
            if place in fields and fields[place][1] > 0:
                fields[place] = fields[place][0], fields[place][1] + by

    move(group, [GROUP_ROWS_PLACE])
    for column in group[COLUMNS][1][1]:
        move(column, COLUMN_PLACES)
        move(column[COLUMN_FACTS][1], FACTS_PLACES)
    return group


class _Reader:
    """Reads the compact protocol."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def natural(self) -> int:
        value = shift = 0
        while True:
            byte = self.bytes(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def integer(self) -> int:
        value = self.natural()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int) -> Any:
        if kind in BOOLEANS:
            return None  # the type is the value
        if kind == 3:
            return self.bytes(1)
        if I16 <= kind <= I64:
            return self.integer()
        if kind == DOUBLE:
            return self.bytes(8)
        if kind == BINARY:
            return self.bytes(self.natural())
        if kind in LISTS:
            head = self.bytes(1)[0]
            count = head >> 4 if head >> 4 < 15 else self.natural()
            of = head & 15
            return of, [self.bytes(1) if of in BOOLEANS else self.value(of) for _ in range(count)]
        if kind == STRUCT:
            return self.structure()
        raise ValueError(f"a footer of Parquet with a value of type {kind}")

    def structure(self) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self.bytes(1)[0]:
            number = number + (head >> 4) if head >> 4 else self.integer()
            fields[number] = head & 15, self.value(head & 15)
        return fields


def _natural(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _integer(value: int) -> bytes:
    return _natural(value << 1 if value >= 0 else (-value << 1) - 1)


def _value(kind: int, value: Any) -> bytes:
    if kind in BOOLEANS:
        return value or b""
    if I16 <= kind <= I64:
        return _integer(value)
    if kind == BINARY:
        return _natural(len(value)) + bytes(value)
    if kind in LISTS:
        of, items = value
        head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([15 << 4 | of]) + _natural(len(items))
        return head + b"".join(_value(of, item) for item in items)
    return _structure(value) if kind == STRUCT else bytes(value)


def _structure(fields: Fields) -> bytes:
    found, before = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - before
        found += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _integer(number)
        found += _value(kind, value)
        before = number
    return bytes(found) + b"\0"

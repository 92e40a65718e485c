"""Vertices of tables of edges: names, which become labels, or numbers that count from some base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.formats.arc_sort import ArcStream, FormatError, Piece

NAME_BYTES = 224  # of memory for the name of a vertex: its text, its entry in a dictionary and in a list


class Names:
    """Vertices in order of first appearance: the names become labels. Held in memory, like all data of vertices."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._indices)

    def number(self, tails: Any, heads: Any) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the vertices named in two pyarrow string arrays of equal length."""
        size = len(tails)
        in_turn = np.arange(2 * size).reshape(2, size).T.ravel()  # tail, head, tail, head: as they are read
        names = pa.concat_arrays([tails, heads]).take(pa.array(in_turn)).dictionary_encode()
        indices = self._indices
        numbers = [indices.setdefault(name, len(indices)) for name in names.dictionary.to_pylist()]
        arcs = np.array(numbers, dtype=np.int64)[names.indices.to_numpy()]
        return arcs[0::2], arcs[1::2]


def check_numbering(source: str, base: int | None, n: int | None, named: bool) -> None:
    """Raise FormatError where `base` and the number of vertices `n` have no meaning, or are out of bounds."""
    if named and n is not None:
        raise FormatError(f"{source}: the vertices have names, so their number is not an option; leave --vertices out")
    if not -(2**60) < (base or 0) < 2**60 or not 0 < (1 if n is None else n) < 2**60:
        raise FormatError(f"{source}: the base is {base} and the number of vertices {n}; give numbers below 2^60")


def edge_stream(
    pieces: Iterable[Piece], names: Names | None, *, source: str, base: int | None, n: int | None, **facts: Any
) -> ArcStream:
    """The edges of a table whose vertices are `names`, or else numbers that count from `base` (None: 0)."""
    if names is not None:
        return ArcStream(pieces, labels=names, label_bytes=NAME_BYTES, **facts)
    stream = ArcStream(pieces, n=n, labels=range(base, 2**62) if base else None, **facts)
    if base is None:
        stream.pieces = _noting_the_least(source, pieces, stream)
    return stream


def _noting_the_least(source: str, pieces: Iterable[Piece], stream: ArcStream) -> Iterator[Piece]:
    least = None
    for piece in pieces:
        found = min(int(ends.min(initial=np.iinfo(np.int64).max)) for ends in piece[:2])
        least = found if least is None else min(found, least)
        yield piece
    if least:
        stream.remarks.append(
            f"{source}: the vertices were counted from 0, but the smallest number is {least}; "
            f"if they count from {least}, import with base={least} (--base {least})"
        )

"""Number the vertices in tables of edges: names, which become labels, or numbers that count from a base."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError

LARGEST = 1 << 62  # bound of vertex numbers, so that differences of two numbers fit in int64
NAME_BYTES = 224  # bytes of memory for the name of a vertex: its text, and its entries in a dictionary and a list


class Names:
    """Names of vertices in order of first appearance, which become labels. They are held in memory."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._indices)

    def index(self, name: str) -> int:
        """Return the index of the vertex called `name`."""
        return self._indices.setdefault(name, len(self._indices))

    def number(self, tails: Any, heads: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the vertices named in two pyarrow string arrays of equal length."""
        size = len(tails)
        in_turn = np.arange(2 * size).reshape(2, size).T.ravel()  # tail, head, tail, head, ...: the order in the file
        names = pa.concat_arrays([tails, heads]).take(pa.array(in_turn)).dictionary_encode()
        indices = self._indices
        numbers = [indices.setdefault(name, len(indices)) for name in names.dictionary.to_pylist()]
        arcs = np.array(numbers, dtype=np.int64)[names.indices.to_numpy()]
        return arcs[0::2], arcs[1::2]


def check_numbering(source: str, base: int | None, n: int | None, named: bool) -> None:
    """Raise FormatError if `base`, or `n`, the number of vertices, is given for named vertices, or is too large."""
    if named and base is not None:
        raise FormatError(f"{source}: the vertices have names, which have no first number; leave out base (--base)")
    if named and n is not None:
        raise FormatError(
            f"{source}: the vertices have names, so their number is not an option; leave out vertices (--vertices)"
        )
    if not -(2**60) < (base or 0) < 2**60 or not 0 < (1 if n is None else n) < 2**60:
        raise FormatError(f"{source}: the base is {base} and the number of vertices {n}; give numbers below 2^60")


def edge_stream(
    pieces: Iterable[Piece], names: Names | None, *, source: str, base: int | None, n: int | None, **properties: Any
) -> ArcStream:
    """Return the edges of a table whose vertices are `names`, or, without names, numbers from `base` (None: 0)."""
    if names is not None:
        return ArcStream(pieces, labels=names, label_bytes=NAME_BYTES, **properties)
    stream = ArcStream(pieces, n=n, labels=range(base, LARGEST) if base else None, **properties)
    if base is None:
        stream.pieces = _from_zero(source, pieces, stream)
    return stream


def _from_zero(source: str, pieces: Iterable[Piece], stream: ArcStream) -> Iterator[Piece]:
    """Yield `pieces` unchanged. If no edge has vertex 0, set the stream's `fault`, or add a remark if `n` is known."""
    least = None
    for piece in pieces:
        found = min(int(ends.min(initial=np.iinfo(np.int64).max)) for ends in piece[:2])
        least = found if least is None else min(found, least)
        yield piece
    if least:
        odd = f"{source}: the smallest number of a vertex is {least}"
        cure = f"pass base={least} (--base {least}) if vertices are counted from {least}"
        if stream.n is None:
            stream.fault = (
                f"{odd}; {cure}, base=0 (--base 0) if vertex 0 is there and has no edge, or labels=True (--labels) "
                "if the numbers are names"
            )
        else:
            stream.remarks.append(f"{odd}, so vertex 0 has no edge; {cure}")

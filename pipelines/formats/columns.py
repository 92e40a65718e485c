"""Tables of edges: which columns hold tail, head and weight, and vertices that have names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.arc_sort import FormatError


def choose_columns(
    source: str, width: int, names: Sequence[str], columns: Sequence[str | int] | None, weight: str | int | None
) -> tuple[int, int, int | None]:
    """Positions of tail, head and weight (None: unweighted) among `width` columns called `names` (empty: unnamed).

    By default a table of two columns is unweighted, and the third column of three is the weight.
    """
    known = f"columns are {', '.join(names)}" if names else f"columns are 0 to {width - 1}, there is no header"
    if columns is None:
        if width < 2 or (width > 3 and weight is None):
            raise FormatError(
                f"{source}: has {width} columns ({known}); say which are tail, head and weight (--columns 0,1,2), "
                "or how they are separated (--delimiter)"
            )
        columns = [0, 1] if weight is not None or width == 2 else [0, 1, 2]
    if weight is not None and len(columns) == 2:
        columns = [*columns, weight]
    elif weight is not None or len(columns) not in (2, 3):
        raise FormatError(f"{source}: give two columns, tail and head, and perhaps the weight (--columns 0,1,2)")
    positions = [_position(source, column, width, names, known) for column in columns]
    if len(set(positions)) != len(positions):
        raise FormatError(f"{source}: columns {positions} are not distinct; give each once (--columns)")
    return positions[0], positions[1], positions[2] if len(positions) == 3 else None


def _position(source: str, column: str | int, width: int, names: Sequence[str], known: str) -> int:
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    if isinstance(column, int) or column.isdecimal():
        if 0 <= int(column) < width:
            return int(column)
    raise FormatError(f"{source}: there is no column {column!r}; {known}")


class Names:
    """Vertices in order of first appearance: the names become labels. Held in memory, like all of a vertex."""

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

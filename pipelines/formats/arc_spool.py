"""Set arcs aside, and return them in the order of a graph store, by an external distribution sort.

1. Read the arcs piece by piece, count the degree of every vertex, and set the arcs aside: in memory while they fit,
   then in a spool file. An arc takes 12 bytes if its numbers fit in 32 bits, and 8 if it has no weight.
2. Cut the vertices into ranges whose arcs can be sorted in the remaining memory. With several ranges, distribute the
   arcs to their ranges: within each piece if all pieces are in memory, else into a second file with one region per
   range. The degrees give the start of each region.
3. Place the arcs of each range by tail, in the order of the source; the degrees give the start of each row. Sort the
   rows by head, unless they stay in the order of the source. Each thread takes a range.

Every arc is written and read at most twice, however large the source. Sorting stays within the memory budget; a few
numbers per vertex, and the labels, come on top. A graph whose vertices do not fit is refused before any work. The files
are unlinked right after they are made, so even a killed process leaves no file behind. They are made in the folder of
the store, which needs as much space anyway.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, no_type_check

import numba
import numpy as np

from gpuops.memory import available_memory, size
from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.stores.row_order import sort_rows
from pipelines.workers.ahead import in_turn, threads_ahead

Rows = tuple[int, np.ndarray, np.ndarray, np.ndarray | None]  # the first vertex, degrees; heads and weights of all arcs

ARC_BYTES = 100  # bytes of memory per arc of a range: its columns as read, as sorted, and as written
HELD_SHARE = 0.75  # share of the memory for arcs set aside; the remaining memory is for sorting ranges
VERTEX_BYTES = 32  # bytes of memory per vertex: degrees and offsets, here and in the writer
VERTEX_SHARE = 0.75  # share of the free memory for vertices; the remaining memory is for sorting
# A graph without a given number of vertices is doubted if it has more vertices than this, and more per arc than this.
DOUBTFUL_VERTICES, DOUBTFUL_PER_ARC = 1 << 20, 16
LEAST_WIDTH = 1 << 16  # vertices that a range may have even if few arcs fit: a vertex takes only a few numbers


class Spool:
    """Arcs that are set aside in the order of the source, then returned range by range in the order of the store.

    Call `add` with each piece, then `close`, then `rows` as often as needed.
    """

    def __init__(self, folder: Path, memory: int, arcs: ArcStream):
        self.m = 0
        self.weight_dtype: np.dtype = np.dtype("int32")
        self._folder, self._arcs = folder, arcs
        self._most_held = int(HELD_SHARE * memory)
        ranges = threads_ahead() + 2  # ranges in memory: one per sorting thread, one waiting, one being written
        self._limit = max(1, (memory - self._most_held) // ARC_BYTES // ranges)  # most arcs of a range
        self._free = available_memory()
        self._degrees = np.zeros(0, dtype=np.int64)
        self._n = 0
        self._grow(arcs.n or 0)
        self._held: list[Piece] = []
        self._held_bytes = 0
        self._file: BinaryIO | None = None
        self._spooled: list[tuple[int, list[np.dtype]]] = []  # of each piece in the file: number of arcs, dtypes
        self._dealt: BinaryIO | None = None
        self._bounds: list[np.ndarray] = []  # of each distributed piece in memory: where each range begins
        self._integers, self._low, self._high = True, 0, 0
        self._rounded: int | None = None  # the first integer that float64 does not hold exactly

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_error: Any) -> None:
        for file in (self._file, self._dealt):
            if file is not None:
                file.close()

    def add(self, tails: np.ndarray, heads: np.ndarray, weights: np.ndarray | None) -> None:
        """Set a piece aside, and add its arcs to the degrees and to the range of the weights."""
        if tails.size == 0:
            return
        if (weights is not None) != self._arcs.weighted:
            raise ValueError("pieces of an unweighted graph have weights, or those of a weighted one lack them")
        if {heads.size, tails.size if weights is None else weights.size} != {tails.size}:
            raise ValueError("a piece has columns of different lengths")  # compiled functions would read beyond them
        if min(tails.min(), heads.min()) < 0:
            raise ValueError("vertices are numbered from 0")
        self._n = max(self._n, int(tails.max()) + 1, int(heads.max()) + 1)
        self._grow(self._n)
        vertex, kept = self._columns[0], None if weights is None else weights.astype(self._ranged(weights))
        if self._arcs.directed:
            piece: Piece = tails.astype(vertex), heads.astype(vertex), kept
        else:
            both = None if kept is None else np.repeat(kept, 2)
            piece = _in_turns(tails, heads, vertex), _in_turns(heads, tails, vertex), both
        _count(piece[0], self._degrees)
        self._held.append(piece)
        self.m += piece[0].size
        self._held_bytes += sum(column.nbytes for column in _columns(piece))
        if self._held_bytes > self._most_held:
            self._flush()

    def _ranged(self, weights: np.ndarray) -> np.dtype:
        """Extend the range of all weights by a piece of weights; return the dtype for setting this piece aside."""
        if weights.dtype.kind in "iu":
            low, high = int(weights.min()), int(weights.max())
            self._low, self._high = min(self._low, low), max(self._high, high)
            if self._rounded is None and max(-self._low, self._high) > 2**53:
                large = weights[(weights > 2**53) | (weights < -(2**53))].tolist()
                self._rounded = next((weight for weight in large if int(float(weight)) != weight), None)
            if -(2**31) <= low <= high < 2**31:
                return np.dtype("int32")
        else:
            self._integers = False
        return weights.dtype

    def close(self) -> int:
        """Finish after the last piece: fix the weight dtype, cut the ranges, distribute the arcs, and return n."""
        arcs, source = self._arcs, self._arcs.source or "the source"
        n = max(self._n, arcs.known) if arcs.n is None else arcs.n
        self._grow(n)
        if n == 0:
            raise FormatError(f"{source}: holds no vertices and no arcs; check that it is the right file")
        if n < self._n:
            raise FormatError(
                f"{source}: an arc ends at vertex {self._n - 1}, but there are only {n} vertices (from 0)"
            )
        if arcs.n is None and n > DOUBTFUL_VERTICES and n > DOUBTFUL_PER_ARC * self.m:
            raise FormatError(
                f"{source}: the largest number implies {n:,} vertices, far more than the {self.m:,} arcs; if the "
                f"numbers are names, pass labels=True (--labels), else vertices={n} (--vertices {n})"
            )
        if arcs.weight_dtype is not None:
            self.weight_dtype = np.dtype(arcs.weight_dtype)
        elif not self._integers:
            self.weight_dtype = np.dtype("float64")
        elif self._low < -(2**31) or self._high >= 2**31:
            self.weight_dtype = np.dtype("int64")
        if self.weight_dtype.kind == "f" and self._rounded is not None:
            raise FormatError(
                f"{source}: the weight {self._rounded} is not exact in {self.weight_dtype}, which the other weights "
                "need; round it, or write all weights as integers"
            )
        self._offsets = np.zeros(n + 1, np.int64)
        np.cumsum(self._degrees[:n], out=self._offsets[1:])
        self._degrees = np.zeros(0, np.int64)
        self._cuts = _cut(self._offsets, self._limit)
        if len(self._cuts) > 2:
            self._deal()
        return n

    def rows(self, simplify: bool, sorted_rows: bool) -> Iterator[Rows]:
        """Yield all rows, range by range: arcs ordered by tail, by head if `sorted_rows`, and then as in the source."""

        def placed(part: tuple[int, int, Iterable[Piece]]) -> Rows:
            first, stop, pieces = part
            offsets = self._offsets[first : stop + 1] - self._offsets[first]
            places, size = offsets[:-1].copy(), int(offsets[-1])
            heads = np.empty(size, self._columns[0])
            weights = np.empty(size, self.weight_dtype) if self._arcs.weighted else None
            for piece in pieces:
                _place(piece[0], piece[1], _bits(piece[2]), first, places, heads, _bits(weights))
            if sorted_rows:
                sort_rows(offsets, heads, _bits(weights))
            return first, *(_simplify if simplify else _degrees)(first, offsets, heads, weights)

        yield from in_turn(placed, self._ranges())

    def _ranges(self) -> Iterator[tuple[int, int, Iterable[Piece]]]:
        """Yield each range (first, stop) with the arcs that leave its vertices, in the order of the source."""
        for r, (first, stop) in enumerate(pairwise(self._cuts.tolist())):
            pieces: Iterable[Piece] = self._pieces()
            if self._dealt is not None:
                begin, end = int(self._offsets[first]), int(self._offsets[stop])
                self._dealt.seek(begin * self._arc_bytes)
                pieces = [self._load(self._dealt, end - begin, self._columns)]
            elif self._bounds:
                ranges = [slice(bounds[r], bounds[r + 1]) for bounds in self._bounds]
                pieces = [
                    (t[part], h[part], None if w is None else w[part])
                    for (t, h, w), part in zip(self._held, ranges, strict=True)
                ]
            yield first, stop, pieces

    def _deal(self) -> None:
        """Distribute the arcs to the ranges: within each piece if all are in memory, else into a second file.

        In this file, every range has a region with the tails, then the heads, then the weights (if any) of its arcs.
        """
        narrow = np.min_scalar_type(len(self._cuts))
        range_of = np.repeat(np.arange(len(self._cuts) - 1, dtype=narrow), np.diff(self._cuts))

        def by_range(piece: Piece) -> tuple[np.ndarray, Piece]:
            bounds = np.zeros(len(self._cuts), np.int64)
            tails, heads = np.empty_like(piece[0]), np.empty_like(piece[1])
            weights = None if piece[2] is None else np.empty_like(piece[2])
            _deal_out(range_of, piece[0], piece[1], _bits(piece[2]), bounds, tails, heads, _bits(weights))
            return bounds, (tails, heads, weights)

        dealt = in_turn(by_range, self._pieces())
        if self._file is None:
            for i, (bounds, piece) in enumerate(dealt):
                self._held[i] = piece
                self._bounds.append(bounds)
            return
        self._dealt = _unlinked_file(self._folder)
        begins = self._offsets[self._cuts]
        filled = np.zeros(len(begins) - 1, dtype=np.int64)
        for bounds, piece in dealt:
            for r in np.flatnonzero(np.diff(bounds)):
                size, begin = int(begins[r + 1] - begins[r]), int(begins[r]) * self._arc_bytes
                for column, dtype in zip(_columns(piece), self._columns, strict=True):
                    self._dealt.seek(begin + int(filled[r]) * dtype.itemsize)
                    self._dealt.write(column[bounds[r] : bounds[r + 1]].astype(dtype, copy=False).data)
                    begin += size * dtype.itemsize
                filled[r] += bounds[r + 1] - bounds[r]
        self._dealt.flush()
        self._file.close()
        self._file, self._spooled, self._held = None, [], []

    def _pieces(self) -> Iterator[Piece]:
        """Yield the pieces in the order of the source, with weights in their final dtype."""
        if self._file is not None:
            self._file.seek(0)
            for size, dtypes in self._spooled:
                yield self._with_dtype(self._load(self._file, size, dtypes))
        for i in range(len(self._held)):  # by index: `_deal` replaces pieces during this loop, to free their memory
            yield self._with_dtype(self._held[i])

    def _with_dtype(self, piece: Piece) -> Piece:
        """Return a piece with weights in their final dtype."""
        tails, heads, weights = piece
        return tails, heads, None if weights is None else weights.astype(self.weight_dtype, copy=False)

    def _flush(self) -> None:
        if self._file is None:
            self._file = _unlinked_file(self._folder)
        for piece in self._held:
            for column in _columns(piece):
                self._file.write(column.data)
            self._spooled.append((piece[0].size, [column.dtype for column in _columns(piece)]))
        self._file.flush()
        self._held, self._held_bytes = [], 0

    def _load(self, file: BinaryIO, size: int, dtypes: list[np.dtype]) -> Piece:
        columns = [np.empty(size, dtype) for dtype in dtypes]
        for column in columns:
            file.readinto(column.view(np.uint8).data)  # type: ignore[attr-defined]
        return columns[0], columns[1], columns[2] if self._arcs.weighted else None

    @property
    def _columns(self) -> list[np.dtype]:
        """The dtypes of tail, head and weight (if any) of a distributed arc."""
        vertex = np.dtype("int32" if self._n <= 2**31 else "int64")
        return [vertex, vertex, *[self.weight_dtype] * self._arcs.weighted]

    @property
    def _arc_bytes(self) -> int:
        return sum(dtype.itemsize for dtype in self._columns)

    def _grow(self, n: int) -> None:
        if n <= self._degrees.size:
            return
        arcs = self._arcs
        label_bytes = 0 if arcs.labels is None or isinstance(arcs.labels, range) else arcs.label_bytes
        vertex_bytes = VERTEX_BYTES + label_bytes
        if n * vertex_bytes > VERTEX_SHARE * self._free:
            counted = f"{n:,} vertices" if arcs.n is not None else f"vertex number {n - 1} implies {n} vertices, which"
            cure = "use a machine with more memory"
            if arcs.n is None:
                cure += ", or if the numbers are names, pass labels=True (--labels)"
            elif label_bytes:
                cure += ", or leave out the labels (labels=False, --no-labels)"
            raise FormatError(
                f"{arcs.source or 'the source'}: {counted} need {size(n * vertex_bytes)} of memory, but only "
                f"{size(self._free)} are free; {cure}"
            )
        grown = np.zeros(max(n, min(2 * self._degrees.size, int(self._free) // VERTEX_BYTES)), dtype=np.int64)
        grown[: self._degrees.size] = self._degrees
        self._degrees = grown


def _unlinked_file(folder: Path) -> BinaryIO:
    folder.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=folder)


def _in_turns(first: np.ndarray, second: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the elements of both arrays alternately.

    So the two arcs of an edge are neighbours, and parallel arcs stay in the order of the source.
    """
    result = np.empty(2 * first.size, dtype)
    result[0::2], result[1::2] = first, second
    return result


def _columns(piece: Piece) -> list[np.ndarray]:
    """Return the columns that a piece has: tails, heads and, if the graph is weighted, weights."""
    return [column for column in piece if column is not None]


def _bits(weights: np.ndarray | None) -> np.ndarray | None:
    """Return a view of the weights as unsigned integers, so that one compiled function moves weights of any dtype."""
    return None if weights is None else weights.view(f"u{weights.itemsize}")


def _cut(offsets: np.ndarray, limit: int) -> np.ndarray:
    """Return the vertices at which ranges begin, and n at the end.

    A range has at most `limit` arcs, or a single vertex, and at most `limit` vertices (at least `LEAST_WIDTH`).
    """
    cuts, n, width = [0], len(offsets) - 1, max(limit, LEAST_WIDTH)
    while cuts[-1] < n:
        fits = int(np.searchsorted(offsets, offsets[cuts[-1]] + limit, side="right")) - 1
        cuts.append(min(max(fits, cuts[-1] + 1), cuts[-1] + width))
    return np.array(cuts)


def _degrees(_first: int, offsets: np.ndarray, heads: np.ndarray, weights: np.ndarray | None) -> Piece:
    return np.diff(offsets), heads, weights


def _simplify(first: int, offsets: np.ndarray, heads: np.ndarray, weights: np.ndarray | None) -> Piece:
    """Return degrees, heads and weights of sorted rows without loops, with the lightest of parallel arcs."""
    tails = np.repeat(np.arange(first, first + len(offsets) - 1), np.diff(offsets))
    proper = tails != heads
    tails, heads, weights = tails[proper], heads[proper], None if weights is None else weights[proper]
    if heads.size:
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(tails) != 0) | (np.diff(heads) != 0)]))
        tails, heads = tails[starts], heads[starts]
        weights = None if weights is None else np.minimum.reduceat(weights, starts)
    return np.bincount(tails - first, minlength=len(offsets) - 1), heads, weights


@numba.njit(nogil=True, cache=True)
@no_type_check
def _count(tails, degrees):
    for tail in tails:
        degrees[tail] += 1


@numba.njit(nogil=True, cache=True)
@no_type_check
def _deal_out(range_of, tails, heads, weights, bounds, tails_out, heads_out, weights_out):
    """Write arcs in the order of the ranges of their tails, and to `bounds` where each range begins."""
    for tail in tails:
        bounds[range_of[tail] + 1] += 1
    for r in range(1, bounds.size):
        bounds[r] += bounds[r - 1]
    places = bounds[:-1].copy()
    for arc in range(tails.size):
        r = range_of[tails[arc]]
        tails_out[places[r]], heads_out[places[r]] = tails[arc], heads[arc]
        if weights is not None:
            weights_out[places[r]] = weights[arc]
        places[r] += 1


@numba.njit(nogil=True, cache=True)
@no_type_check
def _place(tails, heads, weights, first, places, heads_out, weights_out):
    """Write each arc to the next place in the row of its tail; `places` has the next place of vertices from `first`."""
    for arc in range(tails.size):
        place = places[tails[arc] - first]
        places[tails[arc] - first] = place + 1
        heads_out[place] = heads[arc]
        if weights is not None:
            weights_out[place] = weights[arc]

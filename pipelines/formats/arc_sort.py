"""Arcs in any order become a graph store: an external distribution sort.

1. Take the arcs piece by piece, count the degree of every vertex, and set the arcs aside: in memory while they fit,
   else in a spool file; in 12 bytes an arc where numbers are small.
2. Cut the vertices into ranges whose arcs can be sorted in what is left of the memory. With several ranges, deal the
   arcs out: within each piece if all are in memory, else into a second file with one region per range; the degrees say
   where each begins.
3. Sort each range by (tail, head, order of the source), or by (tail, order of the source) where rows stay as given: a
   stable radix sort of the keys ``tail << bits | head``, or of their upper bits. Append it to the store.

Every arc is written and read twice at most, however large the source. What is held in memory is the budget, a few
numbers per vertex, and labels; vertices that cannot fit are refused before any work. The files are unlinked as soon as
they are made, so nothing is left behind even by a process that is killed. They lie beside the store, where the space is
needed anyway.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, no_type_check

import numba
import numpy as np

from pipelines.formats.ahead import in_turn, threads_ahead
from pipelines.stores import Graph, new_graph, open_graph
from pipelines.stores.graph import SCHEMA
from pipelines.stores.place import refuse_existing
from pipelines.stores.schema import disk_errors
from pipelines.workers.memory import available_memory
from pipelines.workers.progress import size

Piece = tuple[np.ndarray, np.ndarray, np.ndarray]

ARC_BYTES = 100  # of memory per arc while a range is sorted: three columns three times, and what the writer holds
HELD_SHARE = 0.75  # of the memory, for arcs set aside; the rest is for sorting a range
VERTEX_BYTES = 32  # of memory per vertex: the degrees here and in the writer, and the offsets of both
LABEL_BYTES = 128  # of memory per label: its text, and its places in a list and in an array
VERTEX_SHARE = 0.75  # of the free memory; the rest is for sorting
# A graph whose size nobody stated is in doubt when it has so many vertices, and so many for each arc.
DOUBTFUL_VERTICES, DOUBTFUL_PER_ARC = 1 << 20, 16
DIGIT_BITS = 11  # of the radix sort: 2,048 places to write to are few enough for the caches
PART_ARCS = 1 << 18  # from so many on, threads sort together


class FormatError(ValueError):
    """A source cannot be read; the message, one line, names it, the line or row at fault and the cure."""

    def __init__(self, message: str):
        super().__init__(re.sub(r"\s*\n\s*", " ", message.strip()))  # messages of libraries may have several lines


@dataclass
class ArcStream:
    """Arcs in pieces, and what is known about their graph.

    Attributes
    ----------
    pieces : iterable of (tails, heads, weights), 1-d arrays of equal length, vertices from 0
    n : number of vertices; None: one more than the largest vertex seen, or `known`
    known : vertices that are there with or without arcs; it may grow as the pieces are read
    directed : False: each edge is given once and stored in both directions
    weight_dtype : dtype of the stored weights; None: int32 or int64 if every piece has integers, else float64
    labels : names of the vertices in order, or None; n of them are read after the last piece
    label_bytes : memory that a label takes while the store is made
    through : bool (n), or a function of n that returns it, or None
    coordinates : float64 (n, 2), or a function of n and the labels that returns them, or None
    weight_unit, source : text for `tilepath info`
    remarks : remarks for the user about what was read; more may be added as the pieces are read
    """

    pieces: Iterable[Piece]
    n: int | None = None
    known: int = 0
    directed: bool = True
    weight_dtype: Any = None
    labels: Iterable[str] | None = field(default=None, repr=False)
    label_bytes: int = LABEL_BYTES
    through: np.ndarray | Callable[[int], np.ndarray] | None = None
    coordinates: np.ndarray | Callable[[int, list[str] | None], np.ndarray] | None = None
    weight_unit: str = ""
    source: str = ""
    remarks: list[str] = field(default_factory=list)


def default_memory() -> int:
    """Bytes for sorting: a quarter of the memory that is free, at most 1 GiB."""
    return min(1 << 30, available_memory() // 4)


def write_sorted(
    path: str | os.PathLike[str],
    arcs: ArcStream,
    *,
    simplify: bool = False,
    sorted_rows: bool = True,
    overwrite: bool = False,
    memory: int | None = None,
) -> Graph:
    """Write the arcs of a stream as a graph store.

    Parameters
    ----------
    path : path of the new store
    arcs : the arcs, in any order
    simplify : keep only the lightest of parallel arcs, and no loops
    sorted_rows : False: keep the arcs of each vertex in the order of the stream, not sorted by head
    overwrite : replace an existing graph store at `path`
    memory : bytes to sort in, besides what the vertices need; default `default_memory`. A vertex with more arcs than
        fit is sorted anyway.

    Raises
    ------
    FormatError
        There are no vertices, more than fit in the free memory, or far more than arcs although their number was not
        given; or a weight is not exact in the dtype of all weights.
    ValueError
        `simplify` with ``sorted_rows=False``: simplified rows are sorted.
    StoreError
        `path` exists, or the disk is full.
    """
    refuse_unsorted(simplify, sorted_rows)
    refuse_existing(path, SCHEMA, overwrite)
    memory = min(default_memory() if memory is None else memory, 1 << 50)
    with disk_errors(path), _Spool(Path(path).parent, memory, arcs) as spool:
        for piece in arcs.pieces:
            spool.add(*(piece if arcs.directed else _both_ways(*piece)))
        n = spool.close()
        labels = None if arcs.labels is None else list(islice(arcs.labels, n))
        coordinates = arcs.coordinates(n, labels) if callable(arcs.coordinates) else arcs.coordinates
        through = arcs.through(n) if callable(arcs.through) else arcs.through
        m = spool.m if not simplify else sum(tails.size for tails, _, _ in spool.sorted_ranges(simplify, sorted_rows))
        facts: dict[str, Any] = {
            "directed": arcs.directed,
            "input_edges": spool.m if arcs.directed else spool.m // 2,
            "simplified": simplify,
            "sorted_rows": sorted_rows,
            "weight_unit": arcs.weight_unit,
            "source": arcs.source,
        }
        with new_graph(path, n=n, m=m, weight_dtype=spool.weight_dtype, overwrite=overwrite, **facts) as writer:
            for sorted_piece in spool.sorted_ranges(simplify, sorted_rows):
                writer.append(*sorted_piece)
            writer.annotate(
                labels=None if labels is None else np.array(labels, dtype=object),
                coordinates=coordinates,
                through=through,
            )
    return open_graph(path)


def refuse_unsorted(simplify: bool, sorted_rows: bool) -> None:
    """Simplifying sorts the rows: it compares neighbours."""
    if simplify and not sorted_rows:
        raise ValueError(
            "simplified rows are sorted by head, so they cannot be kept as given; leave out simplify (--simplify) or "
            "sorted_rows=False (--unsorted)"
        )


class _Spool:
    """Arcs set aside in the order of the source, then given back range by range in the order of the store."""

    def __init__(self, folder: Path, memory: int, arcs: ArcStream):
        self.m = 0
        self.weight_dtype: np.dtype = np.dtype("int32")
        self._folder, self._arcs = folder, arcs
        self._most_held = int(HELD_SHARE * memory)
        self._limit = max(1, (memory - self._most_held) // ARC_BYTES)  # arcs of a range
        self._free = available_memory()
        self._degrees = np.zeros(0, dtype=np.int64)
        self._n = 0
        self._grow(arcs.n or 0)
        self._held: list[Piece] = []
        self._held_bytes = 0
        self._file: BinaryIO | None = None
        self._spooled: list[tuple[int, list[np.dtype]]] = []  # arcs, and the dtypes of each piece in the file
        self._dealt: BinaryIO | None = None
        self._bounds: list[np.ndarray] = []  # of pieces held that were dealt out: where each range begins
        self._integers, self._low, self._high = True, 0, 0
        self._rounded: int | None = None  # the first integer that float64 does not hold exactly

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *_error: Any) -> None:
        for file in (self._file, self._dealt):
            if file is not None:
                file.close()

    def add(self, tails: np.ndarray, heads: np.ndarray, weights: np.ndarray) -> None:
        """Set a piece aside and count it."""
        if tails.size == 0:
            return
        if min(tails.min(), heads.min()) < 0:
            raise ValueError("vertices are numbered from 0")
        self._n = max(self._n, int(tails.max()) + 1, int(heads.max()) + 1)
        self._grow(self._n)
        _count(tails, self._degrees)
        vertex, number = self._columns[0], weights.dtype
        if weights.dtype.kind in "iu":
            low, high = int(weights.min()), int(weights.max())
            self._low, self._high = min(self._low, low), max(self._high, high)
            if self._rounded is None and max(-self._low, self._high) > 2**53:
                large = weights[(weights > 2**53) | (weights < -(2**53))].tolist()
                self._rounded = next((weight for weight in large if int(float(weight)) != weight), None)
            if -(2**31) <= low <= high < 2**31:
                number = np.dtype("int32")
        else:
            self._integers = False
        piece = tails.astype(vertex), heads.astype(vertex), weights.astype(number)
        self._held.append(piece)
        self.m += tails.size
        self._held_bytes += sum(column.nbytes for column in piece)
        if self._held_bytes > self._most_held:
            self._flush()

    def close(self) -> int:
        """No more pieces follow: settle n (returned) and the dtype of the weights, cut ranges and deal the arcs out."""
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
        self._offsets = np.concatenate([[0], np.cumsum(self._degrees[:n])])
        self._degrees = self._degrees[:0]
        self._head_bits = (n - 1).bit_length()
        self._cuts = _cut(self._offsets, self._limit, 1 << (62 - self._head_bits))
        if len(self._cuts) > 2:
            self._deal()
        return n

    def sorted_ranges(self, simplify: bool, sorted_rows: bool) -> Iterator[Piece]:
        """The arcs of one range of vertices after the other, each sorted by (tail, head, order of the source), or
        by (tail, order of the source)."""
        for r in range(len(self._cuts) - 1):
            first, stop = int(self._cuts[r]), int(self._cuts[r + 1])
            keys, weights = self._range(r, first, stop)
            lowest, highest = 0 if sorted_rows else self._head_bits, int(stop - first - 1).bit_length()
            keys, weights = _sort(keys, weights, lowest, self._head_bits + highest)
            heads = keys & ((1 << self._head_bits) - 1)
            keys >>= self._head_bits
            keys += first
            yield _simplify(keys, heads, weights) if simplify else (keys, heads, weights)

    def _range(self, r: int, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Keys ``tail - first << head bits | head`` and weights of the arcs leaving vertices first to stop (excluded),
        in the order of the source."""
        begin, end = int(self._offsets[first]), int(self._offsets[stop])
        keys, weights = np.empty(end - begin, np.int64), np.empty(end - begin, self.weight_dtype)
        pieces = self._pieces()
        if self._dealt is not None:
            self._dealt.seek(begin * self._arc_bytes)
            pieces = iter([self._load(self._dealt, end - begin, self._columns)])
        elif self._bounds:
            ranges = (slice(bounds[r], bounds[r + 1]) for bounds in self._bounds)
            pieces = ((t[part], h[part], w[part]) for (t, h, w), part in zip(self._held, ranges, strict=True))
        at = 0
        for tails, heads, piece_weights in pieces:
            part = slice(at, at + tails.size)
            np.subtract(tails, first, out=keys[part])
            keys[part] <<= self._head_bits
            keys[part] |= heads
            weights[part] = piece_weights
            at += tails.size
        return keys, weights

    def _deal(self) -> None:
        """Deal the arcs out to the ranges: within each piece while they are held, else in a file.

        There every range has a region, which holds its tails, then its heads, then its weights.
        """
        narrow = np.min_scalar_type(len(self._cuts))  # NumPy's stable sort of 16-bit integers is a radix sort

        def by_range(piece: Piece) -> tuple[np.ndarray, Piece]:
            ranges = (np.searchsorted(self._cuts, piece[0], side="right") - 1).astype(narrow)
            order = np.argsort(ranges, kind="stable")
            counts = np.bincount(ranges, minlength=len(self._cuts) - 1)
            return np.concatenate([[0], np.cumsum(counts)]), (piece[0][order], piece[1][order], piece[2][order])

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
                for column, dtype in zip(piece, self._columns, strict=True):
                    self._dealt.seek(begin + int(filled[r]) * dtype.itemsize)
                    self._dealt.write(column[bounds[r] : bounds[r + 1]].astype(dtype, copy=False).data)
                    begin += size * dtype.itemsize
                filled[r] += bounds[r + 1] - bounds[r]
        self._dealt.flush()
        self._file.close()
        self._file, self._spooled, self._held = None, [], []

    def _pieces(self) -> Iterator[Piece]:
        """The pieces in the order of the source, weights in their final dtype."""
        if self._file is not None:
            self._file.seek(0)
            for size, dtypes in self._spooled:
                tails, heads, weights = self._load(self._file, size, dtypes)
                yield tails, heads, weights.astype(self.weight_dtype, copy=False)
        for tails, heads, weights in list(self._held):
            yield tails, heads, weights.astype(self.weight_dtype, copy=False)

    def _flush(self) -> None:
        if self._file is None:
            self._file = _unlinked_file(self._folder)
        for piece in self._held:
            for column in piece:
                self._file.write(column.data)
            self._spooled.append((piece[0].size, [column.dtype for column in piece]))
        self._file.flush()
        self._held, self._held_bytes = [], 0

    def _load(self, file: BinaryIO, size: int, dtypes: list[np.dtype]) -> Piece:
        tails, heads, weights = (np.empty(size, dtype) for dtype in dtypes)
        for column in (tails, heads, weights):
            file.readinto(column.view(np.uint8).data)  # type: ignore[attr-defined]
        return tails, heads, weights

    @property
    def _columns(self) -> list[np.dtype]:
        """The dtypes of an arc that is dealt out: its ends, and its weight."""
        vertex = np.dtype("int32" if self._n <= 2**31 else "int64")
        return [vertex, vertex, self.weight_dtype]

    @property
    def _arc_bytes(self) -> int:
        return sum(dtype.itemsize for dtype in self._columns)

    def _grow(self, n: int) -> None:
        if n <= self._degrees.size:
            return
        arcs = self._arcs
        vertex_bytes = VERTEX_BYTES + (0 if arcs.labels is None else arcs.label_bytes)
        if n * vertex_bytes > VERTEX_SHARE * self._free:
            counted = f"{n:,} vertices" if arcs.n is not None else f"vertex number {n - 1} implies {n} vertices, which"
            cure = "use a machine with more memory"
            if arcs.n is None:
                cure += ", or if the numbers are names, pass labels=True (--labels)"
            elif arcs.labels is not None:
                cure += ", or leave out the labels (--no-labels)"
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


def _both_ways(tails: np.ndarray, heads: np.ndarray, weights: np.ndarray) -> Piece:
    """Each edge as two neighbouring arcs, so that parallel arcs stay in the order of the source."""
    return (
        np.stack([tails, heads], axis=1).ravel(),
        np.stack([heads, tails], axis=1).ravel(),
        np.repeat(weights, 2),
    )


def _cut(offsets: np.ndarray, limit: int, width: int) -> np.ndarray:
    """Vertices at which ranges of at most `limit` arcs (or one vertex) and `width` vertices begin, and n at the end."""
    cuts, n = [0], len(offsets) - 1
    while cuts[-1] < n:
        fits = int(np.searchsorted(offsets, offsets[cuts[-1]] + limit, side="right")) - 1
        cuts.append(min(max(fits, cuts[-1] + 1), cuts[-1] + width))
    return np.array(cuts)


def _simplify(tails: np.ndarray, heads: np.ndarray, weights: np.ndarray) -> Piece:
    """Of sorted arcs, the lightest of each (tail, head), without loops."""
    proper = tails != heads
    tails, heads, weights = tails[proper], heads[proper], weights[proper]
    if tails.size == 0:
        return tails, heads, weights
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(tails) != 0) | (np.diff(heads) != 0)]))
    return tails[starts], heads[starts], np.minimum.reduceat(weights, starts)


@numba.njit(nogil=True, cache=True)
def _count(keys: np.ndarray, counts: np.ndarray) -> None:
    for key in keys:
        counts[key] += 1


def _sort(keys: np.ndarray, weights: np.ndarray, lowest: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys of `bits` bits in the order of their bits from `lowest` on, equal ones as given, and their weights.

    Overwrites both. Each thread has a part of the arcs, and in every list places of its own, behind those of the part
    before.
    """
    spare = np.empty_like(keys), np.empty_like(weights)
    threads = threads_ahead() if keys.size > PART_ARCS else 1
    edges = [keys.size * i // threads for i in range(threads + 1)]
    counts = np.empty((threads, 1 << DIGIT_BITS), np.int64)
    for shift in range(lowest, bits, DIGIT_BITS):
        _by_parts(partial(_digits, keys, shift), edges, counts)
        ends = np.cumsum(counts.T.ravel()).reshape(counts.shape[::-1]).T
        counts[...] = ends - counts
        _by_parts(partial(_scatter, keys, weights, shift, *spare), edges, counts)
        (keys, weights), spare = spare, (keys, weights)
    return keys, weights


def _by_parts(step: Callable[..., None], edges: list[int], counts: np.ndarray) -> None:
    def work(part: int) -> None:
        step(edges[part], edges[part + 1], counts[part])

    deque((in_turn if len(counts) > 1 else map)(work, range(len(counts))), maxlen=0)


@numba.njit(nogil=True, cache=True)
@no_type_check
def _digits(keys, shift, first, last, counts):
    counts[:] = 0
    for arc in range(first, last):
        counts[(keys[arc] >> shift) & (counts.size - 1)] += 1


@numba.njit(nogil=True, cache=True)
@no_type_check
def _scatter(keys, weights, shift, keys_out, weights_out, first, last, places):
    """One pass of a radix sort: each arc to the next place of its digit."""
    for arc in range(first, last):
        digit = (keys[arc] >> shift) & (places.size - 1)
        place = places[digit]
        places[digit] = place + 1
        keys_out[place] = keys[arc]
        weights_out[place] = weights[arc]

"""Rows of distances from parts of large boundaries on a GPU: two launches for many rows (tiles.cu).

Which columns a tile has is found on the host, by a stable sort by part; tables and distances stay on the device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuops._arithmetic import arithmetic_of
from gpuops._cuda import Program
from gpuops.boundary import tables_cuda
from gpuops.boundary.slots import stable_order
from gpuops.boundary.tables_cuda import INDEX_BYTES, PACK_DEPTH, PACK_WORDS, DeviceTables, on_device

if TYPE_CHECKING:
    from gpuops.boundary import ClosedParts

_SIDE = 16  # a tile is shared by 16 x 16 threads
_SLAB = 16  # depths come in multiples of it

_THREAD_TILES = {
    "Float32": 8,
    "NonnegativeFloat32": 8,
    "Float64": 4,
    "Int32": 8,
    "Int16": 8,
    "NonnegativeInt16": 8,
}
_PROGRAMS = {
    arithmetic: Program(
        "boundary/tiles.cu",
        ("pack_a", "pack_b", "depart", "arrive"),
        (f"ARITHMETIC={arithmetic}", f"THREAD_TILE={thread_tile}"),
        threads=_SIDE * _SIDE,
    )
    for arithmetic, thread_tile in _THREAD_TILES.items()
}


class _Columns(NamedTuple):
    """Columns of a product by part, each part in tiles of its own; all int32.

    Attributes
    ----------
    tile_part : (tiles,) array
    columns : (tiles * width,) array
        Which of the vertices it is, -1 where there is none.
    places : (tiles * width,) array
        Its place in its part, or -1.
    """

    tile_part: Any
    columns: Any
    places: Any


def targets_bytes(part: np.ndarray, boundary_sizes: np.ndarray, dtype: np.dtype) -> int:
    """Bytes on the device of the layout of all vertices as targets (`TileTables.all_targets`)."""
    arithmetic = arithmetic_of(dtype, False)
    width = _SIDE * _THREAD_TILES[arithmetic.name] * arithmetic.lanes
    tiles = int((-(-np.bincount(part, minlength=len(boundary_sizes)) // width)).sum())
    depth = math.ceil(int(boundary_sizes.max(initial=0)) / _SLAB) * _SLAB
    return tiles * (width * (depth * dtype.itemsize + 2 * INDEX_BYTES) + INDEX_BYTES)


class TileTables(DeviceTables):
    """The tables for tiles."""

    def __init__(self, parts: ClosedParts):
        super().__init__(parts, _PROGRAMS)
        boundary = len(parts.among)
        self.tile = _SIDE * _THREAD_TILES[self.arithmetic]
        self.depth = boundary + _SLAB
        self.part_depth = math.ceil(parts.to_boundary.shape[2] / _SLAB) * _SLAB
        down = math.ceil(self.depth / self.tile)
        places = np.full(down * self.tile, -1)
        places[:boundary] = np.arange(boundary)
        columns = _Columns(*on_device(np.zeros(down), places, places))
        self.among = self._packed("pack_a", parts.among, (0, 1, boundary), columns, boundary, self.depth, self.tile)

    def distances(self, out: Any, sources: np.ndarray | None, targets: np.ndarray | None) -> None:
        import cupy

        parts = self.parts
        sources = np.arange(len(parts.part)) if sources is None else sources
        columns, arrival = self.laid_out(targets)
        by_part = stable_order(parts.part[sources])
        rows = max(1, tables_cuda.ONWARD_BYTES // (self.depth * self.tile * self.word.itemsize)) * self.tile
        size = np.int32(parts.inner.shape[1])
        for first in range(0, len(sources), rows):
            chosen = by_part[first : first + rows]
            part, place = parts.part[sources[chosen]], parts.place[sources[chosen]]
            by_tile = _columns(part, place, len(parts.boundary_sizes), self.tile * self.lanes)
            *layout, row, row_part, row_place = on_device(*by_tile, chosen, part, place)
            leaving = _Columns(*layout)
            _, p, b = parts.to_boundary.shape
            departure = self._packed("pack_b", parts.to_boundary, (p * b, b, 1), leaving, b, self.part_depth)
            down = math.ceil(len(chosen) / self.tile)
            onward = cupy.empty((down, self.depth, self.tile), self.word)
            onward[len(chosen) // self.tile :].fill(0)  # `depart` leaves out the rows after the last source
            depth, part_depth = np.int32(self.depth), np.int32(self.part_depth)
            self.program.launch(
                "depart",
                (len(leaving.tile_part), len(self.among)),
                {
                    "onward": onward,
                    "depth": depth,
                    "among": self.among,
                    "departure": departure,
                    "part_depth": part_depth,
                    "tile_part": leaving.tile_part,
                    "starts": self.starts,
                    "columns": leaving.columns,
                },
            )
            across = len(columns.tile_part)
            self.program.launch(
                "arrive",
                across * down,
                {
                    "out": out,
                    "stride": np.int64(out.strides[0] // out.itemsize),
                    "m": np.int32(len(chosen)),
                    "rows": row,
                    "row_part": row_part,
                    "row_place": row_place,
                    "onward": onward,
                    "depth": depth,
                    "arrival": arrival,
                    "part_depth": part_depth,
                    "tile_part": columns.tile_part,
                    "starts": self.starts,
                    "across": np.int32(across),
                    "columns": columns.columns,
                    "column_place": columns.places,
                    "inner": parts.inner,
                    "size": size,
                },
            )

    def _targets(self, targets: np.ndarray) -> tuple[_Columns, Any]:
        """Targets by part, and how they are reached from the boundary of theirs."""
        parts = self.parts
        columns = _columns(parts.part[targets], parts.place[targets], len(parts.boundary_sizes), self.tile * self.lanes)
        there = _Columns(*on_device(*columns))
        _, b, p = parts.from_boundary.shape
        return there, self._packed("pack_b", parts.from_boundary, (b * p, 1, p), there, b, self.part_depth)

    def _packed(
        self,
        entry: str,
        table: Any,
        strides: tuple[int, int, int],
        columns: _Columns,
        rows: int,
        depth: int,
        width: int | None = None,
    ) -> Any:
        """Panels of the columns of a table, whose strides are those of parts, of places and of the depth."""
        import cupy

        width = self.tile if width is None else width
        panels = cupy.empty((len(columns.tile_part), depth, width), self.word)
        if len(panels):
            grid = (len(panels) * width // PACK_WORDS, math.ceil(depth / PACK_DEPTH))
            sizes = np.int32(rows), np.int32(depth)
            arguments = (panels, table, *map(np.int64, strides), columns.tile_part, columns.places, *sizes)
            self.program.launch(entry, grid, arguments, threads=(PACK_WORDS, PACK_DEPTH))
        return panels


def _columns(part: np.ndarray, place: np.ndarray, parts: int, width: int) -> _Columns:
    """The columns of a product for vertices of these parts and places, in tiles of so many columns."""
    order = stable_order(part)
    counts = np.bincount(part, minlength=parts)
    tiles = -(-counts // width)
    before = (np.cumsum(tiles) - tiles) * width - (np.cumsum(counts) - counts)
    slots = np.arange(len(order)) + before[part[order]]
    columns, places = np.full((2, int(tiles.sum()) * width), -1, np.int32)
    columns[slots], places[slots] = order, place[order]
    return _Columns(np.repeat(np.arange(parts), tiles), columns, places)

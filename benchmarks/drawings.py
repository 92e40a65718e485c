"""Drawings of the documents that the project follows, made by the functions that the benchmarks use.

python -m benchmarks.drawings [FOLDER]    into docs/gallery by default

sssp-csr, sssp-coo        an undirected graph of five vertices in compressed sparse rows, and as a list of edges
fw-shared-memory          the shared memory of a block of Floyd-Warshall (Lund & Smith, Figures 3 and 4)
fw-global-access          which words of global memory four rows and four columns of a tile are (Figure 5)
fw-banks                  which banks of shared memory a half warp reads (Figure 6)
bmu-node-by-node          how a sample is compared with all units of a map
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chart_style import GALLERY
from benchmarks.kernels import tile_layout as layout
from benchmarks.kernels.edge_sweeps import Edges, csr_of
from benchmarks.kernels.node_by_node import threads_of
from benchmarks.svg import BLUE, FAINT, GREEN, INK, PAPER, RED, Drawing
from gpuops import edge_expansion

EXAMPLE = Edges(
    5,
    np.array([0, 0, 1, 1, 2, 3], np.int32),
    np.array([1, 2, 2, 3, 4, 4], np.int32),
    np.array([2, 5, 1, 4, 3, 7], np.float32),
)
TINTS = ("#bee3f8", "#c6f6d5", "#fefcbf", "#fed7d7", "#e9d8fd")  # of vertices


def sssp_csr() -> str:
    """Draw the example as a graph, as an adjacency matrix, and in compressed sparse rows."""
    indptr, tails, heads, weights = _rows()
    drawing = Drawing(860, 250)
    _graph(drawing, 120, 130, 85)
    left, top, cell = 250, 58, 28
    drawing.text(left + 2.5 * cell, 22, "adjacency matrix: weights")
    for v in range(EXAMPLE.n):
        drawing.text(left + (v + 0.5) * cell, top - 6, v)
        drawing.text(left - 10, top + (v + 0.6) * cell, v)
        row = dict(zip(heads[indptr[v] : indptr[v + 1]], weights[indptr[v] : indptr[v + 1]], strict=True))
        fills = [TINTS[v] if head in row else "white" for head in range(EXAMPLE.n)]
        drawing.row(left, top + v * cell, [f"{row[h]:g}" if h in row else "" for h in range(EXAMPLE.n)], fills, cell)
    left, cell = 500, 28
    of_arc = [TINTS[tail] for tail in tails]
    drawing.text(left + 6 * cell, 22, "compressed sparse rows: N = 5, 2 M = 12 arcs")
    for y, name, values, fills in (
        (50, "xadj", indptr, [*TINTS, "white"]),
        (130, "adjncy", heads, of_arc),
        (190, "weights", [f"{w:g}" for w in weights], of_arc),
    ):
        drawing.text(left - 8, y + 18, name, anchor="end")
        drawing.row(left, y, values, fills, cell)
    for v, begin in enumerate(indptr[:-1]):
        drawing.line(left + (v + 0.5) * cell, 50 + cell, left + (begin + 0.5) * cell, 128, FAINT, 1, True)
    return drawing.svg()


def sssp_coo() -> str:
    """Draw the arcs of the example with their tails, and its edges sorted, each pair once."""
    _, tails, heads, weights = _rows()
    drawing = Drawing(620, 300)
    left, cell = 110, 30
    drawing.text(left, 24, "1. coordinate format: xadj is expanded to the tail of every arc", anchor="start")
    kept = np.flatnonzero(tails < heads)
    for y, name, values in ((40, "startV", tails), (74, "adjncy", heads), (108, "weights", weights)):
        drawing.text(left - 10, y + 19, name, anchor="end")
        fills = [TINTS[tail] if arc in kept else "white" for arc, tail in enumerate(tails)]
        drawing.row(left, y, [f"{value:g}" for value in values], fills, cell)
    drawing.text(left, 176, "2. sorted, each pair (U, V) once: a thread relaxes both arcs of its edge", anchor="start")
    columns = (("startV", EXAMPLE.starts), ("endV", EXAMPLE.ends), ("weights", EXAMPLE.weights))
    for y, (name, values) in zip((192, 226, 260), columns, strict=True):
        drawing.text(left - 10, y + 19, name, anchor="end")
        drawing.row(left, y, [f"{value:g}" for value in values], [TINTS[start] for start in EXAMPLE.starts], cell)
    return drawing.svg()


def _rows() -> tuple[Any, Any, Any, Any]:
    """Return indptr, tails, heads and weights of the arcs of the example; the heads in a row ascend."""
    indptr, heads, weights = csr_of(np, EXAMPLE)
    tails = edge_expansion(indptr, heads)
    order = np.lexsort((heads, tails))
    return indptr, tails, heads[order], weights[order]


def _graph(drawing: Drawing, x: float, y: float, radius: float) -> None:
    places = [(x + radius * sin(2 * pi * v / 5), y - radius * cos(2 * pi * v / 5)) for v in range(EXAMPLE.n)]
    for start, end, weight in zip(EXAMPLE.starts, EXAMPLE.ends, EXAMPLE.weights, strict=True):
        (x1, y1), (x2, y2) = places[start], places[end]
        drawing.line(x1, y1, x2, y2, INK, 1.2)
        middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
        drawing.box(middle_x - 8, middle_y - 9, 16, 16, "white", "none")
        drawing.text(middle_x, middle_y + 4, f"{weight:g}")
    for v, (at_x, at_y) in enumerate(places):
        drawing.circle(at_x, at_y, 14, TINTS[v])
        drawing.text(at_x, at_y + 4, v)


def fw_shared_memory() -> str:
    """Draw which parts of three tiles a block keeps in shared memory: whole tiles, and in stages."""
    drawing, size = Drawing(860, 400), 130
    for x, depth, stage, title in (
        (40, layout.TILE, 0, "Figure 3: the doubly dependent tile in registers"),
        (470, layout.SMALL, 2, "Figure 4: in stages of four columns and four rows"),
    ):
        words = 2 * layout.TILE * depth
        part = size * depth / layout.TILE
        drawing.text(x + 170, 24, title, 13)
        drawing.box(x, 45, 350, 305, "white", FAINT)
        drawing.text(x + 6, 62, "matrix", 11, "start", FAINT)
        for at_x, at_y, fill in ((x + 190, 200, "#bee3f8"), (x + 20, 200, "white"), (x + 190, 56, "white")):
            drawing.box(at_x, at_y, size, size, fill)
        drawing.box(x + 20 + stage * part, 200, part, size, "#feb2b2", RED)
        drawing.box(x + 190, 56 + stage * part, size, part, "#feb2b2", RED)
        drawing.text(x + 20 + size / 2, 190, "i-aligned tile")
        drawing.text(x + 182, 125, "j-aligned tile", 12, "end")
        drawing.text(x + 190 + size / 2, 262, "doubly dependent")
        drawing.text(x + 190 + size / 2, 280, "tile: registers", fill=BLUE)
        text = f"red: {4 * words:,} bytes of shared memory, 2 x {layout.TILE} x {depth} words"
        drawing.text(x + 175, 374, text, fill=RED)
    return drawing.svg()


def fw_global_access() -> str:
    """Draw four columns and four rows of a tile in both orders, with the places of their words in memory."""
    drawing = Drawing(900, 505)
    columns = [(i, j) for i in range(layout.TILE) for j in range(8, 12)]
    rows = [(i, j) for i in range(8, 12) for j in range(layout.TILE)]
    orders: list[tuple[str, Callable[[int, int], int]]] = [
        ("row-major order", layout.place_in_rows),
        ("doubly tiled order", layout.place_in_tiles),
    ]
    for across, (words, what) in enumerate(((columns, "four columns (i-aligned)"), (rows, "four rows (j-aligned)"))):
        for down, (name, place) in enumerate(orders):
            _access(drawing, 30 + 450 * across, 30 + 265 * down, words, f"{what}, {name}", place)
    return drawing.svg()


def _access(
    drawing: Drawing,
    x: float,
    y: float,
    words: Iterable[tuple[int, int]],
    title: str,
    place: Callable[[int, int], int],
) -> None:
    words, cell = list(words), 6
    lengths = layout.pieces(place(i, j) for i, j in words)
    drawing.text(x, y - 6, f"{title}: {len(lengths)} piece{'s' * (len(lengths) > 1)} of {lengths[0]}", 12, "start")
    drawing.box(x, y, cell * layout.TILE, cell * layout.TILE, "white")
    tiled = place is layout.place_in_tiles
    for edge in range(0, layout.TILE + 1, layout.SMALL if tiled else 1):
        drawing.line(x, y + edge * cell, x + cell * layout.TILE, y + edge * cell, "#cbd5e0", 0.5)
        if tiled:
            drawing.line(x + edge * cell, y, x + edge * cell, y + cell * layout.TILE, "#cbd5e0", 0.5)
    for i, j in words:
        drawing.box(x + j * cell, y + i * cell, cell, cell, "#feb2b2", RED, 0.4)
    # The first 512 words of the tile in the order of memory, 16 in a line: a half warp reads one line at a time.
    left, size, taken = x + 215, 6, {place(i, j) for i, j in words}
    drawing.text(left, y + 9, "memory, 16 words a line", 10, "start", FAINT)
    first = min(taken) // 16 * 16
    for line in range(28):
        for at in range(16):
            fill, stroke = ("#feb2b2", RED) if first + 16 * line + at in taken else ("white", PAPER)
            drawing.box(left + at * size, y + 14 + line * size, size, size, fill, stroke, 0.4)
    drawing.text(left, y + 14 + 28 * size + 12, f"words {first} to {first + 16 * 28 - 1}", 10, "start", FAINT)


def fw_banks() -> str:
    """Draw the words of shared memory that a half warp reads in one step, with their banks, in three patterns."""
    drawing = Drawing(900, 560)
    threads = range(layout.HALF_WARP)
    # Row-major: the half warp has 16 words of a row, and reads columns[0, k] and rows[k, 0 .. 15].
    patterns: list[tuple[str, list[int], list[int]]] = [
        ("row-major order: 16 threads in a row, k = 0", [0 for _ in threads], list(threads)),
        (
            "4 x 4 tiles, all threads at k = 0",
            [layout.word_of_columns(t, 0, 0) for t in threads],
            [layout.word_of_rows(t, 0, 0) for t in threads],
        ),
        (
            "4 x 4 tiles, thread (i, j) at k = (i + j) mod 4",
            [layout.word_of_columns(t, 0, 1) for t in threads],
            [layout.word_of_rows(t, 0, 1) for t in threads],
        ),
    ]
    for number, (title, columns, rows) in enumerate(patterns):
        y = 30 + 180 * number
        drawing.text(20, y, title, 13, "start")
        for x, name, words in ((20, "i-aligned tile", columns), (470, "j-aligned tile", rows)):
            cycles = layout.cycles_of_half_warp(words)
            shared = "one word for all" if len(set(words)) == 1 else "a bank each"
            verdict = f"1 cycle, {shared}" if cycles == 1 else f"{cycles} cycles, {cycles} threads a bank"
            drawing.text(x, y + 24, f"{name}: {verdict}", 12, "start", GREEN if cycles == 1 else RED)
            drawing.text(x, y + 44, "thread", 10, "start", FAINT)
            drawing.text(x, y + 140, "bank", 10, "start", FAINT)
            for bank in range(16):
                read = bank in words
                fill = ("#c6f6d5" if cycles == 1 else "#fed7d7") if read else "white"
                drawing.box(x + 36 + bank * 24, y + 106, 24, 20, fill)
                drawing.text(x + 48 + bank * 24, y + 140, bank, 10)
            for t, word in enumerate(words):
                drawing.text(x + 48 + t * 24, y + 44, t, 10)
                drawing.line(x + 48 + t * 24, y + 50, x + 48 + word % 16 * 24, y + 104, BLUE, 0.9, True)
    return drawing.svg()


def bmu_node_by_node() -> str:
    """Draw how all components of a map are compared with one sample, and how its best matching unit is found."""
    dimensions, units = 12, 200 * 200
    threads = threads_of(dimensions)
    blocks = -(-units * dimensions // threads)
    in_last = units * dimensions - (blocks - 1) * threads
    drawing, middle = Drawing(900, 345), 450
    drawing.text(middle, 28, f"node: {dimensions} components", 13)
    drawing.row(middle - dimensions * 7.5, 40, [""] * dimensions, ["#fefcbf"] * dimensions, 15)
    drawing.text(20, 32, f"200 x 200 units: {units * dimensions:,} components, a thread each", 12, "start")
    drawing.text(20, 50, f"each thread: (map[i] - node[i mod {dimensions}])²", 12, "start", BLUE)
    drawing.text(880, 32, f"node by node: thread 0 adds all {threads} of its block", 12, "end")
    drawing.text(880, 50, f"optimized: {threads // dimensions} threads add {dimensions} each", 12, "end", GREEN)
    unit, top = dimensions * 4.2, 180
    for left, number, taken, tint in ((20, 0, threads, 0), (305, 1, threads, 1), (640, blocks - 1, in_last, 3)):
        for place in range(4):
            x = left + place * (unit + 4) + (24 if place == 3 else 0)
            for k in range(dimensions):
                drawing.box(x + k * 4.2, top, 4.2, 22, TINTS[tint] if place % 2 else "#e2e8f0", FAINT, 0.4)
            drawing.line(middle, 57, x + unit / 2, top - 2, FAINT, 0.7, True)
        drawing.text(left + 3 * (unit + 4) + 10, top + 16, "...", 14)
        right = left + 4 * (unit + 4) + 20
        drawing.line(left, top + 30, right, top + 30, INK, 0.8)
        drawing.text(
            (left + right) / 2, top + 48, f"block {number:,}: {taken} threads for {taken // dimensions} units", 12
        )
        drawing.text((left + right) / 2, top + 64, "keeps its nearest unit", 12)
        drawing.line((left + right) / 2, top + 74, middle + ((left + right) / 2 - middle) / 3, 306, INK, 1, True)
    drawing.text(591, top + 16, "...", 18)
    text = f"the nearest of the units that {blocks:,} blocks keep is the best matching unit; then the next node"
    drawing.text(middle, 326, text, 13)
    return drawing.svg()


DRAWINGS = {
    "sssp-csr": sssp_csr,
    "sssp-coo": sssp_coo,
    "fw-shared-memory": fw_shared_memory,
    "fw-global-access": fw_global_access,
    "fw-banks": fw_banks,
    "bmu-node-by-node": bmu_node_by_node,
}


def main(folder: Path = GALLERY) -> None:
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))

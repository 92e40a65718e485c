"""Texts over the cells of a map: one in every cell or, where cells are too small, one in every patch of equal cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.files.figures import shortened

LARGEST, LEAST, OF_PATCH = 10.0, 4.5, 8.0  # sizes of letters in points: most and least in a cell, and in a patch
LETTERS = 12  # letters of a text that are written
LETTER_WIDTH = 0.65  # width of a letter, as a share of its size


def draw_text(axes: Any, grid: Grid, texts: Sequence[str], backs: np.ndarray | None = None) -> None:
    """Write a text into every cell, as large as cells allow.

    If cells have no room for legible letters, each patch of neighbouring cells of the same text has the text once, and
    patches that are smaller than their text have none. `backs` (M, 4) are the colours of the cells; on dark cells
    letters are white, else black.
    """
    longest = min(max((len(text) for text in texts), default=0), LETTERS)
    if not longest:
        return
    place = axes.get_position()
    width = place.width * axes.figure.get_figwidth() * 72 / np.ptp(axes.get_xlim())  # width of a cell, in points
    size = min(LARGEST, 0.8 * width / (LETTER_WIDTH * longest), 0.6 * width)
    patches = size < LEAST
    size, units = (OF_PATCH, _middles(grid, texts, width)) if patches else (size, [*range(grid.units)])
    positions = grid.positions()
    for unit in units:
        dark = backs is not None and backs[unit, :3] @ (0.299, 0.587, 0.114) < 0.5
        ink = "white" if dark else "black"
        x, y = positions[unit]
        box = None
        if patches:  # the text may be wider than its patch
            box = {"facecolor": "white" if backs is None else backs[unit], "edgecolor": "white", "pad": 1.5}
        words = shortened(texts[unit], LETTERS)
        axes.text(x, y, words, size=size, ha="center", va="center", color=ink, bbox=box, zorder=7)


def _middles(grid: Grid, texts: Sequence[str], width: float) -> list[int]:
    """Return the unit in the middle of each patch of equal texts that is as large as its text."""
    from gpuops import weak_components  # imports Numba, which pictures without text do not need

    near = grid.neighbours()
    names, numbers = np.unique(np.asarray(texts, object).astype(str), return_inverse=True)
    units, places = np.nonzero((near >= 0) & (numbers[near] == numbers[:, None]))
    indptr = np.searchsorted(units, np.arange(grid.units + 1))
    patches = weak_components(indptr, near[units, places], compact=True)
    positions, found = grid.positions(), []
    for patch in range(int(patches.max()) + 1):
        inside = np.flatnonzero(patches == patch)
        letters = min(len(names[numbers[inside[0]]]), LETTERS)
        if letters and len(inside) * width**2 >= letters * LETTER_WIDTH * OF_PATCH * OF_PATCH:
            away = positions[inside] - positions[inside].mean(axis=0)
            found.append(int(inside[(away**2).sum(axis=1).argmin()]))
    return found

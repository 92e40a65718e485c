"""Rows in the layout that min-plus products read."""

from __future__ import annotations

from typing import Any, NamedTuple


class Packed(NamedTuple):
    """Rows B in the layout that products ``min(c, a (x) B)`` read; `pack` makes it once for many products."""

    panels: Any  # (panels, depth, width)
    rows: int
    columns: int
    program: Any  # the kernels on a GPU, None on a CPU

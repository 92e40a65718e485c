"""Directions of roads, by the entries of a column such as OSMnx's `oneway`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BOTH, ALONG, AGAINST = 0, 1, 2
ONE_WAY = {  # entries of a column of one-way roads, in lower case
    **dict.fromkeys(("", "no", "n", "false", "0", "0.0", "none", "nan", "b", "reversible", "alternating"), BOTH),
    **dict.fromkeys(("yes", "y", "true", "1", "1.0"), ALONG),
    **dict.fromkeys(("-1", "-1.0", "reverse"), AGAINST),
}
DIGITISED = {"f": ALONG, "t": AGAINST}  # more entries in layers of Geofabrik, whose third entry is "b"
WRITE = "write yes, no or -1 (against the line), or choose another column (oneway, --oneway)"


def ways_of(texts: Sequence[Any]) -> tuple[np.ndarray, int | None]:
    """Return the direction of each row (`BOTH`, `ALONG` or `AGAINST`), and the first row that has no known entry.

    >>> ways_of(["yes", "", "-1"])[0].tolist(), ways_of(["no", "maybe"])[1]
    ([1, 0, 2], 1)
    """
    entries = [str(text).strip().lower() for text in texts]
    coding = ONE_WAY | (DIGITISED if "b" in entries else {})
    unknown = next((row for row, entry in enumerate(entries) if entry not in coding), None)
    return np.array([coding.get(entry, BOTH) for entry in entries], np.int64), unknown


def without_reverse(tails: np.ndarray, heads: np.ndarray, both: np.ndarray) -> np.ndarray | None:
    """Return which of the rows of two-way roads lack a row from head to tail; None if a road has a single row.

    In directed graphs of OSMnx, a two-way road has a row for each direction; in undirected ones it has one row. The
    rows of `both` are those of two-way roads. If most of them have a row in the other direction, which is in `both`,
    too, rows are directions. The others were probably cut off. Loops tell nothing, since they are their own reverse.
    """
    told = both & (tails != heads)
    n = max(tails.max(initial=0), heads.max(initial=0)) + 1
    there, back = tails * n + heads, heads * n + tails
    alone = told & ~np.isin(back, there[told])
    return None if 2 * alone.sum() >= told.sum() else alone


def cut_off(name: str, rows: np.ndarray, alone: np.ndarray) -> list[str]:
    """Return a warning of rows of two-way roads that lack the other direction; `rows` has the numbers of all rows."""
    if not alone.any():
        return []
    count = int(alone.sum())
    return [
        f"{name}: two-way roads have a row for each direction, but {count:,} of these rows, such as row "
        f"{rows[np.flatnonzero(alone)[0]]} (from 0), lack the other direction, and lead one way; to take every row in "
        "both directions, leave out directions (directed=False, --undirected)"
    ]

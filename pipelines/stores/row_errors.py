"""Errors in single rows of samples; a reader of text can name the line of the row."""

from __future__ import annotations

MISSING_CURE = "declare that values are missing (missing=True, --missing), or leave the row out"


class RowError(ValueError):
    """A row of a source cannot be stored. `row` counts from 0, and `what` continues the message after the row."""

    def __init__(self, source: str, row: int, what: str):
        super().__init__(f"{source}: row {row} (from 0){what}")
        self.row, self.what = row, what

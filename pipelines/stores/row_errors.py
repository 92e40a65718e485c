"""Faults of single rows of samples, which a reader of text can place in a line."""

from __future__ import annotations


class RowError(ValueError):
    """A row of a source cannot be stored; `row` counts from 0, and `what` continues the sentence after its place."""

    def __init__(self, source: str, row: int, what: str):
        super().__init__(f"{source}: row {row} (from 0){what}")
        self.row, self.what = row, what

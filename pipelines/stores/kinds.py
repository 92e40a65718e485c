"""The registry of schemas: the names of the stores and the commands that make them. A new schema is entered once, here.

The schema NAME/1 has the module NAME of this package, which is imported when a store is opened. In this module,
`open_NAME` opens a finished store and returns an object with `describe` and `verify`. For stores that grow, the module
also has `create_NAME`, `resume_NAME`, and `begun_NAME`, which reads the progress of a store and returns a
`pipelines.stores.resuming.StoreWriter`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from pipelines.stores.settled import settled


class Progress(NamedTuple):
    """The progress of a store: whether it is finished, and how many units of the total are done."""

    finished: bool
    done: int
    total: int
    unit: str


@dataclass(frozen=True)
class Kind:
    """The facts about a schema that are known without importing its module."""

    schema: str
    name: str  # the word before "store" in messages
    made_by: str  # the command that makes such a store
    unit: str = ""  # unit of progress, unless the writer has an attribute `unit`; "" for stores written in one go

    def open(self, path: str | os.PathLike[str]) -> Any:
        """Open the finished store at `path`; raises StoreError if it is unfinished or damaged."""
        return self._function("open")(path)

    def begun(self, path: str | os.PathLike[str]) -> Any:
        """Return a writer of the store at `path`, owned by no run, to read its progress or verify the written part."""
        return self._function("begun")(path)

    def progress(self, path: str | os.PathLike[str]) -> Progress:
        """Return the progress of the store at `path`."""
        if not self.unit:
            return Progress(True, 1, 1, "")

        def progress() -> Progress:
            begun = self.begun(path)
            done, total = begun.progress()
            return Progress(begun.finished, done, total, getattr(begun, "unit", self.unit))

        return settled(path, progress, several=True)

    def _function(self, verb: str) -> Any:
        name = self.schema.partition("/")[0]
        return getattr(import_module(f"pipelines.stores.{name}"), f"{verb}_{name}")


KINDS = {
    kind.schema: kind
    for kind in (
        Kind("graph/1", "graph", "tilepath import FILE STORE"),
        Kind("distances/2", "distances", "tilepath apsp GRAPH STORE", "stages"),
        Kind("paths/1", "paths", "tilepath sssp GRAPH STORE --source VERTEX", "rows"),
        Kind("hierarchy/1", "hierarchy", "tilepath hierarchy GRAPH STORE", "steps"),
        Kind("matrix/2", "matrix", "tilepath od STORE OUT.zarr --origins FILE", "rows"),
        Kind("circuits/1", "circuits", "tilepath euler GRAPH STORE"),
        Kind("samples/1", "samples", "tilepath som import FILE STORE"),
        Kind("codebook/1", "map", "tilepath som train SAMPLES STORE", "epochs"),
        Kind("mapping/1", "mapping", "tilepath som map MAP SAMPLES STORE", "samples"),
    )
}

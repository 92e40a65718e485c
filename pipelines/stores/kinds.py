"""The registry of schemas: the names of the stores, the commands that make them, and the functions that open them.

Functions and classes of this package are named as MODULE:NAME. Their modules are imported when a store is opened, as
some import Numba. A new schema is entered once, here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pkgutil import resolve_name
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
    """What is known about a schema without importing its module."""

    schema: str
    name: str  # the word before "store" in messages
    made_by: str  # the command that makes such a store
    opener: str  # the function that opens a finished store; the result has `describe` and `verify`
    writer: str = ""  # the `pipelines.stores.resuming.StoreWriter`; "" for stores written in one go

    def open(self, path: str | os.PathLike[str]) -> Any:
        """Open the finished store at `path`; raises StoreError if it is unfinished or damaged."""
        return resolve_name(f"pipelines.stores.{self.opener}")(path)

    def begun(self, path: str | os.PathLike[str]) -> Any:
        """Return a writer of the store at `path`, owned by no run, to read its progress or verify the written part."""
        return resolve_name(f"pipelines.stores.{self.writer}").begun(path)

    def progress(self, path: str | os.PathLike[str]) -> Progress:
        """Return the progress of the store at `path`."""
        if not self.writer:
            return Progress(True, 1, 1, "")

        def progress() -> Progress:
            begun = self.begun(path)
            done, total = begun.progress()
            return Progress(begun.finished, done, total, begun.unit)

        return settled(path, progress, several=True)


KINDS = {
    kind.schema: kind
    for kind in (
        Kind("graph/1", "graph", "tilepath import FILE STORE", "graph:open_graph"),
        Kind("distances/2", "distances", "tilepath apsp GRAPH STORE",
             "distances:open_distances", "distances:DistancesWriter"),
        Kind("paths/1", "paths", "tilepath sssp GRAPH STORE --source VERTEX", "paths:open_paths", "paths:PathsWriter"),
        Kind("hierarchy/1", "hierarchy", "tilepath hierarchy GRAPH STORE",
             "hierarchy:open_hierarchy", "hierarchy:HierarchyWriter"),
        Kind("matrix/2", "matrix", "tilepath od STORE OUT.zarr --origins FILE",
             "matrix:open_matrix", "matrix:MatrixWriter"),
        Kind("circuits/1", "circuits", "tilepath euler GRAPH STORE", "circuits:open_circuits"),
        Kind("samples/1", "samples", "tilepath som import FILE STORE", "samples:open_samples"),
        Kind("codebook/1", "map", "tilepath som train SAMPLES STORE",
             "codebook:open_codebook", "codebook:CodebookWriter"),
        Kind("mapping/1", "mapping", "tilepath som map MAP SAMPLES STORE",
             "mapping:open_mapping", "mapping:MappingWriter"),
    )
}  # fmt: skip

"""The registry of stores: what is known of a schema outside its own module. A new schema is entered here, and once.

The schema NAME/1 has the module NAME of this package, which is imported when a store is opened. There, `open_NAME`
opens a finished store: an object with `describe` and `verify`. Where stores grow, `begun_NAME` reads how far one has
come, as a `pipelines.stores.resuming.StoreWriter`; beside it stand `create_NAME` and `resume_NAME`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Kind:
    """What there is to know about a schema without its module."""

    schema: str
    name: str  # what people call such a store
    made_by: str  # the command that makes one
    unit: str = ""  # what its progress is counted in; none where stores are written in one go

    def open(self, path: str | os.PathLike[str]) -> Any:
        """The finished store at `path`; StoreError if it is unfinished or damaged."""
        return self._function("open")(path)

    def begun(self, path: str | os.PathLike[str]) -> Any:
        """The `StoreWriter` of the store at `path`, which belongs to no run: for its progress, and to verify a part."""
        return self._function("begun")(path)

    def progress(self, path: str | os.PathLike[str]) -> tuple[int, int]:
        """How many of how many units are done."""
        return self.begun(path).progress() if self.unit else (1, 1)

    def _function(self, verb: str) -> Any:
        name = self.schema.partition("/")[0]
        return getattr(import_module(f"pipelines.stores.{name}"), f"{verb}_{name}")


KINDS = {
    kind.schema: kind
    for kind in (
        Kind("graph/1", "graph", "tilepath import FILE STORE"),
        Kind("distances/1", "distances", "tilepath apsp GRAPH STORE", "stages"),
        Kind("paths/1", "paths", "tilepath sssp GRAPH STORE --source VERTEX", "rows"),
        Kind("boundary/1", "boundary", "tilepath partition GRAPH STORE", "parts"),
        Kind("matrix/1", "matrix", "tilepath od STORE OUT.zarr --origins FILE", "rows"),
        Kind("circuits/1", "circuits", "tilepath euler GRAPH STORE"),
        Kind("samples/1", "samples", "tilepath som import FILE STORE"),
        Kind("codebook/1", "map", "tilepath som train SAMPLES STORE", "epochs"),
        Kind("mapping/1", "mapping", "tilepath som map CODEBOOK SAMPLES STORE", "samples"),
    )
}

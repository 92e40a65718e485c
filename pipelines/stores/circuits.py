"""The circuits store (schema `circuits/1`): Euler circuits of a graph, and at most one Euler path.

========= ============== ==============================================================
array     dtype, shape   meaning
========= ============== ==============================================================
arcs      int32/64 (k)   arcs by position in the graph store, in walking order: every
                         arc, or one of the two arcs of each undirected edge
offsets   int64 (c + 1)  walk i is arcs[offsets[i] : offsets[i + 1]]
========= ============== ==============================================================

There is one walk for each component that has an arc. The walks are ordered by their least vertices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing
from pipelines.stores.declared import Array, Attribute, Schema, optional, view
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph
from pipelines.stores.opened import OpenedStore
from pipelines.stores.origin import OfGraph, origin_of
from pipelines.stores.place import new_store
from pipelines.stores.schema import CHUNK_BYTES, counted, open_store, set_attributes


def _derived(_path: str, _group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    if found["graph_arcs"] < found["length"]:
        raise ValueError(f"walks of {found['length']:,} arcs in a graph of {found['graph_arcs']:,}")
    return {}


DECLARED = Schema(
    "circuits/1",
    source="graph",
    grows=False,
    attributes=(
        Attribute("length", int),
        Attribute("count", int),
        Attribute("path_from", optional(int)),
        Attribute("directed", bool),
        Attribute("method", str),
        Attribute("graph_arcs", int),
    ),
    arrays=(Array("arcs", ("int32", "int64"), ("length",)), Array("offsets", ("int64",), ("count + 1",))),
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, eq=False)
class Circuits(OfGraph, OpenedStore):
    """A circuits store, opened by `open_circuits`: arcs read on demand. Pickles leave out the arrays.

    Attributes
    ----------
    length : number of arcs of all walks
    count : number of walks
    path_from : the first vertex of the only open walk, or None if all walks are closed
    directed : True: the walks take every arc once; False: every edge, stored as two arcs, once
    method : "stages" or "hierholzer"
    """

    path: str
    length: int
    count: int
    path_from: int | None
    directed: bool
    method: str
    graph_path: str
    graph_digest: str
    graph_arcs: int

    def arcs(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the arcs of all walks, in walking order, from position `start` to `stop` (excluded)."""
        arcs = self.stored("arcs", within=(0, self.graph_arcs - 1))
        return arcs.rows(start, self.length if stop is None else stop)

    def offsets(self) -> np.ndarray:
        """Return the position in `arcs` where each walk begins, and the end of the last walk, int64 (c + 1)."""
        return self.stored("offsets", within=(0, self.length)).offsets(0, self.count + 1)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Iterate over the chunks of `arcs`: yields the first position in each chunk, and the end of the chunk."""
        return self.stored("arcs").ranges()

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        closed = self.count - (self.path_from is not None)
        walks = [counted(closed, "Euler circuit")] if closed or not self.count else []
        if self.path_from is not None:
            walks.append("an Euler path")
        along = "arc" if self.directed else "edge"
        by = "" if self.method == "stages" else ", by Hierholzer's algorithm"
        return f"{self.path}: {' and '.join(walks)} along {counted(self.length, along)} of {self.graph_path}{by}"

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        chunks = {name: StoredArray(self.path, name).places() for name in ("arcs", "offsets")}
        refuse_missing(self.path, chunks)
        offsets = self.offsets()
        if (offsets[1:] == offsets[:-1]).any():
            raise StoreError(f"{self.path}: a walk has no arc; find the circuits again")
        seen = np.zeros(self.graph_arcs, bool)
        for start, stop in self.ranges():
            seen[self.arcs(start, stop)] = True
        if int(seen.sum()) != self.length:
            raise StoreError(f"{self.path}: an arc is walked along twice; find the circuits again")
        also = "that walks take no arc twice"
        return compare_contents(self.path, open_store(self.path, SCHEMA), chunks, also)


def write_circuits(
    path: str | os.PathLike[str],
    graph: Graph,
    arcs: np.ndarray,
    offsets: np.ndarray,
    *,
    path_from: int | None,
    directed: bool,
    method: str,
    overwrite: bool = False,
) -> Circuits:
    """Write a circuits store, which appears at `path` when it is complete, and return it opened.

    Raises StoreError if `path` exists or the disk is full.
    """
    with new_store(path, SCHEMA, overwrite) as group:
        for name, values in (("arcs", arcs), ("offsets", np.asarray(offsets, np.int64))):
            chunk = max(1, min(len(values), CHUNK_BYTES // values.itemsize))
            array = DECLARED.create(group, name, values.shape, (chunk,), values.dtype)
            if values.size:
                array[:] = values
        set_attributes(
            group,
            {
                "schema": SCHEMA,
                "length": len(arcs),
                "count": len(offsets) - 1,
                "path_from": path_from,
                "directed": directed,
                "method": method,
                "graph": origin_of(path, graph),
                "graph_arcs": graph.m,
            },
        )
    return open_circuits(path)


def open_circuits(store: Circuits | str | os.PathLike[str]) -> Circuits:
    """Open a circuits store and check its schema, shapes and dtypes, or return an opened one.

    Raises StoreError on a fault.

    Examples
    --------
    >>> tilepath.open_circuits("circuits.zarr").arcs(0).tolist()
    [0, 1, 2]
    """
    if isinstance(store, Circuits):
        return store
    return view(Circuits, DECLARED.open(store))

"""The circuits store (schema `circuits/1`): walks along every arc of a graph once, closed but for a path.

========= ============== ==============================================================
array     dtype, shape   meaning
========= ============== ==============================================================
arcs      int32/64 (k)   arcs by their places in the graph store, in walking order: all
                         of them, or one of the two arcs of each undirected edge
offsets   int64 (c + 1)  walk i is arcs[offsets[i] : offsets[i + 1]]
========= ============== ==============================================================

Walks stand in the order of their least vertices, one for each component that has an arc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.stores.graph import Graph
from pipelines.stores.origin import open_origin, origin_of, origin_path
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    damage,
    new_store,
    open_array,
    open_store,
    result_codecs,
    verify_chunks,
)

SCHEMA = "circuits/1"


@dataclass(frozen=True, eq=False)
class Circuits:
    """A circuits store, opened by `open_circuits`: arcs read on demand. It pickles as its path.

    Attributes
    ----------
    length : arcs walked along in all
    count : number of walks
    path_from : the vertex where the one walk that is open begins, or None if all are closed
    directed : False: every edge of the graph, which stands twice, was walked along once
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
        """int32 or int64: the arcs at the places `start` to `stop` (excluded) of all walks, one after the other."""
        with damage(self.path):
            return np.asarray(open_array(self.path, "arcs")[start : self.length if stop is None else stop])

    def offsets(self) -> np.ndarray:
        """int64 (c + 1): where each walk begins, and the end."""
        with damage(self.path):
            return np.asarray(open_array(self.path, "offsets")[:])

    def graph(self, moved_to: str | os.PathLike[str] | None = None) -> Graph:
        """The graph that was walked along; StoreError if it is gone, or another one."""
        return open_origin(self.path, self.graph_path, self.graph_digest, moved_to)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The places of each chunk."""
        step = open_array(self.path, "arcs").chunks[0]
        for start in range(0, self.length, step):
            yield start, min(start + step, self.length)

    def verify(self) -> None:
        """Reread every chunk (its checksum is tested), make sure none is missing and every entry is possible."""
        for name in ("arcs", "offsets"):
            verify_chunks(self.path, open_array(self.path, name))
        offsets = self.offsets()
        if offsets[0] != 0 or offsets[-1] != self.length or (offsets[1:] <= offsets[:-1]).any():
            raise StoreError(f"{self.path}: `offsets` do not rise from 0 to {self.length}; find the circuits anew")
        seen = np.zeros(self.graph_arcs, bool)
        for start, stop in self.ranges():
            arcs = self.arcs(start, stop)
            if arcs.min() < 0 or arcs.max() >= self.graph_arcs:
                raise StoreError(f"{self.path}: a walk has an arc that the graph has not; find the circuits anew")
            seen[arcs] = True
        if int(seen.sum()) != self.length:
            raise StoreError(f"{self.path}: an arc is walked along twice; find the circuits anew")


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
    """Write a circuits store, which appears when it is whole; StoreError if `path` exists or the disk is full."""
    with new_store(path, overwrite) as group:
        for name, values in (("arcs", arcs), ("offsets", np.asarray(offsets, np.int64))):
            array = group.create_array(
                name,
                shape=values.shape,
                chunks=(max(1, min(len(values), CHUNK_BYTES // values.itemsize)),),
                dtype=values.dtype,
                compressors=result_codecs(values.dtype),
                config={"write_empty_chunks": True},
            )
            if values.size:
                array[:] = values
        group.update_attributes(
            {
                "schema": SCHEMA,
                "length": len(arcs),
                "count": len(offsets) - 1,
                "path_from": path_from,
                "directed": directed,
                "method": method,
                "graph": origin_of(path, graph),
                "graph_arcs": graph.m,
            }
        )
    return open_circuits(path)


def open_circuits(path: str | os.PathLike[str]) -> Circuits:
    """Open a circuits store and check its schema, shapes and dtypes; raises StoreError."""
    group = open_store(path, SCHEMA)
    of: Any = attribute(path, group, "graph")
    attrs: dict[str, Any] = dict(group.attrs)
    try:
        begin = attrs["path_from"]
        facts = Circuits(
            path=os.path.abspath(path),
            length=int(attrs["length"]),
            count=int(attrs["count"]),
            path_from=None if begin is None else int(begin),
            directed=bool(attrs["directed"]),
            method=str(attrs["method"]),
            graph_path=origin_path(path, of),
            graph_digest=str(of["digest"]),
            graph_arcs=int(attrs["graph_arcs"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: the attributes of the circuits are damaged ({error!r}); make them anew") from error
    check_array(path, group, "arcs", (facts.length,), ("int32", "int64"))
    check_array(path, group, "offsets", (facts.count + 1,), ("int64",))
    return facts

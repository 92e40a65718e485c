"""Record which store a result was computed from, and find this store again even if both stores were moved."""

from __future__ import annotations

import os
import warnings
from functools import cached_property

from pipelines.stores.declared import recorded_origin
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import CHANGED, Graph, open_graph
from pipelines.stores.graph_names import generator_of
from pipelines.stores.samples import Samples
from pipelines.stores.schema import open_store

OUTSIDE = {"names": "labels", "coordinates": "coordinates"}  # arrays outside the digest, by their keys in the record


NOWHERE = {"path": "", "relative": "", "digest": ""}  # the record of samples that are in no store


def origin_of(path: str | os.PathLike[str], source: Graph | Samples) -> dict[str, str | None]:
    """Return the record of a graph or of samples for the store at `path`, which is computed from them."""
    return {
        "path": source.path,
        "relative": os.path.relpath(source.path, os.path.abspath(path)),
        "digest": source.digest,
        **({key: recorded(source, name) for key, name in OUTSIDE.items()} if isinstance(source, Graph) else {}),
    }


def recorded(graph: Graph, name: str) -> str | None:
    """Return a checksum of the labels or the coordinates, which the digest leaves out; None if the graph lacks them."""
    return open_store(graph.path).attrs.get("contents", {}).get(name) if name in graph.optional else None


class OfGraph:
    """A store that was computed from a graph; it records the path of the graph and its digest."""

    path: str
    graph_path: str
    graph_digest: str

    @cached_property
    def named(self) -> Graph:
        """The graph of the store, opened once, to look up names of vertices."""
        return self.graph()

    def graph(self, moved_to: Graph | str | os.PathLike[str] | None = None) -> Graph:
        """Open the graph that the store was computed from; give it, or its path, if it was moved.

        Warns if the names of the vertices have changed. Raises StoreError if the graph is gone or has changed.
        """
        if moved_to is None and not os.path.isdir(self.graph_path) and generator_of(self.graph_path) is None:
            raise StoreError(
                f"{self.path}: its graph is no longer at {self.graph_path}; give its path (graph, --graph)"
            )
        graph = open_graph(self.graph_path if moved_to is None else moved_to)
        for each in graph.choices:
            if each.digest == self.graph_digest != graph.digest:
                graph = graph.weighted_by(each.name)
        if graph.digest != self.graph_digest:
            if self.graph_digest.startswith(CHANGED):
                raise StoreError(
                    f"{self.path} was computed from a graph that was changed in memory, which no store holds; in "
                    "Python, make the same change again and pass the changed graph"
                )
            raise StoreError(f"{self.path} was computed from another graph than {graph.path}; name the right one")
        origin, names = recorded_origin(self.path, open_store(self.path), "graph"), recorded(graph, "labels")
        if origin.get("names", names) != names:
            warnings.warn(
                f"the vertices of {graph.path} had other names when {self.path} was computed; the present names are "
                "shown",
                stacklevel=2,
            )
        return graph

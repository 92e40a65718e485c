"""Record which store a result was computed from, and find this store again even if both stores were moved."""

from __future__ import annotations

import os
import warnings
from typing import Any

import zarr

from pipelines.stores.graph import Graph, names_generated, open_graph
from pipelines.stores.samples import Samples
from pipelines.stores.schema import StoreError, attribute, damaged_attributes, open_store


def origin_of(path: str | os.PathLike[str], source: Graph | Samples) -> dict[str, str | None]:
    """Return the record of a graph or of samples for the store at `path`, which is computed from them."""
    return {
        "path": source.path,
        "relative": os.path.relpath(source.path, os.path.abspath(path)),
        "digest": source.digest,
        **({"names": _names_of(source)} if isinstance(source, Graph) else {}),
    }


def _names_of(graph: Graph) -> str | None:
    """Return a checksum of the labels, which the digest leaves out, or None if there are no labels."""
    return open_store(graph.path).attrs.get("contents", {}).get("labels") if "labels" in graph.optional else None


def recorded_origin(path: str | os.PathLike[str], group: zarr.Group, name: str) -> dict[str, Any]:
    """Return the record of the "graph", "samples" or "codebook", by `name`, that a store was computed from."""
    found = attribute(path, group, name)
    with damaged_attributes(path, f"the attributes of its {name}"):
        for key in ("path", "relative", "digest") if name != "codebook" else ("path",):
            if not isinstance(found[key], str):
                raise TypeError(f"{key} is {found[key]!r}")
    return dict(found)


def origin_path(path: str | os.PathLike[str], recorded: dict[str, str]) -> str:
    """Return the path of the source store.

    It is the recorded relative path, seen from the store at `path`, if a folder exists there, as after both stores were
    moved together. Otherwise it is the recorded path.
    """
    beside = os.path.normpath(os.path.join(os.path.abspath(path), recorded["relative"]))
    return beside if os.path.isdir(beside) else recorded["path"]


def open_origin(path: str, graph_path: str, digest: str, moved_to: str | os.PathLike[str] | None) -> Graph:
    """Open the graph of the store at `path`; raises StoreError if the graph is gone or is not the recorded graph.

    Warns if the names of the vertices have changed.
    """
    if moved_to is None and not os.path.isdir(graph_path) and not names_generated(graph_path):
        raise StoreError(f"{path}: its graph is no longer at {graph_path}; give its path (--graph)")
    graph = open_graph(graph_path if moved_to is None else moved_to)
    if graph.digest != digest:
        raise StoreError(f"{path} was computed from another graph than {graph.path}; name the right one")
    recorded, names = recorded_origin(path, open_store(path), "graph"), _names_of(graph)
    if recorded.get("names", names) != names:
        warnings.warn(
            f"the vertices of {graph.path} had other names when {path} was computed; the present names are shown",
            stacklevel=3,
        )
    return graph


def check_origin(path: str | os.PathLike[str], group: zarr.Group, source: Graph | Samples) -> None:
    """Raise StoreError if a store that is to be resumed was begun from another graph, or with other samples."""
    name = "graph" if isinstance(source, Graph) else "samples"
    if recorded_origin(path, group, name)["digest"] != source.digest:
        others = "from another graph" if name == "graph" else "with other samples"
        raise StoreError(f"{path}: was begun {others} than {source.path}; name the right one or start over")

"""The store that a result was computed from: recorded in the result's store, and found even if both were moved."""

from __future__ import annotations

import os
from typing import Any

import zarr

from pipelines.stores.graph import Graph, names_generated, open_graph
from pipelines.stores.samples import Samples
from pipelines.stores.schema import StoreError, attribute, damaged_attributes


def origin_of(path: str | os.PathLike[str], source: Graph | Samples) -> dict[str, str]:
    """What the store at `path` records about its graph or its samples."""
    return {
        "path": source.path,
        "relative": os.path.relpath(source.path, os.path.abspath(path)),
        "digest": source.digest,
    }


def recorded_origin(path: str | os.PathLike[str], group: zarr.Group, name: str) -> dict[str, Any]:
    """What a store records about the one, `name` ("graph", "samples" or "codebook"), that it was computed from."""
    found = attribute(path, group, name)
    with damaged_attributes(path, f"the attributes of its {name}"):
        for key in ("path", "relative", "digest") if name != "codebook" else ("path",):
            if not isinstance(found[key], str):
                raise TypeError(f"{key} is {found[key]!r}")
    return dict(found)


def origin_path(path: str | os.PathLike[str], recorded: dict[str, str]) -> str:
    """The path of the source: relative to the store at `path` if it exists there (both moved), else as recorded."""
    beside = os.path.normpath(os.path.join(os.path.abspath(path), recorded["relative"]))
    return beside if os.path.isdir(beside) else recorded["path"]


def open_origin(path: str, graph_path: str, digest: str, moved_to: str | os.PathLike[str] | None) -> Graph:
    """Open the graph of the store at `path`; StoreError if it is gone, or if it is another one."""
    if moved_to is None and not os.path.isdir(graph_path) and not names_generated(graph_path):
        raise StoreError(f"{path}: its graph is no longer at {graph_path}; give its path (--graph)")
    graph = open_graph(graph_path if moved_to is None else moved_to)
    if graph.digest != digest:
        raise StoreError(f"{path} was computed from another graph than {graph.path}; name the right one")
    return graph


def check_origin(path: str | os.PathLike[str], group: zarr.Group, source: Graph | Samples) -> None:
    """Refuse to resume a store that was begun from another graph, or with other samples."""
    name = "graph" if isinstance(source, Graph) else "samples"
    if recorded_origin(path, group, name)["digest"] != source.digest:
        others = "from another graph" if name == "graph" else "with other samples"
        raise StoreError(f"{path}: was begun {others} than {source.path}; name the right one or start over")

"""The Zarr stores, one module per schema. Nothing outside this package imports zarr.

Names are imported when they are first asked for, so that a scaling, or the moments of columns, does not load zarr.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.stores.distances import Distances as Distances
    from pipelines.stores.distances import create_distances as create_distances
    from pipelines.stores.distances import open_distances as open_distances
    from pipelines.stores.graph import Graph as Graph
    from pipelines.stores.graph import GraphWriter as GraphWriter
    from pipelines.stores.graph import new_graph as new_graph
    from pipelines.stores.graph import open_graph as open_graph
    from pipelines.stores.graph import write_graph as write_graph
    from pipelines.stores.paths import Paths as Paths
    from pipelines.stores.paths import create_paths as create_paths
    from pipelines.stores.paths import open_paths as open_paths
    from pipelines.stores.schema import StoreError as StoreError
    from pipelines.stores.schema import store_bytes as store_bytes
    from pipelines.stores.schema import store_schema as store_schema

_NAMES = {
    "pipelines.stores.distances": ["Distances", "create_distances", "open_distances"],
    "pipelines.stores.graph": ["Graph", "GraphWriter", "new_graph", "open_graph", "write_graph"],
    "pipelines.stores.paths": ["Paths", "create_paths", "open_paths"],
    "pipelines.stores.schema": ["StoreError", "store_bytes", "store_schema"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # a checker sees the imports above; it could not read this
    __all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

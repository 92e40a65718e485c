"""The Zarr stores, one module per schema. Only this package imports zarr.

Other programs open the arrays too. Every array names its dimensions. An array of distances has the attribute
`unreachable`, the value that means "unreachable" as Zarr writes it in JSON. Arrays of distances and the weights of a
graph have the attribute `unit` if the unit is known.

Each name is imported on first access, so that importing `pipelines.stores.scaling` does not load zarr.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpuops.faces import offered_names

if TYPE_CHECKING:
    from pipelines.stores.distances import Distances as Distances
    from pipelines.stores.distances import create_distances as create_distances
    from pipelines.stores.distances import open_distances as open_distances
    from pipelines.stores.graph import Graph as Graph
    from pipelines.stores.graph import open_graph as open_graph
    from pipelines.stores.graph_writer import GraphWriter as GraphWriter
    from pipelines.stores.graph_writer import new_graph as new_graph
    from pipelines.stores.graph_writer import write_graph as write_graph
    from pipelines.stores.paths import Paths as Paths
    from pipelines.stores.paths import create_paths as create_paths
    from pipelines.stores.paths import open_paths as open_paths
    from pipelines.stores.schema import StoreError as StoreError
    from pipelines.stores.schema import store_bytes as store_bytes
    from pipelines.stores.schema import store_schema as store_schema

_MODULES = offered_names(__file__)

if not TYPE_CHECKING:  # type checkers use the imports above and cannot evaluate this line
    __all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The Zarr stores, one module per schema. Nothing outside this package imports zarr."""

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

"""One-device operations on arrays: NumPy in, NumPy out; CuPy in, CuPy out. Nothing here sees Dask or Zarr."""

from gpuops.dijkstra import dijkstra as dijkstra
from gpuops.errors import NegativeCycleError as NegativeCycleError
from gpuops.floyd_warshall import floyd_warshall as floyd_warshall
from gpuops.minplus import minplus_update as minplus_update
from gpuops.reduction import butterfly_reduction as butterfly_reduction
from gpuops.search_graph import SearchGraph as SearchGraph
from gpuops.search_graph import search_graph as search_graph
from gpuops.sssp import batched_shortest_distances as batched_shortest_distances
from gpuops.sssp import improve_distances as improve_distances
from gpuops.sssp import shortest_distances as shortest_distances
from gpuops.sssp import shortest_path_tree as shortest_path_tree

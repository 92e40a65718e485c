"""One-device operations on arrays: NumPy in, NumPy out; CuPy in, CuPy out. Nothing here sees Dask or Zarr."""

from gpuops.dijkstra import dijkstra as dijkstra
from gpuops.errors import NegativeCycleError as NegativeCycleError
from gpuops.minplus import minplus_update as minplus_update
from gpuops.minplus.floyd_warshall import floyd_warshall as floyd_warshall
from gpuops.reduction import butterfly_reduction as butterfly_reduction
from gpuops.som import best_matching_units as best_matching_units
from gpuops.som import quantization_error as quantization_error
from gpuops.som import topographic_error as topographic_error
from gpuops.som.grid import Grid as Grid
from gpuops.som.update import fixed_point as fixed_point
from gpuops.som.update import from_fixed_point as from_fixed_point
from gpuops.som.update import smooth as smooth
from gpuops.som.update import train_online as train_online
from gpuops.som.update import unit_sums as unit_sums
from gpuops.sssp import batched_shortest_distances as batched_shortest_distances
from gpuops.sssp import improve_distances as improve_distances
from gpuops.sssp import shortest_distances as shortest_distances
from gpuops.sssp import shortest_path_tree as shortest_path_tree
from gpuops.sssp.graph_layout import SearchGraph as SearchGraph
from gpuops.sssp.graph_layout import search_graph as search_graph

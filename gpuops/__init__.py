"""One-device operations on arrays: NumPy in, NumPy out; CuPy in, CuPy out. Nothing here sees Dask or Zarr."""

from gpuops.errors import NegativeCycleError as NegativeCycleError
from gpuops.floyd_warshall import floyd_warshall as floyd_warshall
from gpuops.minplus import minplus_update as minplus_update

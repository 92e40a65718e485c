"""One-device operations on arrays: NumPy in, NumPy out; CuPy in, CuPy out. Nothing here sees Dask or Zarr."""

from gpuops.errors import NegativeCycleError as NegativeCycleError

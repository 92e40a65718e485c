"""Distributed algorithms over Zarr: a client and stores in, a store out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.apsp.solve import all_pairs_shortest_paths as all_pairs_shortest_paths
    from pipelines.euler.circuits import euler_circuits as euler_circuits
    from pipelines.som.place import map_samples as map_samples
    from pipelines.som.train import train_som as train_som
    from pipelines.sssp.solve import single_source_shortest_paths as single_source_shortest_paths

PIPELINES = {
    "all_pairs_shortest_paths": "pipelines.apsp.solve",
    "single_source_shortest_paths": "pipelines.sssp.solve",
    "euler_circuits": "pipelines.euler.circuits",
    "train_som": "pipelines.som.train",
    "map_samples": "pipelines.som.place",
}


def __getattr__(name: str) -> Any:
    """Import a pipeline when it is first asked for: Dask and Numba take a second, reading a store needs neither."""
    if name in PIPELINES:
        return getattr(import_module(PIPELINES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

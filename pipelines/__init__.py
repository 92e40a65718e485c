"""Distributed algorithms over Zarr: a client and stores in, a store out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.apsp import all_pairs_shortest_paths as all_pairs_shortest_paths
    from pipelines.sssp import single_source_shortest_paths as single_source_shortest_paths


def __getattr__(name: str) -> Any:
    """Import a pipeline when it is first asked for: Dask and Numba take a second, reading a store needs neither."""
    if name == "all_pairs_shortest_paths":
        from pipelines.apsp import all_pairs_shortest_paths

        return all_pairs_shortest_paths
    if name == "single_source_shortest_paths":
        from pipelines.sssp import single_source_shortest_paths

        return single_source_shortest_paths
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

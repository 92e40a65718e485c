"""Distributed algorithms over Zarr: a client and stores in, a store out."""

from pipelines.apsp import all_pairs_shortest_paths as all_pairs_shortest_paths

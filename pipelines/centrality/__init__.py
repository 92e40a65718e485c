"""Centrality of the vertices and edges of a graph store, from shortest paths: a table.

Every worker holds the graph, and takes some sources at a time (`pipelines.centrality.sums_on_workers`). The results of
the sources are added in pairs, in an order that depends on the number of sources alone (`gpuops.centrality`), so the
number of workers changes no bit.
"""

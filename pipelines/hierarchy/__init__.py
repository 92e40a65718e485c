"""Hierarchies of road networks: any row or block of distances from a small store, without a matrix.

`gpuops.hierarchy` has the method. One worker makes a store in three steps, and commits each step
(`pipelines.stores.hierarchy`):

1. order       the vertices, by METIS (in a child process if it takes long)   `ordering`
2. structure   the nodes of the elimination tree, and the exact cost          `building`, `plan`
3. tables      close the nodes for the weights of the graph                   `building`

The order and the structure do not depend on the weights, so a graph with other weights, or with fewer arcs, takes both
from another store and repeats only the third step.
"""

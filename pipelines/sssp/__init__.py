"""Shortest paths from given sources, from a graph store to a paths store: distances and predecessors.

Weights may be negative; a negative cycle that can be reached is an error, which names the cycle. Vertices may be closed
to through traffic. Several sources may count as one source, for paths from the nearest facility.

There are two ways to spread the work over the workers; `pipelines.sssp.plan` chooses one and gives the reason:

* by sources (`pipelines.sssp.searches`): every worker holds the graph, and takes some sources at a time;
* by vertices (`pipelines.sssp.vertex_rounds`): every worker holds, or streams, the arcs that leave a range of vertices,
  and all workers do one search together.

Both ways give the same distances, bit for bit, with any number of workers: the distance of v is the least length of all
paths to v, where lengths are summed and rounded arc by arc from the source on. Rounded sums are monotone, so these
distances are reached by relaxing arcs, in any order, until no arc improves a distance. Predecessors are then derived
from the distances. If there are several shortest paths to a vertex, the predecessors may describe any of them.
"""

"""Shortest paths from given sources, from a graph store to a paths store: distances and predecessors.

Weights may be negative, and a negative cycle that is reachable is an error that names it; vertices may be closed to
through traffic; several sources may count as one (the nearest facility).

Two ways to spread the work, `pipelines.sssp.plan` chooses and says why:

* by sources (`pipelines.sssp.searches`): every worker holds the graph, and takes some sources at a time;
* by vertices (`pipelines.sssp.vertex_rounds`): every worker holds, or streams, the arcs that leave a range of vertices,
  and all work on one search.

Either gives the same distances, bit for bit, with any number of workers: the distance of v is the least, over all paths
to v, of their lengths summed and rounded arc by arc from the source on. Rounded sums are monotone, so relaxing
arcs until none improves anything arrives there, in whatever order. Predecessors are then read off the distances; where
several paths are shortest, which one they make up may differ.
"""

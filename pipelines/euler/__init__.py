"""Euler circuits and paths, from a graph store to a circuits store.

One device finds them: the GPU of the first worker that has one, else the first worker's CPU. It is one task, which
reads the graph, walks (`gpuops.euler`), proves the walk right if asked to, and writes a store that appears when it is
whole. The walk depends on the graph as it is stored and on the options alone, by stages on any device. Weights and
closed vertices do not matter.
"""

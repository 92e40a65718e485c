"""Euler circuits and paths, from a graph store to a circuits store.

One device finds the circuits: the GPU of the first worker that has one, else the CPU of the first worker. A single task
reads the graph, finds the walk (`gpuops.euler`), proves it correct if requested, and writes a store that appears when
it is complete. The walk depends only on the stored graph and the options; by stages, it is the same on any device.
Weights are not used, and the walk passes through closed vertices like any other vertex.
"""

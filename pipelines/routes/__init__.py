"""Shortest paths and single distances, from stores of distances or of paths, or by searches of a graph."""

"""Computations on a finished store in this process: structure of graphs, measures, reversed graphs, forests."""

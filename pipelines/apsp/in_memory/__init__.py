"""Blocked Floyd-Warshall with the matrix in the memory of the workers (`pipelines.apsp` describes the stages)."""

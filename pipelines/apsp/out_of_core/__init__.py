"""Blocked Floyd-Warshall with the matrix in the memory of the host or in the store, a window of pivots at a time."""

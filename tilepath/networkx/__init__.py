"""A backend of NetworkX: ``nx.floyd_warshall(G, backend="tilepath")``.

NetworkX finds it by two entry points. `tilepath.networkx.info` says what is offered; every ``import networkx`` loads
it, so it imports nothing. `tilepath.networkx.backend` is loaded when a function is first called:

    backend        the interface that NetworkX calls: conversion, what can and should run, the functions
    graph          a NetworkX graph as arrays
    searches       shortest-path trees of that graph, by operations of gpuops
    dijkstra, bellman_ford, dense, measures, connectivity
                   the functions, with the names, arguments, results and errors of NetworkX

docs/networkx.md says how to use it, and what differs.
"""

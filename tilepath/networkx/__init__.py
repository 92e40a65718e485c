"""A backend of NetworkX: ``nx.floyd_warshall(G, backend="tilepath")``.

NetworkX finds the backend by two entry points. `tilepath.networkx.info` lists the functions of the backend; every
``import networkx`` loads it, so it must load fast and imports nothing. `tilepath.networkx.backend` is loaded when a
function of the backend is first called. The modules:

    backend        the interface that NetworkX calls: conversion, `can_run`, `should_run`, the functions
    graph          a NetworkX graph as arrays
    searches       shortest-path trees of a converted graph, by operations of gpuops
    dijkstra, bellman_ford, dense, measures, connectivity
                   the functions, with the names, arguments, results and errors of NetworkX

docs/networkx.md explains how to use the backend, and how it differs from NetworkX.
"""

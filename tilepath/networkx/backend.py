"""The interface that NetworkX calls: conversion, `can_run`, `should_run`, and the functions by their names."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from tilepath.networkx.graph import ConvertedGraph
from tilepath.networkx.graph import convert_from_nx as convert_from_nx
from tilepath.networkx.graph import convert_to_nx as convert_to_nx
from tilepath.networkx.info import FUNCTIONS, NAME, ONLY

_PAYS_FROM = {name: least for names in FUNCTIONS.values() for name, least in names.items()}

for _module, _names in FUNCTIONS.items():
    _functions = importlib.import_module(f"tilepath.networkx.{_module}")
    globals().update({name: getattr(_functions, name) for name in _names})


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if tilepath can answer a call with these arguments, else the reason why it cannot."""
    arguments = _arguments(name, args, kwargs)
    if not arguments:
        return "tilepath does not know these arguments; they may be of another version of NetworkX"
    if name in FUNCTIONS["measures"] and not len(arguments["G"]):
        return "the graph is empty, and versions of NetworkX differ on empty graphs"
    if name == "edge_betweenness_centrality" and arguments["G"].is_multigraph():
        return "edges of a multigraph have keys, which tilepath does not keep"
    for argument, value in arguments.items():
        if argument in ("weight", "distance") and callable(value):
            return f"{argument} is a function; tilepath takes the name of an edge attribute"
        if argument in ONLY and value is not ONLY[argument][0]:
            return f"{ONLY[argument][1]} ({argument})"
        if argument == "cutoff" and not isinstance(value, int | float | None):
            return f"cutoff is a {type(value).__name__}; tilepath takes an int or a float"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True if the call is faster with tilepath, conversion included, else the reason why it is not."""
    graph = _arguments(name, args, kwargs).get("G")
    if graph is None:
        return "tilepath does not know these arguments"
    if isinstance(graph, ConvertedGraph) or _is_converted(graph):
        return True
    least, n = _PAYS_FROM[name], len(graph)
    if least is None:
        return "the graph has not been converted yet, and a single search does not pay for that"
    return n >= least or f"the graph has {n} nodes; conversion pays from {least}"


def _is_converted(graph: Any) -> bool:
    cache = getattr(graph, "__networkx_cache__", None) or {}
    return any(isinstance(found, ConvertedGraph) for found in cache.get("backends", {}).get(NAME, {}).values())


def _arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        return _signature(name).bind_partial(*args, **kwargs).arguments
    except TypeError:  # unknown arguments, perhaps of another version of NetworkX
        return {}


@functools.cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(globals()[name])

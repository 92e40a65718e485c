"""The lines of `tilepath info` about a graph: degrees, components, balance, and memory of sparse and dense storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuops.memory import size
from pipelines.analysis.structure import COUNTED, Spread, Structure, graph_storage, graph_structure
from pipelines.stores.graph import Graph
from pipelines.stores.schema import counted


def structure_lines(graph: Graph, full: bool) -> Iterator[str]:
    """Yield lines about the structure of a graph and about its memory.

    The structure takes a pass over all arcs, so it is left out for a large graph unless `full`.
    """
    if full or _soon(graph):
        yield from _described(graph, graph_structure(graph), full)
    else:
        yield (
            f"degrees and components are not counted, as there are more than {COUNTED:,} vertices and arcs; "
            "--full counts them"
        )
    found = graph_storage(graph)
    yield f"in memory: {size(found.sparse_bytes)} in sparse rows, {size(found.dense_bytes)} as a dense matrix"
    if full:
        form = "2 e + n + 1" if graph.weighted else "e + n + 1"
        yield (
            f"numbers: {form} = {found.sparse_numbers:,} in sparse rows and n^2 = {found.dense_numbers:,} as a dense "
            "matrix (n vertices, e arcs)"
        )
        if not graph.weighted:
            yield (
                f"the published criterion has n e = {graph.n * graph.m:,} in place of n^2: a column for each arc; but "
                "the matrix has a column for each vertex"
            )


def structure_in_full(graph: Graph, full: bool) -> dict[str, Any]:
    """Return the structure and the memory as entries of JSON; `structure` is null where `structure_lines` omits it."""
    storage = graph_storage(graph)
    found = graph_structure(graph) if full or _soon(graph) else None
    return {
        "structure": None
        if found is None
        else {
            "out_degrees": found.outgoing._asdict(),
            "in_degrees": found.incoming._asdict(),
            "sources": found.sources,
            "sinks": found.sinks,
            "isolated": found.isolated,
            "components": found.components,
            "unbalanced": found.unbalanced,
            "balanced": found.balanced,
            "euler_circuit": found.balanced and found.walks == 1,
            "euler_path": found.path and found.walks == 1,
        },
        "weighted": graph.weighted,
        "storage": {**storage._asdict(), "sparse_pays": storage.sparse_pays},
    }


def _soon(graph: Graph) -> bool:
    return graph.n + graph.m <= COUNTED


def _described(graph: Graph, found: Structure, full: bool) -> Iterator[str]:
    if graph.directed:
        yield f"degrees: out {_spread(found.outgoing)}; in {_spread(found.incoming)}"
        ends = f"{counted(found.sources, 'source')} (no arc in), {counted(found.sinks, 'sink')} (no arc out), "
    else:
        yield f"degrees: {_spread(found.outgoing)}"
        ends = ""
    isolated = counted(found.isolated, "isolated vertex", "isolated vertices")
    yield f"{ends}{isolated}; {counted(found.components, 'weak component')}"
    if full or (found.walks and found.balanced) or (found.walks == 1 and found.path):
        yield _euler(graph, found)


def _euler(graph: Graph, found: Structure) -> str:
    """Return a line that says whether the graph has an Euler circuit or path, and why."""
    even = "as many arcs in as out at every vertex" if graph.directed else "even degrees"
    odd = "vertices have unequal numbers of arcs in and out" if graph.directed else "vertices have odd degrees"
    apart = f"arcs in {found.walks:,} components"
    if found.walks == 0:
        return "no Euler circuit (there are no arcs)"
    if found.balanced:
        return (
            f"an Euler circuit ({even})"
            if found.walks == 1
            else f"an Euler circuit for each of {found.walks:,} components ({even})"
        )
    if found.path:
        return f"an Euler path (2 {odd})" if found.walks == 1 else f"no Euler circuit (2 {odd}; {apart})"
    return f"no Euler circuit ({found.unbalanced:,} {odd})"


def _spread(degrees: Spread) -> str:
    return f"{degrees.least:,} to {degrees.largest:,}, {degrees.mean:.4g} on average"

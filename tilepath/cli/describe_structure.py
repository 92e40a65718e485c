"""What `tilepath info` says of a graph beyond one line: degrees, components, balance, and sparse beside dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipelines.answers.structure import COUNTED, Spread, Structure, graph_storage, graph_structure
from pipelines.stores import Graph
from pipelines.stores.schema import counted
from pipelines.workers.progress import size


def structure_lines(graph: Graph, full: bool) -> Iterator[str]:
    """Lines about what all arcs tell (left out of a large graph unless `full`), and about what the rows take."""
    if full or _soon(graph):
        yield from _described(graph, graph_structure(graph))
    else:
        yield (
            f"degrees and components are not counted, as there are more than {COUNTED:,} vertices and arcs; "
            "--full counts them"
        )
    found = graph_storage(graph)
    yield (
        f"in memory: {size(found.sparse_bytes)} in sparse rows, {size(found.dense_bytes)} as a dense matrix; numbers:"
        f" 2 e + n + 1 = {found.sparse_numbers:,} and n^2 = {found.dense_numbers:,} (n vertices, e arcs)"
    )


def structure_in_full(graph: Graph, full: bool) -> dict[str, Any]:
    """The same as entries of JSON; `structure` is null where it is left out."""
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
        "storage": {**storage._asdict(), "sparse_pays": storage.sparse_pays},
    }


def _soon(graph: Graph) -> bool:
    return graph.n + graph.m <= COUNTED


def _described(graph: Graph, found: Structure) -> Iterator[str]:
    if graph.directed:
        yield f"degrees: out {_spread(found.outgoing)}; in {_spread(found.incoming)}"
        ends = f"{counted(found.sources, 'source')} (no arc in), {counted(found.sinks, 'sink')} (no arc out), "
    else:
        yield f"degrees: {_spread(found.outgoing)}"
        ends = ""
    isolated = counted(found.isolated, "isolated vertex", "isolated vertices")
    yield f"{ends}{isolated}; {counted(found.components, 'weak component')}"
    yield _balance(graph, found)


def _balance(graph: Graph, found: Structure) -> str:
    """Whether there is an Euler circuit."""
    even = "as many arcs in as out at every vertex" if graph.directed else "even degrees"
    odd = "vertices have unequal numbers of arcs in and out" if graph.directed else "vertices have odd degrees"
    apart = f", but arcs in {found.walks:,} components"
    if found.walks == 0:
        return "balanced: there are no arcs"
    if found.balanced:
        return f"balanced: {even}" + (
            "; there is an Euler circuit" if found.walks == 1 else f"{apart}: a circuit of each"
        )
    if found.path:
        return f"not balanced: 2 {odd}" + ("; there is an Euler path" if found.walks == 1 else apart)
    return f"not balanced: {found.unbalanced:,} {odd}"


def _spread(degrees: Spread) -> str:
    return f"{degrees.least:,} to {degrees.largest:,}, {degrees.mean:.4g} in the mean"

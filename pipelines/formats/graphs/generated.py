"""Store a generated graph (`pipelines.generators`): its arcs pass through the same external sort as those of files."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from pipelines.formats.arc_sort import default_memory, refuse_unsorted, write_sorted
from pipelines.formats.arc_spool import ARC_BYTES, VERTEX_BYTES
from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.generators import PIECE, edge_pieces
from pipelines.generators.grids import Grid
from pipelines.generators.random_graphs import NegativeCycle
from pipelines.generators.synthetic import SyntheticGraph
from pipelines.stores.graph import SCHEMA, Graph
from pipelines.stores.place import refuse_existing
from pipelines.workers.progress import Progress


def generate(
    graph: SyntheticGraph,
    path: str | os.PathLike[str],
    *,
    simplify: bool = False,
    sorted_rows: bool = True,
    overwrite: bool = False,
    memory: int | None = None,
    progress: bool | None = None,
    piece: int = PIECE,
) -> Graph:
    """Generate a graph and store it.

    The arcs pass through an external sort, so the store may be larger than memory.

    Parameters
    ----------
    graph : the description, such as ``RMat(20)``
    path : path of the new store
    simplify : drop loops, and of parallel arcs all but the lightest; not for Euler graphs
    sorted_rows : sort the arcs of each vertex by head; with False they stay in the order of the generator
    overwrite : replace an existing graph store at `path`
    memory : bytes to sort in; default a quarter of the machine's memory, at most 1 GiB
    progress : show progress; by default if standard error is a terminal
    piece : edges generated at a time

    Returns
    -------
    Graph
        The store, opened. Its `source` is the description.

    Raises
    ------
    StoreError
        `path` exists, or the disk is full.
    tilepath.DoesNotFitError
        Memory is too small for the vertices, or the disk for sorting the arcs.
    ValueError
        `simplify` with ``sorted_rows=False``, as simplified rows are sorted; or `simplify` with a graph that has an
        Euler circuit, as it would lose the circuit with its loops and parallel arcs.

    Examples
    --------
    >>> tilepath.generate(tilepath.synthetic_graph("grid", rows=3, columns=4), "small grid.zarr").n
    12
    """
    if not isinstance(graph, SyntheticGraph):
        raise ValueError(
            f"graph is a {type(graph).__name__}; pass a graph, such as tilepath.synthetic_graph('rmat', scale=9)"
        )
    refuse_unsorted(simplify, sorted_rows)
    if simplify and graph.every_arc:
        raise ValueError(
            f"{type(graph).__name__} has an Euler circuit only with all its loops and parallel arcs; leave out "
            "simplify (--simplify), which drops them"
        )
    refuse_existing(path, SCHEMA, overwrite)
    _refuse_what_cannot_fit(graph, path, memory)
    with Progress(graph.ids, "edges", progress) as shown:
        stream = ArcStream(
            _shown(graph, shown, piece),
            n=graph.n,
            directed=not graph.symmetric,
            weighted=graph.weights != "none",
            weight_dtype=graph.dtype,
            coordinates=(lambda _n, _labels: graph.coordinates()) if isinstance(graph, Grid) else None,
            source=_description(graph),
        )
        return write_sorted(
            path, stream, simplify=simplify, sorted_rows=sorted_rows, overwrite=overwrite, memory=memory
        )


def _shown(graph: SyntheticGraph, progress: Progress, size: int) -> Iterator[Piece]:
    """Yield the pieces, and show progress."""
    progress.stage("make edges")
    for index, (tails, heads, weights) in enumerate(edge_pieces(graph, size)):
        yield tails, heads, None if graph.weights == "none" else weights
        progress.advance(min(size, graph.ids - index * size))
    progress.stage("sort and store")


def _description(graph: SyntheticGraph) -> str:
    """Return the graph as a Python expression, with the planted cycle of a `NegativeCycle`."""
    if not isinstance(graph, NegativeCycle):
        return str(graph)
    vertices, weight = graph.cycle
    route = " -> ".join(map(str, vertices if len(vertices) <= 32 else (*vertices[:3], "...", vertices[-1])))
    return f"{graph} with the cycle {route} -> {vertices[0]} of weight {weight:g}"


def _refuse_what_cannot_fit(graph: SyntheticGraph, path: str | os.PathLike[str], memory: int | None) -> None:
    """Raise DoesNotFitError if the vertices do not fit in memory, or if sorting the arcs does not fit on disk."""
    from pipelines.workers.capacity import (  # importing Dask takes a quarter of a second
        Needs,
        refuse_disk,
        this_process,
    )

    needs = Needs((graph.n * VERTEX_BYTES + graph.held_bytes,))
    needs.refuse_memory(f"{path}: {graph.n:,} vertices", this_process(), "Generate fewer vertices")
    arcs = graph.ids * (1 if graph.directed else 2)  # a little more than a grid has, as some numbers have no street
    if arcs * ARC_BYTES > (default_memory() if memory is None else memory):
        arc_bytes = 16 + np.dtype(graph.dtype).itemsize
        share = 1 - graph.missing / 2 if isinstance(graph, Grid) else 1
        # The arcs are stored twice: as generated, and dealt out by ranges of vertices.
        refuse_disk(int(2 * arc_bytes * arcs * share), path, "generate a smaller graph")

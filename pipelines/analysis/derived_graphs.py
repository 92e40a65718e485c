"""Graphs derived from a graph: its reverse, and a spanning forest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gpuops.arrays import on_host
from gpuops.csr import equal_ranges
from pipelines.files.tables import check_output, vertex_names, write_table
from pipelines.stores.graph import SCHEMA, Graph, open_graph
from pipelines.stores.graph_writer import new_graph
from pipelines.stores.neighbours import ReversedGraph
from pipelines.stores.on_device import rows_on
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.workers.capacity import Needs, this_process

PIECE = 1 << 22  # arcs handed to the store at a time


def write_reverse(
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    device: str = "auto",
    overwrite: bool = False,
) -> Graph:
    """Write the graph with all arcs reversed to a graph store, and return the store, opened.

    Labels, coordinates, lines, classes of roads, closed vertices and junctions are copied. Rows are sorted by head;
    arcs with equal heads stay in the order of the graph.

    Parameters
    ----------
    graph : Graph or path of a graph store
    out : path of the new store
    device : "auto" (a GPU if there is one and the graph is large), "cpu" or "gpu"; the result is the same
    overwrite : replace an existing graph store at `out`

    Raises
    ------
    StoreError
        `out` exists, is the graph itself, or the disk is full.
    DoesNotFitError
        The arcs do not fit in memory.
    ImportError, NoGpuError
        `device` is "gpu", and CuPy or a GPU is missing.

    Examples
    --------
    >>> tilepath.write_reverse(ring, "reversed.zarr").indices().tolist()
    [2, 0, 1]
    """
    graph = open_graph(graph)
    refuse_existing(out, SCHEMA, overwrite)
    refuse_inputs(out, [graph.path])
    _refuse_what_cannot_fit(graph)
    turned = graph.reverse if device == "auto" else ReversedGraph(graph, device)
    source = f"reverse of {Path(graph.path).name}"
    facts = _facts(graph, overwrite) | {"input_edges": graph.input_edges}
    with new_graph(out, m=graph.m, source=source, **facts) as writer:
        for first, stop in equal_ranges(turned.indptr(), 1 + graph.m // PIECE):
            indptr = turned.indptr(first, stop)
            tails = np.repeat(np.arange(first, stop), np.diff(indptr))
            arcs = indptr[0], indptr[-1]
            writer.append(tails, turned.indices(*arcs), turned.weights(*arcs) if graph.weighted else None)
        _annotate(writer, graph, turned.arcs, True)
    return open_graph(out)


def write_forest(
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    device: str = "auto",
    overwrite: bool = False,
) -> Graph:
    """Write a spanning forest of the graph to a graph store, and return the store, opened.

    Directions of arcs and weights do not matter for the forest; the arcs that are stored keep both. An arc is in the
    forest unless arcs with smaller numbers already join its ends. If the graph is undirected, both arcs of an edge are
    stored. Parameters and errors are those of `write_reverse`.

    Examples
    --------
    >>> tilepath.write_forest(graph, "forest.zarr").m
    6
    """
    graph = open_graph(graph)
    refuse_existing(out, SCHEMA, overwrite)
    refuse_inputs(out, [graph.path])
    chosen, _, _ = _forest(graph, device)
    places = np.flatnonzero(chosen)
    indptr = graph.indptr()
    tails, heads = indptr.searchsorted(places, "right") - 1, graph.indices()[places]
    turned = np.zeros(len(places), bool)
    if not graph.directed:
        places, turned = np.append(places, places), np.append(turned, ~turned)
        tails, heads = np.append(tails, heads), np.append(heads, tails)
        order = np.lexsort((heads, tails))
        tails, heads, places, turned = tails[order], heads[order], places[order], turned[order]
    source = f"spanning forest of {Path(graph.path).name}"
    sorted_rows = graph.sorted_rows or not graph.directed
    with new_graph(out, m=len(tails), source=source, sorted_rows=sorted_rows, **_facts(graph, overwrite)) as writer:
        writer.append(tails, heads, graph.weights()[places] if graph.weighted else None)
        _annotate(writer, graph, places, turned)
    return open_graph(out)


def write_forest_table(
    graph: Graph, out: str | os.PathLike[str], *, device: str = "auto", overwrite: bool = False
) -> int:
    """Write a table of all vertices and their parents in the spanning forest of `write_forest`.

    The columns are `vertex`, `parent` (null for a root) and `root` (the lowest vertex of the component). Returns the
    number of rows.
    """
    check_output(out, overwrite)
    _, roots, parents = _forest(graph, device)
    names = vertex_names(graph)
    table = {
        "vertex": names,
        "parent": names.take(pa.array(np.maximum(parents, 0), mask=parents < 0)),
        "root": names.take(pa.array(roots)),
    }
    write_table(pa.table(table), out, overwrite)
    return graph.n


def _forest(graph: Graph, device: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from gpuops import spanning_forest  # imported here, as importing Numba takes a second

    _refuse_what_cannot_fit(graph)
    chosen, roots, parents = map(on_host, spanning_forest(*rows_on(graph, device), check=False))
    return chosen, roots, parents


def _refuse_what_cannot_fit(graph: Graph) -> None:
    needed = graph.m * 2 * (12 + graph.weight_dtype.itemsize) + graph.n * 40
    Needs((needed,)).refuse_memory(f"{graph.path}: {graph.m:,} arcs", this_process(), "Use a machine with more memory")


def _facts(graph: Graph, overwrite: bool) -> dict[str, Any]:
    return {
        "n": graph.n,
        "weight_dtype": graph.weight_dtype if graph.weighted else None,
        "directed": graph.directed,
        "simplified": graph.simplified,
        "weight_unit": graph.weight_unit,
        "weight_name": graph.weight_name,
        "overwrite": overwrite,
    }


def _annotate(writer: Any, graph: Graph, arcs: np.ndarray, turned: bool | np.ndarray) -> None:
    """Copy the arrays of vertices, and lines and classes of `arcs`; `turned` says which lines are reversed."""
    through, lines, junctions = graph.through() if "through" in graph.optional else None, graph.lines(), None
    if (known := graph.junctions()) is not None:
        junctions = known.reversed().codes if turned is True else known.codes
    lines = None if lines is None else lines.taken(arcs, turned)
    classes = graph.classes()
    classes = None if classes is None else classes.taken(arcs)
    writer.annotate(
        labels=graph.labels(), integer_labels=graph.integer_labels, coordinates=graph.coordinates(), through=through,
        junctions=junctions, lines=lines, classes=classes, crs=graph.crs, attribution=graph.attribution,
    )  # fmt: skip
    for each in graph.choices:
        if each.name and each.array != graph.weight_array:
            writer.add_weights(each.name, graph.weighted_by(each.name).weights()[arcs], each.unit)

"""The calls: a graph cut and closed into a store, and distances on demand (see `pipelines.boundary`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from gpuops.arrays import is_cupy
from pipelines.boundary.cut import Cut, cut_graph, cut_into
from pipelines.boundary.cut_graph import Job
from pipelines.boundary.plan import refuse_what_cannot_fit
from pipelines.boundary.stages import close_parts
from pipelines.stores import Graph, open_graph
from pipelines.stores.boundary import (
    SCHEMA,
    Boundary,
    create_boundary,
    open_boundary,
    resume_boundary,
)
from pipelines.stores.resuming import resumed
from pipelines.validation.bounds import distance_dtype, distances_fit
from pipelines.validation.distances import verify_distances
from pipelines.validation.negative_cycle import potentials_of
from pipelines.workers.capacity import measure_workers, within_budget
from pipelines.workers.progress import Progress


def partition_graph(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    parts: int | None = None,
    like: Boundary | str | os.PathLike[str] | None = None,
    dtype: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    verify: bool = False,
    progress: bool | None = None,
    device_memory: int | None = None,
    host_memory: int | None = None,
) -> Boundary:
    """Cut a graph into parts, close them, and write what any distance follows from to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster; parts are closed by all workers, the boundary by one, on GPUs where they have them.
    graph : Graph or path of a graph store
        Weights may be negative; a cycle of negative weight may not be. It pays for graphs such as road networks, which
        few vertices cut into parts.
    out : path of the new boundary store
    parts : int, optional
        How many; by default as many as make the least work.
    like : Boundary or path of such a store, optional
        Cut into the parts of that store instead, whose graph has the same vertices, for example with other weights or
        without some arcs: what is left is the time of the closures.
    dtype : {"float32", "float64", "int32", "int16"}, optional
        Of the distances; float32 for float weights and int32 for integer weights by default.
    resume : bool
        Go on with an unfinished `out`; begin if there is none; return a finished one as it is.
    overwrite : bool
        Replace a boundary store at `out`, once the new one is complete.
    verify : bool
        Prove sampled rows of distances.
    progress : bool, optional
        Show progress on standard error; by default where that is a terminal.
    device_memory, host_memory : int, optional
        Bytes to use of each GPU, and of the memory of each host; by default nine tenths of what is free.

    Returns
    -------
    Boundary
        The finished store, opened.

    Raises
    ------
    gpuops.NegativeCycleError
        With the vertices of one such cycle; `out` is not created.
    pipelines.workers.capacity.DoesNotFitError
        Memory or disk is too small; nothing is written.
    pipelines.validation.bounds.WeightRangeError
        The distances do not fit `dtype`.
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        There are not so many vertices, or `like` has others.
    ImportError
        `pymetis` is not installed.
    """
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    like = open_boundary(like) if isinstance(like, str | os.PathLike) else like
    begun = {"parts": parts, "like": None if like is None else like.path}
    given = {name: value for name, value in begun.items() if value is not None}
    given |= {} if dtype is None else {"dtype": str(np.dtype(dtype))}
    again = partial(resume_boundary, graph=graph, options=given)
    inputs = [graph.path, begun["like"]]
    writer = resumed(out, SCHEMA, inputs, again, resume=resume, overwrite=overwrite)
    if writer is None or not writer.finished:
        kind = distance_dtype(graph, dtype) if writer is None else writer.dtype
        job = Job(graph, kind, potentials_of(graph), distances_fit(graph, kind))
        facts = within_budget(measure_workers(client, None), device_memory, host_memory)
        if writer is None:
            cut = _cut(graph, parts, like, progress)
            refuse_what_cannot_fit(cut, job, facts, out)
            writer = create_boundary(out, graph, cut, dtype=job.dtype, options=begun, overwrite=overwrite)
        close_parts(client, job, writer, progress, facts)
    found = open_boundary(out)
    if verify:
        verify_distances(found, graph)
    return found


def distances_between(
    store: Boundary | str | os.PathLike[str],
    sources: Any,
    targets: Any,
    *,
    graph: Graph | str | os.PathLike[str] | None = None,
) -> Any:
    """Shortest distances from each of some vertices to each of others, without the matrix of all.

    Parameters
    ----------
    store : Boundary or path of a boundary store
    sources, targets : (k,) and (l,) vertices
        An int is an index, text a label or an index in the form "#17" (`pipelines.stores.vertex_names`). If either is
        a CuPy array, the products are done on its device, and the distances stay there.
    graph : Graph or path, optional
        Where the graph is now, if it was moved; asked for names only.

    Returns
    -------
    (k, l) array, NumPy or CuPy
        Unreachable is +inf, or the integer dtype's maximum.
    """
    store = store if isinstance(store, Boundary) else open_boundary(store)
    gpu = is_cupy(sources) or is_cupy(targets)
    sources, targets = (vertices.get() if is_cupy(vertices) else vertices for vertices in (sources, targets))
    named = any(isinstance(v, str) for v in (*sources, *targets))
    opened = None
    if named:
        opened = graph if isinstance(graph, Graph) else store.graph(graph)
    rows, columns = (_vertices(store, opened, what, v) for what, v in (("source", sources), ("target", targets)))
    if gpu:
        return store.between_on_gpu(rows, columns)
    return store.between(rows, columns)


def _vertices(store: Boundary, graph: Graph | None, what: str, vertices: Sequence[int | str]) -> np.ndarray:
    if graph is not None:
        return np.array([graph.vertex(v) for v in vertices], np.int64)
    found = np.asarray(vertices, np.int64)
    if found.size and not (0 <= found.min() and found.max() < store.n):
        raise ValueError(f"{what}: there is no such vertex; the vertices are 0 to {store.n - 1:,}")
    return found


def _cut(graph: Graph, parts: int | None, like: Boundary | None, progress: bool | None) -> Cut:
    if like is not None:
        if parts is not None:
            raise ValueError(f"the parts are those of {like.path}; leave out parts (--parts)")
        if like.n != graph.n:
            raise ValueError(
                f"{like.path} has {like.n:,} vertices, and {graph.path} has {graph.n:,}; leave out like (--like)"
            )
        return cut_into(like.cut().part, graph.indptr(), graph.indices())
    with Progress(1, "cuts", progress) as shown:
        shown.stage("cutting")
        return cut_graph(graph.indptr(), graph.indices(), parts)

"""The call of the boundary method: cut and close a graph into a store."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from distributed import Client

from pipelines.boundary.cut import cut_graph, cut_into
from pipelines.boundary.cut_graph import Job
from pipelines.boundary.plan import refuse_what_cannot_fit
from pipelines.boundary.stages import close_parts
from pipelines.stores import Graph, open_graph
from pipelines.stores.boundary import (
    SCHEMA,
    Boundary,
    Cut,
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
    """Cut a graph into parts, close the parts, and write tables for computing any distance to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        A client of any cluster. All workers close parts, one worker closes the boundary. Workers with a GPU use it.
    graph : Graph or path of a graph store
        Weights may be negative, but no cycle. The method suits graphs such as road networks, whose parts have few
        boundary vertices.
    out : path of the new boundary store
    parts : int, optional
        Number of parts. By default, the number with the least work.
    like : Boundary or path of such a store, optional
        Use the parts of this store, whose graph has the same vertices, for example after weights have changed or arcs
        were removed. This saves the time of cutting the graph.
    dtype : {"float32", "float64", "int32", "int16"}, optional
        The dtype of the distances. By default float32 for float weights and int32 for integer weights.
    resume : bool
        Resume an unfinished `out`, which must have been begun with the same `parts`, `like` and `dtype`. If `out` does
        not exist, create it; if it is finished, return it unchanged.
    overwrite : bool
        Replace a boundary store at `out`, once the new one is complete.
    verify : bool
        Verify sampled rows of distances by certificates.
    progress : bool, optional
        Show progress on standard error. By default, only if standard error is a terminal.
    device_memory, host_memory : int, optional
        Bytes to use on each GPU, and of the memory of each host. By default, nine tenths of the free memory.

    Returns
    -------
    Boundary
        The finished store, opened.

    Raises
    ------
    gpuops.NegativeCycleError
        The graph has a cycle of negative weight; the error has its vertices, and `out` is not created.
    pipelines.workers.capacity.DoesNotFitError
        Memory or disk is too small; nothing is written.
    pipelines.validation.bounds.WeightRangeError
        The distances do not fit `dtype`.
    pipelines.stores.StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        `parts` is larger than the number of vertices, or the graph of `like` has other vertices.
    ImportError
        `pymetis` is not installed.
    """
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    like = open_boundary(like) if isinstance(like, str | os.PathLike) else like
    begun = {"parts": parts, "like": None if like is None else like.path}
    kind = distance_dtype(graph, dtype)
    again = partial(resume_boundary, graph=graph, options={"dtype": str(kind), **begun})
    inputs = [graph.path, begun["like"]]
    writer = resumed(out, SCHEMA, inputs, again, resume=resume, overwrite=overwrite)
    if writer is None or not writer.finished:
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

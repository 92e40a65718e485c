"""The call `all_pairs_shortest_paths`: options, plan, and the way to the result (see `pipelines.apsp`)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from distributed import Client

from pipelines.answers.listed_vertices import brief, listed_vertices
from pipelines.apsp.batched import BATCHED
from pipelines.apsp.boundary import BOUNDARY
from pipelines.apsp.floyd_warshall import FLOYD_WARSHALL
from pipelines.apsp.methods import Job, Request, choose
from pipelines.apsp.out_of_core import OUT_OF_CORE
from pipelines.apsp.schedule import COMMIT_SECONDS
from pipelines.stores import Distances, Graph, create_distances, open_distances, open_graph
from pipelines.stores.distances import SCHEMA, DistancesWriter, resume_distances
from pipelines.stores.resuming import resumed
from pipelines.validation.bounds import distance_dtype, distances_fit
from pipelines.validation.distances import verify_distances
from pipelines.validation.negative_cycle import potentials_of
from pipelines.workers.capacity import measure_workers, within_budget
from pipelines.workers.progress import Progress

METHODS = (FLOYD_WARSHALL, BATCHED, BOUNDARY, OUT_OF_CORE)  # of equal ones the first is taken


def all_pairs_shortest_paths(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    dtype: Any = None,
    sources: Sequence[int | str] | None = None,
    method: Literal["auto", "floyd-warshall", "batched", "boundary", "out-of-core"] = "auto",
    block: int | None = None,
    workers: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    verify: bool = False,
    progress: bool | None = None,
    commit_seconds: float | None = COMMIT_SECONDS,
    device_memory: int | None = None,
    host_memory: int | None = None,
) -> Distances:
    """Write the shortest distance between every two vertices of `graph` to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster; one task at a time per worker. Workers with the Dask resource ``GPU`` compute on their GPU.
    graph : Graph or path of a graph store
        n vertices. Weights may be negative; a cycle of negative weight may not be.
    out : path of the new distances store
    dtype : {"float32", "float64", "int32", "int16"}, optional
        Of the distances; float32 for float weights and int32 for integer weights by default.
    sources : sequence of int or str, optional
        Keep the rows of these vertices only, each named once: an int is an index, text a label or an index in the form
        "#17" (`pipelines.stores.vertex_names`). (Floyd-Warshall computes all rows.)
    method : {"auto", "floyd-warshall", "batched", "boundary", "out-of-core"}
        "batched" searches from every source, many at a time (`pipelines.apsp.batched`), which pays where the graph is
        sparse; "boundary" cuts it into parts (`pipelines.apsp.boundary`, needs `pymetis`), which pays for road
        networks; "out-of-core" is Floyd-Warshall, to the last bit, on bands of a matrix that is larger than the memory
        of a GPU, or than that of the host (`pipelines.apsp.out_of_core`); "auto" compares what they would take, and
        says so. A run that is resumed keeps the method `out` was begun with. The last bits of float distances depend
        on the method; in core and out of it they are the same.
    block : int, optional
        Width of a pivot block of Floyd-Warshall, 1 or more. It decides how float sums are bracketed.
    workers : int, optional
        How many of the client's workers Floyd-Warshall uses, 1 or more; by default all of a CPU cluster, and of GPUs as
        many as make the run faster (`pipelines.apsp.scaling`), which is said. The bits do not depend on it.
    resume : bool
        Go on from the last commit of an unfinished `out`; begin if there is none; return a finished one as it is.
    overwrite : bool
        Replace a distances store at `out`, once the new one is complete. Until then that grows beside it,
        with ``.new`` added to its name; `resume` goes on with it there.
    verify : bool
        Check the result by certificates on sampled rows (`pipelines.validation.distances`).
    progress : bool, optional
        Show progress on standard error; by default where that is a terminal.
    commit_seconds : float or None
        Least time between two commits of the state; None: none before the end, unless Ctrl-C asks for one. (Out of
        core, what lies in the store is committed whenever it has passed by, or with None not before the last time.)
    device_memory, host_memory : int, optional
        Bytes to use of each GPU, and of the memory of each host; by default nine tenths of what is free.

    Returns
    -------
    Distances
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
        An option has no such value, or does not go with another.

    Notes
    -----
    Floyd-Warshall: O(n^3) work, n / block stages of one task a worker; 1.1 to 1.7 x the matrix in memory on one worker.
    """
    _check_method(method)
    block, workers = _check_count("block", block, "vertices"), _check_count("workers", workers, "workers")
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    chosen = None if sources is None else listed_vertices(graph, "source", sources)
    asked = {"dtype": dtype and str(np.dtype(dtype)), "block": block, "sources": chosen}
    asked["method"] = None if method == "auto" else method
    again = partial(_resume, graph=graph, asked=asked)
    writer = resumed(out, SCHEMA, [graph.path], again, resume=resume, overwrite=overwrite)
    if writer is not None:
        if writer.finished:
            return _verified(open_distances(out), graph, verify)
        method, block = writer.options.get("method", "floyd-warshall"), writer.options["block"]

    job = _job(graph, distance_dtype(graph, dtype) if writer is None else writer.dtype)
    facts = within_budget(measure_workers(client, str(job.dtype)), device_memory, host_memory)
    seconds = math.inf if commit_seconds is None else commit_seconds
    request = Request(job, chosen, block, seconds, facts, writer, workers=workers)
    how, estimate, reason = choose(METHODS, method, request)
    estimate.refuse(out)
    if writer is None:
        writer = create_distances(
            out,
            graph,
            dtype=job.dtype,
            chunk=estimate.chunk,
            stages=estimate.stages,
            options={"method": how.name, **estimate.options},
            sources=chosen,
            overwrite=overwrite,
        )
    with Progress(*estimate.work, progress) as shown:
        if reason is not None:
            shown.note(reason)
        how.execute(client, request, estimate, writer, shown)
        shown.stage("verifying")
        return _verified(open_distances(out), graph, verify)


def _resume(found: str, graph: Graph, asked: dict[str, Any]) -> DistancesWriter:
    """The store to go on with, which must have been begun with the options that are given."""
    given = {name: value for name, value in asked.items() if value is not None}
    return resume_distances(found, graph, given, lambda name, v: brief(graph, v, "all") if name == "sources" else v)


def _job(graph: Graph, dtype: np.dtype) -> Job:
    """What the tasks need to know; finds a negative cycle."""
    return Job(graph, dtype, graph.through(), potentials_of(graph), fits=distances_fit(graph, dtype))


def _check_method(name: str) -> None:
    *most, last = ("auto", *(method.name for method in METHODS))
    if name not in (*most, last):
        raise ValueError(f"method is {name!r}; pass {', '.join(map(repr, most))} or {last!r}")


def _check_count(name: str, count: Any, what: str) -> int | None:
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise ValueError(f"{name} is {count!r}; give a whole number of {what}, 1 or more")
    return int(count)


def _verified(distances: Distances, graph: Graph, verify: bool) -> Distances:
    """The store, proven right if asked for."""
    if verify:
        verify_distances(distances, graph)
    return distances

"""The call `all_pairs_shortest_paths`: options, plan and run (see `pipelines.apsp`)."""

from __future__ import annotations

import math
import os
from typing import Any, Literal

import numpy as np
from distributed import Client

from gpuops.options import number, one_of, whole
from pipelines.apsp.batched import BATCHED
from pipelines.apsp.commits import COMMIT_SECONDS
from pipelines.apsp.hierarchy import HIERARCHY
from pipelines.apsp.in_memory.stages import FLOYD_WARSHALL
from pipelines.apsp.methods import Job, Request, choose
from pipelines.apsp.out_of_core.plan import OUT_OF_CORE
from pipelines.files.listed_vertices import brief, listed_vertices
from pipelines.stores.distances import Distances, DistancesWriter, create_distances, open_distances
from pipelines.stores.errors import StoreError
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.vertex_names import VertexNameList
from pipelines.validation.bounds import distance_dtype, distances_fit
from pipelines.validation.distances import verify_distances
from pipelines.validation.negative_cycle import potentials_of
from pipelines.workers.capacity import measure_workers, within_budget
from pipelines.workers.clients import takes_client
from pipelines.workers.executors import check_coordination
from pipelines.workers.plans import run_plan, states_plan, stating
from pipelines.workers.progress import Progress

# Of methods that take the same time, the first is chosen.
METHODS = (FLOYD_WARSHALL, BATCHED, HIERARCHY, OUT_OF_CORE)


@takes_client
@states_plan
def all_pairs_shortest_paths(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    dtype: Any = None,
    sources: VertexNameList | None = None,
    method: Literal["auto", "floyd-warshall", "batched", "hierarchy", "out-of-core"] = "auto",
    block: int | None = None,
    workers: int | None = None,
    coordination: str | None = None,
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
        n vertices. Weights may be negative, but the graph must not have a cycle of negative weight.
    out : path of the new distances store
    dtype : {"float32", "float64", "int32", "int16"}, optional
        Type of the distances; by default float32 for float weights and int32 for integer weights.
    sources : sequence or array of int or str, or `tilepath.positions`, optional
        Keep only the rows of these vertices, each named once. A vertex is named by its label, or by its position if
        the graph has no labels, as text or int; or by position, as "#17" or ``positions([17])``. (Floyd-Warshall
        computes all rows.)
    method : {"auto", "floyd-warshall", "batched", "hierarchy", "out-of-core"}
        "batched" searches from every source, many at a time, which pays for sparse graphs.
        "hierarchy" takes rows from a hierarchy, which pays for road networks and grids.
        "out-of-core" is Floyd-Warshall on bands of a matrix that is larger than the memory of a GPU, or than the memory
        of the host. "auto" estimates the time of each method and prints the comparison;
        a run that is resumed with "auto" keeps the method `out` was begun with. The last bits of float distances depend
        on the method, but "floyd-warshall" and "out-of-core" give the same bits.
    block : int, optional
        Width of a pivot block of Floyd-Warshall, 1 or more. It decides how float sums are bracketed.
    workers : int, optional
        How many of the client's workers Floyd-Warshall uses, 1 or more. By default all workers of a CPU cluster, and as
        many GPUs as make the run faster; that number is printed. The bits do not
        depend on the number of workers.
    coordination : {"scheduler", "signals"}, optional
        Who coordinates the tasks of Floyd-Warshall in memory: "scheduler" is Dask's scheduler, and every task is a task
        of Dask; "signals" are counters that the workers of one host show each other. By default the scheduler, unless
        workers would wait for it for more than 5% of a stage. The bits do not depend
        on the coordination.
    resume : bool
        Continue after the last commit of an unfinished store `out`; begin if there is no store; return a finished store
        as it is. The store must have been begun with the same `sources` and `dtype`, and with the same method and block
        if they are given.
    overwrite : bool
        Replace a distances store at `out`, once the new store is complete. Until then the new store grows next to it,
        with ``.new`` added to its name; `resume` continues the new store there.
    verify : bool
        Prove sampled rows of the result by certificates.
    progress : bool, optional
        Show progress on standard error; by default if standard error is a terminal.
    commit_seconds : float or None
        Least seconds between two commits of the state. With None the state is not committed before the end, unless
        Ctrl-C asks for a commit. (Out of core, a matrix that lies in the store is committed after every super-stage, or
        with None before the last super-stage only.)
    device_memory, host_memory : int, optional
        Bytes to use of the memory of each GPU, and of each host; by default nine tenths of the free memory.

    Returns
    -------
    Distances
        The finished store, opened. Columns follow the positions of the vertices; so do rows, if `sources` are not
        given. `Graph.names` turns positions into names.

    Raises
    ------
    gpuops.NegativeCycleError
        The graph has a cycle of negative weight; the error names the vertices of one. `out` is not created.
    tilepath.DoesNotFitError
        Memory or disk is too small; nothing is written.
    tilepath.WeightRangeError
        The distances do not fit `dtype`.
    StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        An option has no such value, or does not go with another option, or the graph has no vertices.

    Notes
    -----
    Floyd-Warshall does O(n^3) work in n / block stages. On one worker it takes 1.1 to 1.7 times the memory of the
    matrix.

    Examples
    --------
    >>> found = tilepath.all_pairs_shortest_paths(client, graph, "all pairs.zarr")
    >>> found.at["Rome", "Milan"].item()
    570
    """
    one_of("method", method, ("auto", *(known.name for known in METHODS)))
    check_coordination(coordination)
    block = None if block is None else whole("block", block, 1)
    workers = None if workers is None else whole("workers", workers, 1)
    seconds = math.inf if commit_seconds is None else number("commit_seconds", commit_seconds, 0)
    graph = open_graph(graph)
    if graph.n == 0:
        raise ValueError(f"{graph.path}: the graph has no vertices, and so no distances; import one that has some")
    chosen = None if sources is None else listed_vertices(graph, "source", sources)
    asked: dict[str, Any] = {"dtype": str(distance_dtype(graph, dtype)), "sources": chosen}
    asked |= {} if method == "auto" else {"method": method}  # "auto" fits any method, None any block
    asked |= {} if block is None else {"block": block}

    def describe(name: str, value: Any) -> Any:
        return brief(graph, value, "all") if name == "sources" else value

    writer = DistancesWriter.resumed(out, graph, asked, describe, resume=resume, overwrite=overwrite)
    if writer is not None:
        if writer.finished:
            return _verified(open_distances(out), graph, verify)
        method, block = writer.options.get("method", "floyd-warshall"), writer.options["block"]
        if method not in (known.name for known in METHODS):
            raise StoreError(
                f"{out}: was begun with method {method}, which is unknown; begin again with overwrite (--overwrite)"
            )

    job = _job(graph, distance_dtype(graph, dtype) if writer is None else writer.dtype)
    with Progress(1, "workers", progress) as bar:
        bar.stage("measuring workers")
        facts = within_budget(measure_workers(client, str(job.dtype)), device_memory, host_memory)
        request = Request(job, chosen, block, seconds, facts, writer, workers=workers, coordination=coordination)
        bar.stage("choosing a method")
        how, estimate, reason = choose(METHODS, method, request)
    plan = run_plan(reason, how.name, estimate.needs, estimate.seconds)
    with stating(plan, out, writer) as (plan, place):
        estimate.refuse(place)
    if writer is None:
        writer = create_distances(
            out,
            graph,
            dtype=job.dtype,
            chunk=estimate.chunk,
            stages=estimate.stages,
            options={"method": how.name, "block": estimate.block},
            sources=chosen,
            overwrite=overwrite,
        )
    with Progress(*estimate.work, progress) as bar:
        bar.note(plan.text)
        how.execute(client, request, estimate, writer, bar)
        if verify:
            bar.stage("verifying")
        return _verified(open_distances(out), graph, verify)


def _job(graph: Graph, dtype: np.dtype) -> Job:
    """Return the problem for the tasks; raises NegativeCycleError."""
    return Job(graph, dtype, graph.through(), potentials_of(graph), fits=distances_fit(graph, dtype))


def _verified(distances: Distances, graph: Graph, verify: bool) -> Distances:
    """Return the store; with `verify`, prove it by certificates first."""
    if verify:
        verify_distances(distances, graph)
    return distances

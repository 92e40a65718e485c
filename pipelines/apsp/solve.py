"""The call `all_pairs_shortest_paths`: options, plan, and the way to the result (see `pipelines.apsp`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from distributed import Client

from gpuops import NegativeCycleError
from pipelines.answers.listed_vertices import brief, listed_vertices
from pipelines.apsp.layout import make_layout
from pipelines.apsp.plan import make_plan, refuse_what_cannot_fit
from pipelines.apsp.stages import COMMIT_SECONDS, Job, relaxations_done, run_stages, stages_of
from pipelines.stores import Distances, Graph, StoreError, create_distances, open_distances, open_graph
from pipelines.stores.distances import SCHEMA, Run, resume_distances
from pipelines.stores.place import standing
from pipelines.validation.bounds import distance_dtype, distances_fit
from pipelines.validation.distances import verify_distances
from pipelines.validation.negative_cycle import find_potentials, named_cycle
from pipelines.workers.capacity import measure_workers
from pipelines.workers.progress import Progress

METHODS = ("auto", "floyd-warshall", "batched")


def all_pairs_shortest_paths(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    dtype: Any = None,
    sources: Sequence[int | str] | None = None,
    method: Literal["auto", "floyd-warshall", "batched"] = "auto",
    block: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    verify: bool = False,
    progress: bool | None = None,
    commit_seconds: float = COMMIT_SECONDS,
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
    method : {"auto", "floyd-warshall", "batched"}
        "batched" searches from every source, many at a time (`pipelines.apsp.batched`), which pays where the graph is
        sparse; "auto" compares what either would take, and says so. A run that is resumed keeps the method `out` was
        begun with. The last bits of float distances depend on the method.
    block : int, optional
        Width of a pivot block of Floyd-Warshall, 1 or more. It decides how float sums are bracketed.
    resume : bool
        Go on from the last commit of an unfinished `out`; begin if there is none; return a finished one as it is.
    overwrite : bool
        Replace a distances store that stands at `out`, once the new one is complete. Until then that grows beside it,
        with ``.new`` added to its name; `resume` goes on with it there.
    verify : bool
        Check the result by certificates on sampled rows (`pipelines.validation.distances`).
    progress : bool, optional
        Show progress on standard error; by default where that is a terminal.
    commit_seconds : float
        Least time between two commits of the state.

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
    Floyd-Warshall: O(n^3) work, n / block stages of one task a worker; 1.5 x the matrix in memory over all workers.
    """
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; pass 'auto', 'floyd-warshall' or 'batched'")
    block = _check_block(block)
    graph = graph if isinstance(graph, Graph) else open_graph(graph)
    chosen = None if sources is None else listed_vertices(graph, "source", sources)
    stands = standing(out, SCHEMA, [graph.path], resume=resume, overwrite=overwrite)
    run = None if stands is None else _unfinished(stands, graph, dtype, chosen, block, method)
    if run is not None and run.stage == run.stages:
        return _checked(open_distances(out), graph, verify)

    distances = distance_dtype(graph, dtype) if run is None else run.dtype
    job = Job(
        graph=graph,
        dtype=distances,
        through=graph.through(),
        potentials=_potentials(graph),
        fits=distances_fit(graph, distances),
    )
    rows_out = graph.n if chosen is None else len(chosen)
    if run is not None:
        method = run.plan.get("method", "floyd-warshall")

    facts = measure_workers(client, str(distances))
    width = block if run is None else run.plan["block"]
    layout = make_layout(graph.n, len(facts), distances.itemsize, width)
    pivots = int(job.through.sum())
    plan = make_plan(layout, distances, pivots, rows_out, facts, relaxations_done(layout, job, run))
    reason = None
    if method != "floyd-warshall":
        from pipelines.apsp.batched import choose_method, search_from_all
        from pipelines.sssp.searches import SearchJob

        reason, searches = choose_method(method, graph, plan, rows_out, facts, run, block)
        if searches is not None:
            rows = SearchJob(graph, distances, predecessors=False, potentials=job.potentials)
            with Progress(rows_out, "rows", progress) as shown:
                shown.note(reason)
                search_from_all(client, facts, rows, out, searches, run, chosen, overwrite, shown)
                shown.stage("verifying")
                return _checked(open_distances(out), graph, verify)

    refuse_what_cannot_fit(plan, facts, out)
    if run is None:
        run = create_distances(
            out,
            graph,
            dtype=distances,
            chunk=layout.band,
            stages=len(stages_of(layout, job)) + 1,
            plan={"method": "floyd-warshall", "block": layout.block},
            sources=chosen,
            overwrite=overwrite,
        )
    with Progress(plan.relaxations, "relaxations", progress) as shown:
        if reason is not None:
            shown.note(reason)
        shown.note(plan.describe(facts))
        run_stages(client, job, run, shown, facts, commit_seconds)
        shown.stage("verifying")
        return _checked(open_distances(out), graph, verify)


def _unfinished(
    out: Any, graph: Graph, dtype: Any, sources: tuple[int, ...] | None, block: int | None, method: str
) -> Run:
    """The store to go on with, which must have been begun with the same options."""
    run = resume_distances(out, graph)
    asked = {
        "dtype": dtype and str(np.dtype(dtype)),
        "block": block,
        "sources": sources,
        "method": None if method == "auto" else method,
    }
    begun = {
        "dtype": str(run.dtype),
        "block": run.plan["block"],
        "sources": run.sources,
        "method": run.plan.get("method", "floyd-warshall"),
    }
    for name, value in asked.items():
        if value is not None and value != begun[name]:
            told = [brief(graph, given, "all") if name == "sources" else given for given in (begun[name], value)]
            raise StoreError(f"{out} was begun with {name} {told[0]}, not {told[1]}; drop the option or start afresh")
    return run


def _check_block(block: Any) -> int | None:
    if block is None:
        return None
    if isinstance(block, bool) or not isinstance(block, Integral) or block < 1:
        raise ValueError(f"block is {block!r}; give a whole number of vertices, 1 or more")
    return int(block)


def _potentials(graph: Graph) -> tuple[np.ndarray, np.ndarray] | None:
    """What makes the weights non-negative, or NegativeCycleError naming the vertices of the cycle that forbids it."""
    if graph.weight_min >= 0:
        return None
    try:
        return find_potentials(*graph.rows(), graph.through())
    except NegativeCycleError as error:
        raise named_cycle(graph, error) from None


def _checked(distances: Distances, graph: Graph, verify: bool) -> Distances:
    if verify:
        verify_distances(distances, graph)
    return distances

"""The call `single_source_shortest_paths`: options, plan and run (see `pipelines.sssp`)."""

from __future__ import annotations

import os
from typing import Any, Literal, get_args

import numpy as np
from distributed import Client

from gpuops import NegativeCycleError
from gpuops.errors import WeightRangeError
from gpuops.numbers import outside_infinity
from gpuops.options import one_of, whole
from pipelines.files.listed_vertices import brief, listed_vertices
from pipelines.generators import RMat
from pipelines.generators.generated_graph import GeneratedGraph, generated_graph
from pipelines.sssp.job import SearchJob, have_equal_weights, negative_loops
from pipelines.sssp.plan import SearchPlan, Spread, make_search_plan
from pipelines.sssp.searches import SearchWriter, row_tasks
from pipelines.sssp.vertex_rounds import ByVertices
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.paths import PATH_DTYPES, Paths, PathsWriter, create_paths, open_paths
from pipelines.stores.vertex_names import VertexNameList, positions
from pipelines.validation.bounds import distance_dtype, distances_fit, reach
from pipelines.validation.negative_cycle import named_cycle
from pipelines.workers.attempts import Run
from pipelines.workers.capacity import measure_workers
from pipelines.workers.clients import takes_client
from pipelines.workers.plans import states_plan, stating
from pipelines.workers.progress import Progress
from pipelines.workers.row_chunks import DealtRows


@takes_client
@states_plan
def single_source_shortest_paths(
    client: Client,
    graph: Graph | RMat | str | os.PathLike[str],
    out: str | os.PathLike[str],
    sources: VertexNameList | Literal["all"],
    *,
    dtype: Any = None,
    cutoff: float | None = None,
    targets: VertexNameList | None = None,
    together: bool = False,
    predecessors: bool = True,
    spread: Spread | None = None,
    piece_arcs: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    verify: bool = False,
    progress: bool | None = None,
) -> Paths:
    """Write the shortest paths from `sources` to every vertex of `graph` to the store `out`.

    Parameters
    ----------
    client : distributed.Client
        Of any cluster; one task at a time per worker. Workers with the Dask resource ``GPU`` compute on their GPU.
    graph : Graph or path of a graph store, or description or name of a graph to be generated
        n vertices, m arcs. Weights may be negative. A generated graph such as ``RMat(28)``, or ``"rmat:28"``, is never
        stored: workers generate the arcs that they hold.
    out : path of the new paths store
    sources : sequence or array of int or str, `tilepath.positions`, or "all"
        The result has a row for each source. Each source is named once: by its label, or by its position if the graph
        has no labels, as text or int; or by position, as "#17" or ``positions([17])``. Paths may begin at a closed
        source.
    dtype : {"float32", "float64", "int32"}, optional
        Type of the distances; by default float32 for float weights and int32 for integer weights.
    cutoff : float, optional
        Vertices farther than this are marked as unreachable. Weights must not be negative.
    targets : as sources, optional
        Targets, named like sources. Vertices farther than the farthest reached target are marked as unreachable. The
        paths to the targets are complete, and the store is smaller. With a cutoff too, a target beyond the cutoff
        counts as not reached, and if no target is reached only the cutoff applies. Weights must not be negative.
    together : bool
        All sources count as one: the result has a single row, with the paths from the nearest source. Following the
        predecessors from a vertex leads to its nearest source.
    predecessors : bool
        Keep predecessors, too.
    spread : {"sources", "vertices"}, optional
        How work is spread over the workers; by default chosen by estimates of time and memory.
    piece_arcs : int, optional
        Arcs that a worker holds at a time if work is spread by vertices; by default as many arcs as fit.
    overwrite : bool
        Replace a paths store at `out`, once the new store is complete. Until then the new store grows next to it, with
        ``.new`` added to its name; `resume` continues the new store there.
    resume : bool
        Compute the rows that an unfinished store `out` lacks; begin if there is no store; return a finished store as
        it is. The store must have been begun with the same options, except `spread` and `piece_arcs`.
    verify : bool
        Prove that rows of the result are right by certificates: all rows, or 16 of many. The
        proof needs predecessors, unless the graph is generated.
    progress : bool, optional
        Show progress on standard error; by default if standard error is a terminal.

    Returns
    -------
    Paths
        The finished store, opened. Its `sources`, `targets` and predecessors are positions of vertices;
        `Graph.names` turns them into names.

    Raises
    ------
    gpuops.NegativeCycleError
        A negative cycle can be reached from a source; the error has its vertices and its weight.
    tilepath.DoesNotFitError
        Memory or disk is too small; nothing is written.
    tilepath.WeightRangeError
        The distances do not fit `dtype`.
    StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        An option has no such value, or does not go with the graph or with another option.

    Examples
    --------
    >>> found = tilepath.single_source_shortest_paths(client, graph, "from two.zarr", ["Rome", "Pisa"])
    >>> found.distances(1).tolist()
    [350, 0, 165, 315]
    """
    if not isinstance(graph, Graph):
        graph = generated_graph(graph) if isinstance(graph, RMat) else open_graph(graph)
    every = isinstance(sources, str) and sources == "all"
    chosen = listed_vertices(graph, "source", positions(np.arange(graph.n)) if every else sources)
    cutoff = None if cutoff is None else float(cutoff)
    wanted = None if targets is None else listed_vertices(graph, "target", targets)
    options: dict[str, Any] = {
        "sources": chosen,
        "together": bool(together),
        "predecessors": bool(predecessors),
        "cutoff": cutoff,
        "targets": wanted,
    }
    asked = {"dtype": _path_dtype(graph, dtype), **options}
    _check_options(graph, cutoff, wanted, verify, predecessors)
    if spread is not None:
        one_of("spread", spread, get_args(Spread))
    piece_arcs = None if piece_arcs is None else whole("piece_arcs", piece_arcs, 1)

    def describe(name: str, value: Any) -> Any:
        return brief(graph, value) if name in ("sources", "targets") else value

    writer = PathsWriter.resumed(out, graph, asked, describe, resume=resume, overwrite=overwrite)
    if writer is not None and writer.finished:
        return _verified(client, open_paths(out), graph, verify, progress)

    job = _job(graph, _path_dtype(graph, dtype) if writer is None else writer.dtype, options)
    facts, rows = measure_workers(client, None), 1 if together else len(chosen)
    chunk = None if writer is None else writer.chunk
    plan = make_search_plan(job, rows, facts, spread=spread, piece_arcs=piece_arcs, chunk=chunk)
    with stating(plan.stated(), out, writer) as (stated, place):
        plan.refuse_disk(place)
    if writer is None:
        writer = create_paths(out, graph, dtype=job.dtype, chunk=plan.chunk, overwrite=overwrite, **options)
    with Progress(rows, "rows", progress) as bar:
        bar.note(stated.text)
        try:
            run_searches(client, plan, writer, bar)
        except (NegativeCycleError, WeightRangeError):
            writer.discard()
            raise
    return _verified(client, open_paths(out), graph, verify, progress)


def run_searches(client: Client, plan: SearchPlan, out: SearchWriter, bar: Progress) -> None:
    """Search for all rows of `out` that are not done, as `plan` says; after the loss of workers, resume.

    Raises
    ------
    NegativeCycleError
        There is a negative cycle; the error has the labels of its vertices.
    WeightRangeError
        A distance does not fit the dtype.
    """
    run, job = Run(client, [fact.address for fact in plan.facts], out, bar), plan.job
    try:
        if plan.spread == "sources":
            run.attempts(DealtRows, row_tasks(job, out))
        else:
            run.attempts(ByVertices, plan)
    except NegativeCycleError as error:
        raise named_cycle(job.graph, error) from None
    except OverflowError as error:
        raise WeightRangeError(f"{job.graph.path}: {error}; use dtype='float64' (--dtype float64)") from None


def _path_dtype(graph: Graph, asked: Any) -> np.dtype:
    dtype = distance_dtype(graph, asked)
    if isinstance(graph, GeneratedGraph) and dtype.kind != "f" and graph.weight_dtype.kind == "f":
        raise WeightRangeError(f"{graph.path}: its weights have fractions, which {dtype} distances cannot have")
    if dtype not in PATH_DTYPES:
        raise ValueError(
            f"paths have distances in float32, float64 or int32, not {dtype}; choose one of them (dtype, --dtype)"
        )
    return dtype


def _job(graph: Graph, dtype: np.dtype, options: dict[str, Any]) -> SearchJob:
    """Return the problem for the tasks; raises WeightRangeError if the distances cannot fit the dtype."""
    # Searches notice integer sums that would wrap, except sums of negative weights.
    if not isinstance(graph, GeneratedGraph):  # weights of generated graphs are neither negative nor large
        distances_fit(graph, dtype, limit=None if dtype.kind == "f" else float(outside_infinity(dtype)))
    cutoff = reach(options["cutoff"], dtype)
    batched = graph.weight_min >= 0 and cutoff is None and not options["together"]
    loops = negative_loops(graph)
    hops = batched and len(options["sources"]) > 1 and have_equal_weights(graph)
    return SearchJob(graph, dtype, batched, options["predecessors"], cutoff, options["targets"], loops=loops, hops=hops)


def _check_options(
    graph: Graph, cutoff: float | None, targets: tuple[int, ...] | None, verify: bool, predecessors: bool
) -> None:
    if cutoff is not None and not cutoff >= 0:
        raise ValueError(f"cutoff is {cutoff}; give a distance of 0 or more")
    if graph.weight_min < 0 and (cutoff is not None or targets is not None):
        option = "cutoff (--cutoff)" if cutoff is not None else "targets (--target)"
        raise ValueError(
            f"{graph.path} has negative weights, so a path may leave the range of {option} and come back; "
            f"search without {option}"
        )
    if verify and not predecessors and not isinstance(graph, GeneratedGraph):
        raise ValueError(
            "the certificate follows predecessors; leave out predecessors=False (--no-predecessors) or verify=True"
        )


def _verified(client: Client, paths: Paths, graph: Graph, verify: bool, progress: bool | None) -> Paths:
    """Return the store; with `verify`, prove rows right first."""
    if verify and isinstance(graph, GeneratedGraph):
        from pipelines.validation.generated import certify_on_workers

        certify_on_workers(client, paths, graph, progress=progress)
    elif verify:
        from pipelines.validation.certificates import certify_paths

        with Progress(1, "rows", progress) as bar:
            bar.stage("verifying")
            certify_paths(paths, graph)
    return paths

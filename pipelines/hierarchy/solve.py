"""The call that makes the hierarchy of a graph: `build_hierarchy`."""

from __future__ import annotations

import os
from typing import Any

from distributed import Client

from gpuops.errors import WeightRangeError
from pipelines.hierarchy.building import HierarchyJob, build, plan_of
from pipelines.hierarchy.plan import SearchesAreFasterError, most_relaxations, refuse_ordering
from pipelines.stores.durable import delete_tree
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.hierarchy import HierarchyStore, HierarchyWriter, create_hierarchy, open_hierarchy
from pipelines.stores.place import growing_place
from pipelines.validation.bounds import distance_dtype, distances_fit
from pipelines.validation.distances import verify_distances
from pipelines.validation.negative_cycle import potentials_of
from pipelines.workers.capacity import measure_workers, within_budget
from pipelines.workers.clients import takes_client
from pipelines.workers.plans import plan_only, state_plan, states_plan
from pipelines.workers.progress import Progress


@takes_client
@states_plan
def build_hierarchy(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    like: HierarchyStore | str | os.PathLike[str] | None = None,
    thorough: bool = False,
    dtype: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    verify: bool = False,
    progress: bool | None = None,
    host_memory: int | None = None,
) -> HierarchyStore:
    """Prepare a road network: write to `out` the tables from which any distance is computed.

    Parameters
    ----------
    client : distributed.Client
        A client of any cluster. One worker makes the hierarchy, on its CPU.
    graph : Graph or path of a graph store
        Weights may be negative; a cycle of negative weight is an error. The method suits graphs such as road
        networks and grids, which small sets of vertices separate.
    out : path of the new hierarchy store
    like : HierarchyStore or path of such a store, optional
        Use the order and the structure of this store, whose graph has the same vertices, for example after weights have
        changed or arcs were removed. If the graph has arcs that the structure has no room for, or other closed
        vertices, a new structure is found on the same order. This saves the time of METIS.
    thorough : bool
        Take up to three times as long to order, for a few percent less work to close some road networks.
    dtype : {"float32", "float64", "int32", "int16"}, optional
        The dtype of the distances. By default float32 for float weights and int32 for integer weights.
    resume : bool
        Resume an unfinished `out` after its last committed step. It must have been begun with the same `like`,
        `thorough` and `dtype`. If `out` does not exist, create it; if it is finished, return it unchanged.
    overwrite : bool
        Replace a hierarchy store at `out`, once the new one is complete.
    verify : bool
        Prove sampled rows of distances by certificates.
    progress : bool, optional
        Show progress on standard error. By default, only if standard error is a terminal.
    host_memory : int, optional
        Bytes to use of the memory of the host. By default, nine tenths of the free memory.

    Returns
    -------
    HierarchyStore
        The finished store, opened.

    Raises
    ------
    gpuops.NegativeCycleError
        The graph has a cycle of negative weight; the error has its vertices, and `out` is not created.
    tilepath.DoesNotFitError
        Memory or disk is too small. The exact cost is known after the second step: `out` then keeps the order, for
        `resume`. Or searches are faster by far; then nothing is written.
    tilepath.WeightRangeError
        The distances do not fit `dtype`.
    StoreError
        A store is missing, foreign or damaged, `out` exists, or the disk is full.
    ValueError
        The graph of `like` has other vertices, or `like` is given together with `thorough`.
    ImportError
        `thorough` is given, and `pymetis` is not installed.

    Examples
    --------
    >>> tables = tilepath.build_hierarchy(client, grid, "tables.zarr")
    >>> tilepath.distances_between(tables, ["0"], ["29"]).item()
    769
    """
    graph = open_graph(graph)
    like = open_hierarchy(like) if isinstance(like, str | os.PathLike) else like
    _check(graph, like, thorough)
    kind = distance_dtype(graph, dtype)
    other = None if like is None else like.path
    begun = {"thorough": thorough, "like": other}
    asked = {"dtype": str(kind), **begun}
    writer = HierarchyWriter.resumed(out, graph, asked, inputs=[other], resume=resume, overwrite=overwrite)
    if writer is None or not writer.finished:
        distances_fit(graph, kind)
        potentials = potentials_of(graph)
        facts = within_budget(measure_workers(client, None), None, host_memory)
        fact = max(facts, key=lambda fact: fact.host_memory)
        job = HierarchyJob(graph, kind, potentials, thorough, other, most_relaxations(graph), fact)
        if writer is None:
            if like is None:
                refuse_ordering(graph, fact)
            if plan_only():
                state_plan(plan_of(job, growing_place(out)))
            writer = create_hierarchy(out, graph, dtype=kind, options=begun, overwrite=overwrite)
        with Progress(writer.progress()[1], "steps", progress) as bar:
            try:
                build(client, job, writer, bar)
            except (SearchesAreFasterError, WeightRangeError, ImportError):  # the unfinished store is of no use
                delete_tree(writer.path)
                raise
    found = open_hierarchy(out)
    if verify:
        verify_distances(found, graph)
    return found


def _check(graph: Graph, like: HierarchyStore | None, thorough: bool) -> None:
    if like is None:
        return
    if thorough:
        raise ValueError(f"the order is that of {like.path}; leave out thorough (--thorough)")
    if like.n != graph.n:
        raise ValueError(
            f"{like.path} has {like.n:,} vertices, and {graph.path} has {graph.n:,}; leave out like (--like)"
        )

"""The call `betweenness`: options, plan, run and table (see `pipelines.centrality`)."""

from __future__ import annotations

import os
import random

import numpy as np
import pyarrow as pa
from distributed import Client

from gpuops import betweenness_factors, csr, verify_betweenness
from pipelines.centrality.sums_on_workers import BetweennessJob, add_up
from pipelines.files.tables import check_output, vertex_names, write_table
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.schema import counted
from pipelines.workers.clients import takes_client
from pipelines.workers.plans import states_plan


@takes_client
@states_plan
def betweenness(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    edges: bool = False,
    hops: bool = False,
    sample: int | None = None,
    seed: int | None = None,
    endpoints: bool = False,
    normalized: bool = True,
    overwrite: bool = False,
    progress: bool | None = None,
) -> pa.Table:
    """Return the betweenness of every vertex or edge of `graph`, and write it to the table `out`.

    The betweenness of a vertex is the sum, over all pairs of other vertices, of the share of their shortest paths that
    pass through it. Values and options are as in NetworkX, where parallel edges count once.

    Parameters
    ----------
    client : distributed.Client
        A client of any cluster whose workers do one task at a time. Workers on a GPU use it.
    graph : Graph or path of a graph store
        Weights must be above 0.
    out : path of a table, optional
        The suffix chooses the format: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.
    edges : bool
        Return the betweenness of edges instead of vertices: a row for each edge of an undirected graph, or for each arc
        of a directed graph.
    hops : bool
        Give every arc the length 1, as arcs of unweighted graphs always have.
    sample : int, optional
        Estimate from this number of sources, chosen at random; by default every vertex is a source.
    seed : int, optional
        With the same seed, the same sources are chosen again. They are the sources that NetworkX chooses with this seed
        if its nodes are in the same order.
    endpoints : bool
        Let a path also count for its first and its last vertex. Not with `edges`.
    normalized : bool
        Divide by the number of pairs.
    overwrite : bool
        Replace an existing file `out`.
    progress : bool, optional
        Show progress on standard error; by default if standard error is a terminal.

    Returns
    -------
    pyarrow.Table
        Columns `vertex` and `betweenness`, or `source`, `target` and `betweenness`; vertices by their labels, or by
        their positions if the graph has no labels.

    Raises
    ------
    gpuops.VerificationError
        The betweenness of all vertices or edges does not add up to the number of vertices or arcs of shortest paths.
    tilepath.DoesNotFitError
        The memory of the workers is too small.
    StoreError
        The graph store is missing, foreign or damaged.
    ValueError
        A weight is not above 0 or is lost in a distance, or an option does not go with the graph or with another
        option.
    FileExistsError
        `out` exists, and `overwrite` is False.

    Examples
    --------
    >>> table = tilepath.betweenness(client, graph, "betweenness.csv")
    >>> dict(zip(table["vertex"].to_pylist(), table["betweenness"].to_pylist()))
    {'Rome': 0.0, 'Pisa': 0.3333333333333333, 'Genoa': 0.3333333333333333, 'Milan': 0.0}
    """
    graph = open_graph(graph)
    if out is not None:
        check_output(out, overwrite)
    graph.refuse_turns("betweenness is")
    _check_options(graph, edges, hops, sample, seed, endpoints)
    drawn = random.Random(seed.item() if isinstance(seed, np.generic) else seed)
    chosen = range(graph.n) if sample is None else drawn.sample(range(graph.n), sample)
    sources = np.asarray(chosen, np.int64)
    job = BetweennessJob(graph, hops or not graph.weighted, endpoints, edges)

    found = job.result(add_up(client, job, sources, counted(len(sources), "source"), progress).total())
    symmetric = not graph.directed
    verify_betweenness(found, sources=len(sources), arcs=graph.m, symmetric=symmetric, endpoints=endpoints)

    estimate = None if sample == graph.n else sample
    kind = {"directed": graph.directed, "endpoints": endpoints or edges, "normalized": normalized}
    of_sources, of_others = betweenness_factors(graph.n, estimate, **kind)
    if found.arcs is not None:
        table = _of_edges(graph, found.arcs * of_others)
    else:
        factors = np.full(graph.n, of_others)
        factors[sources] = of_sources
        table = pa.table({"vertex": vertex_names(graph), "betweenness": found.vertices * factors})
    if out is not None:
        write_table(table, out, overwrite)
    return table


def _check_options(
    graph: Graph, edges: bool, hops: bool, sample: int | None, seed: int | None, endpoints: bool
) -> None:
    if graph.n == 0:
        raise ValueError(f"{graph.path} has no vertices")
    if sample is not None and not 1 <= sample <= graph.n:
        raise ValueError(f"sample is {sample}; choose 1 to {graph.n:,} sources")
    if seed is not None and sample is None:
        raise ValueError("seed (--seed) chooses the sources of a sample; give its size, too (sample, --sample)")
    if edges and endpoints:
        raise ValueError("edges are no ends of paths; leave out endpoints (--endpoints) or edges (--edges)")
    if graph.weighted and graph.m and not hops and not graph.weight_min > 0:
        raise ValueError(
            f"{graph.path} has a weight of {graph.weight_min:g}, and paths along weights of 0 or less cannot be "
            "counted; count arcs with hops=True (--hops), or raise the weights"
        )


def _of_edges(graph: Graph, values: np.ndarray) -> pa.Table:
    """Return the table of the arcs, or of the edges of an undirected graph, each edge from its lower position."""
    indptr, indices, _ = graph.rows()
    tails = csr.tails(indptr, len(indices), np.int64)
    names = vertex_names(graph)
    kept = np.flatnonzero(tails <= indices) if not graph.directed else np.arange(len(indices))
    ends = {name: names.take(pa.array(vertices[kept])) for name, vertices in (("source", tails), ("target", indices))}
    return pa.table({**ends, "betweenness": values[kept]})

"""The call `link_flows`: a demand of travel on a graph store by shortest paths, and the flow on each arc as a table.

The run is that of betweenness (`pipelines.centrality.solve`), with the origins of the demand as sources.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
from distributed import Client

from gpuops import LinkFlows, csr, verify_flows
from gpuops.centrality.flows import FlowSummation, demand_by_origin
from pipelines.centrality.sums_on_workers import BetweennessJob, add_up
from pipelines.files.tables import (
    check_output,
    column_numbers,
    column_vertices,
    read_columns,
    select_columns,
    vertex_names,
    write_table,
)
from pipelines.stores.graph import Graph, open_graph
from pipelines.stores.schema import counted
from pipelines.workers.capacity import Needs, WorkerFacts
from pipelines.workers.clients import takes_client
from pipelines.workers.plans import states_plan

COLUMNS = ("origin", "destination", "amount")


@takes_client
@states_plan
def link_flows(
    client: Client,
    graph: Graph | str | os.PathLike[str],
    demand: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    progress: bool | None = None,
) -> pa.Table:
    """Return the flow on every arc if a demand travels by shortest paths, and write it to the table `out`.

    Several shortest paths between an origin and a destination have equal parts of the amount.

    Parameters
    ----------
    client : distributed.Client
        A client of any cluster of CPU workers that do one task at a time.
    graph : Graph or path of a graph store
        Weights must be above 0.
    demand : path of a table, pyarrow.Table, DataFrame, or sparse matrix (n, n)
        The columns `origin` and `destination` name vertices, and `amount` says how much travels: 0 or more. Of a
        matrix, rows are origins and columns are destinations, by position.
    out : path of a table, optional
        The suffix chooses the format: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.
    overwrite : bool
        Replace an existing file `out`.
    progress : bool, optional
        Show progress on standard error; by default if standard error is a terminal.

    Returns
    -------
    pyarrow.Table
        A row for each arc, in the order of ``graph.rows()``, with the columns `source`, `target` and `flow`. In an
        undirected graph, an edge has a row for each direction. The metadata has the `cost`, the sum over all pairs of
        the amount times the distance.

    Raises
    ------
    gpuops.VerificationError
        Flows are not conserved at a vertex, or do not cost what shortest paths cost.
    tilepath.DoesNotFitError
        The memory of the workers is too small.
    StoreError
        The graph store is missing, foreign or damaged.
    ValueError
        A weight is not above 0 or is lost in a distance, an entry of the demand is not a vertex or an amount, no path
        leads from an origin to a destination, or a worker computes on a GPU.
    FileExistsError
        `out` exists, and `overwrite` is False.

    Examples
    --------
    >>> import pandas
    >>> demand = pandas.DataFrame({"origin": ["Rome"], "destination": ["Genoa"], "amount": [7]})
    >>> tilepath.link_flows(client, graph, demand)["flow"].to_pylist()
    [7.0, 0.0, 0.0, 7.0, 0.0, 0.0, 0.0, 0.0]
    """
    graph = open_graph(graph)
    graph.refuse_turns("flows are")
    if out is not None:
        check_output(out, overwrite, demand if isinstance(demand, str | os.PathLike) else None)
    if graph.weighted and graph.m and not graph.weight_min > 0:
        raise ValueError(
            f"{graph.path} has a weight of {graph.weight_min:g}, and paths along weights of 0 or less cannot be "
            "counted; raise the weights, or join the vertices"
        )
    origins, destinations, amounts = read_demand(demand, graph)
    rows = demand_by_origin(origins, destinations, amounts, graph.n)
    job = FlowsJob(graph, not graph.weighted, endpoints=False, edges=True)
    asked = f"{counted(len(amounts), 'pair')} from {counted(len(rows), 'origin')}"
    sums = add_up(client, job, rows, asked, progress)
    found = job.result(sums.total()) if len(rows) else LinkFlows(np.zeros(graph.m), 0.0)
    indptr, indices, weights = graph.rows()
    verify_flows(indptr, indices, weights, found, origins, destinations, amounts)
    tails, names = csr.tails(indptr, len(indices), np.int64), vertex_names(graph)
    ends = {name: names.take(pa.array(vertices)) for name, vertices in (("source", tails), ("target", indices))}
    table = pa.table({**ends, "flow": found.arcs}).replace_schema_metadata({"cost": repr(found.cost)})
    if out is not None:
        write_table(table, out, overwrite)
    return table


def read_demand(demand: Any, graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return origins and destinations, int64 (p), and amounts, float64 (p), of what `link_flows` takes.

    Raises
    ------
    ValueError
        An entry is not a vertex or a number, or a matrix has another shape.
    """
    if hasattr(demand, "tocoo"):
        if demand.shape != (graph.n, graph.n):
            raise ValueError(f"the demand has the shape {demand.shape}; give a matrix of {graph.n} x {graph.n} amounts")
        pairs = demand.tocoo()
        return pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data.astype(np.float64)
    name = "demand"
    if isinstance(demand, str | os.PathLike):
        name, table = os.fspath(demand), read_columns(demand, COLUMNS)
    else:
        table = select_columns(pa.table(demand), COLUMNS, name)
    amounts = column_numbers(table, "amount", name)
    for row in np.flatnonzero(amounts < 0)[:1].tolist():
        raise ValueError(f"{name}, row {row + 1}: `amount` is {amounts[row]:g}; give 0 or more")
    origins, destinations = (column_vertices(table[column], graph, name) for column in COLUMNS[:2])
    return origins, destinations, amounts


class FlowsJob(BetweennessJob):
    """The problem, for the tasks."""

    kind, unit, work, method, how = "flows", "origins", "assigning", "flows", ""
    cure = "Give fewer workers (--workers)"

    def needs(self, facts: list[WorkerFacts]) -> Needs:
        """Return the memory of the workers; raises ValueError if they have GPUs."""
        if any(fact.gpu for fact in facts):
            raise ValueError("flows are computed on CPUs; start workers with device='cpu' (--device cpu)")
        return super().needs(facts)

    def summation(self, xp: Any = np) -> FlowSummation:
        """Read the graph and prepare it; `xp` is NumPy, as flows are computed on CPUs."""
        indptr, indices, weights = self.graph.rows()
        return FlowSummation(indptr, indices, weights, through=self.graph.through(), check=False)

"""The commands `tilepath betweenness | flows`."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster, with_dry_run
from tilepath.cli.help_pages import page
from tilepath.cli.shared_options import OVERWRITE, chosen_weight


@page(example="tilepath betweenness roads.zarr betweenness.csv")
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--edges", is_flag=True, help="Write the betweenness of edges: columns source, target, betweenness.")
@click.option("--hops", is_flag=True, help="Count arcs instead of adding weights.")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="K",
    help="Estimate from K random sources; by default every vertex is a source.",
)
@click.option("--seed", type=int, help="Choose the same sources again.")
@click.option("--endpoints", is_flag=True, help="Let a path also count for its first and its last vertex.")
@click.option(
    "--normalized/--sums", default=True, help="Divide by the number of pairs (default), or write sums over the pairs."
)
@OVERWRITE
@with_dry_run
@chosen_weight("graph")
@on_cluster
def betweenness(graph: str, out: str, open_client: OpenClient, **options: Any) -> None:
    """Write the betweenness of every vertex of the graph store GRAPH to the table OUT: vertex, betweenness.

    The betweenness of a vertex is the mean, over all pairs of other vertices, of the share of their shortest paths that
    pass through it. OUT is a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file.
    """
    from pipelines import betweenness, open_graph
    from pipelines.files.tables import check_output
    from pipelines.stores.schema import counted

    opened = open_graph(graph)
    check_output(out, options["overwrite"])
    with open_client() as client:
        found = betweenness(client, opened, out, progress=True, **options)
    if options["edges"]:
        rows = counted(found.num_rows, "arc" if opened.directed else "edge")
    else:
        rows = counted(found.num_rows, "vertex", "vertices")
    click.echo(f"{out}: betweenness of {rows}")


@page(example="tilepath flows roads.zarr trips.csv flows.csv")
@click.argument("graph", type=click.Path())
@click.argument("demand", type=click.Path(exists=True))
@click.argument("out", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace an existing OUT.")
@with_dry_run
@on_cluster
def flows(graph: str, demand: str, out: str, open_client: OpenClient, **options: Any) -> None:
    """Write the flow on every arc of the graph store GRAPH to the table OUT: source, target, flow.

    DEMAND is a table with the columns origin, destination and amount: how much travels. All of it goes by shortest
    paths; several shortest paths have equal parts. Tables are .csv, .tsv, .csv.gz, .tsv.gz or .parquet files. The work
    is done on CPUs.
    """
    from pipelines import link_flows, open_graph
    from pipelines.files.tables import check_output
    from pipelines.stores.schema import counted, number

    opened = open_graph(graph)
    check_output(out, options["overwrite"], demand)
    with open_client() as client:
        found = link_flows(client, opened, demand, out, progress=True, **options)
    cost, unit = number(float(found.schema.metadata[b"cost"])), f" {opened.unit}" if opened.unit else ""
    click.echo(f"{out}: flows of {counted(found.num_rows, 'arc')}; amounts times distances add up to {cost}{unit}")

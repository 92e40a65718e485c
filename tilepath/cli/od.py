"""The command `tilepath od`: tables from origins to destinations."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import click

from tilepath.cli.cluster import OpenClient, is_asked_for, on_cluster

POINTS = "A table (CSV, TSV, Parquet) with a column {0} or vertex, or with lon and lat, or x and y; and id, if wanted."


@click.command()
@click.argument("store", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--origins", required=True, type=click.Path(exists=True), help=POINTS.format("origin"))
@click.option(
    "--destinations",
    type=click.Path(exists=True),
    help="Likewise, with a column destination or vertex; by default, the origins.",
)
@click.option("--within", type=float, metavar="T", help="Leave out what is farther than T.")
@click.option("--nearest", type=int, metavar="K", help="Keep the K nearest destinations of each origin.")
@click.option(
    "--reduce",
    metavar="HOW",
    help="One value for each origin, over its destinations: count, min (the nearest), sum:COLUMN, or with each of them "
    "counted as exp(-distance / SCALE), decay:SCALE or decay:SCALE:COLUMN.",
)
@click.option("--paths", is_flag=True, help="Add the vertices along a fastest path, and how long it is on the map.")
@click.option(
    "--snap-limit",
    type=click.FloatRange(min=0),
    metavar="METRES",
    help="Refuse places that are farther from every vertex; in the units of the graph for x and y.",
)
@click.option("--graph", type=click.Path(), help="The graph of a boundary store, if it was moved.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT, or begin it.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@on_cluster
def od(
    store: str,
    out: str,
    origins: str,
    destinations: str | None,
    reduce: str | None,
    snap_limit: float | None,
    graph: str | None,
    open_client: OpenClient,
    **options: Any,
) -> None:
    """Write the distances from origins to destinations to the table OUT, or, if it ends in .npy or .zarr, as a matrix.

    STORE is a boundary store (tilepath partition), which answers at once, or a graph store, which is searched. Places
    are snapped to the nearest vertex of the largest strongly connected component. Distances are in the unit of the
    weights. There are no turn costs and no timetables. With --device, --workers or another option of a cluster, the
    workers of that cluster make the table, which needs a boundary store and --reduce.
    """
    from pipelines import open_boundary, open_graph
    from pipelines.answers.od_points import read_points
    from pipelines.answers.od_tables import parse_reduction, refuse_workers, write_od_table
    from pipelines.stores.boundary import SCHEMA
    from pipelines.stores.place import refuse_inputs
    from pipelines.stores.schema import store_schema

    asked = is_asked_for()
    refuse_inputs(out, [origins, destinations])
    source: Any = open_boundary(store) if store_schema(store) == SCHEMA else open_graph(store)
    opened = source.graph(graph) if store_schema(store) == SCHEMA else source
    if asked:
        refuse_workers(source, reduce)
    column = parse_reduction(reduce).column if reduce else None
    begins = read_points(origins, opened, "origin", snap_limit=snap_limit)
    what = "destination" if destinations else "origin"
    ends = read_points(destinations or origins, opened, what, [column] if column else [], snap_limit=snap_limit)
    for warning in dict.fromkeys(points.warning for points in (begins, ends) if points.warning):
        click.echo(warning, err=True)
    if source is opened:
        click.echo(
            f"{store} is a graph, which is searched from each origin; a boundary store is faster (tilepath partition)",
            err=True,
        )
    with open_client() if asked else nullcontext() as client:
        began = time.perf_counter()
        count = write_od_table(source, begins, ends, out, reduce=reduce, graph=opened, client=client, **options)
        seconds = time.perf_counter() - began
    if count is None:
        click.echo(f"{out} is complete already; --overwrite without --resume makes it again")
        return
    rate = len(begins.vertices) * len(ends.vertices) / seconds
    click.echo(
        f"{out}: {len(begins.vertices):,} origins, {len(ends.vertices):,} destinations, {count:,} rows;"
        f" {rate:,.0f} pairs/s"
    )

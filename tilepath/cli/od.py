"""The command `tilepath od`: tables of distances from origins to destinations."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import click

from tilepath.cli.cluster import OpenClient, is_asked_for, on_cluster
from tilepath.cli.help_pages import page
from tilepath.cli.messages import say
from tilepath.cli.quantities import NUMBER

POINTS = (
    "A table (CSV, TSV, Parquet) with a column {0} or vertex, or with columns lon and lat, or x and y; a column id is "
    "optional."
)


@page(example="tilepath od roads.hierarchy.zarr times.parquet --origins homes.csv --destinations schools.csv")
@click.argument("store", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--origins", required=True, type=click.Path(exists=True), help=POINTS.format("origin"))
@click.option(
    "--destinations",
    type=click.Path(exists=True),
    help="A table like --origins, with a column destination instead of origin; by default, the origins.",
)
@click.option("--within", type=NUMBER, metavar="T", help="Leave out destinations farther than T.")
@click.option("--nearest", type=int, metavar="K", help="Keep the K nearest destinations of each origin.")
@click.option(
    "--reduce",
    metavar="HOW",
    help="Write one value for each origin over its destinations: count, min (distance of the nearest), sum:COLUMN, or "
    "decay:SCALE or decay:SCALE:COLUMN, which weight each destination by exp(-distance / SCALE).",
)
@click.option(
    "--paths",
    is_flag=True,
    help="Add the vertices along a shortest path, and its length by the coordinates of the graph.",
)
@click.option(
    "--snap-limit",
    type=NUMBER,
    metavar="METRES",
    help="Refuse places that are farther than this from every vertex; for x and y, in units of the coordinates.",
)
@click.option("--graph", type=click.Path(), help="The graph of STORE, if it was moved.")
@click.option("--resume", is_flag=True, help="Continue an unfinished OUT, or begin it.")
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
    """Write the distances from origins to destinations to the table OUT, or as a matrix if OUT ends in .npy or .zarr.

    STORE is a hierarchy store (tilepath hierarchy), which answers fast, or a graph store, which is searched. Places are
    snapped to the nearest vertex of the largest strongly connected component. Distances are in the unit of the weights;
    turn costs and timetables are not modelled. By default this process makes the table on its CPU. With --device gpu,
    --workers or another cluster option, the workers of that cluster make the table; this needs --reduce and a hierarchy
    store.
    """
    from pipelines import open_graph, open_hierarchy
    from pipelines.files.tables import has_column
    from pipelines.od_tables.blocks import parse_reduction
    from pipelines.od_tables.points import read_points
    from pipelines.od_tables.snapping import Snapping
    from pipelines.od_tables.write import refuse_workers, write_od_table
    from pipelines.stores.place import refuse_inputs
    from pipelines.stores.schema import counted, kind_of

    asked = is_asked_for()
    refuse_inputs(out, [origins, destinations])
    computed = kind_of(store).schema == "hierarchy/1"
    source: Any = open_hierarchy(store) if computed else open_graph(store)
    opened = source.graph(graph) if computed else source
    if asked:
        refuse_workers(source, reduce)
    column = parse_reduction(reduce).column if reduce else None
    snapping = Snapping(opened, source.by_place(opened) if computed else None)
    begins = read_points(origins, opened, "origin", snap_limit=snap_limit, snapping=snapping)
    what = "destination" if destinations else "origin"
    columns = [column] if column else []
    ends = read_points(destinations or origins, opened, what, columns, snap_limit=snap_limit, snapping=snapping)
    for warning in dict.fromkeys(points.warning for points in (begins, ends) if points.warning):
        say(warning, err=True)
    if destinations is None and has_column(origins, "destination"):
        click.echo(
            f"{origins}: its column `destination` is ignored; the table will pair every origin with every origin. Name "
            "a table of destinations (--destinations), or use tilepath path --pairs for the pairs of the file",
            err=True,
        )
    if source is opened:
        click.echo(
            f"{store} is a graph, which is searched from each origin; a hierarchy store is faster (tilepath hierarchy)",
            err=True,
        )
    with open_client() if asked else nullcontext() as client:
        began = time.perf_counter()
        written = write_od_table(source, begins, ends, out, reduce=reduce, graph=opened, client=client, **options)
        seconds = time.perf_counter() - began
    if written is None:
        recorded = "" if out.rstrip("/").lower().endswith(".zarr") else ", and does not record its inputs"
        click.echo(f"{out} is already complete{recorded}; to make it again, pass --overwrite instead of --resume")
        return
    counts = f"{counted(len(begins.vertices), 'origin')}, {counted(len(ends.vertices), 'destination')}"
    unit = f", distances in {opened.weight_unit}" if opened.weight_unit else ""
    click.echo(f"{out}: {counts}, {counted(written.rows, 'row')}{unit}; {written.pairs / seconds:,.0f} pairs/s")

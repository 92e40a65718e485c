"""The command `tilepath od`: tables of distances from origins to destinations."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import click

from pipelines.workers.progress import with_prefix
from tilepath.cli.cluster import OpenClient, is_asked_for, on_cluster, with_dry_run
from tilepath.cli.help_pages import page
from tilepath.cli.messages import say
from tilepath.cli.shared_options import CRS, GRAPH, OVERWRITE, RESUME, SNAP_LIMIT, chosen_weight, point_options


@page(example="tilepath od roads.hierarchy.zarr times.parquet --origins homes.csv --destinations schools.csv")
@click.argument("store", type=click.Path())
@click.argument("out", type=click.Path())
@point_options(
    pairs="A table with a row for each pair; OUT has the same rows. The columns origin and destination have names of "
    "vertices, or ids of --origins and --destinations; or the columns origin_lon, origin_lat, destination_lon and "
    "destination_lat (or the same with x and y) have places.",
    default="By default, every vertex.",
)
@click.option(
    "--within",
    metavar="T[UNIT]",
    help="Leave out destinations farther than T, in --unit or as 2min or 500m. With --reduce also several: 5,10,15min.",
)
@click.option("--nearest", type=int, metavar="K", help="Keep the K nearest destinations of each origin.")
@click.option(
    "--reduce",
    metavar="HOW",
    help="Write one value for each origin over its destinations: count, min (distance of the nearest), sum:COLUMN, "
    "mean:COLUMN, or decay:SCALE or decay:SCALE:COLUMN, which weight each destination by exp(-distance / SCALE). "
    "Several, such as count,sum:seats, give a column each.",
)
@click.option(
    "--decay",
    type=click.Choice(["linear", "exponential"]),
    help="Weight each destination in count, sum and mean by 1 - distance / T or exp(-distance / T), T being --within.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="NAME[=GRAPH]",
    help="Add a column NAME: the sum of the weights called NAME along the same path, such as length. Or the sum of the "
    "weights of GRAPH, the same network imported with another weight. May be given several times.",
)
@click.option(
    "--unit",
    metavar="UNIT",
    help="Write distances in this unit, and read T and SCALE in it: ms, s, min, h or d; or m, km, mi or ft. By "
    "default, the unit of the network.",
)
@click.option(
    "--paths", is_flag=True, help="Add the vertices along a shortest path, and its length along the lines of the roads."
)
@CRS
@SNAP_LIMIT
@GRAPH
@RESUME
@OVERWRITE
@with_dry_run
@chosen_weight("store")
@on_cluster
def od(
    store: str,
    out: str,
    origins: str | None,
    destinations: str | None,
    pairs: str | None,
    reduce: str | None,
    also: tuple[str, ...],
    snap_limit: float | str | None,
    crs: str | None,
    graph: str | None,
    open_client: OpenClient,
    **options: Any,
) -> None:
    """Write the distances from origins to destinations to the table OUT, or as a matrix if OUT ends in .npy or .zarr.

    STORE is a hierarchy store (tilepath hierarchy), which answers fast, or a graph store, which is searched. Places are
    snapped to the nearest vertex of the largest strongly connected component. The column of distances is travel_time if
    the unit of the network is one of time, else distance; timetables are not modelled. Without --origins, every vertex
    is an origin: with --nearest or --within, the table has a row for each vertex and each near destination, and
    searches end at the limit or at the last of the nearest. By default this process makes the table on its CPU. With
    --device gpu, --workers or another cluster option, the workers of that cluster make the table; this needs --reduce
    and a hierarchy store.
    """
    from pipelines.files.layers import is_layer
    from pipelines.files.tables import has_column
    from pipelines.od_tables.given import read_given
    from pipelines.od_tables.short_limits import short_limit
    from pipelines.od_tables.write import refuse_workers, write_od_table
    from pipelines.places.networks import open_network
    from pipelines.stores.place import refuse_inputs
    from pipelines.stores.schema import counted

    asked = is_asked_for()
    refuse_inputs(out, [path for path in (origins, destinations, pairs) if path])
    network = open_network(store, graph, crs, snap_limit)
    if asked:
        refuse_workers(network.source, reduce)
    given = read_given(network, origins, destinations, pairs, reduce=reduce)
    for warning in given.warnings:
        say(warning, err=True)
    if (
        origins
        and destinations is None
        and pairs is None
        and not is_layer(origins)
        and has_column(origins, "destination")
    ):
        click.echo(
            f"{origins}: its column `destination` is ignored; the table will pair every origin with every origin. Name "
            "a table of destinations (--destinations), or pass the file as --pairs for a row for each of its pairs",
            err=True,
        )
    if given.source is given.graph:
        click.echo(
            f"{store} is a graph, which is searched from each origin; a hierarchy store is faster (tilepath hierarchy)",
            err=True,
        )
    if hint := short_limit(given, options["within"], options["unit"]):
        say(hint, err=True)
    begins, ends = given.points
    with open_client() if asked else nullcontext() as client:
        began = time.perf_counter()
        written = write_od_table(
            given.source, begins, ends, out, reduce=reduce, graph=given.graph, client=client, pairs=pairs is not None,
            also=_named_graphs(also), **options,
        )  # fmt: skip
        seconds = time.perf_counter() - began
    if written is None:
        recorded = "" if out.rstrip("/").lower().endswith(".zarr") else ", and does not record its inputs"
        click.echo(f"{out} is already complete{recorded}; to make it again, pass --overwrite instead of --resume")
        return
    counts = f"{counted(len(begins.vertices), 'origin')}, {counted(len(ends.vertices), 'destination')}"
    counts = counted(len(begins.vertices), "pair") if pairs else counts
    unit = options["unit"] or given.graph.unit
    unit = f", distances in {unit}" if unit else ""
    click.echo(f"{out}: {counts}, {counted(written.rows, 'row')}{unit}; {with_prefix(written.pairs / seconds)} pairs/s")


def _named_graphs(also: tuple[str, ...]) -> dict[str, str | None]:
    """Return the graph of each column that --also names, None for weights of the network itself."""
    found: dict[str, str | None] = {}
    for text in also:
        name, equals, path = text.partition("=")
        if not name or (equals and not path):
            raise ValueError(f"--also {text}: give NAME or NAME=GRAPH, such as length or length=length.zarr")
        found[name] = path or None
    return found

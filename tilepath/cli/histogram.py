"""The command `tilepath histogram`: how many pairs are how far apart."""

from __future__ import annotations

import click

from tilepath.cli.help_pages import page
from tilepath.cli.messages import say
from tilepath.cli.shared_options import CRS, GRAPH, OVERWRITE, SNAP_LIMIT, chosen_weight, point_options


@page(example="tilepath histogram roads.zarr lengths.csv --width 5 --unit min")
@click.argument("store", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--width",
    metavar="W[UNIT]",
    help="Width of a bin, such as 60 or 1min; by default a round number, for some 20 bins.",
)
@point_options(
    destinations="A table like --origins, with a column destination instead; by default, every vertex.",
    default="By default, every vertex.",
)
@click.option(
    "--unit",
    metavar="UNIT",
    help="Unit of distances and, without a unit of its own, of W: ms, s, min, h or d; or m, km, mi or ft.",
)
@CRS
@SNAP_LIMIT
@GRAPH
@OVERWRITE
@chosen_weight("store")
def histogram(
    store: str,
    out: str,
    width: str | None,
    origins: str | None,
    destinations: str | None,
    unit: str | None,
    snap_limit: float | str | None,
    crs: str | None,
    graph: str | None,
    overwrite: bool,
) -> None:
    """Write the distribution of distances to the table OUT: the columns begin, end and pairs, a row for each bin.

    STORE is a hierarchy store, which answers fast, or a graph store, which is searched from each origin. Only a block
    of distances is in memory at a time. The last row, from inf to inf, counts the pairs that no path joins.
    """
    from pipelines.files.tables import check_output, write_table
    from pipelines.od_tables.given import given_or_everywhere
    from pipelines.od_tables.histogram import histogram_table
    from pipelines.od_tables.units import measured
    from pipelines.places.networks import open_network
    from pipelines.stores.place import refuse_inputs
    from pipelines.stores.schema import counted

    refuse_inputs(out, [path for path in (origins, destinations) if path])
    check_output(out, overwrite)
    network = open_network(store, graph, crs, snap_limit)
    value = measured(network.graph.unit, unit)
    given = given_or_everywhere(network, origins, destinations, every_destination=True)
    for warning in given.warnings:
        say(warning, err=True)
    table = histogram_table(given, value, width)
    write_table(table, out, overwrite)
    unit_text = f", in {value.unit}" if value.unit else ""
    click.echo(f"{out}: {counted(sum(table['pairs'].to_pylist()), 'pair')} in {counted(len(table), 'bin')}{unit_text}")

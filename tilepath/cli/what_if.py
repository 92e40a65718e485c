"""The command `tilepath what-if`: the distances that change if roads are closed, or have other weights."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.help_pages import page
from tilepath.cli.messages import say
from tilepath.cli.shared_options import CRS, GRAPH, OVERWRITE, SNAP_LIMIT, chosen_weight, point_options


@page("what-if", example="tilepath what-if roads.hierarchy.zarr longer.csv --closed bridges.csv --origins homes.csv")
@click.argument("store", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--closed",
    type=click.Path(exists=True),
    help="The roads to close: a table whose columns source and target name vertices, or whose columns lon and lat (or "
    "x and y) are places, each in the middle of a road; or a layer (.gpkg, .geojson, ...) of arcs with columns source "
    "and target, or of polygons, lines or points, for the roads that they meet.",
)
@click.option(
    "--weights",
    type=click.Path(),
    help="A graph store with the same vertices and the new weights, or the name of other weights of STORE, "
    "in the unit of STORE.",
)
@click.option(
    "--each",
    is_flag=True,
    help="Close each road alone, and write a row for each road: the number of pairs of places whose distance grows, "
    "the number of pairs that are no longer joined, and the sum and the largest of the added distances.",
)
@click.option(
    "--together",
    metavar="COLUMN",
    help="With --each: close roads with equal entries in this column together, as both carriageways of a bridge.",
)
@click.option(
    "--one-way",
    is_flag=True,
    help="Close roads of a directed network from source to target only, not in both directions.",
)
@point_options(pairs="A table of pairs of places, as for tilepath od; not with --each.")
@click.option(
    "--also",
    multiple=True,
    metavar="NAME",
    help="Add the columns NAME_before and NAME_after: sums of the weights called NAME along the paths, such as length; "
    "not with --each. May be given several times.",
)
@click.option("--unit", metavar="UNIT", help="Write distances in this unit: ms, s, min, h or d; or m, km, mi or ft.")
@CRS
@SNAP_LIMIT
@GRAPH
@OVERWRITE
@chosen_weight("store")
def what_if(
    store: str,
    out: str,
    closed: str | None,
    weights: str | None,
    each: bool,
    together: str | None,
    one_way: bool,
    origins: str | None,
    destinations: str | None,
    pairs: str | None,
    also: tuple[str, ...],
    unit: str | None,
    snap_limit: float | str | None,
    crs: str | None,
    graph: str | None,
    overwrite: bool,
) -> None:
    """Write to the table OUT how distances change if roads are closed: of each pair of places, before and after.

    STORE is a hierarchy store or a graph store; it is not changed. Only pairs whose distance changes are written.
    With --each and without --origins and --destinations, all pairs of vertices are compared.
    """
    from pipelines.files.tables import check_output, write_table
    from pipelines.od_tables.given import given_or_everywhere, read_given
    from pipelines.od_tables.units import measured
    from pipelines.od_tables.what_if import change_table, criticality_table, groups_in, roads_in
    from pipelines.places.named_systems import systems_for
    from pipelines.places.networks import open_network
    from pipelines.stores.hierarchy import HierarchyStore
    from pipelines.stores.place import refuse_inputs
    from pipelines.stores.schema import counted

    if closed is None and (each or weights is None):
        raise click.UsageError(
            "name the roads to close (--closed)" + ("" if each else ", or other weights (--weights)")
        )
    if each and (weights or pairs or also):
        raise click.UsageError("--each closes one road at a time; leave out --weights, --pairs and --also")
    if together is not None and not each:
        raise click.UsageError("--together is for --each; without it, all roads are closed together")
    refuse_inputs(out, [path for path in (closed, origins, destinations, pairs) if path])
    check_output(out, overwrite)
    network = open_network(store, graph, crs, snap_limit)
    value = measured(network.graph.unit, unit)
    if each:
        assert closed is not None
        groups = None if together is None else groups_in(closed, together)
        roads: Any = roads_in(closed, network.graph)
        given = given_or_everywhere(network, origins, destinations, roads=roads)
    else:
        given = read_given(network, origins, destinations, pairs)
    for warning in given.warnings:
        say(warning, err=True)
    count, width = (len(points.vertices) for points in given.points)
    compared = counted(count if pairs else count * width, "pair")
    unit_text = f", in {value.unit}" if value.unit else ""
    if each:
        own = systems_for((roads, origins, destinations), crs)[0]
        table: Any = criticality_table(given, roads, value, groups, one_way=one_way, crs=own)
        write_table(table, out, overwrite)
        closings = counted(len(table), *(("road",) if groups is None else ("group of roads", "groups of roads")))
        click.echo(f"{out}: {closings}, each closed alone, {compared} compared{unit_text}")
        return
    roads = None if closed is None else roads_in(closed, network.graph)
    options: Any = {"closed": roads, "one_way": one_way}
    options |= {"graph": network.graph} if isinstance(network.source, HierarchyStore) else {}
    after = network.source.with_weights(weights, **options)
    table = change_table(given, after, value, pairs=pairs is not None, also=also)
    write_table(table, out, overwrite)
    click.echo(f"{out}: {len(table):,} of {compared} changed{unit_text}")

"""The command `tilepath isochrones`: the areas and the streets that are reached from places within limits."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.answers import VERTICES
from tilepath.cli.help_pages import page
from tilepath.cli.messages import say
from tilepath.cli.places import PLACES, place_in
from tilepath.cli.quantities import NUMBER
from tilepath.cli.shared_options import BACKGROUND, CRS, GRAPH, OVERWRITE, SNAP_LIMIT, TITLE, chosen_weight

SAID = 3  # up to this many places, the command says how far each place was moved


@page(
    epilog=f"{VERTICES} {PLACES}",
    example="tilepath isochrones city.zarr reached.gpkg --from 13.37,52.52 --within 5,10,15min",
)
@click.argument("network", metavar="STORE", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--from", "sources", multiple=True, metavar="PLACE", help="Where to start: a place or vertex; repeatable."
)
@click.option(
    "--from-file",
    type=click.Path(exists=True),
    help="A table of sources: a column source or vertex, or lon and lat, or x and y; a column id gives them names.",
)
@click.option(
    "--within",
    required=True,
    metavar="T[,T...][UNIT]",
    help="Limits, in the unit of the weights, or in a unit of time or length: 5,10,15min or 500,1000m.",
)
@click.option(
    "--kind",
    type=click.Choice(["concave", "convex", "buffers", "edges"]),
    default="concave",
    show_default=True,
    help="Hulls of the reached streets, buffers around them, or the streets themselves, cut where the limits end.",
)
@click.option("--reverse", is_flag=True, help="Show from where the sources are reached, instead of what they reach.")
@click.option("--together", is_flag=True, help="One area around all sources, not one for each source.")
@click.option(
    "--concavity",
    type=NUMBER,
    help="The shape of concave hulls, from 0 (closest to the streets) to 1 (convex); by default 0.3.",
)
@click.option(
    "--width",
    type=NUMBER,
    metavar="D",
    help="Distance from a street to the edge of its buffer, in metres for degrees, else in the unit of the "
    "coordinates; by default 50 m on the ground, or a hundredth of the diagonal of the network if its coordinate "
    "system is not known.",
)
@CRS
@SNAP_LIMIT
@TITLE
@BACKGROUND
@OVERWRITE
@GRAPH
@chosen_weight("network")
def isochrones(
    network: str,
    out: str,
    sources: tuple[str, ...],
    from_file: str | None,
    within: str,
    reverse: bool,
    together: bool,
    snap_limit: float | str | None,
    crs: str | None,
    graph: str | None,
    **options: Any,
) -> None:
    """Write the areas or streets that are reached within limits to OUT (.gpkg, .geojson, .geoparquet or .parquet).

    STORE is a graph store with coordinates, or a hierarchy store of such a graph. OUT has an area for each source and
    limit, the largest first; a .gpkg also has the reached streets, in the layer `edges`. If OUT ends in .html, .svg,
    .png or .pdf, it is a map of the areas and the network.
    """
    from pipelines.reach.solve import Reach, check_isochrones, check_kind, write_isochrones
    from pipelines.stores.schema import counted

    check_kind(options["kind"], options["concavity"], options["width"])
    check_isochrones(out, *(options[name] for name in ("kind", "overwrite", "title", "background")))
    if bool(sources) == (from_file is not None):
        raise click.UsageError("name the sources, either with --from or with --from-file")
    given = from_file if from_file is not None else _sources(network, graph, crs, sources)
    reach = Reach(
        network, given, within, reverse=reverse, together=together, snap_limit=snap_limit, crs=crs, graph=graph
    )
    _say_moved(reach)
    rows = write_isochrones(reach, out, **options)
    limits = ", ".join(f"{limit:g}" for limit in reach.limits.given)
    what = "edges" if options["kind"] == "edges" else "areas"
    unit = f" {reach.limits.unit}" if reach.limits.unit else ""
    of = reach.names[0] if together else counted(len(reach.names), "source")
    click.echo(f"{out}: {counted(rows, what[:-1])} within {limits}{unit} of {of}")


def _sources(network: str, graph: str | None, crs: str | None, names: tuple[str, ...]) -> Any:
    """Return the sources: a table of places, each named by its text, or a list of names of vertices."""
    import pyarrow as pa

    from pipelines.places.networks import open_network
    from pipelines.places.systems import axes_of_pairs

    opened = open_network(network, graph).graph
    found = [None if opened.find([name])[0] >= 0 else place_in(name) for name in names]
    places = [place for place in found if place is not None]
    if not places:
        return list(names)
    if len(places) < len(names):
        raise click.UsageError("--from has places and names of vertices; give only places, or only names")
    columns = dict(zip(axes_of_pairs(opened, crs), zip(*places, strict=True), strict=True))
    return pa.table({"id": [name.strip() for name in names], **columns})


def _say_moved(reach: Any) -> None:
    points = reach.points
    if reach.note:
        say(reach.note, err=True)
    if points.snapped is None:
        return
    unit = f" {points.unit}".rstrip()
    for name, vertex, moved in list(zip(points.ids, points.vertices, points.snapped, strict=True))[:SAID]:
        say(f"source {name}: moved {moved:,.1f}{unit} to vertex {reach.graph.label(int(vertex))}", err=True)
    if len(points.snapped) > SAID:
        say(f"{len(points.snapped):,} sources: moved by at most {points.snapped.max():,.1f}{unit}", err=True)
    if points.warning:
        say(points.warning, err=True)

"""The commands that compute shortest paths: `tilepath apsp | sssp`."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.answers import VERTICES
from tilepath.cli.cluster import COORDINATION, OpenClient, on_cluster, with_dry_run
from tilepath.cli.help_pages import page
from tilepath.cli.places import PLACES, AtPlaces
from tilepath.cli.quantities import BYTES, NUMBER, SECONDS_OR_NONE
from tilepath.cli.shared_options import OVERWRITE, RESUME, VERIFY_ROWS, chosen_weight

DTYPE = "Dtype of the distances; by default int32 for integer weights, else float32."
LISTED = "A file of further {0}s: one vertex per line, or a table with a column {0} or vertex, or with places."


@page(epilog=f"{VERTICES} {PLACES}", example="tilepath apsp roads.zarr distances.zarr --verify")
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int16"]), help=DTYPE)
@click.option("--source", "sources", multiple=True, metavar="VERTEX", help="Write only the row of VERTEX; repeatable.")
@click.option("--sources-file", type=click.Path(exists=True), help=LISTED.format("source"))
@click.option(
    "--method",
    type=click.Choice(["auto", "floyd-warshall", "batched", "hierarchy", "out-of-core"]),
    default="auto",
    show_default=True,
    help="batched: a search from every source, for sparse graphs; hierarchy: rows from a hierarchy, for road networks "
    "and grids; out-of-core: Floyd-Warshall on matrices larger than memory; auto: the fastest method that fits.",
)
@click.option("--block", type=click.IntRange(min=1), help="Width of a pivot block (Floyd-Warshall only).")
@click.option(
    "--commit-seconds",
    type=SECONDS_OR_NONE,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Save progress at most every SECONDS. 'none': never save before the end (needs less disk, but cannot resume).",
)
@click.option("--coordination", type=click.Choice(["scheduler", "signals"]), help=COORDINATION)
@click.option("--device-memory", type=BYTES, help="Most memory to use of each GPU, such as 16GiB.")
@click.option(
    "--host-memory",
    type=BYTES,
    help="Most memory to use of each host, such as 64GiB; a larger matrix is computed out of core.",
)
@RESUME
@OVERWRITE
@VERIFY_ROWS
@with_dry_run
@chosen_weight("graph")
@on_cluster
def apsp(
    graph: str, out: str, open_client: OpenClient, sources: tuple[str, ...], sources_file: str | None, **options: Any
) -> None:
    """Write all shortest distances of the graph store GRAPH to the store OUT.

    Floyd-Warshall may use fewer GPUs than --workers; it then prints the reason.
    """
    from gpuops.memory import size
    from pipelines import all_pairs_shortest_paths, open_graph
    from pipelines.stores.schema import store_bytes
    from pipelines.validation.certificates import rows_proved

    opened = open_graph(graph)
    vertices = _listed(opened, "source", sources, sources_file)
    with open_client() as client:
        distances = all_pairs_shortest_paths(client, opened, out, sources=vertices, progress=True, **options)
    rows, columns = distances.shape
    proved = f", {rows_proved(rows)}" if options["verify"] else ""
    click.echo(f"{out}: {rows:,} x {columns:,} {distances.dtype} distances, {size(store_bytes(out))}{proved}")


@page(epilog=f"{VERTICES} {PLACES}", example="tilepath sssp roads.zarr paths.zarr --source 1 --source 17")
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--source", "sources", multiple=True, metavar="VERTEX", help="A vertex to start from, or `all`; repeatable."
)
@click.option("--sources-file", type=click.Path(exists=True), help=LISTED.format("source"))
@click.option("--together", is_flag=True, help="Find paths from the nearest source, not from each source.")
@click.option("--cutoff", type=NUMBER, help="Vertices farther than this count as unreachable.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="VERTEX",
    help="Search only as far as the farthest target; repeatable.",
)
@click.option("--targets-file", type=click.Path(exists=True), help=LISTED.format("target"))
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32"]), help=DTYPE)
@click.option("--predecessors/--no-predecessors", default=True, help="Store predecessors (default).")
@click.option(
    "--spread",
    type=click.Choice(["sources", "vertices"]),
    help="sources: each worker holds the graph and takes some sources; vertices: each worker holds the arcs of some "
    "vertices, and all share each search. By default chosen by memory, sources and expected time.",
)
@click.option(
    "--piece-arcs", type=click.IntRange(min=1), help="Arcs that a worker holds at a time (--spread vertices)."
)
@RESUME
@OVERWRITE
@click.option("--verify", is_flag=True, help="Prove the result by certificates.")
@with_dry_run
@chosen_weight("graph")
@on_cluster
def sssp(
    graph: str,
    out: str,
    open_client: OpenClient,
    sources: tuple[str, ...],
    sources_file: str | None,
    targets: tuple[str, ...],
    targets_file: str | None,
    **options: Any,
) -> None:
    """Write shortest paths from some vertices of the graph store GRAPH to the store OUT.

    Weights may be negative. GRAPH may also name an R-MAT graph, such as rmat:24 or rmat:24:seed=3, which is generated
    during the search and never stored.
    """
    from gpuops.memory import size
    from pipelines import open_graph, single_source_shortest_paths
    from pipelines.sssp.plan import faster_device
    from pipelines.stores.schema import store_bytes
    from pipelines.stores.vertex_names import UNKNOWN
    from pipelines.validation.certificates import rows_proved

    opened = open_graph(graph)
    every = sources == ("all",) and sources_file is None and opened.find(sources)[0] == UNKNOWN  # not a label
    chosen: Any = "all" if every else _listed(opened, "source", sources, sources_file)
    if chosen is None:
        raise click.UsageError("name the vertices to start from, with --source or --sources-file")
    wanted = _listed(opened, "target", targets, targets_file)
    rows = 1 if options["together"] else opened.n if every else len(chosen)
    with open_client(lambda: faster_device(opened, rows)) as client:
        paths = single_source_shortest_paths(client, opened, out, chosen, targets=wanted, progress=True, **options)
    proved = f", {rows_proved(paths.shape[0])}" if options["verify"] else ""
    click.echo(f"{paths.describe()}, {size(store_bytes(out))}{proved}")


def _listed(graph: Any, what: str, names: tuple[str, ...], file: str | None) -> Any:
    """Return the positions of the vertices that an option and its file name, or None if neither was given."""
    from pipelines import positions
    from pipelines.files.listed_vertices import listed_vertices

    if not names and file is None:
        return None
    at = AtPlaces(graph)
    found = [*at.all(names, what), *(() if file is None else at.in_file(file, what))]
    return positions(listed_vertices(graph, what, positions(found)))

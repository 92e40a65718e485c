"""The command `tilepath`: the one place that sees both pipelines and clusters."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from pipelines.cli_euler import echo_walks, euler_command
from pipelines.cli_som import som_commands

CLUSTER_OPTIONS = (
    click.option("--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", help="Where to compute."),
    click.option("--workers", type=click.IntRange(min=1), help="Workers to start, or to wait for."),
    click.option("--processes", is_flag=True, help="CPU workers as processes of their own."),
    click.option("--protocol", type=click.Choice(["tcp", "ucx"]), help="How workers talk; ucx uses NVLink."),
    click.option("--scheduler-file", type=click.Path(), help="Join the cluster of a batch job by its file."),
    click.option("--scheduler", metavar="ADDRESS", help="Join a running cluster, such as tcp://host:8786."),
)


def main() -> None:
    """Run the command; an error a user can mend is one line, not a traceback."""
    # What fails on a worker is raised here, so that its log would say it a second time, as a traceback.
    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)
    try:
        tilepath(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. What was committed is kept: run the same command again with --resume.", err=True)
        sys.exit(130)
    except Exception as error:
        from clusters import ClusterError

        if os.environ.get("TILEPATH_TRACEBACK") or not isinstance(
            error, ValueError | OSError | ImportError | ClusterError
        ):
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="tilepath")
def tilepath() -> None:
    """Shortest paths, Euler circuits and self-organizing maps over Zarr, on a laptop or on many GPUs."""


@tilepath.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("store", type=click.Path())
@click.option("--format", "file_format", type=click.Choice(["gr", "mtx", "tntp", "edges", "parquet"]))
@click.option("--weight", metavar="COLUMN", help="Weight column by name, such as length or free_flow_time (TNTP).")
@click.option("--columns", metavar="TAIL,HEAD[,WEIGHT]", help="Columns of an edge list, by name or number from 0.")
@click.option("--delimiter", help="Between the columns of an edge list; by default blanks, or a comma in .csv.")
@click.option("--comment", metavar="CHARACTERS", help="Lines that begin with one of these are skipped.")
@click.option("--header/--no-header", default=None, help="Does an edge list begin with the names of its columns?")
@click.option("--base", type=click.IntRange(min=0), help="Number of the first vertex in an edge list; 0 by default.")
@click.option("--labels/--no-labels", default=None, help="Are the vertices of an edge list names, not numbers?")
@click.option("--undirected", is_flag=True, help="Every edge of the list goes both ways.")
@click.option("--coordinates", type=click.Path(exists=True), help="DIMACS .co file beside a .gr file.")
@click.option("--simplify", is_flag=True, help="Keep the shortest of parallel arcs, drop loops.")
@click.option("--unit", help="Unit of the weights, for display.")
@click.option("--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory to sort in; more arcs go by disk.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def import_file(file: str, store: str, **options: Any) -> None:
    """Read a graph from FILE into the graph store STORE.

    DIMACS .gr, Matrix Market .mtx, TNTP .tntp, edge lists (.txt, .csv, .tsv, ...) and Parquet are read in pieces: the
    file may be larger than memory.
    """
    from pipelines.formats import import_graph
    from pipelines.store_info import describe_graph

    options["format"] = options.pop("file_format")
    options["directed"] = False if options.pop("undirected") else None
    if options["columns"] is not None:
        options["columns"] = options["columns"].split(",")
    if options["memory"] is not None:
        options["memory"] <<= 20
    given = {name: value for name, value in options.items() if value is not None}
    click.echo(describe_graph(import_graph(file, store, **given)))


@tilepath.command("generate")
@click.argument(
    "kind",
    type=click.Choice(["rmat", "grid", "road", "random", "dag", "negative-cycle", "euler", "euler-shallow"]),
)
@click.argument("store", type=click.Path())
@click.option("--scale", type=int, metavar="S", help="Make 2^S vertices.")
@click.option("--vertices", "n", type=int, metavar="N", help="Make N vertices (not rmat, grid, road).")
@click.option("--edges", type=int, metavar="M", help="Arcs of euler-shallow; by default three for each vertex.")
@click.option("--max-degree", "k", type=int, metavar="K", help="Arcs out of a vertex of euler at most; 7 by default.")
@click.option("--rows", type=int, help="Rows of a grid or road network.")
@click.option("--columns", type=int, help="Its columns; by default as many as rows.")
@click.option("--edge-factor", type=int, help="Edges per vertex in the mean; 16 by default (not grid, road).")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same graph anywhere.")
@click.option(
    "--directed", is_flag=True, default=None, help="Edges lead one way; only those of the first four need not."
)
@click.option(
    "--weights",
    type=click.Choice(["uniform", "integers", "lengths"]),
    help="Floats from (0, 1], integers from 1 to 255, or (grid, road) Euclidean lengths.",
)
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int64"]), help="Dtype of the weights.")
@click.option(
    "--shift", type=float, help="Make weights negative, but no cycle, by potentials up to SHIFT times the top."
)
@click.option(
    "--quadrants", type=float, nargs=3, metavar="A B C", help="Probabilities of rmat; .57 .19 .19 by default."
)
@click.option("--unscrambled", is_flag=True, help="Leave the vertices of rmat in the order of the recursion.")
@click.option("--missing", type=float, help="Share of the streets missing from grid and road, of those to spare.")
@click.option("--jitter", type=float, help="How far vertices of grid and road are moved, up to 0.49 of a block.")
@click.option("--negative", type=float, help="Share of the arcs of dag that have negative weights; 0.5 by default.")
@click.option("--length", type=int, help="Arcs on the cycle of negative-cycle; 8 by default.")
@click.option("--isolated", is_flag=True, default=None, help="No arc leads to the cycle of negative-cycle.")
@click.option("--simplify", is_flag=True, help="Keep the shortest of parallel arcs, drop loops.")
@click.option("--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory to sort in; more arcs go by disk.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def generate_graph(kind: str, store: str, **options: Any) -> None:
    """Make a graph of a KIND and write it to the graph store STORE.

    rmat: Kronecker graph with the parameters of Graph500. grid: four neighbours. road: a jittered grid with missing
    streets, weighted by length. random: uniform ends. dag: acyclic, with negative arcs. negative-cycle: random, with
    negative arcs and one negative cycle, which is named. euler, euler-shallow: with an Euler circuit, whose pairing
    falls into few circuits or into very many; the latter has one vertex less than N, as published. Only the first four
    are undirected by default. All but euler may be larger than memory.
    """
    from pipelines.generators import generate, synthetic_graph
    from pipelines.store_info import describe_graph

    stored: dict[str, Any] = {name: options.pop(name) for name in ("simplify", "overwrite", "memory")}
    if stored["memory"] is not None:
        stored["memory"] <<= 20
    if options["quadrants"] is not None:
        options |= dict(zip("abc", options["quadrants"], strict=True))
    options["scrambled"] = False if options.pop("unscrambled") else None
    del options["quadrants"]
    if kind == "euler-shallow":
        options["vertices"] = options.pop("n")
    given = {name: value for name, value in options.items() if value is not None}
    click.echo(describe_graph(generate(synthetic_graph(kind, **given), store, progress=True, **stored)))


@tilepath.command()
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int16"]), help="Dtype of the distances.")
@click.option("--source", "sources", multiple=True, help="Keep the rows of these vertices only; repeatable.")
@click.option(
    "--method",
    type=click.Choice(["auto", "floyd-warshall", "batched"]),
    default="auto",
    show_default=True,
    help="batched searches from each source: for sparse graphs.",
)
@click.option("--block", type=click.IntRange(min=1), help="Width of a pivot block of Floyd-Warshall.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT; begin it if there is none.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@click.option("--verify", is_flag=True, help="Check the result by certificates on sampled rows.")
@click.pass_context
def apsp(ctx: click.Context, graph: str, out: str, sources: tuple[str, ...], **options: Any) -> None:
    """Write all shortest distances of the graph store GRAPH to the store OUT."""
    from pipelines.apsp.solve import all_pairs_shortest_paths
    from pipelines.stores import open_graph, store_bytes

    cluster = {name: options.pop(name) for name in _CLUSTER_NAMES}
    opened = open_graph(graph)
    vertices = [opened.vertex(name) for name in sources] or None
    with _client(cluster) as client:
        distances = all_pairs_shortest_paths(client, opened, out, sources=vertices, progress=True, **options)
    checked = ", verified" if options["verify"] else ""
    rows, columns = distances.shape
    click.echo(f"{out}: {rows:,} x {columns:,} {distances.dtype} distances, {_size(store_bytes(out))}{checked}")


@tilepath.command()
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--source", "sources", multiple=True, required=True, help="A vertex to start from; repeatable. Or: all.")
@click.option("--together", is_flag=True, help="All sources count as one: paths from the nearest of them.")
@click.option("--cutoff", type=float, help="Vertices farther than this count as unreachable.")
@click.option("--target", "targets", multiple=True, help="Keep what is as near as the farthest target; repeatable.")
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32"]), help="Dtype of the distances.")
@click.option("--predecessors/--no-predecessors", default=True, help="Are they to be kept? By default they are.")
@click.option("--spread", type=click.Choice(["sources", "vertices"]), help="How to use many workers; chosen by size.")
@click.option("--piece-arcs", type=click.IntRange(min=1), help="Arcs that a worker holds at a time, by vertices.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT; begin it if there is none.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@click.option("--verify", is_flag=True, help="Check the result by certificates.")
@click.pass_context
def sssp(
    ctx: click.Context, graph: str, out: str, sources: tuple[str, ...], targets: tuple[str, ...], **options: Any
) -> None:
    """Write shortest paths from some vertices of the graph store GRAPH to the store OUT.

    Vertices go by label or index. Weights may be negative.
    """
    from pipelines.sssp.solve import single_source_shortest_paths
    from pipelines.store_info import describe_paths
    from pipelines.stores import open_graph, store_bytes

    cluster = {name: options.pop(name) for name in _CLUSTER_NAMES}
    opened = open_graph(graph)
    chosen: Any = "all" if sources == ("all",) else [opened.vertex(name) for name in sources]
    wanted = [opened.vertex(name) for name in targets] or None
    with _client(cluster) as client:
        paths = single_source_shortest_paths(client, opened, out, chosen, targets=wanted, progress=True, **options)
    checked = ", verified" if options["verify"] else ""
    click.echo(f"{describe_paths(paths)}, {_size(store_bytes(out))}{checked}")


@tilepath.command()
@click.argument("store", type=click.Path())
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option("--pairs", type=click.Path(exists=True), help="CSV or Parquet with columns source and target.")
@click.option("--out", type=click.Path(), help="Where the table of --pairs, or of circuits, goes (.csv or .parquet).")
@click.option("--graph", type=click.Path(), help="The graph store, if it was moved.")
def path(
    store: str, source: str | None, target: str | None, pairs: str | None, out: str | None, graph: str | None
) -> None:
    """Print a shortest path of STORE, a store of distances or of paths, between vertices given by label or index.

    In a store of paths from the nearest of several sources, TARGET alone will do. Of a store of Euler circuits, print
    the walks, or write them to the table --out.
    """
    from pipelines.paths import paths_of_pairs, shortest_path
    from pipelines.stores import open_distances, store_schema

    if store_schema(store) == "circuits/1":
        if source is not None or target is not None or pairs is not None:
            raise click.UsageError("a store of Euler circuits has its own walks; leave SOURCE, TARGET and --pairs out")
        echo_walks(store, out, graph)
        return
    if store_schema(store) == "paths/1":
        if pairs is not None or out is not None:
            raise click.UsageError("--pairs reads a store of distances; a store of paths gives one path at a time")
        _echo_tree_path(store, source, target, graph)
        return
    distances = open_distances(store)
    opened = distances.graph(graph)
    if pairs is not None:
        if source is not None or out is None:
            raise click.UsageError("--pairs takes the pairs from its file and needs --out; leave SOURCE and TARGET out")
        table = paths_of_pairs(distances, opened, pairs, out)
        click.echo(f"{out}: {table.num_rows:,} paths")
        return
    if source is None or target is None:
        raise click.UsageError("name SOURCE and TARGET, or a table with --pairs")
    found = shortest_path(distances, opened, opened.vertex(source), opened.vertex(target))
    _echo_path(opened, found.vertices, found.distance)


@tilepath.command()
@click.argument("store", type=click.Path())
@click.option("--out", type=click.Path(), help="Write eccentricity and closeness of every vertex (.csv or .parquet).")
def stats(store: str, out: str | None) -> None:
    """Print diameter, radius and other measures of the distances store STORE."""
    from pipelines.measures import measures
    from pipelines.stores import open_distances

    distances = open_distances(store)
    found = measures(distances)
    _echo_measures(found, distances)
    if out is not None:
        found.write(out)
        click.echo(f"{out}: eccentricity and closeness of {distances.shape[0]:,} vertices")


@tilepath.command()
@click.argument("store", type=click.Path())
@click.option("--verify", is_flag=True, help="Reread everything and compare with what was recorded.")
def info(store: str, verify: bool) -> None:
    """Print what STORE is, its size and its progress."""
    from pipelines.store_info import store_info

    for line in store_info(store, verify):
        click.echo(line)


@tilepath.command()
@click.argument("store", type=click.Path())
@click.argument("image", type=click.Path())
def picture(store: str, image: str) -> None:
    """Draw the distances store STORE to IMAGE (.png, .pdf or .svg)."""
    from pipelines.pictures import picture_distances
    from pipelines.stores import open_distances

    picture_distances(open_distances(store), image)
    click.echo(image)


def _add_options(command: click.Command, options: tuple[Callable[[Any], Any], ...]) -> None:
    for option in reversed(options):
        option(command)


_add_options(apsp, CLUSTER_OPTIONS)
_add_options(sssp, CLUSTER_OPTIONS)
_CLUSTER_NAMES = ("device", "workers", "processes", "protocol", "scheduler_file", "scheduler")


@contextmanager
def _client(options: dict[str, Any]) -> Iterator[Any]:
    """A client of the cluster the options ask for: joined if one is named, else started."""
    from clusters import join, start

    if options["scheduler_file"] or options["scheduler"]:
        client = join(
            scheduler_file=options["scheduler_file"], address=options["scheduler"], workers=options["workers"]
        )
    else:
        client = start(
            device=options["device"],
            workers=options["workers"],
            processes=options["processes"] or None,
            protocol=options["protocol"],
        )
    with client:
        yield client


def _echo_tree_path(store: str, source: str | None, target: str | None, graph: str | None) -> None:
    from pipelines.stores import open_paths
    from pipelines.tree_paths import tree_path

    paths = open_paths(store)
    opened = paths.graph(graph)
    if target is None and paths.together:
        source, target = None, source
    if target is None or (source is None and not paths.together):
        raise click.UsageError("name SOURCE and TARGET")
    start = None if source is None else opened.vertex(source)
    found = tree_path(paths, opened, start, opened.vertex(target))
    _echo_path(opened, found.vertices, found.distance)


def _echo_path(graph: Any, vertices: tuple[int, ...], distance: float) -> None:
    from pipelines.store_info import number

    labels = [graph.label(v) for v in vertices]
    unit = f" {graph.weight_unit}" if graph.weight_unit else ""
    click.echo(f"{labels[0]} -> {labels[-1]}: {number(distance)}{unit} over {len(labels) - 1} arcs")
    click.echo(" -> ".join(labels))


def _echo_measures(found: Any, distances: Any) -> None:
    from pipelines.store_info import number

    graph = distances.graph()
    unit = f" {graph.weight_unit}" if graph.weight_unit else ""
    lines = {
        "diameter": f"{number(found.diameter)}{unit}",
        "radius": f"{number(found.radius)}{unit}",
        "mean distance": f"{number(found.mean_distance)}{unit}",
        "unreachable pairs": f"{found.unreachable_pairs:,}",
    }
    for name, value in lines.items():
        click.echo(f"{name:18} {value}")


def _size(count: int) -> str:
    from pipelines.progress import size

    return size(count)


tilepath.add_command(som_commands(CLUSTER_OPTIONS, _client))
tilepath.add_command(euler_command(CLUSTER_OPTIONS, _client))

"""The command `tilepath`: the one place that sees both pipelines and clusters."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from pipelines.workers.interruption import Interrupted, asked, boundaries, handling
from tilepath.cli.answers import VERTICES, path, picture, stats
from tilepath.cli.euler import euler_command
from tilepath.cli.som import som_commands

CLUSTER_OPTIONS = (
    click.option("--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", help="Where to compute."),
    click.option("--workers", type=click.IntRange(min=1), help="Workers to start, or to wait for."),
    click.option("--processes", is_flag=True, help="CPU workers as processes of their own."),
    click.option("--protocol", type=click.Choice(["tcp", "ucx"]), help="How workers talk; ucx uses NVLink."),
    click.option("--scheduler-file", type=click.Path(), help="Join the cluster of a batch job by its file."),
    click.option("--scheduler", metavar="ADDRESS", help="Join a running cluster, such as tcp://host:8786."),
)

LISTED = "More of them, one on each line, or in the column {0} (or vertex) of a table."


def main() -> None:
    """Run the command; an error a user can mend is one line, not a traceback."""
    try:
        with handling():
            tilepath(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        message = "Interrupted."
        if isinstance(error.__cause__ or error, Interrupted):
            message += f" What is committed is kept; go on with: {_command_to_go_on(sys.argv[1:])}"
        click.echo(message, err=True)
        sys.exit(130)
    except Exception as error:
        from clusters import ClusterError

        if os.environ.get("TILEPATH_TRACEBACK") or not isinstance(
            error, ValueError | OSError | ImportError | ClusterError
        ):
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def _command_to_go_on(arguments: list[str]) -> str:
    """The command of an interrupted run, with --resume."""
    kept = [argument for argument in arguments if argument not in ("--resume", "--overwrite")]
    end = kept.index("--") if "--" in kept else len(kept)
    return shlex.join(["tilepath", *kept[:end], "--resume", *kept[end:]])


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
@click.option(
    "--vertices", type=click.IntRange(min=1), help="Number of vertices of an edge list; some may have no edge."
)
@click.option("--labels/--no-labels", default=None, help="Are the vertices of an edge list names, not numbers?")
@click.option("--undirected", is_flag=True, help="Every edge of the list goes both ways.")
@click.option("--coordinates", type=click.Path(exists=True), help="DIMACS .co file beside a .gr file.")
@click.option("--simplify", is_flag=True, help="Keep the shortest of parallel arcs, drop loops.")
@click.option(
    "--unsorted", is_flag=True, help="Keep the arcs of a vertex in the order of the file, not sorted by head."
)
@click.option("--unit", help="Unit of the weights, for display.")
@click.option("--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory to sort in; more arcs go by disk.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def import_file(file: str, store: str, **options: Any) -> None:
    """Read a graph from FILE into the graph store STORE.

    DIMACS .gr, Matrix Market .mtx, TNTP .tntp, edge lists (.txt, .csv, .tsv, ...) and Parquet are read in pieces: the
    file may be larger than memory. Columns of edge lists and Parquet are known by names such as source, target and
    weight, else by position. What was taken for a header, and which columns were read, is printed.
    """
    from pipelines.formats.graphs import import_graph
    from tilepath.cli.describe import describe_graph

    options["format"] = options.pop("file_format")
    options["directed"] = False if options.pop("undirected") else None
    options["sorted_rows"] = not options.pop("unsorted")
    if options["columns"] is not None:
        options["columns"] = options["columns"].split(",")
    if options["memory"] is not None:
        options["memory"] <<= 20
    given = {name: value for name, value in options.items() if value is not None}
    click.echo(describe_graph(import_graph(file, store, report=click.echo, **given)))


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
@click.option("--unsorted", is_flag=True, help="Keep the arcs of a vertex as they are made, not sorted by head.")
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
    from tilepath.cli.describe import describe_graph

    stored: dict[str, Any] = {name: options.pop(name) for name in ("simplify", "overwrite", "memory")}
    stored["sorted_rows"] = not options.pop("unsorted")
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


@tilepath.command(epilog=VERTICES)
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int16"]), help="Dtype of the distances.")
@click.option("--source", "sources", multiple=True, help="Keep the row of this vertex only; repeatable, each once.")
@click.option("--sources-file", type=click.Path(exists=True), help=LISTED.format("source"))
@click.option(
    "--method",
    type=click.Choice(["auto", "floyd-warshall", "batched"]),
    default="auto",
    show_default=True,
    help="batched searches from every source, for sparse graphs; auto takes what is quicker.",
)
@click.option("--block", type=click.IntRange(min=1), help="Width of a pivot block; for Floyd-Warshall only.")
@click.option(
    "--commit-seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Least time between two commits of Floyd-Warshall.",
)
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT; begin it if there is none.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@click.option("--verify", is_flag=True, help="Check the result by certificates on sampled rows.")
@click.pass_context
def apsp(
    ctx: click.Context, graph: str, out: str, sources: tuple[str, ...], sources_file: str | None, **options: Any
) -> None:
    """Write all shortest distances of the graph store GRAPH to the store OUT."""
    from pipelines.apsp.solve import all_pairs_shortest_paths
    from pipelines.stores import open_graph, store_bytes
    from pipelines.validation.certificates import rows_verified

    cluster = {name: options.pop(name) for name in _CLUSTER_NAMES}
    opened = open_graph(graph)
    vertices = _listed(opened, "source", sources, sources_file)
    with _client(cluster) as client:
        distances = all_pairs_shortest_paths(client, opened, out, sources=vertices, progress=True, **options)
    rows, columns = distances.shape
    checked = f", {rows_verified(rows)}" if options["verify"] else ""
    click.echo(f"{out}: {rows:,} x {columns:,} {distances.dtype} distances, {_size(store_bytes(out))}{checked}")


@tilepath.command(epilog=VERTICES)
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--source", "sources", multiple=True, help="A vertex to start from; repeatable, each once. Or: all.")
@click.option("--sources-file", type=click.Path(exists=True), help=LISTED.format("source"))
@click.option("--together", is_flag=True, help="All sources count as one: paths from the nearest of them.")
@click.option("--cutoff", type=float, help="Vertices farther than this count as unreachable.")
@click.option("--target", "targets", multiple=True, help="Keep what is as near as the farthest target; repeatable.")
@click.option("--targets-file", type=click.Path(exists=True), help=LISTED.format("target"))
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32"]), help="Dtype of the distances.")
@click.option("--predecessors/--no-predecessors", default=True, help="Are they to be kept? By default they are.")
@click.option("--spread", type=click.Choice(["sources", "vertices"]), help="How to use many workers; chosen by size.")
@click.option("--piece-arcs", type=click.IntRange(min=1), help="Arcs that a worker holds at a time, by vertices.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT; begin it if there is none.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@click.option("--verify", is_flag=True, help="Check the result by certificates.")
@click.pass_context
def sssp(
    ctx: click.Context,
    graph: str,
    out: str,
    sources: tuple[str, ...],
    sources_file: str | None,
    targets: tuple[str, ...],
    targets_file: str | None,
    **options: Any,
) -> None:
    """Write shortest paths from some vertices of the graph store GRAPH to the store OUT.

    Weights may be negative.
    """
    from pipelines.sssp.solve import single_source_shortest_paths
    from pipelines.stores import open_graph, store_bytes
    from pipelines.stores.vertex_names import UNKNOWN
    from pipelines.validation.certificates import rows_verified
    from tilepath.cli.describe import describe_paths

    cluster = {name: options.pop(name) for name in _CLUSTER_NAMES}
    opened = open_graph(graph)
    every = sources == ("all",) and sources_file is None and opened.find(sources)[0] == UNKNOWN  # not a label
    chosen: Any = "all" if every else _listed(opened, "source", sources, sources_file)
    if chosen is None:
        raise click.UsageError("name the vertices to start from, with --source or --sources-file")
    wanted = _listed(opened, "target", targets, targets_file)
    with _client(cluster) as client:
        paths = single_source_shortest_paths(client, opened, out, chosen, targets=wanted, progress=True, **options)
    checked = f", {rows_verified(paths.shape[0])}" if options["verify"] else ""
    click.echo(f"{describe_paths(paths)}, {_size(store_bytes(out))}{checked}")


@tilepath.command()
@click.argument("store", type=click.Path())
@click.option("--verify", is_flag=True, help="Reread everything and compare with what was recorded.")
@click.option("--json", "as_json", is_flag=True, help="Print facts for scripts, numbers in full.")
def info(store: str, verify: bool, as_json: bool) -> None:
    """Print what STORE is, its size and its progress."""
    from tilepath.cli.describe import store_facts, store_info

    if as_json:
        click.echo(json.dumps(store_facts(store, verify), indent=2))
        return
    for line in store_info(store, verify):
        click.echo(line)


@tilepath.command()
@click.argument("store", type=click.Path())
@click.option("--rows", metavar="N", default="16", show_default=True, help="Rows to certify, or: all.")
@click.option("--graph", type=click.Path(), help="The graph store, if it was moved.")
def verify(store: str, rows: str, graph: str | None) -> None:
    """Verify STORE: that it holds what was recorded and, for distances and paths, that rows of it are right.

    The certificate of a row proves it against the graph, without a second solver. Rows are chosen at random, but for
    the first and the last.
    """
    from pipelines.validation.certificates import certify, describe_certificate
    from tilepath.cli.describe import store_facts, store_info

    if rows != "all" and not (rows.isdecimal() and int(rows)):
        raise click.UsageError(f"--rows is {rows}; give a number of rows, or all")
    for line in store_info(store, verify=True):
        click.echo(line)
    facts = store_facts(store)
    if facts["complete"] and facts["schema"] in ("distances/1", "paths/1"):
        found = certify(store, graph, "all" if rows == "all" else int(rows))
        click.echo(describe_certificate(*found))


def _add_options(command: click.Command, options: tuple[Callable[[Any], Any], ...]) -> None:
    for option in reversed(options):
        option(command)


_add_options(apsp, CLUSTER_OPTIONS)
_add_options(sssp, CLUSTER_OPTIONS)
_CLUSTER_NAMES = ("device", "workers", "processes", "protocol", "scheduler_file", "scheduler")


@contextmanager
def _client(options: dict[str, Any]) -> Iterator[Any]:
    """A client of the cluster the options ask for: joined if one is named, else started."""
    with boundaries():  # workers that are starting cannot be stopped in good order
        client = _open_client(options)
        interrupted = asked()
    with client:
        if interrupted:
            raise KeyboardInterrupt
        yield client


def _open_client(options: dict[str, Any]) -> Any:
    from clusters import join, start

    if options["scheduler_file"] or options["scheduler"]:
        return join(scheduler_file=options["scheduler_file"], address=options["scheduler"], workers=options["workers"])
    return start(
        device=options["device"],
        workers=options["workers"],
        processes=options["processes"] or None,
        protocol=options["protocol"],
    )


def _listed(graph: Any, what: str, names: tuple[str, ...], file: str | None) -> tuple[int, ...] | None:
    """The vertices of an option and of its file, None if neither was given."""
    from pipelines.answers.listed_vertices import listed_vertices, vertices_in_file

    if not names and file is None:
        return None
    return listed_vertices(graph, what, [*names, *(() if file is None else vertices_in_file(graph, what, file))])


def _size(count: int) -> str:
    from pipelines.workers.progress import size

    return size(count)


tilepath.add_command(som_commands(CLUSTER_OPTIONS, _client))
for command in (path, stats, picture):
    tilepath.add_command(command)
tilepath.add_command(euler_command(CLUSTER_OPTIONS, _client))

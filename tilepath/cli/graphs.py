"""The commands that make graph stores: `tilepath import | generate`."""

from __future__ import annotations

from typing import Any

import click

KINDS = ["rmat", "grid", "road", "random", "dag", "negative-cycle", "euler", "euler-shallow"]


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("store", type=click.Path())
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["gr", "mtx", "tntp", "edges", "parquet", "graphml", "adjacency"]),
    help="By default by the suffix.",
)
@click.option("--weight", metavar="COLUMN", help="Weight column by name, such as length or free_flow_time (TNTP).")
@click.option("--columns", metavar="TAIL,HEAD[,WEIGHT]", help="Columns of an edge list, by name or number from 0.")
@click.option("--delimiter", help="Between the columns of an edge list; by default blanks, or a comma in .csv.")
@click.option("--comment", metavar="CHARACTERS", help="Lines that begin with one of these are skipped.")
@click.option("--header/--no-header", default=None, help="The first line of an edge list names its columns.")
@click.option("--base", type=click.IntRange(min=0), help="Number of the first vertex in an edge list; 0 by default.")
@click.option(
    "--vertices", type=click.IntRange(min=1), help="Number of vertices of an edge list; some may have no edge."
)
@click.option("--labels/--no-labels", default=None, help="Vertices of an edge list are names, not numbers.")
@click.option("--undirected", is_flag=True, help="Every edge of the list leads both ways.")
@click.option(
    "--coordinates",
    type=click.Path(exists=True),
    help="DIMACS .co file beside a .gr file, or a Parquet table of nodes with x and y.",
)
@click.option("--simplify", is_flag=True, help="Keep the shortest of parallel arcs, drop loops.")
@click.option(
    "--unsorted", is_flag=True, help="Keep the arcs of a vertex in the order of the file, not sorted by head."
)
@click.option("--unit", help="Unit of the weights, for display.")
@click.option(
    "--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory to sort in; larger graphs use the disk."
)
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def import_file(file: str, store: str, **options: Any) -> None:
    """Read a graph from FILE into the graph store STORE.

    DIMACS .gr, Matrix Market .mtx, TNTP .tntp, edge lists (.txt, .csv, .tsv, ...), GraphML, Parquet and lines
    `a -> b, c` (.adj, or .txt with an arrow in its first line) are read in pieces: the file may be larger than memory.
    Columns of edge lists and Parquet are found by names such as source, target and weight, else by position. The header
    and the columns that were taken are printed.
    """
    from pipelines import import_graph

    options["format"] = options.pop("file_format")
    options["directed"] = False if options.pop("undirected") else None
    options["sorted_rows"] = not options.pop("unsorted")
    if options["columns"] is not None:
        options["columns"] = options["columns"].split(",")
    if options["memory"] is not None:
        options["memory"] <<= 20
    given = {name: value for name, value in options.items() if value is not None}
    click.echo(import_graph(file, store, report=click.echo, **given).describe())


@click.command("generate")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("store", type=click.Path())
@click.option("--scale", type=int, metavar="S", help="Make 2^S vertices.")
@click.option("--vertices", "n", type=int, metavar="N", help="Make N vertices (not rmat, grid, road).")
@click.option("--edges", type=int, metavar="M", help="Arcs of euler-shallow; by default three per vertex.")
@click.option("--max-degree", "k", type=int, metavar="K", help="Largest out-degree of euler; 7 by default.")
@click.option("--rows", type=int, help="Rows of a grid or road network.")
@click.option("--columns", type=int, help="Its columns; by default as many as rows.")
@click.option("--edge-factor", type=int, help="Mean number of edges per vertex; 16 by default (not grid, road).")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same graph anywhere.")
@click.option(
    "--directed", is_flag=True, default=None, help="Edges lead one way; only those of the first four kinds need not."
)
@click.option(
    "--weights",
    type=click.Choice(["uniform", "integers", "lengths"]),
    help="Floats from (0, 1], integers from 1 to 255, or (grid, road) Euclidean lengths.",
)
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int64"]), help="Dtype of the weights.")
@click.option(
    "--shift",
    type=float,
    help="Make weights negative, but no cycle, by potentials of up to SHIFT times the largest weight.",
)
@click.option(
    "--quadrants", type=float, nargs=3, metavar="A B C", help="Probabilities of rmat; .57 .19 .19 by default."
)
@click.option("--unscrambled", is_flag=True, help="Leave the vertices of rmat in the order of the recursion.")
@click.option(
    "--missing", type=float, help="Share of the streets that are missing, of those that can be spared (grid, road)."
)
@click.option("--jitter", type=float, help="How far vertices of grid and road are moved, up to 0.49 of a block.")
@click.option("--negative", type=float, help="Share of the arcs of dag that have negative weights; 0.5 by default.")
@click.option("--length", type=int, help="Arcs on the cycle of negative-cycle; 8 by default.")
@click.option("--isolated", is_flag=True, default=None, help="No arc leads to the cycle of negative-cycle.")
@click.option(
    "--simplify", is_flag=True, help="Keep the shortest of parallel arcs, drop loops (not of euler and euler-shallow)."
)
@click.option("--unsorted", is_flag=True, help="Keep the arcs of a vertex as they are generated, not sorted by head.")
@click.option(
    "--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory to sort in; larger graphs use the disk."
)
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
def generate_graph(kind: str, store: str, **options: Any) -> None:
    """Generate a graph of KIND and write it to the graph store STORE.

    rmat: Kronecker graph with the parameters of Graph500. grid: four neighbours. road: a jittered grid with missing
    streets, weighted by length. random: both ends of an edge uniform. dag: acyclic, with negative arcs.
    negative-cycle: random, with negative arcs and one negative cycle, which is named. euler, euler-shallow: with an
    Euler circuit, whose pairing falls into few circuits or into very many; the latter has one vertex less than N, as
    published. Only the first four are undirected by default. All but euler may be larger than memory.
    """
    from pipelines import generate, synthetic_graph

    stored: dict[str, Any] = {name: options.pop(name) for name in ("simplify", "overwrite", "memory")}
    stored["sorted_rows"] = not options.pop("unsorted")
    if stored["memory"] is not None:
        stored["memory"] <<= 20
    if options["quadrants"] is not None:
        options |= dict(zip("abc", options["quadrants"], strict=True))
    options["scrambled"] = False if options.pop("unscrambled") else None
    del options["quadrants"]
    if kind in ("euler-shallow", "grid", "rmat", "road"):  # the last three refuse it by the name of the option
        options["vertices"] = options.pop("n")
    given = {name: value for name, value in options.items() if value is not None}
    click.echo(generate(synthetic_graph(kind, **given), store, progress=True, **stored).describe())

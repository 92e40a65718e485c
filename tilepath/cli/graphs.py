"""The commands that make graph stores: `tilepath import | generate`."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.help_pages import page
from tilepath.cli.messages import say
from tilepath.cli.quantities import NUMBER
from tilepath.cli.shared_options import MEMORY, OVERWRITE

KINDS = ["rmat", "grid", "road", "random", "dag", "negative-cycle", "euler", "euler-shallow"]


@page("import", example="tilepath import scripts/data/rome99.gr roads.zarr")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.argument("store", type=click.Path())
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["gr", "mtx", "tntp", "edges", "parquet", "graphml", "adjacency", "layers", "osm"]),
    help="Format of FILE; by default chosen by its suffix.",
)
@click.option("--weight", metavar="COLUMN", help="Name of the weight column, such as length or free_flow_time (TNTP).")
@click.option(
    "--also",
    multiple=True,
    metavar="COLUMN[:UNIT]",
    help="Keep these weights, too, under the name of their column; commands choose among them by --weight. A unit of "
    "time or length may follow, as in length:m. May be given several times.",
)
@click.option("--columns", metavar="TAIL,HEAD[,WEIGHT]", help="Columns of an edge list, by name or number from 0.")
@click.option("--layer", metavar="NAME", help="The layer of lines to read; by default the only such layer.")
@click.option(
    "--oneway",
    metavar="COLUMN",
    help="Column of a layer of lines: yes (along the line), -1 (against it) or no; by default `oneway` if it is there.",
)
@click.option(
    "--crs",
    metavar="NAME",
    help="Coordinate system of coordinates that do not record their own, such as EPSG:25833; by default, longitude and "
    "latitude if the numbers could be these.",
)
@click.option(
    "--attribution",
    metavar="TEXT",
    help="Text that every picture and map of the graph shows, such as '© OpenStreetMap contributors', which graphs of "
    "OSMnx have by default.",
)
@click.option(
    "--profile",
    metavar="NAME|FILE",
    help="Who uses the roads of OpenStreetMap: car (default), bike, foot, or a .toml file, a copy of a profile with "
    "changes.",
)
@click.option("--delimiter", help="Delimiter of the columns of an edge list; by default blanks, or a comma in .csv.")
@click.option("--comment", metavar="CHARACTERS", help="Skip lines that begin with one of these characters.")
@click.option("--header/--no-header", default=None, help="The first line of an edge list names its columns.")
@click.option("--base", type=click.IntRange(min=0), help="Number of the first vertex in an edge list; by default 0.")
@click.option(
    "--vertices", type=click.IntRange(min=1), help="Number of vertices of an edge list; some may have no edge."
)
@click.option("--labels/--no-labels", default=None, help="Vertices of an edge list are names, not numbers.")
@click.option(
    "--undirected/--directed",
    default=None,
    help="Take every edge in both directions, or only from tail to head; by default as FILE says; tables are directed.",
)
@click.option(
    "--coordinates",
    type=click.Path(exists=True),
    help="File of coordinates: a DIMACS .co file, TNTP's _node.tntp, or a table (CSV, TSV, Parquet) with the columns "
    "node, x and y.",
)
@click.option(
    "--turns",
    is_flag=False,
    flag_value="",
    metavar="[TABLE]",
    help="Forbid turns, or let them cost something: by the table TABLE (tilepath graph turns --help), or, without "
    "TABLE, by the turn restrictions of OpenStreetMap. Write this option last, or as --turns=TABLE.",
)
@click.option("--angles", metavar="TABLE", help="Costs of turns by their angles (tilepath graph turns --help).")
@click.option("--simplify", is_flag=True, help="Keep only the shortest of parallel arcs, and drop loops.")
@click.option(
    "--unsorted", is_flag=True, help="Keep the arcs of a vertex in the order of the file, not sorted by head."
)
@click.option(
    "--unit",
    help="Unit of the weights, such as s or km; any other text, such as euros, is only shown. Lengths of lines are "
    "converted to another unit of length.",
)
@MEMORY
@OVERWRITE
def import_file(file: str, store: str, **options: Any) -> None:
    """Read a graph from FILE into the graph store STORE.

    Formats: DIMACS .gr, Matrix Market .mtx, TNTP .tntp, edge lists (.txt, .csv, .tsv, ...), GraphML, Parquet,
    adjacency lines `a -> b, c` (.adj, or .txt with an arrow in its first line), layers of lines (.gpkg, .geojson,
    GeoParquet, .fgb, .shp), and OpenStreetMap (.osm.pbf, .osm). FILE is read in pieces, so it may be larger than
    memory, except layers. Columns of edge lists and Parquet are found by names such as source, target and weight, else
    by position. The command prints the header and the columns that it used.

    Lines of a layer join where they end. Their weights are the column --weight, or else their lengths in metres, or in
    the unit of their coordinate system.

    Of OpenStreetMap, the ways that a profile allows become arcs from junction to junction. Weights are travel times in
    seconds, or with `--weight length` lengths in metres.
    """
    from pipelines import import_graph

    options["format"] = options.pop("file_format")
    undirected = options.pop("undirected")
    options["directed"] = None if undirected is None else not undirected
    options["sorted_rows"] = not options.pop("unsorted")
    if options["columns"] is not None:
        options["columns"] = options["columns"].split(",")
    if options["memory"] is not None:
        options["memory"] <<= 20
    if options["turns"] == "":
        options["turns"] = True
    given = {name: value for name, value in options.items() if value is not None}
    click.echo(import_graph(file, store, report=say, **given).describe())


@page("generate", example="tilepath generate rmat rmat.zarr --scale 20")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("store", type=click.Path())
@click.option("--scale", type=int, metavar="S", help="Make 2^S vertices.")
@click.option("--vertices", "n", type=int, metavar="N", help="Make N vertices (not for rmat, grid, road).")
@click.option("--edges", type=int, metavar="M", help="Arcs of euler-shallow; by default three per vertex.")
@click.option("--max-degree", "k", type=int, metavar="K", help="Largest out-degree of euler; by default 7.")
@click.option("--path", is_flag=True, default=None, help="Leave out the arc 0 -> 1 of euler: an Euler path remains.")
@click.option("--rows", type=int, help="Rows of a grid or road network.")
@click.option("--columns", type=int, help="Columns of a grid or road network; by default equal to its rows.")
@click.option("--edge-factor", type=int, help="Mean number of edges per vertex; by default 16 (not for grid, road).")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed; the same seed makes the same graph anywhere."
)
@click.option(
    "--directed",
    is_flag=True,
    default=None,
    help="Make rmat, grid, road or random directed; the other kinds always are.",
)
@click.option(
    "--weights",
    type=click.Choice(["uniform", "integers", "lengths", "none"]),
    help="Floats from (0, 1], integers from 1 to 255, Euclidean lengths (grid, road), or none (only euler and "
    "euler-shallow; their default).",
)
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int64"]), help="Dtype of the weights.")
@click.option(
    "--shift",
    type=NUMBER,
    help="Make some weights negative, without a negative cycle, by potentials of up to SHIFT times the largest weight.",
)
@click.option(
    "--quadrants", type=NUMBER, nargs=3, metavar="A B C", help="Probabilities of rmat; by default .57 .19 .19."
)
@click.option("--unscrambled", is_flag=True, help="Leave the vertices of rmat in the order of the recursion.")
@click.option(
    "--missing",
    type=NUMBER,
    help="Share of streets to leave out, among the streets that connectivity does not need (grid, road).",
)
@click.option(
    "--jitter", type=NUMBER, help="Move vertices of grid and road by up to this share of a block, at most 0.49."
)
@click.option("--negative", type=NUMBER, help="Share of the arcs of dag that have negative weights; by default 0.5.")
@click.option("--length", type=int, help="Arcs on the cycle of negative-cycle; by default 8.")
@click.option("--isolated", is_flag=True, default=None, help="Let no arc enter the cycle of negative-cycle.")
@click.option(
    "--simplify",
    is_flag=True,
    help="Keep only the shortest of parallel arcs, and drop loops (not for euler and euler-shallow).",
)
@click.option(
    "--unsorted", is_flag=True, help="Keep the arcs of a vertex in the order they are generated, not sorted by head."
)
@MEMORY
@OVERWRITE
def generate_graph(kind: str, store: str, **options: Any) -> None:
    """Generate a graph of KIND and write it to the graph store STORE.

    rmat: a Kronecker graph with the parameters of Graph500. grid: every vertex has four neighbours. road: a jittered
    grid with missing streets, weighted by length. random: both ends of an edge are uniformly random. dag: acyclic, with
    negative arcs. negative-cycle: random, with negative arcs and one negative cycle, which the output names. euler and
    euler-shallow have an Euler circuit; the pairing of their arcs falls into few circuits (euler) or very many
    (euler-shallow, which has N - 1 vertices, as published). rmat, grid, road and random are undirected by default, the
    other kinds directed. All kinds but euler may be larger than memory.
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

"""The command `tilepath picture`, which draws graphs, circuits, distances, and what computes distances."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.answers import VERTICES
from tilepath.cli.help_pages import page
from tilepath.cli.places import PLACES, AtPlaces
from tilepath.cli.quantities import NUMBER
from tilepath.cli.shared_options import BACKGROUND, GRAPH, OVERWRITE, TITLE, chosen_weight

ALWAYS = (
    "seed",
    "title",
    "overwrite",
    "background",
)  # options of every picture, but --partitions and --stages take no title


@page(epilog=f"{VERTICES} {PLACES}", example="tilepath picture roads.hierarchy.zarr levels.png --kind levels")
@click.argument("store", type=click.Path())
@click.argument("image", type=click.Path())
@click.option("--edges", is_flag=True, help="Number the arcs in the order of the store.")
@click.option(
    "--circuit",
    is_flag=False,
    flag_value="",
    metavar="[CIRCUITS]",
    help="Number the arcs in walking order, alternately green and red: along the walks of the store CIRCUITS, or, "
    "without CIRCUITS, along an Euler circuit or path found here. Write this option last, or as --circuit=CIRCUITS.",
)
@click.option("--spanning-tree", is_flag=True, help="Draw a spanning tree in red over the grey graph.")
@click.option("--wash", is_flag=True, help="Fade everything except the tree or the route.")
@click.option("--components", is_flag=True, help="Draw a frame around each weak component.")
@click.option(
    "--in",
    "in_degree",
    type=click.IntRange(min=0),
    metavar="N",
    help="Fill vertices of in-degree N or more with yellow.",
)
@click.option(
    "--out",
    "out_degree",
    type=click.IntRange(min=0),
    metavar="N",
    help="Fill vertices of out-degree N or more with green.",
)
@click.option(
    "--distances",
    type=click.Path(),
    metavar="STORE",
    help="Colour vertices by their distances in a row of this store: a store of distances or paths, or "
    "a hierarchy store. By default, the graph is searched. Below a --route, the streets of a map stay grey without "
    "--from.",
)
@click.option(
    "--every", metavar="T[UNIT]", help="Colour arcs too, in bands of distances of width T, such as 60 or 1min."
)
@click.option(
    "--from",
    "source",
    metavar="VERTEX",
    help="Colour vertices by distances from VERTEX; by default the vertex of the first row of --distances.",
)
@click.option("--route", nargs=2, metavar="A B", help="Draw the shortest path from A to B in red.")
@click.option(
    "--values",
    type=click.Path(exists=True),
    metavar="TABLE",
    help="Colour vertices by a column of TABLE, which has the column vertex too, such as the table of `tilepath "
    "betweenness`.",
)
@click.option("--column", metavar="NAME", help="The column of --values; by default its only column of numbers.")
@click.option(
    "--partitions",
    is_flag=True,
    help="Draw the cycles of the pairing of arcs instead of the graph; each point is an arc.",
)
@click.option(
    "--stages",
    is_flag=True,
    help="Draw the five stages of finding an Euler circuit, as .svg files in the folder IMAGE.",
)
@click.option(
    "--kind",
    type=click.Choice(["bricks", "levels", "tree"]),
    help="What to draw of a hierarchy: its bricks (default), the vertices between bricks coloured by their levels in "
    "the tree, or the tree.",
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw only the N vertices closest to --around.")
@click.option("--around", metavar="VERTEX", help="The middle of the sample; by default a random vertex.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of layouts and of the sample."
)
@TITLE
@click.option("--size", type=NUMBER, metavar="INCHES", help="Width of a map, without margins; by default 7.5.")
@click.option(
    "--dpi",
    type=click.IntRange(10, 1200),
    help="Pixels of an inch; by default 150. In .svg and .pdf only images have pixels.",
)
@click.option(
    "--cmap", metavar="NAME", help="Colour map of matplotlib for --distances, --values; by default viridis_r."
)
@BACKGROUND
@OVERWRITE
@GRAPH
@chosen_weight("store")
def picture(store: str, image: str, graph: str | None, **options: Any) -> None:
    """Draw a store of a graph, circuits, distances or a hierarchy to IMAGE (.svg, .png, .pdf; graphs also .dot, .html).

    A graph with coordinates is drawn as a map, a graph of up to 10 vertices in layers or as a circle, any other graph
    with a force-directed layout. At most 2,000 vertices are drawn, on a map 200,000; --sample draws a part of a larger
    graph. A store of circuits is drawn as its graph with --circuit, a store of distances as a matrix, and a hierarchy
    as --kind says. An .html file is a map that can be moved and zoomed; it has the streets, so that it works without a
    network, and says what it loads from a network (--background).
    """
    from pipelines.stores.schema import kind_of

    schema = kind_of(store).schema
    if schema == "graph/1":
        if graph is not None:
            raise click.UsageError("--graph names the graph of another store; STORE is a graph itself")
        _picture_graph(store, image, **options)
    elif schema == "circuits/1":
        from pipelines.stores.circuits import open_circuits

        circuits = open_circuits(store)
        _refuse_options(options, "a store of circuits")
        _picture_graph(circuits.graph(graph), image, **{**options, "circuit": circuits})
    elif schema == "hierarchy/1":
        from pipelines import picture_bricks

        kept = {name: options.pop(name) for name in ("sample", "around", "seed", "title", "size", "overwrite")}
        kept["kind"] = options.pop("kind") or "bricks"
        kept |= _dpi(options)
        _refuse_options(options, "a hierarchy store")
        picture_bricks(store, image, graph=graph, **kept)
    elif schema == "paths/1":
        raise click.UsageError(
            f"a store of paths is drawn over its graph; use: tilepath picture GRAPH {image} --distances {store}"
        )
    else:
        from pipelines import open_distances, picture_distances

        kept = {name: options[name] for name in ("title", "overwrite")} | _dpi(options)
        _refuse_options(options, "a store of distances")
        picture_distances(open_distances(store), image, graph, **kept)
    click.echo(image)


def _picture_graph(graph: Any, image: str, partitions: bool, stages: bool, kind: str | None, **options: Any) -> None:
    from pipelines import open_graph, picture_euler_stages, picture_graph, picture_partitions

    if kind is not None:
        raise click.UsageError(f"--kind {kind} draws a hierarchy store; make one of the graph (tilepath hierarchy)")
    if partitions or stages:
        _refuse_options(options, "partitions or stages", ("seed", "overwrite", "background"))
        if partitions and stages:
            raise click.UsageError("--stages draws the partitions too; leave --partitions out")
        draw = picture_partitions if partitions else picture_euler_stages
        draw(graph, image, seed=options["seed"], overwrite=options["overwrite"])
        return
    if options["circuit"] is None:
        options["circuit"] = False
    elif options["circuit"] == "":
        options["circuit"] = True
    opened = open_graph(graph) if isinstance(graph, str) else graph
    options |= _dpi(options)
    at = AtPlaces(opened)
    for name in ("source", "around"):
        options[name] = at(options[name], name)
    if options["route"] is not None:
        options["route"] = tuple(at(name, "route") for name in options["route"])
    picture_graph(opened, image, **options)


def _dpi(options: dict[str, Any]) -> dict[str, int]:
    """Take the option ``--dpi`` out of `options`; without it the Python function has the default."""
    dpi = options.pop("dpi")
    return {} if dpi is None else {"dpi": dpi}


def _refuse_options(options: dict[str, Any], what: str, but: tuple[str, ...] = ALWAYS) -> None:
    names = {"in_degree": "in", "out_degree": "out", "source": "from"}
    asked = [name for name, value in options.items() if value is not None and value is not False and name not in but]
    given = ["--" + names.get(name, name).replace("_", "-") for name in asked]
    if given:
        it = "it" if len(given) == 1 else "them"
        raise click.UsageError(f"{', '.join(given)} cannot go with a picture of {what}; leave {it} out")

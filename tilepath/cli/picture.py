"""The command `tilepath picture`, of stores of graphs, circuits and distances."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.answers import GRAPH, VERTICES


@click.command(epilog=VERTICES)
@click.argument("store", type=click.Path())
@click.argument("image", type=click.Path())
@click.option("--edges", is_flag=True, help="Number the arcs by their places in the store.")
@click.option(
    "--circuit",
    is_flag=False,
    flag_value="",
    metavar="[CIRCUITS]",
    help="Number the arcs in walking order, alternately green and red: along the walks of the store CIRCUITS, or where "
    "none is named along an Euler circuit or path found here. Write it last, or as --circuit=CIRCUITS.",
)
@click.option("--spanning-tree", is_flag=True, help="A spanning tree in red over grey.")
@click.option("--wash", is_flag=True, help="Wash away what is not in the tree or on the route.")
@click.option("--components", is_flag=True, help="A frame around each weak component.")
@click.option("--in", "in_degree", type=click.IntRange(min=0), metavar="N", help="Yellow: at least N arcs in.")
@click.option("--out", "out_degree", type=click.IntRange(min=0), metavar="N", help="Green: at least N arcs out.")
@click.option(
    "--distances",
    type=click.Path(),
    metavar="STORE",
    help="Colour vertices by distance, of a row of STORE, of distances, of paths or a boundary store.",
)
@click.option("--every", type=float, metavar="T", help="Colour arcs too, in bands of T of --distances: isochrones.")
@click.option(
    "--from", "source", metavar="VERTEX", help="The vertex that distances are from; by default that of the first row."
)
@click.option("--route", nargs=2, metavar="A B", help="The shortest path of --distances from A to B, in red.")
@click.option("--partitions", is_flag=True, help="Instead of the graph the cycles of its pairing, each node an arc.")
@click.option(
    "--stages", is_flag=True, help="The five pictures of how an Euler circuit is found, in the folder IMAGE, as .svg."
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N vertices that lie together.")
@click.option("--around", metavar="VERTEX", help="The middle of the sample; by default a random vertex.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of layouts and samples.")
@GRAPH
def picture(store: str, image: str, graph: str | None, **options: Any) -> None:
    """Draw STORE, of a graph, of Euler circuits or of distances, to IMAGE (.svg, .png, .pdf; of a graph also .dot).

    A graph with coordinates is drawn as a map, one of up to 10 vertices in layers, any other by forces between its
    vertices. Up to 2,000 vertices are drawn, on a map 100,000; --sample draws a part of a larger graph. Of circuits,
    their graph is drawn, as with --circuit. Of distances, the matrix. Of a boundary store, its parts and the vertices
    on their boundaries.
    """
    from pipelines.stores import store_schema

    schema = store_schema(store)
    if schema == "graph/1":
        if graph is not None:
            raise click.UsageError("--graph names the graph of another store; STORE is a graph itself")
        _picture_graph(store, image, **options)
    elif schema == "circuits/1":
        from pipelines.stores.circuits import open_circuits

        circuits = open_circuits(store)
        _refuse_options(_but_seed(options), "a store of circuits")
        _picture_graph(circuits.graph(graph), image, **{**options, "circuit": circuits})
    elif schema == "boundary/1":
        from pipelines import picture_parts

        kept = {name: options.pop(name) for name in ("sample", "around", "seed")}
        _refuse_options(options, "a boundary store")
        picture_parts(store, image, graph=graph, **kept)
    elif schema == "paths/1":
        raise click.UsageError(
            f"a store of paths is drawn over its graph: tilepath picture GRAPH {image} --distances {store}"
        )
    else:
        from pipelines import open_distances, picture_distances

        _refuse_options(_but_seed(options), "a store of distances")
        picture_distances(open_distances(store), image, graph)
    click.echo(image)


def _picture_graph(graph: Any, image: str, partitions: bool, stages: bool, **options: Any) -> None:
    from pipelines import picture_euler_stages, picture_graph, picture_partitions

    if partitions or stages:
        _refuse_options(_but_seed(options), "partitions or stages")
        if partitions and stages:
            raise click.UsageError("--stages draws the partitions too; leave --partitions out")
        draw = picture_partitions if partitions else picture_euler_stages
        draw(graph, image, seed=options["seed"])
        return
    if options["circuit"] is None:
        options["circuit"] = False
    elif options["circuit"] == "":
        options["circuit"] = True
    picture_graph(graph, image, **options)


def _but_seed(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "seed"}


def _refuse_options(options: dict[str, Any], what: str) -> None:
    names = {"in_degree": "in", "out_degree": "out", "source": "from"}
    asked = [name for name, value in options.items() if value is not None and value is not False]
    given = ["--" + names.get(name, name).replace("_", "-") for name in asked]
    if given:
        it = "it" if len(given) == 1 else "them"
        raise click.UsageError(f"{', '.join(given)} cannot go with a picture of {what}; leave {it} out")

"""The command `tilepath euler`, and what `tilepath path` prints of its result."""

from __future__ import annotations

import json
from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster

SHOWN_VERTICES = 40  # of a walk that is printed
SHOWN_WALKS = 10


@click.command()
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--start", metavar="VERTEX", help="Begin the circuit of its component there, or the path.")
@click.option(
    "--path", is_flag=True, help="A path will do, from a vertex with an arc too many to one with one too few."
)
@click.option("--undirected", is_flag=True, help="Walk along each edge of an undirected graph once, either way.")
@click.option(
    "--method",
    type=click.Choice(["stages", "hierholzer", "auto"]),
    default="stages",
    show_default=True,
    help="stages: the same walk on any device. hierholzer: another one, the faster way on a CPU. auto: what is faster.",
)
@click.option("--verify", is_flag=True, help="Prove that every arc is walked along once.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@on_cluster
def euler(graph: str, out: str, open_client: OpenClient, start: str | None, undirected: bool, **options: Any) -> None:
    """Walk along every arc of the graph store GRAPH once, and write the walk to the store OUT.

    There is an Euler circuit for each component where every vertex has as many arcs in as out (--undirected: an even
    degree). Weights and closed vertices do not matter. Prints the stages and their times.
    """
    from pipelines.euler.circuits import euler_circuits
    from pipelines.stores import open_graph

    opened = open_graph(graph)
    options |= {"start": None if start is None else opened.vertex(start), "directed": not undirected}
    with open_client() as client:
        circuits = euler_circuits(client, opened, out, progress=True, **options)
    click.echo(circuits.describe() + (", verified" if options["verify"] else ""))


def echo_walks(store: str, out: str | None, graph: str | None, overwrite: bool) -> None:
    """Print the walks of a circuits store, the ends of long ones; with `out` write all of them to a table."""
    from pipelines.euler.walks import walk_ends, write_walks
    from pipelines.stores.circuits import open_circuits

    circuits = open_circuits(store)
    opened = circuits.graph(graph)
    if out is not None:
        click.echo(f"{out}: {write_walks(circuits, opened, out, overwrite):,} arcs in walking order")
        return
    if circuits.count == 0:
        click.echo(f"{store}: there is no walk, since {opened.path} has no arcs")
    ends = walk_ends(circuits, opened, SHOWN_VERTICES, SHOWN_WALKS)
    for walk in ends:
        first, last = opened.names(walk.first), opened.names(walk.last)
        between = [f"... {walk.skipped:,} more ..."] if walk.skipped else []
        click.echo(" -> ".join([*first, *between, *last]))
    if circuits.count > len(ends):
        click.echo(f"and {circuits.count - len(ends):,} more; --out TABLE writes all")


def echo_walks_as_json(store: str, graph: str | None) -> None:
    """Print all walks of a circuits store as one JSON object, whole ones, piece by piece."""
    from pipelines.euler.walks import walk_names
    from pipelines.stores.circuits import open_circuits

    circuits = open_circuits(store)
    walks = walk_names(circuits, circuits.graph(graph))
    # What comes before a piece is printed with it, so that nothing is where nothing can be read.
    before = json.dumps({"arcs": circuits.length, "closed": circuits.path_from is None})[:-1] + ', "walks": ['
    for walk in walks:
        before += "["
        for names in walk:
            click.echo(before + json.dumps(names)[1:-1], nl=False)
            before = ", "
        before = "], "
    click.echo(before.removesuffix(", ") + "]}")

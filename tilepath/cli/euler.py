"""The command `tilepath euler`, and how `tilepath path` prints its walks."""

from __future__ import annotations

import json
from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster, with_dry_run
from tilepath.cli.help_pages import page
from tilepath.cli.shared_options import OVERWRITE

SHOWN_VERTICES = 40  # vertices printed of one walk
SHOWN_WALKS = 10  # walks printed


@page(example="tilepath euler deep.zarr circuit.zarr --verify")
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--start", metavar="VERTEX", help="Begin at VERTEX: the path, or the circuit of its component.")
@click.option(
    "--path",
    is_flag=True,
    help="Allow two vertices with unequal numbers of arcs; the walk of their component leads from one to the other.",
)
@click.option("--undirected", is_flag=True, help="Walk along each edge of an undirected graph once, in one direction.")
@click.option(
    "--method",
    type=click.Choice(["stages", "hierholzer", "auto"]),
    default="stages",
    show_default=True,
    help="stages: the same walk on any device. hierholzer: another walk, found faster on a CPU. auto: stages on a GPU, "
    "hierholzer on a CPU.",
)
@click.option("--verify", is_flag=True, help="Prove that every arc is walked along exactly once.")
@OVERWRITE
@with_dry_run
@on_cluster
def euler(graph: str, out: str, open_client: OpenClient, start: str | None, undirected: bool, **options: Any) -> None:
    """Walk along every arc of the graph store GRAPH once, and write the walk to the store OUT.

    Every vertex must have equally many arcs in and out (--undirected: an even degree); each component then has an Euler
    circuit. Weights are ignored, and closed vertices are passed like any other vertex. The stages and their times are
    printed.
    """
    from pipelines.euler.circuits import euler_circuits
    from pipelines.stores.graph import open_graph

    opened = open_graph(graph)
    if start is not None:
        opened.vertex(start)  # raises if there is no such vertex, before a cluster is started
    options |= {"start": start, "directed": not undirected}
    with open_client() as client:
        circuits = euler_circuits(client, opened, out, progress=True, **options)
    click.echo(circuits.describe() + (", proved" if options["verify"] else ""))


def echo_walks(store: str, out: str | None, graph: str | None, overwrite: bool) -> None:
    """Print the walks of a circuits store, of long walks only both ends; with `out`, write all walks to that table."""
    from pipelines.euler.walks import walk_ends, write_walks
    from pipelines.stores.circuits import open_circuits
    from pipelines.stores.schema import counted

    circuits = open_circuits(store)
    opened = circuits.graph(graph)
    if out is not None:
        click.echo(f"{out}: {counted(write_walks(circuits, opened, out, overwrite), 'arc')} in walking order")
        return
    if circuits.count == 0:
        click.echo(f"{store}: there is no walk, since {opened.path} has no arcs")
    ends = walk_ends(circuits, opened, SHOWN_VERTICES, SHOWN_WALKS)
    for walk in ends:
        first, last = opened.names(walk.first), opened.names(walk.last)
        between = [f"... {walk.skipped:,} more ..."] if walk.skipped else []
        click.echo(" -> ".join([*first, *between, *last]))
    if circuits.count > len(ends):
        click.echo(f"and {circuits.count - len(ends):,} more walks; --out TABLE writes all")


def echo_walks_as_json(store: str, graph: str | None) -> None:
    """Print all walks of a circuits store in full as one JSON object, piece by piece."""
    from pipelines.euler.walks import walk_names
    from pipelines.stores.circuits import open_circuits

    circuits = open_circuits(store)
    walks = walk_names(circuits, circuits.graph(graph))
    # The text before a piece is printed together with the piece: if the piece cannot be read, neither is printed.
    before = json.dumps({"arcs": circuits.length, "closed": circuits.path_from is None})[:-1] + ', "walks": ['
    for walk in walks:
        before += "["
        for names in walk:
            click.echo(before + json.dumps(names)[1:-1], nl=False)
            before = ", "
        before = "], "
    click.echo(before.removesuffix(", ") + "]}")

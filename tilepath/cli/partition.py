"""The command `tilepath partition`: a graph cut into closed parts, for distances on demand."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster
from tilepath.cli.paths import DTYPE
from tilepath.cli.quantities import BYTES


@click.command()
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--parts", type=click.IntRange(min=1), help="How many parts; by default as many as make the least work.")
@click.option(
    "--like",
    type=click.Path(),
    help="Cut as this boundary store is: for other weights on the same vertices; without METIS.",
)
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int16"]), help=DTYPE)
@click.option("--device-memory", type=BYTES, help="Most memory to use of each GPU, such as 16GiB.")
@click.option("--host-memory", type=BYTES, help="Most memory to use of each host, such as 64GiB.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished OUT, or begin it.")
@click.option("--overwrite", is_flag=True, help="Replace a store that exists.")
@click.option("--verify", is_flag=True, help="Check the result by certificates on sampled rows.")
@on_cluster
def partition(graph: str, out: str, open_client: OpenClient, **options: Any) -> None:
    """Cut the graph store GRAPH into parts and write what any distance follows from to the store OUT.

    It pays for road networks and other graphs that few vertices cut into parts: the store is much smaller than the
    matrix of all distances. `tilepath od | path | picture` and `pipelines.distances_between` read from it. Needs
    pymetis, but for --like.
    """
    from pipelines import open_graph, partition_graph
    from pipelines.stores import store_bytes
    from pipelines.validation.certificates import rows_verified
    from pipelines.workers.progress import size

    opened = open_graph(graph)
    with open_client() as client:
        found = partition_graph(client, opened, out, progress=True, **options)
    verified = f", {rows_verified(found.n)}" if options["verify"] else ""
    click.echo(f"{found.describe()}, {size(store_bytes(out))}{verified}")

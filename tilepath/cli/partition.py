"""The command `tilepath partition`: cut a graph into closed parts, for distances on demand."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster
from tilepath.cli.help_pages import page
from tilepath.cli.paths import DTYPE
from tilepath.cli.quantities import BYTES


@page(example="tilepath partition roads.zarr roads.boundary.zarr")
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--parts", type=click.IntRange(min=1), help="Number of parts; by default the number that makes the least work."
)
@click.option(
    "--like",
    type=click.Path(),
    help="Use the parts of this boundary store, for other weights on the same vertices; does not need pymetis.",
)
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int16"]), help=DTYPE)
@click.option("--device-memory", type=BYTES, help="Most memory to use of each GPU, such as 16GiB.")
@click.option("--host-memory", type=BYTES, help="Most memory to use of each host, such as 64GiB.")
@click.option("--resume", is_flag=True, help="Continue an unfinished OUT, or begin it.")
@click.option("--overwrite", is_flag=True, help="Replace an existing store.")
@click.option("--verify", is_flag=True, help="Check the result by certificates on sampled rows.")
@on_cluster
def partition(graph: str, out: str, open_client: OpenClient, **options: Any) -> None:
    """Split a road network into regions and precompute tables, so that any distance is answered fast.

    The tables of the graph store GRAPH are written to the boundary store OUT. They pay for road networks and other
    graphs that few vertices cut into regions (parts): OUT is much smaller than the matrix of all distances.
    `tilepath od | path | picture` and `pipelines.distances_between` read from OUT. Needs pymetis, except with --like.
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

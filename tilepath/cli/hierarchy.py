"""The command `tilepath hierarchy`: order and close a road network, for distances on demand."""

from __future__ import annotations

from typing import Any

import click

from tilepath.cli.cluster import OpenClient, on_cluster, with_dry_run
from tilepath.cli.help_pages import page
from tilepath.cli.paths import DTYPE
from tilepath.cli.quantities import BYTES
from tilepath.cli.shared_options import OVERWRITE, RESUME, VERIFY_ROWS, chosen_weight


@page(example="tilepath hierarchy roads.zarr roads.hierarchy.zarr --verify")
@click.argument("graph", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--like",
    type=click.Path(),
    help="Use the order and the structure of this hierarchy store, for other weights or fewer arcs on the same "
    "vertices.",
)
@click.option("--thorough", is_flag=True, help="Spend up to three times as long on the order, for a little less work.")
@click.option("--dtype", type=click.Choice(["float32", "float64", "int32", "int16"]), help=DTYPE)
@click.option("--host-memory", type=BYTES, help="Use at most this much memory of the host, such as 64GiB.")
@RESUME
@OVERWRITE
@VERIFY_ROWS
@with_dry_run
@chosen_weight("graph")
@on_cluster
def hierarchy(graph: str, out: str, open_client: OpenClient, **options: Any) -> None:
    """Prepare a road network, so that any distance is answered fast from a small store.

    Tables of distances of the graph store GRAPH are written to the hierarchy store OUT, which takes 0.8 to 4 times
    the disk of GRAPH. One worker computes the tables on its CPU, even if it has a GPU; the cluster options choose where
    it runs. The method suits road networks and other graphs that small sets of vertices separate. `tilepath od | path |
    picture | verify` and `tilepath.distances_between` read from OUT; `tilepath od --reduce` and `distances_between` can
    answer on GPUs. Without pymetis, tables are up to 1.5 times as large, and computing them takes longer.
    Memory and disk follow from an order of the vertices, so --dry-run computes the order.
    """
    from gpuops.memory import size
    from pipelines import build_hierarchy, open_graph
    from pipelines.stores.schema import store_bytes
    from pipelines.validation.certificates import rows_proved

    opened = open_graph(graph)
    with open_client() as client:
        found = build_hierarchy(client, opened, out, progress=True, **options)
    proved = f", {rows_proved(found.n)}" if options["verify"] else ""
    click.echo(f"{found.describe()}, {size(store_bytes(out))}{proved}")

"""The command `tilepath export`, which writes stores to files of other formats."""

from __future__ import annotations

import click

from tilepath.cli.answers import GRAPH
from tilepath.cli.help_pages import page


@page(example="tilepath export distances.zarr distances.npy")
@click.argument("store", type=click.Path())
@click.argument("out", metavar="FILE", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@GRAPH
def export(store: str, out: str, overwrite: bool, graph: str | None) -> None:
    """Write the contents of STORE to FILE; the suffix of FILE chooses the format.

    Tables (.csv, .tsv, .csv.gz, .tsv.gz, .parquet) hold the arcs of a graph, the distances of vertex pairs that a path
    joins, Euler walks, the units of a map, the best units of samples, or samples; vertices are written by their labels.
    Arrays (.npy) hold distances, the arcs of walks, the codebook of a map, the best units of samples, or samples.
    Matrix Market files (.mtx) hold the arcs of a graph or finite distances.
    """
    from pipelines import export_store
    from pipelines.stores.schema import counted

    click.echo(f"{out}: {counted(export_store(store, out, graph=graph, overwrite=overwrite), 'row')}")

"""The command that writes stores to files of other formats: `tilepath export`."""

from __future__ import annotations

import click

from tilepath.cli.answers import GRAPH


@click.command()
@click.argument("store", type=click.Path())
@click.argument("out", metavar="FILE", type=click.Path())
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
@GRAPH
def export(store: str, out: str, overwrite: bool, graph: str | None) -> None:
    """Write what STORE holds to FILE, whose suffix chooses the format.

    Tables (.csv, .tsv, .csv.gz, .tsv.gz, .parquet) take the arcs of a graph, the pairs that a path joins,
    walks, the units of a map or of samples, samples. Vertices go by their labels. Arrays (.npy) take distances, the
    arcs of walks, units and values; Matrix Market (.mtx) takes the arcs of a graph and finite distances.
    """
    from pipelines import export_store

    click.echo(f"{out}: {export_store(store, out, graph=graph, overwrite=overwrite):,} rows")

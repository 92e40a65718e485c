"""The commands for stores of any kind: `tilepath info | verify | export`."""

from __future__ import annotations

import json

import click

from tilepath.cli.help_pages import page
from tilepath.cli.shared_options import GRAPH, JSON, OVERWRITE, chosen_weight


@page(example="tilepath info distances.zarr --verify")
@click.argument("store", type=click.Path())
@click.option("--verify", is_flag=True, help="Check for damage: read all data, and compare them with their checksums.")
@click.option("--full", is_flag=True, help="Count degrees and components of a graph however large it is.")
@JSON
def info(store: str, verify: bool, full: bool, as_json: bool) -> None:
    """Print the contents, size and progress of STORE; for a graph also its degrees, components and balance."""
    from tilepath.cli.describe import store_facts, store_info

    if as_json:
        click.echo(json.dumps(store_facts(store, verify, full), indent=2))
        return
    for line in store_info(store, verify, full):
        click.echo(line)


@page(example="tilepath verify distances.zarr --rows 100")
@click.argument("store", type=click.Path())
@click.option("--rows", metavar="N", default="16", show_default=True, help="Rows to prove, or `all`.")
@GRAPH
def verify(store: str, rows: str, graph: str | None) -> None:
    """Check STORE for damage, and prove rows of distances, of paths and of hierarchies by certificates.

    A certificate proves a row against the graph, without a second solver. The first row, the last row and randomly
    chosen rows are proved. Stores of other kinds have no certificates: they are only checked for damage. For a table
    of `tilepath od`, prove rows of its hierarchy.
    """
    from pipelines.stores.schema import kind_of
    from pipelines.validation.certificates import certify, describe_certificate, without_certificate
    from tilepath.cli.describe import store_info

    if rows != "all" and not (rows.isdecimal() and int(rows)):
        raise click.UsageError(f"--rows is {rows}; give a number of rows, or all")
    for line in store_info(store, verify=True):
        click.echo(line)
    kind = kind_of(store)
    if reason := without_certificate(kind) or ("" if kind.progress(store).finished else "the store is unfinished"):
        click.echo(f"no row is proved: {reason}")
        return
    click.echo(describe_certificate(*certify(store, graph, "all" if rows == "all" else int(rows))))


@page(example="tilepath export distances.zarr distances.npy")
@click.argument("store", type=click.Path())
@click.argument("out", metavar="FILE", type=click.Path())
@OVERWRITE
@GRAPH
@chosen_weight("store")
def export(store: str, out: str, overwrite: bool, graph: str | None) -> None:
    """Write the contents of STORE to FILE; the suffix of FILE chooses the format.

    Tables (.csv, .tsv, .csv.gz, .tsv.gz, .parquet) hold the arcs of a graph, the distances of vertex pairs that a path
    joins, Euler walks, the units of a map, the best units of samples, or samples; vertices are written by their labels.
    Arrays (.npy) hold distances, the arcs of walks, the codebook of a map, the best units of samples, or samples.
    Matrix Market files (.mtx) hold the arcs of a graph or finite distances. Layers (.gpkg, .geojson, .geoparquet) hold
    the arcs of a graph with coordinates as lines.
    """
    from pipelines import export_store
    from pipelines.stores.schema import counted

    click.echo(f"{out}: {counted(export_store(store, out, graph=graph, overwrite=overwrite), 'row')}")

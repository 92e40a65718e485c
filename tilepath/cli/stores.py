"""The commands about any store: `tilepath info | verify`."""

from __future__ import annotations

import json

import click

from tilepath.cli.help_pages import page


@page(example="tilepath info distances.zarr --verify")
@click.argument("store", type=click.Path())
@click.option("--verify", is_flag=True, help="Reread all data and compare it with the record made when it was written.")
@click.option("--full", is_flag=True, help="Count degrees and components of a graph however large it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all digits, for scripts.")
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
@click.option("--rows", metavar="N", default="16", show_default=True, help="Rows to certify, or `all`.")
@click.option("--graph", type=click.Path(), help="The graph store, if it was moved.")
def verify(store: str, rows: str, graph: str | None) -> None:
    """Verify that the data of STORE are undamaged and, for distances and paths, that sampled rows are correct.

    The certificate of a row proves the row against the graph, without a second solver. The first row, the last row and
    randomly chosen rows are certified.
    """
    from pipelines.stores.schema import kind_of
    from pipelines.validation.certificates import PROVABLE, certify, describe_certificate
    from tilepath.cli.describe import store_info

    if rows != "all" and not (rows.isdecimal() and int(rows)):
        raise click.UsageError(f"--rows is {rows}; give a number of rows, or all")
    for line in store_info(store, verify=True):
        click.echo(line)
    kind = kind_of(store)
    if kind.schema in PROVABLE and kind.progress(store).finished:
        found = certify(store, graph, "all" if rows == "all" else int(rows))
        click.echo(describe_certificate(*found))

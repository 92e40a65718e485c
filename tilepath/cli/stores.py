"""The commands about any store: `tilepath info | verify`."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("store", type=click.Path())
@click.option("--verify", is_flag=True, help="Reread everything and compare with what was recorded.")
@click.option("--full", is_flag=True, help="Count degrees and components of a graph however large it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all digits, for scripts.")
def info(store: str, verify: bool, full: bool, as_json: bool) -> None:
    """Print what STORE is, its size and its progress; of a graph also its degrees, components and balance."""
    from tilepath.cli.describe import store_facts, store_info

    if as_json:
        click.echo(json.dumps(store_facts(store, verify, full), indent=2))
        return
    for line in store_info(store, verify, full):
        click.echo(line)


@click.command()
@click.argument("store", type=click.Path())
@click.option("--rows", metavar="N", default="16", show_default=True, help="Rows to certify, or `all`.")
@click.option("--graph", type=click.Path(), help="The graph store, if it was moved.")
def verify(store: str, rows: str, graph: str | None) -> None:
    """Verify STORE: that it holds what was recorded and, for distances and paths, that rows of it are right.

    The certificate of a row proves it against the graph, without a second solver. The first and the
    last row are certified, and others chosen at random.
    """
    from pipelines.validation.certificates import PROVABLE, certify, describe_certificate
    from tilepath.cli.describe import store_facts, store_info

    if rows != "all" and not (rows.isdecimal() and int(rows)):
        raise click.UsageError(f"--rows is {rows}; give a number of rows, or all")
    for line in store_info(store, verify=True):
        click.echo(line)
    facts = store_facts(store)
    if facts["complete"] and facts["schema"] in PROVABLE:
        found = certify(store, graph, "all" if rows == "all" else int(rows))
        click.echo(describe_certificate(*found))

"""The commands on a whole graph: `tilepath graph show | reverse | turns | degrees | components | tree`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from tilepath.cli.answers import VERTICES
from tilepath.cli.cluster import DEVICE
from tilepath.cli.help_pages import Pages
from tilepath.cli.shared_options import JSON, OVERWRITE

ANGLES = (
    "A table of --angles has the columns turn, least, most and cost. Angles are in degrees from straight ahead, from "
    "-180 to 180, positive to the left. The row `u-turn` has no angles. Where fewer than three roads meet, only "
    "U-turns cost something. --angles usual is for cars that drive on the right: left 7 s, right 3 s, U-turn 20 s."
)
SHOWN_NEIGHBOURS = 20  # neighbours printed in a row
SHOWN_CYCLES = 10  # cycles printed of a permutation
SHOWN_COMPONENTS = 10  # largest components printed

STORE = click.argument("store", metavar="GRAPH", type=click.Path())


@click.group(cls=Pages)
def graph() -> None:
    """Show the rows, degrees or components of a graph store; reverse its arcs; add turns; find a spanning tree."""


@graph.command(epilog=VERTICES, example="tilepath graph show roads.zarr 17")
@STORE
@click.argument("vertices", nargs=-1)
@click.option(
    "--rows", type=click.IntRange(min=0), default=10, show_default=True, help="Rows to print, from the first."
)
@click.option("--weights", is_flag=True, help="Print the weight of each arc in parentheses.")
@click.option("--reverse", "turned", is_flag=True, help="Print the tails of the arcs that enter each vertex instead.")
@click.option("--out", type=click.Path(), help="Write all rows to this text file, as lines `a -> b, c`.")
@OVERWRITE
def show(
    store: str, vertices: tuple[str, ...], rows: int, weights: bool, turned: bool, out: str | None, overwrite: bool
) -> None:
    """Print rows of GRAPH: the rows of VERTICES, or the first rows. A row is a vertex and the heads of its arcs.

    If GRAPH is a permutation (one arc leaves and one arc enters every vertex), its cycles are printed too.
    """
    from pipelines.formats.graphs.adjacency import write_adjacency_text
    from pipelines.stores.graph import open_graph
    from pipelines.stores.schema import counted

    opened = open_graph(store)
    if out is not None:
        if vertices or turned or weights:
            raise click.UsageError(
                "--out writes all rows, without weights; leave out VERTICES, --weights and --reverse"
            )
        click.echo(f"{out}: {counted(write_adjacency_text(opened, out, overwrite=overwrite), 'line')}")
        return
    named = [opened.vertex(name) for name in vertices]
    shown: Any = opened.reverse if turned else opened
    if not named:
        click.echo(opened.describe())
    for row in named or range(min(rows, opened.n)):
        click.echo(_row(shown, row, "<-" if turned else "->", weights))
    if not named:
        if opened.n > rows:
            click.echo(f"and {opened.n - rows:,} more")
        for line in _cycles(opened):
            click.echo(line)


@graph.command(example="tilepath graph reverse roads.zarr back.zarr")
@STORE
@click.argument("out", type=click.Path())
@OVERWRITE
@DEVICE
def reverse(store: str, out: str, overwrite: bool, device: str) -> None:
    """Reverse all arcs of GRAPH and write the result to the graph store OUT."""
    from pipelines.analysis.derived_graphs import write_reverse
    from pipelines.stores.graph import open_graph

    click.echo(write_reverse(open_graph(store), out, device=device, overwrite=overwrite).describe())


@graph.command(example="tilepath graph turns roads.zarr turned.zarr --turns turns.csv", epilog=ANGLES)
@STORE
@click.argument("out", type=click.Path())
@click.option("--turns", "table", type=click.Path(exists=True), help="A table of turns: from, via, to, cost.")
@click.option("--angles", metavar="TABLE", help="Costs by angles: a table, or `usual` for a car's seconds.")
@OVERWRITE
def turns(store: str, out: str, table: str | None, angles: str | None, overwrite: bool) -> None:
    """Write GRAPH to the graph store OUT with turns that are forbidden or cost something.

    A row of --turns names a turn by three vertices, and its cost: a number in the unit of the weights, `no` for a
    forbidden turn, or `only` if all other ways from `from` over `via` are forbidden. An empty `from` or `to` means
    every vertex. The columns from_arc and to_arc, if there are any, choose one of parallel arcs by its number.

    Commands for paths, distances, tables and pictures take OUT like any other graph; `stats`, `betweenness` and `flows`
    refuse it. Paths begin and end at a junction at no cost, and are shown without the
    vertices that are added for turns.
    """
    from pipelines import open_graph, write_turns

    click.echo(write_turns(open_graph(store), out, table, angles=angles, overwrite=overwrite).describe())


@graph.command(example="tilepath graph degrees roads.zarr")
@STORE
@click.option("--out", type=click.Path(), help="Write a table of all vertices: vertex, out, in.")
@OVERWRITE
@JSON
@DEVICE
def degrees(store: str, out: str | None, overwrite: bool, as_json: bool, device: str) -> None:
    """Print how many vertices of GRAPH have each out-degree and each in-degree."""
    from pipelines.analysis.structure import degree_histogram, out_and_in_degrees, write_degrees
    from pipelines.stores.graph import open_graph
    from pipelines.stores.schema import counted

    opened = open_graph(store)
    if out is not None:
        rows = write_degrees(opened, out, overwrite, device)
    histogram = degree_histogram(*out_and_in_degrees(opened, device))
    if as_json:
        keys = ("least", "most", "out", "in")
        click.echo(json.dumps([dict(zip(keys, line, strict=True)) for line in histogram]))
    else:
        click.echo(f"{'arcs':>13} {'vertices, out':>15} {'vertices, in':>15}")
        for least, most, leaving, entering in histogram:
            bounds = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            click.echo(f"{bounds:>13} {leaving:>15,} {entering:>15,}")
    if out is not None:
        click.echo(f"{out}: degrees of {counted(rows, 'vertex', 'vertices')}", err=as_json)


@graph.command(example="tilepath graph components roads.zarr")
@STORE
@click.option("--out", type=click.Path(), help="Write a table of all vertices: vertex, component.")
@OVERWRITE
@JSON
@DEVICE
def components(store: str, out: str | None, overwrite: bool, as_json: bool, device: str) -> None:
    """Print the weak components of GRAPH: vertices that arcs join, whatever the directions of the arcs.

    Components are numbered from 0 in the order of their first vertices.
    """
    import numpy as np

    from pipelines.analysis.structure import component_numbers, write_components
    from pipelines.stores.graph import open_graph
    from pipelines.stores.schema import counted

    opened = open_graph(store)
    if out is not None:
        rows = write_components(opened, out, overwrite, device)
    numbers = component_numbers(opened, device)
    _, firsts, sizes = np.unique(numbers, return_index=True, return_counts=True)
    if as_json:
        click.echo(json.dumps({"components": len(sizes), "sizes": sizes.tolist(), "firsts": opened.names(firsts)}))
    else:
        click.echo(f"{counted(len(sizes), 'component')} of {counted(opened.n, 'vertex', 'vertices')}")
        largest = np.argsort(-sizes, kind="stable")[:SHOWN_COMPONENTS]
        for number, first in zip(largest.tolist(), opened.names(firsts[largest]), strict=True):
            click.echo(f"{number:>9,}: {counted(int(sizes[number]), 'vertex', 'vertices')}, the first is {first}")
        if len(sizes) > len(largest):
            click.echo(f"and {len(sizes) - len(largest):,} more; --out TABLE writes the component of every vertex")
    if out is not None:
        click.echo(f"{out}: components of {counted(rows, 'vertex', 'vertices')}", err=as_json)


@graph.command(example="tilepath graph tree roads.zarr tree.zarr")
@STORE
@click.argument("out", type=click.Path())
@OVERWRITE
@DEVICE
def tree(store: str, out: str, overwrite: bool, device: str) -> None:
    """Write a spanning tree of each weak component of GRAPH to OUT: a graph store or a table.

    The directions and weights of arcs are ignored: an arc is in the tree unless earlier arcs already join its ends. A
    table (.csv, .tsv, .parquet) has a row for each vertex: vertex, parent, root.
    """
    from pipelines.analysis.derived_graphs import write_forest, write_forest_table
    from pipelines.files.tables import is_table
    from pipelines.stores.graph import open_graph
    from pipelines.stores.schema import counted

    if is_table(out):
        count = write_forest_table(open_graph(store), out, device=device, overwrite=overwrite)
        click.echo(f"{out}: parents of {counted(count, 'vertex', 'vertices')}")
    else:
        click.echo(write_forest(open_graph(store), out, device=device, overwrite=overwrite).describe())


def _row(graph: Any, vertex: int, arrow: str, weights: bool) -> str:
    from pipelines.formats.graphs.adjacency import in_quotes

    first, stop = graph.indptr(vertex, vertex + 1).tolist()
    end = min(stop, first + SHOWN_NEIGHBOURS)
    tail, *heads = map(in_quotes, graph.names([vertex, *graph.indices(first, end).tolist()]))
    if weights:
        heads = [f"{head} ({weight})" for head, weight in zip(heads, graph.weights(first, end).tolist(), strict=True)]
    if end < stop:
        heads.append(f"... {stop - end:,} more")
    return f"{tail} {arrow} {', '.join(heads)}".rstrip()


def _cycles(opened: Any) -> Iterator[str]:
    """Yield the cycles of a permutation as lines; yield no line for any other graph."""
    from pipelines.analysis.structure import COUNTED
    from pipelines.formats.graphs.in_memory import cycles, is_permutation
    from pipelines.stores.schema import counted

    if opened.n != opened.m or opened.n > COUNTED or (opened.indptr()[1:] - opened.indptr()[:-1] != 1).any():
        return
    successors = opened.indices()
    if not is_permutation(successors, opened.n):
        return
    order, offsets = cycles(successors)
    count = len(offsets) - 1
    yield f"a permutation with {counted(count, 'cycle')}:"
    for begin, end in zip(offsets[:-1][:SHOWN_CYCLES].tolist(), offsets[1:].tolist(), strict=False):
        names = opened.names(order[begin : min(end, begin + SHOWN_NEIGHBOURS)].tolist())
        if end - begin > len(names):
            names.append(f"... {end - begin - len(names):,} more")
        yield " -> ".join([*names, names[0]])
    if count > SHOWN_CYCLES:
        yield f"and {count - SHOWN_CYCLES:,} more cycles"

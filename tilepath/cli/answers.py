"""The commands that answer questions from stores of distances and of paths: `tilepath path | stats`."""

from __future__ import annotations

import json
import math
from typing import Any

import click

VERTICES = (
    "Vertices are named by their labels, or by index as '#17' (quoted, since # begins a comment in a shell); where the "
    "graph has no labels, by index as 17 too. A label that is itself #17 takes precedence."
)

GRAPH = click.option("--graph", type=click.Path(), help="The graph store, if it was moved.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, with all digits, for scripts.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace a table that exists.")


@click.command(epilog=VERTICES)
@click.argument("store", type=click.Path())
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option("--pairs", type=click.Path(exists=True), help="A table with the columns source and target.")
@click.option("--out", type=click.Path(), help="The table to write: of the paths of --pairs, or of a walk.")
@OVERWRITE
@JSON
@GRAPH
def path(
    store: str,
    source: str | None,
    target: str | None,
    pairs: str | None,
    out: str | None,
    overwrite: bool,
    as_json: bool,
    graph: str | None,
) -> None:
    """Print a shortest path of STORE, a store of distances or of paths or a boundary store, from SOURCE to TARGET.

    In a store of paths from the nearest of several sources, TARGET alone is enough, as is the column target in --pairs.
    Of a store of Euler circuits, print the walks, or write them to the table --out; --json prints long ones whole.

    Tables are .csv, .tsv, .csv.gz, .tsv.gz or .parquet. An entry means the same as on the command line, whatever the
    format, and whether its column holds text or whole numbers.
    """
    from pipelines.stores import store_schema
    from pipelines.stores.schema import number
    from tilepath.cli.euler import echo_walks, echo_walks_as_json

    if store_schema(store) == "circuits/1":
        asked = source is not None or target is not None or pairs is not None
        if asked or (as_json and (out is not None or overwrite)):
            raise click.UsageError(
                "a store of Euler circuits has its own walks; leave out all but --graph, and --out or --json"
            )
        if as_json:
            echo_walks_as_json(store, graph)
        else:
            echo_walks(store, out, graph, overwrite)
        return
    if pairs is not None:
        if source is not None or out is None or as_json:
            raise click.UsageError(
                "--pairs takes the pairs from its file and needs --out; leave out SOURCE, TARGET and --json"
            )
        click.echo(f"{out}: {_paths_of_pairs(store, graph, pairs, out, overwrite):,} paths")
        return
    if out is not None or overwrite:
        raise click.UsageError("--out and --overwrite need --pairs")
    opened, vertices, distance = _path(store, graph, source, target)
    names = opened.names(vertices)
    if as_json:
        found = {"source": names[0], "target": names[-1], "distance": distance, "unit": opened.weight_unit}
        click.echo(json.dumps({**found, "arcs": len(names) - 1, "path": names}))
        return
    click.echo(f"{names[0]} -> {names[-1]}: {number(distance)}{_unit(opened)} over {len(names) - 1} arcs")
    click.echo(" -> ".join(names))


@click.command()
@click.argument("store", type=click.Path())
@click.option("--out", type=click.Path(), help="Write a table of the eccentricity and closeness of every vertex.")
@OVERWRITE
@JSON
@GRAPH
def stats(store: str, out: str | None, overwrite: bool, as_json: bool, graph: str | None) -> None:
    """Print diameter, radius and other measures of the distances store STORE.

    The diameter is the largest finite distance, the radius the least eccentricity of a vertex that reaches all others.
    Where STORE holds the rows of some vertices only, all measures refer to these rows.
    """
    from pipelines import measures, open_distances
    from pipelines.answers.tables import check_output

    if out is not None:
        check_output(out, overwrite)
    distances = open_distances(store)
    opened = distances.graph(graph)
    found = measures(distances)
    if as_json:
        click.echo(json.dumps(_measures_in_full(found, opened), allow_nan=False))
    else:
        _echo_measures(found, opened)
    if out is not None:
        found.write(out, opened.labels(), overwrite=overwrite)
        click.echo(f"{out}: eccentricity and closeness of {distances.shape[0]:,} vertices", err=as_json)


def _path(store: str, graph: str | None, source: str | None, target: str | None) -> tuple[Any, tuple[int, ...], Any]:
    """The graph, the vertices of the path and its length."""
    from pipelines import open_paths, shortest_path, tree_path
    from pipelines.stores import store_schema
    from pipelines.stores.solutions import open_solution

    if store_schema(store) == "paths/1":
        paths = open_paths(store)
        opened = paths.graph(graph)
        if target is None and paths.together:
            source, target = None, source
        if target is None or (source is None and not paths.together):
            raise click.UsageError("name SOURCE and TARGET, or a table with --pairs")
        branch = tree_path(paths, source, target, graph=opened)
        return opened, branch.vertices, branch.distance

    distances, opened = open_solution(store, graph)
    if source is None or target is None:
        raise click.UsageError("name SOURCE and TARGET, or a table with --pairs")
    found = shortest_path(distances, source, target, graph=opened)
    return opened, found.vertices, found.distance


def _paths_of_pairs(store: str, graph: str | None, pairs: str, out: str, overwrite: bool) -> int:
    """Write the table; returns how many rows it has."""
    from pipelines import paths_of_pairs, tree_paths_of_pairs
    from pipelines.stores import store_schema

    write = tree_paths_of_pairs if store_schema(store) == "paths/1" else paths_of_pairs
    return write(store, pairs, out=out, graph=graph, overwrite=overwrite).num_rows


def _echo_measures(found: Any, graph: Any) -> None:
    from pipelines.stores.schema import number

    first, last = graph.names(found.diameter_pair)
    unit = _unit(graph)
    if not found.all_sources:
        click.echo(f"from only {len(found.sources):,} of {found.n:,} vertices:")
    lines = {
        "diameter": f"{number(found.diameter)}{unit}, from {first} to {last}",
        "radius": "none, as no vertex reaches all others" if math.isnan(found.radius) else number(found.radius) + unit,
        "mean distance": "none" if math.isnan(found.mean_distance) else number(found.mean_distance) + unit,
        "unreachable pairs": f"{found.unreachable_pairs:,}",
    }
    for name, value in lines.items():
        click.echo(f"{name:18} {value}")


def _measures_in_full(found: Any, graph: Any) -> dict[str, Any]:
    """What JSON holds; null where a measure is not defined."""
    first, last = graph.names(found.diameter_pair)
    return {
        "vertices": found.n,
        "rows": len(found.sources),
        "diameter": found.diameter,
        "diameter_from": first,
        "diameter_to": last,
        "radius": None if math.isnan(found.radius) else found.radius,
        "mean_distance": None if math.isnan(found.mean_distance) else found.mean_distance,
        "unreachable_pairs": found.unreachable_pairs,
        "unit": graph.weight_unit,
    }


def _unit(graph: Any) -> str:
    return f" {graph.weight_unit}" if graph.weight_unit else ""

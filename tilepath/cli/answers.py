"""The commands that answer questions from stores of distances and of paths: `tilepath path | stats`."""

from __future__ import annotations

import json
import math
from typing import Any

import click

from tilepath.cli.help_pages import page
from tilepath.cli.places import PLACES, AtPlaces
from tilepath.cli.shared_options import GRAPH, JSON, OVERWRITE, chosen_weight

VERTICES = (
    "Name a vertex by its label, or by its position in the store as '#17' (in quotes, since # begins a comment in a "
    "shell). If the graph has no labels, a plain 17 is the position, too. If a vertex has the label #17, '#17' means "
    "that vertex."
)

SHOWN = 10  # vertices of a centre that are printed by name

LISTED = 5  # weak components that `tilepath stats` lists


@page(epilog=f"{VERTICES} {PLACES}", example="tilepath path roads.zarr 1 3353")
@click.argument("store", type=click.Path())
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option("--k", type=int, metavar="K", help="Print the K shortest paths that visit no vertex twice, of a graph.")
@click.option(
    "--pairs", type=click.Path(exists=True), help="A table with the columns source and target, or with places."
)
@click.option("--out", type=click.Path(), help="Write the paths of --pairs, or the Euler walks, to this table.")
@OVERWRITE
@JSON
@GRAPH
@chosen_weight("store")
def path(
    store: str,
    source: str | None,
    target: str | None,
    k: int | None,
    pairs: str | None,
    out: str | None,
    overwrite: bool,
    as_json: bool,
    graph: str | None,
) -> None:
    """Print a shortest path from SOURCE to TARGET, or the K shortest.

    STORE is a graph store, which is searched, or a store of results: distances, paths or a hierarchy. If STORE has the
    paths from the nearest of several sources, SOURCE and the column source of --pairs may be left out. If STORE has
    Euler circuits, print the walks, or write them to the table --out; --json prints even long walks whole.

    Places of --pairs are in the columns origin_lon, origin_lat, destination_lon and destination_lat, or the same with x
    and y.

    Tables are .csv, .tsv, .csv.gz, .tsv.gz or .parquet. Their entries name vertices as the command line
    does; the column may hold text or whole numbers.
    """
    from pipelines.stores.schema import counted, number, store_schema
    from tilepath.cli.euler import echo_walks, echo_walks_as_json

    if store_schema(store) == "circuits/1":
        asked = source is not None or target is not None or pairs is not None or k is not None
        if asked or (as_json and (out is not None or overwrite)):
            raise click.UsageError(
                "STORE holds Euler circuits, and path prints all their walks; leave out all options but --graph, and "
                "--out or --json"
            )
        if as_json:
            echo_walks_as_json(store, graph)
        else:
            echo_walks(store, out, graph, overwrite)
        return
    if pairs is not None:
        if source is not None or out is None or as_json or k is not None:
            raise click.UsageError(
                "--pairs takes the pairs from its file and needs --out; leave out SOURCE, TARGET, --k and --json"
            )
        click.echo(f"{out}: {counted(_paths_of_pairs(store, graph, pairs, out, overwrite), 'path')}")
        return
    if out is not None or overwrite:
        raise click.UsageError("--out and --overwrite need --pairs")
    if k is not None:
        opened, paths = _k_paths(store, graph, source, target, k)
    else:
        opened, *one = _path(store, graph, source, target)
        paths = [tuple(one)]
    in_full = []
    for vertices, distance in paths:
        names = opened.names(vertices)
        ends = {"source": names[0], "target": names[-1], "distance": distance, "unit": opened.unit}
        in_full.append({**ends, "arcs": len(names) - 1, "path": names})
        if not as_json:
            length = f"{number(distance)}{_unit(opened)}"
            click.echo(f"{names[0]} -> {names[-1]}: {length} over {counted(len(names) - 1, 'arc')}")
            click.echo(" -> ".join(names))
    if as_json:
        click.echo(json.dumps(in_full[0] if k is None else in_full))


@page(example="tilepath stats distances.zarr --json")
@click.argument("store", type=click.Path())
@click.option("--hops", is_flag=True, help="Count arcs instead of adding weights; only if STORE is a graph.")
@click.option(
    "--out", type=click.Path(), help="Write a table of the eccentricity, closeness and weak component of every vertex."
)
@OVERWRITE
@JSON
@GRAPH
def stats(store: str, hops: bool, out: str | None, overwrite: bool, as_json: bool, graph: str | None) -> None:
    """Print diameter, radius and other measures of the distances store or graph store STORE.

    The eccentricity of a vertex is the largest finite distance from it. The diameter is the largest eccentricity; the
    radius is the least eccentricity of a vertex that reaches all vertices. If there are several weak components, the
    largest ones are listed with their own diameter and radius. If STORE holds only the rows of some vertices, all
    measures refer to these rows.

    The closeness of a vertex that reaches r of the n - 1 other vertices, at distances that sum to d, is (r / d) (r /
    (n - 1)); it is 0 if r is 0. Without the second factor, a vertex of a small component would seem central.

    If STORE is a graph, its diameter, radius and centre are found in this process, without distances between all pairs.
    """
    from pipelines import measures, open_distances
    from pipelines.analysis.structure import component_numbers
    from pipelines.files.tables import check_output
    from pipelines.stores.schema import counted, store_schema

    if out is not None:
        check_output(out, overwrite)
    if store_schema(store) == "graph/1":
        if graph is not None:
            raise click.UsageError("STORE is a graph itself; leave out --graph")
        _stats_of_graph(store, hops, out, overwrite, as_json)
        return
    if hops:
        raise click.UsageError("--hops counts arcs of a graph; give its store as STORE")
    distances = open_distances(store)
    opened = distances.graph(graph)
    found = measures(distances, opened)
    component = component_numbers(opened, "cpu")[: found.n]
    if as_json:
        click.echo(json.dumps(_measures_in_full(found, opened, component), allow_nan=False))
    else:
        _echo_measures(found, opened, component)
    if out is not None:
        found.write(out, opened.labels(), component=component, overwrite=overwrite)
        click.echo(
            f"{out}: eccentricity and closeness of {counted(distances.shape[0], 'vertex', 'vertices')}", err=as_json
        )


def _stats_of_graph(store: str, hops: bool, out: str | None, overwrite: bool, as_json: bool) -> None:
    from pipelines import eccentricities, open_graph
    from pipelines.stores.schema import counted, number

    graph = open_graph(store)
    found = eccentricities(graph, hops=hops, every=out is not None)
    first, last = graph.names(found.diameter_pair)
    unit = " arcs" if hops or not graph.weighted else _unit(graph)
    if as_json:
        in_full = {
            "vertices": found.n,
            "diameter": found.diameter,
            "diameter_from": first,
            "diameter_to": last,
            "radius": None if math.isnan(found.radius) else found.radius,
            "center": graph.names(found.center),
            "periphery": graph.names(found.periphery),
            "searches": found.searches,
            "unit": unit.strip(),
        }
        click.echo(json.dumps(in_full, allow_nan=False))
    else:
        no_radius = "undefined: no vertex reaches all others"
        click.echo(f"{'diameter':18} {number(found.diameter)}{unit}, from {first} to {last}")
        click.echo(f"{'radius':18} {no_radius if math.isnan(found.radius) else number(found.radius) + unit}")
        if len(found.center):
            named = ", ".join(graph.names(found.center[:SHOWN])) + ", ..." * (len(found.center) > SHOWN)
            click.echo(f"{'centre':18} {counted(len(found.center), 'vertex', 'vertices')}: {named}")
        click.echo(f"{'searches':18} from {found.searches:,} of {counted(found.n, 'vertex', 'vertices')}")
    if out is not None:
        found.write(out, graph.labels(), overwrite=overwrite)
        click.echo(f"{out}: eccentricity of {counted(found.n, 'vertex', 'vertices')}", err=as_json)


def _path(store: str, graph: str | None, source: str | None, target: str | None) -> tuple[Any, tuple[int, ...], Any]:
    """Return the opened graph, the vertices of the path, and the length of the path."""
    from pipelines import PathFinder, open_paths, tree_path
    from pipelines.stores.schema import store_schema

    if store_schema(store) == "paths/1":
        paths = open_paths(store)
        opened = paths.graph(graph)
        if target is None and paths.together:
            source, target = None, source
        if target is None or (source is None and not paths.together):
            raise click.UsageError("name SOURCE and TARGET, or a table with --pairs")
        at = AtPlaces(opened)
        branch = tree_path(paths, at(source, "source"), at(target, "target"), graph=opened)
        return opened, branch.vertices, branch.distance

    if source is None or target is None:
        raise click.UsageError("name SOURCE and TARGET, or a table with --pairs")
    finder = PathFinder(store, graph)
    at = AtPlaces(finder.graph)
    found = finder.path(at(source, "source"), at(target, "target"))
    return finder.graph, found.vertices, found.distance


def _k_paths(
    store: str, graph: str | None, source: str | None, target: str | None, k: int
) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the opened graph, and the vertices and the length of each of the k shortest paths."""
    from pipelines import k_shortest_paths, open_graph
    from pipelines.stores.schema import store_schema

    if store_schema(store) != "graph/1" or graph is not None:
        raise click.UsageError("--k searches a graph; give its store as STORE, and leave out --graph")
    if source is None or target is None:
        raise click.UsageError("name SOURCE and TARGET")
    opened = open_graph(store)
    at = AtPlaces(opened)
    found = k_shortest_paths(opened, at(source, "source"), at(target, "target"), k)
    return opened, [(path.vertices, path.distance) for path in found]


def _paths_of_pairs(store: str, graph: str | None, pairs: str, out: str, overwrite: bool) -> int:
    """Write the table `out` and return its number of rows."""
    from pipelines import open_paths, paths_of_pairs, tree_paths_of_pairs
    from pipelines.files.tables import check_output
    from pipelines.stores.graph import open_graph
    from pipelines.stores.schema import store_schema
    from pipelines.stores.solutions import open_solution

    check_output(out, overwrite, pairs)
    if store_schema(store) == "paths/1":
        given = AtPlaces(open_paths(store).graph(graph)).pairs(pairs)
        return tree_paths_of_pairs(store, given, out=out, graph=graph, overwrite=overwrite).num_rows
    searched = store_schema(store) == "graph/1"
    opened = open_graph(store) if searched else open_solution(store, graph)[1]
    given = AtPlaces(opened).pairs(pairs)
    return paths_of_pairs(store, given, out=out, graph=graph, overwrite=overwrite).num_rows


def _echo_measures(found: Any, graph: Any, component: Any) -> None:
    from pipelines.stores.schema import counted, number

    def measure(value: float) -> str:
        return "undefined" if math.isnan(value) else number(value) + unit

    first, last = graph.names(found.diameter_pair)
    unit = _unit(graph)
    most = f"at most {found.reached.max() - 1:,} of {found.n - 1:,}"
    none_reaches_all = f"undefined: no vertex reaches all others ({most})"
    if not found.all_sources:
        click.echo(f"from only {len(found.sources):,} of {counted(found.n, 'vertex', 'vertices')}:")
    lines = {
        "diameter": f"{number(found.diameter)}{unit}, from {first} to {last}",
        "radius": none_reaches_all if math.isnan(found.radius) else measure(found.radius),
        "mean distance": measure(found.mean_distance),
        "unreachable pairs": f"{found.unreachable_pairs:,}",
    }
    for name, value in lines.items():
        click.echo(f"{name:18} {value}")
    components = int(component.max(initial=-1)) + 1
    if components == 1:
        return
    click.echo(f"{'weak components':18} {components:,}")
    larger = [each for each in found.of_components(component) if each.vertices > 1]
    for each in larger[:LISTED]:
        click.echo(f"  of {each.vertices:,} vertices: diameter {measure(each.diameter)}, radius {measure(each.radius)}")
    if larger[LISTED:]:
        click.echo(f"  and {len(larger) - LISTED:,} more of at least 2 vertices; --json lists all")


def _measures_in_full(found: Any, graph: Any, component: Any) -> dict[str, Any]:
    """Return the measures as entries of JSON; an undefined measure is null."""
    first, last = graph.names(found.diameter_pair)
    return {
        "vertices": found.n,
        "rows": len(found.sources),
        "diameter": found.diameter,
        "diameter_from": first,
        "diameter_to": last,
        "radius": _or_null(found.radius),
        "mean_distance": _or_null(found.mean_distance),
        "unreachable_pairs": found.unreachable_pairs,
        "unit": graph.unit,
        "weak_components": int(component.max(initial=-1)) + 1,
        "components": [  # isolated vertices are not listed: there may be millions
            {"vertices": each.vertices, "diameter": each.diameter, "radius": _or_null(each.radius)}
            for each in found.of_components(component)
            if each.vertices > 1
        ],
    }


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


def _unit(graph: Any) -> str:
    return f" {graph.unit}" if graph.unit else ""

"""Options that several commands have, and the texts that several help pages have."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

POINTS = (
    "A layer of points (such as .gpkg), or a table (CSV, TSV, Parquet) with a column {0} or vertex, or with columns "
    "lon and lat, or x and y; a column id or name is optional."
)
DESTINATIONS = "A table like --origins, with a column destination instead; by default, the origins."
GRAPH = click.option("--graph", type=click.Path(), help="The graph store, if it was moved.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, with all digits, for scripts.")
TITLE = click.option("--title", metavar="TEXT", help="The title above the picture; '' for no title.")
RESUME = click.option("--resume", is_flag=True, help="Continue an unfinished OUT, or begin it.")
OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace an existing result.")
VERIFY_ROWS = click.option("--verify", is_flag=True, help="Prove 16 rows of the result by certificates.")
MEMORY = click.option(
    "--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory to sort in; larger graphs are sorted on disk."
)
SNAP_LIMIT = click.option(
    "--snap-limit",
    metavar="METRES",
    help="Refuse places that are farther than this from every vertex, such as 500 or 1km; for x and y, in units of the "
    "coordinates.",
)
CRS = click.option(
    "--crs",
    metavar="NAME",
    help="Coordinate system of places in columns x and y, such as EPSG:4326; by default that of the network. If "
    "the network is in metres and the places are clearly longitudes and latitudes, they are read as EPSG:4326, and a "
    "message says so.",
)
BACKGROUND = click.option(
    "--background",
    metavar="TILES",
    default="OpenStreetMap",
    show_default=True,
    callback=lambda _context, _parameter, given: None if given == "none" else given,
    help="Background map that an .html file loads from a network: tiles by their name in folium, or a URL with {x}, "
    "{y} and {z}. 'none': nothing is loaded.",
)


def point_options(*, pairs: str = "", default: str = "", destinations: str = DESTINATIONS) -> Callable[[F], F]:
    """Return a decorator that adds the options --origins and --destinations, and --pairs if there is a help for it.

    `default` is a sentence on what a command does without origins, and the other texts are the help of their options.
    """

    def add(function: F) -> F:
        for name, text in (
            *([("--pairs", pairs)] if pairs else []),
            ("--destinations", destinations),
            ("--origins", f"{POINTS.format('origin')} {default}".rstrip()),
        ):
            function = click.option(name, type=click.Path(exists=True), help=text)(function)
        return function

    return add


def chosen_weight(argument: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the option `--weight` to a command; `argument` is the name of its argument that is the path of the graph."""

    def with_option(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(*, weight: str | None, **options: Any) -> Any:
            if weight is not None:
                options[argument] += f"#{weight}"  # as `pipelines.stores.named_weights` reads it
            return command(**options)

        shown = "STORE" if argument == "network" else argument.upper()
        text = f"Use these weights of {shown}, such as length, if it is a graph with several weights."
        return click.option("--weight", metavar="NAME", help=text)(call)

    return with_option

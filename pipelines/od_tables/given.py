"""The input of a table: the network, its origins and its destinations, opened and read once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.od_tables.blocks import parse_reduction, reductions_in
from pipelines.od_tables.pairs_of_points import read_pairs_of_points
from pipelines.od_tables.units import notes
from pipelines.places.named_systems import systems_for
from pipelines.places.networks import OpenNetwork
from pipelines.places.points import NONE, Points, every_vertex, merged, points_from
from pipelines.places.single import is_point
from pipelines.stores.graph import Graph
from pipelines.stores.hierarchy import HierarchyStore


@dataclass(frozen=True, eq=False)
class Given:
    """A network and points.

    Attributes
    ----------
    source : the store that answers
    graph : its graph, or the store itself
    points : origins and destinations
    """

    source: HierarchyStore | Graph
    graph: Graph
    points: tuple[Points, Points]

    @property
    def warnings(self) -> list[str]:
        """Warnings about places, such as far or moved ones, and of no points; what both sides share is said once."""
        sides = zip(("origins", "destinations"), self.points, strict=True)
        said = [f"the {what}: {NONE}" if not len(each.vertices) else each.warning for what, each in sides]
        return merged([each for each in said if each])


if TYPE_CHECKING:
    import pandas


def read_given(
    network: OpenNetwork,
    origins: Any,
    destinations: Any,
    pairs: Any,
    *,
    reduce: str | Sequence[str] | None = None,
    roads: Any = None,
) -> Given:
    """Read the points, with the parameters and errors of `pipelines.od_tables.frames.od`.

    The named coordinate system is that of all places, and of `roads`, that do not say their own.
    """
    found = [parse_reduction(text).column for text in reductions_in(reduce)]
    columns = list(dict.fromkeys(column for column in found if column is not None))
    if origins is None and destinations is None and pairs is None:
        raise ValueError(
            "nothing is asked for; give origins (--origins), destinations (--destinations), or pairs (--pairs)"
        )
    source, opened, snapping = network
    systems = systems_for((origins, destinations, roads), snapping.crs)
    of_sides = dict(zip(("origin", "destination"), map(snapping.of, systems), strict=False))

    def read(given: Any, what: str, wanted: list[str]) -> Points:
        given = [given] if is_point(given) else given
        return points_from(given, opened, what, wanted, snapping=of_sides[what])

    if pairs is not None:
        known = (
            None if origins is None else read(origins, "origin", []),
            None if destinations is None else read(destinations, "destination", []),
        )
        points = read_pairs_of_points(pairs, snapping, known)
        return Given(source, opened, points)
    if destinations is None:
        return Given(source, opened, (read(origins, "origin", []), read(origins, "origin", columns)))
    begins = every_vertex(opened) if origins is None else read(origins, "origin", [])
    return Given(source, opened, (begins, read(destinations, "destination", columns)))


def given_or_everywhere(
    network: OpenNetwork,
    origins: Any,
    destinations: Any,
    *,
    every_destination: bool = False,
    roads: Any = None,
) -> Given:
    """Read the points; without origins and destinations, both are all vertices.

    With origins only, they are the destinations, too; with `every_destination`, all vertices are the destinations.
    """
    if destinations is None and (origins is None or every_destination):
        everywhere = every_vertex(network.graph)
        begins = everywhere
        if origins is not None:
            begins = read_given(network, origins, None, None).points[0]
        return Given(network.source, network.graph, (begins, everywhere))
    return read_given(network, origins, destinations, None, roads=roads)


def warn_of(given: Given) -> None:
    """Warn the caller of a public function of no points, or of places that are far or were moved past a vertex."""
    for warning in given.warnings:
        warnings.warn(warning, stacklevel=3)


def as_frame(table: pa.Table, given: Given, unit: str) -> pandas.DataFrame:
    """Return a table as a data frame, with its notes; names are integers or text, as in the table."""
    frame = table.to_pandas()
    for what, points in zip(("origin", "destination"), given.points, strict=True):
        if what not in frame:
            continue
        if points.numbered and table[what].null_count:  # origins without a destination
            frame[what] = table[what].to_pandas(integer_object_nulls=True).astype("Int64")
        elif not points.numbered:
            frame[what] = frame[what].astype("object")
    for what in {"road", "source", "target"} & {*table.column_names}:
        if not pa.types.is_integer(table[what].type):
            frame[what] = frame[what].astype("object")
    frame.attrs = notes(unit, given.graph)
    return frame

"""Read a road network from OpenStreetMap: `.osm.pbf` and `.osm` files, by profiles for cars, bicycles and pedestrians.

1. A profile decides which ways count, how fast, and in which directions (`profiles`).
2. Osmium reads the ways that the profile allows, and the places of their nodes (`reading`).
3. Nodes that are no junctions are contracted; lengths, times and lines are kept (`contraction`).
4. Relations that restrict turns become pairs of arcs (`restrictions`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pipelines.formats.arc_stream import ArcStream
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.edge_lines import stored_order
from pipelines.formats.graphs.osm.contraction import Roads, contracted
from pipelines.formats.graphs.osm.largest_component import largest_component
from pipelines.formats.graphs.osm.profiles import read_profile
from pipelines.formats.graphs.osm.reading import SUFFIXES, Ways, read_ways
from pipelines.formats.graphs.osm.restrictions import forbidden_turns
from pipelines.formats.graphs.weight_units import measured
from pipelines.stores.graph import DEGREES, OPENSTREETMAP
from pipelines.stores.lines import Lines
from pipelines.stores.road_classes import RoadClasses
from pipelines.stores.schema import counted

__all__ = ["SUFFIXES", "read_osm"]

WEIGHTS = {"time": "s", "length": "m"}
NOUNS = {"time": "travel times", "length": "lengths of the roads"}


@contextmanager
def read_osm(
    source: str | os.PathLike[str],
    profile: str | os.PathLike[str] = "car",
    weight: str = "time",
    unit: str | None = None,
) -> Iterator[ArcStream]:
    """Yield the road network of a file of OpenStreetMap.

    Parameters
    ----------
    source : path of a `.osm.pbf` or `.osm` file; the latter may be compressed (.gz, .bz2)
    profile : "car", "bike", "foot", or the path of a TOML file, a changed copy of one of these
    weight : "time", in seconds, or "length", in metres
    unit : another unit of time or of length for these weights
    """
    path = os.fspath(source)
    if weight not in WEIGHTS:
        raise FormatError(f"weight (--weight) is {weight!r}; of OpenStreetMap, choose time or length")
    chosen = read_profile(profile)
    ways = read_ways(path, chosen)
    roads = contracted(ways)
    if not len(roads.tails):
        raise FormatError(
            f"{path}: the ways of the profile {chosen.name} join no two nodes that the file has; take a whole extract"
        )
    columns = {"time": roads.seconds, "length": roads.metres}
    columns[weight], unit = measured(columns[weight], WEIGHTS[weight], unit, NOUNS[weight])
    there, back = slice(0, None, 2), slice(1, None, 2)  # the two arcs of a road, if all roads have two
    both_ways = np.array_equal(roads.roads[there], roads.roads[back])
    directed = not (both_ways and np.array_equal(roads.seconds[there], roads.seconds[back]))
    edges = slice(None) if directed else there

    def stored(simplify: bool, sorted_rows: bool) -> np.ndarray:
        return stored_order(roads.tails, roads.heads, columns[weight], simplify, sorted_rows)

    def turns(simplify: bool, sorted_rows: bool) -> np.ndarray:
        if left_out := ways.restrictions.left_out:
            restrictions = counted(left_out, "restriction of turns", "restrictions of turns")
            stream.remarks.append(f"{path}: left out {restrictions}, over several ways or without a member")
        return _stored_turns(forbidden_turns(ways.restrictions, roads), stored(simplify, sorted_rows))

    stream = ArcStream(
        [(roads.tails[edges], roads.heads[edges], columns[weight][edges])],
        n=len(roads.names),
        directed=directed,
        weight_dtype=np.float64,
        labels=map(str, roads.names.tolist()),
        through=None if roads.through.all() else roads.through,
        coordinates=roads.places,
        lines=lambda *how: Lines(roads.numbers[stored(*how)], roads.offsets, roads.points),
        classes=lambda *how: RoadClasses(roads.classes[stored(*how)], roads.class_names),
        turns=turns,
        turn_restrictions=ways.restrictions.found,
        more_weights=lambda *how: {
            name: (columns[name][stored(*how)], unit) for name, unit in WEIGHTS.items() if name != weight
        },
        crs=DEGREES,
        attribution=OPENSTREETMAP,
        weight_unit=unit,
        weight_name=weight,
    )
    stream.remarks = _remarks(path, chosen.name, ways, roads)
    yield stream


def _stored_turns(turns: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Return pairs of arcs as pairs of stored arcs, without arcs that are not stored."""
    place = np.full(max(stored.max(initial=-1), turns.max(initial=-1)) + 1, -1)
    place[stored] = np.arange(len(stored))
    found = place[turns]
    return found[(found >= 0).all(axis=1)]


def _remarks(path: str, profile: str, ways: Ways, roads: Roads) -> list[str]:
    """Return what the user should know: the ways taken, the share of the largest component, and what is missing."""
    n = len(roads.names)
    remarks = [
        f"{path}: {len(np.unique(ways.ids)):,} of {counted(ways.seen, 'way')} for the profile {profile}, "
        f"{counted(int(roads.roads[-1]) + 1, 'road')} between {counted(n, 'vertex', 'vertices')}; the largest strongly "
        f"connected component has {100 * largest_component(n, roads.tails, roads.heads) / n:.1f} % of them"
    ]
    if ways.missing:
        remarks.append(f"{path}: lacks {counted(ways.missing, 'node')} of these ways; the ways end there")
    return remarks

"""Road networks from OpenStreetMap have the junctions, the arcs and the bends that OSMnx finds in the same file."""

from itertools import pairwise

import numpy as np
import pytest
from openstreetmap import arcs_of, random_extract, write

from pipelines.formats.graphs.osm.contraction import contracted
from pipelines.formats.graphs.osm.profiles import read_profile
from pipelines.formats.graphs.osm.reading import read_ways
from pipelines.stores.lines import Lines

osmnx = pytest.importorskip("osmnx", reason="needs OSMnx: pip install 'tilepath[osmnx]'")


def plain_extract(rng):
    """A random extract without closed ways and speeds, which OSMnx leaves to the user.

    Nor has it what OSMnx takes otherwise: two pieces of road between the same nodes, and oneway=no in roundabouts.
    """
    nodes, ways = random_extract(rng)
    nodes = {id_: place[:2] for id_, place in nodes.items()}
    drawn, used = [], set()
    for id_, line, tags in ways:
        kept = [at for at in dict.fromkeys(line) if at in nodes]
        steps = {frozenset(step) for step in pairwise(kept)}
        if len(kept) > 1 and not steps & used:
            used |= steps
            tags = {key: value for key, value in tags.items() if key in ("oneway", "junction") and value != "no"}
            drawn.append((id_, kept, tags | {"highway": "residential"}))
    return nodes, drawn


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("profile", ["car", "foot"])
def test_the_network_is_that_of_osmnx(seed, profile, tmp_path):
    nodes, ways = plain_extract(np.random.default_rng(seed))
    file = write(tmp_path / "town.osm", nodes, ways)
    theirs = osmnx.graph_from_xml(file, bidirectional=profile == "foot", simplify=True, retain_all=True)
    roads = contracted(read_ways(str(file), read_profile(profile)))
    lines = Lines(roads.numbers, roads.offsets, roads.points)
    own = sorted(arcs_of(lines, roads.places, roads.tails, roads.heads, roads.names, nodes))
    ids = {place: id_ for id_, place in nodes.items()}
    found = []
    for tail, head, data in theirs.edges(data=True):
        points = data["geometry"].coords if "geometry" in data else [nodes[tail], nodes[head]]
        found.append((tuple(ids[point] for point in points), data["length"]))
    drawn = {end for line in own for end in (line[0], line[-1]) if line[0] != line[-1]}
    own = [line for line in own if {line[0], line[-1]} & drawn]  # OSMnx drops circular roads without a junction
    assert own == sorted(line for line, _ in found)
    assert sum(roads.metres[np.isin(roads.tails, np.flatnonzero(np.isin(roads.names, [*drawn])))]) == pytest.approx(
        sum(length for _, length in found), rel=0.006
    )  # theirs is a sphere

"""Small extracts of OpenStreetMap, and what the profiles and the contraction make of them, in plain Python."""

import math
from itertools import pairwise

import networkx as nx
import numpy as np
import osmium
from campaigns import pick
from osmium.osm.mutable import Node, Relation, Way
from pyproj import Geod

from pipelines.stores.lines import points_along

CLOSED = {"no", "private"}
ALLOWED = {"yes", "designated"}
MODES = {  # of each profile: keys of access, one-way keys, ordinary speeds, speeds of ways that must be allowed
    "car": (
        ("motorcar", "motor_vehicle", "vehicle", "access"),
        ("oneway",),
        {"residential": 30, "service": 15, "primary": 65},
        {"track": 15},
    ),
    "bike": (
        ("bicycle", "vehicle", "access"),
        ("oneway:bicycle", "oneway"),
        {"residential": 18, "service": 15, "primary": 16, "track": 12, "cycleway": 18},
        {"footway": 8},
    ),
    "foot": (
        ("foot", "access"),
        ("oneway:foot",),
        {"residential": 5, "service": 5, "primary": 5, "track": 5, "footway": 5, "steps": 3},
        {"cycleway": 5},
    ),
}
LIMITS = {"30": 30, "20 mph": 32.18688, "walk": 7, "DE:urban": 50, "50;30": 30, "fast": None}


def write(path, nodes, ways, relations=()):
    """Write nodes {id: (lon, lat[, tags])}, ways [(id, nodes, tags)] and relations [(id, members, tags)]."""
    with osmium.SimpleWriter(str(path), overwrite=True) as writer:
        for id_, (lon, lat, *tags) in sorted(nodes.items()):
            writer.add_node(Node(id=id_, location=(lon, lat), tags=dict(*tags)))
        for id_, members, tags in ways:
            writer.add_way(Way(id=id_, nodes=members, tags=tags))
        for id_, members, tags in relations:
            writer.add_relation(Relation(id=id_, members=members, tags=tags))
    return path


def access(tags, profile):
    return next((tags[key] for key in MODES[profile][0] if key in tags), None)


def speeds(tags, profile):
    """The speeds along and against a way, None if it is closed."""
    allowed, (_, one_way_keys, ordinary, exceptional) = access(tags, profile), MODES[profile]
    if allowed in CLOSED:
        return None
    if tags.get("route") == "ferry":
        return None
    speed = ordinary.get(tags["highway"]) or (allowed in ALLOWED and exceptional.get(tags["highway"]))
    if not speed:
        return None
    limit = LIMITS.get(tags.get("maxspeed"))
    if limit and profile == "car":
        speed = limit
    elif limit and profile == "bike":
        speed = min(speed, limit)
    one_way = next((tags[key] for key in one_way_keys if key in tags), None)
    if one_way is None and profile != "foot" and tags.get("junction") == "roundabout":
        one_way = "yes"
    return {"yes": (speed, None), "-1": (None, speed)}.get(one_way, (speed, speed))


def expected_arcs(nodes, ways, profile):
    """The arcs as sorted [(ids of the nodes along it, metres, seconds)]: pieces are joined one by one, at any node.

    Ways end at nodes that are not among `nodes`. A node whose barrier closes it is kept.
    """
    pieces = []
    for _, members, tags in ways:
        both = speeds(tags, profile)
        for one, other in pairwise(members):
            if both and one != other and one in nodes and other in nodes:
                metres = Geod(ellps="WGS84").inv(*nodes[one][:2], *nodes[other][:2])[2]
                pieces.append(([one, other], metres, *(metres * 3.6 / each if each else math.inf for each in both)))
    gone = _mergeable(pieces, {node for node, place in nodes.items() if len(place) > 2})
    for node in gone:
        first, second = (piece for piece in pieces if node in (piece[0][0], piece[0][-1]))
        pieces = [piece for piece in pieces if piece is not first and piece is not second]
        first, second = (first if first[0][-1] == node else _back(first)), second
        second = second if second[0][0] == node else _back(second)
        sums = (a + b for a, b in zip(first[1:], second[1:], strict=True))
        pieces.append((first[0] + second[0][1:], *sums))
    arcs = [(tuple(along), metres, there) for along, metres, there, _ in pieces if there < math.inf]
    arcs += [(tuple(along[::-1]), metres, back) for along, metres, _, back in pieces if back < math.inf]
    return sorted(arcs)


def _back(piece):
    along, metres, there, back = piece
    return along[::-1], metres, back, there


def _mergeable(pieces, closed):
    """The nodes that are no vertices."""
    at = {}
    for piece in pieces:
        for end in (piece, _back(piece)):
            at.setdefault(end[0][0], []).append((end[0][1], end[2] < math.inf, end[3] < math.inf))
    found = set()
    for node, ends in at.items():
        if len(ends) == 2 and node not in closed:
            (one, out, into), (other, out_too, into_too) = ends
            if one != other and (out, into) == (into_too, out_too):
                found.add(node)
    graph = nx.Graph([piece[0] for piece in pieces])
    for ring in nx.connected_components(graph):
        if ring <= found:
            found.remove(min(ring))
    return sorted(found)


def arcs_of(lines, coordinates, tails, heads, names, nodes):
    """The nodes along each arc. Nodes have distinct places."""
    ids = {place[:2]: id_ for id_, place in nodes.items()}
    offsets, points = points_along(lines, coordinates, np.arange(len(tails)), tails, heads)
    along = [tuple(ids[tuple(point)] for point in points[a:b].tolist()) for a, b in pairwise(offsets)]
    assert [(int(names[t]), int(names[h])) for t, h in zip(tails, heads, strict=True)] == [
        (line[0], line[-1]) for line in along
    ]
    return along


def random_extract(rng):
    """Ways that wander over a grid of nodes, with random tags; a few nodes are barriers, or lacking."""
    side = 5
    ids = (rng.permutation(1000)[: side * side] + 1).reshape(side, side)
    places = {
        int(id_): (round(13 + 0.001 * x + 1e-6 * id_, 7), round(52 + 0.0007 * y + 1e-6 * id_, 7))
        for (x, y), id_ in np.ndenumerate(ids)
    }
    barriers = [{"barrier": "debris"}, {"barrier": "gate", "access": "no"}]
    nodes = {id_: (*place, pick(rng, barriers)) if rng.random() < 0.05 else place for id_, place in places.items()}
    ways = []
    for way in range(rng.integers(2, 9)):
        at, line = rng.integers(0, side, 2), []
        for _ in range(rng.integers(2, 8)):
            line.append(int(ids[tuple(at)]))
            at = (at + pick(rng, [(0, 1), (1, 0), (0, -1), (-1, 0)])).clip(0, side - 1)
        choices = {
            "access": ["private", "yes"],
            "motor_vehicle": ["no", "yes"],
            "bicycle": ["no", "designated"],
            "foot": ["yes", "no"],
            "oneway": ["yes", "-1", "no"],
            "oneway:bicycle": ["no"],
            "junction": ["roundabout"],
            "maxspeed": list(LIMITS),
        }
        tags = {key: pick(rng, values) for key, values in choices.items() if rng.random() < 0.15}
        kinds = ["residential"] * 3 + ["service", "primary", "track", "footway", "cycleway", "steps"]
        ways.append((way + 1, line, {"highway": pick(rng, kinds), **tags}))
    lacking = {id_ for id_ in nodes if rng.random() < 0.03}
    return {id_: place for id_, place in nodes.items() if id_ not in lacking}, ways

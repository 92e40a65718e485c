"""Turn restrictions of OpenStreetMap: relations that forbid to drive from one way by a node to another way.

A relation names the way it comes from, a node, and the way it leads to. ``no_left_turn`` and others forbid the turn;
``only_straight_on`` and others forbid every other turn from that way at that node. `forbidden_turns` translates them to
pairs of arcs. Restrictions whose middle is a way instead of a node are counted and left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.formats.graphs.osm.profiles import Profile

if TYPE_CHECKING:
    from pipelines.formats.graphs.osm.contraction import Roads


@dataclass
class Restrictions:
    """Turn restrictions.

    Attributes
    ----------
    only : (r,) bool; the turn is the only one allowed, instead of forbidden
    u_turn : (r,) bool; the turn leads back along the same road
    from_way, via, to_way : (r,) int64 OpenStreetMap's numbers of the ways and of the node between them
    found : number of restrictions in the file
    left_out : number of restrictions that lead by a way, or lack a member
    """

    only: np.ndarray
    u_turn: np.ndarray
    from_way: np.ndarray
    via: np.ndarray
    to_way: np.ndarray
    found: int
    left_out: int


class RestrictionsRead:
    """Collects the restrictions that a profile obeys."""

    def __init__(self, profile: Profile):
        self._profile = profile
        self._found = self._left_out = 0
        self._rows: list[tuple[bool, bool, int, int, int]] = []

    def add(self, tags: Mapping[str, str], members: Sequence[tuple[str, int, str]]) -> None:
        """Add a relation by its tags, and its members as (type, number, role)."""
        kind = self._profile.restriction(tags)
        if not kind.startswith(("no_", "only_")):
            return
        self._found += 1
        ways = {role: [ref for type_, ref, each in members if type_ == "w" and each == role] for role in ("from", "to")}
        via = [ref for type_, ref, role in members if type_ == "n" and role == "via"]
        by_way = any(type_ == "w" and role == "via" for type_, _, role in members)
        if by_way or len(via) != 1 or not ways["from"] or not ways["to"]:
            self._left_out += 1
            return
        only = kind.startswith("only_")
        self._rows += [(only, kind.endswith("_u_turn"), tail, via[0], to) for tail in ways["from"] for to in ways["to"]]

    def table(self) -> Restrictions:
        """Return the restrictions as columns."""
        only, u_turn, from_way, via, to_way = np.array(self._rows, np.int64).reshape(-1, 5).T
        return Restrictions(only.astype(bool), u_turn.astype(bool), from_way, via, to_way, self._found, self._left_out)


def forbidden_turns(restrictions: Restrictions, roads: Roads) -> np.ndarray:
    """Return the turns that restrictions forbid, as pairs of an arc and the next arc.

    Parameters
    ----------
    restrictions : r restrictions
    roads : the network, whose m arcs are numbered as in its columns

    Returns
    -------
    (t, 2) int64
        Distinct pairs in ascending order. The head of the first arc is the tail of the second arc.
    """
    into, out = _by_node(roads.heads, roads.last_ways), _by_node(roads.tails, roads.first_ways)
    numbers = {name: vertex for vertex, name in enumerate(roads.names.tolist())} if len(restrictions.via) else {}
    columns = (restrictions.only, restrictions.u_turn, restrictions.from_way, restrictions.via, restrictions.to_way)
    found: set[tuple[int, int]] = set()
    for only, u_turn, from_way, node, to_way in zip(*(column.tolist() for column in columns), strict=True):
        vertex = numbers.get(node)
        if vertex is None:
            continue
        leaving = out(vertex)
        for arc in (arc for arc, way in into(vertex) if way == from_way):
            meant = {each for each, way in leaving if way == to_way}
            if from_way == to_way:  # the way goes on behind the node: the restriction means one of the two turns
                meant = {each for each in meant if u_turn == _turns_back(roads, arc, each)}
            if only and meant:
                meant = {each for each, _ in leaving} - meant
            found |= {(arc, each) for each in meant}
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def _turns_back(roads: Roads, arc: int, following: int) -> bool:
    """Return whether the next arc leads back along the piece of road on which an arc arrives."""
    return bool(
        roads.last_nodes[arc] == roads.first_nodes[following] and roads.last_ways[arc] == roads.first_ways[following]
    )


def _by_node(vertices: np.ndarray, ways: np.ndarray):  # type: ignore[no-untyped-def]
    """Return a function of a vertex that lists the arcs there, each with its way there."""
    order = np.argsort(vertices, kind="stable")
    ordered = vertices[order]

    def at(vertex: int) -> list[tuple[int, int]]:
        first, last = np.searchsorted(ordered, [vertex, vertex + 1])
        return [(int(arc), int(ways[arc])) for arc in order[first:last]]

    return at

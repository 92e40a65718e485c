"""Read the ways of a profile from a file of OpenStreetMap, by Osmium.

1. Read the nodes. Osmium's location index keeps where each node is: 16 bytes of memory a node. In a large file, only
   nodes of the chosen ways are kept; a first pass finds these ways.
2. Read the ways. The profile decides about each way by its tags, once for each combination of tags. Osmium writes the
   chosen ways to a temporary file as lines of text (its format OPL) with the places of their nodes. Relations that
   restrict turns are kept, too.
3. Compiled code reads the text. A node whose place the file lacks, as at the border of an extract, ends a way.

Python handles ways and relations one by one, but no nodes, except nodes that are barriers.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
from numba import njit

from gpuops.extras import install
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.osm.profiles import Profile, Travel
from pipelines.formats.graphs.osm.restrictions import Restrictions, RestrictionsRead
from pipelines.stores.errors import raise_if_of_system

SUFFIXES = (".pbf", ".osm", ".osh", ".osc")  # files of the last two are refused with a reason
LARGE = 1 << 30  # bytes of a file from which on only nodes of chosen ways are kept
# Osmium ends the process if its writer meets a full disk, so this many bytes must stay free: about what it holds back.
LEAST_FREE = 128 << 20
CHECKED = 1 << 14  # ways between two looks at the free space of the disk
UNITS = 10_000_000  # places are whole numbers of 1e-7 degrees
_NOWHERE = 2**31 - 1  # the place of a node that the file lacks


@dataclass
class Ways:
    """Ways that a profile allows.

    Attributes
    ----------
    ids : (w,) int64 OpenStreetMap's numbers of the ways
    along, against : (w,) float64 speeds in km/h; 0 is closed
    seconds : (w,) float64 travel time of the whole way; 0 if the speeds decide
    classes : (w,) int16 positions in `class_names`
    class_names : values of highway, and "ferry", in alphabetical order
    offsets : (w + 1,) int64; the nodes of way i are ``nodes[offsets[i] : offsets[i + 1]]``
    nodes : (r,) int64 OpenStreetMap's numbers of the nodes
    x, y : (r,) int32 longitudes and latitudes of these nodes in units of 1e-7 degrees
    closed_nodes : (c,) int64, sorted: nodes that no path passes
    restrictions : restrictions of turns
    missing : number of nodes without a place
    seen : number of ways that are roads or ferries
    """

    ids: np.ndarray
    along: np.ndarray
    against: np.ndarray
    seconds: np.ndarray
    classes: np.ndarray
    class_names: tuple[str, ...]
    offsets: np.ndarray
    nodes: np.ndarray
    x: np.ndarray
    y: np.ndarray
    closed_nodes: np.ndarray
    restrictions: Restrictions
    missing: int
    seen: int


def read_ways(path: str, profile: Profile) -> Ways:
    """Return the ways of a file that a profile allows.

    Raises
    ------
    FormatError
        The file cannot be read, is a history, or has no ways for the profile.
    ImportError
        Osmium is missing.
    """
    try:
        import osmium
    except ImportError as error:
        raise ImportError(f"{path}: files of OpenStreetMap need Osmium: {install('osm')}") from error
    refuse_history(path)
    chosen = _Chosen(profile)
    with _errors(path), tempfile.TemporaryDirectory(prefix="tilepath-") as folder:
        if osmium.io.Reader(path, osmium.osm.NOTHING).header().has_multiple_object_versions:
            raise _history(path)
        index = osmium.index.create_map("flex_mem")
        locations = osmium.NodeLocationsForWays(index)
        locations.ignore_errors()
        roads = osmium.filter.KeyFilter("highway", "route").enable_for(osmium.osm.WAY)
        filters: list[Any] = []
        if os.path.getsize(path) > LARGE:
            needed = osmium.IdTracker()
            with osmium.io.Reader(path, osmium.osm.WAY) as reader:
                osmium.apply(reader, roads, _Needed(profile, needed))
            filters = [needed.id_filter().enable_for(osmium.osm.NODE)]
        barriers = osmium.filter.KeyFilter("barrier").enable_for(osmium.osm.NODE)
        with osmium.io.Reader(path, osmium.osm.NODE) as reader:
            osmium.apply(reader, *filters, locations, barriers, _Barriers(chosen))
        text = Path(folder, "ways.opl")
        writer = osmium.SimpleWriter(osmium.io.File(str(text), "opl,add_metadata=false,locations_on_ways=true"))
        relations = osmium.filter.TagFilter(("type", "restriction")).enable_for(osmium.osm.RELATION)
        try:
            with osmium.io.Reader(path, osmium.osm.WAY | osmium.osm.RELATION) as reader:
                osmium.apply(reader, locations, roads, relations, _Roads(chosen, writer, folder))
        finally:
            writer.close()
        if not chosen.ids:
            raise FormatError(
                f"{path}: has no way for the profile {profile.name}, of {chosen.seen:,} roads and ferries; choose "
                "another profile (profile, --profile), or another file"
            )
        offsets, nodes, x, y = _parsed(text)
    return _with_places(path, chosen, offsets, nodes, x, y)


def refuse_history(path: str) -> None:
    """Raise FormatError if the suffix is that of a file of histories or of changes."""
    parts = os.path.basename(path).lower().split(".")
    if "osh" in parts[1:]:
        raise _history(path)
    if "osc" in parts[1:]:
        raise FormatError(f"{path}: is a file of changes; take a file of all objects (.osm.pbf, .osm)")


def _history(path: str) -> FormatError:
    return FormatError(
        f"{path}: is a history, with several versions of each object; take the present map (.osm.pbf), or extract one "
        "day by `osmium time-filter`"
    )


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Turn errors of Osmium into FormatError."""
    from osmium import InvalidLocationError

    try:
        yield
    except (RuntimeError, ValueError, OSError, InvalidLocationError) as error:
        if isinstance(error, FormatError):
            raise
        raise_if_of_system(error, path)
        raise FormatError(
            f"{path}: cannot be read ({error}); get a new copy if it is cut short, or correct its suffix"
        ) from error


class _Chosen:
    """The ways that a profile allows, in their order, and the restrictions and barriers."""

    def __init__(self, profile: Profile):
        self.profile, self.keys = profile, profile.keys
        self.travels: list[Travel] = []
        self.classes: list[str] = []  # of each entry of `travels`
        self._known: dict[tuple[str | None, ...], int] = {}
        self.ids, self.kinds = array("q"), array("i")  # of each way, its number, and the place of its travel
        self.closed_nodes: list[int] = []
        self.restrictions = RestrictionsRead(profile)
        self.seen = 0

    def kind(self, way: Any) -> int:
        """Return the place in `travels` of how the profile uses a way, or -1; equal tags are looked at once.

        `seen` counts roads and ferries.
        """
        values = tuple(map(way.tags.get, self.keys))
        self.seen += values[0] is not None or values[1] == "ferry"
        found = self._known.get(values)
        if found is None:
            tags = {key: value for key, value in zip(self.keys, values, strict=True) if value is not None}
            travel = self.profile.travel(tags)
            found = self._known[values] = -1 if travel is None else len(self.travels)
            if travel is not None:
                self.travels.append(travel)
                self.classes.append(tags.get("highway", "ferry"))
        return found


class _Needed:
    """Collects the nodes of chosen ways."""

    def __init__(self, profile: Profile, needed: Any):
        self._chosen, self._needed = _Chosen(profile), needed

    def way(self, way: Any) -> None:
        if self._chosen.kind(way) >= 0:
            self._needed.add_references(way)


class _Barriers:
    """Collects the nodes that no path passes."""

    def __init__(self, chosen: _Chosen):
        self._chosen = chosen

    def node(self, node: Any) -> None:
        if self._chosen.profile.closes(dict(node.tags)):
            self._chosen.closed_nodes.append(node.id)


class _Roads:
    """Collects the chosen ways, whose nodes go to the writer, and the restrictions."""

    def __init__(self, chosen: _Chosen, writer: Any, folder: str):
        self._chosen, self._writer, self._folder = chosen, writer, folder

    def way(self, way: Any) -> None:
        chosen = self._chosen
        if chosen.seen % CHECKED == 0 and shutil.disk_usage(self._folder).free < LEAST_FREE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._folder)
        kind = chosen.kind(way)
        if kind >= 0 and way.visible and len(way.nodes):
            chosen.ids.append(way.id)
            chosen.kinds.append(kind)
            self._writer.add_way(way)

    def relation(self, relation: Any) -> None:
        members = [(each.type, each.ref, each.role) for each in relation.members]
        self._chosen.restrictions.add(dict(relation.tags), members)


def _with_places(
    path: str, chosen: _Chosen, offsets: np.ndarray, nodes: np.ndarray, x: np.ndarray, y: np.ndarray
) -> Ways:
    """Return the ways, cut at nodes without a place."""
    ids = np.array(chosen.ids, np.int64)
    kinds = np.array(chosen.kinds)
    missing = x == _NOWHERE
    if missing.all():
        raise FormatError(
            f"{path}: has roads, but no places of their nodes; take a file with the nodes (as by `osmium extract`, or "
            "the recursion `(._;>;);` of Overpass)"
        )
    owner = np.repeat(np.arange(len(ids)), np.diff(offsets))
    if missing.any():  # each missing node begins a new piece of its way, without the node itself
        piece = np.cumsum(missing | np.concatenate([[True], np.diff(owner) != 0]))
        kept = ~missing
        nodes, x, y, owner, piece = nodes[kept], x[kept], y[kept], owner[kept], piece[kept]
        first = np.flatnonzero(np.concatenate([[True], np.diff(piece) != 0]))
        offsets, owner = np.append(first, len(piece)), owner[first]
        ids, kinds = ids[owner], kinds[owner]
    travel = np.array(chosen.travels, np.float64)[kinds]
    names, classes = np.unique(chosen.classes, return_inverse=True)
    return Ways(
        ids=ids,
        along=travel[:, 0],
        against=travel[:, 1],
        seconds=travel[:, 2],
        classes=classes.astype(np.int16)[kinds],
        class_names=tuple(names.tolist()),
        offsets=offsets,
        nodes=nodes,
        x=x,
        y=y,
        closed_nodes=np.unique(np.array(chosen.closed_nodes, np.int64)),
        restrictions=chosen.restrictions.table(),
        missing=int(missing.sum()),
        seen=chosen.seen,
    )


def _parsed(text: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the offsets, nodes and places of the ways of a file in OPL."""
    size = os.path.getsize(text)
    data = np.memmap(text, np.uint8, "r") if size else np.zeros(0, np.uint8)
    ways, nodes = _counted(data)
    offsets, found = np.zeros(ways + 1, np.int64), np.empty(nodes, np.int64)
    x, y = np.full(nodes, _NOWHERE, np.int32), np.full(nodes, _NOWHERE, np.int32)
    _read(data, offsets, found, x, y)
    return offsets, found, x, y


@njit(nogil=True, cache=True)
@no_type_check
def _counted(data):
    """Return the numbers of lines and of nodes: a field of nodes begins with " Nn", and a comma precedes other nodes.

    OPL escapes commas, blanks and line ends in tags.
    """
    lines, nodes, inside = 0, 0, False
    for i in range(len(data)):
        c = data[i]
        if c == 10:
            lines += 1
            inside = False
        elif c == 32:
            inside = i + 2 < len(data) and data[i + 1] == 78 and data[i + 2] == 110  # Nn
            nodes += inside
        elif c == 44 and inside:
            nodes += 1
    return lines, nodes


@njit(nogil=True, cache=True)
@no_type_check
def _decimal(data, at):
    """Return a number of at most 7 decimals in units of 1e-7, and the place after the number."""
    sign, value, decimals = 1, 0, -1
    if data[at] == 45:
        sign, at = -1, at + 1
    while at < len(data) and (48 <= data[at] <= 57 or data[at] == 46):
        if data[at] == 46:
            decimals = 0
        else:
            value = 10 * value + (data[at] - 48)
            decimals += decimals >= 0
        at += 1
    for _ in range(7 - max(decimals, 0)):
        value *= 10
    return sign * value, at


@njit(nogil=True, cache=True)
@no_type_check
def _read(data, offsets, nodes, x, y):
    """Read lines such as ``w1 Thighway=path Nn5x6.1y47.2,n7xy``; the last node has no place."""
    at, way, node = 0, 0, 0
    while at < len(data):
        if data[at] == 10:
            way += 1
            offsets[way] = node
        if data[at] != 32 or at + 2 >= len(data) or data[at + 1] != 78 or data[at + 2] != 110:
            at += 1
            continue
        at += 2
        while data[at] == 110:  # n
            sign, value, at = 1, 0, at + 1
            if data[at] == 45:
                sign, at = -1, at + 1
            while 48 <= data[at] <= 57:
                value = 10 * value + (data[at] - 48)
                at += 1
            nodes[node] = sign * value
            at += 1  # x
            if data[at] != 121:
                x[node], at = _decimal(data, at)
                y[node], at = _decimal(data, at + 1)
            else:
                at += 1
            node += 1
            if data[at] != 44:
                break
            at += 1

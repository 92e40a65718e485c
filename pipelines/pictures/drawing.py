"""The contents of a picture of a graph before it is laid out: nodes and arcs with texts, colours and widths.

`write_dot` writes it as text for Graphviz, which lays it out, unless the drawing has coordinates.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from pipelines.files.output_file import check_free, whole_file

GREY, PALE, RED, GREEN, BLUE, YELLOW = "#5f6368", "#e3e5e8", "#c5221f", "#188038", "#8ab4f8", "#fde293"
CLOSED = "#7f1d1d"  # dark red
LIGHT_GREEN, LIGHT_RED = "#81c995", "#f6aea9"
LEVELS = ("#0d0829", "#5f187f", "#a3307e", "#d8456c", "#f1605d", "#f9885f", "#fea973", "#fed395")  # the root first
PAPER, INK = "#ffffff", "#202124"
PARTS = ("#7baaf7", "#f6ae2d", "#6fbf8b", "#e58a8a", "#b39ddb", "#5ec4c4", "#d4b483", "#f48fb1")

NAMED_NODES, NUMBERED_ARCS = 150, 400  # most nodes and arcs with room for names, arrow heads and numbers of arcs
FEW_NODES = 500  # with at most this many nodes, dots are large, and every node has a dot
NARROWEST = 540.0  # longer side of a map, in points


@dataclass
class Area:
    """A filled area: its colour, its polygons, each a list of rings (k, 2) with the outline first, and what it is."""

    colour: str
    polygons: list[list[np.ndarray]]
    text: str


@dataclass
class Drawing:
    """A graph to be drawn.

    Attributes
    ----------
    names : (n) names of the nodes
    tails, heads : (m) nodes; parallel arcs and loops are allowed
    directed : whether arcs have arrow heads
    title : line above the picture
    texts : (m) texts next to the arcs, or None
    colours, widths : (m) colours and widths of the arcs, widths in points; arrays, by default grey and 1
    fills : (n) colours of the nodes, an array; by default white
    frames : names and nodes of groups; each group gets a frame
    legend : colours of nodes or arcs, and their meanings
    coordinates : (n, 2) coordinates of the nodes, or None
    circles : groups of nodes to be laid out as circles, each in order; or None
    values : (n) numbers that give the nodes their colours, NaN for a node without a number; or None
    scale : label of the scale of `values`
    every : width of bands of values; nodes and arcs get the colours of bands. With None, colours of nodes are smooth,
        and arcs are not coloured by values
    rims : whether nodes without room for names have a rim
    lifted : (m) bool, arcs that are drawn over other arcs
    marks : nodes with a ring, such as the source of distances and the ends of a route
    radii : (n) radii of nodes without room for names, in points; or None: all nodes are equal
    captions : whether names are written in dots or to the right of dots, where there is room
    bends : offsets (m + 1) and points of the lines of arcs, in the unit of the coordinates; None: arcs are straight
    metres : what a unit of the coordinates measures; 0 if this is not known
    inches : width of a map; None for the default
    dpi : pixels of an inch
    cmap : name of the colour map of matplotlib for `values`
    attribution : text below the picture that names the origin of the data, "" for none
    areas : areas below the arcs, in the unit of the coordinates, the lowest first
    closed : lines of closed roads, each (k, 2), in the unit of the coordinates
    crs : the coordinate system of the coordinates, "" if it is not known
    stretched : what longitudes and latitudes were multiplied by to become the coordinates; None for other systems
    """

    names: list[str]
    tails: np.ndarray
    heads: np.ndarray
    directed: bool = True
    title: str = ""
    texts: list[str] | None = None
    colours: Any = None
    widths: Any = None
    fills: Any = None
    frames: list[tuple[str, np.ndarray]] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)
    coordinates: np.ndarray | None = None
    circles: list[np.ndarray] | None = None
    values: np.ndarray | None = None
    scale: str = ""
    every: float | None = None
    rims: bool = True
    lifted: np.ndarray | None = None
    marks: list[int] = field(default_factory=list)
    radii: np.ndarray | None = None
    captions: bool = False
    bends: tuple[np.ndarray, np.ndarray] | None = None
    metres: float = 0.0
    inches: float | None = None
    dpi: int = 150
    cmap: str = "viridis_r"
    attribution: str = ""
    areas: list[Area] = field(default_factory=list)
    closed: list[np.ndarray] = field(default_factory=list)
    crs: str = ""
    stretched: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.colours = np.array([GREY] * self.m if self.colours is None else self.colours, object)
        self.widths = np.array([1.0] * self.m if self.widths is None else self.widths)
        self.fills = np.array([PAPER] * self.n if self.fills is None else self.fills, object)
        if self.lifted is None:
            self.lifted = np.zeros(self.m, bool)

    @property
    def n(self) -> int:
        return len(self.names)

    @property
    def m(self) -> int:
        return len(self.tails)

    @property
    def few(self) -> bool:
        """Whether there is room for large dots."""
        return self.n <= FEW_NODES

    @property
    def streets(self) -> bool:
        """Whether the picture is a map of streets: lines, not dots, have colours."""
        return self.coordinates is not None and not self.few

    @property
    def detailed(self) -> bool:
        """Whether the picture has room for names, arrow heads and curved arcs."""
        return self.n <= NAMED_NODES and self.m <= NUMBERED_ARCS and not self.captions

    def kept(self, nodes: np.ndarray, arcs: np.ndarray) -> Drawing:
        """Return the drawing with some of the nodes and arcs, both bool; the ends of these arcs must be among them."""
        assert self.lifted is not None
        place = np.cumsum(nodes) - 1
        return replace(
            self,
            names=list(compress(self.names, nodes)),
            tails=place[self.tails[arcs]],
            heads=place[self.heads[arcs]],
            texts=None if self.texts is None else list(compress(self.texts, arcs)),
            colours=self.colours[arcs],
            widths=self.widths[arcs],
            fills=self.fills[nodes],
            frames=[(name, place[group[nodes[group]]]) for name, group in self.frames if nodes[group].any()],
            coordinates=None if self.coordinates is None else self.coordinates[nodes],
            values=None if self.values is None else self.values[nodes],
            lifted=self.lifted[arcs],
            marks=[int(place[v]) for v in self.marks if nodes[v]],
            radii=None if self.radii is None else self.radii[nodes],
            bends=None if self.bends is None else _bends_of(*self.bends, arcs),
        )


def _bends_of(offsets: np.ndarray, points: np.ndarray, arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bends of some arcs, set in `arcs`, bool (m)."""
    counts = np.diff(offsets)
    return np.concatenate([[0], np.cumsum(counts[arcs])]), points[np.repeat(arcs, counts)]


def write_dot(drawing: Drawing, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write the text. Nodes are called v0, v1, ... in it, and have their names as labels."""
    arrow = "->" if drawing.directed else "--"
    check_free(path, overwrite)
    lines = [f"{'digraph' if drawing.directed else 'graph'} {_quoted(drawing.title or 'graph')} {{"]
    label = "\\n".join(filter(None, (_quoted(drawing.title)[1:-1], _quoted(drawing.attribution)[1:-1])))
    lines.append(f'  label="{label}"; labelloc=t; fontsize=10;')
    lines.append("  node [style=filled, fillcolor=white, fontsize=10];")
    lines.append("  edge [fontsize=8, arrowsize=0.6];")
    places = _places(drawing)
    for v, name in enumerate(drawing.names):
        ring = ", peripheries=2" if v in drawing.marks else ""
        lines.append(f'  v{v} [label={_quoted(name)}, fillcolor="{drawing.fills[v]}"{ring}{places[v]}];')
    for number, (name, group) in enumerate(drawing.frames):
        members = " ".join(f"v{v};" for v in group.tolist())
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(name)}; {members} }}")
    for arc, (u, v) in enumerate(zip(drawing.tails.tolist(), drawing.heads.tolist(), strict=True)):
        colour = drawing.colours[arc]
        text = f', label={_quoted(drawing.texts[arc])}, fontcolor="{colour}"' if drawing.texts is not None else ""
        lines.append(f'  v{u} {arrow} v{v} [color="{colour}", penwidth={drawing.widths[arc]:g}{text}];')
    with whole_file(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join([*lines, "}"]) + "\n")


def _places(drawing: Drawing) -> list[str]:
    """Return the positions of nodes for `neato -n`, in points, or empty texts if the drawing has no coordinates."""
    if drawing.coordinates is None or not drawing.n:
        return [""] * drawing.n
    low, high = drawing.coordinates.min(axis=0), drawing.coordinates.max(axis=0)
    scale = NARROWEST / max(float((high - low).max()), 1e-300)
    return [f', pos="{x:.2f},{y:.2f}!"' for x, y in ((drawing.coordinates - low) * scale).tolist()]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'

"""Read GraphML piece by piece: the XML format that NetworkX, igraph, Gephi, yEd and OSMnx write.

    <key id="d0" for="edge" attr.name="length" attr.type="double"/>
    <graph edgedefault="directed">
      <node id="a"/> <node id="b"/>
      <edge source="a" target="b"><data key="d0">12.5</data></edge>
    </graph>

The ids of nodes become labels unless they are 0, 1, 2, ... The node attributes x and y, which OSMnx writes, become
coordinates, the edge attribute geometry becomes lines, and highway becomes the classes of roads. The graph attribute
crs names the coordinate system. Parallel edges and loops are kept. Every <key> comes before <graph>, every node and
edge within it.
http://graphml.graphdrawing.org/specification.html
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple
from xml.parsers import expat

import numpy as np

from pipelines.formats.arc_stream import ArcStream, Piece
from pipelines.formats.errors import FormatError
from pipelines.formats.graphs.columns import listed, unread_numbers
from pipelines.formats.graphs.edge_lines import EdgeLines, line_in_text
from pipelines.formats.graphs.osmnx import attribution_of, crs_of, units_of
from pipelines.formats.graphs.vertices import NAME_BYTES
from pipelines.formats.graphs.weight_units import unit_named
from pipelines.formats.text_file import is_number, is_whole
from pipelines.stores.road_classes import COLUMNS

_BLOCK_BYTES = 1 << 20
_PIECE_ARCS = 1 << 16
MOST_BYTES = 16 << 20  # of one element; a zipped file of a few megabytes may expand to gigabytes
MOST_DEPTH = 200
_DOMAINS = ("all", "graph", "node", "edge", "hyperedge", "port", "endpoint", "graphml")  # of a key


class _Key(NamedTuple):
    """An attribute that nodes or edges may have."""

    domain: str
    name: str
    kind: str


@contextmanager
def read_graphml(source: str | os.PathLike[str], weight: str | None = None) -> Iterator[ArcStream]:
    """Yield the only graph of a GraphML file, gzip'd or not.

    `weight` names the edge attribute that holds the weights. By default it is "weight" if the file declares this
    attribute; else the graph is unweighted, with a warning if other attributes are numbers. The edge attribute
    "geometry", which files of OSMnx have, becomes lines.
    """
    name = os.fspath(source)
    try:
        file: BinaryIO = open(name, "rb")
    except OSError as error:
        raise FormatError(f"{name}: cannot be read ({error.strerror}); check the name") from error
    with file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content: Any = gzip.open(file) if zipped else file
        elements = _Elements(name, weight)
        stream = ArcStream((), labels=elements.numbers, label_bytes=NAME_BYTES)
        stream.pieces = _pieces(name, content, elements, stream)
        yield stream


def _pieces(name: str, content: BinaryIO, elements: _Elements, stream: ArcStream) -> Iterator[Piece]:
    last = False
    while not last:
        try:
            block = content.read(_BLOCK_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            raise FormatError(f"{name}: damaged ({error}); get a new copy") from error
        last = not block
        elements.parse(block, last)
        if last or len(elements.tails) >= _PIECE_ARCS:
            stream.directed, stream.weighted = elements.directed is not False, elements.weighted
            if elements.tails:
                yield elements.take_piece()
    elements.finish(stream)


class _Elements:
    """The nodes, edges and attributes of a file, collected by the parser's handlers."""

    def __init__(self, name: str, weight: str | None):
        self.name, self.weight = name, weight
        self.directed: bool | None = None
        self.numbers: dict[str, int] = {}  # number of each node, by its id
        self.tails: list[int] = []
        self.heads: list[int] = []
        self.weights: list[int | float] = []
        self._lines = EdgeLines()
        self._keys: dict[str, _Key] = {}
        self._defaults: dict[str, str] = {}
        self._weight_keys: list[str] = []  # several keys if the writer has one for each type of value
        self._numeric: dict[str, bool] = {}  # whether all values of an attribute are numbers; only without weights
        self._line_keys: list[str] = []
        self._class_keys: list[str] = []
        self._positions: dict[int, dict[str, float]] = {}
        self._awaited: dict[int, int] = {}  # nodes that so far only edges have named, with the line of the first edge
        self._open: list[str] = []  # the open elements: graph, node, edge
        self._edge: dict[str, str] = {}
        self._node = self._line = 0
        self._data: dict[str, str] = {}
        self._of_graph: dict[str, str] = {}  # attributes of the graph, by name
        self._key = ""
        self._text: list[str] | None = None
        self._fed = self._length = self._depth = 0  # bytes parsed; characters in `_text`; open elements of all kinds
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._start, self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse_entity

    @property
    def weighted(self) -> bool:
        """Whether edges have weights; known from the start of the graph on."""
        return bool(self._weight_keys)

    def parse(self, block: bytes, last: bool) -> None:
        try:
            self._parser.Parse(block, last)
            self._fed += len(block)
            if self._fed - self._parser.CurrentByteIndex > MOST_BYTES:
                raise self._error(f"an element of more than {MOST_BYTES:,} bytes; check that it is GraphML")
        except expat.ExpatError as error:
            text = expat.errors.messages[error.code]
            raise FormatError(f"{self.name}, line {error.lineno}: not valid XML ({text}); get a new copy") from error
        except FormatError:
            raise
        except (LookupError, ValueError) as error:  # an encoding that Python does not know, or has no table of
            raise self._error(f"the text cannot be decoded ({error}); write the file as UTF-8") from error

    def take_piece(self) -> Piece:
        exact = all(type(weight) is int for weight in self.weights)
        piece = (
            np.array(self.tails, np.int64),
            np.array(self.heads, np.int64),
            np.array(self.weights, np.int64 if exact else np.float64) if self.weighted else None,
        )
        self.tails, self.heads, self.weights = [], [], []
        if self._line_keys or self._class_keys:
            self._lines.add_edges(*piece)
        return piece

    def finish(self, stream: ArcStream) -> None:
        """Complete `stream` at the end of the file: number of nodes, coordinates, and whether nodes need labels."""
        if self.directed is None:
            raise FormatError(f"{self.name}: has no <graph>; check that it is GraphML")
        for number, line in self._awaited.items():
            missing = list(self.numbers)[number]
            raise self._error(f"an edge ends at the node {missing!r:.80}, which the file does not have; add it", line)
        stream.n = len(self.numbers)
        if all(name == str(number) for name, number in self.numbers.items()):
            stream.labels = None
        if self._positions and stream.coordinates is None:
            stream.coordinates = np.full((stream.n, 2), np.nan)
            for number, position in self._positions.items():
                stream.coordinates[number] = position.get("x", np.nan), position.get("y", np.nan)
            stream.crs = stream.crs or crs_of(self._of_graph, stream.remarks)
        if stream.attribution is None:
            stream.attribution = attribution_of(self._of_graph)
        if self._lines and isinstance(stream.coordinates, np.ndarray):
            stream.lines = partial(self._lines.stored, stream.coordinates, stream.directed)
        if self._class_keys:
            stream.classes = partial(self._lines.stored_classes, stream.directed)
        own = units_of(self._of_graph).get(self.weight or "", unit_named(self.weight or "")) if self.weighted else ""
        stream.weight_unit = stream.weight_unit or own
        warnings = [] if self.weighted else unread_numbers(self.name, self._numbers_of_edges())
        stream.warnings += warnings
        if not self.weighted and not warnings:
            others = listed(self._names_of_edges())
            cure = f"; other attributes are {others} (weight, --weight)" if others else ""
            stream.remarks.append(f"{self.name}: edges have no attribute 'weight', so each arc counts 1{cure}")

    # --- Handlers of the parser ---------------------------------------------------------------------------------------

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(":")[2]
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self._error(f"elements within more than {MOST_DEPTH} others; check that it is GraphML")
        if kind in ("node", "edge") and "graph" not in self._open:
            raise self._error(f"a <{kind}> is not within <graph>; move it there")
        if kind == "key":
            self._start_key(attributes)
        elif kind in ("data", "default"):
            if kind == "data" and "key" not in attributes:
                raise self._error("a <data> has no key; name the id of its <key>")
            self._key = attributes.get("key", self._key)
            self._text, self._length = [], 0
        elif kind == "graph":
            self._start_graph(attributes.get("edgedefault"))
        elif kind == "node":
            self._start_node(attributes.get("id"))
        elif kind == "edge":
            self._open.append("edge")
            self._edge, self._line, self._data = attributes, self._parser.CurrentLineNumber, {}
        elif kind == "hyperedge":
            raise self._error("a <hyperedge> joins more than two nodes; replace it by edges")

    def _end(self, tag: str) -> None:
        kind = tag.rpartition(":")[2]
        self._depth -= 1
        if kind in ("data", "default") and self._text is not None:
            text, self._text = "".join(self._text).strip(), None
            (self._data if kind == "data" else self._defaults)[self._key] = text
            if kind == "data" and self._open == ["graph"] and self._key in self._keys:
                self._of_graph[self._keys[self._key].name] = text
        elif kind in ("graph", "node", "edge") and self._open and self._open.pop() == kind:
            if kind == "node":
                self._end_node()
            elif kind == "edge":
                self._end_edge()

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._length += len(text)
            if self._length > MOST_BYTES:
                raise self._error(f"an element of more than {MOST_BYTES:,} bytes; check that it is GraphML")
            self._text.append(text)

    def _start_key(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:  # edges before it would have been read without their weights
            raise self._error("a <key> comes after <graph>; move it before")
        domain = attributes.get("for", "all")
        if domain not in _DOMAINS:
            raise self._error(f"a <key> is for {domain!r:.80}; write one of {', '.join(_DOMAINS)}")
        if "id" not in attributes:
            raise self._error("a <key> has no id; give it one")
        self._key = attributes["id"]
        name = attributes.get("attr.name", self._key)
        self._keys[self._key] = _Key(domain, name, attributes.get("attr.type", "string"))

    def _start_graph(self, default: str | None) -> None:
        if self.directed is not None:
            raise self._error("there is a second <graph>; write each graph to a file of its own")
        if default not in ("directed", "undirected"):
            written = "missing" if default is None else repr(default)[:80]
            raise self._error(f"edgedefault of <graph> is {written}; write directed or undirected")
        self._open.append("graph")
        self.directed = default == "directed"
        name = self.weight or "weight"
        found = [key for key, (domain, called, _) in self._keys.items() if called == name and domain in ("edge", "all")]
        if not found and self.weight is not None:
            known = listed(self._names_of_edges()) or "none"
            raise self._error(f"edges have no attribute {self.weight!r:.80}; choose another weight (--weight): {known}")
        self._weight_keys, self.weight = found, name if found else None
        edges = {key: called for key, (domain, called, _) in self._keys.items() if domain in ("edge", "all")}
        self._line_keys = [key for key, called in edges.items() if called == "geometry"]
        self._class_keys = [key for key, called in edges.items() if called == COLUMNS[0]]

    def _start_node(self, name: str | None) -> None:
        if name is None:
            raise self._error("a <node> has no id; give it one")
        known = name in self.numbers
        self._node = self.numbers.setdefault(name, len(self.numbers))
        if known and self._awaited.pop(self._node, None) is None:
            raise self._error(f"there is a second node {name!r:.80}; give each an id of its own")
        self._open.append("node")
        self._line, self._data = self._parser.CurrentLineNumber, {}

    def _end_node(self) -> None:
        for key, text in self._data.items():
            domain, name, kind = self._keys.get(key, _Key("", "", ""))
            if name in ("x", "y") and domain in ("node", "all"):
                if is_number(text) or text.lower() == "nan":
                    self._positions.setdefault(self._node, {})[name] = float(text)
                elif kind != "string":
                    raise self._error(f"the {name} of a node is {text!r:.80}; write a number", self._line)

    def _end_edge(self) -> None:
        ends = []
        for end in ("source", "target"):
            name = self._edge.get(end)
            if name is None:
                raise self._error(f"an <edge> has no {end}; name a node", self._line)
            number = self.numbers.get(name)
            if number is None:
                number = self.numbers[name] = len(self.numbers)
                self._awaited[number] = self._line
            ends.append(number)
        if self._edge.get("directed", str(self.directed).lower()) != str(self.directed).lower():
            raise self._error(
                "one edge is directed and others are not; write every undirected one as two directed ones", self._line
            )
        self.tails.append(ends[0])
        self.heads.append(ends[1])
        if self.weighted:
            self.weights.append(self._weight())
        else:
            for key, text in self._data.items():  # by their values, since OSMnx declares all numbers as strings
                if self._numeric.get(key, True):
                    self._numeric[key] = is_number(text)
        if self._line_keys:
            texts = [self._data[key] for key in self._line_keys if key in self._data]
            self._lines.add_line(line_in_text(texts[0]) if texts else None)
        if self._class_keys:
            self._lines.add_class(next((self._data[key] for key in self._class_keys if key in self._data), ""))

    def _weight(self) -> int | float:
        key = next((key for key in self._weight_keys if key in self._data), self._weight_keys[0])
        text = self._data.get(key, self._defaults.get(key))
        where = f"the edge {self._edge['source']!r:.80} - {self._edge['target']!r:.80}"
        if text is None:
            raise self._error(f"{where} has no {self.weight!r}; give it a number", self._line)
        whole = self._keys[key].kind not in ("float", "double") and is_whole(text)
        try:
            value = int(text) if whole else float(text) if is_number(text) else math.nan
        except ValueError:  # more digits than int() takes
            value = math.nan
        if not (math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63):
            raise self._error(f"{where} has {self.weight!r} = {text!r:.80}; give it a finite number", self._line)
        return value

    def _names_of_edges(self) -> list[str]:
        return [name for domain, name, _ in self._keys.values() if domain in ("edge", "all")]

    def _numbers_of_edges(self) -> list[str]:
        """Return the names of the attributes whose values are numbers; defaults count as values."""
        numeric = {key: is_number(text) for key, text in self._defaults.items()} | self._numeric
        numeric = {
            key: is_one and self._keys[key].kind != "boolean"
            for key, is_one in numeric.items()
            if key in self._keys and self._keys[key].domain in ("edge", "all")
        }
        text = {self._keys[key].name for key, is_one in numeric.items() if not is_one}
        names = {self._keys[key].name: None for key in self._keys if key in numeric}
        return [name for name in names if name not in text]

    def _refuse_entity(self, *_declaration: Any) -> None:
        raise self._error("the file declares an entity, which GraphML does not need; remove it")

    def _error(self, what: str, line: int | None = None) -> FormatError:
        return FormatError(f"{self.name}, line {self._parser.CurrentLineNumber if line is None else line}: {what}")

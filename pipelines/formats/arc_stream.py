"""Arcs on their way from a source to a graph store: what every reader of graphs yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from pipelines.stores.lines import Lines
from pipelines.stores.road_classes import RoadClasses

Piece = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # tails, heads and weights; an unweighted graph has None

LABEL_BYTES = 128  # bytes of memory per label: its text, and its entries in a list and in an array


@dataclass
class ArcStream:
    """Arcs in pieces, and known properties of their graph.

    Attributes
    ----------
    pieces : iterable of (tails, heads, weights), 1-d arrays of equal length, vertices from 0; weights are None if the
        graph is unweighted
    n : number of vertices; None: one more than the largest vertex in the pieces, or `known` if that is larger
    known : number of vertices that exist even without arcs; it may grow while the pieces are read
    directed : False: each edge is given once and stored in both directions
    weighted : False: each arc counts 1, and no weights are stored; it must be right when the first piece is read
    weight_dtype : dtype of the stored weights; None: int32 or int64 if every piece has integers, else float64
    labels : names of the vertices in order, or None; n labels are read after the last piece. A range gives its numbers
    text_labels : whether the source, which has types, names vertices by text. Else labels that are all written as
        integers are integers in tables: files of text have no types
    label_bytes : bytes of memory that a label takes while the store is made; labels of a range take no memory
    through : bool (n), False for closed vertices, or a function of n that returns this array, or None
    coordinates : float64 (n, 2), or a function of n and the labels that returns this array, or None
    lines : function of `simplify` and `sorted_rows` that returns the lines of the stored arcs, in their order; or None
    classes : function as `lines` that returns the classes of the roads of the stored arcs, or None if there are none
    turns : function of `simplify` and `sorted_rows` that returns the turns that the source forbids, int64 (t, 2), as
        pairs of stored arcs; or None
    turn_restrictions : number of restrictions in the source that forbid turns; only `turns` obeys them
    more_weights : function as `lines` that returns other weights by their names, each with its unit; or None
    crs : name of the coordinate system, "" if it is not known
    attribution : text that pictures and maps show as the origin of the data; None, like "", for none
    weight_unit, source : text for `tilepath info`
    units : units of columns that the source is known to have, such as {"travel_time": "s"} of OSMnx
    weight_name : name of the weights, "" for none
    remarks : remarks for the user about the source; remarks may be added while the pieces are read
    warnings : remarks that say that the graph is probably not what the user wants
    fault : reason to refuse the arcs, empty if there is none; it may be set while the pieces are read
    """

    pieces: Iterable[Piece]
    n: int | None = None
    known: int = 0
    directed: bool = True
    weighted: bool = True
    weight_dtype: Any = None
    labels: Iterable[str] | range | None = field(default=None, repr=False)
    text_labels: bool = False
    label_bytes: int = LABEL_BYTES
    through: np.ndarray | Callable[[int], np.ndarray] | None = None
    coordinates: np.ndarray | Callable[[int, Iterable[str] | None], np.ndarray] | None = None
    lines: Callable[[bool, bool], Lines] | None = None
    classes: Callable[[bool, bool], RoadClasses | None] | None = None
    turns: Callable[[bool, bool], np.ndarray] | None = None
    turn_restrictions: int = 0
    more_weights: Callable[[bool, bool], Mapping[str, tuple[np.ndarray, str]]] | None = None
    crs: str = ""
    attribution: str | None = None
    weight_unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    weight_name: str = ""
    source: str = ""
    remarks: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    fault: str = ""

    def first_labels(self, n: int) -> list[str] | range | None:
        """Return the labels of the first n vertices."""
        if self.labels is None or isinstance(self.labels, range):
            return self.labels and self.labels[:n]
        return list(islice(self.labels, n))

"""Draw a graph for a notebook, which asks a graph for its picture (`pipelines.stores.displays`)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.pictures.graphs import picture_graph
from pipelines.stores.graph import Graph

MOST_VERTICES, MOST_ARCS = 60, 200  # a larger graph takes more than half a second to draw


def svg_of(graph: object) -> str | None:
    """Return the picture of a small graph as an SVG element; None for a large graph, or without the extra `plot`."""
    if not isinstance(graph, Graph) or graph.n > MOST_VERTICES or graph.m > MOST_ARCS:
        return None
    with TemporaryDirectory() as folder:
        path = Path(folder, "graph.svg")
        try:
            picture_graph(graph, path)
        except ImportError:
            return None
        text = path.read_text(encoding="utf-8")
    return text[text.index("<svg") :]  # HTML has no XML declaration

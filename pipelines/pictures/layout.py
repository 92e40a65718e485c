"""Place the nodes of a picture, in points: on a map, in circles, in layers, or by forces; components side by side.

* A graph with coordinates is drawn as a map.
* Up to `LAYERED` nodes lie in layers. Without a cycle, a node lies below all nodes that lead to it; else its layer is
  the number of arcs on a shortest path to it. Within a layer, nodes are ordered by the mean positions of their
  neighbours, so that few arcs cross. A component with many arcs (`DENSE`) is a circle.
* More nodes are laid out by forces, with NetworkX. Up to `EXACT` nodes the layout is by T. Kamada, S. Kawai, "An
  algorithm for drawing general undirected graphs", 1989. Beyond, it is by T. Fruchterman, E. Reingold, "Graph drawing
  by force-directed placement", 1991, and starts from a layout by U. Brandes, C. Pich, "Eigensolver methods for
  progressive multidimensional scaling", 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpuops.extras import install
from pipelines.pictures.drawing import Drawing

LAYERED = 10  # most nodes that lie in layers
DENSE = 1.5  # pairs of neighbours per node, beyond which up to `LAYERED` nodes lie in a circle
EXACT = 150  # most nodes for Kamada and Kawai's layout
PIVOTS = 50  # nodes whose distances to all nodes begin a layout by forces
TALLEST = 1.3  # greatest height of a map, in widths
MAP_WIDTH = 540.0  # greatest width of a map in points: 7.5 inches
GAP = 34.0  # gap between components, in points
LOOP = 22.0  # room for a loop around its node, in points


def place_nodes(drawing: Drawing, sizes: np.ndarray, step: float, seed: int) -> np.ndarray:
    """Return the centres of the nodes, float64 (n, 2), y upwards.

    Parameters
    ----------
    drawing : the nodes and arcs
    sizes : (n, 2) half the width and half the height of each node
    step : desired distance between neighbours, in points
    seed : seed of the random numbers in a layout by forces
    """
    if drawing.n == 0:
        return np.zeros((0, 2))
    if drawing.coordinates is not None:
        low, scale = map_frame(drawing.coordinates, drawing.inches)
        return (drawing.coordinates - low) * scale
    if drawing.circles is not None:
        groups: list[np.ndarray] = drawing.circles
        placed = [_circle(len(group), 2 * sizes[group].max(initial=0) + 0.24 * step) for group in groups]
    else:
        groups = _components(drawing)
        lay: Callable[..., np.ndarray] = _forces
        if drawing.n <= LAYERED:
            lay = partial(_few, drawing.directed)
        placed = [lay(*_within(drawing, group), sizes[group], step, seed) for group in groups]
    around = sizes.copy()
    if drawing.detailed:
        around[drawing.tails[drawing.tails == drawing.heads]] += LOOP
    return _packed(groups, placed, around, GAP + (14 if drawing.frames else 0))


def on_paper(degrees: np.ndarray) -> np.ndarray:
    """Return what longitudes and latitudes (n, 2) are multiplied by to be x and y on paper, (2).

    For longitudes it is the cosine of the latitude of the middle of the map, as in OSMnx and GeoPandas.
    """
    middle = (degrees[:, 1].min() + degrees[:, 1].max()) / 2 if len(degrees) else 0.0  # no vertex has coordinates
    return np.array([math.cos(math.radians(middle)), 1.0])


def map_frame(coordinates: np.ndarray, inches: float | None = None) -> tuple[np.ndarray, float]:
    """Return the lower left corner of coordinates, and the points of the page that their unit is drawn as."""
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    width, height = high - low
    wide = MAP_WIDTH if inches is None else 72.0 * inches
    scale = min(wide / width if width else math.inf, TALLEST * wide / height if height else math.inf)
    return low, scale if math.isfinite(scale) else 1.0


def _circle(count: int, apart: float) -> np.ndarray:
    """Return the positions of `count` nodes on a circle, clockwise from the top, `apart` points from each other."""
    radius = 0.0 if count == 1 else apart / (2 * math.sin(math.pi / count))
    angles = math.pi / 2 - 2 * math.pi * np.arange(count) / count
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _components(drawing: Drawing) -> list[np.ndarray]:
    """Return the nodes of each weak component, the largest component first."""
    networkx = _networkx()
    graph = networkx.empty_graph(drawing.n)
    graph.add_edges_from(zip(drawing.tails.tolist(), drawing.heads.tolist(), strict=True))
    groups = [np.array(sorted(group)) for group in networkx.connected_components(graph)]
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _within(drawing: Drawing, group: np.ndarray) -> tuple[int, list[tuple[int, int]]]:
    """Return the number of nodes of a component, and its arcs without loops; ends of arcs are positions in `group`."""
    place = {int(v): i for i, v in enumerate(group)}
    arcs = [
        (place[u], place[v])
        for u, v in zip(drawing.tails.tolist(), drawing.heads.tolist(), strict=True)
        if u in place and u != v
    ]
    return len(group), list(dict.fromkeys(arcs))


def _few(directed: bool, n: int, arcs: list[tuple[int, int]], sizes: np.ndarray, step: float, seed: int) -> np.ndarray:
    if len({(min(arc), max(arc)) for arc in arcs}) > DENSE * n:
        return _circle(n, 2 * float(sizes.max()) + step)
    return _layers(directed, n, arcs, sizes, step)


def _layers(directed: bool, n: int, arcs: list[tuple[int, int]], sizes: np.ndarray, step: float) -> np.ndarray:
    depth = _depths(n, arcs) if directed else _depths(n, [*arcs, *((v, u) for u, v in arcs)])
    layers = [[v for v in range(n) if depth[v] == d] for d in range(max(depth, default=0) + 1)]
    around: list[list[int]] = [[] for _ in range(n)]
    for u, v in arcs:
        around[u].append(v)
        around[v].append(u)
    across = max(step, 2 * sizes[:, 0].max(initial=0) + 24)
    x = np.zeros(n)
    for layer in layers:
        _spread(x, layer, across)
    for sweep in range(8):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            mean = {v: np.mean([x[u] for u in around[v]] or [x[v]]) for v in layer}
            layer.sort(key=lambda v: (mean[v], v))
            _spread(x, layer, across)
    return np.stack([x, -step * np.array(depth, float)], axis=1)


def _spread(x: np.ndarray, layer: list[int], across: float) -> None:
    for i, v in enumerate(layer):
        x[v] = (i - (len(layer) - 1) / 2) * across


def _depths(n: int, arcs: list[tuple[int, int]]) -> list[int]:
    """Return the layer of each node of a weak component.

    Without a cycle, the layer is the number of arcs on the longest path to the node. With a cycle, it is the number of
    arcs on the shortest path from the nodes without arcs in, or else from the first node; where no such path leads, the
    directions of arcs do not count.
    """
    networkx = _networkx()
    graph = networkx.empty_graph(n, networkx.DiGraph)
    graph.add_edges_from(arcs)
    if networkx.is_directed_acyclic_graph(graph):
        ways = [networkx.topological_generations(graph)]
    else:
        roots = [v for v, incoming in graph.in_degree if not incoming] or [0]
        ways = [networkx.bfs_layers(each, roots) for each in (graph.to_undirected(as_view=True), graph)]
    depth = {v: d for layers in ways for d, layer in enumerate(layers) for v in layer}
    return [depth[v] for v in range(n)]


def _forces(n: int, arcs: list[tuple[int, int]], sizes: np.ndarray, step: float, seed: int) -> np.ndarray:
    if n == 1:
        return np.zeros((1, 2))
    networkx = _networkx()
    graph = networkx.empty_graph(n)
    graph.add_edges_from(arcs)
    if n <= EXACT:
        found: dict[int, Any] = networkx.kamada_kawai_layout(graph)
    else:
        begin = _unfolded(networkx, graph, np.random.default_rng(seed))
        found = networkx.spring_layout(graph, pos=dict(enumerate(begin)), seed=seed, method="force", iterations=40)
    places = np.array([found[v] for v in range(n)], np.float64)
    places -= places.mean(axis=0)
    # The longer side is horizontal. The signs of the axes are free: the first node off an axis lies to the left, or
    # above.
    axes = np.linalg.eigh(places.T @ places)[1][:, ::-1]
    places = places @ axes
    for axis, sign in ((0, -1), (1, 1)):
        first = next((value for value in places[:, axis] if abs(value) > 1e-6), 0)
        if first * sign < 0:
            places[:, axis] *= -1
    ends = np.array(arcs)
    lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
    places *= step / max(float(np.median(lengths)), 1e-9)
    return _apart(places, ends, sizes, step)


def _networkx() -> Any:
    try:
        import networkx
        import scipy  # noqa: F401  (NetworkX needs it for layouts)
    except ImportError as error:
        raise ImportError(f"the layout of a graph needs networkx and scipy: {install('plot')}") from error
    return networkx


def _unfolded(networkx: Any, graph: Any, rng: np.random.Generator) -> np.ndarray:
    """Return the start of a layout by forces, (n, 2) in a unit square.

    It is a projection of the numbers of arcs on shortest paths to some nodes that are far apart.
    """
    n = len(graph)
    ways = np.full((n, min(PIVOTS, n)), np.inf)
    pivot = 0
    for i in range(ways.shape[1]):
        lengths = networkx.single_source_shortest_path_length(graph, pivot)
        ways[list(lengths), i] = list(lengths.values())
        pivot = int(ways[:, : i + 1].min(axis=1).argmax())
    squares = ways**2
    squares += squares.mean() - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True)
    places = squares @ np.linalg.svd(squares, full_matrices=False)[2][:2].T
    places -= places.min(axis=0)
    return places / max(float(places.max()), 1e-9) + rng.normal(scale=0.2 / np.sqrt(n), size=(n, 2))


def _apart(places: np.ndarray, ends: np.ndarray, sizes: np.ndarray, step: float) -> np.ndarray:
    """Push nodes apart that overlap or nearly overlap, and away from arcs between other nodes."""
    if len(places) > EXACT:
        return places
    wanted = sizes[:, None].max(axis=2) + sizes[None].max(axis=2) + 0.3 * step
    np.fill_diagonal(wanted, 0)
    for _ in range(200):
        between = places[:, None] - places[None]
        distance = np.linalg.norm(between, axis=2)
        short = np.maximum(wanted - distance, 0)
        push = (between / np.maximum(distance, 1e-9)[:, :, None] * short[:, :, None]).sum(axis=1)
        aside = _from_arcs(places, ends, sizes + 5)
        if max(short.max(), np.abs(aside).max()) < 0.5:
            break
        places = places + 0.25 * push + 0.4 * aside
    return places


def _from_arcs(places: np.ndarray, ends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return how far each node must move, (n, 2), to lie clear of the straight lines of arcs between other nodes."""
    begin, chord = places[ends[:, 0]], places[ends[:, 1]] - places[ends[:, 0]]
    length = np.maximum(np.linalg.norm(chord, axis=1), 1e-9)
    across = np.stack([-chord[:, 1], chord[:, 0]], axis=1) / length[:, None]
    offset = places[None] - begin[:, None]  # (arcs, nodes, 2)
    beside = (offset * across[:, None]).sum(axis=2)
    along = (offset * chord[:, None]).sum(axis=2) / length[:, None] ** 2
    needed = (np.abs(across)[:, None] * sizes[None]).sum(axis=2)
    near = (along > 0) & (along < 1) & (np.abs(beside) < needed)
    near[np.arange(len(ends))[:, None], ends] = False
    missing = np.where(near, np.where(beside < 0, -1.0, 1.0) * (needed - np.abs(beside)), 0.0)
    return (missing[:, :, None] * across[:, None]).sum(axis=0)


def _packed(groups: list[np.ndarray], placed: list[np.ndarray], sizes: np.ndarray, room: float) -> np.ndarray:
    """Return the centres of all nodes, with components in rows from left to right, on a page a bit wider than high."""
    boxes = []
    for group, places in zip(groups, placed, strict=True):
        low, high = (places - sizes[group]).min(axis=0), (places + sizes[group]).max(axis=0)
        boxes.append((low, high - low + room))
    area = sum(float(extent[0] * extent[1]) for _, extent in boxes)
    page = max([math.sqrt(1.4 * area), *(float(extent[0]) for _, extent in boxes)])
    centres = np.zeros((len(sizes), 2))
    x = y = height = 0.0
    for group, places, (low, extent) in zip(groups, placed, boxes, strict=True):
        if x and x + extent[0] > page * 1.001:
            x, y, height = 0.0, y - height, 0.0
        centres[group] = places - low + [x, y - extent[1]]
        x += float(extent[0])
        height = max(height, float(extent[1]))
    return centres

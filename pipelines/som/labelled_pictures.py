"""Pictures of maps by the labels of samples: cells, pies, and the minimum spanning tree, as FlowSOM shows maps.

S. Van Gassen, B. Callebaut, M. J. Van Helden, B. N. Lambrecht, P. Demeester, T. Dhaene, Y. Saeys, "FlowSOM: using
self-organizing maps for visualization and interpretation of cytometry data", Cytometry A 87(7), 2015.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuops.som.grid import Grid
from gpuops.som.metrics import distances_to_all
from pipelines.som import cells
from pipelines.som.cell_texts import draw_text
from pipelines.som.classes import Vote, natural_order

if TYPE_CHECKING:
    from pipelines.som.pictures import MapView

MOST_NODES = 1000  # most nodes of a tree that is laid out


class NamedVote(NamedTuple):
    """The vote of labelled samples, and the names of the labels."""

    vote: Vote
    names: list[str]


def draw_labels(axes: Any, grid: Grid, voted: NamedVote, *, pies: bool, text: bool) -> None:
    """Colour each unit by the label of most of its samples, or draw a pie of all their labels."""
    vote, names = voted
    colour_of, entries = _colours_of_labels(vote, names, pies)
    if pies:
        cells.draw_colours(axes, grid, np.tile(cells.rgba("1.0"), (grid.units, 1)))
        shares = vote.shares(len(names))
        totals = shares.sum(axis=1)
        # The area of a pie is proportional to its samples; 0.25 keeps small pies visible.
        radii = 0.46 * np.maximum(np.sqrt(totals / max(totals.max(initial=0), 1)), 0.25)
        cells.draw_pies(axes, grid.positions(), shares, radii, [*colour_of])
    else:
        backs = np.array([*colour_of, cells.rgba(cells.EMPTY)])[vote.winners]
        cells.draw_colours(axes, grid, backs)
    if text:
        words = ["" if winner < 0 else names[winner] for winner in vote.winners]
        draw_text(axes, grid, words, None if pies else backs)
    if (vote.winners < 0).any():
        entries.append((cells.rgba("1.0" if pies else cells.EMPTY), "no sample"))
    cells.draw_legend(axes, entries)


def _colours_of_labels(vote: Vote, names: list[str], all_of_them: bool = False) -> tuple[list[Any], list[Any]]:
    """Return the colour of every label, and the entries of a legend in natural order of names.

    The most frequent labels get colours. A label counts by its units, or with `all_of_them` by its samples.
    """
    weights = vote.labels if all_of_them else vote.winners[vote.winners >= 0]
    times = np.bincount(weights, vote.counts if all_of_them else None, minlength=len(names))
    frequent = np.argsort(-times, kind="stable")[: np.count_nonzero(times)].tolist()
    shown = sorted(frequent[: cells.MOST_LABELS], key=lambda label: natural_order(names[label]))
    colour_of = [cells.rgba(cells.OTHER)] * len(names)
    for label, colour in zip(shown, cells.colours_of(len(shown)), strict=True):
        colour_of[label] = colour
    entries = [(colour_of[label], names[label]) for label in shown]
    if len(frequent) > len(shown):
        entries.append((cells.rgba(cells.OTHER), f"{len(frequent) - len(shown)} others"))
    return colour_of, entries


def draw_tree(figure: Any, shown: MapView, title: str) -> None:
    """Draw the minimum spanning tree of the units; the area of a node grows with its hits.

    Labels are drawn as pies, and clusters as coloured discs, which are wider than the pies if there are labels.
    """
    from matplotlib.collections import LineCollection

    voted, clusters, hits = shown.voted, shown.clusters, shown.hits
    assert hits is not None
    links = spanning_tree(shown.units, shown.metric)
    places = tree_layout(shown.units, links)
    figure.set_size_inches(*(shown.size or (7, 7)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_title(title, fontsize=10)
    lengths = np.sqrt(((places[links[:, 0]] - places[links[:, 1]]) ** 2).sum(axis=1))
    reach = 0.5 * (np.median(lengths) if len(lengths) else 1.0)
    radii = reach * np.maximum(np.sqrt(hits / max(hits.max(), 1)), 0.25)
    axes.add_collection(LineCollection(list(places[links]), colors="0.55", linewidths=1, zorder=1))
    entries: list[Any] = []
    if clusters is not None:
        palette, place, entries = cells.colours_of_clusters(clusters)
        own = np.eye(len(palette), dtype=np.int64)[place]
        rings = radii if voted is None else radii + 0.3 * reach  # a margin around the pies
        cells.draw_pies(axes, places, own, rings, palette, edge="0.3")  # an edge, as the discs are pale on white
    if voted is not None:
        vote, names = voted
        colour_of, of_labels = _colours_of_labels(vote, names, True)
        cells.draw_pies(axes, places, vote.shares(len(names)), radii, colour_of)
        entries += of_labels
    elif clusters is None:
        cells.draw_pies(axes, places, np.ones((len(places), 1), np.int64), radii, ["steelblue"])
    low, high = places.min(axis=0) - 3 * reach, places.max(axis=0) + 3 * reach
    axes.set(xlim=(low[0], high[0]), ylim=(high[1], low[1]), aspect="equal")
    axes.set_axis_off()
    if entries:
        cells.draw_legend(axes, entries)


def spanning_tree(units: np.ndarray, metric: str = "euclidean") -> np.ndarray:
    """Return the links of the minimum spanning tree of the units.

    Prim's algorithm from unit 0, in time M^2 d and memory M d. Of units at equal distance, the lowest comes first.

    Parameters
    ----------
    units : (M, d) float array
    metric : {"euclidean", "taxicab", "cosine"}

    Returns
    -------
    (M - 1, 2) int64 array
    """
    m = len(units)
    links = np.empty((m - 1, 2), np.int64)
    nearest, outside = np.zeros(m, np.int64), np.ones(m, bool)
    distances, new = np.full(m, np.inf), 0
    for i in range(m - 1):
        outside[new] = False
        to_new = distances_to_all(units[new : new + 1], units, metric)[0]
        closer = outside & (to_new < distances)
        distances[closer], nearest[closer] = to_new[closer], new
        new = int(np.where(outside, distances, np.inf).argmin())
        links[i] = nearest[new], new
    return links


def tree_layout(units: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return where to draw the nodes of a tree: distances on paper are close to the number of links between two nodes.

    Parameters
    ----------
    units : (M, d) float array
    links : (M - 1, 2) int array
        From `spanning_tree`.

    Returns
    -------
    (M, 2) float64 array

    Raises
    ------
    ValueError
        There are more than `MOST_NODES` units.
    """
    import networkx

    m = len(units)
    if m > MOST_NODES:
        raise ValueError(
            f"the map has {m:,} units; a tree is laid out for up to {MOST_NODES:,}; draw "
            "umatrix instead, or train a map of fewer rows and columns"
        )
    if m == 1:
        return np.zeros((1, 2))
    tree = networkx.Graph()
    tree.add_nodes_from(range(m))
    tree.add_edges_from(links.tolist())
    # Start from a layout without crossings: from a circle, networkx's default, branches stay tangled.
    layout = networkx.kamada_kawai_layout(tree, pos=_radial(tree))
    return np.array([layout[node] for node in range(m)])


def _radial(tree: object) -> dict[int, tuple[float, float]]:
    """Return positions around the centre of the tree: each branch has a sector as wide as its number of leaves."""
    import networkx

    graph: networkx.Graph = tree
    root = networkx.center(graph)[0]
    order = list(networkx.dfs_preorder_nodes(graph, root))
    parents = {child: parent for parent, child in networkx.dfs_edges(graph, root)}
    leaves = dict.fromkeys(order, 0)
    for node in reversed(order):
        leaves[node] = leaves[node] or 1
        if node != root:
            leaves[parents[node]] += leaves[node]
    begin, depth = {root: 0.0}, {root: 0}
    used = dict.fromkeys(order, 0.0)
    for node in order[1:]:
        parent = parents[node]
        begin[node], depth[node] = begin[parent] + used[parent], depth[parent] + 1
        used[parent] += leaves[node]
    turn = 2 * np.pi / leaves[root]
    angles = {node: (begin[node] + leaves[node] / 2) * turn for node in order}
    return {node: (depth[node] * np.cos(angles[node]), depth[node] * np.sin(angles[node])) for node in order}

"""Every line of the table in docs/doors.md is run, beside what it stands for."""

import re
from pathlib import Path

import geopandas
import igraph
import networkx as nx
import numpy as np
import openstreetmap
import pandas as pd
import pytest
import scipy.sparse as sp
import shapely
from scipy.sparse import csgraph as theirs
from sklearn.neighbors import kneighbors_graph

import tilepath
from tilepath import csgraph

DOCUMENT = Path(__file__).parents[2] / "docs" / "doors.md"
ARCS = [(0, 1, 3.0), (1, 2, 0.5), (2, 0, 2.0), (2, 3, 1.0), (3, 2, 1.0)]
DISTANCES = [[0, 3, 3.5, 4.5], [2.5, 0, 0.5, 1.5], [2, 5, 0, 1], [3, 6, 1, 0]]


def rows():
    table = re.search(r"\| you have \|.*?\n\n", DOCUMENT.read_text(), re.DOTALL)[0]
    return re.findall(r"^\| (\w.*?) \| `(.+?)`<br>", table, re.MULTILINE)


def streets():
    """As OSMnx makes them."""
    graph = nx.MultiDiGraph()
    for node in range(4):
        graph.add_node(node, x=12.5 + node, y=41.9)
    graph.add_edges_from((u, v, {"length": w, "oneway": True}) for u, v, w in ARCS)
    graph.add_edge(0, 1, length=9.0)
    return graph


def roads():
    """A layer of lines, with the nodes at their ends."""
    lines = [shapely.LineString([(u, u % 2), (v, v % 2)]) for u, v, _ in ARCS]
    return geopandas.GeoDataFrame(pd.DataFrame(ARCS, columns=["u", "v", "length"]), geometry=lines, crs="EPSG:6933")


def matrix_of(store):
    return csgraph.shortest_path(sp.csr_array((store.weights(), store.indices(), store.indptr()), shape=(4, 4)))


def check_csgraph(module):
    tails, heads, weights = zip(*ARCS, strict=True)
    graph = sp.csr_array((weights, (tails, heads)), shape=(4, 4))
    np.testing.assert_array_equal(module.shortest_path(graph), DISTANCES)


def check_map(estimator):
    samples = np.random.default_rng(1).random((50, 3))
    assert estimator(3, 4, random_state=0).fit(samples).predict(samples).shape == (50,)


X = np.random.default_rng(0).random((30, 2))
# What a line gives, or the name that it imports, must be.
CHECKS = [
    check_csgraph,
    lambda found: found == nx.diameter(nx.cycle_graph(7)),
    lambda store: (store.n, store.attribution) == (4, "© OpenStreetMap contributors"),
    lambda found: {u: d for u, d in found} == {u: dict(enumerate(row)) for u, row in enumerate(DISTANCES)},
    lambda store: np.array_equal(matrix_of(store), DISTANCES),
    lambda found: np.array_equal(found, DISTANCES),
    lambda store: np.array_equal(matrix_of(store), DISTANCES),
    lambda store: np.array_equal(matrix_of(store), DISTANCES),
    lambda store: np.array_equal(matrix_of(store), DISTANCES),
    lambda store: np.array_equal(matrix_of(store), DISTANCES),
    lambda store: np.array_equal(matrix_of(store), DISTANCES),
    check_map,
    lambda found: np.allclose(
        found, theirs.shortest_path(kneighbors_graph(X, 5, mode="distance"), directed=False), rtol=1e-12
    ),
]


# What the reader writes into the block of a line that opens one.
BLOCK = """
    for vertex in range(4):
        graph.append([v for u, v, _ in triples if u == vertex], [w for u, _, w in triples if u == vertex])
"""

LINES = [(*row, check) for row, check in zip(rows(), CHECKS, strict=True)]


@pytest.mark.parametrize(
    ("library", "code", "check"), LINES, ids=[f"{library}-{i}" for i, (library, *_) in enumerate(LINES)]
)
def test_a_line_is_enough(library, code, check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    g = igraph.Graph(directed=True)
    g.add_vertices(4)
    g.add_edges([(u, v) for u, v, _ in ARCS], {"weight": [w for *_, w in ARCS]})
    assert np.array_equal(g.distances(weights="weight"), DISTANCES)
    edges = pd.DataFrame(ARCS, columns=["u", "v", "length"])
    openstreetmap.write(  # a crossing with three ends
        "city.osm.pbf",
        {1: (12.5, 41.9), 2: (12.6, 41.9), 3: (12.5, 41.8), 4: (12.5, 42)},
        [(1, [2, 1], {"highway": "residential"}), (2, [3, 1, 4], {"highway": "residential"})],
    )
    names = {"tilepath": tilepath, "nx": nx, "csgraph": csgraph, "kneighbors_graph": kneighbors_graph}
    names |= {
        "G": nx.cycle_graph(7),
        "streets": streets(),
        "g": g,
        "edges": edges,
        "roads": roads(),
        "triples": ARCS,
        "X": X,
    }
    if code.startswith("from "):
        exec(code, names)
        found = names[code.split()[-1]]
    elif code.startswith("with "):
        exec(code + BLOCK, names)
        found = tilepath.open_graph("graph.zarr")
    else:
        found = eval(code, names)
    assert check(found) is not False, library

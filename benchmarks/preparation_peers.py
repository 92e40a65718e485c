"""A graph of OSMnx and a network of pandana from a layer of roads; the suite `preparation` runs this file.

    python preparation_peers.py LAYER WITHIN ANSWERS

LAYER has lines with the column `seconds`. ANSWERS (.json) gets wall seconds and seconds of cores of each step, the
numbers of vertices and arcs, and the sum of the distances from the vertex in the middle to all that it reaches.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import geopandas
import networkx
import numpy as np
import osmnx
import pandana
import pandas
import shapely

MIDDLE = 13.38, 52.515


def tables(layer: str) -> tuple[geopandas.GeoDataFrame, geopandas.GeoDataFrame]:
    """Return the nodes and the edges of a layer, in both directions, as OSMnx and pandana take them."""
    lines = geopandas.read_file(layer)
    ends = [shapely.get_coordinates(shapely.get_point(lines.geometry, at)) for at in (0, -1)]
    places, numbers = np.unique(np.concatenate(ends), axis=0, return_inverse=True)
    u, v = numbers.reshape(2, -1)
    points = geopandas.points_from_xy(*places.T)
    nodes = geopandas.GeoDataFrame({"x": places[:, 0], "y": places[:, 1]}, geometry=points, crs=lines.crs)
    both = pandas.concat([lines.assign(u=u, v=v), lines.assign(u=v, v=u, geometry=lines.geometry.reverse())])
    return nodes, both.assign(key=0).set_index(["u", "v", "key"])


def main(layer: str, within: float) -> dict[str, Any]:
    """Return seconds, sizes and sums."""
    seconds: dict[str, tuple[float, float]] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        begin, worked = time.perf_counter(), time.process_time()
        yield
        seconds[name] = time.perf_counter() - begin, time.process_time() - worked

    with timed(f"OSMnx {osmnx.__version__}: graph"):
        graph = osmnx.graph_from_gdfs(*tables(layer))
    with timed(f"pandana {pandana.__version__}: network"):
        nodes, edges = tables(layer)
        u, v = (edges.index.get_level_values(name).to_series(index=range(len(edges))) for name in ("u", "v"))
        weights = edges[["seconds"]].reset_index(drop=True)
        network = pandana.Network(nodes.x, nodes.y, u, v, weights, twoway=False)
    with timed(f"pandana {pandana.__version__}: precompute"):
        network.precompute(within)
    middle = int(np.abs(nodes[["x", "y"]].to_numpy() - MIDDLE).sum(axis=1).argmin())
    found = networkx.single_source_dijkstra_path_length(graph, middle, weight="seconds")
    warnings.filterwarnings("ignore", "Unsigned integer")  # vertices that are not reached
    lengths = np.array(network.shortest_path_lengths(np.full(len(nodes), middle), np.arange(len(nodes))))
    sums = {"OSMnx": sum(found.values()), "pandana": float(lengths[lengths < 1e6].sum())}
    return {"seconds": seconds, "sizes": [graph.number_of_nodes(), graph.number_of_edges()], "sums": sums}


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(main(sys.argv[1], float(sys.argv[2]))))

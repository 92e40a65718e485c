"""The analyst's tasks by pandana and OSMnx, in an environment of their own; the suite `od-tables` runs this file.

    python road_peers.py CITY.npz ANSWERS.npz REPEATS

CITY has the arcs (tails, heads, weights), the coordinates of the vertices, homes, schools and seats. ANSWERS gets the
distances, and the seconds of each repetition by the name of the case.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import osmnx
import pandana
import pandas

FAR = 1e9  # farther than every vertex of the city


def main(city: Any, repeats: int) -> dict[str, np.ndarray]:
    """Return answers and seconds."""
    found: dict[str, Any] = {}

    def timed(name: str, run: Callable[[], np.ndarray]) -> None:
        run()
        seconds = []
        for _ in range(repeats):
            begin = time.perf_counter()
            found[name] = run()
            seconds.append(time.perf_counter() - begin)
        found[f"seconds {name}"] = seconds

    frame = pandas.DataFrame({"from": city["tails"], "to": city["heads"], "weight": city["weights"].astype(float)})
    x, y = city["coordinates"].T
    network = pandana.Network(
        pandas.Series(x), pandas.Series(y), frame["from"], frame["to"], frame[["weight"]], twoway=False
    )
    network.precompute(float(city["within"]))
    homes, schools = city["homes"], city["schools"]

    def table() -> np.ndarray:
        begins = network.get_node_ids(homes[:, 0], homes[:, 1]).to_numpy()
        ends = network.get_node_ids(schools[:, 0], schools[:, 1]).to_numpy()
        pairs = np.repeat(begins, len(ends)), np.tile(ends, len(begins))
        return np.array(network.shortest_path_lengths(*pairs)).reshape(len(begins), len(ends))

    def nearest() -> np.ndarray:
        network.set_pois("schools", FAR, 3, pandas.Series(schools[:, 0]), pandas.Series(schools[:, 1]))
        return network.nearest_pois(FAR, "schools", num_pois=3).to_numpy()

    def aggregate() -> np.ndarray:
        ids = network.get_node_ids(schools[:, 0], schools[:, 1])
        network.set(ids, variable=pandas.Series(city["seats"]), name="seats")
        return network.aggregate(float(city["within"]), type="sum", decay="linear", name="seats").to_numpy()

    timed("pandana table", table)
    timed("pandana nearest", nearest)
    timed("pandana aggregate", aggregate)

    graph = networkx.MultiDiGraph(crs="EPSG:3857")
    graph.add_nodes_from((v, {"x": a, "y": b}) for v, (a, b) in enumerate(city["coordinates"].tolist()))
    arcs = zip(*(city[name].tolist() for name in ("tails", "heads", "weights")), strict=True)
    graph.add_edges_from((u, v, {"weight": w}) for u, v, w in arcs)
    backwards = graph.reverse(copy=False)

    def by_searches() -> np.ndarray:
        begins = osmnx.distance.nearest_nodes(graph, *homes.T)
        ends = osmnx.distance.nearest_nodes(graph, *schools.T)
        rows = (networkx.single_source_dijkstra_path_length(backwards, end, weight="weight") for end in ends)
        return np.array([[row.get(begin, np.inf) for begin in begins] for row in rows]).T

    timed("OSMnx table", by_searches)
    found["versions"] = np.array([f"pandana {pandana.__version__}", f"OSMnx {osmnx.__version__}"])
    return found


if __name__ == "__main__":
    with np.load(sys.argv[1]) as given:
        answers = main(dict(given), int(sys.argv[3]))
    np.savez(sys.argv[2], **answers)

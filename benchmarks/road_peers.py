"""The code of docs/coming-from/osmnx-pandana.md for pandana and OSMnx; the suite `od-tables` runs this file by turns.

    python road_peers.py FOLDER

FOLDER has the town: town.osm, homes.csv and schools.csv. The answers are compared with NetworkX's distances. Then each
line of the input names a program and a task, and each line of the output that begins with "answer" has its seconds.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import networkx
import numpy
import osmnx
import pandana
import pandas

WITHIN = 180
PANDANA, OSMNX = f"pandana {pandana.__version__}", f"OSMnx {osmnx.__version__}"


def main(folder: Path) -> None:
    """Answer the lines of the input."""
    streets = osmnx.graph_from_xml(folder / "town.osm")
    streets = osmnx.add_edge_travel_times(osmnx.add_edge_speeds(streets))
    homes, schools = pandas.read_csv(folder / "homes.csv"), pandas.read_csv(folder / "schools.csv")
    nodes, edges = osmnx.graph_to_gdfs(streets)
    edges = edges.reset_index()
    network = pandana.Network(nodes.x, nodes.y, edges["u"], edges["v"], edges[["travel_time"]], twoway=False)
    network.precompute(WITHIN)

    def searched() -> list[list[float]]:
        begins = osmnx.distance.nearest_nodes(streets, homes.lon, homes.lat)
        ends = osmnx.distance.nearest_nodes(streets, schools.lon, schools.lat)
        backwards = streets.reverse(copy=False)
        search = networkx.single_source_dijkstra_path_length
        rows = [search(backwards, end, weight="travel_time") for end in ends]
        return [[row.get(begin) for row in rows] for begin in begins]

    def table() -> list[float]:
        begins = network.get_node_ids(homes.lon, homes.lat).to_numpy()
        ends = network.get_node_ids(schools.lon, schools.lat).to_numpy()
        pairs = numpy.repeat(begins, len(ends)), numpy.tile(ends, len(begins))
        return network.shortest_path_lengths(*pairs)

    def nearest() -> pandas.DataFrame:
        network.set_pois("schools", 3600, 3, schools.lon, schools.lat)
        return network.nearest_pois(3600, "schools", num_pois=3)

    def sums() -> pandas.Series:
        ends = network.get_node_ids(schools.lon, schools.lat).to_numpy()
        network.set(ends, variable=schools.seats, name="seats")
        return network.aggregate(WITHIN, type="sum", decay="linear", name="seats")

    distances = Distances(streets, nodes.index)
    begins = network.get_node_ids(homes.lon, homes.lat)
    to_schools = distances.to(network.get_node_ids(schools.lon, schools.lat))
    near(table(), to_schools.loc[begins].to_numpy().ravel())
    near(nearest(), numpy.sort(to_schools.to_numpy(), axis=1)[:, :3])
    # A school that is cut from the sum, or is counted in it, by rounding of the distance counts almost 0.
    near(sums(), numpy.maximum(0, 1 - to_schools.to_numpy() / WITHIN) @ schools.seats.to_numpy(), 5.0)
    begins, ends = (osmnx.distance.nearest_nodes(streets, each.lon, each.lat) for each in (homes, schools))
    near(searched(), distances.to(ends).loc[begins].to_numpy(), 1e-9)

    tasks = {(PANDANA, "table"): table, (PANDANA, "nearest"): nearest, (PANDANA, "sum"): sums}
    tasks[OSMNX, "table"] = searched
    answer(list(tasks))
    for line in sys.stdin:
        run = tasks[tuple(json.loads(line))]
        begin = time.perf_counter()
        run()
        answer(time.perf_counter() - begin)


class Distances:
    """Distances between the nodes of OSMnx's graph, by NetworkX."""

    def __init__(self, streets: Any, nodes: Any):
        self.backwards, self.nodes = streets.reverse(), nodes

    def to(self, ends: Any) -> pandas.DataFrame:
        """Return a column for each end, with the distances from all nodes."""
        search = networkx.single_source_dijkstra_path_length
        rows = [search(self.backwards, end, weight="travel_time") for end in ends]
        return pandas.DataFrame([[row[node] for row in rows] for node in self.nodes], index=self.nodes)


def near(found: Any, expected: Any, rounding: float = 0.25) -> None:
    """Compare; pandana cuts the weight of each arc to thousandths, and a path has some hundred arcs."""
    numpy.testing.assert_allclose(numpy.array(found), expected, rtol=0, atol=rounding)


def answer(value: Any) -> None:
    print(f"\nanswer {json.dumps(value)}", flush=True)  # a line of its own: pandana prints parts of lines


if __name__ == "__main__":
    main(Path(sys.argv[1]))

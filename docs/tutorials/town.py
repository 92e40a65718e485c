"""Write a made-up town for the tutorials: streets as town.gpkg and town.osm; tables of bridges, homes and schools.

    python docs/tutorials/town.py [FOLDER]    into the current folder by default

Streets are the edges of a Voronoi diagram of random points, which lie closer together in the middle. A river divides
the town; three bridges cross the river. Main roads are the shortest ways from the middle to ten places at the border.
"""

import sys
from pathlib import Path

import geopandas
import numpy as np
import pandas
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import Voronoi, cKDTree
from shapely import LineString

MIDDLE = np.array([13.38, 52.515])  # longitude and latitude
METRES = np.array([67_900, 111_250])  # metres in a degree, there
RADIUS = 2500


def river(x):
    return 350 * np.sin(x / 900) - 500


def write_osm(file: Path, degrees, ends, kinds, speeds) -> None:
    """Write streets as a file of OpenStreetMap, with a way for each street."""
    nodes = [f'<node id="{i + 1}" lon="{degrees[i, 0]:.7f}" lat="{degrees[i, 1]:.7f}"/>' for i in np.unique(ends)]
    ways = [
        f'<way id="{i}"><nd ref="{tail + 1}"/><nd ref="{head + 1}"/>'
        f'<tag k="highway" v="{kind}"/><tag k="maxspeed" v="{speed}"/></way>'
        for i, ((tail, head), kind, speed) in enumerate(zip(ends, kinds, speeds, strict=True), 1)
    ]
    file.write_text("\n".join(['<osm version="0.6">', *nodes, *ways, "</osm>\n"]))


def main(folder: Path, crossings: int = 3000, radius: float = RADIUS) -> None:
    """Write the files of a town, which has about 1.7 x `crossings` vertices, into `folder`."""
    rng = np.random.default_rng(1)
    angle, far = rng.uniform(0, 2 * np.pi, crossings), radius * 1.1 * rng.random(crossings) ** 0.7
    diagram = Voronoi(np.stack([far * np.cos(angle), far * np.sin(angle)], axis=1))
    places = diagram.vertices
    ends = np.array([ridge for ridge in diagram.ridge_vertices if -1 not in ridge])
    ends = ends[(np.hypot(*places[ends].T) < radius).all(axis=0) & (rng.random(len(ends)) < 0.93)]

    banks = places[:, 1] > river(places[:, 0])
    crossing = banks[ends[:, 0]] != banks[ends[:, 1]]
    middles = places[ends].mean(axis=1)
    bridges = [np.flatnonzero(crossing)[np.abs(middles[crossing, 0] - x).argmin()] for x in (-1400, 100, 1300)]
    halfway = MIDDLE + middles[bridges] / METRES
    ends = ends[~crossing | np.isin(np.arange(len(ends)), bridges)]

    lengths = np.hypot(*(places[ends[:, 0]] - places[ends[:, 1]]).T)
    graph = coo_array((lengths, ends.T), shape=2 * (len(places),))
    middle = cKDTree(places[ends[:, 0]]).query([0, 0])[1]
    distances, before = dijkstra(graph, directed=False, indices=ends[middle, 0], return_predecessors=True)
    reached = np.flatnonzero(np.isfinite(distances))
    main_roads = set()
    for turn in np.linspace(0, 2 * np.pi, 11)[:-1] + 0.2:
        gate = [radius * np.cos(turn), radius * np.sin(turn)]
        at = reached[cKDTree(places[reached]).query(gate)[1]]
        while before[at] >= 0:
            main_roads.add(frozenset((at, before[at])))
            at = before[at]

    kinds = np.array(["primary" if frozenset(pair) in main_roads else "residential" for pair in ends.tolist()])
    degrees = MIDDLE + places / METRES
    speeds = np.where(kinds == "primary", 50, 25)
    columns = {"highway": kinds, "seconds": np.round(lengths / (speeds / 3.6) + 0.1, 1)}
    lines = [LineString(degrees[pair]) for pair in ends]
    geopandas.GeoDataFrame(columns, geometry=lines, crs="EPSG:4326").to_file(folder / "town.gpkg")
    whole = np.isfinite(distances[ends[:, 0]])  # OSMnx leaves out streets that do not lead to the middle
    write_osm(folder / "town.osm", degrees, ends[whole], kinds[whole], speeds[whole])

    table = {"name": ["west", "middle", "east"], "lon": halfway[:, 0].round(6), "lat": halfway[:, 1].round(6)}
    pandas.DataFrame(table).to_csv(folder / "bridges.csv", index=False)
    for name, count, column in (("home", 500, "people"), ("school", 40, "seats")):
        angle, far = rng.uniform(0, 2 * np.pi, count), radius * 0.95 * rng.random(count) ** 0.6
        at = MIDDLE + np.stack([far * np.cos(angle), far * np.sin(angle)], axis=1) / METRES
        table = {"id": [f"{name} {i}" for i in range(count)], "lon": at[:, 0].round(6), "lat": at[:, 1].round(6)}
        table[column] = rng.integers(1, 6, count) * (1 if name == "home" else 100)
        pandas.DataFrame(table).to_csv(folder / f"{name}s.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())

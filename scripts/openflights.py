"""Make a graph store of the world's airline routes from the OpenFlights tables.

    python scripts/openflights.py airports.dat routes.dat flights.zarr

Vertices are the airports of the routes, labelled by IATA code (else by ICAO code, else by name), with the coordinates
(longitude, latitude). Each row of the routes is an arc, one for each airline that links two airports; its weight is the
great-circle distance in kilometres. Tables: https://openflights.org/data.php (ODbL).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from pipelines.formats.arc_sort import write_sorted
from pipelines.formats.arc_stream import ArcStream
from pipelines.stores.graph import Graph

EARTH_RADIUS_KM = 6371.0088  # mean radius, IUGG

AIRPORTS = "id name city country iata icao latitude longitude altitude timezone dst tz_database type source".split()
ROUTES = "airline airline_id source source_id destination destination_id codeshare stops equipment".split()


def great_circle(from_degrees: np.ndarray, to_degrees: np.ndarray) -> np.ndarray:
    """Return the kilometres (m,) between points (m, 2) and points (m, 2), given as (longitude, latitude) in degrees."""
    (lon1, lat1), (lon2, lat2) = np.radians(from_degrees).T, np.radians(to_degrees).T
    # The haversine form stays accurate for short distances, where the cosine of the angle is nearly 1.
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(h, 1)))


def import_routes(
    airports: str | Path, routes: str | Path, path: str | Path, *, overwrite: bool = False
) -> tuple[Graph, int]:
    """Write the graph store; return the opened graph and the number of routes skipped because an airport is unknown."""
    places = _table(airports, AIRPORTS, {"id": pa.int64(), "latitude": pa.float64(), "longitude": pa.float64()})
    flights = _table(routes, ROUTES, {"source_id": pa.int64(), "destination_id": pa.int64()})
    ids = places["id"].to_numpy()
    order = np.argsort(ids)

    def rows(column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the row of each airport in a column of the routes, and whether the airport is in the table."""
        wanted = flights[column].fill_null(-1).to_numpy()
        found = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
        return found, ids[found] == wanted

    (tails, tail_known), (heads, head_known) = rows("source_id"), rows("destination_id")
    known = tail_known & head_known
    used, ends = np.unique(np.concatenate([tails[known], heads[known]]), return_inverse=True)
    tails, heads = np.split(ends, 2)
    codes = zip(*(places[column].to_pylist() for column in ("iata", "icao", "name")), strict=True)
    names = [iata or icao or name for iata, icao, name in codes]
    coordinates = np.column_stack([places["longitude"].to_numpy(), places["latitude"].to_numpy()])[used]
    arcs = ArcStream(
        [(tails, heads, great_circle(coordinates[tails], coordinates[heads]))],
        n=len(used),
        labels=[names[row] for row in used],
        coordinates=coordinates,
        weight_unit="km",
        source=Path(routes).name,
    )
    return write_sorted(path, arcs, overwrite=overwrite), int(np.count_nonzero(~known))


def _table(path: str | Path, names: list[str], types: dict[str, pa.DataType]) -> pa.Table:
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=names),
        parse_options=pyarrow.csv.ParseOptions(escape_char="\\", double_quote=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={name: types.get(name, pa.string()) for name in names},
            null_values=["\\N", "N", ""],  # "N": the reader strips the escape character of \N first
            strings_can_be_null=True,
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a graph store of the world's airline routes (OpenFlights).")
    parser.add_argument("airports", help="airports.dat")
    parser.add_argument("routes", help="routes.dat")
    parser.add_argument("store", help="path of the new graph store")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing store")
    arguments = parser.parse_args()
    graph, skipped = import_routes(arguments.airports, arguments.routes, arguments.store, overwrite=arguments.overwrite)
    print(f"{graph.path}: {graph.n} airports, {graph.m} routes, the longest {graph.weight_max:.0f} km")
    print(f"{skipped} routes skipped: an airport is missing (\\N) or not in the table")


if __name__ == "__main__":
    main()

"""Mutated layers of roads end in the graph of the lines that GeoPandas reads, or in one clear error."""

import warnings
from collections import Counter

import geopandas
import pytest
import shapely
from campaigns import campaign, play
from mutations import drawn, refused

from pipelines.formats.graphs import FormatError
from pipelines.formats.graphs.layers import read_layers

DRIVERS = {".geojson": "GeoJSON", ".gpkg": "GPKG", ".fgb": "FlatGeobuf", ".geoparquet": None}
WEIGHTS = "length", "weight"


def make_layer(rng, file):
    """The bytes of a layer of some lines, perhaps with one-way roads and weights."""
    count = rng.randint(1, 6)
    xs, ys = (0, 1, 2.5, 13.4), (0, 1, 52.5)
    lines = [[(rng.choice(xs), rng.choice(ys)) for _ in range(rng.randint(2, 4))] for _ in range(count)]
    columns = {}
    if rng.random() < 0.5:
        columns["oneway"] = [rng.choice(["yes", "no", "-1"]) for _ in lines]
    if rng.random() < 0.5:
        columns["length"] = [rng.choice([1, 2, 7]) for _ in lines]
    crs = "EPSG:4326" if file.suffix == ".geojson" or rng.random() < 0.5 else "EPSG:25833"
    frame = geopandas.GeoDataFrame(columns, geometry=[*map(shapely.LineString, lines)], crs=crs)
    file.unlink(missing_ok=True)
    driver = DRIVERS[file.suffix]
    frame.to_file(file, driver=driver) if driver else frame.to_parquet(file)
    return file.read_bytes()


def plain_arcs(file):
    """How often each arc (place of the tail, place of the head, weight) occurs, and the column of weights or None."""
    frame = geopandas.read_file(file) if DRIVERS[file.suffix] else geopandas.read_parquet(file)
    weights = [name for name in WEIGHTS if name in frame.columns]
    arcs = Counter()
    for _, row in frame.iterrows():
        if row.geometry is None or row.geometry.is_empty:
            continue
        for line in getattr(row.geometry, "geoms", [row.geometry]):
            ends = line.coords[0][:2], line.coords[-1][:2]
            way = str(row.get("oneway", "no")).lower()
            weight = float(row[weights[0]]) if weights else None
            if way not in ("-1", "-1.0", "reverse", "t"):
                arcs[*ends, weight] += 1
            if way not in ("yes", "true", "1", "1.0", "f"):
                arcs[*ends[::-1], weight] += 1
    return arcs, weights[0] if weights else None


@campaign(few=12, many=2000)
@pytest.mark.parametrize("suffix", DRIVERS)
def test_mutated_layers_give_the_lines_of_geopandas_or_one_error(suffix, seeds, tmp_path):
    made, file = tmp_path / f"made{suffix}", tmp_path / f"x{suffix}"

    def trial(rng):
        file.write_bytes(drawn(rng, lambda random: make_layer(random, made), 0.6))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of GDAL
            try:
                with read_layers(str(file)) as stream:
                    ((tails, heads, found),) = stream.pieces
            except FormatError as error:
                return refused(error, file)
            expected, column = plain_arcs(file)
        weights = found.tolist() if f"weights from {column}," in stream.remarks[0] else [None] * len(tails)
        places = [*map(tuple, stream.coordinates.tolist())]
        arcs = Counter(
            (places[a], places[b], w) for a, b, w in zip(tails.tolist(), heads.tolist(), weights, strict=True)
        )
        if not stream.directed:
            arcs += Counter({(head, tail, weight): count for (tail, head, weight), count in arcs.items()})
        if weights[:1] == [None]:
            expected = Counter((tail, head, None) for tail, head, _ in expected.elements())
        assert arcs == expected
        assert len(places) == len({place for arc in arcs for place in arc[:2]})
        return None

    counts = play(seeds, trial)
    assert counts["equal"] or len(seeds) < 20

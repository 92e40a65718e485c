"""Tables from origins to destinations, against the matrix of all distances."""

import json
import os
import re
import signal
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import zarr
from commands import invoke, run_command
from pyproj import Geod
from store_contents import contents

from pipelines import StoreError, build_hierarchy, positions, write_graph
from pipelines.files.output_file import growing_file
from pipelines.od_tables import forms, on_workers, plan
from pipelines.od_tables.blocks import DistancesTo, Reducing, Reduction, parse_reduction
from pipelines.od_tables.forms import TableForm
from pipelines.od_tables.near import Near
from pipelines.od_tables.on_workers import in_order, refuse_what_cannot_fit
from pipelines.od_tables.write import write_od_table
from pipelines.places import snapping
from pipelines.places.by_place import EARTH_RADIUS
from pipelines.places.points import points_from
from pipelines.places.snapping import Snapping
from pipelines.stores.matrix import open_matrix
from pipelines.workers import interruption
from pipelines.workers.capacity import DoesNotFitError, measure_workers

N = 60


def points_of(graph, vertices):
    return points_from(positions(vertices), graph, "vertex")


@pytest.fixture
def points(graph):
    rng = np.random.default_rng(5)
    origins, targets = [*rng.integers(0, N, 17).tolist(), 55], rng.permutation(N)
    return points_of(graph, origins), points_of(graph, targets)


def expected_pairs(matrix, origins, destinations, keep):
    block = matrix[np.ix_(origins.vertices, destinations.vertices)]
    return [
        (origins.ids[i].as_py(), destinations.ids[j].as_py(), None if np.isinf(block[i, j]) else int(block[i, j]))
        for i, j in keep(block)
    ]


def rows_of(path):
    table = pa.parquet.read_table(path) if str(path).endswith("parquet") else pa.csv.read_csv(path)
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv.gz"])
def test_all_pairs_in_order_with_null_where_nothing_leads(source, matrix, points, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(plan, "BLOCK_BYTES", 5 * N * 8)  # several blocks
    count = write_od_table(source, *points, tmp_path / f"od.{suffix}").rows
    expected = expected_pairs(matrix, *points, lambda block: np.ndindex(block.shape))
    assert count == len(expected) == 18 * N
    if suffix == "tsv.gz":
        table = pa.csv.read_csv(tmp_path / "od.tsv.gz", parse_options=pa.csv.ParseOptions(delimiter="\t"))
        assert [tuple(row.values()) for row in table.to_pylist()] == expected
    else:
        assert rows_of(tmp_path / f"od.{suffix}") == expected
    assert any(d is None for *_, d in expected)


@pytest.mark.parametrize(("within", "nearest"), [(40, None), (None, 3), (60, 4), (0, None), (None, 1000)])
def test_within_and_nearest(source, matrix, points, tmp_path, within, nearest):
    write_od_table(source, *points, tmp_path / "od.parquet", within=within, nearest=nearest)

    def keep(block):
        for i, row in enumerate(block):
            near = np.argsort(row, kind="stable") if nearest else np.arange(len(row))
            yield from ((i, j) for j in near[:nearest] if row[j] <= (within if within is not None else 1e9))

    assert rows_of(tmp_path / "od.parquet") == expected_pairs(matrix, *points, keep)


@pytest.mark.parametrize("how", ["count", "min", "sum:jobs", "decay:20", "decay:20:jobs"])
@pytest.mark.parametrize("within", [None, 45])
def test_reductions(source, matrix, points, tmp_path, how, within):
    origins, destinations = points
    jobs = np.random.default_rng(6).uniform(0, 9, N)
    destinations = destinations._replace(columns={"jobs": jobs})
    write_od_table(source, origins, destinations, tmp_path / "od.csv", reduce=how, within=within)
    block = matrix[np.ix_(origins.vertices, destinations.vertices)]
    reached = block <= (1e9 if within is None else within)
    values = {
        "count": reached.sum(1),
        "min": np.where(reached, block, np.inf).min(1),
        "sum:jobs": (reached * jobs).sum(1),
        "decay:20": np.where(reached, np.exp(-block / 20), 0).sum(1),
        "decay:20:jobs": (np.where(reached, np.exp(-block / 20), 0) * jobs).sum(1),
    }[how]
    found = rows_of(tmp_path / "od.csv")
    assert [name for name, _ in found] == origins.ids.to_pylist()
    np.testing.assert_allclose([value for _, value in found], values)


def test_a_matrix(source, matrix, points, tmp_path):
    write_od_table(source, *points, tmp_path / "od.npy")
    found = np.load(tmp_path / "od.npy")
    expected = matrix[np.ix_(*(p.vertices for p in points))]
    np.testing.assert_array_equal(np.where(found == np.iinfo("int32").max, np.inf, found), expected)


def test_places_are_snapped_within_the_largest_strong_component(graph, tmp_path):
    coordinates = graph.coordinates()
    at = coordinates[[3, 55]] + [0.001, 0]
    rows = "".join(f"{name},{lon!r},{lat!r}\n" for name, (lon, lat) in zip("ab", at.tolist(), strict=True))
    (tmp_path / "o.csv").write_text("id,lon,lat\n" + rows)
    found = points_from(tmp_path / "o.csv", graph, "origin")
    lon, lat = np.radians(coordinates[:50]).T

    def metres(place):
        x, y = np.radians(place)
        half = np.sin((lat - y) / 2) ** 2 + np.cos(lat) * np.cos(y) * np.sin((lon - x) / 2) ** 2
        return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(half))

    for i, place in enumerate(at):
        assert found.vertices[i] == metres(place).argmin()  # not 55 itself: nothing leads there
        assert found.snapped[i] == pytest.approx(metres(place).min(), rel=1e-6)
    assert found.ids.to_pylist() == ["a", "b"]


def test_a_hierarchy_store_has_its_vertices_sorted_by_place(store, graph, tmp_path, monkeypatch):
    component, others = store.by_place(graph)
    assert sorted(component) == list(range(50))
    assert sorted(others) == list(range(50, 60))
    (tmp_path / "o.csv").write_text("lon,lat\n7,48\n12,50\n")
    found = points_from(tmp_path / "o.csv", graph, "origin")
    # Nothing is sorted, not even for the destinations.
    monkeypatch.setattr(snapping, "vertices_by_place", lambda *_: 1 / 0)
    arguments = ["od", store.path, str(tmp_path / "od.csv"), "--origins", str(tmp_path / "o.csv"), "--nearest", "1"]
    assert invoke(*arguments, catch_exceptions=False).exit_code == 0
    again = points_from(tmp_path / "o.csv", graph, "origin", snapping=Snapping(graph, store.by_place(graph)))
    np.testing.assert_array_equal(again.vertices, found.vertices)
    np.testing.assert_array_equal(again.snapped, found.snapped)


def test_places_are_snapped_by_the_present_coordinates_of_the_graph(client, tmp_path):
    """Coordinates are outside the digest of a graph, so that its hierarchy store is still right when they change."""
    places, rows = np.random.default_rng(1).uniform(0, 9, (300, 2)), (np.arange(301), np.roll(np.arange(300), -1))
    store = build_hierarchy(client, write_graph(tmp_path / "g", *rows, coordinates=places), tmp_path / "h")
    corrected = write_graph(tmp_path / "g", *rows, coordinates=places[::-1].copy(), overwrite=True)
    assert store.graph().digest == corrected.digest
    (tmp_path / "o.csv").write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in places.tolist()))
    arguments = ["od", store.path, str(tmp_path / "od.csv"), "--origins", str(tmp_path / "o.csv"), "--nearest", "1"]
    assert invoke(*arguments, catch_exceptions=False).exit_code == 0
    assert set(pyarrow.csv.read_csv(tmp_path / "od.csv")["origin_snapped"].to_pylist()) == {0}


def test_a_place_too_far_to_measure_is_refused(graph, tmp_path):
    (tmp_path / "o.csv").write_text("x,y\n7,48\n1e200,0\n")
    with pytest.raises(ValueError, match="o.csv, row 2: too far from every vertex to measure"):
        points_from(tmp_path / "o.csv", graph, "origin")


def test_vertices_without_coordinates_are_not_snapped_to(tmp_path):
    ring, places = np.roll(np.arange(5), -1), np.array([[0, 0], [1, 0], [np.nan, np.nan], [3, 0], [4, 0]])
    graph = write_graph(tmp_path / "g", np.arange(6), ring, np.ones(5, "int32"), coordinates=places)
    (tmp_path / "o.csv").write_text("x,y\n2.2,0\n")
    assert points_from(tmp_path / "o.csv", graph, "origin").vertices.tolist() == [3]
    nowhere = write_graph(tmp_path / "n", np.arange(6), ring, np.ones(5, "int32"), coordinates=places * np.nan)
    with pytest.raises(ValueError, match="in its largest strongly connected component; name vertices"):
        points_from(tmp_path / "o.csv", nowhere, "origin")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("origin\nv1\nx9\n", r"o.csv, row 2: .*there is no vertex 'x9'"),
        ("origin\n", "o.csv: no rows; give at least one origin"),
        (
            "name,b\nv1,2\n",
            "no column `origin` or `vertex`, nor `lon` .* and `y`; its columns are name, b; rename",
        ),
        ("Lng,longitude,lat\n1,2,3\n", "2 columns `lon`; its columns are Lng, longitude, lat"),
        ("lon,lat\n10,50\n,50\n", "row 2: `lon` is missing; correct it"),
        ("lon,lat\n10,nan\n", "row 1: `lat` is 'nan', not a number"),
        ("lon,lat\n50,100\n", "row 1: there is no longitude 50 with latitude 100; are they exchanged"),
        ("lon,lat\n10,fifty\n", "row 1: `lat` is 'fifty', not a number; correct it"),
        (
            "lon,lat\n10,50\n50,10\n",
            r"row 2: lon 50 with lat 10 is [45],\d{3} km from the nearest vertex, and .* within the network; exch",
        ),
        ("id,vertex\na,v1\n,v2\n", "row 2: `id` is missing"),
        ("", "o.csv: cannot be read .*correct the file"),
        ("origin,jobs\nv1,\n", "row 1: `jobs` is missing"),
    ],
)
def test_bad_tables_are_named_by_row(graph, tmp_path, text, message):
    (tmp_path / "o.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        points_from(tmp_path / "o.csv", graph, "origin", ["jobs"] if "jobs" in text else [])


@pytest.mark.parametrize(
    "text",
    [
        "ID,Longitude, LAT \n007,{},{}\n",
        "id;lng;latitude\n007;{};{}\n",
        "\ufeff id ;lon;lat\n007;{};{}\n",
        "X,Y,Id\n{},{},007\n",
    ],
)
def test_headers_as_people_write_them(graph, tmp_path, text):
    (tmp_path / "o.csv").write_text(text.format(*graph.coordinates()[3].tolist()), encoding="utf-8")
    found = points_from(tmp_path / "o.csv", graph, "origin")
    assert (found.vertices.tolist(), found.ids.to_pylist()) == ([3], ["007"])


def test_the_case_of_a_column_decides_only_between_several(graph, tmp_path):
    (tmp_path / "o.csv").write_text("Origin,origin,VERTEX\nv1,v2,v3\n")
    assert points_from(tmp_path / "o.csv", graph, "origin").vertices.tolist() == [2]
    pa.parquet.write_table(pa.table({" Origin ": ["v1"]}), tmp_path / "o.parquet")
    assert points_from(tmp_path / "o.parquet", graph, "origin").vertices.tolist() == [1]


def test_the_unit_is_named_and_text_has_metres_to_a_tenth(graph, tmp_path):
    (tmp_path / "o.csv").write_text("id,lon,lat,destination\na,10,50,b\nb,11,51,a\n")
    for out in "od.csv", "od.parquet", "least.parquet":
        more = ["--reduce", "min"] if out.startswith("least") else []
        arguments = ["od", graph.path, str(tmp_path / out), "--origins", str(tmp_path / "o.csv"), *more]
        said = invoke(*arguments)
        assert f"2 origins, 2 destinations, {2 if more else 4} rows, distances in s; " in said.stdout
        assert "o.csv: its column `destination` is ignored; the table will pair every origin with every" in said.stderr
    said = invoke(*arguments, "--destinations", tmp_path / "o.csv", "--overwrite")
    assert "its column" not in said.stderr
    text, table = rows_of(tmp_path / "od.csv"), pa.parquet.read_table(tmp_path / "od.parquet")
    metres = np.stack([table["origin_snapped"], table["destination_snapped"]], axis=1)
    assert [row[3:] for row in text] == list(map(tuple, metres.round(1).tolist()))
    assert (metres != metres.round(1)).all()
    units = {field.name: field.metadata for field in table.schema if field.metadata}
    metre = {b"unit": b"m"}
    assert units == {"travel_time": {b"unit": b"s"}, "origin_snapped": metre, "destination_snapped": metre}
    assert pa.parquet.read_schema(tmp_path / "least.parquet").field("min").metadata == {b"unit": b"s"}


def test_places_moved_past_a_nearer_vertex_are_counted(graph, tmp_path):
    coordinates = graph.coordinates()[[3, 55]]  # nothing leads to 55
    (tmp_path / "o.csv").write_text("lon,lat\n" + "".join(f"{lon!r},{lat!r}\n" for lon, lat in coordinates.tolist()))
    warning = points_from(tmp_path / "o.csv", graph, "origin").warning
    assert "1 place moved past a nearer vertex, which is outside the largest strongly connected" in warning
    assert "the first in row 2" in warning


def test_places_far_from_every_vertex_are_named_and_refused_beyond_the_limit(graph, tmp_path):
    lon, lat = graph.coordinates()[3].tolist()
    table = tmp_path / "o.csv"
    table.write_text(f"lon,lat\n{lon!r},{lat!r}\n{lon!r},{lat + 0.0001!r}\n")
    assert points_from(table, graph, "origin").warning is None
    table.write_text(f"lon,lat\n{lon!r},{lat!r}\n-3,40\n30,60\n")
    found = points_from(table, graph, "origin")
    assert re.search(
        r"o.csv: 2 places are farther than 1,000 m from .*, the worst is row 3, 1,\d{3} km away; snap_limit .--snap",
        found.warning,
    )
    with pytest.raises(ValueError, match=r"o.csv, row 2: \d{3} km from .* more than the limit of 50 km; correct it"):
        points_from(table, graph, "origin", snapping=Snapping(graph, limit=50_000))
    points_from(table, graph, "origin", snapping=Snapping(graph, limit=2e6))
    with pytest.raises(ValueError, match="snap_limit .* is nan; give a distance of 0 or more"):
        points_from(table, graph, "origin", snapping=Snapping(graph, limit=float("nan")))
    arguments = ["od", graph.path, str(tmp_path / "od.csv"), "--origins", str(table)]
    said = invoke(*arguments)
    assert said.stderr.count("2 places are farther than") == 1  # origins are the destinations
    said = invoke(*arguments[:2], tmp_path / "n.csv", *arguments[3:], "--snap-limit", "9")
    assert "more than the limit of 9 m" in str(said.exception)
    assert not (tmp_path / "n.csv").exists()
    table.write_text("x,y\n10,50\n-2,50\n")  # without a unit, by the size of the network
    assert re.search(
        r"(1 place is|2 places are) farther than 0\.1\d+ from .*, the worst is row 2, [5-9]\.",
        points_from(table, graph, "origin").warning,
    )
    table.write_text("x,y\n10,50\n-80,50\n-90,50\n")
    with pytest.raises(ValueError, match=r"o.csv, row 2: 8\d\.\d+ .* the network is large .13\.9.*; so is 1 other"):
        points_from(table, graph, "origin")
    assert "the worst is row 3" in points_from(table, graph, "origin", snapping=Snapping(graph, limit=100)).warning


@pytest.mark.parametrize(
    ("options", "out", "message"),
    [
        ({"within": -1}, "od.csv", "is -1; give a distance of 0 or more"),
        ({"nearest": 0}, "od.csv", "nearest is 0"),
        ({"nearest": 2, "reduce": "count"}, "od.csv", r"nearest \(--nearest\) does not go with reduce"),
        ({"within": 3}, "od.npy", "a matrix has all distances"),
        ({"paths": True}, "od.zarr", "a matrix has all distances and no other values"),
        ({"paths": True, "reduce": "count"}, "od.csv", r"paths \(--paths\) does not go with reduce"),
        ({"reduce": "mean"}, "od.csv", "reduce is 'mean'; give count, min, sum:COLUMN"),
        ({"reduce": "decay:-1"}, "od.csv", r"SCALE of reduce \(--reduce\) is -1; give a distance of 0 or more"),
        ({}, "od.xls", "tables are .csv"),
    ],
)
def test_misuse_is_named(source, points, tmp_path, options, out, message):
    with pytest.raises(ValueError, match=message):
        write_od_table(source, *points, tmp_path / out, **options)
    assert not list(tmp_path.iterdir())


def test_what_exists_is_kept_until_the_new_table_is_whole(source, points, tmp_path, monkeypatch):
    out = tmp_path / "od.parquet"
    write_od_table(source, *points, out, nearest=1)
    before = out.read_bytes()
    with pytest.raises(FileExistsError):
        write_od_table(source, *points, out)
    with monkeypatch.context() as patched:
        patched.setattr(plan, "choices", lambda *_, **_options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_od_table(source, *points, out, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["od.parquet"]
    assert out.read_bytes() == before


def test_parse_reduction():
    assert parse_reduction("decay:600:jobs") == Reduction("decay", "jobs", 600.0)


def test_the_command(source, tmp_path):
    (tmp_path / "o.csv").write_text("vertex,jobs\nv1,3\nv2,4\n")
    origins = tmp_path / "o.csv"
    said = run_command("od", source.path, tmp_path / "od.csv", "--origins", origins, "--reduce", "sum:jobs")
    assert (tmp_path / "od.csv").read_text() == '"origin","sum_jobs"\n"v1",7\n"v2",7\n'
    assert "2 origins, 2 destinations, 2 rows" in said.output


def test_origins_are_the_destinations_by_default_and_are_not_replaced(source, tmp_path):
    origins, out = tmp_path / "o.csv", tmp_path / "od.csv"
    origins.write_text("origin\nv1\nv2\n")
    arguments = ["od", source.path, str(out), "--origins", str(origins)]
    said = run_command(*arguments)
    assert "destination" not in said.stderr
    assert len(out.read_text().splitlines()) == 1 + 2 * 2
    arguments[2] = str(origins)
    said = invoke(*arguments, "--overwrite")
    assert "is the input" in str(said.exception)
    assert origins.read_text() == "origin\nv1\nv2\n"


def test_negative_weights_need_a_store(client, tmp_path):
    graph = write_graph(tmp_path / "g", [0, 1, 1], [1], np.array([-2], "int32"))
    both = points_of(graph, [0, 1])
    with pytest.raises(ValueError, match="has negative weights; make a hierarchy store"):
        write_od_table(graph, both, both, tmp_path / "od.csv")
    write_od_table(build_hierarchy(client, graph, tmp_path / "h"), both, both, tmp_path / "od.csv")
    assert [d for *_, d in rows_of(tmp_path / "od.csv")] == [0, -2, None, 0]


FORMS = [
    ("od.parquet", {}),
    ("od.parquet", {"nearest": 3}),
    ("od.csv", {"within": 40}),
    ("od.tsv.gz", {}),
    ("od.csv", {"reduce": "count"}),
    ("od.parquet", {"reduce": "decay:20"}),
    ("od.parquet", {"paths": True}),
    ("od.npy", {}),
    ("od.zarr", {}),
]


@pytest.fixture
def in_blocks(monkeypatch):
    monkeypatch.setattr(plan, "BLOCK_BYTES", 5 * N * 8)
    monkeypatch.setattr(plan, "PATH_VERTICES", 1)
    monkeypatch.setattr(plan, "REDUCED_PAIRS", (5 * N, 5 * N))


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_what_a_stopped_run_left_is_gone_on_with(source, points, tmp_path, in_blocks, monkeypatch, name, options):
    calm, out = tmp_path / "calm" / name, tmp_path / name
    calm.parent.mkdir()
    count = write_od_table(source, *points, calm, **options)
    assert write_od_table(source, *points, calm, **options, resume=True) is None
    asked, init = [], DistancesTo.__init__

    def begin(self, *arguments):
        init(self, *arguments)
        found = self.rows

        def some(vertices):
            asked.append(len(vertices))
            if len(asked) == 3:
                raise RuntimeError("stopped")
            return found(vertices)

        self.rows = some

    reached = Near._reached

    def reach(self, sources):
        asked.append(len(sources))
        if len(asked) == 3:
            raise RuntimeError("stopped")
        return reached(self, sources)

    monkeypatch.setattr(DistancesTo, "__init__", begin)
    monkeypatch.setattr(Near, "_reached", reach)
    with pytest.raises(RuntimeError, match="stopped"):
        write_od_table(source, *points, out, **options)
    assert not out.exists() or out.suffix == ".zarr"
    other = points[0]._replace(vertices=points[0].vertices[::-1])
    with pytest.raises(ValueError, match="was begun with (other )?origins"):
        write_od_table(source, other, points[1], out, **options, resume=True)
    if out.suffix != ".zarr":
        with (tmp_path / f".{name}.partial").open("ab") as torn, (tmp_path / f".{name}.pieces").open("ab") as journal:
            torn.write(b"what was not committed")
            journal.write(b"[1, 2")
    assert write_od_table(source, *points, out, **options, resume=True) == (count.rows, 8 * N)
    assert count.pairs == 18 * N
    assert asked == [5, 5, 5, 5, 3]
    assert contents(out) == contents(calm)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["calm", name])


@pytest.mark.parametrize("name", ["od.csv", "od.zarr"])
def test_ctrl_c_ends_a_run_behind_a_block(source, points, tmp_path, in_blocks, monkeypatch, name):
    monkeypatch.setattr(interruption, "_asked", True)
    with pytest.raises(interruption.Interrupted):
        write_od_table(source, *points, tmp_path / name)
    assert (interruption._runs, interruption.asked()) == (0, False)
    journal = tmp_path / name / "zarr.json" if name == "od.zarr" else tmp_path / f".{name}.pieces"
    assert done(tmp_path / name, journal) == (5 if name == "od.zarr" else 1)
    rows = 18 if name == "od.zarr" else 18 * N
    assert write_od_table(source, *points, tmp_path / name, resume=True) == (rows, 13 * N)


# --- Tables that workers reduce -------------------------------------------------------------------------------------

REDUCED = [
    ("od.csv", {"reduce": "count", "within": 45}),
    ("od.parquet", {"reduce": "sum:jobs"}),
    ("od.csv", {"reduce": "min"}),
    ("od.parquet", {"reduce": "decay:20:jobs", "within": 60}),
]


@pytest.fixture
def with_jobs(points):
    origins, destinations = points
    return origins, destinations._replace(columns={"jobs": np.random.default_rng(6).uniform(0, 9, N)})


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(("name", "options"), REDUCED)
def test_two_workers_reduce_a_table_to_the_same_bytes(two, store, with_jobs, tmp_path, name, options):
    (tmp_path / "one").mkdir()
    count = write_od_table(store, *with_jobs, tmp_path / "one" / name, **options)
    assert write_od_table(store, *with_jobs, tmp_path / name, client=two, **options) == count == (18, 18 * N)
    assert contents(tmp_path / name) == contents(tmp_path / "one" / name)


@pytest.mark.usefixtures("in_blocks")
def test_workers_and_this_process_go_on_where_the_other_stopped(two, store, with_jobs, tmp_path, monkeypatch):
    calm, out = tmp_path / "calm.csv", tmp_path / "od.csv"
    write_od_table(store, *with_jobs, calm, reduce="sum:jobs")
    for clients in (two, None), (None, two):
        with monkeypatch.context() as patched:
            append, appended = TableForm.append, []

            def twice(self, *arguments, append=append, appended=appended):
                appended.append(append(self, *arguments))
                return appended[-1] if len(appended) < 3 else 1 / 0

            patched.setattr(TableForm, "append", twice)
            with pytest.raises(ZeroDivisionError):
                write_od_table(store, *with_jobs, out, reduce="sum:jobs", client=clients[0])
        assert done(out, tmp_path / ".od.csv.pieces") == 2
        assert write_od_table(store, *with_jobs, out, reduce="sum:jobs", client=clients[1], resume=True).rows == 18
        assert contents(out) == contents(calm)
        out.unlink()


@pytest.mark.usefixtures("in_blocks")
def test_what_was_cut_into_other_blocks_is_not_gone_on_with(store, with_jobs, tmp_path, monkeypatch):
    """As an earlier version may have done; else origins would be left out, or be there twice."""
    monkeypatch.setattr(TableForm, "finish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_od_table(store, *with_jobs, tmp_path / "od.csv", reduce="count")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="was begun with other blocks; use the same, or leave out resume"):
        write_od_table(store, *with_jobs, tmp_path / "od.csv", reduce="count", resume=True)


@pytest.mark.slow
@pytest.mark.usefixtures("in_blocks")
def test_a_killed_worker_costs_nothing_but_time(two_processes, store, with_jobs, tmp_path, monkeypatch):
    destinations = with_jobs[1]
    many = points_of(store.graph(), np.random.default_rng(7).integers(0, N, 2000))
    write_od_table(store, many, destinations, tmp_path / "calm.csv", reduce="sum:jobs")
    append, appended = TableForm.append, []

    def murder(self, *arguments):
        appended.append(append(self, *arguments))
        if len(appended) == 20:
            os.kill(next(iter(two_processes.run(os.getpid).values())), signal.SIGKILL)
        return appended[-1]

    monkeypatch.setattr(TableForm, "append", murder)
    count = write_od_table(store, many, destinations, tmp_path / "od.csv", reduce="sum:jobs", client=two_processes)
    assert count.rows == 2000
    assert len(appended) == 400
    assert contents(tmp_path / "od.csv") == contents(tmp_path / "calm.csv")


def test_blocks_are_written_in_the_order_of_origins():
    written = []
    receive = in_order([3, 6, 9], lambda start, values: written.append((start, values)))
    receive(9, "d")
    receive(6, "c")
    assert not written
    receive(3, "b")
    assert written == [(3, "b"), (6, "c"), (9, "d")]


def test_workers_that_have_no_part_in_a_table_are_refused(two, store, graph, points, tmp_path):
    with pytest.raises(ValueError, match=r"only make reduced tables; give reduce \(--reduce\), or leave out"):
        write_od_table(store, *points, tmp_path / "od.csv", client=two)
    with pytest.raises(ValueError, match="is a graph store, but workers of a cluster need a hierarchy store; make one"):
        write_od_table(graph, *points, tmp_path / "od.csv", client=two, reduce="count")
    facts = [replace(fact, free_memory=1000, host_memory=1000) for fact in measure_workers(two, None)]
    reducing = Reducing(points[1].vertices, [parse_reduction("count")], [np.ones(N)], 5)
    with pytest.raises(DoesNotFitError, match=r"s.zarr, the workers need .* free\. Give fewer workers"):
        refuse_what_cannot_fit(store, reducing, facts)


def test_the_command_starts_a_cluster_where_it_is_told_to(store, tmp_path, monkeypatch):
    (tmp_path / "o.csv").write_text("vertex,jobs\nv1,3\nv2,4\n")
    arguments = ["od", store.path, str(tmp_path / "od.csv"), "--origins", str(tmp_path / "o.csv")]
    said = invoke(*arguments, "--device", "cpu")
    assert "only make reduced tables" in str(said.exception)
    reduced = []
    monkeypatch.setattr(on_workers, "reduce_on_workers", lambda *given: reduced.append(given))
    said = run_command(*arguments, "--reduce", "sum:jobs", "--workers", "1", "--device", "cpu")
    assert len(reduced) == 1


def reduced_by(client, store, points, out, options):
    write_od_table(store, *points, out, client=client, **options)
    names, values = zip(*rows_of(out), strict=True)
    out.unlink()
    return names, np.array(values, float)


@pytest.mark.gpu
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(("name", "options"), REDUCED)
def test_a_gpu_reduces_a_table_as_the_cpu(gpu_client, store, with_jobs, tmp_path, name, options):
    names, values = reduced_by(None, store, with_jobs, tmp_path / name, options)
    for _ in range(2):
        found = reduced_by(gpu_client, store, with_jobs, tmp_path / name, options)
        assert found[0] == names
        np.testing.assert_allclose(found[1], values, rtol=1e-12)


@pytest.mark.multigpu
@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize(("name", "options"), REDUCED)
def test_two_gpus_reduce_a_table_as_one(two_gpus, gpu_client, store, with_jobs, tmp_path, name, options):
    names, values = reduced_by(gpu_client, store, with_jobs, tmp_path / name, options)
    found = reduced_by(two_gpus, store, with_jobs, tmp_path / name, options)
    assert found[0] == names
    np.testing.assert_array_equal(found[1], values)


def test_a_run_that_is_not_resumed_begins_again(source, points, tmp_path, in_blocks, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(TableForm, "finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_od_table(source, *points, tmp_path / "od.csv")
    write_od_table(source, *points, tmp_path / "od.csv", nearest=2)
    assert len(rows_of(tmp_path / "od.csv")) < 18 * N
    assert [path.name for path in tmp_path.iterdir()] == ["od.csv"]


@pytest.mark.usefixtures("in_blocks")
def test_pieces_of_parquet_are_joined_by_groups_of_rows_after_a_run_that_could_not(
    source, points, tmp_path, monkeypatch
):
    out, calm = tmp_path / "od.parquet", tmp_path / "calm.parquet"
    write_od_table(source, *points, calm)
    writer = forms.table_writer

    @contextmanager
    def failing(sink, *arguments):
        with writer(sink, *arguments) as write:
            yield (lambda _group: 1 / 0) if str(sink).endswith("joined") else write

    with monkeypatch.context() as patched:
        patched.setattr(forms, "table_writer", failing)
        with pytest.raises(ZeroDivisionError):
            write_od_table(source, *points, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".od.parquet.partial", ".od.parquet.pieces", calm.name]
    (tmp_path / ".od.parquet.joined").write_text("what a killed run left")
    monkeypatch.setattr(TableForm, "append", lambda *_: 1 / 0)  # all blocks are there
    assert write_od_table(source, *points, out, resume=True) == (18 * N, 0)
    assert pa.parquet.read_table(out).equals(pa.parquet.read_table(calm))
    assert pa.parquet.ParquetFile(out).num_row_groups == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [calm.name, out.name]


@pytest.mark.usefixtures("in_blocks")
def test_the_disk_for_joining_pieces_is_counted_before_it_is_needed(source, points, tmp_path, monkeypatch):
    class Usage:
        free = 3000

    monkeypatch.setattr("pipelines.workers.capacity.shutil.disk_usage", lambda folder: Usage)
    with pytest.raises(DoesNotFitError, match=r"od.parquet may take .* the disk has 2.9 KiB free.*--resume.*\.csv"):
        write_od_table(source, *points, tmp_path / "od.parquet")
    Usage.free = 10**6
    assert write_od_table(source, *points, tmp_path / "od.parquet", resume=True).rows == 18 * N


def test_two_runs_do_not_write_the_same_file(tmp_path):
    with growing_file(tmp_path / "f", {}):
        with pytest.raises(BlockingIOError, match="another run writes it"):
            with growing_file(tmp_path / "f", {}):
                pass
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_matrix_store(source, matrix, points, tmp_path, in_blocks):
    assert write_od_table(source, *points, tmp_path / "od.zarr").rows == 18
    found = open_matrix(tmp_path / "od.zarr")
    expected = matrix[np.ix_(*(p.vertices for p in points))]
    np.testing.assert_array_equal(np.where(found[:] == np.iinfo("int32").max, np.inf, found[:]), expected)
    assert [list(names) for names in found.names()] == [p.ids.to_pylist() for p in points]
    group = zarr.open_group(tmp_path / "od.zarr", mode="r")
    assert group["distances"].attrs["unit"] == "s"
    assert group["distances"].metadata.dimension_names == ("origin", "destination")
    said = invoke("info", tmp_path / "od.zarr", "--verify")
    assert "18 origins, 60 destinations" in said.output
    assert "checked: every chunk of distances, origin and destination" in said.output
    with pytest.raises(StoreError, match="exists already"):
        write_od_table(source, *points, tmp_path / "od.zarr")


@pytest.mark.parametrize("options", [{}, {"nearest": 4}, {"within": 30}])
def test_paths_lead_from_origins_to_destinations(source, graph, matrix, points, tmp_path, in_blocks, options):
    write_od_table(source, *points, tmp_path / "od.parquet", paths=True, **options)
    write_od_table(source, *points, tmp_path / "plain.parquet", **options)
    table = pa.parquet.read_table(tmp_path / "od.parquet")
    assert table.column_names == ["origin", "destination", "travel_time", "length", "path"]
    plain = pa.parquet.read_table(tmp_path / "plain.parquet")
    assert table.select(["origin", "destination", "travel_time"]).equals(plain)
    indptr, indices, weights = graph.rows()
    places, globe = graph.coordinates(), Geod(ellps="WGS84")
    seen = set()
    for row in table.to_pylist():
        if row["travel_time"] is None:
            assert row["path"] is row["length"] is None
            continue
        vertices = [int(name[1:]) for name in row["path"]]
        assert (f"v{vertices[0]}", f"v{vertices[-1]}") == (row["origin"], row["destination"])
        total = metres = 0
        for u, v in pairwise(vertices):
            arcs = slice(indptr[u], indptr[u + 1])
            total += weights[arcs][indices[arcs] == v].min()
            metres += globe.inv(*places[u], *places[v])[2]
        assert total == row["travel_time"]
        assert row["length"] == pytest.approx(metres, rel=1e-9, abs=1e-6)
        seen.add(len(vertices))
    assert len(seen) > 3
    write_od_table(source, *points, tmp_path / "od.csv", paths=True, **options)
    text = pa.csv.read_csv(tmp_path / "od.csv")
    assert text["length"].to_pylist() == [None if m is None else round(m, 1) for m in table["length"].to_pylist()]
    assert table.schema.field("length").metadata == {b"unit": b"m"}
    joined = text["path"].to_pylist()
    assert joined == [" ".join(path) if path else "" for path in table["path"].to_pylist()]


def done(out, journal):
    """How many rows of a matrix, or pieces of a file, are committed."""
    if out.suffix != ".zarr":
        return journal.read_text().count("\n") - 1
    return sum(stop - start for start, stop in json.loads(journal.read_text())["attributes"].get("done", []))

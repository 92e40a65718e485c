"""The disk of a table is stated before its first row, and a table that cannot fit is refused."""

import json
import os
from types import SimpleNamespace

import numpy as np
import pyarrow.csv
import pytest
from commands import invoke, run_command

from gpuops.errors import WeightRangeError
from pipelines import build_hierarchy, open_graph, planned, positions, write_graph
from pipelines.od_tables import disk, plan
from pipelines.od_tables.write import write_od_table
from pipelines.places.points import points_from
from pipelines.stores.schema import store_bytes
from pipelines.workers.capacity import DoesNotFitError

N = 60


@pytest.fixture
def points(graph):
    """Origins that are places, with names in quotation marks, and destinations that are vertices."""
    rng = np.random.default_rng(5)
    origins, ends = (points_from(positions(rng.permutation(N)[:k]), graph, "vertex") for k in (18, 40))
    names = pyarrow.array([f'home "{i}"' for i in range(18)])
    return origins._replace(ids=names, snapped=rng.uniform(0, 900, 18), unit="m"), ends


@pytest.fixture
def least(monkeypatch):
    """The bytes that each run is sure to need."""
    found, refuse = [], disk.refuse_disk
    monkeypatch.setattr(disk, "refuse_disk", lambda count, *rest: (found.append(count), refuse(count, *rest)))
    return found


CASES = {
    "all": ("csv", {}, "720 rows, disk "),
    "minutes": ("tsv", {"unit": "min"}, "720 rows, disk "),
    "gzip": ("csv.gz", {}, "720 rows, disk at most "),
    "parquet": ("parquet", {}, "720 rows, disk at most "),
    "within": ("csv", {"within": 30}, "at most 720 rows, disk at most "),
    "nearest": ("csv", {"nearest": 3}, "at most 54 rows, disk at most "),
    "reduced": ("csv", {"reduce": "count"}, "18 rows, disk "),
    "paths": ("csv", {"paths": True}, "720 rows, disk about "),
    "array": ("npy", {}, "18 rows, disk "),
    "matrix": ("zarr", {}, "18 rows, disk at most "),
}


@pytest.mark.parametrize("result", CASES)
def test_the_result_takes_the_disk_that_was_stated(store, points, tmp_path, monkeypatch, least, result):
    suffix, options, text = CASES[result]
    out = tmp_path / f"t.{suffix}"
    monkeypatch.setattr(plan, "BLOCK_BYTES", 8 * N * 8)  # several blocks
    stated = planned(write_od_table, store, *points, out, **options)
    assert list(tmp_path.iterdir()) == []
    assert f"{out}: 18 origins, 40 destinations, {text}" in stated.text
    write_od_table(store, *points, out, **options)
    takes = store_bytes(out) if suffix == "zarr" else os.path.getsize(out)
    assert least[0] <= takes <= stated.disk_bytes
    if result == "paths":  # they are shorter here
        assert stated.disk_bytes > 720 * plan.PATH_VERTICES * disk.NAME_BYTES
    if result == "parquet":  # to join blocks takes as much disk again
        monkeypatch.setattr(plan, "BLOCK_BYTES", 1 << 20)
        assert stated.disk_bytes > 2 * planned(write_od_table, store, *points, out, overwrite=True).disk_bytes
    if suffix == "npy":
        assert least[0] == takes == stated.disk_bytes
    if result in ("all", "nearest", "reduced"):
        assert least[0] > {"all": 0.85, "nearest": 0.2, "reduced": 0.8}[result] * takes
        assert stated.disk_bytes < 2 * takes


def test_text_without_its_distances_is_known_to_the_byte(store, points, tmp_path, least):
    out = tmp_path / "t.csv"
    write_od_table(store, *points, out)
    kinds = pyarrow.csv.ConvertOptions(column_types={"travel_time": pyarrow.string()})
    distances = pyarrow.csv.read_csv(out, convert_options=kinds)["travel_time"].to_pylist()
    assert os.path.getsize(out) - sum(map(len, distances)) == least[0]


def test_of_pairs_each_row_counts_once(store, points, tmp_path, least):
    origins, ends = points
    stated = planned(write_od_table, store, origins, ends.take(np.arange(18)), tmp_path / "t.csv", pairs=True)
    assert f"{tmp_path / 't.csv'}: 18 pairs, 18 rows, disk " in stated.text
    write_od_table(store, origins, ends.take(np.arange(18)), tmp_path / "t.csv", pairs=True)
    assert least[0] <= os.path.getsize(tmp_path / "t.csv") <= min(stated.disk_bytes, 1.5 * least[0])


def test_a_table_that_cannot_fit_is_refused_and_no_other(store, points, tmp_path, monkeypatch, least):
    out, free = tmp_path / "t.csv", SimpleNamespace(free=1 << 40)
    monkeypatch.setattr("shutil.disk_usage", lambda _: free)
    monkeypatch.setattr(plan, "BLOCK_BYTES", 8 * N * 8)
    planned(write_od_table, store, *points, out)
    free.free = least[0] - 1
    with pytest.raises(DoesNotFitError, match=r"t\.csv may take .*; keep|or keep the nearest .*--nearest") as refused:
        write_od_table(store, *points, out)
    assert refused.value.plan.refusal == str(refused.value)
    assert list(tmp_path.iterdir()) == []

    def stopped():
        raise KeyboardInterrupt

    free.free = least[0]
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.od_tables.write.stop_if_asked", stopped)
        with pytest.raises(KeyboardInterrupt):
            write_od_table(store, *points, out)
    written = (tmp_path / ".t.csv.partial").stat().st_size
    assert 0 < written < least[0]
    free.free = least[0] - written - 1
    with pytest.raises(DoesNotFitError):
        write_od_table(store, *points, out, resume=True)
    free.free += 1  # what is written already counts
    assert write_od_table(store, *points, out, resume=True).rows == 720


def test_only_a_long_run_prints_its_plan(store, points, tmp_path, monkeypatch, capsys):
    write_od_table(store, *points, tmp_path / "t.csv")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(disk, "LONG_BYTES", 1)
    for suffix in "csv", "zarr":
        write_od_table(store, *points, tmp_path / f"long.{suffix}")
        assert f"long.{suffix}: 18 origins, 40 destinations, " in capsys.readouterr().err
    write_od_table(store, *points, tmp_path / "silent.csv", progress=False)
    assert capsys.readouterr().err == ""


def test_the_command_prints_its_plan(store, graph, tmp_path, monkeypatch):
    (tmp_path / "o.csv").write_text("vertex\nv1\nv2\n")

    def call(*options):
        out = str(tmp_path / "t.csv")
        return invoke("od", store.path, out, "--origins", tmp_path / "o.csv", *options)

    assert "t.csv: 2 origins, 2 destinations, 4 rows, disk " in call("--dry-run").output
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    refused = json.loads(call("--dry-run", "--json").stdout)
    assert refused["method"] == "hierarchy"
    assert "has 0 B free" in refused["refusal"]
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.slow
def test_cures_of_distances_beyond_int32_work(maker, tmp_path):
    """The message names weights of float64, and a hierarchy of float64; both give the distances."""
    arcs = np.array([0, 1, 2, 3]), np.array([1, 2, 0])
    for largest in 3_000_000_000, 1_500_000_000:
        weights = np.array([largest, 1_500_000_000, 1])
        graph = write_graph(tmp_path / "g.zarr", *arcs, weights, overwrite=True)
        every = points_from(positions(np.arange(3)), graph, "vertex")
        for options in {}, {"pairs": True}, {"within": 2**40}, {"paths": True}:
            with pytest.raises(WeightRangeError, match="with weights of float64 .* hierarchy --dtype float64"):
                write_od_table(graph, every, every.take(np.array([2, 1, 0])), tmp_path / "t.npy.csv", **options)
        (tmp_path / "g.csv").write_text(f"source,target,weight\n0,1,{largest}.0\n1,2,1500000000\n2,0,1\n")
        run_command("import", tmp_path / "g.csv", tmp_path / "f.zarr", "--directed")
        floats = open_graph(tmp_path / "f.zarr")
        wide = [] if largest < 2**31 else [build_hierarchy(maker, graph, tmp_path / "h.zarr", dtype="float64")]
        for source in floats, *wide:
            write_od_table(source, every, every, tmp_path / "t.npy", overwrite=True)
            assert np.load(tmp_path / "t.npy")[0].tolist() == [0, largest, largest + 1_500_000_000]
        (tmp_path / "f.zarr").rename(tmp_path / f"{largest}.zarr")

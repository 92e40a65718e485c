"""Charts from results of tiny sizes, made here."""

import json
import re
import runpy
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import chart_style, drawings, euler_chart, harness
from benchmarks.harness import Bench
from benchmarks.suites import euler

pytest.importorskip("matplotlib")
SCRIPT = Path(__file__).parents[2] / "scripts" / "bench.py"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    bench = Bench("euler", np, 1)
    for n in (400, 100, 200):
        euler.deep(bench, n, 5).all()
    euler.deep(bench, 300, 7).all()
    path = tmp_path_factory.mktemp("results") / "euler-here.json"
    bench.write(path, euler.CONVENTION)
    return path


def test_the_series_is_read_by_size(result):
    device, records = chart_style.read_records(result)
    assert device
    for what in "in all", "Hierholzer, one core":
        points = euler_chart._series(records, what, 5)
        assert [n * 2**20 for n, _ in points] == [100, 200, 400]
        assert all(seconds > 0 for _, seconds in points)


def test_the_chart_of_euler_circuits_has_published_points(result, tmp_path, monkeypatch, capsys):
    out = tmp_path / "gallery" / "eulergpu.svg"
    drawn = []
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["bench.py", "chart", "eulergpu", str(result), "--out", str(out)])
        runpy.run_path(str(SCRIPT))["main"]()
        assert capsys.readouterr().out.strip() == str(out)
        drawn.append(out.read_text())
    assert drawn[0] == drawn[1]
    texts = re.findall(r"<!-- (.*?) -->", drawn[0])
    for part in "in all", "Hierholzer, one core", "GPU, 41.3 s", "CPU, Hierholzer, 62.9 s", "vertices", "seconds":
        assert any(part in text for text in texts), part


def test_the_chart_of_the_results_of_a_gpu_has_its_host_and_the_published_graph(tmp_path):
    """They have no series by Hierholzer's algorithm: its one time, of the graph that was published, is drawn."""
    results = chart_style.ROOT / "benchmarks" / "results" / "euler-h200.json"
    drawn = euler_chart.draw([results], tmp_path / "c.svg").read_text()
    texts = re.findall(r"<!-- (.*?) -->", drawn)
    for text in "NVIDIA H200: in all, k = 7", "host of NVIDIA H200: Hierholzer, one core, k = 7":
        assert text in texts


def test_the_series_of_a_gpu_has_times_of_its_host(tmp_path, monkeypatch):
    bench = Bench("euler", np, 1)
    bench.gpu = True  # played
    monkeypatch.setattr(Bench, "wait", lambda _: None)
    monkeypatch.setattr(harness, "_sm_clock", lambda: 1000)
    monkeypatch.setattr(euler, "MILLION", 50)
    euler.run(bench, Namespace(only=["series"], full=False))
    for what in "in all", "Hierholzer, one core":
        assert len(euler_chart._series(bench.records, what, 5)) == 5
    bench.write(tmp_path / "euler-gpu.json", euler.CONVENTION)
    drawn = euler_chart.draw([tmp_path / "euler-gpu.json"], tmp_path / "c.svg").read_text()
    assert re.search(r"<!-- host of .*: Hierholzer, one core -->", drawn)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"device": "a", "records": []}',
            "nothing to draw for the series k = 5; run scripts/bench.py euler --only series",
        ),
        ("[]", "is not a file of results"),
        ("{", "is not a file of results"),
    ],
)
def test_what_cannot_be_drawn_is_named_in_a_line(tmp_path, monkeypatch, content, message):
    path = tmp_path / "euler-x.json"
    path.write_text(content)
    monkeypatch.setattr(sys, "argv", ["bench.py", "chart", "eulergpu", str(path), "--out", str(tmp_path / "x.svg")])
    with pytest.raises(SystemExit, match=message) as refused:
        runpy.run_path(str(SCRIPT))["main"]()
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "x.svg").exists()


def test_the_charts_of_the_gallery_are_of_the_devices_of_their_records():
    bench, drawn_otherwise = runpy.run_path(str(SCRIPT)), {*drawings.DRAWINGS, "butterfly"}
    assert {path.stem for path in chart_style.GALLERY.glob("*.svg")} - drawn_otherwise == set(bench["GALLERY"])
    for name, files in bench["GALLERY"].items():
        text = (chart_style.GALLERY / f"{name}.svg").read_text()
        for file in files:
            assert json.loads((bench["RESULTS"] / f"{file}.json").read_text())["device"] in text, (name, file)


@pytest.mark.slow
def test_the_charts_of_the_gallery_are_up_to_date(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench.py", "gallery", "--out", str(tmp_path)])
    runpy.run_path(str(SCRIPT))["main"]()
    for path in tmp_path.glob("*.svg"):
        now, stored = (
            re.findall("<!-- (.*?) -->", each.read_text()) for each in (path, chart_style.GALLERY / path.name)
        )
        assert now == stored, f"{path.name}: run scripts/bench.py gallery"

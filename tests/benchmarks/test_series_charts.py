"""Charts of series and of best matching units, from records of the suites on tiny sizes and from some made up here."""

import argparse
import itertools
import json
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import chart_style, series_charts
from benchmarks.harness import ROOT, Bench
from benchmarks.line_chart import Chart
from benchmarks.suites import distinct, sequences, sssp_table

pytest.importorskip("matplotlib")
SCRIPT = Path(__file__).parents[2] / "scripts" / "bench.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A file of results of each suite."""
    folder, files = tmp_path_factory.mktemp("results"), {}
    options = {
        distinct: {"sizes": [3000, 6000], "others": 2000},
        sequences: {"only": ["look-and-say", "spectra"], "steps": [6, 8], "masses": [8, 12], "elements": 3},
        sssp_table: {
            "scales": [6, 7],
            "sources": 2,
            "dtypes": ["float64"],
            "scipy_up_to": 0,
        },
    }
    for name, suite in ("distinct", distinct), ("sequences", sequences), ("sssp-table", sssp_table):
        bench = Bench(name, np, 1)
        suite.run(bench, argparse.Namespace(**options[suite]))
        files[name] = folder / f"{name}-here.json"
        bench.write(files[name], suite.CONVENTION)
    files["fw-table"] = ROOT / "benchmarks" / "results" / "fw-table-h200.json"
    files["som"] = ROOT / "benchmarks" / "results" / "som-h200.json"
    return files


LABELS = {
    "distinct": ["distinct", "numpy.unique", "published: CPU, 2016", "published: GPU, 2016"],
    "looksay": ["look-and-say", "serial loop, one core"],
    "looksay-fast": ["look-and-say"],
    "cyc": ["cyclic_spectrum", "published, memo, one core", "published, brute force, one core"],
    "cyc-nonlog": ["cyclic_spectrum", "published, memo, one core"],
    "fw-time": ["tilepath", "staged load (Lund & Smith)", "published: Katz & Kider", "published: CPU, one core"],
    "fw-rate": ["tilepath", "Harish & Narayanan", "published: staged load (Lund & Smith)"],
    "sssp-rates": [
        "neither (cache && restrict off)",
        "CPU: Dijkstra by heap, one core",
        "published: GTX Titan, both",
        "bars: standard deviation over the sources",
    ],
    "sssp-speedups": ["segment sort (restrict off)", "published: about 40"],
    "sssp-searches": ["sweeps in a race, neither optimization", "tilepath: shortest_distances"],
    "bmu": ["best_matching_units, euclidean", "serial loop, one core", "host of NVIDIA H200", "246"],
}


@pytest.mark.parametrize("name", LABELS)
def test_a_chart_has_its_lines(results, tmp_path, monkeypatch, capsys, name):
    out = tmp_path / f"{name}.svg"
    suite = series_charts.SUITE_OF.get(name, "som")
    monkeypatch.setattr(sys, "argv", ["bench.py", "chart", name, str(results[suite]), "--out", str(out)])
    runpy.run_path(str(SCRIPT))["main"]()
    assert capsys.readouterr().out.strip() == str(out)
    texts = [text.replace("&amp;", "&") for text in re.findall(r"<!-- +(.*?) -->", out.read_text())]
    assert [label for label in LABELS[name] if label not in texts] == []
    if name == "cyc-nonlog":
        assert not any("brute" in text for text in texts)


def test_speedups_have_their_deviation(results):
    records = json.loads(results["sssp-table"].read_text())["records"]
    measured = [points for points in series_charts._speedups(records).values() if points]
    assert len(measured) == 2  # a CPU has no read-only path
    for points in measured:
        assert [n for n, _, _ in points] == [64, 128]
        assert all(deviation >= 0 for _, _, deviation in points)


@pytest.mark.parametrize("bars", ["", "bars: deviation"])
def test_points_are_moved_sideways_only_for_bars(bars):
    from matplotlib.figure import Figure

    axes, ways = Figure().add_subplot(), "abcd"
    series = {way: [(2.0, 1.0, 0.1), (4.0, 2.0, 0.1)] for way in ways}
    chart = Chart("suite", "title", "x", "y", lambda _: series, apart=True, bars=bars)
    ends = []
    assert chart._draw_lines(axes, [("here", [])], ends)
    assert [(name, y) for name, _, y, _ in ends] == [(way, 2) for way in ways]
    places = {axes.containers[place].lines[0].get_xdata()[1] / 4 for place in range(len(ways))}
    assert len(places) == (len(ways) if bars else 1)
    assert all(abs(place - 1) < (0.1 if bars else 1e-9) for place in places)
    styles = {(line.get_linestyle(), line.get_marker()) for line in (each.lines[0] for each in axes.containers)}
    assert len(styles) == len(ways)
    assert chart._draw_lines(axes, [("here", []), ("there", [])], ends)
    faces = [each.lines[0].get_markerfacecolor() for each in axes.containers[len(ways) :]]
    assert [face == "none" for face in faces] == [False] * len(ways) + [True] * len(ways)


def test_names_stand_apart_near_the_ends_of_their_lines():
    ends = [0.1, 0.5, 0.5, 0.53, 0.9]
    heights = chart_style.spread(ends, 0.05)
    assert all(upper - lower > 0.05 - 1e-9 for lower, upper in itertools.pairwise(heights))
    assert heights[0] == 0.1
    assert heights[-1] == 0.9
    assert np.isclose(np.mean(heights[1:4]), np.mean(ends[1:4]))


def test_only_lines_of_tilepath_are_coloured():
    from matplotlib.figure import Figure

    ends = []
    chart = Chart("suite", "title", "x", "y", lambda _: {"tilepath": [(1, 1, 0)], "other": [(1, 2, 0)]})
    assert chart._draw_lines(Figure().add_subplot(), [("a", []), ("b", [])], ends)
    assert [(name, colour in chart_style.OURS) for name, *_, colour in ends] == [
        ("a: tilepath", True),
        ("a: other", False),
        ("b: tilepath", True),
        ("b: other", False),
    ]
    assert len({colour for *_, colour in ends}) == 2


def test_fits_follow_the_lines():
    record = json.loads((ROOT / "benchmarks" / "results" / "sequences-h200.json").read_text())["records"]
    fits = series_charts._fits(record)
    lines = series_charts._ways(record, "cyclic spectrum", "n")
    assert [name.partition(", fitted: ")[0] for name in fits] == ["published, grid", "published, streamed"]
    for name, points in fits.items():
        way, _, formula = name.partition(", fitted: ")
        assert f"| {way} | {formula} |" in (ROOT / "docs" / "benchmarks.md").read_text()
        for n, seconds, _ in lines[way]:
            _, nearest, _ = min(points, key=lambda point: abs(point[0] / n - 1))
            assert nearest == pytest.approx(seconds, rel=0.5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cyc", '{"device": "a", "records": []}', "nothing to draw for cyc; run scripts/bench.py sequences"),
        ("bmu", '{"device": "a", "records": []}', "nothing to draw for bmu; run scripts/bench.py som"),
        ("fw-time", "[]", "is not a file of results"),
    ],
)
def test_what_cannot_be_drawn_is_named(tmp_path, monkeypatch, name, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    monkeypatch.setattr(sys, "argv", ["bench.py", "chart", name, str(path), "--out", str(tmp_path / "x.svg")])
    with pytest.raises(SystemExit, match=message):
        runpy.run_path(str(SCRIPT))["main"]()

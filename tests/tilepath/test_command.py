"""The command `tilepath` as a user calls it, on a real file and on mistakes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilepath import cli
from tilepath.cli import main

ROME = "scripts/data/rome99.gr"
SQUARE = "p sp 4 5\na 1 2 5\na 2 3 5\na 3 4 5\na 4 1 5\na 1 3 7\n"


@pytest.fixture
def tilepath(tmp_path, monkeypatch, capfd):
    """Run the command in this process, which saves its imports, or in one of its own; what it prints, or the error."""

    def call(*arguments, code=0, process=False):
        if process:
            run = [sys.executable, "-c", "from tilepath.cli import main; main()", *map(str, arguments)]
            done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
            status, out, err = done.returncode, done.stdout, done.stderr
        else:
            monkeypatch.chdir(tmp_path)
            monkeypatch.setattr(sys, "argv", ["tilepath", *map(str, arguments)])
            capfd.readouterr()
            status = 0
            try:
                main()
            except SystemExit as stop:
                status = stop.code
            out, err = capfd.readouterr()
        assert status == code, err
        assert "Traceback" not in err
        return out if code == 0 else err

    (tmp_path / "square.gr").write_text(SQUARE)
    return call


def test_from_a_file_to_a_route(tilepath, tmp_path):
    assert "4 vertices, 5 arcs" in tilepath("import", "square.gr", "g.zarr", "--unit", "km", process=True)
    out = tilepath("apsp", "g.zarr", "d.zarr", "--device", "cpu", "--verify", process=True)
    assert "4 x 4 int32 distances" in out
    assert "verified" in out
    assert tilepath("path", "d.zarr", "1", "4").splitlines() == ["1 -> 4: 12 km over 2 arcs", "1 -> 3 -> 4"]
    assert "diameter" in tilepath("stats", "d.zarr", "--out", "measures.csv")
    assert len((tmp_path / "measures.csv").read_text().splitlines()) == 5
    (tmp_path / "pairs.csv").write_text("source,target\n1,4\n2,1\n")
    assert "2 paths" in tilepath("path", "d.zarr", "--pairs", "pairs.csv", "--out", "routes.csv")
    assert "2 3 4 1" in (tmp_path / "routes.csv").read_text()
    assert "verified" in tilepath("info", "d.zarr", "--verify")
    assert "verified" in tilepath("info", "g.zarr", "--verify")
    tilepath("picture", "d.zarr", "d.png")
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
    few = tilepath(
        "apsp", "g.zarr", "few.zarr", "--device", "cpu", "--source", "3", "--source", "1", "--dtype", "int16"
    )
    assert "2 x 4 int16" in few


def test_mistakes_are_one_line_with_the_cure(tilepath, tmp_path):
    assert "no such store" in tilepath("info", "nothing.zarr", code=1)
    tilepath("import", "square.gr", "g.zarr")
    assert "--overwrite" in tilepath("import", "square.gr", "g.zarr", code=1)
    assert "no vertex '9'" in tilepath("apsp", "g.zarr", "d.zarr", "--source", "9", code=1)
    (tmp_path / "cycle.gr").write_text("p sp 2 2\na 1 2 5\na 2 1 -6\n")
    tilepath("import", "cycle.gr", "c.zarr")
    assert "1 -> 2 -> 1 weighs -1" in tilepath("apsp", "c.zarr", "d.zarr", "--device", "cpu", code=1, process=True)
    assert not (tmp_path / "d.zarr").exists()
    assert "distances/1" in tilepath("path", "g.zarr", "1", "2", code=1)


def test_d_verify_and_info_for_people_and_for_scripts(tilepath, tmp_path):
    tilepath("import", "square.gr", "g.zarr")
    out = tilepath("apsp", "g.zarr", "d.zarr", "--device", "cpu", "--verify")
    assert out.endswith(", verified 4 of 4 rows\n")
    out = tilepath("sssp", "g.zarr", "p.zarr", "--device", "cpu", "--source", "1", "--verify")
    assert out.endswith(", verified 1 of 1 row\n")
    for store, rows, told in (
        ("d.zarr", "2", "verified 2 of 4 rows: 10 arcs tested, the longest path has 2 arcs"),
        ("d.zarr", "all", "verified 4 of 4 rows: 20 arcs tested, the longest path has 3 arcs"),
        ("p.zarr", "16", "verified 1 of 1 row: 5 arcs tested, the longest path has 2 arcs"),
    ):
        lines = tilepath("verify", store, "--rows", rows).splitlines()
        assert lines[-2].startswith("verified: every chunk of ")
        assert lines[-1] == told
    assert tilepath("verify", "g.zarr") == tilepath("info", "g.zarr", "--verify")
    assert "--rows is none; give a number" in tilepath("verify", "d.zarr", "--rows", "none", code=2)
    facts = json.loads(tilepath("info", "d.zarr", "--json", "--verify"))
    assert (facts["schema"], facts["complete"], facts["attributes"]["n"]) == ("distances/1", True, 4)
    assert facts["verified"]["unchecked"] == []
    (tmp_path / "g.zarr").rename(tmp_path / "moved.zarr")
    assert "no longer at" in tilepath("verify", "d.zarr", code=1)
    assert "verified 4 of 4 rows" in tilepath("verify", "d.zarr", "--graph", "moved.zarr")


def test_d_a_wrong_row_is_found_by_verify(tilepath, tmp_path, monkeypatch):
    tilepath("import", "square.gr", "g.zarr")
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.apsp.resident_rows.finish", lambda job, rows, vertices: rows.fill(0))
        tilepath("apsp", "g.zarr", "d.zarr", "--device", "cpu")
    tilepath("info", "d.zarr", "--verify")  # it is what was written
    assert "the distance from vertex" in tilepath("verify", "d.zarr", code=1)


def test_the_snippet_of_the_readme_runs_twice(tmp_path):
    root = Path(__file__).parents[2]
    (snippet,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    (tmp_path / "scripts").symlink_to(root / "scripts")
    (tmp_path / "snippet.py").write_text(snippet)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "snippet.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("(0, ")


def choices(*names):
    """What an option of a command offers: `names` are those of groups and commands, the last that of the parameter."""
    *commands, parameter = names
    command = cli.tilepath
    for name in commands:
        command = command.commands[name]
    (found,) = (each for each in command.params if each.name == parameter)
    return tuple(found.type.choices)


def test_choices_are_those_of_the_library():
    """They are written out in the command line, so that --help need not import what knows them."""
    from gpuops.numbers import DISTANCE_DTYPES
    from gpuops.som import METRICS
    from gpuops.som.grid import NEIGHBOURHOODS
    from pipelines import generators
    from pipelines.apsp import solve
    from pipelines.euler import plan
    from pipelines.formats import graphs, samples
    from pipelines.som import clusters, pictures, schedule, train
    from pipelines.stores.paths import PATH_DTYPES
    from pipelines.stores.scaling import SCALINGS

    assert choices("apsp", "method") == ("auto", *(method.name for method in solve.METHODS))
    assert choices("apsp", "dtype") == tuple(map(str, DISTANCE_DTYPES))
    assert choices("sssp", "dtype") == tuple(map(str, PATH_DTYPES))
    assert choices("euler", "method") == plan.METHODS
    assert set(choices("generate", "kind")) == set(generators.KINDS)
    assert set(choices("import", "file_format")) == set(graphs.FORMATS)
    assert set(choices("som", "import", "format")) == set(samples.FORMATS)
    assert choices("som", "import", "scaling") == tuple(SCALINGS)
    assert choices("som", "train", "metric") == tuple(METRICS)
    assert choices("som", "cluster", "method") == clusters.METHODS
    assert choices("som", "cluster", "linkage") == clusters.LINKAGES
    assert choices("som", "train", "kernel") == NEIGHBOURHOODS
    assert choices("som", "train", "schedule") == schedule.SCHEDULES
    assert choices("som", "train", "initial") == train.STARTS
    assert choices("som", "plot", "kind") == pictures.KINDS

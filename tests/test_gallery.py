"""The scripts of the gallery run, and the commands and the code of some pages do what these say."""

import importlib.util
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

import pipelines
from tilepath import cli

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"


@pytest.mark.parametrize("name", ["contigs.py", "maps.py", "pin_lock.py"])
def test_a_script_that_prints(name, tmp_path, monkeypatch, capsys):
    digits, cloud = load_digits(), pipelines.PointCloud  # fewer of each do for a test
    few = Bunch(data=digits.data[:200], target=digits.target[:200])
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: few)
    monkeypatch.setattr("pipelines.PointCloud", lambda **given: cloud(**given | {"n": 200}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(GALLERY / name), run_name="__main__")
    assert capsys.readouterr().out


def test_the_pictures_of_graphs_are_drawn(tmp_path):
    spec = importlib.util.spec_from_file_location("euler_pictures", GALLERY / "euler_pictures.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "graphs")
    drawn = sorted(path.name for path in (tmp_path / "graphs").iterdir())
    assert drawn == sorted(path.name for path in (GALLERY / "graphs").iterdir())
    shown = re.findall(r"\(gallery/graphs/(.*?)\)", (ROOT / "docs" / "graphs.md").read_text())
    assert sorted(shown) == drawn


@pytest.mark.parametrize("name", ["graphs.md", "maps.md"])
def test_the_commands_and_the_code_of_a_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", (ROOT / "docs" / name).read_text(), re.S | re.M)
    assert {language for language, _ in blocks} == {"sh", "python"}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, name, "exec"), {"__name__": "__main__"})
            continue
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words[0] != "tilepath":
                subprocess.run(line, shell=True, check=True)
                continue
            done = CliRunner().invoke(cli.tilepath, words[1:])
            assert done.exit_code == 0, (line, done.output, done.exception)

"""The scripts of the gallery run, and the commands and the code of some pages do what these say."""

import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path

import click
import matplotlib.pyplot as plt
import numpy as np
import pages
import pytest
from commands import run_command
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
    texts = [(ROOT / "docs" / page).read_text() for page in ("graph-pictures.md", "tutorials/euler.md")]
    assert {*re.findall(r"gallery/graphs/(.*?)\)", "".join(texts))} == {*drawn}


OWN = ["flows", "graph-measures", "graph-pictures", "graphs", "map-clustering", "map-python", "maps"]
OWN += ["euler-circuits", "sequences"]


@pytest.mark.parametrize("name", [f"{name}.md" for name in OWN])
def test_the_commands_and_the_code_of_a_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pages.run(ROOT / "docs" / name)


LESSONS = [path.relative_to(ROOT) for name in ("coming-from", "tutorials") for path in ROOT.glob(f"docs/{name}/*.md")]
LESSONS += [Path("docs/index.md"), Path("docs/reference/stores.md"), Path("docs/roads.md"), Path("docs/routes.md")]
LONG = [
    pytest.param(Path(f"docs/{name}.md"), marks=pytest.mark.slow)
    for name in ("closures", "hierarchy", "tables", "weights")
]


def enter_folder(page, root, monkeypatch):
    """Go to the folder of the checkout that the page tells the reader to make or to use; else to its root."""
    named = re.search(r"mkdir -p\s(\S+) &&\scd|the\sfolder\s`(\S+)`\sof", page.read_text())
    folder = root / (named[1] or named[2] if named else ".")
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("page", [*sorted(LESSONS), *LONG], ids=str)
def test_a_lesson_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    for name in ("docs", "pipelines", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    enter_folder(ROOT / page, tmp_path, monkeypatch)
    shown = re.findall(r"\(\.\./gallery/tutorials/([\w-]+\.(?:png|svg))\)", (ROOT / page).read_text())
    pages.run(ROOT / page)
    assert [name for name in shown if not Path(name).exists()] == []  # its own code draws each picture that it shows
    plt.close("all")


@pytest.mark.slow
def test_the_commands_of_the_gallery_draw_its_pictures(tmp_path, monkeypatch):
    for name in ("docs", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    page = GALLERY / "index.md"
    enter_folder(page, tmp_path, monkeypatch)
    pages.run(page)
    shown = {Path(path).name for path in re.findall(r"!\[.*?\]\((.*?)\)", page.read_text().split("## Charts")[0])}
    drawn = {path.name for path in Path().rglob("*.*g") if path.suffix in (".png", ".svg")}
    assert drawn == shown | {path.name for path in (GALLERY / "graphs").glob("[1-5]-*.svg")}
    plt.close("all")


@pytest.mark.slow
def test_the_commands_of_the_documents_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    Path("edges.txt").write_text("0 1\n1 2\n2 0\n")
    Path("rays.adj").write_text("a -> b, c, d, e\n")
    text = "".join(rng.choice(list("ACGT"), 200))
    Path("reads.fasta").write_text("".join(f">{i}\n{text[i : i + 50]}\n" for i in range(0, 151, 5)))
    np.save("samples.npy", rng.random((200, 3)))
    before = ["generate road roads.zarr --rows 6 --columns 6", "import rays.adj rays.zarr"]
    before.append("som import samples.npy samples.zarr")
    rows = re.findall(r"^\|.*\|$", (ROOT / "docs" / "documents.md").read_text(), re.M)
    commands = re.findall("`tilepath ([a-z].*?)`", "\n".join(rows))
    assert len(commands) > 20
    for line in before + commands:
        words = shlex.split(line.replace("--device gpu", "--device auto"))
        command = cli.tilepath
        for word in words:
            if not isinstance(command, click.Group):
                break
            command = command.commands[word]
        again = ["--overwrite"] if any("--overwrite" in option.opts for option in command.params) else []
        run_command(*words, *again)

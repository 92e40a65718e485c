"""Errors about missing packages give a command that installs them, in a checkout and from a wheel."""

import json
import re
from pathlib import Path

import pytest

from gpuops import extras

ROOT = Path(__file__).parents[2]
WHEEL = "file:///home/you/tilepath-0.1.0-py3-none-any.whl"
GIT = {"url": "https://example.org/tilepath", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": WHEEL, "archive_info": {}}, f"pip install 'tilepath[geo,osm] @ {WHEEL}'"),
        (GIT, "pip install 'tilepath[geo,osm] @ git+https://example.org/tilepath@c0ffee'"),
        (None, "pip install 'tilepath-0.1.0-py3-none-any.whl[geo,osm]'"),
    ],
)
def test_extras_come_from_where_tilepath_came_from(tmp_path, monkeypatch, origin, command):
    installed = tmp_path / "tilepath-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.4\nName: tilepath\nVersion: 0.1.0\n")
    if origin:
        (installed / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extras, "ROOT", tmp_path)
    assert extras.install("geo", "osm") == command


def test_a_checkout_is_named_by_its_path(tmp_path, monkeypatch):
    checkout = tmp_path / "it's here"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(extras, "ROOT", checkout)
    assert extras.install("geo").startswith("pip install -e '")
    assert extras.install("geo").endswith("here[geo]'")


def test_no_message_names_an_index():
    packages = "tilepath", "pipelines", "clusters", "gpuops", "benchmarks", "scripts"
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    assert len(files) > 300
    wrong = {path.relative_to(ROOT).as_posix() for path in files if re.search(r"tilepath\[[a-z]", path.read_text())}
    assert wrong == {"gpuops/extras.py"}  # whose docstring says why

"""The documents name files that exist: whoever moves a module finds out here."""

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"]
DOCUMENTS += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
FOLDERS = r"(?:tilepath|pipelines|gpuops|clusters|benchmarks|scripts|tests|docs)"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_and_modules_exist(name):
    text = (ROOT / name).read_text()
    paths = re.findall(rf"(?<![\w/.]){FOLDERS}/[\w./-]*\w/?", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_names_in_python_exist(name):
    found = re.findall(
        r"(?<![\w/.])(?:tilepath|pipelines|gpuops|clusters)(?:\.[A-Za-z_]\w*)+(?![\w*])", (ROOT / name).read_text()
    )
    for dotted in {*found} - {"tilepath.sklearn", "tilepath.sklearn.SelfOrganizingMap"}:  # which need scikit-learn
        if not dotted.startswith("tilepath.sklearn_classifier"):
            pkgutil.resolve_name(dotted)

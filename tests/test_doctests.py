"""The examples of docstrings say what happens."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import gpuops
import pipelines
import tilepath
from tilepath import csgraph

# Their examples use the names that docs/reference/python/index.md defines.
OF_USERS = {*pipelines._MODULES.values(), "clusters.batch", "clusters.local"}
ROOT = Path(__file__).parents[1]
PACKAGES = "clusters", "gpuops", "pipelines", "tilepath"


# The names of all other examples.
ON_ARRAYS = {"np": np, "gpuops": gpuops, "csgraph": csgraph, "tilepath": tilepath}


def modules_with_examples():
    """By text, so that no module is imported for nothing: some need CuPy."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in path.read_text():
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", sorted({*modules_with_examples()} - OF_USERS))
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs=ON_ARRAYS)
    assert found.attempted
    assert not found.failed, "its examples are printed above"


@pytest.fixture
def names(tmp_path, monkeypatch):
    """The names that examples of public functions use, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/reference/python/index.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    found = {}
    exec(compile(block, "index.md", "exec"), found)
    yield found
    found["client"].close()


def test_examples_of_public_functions(names):
    tried = 0
    for name in sorted(OF_USERS.intersection(modules_with_examples())):
        found = doctest.testmod(importlib.import_module(name), extraglobs=names)
        assert not found.failed, f"the examples of {name} are printed above"
        tried += found.attempted
    assert tried > 100


def test_every_public_function_has_an_example():
    functions = {name: getattr(tilepath, name) for name in tilepath.__all__}
    functions = {name: value for name, value in functions.items() if inspect.isroutine(value)}
    of_arrays = {f"gpuops.{name}": getattr(gpuops, name) for name in gpuops.__all__}
    functions |= {name: value for name, value in of_arrays.items() if inspect.isroutine(value)}
    for name in "shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson":
        functions[f"csgraph.{name}"] = getattr(csgraph, name)
    for name in "SelfOrganizingMap", "SelfOrganizingMapClassifier":
        functions[name] = getattr(tilepath, name)
    assert len(functions) > 110
    assert [name for name, value in functions.items() if ">>> " not in inspect.getdoc(value)] == []


def test_docstrings_of_public_names_send_readers_to_public_names():
    places = {}
    for name in tilepath.__all__:
        value = getattr(tilepath, name)
        places[name] = value
        if inspect.isclass(value):
            places |= {f"{name}.{member}": found for member, found in vars(value).items() if member[0] != "_"}
    operations = "|".join(gpuops.__all__)
    private = re.compile(
        rf"`gpuops\.(?!(?:{operations})`)|`pipelines\.|^ *pipelines\.|^ *gpuops\.errors|`[A-Z]{{4,}}`|\+SKIP", re.M
    )
    found = {name: private.findall(inspect.getdoc(value) or "") for name, value in places.items()}
    assert len(found) > 200
    assert {name: what for name, what in found.items() if what} == {}

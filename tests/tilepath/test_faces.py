"""What `import tilepath` and `import pipelines` offer, and what they do not load."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clusters
import gpuops
import pipelines
import tilepath
import tilepath.cli

HEAVY = {"numpy", "numba", "dask", "distributed", "zarr", "pyarrow", "cupy"}
FACES = {"gpuops": gpuops, "pipelines": pipelines, "tilepath": tilepath}


def imports_for_checkers(face):
    """The names that a type checker finds, each with its module; `*` is followed."""
    for block in ast.parse(Path(face.__file__).read_text()).body:
        if not (isinstance(block, ast.If) and getattr(block.test, "id", None) == "TYPE_CHECKING"):
            continue
        for statement in block.body:
            for alias in statement.names:
                if alias.name == "*":
                    yield from imports_for_checkers(FACES[statement.module])
                else:
                    assert alias.asname == alias.name  # else it is not exported
                    yield alias.name, statement.module


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_every_name_is_the_object_of_its_module_and_known_to_type_checkers(face):
    expected = dict(imports_for_checkers(face))
    # What needs scikit-learn is not imported by `*`.
    assert sorted(name for name in expected if "sklearn" not in expected[name]) == face.__all__
    for name, module in expected.items():
        found = getattr(face, name)
        of_module = getattr(importlib.import_module(module), name)
        assert found is of_module or found.__wrapped__ is of_module
    assert set(expected) <= set(dir(face))
    with pytest.raises(AttributeError, match=f"'{face.__name__}' has no attribute 'unknown'"):
        face.unknown  # noqa: B018


def test_users_find_what_they_call():
    from tilepath import ClusterError, StoreError, VerificationError, all_pairs_shortest_paths, join, start

    assert (start, join, ClusterError) == (clusters.start, clusters.join, clusters.ClusterError)
    assert all_pairs_shortest_paths is pipelines.all_pairs_shortest_paths
    assert issubclass(StoreError, ValueError)
    for place in "gpuops.euler.certificate", "gpuops.certificates.paths", "gpuops.certificates.tight_arcs":
        assert importlib.import_module(place).VerificationError is VerificationError  # one class, to catch all


@pytest.mark.parametrize(
    ("arguments", "call", "says"),
    [
        ([], "import tilepath", ""),
        ([], "import tilepath; dir(tilepath)", ""),
        ([], "import gpuops; dir(gpuops)", ""),
        (["--help"], "from tilepath.cli import main; main()", "Usage: -c [OPTIONS]"),
        (["apsp", "--help"], "from tilepath.cli import main; main()", "Usage: -c apsp [OPTIONS]"),
    ],
)
def test_nothing_heavy_is_loaded(arguments, call, says):
    code = f"import atexit, sys; atexit.register(lambda: print('loaded', *({HEAVY} & set(sys.modules)))); {call}"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(says)
    assert done.stdout.splitlines()[-1] == "loaded"


@pytest.mark.parametrize("face", [gpuops, pipelines, tilepath], ids=lambda face: face.__name__)
def test_no_part_of_a_package_has_the_name_of_something_that_the_package_offers(face):
    """An import of that part would put the module in place of the function."""
    folder = Path(face.__file__).parent
    parts = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/*.py")}
    assert len(parts) > 2
    assert not parts & set(face.__all__)


def test_reading_a_store_compiles_nothing(tmp_path):
    """Numba takes a quarter of a second to import: commands that only read do without."""
    pipelines.write_graph(tmp_path / "g.zarr", np.array([0, 1, 1]), np.array([1]), np.array([5]))
    path = str(tmp_path / "g.zarr")
    code = f"import sys, tilepath; tilepath.open_graph({path!r}); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_the_module_runs_as_a_command():
    run = [sys.executable, "-m", "tilepath", "--help"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: python -m tilepath")


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_are_refused_in_one_line(monkeypatch, capsys, system):
    monkeypatch.setattr(sys, "platform", system)
    for face, name in (tilepath, "open_graph"), (pipelines, "open_graph"), (gpuops, "minplus_update"):
        vars(face).pop(name, None)  # as at the first use
        with pytest.raises(ImportError, match=f"tilepath needs Linux, and this is {system}"):
            getattr(face, name)
    monkeypatch.setattr(sys, "argv", ["tilepath", "info", "x.zarr"])
    with pytest.raises(SystemExit) as end:
        tilepath.cli.main()
    assert end.value.code == 1
    assert capsys.readouterr().err.splitlines() == [
        f"Error: tilepath needs Linux, and this is {system}; use it in a container or WSL 2"
    ]

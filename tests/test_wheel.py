"""What is installed: all that the packages need at run time."""

import configparser
import importlib
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
AT_RUN_TIME = {".py", ".cu", ".cuh", ".yaml", ".toml", ".typed", ".js", ".css"}


def needed():
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if path.suffix in AT_RUN_TIME}


def test_linters_know_the_packages_of_the_wheel():
    assert sorted(PACKAGES) == sorted(PROJECT["tool"]["mypy"]["packages"])
    assert sorted(PACKAGES) == sorted(PROJECT["tool"]["importlinter"]["root_packages"])


def test_the_wheel_has_kernels_settings_and_types():
    wheel = pytest.importorskip("hatchling.builders.wheel")
    files = {file.distribution_path for file in wheel.WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {file for file in files if Path(file).suffix in AT_RUN_TIME} == needed()
    assert {"gpuops/minplus/product.cu", "gpuops/device/distances.cuh", "clusters/dask.yaml"} <= files
    assert {f"pipelines/pictures/leaflet/{name}" for name in ("leaflet.js", "leaflet.css", "LICENSE")} <= files
    assert {f"{package}/py.typed" for package in PACKAGES} <= files


def test_the_command_of_the_wheel_can_be_called():
    module, _, name = PROJECT["project"]["scripts"]["tilepath"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built and unpacked."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = builder.build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_wheel_tells_networkx_of_the_backend(wheel):
    (found,) = wheel.glob("tilepath-*.dist-info/entry_points.txt")
    entry_points = configparser.ConfigParser(delimiters="=")
    entry_points.read(found)
    assert entry_points["networkx.backends"]["tilepath"] == "tilepath.networkx.backend"
    assert entry_points["networkx.backend_info"]["tilepath"] == "tilepath.networkx.info:get_info"
    for package in PACKAGES:
        assert (wheel / package / "py.typed").exists()


def test_what_networkx_asks_at_import_needs_the_standard_library_only(wheel):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tilepath.networkx.info import get_info; print(get_info())"
    )
    # -S: without site-packages, -I: without the folder and variables of this run
    run = [sys.executable, "-I", "-S", "-c", script, str(wheel)]
    assert "floyd_warshall" in subprocess.run(run, capture_output=True, text=True, check=True).stdout

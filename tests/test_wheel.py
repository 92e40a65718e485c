"""What is installed: all that the packages need at run time."""

import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
AT_RUN_TIME = {".py", ".cu", ".cuh", ".yaml", ".typed"}


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
    assert {f"{package}/py.typed" for package in PACKAGES} <= files


def test_the_command_of_the_wheel_can_be_called():
    module, _, name = PROJECT["project"]["scripts"]["tilepath"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))

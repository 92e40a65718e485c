#!/usr/bin/env python
"""Build the wheel of compiled kernels for the installed version of CUDA's compiler; no GPU is needed.

    python scripts/kernels_wheel.py dist [--architecture sm_90 sm_100 ...]

The wheel holds binaries alone. `gpuops/_binaries.py` finds a binary by the text of its kernel, so that a wheel of other
kernels than those installed is never used.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from gpuops._binaries import Text, compiled, nvrtc_version, package_name
from gpuops._cuda import Program
from gpuops.warming import all_programs

# Each runs on all later GPUs of its major version. Programs for one architecture alone are added for theirs.
ARCHITECTURES = ["sm_80", "sm_90", "sm_100", "sm_120"]

PROJECT = """
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "Compiled kernels of tilepath {version} for CUDA {cuda}"
license = "Apache-2.0"
requires-python = ">=3.11"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
artifacts = ["*.cubin"]
"""


def main() -> None:
    """Compile all programs for all architectures, and pack the binaries into a wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the wheel is written")
    parser.add_argument("--architecture", nargs="+", help=f"by default {', '.join(ARCHITECTURES)}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        write_project(Path(work), arguments.architecture or ARCHITECTURES)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--wheel-dir", work, work], check=True)
        (wheel,) = Path(work).glob("*.whl")
        compress(wheel, arguments.folder / wheel.name)


def write_project(folder: Path, architectures: list[str], programs: list[Program] | None = None) -> Path:
    """Write the files of the wheel's project, and return the folder of its package."""
    cuda, release = nvrtc_version(), version("tilepath")
    package = folder / package_name(cuda[0])
    package.mkdir()
    (package / "__init__.py").write_text(f'"""Compiled kernels of tilepath {release}."""\n')
    programs = all_programs() if programs is None else programs
    # Programs of the same text share a binary.
    binaries = {(program.text(), target) for program in programs for target in targets(program, architectures)}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for done, _ in enumerate(threads.map(lambda binary: write_binary(package, *binary), binaries), 1):
            print(f"\r{done} of {len(binaries)} binaries", end="", file=sys.stderr)
    print(file=sys.stderr)
    texts = {program.text().key: " ".join((program.file, *program.macros)) for program in programs}
    index = {"tilepath": release, "compiler": f"NVRTC {cuda[0]}.{cuda[1]}", "programs": texts}
    (package / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    name = package.name.replace("_", "-")
    text = PROJECT.format(name=name, version=release, cuda=cuda[0], package=package.name)
    (folder / "pyproject.toml").write_text(text)
    return package


def targets(program: Program, architectures: list[str]) -> list[str]:
    """Return the architectures that a program is compiled for."""
    return [program.architecture] if program.architecture else architectures


def write_binary(package: Path, text: Text, target: str) -> None:
    """Compile a text for a target, into the file where `gpuops._binaries.shipped` looks for it."""
    (package / target).mkdir(exist_ok=True)
    (package / target / f"{text.key}.cubin").write_bytes(compiled(text, target)[0])


def compress(wheel: Path, smaller: Path) -> None:
    """Write a wheel again with zlib's highest level: hatchling uses the default level, which takes more bytes."""
    smaller.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(smaller, "w") as archive:
        for entry in given.infolist():
            archive.writestr(entry, given.read(entry), compresslevel=9)


if __name__ == "__main__":
    main()

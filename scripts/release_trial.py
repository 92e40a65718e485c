#!/usr/bin/env python
"""Try the built wheel and the source archive in empty environments; needs only Python and the network.

    python scripts/release_trial.py dist                       Python 3.11 to 3.14, as far as they are installed
    python scripts/release_trial.py dist --python 3.12

Each version of Python gets two environments: one with the oldest dependencies that pyproject.toml allows and that have
wheels, one with the newest. In each, the commands and the Python of README.md have to give the same distances. The
oldest Python gets a third one, with the oldest version of every extra that needs no GPU; tests of each extra run there.
The source archive is installed once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}

SAMPLES = "\n".join(["a,b,kind", *(f"{i % 7},{i % 5},{'even' if i % 2 == 0 else 'odd'}" for i in range(60))])
COMMANDS = """
--version
apsp rome.zarr by-rows.zarr --device cpu --workers 1 --method floyd-warshall --verify
sssp rome.zarr paths.zarr --device cpu --workers 1 --source 1 --source 17
path rome-distances.zarr 1 3353
som import samples.csv samples.zarr --label kind --scaling zscore
som train samples.zarr map.zarr --device cpu --workers 1 --rows 4 --columns 5 --epochs 2
info map.zarr
"""

# Of each extra, tests that need it.
TESTS_OF_EXTRAS = """
tests/gpuops/hierarchy/test_structure.py tests/pipelines/assembly/test_contigs.py
tests/pipelines/formats/test_cytometry.py tests/pipelines/formats/test_layers.py tests/pipelines/formats/test_osm.py
tests/pipelines/od_tables/test_frames.py tests/pipelines/pictures/test_web_map.py
tests/pipelines/stores/test_displays.py tests/tilepath/test_csgraph.py tests/tilepath/test_networkx.py
tests/tilepath/test_sklearn_stores.py
"""


def main() -> None:
    """Try every version of Python that is installed, and fail if any trial fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder with the wheel and the source archive")
    parser.add_argument("--python", action="append", help=f"a version; by default {', '.join(PYTHONS)}")
    arguments = parser.parse_args()
    (wheel,), (archive,) = (list(arguments.folder.glob(f"tilepath-*{end}")) for end in (".whl", ".tar.gz"))
    failed = []
    for version in arguments.python or PYTHONS:
        if (python := interpreter(version)) is None:
            if arguments.python:
                parser.error(f"Python {version} is not installed")
            print(f"Python {version}: not installed, not tried", flush=True)
            continue
        for name, resolution in RESOLUTIONS.items():
            failed += tried(f"Python {version}, {name} dependencies", python, wheel, resolution)
        if version == PYTHONS[0]:
            failed += tried(f"Python {version}, oldest extras", python, wheel, "lowest-direct", extra="test")
    failed += tried("source archive", sys.executable, archive, "highest")
    if failed:
        sys.exit(f"{len(failed)} trials failed: {'; '.join(failed)}")


def interpreter(version: str) -> str | None:
    """Return the path of an interpreter, also of one that only pyenv knows; None if there is none."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path) for path in sorted(folder.glob(f"{version}.*/bin/python"))] + [shutil.which(f"python{version}")]
    for python in filter(None, found):
        said = subprocess.run([python, "--version"], capture_output=True, text=True)
        if said.returncode == 0 and said.stdout.startswith(f"Python {version}."):
            return python
    return None


def tried(name: str, python: str, built: Path, resolution: str, extra: str = "") -> list[str]:
    """Install what was built into an empty environment and use it; return the name if that fails.

    With the extra "test", tests are run.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            versions = install(Path(folder, "environment"), python, built, resolution, extra)
            if extra:
                test(Path(folder))
            else:
                use(Path(folder))
        except subprocess.SubprocessError as error:  # also a program that takes too long
            print(f"{name}: FAILED: {error}", flush=True)
            for printed in (getattr(error, "stdout", None), getattr(error, "stderr", None)):
                print(printed.decode() if isinstance(printed, bytes) else printed or "", flush=True)
            return [name]
    print(f"{name}: works, {time.monotonic() - start:.0f} s ({versions})", flush=True)
    return []


def install(environment: Path, python: str, built: Path, resolution: str, extra: str) -> str:
    """Install what was built with its dependencies; return the versions of those that matter most."""
    run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", python, environment)
    only_wheels = [f"--only-binary={name}" for name in ("numpy", "numba", "pyarrow", "numcodecs", "google-crc32c")]
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--resolution", resolution, *only_wheels]
    # "lowest-direct" concerns what is named here, so the dependencies are named, too.
    extras = ["--extra", extra] if extra else []
    run(*command, "--python", environment / "bin/python", "--requirements", ROOT / "pyproject.toml", *extras, built)
    listed = run(
        sys.executable, "-m", "uv", "pip", "list", "--python", environment / "bin/python", "--format", "freeze"
    )
    wanted = ("dask", "numba", "numpy", "pyarrow", "zarr")
    return ", ".join(line.replace("==", " ") for line in listed.splitlines() if line.split("==")[0] in wanted)


def use(folder: Path) -> None:
    """Run README's Python and some commands, from a folder that has no source of tilepath."""
    (folder / "scripts" / "data").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "data" / "rome99.gr", folder / "scripts" / "data")
    shutil.copy(ROOT / "scripts" / "release_uses.py", folder)
    (folder / "samples.csv").write_text(SAMPLES + "\n")
    (code,) = re.findall(r"## From Python.*?```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    (folder / "readme.py").write_text(code)
    python = folder / "environment" / "bin" / "python"
    run(python, "-I", "readme.py", cwd=folder)
    for line in COMMANDS.strip().splitlines():
        run(folder / "environment" / "bin" / "tilepath", *line.split(), cwd=folder)
    run(python, "-I", "release_uses.py", cwd=folder)


def test(folder: Path) -> None:
    """Run the tests of all extras, from the checkout. Old packages warn beside new ones that they depend on."""
    python = folder / "environment" / "bin" / "python"
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning"]
    run(python, "-m", "pytest", *options, *TESTS_OF_EXTRAS.split(), cwd=ROOT, limit=3600)


def run(*command: object, cwd: Path | None = None, limit: float = 900) -> str:
    """Run a program without the variables of this environment's Python; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=True, timeout=limit)
    return done.stdout


if __name__ == "__main__":
    main()

"""The command that sanitizes every kernel: what it runs, on the host shim, and how it reads compute-sanitizer."""

import os
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from gpuops._cuda import GPUOPS

SCRIPTS = Path(__file__).parents[2] / "scripts"
SANITIZE = runpy.run_path(str(SCRIPTS / "sanitize.py"))
TOUR = runpy.run_path(str(SCRIPTS / "kernel_tour.py"))
OPERATIONS = TOUR["OPERATIONS"]
MULTIPROCESSORS = {"middle-closures": 4}  # that an operation needs, if more than two

REPORTS = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at decide+0x3f0
=========     by thread (32,0,0) in block (0,0,0)
=========
{again}a line of the program
========= Warning: Race reported between Write access at relax+0x10
=========     and Read access at relax+0x20 [4 hazards]
=========
========= ERROR SUMMARY: 3 errors
"""


def kernels_launched(host_shim, name):
    launched = set()
    host_shim.start(0, MULTIPROCESSORS.get(name, 2))
    with TOUR["record"](launched):
        OPERATIONS[name].run(host_shim)
    assert {file for file, _ in launched} == set(OPERATIONS[name].files), name
    return launched


def test_every_kernel_file_has_an_operation():
    named = {file for operation in OPERATIONS.values() for file in operation.files}
    assert named == {str(path.relative_to(GPUOPS)) for path in GPUOPS.rglob("*.cu")}


def test_an_operation_launches_the_kernels_of_its_files(host_shim):
    never = SANITIZE["never_launched"](kernels_launched(host_shim, "totals-of-rows"))
    assert "rmat/rmat.cu: edges" in never
    assert not any("totals.cu" in kernel for kernel in never)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_kernel_is_launched(host_shim):
    launched = set().union(*(kernels_launched(host_shim, name) for name in OPERATIONS))
    assert SANITIZE["never_launched"](launched) == []


def said(text, status, monkeypatch, exceptions=()):
    """What is made of a run that prints `text`."""
    run = SANITIZE["run"]
    monkeypatch.setitem(run.__globals__, "EXCEPTIONS", dict.fromkeys(exceptions, "a reason"))
    program = f"import sys; print({text!r}); sys.exit({status})"
    return run([sys.executable, "-c", program], "initcheck", "trees")


def test_reports_are_counted_unless_excepted(monkeypatch):
    read = "Uninitialized __global__ memory read of size 4 bytes at decide+0x3f0"
    text = REPORTS.format(again="\n".join(REPORTS.splitlines()[1:4]) + "\n")
    found = said(text, 77, monkeypatch)
    assert found.reports == {read: 2, "Warning: Race reported between Write access at relax+0x10": 1}
    assert (found.verdict, found.excepted, found.failure) == ("3 REPORTED", 0, "")
    excepted = [("initcheck", "at decide"), ("initcheck", "Race"), ("memcheck", ".")]
    assert said(text, 77, monkeypatch, excepted)[3:] == ({}, 3, "")
    assert said(text, 77, monkeypatch, excepted[2:]).verdict == "3 REPORTED"
    assert said("========= ERROR SUMMARY: 0 errors", 0, monkeypatch).verdict == "clean"


def test_a_run_that_fails_is_not_clean(monkeypatch):
    assert "exit status 1\nTraceback" in said("Traceback", 1, monkeypatch).failure
    assert "an unknown format" in said("an error in new words", 77, monkeypatch).failure
    monkeypatch.setitem(SANITIZE["run"].__globals__, "TIMEOUT", 0.0)
    assert said("", 0, monkeypatch).failure.startswith("not done after 0 s")


def test_a_checkout_needs_no_installation():
    environment = os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")}
    command = [sys.executable, "-S", SCRIPTS / "sanitize.py", "--list"]  # -S: no links to projects that are installed
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    tool = [sys.executable, "-c", "import os, sys; sys.exit(os.environ['PYTHONPATH'])"]
    assert str(SCRIPTS.parent) in SANITIZE["run"](tool, "memcheck", "trees").failure


def test_races_inside_cupy_are_excepted_and_ours_are_not():
    says = "========= {} Race reported between Read access at {}+0x460"
    text = "\n".join([says.format("Warning:", "cupy_nonzero_kernel_incomplete_scan"), says.format("Error:", "arrive")])
    found = SANITIZE["run"]([sys.executable, "-c", f"print({text!r}); raise SystemExit(77)"], "racecheck", "trees")
    assert ([*found.reports], found.excepted) == (["Error: Race reported between Read access at arrive+0x460"], 1)


def test_without_the_tool_or_a_gpu_the_cure_is_named(monkeypatch, tmp_path):
    for name in "PATH", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX":
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr("glob.glob", lambda pattern: [])
    with pytest.raises(SystemExit, match="install the CUDA toolkit"):
        SANITIZE["find_sanitizer"]()
    tool = tmp_path / "bin" / "compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh")
    tool.chmod(0o755)
    assert SANITIZE["find_sanitizer"]() == str(tool)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit, match="there is no GPU that CuPy can use"):
        SANITIZE["require_gpu"]()

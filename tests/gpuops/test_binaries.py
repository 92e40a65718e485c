"""Binaries of kernels: which one a program gets, from a package, the cache, or the compiler."""

import dataclasses
import json
import runpy
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gpuops import _binaries
from gpuops.devices import array_library
from gpuops.errors import NoGpuError
from gpuops.warming import all_programs, is_cold

pytest.importorskip("cuda.bindings.nvrtc")

CUDA = _binaries.nvrtc_version()[0]
PROGRAM = next(program for program in all_programs() if program.file == "csr/csr.cu")


@pytest.fixture(scope="module")
def script():
    """The functions of the script that builds a wheel."""
    return runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "kernels_wheel.py"))


@pytest.fixture(scope="module")
def project(script, tmp_path_factory):
    """The files of a wheel with one program, for two architectures."""
    folder = tmp_path_factory.mktemp("wheel")
    script["write_project"](folder, ["sm_80", "sm_90"], [PROGRAM])
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    _binaries.package.cache_clear()
    yield tmp_path / "cache"
    _binaries.package.cache_clear()


@pytest.fixture
def installed(project, monkeypatch):
    monkeypatch.syspath_prepend(str(project))
    return project / _binaries.package_name(CUDA)


def without_compiler(monkeypatch):
    def compiled(*arguments):
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(_binaries, "compiled", compiled)


@pytest.mark.parametrize(
    ("capability", "folder"),
    [("80", "sm_80"), ("86", "sm_80"), ("89", "sm_80"), ("90", "sm_90"), ("75", None), ("100", None), ("120", None)],
)
def test_a_gpu_gets_the_binary_of_its_major_version(installed, monkeypatch, capability, folder):
    text = PROGRAM.text()
    if folder is None:
        assert _binaries.shipped(text, capability) is None
        assert _binaries.origin(text, capability) == "compiled"
    else:
        without_compiler(monkeypatch)
        assert _binaries.binary(text, capability) == installed / folder / f"{text.key}.cubin"
        assert _binaries.origin(text, capability) == "shipped"


def test_shipped_binaries_are_those_that_the_compiler_makes(installed):
    text = PROGRAM.text()
    assert _binaries.shipped(text, "90").read_bytes() == _binaries.compiled(text, "sm_90")[0]
    index = json.loads((installed / "index.json").read_text())
    assert list(index["programs"]) == [text.key]
    assert index["compiler"].startswith(f"NVRTC {CUDA}.")


def test_a_wheel_is_compressed_again_into_fewer_bytes(script, project, tmp_path):
    wheel, smaller = tmp_path / "a.whl", tmp_path / "dist" / "a.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(project.rglob("*.*")):
            archive.write(file, file.relative_to(project))
    script["compress"](wheel, smaller)
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(smaller) as packed:
        assert packed.namelist() == given.namelist()
        assert all(packed.read(name) == given.read(name) for name in given.namelist())
    assert smaller.stat().st_size < 0.995 * wheel.stat().st_size


@pytest.mark.parametrize(
    "changes",
    [{"source": PROGRAM.source() + "\n"}, {"options": (*PROGRAM.options, "-DMORE=1")}, {"architecture": "sm_90a"}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_changed_kernel_never_gets_an_old_binary(installed, changes):
    assert _binaries.shipped(dataclasses.replace(PROGRAM.text(), **changes), "90") is None


def test_binaries_for_another_cuda_are_not_used(installed, monkeypatch):
    monkeypatch.setattr(_binaries, "nvrtc_version", lambda: (CUDA + 1, 0))
    assert _binaries.shipped(PROGRAM.text(), "90") is None


def test_what_was_compiled_is_kept(cache, monkeypatch):
    text = PROGRAM.text()
    file = _binaries.binary(text, "90")
    assert file.parent == cache
    assert [path.name for path in cache.iterdir()] == [file.name]
    assert _binaries.origin(text, "90") == "kept"
    without_compiler(monkeypatch)
    assert _binaries.binary(text, "90") == file
    for capability in "80", "100":
        assert _binaries.origin(text, capability) == "compiled"


def test_a_gpu_that_is_newer_than_the_compiler_gets_what_its_driver_compiles(cache):
    text = dataclasses.replace(PROGRAM.text(), source='extern "C" __global__ void nothing() {}')
    assert b".visible .entry nothing" in _binaries.binary(text, "990").read_bytes()


def test_a_kernel_that_does_not_compile_is_named(cache):
    text = dataclasses.replace(PROGRAM.text(), source="this is no kernel")
    with pytest.raises(RuntimeError, match=r"csr.cu does not compile:\n.*csr.cu\(1\): error"):
        _binaries.binary(text, "90")
    assert not cache.exists()


def test_a_first_use_is_cold_unless_kernels_are_there(project, cache, monkeypatch):
    assert is_cold()
    monkeypatch.syspath_prepend(str(project))
    _binaries.package.cache_clear()
    assert not is_cold()


def test_an_old_gpu_is_refused_where_a_kernel_is_needed(host_shim, monkeypatch):
    with pytest.raises(NoGpuError, match=r"this GPU has compute capability 7\.5, and tilepath needs 8\.0 or later"):
        _binaries.binary(PROGRAM.text(), "75")
    monkeypatch.setattr(host_shim.Device, "compute_capability", "75")
    assert array_library("auto") is np
    with pytest.raises(NoGpuError, match=r"7\.5.*pass device 'cpu'"):
        array_library("gpu")
    monkeypatch.setattr(host_shim.Device, "compute_capability", "80")
    assert array_library("auto") is array_library("gpu") is host_shim

import asyncio
import functools
import gc
import importlib.util
import itertools
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from compiling import kept
from hypothesis import settings

# Speed is not what tests are for: the first example of many compiles something.
settings.register_profile("tilepath", deadline=None, max_examples=20)
settings.load_profile("tilepath")

# For its dashboard, Dask measures every scheduler and worker several times a second: here hardly ever. Processes that
# tests start inherit these settings.
os.environ |= {
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "1h",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}

# Processes that tests start use cached bytecode, which saves half a second of each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# `garbage` collects at the end of each module. Python's collections, after every 700 new objects, would find little.
gc.set_threshold(50_000, 20, 20)

SHIM = Path(__file__).parent / "gpuops" / "host_shim" / "cupy.py"
DEVICES = itertools.count(1000, 1000)

# Folders and modules whose tests depend on how files are written, or on several writes at a time.
WRITING = {
    *("files", "workers", "test_durable", "test_errors", "test_failures", "test_overwriting", "test_place"),
    *("test_power_cuts", "test_resuming", "test_row_files", "test_same_bits", "test_settled", "test_whole_chunks"),
}


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage while thousands of tests are found, all of which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    """Give tests outside of gpuops a second try: they wait for processes and sockets of a machine that may be busy.

    The summary names each test that needed the second try (RERUN), since the test or the code has a fault. A test that
    fails whatever the machine does fails again: seeds are fixed, and Hypothesis repeats the example.
    """
    if config.pluginmanager.hasplugin("rerunfailures"):
        alone = Path(__file__).parent / "gpuops"
        for item in items:
            if alone not in item.path.parents:
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks():
    """Let files become durable without waiting for the disk, in this process: thousands of stores are made here.

    `power_cuts.recorded` notes the calls that the tests of power cuts need.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def files_without_threads(request):
    """Let Zarr read and write chunks without further threads, which take longer than the small chunks of tests."""
    to_thread = asyncio.to_thread

    async def here(function, /, *args, **options):
        if asyncio.get_running_loop() is zarr.core.sync.loop[0]:
            return function(*args, **options)
        return await to_thread(function, *args, **options)  # Dask

    with pytest.MonkeyPatch.context() as patch:
        if WRITING.isdisjoint([request.path.parent.name, request.path.stem]):
            patch.setattr(asyncio, "to_thread", here)
        yield


@pytest.fixture(scope="module", autouse=True)
def garbage():
    """Collect garbage at the end of a module, and exempt all objects that are left from later collections.

    The compiled functions of a test process are a million objects, which every collection would visit again.
    """
    yield
    gc.collect()
    gc.freeze()


CUPY = importlib.util.find_spec("cupy") is not None  # looked up before the host shim can stand in CuPy's place
LIBRARIES = ["numpy", *[pytest.param("cupy", marks=pytest.mark.gpu)] * CUPY]


@pytest.fixture(params=LIBRARIES)
def xp(request):
    """The array library of a test: NumPy, and where CuPy is installed also CuPy."""
    return np if request.param == "numpy" else request.getfixturevalue("gpu")


@pytest.fixture(scope="session")
def gpu():
    """CuPy, where there is a GPU."""
    if not CUPY:
        pytest.skip("CuPy is not installed")
    import cupy

    if not cupy.cuda.is_available():
        pytest.skip("no GPU")
    return cupy


@pytest.fixture(scope="module")
def cupy(host_shim):
    """The host shim, as a device of its own."""
    host_shim.start()
    return host_shim


@pytest.fixture(scope="module")
def host_shim():
    """host_shim/cupy.py in CuPy's place, with devices of which gpuops remembers nothing."""
    spec = importlib.util.spec_from_file_location("cupy", SHIM)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", module)
        spec.loader.exec_module(module)
        if not module.COMPILER:
            pytest.skip("no C++ compiler: install g++")
        module.RawModule.build = kept("host_shim")
        module.start(device=next(DEVICES))
        from gpuops import _cuda
        from gpuops._cuda import Program

        # The shim compiles for the host, whatever architecture a program is for.
        patch.setattr(_cuda, "_raw_module", lambda program: module.RawModule(program.source(), program.options))
        for launch in "launch", "launch_cooperative":
            patch.setattr(Program, launch, _with_names_checked(getattr(Program, launch)))
        yield module


def _with_names_checked(launch):
    """Return `launch`, with a check that a dictionary of arguments has the order of the kernel's parameters."""

    @functools.wraps(launch)
    def checked(program, entry, *shape_and_arguments, **options):
        *_, arguments = shape_and_arguments
        if isinstance(arguments, dict):
            parameters = re.search(rf"\b{entry}\(([^)]*)\)\s*{{", program.source())[1].split(",")
            assert list(arguments) == [re.findall(r"\w+", parameter)[-1] for parameter in parameters]
        launch(program, entry, *shape_and_arguments, **options)

    return checked

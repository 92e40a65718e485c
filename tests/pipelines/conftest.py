"""The clusters and small stores of pipeline_fixtures."""

import asyncio

import pytest
import zarr
from pipeline_fixtures import *  # noqa: F403

# Folders whose tests ask how files are written, or what becomes of several writes at a time.
WRITING = {"files", "formats", "stores", "workers"}


@pytest.fixture(scope="module", autouse=True)
def files_without_threads(request):
    """Let Zarr read and write a chunk where it waits for it: in a test, threads cost more than such small chunks do."""
    to_thread = asyncio.to_thread

    async def here(function, /, *args, **options):
        if asyncio.get_running_loop() is zarr.core.sync.loop[0]:
            return function(*args, **options)
        return await to_thread(function, *args, **options)  # Dask

    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name not in WRITING | {"pipelines"}:
            patch.setattr(asyncio, "to_thread", here)
        yield

import threading
import time

import pytest
from pipeline_fixtures import answers_ctrl_c as answers_ctrl_c
from pipeline_fixtures import shared_processes as shared_processes


@pytest.fixture(scope="module", autouse=True)
def no_other_processes(shared_processes):
    """The tests look at all threads and processes of this one, so those that other modules share are closed."""
    shared_processes.close()


@pytest.fixture
def no_thread_left():
    """Fails a test that leaves a thread behind. Dask's profiler takes a moment to end."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 60
    while left := [t for t in threading.enumerate() if t not in before]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)

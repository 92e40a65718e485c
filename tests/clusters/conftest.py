import threading
import time

import pytest
from pipeline_fixtures import answers_ctrl_c as answers_ctrl_c


@pytest.fixture
def no_thread_left():
    """Fails a test that leaves a thread behind. Dask's profiler takes a moment to end."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 60
    while left := [t for t in threading.enumerate() if t not in before]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)

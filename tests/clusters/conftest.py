import threading
import time

import pytest


@pytest.fixture
def no_thread_left():
    """Fails a test that leaves a thread behind. Dask's profiler takes a moment to end."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    while left := [t for t in threading.enumerate() if t not in before]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)

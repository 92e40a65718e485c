"""The threads of a CPU that share the tasks of a call."""

import gc
import time
import weakref

import numpy as np

from gpuops import _threads


def test_each_task_is_done_once_and_its_arrays_are_freed_at_once(monkeypatch):
    """Garbage is collected seldom: an array that waited for it would be a second matrix in memory."""
    monkeypatch.setattr(_threads, "threads_for", lambda relaxations: 5)
    gc.disable()
    try:
        done = np.zeros(1_000, np.int64)

        def step(task, done=done):
            done[task] += 1

        _threads.for_all(step, range(1_000), 0)
        assert (done == 1).all()
        kept = weakref.ref(done)
        del step, done
        ends = time.monotonic() + 10  # a thread that woke too late drops its share when it comes to it
        while kept() is not None and time.monotonic() < ends:
            time.sleep(0.001)
        assert kept() is None
    finally:
        gc.enable()

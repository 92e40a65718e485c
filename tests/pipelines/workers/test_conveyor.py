"""Items pass through a conveyor in order, with a buffer each."""

import threading
import time

import numpy as np
import pytest

from pipelines.workers.conveyor import Conveyor, convey


@pytest.mark.parametrize("slow", ["load", "work", "store", None])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_items_are_loaded_worked_on_and_stored_in_order(slow, count):
    buffers = [np.empty(1, int) for _ in range(3)]
    seen = {"load": [], "work": [], "store": []}
    taken, most = [], []

    def step(name, item):
        if name == slow:
            time.sleep(0.002)
        seen[name].append(item)

    def load(item, buffer):
        assert not any(buffer is other for other in taken)
        taken.append(buffer)
        most.append(len(taken))
        buffer[0] = item
        step("load", item)
        return buffer

    def work(item, band):
        assert band[0] == item
        step("work", item)
        return band

    def store(item, band):
        assert band[0] == item
        step("store", item)
        del taken[next(at for at, other in enumerate(taken) if other is band)]

    convey(range(count), buffers, load, work, store)
    assert all(items == list(range(count)) for items in seen.values())
    assert max(most, default=0) == min(count, 3) if slow in ("work", "store") else max(most, default=0) <= 3


def test_the_first_are_loaded_meanwhile_and_the_last_may_be_stored_later():
    conveyor, loaded, stored, go = Conveyor([None] * 3), threading.Semaphore(0), [], threading.Event()

    def store(item, _made):
        if item == 9:
            go.wait()
        stored.append(item)

    for _ in range(2):
        go.clear()
        stored.clear()
        conveyor.begin(range(10), lambda item, _: loaded.release() or item)
        for _ in range(3):
            assert loaded.acquire(timeout=10)
        conveyor.run(lambda item, made: made, store)
        conveyor.settle(1)
        assert stored == list(range(9))
        go.set()
        conveyor.settle()
        assert stored == list(range(10))
        while loaded.acquire(blocking=False):
            pass


@pytest.mark.parametrize("step", ["load", "work", "store"])
@pytest.mark.parametrize("item", [0, 7, 19])
def test_an_error_of_any_step_ends_it(step, item):
    def fails(name):
        def call(at, made=None):
            if (name, at) == (step, item):
                raise OSError("no")
            return made

        return call

    with pytest.raises(OSError, match="no"):
        convey(range(20), [None] * 3, fails("load"), fails("work"), fails("store"))

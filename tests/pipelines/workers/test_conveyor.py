"""Items pass through a conveyor in order, with a buffer each."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from pipelines.workers.conveyor import Conveyor


@pytest.mark.parametrize("slow", ["load", "work", "store", None])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_items_are_loaded_worked_on_and_stored_in_order(slow, count):
    buffers = [np.empty(1, int) for _ in range(3)]
    seen = {"load": [], "work": [], "store": []}
    taken = []

    def step(name, item):
        if name == slow:
            time.sleep(0.002)
        seen[name].append(item)

    def load(item, buffer):
        assert not any(buffer is other for other in taken)
        taken.append(buffer)
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

    Conveyor(buffers).convey(range(count), load, work, store)
    assert all(items == list(range(count)) for items in seen.values())
    assert not taken


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
            assert loaded.acquire(timeout=60)
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
def test_after_an_error_of_any_step_nothing_is_under_way(step, item):
    """Or a band would be stored when its run is over, perhaps while it is resumed."""
    seen = []

    def fails(name):
        def call(at, made=None):
            if (name, at) == (step, item):
                raise OSError("no")
            if name == "store":
                time.sleep(0.003)
            seen.append((name, at))
            return made

        return call

    conveyor = Conveyor([None] * 3)
    conveyor.begin(range(20), fails("load"))
    with pytest.raises(OSError, match="no"):
        conveyor.run(fails("work"), fails("store")) or conveyor.settle()
    before = list(seen)
    time.sleep(0.02)
    assert seen == before


def test_an_error_that_nobody_asked_for_keeps_nothing_alive():
    go = threading.Event()

    def fails(_item, _made):
        go.wait()
        raise OSError("no")

    gc.disable()
    try:
        conveyor = Conveyor([None] * 3)
        conveyor.begin([1], lambda item, _: item)
        conveyor.run(lambda item, made: made, fails)
        reference = weakref.ref(conveyor)
        del conveyor
        go.set()
        end = time.monotonic() + 60
        while reference() is not None and time.monotonic() < end:
            time.sleep(0.001)
        assert reference() is None
    finally:
        gc.enable()

"""Threads that write what is computed."""

import threading
import time

import numpy as np
import pytest
from distributed import Status, get_worker
from distributed.threadpoolexecutor import threads_lock

from clusters import start
from pipelines.workers import saving
from pipelines.workers.saving import Savers, let_next_begin


def test_every_chunk_is_written_and_the_last_may_be_narrow():
    rows, found = np.arange(7 * 50).reshape(7, 50), np.zeros((7, 50), int)

    def write(column, block):
        assert block.flags.c_contiguous
        found[:, column : column + block.shape[1]] += block

    with Savers() as savers:
        savers.save(rows, 16, write)
    np.testing.assert_array_equal(found, rows)


def test_no_more_is_in_hand_than_said():
    gate, given = threading.Semaphore(0), []

    def give():
        with Savers(waiting=3) as savers:
            for i in range(8):
                savers.submit(gate.acquire)
                given.append(i)

    giver = threading.Thread(target=give)
    giver.start()
    for written in range(8):
        deadline = threading.Event()
        while len(given) < min(8, 3 + written) and not deadline.wait(0.001):
            pass
        assert len(given) <= 3 + written
        gate.release()
    giver.join(60)
    assert len(given) == 8


@pytest.mark.parametrize("jobs", [1, 200])
def test_what_a_thread_raises_is_raised(jobs):
    def fail(i):
        if i == 0:
            raise OSError("the disk is full")
        written.append(i)

    def save():
        with Savers() as savers:
            for i in range(jobs):
                savers.submit(fail, i)

    written = []
    with pytest.raises(OSError, match="the disk is full"):
        save()
    assert len(written) < 199


def test_an_error_between_does_not_wait_for_what_has_not_begun():
    begun, go = [], threading.Event()

    def fail():
        with Savers() as savers:
            for i in range(saving.HELD):
                savers.submit(lambda i=i: (begun.append(i), go.wait(60)))
            savers._going[-1].add_done_callback(lambda _: go.set())  # when it is given up
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(begun) < saving.HELD


@pytest.mark.gpu
def test_a_block_of_a_gpu_is_copied_as_it_was_before_what_follows(gpu):
    rows = gpu.arange(5 * 3000, dtype="float32").reshape(5, 3000)[:, :2500]
    expected, found = rows.get(), np.zeros((5, 2500), "float32")
    busy = gpu.random.random((4096, 4096), dtype="float32")
    with Savers() as savers:
        savers.save(
            rows, 1024, lambda column, block: found.__setitem__((slice(None), slice(column, column + 1024)), block)
        )
        for _ in range(20):
            busy = busy @ busy
    np.testing.assert_array_equal(found, expected)


BEGUN, ENDED = threading.Event(), []  # of the task below, which runs in this process


def task_that_ends_late():
    BEGUN.set()
    while not threads_lock.locked():  # until the closing worker waits for this task
        time.sleep(0.001)
    let_next_begin()
    ENDED.append(get_worker().status)


def test_a_task_of_a_closing_worker_does_not_wait_for_the_worker():
    with start(device="cpu") as client:
        kept = client.submit(task_that_ends_late)
        assert BEGUN.wait(30)
    assert (ENDED, kept.status) == ([Status.closing], "cancelled")

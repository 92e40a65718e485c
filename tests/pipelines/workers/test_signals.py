"""Counters that workers of a host show each other."""

import dataclasses
import subprocess
import sys
import threading
import time

import pytest

from pipelines.workers.mapped_memory import CannotMap
from pipelines.workers.resident_state import StateLost
from pipelines.workers.signals import Signals, wait_until

PEER = """
import pickle, sys
from pipelines.workers.signals import Signals, wait_until

signals = Signals()
print(pickle.dumps(signals.address).hex(), flush=True)
(address,) = pickle.loads(bytes.fromhex(sys.stdin.readline()))
assert signals.meet([address, signals.address]) is None
for value in range(1, 200):
    assert wait_until(lambda: signals.seen(0) >= value, lambda: False, 60)
    signals.show(value)
assert signals.seen(1) == 199
"""


def test_counters_go_there_and_back_between_processes():
    import pickle

    signals = Signals()
    with subprocess.Popen([sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as peer:
        address = pickle.loads(bytes.fromhex(peer.stdout.readline().decode()))
        assert signals.meet([signals.address, address]) is None
        assert signals.seen(1) == 0
        peer.stdin.write(pickle.dumps([signals.address]).hex().encode() + b"\n")
        peer.stdin.flush()
        for value in range(1, 200):
            signals.show(value)
            assert wait_until(lambda value=value: signals.seen(1) == value, lambda: False, 60)
    assert peer.returncode == 0
    assert signals.seen(1) == 199  # who is gone leaves what it showed last


def test_a_wait_ends_when_it_is_ready_at_its_limit_and_with_its_attempt():
    flag = threading.Event()
    assert wait_until(lambda: True, lambda: True, 0.0)
    assert not wait_until(flag.is_set, lambda: False, 0.0)
    begin = time.monotonic()
    assert not wait_until(flag.is_set, lambda: False, 0.2)
    assert 0.2 <= time.monotonic() - begin < 60
    threading.Timer(0.1, flag.set).start()
    assert wait_until(flag.is_set, lambda: False, 60)
    with pytest.raises(StateLost, match="the attempt is over"):
        wait_until(lambda: False, flag.is_set, 60)


def test_counters_that_cannot_be_mapped_are_said(monkeypatch):
    signals, other = Signals(), Signals()
    assert signals.meet([dataclasses.replace(other.address, name=b"0" * 16)]) == (
        "what was mapped is not the memory of the other worker"
    )
    gone = dataclasses.replace(other.address, handle=b"/proc/1/fd/12345")
    assert signals.meet([gone]).startswith("shared memory cannot be mapped: ")

    def refuse(_count):
        raise CannotMap("for a test")

    monkeypatch.setattr("pipelines.workers.signals.HostMemory", refuse)
    alone = Signals()
    alone.show(6)  # nobody sees it, and it does no harm
    assert signals.meet([other.address, alone.address]) == "for a test"


def test_counters_are_not_used_where_stores_may_be_seen_in_another_order(monkeypatch):
    """A counter says that what was written before is there: x86 sees stores in their order, Arm may not."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert Signals().address.reason == "aarch64 processors may reorder stores"

"""Arrays that go from worker to worker: between processes, by the memory of the host in the device's place."""

import dataclasses
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from families import one_in
from ring_memory import mapped, nothing_is_mapped

from clusters import start
from pipelines import all_pairs_shortest_paths, train_som
from pipelines.stores.graph_writer import write_graph
from pipelines.stores.samples import write_samples
from pipelines.workers import mapped_memory
from pipelines.workers.mapped_memory import CannotMap
from pipelines.workers.resident_state import StateLost
from pipelines.workers.rings import HEADER, Ring, SlotReused, deal_slots

HANG_SECONDS = 180  # of a run that takes a second or two, on a busy machine

PEER = """
import pickle, sys
import numpy as np
from pipelines.workers.rings import Ring

ring = Ring("a", np, 2, 4000)
print(pickle.dumps(ring.address).hex(), flush=True)
for line in sys.stdin:
    task, *arguments = pickle.loads(bytes.fromhex(line))
    try:
        found = task(ring, *arguments)
    except Exception as error:
        found = error
    print(pickle.dumps(found).hex(), flush=True)
"""


class Peer:
    """A process with a ring of its own, to which calls are sent."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PEER],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # calls are functions of this module, too
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._read()

    def __call__(self, task, *arguments):
        self.process.stdin.write(pickle.dumps((task, *arguments)).hex() + "\n")
        self.process.stdin.flush()
        found = self._read()
        if isinstance(found, Exception):
            raise found
        return found

    def _read(self):
        return pickle.loads(bytes.fromhex(self.process.stdout.readline()))

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.kill()


def published(ring, slot, stage, values):
    ring.open(slot, values.shape, values.dtype)[...] = values
    return ring.publish(slot, stage)


def test_slots_are_dealt_so_that_none_is_written_again_within_reach():
    rng = np.random.default_rng(0)
    for _ in range(200):
        workers, reach = int(rng.integers(1, 6)), int(rng.integers(1, 7))
        owners = rng.integers(0, workers, rng.integers(0, 40)).tolist()
        slots, sizes = deal_slots(owners, workers, reach)
        for k, (owner, slot) in enumerate(zip(owners, slots, strict=True)):
            assert slot < sizes[owner] <= reach
            again = [j for j in range(k + 1, len(owners)) if (owners[j], slots[j]) == (owner, slot)]
            assert not again or again[0] >= k + reach


@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_an_array_arrives_and_the_owners_is_its_slot(peer, dtype):
    ring = Ring("a", np, 2, 4100)
    assert peer(Ring.meet, [ring.address, peer.address]) == [None, None]
    for stage, shape in enumerate([(3, 100), (1, 500), (5, 7)]):
        values = np.random.default_rng(stage).integers(0, 100, shape).astype(dtype)
        token = published(ring, stage % 2, stage, values)
        assert len(pickle.dumps(token)) < 600
        for _ in range(2):
            np.testing.assert_array_equal(peer(Ring.take, token), values)
        mine = ring.take(token)
        np.testing.assert_array_equal(mine, values)
        assert np.shares_memory(mine, ring._bytes)
    with pytest.raises(ValueError, match="an array of 8,000 bytes; a slot holds 4,352"):
        ring.open(0, (1000, 1), "float64")


def test_a_slot_that_is_reused_too_early_is_caught(peer):
    ring = Ring("a", np, 1, 4000)
    peer(Ring.meet, [ring.address])
    first = published(ring, 0, 0, np.zeros((2, 500), "float32"))
    second = published(ring, 0, 1, np.ones((2, 500), "float32"))
    for take in (lambda token: peer(Ring.take, token)), ring.take:
        with pytest.raises(SlotReused, match="was to hold stage 0 of a holds 'a .* 1'; it was written again too early"):
            take(first)
        np.testing.assert_array_equal(take(second), 1)
    ring.open(0, (1, 1), "int32")
    with pytest.raises(SlotReused, match="half written"):
        peer(Ring.take, dataclasses.replace(second, stage=2))


def test_a_ring_that_gathers_has_parts_at_their_place(peer):
    ring, values = Ring("a", np, 2, 4000), np.random.default_rng(0).integers(0, 255, 4000, np.uint8)
    here = Ring("a", np, 2, 4000, gathers=True)
    assert peer(Ring.meet, [ring.address]) == [None]
    token = published(ring, 1, 5, values)
    for first, stop in (0, 4000), (640, 1000), (4000, 4000):
        part = dataclasses.replace(token, shape=(stop - first,), start=first)
        for found in peer(gathered, part), gathered(here, part):
            np.testing.assert_array_equal(found, values[first:stop])
    published(ring, 1, 6, values)
    for gather in (lambda token: peer(gathered, token)), lambda token: gathered(here, token):
        with pytest.raises(SlotReused, match="was to hold stage 5 of a holds 'a .* 6'"):
            gather(part)
    peer(Ring.close)
    with pytest.raises(StateLost, match="attempt a is over"):
        peer(gathered, dataclasses.replace(token, stage=6))


def gathered(ring, token):
    """What the slot of this ring holds where the array belongs."""
    ring.gathers = True
    slot = ring.open(token.slot, (token.start + token.size,), np.uint8)
    slot[...] = 0
    taken = ring.take(token)
    assert np.shares_memory(taken, slot) or not token.size
    np.testing.assert_array_equal(ring.arrived(taken.copy(), token.slot, token.start), taken)
    return slot[token.start :].copy()


def test_whoever_pulls_while_a_slot_is_written_gets_all_of_an_array_or_an_error(peer):
    ring = Ring("a", np, 1, 4 << 20)
    peer(Ring.meet, [ring.address])
    tokens, over = [published(ring, 0, 0, np.full((1024, 1024), 0, "int32"))], threading.Event()

    def write():
        stage = 0
        while not over.is_set():
            stage += 1
            tokens.append(published(ring, 0, stage, np.full((1024, 1024), stage, "int32")))
            time.sleep(0.002 if stage % 2 else 0)

    writer = threading.Thread(target=write)
    writer.start()
    outcomes = []
    for _ in range(60):
        token = tokens[-1]
        try:
            pulled = peer(Ring.take, token)
        except SlotReused:
            outcomes.append(False)
        else:
            assert (pulled == token.stage).all()
            outcomes.append(True)
    over.set()
    writer.join()
    assert not all(outcomes)


def test_what_cannot_be_mapped_is_said(peer, monkeypatch):
    ring = Ring("a", np, 1, 100)
    other = Ring("a", np, 1, 100)
    address = ring.address
    elsewhere = dataclasses.replace(address, host="elsewhere")
    another = dataclasses.replace(address, ring="another", handle=other.address.handle)
    gone = dataclasses.replace(address, handle=b"/proc/1/fd/12345")
    gpu = dataclasses.replace(address, gpu=True)
    assert peer(Ring.meet, [elsewhere, another, gone, gpu]) == [
        "workers on several hosts",
        "what was mapped is not the memory of the other worker",
        "shared memory cannot be mapped: [Errno 2] No such file or directory: b'/proc/1/fd/12345'",
        "workers of different kinds",
    ]
    gc.freeze()  # so that `mapped` looks for no garbage of other tests
    assert mapped(peer.process.pid) == 2  # its own ring and counter
    with pytest.raises(StateLost, match="attempt a is over"):
        peer(Ring.take, published(ring, 0, 0, np.zeros((2, 2), "int32")))
    monkeypatch.setattr("os.posix_fallocate", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    short = Ring("a", np, 1, 100)
    assert short.address.handle is None
    assert peer(Ring.meet, [short.address]) == ["no 512 bytes of shared memory: [Errno 28] No space left on device"]
    np.testing.assert_array_equal(short.take(published(short, 0, 0, np.ones((2, 2), "int32"))), 1)


def test_a_dead_owner_leaves_its_array_until_it_is_unmapped(peer):
    gc.freeze()  # so that `mapped` looks for no garbage of other tests
    ring = Ring("a", np, 1, 4000)
    before = mapped()
    ring.meet([peer.address])
    token = peer(_published_by_peer)
    assert mapped() == before + 1
    peer.kill()
    assert (ring.take(token) == 7).all()
    ring.close()
    assert mapped() == before
    with pytest.raises(StateLost, match="over"):
        ring.take(dataclasses.replace(token, stage=1))
    del ring
    assert mapped() == before - 2  # ring and counter


def _published_by_peer(ring):
    ring.open(1, (4, 5), "float32")[...] = 7
    return ring.publish(1, 0)


def test_memory_that_is_closed_cannot_be_mapped():
    with pytest.raises(CannotMap):
        mapped_memory.HostMapping(b"/proc/self/fd/99999", HEADER)


@pytest.fixture(scope="module")
def three_processes():
    with start(device="cpu", workers=3, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    rng, n, m = np.random.default_rng(4), 800, 4000
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rng.integers(0, n, m), minlength=n))])
    through = rng.random(n) < 0.9
    return write_graph(
        tmp_path_factory.mktemp("g") / "g", indptr, rng.integers(0, n, m), rng.random(m), through=through
    )


@pytest.fixture(scope="module")
def calm(client, graph, tmp_path_factory):
    return solved(client, graph, tmp_path_factory.mktemp("calm") / "d")


def solved(client, graph, out, **options):
    return all_pairs_shortest_paths(client, graph, out, method="floyd-warshall", block=32, **options)[:]


def _no_memory(dask_worker=None):
    def refuse(_count):
        raise CannotMap("for a test")

    import pipelines.workers.rings

    pipelines.workers.rings.HostMemory = refuse


def _memory(dask_worker=None):
    import pipelines.workers.rings

    pipelines.workers.rings.HostMemory = pipelines.workers.mapped_memory.HostMemory


@pytest.mark.parametrize("without", one_in(3, [1, 0, 2]))
def test_all_ways_of_a_panel_give_the_same_bits_and_are_said(two_processes, graph, calm, tmp_path, capsys, without):
    some = list(two_processes.nthreads())[:without]
    if some:
        two_processes.run(_no_memory, workers=some)
    try:
        found = solved(two_processes, graph, tmp_path / "d", progress=True)
    finally:
        two_processes.run(_memory)
    np.testing.assert_array_equal(found, calm)
    said = capsys.readouterr().err
    ways = {
        0: "pivot rows go straight from worker to worker, in shared memory",
        1: "some pivot rows travel through Dask and host memory (for a test)",
        2: "some pivot rows travel through Dask and host memory (for a test)",
    }
    assert ways[without] in said
    assert nothing_is_mapped(two_processes)


@pytest.mark.slow
def test_a_ring_that_is_too_small_is_caught_in_a_run(two_processes, graph, tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.apsp.in_memory.plan.REACH", 1)
    with pytest.raises(SlotReused, match="written again too early"):
        solved(two_processes, graph, tmp_path / "d")
    assert nothing_is_mapped(two_processes)


RUNS = {
    "apsp": lambda client, inputs, out, often: solved(
        client, inputs["apsp"], out, overwrite=True, commit_seconds=0 if often else 60
    ),
    "som": lambda client, inputs, out, often: train_som(
        client, inputs["som"], out, 9, 9, epochs=20, overwrite=True, resident=often, piece_rows=200
    ).units(),
}


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_workers_change_no_bit_and_leave_no_memory(three_processes, client, graph, tmp_path, monkeypatch):
    """Workers are killed at random moments of runs whose arrays go from worker to worker.

    ``KILLS=30 pytest -m slow -s`` and this file: so many kills, and what they hit. By default, the test of a killed
    worker in test_apsp.py looks for memory that is left.
    """
    kills = int(os.environ.get("KILLS", 100))
    monkeypatch.setattr("pipelines.apsp.commits.COMMIT_SHARE", float("inf"))
    rng, found = np.random.default_rng(kills), Counter()
    inputs = {"apsp": graph, "som": write_samples(tmp_path / "s", rng.normal(size=(3000, 6)))}
    calm, seconds = {}, {}
    for name, run in RUNS.items():
        calm[name] = run(client, inputs, tmp_path / f"calm-{name}", True)
        began = time.monotonic()
        run(three_processes, inputs, tmp_path / name, True)
        seconds[name] = time.monotonic() - began
    with ThreadPoolExecutor(1) as runner:
        for kill in range(kills):
            name = list(RUNS)[kill % 2]
            three_processes.wait_for_workers(3, timeout=120)
            before = three_processes.run(os.getpid)
            victim = int(rng.choice(sorted(before.values())))
            murder = threading.Timer(rng.uniform(0, seconds[name]), os.kill, (victim, signal.SIGKILL))
            murder.start()
            run = runner.submit(RUNS[name], three_processes, inputs, tmp_path / name, kill % 4 < 2)
            try:
                values = run.result(timeout=HANG_SECONDS)
            except TimeoutError:
                pytest.fail(f"kill {kill}: {name} hangs; before: {dict(found)}")
            found["in a run" if victim not in three_processes.run(os.getpid).values() else "after a run"] += 1
            murder.join()
            found["wrong"] += not np.array_equal(values, calm[name])
            three_processes.wait_for_workers(3, timeout=120)
            found["leaks"] += not nothing_is_mapped(three_processes, workers=3)
    print(f"\n{kills} kills: {dict(found)}, hangs: 0")
    assert found["wrong"] == found["leaks"] == 0

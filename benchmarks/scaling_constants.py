"""Measure the constants of the model in `pipelines.apsp.in_memory.plan`: signals, hops and gaps, pulls, closing.

Hops and gaps are measured with chains of empty tasks; each task waits for its predecessor. A signal is half of the
round trip of a counter. All processes read the same clock, the clock of the host.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from distributed import Client

from benchmarks.harness import Bench
from gpuops import floyd_warshall
from pipelines.workers.attempts import Attempt, Run, workers_of
from pipelines.workers.device_arrays import array_library, synchronize
from pipelines.workers.resident_state import ResidentState, clear_states, keep_state, state_of
from pipelines.workers.rings import Ring, RingAddress, Token
from pipelines.workers.signals import Signals, SignalsAddress, wait_until

# Number of tasks in a chain. The first third is not counted, because the driver is still sending tasks.
CHAIN = 120
BOUNCES = 200
BLOCKS = (512, 1024, 2048)


def time_constants(bench: Bench, client: Client) -> str:
    """Measure all constants on the first two workers. Returns a text with a line for each constant."""
    client.register_plugin(ResidentState())
    attempt = Attempt(Run(client, workers_of(client)[:2]))
    try:
        hop, gap = _time_chain(bench, attempt, "hop", [0, 1]), _time_chain(bench, attempt, "gap", [0])
        lines = [f"HOP = {hop:.2g} s, GAP = {gap:.2g} s"]
        lines += _time_signals(bench, attempt)
        lines += _time_closing(bench, attempt)
        lines += _time_pulls(bench, attempt)
        lines += _time_dask(bench, attempt, hop)
    finally:
        attempt.cancel()
    return "\n".join([*lines, ""])


def _time_chain(bench: Bench, attempt: Attempt, name: str, workers: list[int]) -> float:
    """Return the median seconds from the end of a task to the start of the next task, on `workers` in turn."""
    chain = [attempt.submit(_beat, workers[0], None, stateless=True)]
    for number in range(1, CHAIN):
        chain.append(attempt.submit(_beat, workers[number % len(workers)], chain[-1], stateless=True))
    beats = attempt.results(chain)[CHAIN // 3 :]
    seconds = np.diff(beats).tolist()
    median = statistics.median(seconds)
    where = "another worker" if len(workers) > 1 else "the same worker"
    bench.record(
        f"{name}: a task that waits for one on {where}",
        seconds,
        work=(1, f"{name}s"),
        verified="each has what the one before returned",
    )
    return median


def _time_signals(bench: Bench, attempt: Attempt) -> list[str]:
    addresses = attempt.results([attempt.submit(_counter, w) for w in (0, 1)])
    if reasons := set(attempt.results([attempt.submit(_meet_counters, w, addresses) for w in (0, 1)])) - {None}:
        return [f"no signals: {'; '.join(reasons)}"]
    seconds, _ = attempt.results([attempt.submit(_bounce, w, w) for w in (0, 1)])
    attempt.wait([attempt.submit(clear_states, w, stateless=True) for w in (0, 1)])
    median = statistics.median(seconds)
    bench.record(
        "signal: a counter that another worker waits for",
        seconds,
        work=(1, "signals"),
        verified="each waits for the number of the one before",
    )
    return [f"SIGNAL = {median:.2g} s"]


def _time_closing(bench: Bench, attempt: Attempt) -> list[str]:
    lines = []
    for block in BLOCKS if bench.gpu else BLOCKS[:1]:
        (seconds,) = attempt.results([attempt.submit(_close_block, 0, block, stateless=True)])
        bench.record(
            f"closing a block of {block}", seconds, work=(block**3, "relaxations"), verified="all distances are 0 or 1"
        )
        lines.append(f"CLOSE = {statistics.median(seconds) / block:.2g} s for each row of a block of {block:,}")
    return lines


def _time_pulls(bench: Bench, attempt: Attempt) -> list[str]:
    """Time the second worker while it only pulls panels from the first worker, one after another."""
    lines = []
    for mebibytes in _sizes(bench):
        count = mebibytes << 20
        address, _ = attempt.results([attempt.submit(_ring, w, count) for w in (0, 1)])
        (obstacle,) = attempt.results([attempt.submit(_meet, 1, address)])
        if obstacle:
            return [f"no pulls: {obstacle}"]
        (tokens,) = attempt.results([attempt.submit(_offer, 0, count)])
        ((seconds, right),) = attempt.results([attempt.submit(_pull, 1, tokens, 20)])
        assert right, "what was pulled is not what was offered"
        case = f"pull of {mebibytes} MiB"
        rate = bench.record(case, seconds, work=(count, "bytes"), verified="its values", sizes={"bytes": count})
        lines.append(f"PULL = {rate:.3g} bytes/s of {mebibytes:,} MiB")
        attempt.wait([attempt.submit(_close, w) for w in (1, 0)])
    return lines


def _time_dask(bench: Bench, attempt: Attempt, hop: float) -> list[str]:
    """Time how long Dask takes to send arrays from the first worker to the second, without the two hops."""
    lines = []
    for mebibytes in _sizes(bench)[:2]:
        count, chain = mebibytes << 20, []
        for _ in range(8):
            array = attempt.submit(_array, 0, count, chain[-1] if chain else None, stateless=True)
            chain.append(attempt.submit(_beat, 1, array, stateless=True))
        seconds = [period - 2 * hop for period in np.diff(attempt.results(chain))[1:]]
        if min(seconds) <= 0:
            lines.append(f"DASK: {mebibytes} MiB take no longer than the hops")
            continue
        case = f"{mebibytes} MiB through Dask"
        rate = bench.record(case, seconds, work=(count, "bytes"), verified="they arrive", sizes={"bytes": count})
        lines.append(f"DASK = {rate:.3g} bytes/s of {mebibytes:,} MiB")
    return lines


def _sizes(bench: Bench) -> tuple[int, ...]:
    """Return the sizes of arrays to send, in MiB."""
    return (16, 256, 1024) if bench.gpu else (1, 16)


# Tasks on the workers.


def _beat(_before: Any) -> float:
    return time.perf_counter()


def _counter(attempt: str) -> SignalsAddress:
    clear_states()
    keep_state(attempt, Signals())
    return state_of(attempt).address


def _meet_counters(attempt: str, addresses: Sequence[SignalsAddress]) -> str | None:
    return state_of(attempt).meet(addresses)


def _bounce(attempt: str, worker: int) -> list[float]:
    """Show a number, and wait until the other worker shows it too."""
    signals, beats = state_of(attempt), []
    for number in range(1, BOUNCES + 1):
        if worker == 0:
            signals.show(number)
        if not wait_until(lambda number=number: signals.seen(1 - worker) >= number, lambda: False, 60.0):
            raise TimeoutError("the other worker did not answer within 60 s")
        if worker == 1:
            signals.show(number)
        beats.append(time.perf_counter())
    return (np.diff(beats) / 2).tolist()


def _close_block(block: int) -> list[float]:
    xp, seconds = array_library(), []
    for _ in range(-2, 9):
        matrix = xp.ones((block, block), "float32")
        synchronize(matrix)
        begin = time.perf_counter()
        matrix = floyd_warshall(matrix, nonnegative=True)
        synchronize(matrix)
        seconds.append(time.perf_counter() - begin)
        assert bool((matrix <= 1).all())
    return seconds[2:]


def _array(count: int, _before: Any) -> Any:
    return array_library().zeros(count, np.uint8)


def _ring(attempt: str, count: int) -> RingAddress:
    clear_states()
    keep_state(attempt, Ring(attempt, array_library(), 2, count))
    return state_of(attempt).address


def _meet(attempt: str, address: RingAddress) -> str | None:
    return state_of(attempt).meet([address])[0]


def _offer(attempt: str, count: int) -> list[Token]:
    ring, tokens = state_of(attempt), []
    for slot in (0, 1):
        ring.open(slot, (count // 4,), "float32")[...] = slot + 1
        tokens.append(ring.publish(slot, slot))
    return tokens


def _pull(attempt: str, tokens: Iterable[Token], repeats: int) -> tuple[list[float], bool]:
    ring, tokens, seconds, right = state_of(attempt), list(tokens), [], True
    for number in range(-2, repeats):
        token = tokens[number % 2]
        begin = time.perf_counter()
        values = ring.take(token)
        synchronize(values)
        if number >= 0:
            seconds.append(time.perf_counter() - begin)
        right &= bool((values == token.slot + 1).all())
    return seconds, right


def _close(attempt: str) -> None:
    state_of(attempt).close()
    clear_states()

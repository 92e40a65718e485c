"""Change the settings of a running cluster to the settings that runs need, and put the old settings back afterwards.

`borrow` registers two plugins. `Borrowed` on the scheduler sets work stealing, repeated tasks and time limits.
`OneTask` on every worker, also on workers that come later, lets one task run at a time, and turns pausing and spilling
off. The plugin on the scheduler notices when the last client of tilepath is closed, killed or cut off, and puts the old
settings back. If a client connects again after a lost connection, the settings are changed again.

The scheduler need not be able to import this package: cloudpickle sends both classes by value.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import sys
import time
from collections import Counter
from typing import Any

import cloudpickle
from dask.utils import parse_timedelta
from distributed import Client, SchedulerPlugin, WorkerPlugin
from distributed.comm.addressing import get_address_host

from clusters.errors import ClusterError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

NAME = "tilepath-settings"  # of both plugins
LEAVING_SECONDS = 2.0  # another client that has just been closed may still be listed for this time
FIRE_AND_FORGET = "fire-and-forget"  # the client in whose name the scheduler keeps tasks that no client waits for


class OneTask(WorkerPlugin):
    """Lets a worker do one task at a time, without pausing or spilling.

    Parameters
    ----------
    home : host and process id of the client. A worker in that process shares its environment with the user's program.
    neighbours : number of workers on each host
    """

    name = NAME

    def __init__(self, home: tuple[str, int], neighbours: dict[str, int]):
        self.home, self.neighbours = home, neighbours

    async def setup(self, worker: Any) -> None:
        memory = worker.memory_manager
        self.before = (worker.state.nthreads, memory.memory_pause_fraction, memory.memory_spill_fraction)
        worker.state.nthreads = 1
        memory.memory_pause_fraction = memory.memory_spill_fraction = False
        # Numba reads its number of threads when it is first imported, so this comes too late for a worker that has
        # imported Numba already.
        self.numba = self.home != (socket.gethostname(), os.getpid()) and "numba" not in sys.modules
        self.numba = self.numba and "NUMBA_NUM_THREADS" not in os.environ
        if self.numba:
            from dask.system import CPU_COUNT

            share = CPU_COUNT // self.neighbours.get(get_address_host(worker.address), 1)
            os.environ["NUMBA_NUM_THREADS"] = str(max(self.before[0], share, 1))
        # Each worker of dask-cuda has one GPU. Pipelines recognize such workers by the resource `GPU`.
        by_cuda = any(type(plugin).__module__.startswith("dask_cuda") for plugin in worker.plugins.values())
        self.gpu = by_cuda and not worker.state.total_resources.get("GPU")
        if self.gpu:
            await worker.set_resources(GPU=1)

    async def teardown(self, worker: Any) -> None:
        memory = worker.memory_manager
        worker.state.nthreads, memory.memory_pause_fraction, memory.memory_spill_fraction = self.before
        if self.numba:
            os.environ.pop("NUMBA_NUM_THREADS", None)
        if self.gpu:
            await worker.set_resources(GPU=0)


class Borrowed(SchedulerPlugin):
    """Keeps the settings of tilepath in force on the scheduler while a client that needs them is connected."""

    name = NAME

    def __init__(self, scheduler: Any):
        self.scheduler = scheduler
        self.borrowers: set[str] = set()  # all clients that ever borrowed the cluster
        self.connected: set[str] = set()
        self.before: dict[str, Any] | None = None  # the cluster's own settings while it is borrowed
        self.threads: dict[str, int] = {}  # the threads that workers were started with, while the cluster is borrowed
        self.lock = asyncio.Lock()
        self.tasks: set[asyncio.Task[None]] = set()

    async def borrow(self, client: str, settings: dict[str, Any], one_task: bytes) -> None:
        """Change the settings until `client` ends; `one_task` is a pickled `OneTask`."""
        self.settings, self.one_task = settings, one_task
        self.borrowers.add(client)
        self.connected.add(client)
        await self.settle()

    def add_client(self, scheduler: Any, client: str) -> None:
        if client in self.borrowers:  # its connection was lost for a while
            self.connected.add(client)
            self._settle_soon()

    def remove_client(self, scheduler: Any, client: str) -> None:
        self.connected.discard(client)
        self._settle_soon()

    def add_worker(self, scheduler: Any, worker: str) -> None:
        if self.before is not None:
            self._count_one_thread(worker)

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        self.threads.pop(worker, None)

    def _settle_soon(self) -> None:
        task = asyncio.get_running_loop().create_task(self.settle())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def settle(self) -> None:
        """Change the settings, or put them back, as the connected clients require."""
        async with self.lock:
            if self.connected and self.before is None:
                await self._change()
            elif not self.connected and self.before is not None and self.scheduler.status.name == "running":
                await self._put_back()

    async def _change(self) -> None:
        scheduler = self.scheduler
        stealing = "stealing" in scheduler.periodic_callbacks
        self.before = {"stealing": stealing, **{name: getattr(scheduler, name) for name in self.settings}}
        if stealing:
            await scheduler.extensions["stealing"].stop()
        for name, value in self.settings.items():
            setattr(scheduler, name, value)
        self._check_ttl_often()
        for worker in scheduler.workers:
            self._count_one_thread(worker)
        await scheduler.register_worker_plugin(None, self.one_task, NAME, idempotent=False)

    async def _put_back(self) -> None:
        assert self.before is not None
        scheduler, before, self.before = self.scheduler, self.before, None
        if before.pop("stealing"):
            await scheduler.extensions["stealing"].start()
        for name, value in before.items():
            setattr(scheduler, name, value)
        self._check_ttl_often()
        for worker, threads in self.threads.items():
            self._count(worker, threads)
        self.threads.clear()
        scheduler.worker_plugins.pop(NAME, None)
        await scheduler.broadcast(msg={"op": "plugin-remove", "name": NAME}, on_error="ignore")

    def _check_ttl_often(self) -> None:
        """Have the scheduler look for silent workers every `worker_ttl` seconds, as if started with this setting."""
        check = self.scheduler.periodic_callbacks.get("worker-ttl")
        if check is not None and self.scheduler.worker_ttl:
            check.stop()
            check.callback_time = self.scheduler.worker_ttl * 1000
            check.start()

    def _count_one_thread(self, worker: str) -> None:
        self.threads[worker] = self.scheduler.workers[worker].nthreads
        self._count(worker, 1)

    def _count(self, worker: str, threads: int) -> None:
        """Let the scheduler plan with `threads` threads of a worker."""
        scheduler, state = self.scheduler, self.scheduler.workers[worker]
        change, state.nthreads = threads - state.nthreads, threads
        scheduler.host_info[state.host]["nthreads"] += change
        scheduler.total_nthreads += change
        scheduler.total_nthreads_history.append((time.time(), scheduler.total_nthreads))
        scheduler.check_idle_saturated(state)


def users_besides(client: Client) -> str:
    """Return the users of the cluster, except tilepath and the clients of this process; "" without such users."""
    mine = {one.id for one in Client._instances}
    deadline = time.monotonic() + LEAVING_SECONDS
    while (found := client.run_on_scheduler(_users, mine=mine)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return str(found)


def borrow(client: Client, settings: dict[str, Any]) -> None:
    """Change the settings of the cluster of `client` until the client ends.

    Parameters
    ----------
    settings : the settings for the scheduler, by their names in the file `dask.yaml`

    Raises
    ------
    ClusterError
        If a worker cannot be held to one task at a time.
    """
    neighbours = Counter(map(get_address_host, client.nthreads()))
    one_task = cloudpickle.dumps(OneTask((socket.gethostname(), os.getpid()), dict(neighbours)))
    values = {  # by the names of the scheduler's attributes
        "WORKER_SATURATION": math.inf,
        "allowed_failures": settings["allowed-failures"],
        "no_workers_timeout": parse_timedelta(settings["no-workers-timeout"]),
        "worker_ttl": parse_timedelta(settings["worker-ttl"]),
    }
    client.run_on_scheduler(_borrow, client=client.id, settings=values, one_task=one_task)
    held = client.run(_tasks_at_a_time, on_error="ignore")
    unheld = [worker for worker in client.nthreads() if held.get(worker) != 1]
    if unheld:
        raise ClusterError(
            f"results could be wrong: {unheld[0]} cannot be held to one task at a time, and tasks change state in "
            "place; start the workers with `--nthreads 1`"
        )


def _users(dask_scheduler: Any, mine: set[str]) -> str:
    """Return the users of the cluster, except the clients `mine` and clients that have borrowed it; "" if none."""
    borrowed = dask_scheduler.plugins.get(NAME)
    known = mine | (borrowed.connected if borrowed else set()) | {FIRE_AND_FORGET}
    others = sorted(set(dask_scheduler.clients) - known)
    tasks = len([task for task in dask_scheduler.tasks.values() if task.state in ("processing", "queued", "no-worker")])
    found = []
    if others:
        found.append(f"{len(others)} other client{'s' if len(others) > 1 else ''}: {', '.join(others[:3])}")
    if tasks and not (borrowed and borrowed.connected):
        found.append(f"{tasks} task{'s' if tasks > 1 else ''} under way")
    return "; ".join(found)


async def _borrow(dask_scheduler: Any, client: str, settings: dict[str, Any], one_task: bytes) -> None:
    borrowed = dask_scheduler.plugins.get(NAME)
    if borrowed is None:
        borrowed = Borrowed(dask_scheduler)
        dask_scheduler.add_plugin(borrowed)
    await borrowed.borrow(client, settings, one_task)


def _tasks_at_a_time(dask_worker: Any) -> int:
    return dask_worker.state.nthreads

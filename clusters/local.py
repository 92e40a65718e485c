"""Start a Dask cluster on this machine: one worker per GPU, or CPU workers.

Without GPUs, one worker lives in this process. It starts in milliseconds and copies no data between processes; Numba
uses every core in it. Worker processes take most of a second to start; they are for tests that kill workers and for
machines with several sockets.

Every worker has one thread, since tasks change state in place; Numba or the GPU does the parallel work. GPU workers
have the Dask resource ``GPU: 1``, which tells the pipelines that these workers compute on a GPU.
"""

from __future__ import annotations

import asyncio
import logging
import numbers
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import MethodType
from typing import Any

from dask.system import CPU_COUNT
from dask.utils import parse_bytes
from distributed import Client, LocalCluster, Status
from distributed.deploy import Cluster

from clusters import gpus
from clusters.errors import ClusterError, first_cause
from clusters.main_script import refuse_unguarded
from clusters.nanny import TidyNanny, start_resource_tracker
from clusters.network import LoopbackWorker, http_address, warn_if_open
from clusters.settings import in_force
from gpuops.extras import install

_DEVICES = ("auto", "cpu", "gpu", "cuda")
_PROTOCOLS = ("tcp", "ucx")
# Options of Dask's cluster classes that `start` refuses, with the reason or the argument to use instead.
_OWNED = {
    "n_workers": "use workers=",
    "threads_per_worker": "workers have one thread each, since tasks change state in place",
    "worker_class": "worker processes are started by a nanny of this package",
    "asynchronous": "the client is a blocking one",
    "device_memory_limit": "resident arrays must not be spilled",
    "dashboard_address": "use dashboard=",
    "CUDA_VISIBLE_DEVICES": "set the environment variable",
}
_AT_ONCE_SECONDS = 5  # time for Dask to close an interrupted cluster, before its processes are killed


class ClusterClient(Client):
    """A Dask client that owns its cluster: closing the client closes the cluster too."""

    @property
    def dashboard_link(self) -> str:
        """The address of the dashboard. Dask would name the machine, also where only the loopback interface serves."""
        served = self.cluster.scheduler.http_server.address
        link: str = super().dashboard_link
        return link if served in ("0.0.0.0", "::") else re.sub(r"//[^/:]+:", f"//{served}:", link)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            # Do not wait for unfinished tasks, and drop Dask's messages about them.
            with _silence(), suppress(TimeoutError), _closed_or_killed(self.cluster, self):
                self.cluster.sync(_stop_workers, self.cluster, callback_timeout=_AT_ONCE_SECONDS)
                self.close(_AT_ONCE_SECONDS)
        # Workers that do not stop in time are killed; a message about them would replace the error of the block.
        with nullcontext() if kind is None else suppress(TimeoutError):
            super().__exit__(kind, error, trace)

    def close(self, timeout: float = 30) -> None:
        """Close the client, then its cluster with all worker processes; a second call has no effect.

        Ctrl-C during the call kills the worker processes.

        Parameters
        ----------
        timeout : float
            Most seconds to wait for the client, and again for the cluster.

        Raises
        ------
        TimeoutError
            If workers do not stop in time. They are killed.
        """
        with _closed_or_killed(self.cluster, self):
            try:
                super().close(timeout)
            finally:
                if self.cluster is not None:
                    self.cluster.close(timeout)


def start(
    device: str = "auto",
    workers: int | None = None,
    processes: bool | None = None,
    protocol: str | None = None,
    memory_limit: int | float | str | None = 0,
    *,
    dashboard: bool | str = False,
    timeout: float = 60,
    **options: Any,
) -> ClusterClient:
    """Start a cluster on this machine and return its client.

    Write ``with start() as client:``, or call ``client.close()``; both end the cluster. A script that may start worker
    processes must call `start` under ``if __name__ == "__main__":``.

    Parameters
    ----------
    device : {"auto", "cpu", "gpu", "cuda"}
        "auto" uses the GPUs if this machine has GPUs and the packages for them, else the CPU. "cuda" means "gpu".
    workers : int, optional
        CPU: number of workers, by default 1. GPU: number of GPUs to use, by default all visible GPUs.
    processes : bool, optional
        CPU: True starts workers as separate processes, each with its share of the cores for Numba (unless
        ``NUMBA_NUM_THREADS`` is set in the environment); by default workers live in this process. GPU workers are
        always processes.
    protocol : {"tcp", "ucx"}, optional
        How workers communicate, by default "tcp" (within one process, no transport is needed). "ucx" uses NVLink and
        InfiniBand. It is for GPU workers only, and gives 80% of each GPU to a memory pool, which CuPy's arrays share
        (``rmm_pool_size=`` changes the percentage).
    memory_limit : int, float, str or None
        CPU: memory of each worker, as bytes, a fraction of the machine's memory, text such as "8 GiB", or "auto"; a
        worker process close to the limit is restarted. 0 or None: no limit. Not for GPU workers.
    dashboard : bool or str
        True serves Dask's dashboard at 127.0.0.1:8787, a text serves it at the address in the text. Without a host
        (":8788", ":0" for any port) only this machine is served; "0.0.0.0:8787" serves the network.
        ``client.dashboard_link`` is the address.
    timeout : float
        Seconds within which all workers must be connected.
    **options
        Passed to `dask_cuda.LocalCUDACluster` or `distributed.LocalCluster`. All processes listen on the loopback
        interface alone, unless ``host=`` or ``interface=`` names another; ``security=`` turns TLS on.

    Returns
    -------
    ClusterClient
        A `distributed.Client`; all workers are connected.

    Raises
    ------
    ValueError
        If an argument is not one of its allowed values, or conflicts with another.
    ClusterError
        If GPUs are asked for and a driver, a GPU or a package is missing, if the dashboard's package is
        missing, if the calling script is not guarded, or if the workers do not all start in time.

    Warns
    -----
    UserWarning
        If "auto" finds GPUs but uses the CPU because a package is missing, or if ``host``, ``interface`` or
        ``dashboard`` opens the cluster or its dashboard to the network, and ``security`` does not protect it.

    Examples
    --------
    >>> with tilepath.start(device="cpu", workers=1) as own:
    ...     len(own.nthreads())
    1
    """
    _check(device, workers, processes, protocol, memory_limit, dashboard, timeout, options)
    use_gpus = _use_gpus(device)
    refuse_unguarded(processes=use_gpus or bool(processes))
    warn_if_open(dashboard, options, stacklevel=2)
    if use_gpus:
        build, count, options = _plan_gpu(workers, processes, protocol, memory_limit, options)
    else:
        build, count, options = _plan_cpu(workers, processes, protocol, memory_limit, options)
    _serve_http(dashboard, options)
    if options["worker_class"] is TidyNanny:
        options["start_timeout"] = timeout  # constructing the cluster waits for the worker processes
    with in_force({"NUMBA_NUM_THREADS": max(1, CPU_COUNT // count)}, use_gpus or bool(processes)):
        return _connect(_construct(build, options, timeout), count, timeout)


def _check(
    device: Any,
    workers: Any,
    processes: Any,
    protocol: Any,
    memory_limit: Any,
    dashboard: Any,
    timeout: Any,
    options: dict[str, Any],
) -> None:
    if device not in _DEVICES:
        raise ValueError(f"device={device!r}: must be one of {', '.join(map(repr, _DEVICES))}")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, numbers.Integral) or workers < 1):
        raise ValueError(f"workers={workers!r}: must be a whole number of at least 1, or None")
    if processes not in (None, True, False):
        raise ValueError(f"processes={processes!r}: must be True, False or None")
    if protocol is not None and protocol not in _PROTOCOLS:
        raise ValueError(f"protocol={protocol!r}: must be one of {', '.join(map(repr, _PROTOCOLS))}, or None")
    if not _is_memory_limit(memory_limit):
        raise ValueError(
            f"memory_limit={memory_limit!r}: must be bytes, a fraction of the machine's memory, a text such as"
            " '8 GiB', 'auto', or 0 or None for no limit"
        )
    if not isinstance(dashboard, bool | str):
        raise ValueError(f"dashboard={dashboard!r}: must be True, False or an address such as ':8788'")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"timeout={timeout!r}: must be a positive number of seconds")
    for name in sorted(_OWNED.keys() & options.keys()):
        raise ValueError(f"{name}={options[name]!r} is not an option of start(): {_OWNED[name]}")


def _is_memory_limit(value: Any) -> bool:
    if value is None or value == "auto":
        return True
    if isinstance(value, str):
        try:
            return parse_bytes(value) >= 0
        except ValueError:
            return False
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _use_gpus(device: str) -> bool:
    if device == "cpu" or (device == "auto" and not gpus.visible()):
        return False
    lack = gpus.missing()
    if lack is None:
        return True
    if device != "auto":
        raise ClusterError(f"device={device!r}: {lack}")
    warnings.warn(
        f"this machine has GPUs, but the run uses the CPU: {lack}; device='cpu' silences this warning", stacklevel=3
    )
    return False


def _plan_gpu(
    workers: int | None,
    processes: bool | None,
    protocol: str | None,
    memory_limit: int | float | str | None,
    options: dict[str, Any],
) -> tuple[Any, int, dict[str, Any]]:
    if processes is False:
        raise ValueError("processes=False: GPU workers are processes; drop it, or pass device='cpu'")
    if memory_limit:
        raise ValueError(f"memory_limit={memory_limit!r}: not for GPU workers, which must not spill; drop it")
    found = gpus.visible()
    count = len(found) if workers is None else int(workers)
    if count > len(found):
        there = "is 1 GPU" if len(found) == 1 else f"are {len(found)} GPUs"
        raise ValueError(f"workers={workers}: there {there}, and each worker needs one")
    if protocol == "ucx":
        lack = gpus.missing_for_ucx()
        if lack is not None:
            raise ClusterError(f"protocol='ucx': {lack}")
        # A worker maps the memory of another worker once per buffer, which takes up to a fraction of a second. With a
        # pool there is a single buffer. RMM's asynchronous pool cannot be mapped.
        options = {"rmm_pool_size": 0.8, "rmm_allocator_external_lib_list": "cupy", **options}

    from dask_cuda import LocalCUDACluster  # imports CUDA's bindings, which only GPU machines have

    plan = {
        "CUDA_VISIBLE_DEVICES": found[:count],
        "n_workers": count,
        "threads_per_worker": 1,
        "worker_class": TidyNanny,
        "protocol": protocol or "tcp",
        # Without limits there is no spilling, and workers keep their data in plain dicts.
        "memory_limit": 0,
        "device_memory_limit": None,
    }
    resources = {"GPU": 1, **options.pop("resources", {})}
    return LocalCUDACluster, count, {**options, **plan, "resources": resources}


def _plan_cpu(
    workers: int | None,
    processes: bool | None,
    protocol: str | None,
    memory_limit: int | float | str | None,
    options: dict[str, Any],
) -> tuple[Any, int, dict[str, Any]]:
    if protocol == "ucx":
        raise ValueError("protocol='ucx': for GPU workers only, and this cluster runs on the CPU; use 'tcp'")
    count = 1 if workers is None else int(workers)
    plan = {
        "n_workers": count,
        "threads_per_worker": 1,
        "processes": bool(processes),
        "worker_class": TidyNanny if processes else LoopbackWorker,
        "protocol": protocol,
        "memory_limit": memory_limit,
    }
    return LocalCluster, count, {**options, **plan}


def _serve_http(dashboard: bool | str, options: dict[str, Any]) -> None:
    """Set the address of the HTTP server, and whether it serves the dashboard.

    Without the dashboard, the scheduler still answers health checks, on any free port. ``dashboard_address=None``,
    Dask's way to switch the dashboard off, would still bind port 8787 and warn if another cluster uses that port.
    """
    if dashboard:
        try:
            import distributed.dashboard.scheduler  # noqa: F401
        except ImportError as error:
            raise ClusterError(f"dashboard={dashboard!r}: {error}; {install('dashboard')}, or leave it out") from error
    options["dashboard_address"] = http_address(dashboard)
    options["scheduler_kwargs"] = {**(options.get("scheduler_kwargs") or {}), "dashboard": bool(dashboard)}


def _construct(build: Any, options: dict[str, Any], timeout: float) -> Any:
    began = time.monotonic()
    if options["worker_class"] is TidyNanny:
        start_resource_tracker()
    cluster = build.__new__(build)  # before __init__, so that a cluster whose __init__ fails can be closed
    try:
        cluster.__init__(**options)
        # Dask closes the nanny of a worker that is not back 15 s after it was lost (lost-worker-timeout). On a busy
        # machine, or if the worker is lost again, this takes longer. TidyNanny restarts its worker, so drop that rule.
        cluster._update_worker_status = MethodType(Cluster._update_worker_status, cluster)
        return cluster
    except BaseException as error:
        if not isinstance(error, Exception):
            _kill(cluster)
            raise
        if getattr(cluster, "scheduler", None) is not None:
            with suppress(Exception):
                cluster.close(timeout=30)
        if isinstance(error, TypeError):  # an option that Dask does not know
            raise
        late = f"not all workers came up within {timeout:g} s; a slow machine may need a longer timeout (--timeout)"
        reason = late if time.monotonic() - began > timeout else str(first_cause(error)).rstrip(".")
        raise ClusterError(
            f"the cluster did not start: {reason}. The output of worker processes is on stderr"
        ) from error


def _connect(cluster: Any, count: int, timeout: float) -> ClusterClient:
    """Return the client when all workers are connected; Dask itself would go on with fewer workers."""
    client = None
    try:
        client = ClusterClient(cluster)
        client.wait_for_workers(count, timeout)
        return client
    except BaseException as error:
        if not isinstance(error, Exception):
            _kill(cluster, client)
            raise
        with suppress(Exception):
            (cluster if client is None else client).close(timeout=30)
        raise ClusterError(
            f"not all of the {count} workers came up within {timeout:g} s: {error}. See their output on stderr, or"
            " give a longer timeout (--timeout)"
        ) from error


async def _stop_workers(cluster: Any) -> None:
    """Stop the workers of `cluster` without waiting for unfinished tasks."""

    async def stop(worker: Any) -> None:
        if isinstance(worker, TidyNanny):
            worker.kill_at_once()
        else:
            await worker.close(timeout=1, executor_wait=False)

    await asyncio.gather(*map(stop, list(cluster.workers.values())), return_exceptions=True)


@contextmanager
def _closed_or_killed(cluster: Any, client: Any) -> Iterator[None]:
    """If the block fails or is interrupted, kill the remaining worker processes."""
    try:
        yield
    except BaseException:
        if cluster is not None:
            _kill(cluster, client)
        raise


def _kill(cluster: Any, client: Any = None) -> None:
    """Kill the worker processes of `cluster`, and mark the cluster and its client as closed.

    Without the mark, Dask would hang. An interrupted `close` leaves the cluster "closing", and every later `close`
    waits for the first `close` to end; Dask calls `close` again when the client is deleted, and at exit.
    """
    cluster.status = Status.closed
    if client is not None:
        client.status = "closed"
    with _silence():
        for worker in list(getattr(cluster, "_created", ())):
            if isinstance(worker, TidyNanny):
                worker.kill_at_once()
        for owner in (client, cluster):
            with suppress(AttributeError, TimeoutError):  # not yet constructed; or its loop is busy
                owner._loop_runner.stop(timeout=1)


@contextmanager
def _silence() -> Iterator[None]:
    """Drop Dask's messages about stopped and killed workers while the block runs."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)

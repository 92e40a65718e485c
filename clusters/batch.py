"""Join a running cluster, as batch jobs do: scheduler and workers are started by the job's own script.

Such a cluster has the settings of whoever started it. Those that results depend on are checked here, before
any work: with work stealing, with repeated tasks or with several threads in a worker, tasks that change
resident state in place would run at the wrong place, twice, or at the same time.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import socket
import time
import warnings
from pathlib import Path
from typing import Any

from distributed import Client
from distributed.comm.addressing import get_address_host_port

from clusters.errors import ClusterError
from clusters.settings import CONFIG_FILE, scheduler_settings

_CURE = f"start the scheduler and the workers after `export DASK_CONFIG={CONFIG_FILE}`"


def join(
    scheduler_file: str | os.PathLike[str] | None = None,
    address: str | None = None,
    timeout: float = 60,
    workers: int | None = None,
) -> Client:
    """Connect to a running cluster and return a client; closing it leaves the cluster running.

    Parameters
    ----------
    scheduler_file : path, optional
        What ``dask scheduler --scheduler-file`` writes. `join` waits for it: the scheduler may start later.
    address : str, optional
        Address of the scheduler, such as "tcp://10.0.0.1:8786". Exactly one of the two is given.
    timeout : float
        Seconds in all for the file, the connection and the workers.
    workers : int, optional
        The least number of workers that must be there, by default 1. Give the number the job asked for: a
        pipeline deals its data to the workers it finds when it starts.

    Returns
    -------
    distributed.Client

    Raises
    ------
    ValueError
        If an argument is not one of its allowed values, or not exactly one of the first two is given.
    ClusterError
        If the address names an unknown host, if the cluster is not there in time, or if its settings could make results
        wrong.

    Warns
    -----
    UserWarning
        If its settings cost time.
    """
    if (scheduler_file is None) == (address is None):
        raise ValueError("give exactly one of scheduler_file= and address=")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"timeout={timeout!r}: must be a positive number of seconds")
    needed = 1 if workers is None else workers
    if isinstance(needed, bool) or not isinstance(needed, numbers.Integral) or needed < 1:
        raise ValueError(f"workers={workers!r}: must be a whole number of at least 1, or None")

    deadline = time.monotonic() + timeout
    if scheduler_file is not None:
        address = _wait_for_address(Path(scheduler_file), deadline)
    _check_address(address, scheduler_file)
    client = _connect(address, deadline, from_file=scheduler_file)
    try:
        _wait_for_workers(client, int(needed), deadline)
        _check_settings(scheduler_settings(client))
        _check_threads(client)
    except BaseException:
        client.close()
        raise
    return client


def _wait_for_address(path: Path, deadline: float) -> str:
    while True:
        try:
            return json.loads(path.read_text())["address"]
        except FileNotFoundError:
            lack = "it does not exist"
        except (ValueError, KeyError, TypeError):  # created, and not yet written
            lack = "it does not hold the address of a scheduler"
        except OSError as error:
            raise ClusterError(f"scheduler file {path}: {error}") from error
        if time.monotonic() > deadline:
            raise ClusterError(
                f"scheduler file {path}: {lack}. Start `dask scheduler --scheduler-file {path}` on a file system"
                " that this machine shares, or give a longer timeout="
            )
        time.sleep(0.1)


def _check_address(address: Any, from_file: Any) -> None:
    """Refuse what cannot be the address of a scheduler: waiting would not help."""
    try:
        host, port = get_address_host_port(address)
        if not (host and 0 < port < 1 << 16):
            raise ValueError("it does not name a host" if not host else f"there is no port {port}")
    except (ValueError, TypeError) as error:
        found = "" if from_file is None else f" in {from_file}"
        raise ValueError(
            f"{address!r}{found} is not the address of a scheduler, such as tcp://10.0.0.1:8786: {error}"
        ) from None
    try:
        socket.getaddrinfo(host, port)
    except (OSError, UnicodeError) as error:
        raise ClusterError(f"no scheduler answers at {address}: the host {host!r} is not known ({error})") from None


def _connect(address: Any, deadline: float, from_file: Any) -> Client:
    # A client keeps its timeout for every connection it makes later. Only the first may be as short as what is
    # left of ours, so a client of its own waits for the scheduler.
    try:
        Client(address, timeout=_left(deadline), set_as_default=False).close()
    except (OSError, TimeoutError) as error:
        stale = f"; {from_file} may be left over from an earlier job" if from_file is not None else ""
        raise ClusterError(f"no scheduler answers at {address}: {error}{stale}") from error
    return Client(address)


def _wait_for_workers(client: Client, needed: int, deadline: float) -> None:
    try:
        client.wait_for_workers(needed, timeout=_left(deadline))
    except TimeoutError as error:
        raise ClusterError(
            f"{len(client.nthreads())} of {needed} workers came to {client.scheduler.address} in time; see the"
            " output of the workers' job steps, or give a longer timeout="
        ) from error


def _check_settings(found: dict[str, Any]) -> None:
    wrong = []
    if found["work-stealing"]:
        wrong.append("work-stealing is on, must be off")
    if found["allowed-failures"] != 0:
        wrong.append(f"allowed-failures is {found['allowed-failures']}, must be 0")
    if wrong:
        raise ClusterError(f"results could be wrong with this scheduler's settings: {'; '.join(wrong)}; {_CURE}")
    slow = []
    if found["worker-saturation"] != math.inf:
        slow.append(f"worker-saturation is {found['worker-saturation']}, should be inf")
    if found["no-workers-timeout"] is None:
        slow.append("no-workers-timeout is not set, so the loss of a worker can hold up a run forever")
    if slow:
        warnings.warn(f"scheduler settings: {'; '.join(slow)}; {_CURE}", stacklevel=3)


def _check_threads(client: Client) -> None:
    threads = {worker: n for worker, n in client.nthreads().items() if n != 1}
    if threads:
        worker, n = next(iter(threads.items()))
        raise ClusterError(
            f"results could be wrong: {len(threads)} workers have several threads ({worker}: {n}), and tasks change"
            " state in place; start the workers with `--nthreads 1`"
        )


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())

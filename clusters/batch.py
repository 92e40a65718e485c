"""Join a running cluster, such as the cluster of a batch job, whose script has started the scheduler and the workers.

Whoever started the cluster has chosen its settings. `join` checks, before any work, the settings that results depend
on: with work stealing, repeated tasks or several threads in a worker, tasks that change resident state in place would
run on the wrong worker, twice, or at the same time. If the cluster has no other users, `join` changes the settings
until its client ends (`clusters.borrowed`).
"""

from __future__ import annotations

import json
import math
import numbers
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client, Security
from distributed.comm.addressing import get_address_host_port
from distributed.deploy import Cluster

from clusters.borrowed import borrow, users_besides
from clusters.errors import ClusterError, first_cause
from clusters.network import has_certificate
from clusters.settings import CONFIG_FILE, from_file, scheduler_settings

SILENCE_SECONDS = 3.0  # a longer wait is announced on standard error
_CURE = f"start your own scheduler and workers (`--nthreads 1`) after `export DASK_CONFIG={CONFIG_FILE}`"


def join(
    scheduler_file: str | os.PathLike[str] | None = None,
    address: str | Cluster | None = None,
    timeout: float = 60,
    workers: int | None = None,
    security: Security | None = None,
) -> Client:
    """Connect to a running cluster and return a client; closing it leaves the cluster running.

    If the cluster has other settings than tilepath needs, and no other users, the settings are changed until the client
    ends. Workers then do one task at a time, whatever their number of threads. Other clients of this process may stay
    open.

    A wait of more than 3 seconds is announced by a line on standard error.

    Parameters
    ----------
    scheduler_file : path, optional
        The file that ``dask scheduler --scheduler-file`` writes. `join` waits for it, so the scheduler may start later.
    address : str or cluster of Dask, optional
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``, or a cluster object such as
        `distributed.LocalCluster`. Give either `scheduler_file` or `address`.
    timeout : float
        Most seconds to wait for the file, the connection and the workers together.
    workers : int, optional
        Number of workers to wait for, by default 1. Give the number that the job asked for: a pipeline distributes its
        data over the workers that are connected when it starts.
    security : distributed.Security, optional
        The certificate of the client for a cluster that uses TLS ("tls://..."), by default the certificate that
        Dask's configuration names (``distributed.comm.tls``).

    Returns
    -------
    distributed.Client

    Raises
    ------
    ValueError
        If an argument is not one of its allowed values, or if both or neither of `scheduler_file` and `address` are
        given.
    ClusterError
        If the address names an unknown host, if there is no certificate for a cluster that uses TLS, if the cluster
        does not answer in time, or if its settings could make results wrong and others use the cluster.

    Warns
    -----
    UserWarning
        If settings of the cluster make runs slower, and others use the cluster.

    Examples
    --------
    >>> with tilepath.join(address=client.cluster) as other:
    ...     len(other.nthreads())
    1
    """
    if (scheduler_file is None) == (address is None):
        raise ValueError("give exactly one of scheduler_file (--scheduler-file) and address (--scheduler)")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ValueError(f"timeout={timeout!r}: must be a positive number of seconds")
    needed = 1 if workers is None else workers
    if isinstance(needed, bool) or not isinstance(needed, numbers.Integral) or needed < 1:
        raise ValueError(f"workers={workers!r}: must be a whole number of at least 1, or None")

    if isinstance(address, Cluster):
        security, address = security or getattr(address, "security", None), address.scheduler_address
    deadline, limit = time.monotonic() + timeout, f"up to {timeout:g} s"
    if scheduler_file is not None:
        with _announced(f"Waiting for the scheduler file {scheduler_file}, {limit}"):
            address = _wait_for_address(Path(scheduler_file), deadline)
    _check_address(address, scheduler_file)
    if str(address).startswith("tls://") and not has_certificate(security):
        raise ClusterError(
            f"{address} uses TLS, and this client has no certificate; pass security=, or name the certificate in Dask's"
            " configuration (distributed.comm.tls, see docs/clusters.md)"
        )
    with _announced(f"Waiting for the scheduler at {address}, {limit}"):
        client = _connect(address, deadline, timeout, scheduler_file, security)
    try:
        with _announced(f"Waiting for workers: {len(client.nthreads())} of {needed} are there, {limit}"):
            _wait_for_workers(client, int(needed), deadline, timeout)
        _settle(client)
    except BaseException:
        client.close()
        raise
    return client


@contextmanager
def _announced(line: str) -> Iterator[None]:
    """Print `line` if the block takes longer than `SILENCE_SECONDS`."""
    timer = threading.Timer(SILENCE_SECONDS, lambda: print(line, file=sys.stderr, flush=True))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wait_for_address(path: Path, deadline: float) -> str:
    while True:
        try:
            return json.loads(path.read_text())["address"]
        except FileNotFoundError:
            lack = "it does not exist"
        except (ValueError, KeyError, TypeError):  # created, but not yet written
            lack = "it does not hold the address of a scheduler"
        except OSError as error:
            raise ClusterError(f"scheduler file {path}: {error}") from error
        if time.monotonic() > deadline:
            raise ClusterError(
                f"scheduler file {path}: {lack}. Start `dask scheduler --scheduler-file {path}` on a file system"
                " that this machine shares, or give a longer timeout (--timeout)"
            )
        time.sleep(0.1)


def _check_address(address: Any, from_file: Any) -> None:
    """Raise an error if `address` cannot be the address of a scheduler, so that `join` does not wait in vain."""
    if str(address).startswith("inproc://"):  # a cluster within this process has no port
        return
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


def _connect(address: Any, deadline: float, timeout: float, from_file: Any, security: Security | None) -> Client:
    # A client keeps its timeout for all later connections, but only the first connection is bound by our deadline.
    # So a first client waits for the scheduler and is closed again.
    try:
        Client(address, timeout=_left(deadline), set_as_default=False, security=security).close()
    except (OSError, TimeoutError) as error:
        cause = first_cause(error)
        refused = f" ({cause.strerror})" if isinstance(cause, OSError) and cause.strerror else ""
        stale = f"; {from_file} may be left over from an earlier job" if from_file is not None else ""
        certificate = " or the certificate" if address.startswith("tls://") else ""
        raise ClusterError(
            f"no scheduler answers at {address} within {timeout:g} s{refused}{stale}; correct the address{certificate},"
            " or give a longer timeout (--timeout)"
        ) from error
    except Exception as error:  # another kind of server has answered
        raise ClusterError(f"the server at {address} is not a Dask scheduler: {error}") from error
    return Client(address, security=security)


def _wait_for_workers(client: Client, needed: int, deadline: float, timeout: float) -> None:
    try:
        client.wait_for_workers(needed, timeout=_left(deadline))
    except TimeoutError as error:
        raise ClusterError(
            f"{len(client.nthreads())} of {needed} workers came to {client.scheduler.address} within {timeout:g} s;"
            " look at the workers' logs, ask for fewer (workers, --workers), or give a longer timeout (--timeout)"
        ) from error


def _settle(client: Client) -> None:
    """Change the settings of the cluster if this is necessary and the cluster has no other users."""
    found, threads = scheduler_settings(client), client.nthreads()
    wrong = [*_wrong(found), *_several(threads)]
    slow = _slow(found)
    if not (wrong or slow or found["borrowed"]):
        return
    users = users_besides(client)
    if not users:
        borrow(client, from_file()["scheduler"])
    elif wrong:
        raise ClusterError(
            f"results could be wrong on this cluster ({'; '.join(wrong)}), and its settings cannot be changed while "
            f"others use it ({users}); end the other programs, or {_CURE}"
        )
    elif slow:
        warnings.warn(f"scheduler settings: {'; '.join(slow)}; {_CURE}", stacklevel=4)


def _wrong(found: dict[str, Any]) -> Iterator[str]:
    if found["work-stealing"]:
        yield "work-stealing is on, must be off"
    if found["allowed-failures"] != 0:
        yield f"allowed-failures is {found['allowed-failures']}, must be 0"


def _slow(found: dict[str, Any]) -> list[str]:
    slow = []
    if found["worker-saturation"] != math.inf:
        slow.append(f"worker-saturation is {found['worker-saturation']}, should be inf")
    if found["no-workers-timeout"] is None:
        slow.append("no-workers-timeout is not set, so the loss of a worker can hold up a run forever")
    return slow


def _several(threads: dict[str, int]) -> Iterator[str]:
    several = {worker: n for worker, n in threads.items() if n != 1}
    if several:
        worker, n = next(iter(several.items()))
        have = "1 worker has" if len(several) == 1 else f"{len(several)} workers have"
        yield f"{have} several threads ({worker}: {n})"


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())

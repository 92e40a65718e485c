"""The Dask settings that pipelines rely on: one YAML file, for local clusters and for batch jobs.

Dask's configuration is global, and other clusters of the same process must keep their settings. Schedulers, nannies and
workers read most settings when they are constructed, so `start` puts the file in force only while it constructs a
cluster. Batch jobs name the same file in ``DASK_CONFIG``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import dask.config

#: Path of the settings file, for ``export DASK_CONFIG=...`` in a batch job.
CONFIG_FILE = Path(__file__).with_name("dask.yaml")


def in_force(environ: Mapping[str, object], processes: bool) -> AbstractContextManager[Any]:
    """Return a context manager that puts the settings in force while a cluster is constructed.

    Parameters
    ----------
    environ : mapping of str
        Environment variables of the worker processes. They are set before the processes are spawned, since libraries
        read their number of threads at import. A variable that is set in this process takes precedence.
    processes : bool
        Whether workers are processes. A worker within this process cannot be lost: it is silent only if the whole
        process was suspended or is short of processor time.

    Returns
    -------
    context manager
        Restores the configuration on exit.

    Notes
    -----
    A nanny keeps a reference to the configuration it was constructed with and passes it to a worker that it restarts
    later. So the whole tree is replaced by a merged copy. Single keys would be set in the shared tree and reset on
    exit, and the restarted worker would run with different settings.
    """
    spawn = {"nanny": {"pre-spawn-environ": dict(environ)}}
    whole = dask.config.merge(dask.config.get("distributed"), from_file(), spawn)
    if not processes:
        whole["scheduler"]["worker-ttl"] = None
    return dask.config.set({"distributed": whole})


def from_file() -> dict[str, Any]:
    """Return the settings of the file, the part "distributed"."""
    (ours,) = dask.config.collect_yaml([str(CONFIG_FILE)])
    settings: dict[str, Any] = ours["distributed"]
    return settings


def scheduler_settings(client: Any) -> dict[str, Any]:
    """Return the settings that the scheduler of `client` runs with, by their names in the YAML file.

    The scheduler itself is asked, since it may run in another process or on another machine.
    """

    # Defined here so that it is pickled by value: the scheduler need not be able to import this package.
    def read(dask_scheduler: Any) -> dict[str, Any]:
        return {
            "work-stealing": "stealing" in dask_scheduler.periodic_callbacks,
            "worker-saturation": dask_scheduler.WORKER_SATURATION,
            "allowed-failures": dask_scheduler.allowed_failures,
            "no-workers-timeout": dask_scheduler.no_workers_timeout,
            "borrowed": bool(getattr(dask_scheduler.plugins.get("tilepath-settings"), "connected", ())),
        }

    return client.run_on_scheduler(read)

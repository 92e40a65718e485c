"""The Dask settings that pipelines rely on: one YAML file, for local clusters and for batch jobs.

Schedulers, nannies and workers read most settings when they are constructed, so `start` puts them in force
only while it builds a cluster: Dask's configuration is global, and other clusters of the same process must
not change. Batch jobs name the same file in ``DASK_CONFIG``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import dask.config

#: The settings as a file, for ``export DASK_CONFIG=...`` in a batch job.
CONFIG_FILE = Path(__file__).with_name("dask.yaml")


def in_force(environ: Mapping[str, object]) -> AbstractContextManager[Any]:
    """Put the settings in force while clusters are constructed.

    Parameters
    ----------
    environ : mapping of str
        Environment of the worker processes, set before they are spawned: libraries read the number of their
        threads when they are first imported. A variable that is set in this process takes precedence.

    Returns
    -------
    context manager
        Restores the configuration on exit.

    Notes
    -----
    A nanny keeps a reference to the configuration it was made with and hands it to the worker it restarts
    later. So the whole tree is replaced by a merged copy: setting single keys would change the shared tree,
    undo that on exit, and the restarted worker would run with different settings.
    """
    (ours,) = dask.config.collect_yaml([str(CONFIG_FILE)])
    spawn = {"nanny": {"pre-spawn-environ": dict(environ)}}
    return dask.config.set(
        {"distributed": dask.config.merge(dask.config.get("distributed"), ours["distributed"], spawn)}
    )


def scheduler_settings(client: Any) -> dict[str, Any]:
    """What the scheduler of `client` runs with, by the names of the YAML file.

    Asked of the scheduler itself, since its configuration is that of another process, maybe another machine.
    """

    # Defined here so that it travels by value: the scheduler need not be able to import this package.
    def read(dask_scheduler: Any) -> dict[str, Any]:
        return {
            "work-stealing": "stealing" in dask_scheduler.extensions,
            "worker-saturation": dask_scheduler.WORKER_SATURATION,
            "allowed-failures": dask_scheduler.allowed_failures,
            "no-workers-timeout": dask_scheduler.no_workers_timeout,
        }

    return client.run_on_scheduler(read)

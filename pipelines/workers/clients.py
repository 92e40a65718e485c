"""The client as the first argument of a call: a call without a client says what is missing, and how to get a client.

Calls from several threads use a cluster one after the other: each keeps state on all workers, and removes other state.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from distributed import Client

CURE = "Start workers with `client = tilepath.start()`, or join a cluster with `tilepath.join(address=cluster)`"
T = TypeVar("T", bound=Callable[..., Any])
_TURNS: dict[str, threading.RLock] = {}  # by the address of a scheduler
_ran_in: int | None = None  # the process of the last call


def takes_client(run: T) -> T:
    """Have a function whose first argument is a Dask client say so if it is called without one.

    Most functions of the package take a path first, so the client is easily forgotten. Calls wait for each other.
    """

    @wraps(run)
    def with_client(*arguments: Any, **options: Any) -> Any:
        first = arguments[0] if arguments else options.get("client")
        if not isinstance(first, Client):
            given = f"got {_called(first)}" if arguments or "client" in options else "it is missing"
            raise TypeError(f"{run.__name__}: the first argument is the Dask client; {given}. {CURE}")
        if first.status in ("closing", "closed"):
            raise ValueError(f"{run.__name__}: the client is closed, as after its `with` block. {CURE}")
        global _ran_in
        if _ran_in not in (None, os.getpid()):
            raise ValueError(
                f"{run.__name__}: this process was forked from a process that had used Dask, and would wait forever; "
                "start processes by multiprocessing.get_context('spawn')"
            )
        _ran_in = os.getpid()
        with _TURNS.setdefault(first.scheduler.address, threading.RLock()):
            return run(*arguments, **options)

    return with_client  # type: ignore[return-value]


def _called(given: Any) -> str:
    """Return text and paths as they are, which the user recognizes, and other objects by their class."""
    return repr(given) if isinstance(given, str) or given is None else f"a {type(given).__name__}"

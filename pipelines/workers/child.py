"""Call a function in a child process, for code that holds the interpreter's lock for minutes.

While a thread holds the lock, a worker neither answers the scheduler nor notices that its task is no longer wanted. The
child is not part of the terminal's job, so Ctrl-C reaches only the parent, which kills the child. If the parent itself
is killed, the system kills the child.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

POLL_SECONDS = 0.2  # seconds between two checks that the result is still wanted
_BEGIN = "from pipelines.workers.child import answer; answer()"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux's prctl

T = TypeVar("T")


def in_child(wanted: Callable[[], object], call: Callable[..., T], *arguments: Any) -> T:
    """Return ``call(*arguments)``, called in a child process.

    Parameters
    ----------
    wanted : called repeatedly; if it raises an error, the child is killed and the error is raised here
    call, arguments : they and the result can be pickled

    Raises
    ------
    ChildProcessError
        The child was killed.
    Exception
        Any error that `call` raises.
    """
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", _BEGIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    try:
        assert child.stdin is not None
        with suppress(BrokenPipeError):  # the child was killed; its status says so below
            pickle.dump((os.getpid(), call, arguments), child.stdin)
            child.stdin.flush()
        while True:
            try:
                answered, _ = child.communicate(timeout=POLL_SECONDS)
                break
            except subprocess.TimeoutExpired:
                wanted()
    finally:
        child.kill()
        child.communicate()
    if child.returncode:
        how = f"by signal {-child.returncode}" if child.returncode < 0 else f"with status {child.returncode}"
        raise ChildProcessError(
            f"the process that called {call.__name__} ended {how}; if the memory was full, free some and run again"
        )
    result, error = pickle.loads(answered)
    if error is not None:
        raise error
    return result


def answer() -> None:
    """Call the function that standard input has, in a child process, and write its result to standard output."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    parent, call, arguments = pickle.load(sys.stdin.buffer)
    if os.getppid() != parent:  # it ended before this process asked to die with it
        os._exit(1)
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever libraries print does not mix with the result
    found: tuple[Any, Exception | None]
    try:
        found = call(*arguments), None
    except Exception as error:
        found = None, error
    with open(answers, "wb") as out:
        pickle.dump(found, out)

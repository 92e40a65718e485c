"""Ctrl-C on the command line, and the stop button of a notebook.

A run ends at its next boundary with everything committed, or at once the second time. A *boundary* is where a run can
commit: after a stage, after an epoch, after a chunk of rows. While a run is under way (`boundaries`, which
`attempts.Run` enters) the first Ctrl-C is only noted, and the run stops at its next boundary (`stop_if_asked`). The
second Ctrl-C, and any Ctrl-C outside a run, raises at once, as in any program.

The command line installs the handler (`handling`), and a run in a notebook does so. In other programs, Ctrl-C raises
KeyboardInterrupt at once; the store keeps its last commit, and the same call with ``resume=True`` resumes from there.
To stop at a boundary there too, wrap the call: ``with pipelines.workers.interruption.handling(): ...``; it then raises
`Interrupted`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from pipelines.workers.notebook import in_notebook


class Interrupted(KeyboardInterrupt):
    """A run was interrupted: its store keeps the last commit, and ``resume`` continues from there."""

    def __str__(self) -> str:
        return "The run was stopped. Its store keeps the last commit; the same call with resume=True continues from it."

    def _render_traceback_(self) -> list[str]:
        return [str(self)]  # all that a notebook shows


_runs = 0  # number of runs under way
_asked = False  # whether runs should end at their next boundary


@contextmanager
def handling() -> Iterator[None]:
    """Let runs end at a boundary on Ctrl-C, unless Ctrl-C is ignored or the program has its own handler."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, _on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def boundaries() -> Iterator[None]:
    """Mark that a run is under way, which calls `stop_if_asked` wherever everything is committed."""
    global _runs, _asked
    _runs += 1
    try:
        with handling() if in_notebook() else nullcontext():
            yield
    finally:
        _runs -= 1
        _asked = _asked and _runs > 0


def asked() -> bool:
    """Return whether the run should end at its next boundary."""
    return _asked


def stop_if_asked() -> None:
    """Raise Interrupted if the run should end: called where everything is committed."""
    if _asked:
        raise Interrupted


def _on_interrupt(_number: int, _frame: Any) -> None:
    global _asked
    if not _runs:
        raise KeyboardInterrupt
    if _asked:
        raise Interrupted
    _asked = True
    if in_notebook():  # whose streams have locks that one thread may take twice
        print("Stopping at the next commit; the stop button again stops at once.", flush=True)
    elif os.isatty(2):  # os.write, as the handler may have interrupted a print
        os.write(2, b"\nStopping at the next commit; Ctrl-C again stops at once.\n")

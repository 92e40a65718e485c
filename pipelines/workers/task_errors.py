"""What a failed task and a lost worker leave behind: errors that hold memory, and records in Dask's logs."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable
from typing import Any

from distributed.comm import CommClosedError

KEYS = "-tilepath-"  # part of the keys of all tasks
# The filter of a logger does not hold for its children.
_LOGGERS = (
    "distributed.worker",
    "distributed.worker.state_machine",
    "distributed.scheduler",
    "distributed.nanny",
    "asyncio",
)
# How Dask's log records about failed tasks begin; their first argument is the key.
_OF_TASKS = ("Compute Failed", "Task %s marked as failed because")
# How Dask's log records about lost workers, and about workers that end slowly, begin.
_OF_LOSSES = (
    "Restarting worker",
    "Worker process still alive after",
    "Worker stream died during communication",
    "failed during get data with",
    "broadcast to ",
    "Couldn't gather keys",
    "Removing worker ",
)


def log_less() -> None:
    """Filter Dask's logs in this process by `_worth_logging`; a second call has no effect."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_worth_logging)


def _worth_logging(record: logging.LogRecord) -> bool:
    """Return False for log records of failed tasks and lost workers.

    The driver raises the error of a failed task, and says that it resumes after the loss of a worker.
    """
    text = str(record.msg)
    if text.startswith(_OF_TASKS):
        return not (isinstance(record.args, tuple) and KEYS in str(record.args[0]))
    if text.startswith("Async instruction for"):  # the worker of the task closed
        return KEYS not in text
    if "exception was never retrieved" in text:  # comes when a connection to a lost worker is given up
        return not (record.exc_info and isinstance(record.exc_info[1], TimeoutError | CommClosedError))
    return not text.startswith(_OF_LOSSES)


def without_locals(task: Callable[..., Any], *args: Any) -> Any:
    """Call a task; if it fails, clear the local variables of all frames in the traceback.

    A worker keeps the error of a failed task, with its traceback, in a reference cycle until some garbage collection.
    The frames refer to the state that the task worked on. That state may fill the memory, and would outlive its
    attempt.

    A cause that cannot be pickled, as some of Zarr's errors, is dropped. Dask would send the text of the error alone.
    """
    try:
        return task(*args)
    except BaseException as error:
        link: BaseException | None = error
        while link is not None:
            traceback.clear_frames(link.__traceback__)
            cause = link.__cause__ or link.__context__
            if cause is not None and not _can_be_pickled(cause):
                link.__cause__ = link.__context__ = cause = None
            link = cause
        raise


def _can_be_pickled(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its class raises
        return False
    return True

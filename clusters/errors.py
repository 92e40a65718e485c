"""`ClusterError`, and what errors of Dask mean."""

from __future__ import annotations

from distributed.comm import CommClosedError


class ClusterError(RuntimeError):
    """A cluster cannot be started or joined as asked; the message names the cause and the cure."""


def first_cause(error: BaseException) -> BaseException:
    """Return the innermost cause of an error that Dask wrapped in further errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def lost_connection(error: BaseException) -> str | None:
    """Return the message of an error of Dask about a lost connection, with the cure; None for any other error."""
    if not isinstance(error, CommClosedError):
        return None
    cure = "look at the logs of scheduler and workers, and run again, with resume (--resume) if the run had begun"
    return f"the connection to the cluster was lost ({error}); {cure}"

"""`ClusterError`, and the first cause of an error of Dask, for starting and joining clusters."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """A cluster cannot be started or joined as asked; the message names the cause and the cure."""


def first_cause(error: BaseException) -> BaseException:
    """Return the innermost cause of an error that Dask wrapped in further errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error

"""The error of this package, shared by starting and joining."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """A cluster cannot be started or joined as asked; the message says what is missing and the cure."""

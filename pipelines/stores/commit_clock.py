"""When the next commit is due: commits, which wait for the disk, may take only a small share of the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

COMMIT_SHARE = 0.05  # largest share of the time that commits may take


class CommitClock:
    """Measures commits, and says when the next one is due.

    Parameters
    ----------
    least : least seconds between two commits
    share : largest share of the time that commits may take

    Attributes
    ----------
    failed : whether the last commit raised an error; the disk may have lost bytes, so no further commit may follow
    """

    def __init__(self, least: float = 0.0, share: float = COMMIT_SHARE):
        self._least, self._share = least, share
        self._cost = 0.0  # seconds that the last commit took
        self.failed = False
        self.restart()

    def restart(self) -> None:
        """Begin to wait for the next commit."""
        self._last = time.monotonic()

    def due(self, soon: float = 0.0) -> bool:
        """Return whether the last commit will be long enough ago in `soon` seconds."""
        return time.monotonic() + soon - self._last > max(self._least, self._cost / self._share)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Time a commit."""
        begin, self.failed = time.monotonic(), True
        yield
        self.failed = False
        self.restart()
        self._cost = self._last - begin

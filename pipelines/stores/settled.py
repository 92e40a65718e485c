"""Read a store while another process commits to it or replaces it: the old or the new state, never a mixture.

A commit replaces the file of the attributes, and then deletes the files that only the old state needed. A reader that
reads the attributes before a commit, and the arrays after the commit, would take a sound store for damaged. So an error
counts only if the attributes are still the same after the read; otherwise the store is read again.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pipelines.stores.errors import StoreError, read_errors

READS = 10  # reading the record of a store takes far less time than a commit
LONG_READS = 3  # reading all data may take longer than the time between two commits
PAUSE = 0.01  # seconds before the next read

T = TypeVar("T")


def settled(path: str | os.PathLike[str], read: Callable[[], T], *, several: bool = False, long: bool = False) -> T:
    """Return the result of `read`, which reads the store at `path`. Repeat a failed read if the attributes changed.

    Parameters
    ----------
    several : whether `read` reads the attributes several times; then it is repeated if they changed meanwhile. If they
        change during each of several reads, as in a run that commits all the time, the last result is returned.
    long : whether `read` reads all data

    Raises
    ------
    StoreError
        Each of several reads failed, while the attributes changed; or a replacement of the store was killed.
    Exception
        An error of `read` while the attributes did not change.
    """
    failed: Exception | None = None
    for _ in range(LONG_READS if long else READS):
        before, failed = _attributes(path), None
        try:
            found = read()
            if not several or _attributes(path) == before:
                return found
        except (StoreError, OSError) as error:
            if _attributes(path) == before and not _moved_aside(path):
                raise
            failed = error
            time.sleep(PAUSE)
    if failed is None:
        return found
    aside = _moved_aside(path)
    if aside:
        raise StoreError(
            f"{path}: was moved to {aside[0]} by a run that was killed while it replaced the store; repeat the command "
            f"that writes {path}, or rename {aside[0]}"
        ) from failed
    raise StoreError(f"{path}: another run changes it all the time; read it when that run has ended") from failed


def _attributes(path: str | os.PathLike[str]) -> bytes | None:
    """Return the file of the attributes; None if there is none."""
    file = Path(path, "zarr.json")
    try:
        with read_errors(file):
            return file.read_bytes() if file.is_file() else None  # opening a pipe would wait for a writer
    except FileNotFoundError:
        return None


def _moved_aside(path: str | os.PathLike[str]) -> list[str]:
    """Return the hidden stores that were at `path`, which is absent between the two renames of a replacement."""
    if os.path.lexists(path):
        return []
    folder, name = os.path.split(os.path.realpath(path))
    return glob.glob(f".{glob.escape(name)}.*.replaced", root_dir=folder)

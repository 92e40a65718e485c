"""Output files outside stores, which appear only when complete and replace an existing file only on request."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.stores.schema import StoreError, disk_errors


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written to `path`.

    Raises
    ------
    FileNotFoundError
        The folder of `path` does not exist.
    StoreError
        The folder is inside a store, or is not writable.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}; make it, or choose another place")
    real = folder.resolve()
    for place in (real, *real.parents):
        if (place / "zarr.json").is_file():
            raise StoreError(f"{path} lies within the store {place}; choose another place")
    with disk_errors(path):
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, "the folder is read-only, or lacks the permission")


def check_free(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Check as `check_folder`, and raise FileExistsError if `path` exists and `overwrite` is False."""
    check_folder(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; choose another name")
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(f"{path} exists already; choose another name or pass overwrite (--overwrite)")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which is renamed to `path` at the end and removed after an error."""
    place = Path(path)
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        with disk_errors(path):
            yield partial
            os.replace(partial, place)
    finally:
        partial.unlink(missing_ok=True)

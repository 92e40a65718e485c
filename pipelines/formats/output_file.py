"""Files that are written whole or not at all, and do not replace another one unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_folder(path: str | os.PathLike[str]) -> None:
    """FileNotFoundError if there is no folder for `path`."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}; make it, or choose another place")


def check_free(path: str | os.PathLike[str], overwrite: bool) -> None:
    """As `check_folder`; and FileExistsError if `path` exists, and `overwrite` does not allow replacing it."""
    check_folder(path)
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(f"{path} exists already; choose another name or pass overwrite (--overwrite)")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place in the end; nothing is left of it after an error."""
    place = Path(path)
    partial = place.with_name(f".{place.name}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, place)
    finally:
        partial.unlink(missing_ok=True)

"""The error of stores, and errors of the system, such as a full disk, with their cures.

A chunk that cannot be read because the process has too many open files, or because the disk failed, is not damaged. If
such an error were reported as damage, users would delete a sound store. So code that turns errors of reading into a
`StoreError` first calls `raise_if_of_system`.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuops.memory import size

AGAIN = "run again, with resume (--resume) if the run had begun"
_FREE_SPACE = f"free some space and {AGAIN}"
FULL = errno.ENOSPC, errno.EDQUOT
FORBIDDEN = errno.EACCES, errno.EPERM, errno.EROFS
TOO_MANY = errno.EMFILE, errno.ENFILE
FAILED = errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO, errno.ENODEV, errno.ENXIO


class StoreError(ValueError):
    """A store is missing, not tilepath's, damaged, in the way or not writable; the message names it and the cure."""


class DiskFullError(StoreError):
    """The disk of the output is full.

    Parameters
    ----------
    path : the output
    needs : bytes of the disk that the run stated beforehand; 0 if it stated none
    """

    def __init__(self, path: str, needs: int = 0):
        super().__init__(path, needs)  # the error comes from a worker as a pickle
        self.path, self.needs = path, needs

    def __str__(self) -> str:
        sizes = ""
        if self.needs:
            folder = next((each for each in Path(os.path.abspath(self.path)).parents if each.exists()), Path("/"))
            sizes = f" ({size(shutil.disk_usage(folder).free)} free; the run takes up to {size(self.needs)} in all)"
        return f"{self.path}: the disk is full{sizes}; {_FREE_SPACE}, or write elsewhere"


@contextmanager
def disk_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system about the output `path` into a StoreError that names the cure."""
    try:
        yield
    except OSError as error:
        if error.errno in FORBIDDEN or _of_folder(error, path):
            raise StoreError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
        ours = error.filename is None or _of_output(error, path)
        if ours and isinstance(error, FileNotFoundError):
            raise StoreError(
                f"{path}: a part was removed while it was written; remove the rest, and begin again"
            ) from error
        if ours and error.errno in FULL:
            raise DiskFullError(os.fspath(path)) from error
        if ours and _cure(error):
            raise StoreError(f"{path}: {_cure(error)}, or write elsewhere") from error
        raise


def explained(error: Exception) -> str | None:
    """Return the message of an error of the system or of a name, with the cure; None for any other error."""
    if isinstance(error, UnicodeEncodeError) and error.encoding == "utf-8":
        return f"{error.object}: the name is not UTF-8; choose another"
    if isinstance(error, MemoryError):
        return f"out of memory ({' '.join(str(error).split())}); end other programs, or use a machine with more memory"
    if not isinstance(error, OSError):
        return None
    if error.errno in FORBIDDEN:
        cure = f"access is refused ({error.strerror}); correct the permissions"
    else:
        cure = _cure(error)
    return f"{os.fsdecode(error.filename)}: {cure}" if cure and error.filename is not None else None


def raise_if_of_system(error: BaseException, path: str | os.PathLike[str]) -> None:
    """Raise `error` if it is an error of the system; add `path` if it names no file.

    An error about the contents or the absence of a file is no such error. Raises ValueError if `path` is a pipe.
    """
    if isinstance(error, OSError) and os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise ValueError(f"{path}: is a pipe, which cannot be read twice; save it as a file, and name the file")
    if isinstance(error, OSError) and (error.errno in FORBIDDEN or _cure(error)):
        raise error if error.filename is not None else OSError(error.errno, error.strerror, os.fspath(path))


@contextmanager
def read_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the name of the file `path` to errors of the system in reading it."""
    try:
        yield
    except OSError as error:
        raise_if_of_system(error, path)
        raise


def _cure(error: OSError) -> str:
    """Return what happened and what to do, or an empty text."""
    if error.errno in FULL:
        return f"the disk is full; {_FREE_SPACE}"
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long; choose a shorter one"
    if error.errno == errno.EFBIG:
        return f"a file is larger than the disk or the user's limit allows; raise the limit (ulimit -f) and {AGAIN}"
    if error.errno in TOO_MANY:
        return f"too many files are open; raise the limit (ulimit -n) and {AGAIN}"
    if error.errno in FAILED:
        return f"the disk failed ({error.strerror}); look at the log of the system (dmesg) and {AGAIN}"
    return ""


def _of_output(error: OSError, path: str | os.PathLike[str]) -> bool:
    """Return whether an error is about `path`, a file in it, its folder, or what becomes `path`."""
    place, fault = Path(os.path.realpath(path)), Path(os.path.realpath(os.fsdecode(error.filename)))
    partial = f".{place.name}."
    return fault == place.parent or any(
        each == place or (each.parent == place.parent and each.name.startswith(partial))
        for each in (fault, *fault.parents)
    )


def _of_folder(error: OSError, path: str | os.PathLike[str]) -> bool:
    """Return whether an error is about a folder that holds `path`, or about the partial file that becomes `path`."""
    if error.filename is None or _cure(error):
        return False
    place, fault = Path(os.path.realpath(path)), Path(os.fsdecode(error.filename))
    partial = fault.parent == place.parent and fault.name.startswith(f".{place.name}.")
    return partial or fault in place.parents

"""Make files and their names durable: a power cut does not undo them.

After `os.fsync` of a file, its bytes are durable. Its name is not: the folder that holds the name needs an `os.fsync`
of its own. Without either, a file system may keep the changes of a program in any order, or half of a write. Stores and
output files keep these rules:

1. The process that writes a file of a commit makes its bytes durable before the writing function returns, hence before
   a worker reports that its task is done. So on a file server, each worker syncs its own bytes.
2. Then the driver makes the names durable, up to the folder of the store, and replaces the file of the attributes,
   which names the commit. At last it makes this replacement durable, before it deletes or overwrites anything that the
   previous commit needed.
3. A store or file that is written in one go becomes durable as a whole before it is renamed to its final name.

Nothing else in the project calls `fsync`. An error of `fsync` is raised to the caller, and the commit is not made: the
bytes may be lost even if a second `fsync` succeeds. `fsync` is called for each file and not for the whole file system
(`syncfs`), which would also wait for the files of other programs and could not say whose writes failed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from zarr.storage import LocalStore

TOGETHER = 16  # files whose bytes are made durable at a time: the file system then shares the work among them


def sync_file(file: IO[Any]) -> None:
    """Make the bytes of an open file durable."""
    file.flush()
    os.fsync(file.fileno())


def sync_names(folder: str | os.PathLike[str]) -> None:
    """Make the names in a folder durable: new names, and the absence of removed names."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # this file system has no such call for folders
            raise
    finally:
        os.close(number)


def sync_tree(path: str | os.PathLike[str]) -> None:
    """Make a folder durable, with all files and folders in it; its own name is left to the caller."""
    found = list(os.walk(path))
    with ThreadPoolExecutor(TOGETHER) as pool:
        files = (os.path.join(folder, name) for folder, _, names in found for name in names)
        for _ in pool.map(_sync_bytes, files):
            pass
        for _ in pool.map(sync_names, (folder for folder, *_ in found)):
            pass


def sync_names_above(path: str | os.PathLike[str], keys: Iterable[str]) -> None:
    """Make the names of files durable; `keys` are their paths, relative to the folder `path`, which keeps its name."""
    folders = {os.path.dirname(key) for key in keys}
    above = {parent for folder in folders for parent in Path(folder, "any").parents}  # with ".", the folder itself
    with ThreadPoolExecutor(TOGETHER) as pool:
        for _ in pool.map(lambda folder: sync_names(Path(path, folder)), above):
            pass


def replace(new: str | os.PathLike[str], place: str | os.PathLike[str]) -> None:
    """Rename a file to `place`, in the same folder; its bytes become durable before its name, and then the name."""
    _sync_bytes(new)
    os.replace(new, place)
    sync_names(os.path.dirname(os.path.abspath(place)))


def make_folders(path: str | os.PathLike[str]) -> None:
    """Make a folder and the folders above it that are missing; their names are durable."""
    place = Path(os.path.abspath(path))
    missing = [folder for folder in (place, *place.parents) if not folder.exists()]
    os.makedirs(place, exist_ok=True)
    for folder in missing:
        sync_names(folder.parent)


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Rename a folder, then delete it, so that a half-deleted folder is never taken for a complete one."""
    gone = f"{os.fspath(path)}.gone"
    delete_tree(gone, ignore_errors=True)
    if os.path.isdir(path):
        os.rename(path, gone)
        sync_names(os.path.dirname(gone))
        delete_tree(gone, ignore_errors=True)


def delete_tree(path: str | os.PathLike[str], *, ignore_errors: bool = False) -> None:
    """Delete a folder with all files and folders in it, like `shutil.rmtree`, but several files at a time.

    Some file systems wait for the disk at each file.
    """
    if not os.path.islink(path):
        files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        with ThreadPoolExecutor(TOGETHER) as pool:
            for _ in pool.map(_delete_file, files):
                pass
    shutil.rmtree(path, ignore_errors=ignore_errors)  # also reports the files that could not be deleted


def _delete_file(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _sync_bytes(path: str | os.PathLike[str]) -> None:
    with open(path, "rb") as file:
        sync_file(file)


class DurableStore(LocalStore):
    """A store of Zarr on the local file system: the bytes of a file are durable before the file gets its name."""

    async def set(self, key: str, value: Any) -> None:
        await asyncio.to_thread(self._write, key, value)

    def set_sync(self, key: str, value: Any) -> None:
        self._write(key, value)

    def _write(self, key: str, value: Any) -> None:
        self._check_writable()
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")  # `schema.leftovers` finds this suffix
        try:
            with partial.open("wb") as file:
                file.write(value.to_bytes())
                sync_file(file)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

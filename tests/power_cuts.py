"""Power cuts played back: the file operations of a run are recorded, and replayed as far as a file system kept them.

`recorded` notes what this process does to the files in a folder: names that come, change and go; bytes that are
written; and `fsync` of files and folders. `Recording.after_cut` makes the folder as a power cut may leave it after any
number of these operations. What `fsync` made durable is there. Of everything else, a file system may have kept any
part, in any order, as ext4 and XFS may: names without bytes, bytes without names, a write up to some byte, or zeros in
place of the bytes that were written. `WAYS` are the orders that real file systems prefer, and `by_chance` any order.

What C libraries write without Python's `open` (Arrow, `numpy.save`) is noted when the file is synced or renamed.
"""

import builtins
import contextlib
import io
import linecache
import os
import shutil
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

FOLDER = 0  # the number of the recorded folder; every file and folder in it has a number


class Write(NamedTuple):
    file: int
    at: int
    data: bytes


class Truncate(NamedTuple):
    file: int
    size: int


class Names(NamedTuple):
    """A change of names in folders: `gone` and `new` are (folder, name, file, whether it is a folder), or None."""

    gone: tuple | None
    new: tuple | None


class Sync(NamedTuple):
    """An `fsync`; `by` says which line of the project called it."""

    file: int
    by: str


class Promise(NamedTuple):
    """A test notes that the program promised something, which a power cut must not undo."""

    what: object


@dataclass(frozen=True)
class Recording:
    """The operations on a folder, and the durable files and names before them."""

    folder: Path
    files: dict  # bytes by number; None for folders
    names: dict  # number by (folder, name)
    log: list

    def without(self, by):
        """Return the recording of a program that lacks one call of `fsync`."""
        return replace(self, log=[one for one in self.log if not (isinstance(one, Sync) and one.by == by)])

    def callers(self):
        """Return which lines called `fsync`."""
        return {one.by for one in self.log if isinstance(one, Sync)}

    def after_cut(self, count, keeps):
        """Make the folder as it may be after a power cut that follows `count` operations.

        `keeps` is a function of an operation that was not made durable. It says whether the operation survives: for a
        write, returns the bytes that survive, or None.
        """
        files, names = self.state(count, keeps)
        shutil.rmtree(self.folder, ignore_errors=True)
        places = {FOLDER: self.folder}
        self.folder.mkdir()
        left = dict(names)
        while here := {key: number for key, number in left.items() if key[0] in places}:
            for (folder, name), number in here.items():
                place = places[folder] / name
                del left[folder, name]
                if files[number] is None:
                    place.mkdir()
                    places[number] = place
                else:
                    place.write_bytes(files[number])

    def state(self, count, keeps):
        """Return the files, and the names, that are left after a power cut (`after_cut`)."""
        log, synced = self.log[:count], {}
        for at, one in enumerate(log):
            if isinstance(one, Sync):
                synced[one.file] = at
        disk = _Disk(self.files, self.names)
        for at, one in enumerate(log):
            if not isinstance(one, Write | Truncate | Names):
                continue
            if isinstance(one, Names):
                parts = [part for part in (one.gone, one.new) if part is not None]
                durable = all(synced.get(folder, -1) > at for folder, *_ in parts)
                disk.meet(parts[-1])
            else:
                durable = synced.get(one.file, -1) > at
            disk.apply(one, (one.data if isinstance(one, Write) else True) if durable else keeps(one))
        return disk.files, disk.names


class _Disk:
    """Files and names to which operations are applied."""

    def __init__(self, files, names):
        self.files = {number: None if data is None else bytearray(data) for number, data in files.items()}
        self.names = dict(names)

    def meet(self, part):
        """Note that there is a file or a folder of this number, with or without a name."""
        _, _, number, is_folder = part
        self.files.setdefault(number, None if is_folder else bytearray())

    def apply(self, one, kept):
        """Apply an operation, or as much of it as is `kept`."""
        if kept is None or kept is False or kept == b"":
            return
        match one:
            case Write(number, at, _):
                file = self.files[number]
                file.extend(bytes(max(0, at - len(file))))
                file[at : at + len(kept)] = kept
            case Truncate(number, size):
                self.files[number] = self.files[number][:size].ljust(size, b"\0")
            case Names(gone, new):
                if gone is not None and new is not None:  # the file moves, also if an earlier move was lost
                    self.names = {key: number for key, number in self.names.items() if number != new[2]}
                elif gone is not None and self.names.get(gone[:2]) == gone[2]:
                    del self.names[gone[:2]]
                if new is not None:
                    self.names[new[:2]] = new[2]


def _all(one):
    return one.data if isinstance(one, Write) else True


def _nothing(one):
    return None


def _names_only(one):
    return None if isinstance(one, Write) else True


def _zeros(one):
    return bytes(len(one.data)) if isinstance(one, Write) else True


def _bytes_only(one):
    return one.data if isinstance(one, Write) else not isinstance(one, Names)


def _deletions(one):
    return None if isinstance(one, Write) else isinstance(one, Names) and one.new is None


# Of what is not durable: everything survives, as after a kill; nothing; names but no bytes; names with zeros in place
# of bytes; bytes but no names; only names that are gone.
WAYS = {
    "all": _all,
    "nothing": _nothing,
    "names": _names_only,
    "zeros": _zeros,
    "bytes": _bytes_only,
    "deletions": _deletions,
}


def by_chance(rng):
    """Let each operation survive by chance, and of a write all bytes, the first ones, zeros or none."""

    def keeps(one):
        if not isinstance(one, Write):
            return bool(rng.integers(2))
        first = one.data[: rng.integers(len(one.data) + 1)]
        kinds = one.data, first, first.ljust(len(one.data), b"\0"), bytes(len(one.data)), None
        return kinds[rng.integers(len(kinds))]

    return keeps


class _Recorder:
    def __init__(self, folder):
        self.folder, self.lock, self.log = Path(folder), threading.RLock(), []
        self.number, self.files, self.names = FOLDER, {FOLDER: None}, {}
        for above, folders, files in os.walk(folder):
            for name in folders + files:
                place = Path(above, name)
                self.number += 1
                self.names[self._number(above), name] = self.number
                self.files[self.number] = None if name in folders else bytearray(place.read_bytes())
        before = {number: data if data is None else bytes(data) for number, data in self.files.items()}
        self.recording = Recording(self.folder, before, dict(self.names), self.log)

    def inside(self, path, dir_fd=None):
        """The path, if it lies in the folder; else None."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        elif dir_fd is not None:
            path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
        path = os.path.abspath(os.fsdecode(path))
        return path if path == str(self.folder) or path.startswith(f"{self.folder}/") else None

    def _number(self, path):
        number = FOLDER
        for name in Path(path).relative_to(self.folder).parts:
            number = self.names.get((number, name))
        return number

    def named(self, path, folder=False):
        """Note that a file or folder has this name, if that is new; returns its number."""
        number = self._number(path)
        if number is None:
            self.number = number = self.number + 1
            self.files[number] = None if folder else bytearray()
            self.changed(None, path, number)
        return number

    def changed(self, gone, new, number=None):
        """Note a change of names; `number` is the file of a new name."""
        places = [path and (self._number(os.path.dirname(path)), os.path.basename(path)) for path in (gone, new)]
        if gone is not None:
            number = self.names.pop(places[0])
        if new is not None:
            self.names[places[1]] = number
        is_folder = self.files[number] is None
        self.log.append(Names(*(None if place is None else (*place, number, is_folder) for place in places)))

    def wrote(self, number, at, data):
        data, file = bytes(data), self.files[number]
        file.extend(bytes(max(0, at - len(file))))
        file[at : at + len(data)] = data
        self.log.append(Write(number, at, data))

    def truncated(self, number, size):
        self.files[number] = self.files[number][:size].ljust(size, b"\0")
        self.log.append(Truncate(number, size))

    def seen(self, path):
        """Note the bytes that were written past Python; returns the number of the file."""
        number = self.named(path, os.path.isdir(path))
        if self.files[number] is not None:
            with _real.open(path, "rb") as file:
                found = file.read()
            old = bytes(self.files[number])
            if found != old:
                if len(found) < len(old):
                    self.truncated(number, len(found))
                same = next(
                    (at for at, pair in enumerate(zip(old, found, strict=False)) if pair[0] != pair[1]), len(old)
                )
                if same < len(found):
                    self.wrote(number, same, found[same:])
        return number


class _File(io.FileIO):
    """A file whose writes are noted."""

    def __init__(self, recorder, path, mode):
        self.recorder = recorder
        with recorder.lock:
            super().__init__(path, mode)
            self.number = recorder.named(path)
            if mode.startswith("w") and recorder.files[self.number]:
                recorder.truncated(self.number, 0)

    def write(self, data):
        with self.recorder.lock:
            view = memoryview(data).cast("B")
            at = os.fstat(self.fileno()).st_size if "a" in self.mode else self.tell()
            count = super().write(view)
            self.recorder.wrote(self.number, at, view[:count])
            return count

    def truncate(self, size=None):
        with self.recorder.lock:
            size = super().truncate(size)
            self.recorder.truncated(self.number, size)
            return size


class _Real(NamedTuple):
    open: object
    os: dict


CALLS = "open fsync pwritev rename replace unlink remove mkdir rmdir link truncate".split()
_real = _Real(open, {name: getattr(os, name) for name in CALLS})


def _caller():
    """Which line calls `fsync`: the functions of `durable`, and the module and line that call them, or "threads"."""
    frame, names = sys._getframe(2), []
    while (file := frame.f_code.co_filename).endswith("/stores/durable.py"):
        names.append(frame.f_code.co_name.strip("_"))
        frame = frame.f_back
    if "/concurrent/futures/" in file:
        return " < ".join([*names, "threads"])
    return f"{' < '.join(names)} < {Path(file).stem}: {linecache.getline(file, frame.f_lineno).strip()}"


class _Calls:
    """The calls of the system, which a recorder notes."""

    def __init__(self, recorder):
        self.it = recorder

    def open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        path = None if isinstance(file, int) or not set(mode) & set("wax+") else self.it.inside(file)
        if path is None:
            return _real.open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = _File(self.it, path, mode.replace("b", "").replace("t", ""))
        if buffering == 0:
            return raw
        binary = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

    def os_open(self, path, flags, mode=0o777, *, dir_fd=None):
        with self.it.lock:
            number = _real.os["open"](path, flags, mode, dir_fd=dir_fd)
            place = self.it.inside(path, dir_fd)
            if place is not None and flags & os.O_CREAT:
                self.it.named(place)
            return number

    def pwritev(self, file, data, at):
        with self.it.lock:
            count = _real.os["pwritev"](file, data, at)
            if (place := self.it.inside(file)) is not None:
                self.it.wrote(self.it.named(place), at, b"".join(data)[:count])
            return count

    def fsync(self, file):
        with self.it.lock:
            if (place := self.it.inside(file)) is not None:
                self.it.log.append(Sync(self.it.seen(place), _caller()))

    def rename(self, old, new):
        with self.it.lock:
            source, place = self.it.inside(old), self.it.inside(new)
            assert (source is None) == (place is None)
            if source is not None:
                self.it.seen(source)
            _real.os["replace"](old, new)
            if source is not None:
                self.it.changed(source, place)

    def unlink(self, path, *, dir_fd=None, call="unlink"):
        with self.it.lock:
            place = self.it.inside(path, dir_fd)
            if place is not None and os.path.lexists(place):
                self.it.named(place, os.path.isdir(place))
            _real.os[call](path, dir_fd=dir_fd)
            if place is not None:
                self.it.changed(place, None)

    def rmdir(self, path, *, dir_fd=None):
        self.unlink(path, dir_fd=dir_fd, call="rmdir")

    def mkdir(self, path, mode=0o777, *, dir_fd=None):
        with self.it.lock:
            _real.os["mkdir"](path, mode, dir_fd=dir_fd)
            if (place := self.it.inside(path, dir_fd)) is not None:
                self.it.named(place, folder=True)

    def link(self, old, new):
        with self.it.lock:
            _real.os["link"](old, new)
            if (place := self.it.inside(new)) is not None:
                self.it.changed(None, place, self.it.seen(self.it.inside(old)))

    def truncate(self, path, size):
        with self.it.lock:
            _real.os["truncate"](path, size)
            if (place := self.it.inside(path)) is not None:
                self.it.truncated(self.it.named(place), size)


@contextlib.contextmanager
def recorded(folder):
    """Record the operations on the files of a folder, which exists; yields the `Recording`, complete at the end."""
    recorder = _Recorder(folder)
    calls = _Calls(recorder)
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            called = {"open": "os_open", "remove": "unlink", "replace": "rename"}.get(name, name)
            patch.setattr(os, name, getattr(calls, called))
        patch.setattr(builtins, "open", calls.open)
        patch.setattr(io, "open", calls.open)
        yield recorder.recording

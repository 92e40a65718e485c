"""Operations on files and messages of Dask fail on purpose, as with a full disk: the n-th one, or all from the n-th on.

The calls of Python are counted, so those of Zarr, tilepath, NumPy and Matplotlib. Arrow writes files by itself; here it
is handed files of Python.
"""

import builtins
import errno
import functools
import io
import os
import shutil
import threading

import pyarrow as pa
import pyarrow.parquet
from distributed import Client
from distributed.comm import CommClosedError

# What may fail, with the numbers of its errors.
ERRORS = {
    "write": (errno.ENOSPC, errno.EIO),
    "read": (errno.EIO,),
    "open": (errno.EMFILE, errno.EACCES, errno.EIO),
    "rename": (errno.EIO, errno.EACCES, errno.ENOSPC),
    "mkdir": (errno.ENOSPC, errno.EACCES, errno.EIO),
    "change": (errno.ENOSPC, errno.EROFS),  # any of them that changes a file or folder, and all later ones
    "ask": (errno.ECONNRESET,),  # the connection breaks when the client asks the scheduler something
    "task": (errno.ECONNRESET,),  # the client forgets a task, as after a break of its connection
}
CHANGES = "w", "a", "x", "+"


class Failures:
    """Counts operations on files in `folder`, and messages of Dask; `plan` says which are to fail."""

    def __init__(self, monkeypatch, folder):
        self._folder, self._lock, self._open = os.path.realpath(folder), threading.Lock(), io.open
        self.plan()
        for module in builtins, io:
            monkeypatch.setattr(module, "open", self._opened)
        for operation, names in {
            "mkdir": ["mkdir"],
            "rename": ["rename", "replace"],
            "read": ["preadv"],
            "write": ["pwritev", "posix_fallocate", "fsync"],
        }.items():
            for name in names:
                monkeypatch.setattr(os, name, self._counted(operation, getattr(os, name)))
        opened = os.open
        monkeypatch.setattr(
            os, "open", lambda path, flags, *mode, **folder: self._os_open(opened, path, flags, *mode, **folder)
        )
        monkeypatch.setattr(pa, "OSFile", self._opened)
        monkeypatch.setattr(pa, "output_stream", self._with_file(pa.output_stream))
        monkeypatch.setattr(pa.parquet, "ParquetWriter", self._with_file(pa.parquet.ParquetWriter))
        monkeypatch.setattr(Client, "sync", self._asking(Client.sync))
        monkeypatch.setattr(Client, "submit", self._submitting(Client.submit))

    def plan(self, operation="", n=0, number=0, vanishes=()):
        """Count from 0; the n-th `operation` is to fail with the error `number`, or folders vanish just before it."""
        self.operation, self.n, self.number, self.vanishes = operation, n, number, vanishes
        self.count, self.struck = dict.fromkeys(ERRORS, 0), ""

    def _check(self, operation, path, changes=False):
        """Count an operation on a path or an open file; OSError if it is to fail."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        place = os.path.abspath(os.fsdecode(path))
        if place != self._folder and not place.startswith(self._folder + os.sep):
            return
        if self._strikes(operation, place) | (changes and self._strikes("change", place)):
            if self.number == 0:
                self.operation = ""
                for each in self.vanishes:
                    shutil.rmtree(each, ignore_errors=True)
                return
            raise OSError(self.number, os.strerror(self.number), *[path] * (operation not in ("read", "write")))

    def _strikes(self, operation, what):
        with self._lock:
            self.count[operation] += 1
            more = self.count[operation] - self.n if operation == self.operation else -1
            strikes = more == 0 or (more > 0 and operation == "change")
            self.struck = self.struck or what * strikes
        return strikes

    def _counted(self, operation, call):
        @functools.wraps(call)
        def counted(path, *arguments, **options):
            self._check(operation, path, operation != "read")
            return call(path, *arguments, **options)

        return counted

    def _os_open(self, opened, path, flags, *mode, dir_fd=None):
        if dir_fd is None:  # else it is a step of `shutil.rmtree`
            self._check("open", path, bool(flags & (os.O_WRONLY | os.O_RDWR)))
        return opened(path, flags, *mode, dir_fd=dir_fd)

    def _opened(
        self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None
    ):
        if isinstance(file, int):
            return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        self._check("open", file, any(each in mode for each in CHANGES))
        raw = _Counted(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.check = self._check
        if buffering == 0:
            return raw
        kind = io.BufferedRandom if "+" in mode else io.BufferedReader if raw.readable() else io.BufferedWriter
        return kind(raw) if "b" in mode else io.TextIOWrapper(kind(raw), encoding, errors, newline)

    def _with_file(self, make):
        """A function of Arrow that writes to a path, made to write to a file of Python there."""

        @functools.wraps(make)
        def made(sink, *arguments, **options):
            if not isinstance(sink, str | os.PathLike):
                return make(sink, *arguments, **options)
            return _Closing(self._opened(sink, "wb"), make, arguments, options)

        return made

    def _asking(self, sync):
        def asked(client, *arguments, **options):
            if self._strikes("ask", "ask"):
                raise CommClosedError("in <TCP>: Stream is closed")
            return sync(client, *arguments, **options)

        return asked

    def _submitting(self, submit):
        def submitted(client, *arguments, **options):
            future = submit(client, *arguments, **options)
            if self._strikes("task", "task"):
                client.loop.add_callback(future._state.cancel)
            return future

        return submitted


class _Counted(io.FileIO):
    """A file whose reads and writes are counted."""

    def write(self, data):
        self.check("write", self.name, True)
        return super().write(data)

    def read(self, size=-1):
        self.check("read", self.name)
        return super().read(size)

    def readall(self):
        self.check("read", self.name)
        return super().readall()

    def readinto(self, buffer):
        self.check("read", self.name)
        return super().readinto(buffer)


class _Closing:
    """A writer of Arrow as a context, which closes the file, too."""

    def __init__(self, file, make, arguments, options):
        self.file, self.made = file, make(pa.PythonFile(file, "w"), *arguments, **options)

    def __enter__(self):
        return self.made.__enter__()

    def __exit__(self, *error):
        with self.file:
            return self.made.__exit__(*error)

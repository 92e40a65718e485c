"""Stops of commands that run in this process: at one of the renames by which chunks, attributes and stores appear.

*kill*: the folder is copied at that rename, and takes the place of the folder when the command is over, so that the
command seems to have been killed there. *Ctrl-C* and an *error* of the disk happen at that rename.
"""

import contextlib
import errno
import itertools
import os
import shutil
import signal
import threading

from pipelines.workers.interruption import handling

ERRORS = {"the disk is full": errno.ENOSPC, "the disk fails": errno.EIO}
STOPS = ("kill", "Ctrl-C", *ERRORS)


class Stops:
    """A folder where commands run, which are stopped at a rename that is yet `left` renames away.

    `happened` says whether a command came to that rename, and `renames` how many it did.
    """

    def __init__(self, monkeypatch, place):
        self.place, self.folder, self.copy, self.numbers = place, place, place / "copy", itertools.count()
        self.how, self.left, self.happened, self.lock = "", 0, False, threading.Lock()
        for name in ("replace", "rename"):
            monkeypatch.setattr(os, name, self.counting(getattr(os, name)))

    def new_name(self):
        """A folder of another name each time: a worker may still write to the folder of a command that was stopped."""
        return self.place / f"{next(self.numbers)}"

    def begin(self):
        """Make the folder empty, and the current one."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.folder = self.new_name()
        self.folder.mkdir(parents=True)
        os.chdir(self.folder)

    def move(self):
        """Rename the folder."""
        self.folder = self.folder.rename(self.new_name())
        os.chdir(self.folder)

    def counting(self, rename):
        def counted(source, target, **options):
            if not os.path.abspath(target).startswith(f"{self.folder}{os.sep}"):  # such as Numba's cache
                return rename(source, target, **options)
            with self.lock:  # nothing else is renamed while the folder is copied
                self.left -= 1
                if self.left == 0:
                    self.happened = True
                    self.stop(source, target)
                return rename(source, target, **options)

        return counted

    def stop(self, source, target):
        if self.how == "kill":
            with contextlib.suppress(shutil.Error):  # a file was removed meanwhile
                shutil.copytree(self.folder, self.copy, symlinks=True)
        elif self.how == "Ctrl-C":
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        else:
            raise OSError(ERRORS[self.how], os.strerror(ERRORS[self.how]), str(source), None, str(target))

    @contextlib.contextmanager
    def at(self, how, left):
        """Stop what runs in the block; afterwards a folder that was copied is the copy."""
        self.how, self.left, self.happened = how, left, False
        try:
            with handling():
                yield
        finally:
            self.left, self.renames = 0, left - self.left
            if self.copy.exists():
                self.return_to_copy()

    def return_to_copy(self):
        """Make the copy the folder, and its partial files those of a process that is gone."""
        while self.copy.exists():  # a worker may still write to the folder for a command that was stopped before
            shutil.rmtree(self.folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                self.copy.rename(self.folder)
        os.chdir(self.folder)
        for path in sorted(self.folder.rglob(f"*.{os.getpid()}.*"), reverse=True):
            path.rename(path.with_name(path.name.replace(f".{os.getpid()}.", ".99999999.")))

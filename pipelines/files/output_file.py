"""Output files outside stores, which appear only when complete and replace an existing file only on request.

A file that grows piece by piece (`growing_file`) is continued after a kill from the end of its last whole piece. The
file NAME grows as ``.NAME.partial`` in the same folder, and is renamed to NAME when it is complete. Pieces that do not
make up a file of their format are first joined to ``.NAME.joined``, which is renamed instead. The journal
``.NAME.pieces`` records the progress: first a line of JSON that describes the file, then a line for each piece with its
number of rows and the length of the file after it. This line is written after its piece is durable
(`pipelines.stores.durable`), so on resuming, bytes beyond the last recorded length are cut off, and so is what a power
cut left of the last lines.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pipelines.stores.commit_clock import CommitClock
from pipelines.stores.durable import replace, sync_file, sync_names
from pipelines.stores.errors import disk_errors
from pipelines.stores.place import clear_leftovers, hidden_name
from pipelines.stores.schema import refuse_no_place, refuse_within_store


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written to `path`.

    Raises
    ------
    FileNotFoundError
        The folder of `path` does not exist.
    StoreError
        `path` is empty or a link to nothing, or the folder is inside a store or not writable.
    """
    refuse_no_place(path)
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}; make it, or choose another place")
    refuse_within_store(path)
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
    """Yield a temporary path in the same folder, which is renamed to `path` at the end and removed after an error.

    Temporary files that killed processes left for `path` are removed.
    """
    place = Path(path)
    partial = Path(hidden_name(os.fspath(place), "partial"))
    with disk_errors(path):
        clear_leftovers(place)
        partial.touch()  # shows faults of the folder, which libraries that write files report without its name
    try:
        with disk_errors(path):
            yield partial
            replace(partial, place)
    finally:
        partial.unlink(missing_ok=True)


@dataclass
class GrowingFile:
    """An unfinished file and its journal.

    Attributes
    ----------
    out : the file to be made
    path : the unfinished file; a writer appends the next piece to it
    joined : the file for the joined pieces; does not exist at the beginning
    journal : the journal file, with a line for each committed piece
    rows, ends : for each piece its number of rows, and the length of the file after it, in bytes
    """

    out: Path
    path: Path
    joined: Path
    journal: IO[str]
    rows: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    _committed: int = 0  # pieces that are in the journal, or that could not be made durable
    _clock: CommitClock = field(default_factory=CommitClock)

    def commit(self, rows: int) -> None:
        """Take note that a piece of `rows` rows was appended; record it in the journal, unless commits are costly."""
        self.rows.append(rows)
        self.ends.append(os.path.getsize(self.path))
        if self._clock.due():
            with self._clock.committing():
                self.record()

    def record(self) -> None:
        """Record in the journal all pieces that were appended, after they are durable."""
        first, self._committed = self._committed, len(self.ends)  # pieces whose `fsync` fails are never recorded
        lines = [json.dumps(piece) + "\n" for piece in zip(self.rows[first:], self.ends[first:], strict=True)]
        if lines:
            with open(self.path, "rb") as file:
                sync_file(file)
            if not first:
                sync_names(self.path.parent)
            self.journal.writelines(lines)
            sync_file(self.journal)


def _companions(path: str | os.PathLike[str]) -> list[Path]:
    place = Path(path)
    return [place.with_name(f".{place.name}.{what}") for what in ("partial", "pieces", "joined")]


def is_growing(path: str | os.PathLike[str]) -> bool:
    """Return True if an interrupted run left pieces of `path`."""
    return all(companion.exists() for companion in _companions(path)[:2])


def is_complete(path: str | os.PathLike[str]) -> bool:
    """Return True if `path` exists and no interrupted run left pieces; remove a journal that a kill left at the end."""
    if not _is_whole(path):
        return False
    pieces = _companions(path)[1]
    with suppress(OSError), open(pieces, encoding="utf-8") as journal:  # a journal that stays does no harm
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a run that has just begun to replace the file has it
        pieces.unlink()
    return True


def _is_whole(path: str | os.PathLike[str]) -> bool:
    return os.path.exists(path) and not is_growing(path)


def grown_bytes(path: str | os.PathLike[str]) -> int:
    """Return the bytes of the pieces of `path` that an interrupted run left; 0 if there are none."""
    partial = _companions(path)[0]
    return os.path.getsize(partial) if partial.is_file() else 0


@contextmanager
def growing_file(
    path: str | os.PathLike[str], about: dict[str, Any], *, resume: bool = False, overwrite: bool = False
) -> Iterator[GrowingFile]:
    """Yield a file to append pieces to, which is renamed to `path` when the block ends.

    After an error, committed pieces are kept.

    Parameters
    ----------
    about : description of the contents, as JSON; `resume` continues only a file with an equal description
    resume : continue after the pieces that an earlier run left; begin if there are no pieces
    overwrite : replace `path` if it exists

    Raises
    ------
    FileExistsError, FileNotFoundError
        `path` exists, or its folder does not exist.
    BlockingIOError
        Another run is writing `path`.
    ValueError
        The pieces of the earlier run have another description.
    """
    check_free(path, overwrite or resume)
    partial, pieces, joined = _companions(path)
    with disk_errors(path), open(pieces, "a+", encoding="utf-8") as journal:
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{path}: another run writes it; stop one of the two") from None
        ended = not os.fstat(journal.fileno()).st_nlink  # the other run has ended since the journal was opened
        if not ended and resume and _is_whole(path):
            pieces.unlink()
            ended = True
        if ended:
            raise BlockingIOError(f"{path}: another run has just written it; run the command again")
        joined.unlink(missing_ok=True)
        found = GrowingFile(Path(path), partial, joined, journal)
        try:
            if not (resume and partial.exists() and _go_on(path, found, about)):
                journal.truncate(0)
                journal.write(json.dumps(about) + "\n")
                partial.write_bytes(b"")
            try:
                yield found
            finally:
                found.record()
            replace(joined if joined.exists() else partial, path)
            partial.unlink(missing_ok=True)
            pieces.unlink()
        finally:
            joined.unlink(missing_ok=True)
            if not found.ends or not partial.exists():  # no piece was written, or the file is in its place
                partial.unlink(missing_ok=True)
                pieces.unlink(missing_ok=True)


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines of a journal, up to a line that a kill or a power cut left incomplete."""
    for line in text.split("\n")[:-1]:
        try:
            json.loads(line)
        except ValueError:
            return
        yield line


def _go_on(path: str | os.PathLike[str], found: GrowingFile, about: dict[str, Any]) -> bool:
    """Take over the pieces of an earlier run and return True, or return False if there are no pieces."""
    found.journal.seek(0)
    lines = list(_whole_lines(found.journal.read()))
    if len(lines) < 2:
        return False
    begun, *committed = (json.loads(line) for line in lines)
    # Set before the check of `about`: `growing_file` keeps the pieces if it is refused, since `ends` is not empty.
    found.rows, found.ends = map(list, zip(*committed, strict=True))
    found._committed = len(committed)
    if begun != about:
        others = [name for name in about if begun.get(name) != about[name]]
        raise ValueError(
            f"{path}: was begun with other {' and '.join(others)}; use the same, or leave out resume (--resume)"
        )
    found.journal.truncate(sum(len(line.encode()) + 1 for line in lines))
    os.truncate(found.path, found.ends[-1])
    return True

"""Files that grow by pieces, and go on after a kill where their last whole piece ends.

NAME grows as ``.NAME.partial`` beside its place, and takes it when it is whole. ``.NAME.pieces`` says how far it is: a
line of JSON on what is written, then one for each piece: its number of rows, and where it ends. A line is written when
its piece is, so what a killed run left beyond the last line is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pipelines.formats.output_file import check_free


@dataclass
class GrowingFile:
    """A file that grows.

    Attributes
    ----------
    path : where the next piece is appended
    rows, ends : for each piece the number of rows, and how long the file was with it
    """

    path: Path
    journal: IO[str]
    rows: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def commit(self, rows: int) -> None:
        """A piece of so many rows was appended."""
        self.rows.append(rows)
        self.ends.append(os.path.getsize(self.path))
        self.journal.write(json.dumps([rows, self.ends[-1]]) + "\n")
        self.journal.flush()


def _companions(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    place = Path(path)
    return place.with_name(f".{place.name}.partial"), place.with_name(f".{place.name}.pieces")


def is_growing(path: str | os.PathLike[str]) -> bool:
    """Whether a run that ended early left pieces of `path`."""
    return all(companion.exists() for companion in _companions(path))


@contextmanager
def growing_file(
    path: str | os.PathLike[str], about: dict[str, Any], *, resume: bool = False, overwrite: bool = False
) -> Iterator[GrowingFile]:
    """A file to append pieces to, which takes its place when the block ends; what is committed outlives an error.

    Parameters
    ----------
    about : what is written (JSON); `resume` goes on with a file about the same only
    resume : go on after the pieces that a run left; begin if there are none
    overwrite : replace `path` if it exists

    Raises
    ------
    FileExistsError, FileNotFoundError
        `path` exists, or there is no folder for it.
    BlockingIOError
        Another run writes it.
    ValueError
        The pieces are about something else.
    """
    check_free(path, overwrite or (resume and is_growing(path)))
    partial, pieces = _companions(path)
    with open(pieces, "a+", encoding="utf-8") as journal:
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{path}: another run writes it; stop one of the two") from None
        found = GrowingFile(partial, journal)
        try:
            if not (resume and partial.exists() and _go_on(path, found, about)):
                journal.truncate(0)
                journal.write(json.dumps(about) + "\n")
                partial.write_bytes(b"")
            yield found
            os.replace(partial, path)
            pieces.unlink()
        finally:
            if not found.ends:
                partial.unlink(missing_ok=True)
                pieces.unlink(missing_ok=True)


def _go_on(path: str | os.PathLike[str], found: GrowingFile, about: dict[str, Any]) -> bool:
    """Take over the pieces there are; False if there are none."""
    found.journal.seek(0)
    *lines, _torn = found.journal.read().split("\n")
    if len(lines) < 2:
        return False
    begun, *committed = (json.loads(line) for line in lines)
    found.rows, found.ends = map(list, zip(*committed, strict=True))  # also if it is refused: they stay
    if begun != about:
        others = [name for name in about if begun.get(name) != about[name]]
        raise ValueError(
            f"{path}: was begun with other {' and '.join(others)}; use those, or leave out resume (--resume)"
        )
    found.journal.truncate(sum(len(line.encode()) + 1 for line in lines))
    os.truncate(found.path, found.ends[-1])
    return True

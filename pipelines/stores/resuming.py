"""Create the output store of a run, or resume an unfinished store, by the same rules for every schema.

`resumed` finds the store, and the module of its schema takes it over with `resume_store`. The store must have been
begun from the same inputs with the same options; otherwise it is refused and left unchanged. A finished store is
returned as it is. An unfinished store must hold all committed chunks, and from then on only this run may write it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import zarr

from pipelines.stores.contents import StoredArray, Verified, refuse_misplaced
from pipelines.stores.graph import Graph
from pipelines.stores.origin import check_origin
from pipelines.stores.place import record_rows, recorded_rows, standing, take_over, take_place
from pipelines.stores.samples import Samples
from pipelines.stores.schema import StoreError, disk_errors, leftovers, open_store, owned, remove_leftovers


@dataclass(frozen=True, eq=False)
class StoreWriter:
    """A store that is being written: the workers write its chunks, and the driver records them. It can be pickled.

    `finished` says whether the store was complete when it was opened.
    """

    path: str
    run_id: str
    finished: bool

    def chunks_committed(self) -> dict[str, list[str]]:
        """Return the keys of all committed chunks, by array."""
        raise NotImplementedError

    def leftovers(self) -> list[Path]:
        """Return the files and folders that killed runs left in the store and that the store does not need."""
        return leftovers(self.path)

    def progress(self) -> tuple[int, int]:
        """Return the number of committed units and their total number; `pipelines.stores.kinds` names the units."""
        raise NotImplementedError

    def verify(self) -> Verified:
        """Reread the committed data and compare it with its record; raises StoreError at the first difference."""
        raise NotImplementedError


class RowsWriter(StoreWriter):
    """A store whose `arrays` grow by whole chunks of `rows` rows. The attribute `done` lists the complete rows."""

    schema: ClassVar[str]
    rows: int
    arrays: Sequence[str]

    def rows_done(self) -> np.ndarray:
        """Return which rows are recorded as complete, bool (rows)."""
        return recorded_rows(self.path, open_store(self.path, self.schema), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows are done, bool (rows). When all rows are done, the store is complete."""
        with disk_errors(self.path):
            record_rows(self.path, owned(self.path, self.schema, self.run_id), self.arrays, done)

    def progress(self) -> tuple[int, int]:
        """Return the number of complete rows and the total number of rows."""
        return int(self.rows_done().sum()), self.rows

    def chunks_committed(self) -> dict[str, list[str]]:
        done = self.rows_done()
        return {name: StoredArray(self.path, name).places(done) for name in self.arrays}


W = TypeVar("W", bound=StoreWriter)


def resumed(
    out: str | os.PathLike[str],
    schema: str,
    inputs: Iterable[Any],
    resume_from: Callable[[str], W],
    *,
    resume: bool,
    overwrite: bool,
) -> W | None:
    """Return the writer of the store that a run writing to `out` resumes, or None if the run must create a store.

    The run creates the store later, once it is known that the run fits into memory and disk.

    Parameters
    ----------
    inputs, resume, overwrite : as for `pipelines.stores.place.standing`
    resume_from : function that takes over the store at a path, such as `resume_paths`
    """
    found = standing(out, schema, inputs, resume=resume, overwrite=overwrite)
    return None if found is None else resume_from(found)


def resume_store(
    path: str | os.PathLike[str],
    schema: str,
    source: Graph | Samples,
    read: Callable[[str | os.PathLike[str], zarr.Group], W],
    refuse: Callable[[W], None],
) -> W:
    """Take over an unfinished store to resume it from its last commit; return a finished store as it is.

    Parameters
    ----------
    source : the graph or the samples that the store must have been begun from
    read : function that returns the writer of an open store, owned by no run
    refuse : function that raises StoreError if the store was begun with other options
    """
    group = open_store(path, schema, "r+")
    found = read(path, group)
    check_origin(path, group, source)
    refuse(found)
    if found.finished:
        remove_leftovers(found.leftovers())
        return replace(found, path=take_place(path))
    run_id = take_over(path, group)
    group = open_store(path, schema)  # reread it: the previous run may have committed until it lost the store
    writer = replace(read(path, group), run_id=run_id)
    refuse_misplaced(writer.path, group, writer.chunks_committed())
    return writer


def refuse_other_options(
    path: str | os.PathLike[str],
    begun: Mapping[str, Any],
    asked: Mapping[str, Any],
    describe: Callable[[str, Any], Any] = lambda name, value: value,
) -> None:
    """Raise StoreError if a store, finished or not, was begun with another value of an option.

    An option that the user leaves out has its default value, so callers must include defaults in `asked`.

    Parameters
    ----------
    begun, asked : names and values of options; options that are not in `asked` are not compared
    describe : function of the name and the value of an option that returns the value as shown in messages
    """
    for name, value in asked.items():
        if begun.get(name) != value:
            was, now = describe(name, begun.get(name)), describe(name, value)
            if was is None:
                difference = f"without {name}, not with {now}"
            else:
                difference = f"with {name} {was}, not {'without' if now is None else now}"
            raise StoreError(
                f"{path} was begun {difference}; repeat its options, or begin again with overwrite (--overwrite) in "
                "place of resume (--resume)"
            )

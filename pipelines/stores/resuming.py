"""Create the output store of a run, or resume an unfinished store, by the same rules for every schema.

`StoreWriter.resumed` finds the store, and takes it over with `StoreWriter.resume`. The store must have been begun from
the same inputs with the same options; otherwise it is refused and left unchanged. A finished store is returned as it
is. An unfinished store must hold all committed chunks, and from then on only this run may write it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import zarr

from pipelines.stores.contents import (
    StoredArray,
    Verified,
    compare_contents,
    record,
    refuse_changed,
    refuse_misplaced,
    refuse_missing,
)
from pipelines.stores.declared import Schema, view
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.graph import Graph
from pipelines.stores.origin import NOWHERE, origin_of
from pipelines.stores.place import growing_store, standing, take_over, take_place, unfinished
from pipelines.stores.samples import Samples
from pipelines.stores.schema import (
    attribute,
    counted,
    kind_of,
    leftovers,
    open_store,
    owned,
    remove_leftovers,
    row_mask,
    row_ranges,
    set_attributes,
)
from pipelines.stores.settled import settled


class NewArray(NamedTuple):
    """An array that a run creates and later writes; for `options` see `pipelines.stores.schema.create_array`."""

    shape: tuple[int, ...]
    chunks: Any
    dtype: Any
    options: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class StoreWriter:
    """A store that is being written: the workers write its chunks, and the driver records them. It can be pickled.

    `finished` says whether the store was complete when it was opened.
    """

    declared: ClassVar[Schema]
    command: ClassVar[str]  # the command that makes the store, a format of the entries of `Schema.read`

    path: str
    run_id: str
    finished: bool

    @classmethod
    def begun(cls, path: str | os.PathLike[str]) -> Self:
        """Return the writer of the store at `path`, owned by no run, to read its progress."""
        return view(cls, cls.declared.open(path))

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        source: Graph | Samples | None,
        attributes: Mapping[str, Any],
        arrays: Mapping[str, Any] | None = None,
        *,
        overwrite: bool = False,
    ) -> Self:
        """Create a store without a commit, with these arrays: NumPy arrays, or a `NewArray`.

        The store is computed from `source`, None for data in no store.
        """
        origin = NOWHERE if source is None else origin_of(path, source)
        with growing_store(path, cls.declared.name, overwrite) as (place, run_id, group):
            for name, array in (arrays or {}).items():
                if isinstance(array, np.ndarray):
                    cls.declared.write(group, name, array)
                else:
                    cls.declared.create(group, name, *array[:3], **array.options)
            set_attributes(group, {**attributes, cls.declared.source: origin})
        return replace(cls.begun(place), run_id=run_id)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        source: Graph | Samples,
        options: Mapping[str, Any] | None = None,
        describe: Callable[[str, Any], Any] = lambda name, value: value,
    ) -> Self:
        """Take over an unfinished store to resume it from its last commit; return a finished store as it is.

        Parameters
        ----------
        source : the graph or the samples that the store must have been begun from
        options : options that the store must have been begun with
        describe : as in `refuse_other_options`

        Raises
        ------
        StoreError
            The store was begun from another source or with other options.
        """
        recorded = cls.declared.open(path)
        of = cls.declared.source
        if recorded[f"{of}_digest"] != source.digest:
            others = {"graph": "from another graph", "samples": "with other samples"}[of]
            raise StoreError(f"{path}: was begun {others} than {source.path}; name the right one or start over")
        found = view(cls, recorded)
        refuse_other_options(path, found.begun_with(), options or {}, describe)
        if found.finished:
            remove_leftovers(found.leftovers())
            return replace(found, path=take_place(path))
        refuse_changed(found.path, found.group())  # the next commit would record the attributes as they are now
        with disk_errors(path):
            run_id = take_over(path, open_store(path, mode="r+"))
        writer = replace(cls.begun(path), run_id=run_id)  # the previous run may have committed until it lost the store
        refuse_misplaced(writer.path, writer.group(), writer.chunks_committed())
        return writer

    @classmethod
    def resumed(
        cls,
        out: str | os.PathLike[str],
        source: Graph | Samples,
        options: Mapping[str, Any] | None = None,
        describe: Callable[[str, Any], Any] = lambda name, value: value,
        *,
        inputs: Iterable[Any] = (),
        resume: bool,
        overwrite: bool,
    ) -> Self | None:
        """Return the writer of the store that a run writing to `out` resumes, or None if the run must create a store.

        The run creates the store later, once it is known that the run fits into memory and disk.

        Parameters
        ----------
        source, options, describe : as for the method `resume`
        inputs : paths of inputs other than `source`
        resume, overwrite : as for `pipelines.stores.place.standing`
        """
        read = [*inputs, source.path]
        found = standing(out, cls.declared.name, read, resume=resume, overwrite=overwrite)
        return None if found is None else cls.resume(found, source, options, describe)

    @classmethod
    def read_finished(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return all that a finished store records (`Schema.read`); raises StoreError if it is unfinished."""
        found = cls.declared.open(path)
        if not found["finished"]:
            writer = view(cls, found)
            done, total = writer.progress()
            of = f"{max(done, 0):,} of {counted(total, writer.unit.removesuffix('s'))}"
            raise unfinished(path, cls.command.format_map(found), of)
        return found

    @property
    def unit(self) -> str:
        """The unit of `progress`, in the plural."""
        raise NotImplementedError

    def group(self) -> zarr.Group:
        """Open the store for reading."""
        return open_store(self.path, self.declared.name)

    def owned(self) -> zarr.Group:
        """Open the store for writing; raises StoreError if another run owns the store."""
        return owned(self.path, self.declared.name, self.run_id)

    def begun_with(self) -> dict[str, Any]:
        """Return the options that a run must repeat to resume this store."""
        raise NotImplementedError

    def chunks_committed(self) -> dict[str, list[str]]:
        """Return the keys of all committed chunks, by array."""
        raise NotImplementedError

    def leftovers(self) -> list[Path]:
        """Return the files and folders that killed runs left in the store and that the store does not need."""
        return leftovers(self.path)

    def progress(self) -> tuple[int, int]:
        """Return the number of committed units and their total number."""
        raise NotImplementedError

    def verify(self) -> Verified:
        """Reread the committed data and compare it with its record; raises StoreError at the first difference."""
        return settled(self.path, lambda: self.begun(self.path)._reread(), long=True)

    def _reread(self) -> Verified:
        group, chunks = self.group(), self.chunks_committed()
        refuse_missing(self.path, chunks)
        return compare_contents(self.path, group, chunks, *self.check_values())

    def check_values(self) -> tuple[str, ...]:
        """Reread the committed values, and return the checked properties; raise StoreError if a value is wrong."""
        raise NotImplementedError


class FinishedStore:
    """A finished store that was written by a `StoreWriter`."""

    path: str

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        return kind_of(self.path).begun(self.path).verify()


@dataclass(frozen=True, eq=False)
class RowsWriter(StoreWriter):
    """A store some of whose arrays grow by whole chunks of rows. The attribute `done` lists the complete rows.

    Attributes
    ----------
    rows : number of rows
    chunk : number of rows of a chunk, which are written together
    arrays : names of the arrays of the store
    """

    unit = "rows"

    rows: int
    chunk: int
    arrays: tuple[str, ...]

    def growing(self) -> list[str]:
        """Return the names of the arrays that grow."""
        return [each.name for each in self.declared.arrays if each.grows and each.name in self.arrays]

    def rows_done(self) -> np.ndarray:
        """Return which rows are recorded as complete, bool (rows)."""
        return self._done(self.group())

    def _done(self, group: zarr.Group) -> np.ndarray:
        return row_mask(self.path, attribute(self.path, group, "done"), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows are done, bool (rows). When all rows are done, the store is complete."""
        complete = bool(done.all())
        with disk_errors(self.path):
            group = self.owned()
            new = done & ~self._done(group)
            if complete:
                remove_leftovers(self.leftovers())
            added = {name: StoredArray(self.path, name).places(new) for name in self.growing()}
            record(self.path, group, {"done": row_ranges(done), "complete": complete}, added)
            if complete:
                take_place(self.path)

    def progress(self) -> tuple[int, int]:
        return int(self.rows_done().sum()), self.rows

    def chunks_committed(self) -> dict[str, list[str]]:
        done, growing = self.rows_done(), self.growing()
        whole = {name: StoredArray(self.path, name).places() for name in self.arrays if name not in growing}
        return {name: StoredArray(self.path, name).places(done) for name in growing} | whole


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

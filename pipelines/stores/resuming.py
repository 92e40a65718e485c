"""How a run comes by the store it writes: it goes on with one that was begun, by the same rules for every schema.

`resumed` finds the store, its module takes it over with `resume_store`: the store must have been begun from the same
inputs with the same options; a finished one is returned as it is; an unfinished one must hold all that was committed,
and from then on belongs to this run alone. A store that is refused is left to whom it belongs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import zarr

from pipelines.stores.contents import Verified, refuse_misplaced
from pipelines.stores.graph import Graph
from pipelines.stores.origin import check_origin
from pipelines.stores.place import standing, take_over, take_place
from pipelines.stores.samples import Samples
from pipelines.stores.schema import StoreError, open_store


@dataclass(frozen=True, eq=False)
class StoreWriter:
    """A store that is being written: what the driver records and the workers write. Picklable.

    `finished` says whether it was complete when it was opened.
    """

    path: str
    run_id: str
    finished: bool

    def chunks_committed(self) -> dict[str, list[str]]:
        """The keys of the chunks that what is committed is made of, by array."""
        raise NotImplementedError

    def progress(self) -> tuple[int, int]:
        """How much is committed, and of how much, in units of the schema (`pipelines.stores.kinds`)."""
        raise NotImplementedError

    def verify(self) -> Verified:
        """Reread what is committed and compare it with what was recorded; StoreError names what differs."""
        raise NotImplementedError


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
    """The writer of the store that a run to `out` goes on with, or None if the run is to begin one.

    A store is begun later, once it is known that the run fits: until then nothing is written.

    Parameters
    ----------
    inputs, resume, overwrite : as for `pipelines.stores.place.standing`
    resume_from : takes over the store at a path, such as `resume_paths`
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
    """Take over an unfinished store to go on from what is committed; return a finished one as it is.

    Parameters
    ----------
    source : the graph or the samples that the store must have been begun from
    read : the writer of a store that is open, as a run of no name
    refuse : raises StoreError if the store was begun otherwise
    """
    group = open_store(path, schema, "r+")
    found = read(path, group)
    check_origin(path, group, source)
    refuse(found)
    if found.finished:
        return replace(found, path=take_place(path))
    run_id = take_over(path, group)
    group = open_store(path, schema)  # the run before may have committed something until then, but not from then on
    writer = replace(read(path, group), run_id=run_id)
    refuse_misplaced(writer.path, group, writer.chunks_committed())
    return writer


def refuse_other_options(
    path: str | os.PathLike[str],
    begun: Mapping[str, Any],
    asked: Mapping[str, Any],
    describe: Callable[[str, Any], Any] = lambda name, value: value,
) -> None:
    """Refuse to go on with a store that was begun with another value of an option.

    Parameters
    ----------
    begun, asked : values by the names of the options; those that are not asked for do not matter
    describe : the value of the option of a name as a message shows it
    """
    for name, value in asked.items():
        if begun.get(name) != value:
            was, now = describe(name, begun.get(name)), describe(name, value)
            raise StoreError(f"{path} was begun with {name} {was}, not {now}; use that or start over")

"""Where a store that is being made stands, and what may be replaced by it.

A store that is written in one go is written to ``.NAME.HOST.PID.partial`` beside its place and renamed into it
(`new_store`), so it is either whole or absent. A store that grows over hours (`growing_store`) records its progress as
attributes written last. It grows in its place where nothing stands, else beside: what is to replace NAME grows as
NAME.new, and takes its place when it is complete. Until then the old store stays what it was, and a run that is resumed
goes on with NAME.new.

What killed runs left beside NAME is removed by the next run that writes NAME. Only for the moment between two renames
NAME is away; if a run is killed in that moment, the next one puts it back.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from pipelines.stores.contents import StoredArray, record, record_everything
from pipelines.stores.schema import (
    StoreError,
    disk_errors,
    new_run_id,
    open_store,
    remove_leftovers,
    row_ranges,
    store_schema,
)

NEW = ".new"  # ends the name of a store that grows beside the one it is to replace


def standing(
    out: str | os.PathLike[str], schema: str, inputs: Iterable[Any], *, resume: bool, overwrite: bool
) -> str | None:
    """The store that a run to `out` is to go on with, None if it is to begin one.

    Parameters
    ----------
    inputs : paths of what is read; those that are not paths do not count
    resume : go on with a store that stands there, if there is one
    overwrite : begin a store that is to replace one of the same schema

    Raises
    ------
    StoreError
        `out` is an input, or one lies within the other; or it stands in the way.
    """
    refuse_inputs(out, inputs)
    clear_leftovers(out)
    if resume:
        return growing_beside(out) or (os.fspath(out) if os.path.lexists(out) else None)
    refuse_existing(out, schema, overwrite, "pass overwrite (--overwrite) or --resume")
    return None


def refuse_inputs(path: str | os.PathLike[str], inputs: Iterable[Any]) -> None:
    """Refuse to write a store where something stands that it is made of, or within that, or around it."""
    for given in inputs:
        if not isinstance(given, str | os.PathLike) or not os.path.exists(given):
            continue
        for place in (os.fspath(path), _beside(path)):
            within, around = _within(place, given), _within(given, place)
            if within or around:
                fault = "is" if within and around else "lies within" if within else "holds"
                raise StoreError(f"{place} {fault} the input {given}; choose another place for the result")


def _within(inner: str | os.PathLike[str], outer: str | os.PathLike[str]) -> bool:
    """Does one path lead to the other or into it, through links and mounts as well?"""
    real = Path(os.path.realpath(inner))
    return os.path.exists(outer) and any(
        place.exists() and os.path.samefile(place, outer) for place in (real, *real.parents)
    )


def refuse_existing(
    path: str | os.PathLike[str], schema: str, overwrite: bool, cure: str = "pass overwrite (--overwrite)"
) -> None:
    """Refuse what stands at `path`; with `overwrite` all but a store of that schema, which may be replaced."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise StoreError(f"{path} exists already; choose another name or {cure}")
    found = store_schema(path)
    if found != schema:
        raise StoreError(
            f"{path} is a store of schema {found}, and overwriting replaces one of schema {schema} only; "
            "choose another name"
        )


@contextmanager
def new_store(path: str | os.PathLike[str], schema: str, overwrite: bool = False) -> Iterator[zarr.Group]:
    """A group to fill that appears at `path`, its contents recorded, only when the block ends without an error."""
    clear_leftovers(path)
    refuse_existing(path, schema, overwrite)
    place = os.path.realpath(path)
    partial = _hidden(place, "partial")
    try:
        with disk_errors(path):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            group = zarr.open_group(partial, mode="w")
            yield group
            record_everything(partial, group)
            refuse_existing(path, schema, overwrite)
            _put(partial, place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def growing_store(
    path: str | os.PathLike[str], schema: str, overwrite: bool = False
) -> Iterator[tuple[str, str, zarr.Group]]:
    """Where a store that is to come to `path` grows, the name of the run that makes it, and a group to fill.

    What the block puts into the group appears there when it ends without an error; it is recorded by then.
    """
    clear_leftovers(path)
    refuse_existing(path, schema, overwrite)
    replaced = os.path.lexists(path)
    place, run_id = (_beside(path) if replaced else os.path.abspath(path)), new_run_id()
    if replaced and os.path.lexists(place) and not _replaces(place):
        raise StoreError(f"{place} is in the way, where what is to replace {path} would grow; move it elsewhere")
    with new_store(place, schema, overwrite) as group:
        yield place, run_id, group
        replaces = {"replaces": os.path.basename(os.path.realpath(path))} if replaced else {}
        group.update_attributes({"schema": schema, "complete": False, "run_id": run_id} | replaces)


def take_over(path: str | os.PathLike[str], group: zarr.Group) -> str:
    """Make an unfinished store another run's: its name. Who had it before may no longer change it (`owned`)."""
    run_id = new_run_id()
    record(os.fspath(path), group, {"run_id": run_id})
    remove_leftovers(path)
    return run_id


def take_place(path: str | os.PathLike[str]) -> str:
    """A store is complete: if it grew beside an older one, it replaces that now. Returns where it stands."""
    place = place_of(path)
    if place == os.fspath(path):
        return place
    with disk_errors(place):
        if os.path.lexists(place):
            try:
                refuse_existing(place, store_schema(path), overwrite=True)
            except StoreError as error:
                raise StoreError(f"{error}; the result stands at {path}") from error
        _put(os.fspath(path), place)
    return place


def record_rows(path: str, group: zarr.Group, arrays: Iterable[str], before: np.ndarray, done: np.ndarray) -> None:
    """Record which rows, bool, of a store that is made row by row are whole; once all are, it is complete.

    Parameters
    ----------
    arrays : those that are made so
    before : the rows that were recorded so far
    """
    if done.all():
        remove_leftovers(path)
    added = {name: StoredArray(path, name).places(done & ~before) for name in arrays}
    record(path, group, {"done": row_ranges(done), "complete": bool(done.all())}, added, begun=bool(before.any()))
    if done.all():
        take_place(path)


def growing_beside(path: str | os.PathLike[str]) -> str | None:
    """The store that grows to replace the one at `path`, if there is one."""
    return _beside(path) if _replaces(_beside(path)) else None


def place_of(path: str | os.PathLike[str]) -> str:
    """Where a store is to stand in the end: `path` itself, or the store that it grows beside."""
    return os.fspath(path).removesuffix(NEW) if _replaces(path) else os.fspath(path)


def clear_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what processes of this machine that live no more left beside `path`, and put back what they took away."""
    place = Path(os.path.realpath(path))
    host = re.escape(_host())
    form = re.compile(rf"\.{re.escape(place.name)}\.(?:{host}\.)?(\d+)\.(partial|replaced)")
    for found in place.parent.glob(f".{_literal(place.name)}.*") if place.parent.is_dir() else ():
        match = form.fullmatch(found.name)
        if match is None or _alive(int(match[1])):
            continue
        if match[2] == "replaced" and not place.exists():
            found.rename(place)
        else:
            shutil.rmtree(found, ignore_errors=True)


def _put(new: str, place: str) -> None:
    """Rename a store to its place; what stands there gives way at this moment, and is deleted afterwards."""
    if not os.path.lexists(place):
        os.rename(new, place)
        return
    aside = _hidden(place, "replaced")
    os.rename(place, aside)
    try:
        os.rename(new, place)
    except BaseException:
        os.rename(aside, place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _beside(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path) + NEW


def _replaces(path: str | os.PathLike[str]) -> bool:
    """Does a store grow at `path` that is to replace the one of this name without `NEW`?"""
    if not os.fspath(path).endswith(NEW) or not os.path.isdir(path):
        return False
    try:
        replaces = open_store(path).attrs.get("replaces")
    except StoreError:
        return False
    return bool(replaces == os.path.basename(path).removesuffix(NEW))


def _hidden(place: str, ending: str) -> str:
    folder, name = os.path.split(place)
    return os.path.join(folder, f".{name}.{_host()}.{os.getpid()}.{ending}")


def _host() -> str:
    """The machine, as part of a name: a process is known by its number there alone."""
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _literal(name: str) -> str:
    """A name as a pattern of glob that matches nothing else."""
    return re.sub(r"([*?[])", r"[\1]", name)

"""Where a store is while it is being written, and what it may replace.

A store that is written in one go is written to ``.NAME.HOST.PID.partial`` beside its place and renamed into it
(`new_store`), so it is either whole or absent. A store that grows over hours (`growing_store`) records its progress as
attributes written last. It grows in its final place if that is free, else beside it: the replacement of NAME grows as
NAME.new, and takes its place when it is complete. Until then the old store stays unchanged, and a run that is resumed
continues with NAME.new.

Remains of killed runs beside NAME are removed by the next run that writes NAME. NAME is absent only for the moment
between two renames; if a run is killed in that moment, the next one puts it back.
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
    attribute,
    disk_errors,
    new_run_id,
    open_store,
    remove_leftovers,
    row_mask,
    row_ranges,
    store_schema,
)

NEW = ".new"  # ends the name of a store that grows beside the one it is to replace


def standing(
    out: str | os.PathLike[str], schema: str, inputs: Iterable[Any], *, resume: bool, overwrite: bool
) -> str | None:
    """The store that a run writing to `out` resumes, None if it begins a new one.

    Parameters
    ----------
    inputs : paths of the inputs; entries that are not paths are ignored
    resume : resume the store at `out`, if there is one
    overwrite : begin a store that will replace an existing one of the same schema

    Raises
    ------
    StoreError
        `out` is an input, one lies within the other, or `out` exists already.
    """
    refuse_inputs(out, inputs)
    clear_leftovers(out)
    if resume:
        return growing_beside(out) or (os.fspath(out) if os.path.lexists(out) else None)
    refuse_existing(out, schema, overwrite, "pass overwrite (--overwrite) or --resume")
    return None


def refuse_inputs(path: str | os.PathLike[str], inputs: Iterable[Any]) -> None:
    """Refuse to write a store to the place of one of its inputs, within one, or around one."""
    for given in inputs:
        if not isinstance(given, str | os.PathLike) or not os.path.exists(given):
            continue
        for place in (os.fspath(path), _beside(path)):
            within, around = _within(place, given), _within(given, place)
            if within or around:
                fault = "is" if within and around else "lies within" if within else "holds"
                raise StoreError(f"{place} {fault} the input {given}; choose another place for the result")


def _within(inner: str | os.PathLike[str], outer: str | os.PathLike[str]) -> bool:
    """Whether one path leads to the other or into it, also through links and mounts."""
    real = Path(os.path.realpath(inner))
    return os.path.exists(outer) and any(
        place.exists() and os.path.samefile(place, outer) for place in (real, *real.parents)
    )


def refuse_existing(
    path: str | os.PathLike[str], schema: str, overwrite: bool, cure: str = "pass overwrite (--overwrite)"
) -> None:
    """Refuse anything that exists at `path`; with `overwrite`, anything but a store of that schema."""
    if not os.path.lexists(path):
        return
    if not overwrite:
        raise StoreError(f"{path} exists already; choose another name or {cure}")
    found = store_schema(path)
    if found != schema:
        raise StoreError(
            f"{path} is a store of schema {found}; only a store of schema {schema} may be overwritten here; "
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
    """Where the new store for `path` grows, the name of the run that writes it, and a group to fill.

    What the block puts into the group is recorded and appears there when the block ends without an error.
    """
    clear_leftovers(path)
    refuse_existing(path, schema, overwrite)
    replaced = os.path.lexists(path)
    place, run_id = (_beside(path) if replaced else os.path.abspath(path)), new_run_id()
    if replaced and os.path.lexists(place) and not _replaces(place):
        raise StoreError(
            f"{place} is in the way of the new store for {path}, which is written there; move it elsewhere"
        )
    with new_store(place, schema, overwrite) as group:
        yield place, run_id, group
        replaces = {"replaces": os.path.basename(os.path.realpath(path))} if replaced else {}
        group.update_attributes({"schema": schema, "complete": False, "run_id": run_id} | replaces)


def take_over(path: str | os.PathLike[str], group: zarr.Group) -> str:
    """Hand an unfinished store to a new run; returns its name. The run before may no longer change it (`owned`)."""
    run_id = new_run_id()
    record(os.fspath(path), group, {"run_id": run_id})
    remove_leftovers(path)
    return run_id


def take_place(path: str | os.PathLike[str]) -> str:
    """A store is complete: if it grew beside an older one, it now replaces that one. Returns its final path."""
    place = place_of(path)
    if place == os.fspath(path):
        return place
    with disk_errors(place):
        if os.path.lexists(place):
            try:
                refuse_existing(place, store_schema(path), overwrite=True)
            except StoreError as error:
                raise StoreError(f"{error}; the result is at {path}") from error
        _put(os.fspath(path), place)
    return place


def recorded_rows(path: str | os.PathLike[str], group: zarr.Group, rows: int) -> np.ndarray:
    """bool (rows): which rows of a store written row by row are recorded as done."""
    return row_mask(path, attribute(path, group, "done"), rows)


def record_rows(path: str, group: zarr.Group, arrays: Iterable[str], done: np.ndarray) -> None:
    """Record which rows, bool, of `arrays`, which are written row by row, are done; once all are, it is complete."""
    before = recorded_rows(path, group, len(done))
    if done.all():
        remove_leftovers(path)
    added = {name: StoredArray(path, name).places(done & ~before) for name in arrays}
    record(path, group, {"done": row_ranges(done), "complete": bool(done.all())}, added, begun=bool(before.any()))
    if done.all():
        take_place(path)


def growing_beside(path: str | os.PathLike[str]) -> str | None:
    """The path of the store that is being written to replace the one at `path`, if there is one."""
    return _beside(path) if _replaces(_beside(path)) else None


def place_of(path: str | os.PathLike[str]) -> str:
    """The final place of a store: `path` itself, or the store that it grows beside."""
    return os.fspath(path).removesuffix(NEW) if _replaces(path) else os.fspath(path)


def clear_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what dead processes of this machine left beside `path`, and put back what they had moved away."""
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
    """Rename a store to its place; an existing one is moved away at this moment, and deleted afterwards."""
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
    """Whether the store growing at `path` will replace the one of this name without `NEW`."""
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
    """The machine, as part of a name: process numbers are unique only within one machine."""
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
    """A glob pattern that matches this name only."""
    return re.sub(r"([*?[])", r"[\1]", name)

"""The path of a store while it is being written, and the existing stores that it may replace.

A store that is written in one go (`new_store`) is written to ``.NAME.HOST.THREAD.partial`` in the same folder and then
renamed to NAME, so NAME is either complete or absent, also after a power cut: all files are durable
(`pipelines.stores.durable`) before they get that name. A store that grows over hours (`growing_store`) records its
progress in attributes, which are written after the data. It grows at NAME if NAME does not exist. Otherwise it grows at
NAME.new, and replaces NAME when it is complete. Until then NAME stays unchanged, and a resumed run continues with
NAME.new.

The next run that writes NAME removes the files that killed runs left for it. A replacement takes two renames, and NAME
is absent between them; if a run is killed there, or the power is cut, the next run restores NAME.
"""

from __future__ import annotations

import glob
import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import zarr

from gpuops.memory import size
from pipelines.stores.contents import record, record_everything
from pipelines.stores.durable import delete_tree, make_folders, sync_names, sync_tree
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.schema import (
    leftovers,
    new_run_id,
    open_store,
    refuse_no_place,
    refuse_within_store,
    remove_leftovers,
    store_bytes,
    store_schema,
)

PASSES, PASS_SECONDS = 20, 0.01  # to remove a partial store that Zarr still writes to
# `standing` found no store, so another run has begun the store since then.
_WAIT = "wait until the other run that has just begun it has ended"
NEW = ".new"  # suffix of a store that will replace an existing store when it is complete


def standing(
    out: str | os.PathLike[str], schema: str, inputs: Iterable[Any], *, resume: bool, overwrite: bool
) -> str | None:
    """Return the path of the store that a run writing to `out` resumes, or None if the run begins a new store.

    Parameters
    ----------
    inputs : paths of the inputs; entries that are not paths are ignored
    resume : resume the store at `out`, if it exists
    overwrite : begin a store that will replace an existing store of the same schema

    Raises
    ------
    StoreError
        `out` is an input, holds an input, lies within a store, or exists and may not be replaced; or both `resume` and
        `overwrite` are asked for.
    """
    refuse_both(resume, overwrite)
    refuse_no_place(out)
    inputs = list(inputs)
    refuse_inputs(out, inputs)
    if inputs:  # a store without inputs has tables that a method keeps within the store of its result
        refuse_within_store(out)
    for place in (out, _beside(out)):
        clear_leftovers(place)
    if resume:
        return growing_beside(out) or (os.fspath(out) if os.path.lexists(out) else None)
    refuse_existing(out, schema, overwrite, "pass overwrite (--overwrite) or resume (--resume)")
    return None


def refuse_both(resume: bool, overwrite: bool) -> None:
    """Raise StoreError if both are asked for: a resumed run would ignore `overwrite`."""
    if resume and overwrite:
        raise StoreError("resume=True continues an output, and overwrite=True begins it again; pass one of them")


def refuse_inputs(path: str | os.PathLike[str], inputs: Iterable[Any]) -> None:
    """Raise StoreError if a store written to `path` would replace one of its inputs, lie within it or hold it."""
    for given in inputs:
        if not isinstance(given, str | os.PathLike) or not os.path.exists(given):
            continue
        for place in (os.fspath(path), _beside(path)):
            within, around = _within(place, given), _within(given, place)
            if within or around:
                fault = "is" if within and around else "lies within" if within else "holds"
                raise StoreError(f"{place} {fault} the input {given}; choose another place for the result")


def _within(inner: str | os.PathLike[str], outer: str | os.PathLike[str]) -> bool:
    """Return whether `inner` is `outer` or lies within it, also through links and mounts."""
    real = Path(os.path.realpath(inner))
    return os.path.exists(outer) and any(
        place.exists() and os.path.samefile(place, outer) for place in (real, *real.parents)
    )


def refuse_existing(
    path: str | os.PathLike[str], schema: str, overwrite: bool, cure: str = "pass overwrite (--overwrite)"
) -> None:
    """Raise StoreError if `path` exists; with `overwrite`, only if it is not a store of this schema."""
    refuse_no_place(path)
    if not os.path.lexists(os.path.realpath(path)):  # the store takes the real path, where `none/..` is a folder
        return
    if not overwrite:
        raise StoreError(f"{path} exists already; choose another name or {cure}")
    found = store_schema(path)
    if found.partition("/")[0] != schema.partition("/")[0]:  # stores of former versions may be replaced
        raise StoreError(
            f"{path} is a store of schema {found}; only a store of schema {schema} may be overwritten here; "
            "choose another name"
        )


@contextmanager
def new_store(path: str | os.PathLike[str], schema: str, overwrite: bool = False) -> Iterator[zarr.Group]:
    """Yield a group to fill. If the block ends without an error, record its contents and rename it to `path`.

    Raises StoreError if `path` exists and may not be replaced, lies within a store, or cannot be written.
    """
    refuse_within_store(path)
    with _store_at(path, schema, overwrite) as group:
        yield group


@contextmanager
def _store_at(
    path: str | os.PathLike[str], schema: str, overwrite: bool, cure: str = "pass overwrite (--overwrite)"
) -> Iterator[zarr.Group]:
    """Do what `new_store` does, also within a store: a method may keep tables in the store that it computes."""
    clear_leftovers(path)
    refuse_existing(path, schema, overwrite, cure)
    place = os.path.realpath(path)
    partial = hidden_name(place, "partial")
    try:
        with disk_errors(path):
            make_folders(os.path.dirname(partial))
            os.makedirs(partial, exist_ok=True)
            group = zarr.open_group(partial, mode="w")
            yield group
            record_everything(partial, group)
            sync_tree(partial)
            refuse_existing(path, schema, overwrite, cure)
            _put(partial, place)
    except BaseException:
        _discard(partial)
        raise


@contextmanager
def growing_store(
    path: str | os.PathLike[str], schema: str, overwrite: bool = False
) -> Iterator[tuple[str, str, zarr.Group]]:
    """Yield the path where the new store for `path` grows, the id of the run that writes it, and a group to fill.

    If the block ends without an error, the contents of the group are recorded and the store appears at that path.
    """
    clear_leftovers(path)
    refuse_existing(path, schema, overwrite, _WAIT)
    replaced = os.path.lexists(path)
    place, run_id = (_beside(path) if replaced else os.path.abspath(path)), new_run_id()
    if replaced and os.path.lexists(place) and not _replaces(place):
        raise StoreError(
            f"{place} is in the way of the new store for {path}, which is written there; move it elsewhere"
        )
    with _store_at(place, schema, overwrite, _WAIT) as group:
        yield place, run_id, group
        replaces = {"replaces": os.path.basename(os.path.realpath(path))} if replaced else {}
        group.update_attributes({"schema": schema, "complete": False, "run_id": run_id} | replaces)


def take_over(path: str | os.PathLike[str], group: zarr.Group) -> str:
    """Give an unfinished store to a new run and return the id of this run. The previous run loses it (`owned`)."""
    run_id = new_run_id()
    record(os.fspath(path), group, {"run_id": run_id})
    remove_leftovers(leftovers(path))
    return run_id


def take_place(path: str | os.PathLike[str]) -> str:
    """Return the final path of a complete store. A store that grew at NAME.new is renamed to NAME first."""
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


def growing_beside(path: str | os.PathLike[str]) -> str | None:
    """Return the path of the unfinished store that will replace the store at `path`, or None."""
    return _beside(path) if _replaces(_beside(path)) else None


def growing_place(path: str | os.PathLike[str], writer: Any = None) -> str:
    """Return the path where the store for `path` grows: that of the `writer` if the run resumes a store."""
    if writer is not None:
        return str(writer.path)
    return _beside(path) if os.path.lexists(path) else os.fspath(path)


def kept_beside(path: str | os.PathLike[str], growing: str) -> str:
    """Return a clause on the disk of the result at `path` while its replacement is written to `growing`; or ""."""
    if growing == os.fspath(path):
        return ""
    return f"; {path} keeps its {size(store_bytes(path))} of disk until the new store replaces it"


def unfinished_bytes(path: str | os.PathLike[str]) -> int:
    """Return the bytes of the unfinished store at `path`; 0 if there is none."""
    try:
        complete = open_store(path).attrs.get("complete", True)
    except StoreError:
        return 0
    return 0 if complete else store_bytes(path)


def place_of(path: str | os.PathLike[str]) -> str:
    """Return the final path of a store: `path` itself, or the path of the store that it will replace."""
    return os.fspath(path).removesuffix(NEW) if _replaces(path) else os.fspath(path)


def unfinished(path: str | os.PathLike[str], command: str, done: str = "") -> StoreError:
    """Return the error for an unfinished store; `command` makes the store, and `done` says how much is done."""
    far = f", {done} done" if done else ""
    return StoreError(
        f"{path}: unfinished{far}; repeat `tilepath {command} {place_of(path)}` with its options and resume (--resume)"
    )


def clear_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what dead processes of this host left for `path`, a store or a file; restore a store they moved away."""
    place = Path(os.path.realpath(path))
    host = re.escape(_host())
    form = re.compile(rf"\.{re.escape(place.name)}\.(?:{host}\.)?(\d+)\.(partial|replaced)")
    for found in place.parent.glob(f".{glob.escape(place.name)}.*") if place.parent.is_dir() else ():
        match = form.fullmatch(found.name)
        with suppress(FileNotFoundError):  # another process clears the same place
            if match is not None and _left(found, int(match[1])):
                _clear(found, place, moved_away=match[2] == "replaced")


def _left(found: Path, process: int) -> bool:
    """Return whether the thread `process` no longer needs the file or store `found`: it is this one, or has ended."""
    return process == threading.get_native_id() or found.stat().st_ctime <= _boot_time() or not _alive(process)


def _clear(found: Path, place: Path, moved_away: bool) -> None:
    if moved_away and not place.exists():
        found.rename(place)
    elif found.is_file():
        found.unlink()
    else:
        delete_tree(found, ignore_errors=True)


def _put(new: str, place: str) -> None:
    """Rename a durable store to `place`. A store that exists there is moved away before, and deleted afterwards."""
    aside = hidden_name(place, "replaced") if os.path.lexists(place) else ""
    if aside:
        os.rename(place, aside)
    try:
        os.rename(new, place)
    except BaseException:
        if aside:
            os.rename(aside, place)
        raise
    sync_names(os.path.dirname(place))
    if aside:
        delete_tree(aside, ignore_errors=True)


@contextmanager
def hidden_folder(prefix: str, beside: str | os.PathLike[str]) -> Iterator[str]:
    """Make a folder for a step between, in the folder `beside`; it is removed at the end, if need be in several passes.

    Before the end, the result may be in its place already: then a failing removal is no reason to end with an error.
    """
    folder = tempfile.mkdtemp(prefix=prefix, dir=beside)
    try:
        yield folder
    finally:
        _discard(folder)


def _discard(store: str) -> None:
    """Remove a hidden folder, also where threads of Zarr still write chunks after an error, and make folders anew."""
    for _ in range(PASSES):
        delete_tree(store, ignore_errors=True)
        time.sleep(PASS_SECONDS)
        if not os.path.lexists(store):
            return


def _beside(path: str | os.PathLike[str]) -> str:
    return os.path.realpath(path) + NEW


def _replaces(path: str | os.PathLike[str]) -> bool:
    """Return whether the store growing at `path` will replace the store of this name without `NEW`."""
    if not os.fspath(path).endswith(NEW) or not os.path.isdir(path):
        return False
    try:
        replaces = open_store(path).attrs.get("replaces")
    except StoreError:
        return False
    return bool(replaces == os.path.basename(path).removesuffix(NEW))


def hidden_name(place: str, ending: str) -> str:
    """Return a name beside `place` for a store or file of this thread. `clear_leftovers` knows such names.

    Linux numbers threads and processes together; the main thread has the number of its process.
    """
    folder, name = os.path.split(place)
    return os.path.join(folder, f".{name}.{_host()}.{threading.get_native_id()}.{ending}")


def _host() -> str:
    """Return the host name as part of a file name: process numbers are unique only within one host."""
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())


def _boot_time() -> float:
    """Return when this host was started: all processes of before are gone, and their numbers are given again."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True

"""Describe a store of any schema for people: its contents in one line, its progress, and its size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpuops.memory import size
from pipelines.som.mapping_quality import describe_mapping
from pipelines.stores.contents import Verified
from pipelines.stores.graph import Graph
from pipelines.stores.kinds import Kind
from pipelines.stores.mapping import Mapping
from pipelines.stores.place import growing_beside
from pipelines.stores.schema import counted, kind_of, open_store, store_bytes
from pipelines.stores.settled import settled
from tilepath.cli.describe_structure import structure_in_full, structure_lines


def store_info(path: str | os.PathLike[str], verify: bool = False, full: bool = False) -> list[str]:
    """Return lines about the store at `path`.

    With `verify`, reread all its data; StoreError names the first damage. With `full`, find the structure of a graph
    however large it is.
    """
    verified = _verify(path) if verify else None  # before describe(): the error then names the damage itself
    lines = settled(path, lambda: list(_lines(path, full)), several=True)
    return lines if verified is None else [*lines, f"checked: {'; '.join(verified.checked)}"]


def _lines(path: str | os.PathLike[str], full: bool) -> Iterator[str]:
    kind = kind_of(path)
    finished, done, total, unit = kind.progress(path)
    opened = kind.open(path) if finished else None
    if opened is not None:
        yield describe_mapping(opened) if isinstance(opened, Mapping) else opened.describe()
        if isinstance(opened, Graph):
            yield from structure_lines(opened, full)
    else:
        of = counted(total, unit.removesuffix("s"))
        yield f"{path}: unfinished {kind.name}, {max(done, 0):,} of {of} done; continue with --resume"
    yield f"{size(store_bytes(path))} on disk, schema {kind.schema}"
    left = _left(kind, path, opened)
    if left:
        taken, more = size(sum(map(store_bytes, left))), f" and {len(left) - 1:,} more" * (len(left) > 1)
        yield (
            f"{taken} of this are left over from a killed run ({left[-1].name}{more}); the command that made the store "
            "removes them with --resume"
        )
    beside = growing_beside(path)
    if beside is not None:
        yield f"{beside} will replace this store when it is complete; `tilepath info {beside}` shows its progress"


def store_facts(path: str | os.PathLike[str], verify: bool = False, full: bool = False) -> dict[str, Any]:
    """Return the contents, progress and recorded attributes of the store at `path` as entries of JSON, for programs."""
    verified = {"verified": _verify(path)._asdict()} if verify else {}
    return settled(path, lambda: _facts(path, full), several=True) | verified


def _facts(path: str | os.PathLike[str], full: bool) -> dict[str, Any]:
    kind = kind_of(path)
    finished, done, total, unit = kind.progress(path)
    opened = kind.open(path) if finished else None
    return {
        "path": os.path.abspath(path),
        "schema": kind.schema,
        "kind": kind.name,
        "complete": opened is not None,
        "done": max(done, 0),
        "total": total,
        "unit": unit or None,
        "bytes": store_bytes(path),
        "leftovers": [os.path.relpath(each, path) for each in _left(kind, path, opened)],
        "replaced_by": growing_beside(path),
        "attributes": open_store(path).attrs.asdict(),
        **(structure_in_full(opened, full) if isinstance(opened, Graph) else {}),
    }


def _left(kind: Kind, path: str | os.PathLike[str], opened: Any) -> list[Path]:
    """Return the files that killed runs left in a finished store.

    The list is empty for an unfinished store: its extra files may belong to a running writer.
    """
    return kind.begun(path).leftovers() if kind.writer and opened is not None else []


def _verify(path: str | os.PathLike[str]) -> Verified:
    kind = kind_of(path)
    if kind.writer:
        return kind.begun(path).verify()
    return settled(path, lambda: kind.open(path).verify(), long=True)

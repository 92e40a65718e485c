"""What a store is, for people: one line about its contents, whatever its schema, and how far an unfinished one is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pipelines.stores.contents import Verified
from pipelines.stores.graph import Graph
from pipelines.stores.kinds import Kind
from pipelines.stores.place import growing_beside
from pipelines.stores.schema import kind_of, open_store, store_bytes
from pipelines.workers.progress import size
from tilepath.cli.describe_structure import structure_in_full, structure_lines


def store_info(path: str | os.PathLike[str], verify: bool = False, full: bool = False) -> Iterator[str]:
    """Lines about the store at `path`; with `verify` everything is reread, and StoreError names what is wrong.

    `full` finds the structure of a graph of any size.
    """
    kind = kind_of(path)
    done, total = kind.progress(path)
    opened = kind.open(path) if done == total else None
    if opened is not None:
        yield opened.describe()
        if isinstance(opened, Graph):
            yield from structure_lines(opened, full)
    else:
        yield f"{path}: unfinished {kind.name}, {max(done, 0):,} of {total:,} {kind.unit} are done; go on with --resume"
    yield f"{size(store_bytes(path))} on disk, schema {kind.schema}"
    beside = growing_beside(path)
    if beside is not None:
        yield f"{beside} will replace it once that is complete; `tilepath info {beside}` shows how far it is"
    if verify:
        found = _verify(kind, path, opened)
        yield f"verified: {'; '.join(found.checked)}"
        if found.unchecked:
            yield f"not verified, as the version that made the store did not record it: {'; '.join(found.unchecked)}"


def store_facts(path: str | os.PathLike[str], verify: bool = False, full: bool = False) -> dict[str, Any]:
    """The same for programs, as JSON: what the store is, its progress, and its attributes as they are recorded."""
    kind = kind_of(path)
    done, total = kind.progress(path)
    opened = kind.open(path) if done == total else None
    facts = {
        "path": os.path.abspath(path),
        "schema": kind.schema,
        "kind": kind.name,
        "complete": opened is not None,
        "done": max(done, 0),
        "total": total,
        "unit": kind.unit or None,
        "bytes": store_bytes(path),
        "replaced_by": growing_beside(path),
        "attributes": open_store(path).attrs.asdict(),
        **(structure_in_full(opened, full) if isinstance(opened, Graph) else {}),
    }
    return facts | ({"verified": _verify(kind, path, opened)._asdict()} if verify else {})


def _verify(kind: Kind, path: str | os.PathLike[str], opened: Any) -> Verified:
    return (kind.begun(path) if opened is None else opened).verify()

"""Functions that all stores share. A store is a Zarr 3 group on disk with a `schema` attribute, checked on opening.

The module `place` decides where a store is written; the module `contents` records and checks the chunks. A chunk has
a single writer, and writing it is atomic with the default pipeline of Zarr 3.1.3 or later.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

from gpuops.memory import available_memory
from gpuops.numbers import outside_infinity
from pipelines.stores.durable import DurableStore, delete_tree
from pipelines.stores.errors import StoreError, raise_if_of_system, read_errors
from pipelines.stores.graph_names import weights_named_in
from pipelines.stores.kinds import KINDS, Kind
from pipelines.stores.settled import settled

CHUNK_BYTES = 4 << 20
MOST_COMPRESSED = 1 << 16  # no codec compresses a chunk to a smaller part
SMALL_BYTES = 1 << 30  # arrays that fit into the memory of any machine
TEXT = np.dtypes.StringDType()


def result_codecs(dtype: np.dtype) -> tuple[Any, ...]:
    """Return the codecs of result arrays: a fast compressor, and a checksum that detects damage on reading."""
    return (BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle", typesize=dtype.itemsize), Crc32cCodec())


def text_codecs() -> tuple[Any, ...]:
    """Return the codecs of arrays of text: a compressor and a checksum."""
    return ZstdCodec(), Crc32cCodec()


def checkpoint_codecs() -> tuple[Any, ...]:
    """Return the codecs of checkpoints, which are soon replaced: a checksum without compression."""
    return (Crc32cCodec(),)


def create_array(
    group: zarr.Group, name: str, shape: Sequence[int], chunks: Any, dtype: Any, **options: Any
) -> zarr.Array[Any]:
    """Create an array that stores every chunk, by default with the codecs of results; `options` go to Zarr."""
    codecs = text_codecs() if dtype is str or dtype == TEXT else result_codecs(np.dtype(dtype))
    options = {"compressors": codecs, "config": {"write_empty_chunks": True}} | options
    return group.create_array(name, shape=tuple(shape), chunks=chunks, dtype=dtype, **options)


def set_attributes(group: zarr.Group, attributes: Mapping[str, Any]) -> None:
    """Set attributes of a new store; numbers and flags of NumPy, which JSON does not take, become those of Python."""
    group.update_attributes({name: _plain(value) for name, value in attributes.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def distance_options(dtype: np.dtype, unit: str) -> dict[str, Any]:
    """Return the options of an array of distances: the value of unreachable, which is Zarr's fill value, and the unit.

    The attribute `unreachable` of the array is that value as Zarr writes it in JSON, "Infinity" for floats.
    """
    unreachable = outside_infinity(dtype).item()
    attributes = {"unreachable": "Infinity" if dtype.kind == "f" else unreachable} | ({"unit": unit} if unit else {})
    return {"fill_value": unreachable, "attributes": attributes}


def store_schema(path: str | os.PathLike[str]) -> str:
    """Return the schema that a store declares, such as ``"graph/1"``; raises StoreError if it declares no schema.

    A path may name weights of a graph store (`pipelines.stores.graph_names`).
    """
    path, weights = weights_named_in(path)
    found = str(settled(path, lambda: _declared(path, "r"))[1])
    if weights and found != "graph/1":
        raise StoreError(
            f"{path}: is {_called(found)}, which has no weights to choose from; choose the weights {weights!r} of its "
            "graph when it is made (weight, --weight)"
        )
    return found


def check_path(store: Any) -> None:
    """Raise ValueError if `store`, which is no opened store, is no path either, such as a table of arcs."""
    if not isinstance(store, str | os.PathLike):
        raise ValueError(
            f"a {type(store).__name__} is no graph store, nor the path of one; import what it holds first, such as "
            "tilepath.import_graph(edges, 'graph.zarr'), and pass the result"
        )


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Return the kind of the store at `path`; raises StoreError if this version does not know its schema."""
    schema = store_schema(path)
    if schema not in KINDS:
        raise unknown_schema(path, schema)
    return KINDS[schema]


def open_one_of(path: str | os.PathLike[str], schemas: Sequence[str], cure: str) -> Any:
    """Open the finished store at `path`, which is of one of `schemas`; `cure` ends the message about any other."""
    schema = store_schema(path)
    if schema not in schemas:
        raise StoreError(f"{path}: a store of schema {schema}; {cure}")
    return KINDS[schema].open(path)


def unknown_schema(path: str | os.PathLike[str], schema: str) -> StoreError:
    """Return the error for a store of a schema that this version does not know."""
    return StoreError(
        f"{path}: a store of schema {schema!r}, which this version of tilepath does not know; use the version that "
        "made it, or make the store again"
    )


def open_store(path: str | os.PathLike[str], schema: str | None = None, mode: str = "r") -> zarr.Group:
    """Open the group at `path`; check that it declares `schema` (None: any schema) and lacks no recorded array."""
    if mode == "r":
        return settled(path, lambda: _opened(path, schema, mode))
    return _opened(path, schema, mode)


def _opened(path: str | os.PathLike[str], schema: str | None, mode: str) -> zarr.Group:
    group, found = _declared(path, mode)
    if schema is not None and found != schema:
        if found not in KINDS:
            raise unknown_schema(path, found)
        made = f"; `{KINDS[schema].made_by}` makes one" if schema in KINDS else ""
        raise StoreError(f"{path}: is {_called(found)}, but {_called(schema)} is needed{made}")
    with damaged_attributes(path):
        for name in dict(group.attrs.get("contents", {})):
            if os.path.basename(name) != name or not name.strip("."):
                raise ValueError(f"the array {name!r} is not within the store")
            if not os.path.isfile(os.path.join(path, name, "zarr.json")):
                raise no_array(path, name)
    return group


def _declared(path: str | os.PathLike[str], mode: str) -> tuple[zarr.Group, str]:
    """Return the group at `path` and its schema."""
    if not Path(path).exists():
        raise StoreError(f"{path}: no such store")
    if Path(path).is_file():
        raise StoreError(
            f"{path}: is a file, not a store; import it first (tilepath import, tilepath som import), or choose "
            "another place for a result"
        )
    about = os.path.join(path, "zarr.json")
    if os.path.exists(about) and not os.path.isfile(about):  # Zarr would wait for a pipe to end
        raise StoreError(f"{about}: is not a file; the store is damaged; recreate it")
    try:
        files = os.fspath(path) if mode == "r" else DurableStore(os.fspath(path))
        group = zarr.open_group(files, mode=mode, use_consolidated=False)
        found = group.attrs.get("schema")
    except Exception as error:  # Zarr raises errors of many types on invalid files
        raise_if_of_system(error, path)
        raise StoreError(
            f"{path}: not a Zarr 3 group ({brief(error)}); if tilepath made it, remove it and make it again"
        ) from error
    if not isinstance(found, str):
        raise StoreError(f"{path}: a Zarr group without a `schema` attribute; it was not made by tilepath")
    return group, found


def _called(schema: str) -> str:
    return f"a {KINDS[schema].name} store ({schema})" if schema in KINDS else f"a store of schema {schema}"


def check_array(
    path: Any, group: zarr.Group, name: str, shape: Sequence[int | None], dtypes: Sequence[Any], whole: bool = False
) -> tuple[int, ...]:
    """Return the shape of the array `name`, which is `shape` (None: any length).

    Raises StoreError unless the group has such an array, of one of `dtypes`. With `whole`, the last chunk of an array
    larger than the free memory must be there: the attributes of a hostile store may claim far more than it has, and
    memory would be taken for that.
    """
    try:
        array = group.get(name)
    except Exception as error:
        raise_if_of_system(error, os.path.join(path, name))
        raise StoreError(f"{path}: the array `{name}` is damaged ({brief(error)}); recreate the store") from error
    if not isinstance(array, zarr.Array):
        raise no_array(path, name)
    fits = len(array.shape) == len(shape) and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
    if not fits or not any(array.dtype == np.dtype(d) for d in dtypes):
        expected = " or ".join(str(np.dtype(d)) for d in dtypes)
        raise StoreError(
            f"{path}: array `{name}` is {array.dtype} {array.shape}, expected {expected} {tuple(shape)}; "
            "the store is damaged or was not made by tilepath; recreate it"
        )
    if whole and array.nbytes > SMALL_BYTES and array.nbytes > available_memory():
        last = tuple((size - 1) // max(1, chunk) for size, chunk in zip(array.shape, array.chunks, strict=True))
        place, key = os.path.join(path, name), array.metadata.encode_chunk_key(last)
        if not os.path.isfile(os.path.join(place, key)):
            raise missing_chunk(place, key)
        if os.path.getsize(os.path.join(place, key)) * MOST_COMPRESSED < math.prod(array.chunks) * array.dtype.itemsize:
            raise StoreError(f"{place}: the chunk {key} is far smaller than its array says; recreate the store")
    return array.shape


def no_array(path: Any, name: str) -> StoreError:
    """Return the error for an array that is missing in a store; raise OSError if its folder cannot be looked into."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.stat(os.path.join(path, name, "zarr.json"))
    return StoreError(f"{path}: the array `{name}` is missing; the store is damaged; recreate it")


def missing_chunk(place: str | os.PathLike[str], key: str) -> StoreError:
    """Return the error for a chunk that is missing in the array at `place`."""
    return StoreError(f"{place}: the chunk {key} is missing; the store is damaged; recreate it")


def attribute(path: Any, group: zarr.Group, name: str) -> Any:
    """Return an attribute that every store of the schema has; raises StoreError if it is missing."""
    if name not in group.attrs:
        raise StoreError(f"{path}: the attribute `{name}` is missing; the store is damaged; compute it again")
    return group.attrs[name]


@contextmanager
def damaged_attributes(path: Any, what: str = "the attributes are") -> Iterator[None]:
    """Turn errors raised by invalid attributes into a StoreError."""
    try:
        yield
    except StoreError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(f"{path}: {what} damaged ({brief(error)}); recreate the store") from error


def recorded_dtype(name: Any) -> np.dtype:
    """Return the dtype called `name`. Reject other text that `numpy.dtype` accepts, such as the text of a tuple."""
    if not (isinstance(name, str) and name.isalnum()):
        raise ValueError(f"{name!r} is not the name of a dtype")
    return np.dtype(name)


def recorded_vertices(path: Any, name: str, vertices: Any, n: int) -> np.ndarray:
    """Return vertices read from a store as int64; raises StoreError unless each is in 0..n-1."""
    found = np.asarray(vertices)
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.size == 0:
        raise StoreError(f"{path}: the {name} are damaged: not a list of vertices; compute the store again")
    if found.min() < 0 or found.max() >= n:
        raise StoreError(f"{path}: the {name} are damaged: not all are vertices in 0..{n - 1}; compute the store again")
    return found.astype(np.int64)


def row_ranges(done: np.ndarray) -> list[list[int]]:
    """Return the rows selected by `done`, bool (S), as JSON: [start, stop] of each run of consecutive rows.

    >>> row_ranges(np.array([True, True, False, True]))
    [[0, 2], [3, 4]]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], done, [False]])))
    return edges.reshape(-1, 2).tolist()


def row_mask(path: Any, ranges: Any, rows: int) -> np.ndarray:
    """Return the mask, bool (rows), that `row_ranges` turned into `ranges`; `path` names the store in messages."""
    done = np.zeros(rows, dtype=bool)
    with damaged_attributes(path, "the rows that are done are"):
        for start, stop in ranges:
            if not 0 <= start < stop <= rows:
                raise ValueError(f"rows {start} to {stop} of {rows}")
            done[start:stop] = True
    return done


def owned(path: str, schema: str, run_id: str) -> zarr.Group:
    """Open an unfinished store for writing by the run `run_id`; raises StoreError if another run owns the store."""
    group = open_store(path, schema, "r+")
    if group.attrs.get("run_id") != run_id:
        raise _lost(path)
    return group


def refuse_lost(path: str, run_id: str) -> None:
    """Raise StoreError if another run than `run_id` owns the store at `path`, or FileNotFoundError if it is gone.

    Reading one small file takes far less time than writing a chunk, so workers check before every chunk.
    """
    place = os.path.join(path, "zarr.json")
    with damaged_attributes(path), read_errors(place), open(place, encoding="utf-8") as file:
        found = json.load(file)["attributes"]
    if found.get("run_id") != run_id:
        raise _lost(path)


def _lost(path: str) -> StoreError:
    return StoreError(f"{path}: another run took this store over, or replaced it; stop one of the two")


def new_run_id() -> str:
    """Return a unique id for a run."""
    return uuid.uuid4().hex


def refuse_no_place(path: str | os.PathLike[str]) -> None:
    """Raise StoreError if `path` is empty, or a symbolic link to a place that does not exist."""
    if not os.fspath(path):
        raise StoreError("the name of the output is empty, which would be the current folder; choose a name")
    if os.path.islink(path) and not os.path.exists(path):
        target = os.readlink(path)
        raise StoreError(f"{path} is a link to {target}, which does not exist; remove the link, or choose another name")


def refuse_within_store(path: str | os.PathLike[str]) -> None:
    """Raise StoreError if `path` lies within a store."""
    for place in Path(os.path.realpath(path)).parents:
        if (place / "zarr.json").is_file():
            raise StoreError(f"{path} lies within the store {place}; choose another place")


def leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """Return the partial files of chunks and the partial stores that killed writers left within the store."""
    found = Path(path).rglob("*.partial")
    return [each for each in found if not any(up.suffix == ".partial" for up in each.relative_to(path).parents)]


def remove_leftovers(found: Iterable[Path]) -> None:
    """Delete files and folders that killed writers left; no writer may be active."""
    for leftover in found:
        if leftover.is_dir():
            delete_tree(leftover)
        else:
            leftover.unlink(missing_ok=True)


def store_bytes(path: str | os.PathLike[str]) -> int:
    """Return the bytes that the store takes on disk."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    total = 0
    for file in files if os.path.isdir(path) else [path]:
        with suppress(FileNotFoundError):  # another process removed it meanwhile
            total += os.path.getsize(file)
    return total


def brief(error: Exception | str) -> str:
    """Return a text, or the message of an error, on one line of at most 200 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


def number(value: float) -> str:
    """Return a number as text with grouped digits: all digits of a whole number, else six significant digits.

    >>> number(65536.0), number(1234.5678)
    ('65,536', '1,234.57')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def counted(count: int, one: str, more: str = "") -> str:
    """Return a count and its noun as text, in the singular or the plural.

    >>> counted(1, "arc"), counted(4096, "vertex", "vertices")
    ('1 arc', '4,096 vertices')
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"

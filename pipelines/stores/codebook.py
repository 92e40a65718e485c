"""The codebook store (schema `codebook/1`): a self-organizing map and its training history.

========= ================== ==================================================================================
array     dtype, shape       meaning
========= ================== ==================================================================================
codebooks float (E+1, M, d)  the units before the first epoch and after each epoch, kept from epoch `first_kept`
                             on; unit u is in row u // columns and column u % columns of the grid; a chunk holds
                             several codebooks of a small map, and is committed when it is full
hits      int64 (M)          the number of samples with this best matching unit, written when training ends
sigmas    float64 (E)        the reach of the neighbourhood in every planned epoch
classes   text or number (L) optional: the classes that a classifier of scikit-learn knows
votes     int64 (M, L)       optional: the number of samples of each class of each unit
========= ================== ==================================================================================

The attributes `grid`, `metric`, `missing`, and the names and the scaling of the columns describe the map; `options`
describes its training. `errors` holds the quantization error of each codebook, and `topographic_error` the topographic
error of the last codebook. `committed` is the number of complete epochs, or -1 before the first codebook. It is written
after the codebooks, so that the next run can resume there if a run is killed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from gpuops.som.grid import Grid
from pipelines.stores.contents import StoredArray, record, writable_array
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, optional, tuple_of, view
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.opened import OpenedStore
from pipelines.stores.place import take_place
from pipelines.stores.resuming import FinishedStore, NewArray, StoreWriter
from pipelines.stores.samples import DTYPES, Samples, open_samples
from pipelines.stores.scaling import Scaling, scaling_from
from pipelines.stores.schema import CHUNK_BYTES, TEXT, counted, remove_leftovers
from pipelines.stores.table_stores import Columns, TableStore, as_array, with_columns

if TYPE_CHECKING:
    import xarray


def _derived(path: str, group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    committed, errors, sigmas = found["committed"], found["quantization_errors"], StoredArray(path, "sigmas")[:]
    planned = committed if found["finished"] else len(sigmas)
    first = group.attrs.get("first_kept", 0)  # the first commit writes it
    if not -1 <= committed <= planned <= len(sigmas) or not 0 <= first <= max(committed, 0):
        raise ValueError(f"{committed} of {len(sigmas)} epochs are committed, and kept from epoch {first} on")
    if found["finished"] and len(errors) != committed + 1:
        raise ValueError(f"{len(errors)} errors of {committed} epochs")
    return ({"codebooks": committed + 1} if found["finished"] else {}) | {
        "scaling": scaling_from(found["scaling"], len(found["columns"])),
        "units": found["grid"].units,
        "sigmas": tuple(map(float, sigmas))[:planned],
        "epochs": planned,
        "first_kept": first,
    }


DECLARED = Schema(
    "codebook/1",
    source="samples",
    attributes=(
        Attribute("grid", lambda grid: Grid(**grid)),
        Attribute("metric", str),
        Attribute("dtype", dtype_of(DTYPES)),
        Attribute("missing", bool),
        Attribute("columns", tuple_of(str)),
        Attribute("scaling", dict),
        Attribute("compensated", bool),
        Attribute("options", dict),
        Attribute("committed", int),
        Attribute("errors", tuple_of(float), field="quantization_errors"),
        Attribute("topographic_error", optional(float)),
    ),
    arrays=(
        Array("codebooks", ("dtype",), ("codebooks", "units", "columns")),
        Array("hits", ("int64",), ("units",)),
        Array("sigmas", ("float64",), ("planned",)),
        Array("classes", (TEXT, "int64", "float64", "bool"), ("classes",), optional=True),
        Array("votes", ("int64",), ("units", "classes"), optional=True),
    ),
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, eq=False, repr=False)
class Codebook(TableStore, FinishedStore, OpenedStore):
    """A finished codebook store, opened by `open_codebook`. Pickles leave out the arrays.

    `sigmas` has one entry per epoch. `quantization_errors` has one entry more, because it begins with the initial map.
    `topographic_error` is None for a map of one unit.
    """

    path: str
    grid: Grid
    metric: str
    dtype: np.dtype
    missing: bool
    columns: tuple[str, ...]
    scaling: Scaling
    epochs: int
    sigmas: tuple[float, ...]
    quantization_errors: tuple[float, ...]
    topographic_error: float | None
    options: dict[str, Any]
    samples_path: str
    samples_digest: str
    compensated: bool = False
    first_kept: int = 0  # first epoch whose codebook was kept
    arrays: tuple[str, ...] = ()

    @property
    def d(self) -> int:
        return len(self.columns)

    def units(self, epoch: int = -1) -> np.ndarray:
        """Return the units (M, d) after `epoch` epochs; 0 is the initial map, -1 the last map."""
        if not -self.epochs - 1 <= epoch <= self.epochs:
            raise ValueError(f"{self.path}: there is no epoch {epoch}; choose one from 0 to {self.epochs}")
        if epoch % (self.epochs + 1) < self.first_kept:
            raise ValueError(
                f"{self.path}: only the codebooks of the epochs from {self.first_kept} on were kept; choose one of them"
            )
        return self.stored("codebooks")[epoch]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return as_array(self.path, self.units(), dtype, copy)

    def hits(self) -> np.ndarray:
        """Return for each unit the number of samples whose best matching unit it is, int64 (M)."""
        return self.stored("hits")[:]

    def votes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the classes (L) and the samples of each class in each unit, int64 (M, L); None if the map has none."""
        if "votes" not in self.arrays:
            return None
        classes = StoredArray(self.path, "classes")[:]
        named = np.array(classes.tolist()) if classes.dtype == TEXT else classes
        return named, StoredArray(self.path, "votes")[:]

    @property
    def table_rows(self) -> int:
        return self.grid.units

    def table_columns(self, start: int, stop: int) -> Columns:
        """Return some units as columns: the place on the grid, the hits, and the values as stored."""
        units = np.arange(start, stop)
        place = {"row": units // self.grid.columns, "column": units % self.grid.columns}
        values, hits = (self.stored(name) for name in ("codebooks", "hits"))
        return with_columns(place | {"hits": hits[start:stop]}, self.columns, values[-1, start:stop].T)

    def to_xarray(self) -> xarray.DataArray:
        """Return the last codebook as a DataArray (rows, columns, d), with the names of the columns of the samples."""
        import xarray

        shape, dimensions = (self.grid.rows, self.grid.columns, self.d), ("row", "column", "feature")
        return xarray.DataArray(
            self.units().reshape(shape), {"feature": list(self.columns)}, dimensions, name="codebook"
        )

    def samples(self, path: str | os.PathLike[str] | None = None) -> Samples:
        """Open the samples that the map was trained with; pass `path` if they were moved.

        A map that an estimator has saved does not know its samples, and takes any at `path`.
        """
        if path is None and not self.samples_digest:
            raise StoreError(f"{self.path} was trained with samples in memory; import them, and give their path")
        if path is None and not os.path.isdir(self.samples_path):
            raise StoreError(f"{self.path}: its samples are no longer at {self.samples_path}; give their path")
        samples = open_samples(self.samples_path if path is None else path)
        if self.samples_digest not in ("", samples.digest):
            raise StoreError(f"{self.path} was trained with other samples than {samples.path}; name the right ones")
        return samples

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        grid = self.grid
        kind = f"{'toroidal ' if grid.toroidal else ''}{'hexagonal' if grid.hexagonal else 'rectangular'}"
        parts = [
            f"{self.path}: {grid.rows:,} x {grid.columns:,} {kind} map of {counted(self.d, 'column')}",
            counted(self.epochs, "epoch"),
            f"quantization error {self.quantization_errors[-1]:.6g}",
        ]
        if self.topographic_error is not None:
            parts.append(f"topographic error {self.topographic_error:.4g}")
        return ", ".join(parts)


@dataclass(frozen=True)
class SamplesInMemory:
    """The record, in a codebook store, of samples that are in no store."""

    columns: tuple[str, ...]
    dtype: np.dtype
    missing: bool
    scaling: Scaling
    compensated: bool = False

    @property
    def d(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class CodebookWriter(StoreWriter):
    """A codebook store that is being trained; `keep` is the number of last codebooks to keep, None for all."""

    declared, command, unit = DECLARED, "som train {samples[path]}", "epochs"

    epochs: int
    options: dict[str, Any]
    arrays: tuple[str, ...]
    keep: int | None = None

    @cached_property
    def together(self) -> int:
        """The number of codebooks in a chunk. A commit ends with the last codebook of a chunk, or of the training."""
        return StoredArray(self.path, "codebooks").chunks[0]

    def write(self, first: int, codebooks: np.ndarray) -> None:
        """Write codebooks, (k, M, d): the units after `first` epochs, and after each epoch that follows."""
        with disk_errors(self.path):
            self.owned()
            writable_array(self.path, "codebooks")[first : first + len(codebooks)] = codebooks

    def read(self, epoch: int) -> np.ndarray:
        return StoredArray(self.path, "codebooks")[epoch]

    def committed(self) -> int:
        """Return the number of complete epochs, or -1 before the first codebook."""
        return int(self.group().attrs["committed"])

    def progress(self) -> tuple[int, int]:
        return self.committed(), self.epochs

    def begun_with(self) -> dict[str, Any]:
        return self.options

    @classmethod
    def resume(cls, path: Any, source: Any, options: Mapping[str, Any] | None = None, *_: Any) -> CodebookWriter:
        """Take over an unfinished store, as `StoreWriter.resume` does; an option that is not given counts as None."""
        asked = dict.fromkeys(cls.begun(path).options) | dict(options or {})
        writer = super().resume(path, source, asked)
        if not writer.finished:
            # A run that ended training early may have been killed after it shortened the array and before the record.
            with disk_errors(writer.path):
                codebooks = writable_array(writer.path, "codebooks")
                codebooks.resize((writer.epochs + 1, *codebooks.shape[1:]))
        return writer

    def errors(self) -> list[float]:
        """Return the quantization errors known so far, from the first codebook on."""
        return list(self.group().attrs["errors"])

    def chunks_committed(self) -> dict[str, list[str]]:
        chunks = {"codebooks": self._places(*self._kept())}
        whole = [name for name in self.arrays if name != "codebooks" and (self.finished or name != "hits")]
        return chunks | {name: StoredArray(self.path, name).places() for name in whole}

    def check_values(self) -> tuple[str, ...]:
        (first, last), codebooks = self._kept(), StoredArray(self.path, "codebooks")
        if self.finished and (StoredArray(self.path, "hits")[:] < 0).any():
            raise StoreError(f"{self.path}: `hits` has negative counts; train the map again")
        for epoch in range(first, last + 1):
            if not np.isfinite(codebooks[epoch]).all():
                raise StoreError(f"{self.path}: epoch {epoch} holds values that are not finite; train the map again")
        return ("that every value is finite",)

    def commit(self, epochs: int, errors: list[float]) -> None:
        """Record that codebooks are written up to `epochs` epochs, and the `errors` of the codebooks before the last.

        Codebooks that are no longer kept are deleted.
        """
        oldest, before = self._kept()
        kept = oldest if self.keep is None else max(oldest, (epochs + 1 - self.keep) // self.together * self.together)
        with disk_errors(self.path):
            added = {"codebooks": self._places(max(before + 1, kept), epochs)}
            removed = {"codebooks": self._places(oldest, min(before, kept - 1))}
            attributes = {"committed": epochs, "errors": errors, "first_kept": kept}
            record(self.path, self.owned(), attributes, added, removed=removed)
            for key in self._places(0, kept - 1):  # includes chunks that a run killed here left behind
                Path(self.path, "codebooks", key).unlink(missing_ok=True)

    def finish(self, epochs: int, errors: list[float], topographic_error: float | None, hits: np.ndarray) -> None:
        """Record that training is over, perhaps earlier than planned."""
        with disk_errors(self.path):
            self.owned()
            writable_array(self.path, "hits")[:] = hits
            codebooks = writable_array(self.path, "codebooks")
            codebooks.resize((epochs + 1, *codebooks.shape[1:]))
            remove_leftovers(self.leftovers())
            final = {"committed": epochs, "errors": errors, "topographic_error": topographic_error, "complete": True}
            self.commit(epochs, errors[:-1])  # a run that is killed here judges the last codebook again
            record(self.path, self.owned(), final, {"hits": StoredArray(self.path, "hits").places()})
            take_place(self.path)

    def _kept(self) -> tuple[int, int]:
        """Return the first and the last epoch whose codebooks are committed and kept; (0, -1) before any."""
        attributes = self.group().attrs
        return attributes.get("first_kept", 0), attributes["committed"]

    def _places(self, first: int, last: int) -> list[str]:
        """Return the keys of the chunks of the codebooks after `first` to `last` epochs (included)."""
        codebooks = StoredArray(self.path, "codebooks")
        epochs = np.arange(codebooks.shape[0])
        if last >= len(epochs):
            raise StoreError(f"{self.path}: `codebooks` is too short to hold epoch {last}; train the map again")
        return codebooks.places((first <= epochs) & (epochs <= last))


def create_codebook(
    path: str | os.PathLike[str],
    samples: Samples | SamplesInMemory,
    grid: Grid,
    *,
    metric: str,
    sigmas: list[float],
    options: dict[str, Any],
    together: int = 1,
    votes: tuple[np.ndarray, np.ndarray] | None = None,
    overwrite: bool = False,
) -> CodebookWriter:
    """Create a codebook store for a map of `samples`, with one epoch per entry of `sigmas` and without a commit yet.

    A run that resumes this store must repeat the `options` (JSON). `together` is the number of codebooks in a chunk,
    and `votes` what `Codebook.votes` returns.
    """
    chunks = (together, max(1, min(grid.units, CHUNK_BYTES // (samples.d * samples.dtype.itemsize))), samples.d)
    arrays = {
        "codebooks": NewArray((len(sigmas) + 1, grid.units, samples.d), chunks, samples.dtype),
        "hits": NewArray((grid.units,), "auto", np.int64),
        "sigmas": np.array(sigmas, np.float64),
    }
    if votes is not None:
        arrays |= dict(zip(("classes", "votes"), votes, strict=True))
    attributes = {
        "grid": vars(grid),
        "metric": metric,
        "dtype": str(samples.dtype),
        "missing": samples.missing,
        "columns": list(samples.columns),
        "scaling": samples.scaling.recorded(),
        "compensated": samples.compensated,
        "options": options,
        "committed": -1,
        "errors": [],
        "topographic_error": None,
    }
    source = samples if isinstance(samples, Samples) else None
    return CodebookWriter.create(path, source, attributes, arrays, overwrite=overwrite)


def open_codebook(store: Codebook | str | os.PathLike[str]) -> Codebook:
    """Open a finished codebook store and check its schema, shapes and dtypes, or return an opened one.

    Raises
    ------
    StoreError
        The store is missing, damaged, unfinished or of another schema; the message names the cure.

    Examples
    --------
    >>> tilepath.open_codebook("map.zarr").units().shape
    (20, 3)
    """
    if isinstance(store, Codebook):
        return store
    return view(Codebook, CodebookWriter.read_finished(store))

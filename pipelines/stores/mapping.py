"""The mapping store (schema `mapping/1`): where samples lie on a self-organizing map. It grows by chunks of rows.

========= ============== ==============================================================
array     dtype, shape   meaning
========= ============== ==============================================================
units     int32 (N, t)   the t = 2 best matching units, the nearest first; t = 1 where
                         the map has a single unit
distances float (N, t)   the distances of the sample to these units
weights   float (N)      optional: the weight of the sample in errors, from its store
========= ============== ==============================================================

The attribute `done` lists the complete rows and is written after them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

from gpuops.som.grid import Grid
from pipelines.stores.codebook import Codebook
from pipelines.stores.contents import StoredArray, row_blocks
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, recorded_origin, view
from pipelines.stores.errors import StoreError, disk_errors
from pipelines.stores.opened import OpenedStore
from pipelines.stores.resuming import FinishedStore, NewArray, RowsWriter
from pipelines.stores.samples import DTYPES, Samples, open_samples
from pipelines.stores.schema import CHUNK_BYTES, counted
from pipelines.stores.table_stores import Columns, TableStore, as_array
from pipelines.stores.whole_chunks import WholeChunks

LEAST_ROWS = 4096  # least number of rows of a chunk


def _derived(path: str, group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "codebook": recorded_origin(path, group, "codebook"),
        "chunk": StoredArray(path, "units").chunks[0],
        "rows": found["n"],
        "weighted": "weights" in found["arrays"],
    }


DECLARED = Schema(
    "mapping/1",
    source="samples",
    attributes=(
        Attribute("n", int),
        Attribute("top", int),
        Attribute("dtype", dtype_of(DTYPES)),
        Attribute("grid", lambda grid: Grid(**grid)),
    ),
    arrays=(
        Array("units", ("int32",), ("n", "top"), grows=True),
        Array("distances", ("dtype",), ("n", "top"), grows=True),
        Array("weights", DTYPES, ("n",), optional=True, grows=True),
    ),
    derive=_derived,
)
SCHEMA = DECLARED.name


@dataclass(frozen=True, eq=False, repr=False)
class Mapping(TableStore, FinishedStore, OpenedStore):
    """A finished mapping store, opened by `open_mapping`: rows read on demand. Pickles leave out the arrays."""

    path: str
    n: int
    top: int
    dtype: np.dtype
    grid: Grid
    samples_path: str
    samples_digest: str
    codebook: dict[str, Any]  # recorded facts about the map
    weighted: bool

    @property
    def codebook_path(self) -> str:
        return str(self.codebook["path"])

    def check_codebook(self, codebook: Codebook) -> None:
        """Raise StoreError unless `codebook` is the map that the samples were mapped to."""
        if self.grid != codebook.grid or not _is_recorded(self.codebook, codebook):
            raise StoreError(
                f"{self.path} maps to another map than {codebook.path}; name the map it was made with, or map the "
                "samples to this one (tilepath som map)"
            )

    def samples(self, given: Samples | str | os.PathLike[str] | None = None) -> Samples:
        """Return the samples that were mapped; if they were moved, pass them or their path."""
        if given is None and not os.path.isdir(self.samples_path):
            raise StoreError(
                f"{self.path}: its samples are no longer at {self.samples_path}; give their path (samples, --samples)"
            )
        samples = given if isinstance(given, Samples) else open_samples(self.samples_path if given is None else given)
        if samples.digest != self.samples_digest:
            raise StoreError(f"{self.path} maps other samples than {samples.path}; name the right ones")
        return samples

    def units(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the units of the samples from `start` to `stop` (excluded), int32 (k, t)."""
        return self.stored("units", within=(0, self.grid.units - 1))[start : self.n if stop is None else stop]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return as_array(self.path, self.units(), dtype, copy)

    def distances(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the distances of the samples from `start` to `stop` (excluded) to their units, (k, t)."""
        return self.stored("distances")[start : self.n if stop is None else stop]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Iterate over the chunks: yields the first row of each chunk, and the row after its last."""
        return self.stored("units").ranges()

    def hits(self) -> np.ndarray:
        """Return for each unit the number of samples whose best matching unit it is, int64 (M)."""
        return sum(
            (np.bincount(self.units(*rows)[:, 0], minlength=self.grid.units) for rows in self.ranges()),
            start=np.zeros(self.grid.units, np.int64),
        )

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the weights of the samples in errors, float64 (k): ones if the store has no weights."""
        stop = self.n if stop is None else stop
        return (self.stored("weights")[start:stop] if self.weighted else np.ones(stop - start)).astype(float)

    @property
    def table_rows(self) -> int:
        return self.n

    def table_columns(self, start: int, stop: int) -> Columns:
        """Return some rows as columns: the number of the sample, and its nearest units with their distances."""
        columns: Columns = {"sample": np.arange(start, stop)}
        units, distances = self.units(start, stop), self.distances(start, stop)
        for place in range(self.top):
            number = "" if place == 0 else str(place + 1)
            columns |= {f"unit{number}": units[:, place], f"distance{number}": distances[:, place]}
        return columns

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        return f"{self.path}: units of {counted(self.n, 'sample')}"


@dataclass(frozen=True, eq=False)
class MappingWriter(RowsWriter):
    """A mapping store that is being written."""

    declared, command, unit = DECLARED, "som map {codebook[path]} {samples[path]}", "samples"

    grid: Grid
    codebook: dict[str, Any]  # recorded facts about the map

    def write(self, start: int, units: np.ndarray, distances: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Write rows, in whole chunks, from row `start` on; weights are written only if the store has the array."""
        with disk_errors(self.path):
            for name, values in zip(self.arrays, (units, distances, weights), strict=False):
                assert values is not None
                WholeChunks(self.path, name, run_id=self.run_id)[start : start + len(units)] = values

    def begun_with(self) -> dict[str, Any]:
        return {}  # `resume` compares the maps

    @classmethod
    def resume(cls, path: Any, source: Any, options: Any = None, *_: Any) -> MappingWriter:
        """Take over an unfinished store, as `StoreWriter.resume` does; `options` has the `codebook` of the run."""
        begun, codebook = cls.begun(path), options["codebook"]
        if begun.grid != codebook.grid or not _is_recorded(begun.codebook, codebook):
            raise StoreError(
                f"{path}: was begun with another map than {codebook.path}; name the right one or start over"
            )
        return super().resume(path, source)

    def check_values(self) -> tuple[str, ...]:
        within = {"units": (0, self.grid.units - 1)}
        arrays = [StoredArray(self.path, name, within.get(name)) for name in self.arrays]
        for start, _units, distances, *weights in row_blocks(arrays, self.rows_done()):
            for name, values in (("weights", weights), ("distances", [distances])):
                if any(not ((found >= 0) & (found < np.inf)).all() for found in values):
                    raise StoreError(
                        f"{self.path}: from row {start} on {name} are negative or not finite; map the samples again"
                    )
        return ("that every entry is valid",)


def rows_of_chunk(samples: Samples, codebook: Codebook) -> int:
    """Return the rows of a chunk of a new store.

    There are at least 16 chunks, to be shared by the workers, unless chunks would be too small to be worth a file.
    """
    most = CHUNK_BYTES // (min(2, codebook.grid.units) * codebook.dtype.itemsize)
    return min(samples.n, most, max(LEAST_ROWS, -(-samples.n // 16)))


def create_mapping(
    path: str | os.PathLike[str], samples: Samples, codebook: Codebook, *, overwrite: bool = False
) -> MappingWriter:
    """Create a mapping store in which no row is done yet."""
    top, chunk = min(2, codebook.grid.units), rows_of_chunk(samples, codebook)
    arrays = {
        "units": NewArray((samples.n, top), (chunk, top), np.int32),
        "distances": NewArray((samples.n, top), (chunk, top), codebook.dtype),
    }
    if samples.largest_weight is not None:
        arrays["weights"] = NewArray((samples.n,), (chunk,), samples.dtype)
    attributes = {
        "n": samples.n,
        "top": top,
        "dtype": str(codebook.dtype),
        "grid": vars(codebook.grid),
        "codebook": {"path": codebook.path, **_codebook_facts(codebook)},
        "done": [],
    }
    return MappingWriter.create(path, samples, attributes, arrays, overwrite=overwrite)


def _codebook_facts(codebook: Codebook) -> dict[str, Any]:
    """Return all that the units and the scaled samples depend on; if it is equal, results are equal bit by bit."""
    return {
        "options": codebook.options,
        "epochs": codebook.epochs,
        "trained_with": codebook.samples_digest,
        "scaling": codebook.scaling.recorded(),
    }


def _is_recorded(recorded: dict[str, Any], codebook: Codebook) -> bool:
    """Return whether `codebook` is the recorded map."""
    return all(recorded.get(name) == fact for name, fact in _codebook_facts(codebook).items())


def open_mapping(store: Mapping | str | os.PathLike[str]) -> Mapping:
    """Open a finished mapping store and check its schema, shapes and dtypes, or return an opened one.

    Raises StoreError on a fault.

    Examples
    --------
    >>> tilepath.open_mapping("units.zarr").n
    200
    """
    if isinstance(store, Mapping):
        return store
    return view(Mapping, MappingWriter.read_finished(store))

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import zarr

from gpuops.som.grid import Grid
from pipelines.stores.codebook import Codebook
from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing, writable_array
from pipelines.stores.origin import origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, unfinished
from pipelines.stores.resuming import RowsWriter, resume_store
from pipelines.stores.samples import DTYPES, Samples, open_samples
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    counted,
    create_array,
    damaged_attributes,
    disk_errors,
    flag,
    open_store,
    recorded_dtype,
)

SCHEMA = "mapping/1"
ARRAYS = ("units", "distances", "weights")
LEAST_ROWS = 4096  # least number of rows of a chunk


@dataclass(frozen=True, eq=False)
class Mapping:
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
                f"{self.path}: its samples are no longer at {self.samples_path}; give their path (--samples)"
            )
        samples = given if isinstance(given, Samples) else open_samples(self.samples_path if given is None else given)
        if samples.digest != self.samples_digest:
            raise StoreError(f"{self.path} maps other samples than {samples.path}; name the right ones")
        return samples

    def units(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the units of the samples from `start` to `stop` (excluded), int32 (k, t)."""
        return _array(self.path, "units", self.grid)[start : self.n if stop is None else stop]

    def distances(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the distances of the samples from `start` to `stop` (excluded) to their units, (k, t)."""
        return StoredArray(self.path, "distances")[start : self.n if stop is None else stop]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Iterate over the chunks: yields the first row of each chunk, and the row after its last."""
        step = StoredArray(self.path, "units").chunks[0]
        for start in range(0, self.n, step):
            yield start, min(start + step, self.n)

    def hits(self) -> np.ndarray:
        """Return for each unit the number of samples whose best matching unit it is, int64 (M)."""
        return sum(
            (np.bincount(self.units(*rows)[:, 0], minlength=self.grid.units) for rows in self.ranges()),
            start=np.zeros(self.grid.units, np.int64),
        )

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the weights of the samples in errors, float64 (k): ones if the store has no weights."""
        stop = self.n if stop is None else stop
        return (StoredArray(self.path, "weights")[start:stop] if self.weighted else np.ones(stop - start)).astype(float)

    def quantization_error(self) -> float:
        """Return the mean distance of the samples, weighted if they have weights, to their best matching units."""
        return self._mean(lambda *rows: self.distances(*rows)[:, 0].astype(np.float64))

    def topographic_error(self) -> float:
        """Return the fraction of the samples, weighted if they have weights, whose two best units are not adjacent."""
        if self.top == 1:
            raise StoreError(f"{self.path}: the map has one unit, so there is no topographic error")

        def apart(start: int, stop: int) -> np.ndarray:
            units = self.units(start, stop)
            return ~self.grid.adjacent(units[:, 0], units[:, 1])

        return self._mean(apart)

    def _mean(self, read: Callable[[int, int], np.ndarray]) -> float:
        """Return the weighted mean over all samples of the values that `read` returns for a range of rows."""
        total = of_all = 0.0
        for rows in self.ranges():
            weights = self.weights(*rows)
            total += float((read(*rows) * weights).sum())
            of_all += float(weights.sum())
        return total / of_all

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        parts = [
            f"{self.path}: units of {counted(self.n, 'sample')}",
            f"quantization error {self.quantization_error():.6g}",
        ]
        if self.top > 1:
            parts.append(f"topographic error {self.topographic_error():.4g}")
        return ", ".join(parts)

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        return _verify(self.path, self.grid, np.ones(self.n, bool))


@dataclass(frozen=True, eq=False)
class MappingWriter(RowsWriter):
    """A mapping store that is being written."""

    schema = SCHEMA
    rows: int
    top: int
    dtype: np.dtype
    chunk: int
    grid: Grid
    codebook: dict[str, Any]  # recorded facts about the map
    arrays: tuple[str, ...]

    def write(self, start: int, units: np.ndarray, distances: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Write rows, in whole chunks, from row `start` on; weights are written only if the store has the array."""
        with disk_errors(self.path):
            for name, values in zip(ARRAYS, (units, distances, weights), strict=True):
                if name in self.arrays:
                    writable_array(self.path, name)[start : start + len(units)] = values

    def verify(self) -> Verified:
        """Verify the rows that are recorded as complete, as `Mapping.verify` does."""
        return _verify(self.path, self.grid, self.rows_done())


def create_mapping(
    path: str | os.PathLike[str], samples: Samples, codebook: Codebook, *, overwrite: bool = False
) -> MappingWriter:
    """Create a mapping store in which no row is done yet."""
    top = min(2, codebook.grid.units)
    # Make at least 16 chunks, to be shared by the workers, unless chunks would be too small to be worth a file.
    chunk = min(samples.n, CHUNK_BYTES // (top * codebook.dtype.itemsize), max(LEAST_ROWS, -(-samples.n // 16)))
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        weighted = samples.largest_weight is not None
        arrays = {"units": np.dtype(np.int32), "distances": codebook.dtype}
        arrays |= {"weights": samples.dtype} if weighted else {}
        for name, dtype in arrays.items():
            of_units = () if name == "weights" else (top,)
            create_array(group, name, (samples.n, *of_units), (chunk, *of_units), dtype)
        group.update_attributes(
            {
                "n": samples.n,
                "top": top,
                "dtype": str(codebook.dtype),
                "grid": vars(codebook.grid),
                "samples": origin_of(path, samples),
                "codebook": {"path": codebook.path, **_codebook_facts(codebook)},
                "done": [],
            }
        )
    return replace(begun_mapping(place), run_id=run_id)


def resume_mapping(path: str | os.PathLike[str], samples: Samples, codebook: Codebook) -> MappingWriter:
    """Take over an unfinished store to resume it; a finished store is returned as it is.

    Raises
    ------
    StoreError
        The store was begun with other samples or another map.
    """

    def refuse(begun: MappingWriter) -> None:
        if begun.grid != codebook.grid or not _is_recorded(begun.codebook, codebook):
            raise StoreError(
                f"{path}: was begun with another map than {codebook.path}; name the right one or start over"
            )

    return resume_store(path, SCHEMA, samples, _read, refuse)


def begun_mapping(path: str | os.PathLike[str]) -> MappingWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def _read(path: str | os.PathLike[str], group: zarr.Group) -> MappingWriter:
    with damaged_attributes(path):
        n, top = int(attribute(path, group, "n")), int(attribute(path, group, "top"))
        dtype = DTYPES[DTYPES.index(recorded_dtype(attribute(path, group, "dtype")))]
        check_array(path, group, "units", (n, top), ("int32",))
        check_array(path, group, "distances", (n, top), (dtype,))
        if "weights" in _arrays(path):
            check_array(path, group, "weights", (n,), DTYPES)
        return MappingWriter(
            path=os.path.abspath(path),
            run_id="",
            finished=flag(path, group, "complete"),
            rows=n,
            top=top,
            dtype=dtype,
            chunk=StoredArray(path, "units").chunks[0],
            grid=Grid(**attribute(path, group, "grid")),
            codebook=recorded_origin(path, group, "codebook"),
            arrays=_arrays(path),
        )


def _arrays(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names of the arrays; stores of samples without weights lack `weights`."""
    return tuple(name for name in ARRAYS if name != "weights" or os.path.isdir(os.path.join(path, name)))


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


def open_mapping(path: str | os.PathLike[str]) -> Mapping:
    """Open a finished mapping store and check its schema, shapes and dtypes; raises StoreError on a fault."""
    group = open_store(path, SCHEMA)
    writer, mapped = _read(path, group), recorded_origin(path, group, "samples")
    if not writer.finished:
        raise unfinished(path, f"som map {writer.codebook['path']} {mapped['path']}")
    return Mapping(
        path=writer.path,
        n=writer.rows,
        top=writer.top,
        dtype=writer.dtype,
        grid=writer.grid,
        samples_path=origin_path(path, mapped),
        samples_digest=mapped["digest"],
        codebook=writer.codebook,
        weighted="weights" in writer.arrays,
    )


def _array(path: str, name: str, grid: Grid) -> StoredArray:
    return StoredArray(path, name, within=(0, grid.units - 1) if name == "units" else None)


def _verify(path: str, grid: Grid, done: np.ndarray) -> Verified:
    arrays = {name: _array(path, name, grid) for name in _arrays(path)}
    chunks = {name: array.places(done) for name, array in arrays.items()}
    refuse_missing(path, chunks)
    step = arrays["units"].chunks[0]
    for start in np.flatnonzero(done[::step]) * step:
        _, distances, *weights = (array[start : start + step] for array in arrays.values())
        if any(not ((found >= 0) & (found < np.inf)).all() for found in weights):
            raise StoreError(f"{path}: from row {start} on weights are negative or not finite; map the samples again")
        if not ((distances >= 0) & (distances < np.inf)).all():
            raise StoreError(f"{path}: from row {start} on distances are negative or not finite; map the samples again")
    return compare_contents(path, open_store(path, SCHEMA), chunks, "that every entry is valid")

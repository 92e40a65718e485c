"""The codebook store (schema `codebook/1`): a self-organizing map and its training history.

========= ================== ==================================================================================
array     dtype, shape       meaning
========= ================== ==================================================================================
codebooks float (E+1, M, d)  the units before the first epoch and after each epoch, kept from epoch `first_kept`
                             on; unit u is in row u // columns and column u % columns of the grid; a chunk holds
                             several codebooks of a small map, and is committed when it is full
hits      int64 (M)          the number of samples with this best matching unit, written when training ends
sigmas    float64 (E)        the reach of the neighbourhood in every planned epoch
========= ================== ==================================================================================

The attributes `grid`, `metric`, `missing`, and the names and the scaling of the columns describe the map; `options`
describes its training. `errors` holds the quantization error of each codebook, and `topographic_error` the topographic
error of the last codebook. `committed` is the number of complete epochs, or -1 before the first codebook. It is written
after the codebooks, so that the next run can resume there if a run is killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from gpuops.som.grid import Grid
from pipelines.stores.contents import (
    StoredArray,
    Verified,
    compare_contents,
    record,
    refuse_missing,
    writable_array,
    write_small_array,
)
from pipelines.stores.origin import origin_of, origin_path, recorded_origin
from pipelines.stores.place import growing_store, take_place, unfinished
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.samples import DTYPES, Samples, open_samples
from pipelines.stores.scaling import Scaling, scaling_from
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
    owned,
    recorded_dtype,
    remove_leftovers,
)

SCHEMA = "codebook/1"


@dataclass(frozen=True, eq=False)
class Codebook:
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
        return StoredArray(self.path, "codebooks")[epoch]

    def hits(self) -> np.ndarray:
        """Return for each unit the number of samples whose best matching unit it is, int64 (M)."""
        return StoredArray(self.path, "hits")[:]

    def samples(self, path: str | os.PathLike[str] | None = None) -> Samples:
        """Open the samples that the map was trained with; pass `path` if they were moved."""
        if path is None and not os.path.isdir(self.samples_path):
            raise StoreError(f"{self.path}: its samples are no longer at {self.samples_path}; give their path")
        samples = open_samples(self.samples_path if path is None else path)
        if samples.digest != self.samples_digest:
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

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        return _verify(self.path, self.first_kept, self.epochs, finished=True)


@dataclass(frozen=True, eq=False)
class CodebookWriter(StoreWriter):
    """A codebook store that is being trained; `keep` is the number of last codebooks to keep, None for all."""

    epochs: int
    options: dict[str, Any]
    keep: int | None = None

    @cached_property
    def together(self) -> int:
        """The number of codebooks in a chunk. A commit ends with the last codebook of a chunk, or of the training."""
        return StoredArray(self.path, "codebooks").chunks[0]

    def write(self, first: int, codebooks: np.ndarray) -> None:
        """Write codebooks, (k, M, d): the units after `first` epochs, and after each epoch that follows."""
        with disk_errors(self.path):
            writable_array(self.path, "codebooks")[first : first + len(codebooks)] = codebooks

    def read(self, epoch: int) -> np.ndarray:
        return StoredArray(self.path, "codebooks")[epoch]

    def committed(self) -> int:
        """Return the number of complete epochs, or -1 before the first codebook."""
        return self.progress()[0]

    def progress(self) -> tuple[int, int]:
        """Return the number of complete epochs, or -1 before the first codebook, and the total number of epochs."""
        return _progress(self.path, open_store(self.path, SCHEMA))

    def verify(self) -> Verified:
        """Verify the committed codebooks, as `Codebook.verify` does."""
        return _verify(self.path, _first_kept(self.path), self.committed(), finished=False)

    def errors(self) -> list[float]:
        """Return the quantization errors known so far, from the first codebook on."""
        return list(attribute(self.path, open_store(self.path, SCHEMA), "errors"))

    def chunks_committed(self) -> dict[str, list[str]]:
        return _places(self.path, _first_kept(self.path), self.committed())

    def commit(self, epochs: int, errors: list[float]) -> None:
        """Record that codebooks are written up to `epochs` epochs, and the `errors` of the codebooks before the last.

        Codebooks that are no longer kept are deleted.
        """
        before, oldest = self.committed(), _first_kept(self.path)
        kept = oldest if self.keep is None else max(oldest, (epochs + 1 - self.keep) // self.together * self.together)
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            added, dropped = _places(self.path, max(before + 1, kept), epochs), _places(self.path, 0, kept - 1)
            removed = _places(self.path, oldest, min(before, kept - 1))
            facts = {"committed": epochs, "errors": errors, "first_kept": kept}
            record(self.path, group, facts, added, removed=removed)
            for key in dropped["codebooks"]:  # includes chunks that a run killed here left behind
                Path(self.path, "codebooks", key).unlink(missing_ok=True)

    def finish(self, epochs: int, errors: list[float], topographic_error: float | None, hits: np.ndarray) -> None:
        """Record that training is over, perhaps earlier than planned."""
        with disk_errors(self.path):
            writable_array(self.path, "hits")[:] = hits
            codebooks = writable_array(self.path, "codebooks")
            codebooks.resize((epochs + 1, *codebooks.shape[1:]))
            remove_leftovers(self.leftovers())
            final = {"committed": epochs, "errors": errors, "topographic_error": topographic_error, "complete": True}
            self.commit(epochs, errors)
            group = owned(self.path, SCHEMA, self.run_id)
            record(self.path, group, final, {"hits": StoredArray(self.path, "hits").places()})
            take_place(self.path)


def create_codebook(
    path: str | os.PathLike[str],
    samples: Samples,
    grid: Grid,
    *,
    metric: str,
    sigmas: list[float],
    options: dict[str, Any],
    together: int = 1,
    overwrite: bool = False,
) -> CodebookWriter:
    """Create a codebook store for a map of `samples`, with one epoch per entry of `sigmas` and without a commit yet.

    A run that resumes this store must repeat the `options` (JSON). `together` is the number of codebooks in a chunk.
    """
    itemsize = samples.dtype.itemsize
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        chunks = (together, max(1, min(grid.units, CHUNK_BYTES // (samples.d * itemsize))), samples.d)
        create_array(group, "codebooks", (len(sigmas) + 1, grid.units, samples.d), chunks, samples.dtype)
        create_array(group, "hits", (grid.units,), "auto", "int64")
        write_small_array(group, "sigmas", np.array(sigmas, np.float64), "float64")
        group.update_attributes(
            {
                "grid": vars(grid),
                "metric": metric,
                "dtype": str(samples.dtype),
                "missing": samples.missing,
                "columns": list(samples.columns),
                "scaling": samples.scaling.recorded(),
                "compensated": samples.compensated,
                "options": options,
                "samples": origin_of(path, samples),
                "committed": -1,
                "errors": [],
                "topographic_error": None,
            }
        )
    return replace(begun_codebook(place), run_id=run_id)


def resume_codebook(path: str | os.PathLike[str], samples: Samples, options: dict[str, Any]) -> CodebookWriter:
    """Take over an unfinished store to resume it; a finished store is returned as it is.

    Raises
    ------
    StoreError
        The store was begun with other samples or other options.
    """

    def refuse(begun: CodebookWriter) -> None:
        every = sorted({*options, *begun.options})  # an option that is not given counts as None
        refuse_other_options(path, begun.options, {name: options.get(name) for name in every})

    writer = resume_store(path, SCHEMA, samples, _read, refuse)
    if not writer.finished:
        # A run that ended training early may have been killed after it shortened the array and before it recorded this.
        with disk_errors(writer.path):
            codebooks = writable_array(writer.path, "codebooks")
            codebooks.resize((writer.epochs + 1, *codebooks.shape[1:]))
    return writer


def begun_codebook(path: str | os.PathLike[str]) -> CodebookWriter:
    """Return the writer of the store at `path`, owned by no run, to read its progress."""
    return _read(path, open_store(path, SCHEMA))


def _read(path: str | os.PathLike[str], group: zarr.Group) -> CodebookWriter:
    with damaged_attributes(path):
        return CodebookWriter(
            path=os.path.abspath(path),
            run_id="",
            finished=flag(path, group, "complete"),
            epochs=len(_sigmas(path, group)),
            options=dict(attribute(path, group, "options")),
        )


def open_codebook(path: str | os.PathLike[str]) -> Codebook:
    """Open a finished codebook store and check its schema, shapes and dtypes.

    Raises
    ------
    StoreError
        The store is missing, damaged, unfinished or of another schema; the message names the cure.
    """
    group = open_store(path, SCHEMA)
    recorded = recorded_origin(path, group, "samples")
    if not flag(path, group, "complete"):
        done, total = _progress(path, group)
        raise unfinished(path, f"som train {recorded['path']}", f"{max(done, 0):,} of {counted(total, 'epoch')}")
    attrs: dict[str, Any] = dict(group.attrs)
    with damaged_attributes(path, "the attributes of the codebook"):
        epochs, columns, sigmas = int(attrs["committed"]), tuple(map(str, attrs["columns"])), _sigmas(path, group)
        if len(attrs["errors"]) != epochs + 1 or len(sigmas) < epochs:
            raise ValueError(f"{len(attrs['errors'])} errors of {epochs} epochs")
        apart = attrs["topographic_error"]
        facts = Codebook(
            path=os.path.abspath(path),
            grid=Grid(**attrs["grid"]),
            metric=str(attrs["metric"]),
            dtype=DTYPES[DTYPES.index(recorded_dtype(attrs["dtype"]))],
            missing=flag(path, group, "missing"),
            columns=columns,
            scaling=scaling_from(attrs["scaling"], len(columns)),
            epochs=epochs,
            sigmas=tuple(map(float, sigmas))[:epochs],
            quantization_errors=tuple(map(float, attrs["errors"])),
            topographic_error=None if apart is None else float(apart),
            options=dict(attrs["options"]),
            samples_path=origin_path(path, recorded),
            samples_digest=recorded["digest"],
            compensated=flag(path, group, "compensated"),
            first_kept=_first_kept(path),
        )
    shape = (epochs + 1, facts.grid.units, len(columns))
    check_array(path, group, "codebooks", shape, (facts.dtype,))
    check_array(path, group, "hits", (facts.grid.units,), ("int64",))
    return facts


def _progress(path: str | os.PathLike[str], group: zarr.Group) -> tuple[int, int]:
    """Return the number of complete epochs, or -1 before the first codebook, and the total number of epochs."""
    with damaged_attributes(path):
        done = int(attribute(path, group, "committed"))
        total = done if flag(path, group, "complete") else len(_sigmas(path, group))
        if not -1 <= done <= total:
            raise ValueError(f"{done} of {total} epochs are recorded as done")
    return done, total


def _sigmas(path: str | os.PathLike[str], group: Any) -> Any:
    """Return the reach of the neighbourhood in every planned epoch."""
    check_array(path, group, "sigmas", (None,), ("float64",))
    return StoredArray(path, "sigmas")[:]


def _first_kept(path: str | os.PathLike[str]) -> int:
    """Return the first epoch whose codebook was kept, 0 before the first commit."""
    attributes = open_store(path, SCHEMA).attrs
    with damaged_attributes(path):
        first, last = int(attributes.get("first_kept", 0)), int(attributes["committed"])
        if not 0 <= first <= max(last, 0):
            raise ValueError(f"codebooks are kept from epoch {first} of {last} on")
    return first


def _places(path: str, first: int, last: int) -> dict[str, list[str]]:
    """Return the keys of the chunks of the codebooks after `first` to `last` epochs (included)."""
    codebooks = StoredArray(path, "codebooks")
    epochs = np.arange(codebooks.shape[0])
    if last >= len(epochs):
        raise StoreError(f"{path}: `codebooks` is too short to hold epoch {last}; train the map again")
    return {"codebooks": codebooks.places((first <= epochs) & (epochs <= last))}


def _verify(path: str, first: int, epochs: int, *, finished: bool) -> Verified:
    chunks = _places(path, first, epochs)
    chunks["sigmas"] = StoredArray(path, "sigmas").places()
    if finished:
        chunks["hits"] = StoredArray(path, "hits").places()
    refuse_missing(path, chunks)
    if finished and (StoredArray(path, "hits")[:] < 0).any():
        raise StoreError(f"{path}: `hits` has negative counts; train the map again")
    codebooks = StoredArray(path, "codebooks")
    for epoch in range(first, epochs + 1):
        if not np.isfinite(codebooks[epoch]).all():
            raise StoreError(f"{path}: epoch {epoch} holds values that are not finite; train the map again")
    return compare_contents(path, open_store(path, SCHEMA), chunks, "that every value is finite")

"""The codebook store (schema `codebook/1`): a self-organizing map and its training history.

========= ================== ==================================================================================
array     dtype, shape       meaning
========= ================== ==================================================================================
codebooks float (E+1, M, d)  the units before the first epoch and after each, or only the last of them: those
                             from `first_kept` on; unit u stands in row u // columns and column u % columns
                             of the grid; of small maps some share a chunk, which is committed when it is full
hits      int64 (M)          once complete: how many samples have the unit as their best matching one
sigmas    float64 (E)        the reach of the neighbourhood in every epoch that was planned; in stores of earlier
                             versions an attribute, which every commit wrote anew
========= ================== ==================================================================================

Attributes: what the map is (`grid`, `metric`, `missing`, names and scaling of the columns), how it was trained
(`options`), `errors`, the quantization error of each codebook, and the `topographic_error` of the last.
`committed` says how many epochs are complete, -1 before there is a first codebook. It is written after them, so a run
that is killed resumes from there.
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
from pipelines.stores.place import growing_store, place_of, take_place
from pipelines.stores.resuming import StoreWriter, refuse_other_options, resume_store
from pipelines.stores.samples import DTYPES, Samples, open_samples
from pipelines.stores.scaling import Scaling, scaling_from
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    damaged_attributes,
    disk_errors,
    flag,
    open_store,
    owned,
    recorded_dtype,
    remove_leftovers,
    result_codecs,
)

SCHEMA = "codebook/1"


@dataclass(frozen=True, eq=False)
class Codebook:
    """A finished codebook store, opened by `open_codebook`. It pickles as its path.

    `quantization_errors` has one more entry than there were epochs, `sigmas` as many; `topographic_error` is None for
    a map of one unit.
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
    first_kept: int = 0  # the codebooks of the epochs before were not kept

    @property
    def d(self) -> int:
        return len(self.columns)

    def units(self, epoch: int = -1) -> np.ndarray:
        """(M, d): the units after `epoch` epochs; 0 is the initial map, -1 the last one."""
        if not -self.epochs - 1 <= epoch <= self.epochs:
            raise ValueError(f"{self.path}: there is no epoch {epoch}; choose one from 0 to {self.epochs}")
        if epoch % (self.epochs + 1) < self.first_kept:
            raise ValueError(
                f"{self.path}: only the codebooks of the epochs from {self.first_kept} on were kept; choose one of them"
            )
        return StoredArray(self.path, "codebooks")[epoch]

    def hits(self) -> np.ndarray:
        """(M) int64: how many samples have the unit as their best matching one."""
        return StoredArray(self.path, "hits")[:]

    def samples(self, path: str | os.PathLike[str] | None = None) -> Samples:
        """The samples the map was trained with; pass `path` if they were moved."""
        if path is None and not os.path.isdir(self.samples_path):
            raise StoreError(f"{self.path}: its samples are no longer at {self.samples_path}; give their path")
        samples = open_samples(self.samples_path if path is None else path)
        if samples.digest != self.samples_digest:
            raise StoreError(f"{self.path} was trained with other samples than {samples.path}; name the right ones")
        return samples

    def describe(self) -> str:
        """One line for people about what the store holds."""
        grid = self.grid
        kind = f"{'toroidal ' if grid.toroidal else ''}{'hexagonal' if grid.hexagonal else 'rectangular'}"
        parts = [
            f"{self.path}: {grid.rows:,} x {grid.columns:,} {kind} map of {self.d} columns",
            f"{self.epochs} epochs",
            f"quantization error {self.quantization_errors[-1]:.6g}",
        ]
        if self.topographic_error is not None:
            parts.append(f"topographic error {self.topographic_error:.4g}")
        return ", ".join(parts)

    def verify(self) -> Verified:
        """Reread everything and compare it with what was recorded; StoreError names what differs."""
        return _verify(self.path, self.first_kept, self.epochs, finished=True)


@dataclass(frozen=True, eq=False)
class CodebookWriter(StoreWriter):
    """A codebook store that is being trained; `keep` says how many of the last codebooks stay, None: all."""

    epochs: int
    options: dict[str, Any]
    keep: int | None = None

    @cached_property
    def together(self) -> int:
        """How many codebooks share a chunk; the last one of each may be committed, and the last of all."""
        return StoredArray(self.path, "codebooks").chunks[0]

    def write(self, first: int, codebooks: np.ndarray) -> None:
        """Write the units (k, M, d) after `first` epochs, and after each that follows."""
        with disk_errors(self.path):
            writable_array(self.path, "codebooks")[first : first + len(codebooks)] = codebooks

    def read(self, epoch: int) -> np.ndarray:
        return StoredArray(self.path, "codebooks")[epoch]

    def committed(self) -> int:
        """How many epochs are complete; -1: there is no codebook yet."""
        return self.progress()[0]

    def progress(self) -> tuple[int, int]:
        """Epochs done, -1 before there is a codebook, and the total number of epochs."""
        return _progress(self.path, open_store(self.path, SCHEMA))

    def verify(self) -> Verified:
        """Reread the codebooks that are committed, as `Codebook.verify`."""
        return _verify(self.path, _first_kept(self.path), self.committed(), finished=False)

    def errors(self) -> list[float]:
        """The quantization errors known so far, from the first codebook on."""
        return list(attribute(self.path, open_store(self.path, SCHEMA), "errors"))

    def chunks_committed(self) -> dict[str, list[str]]:
        return _places(self.path, _first_kept(self.path), self.committed())

    def commit(self, epochs: int, errors: list[float]) -> None:
        """Record that the codebooks to be kept after `epochs` epochs are written, and the errors of those before."""
        before, oldest = self.committed(), _first_kept(self.path)
        kept = oldest if self.keep is None else max(oldest, (epochs + 1 - self.keep) // self.together * self.together)
        with disk_errors(self.path):
            group = owned(self.path, SCHEMA, self.run_id)
            added, dropped = _places(self.path, max(before + 1, kept), epochs), _places(self.path, oldest, kept - 1)
            removed = _places(self.path, oldest, min(before, kept - 1))
            facts = {"committed": epochs, "errors": errors, "first_kept": kept}
            record(self.path, group, facts, added, begun=before >= 0, removed=removed)
            for key in dropped["codebooks"]:
                Path(self.path, "codebooks", key).unlink(missing_ok=True)

    def finish(self, epochs: int, errors: list[float], topographic_error: float | None, hits: np.ndarray) -> None:
        """Record that training is over, perhaps earlier than planned."""
        with disk_errors(self.path):
            writable_array(self.path, "hits")[:] = hits
            codebooks = writable_array(self.path, "codebooks")
            codebooks.resize((epochs + 1, *codebooks.shape[1:]))
            remove_leftovers(self.path)
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
    """Begin a codebook store for a map of `samples`, with one epoch per entry of `sigmas`; nothing is committed yet.

    `options` is JSON; a run that resumes this store must have the same. `together` codebooks share a chunk.
    """
    itemsize = samples.dtype.itemsize
    with growing_store(path, SCHEMA, overwrite) as (place, run_id, group):
        group.create_array(
            "codebooks",
            shape=(len(sigmas) + 1, grid.units, samples.d),
            chunks=(together, max(1, min(grid.units, CHUNK_BYTES // (samples.d * itemsize))), samples.d),
            dtype=samples.dtype,
            compressors=result_codecs(samples.dtype),
            config={"write_empty_chunks": True},
        )
        group.create_array(
            "hits",
            shape=(grid.units,),
            dtype="int64",
            compressors=result_codecs(np.dtype(np.int64)),
            config={"write_empty_chunks": True},
        )
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
    """Take over an unfinished store to resume it; a finished one is returned as it is.

    Raises
    ------
    StoreError
        It was begun with other samples or other options.
    """

    def refuse(begun: CodebookWriter) -> None:
        every = sorted({*options, *begun.options})  # one that is not given is None
        refuse_other_options(path, begun.options, {name: options.get(name) for name in every})

    writer = resume_store(path, SCHEMA, samples, _read, refuse)
    if not writer.finished:
        # A run that stopped early may have been killed between cutting the array and recording that it was over.
        with disk_errors(writer.path):
            codebooks = writable_array(writer.path, "codebooks")
            codebooks.resize((writer.epochs + 1, *codebooks.shape[1:]))
    return writer


def begun_codebook(path: str | os.PathLike[str]) -> CodebookWriter:
    """How far the store at `path` is: a writer that belongs to no run."""
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
        It is missing, foreign, damaged or unfinished; the message names the cure.
    """
    group = open_store(path, SCHEMA)
    recorded = recorded_origin(path, group, "samples")
    if not flag(path, group, "complete"):
        done, total = _progress(path, group)
        raise StoreError(
            f"{path}: unfinished, {max(done, 0)} of {total} epochs are done; go on with --resume and the command "
            f"`tilepath som train {recorded['path']} {place_of(path)}` it was begun with"
        )
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
            compensated=bool(attrs.get("compensated", False)),
            first_kept=_first_kept(path),
        )
    shape = (epochs + 1, facts.grid.units, len(columns))
    check_array(path, group, "codebooks", shape, (facts.dtype,))
    check_array(path, group, "hits", (facts.grid.units,), ("int64",))
    return facts


def _progress(path: str | os.PathLike[str], group: zarr.Group) -> tuple[int, int]:
    """Epochs done, -1 before there is a codebook, and the total number of epochs."""
    with damaged_attributes(path):
        done = int(attribute(path, group, "committed"))
        total = done if flag(path, group, "complete") else len(_sigmas(path, group))
        if not -1 <= done <= total:
            raise ValueError(f"{done} of {total} epochs are recorded as done")
    return done, total


def _sigmas(path: str | os.PathLike[str], group: Any) -> Any:
    """The reach of the neighbourhood in every epoch that was planned."""
    if "sigmas" in group.attrs:  # of an earlier version
        return attribute(path, group, "sigmas")
    check_array(path, group, "sigmas", (None,), ("float64",))
    return StoredArray(path, "sigmas")[:]


def _first_kept(path: str | os.PathLike[str]) -> int:
    """The first epoch whose codebook was kept; earlier versions kept all."""
    attributes = open_store(path, SCHEMA).attrs
    with damaged_attributes(path):
        first, last = int(attributes.get("first_kept", 0)), int(attributes["committed"])
        if not 0 <= first <= max(last, 0):
            raise ValueError(f"codebooks are kept from epoch {first} of {last} on")
    return first


def _places(path: str, first: int, last: int) -> dict[str, list[str]]:
    """The keys of the chunks of the codebooks after `first` to `last` epochs."""
    codebooks = StoredArray(path, "codebooks")
    epochs = np.arange(codebooks.shape[0])
    if last >= len(epochs):
        raise StoreError(f"{path}: `codebooks` is too short to hold epoch {last}; train the map again")
    return {"codebooks": codebooks.places((first <= epochs) & (epochs <= last))}


def _verify(path: str, first: int, epochs: int, *, finished: bool) -> Verified:
    chunks = _places(path, first, epochs)
    if os.path.isdir(os.path.join(path, "sigmas")):
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

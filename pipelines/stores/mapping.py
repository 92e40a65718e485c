"""The mapping store (schema `mapping/1`): where on a self-organizing map samples lie. It grows by chunks of rows.

========= ============== ==============================================================
array     dtype, shape   meaning
========= ============== ==============================================================
units     int32 (N, t)   the t = 2 best matching units, the nearest first; t = 1 where
                         the map has a single unit
distances float (N, t)   the distances of the sample to them
========= ============== ==============================================================

The attribute `done` names the rows that are whole and is written after them.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuops.som.grid import Grid
from pipelines.stores.codebook import Codebook
from pipelines.stores.origin import origin_of, origin_path
from pipelines.stores.samples import DTYPES, Samples
from pipelines.stores.schema import (
    CHUNK_BYTES,
    StoreError,
    attribute,
    check_array,
    damage,
    disk_errors,
    new_store,
    open_array,
    open_store,
    owned,
    record_rows,
    result_codecs,
    row_mask,
    take_over,
    verify_chunks,
)

SCHEMA = "mapping/1"
LEAST_ROWS = 4096  # of a chunk


@dataclass(frozen=True, eq=False)
class Mapping:
    """A finished mapping store, opened by `open_mapping`: rows read on demand. It pickles as its path."""

    path: str
    n: int
    top: int
    dtype: np.dtype
    grid: Grid
    samples_path: str
    samples_digest: str
    codebook: dict[str, Any]  # what is recorded of the map

    @property
    def codebook_path(self) -> str:
        return str(self.codebook["path"])

    def check_codebook(self, codebook: Codebook) -> None:
        """Refuse to be shown on another map than samples were mapped to."""
        if self.grid != codebook.grid or not _is_recorded(self.codebook, codebook):
            raise StoreError(
                f"{self.path} is a mapping to another map than {codebook.path}; name the map it was made with, or map "
                "the samples to this one (tilepath som map)"
            )

    def units(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """int32 (k, t): the units of the rows from `start` to `stop` (excluded)."""
        with damage(self.path):
            return np.asarray(open_array(self.path, "units")[start : self.n if stop is None else stop])

    def distances(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """(k, t): the distances to them."""
        with damage(self.path):
            return np.asarray(open_array(self.path, "distances")[start : self.n if stop is None else stop])

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The rows of each chunk."""
        step = open_array(self.path, "units").chunks[0]
        for start in range(0, self.n, step):
            yield start, min(start + step, self.n)

    def hits(self) -> np.ndarray:
        """(M) int64: how many samples have the unit as their best matching one."""
        return sum(
            (np.bincount(self.units(*rows)[:, 0], minlength=self.grid.units) for rows in self.ranges()),
            start=np.zeros(self.grid.units, np.int64),
        )

    def quantization_error(self) -> float:
        """Mean distance of the samples to their units."""
        return sum(float(self.distances(*rows)[:, 0].sum(dtype=np.float64)) for rows in self.ranges()) / self.n

    def topographic_error(self) -> float:
        """Fraction of the samples whose two nearest units are not neighbours on the grid."""
        if self.top == 1:
            raise StoreError(f"{self.path}: the map has one unit; there is no second best to be a neighbour or not")
        apart = 0
        for rows in self.ranges():
            units = self.units(*rows)
            apart += int((~self.grid.adjacent(units[:, 0], units[:, 1])).sum())
        return apart / self.n

    def verify(self) -> None:
        """Reread every chunk (its checksum is tested), make sure none is missing and every entry is possible."""
        for name in ("units", "distances"):
            verify_chunks(self.path, open_array(self.path, name))
        for rows in self.ranges():
            units, distances = self.units(*rows), self.distances(*rows)
            possible = (units >= 0) & (units < self.grid.units) & (distances >= 0) & (distances < np.inf)
            if not possible.all():
                row = rows[0] + int(np.flatnonzero(~possible.all(axis=1))[0])
                raise StoreError(f"{self.path}: row {row} is on no unit of the map; map the samples anew")


@dataclass(frozen=True, eq=False)
class MappingRun:
    """A mapping store in the making. Picklable."""

    path: str
    run_id: str
    rows: int
    chunk: int

    def write(self, start: int, units: np.ndarray, distances: np.ndarray) -> None:
        """Write whole chunks, from row `start`."""
        with disk_errors(self.path):
            open_array(self.path, "units", "r+")[start : start + len(units)] = units
            open_array(self.path, "distances", "r+")[start : start + len(units)] = distances

    def rows_done(self) -> np.ndarray:
        """bool (N): which rows are recorded as whole."""
        return row_mask(attribute(self.path, open_store(self.path, SCHEMA), "done"), self.rows)

    def record(self, done: np.ndarray) -> None:
        """Record which rows, bool (N), are whole; once all are, the store is complete."""
        with disk_errors(self.path):
            record_rows(self.path, owned(self.path, SCHEMA, self.run_id), done)


def create_mapping(
    path: str | os.PathLike[str], samples: Samples, codebook: Codebook, *, overwrite: bool = False
) -> MappingRun:
    """Begin a mapping store; no row is done yet."""
    top = min(2, codebook.grid.units)
    # Some chunks for every worker, and none that is too small to be worth a file.
    chunk = min(samples.n, CHUNK_BYTES // (top * codebook.dtype.itemsize), max(LEAST_ROWS, -(-samples.n // 16)))
    with new_store(path, overwrite) as group:
        for name, dtype in (("units", np.dtype(np.int32)), ("distances", codebook.dtype)):
            group.create_array(
                name,
                shape=(samples.n, top),
                chunks=(chunk, top),
                dtype=dtype,
                compressors=result_codecs(dtype),
                config={"write_empty_chunks": True},
            )
        group.update_attributes(
            {
                "schema": SCHEMA,
                "n": samples.n,
                "top": top,
                "dtype": str(codebook.dtype),
                "grid": vars(codebook.grid),
                "samples": origin_of(path, samples),
                "codebook": {"path": codebook.path, **_codebook_facts(codebook)},
                "done": [],
                "complete": False,
                "run_id": (run_id := uuid.uuid4().hex),
            }
        )
    return MappingRun(os.path.abspath(path), run_id, samples.n, chunk)


def resume_mapping(path: str | os.PathLike[str], samples: Samples, codebook: Codebook) -> MappingRun | None:
    """Take over an unfinished store to go on with it; None if it is finished; StoreError if it is of something else."""
    group = open_store(path, SCHEMA, "r+")
    of: Any = attribute(path, group, "samples")
    by: Any = attribute(path, group, "codebook")
    if of["digest"] != samples.digest or not _is_recorded(by, codebook):
        raise StoreError(f"{path}: was begun with other samples or another map; name the right ones or start afresh")
    if attribute(path, group, "complete"):
        return None
    run_id = take_over(path, group)
    array = check_array(path, group, "units", (samples.n, min(2, codebook.grid.units)), ("int32",))
    return MappingRun(os.path.abspath(path), run_id, samples.n, array.chunks[0])


def _codebook_facts(codebook: Codebook) -> dict[str, Any]:
    """What a codebook and samples on its scale depend on: the same facts, the same bits."""
    return {
        "options": codebook.options,
        "epochs": codebook.epochs,
        "trained_with": codebook.samples_digest,
        "scaling": codebook.scaling.recorded(),
    }


def _is_recorded(recorded: dict[str, Any], codebook: Codebook) -> bool:
    """Is it the map that a mapping store has recorded? Stores of earlier versions have recorded no scaling."""
    facts = _codebook_facts(codebook)
    recorded = {"scaling": facts["scaling"], **recorded}
    return all(recorded.get(name) == fact for name, fact in facts.items())


def open_mapping(path: str | os.PathLike[str]) -> Mapping:
    """Open a finished mapping store and check its schema, shapes and dtypes; raises StoreError."""
    group = open_store(path, SCHEMA)
    of: Any = attribute(path, group, "samples")
    by: Any = attribute(path, group, "codebook")
    if not attribute(path, group, "complete"):
        raise StoreError(f"{path}: unfinished; go on with `tilepath som map {by['path']} {of['path']} {path} --resume`")
    attrs: dict[str, Any] = dict(group.attrs)
    try:
        facts = Mapping(
            path=os.path.abspath(path),
            n=int(attrs["n"]),
            top=int(attrs["top"]),
            dtype=DTYPES[DTYPES.index(np.dtype(str(attrs["dtype"])))],
            grid=Grid(**attrs["grid"]),
            samples_path=origin_path(path, of),
            samples_digest=str(of["digest"]),
            codebook={**by, "path": str(by["path"])},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path}: the attributes of the mapping are damaged ({error!r}); make it anew") from error
    check_array(path, group, "units", (facts.n, facts.top), ("int32",))
    check_array(path, group, "distances", (facts.n, facts.top), (facts.dtype,))
    return facts


def progress_of_mapping(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Samples done and samples in all."""
    group = open_store(path, SCHEMA)
    n = int(attribute(path, group, "n"))
    return int(row_mask(attribute(path, group, "done"), n).sum()), n

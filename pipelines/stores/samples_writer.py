"""Write the arrays of a samples store from pieces of rows of any size.

Appended rows go to disk in whole chunks, so there may be more rows than memory holds. A scaling that is computed from
the data needs all rows before the first row can be stored. Until then, values are kept in the array `raw`, in float64
so that values are rounded only once. The disk must hold both arrays. The digest, the moments and the chunks do not
depend on how the rows were cut into pieces.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import zarr

from gpuops.arrays import unmasked
from pipelines.stores import transforms
from pipelines.stores.scaling import LARGEST, MISSING_CURE, Moments, RowError, Scaling, refuse_beyond
from pipelines.stores.schema import CHUNK_BYTES, TEXT, create_array

# Texts that stand for a missing entry: pyarrow reads them as missing in CSV, or pandas and NumPy print them.
ABSENT = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
        *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "<NA>", "NaT"),
    ]
)
SCHEMA = "samples/1"
LOOKED_AT = 4096  # most rows examined of a block; the remaining rows are assumed to be similar
MOST_VALUES = 1 << 17  # most values examined of a block
NOISE = 2.0**-46  # a smaller relative difference of two values is taken for a rounding error of float64 sums


def label_text(label: Any) -> str | None:
    """Return the text of a label, or None for a missing label: None, NaN, a masked entry, or text in `ABSENT`.

    >>> label_text(3.0), label_text(12345678), label_text(b"B cell")
    ('3', '12345678', 'B cell')
    >>> label_text(float("nan")), label_text("NA"), label_text("")
    (None, None, None)
    """
    if label is None or label is np.ma.masked:
        return None
    if isinstance(label, bytes):
        label = label.decode(errors="replace")
    elif isinstance(label, float | np.floating):
        label = str(int(label)) if float(label).is_integer() else repr(float(label))
    text = str(label)
    return None if text in ABSENT else text


class SamplesWriter:
    """Accepts the rows of a new samples store; created by `pipelines.stores.samples.new_samples`.

    `new_samples` describes the arguments; `extras` names those of the arrays "weights", "labels" and "ids" that the
    store has. A piece that is refused leaves nothing behind.
    """

    def __init__(
        self,
        group: zarr.Group,
        columns: list[str],
        dtype: np.dtype,
        missing: bool,
        source: str,
        *,
        scaling: str | Scaling,
        cofactor: float,
        column_transforms: tuple[str, ...],
        extras: Collection[str],
        chunk_rows: int | None,
    ):
        self.group, self.columns, self.dtype, self.missing, self.source = group, columns, dtype, missing, source
        self._origins = [(source, 0)]
        d = len(columns)
        self.chunk_rows = chunk_rows or max(1, CHUNK_BYTES // (d * dtype.itemsize))
        self.n = 0
        self._given = scaling if isinstance(scaling, Scaling) else None
        self._transforms = column_transforms
        self._kind, self._cofactor = scaling.kind if isinstance(scaling, Scaling) else scaling, cofactor
        self._values = self._rows("values", dtype, d)
        kinds = {"weights": dtype, "labels": np.dtype(np.int32), "ids": TEXT}
        self._extras = {name: self._rows(name, kind) for name, kind in kinds.items() if name in extras}
        self._names: dict[str, int] = {}
        self._merged = MergedValues(d)
        self._largest_weight = 0.0
        self._moments = Moments(d)
        self._digest = Digest(d, dtype, missing)
        needs_all = self._kind != "none" and self._given is None  # the scaling follows from all rows
        self._raw = self._rows("raw", np.dtype(np.float64), d) if needs_all else None
        self._raw_moments = Moments(d)

    def _rows(self, name: str, dtype: np.dtype, *columns: int) -> Any:
        from pipelines.stores.whole_chunks import Appender  # imports Dask, which reading does not need

        names = ("n", "columns")[: 1 + len(columns)]
        shape, chunks = (0, *columns), (self.chunk_rows, *columns)
        return Appender(create_array(self.group, name, shape, chunks, dtype, dimension_names=names))

    def begin(self, source: str) -> None:
        """Begin a new source: the rows appended from now on are from `source`, and messages count its rows from 0."""
        self._origins = [*(self._origins if self.n else ()), (source, self.n)]
        self.source = source

    def append(
        self,
        values: np.ndarray,
        weights: np.ndarray | None = None,
        labels: Sequence[Any] | None = None,
        ids: Sequence[Any] | None = None,
    ) -> None:
        """Append (k, d) values in units of the source, with (k) weights, labels and ids if the store has them.

        A label is text or a number; None, NaN and the texts in `pipelines.stores.samples_writer.ABSENT` mean no label.
        """
        values, d = np.asarray(unmasked(values)), len(self.columns)
        if values.dtype.kind not in "fiub":
            raise ValueError(f"{self.source}: values are {values.dtype}; convert them to real numbers")
        if values.ndim != 2 or values.shape[1] != d:
            raise ValueError(f"{self.source}: rows have the shape {values.shape}; expected {d} values in each")
        for name, given in {"weights": weights, "labels": labels, "ids": ids}.items():
            if (given is None) != (name not in self._extras) or (given is not None and len(given) != len(values)):
                raise ValueError(f"{self.source}: give {name} with every row of the samples, or with none")
        # Everything that can be refused is checked or computed before anything is appended.
        self._check(values)
        kept = None if weights is None else self._checked(weights)
        texts = None if labels is None else list(map(label_text, labels))
        called = None if ids is None else np.array([label_text(name) or "" for name in ids], TEXT)
        if any(self._transforms):
            values = self._transformed(values)
        if self._given is not None:
            values = self._given.apply(values)
            refuse_beyond(values, self.dtype, self.source, self.columns, self._row(0))
        if kept is not None:
            self._largest_weight = max(self._largest_weight, float(kept.max(initial=0)))
            self._digest.weights.update(kept.data)
            self._extras["weights"].append(kept)
        if texts is not None:
            names = self._names
            codes = [-1 if text is None else names.setdefault(text, len(names)) for text in texts]
            self._extras["labels"].append(np.array(codes, np.int32))
        if called is not None:
            self._extras["ids"].append(called)
        if self._raw is None:
            self._store(values)
        else:
            self._raw_moments.add(values)
            self._raw.append(values.astype(np.float64))
        self.n += len(values)

    def finish(self) -> dict[str, Any]:
        """Write the remaining rows, and return the attributes that complete the store."""
        if self.n == 0:
            raise ValueError(f"{self.source}: there are no rows; a map needs at least one")
        if "weights" in self._extras and self._largest_weight == 0:
            raise ValueError(f"{self.source}: all weights are 0; a map needs a sample of positive weight")
        d = len(self.columns)
        scaling = self._given or Scaling("none", (0.0,) * d, (1.0,) * d, self._transforms)
        if self._raw is not None:
            self._raw.finish()
            scaling, raw = self._scaling(self._raw_moments.finish()), self.group["raw"]
            for start in range(0, self.n, self.chunk_rows):
                self._store(scaling.apply(np.asarray(raw[start : start + self.chunk_rows])))
            scaling = replace(scaling, transforms=self._transforms)
            del self.group["raw"]
        for rows in (self._values, *self._extras.values()):
            rows.finish()
        self._refuse("is empty", self._moments.finish().counts == 0)
        if (merged := self._merged.columns()).any():
            cure = "keep them with float64 (dtype='float64', --dtype float64), or subtract an offset first"
            what = f"float32 merges distinct values of {self._listed(merged)}"
            warnings.warn(
                f"{self.source}: {what} (up to {self._merged.most():.0%} of the distinct values examined); {cure}",
                stacklevel=4,
            )
        if "labels" in self._extras:
            names = np.array([*self._names], dtype=object)
            array = create_array(self.group, "label_names", names.shape, "auto", str, dimension_names=("label_names",))
            array[:] = names
        return {
            "schema": SCHEMA,
            "n": self.n,
            "dtype": str(self.dtype),
            "missing": self.missing,
            "columns": self.columns,
            "scaling": scaling.recorded(),
            "minima": self._moments.minima.tolist(),
            "maxima": self._moments.maxima.tolist(),
            "means": self._moments.means.tolist(),
            "largest_weight": self._largest_weight if "weights" in self._extras else None,
            "source": ", ".join(source for source, _ in self._origins),
            "origins": [list(origin) for origin in self._origins],
            "digest": self._digest.value(self.n),
        }

    def _row(self, row: int) -> int:
        """Return the number, within its source, of a row of the present piece."""
        return self.n + row - self._origins[-1][1]

    def _check(self, values: np.ndarray) -> None:
        """Raise RowError for infinite or too large values, undeclared missing values, and rows without any value."""
        # The limit of the dtype matters only without scaling: scaled values are small.
        limit = np.float64(LARGEST if self._kind != "none" else min(LARGEST, float(np.finfo(self.dtype).max)))
        if len(values) and -limit <= values.min() and values.max() <= limit:
            return  # there is no NaN either, for which both comparisons are false
        absent = np.isnan(values)
        wrong = ~absent & ~((-limit <= values) & (values <= limit))
        if not self.missing:
            wrong |= absent
        if wrong.any():
            row, column = (int(i[0]) for i in np.nonzero(wrong))
            fault = (
                f"has no value; {MISSING_CURE}"
                if absent[row, column]
                else f"is {values[row, column]}; {self.dtype} samples are finite and at most {limit:.3g}; correct it, "
                "or leave the row out"
            )
            raise RowError(self.source, self._row(row), f", column {self.columns[column]!r} {fault}")
        empty = absent.all(axis=1)
        if empty.any():
            row = self._row(int(np.flatnonzero(empty)[0]))
            raise RowError(self.source, row, " has no value at all; leave it out")

    def _checked(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights as they are stored, (k); raises an error unless all are finite and not negative."""
        given = np.asarray(unmasked(weights), np.float64)
        if given.ndim != 1:
            raise ValueError(f"{self.source}: weights have the shape {given.shape}; give one per row")
        # Compare before the cast, which would turn a number that is too large into infinity, with a warning.
        wrong = ~((given >= 0) & (given <= float(np.finfo(self.dtype).max)))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            what = f" has the weight {given[row]}; give a finite number >= 0"
            raise RowError(self.source, self._row(row), what)
        return given.astype(self.dtype)

    def _transformed(self, values: np.ndarray) -> np.ndarray:
        """Return the values after the transforms of their columns; raises RowError for a value without a logarithm."""
        found = transforms.apply(self._transforms, values)
        wrong = np.isinf(found)
        if wrong.any():
            row, column = (int(i[0]) for i in np.nonzero(wrong))
            what = (
                f", column {self.columns[column]!r} is {values[row, column]}, which has no {self._transforms[column]}"
            )
            raise RowError(self.source, self._row(row), f"{what}; transform the column by arcsinh instead")
        return found

    def _store(self, values: np.ndarray) -> None:
        kept = np.ascontiguousarray(values, self.dtype)
        if kept.dtype == np.float32 != values.dtype:
            self._merged.add(values)
        self._moments.add(kept)
        self._digest.values.update(kept.data)
        self._values.append(kept)

    def _scaling(self, raw: Moments) -> Scaling:
        d = len(self.columns)
        self._refuse("is empty", raw.counts == 0)
        if self._kind == "arcsinh":
            return Scaling(self._kind, (0.0,) * d, (float(self._cofactor),) * d)
        # Squares of tiny differences may underflow to 0, and squares of huge differences may overflow.
        deviations = raw.deviations
        constant = (raw.minima == raw.maxima) | ((deviations == 0) if self._kind == "zscore" else False)
        if constant.any():
            fault = "is constant: it is stored with factor 1, and does not distinguish samples"
            warnings.warn(f"{self.source}: {self._listed(constant)} {fault}", stacklevel=4)
        if self._kind == "zscore":
            self._refuse("has a spread that is not finite", ~np.isfinite(deviations))
            return Scaling(self._kind, tuple(raw.means.tolist()), tuple(np.where(constant, 1, deviations).tolist()))
        spans = np.where(constant, 1, raw.maxima - raw.minima)
        return Scaling(self._kind, tuple(raw.minima.tolist()), tuple(spans.tolist()))

    def _refuse(self, fault: str, at: np.ndarray) -> None:
        if at.any():
            raise ValueError(f"{self.source}: {self._listed(at)} {fault}; leave it out (exclude, --exclude)")

    def _listed(self, at: np.ndarray) -> str:
        names = [self.columns[i] for i in np.flatnonzero(at)]
        return f"column {', '.join(map(repr, names[:5]))}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")


class Digest:
    """The blake2b digest of all data that a map depends on; rows are added in pieces of any size."""

    def __init__(self, d: int, dtype: np.dtype, missing: bool):
        self._d, self._dtype, self._missing = d, dtype, missing
        self.values, self.weights = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)

    def value(self, n: int) -> str:
        head = f"{SCHEMA} n={n} d={self._d} {self._dtype} missing={self._missing}"
        parts = f" values={self.values.hexdigest()} weights={self.weights.hexdigest()}"
        return hashlib.blake2b((head + parts).encode(), digest_size=16).hexdigest()


class MergedValues:
    """Counts the distinct values of each column, in some rows, and the distinct values that float32 merges."""

    def __init__(self, columns: int):
        self._rows = max(1, min(LOOKED_AT, MOST_VALUES // columns))
        self._merged, self._distinct = np.zeros(columns, np.int64), np.zeros(columns, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Examine a block of values (k, d)."""
        ordered = np.sort(values[: self._rows].astype(np.float64), axis=0)
        apart = np.diff(ordered, axis=0) > NOISE * abs(ordered[1:])
        still = np.diff(ordered.astype(np.float32), axis=0) > 0
        self._distinct += apart.sum(axis=0)
        self._merged += (apart & ~still).sum(axis=0)

    def columns(self) -> np.ndarray:
        """Return the columns in which float32 merges more than 1 % of the distinct values, bool (d)."""
        return 100 * self._merged > self._distinct

    def most(self) -> float:
        """Return the fraction of distinct values that float32 merges, the largest fraction of all columns."""
        return float((self._merged / np.maximum(self._distinct, 1)).max())

"""The samples store (schema `samples/1`): the rows a self-organizing map learns from.

=========== =============== =====================================================================================
array       dtype, shape    meaning
=========== =============== =====================================================================================
values      float (N, d)    float32 or float64, whole rows in a chunk; scaled as the attribute `scaling` says;
                            NaN is a missing value, allowed only if the attribute `missing` is true
weights     as values (N)   optional: the weight of each sample, 0 or more
labels      int32 (N)       optional: the label of each sample as a position in `label_names`, -1 for no label
label_names str (L)         optional: the labels as text
ids         str (N)         optional: the name of each sample in its source, empty for no name
=========== =============== =====================================================================================

The attributes hold the names of the columns, the least, greatest and mean stored value of each column, and in `origins`
the name and the first row of each source. The attribute `digest` covers the data that a map depends on: shape, dtype,
`missing`, values and weights.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import zarr

from gpuops.memory import refuse_beyond_memory
from gpuops.options import one_of
from pipelines.stores.contents import StoredArray, Verified, compare_contents, refuse_missing
from pipelines.stores.declared import Array, Attribute, Schema, dtype_of, optional, tuple_of, view
from pipelines.stores.errors import StoreError
from pipelines.stores.frames import as_matrix, columns_of
from pipelines.stores.opened import OpenedStore
from pipelines.stores.place import new_store
from pipelines.stores.samples_writer import SCHEMA, Digest, SamplesWriter
from pipelines.stores.scaling import SCALINGS, Moments, Scaling, refuse_beyond, scaling_from
from pipelines.stores.schema import TEXT, counted, open_store, set_attributes
from pipelines.stores.table_stores import Columns, TableStore, as_array, with_columns
from pipelines.stores.transforms import of_columns as transform_of_columns

DTYPES = tuple(map(np.dtype, ("float32", "float64")))
COFACTOR = 5.0  # usual divisor of values before arcsinh


def _derived(_path: str, _group: zarr.Group, found: dict[str, Any]) -> dict[str, Any]:
    columns = found["columns"]
    if not len(columns) == len(found["minima"]) == len(found["maxima"]) == len(found["means"]):
        raise ValueError("columns and their extremes do not match")
    return {
        "d": len(columns),
        "scaling": scaling_from(found["scaling"], len(columns)),
        "labelled": "labels" in found["arrays"],
        "identified": "ids" in found["arrays"],
    }


DECLARED = Schema(
    SCHEMA,
    grows=False,
    attributes=(
        Attribute("n", int),
        Attribute("dtype", dtype_of(DTYPES)),
        Attribute("missing", bool),
        Attribute("columns", tuple_of(str)),
        Attribute("scaling", dict),
        *(Attribute(name, tuple_of(float)) for name in ("minima", "maxima", "means")),
        Attribute("largest_weight", optional(float)),
        Attribute("source", str),
        Attribute("digest", str),
        Attribute("compensated", bool),
        Attribute("origins", tuple_of(lambda origin: (str(origin[0]), int(origin[1])))),
    ),
    arrays=(
        Array("values", ("dtype",), ("n", "columns")),
        Array("weights", ("dtype",), ("n",), optional="largest_weight"),
        Array("labels", ("int32",), ("n",), optional=True),
        Array("label_names", (TEXT,), ("label_names",), optional=True),
        Array("ids", (TEXT,), ("n",), optional=True),
    ),
    derive=_derived,
)


@dataclass(frozen=True, eq=False, repr=False)
class Samples(TableStore, OpenedStore):
    """A samples store, opened by `open_samples`: attributes in memory, rows read on demand.

    Pickles leave out the rows.
    """

    path: str
    n: int
    d: int
    dtype: np.dtype
    missing: bool
    columns: tuple[str, ...]
    scaling: Scaling
    minima: tuple[float, ...]
    maxima: tuple[float, ...]
    means: tuple[float, ...]
    largest_weight: float | None  # None if the samples have no weights
    labelled: bool
    source: str
    digest: str
    identified: bool = False
    compensated: bool = False
    origins: tuple[tuple[str, int], ...] = ()  # name and first row of each source
    seen_in: Scaling | None = None  # scaling of the values returned, see `in_scaling`; None: as stored

    @property
    def magnitudes(self) -> tuple[float, ...]:
        """The greatest magnitude of a stored value of each column."""
        return tuple(max(abs(least), abs(greatest)) for least, greatest in zip(self.minima, self.maxima, strict=True))

    @property
    def row_bytes(self) -> int:
        """The bytes that a sample takes in memory, with its weight."""
        return (self.d + (self.largest_weight is not None)) * self.dtype.itemsize

    def values(self, start: int = 0, stop: int | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return the rows from `start` to `stop` (excluded), read into `out` if it is given."""
        values = self.stored("values").rows(start, self.n if stop is None else stop, out)
        if self.seen_in is not None:
            values[...] = self.seen_in.apply(self.scaling.undo(values))
        return values

    def to_numpy(self) -> np.ndarray:
        """Return all values (N, d), as stored; raises ValueError if memory cannot hold them."""
        cure = "read some rows (samples.values(0, 1000))"
        refuse_beyond_memory(2 * self.n * self.d * self.dtype.itemsize, f"{self.path}: its values take", cure)
        return self.values()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return as_array(self.path, self.to_numpy(), dtype, copy)

    def in_scaling(self, scaling: Scaling) -> Samples:
        """Return these samples with `values` in another scaling.

        Reading then undoes the scaling of the store and applies `scaling`. All other attributes stay as stored. Raises
        ValueError if a value would exceed the dtype.
        """
        if scaling == self.scaling:
            return self
        extremes = np.array([self.minima, self.maxima])
        refuse_beyond(scaling.apply(self.scaling.undo(extremes)), self.dtype, self.path, self.columns)
        return replace(self, seen_in=scaling)

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray | None:
        """Return the weights of the samples from `start` to `stop` (excluded), or None if there are no weights."""
        if self.largest_weight is None:
            return None
        return self.stored("weights").rows(start, self.n if stop is None else stop)

    def labels(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the labels of the samples from `start` to `stop` (excluded), as positions in `label_names`.

        -1 means no label. Raises StoreError if the store has no labels.
        """
        self._need_labels()
        names = self.stored("label_names").shape[0]
        return self.stored("labels", within=(-1, names - 1)).rows(start, self.n if stop is None else stop)

    def label_names(self) -> list[str]:
        """Return the labels as text; `labels` returns positions in this list."""
        self._need_labels()
        return [str(name) for name in self.stored("label_names")[:]]

    def ids(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the ids of the samples from `start` to `stop` (excluded), empty text for a sample without an id.

        Raises StoreError if no ids were imported.
        """
        if not self.identified:
            raise StoreError(f"{self.path}: the samples have no ids; import them with their ids (ids, --id)")
        return [str(name) for name in self.stored("ids").rows(start, self.n if stop is None else stop)]

    def origin_codes(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Return the sources of the samples from `start` to `stop` (excluded), as positions in `origins`, int32."""
        firsts = [first for _, first in self.origins]
        rows = np.arange(start, self.n if stop is None else stop)
        return (np.searchsorted(firsts, rows, side="right") - 1).astype(np.int32)

    @property
    def table_rows(self) -> int:
        return self.n

    def table_columns(self, start: int, stop: int) -> Columns:
        """Return some rows as columns: the values as stored, and label and weight if the store has them."""
        columns = with_columns({}, self.columns, self.values(start, stop).T)
        if self.labelled:
            names, labels = pa.array(self.label_names(), pa.large_string()), self.labels(start, stop)
            columns = with_columns(columns, ["label"], [names.take(pa.array(labels, mask=labels < 0))])
        if self.largest_weight is not None:
            columns = with_columns(columns, ["weight"], [self.weights(start, stop)])
        return columns

    def describe(self) -> str:
        """Return a one-line description of the store, for display."""
        parts = [f"{self.path}: {self.n:,} x {self.d} {self.dtype} samples"]
        if self.scaling.kind != "none":
            parts.append(f"scaled by {self.scaling.kind}")
        if self.missing:
            parts.append("values may be missing")
        if self.scaling.transforms:
            parts.append(f"{counted(sum(map(bool, self.scaling.transforms)), 'column')} transformed")
        if self.compensated:
            parts.append("compensated")
        there = {"labels": self.labelled, "weights": self.largest_weight, "ids": self.identified}
        extras = [name for name, given in there.items() if given]
        if extras:
            parts.append(f"with {' and '.join(extras)}")
        if len(self.origins) > 1:
            parts.append(f"from {counted(len(self.origins), 'file')}")
        elif self.source:
            parts.append(f"from {self.source}")
        return "; ".join(parts)

    def verify(self) -> Verified:
        """Reread the whole store and compare it with its record; raises StoreError at the first difference."""
        arrays = ["values"] + ["weights"] * (self.largest_weight is not None)
        arrays += ["labels", "label_names"] * self.labelled + ["ids"] * self.identified
        group = open_store(self.path, SCHEMA)
        chunks = {name: StoredArray(self.path, name).places() for name in arrays}
        refuse_missing(self.path, chunks)
        digest, moments, largest = Digest(self.d, self.dtype, self.missing), Moments(self.d), None
        step = StoredArray(self.path, "values").chunks[0]
        for start in range(0, self.n, step):
            values, weights = self.values(start, start + step), self.weights(start, start + step)
            moments.add(values)
            digest.values.update(values.data)
            if weights is not None:
                largest = max(largest or 0.0, float(weights.max()))
                digest.weights.update(weights.data)
            if self.labelled:
                self.labels(start, start + step)
            if self.identified:
                self.ids(start, start + step)
        if digest.value(self.n) != self.digest:
            raise StoreError(f"{self.path}: contents do not match the recorded digest; import the samples again")
        moments.finish()
        found = (*(tuple(each.tolist()) for each in (moments.minima, moments.maxima, moments.means)), largest)
        if found != (self.minima, self.maxima, self.means, self.largest_weight):
            raise StoreError(f"{self.path}: extremes or means differ from those recorded; import the samples again")
        also = "the digest of values and weights, and extremes and means of the columns"
        return compare_contents(self.path, group, chunks, also)

    def _need_labels(self) -> None:
        if not self.labelled:
            raise StoreError(
                f"{self.path}: the samples have no labels; import them with their labels (label, "
                "--label), or let labelled samples vote (voters, --voters)"
            )


def open_samples(store: Samples | str | os.PathLike[str]) -> Samples:
    """Open a samples store and check its schema, shapes and dtypes, or return an opened one.

    Raises
    ------
    StoreError
        The store cannot be opened; the message names the store, the fault and the cure.

    Examples
    --------
    >>> tilepath.open_samples("samples.zarr").n
    200
    """
    if isinstance(store, Samples):
        return store
    return view(Samples, DECLARED.open(store))


@contextmanager
def new_samples(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str],
    dtype: Any = "float32",
    missing: bool = False,
    scaling: str | Scaling = "none",
    cofactor: float | None = None,
    transforms: Mapping[str, str] | None = None,
    weighted: bool = False,
    labelled: bool = False,
    identified: bool = False,
    compensated: bool = False,
    source: str = "",
    chunk_rows: int | None = None,
    overwrite: bool = False,
) -> Iterator[SamplesWriter]:
    """Write a samples store from pieces of rows; it appears when the block ends without an error.

    Parameters
    ----------
    path : path of the new store
    columns : distinct names of the d columns
    dtype : {"float32", "float64"}
    missing : whether NaN stands for a missing value; if False, NaN is refused
    scaling : one of `pipelines.stores.scaling.SCALINGS`, which is computed from all rows; unless it is "none", the disk
        also holds float64 values while the store is written. Or a `Scaling`, such as the scaling of a map, which is
        applied to rows as they arrive
    cofactor : divisor of values before the scaling "arcsinh", by default 5; other scalings have none
    transforms : transforms of single columns, by name or pattern, applied before the scaling; see
        `pipelines.stores.transforms`
    weighted, labelled, identified : whether every piece comes with weights, with labels, with ids
    compensated : whether the spill between detectors has been undone; it is only recorded
    source : text for messages and display
    chunk_rows : rows of a chunk; by default, a chunk takes 4 MiB
    overwrite : replace an existing samples store at `path`

    Raises
    ------
    StoreError
        The path exists, or the disk is full.
    ValueError
        A value cannot be stored, or a column is empty; the message names the row or the columns.

    Warns
    -----
    UserWarning
        A column that is to be scaled by its spread is constant, or float32 merges distinct values.
    """
    if not isinstance(scaling, Scaling):
        one_of("scaling", scaling, SCALINGS)
    if np.dtype(dtype) not in DTYPES:
        raise ValueError(f"samples are stored as float32 or float64, not {np.dtype(dtype)}; choose one of them")
    columns = list(map(str, columns))
    if not columns:
        raise ValueError(f"{source or path}: there is no column; samples have at least one value")
    if isinstance(scaling, Scaling) and len(scaling.factors) != len(columns):
        raise ValueError(f"{source or path}: the scaling is for {len(scaling.factors)} columns, not {len(columns)}")
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise ValueError(f"{source or path}: two columns are called {twice!r}; give each a different name")
    if cofactor is not None and scaling != "arcsinh":
        kind = scaling.kind if isinstance(scaling, Scaling) else scaling
        raise ValueError(
            f"cofactor (--cofactor) goes with the scaling arcsinh (scaling, --scaling), not with {kind!r}; leave it out"
        )
    cofactor = COFACTOR if cofactor is None else cofactor
    if not 1e-100 <= cofactor <= 1e100:
        raise ValueError(f"the cofactor is {cofactor}; give a positive number, such as 5 or 150")
    if chunk_rows is not None and chunk_rows < 1:
        raise ValueError(f"chunk_rows is {chunk_rows}; give at least 1")
    if transforms and (isinstance(scaling, Scaling) or scaling == "arcsinh"):
        raise ValueError("transforms of columns go with the scalings none, zscore and minmax; give one or the other")
    try:
        of_columns = transform_of_columns(transforms, columns) if transforms else ()
    except ValueError as error:
        raise ValueError(f"{source or path}: {error}") from error
    extras = {"weights": weighted, "labels": labelled, "ids": identified}
    with new_store(path, SCHEMA, overwrite) as group:
        writer = SamplesWriter(
            group,
            columns,
            np.dtype(dtype),
            missing,
            source or os.fspath(path),
            scaling=scaling,
            cofactor=cofactor,
            column_transforms=of_columns,
            extras=[name for name, there in extras.items() if there],
            chunk_rows=chunk_rows,
        )
        yield writer
        set_attributes(group, writer.finish() | {"compensated": compensated})


def write_samples(
    path: str | os.PathLike[str],
    values: Any,
    *,
    weights: np.ndarray | None = None,
    labels: Sequence[Any] | np.ndarray | None = None,
    ids: Sequence[Any] | np.ndarray | None = None,
    columns: Sequence[str] | None = None,
    **keywords: Any,
) -> Samples:
    """Write samples held in memory, N samples of d columns, to a samples store.

    Parameters
    ----------
    path : path of the new store
    values : matrix (N, d), masked or not, or a data frame of pandas, polars or pyarrow
        A masked or null value is a missing value: it needs ``missing=True``.
    weights : N weights of samples, optional
    labels, ids : N labels and names of samples, optional
        A masked or null label means no label.
    columns : d names, by default those of the data frame, else 0 to d - 1
    keywords
        `scaling`, `cofactor`, `transforms`, `missing`, `overwrite` and `dtype`, as in `import_samples`. By default,
        values of float64, in any byte order, are stored as float64, all others as float32.

    Returns
    -------
    Samples
        The opened store.

    Examples
    --------
    >>> tilepath.write_samples("few.zarr", np.eye(3)).n
    3
    >>> labelled = tilepath.write_samples("two.zarr", [[0, 2], [4, 6]], labels=["a", "b"], scaling="zscore")
    >>> labelled.values()
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    columns, values = columns_of(values) if columns is None else columns, as_matrix(values)
    if values.ndim != 2:
        raise ValueError(f"samples have the shape {values.shape}; give a matrix with one row per sample")
    keywords.setdefault("dtype", "float64" if values.dtype.newbyteorder("=") == np.float64 else "float32")
    names = list(map(str, range(values.shape[1]))) if columns is None else list(columns)
    with new_samples(
        path,
        columns=names,
        weighted=weights is not None,
        labelled=labels is not None,
        identified=ids is not None,
        **keywords,
    ) as writer:
        extras = (None if extra is None else list(extra) for extra in (labels, ids))
        writer.append(values, weights, *extras)
    return open_samples(path)

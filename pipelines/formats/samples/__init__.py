"""Imports samples from files into samples stores: CSV, Parquet, NumPy's .npy and .npz, FCS.

A reader is a context manager that yields the names of the columns and then tables of some rows each: values in float64,
and weights and labels where a column of them was named. An empty field, a null, or NaN is a missing value, or no label.
A file may be larger than memory, except in FCS and in the cases of .npz that `samples.arrays` names.
"""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa

from pipelines.formats.arc_sort import FormatError
from pipelines.formats.samples.arrays import read_npy, read_npz
from pipelines.formats.samples.columns import Rows, Source, Wanted
from pipelines.formats.samples.cytometry import read_fcs
from pipelines.formats.samples.tables import read_csv, read_parquet
from pipelines.stores.codebook import Codebook, open_codebook
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.stores.samples import SCHEMA, Samples, new_samples, open_samples
from pipelines.stores.schema import StoreError, store_schema

FORMATS: dict[str, tuple[Callable[..., Source], tuple[str, ...]]] = {
    "csv": (read_csv, (".csv", ".tsv", ".txt")),
    "parquet": (read_parquet, (".parquet", ".pq")),
    "npy": (read_npy, (".npy",)),
    "npz": (read_npz, (".npz",)),
    "fcs": (read_fcs, (".fcs",)),
}

# What libraries raise on a damaged file besides errors of their own, including errors that its contents lead to.
_DAMAGE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, ArithmeticError, SyntaxError, RuntimeError),
    *(tokenize.TokenError, zipfile.BadZipFile, zlib.error, pa.ArrowException),
)


def import_samples(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Sequence[str | int] | None = None,
    label: str | int | None = None,
    weight: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    dtype: Any = None,
    missing: bool = False,
    scaling: str | None = None,
    cofactor: float = 5.0,
    like: Samples | Codebook | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Samples:
    """Import samples from a file into a samples store.

    Parameters
    ----------
    source : path of a .csv, .tsv or .txt (optionally gzip'd), .parquet, .npy, .npz or .fcs file
    path : path of the new store
    format : {"csv", "parquet", "npy", "npz", "fcs"}, default by the suffix
    columns : columns of values, by name or position from 0; default all that are neither label nor weight
    label, weight : columns, or arrays of an .npz file, with labels and with weights
    delimiter : between the fields of a line; default a comma, in .tsv a tab
    header : whether a text file begins with the names of its columns; default: if a column is requested by name, or if
        no value in the first line is a number
    dtype, missing, scaling, cofactor, overwrite : as for `pipelines.stores.samples.new_samples`
    like : a samples or a codebook store, or its path: take columns, their scaling and dtype as recorded there, for new
        samples that will be compared with others

    Returns
    -------
    Samples
        The store, opened.

    Raises
    ------
    FormatError
        The source cannot be read; the message names it, the line if it has lines, and the cure.
    ImportError
        FCS files are read with `flowio`; the message says how to install it.
    ValueError
        A value or a column cannot be used.
    StoreError
        `path` exists, or the disk is full.
    """
    name = os.fspath(source)
    reader = _reader(name, format)
    options = {"delimiter": delimiter, "header": header} if reader is read_csv else {}
    if reader is not read_csv and (delimiter is not None or header is not None):
        raise FormatError(f"{name}: delimiter and header are for text files; leave them out")
    if like is not None:
        for option, value in (("columns", columns), ("scaling", scaling), ("dtype", dtype)):
            if value is not None:
                raise ValueError(f"like determines the {option} of samples; leave out {option} (--{option})")
        like = like if isinstance(like, Samples | Codebook) else _open_record(like)
        columns, dtype = like.columns, like.dtype
    with ExitStack() as stack:
        with _reading(name):
            names, tables = stack.enter_context(reader(name, Wanted(columns, label, weight), **options))
        if like is not None and tuple(names) != like.columns:
            shown = ", ".join(like.columns[:12]) + (", ..." if len(like.columns) > 12 else "")
            raise FormatError(f"{name}: column names differ from those of {like.path}; name them {shown}")
        refuse_existing(path, SCHEMA, overwrite)
        refuse_inputs(path, [source] if like is None else [source, like.path])
        with new_samples(
            path,
            columns=names,
            dtype=dtype or "float32",
            missing=missing,
            scaling=like.scaling if like is not None else scaling or "none",
            cofactor=cofactor,
            weighted=weight is not None,
            labelled=label is not None,
            source=name,
            overwrite=overwrite,
        ) as writer:
            for table in _tables(name, tables):
                writer.append(*table)
    return open_samples(path)


def _open_record(path: str | os.PathLike[str]) -> Samples | Codebook:
    """Open a store that records how samples were scaled."""
    schema = store_schema(path)
    if schema not in ("samples/1", "codebook/1"):
        raise StoreError(f"{path}: a store of schema {schema}; name a samples or a codebook store to scale like")
    return open_samples(path) if schema == "samples/1" else open_codebook(path)


def _reader(source: str, given: str | None) -> Callable[..., Source]:
    suffix = os.path.splitext(source.removesuffix(".gz"))[1].lower()
    found = given or next((key for key, (_, suffixes) in FORMATS.items() if suffix in suffixes), suffix)
    if found not in FORMATS:
        raise FormatError(f"{source}: unknown format {found!r}; choose one (--format {'|'.join(FORMATS)})")
    return FORMATS[found][0]


def _tables(source: str, tables: Iterator[Rows]) -> Iterator[Rows]:
    """The tables; errors in reading them are kept apart from errors in writing."""
    with _reading(source):
        yield from tables


@contextmanager
def _reading(source: str) -> Iterator[None]:
    """Turn what libraries raise on a missing or damaged file into a FormatError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise FormatError(f"{source}: cannot be read (no such file); check the name") from error
    except MemoryError as error:
        raise FormatError(f"{source}: not enough memory ({error}); use a machine with more") from error
    except FormatError:
        raise
    except _DAMAGE as error:
        raise FormatError(
            f"{source}: cannot be read ({error}); get a new copy or name its format (--format)"
        ) from error

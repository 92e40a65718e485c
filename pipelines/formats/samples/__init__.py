"""Import samples from files into samples stores: CSV, Parquet, Arrow, NumPy's .npy and .npz, Zarr, FCS, .h5ad.

A reader is a context manager that yields an `Opened` source: the names of the columns, and an iterator over tables of
some rows each. A table has values in float64, and weights, labels and ids if the user named columns for them. An empty
field, a null, or NaN is a missing value or a missing label. A file may be larger than memory, except for the .npz files
that `samples.arrays` describes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pipelines.formats.errors import FormatError
from pipelines.formats.samples.annotated import read_h5ad
from pipelines.formats.samples.arrays import read_npy, read_npz, read_zarr
from pipelines.formats.samples.columns import PIECE_BYTES, Opened, Rows, Source, Wanted
from pipelines.formats.samples.cytometry import read_fcs
from pipelines.formats.samples.tables import read_arrow, read_csv, read_parquet
from pipelines.stores.codebook import Codebook
from pipelines.stores.errors import StoreError
from pipelines.stores.place import refuse_existing, refuse_inputs
from pipelines.stores.samples import Samples, new_samples, open_samples
from pipelines.stores.samples_writer import SCHEMA, SamplesWriter
from pipelines.stores.scaling import RowError
from pipelines.stores.schema import brief, open_one_of

FORMATS: dict[str, tuple[Callable[..., Source], tuple[str, ...]]] = {
    "csv": (read_csv, (".csv", ".tsv", ".txt")),
    "parquet": (read_parquet, (".parquet", ".pq")),
    "arrow": (read_arrow, (".arrow", ".feather", ".ipc")),
    "npy": (read_npy, (".npy",)),
    "npz": (read_npz, (".npz",)),
    "zarr": (read_zarr, (".zarr",)),
    "h5ad": (read_h5ad, (".h5ad",)),
    "fcs": (read_fcs, (".fcs",)),
}
OPTIONS: dict[str, tuple[str, Callable[..., Source]]] = {  # option: the files it is for, and their reader
    "delimiter": ("text files", read_csv),
    "header": ("text files", read_csv),
    "decimal": ("text files", read_csv),
    "compensate": ("FCS files", read_fcs),
    "layer": (".h5ad files", read_h5ad),
}


def import_samples(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Sequence[str | int] | None = None,
    exclude: Sequence[str | int] = (),
    label: str | int | None = None,
    weight: str | int | None = None,
    ids: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    decimal: str | None = None,
    compensate: bool | None = None,
    layer: str | None = None,
    dtype: Any = None,
    missing: bool = False,
    scaling: str | None = None,
    cofactor: float | None = None,
    transforms: Mapping[str, str] | None = None,
    like: Samples | Codebook | str | os.PathLike[str] | None = None,
    piece_bytes: int = PIECE_BYTES,
    overwrite: bool = False,
) -> Samples:
    """Import samples from files into a samples store.

    Blanks around column names are ignored, in files and in these arguments.

    Parameters
    ----------
    source : path of a .csv, .tsv or .txt (optionally gzip'd), .parquet, .arrow, .npy, .npz, .zarr, .h5ad or .fcs file,
        or several paths. All files have the columns of the first file; the store records the file of each sample
    path : path of the new store
    format : {"csv", "parquet", "arrow", "npy", "npz", "zarr", "h5ad", "fcs"}, default by the suffix
    columns : columns of values, by name or position from 0; default all columns without another use
    exclude : columns to leave out
    label, weight, ids : columns, or arrays of an .npz file, with the labels, weights and names of samples
    delimiter : delimiter of the fields in a line; default a comma, in .tsv a tab, with decimal commas a semicolon;
        "whitespace" for any number of blanks
    header : True if a text file begins with its column names; default: True if a column is requested by name, or if no
        value in the first line is a number
    decimal : decimal mark of a text file, "." by default, or ","
    compensate : undo the spillover between the detectors of a cytometer, with the matrix in the FCS file
    layer : name of the layer of an .h5ad file to read; default X
    dtype : {"float32", "float64"}, optional
        Default float32
    missing : bool
        Whether NaN and empty fields stand for missing values; if False, they are refused
    scaling : {"none", "zscore", "minmax", "arcsinh"}, optional
        Brings all columns to one scale; it is computed from all rows. "arcsinh" replaces x by arcsinh(x / `cofactor`).
        Default "none", or the scaling of `like`
    cofactor : float
        Divisor of values before arcsinh
    transforms : mapping, optional
        Transforms of single columns before the scaling, by name or by pattern, such as ``{"FL*": "arcsinh:150"}``:
        "arcsinh:COFACTOR", "log" (the decimal logarithm) or "logicle:T:W:M:A"
    overwrite : bool
        Replace an existing samples store at `path`
    like : a samples or a codebook store, or its path: take columns, compensation, transforms, scaling, dtype and
        `missing` from this store, for new samples that will be compared with its samples
    piece_bytes : bytes of values, in float64, that are read at a time; text is read in blocks of a fourth of it

    Returns
    -------
    Samples
        The opened store.

    Raises
    ------
    FormatError
        A source cannot be read; the message names the source, the line in a text file, and the cure.
    ImportError
        The package for a format is missing; the message says how to install it.
    ValueError
        A value or a column is not valid.
    StoreError
        `path` exists, or the disk is full.

    Warns
    -----
    UserWarning
        A value cannot be stored, or a column is empty; the message names the row or the columns.

    Examples
    --------
    >>> samples.to_pandas().to_csv("cloud.csv", index=False)
    >>> tilepath.import_samples("cloud.csv", "cloud.zarr", label="label", scaling="zscore").n
    200
    """
    sources = [os.fspath(source)] if isinstance(source, str | os.PathLike) else [os.fspath(each) for each in source]
    if not sources:
        raise ValueError("there is no source; name at least one file of samples")
    if like is not None:
        given = {
            "columns": columns,
            "scaling": scaling,
            "cofactor": cofactor,
            "dtype": dtype,
            "transforms": transforms,
            "compensate": compensate,
        }
        for option, value in given.items():
            if value is not None:
                raise ValueError(f"like (--like) determines the {option} of samples; leave out {option} (--{option})")
        either, cure = ("samples/1", "codebook/1"), "name a samples or a codebook store to scale like"
        like = like if isinstance(like, Samples | Codebook) else open_one_of(like, either, cure)
        columns, dtype, compensate = like.columns, like.dtype, like.compensated or None
        missing = missing or like.missing
    transforms = {name.strip(): transform for name, transform in (transforms or {}).items()}
    options = dict(delimiter=delimiter, header=header, decimal=decimal, compensate=compensate, layer=layer)
    wanted = Wanted(columns, label, weight, ids, tuple(exclude), piece_bytes, missing).stripped()
    with ExitStack() as first:
        opened = first.enter_context(_open(sources[0], format, wanted, options))
        names = opened.names
        if like is not None and tuple(names) != like.columns:
            shown = ", ".join(like.columns[:12]) + (", ..." if len(like.columns) > 12 else "")
            raise FormatError(f"{sources[0]}: column names differ from those of {like.path}; name them {shown}")
        refuse_existing(path, SCHEMA, overwrite)
        refuse_inputs(path, sources if like is None else [*sources, like.path])
        with new_samples(
            path,
            columns=names,
            dtype=dtype or "float32",
            missing=missing,
            scaling=like.scaling if like is not None else scaling or "none",
            cofactor=cofactor,
            transforms=transforms,
            weighted=weight is not None,
            labelled=label is not None,
            identified=opened.ids or ids is not None,
            compensated=bool(compensate),
            source=sources[0],
            overwrite=overwrite,
        ) as writer:
            _append(writer, sources[0], opened)
            first.close()
            for name in sources[1:]:
                with _open_alike(name, sources[0], names, format, wanted, options) as opened:
                    writer.begin(name)
                    _append(writer, name, opened)
    return open_samples(path)


@contextmanager
def _open_alike(
    source: str, first: str, names: list[str], format: str | None, wanted: Wanted, options: Mapping[str, Any]
) -> Iterator[Opened]:
    """Open a further source for the columns `names` of the source `first`, in the same order.

    If the user named no columns, `source` must have the same columns as `first`, in any order.
    """
    with _open(source, format, wanted, options) as opened:
        if opened.names == names:
            yield opened
            return
        if sorted(opened.names) != sorted(names):
            raise FormatError(f"{source}: {_difference(opened.names, names, first)}")
    with _open(source, format, wanted._replace(columns=names, exclude=()), options) as opened:
        yield opened


def _append(writer: SamplesWriter, source: str, opened: Opened) -> None:
    """Write the rows of a source; an error about a row of a text file names its line."""
    try:
        for table in _tables(source, opened.rows):
            writer.append(*table)
    except RowError as error:
        line = opened.line_of(error.row)
        if line is None:
            raise
        raise FormatError(f"{source}, line {line}{error.what}") from error


def _difference(found: Sequence[str], expected: Sequence[str], first: str) -> str:
    """Return how the columns of a file, `found`, differ from the columns of the first file."""
    for these, others, fault in ((expected, found, "lacks the column"), (found, expected, "has the column")):
        for name in these:
            if name not in others:
                also = f", which {first} has" if these is expected else f", which {first} lacks"
                return f"{fault} {name!r}{also}; name the columns that all files have (columns, --columns)"
    return f"its columns differ from those of {first}; name those that all files have (columns, --columns)"


@contextmanager
def _open(source: str, format: str | None, wanted: Wanted, options: Mapping[str, Any]) -> Iterator[Opened]:
    """Open a source with its reader, and refuse options of other readers; errors on opening name the source."""
    reader = _reader(source, format)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        of, known = OPTIONS[name]
        if reader is not known:
            raise FormatError(f"{source}: {name} (--{name}) is for {of}; leave it out")
    with ExitStack() as stack:
        with _reading(source):
            opened = stack.enter_context(reader(source, wanted, **given))
        yield opened


def _reader(source: str, given: str | None) -> Callable[..., Source]:
    suffix = os.path.splitext(source.removesuffix(".gz"))[1].lower()
    found = given or next((key for key, (_, suffixes) in FORMATS.items() if suffix in suffixes), suffix)
    if found not in FORMATS:
        raise FormatError(f"{source}: unknown format {found!r}; choose one (format, --format {'|'.join(FORMATS)})")
    return FORMATS[found][0]


def _tables(source: str, tables: Iterator[Rows]) -> Iterator[Rows]:
    """Yield the tables, and turn errors of reading, but not errors of writing, into a FormatError."""
    with _reading(source):
        yield from tables


@contextmanager
def _reading(source: str) -> Iterator[None]:
    """Turn the errors of libraries about a missing or damaged file into a FormatError that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise FormatError(f"{source}: cannot be read (no such file); check the name") from error
    except MemoryError as error:
        raise FormatError(f"{source}: not enough memory ({error}); use a machine with more") from error
    except StoreError as error:  # about a Zarr array of another program
        raise FormatError(str(error)) from error
    except (FormatError, ImportError):
        raise
    except Exception as error:  # libraries raise various errors on a damaged file
        raise FormatError(
            f"{source}: cannot be read ({brief(error)}); get a new copy or name its format (--format)"
        ) from error
